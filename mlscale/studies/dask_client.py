"""A Dask cluster to spread a study over."""

import asyncio
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

    Raises InputError when nothing listens there, at once, when what listens there does not answer
    as a scheduler within SECONDS_TO_CONNECT, when there is no worker, and when the cluster is
    lost on the way.
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
    for name in ("distributed.client", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # told in one line below
    try:
        socket.create_connection(listening, SECONDS_TO_CONNECT).close()
        asyncio.run(_require_scheduler(address))
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except Exception as error:  # what a listener that is not Dask sends may fail in any way
        reason = (
            getattr(error, "strerror", None) or "what listens there is not Dask, or stands still"
        )
        if address.startswith("tls:"):
            reason += "; tls:// needs the certificates in Dask's own configuration"
        raise InputError(
            f"no Dask scheduler answers at {address} ({reason}); start one with: dask scheduler"
        ) from None
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


async def _require_scheduler(address: str) -> None:
    """Raise an error of some kind unless a scheduler says its name in time.

    A client does not do so by itself: it waits without end for the first word.
    """
    from distributed.core import rpc
    from distributed.security import Security

    security = Security().get_connection_args("client")
    async with asyncio.timeout(SECONDS_TO_CONNECT), rpc(address, connection_args=security) as told:
        identity = await told.identity()
    if identity["type"] != "Scheduler":
        raise ValueError(identity["type"])
