"""A Dask cluster to spread a study over."""

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlscale.errors import InputError

if TYPE_CHECKING:
    from distributed import Client

SECONDS_TO_CONNECT = 5.0


@contextmanager
def connected(address: str) -> Iterator["Client"]:
    """A client of the scheduler at the address, such as tcp://scheduler:8786.

    Raises InputError when nothing listens there, at once, when there is no worker, and when the
    cluster is lost on the way.
    """
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError:
        raise InputError(
            "--dask needs dask and distributed; install them with: pip install 'mlscale[dask]'"
        ) from None
    try:
        listening = get_address_host_port(address, strict=True)
    except (ValueError, TypeError, RuntimeError):  # the last for inproc:// addresses
        raise InputError(
            f"'{address}' is not the address of a scheduler; write it as tcp://HOST:8786"
        ) from None
    try:
        socket.create_connection(listening, SECONDS_TO_CONNECT).close()
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except OSError as error:
        raise InputError(
            f"no Dask scheduler answers at {address} ({error.strerror or 'not Dask'}); start one "
            "with: dask scheduler"
        ) from None
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # told in one line below
    with client:
        if not client.ncores():
            raise InputError(
                f"the scheduler at {address} has no worker; start one with: dask worker {address}"
            )
        try:
            yield client
        except Exception as error:
            if not type(error).__module__.startswith("distributed"):
                raise
            raise InputError(
                f"the Dask cluster at {address} lost all its workers or its scheduler "
                f"({type(error).__name__}); with -o DIR what is done is kept: go on with --resume"
            ) from None
