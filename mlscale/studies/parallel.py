"""Long work in units: on processes or a Dask cluster, kept as it is done, taken up again."""

import asyncio
import logging
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Any

from mlscale.data.devices import Device, register_device, registered_devices
from mlscale.data.measurements import Measurements
from mlscale.errors import DataWarning, InputError, kept_notes
from mlscale.model.model import Model
from mlscale.notes import Note
from mlscale.parameters import in_options, parameter, speaks_options
from mlscale.progress import Progress

if TYPE_CHECKING:
    from distributed import Client

_LARGE = (Measurements, Model)  # are sent to each worker once
_LONGEST_END_S = 5.0  # for a thread with nothing left to do
SECONDS_TO_CONNECT = 5.0  # to a Dask scheduler
SECONDS_BETWEEN_LOOKS = 1.0  # a worker looks whether its parent is alive

Results = Generator[tuple[int, Any], None, None]


def sweep(
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    jobs: int = 1,
    progress: Progress | None = None,
    client: "Client | None" = None,
) -> Iterator[tuple[int, Any]]:
    """Make every call that is not kept yet; yields number and result as they come, kept ones first.

    calls: the arguments of each call of `work`, which gives a JSON value. On that many processes,
    or on the Dask cluster of the client.
    """
    done = dict(progress.done) if progress else {}
    yield from done.items()
    left = [number for number in range(len(calls)) if number not in done]
    with closing(_results(work, calls, left, jobs, client)) as results:
        for number, result in results:
            if progress:
                progress.add(number, result)
            yield number, result


def _results(
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    left: Sequence[int],
    jobs: int,
    client: "Client | None",
) -> Results:
    if client is None and min(jobs, len(left)) < 2:
        yield from ((number, work(*calls[number])) for number in left)
        return
    import joblib

    backend: AbstractContextManager[Any] = joblib.parallel_config(
        "loky", initializer=_end_with, initargs=(os.getpid(),)
    )
    if client is not None:
        large = {id(a): a for call in calls for a in call if isinstance(a, _LARGE)}
        backend = joblib.parallel_config("dask", client=client, scatter=list(large.values()))
        jobs = -1
    # A worker that grew is replaced, and joblib says so from a thread of its own; nothing is lost.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    with backend, _deaf_to_interrupts():
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        known = registered_devices(), speaks_options.get()
        results = parallel(joblib.delayed(_numbered)(*known, work, n, *calls[n]) for n in left)
    try:
        for number, result, notes in results:
            for note in notes:
                warnings.warn(DataWarning(note), stacklevel=2)
            yield number, result
    except BaseException:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib says that what was begun is given up
            results.close()
        _await_feeders()
        raise


def _numbered(
    devices: Sequence[Device], is_command: bool, work: Callable[..., Any], number: int, *call: Any
) -> tuple[int, Any, list[Note]]:
    """Make a call in a process that does not know the user's own devices yet, nor who asks.

    What it warns of the data comes back with its result, to be shown by the process that asked.
    """
    for device in devices:
        register_device(device)
    with in_options(is_command), kept_notes() as notes:
        result = work(*call)
    return number, result, notes


def _await_feeders() -> None:
    """Wait until the threads that fed workers have ended, when these were stopped in their work.

    loky leaves them behind to free a semaphore; where the interpreter ends in the midst of that,
    loky's resource tracker complains of a leak.
    """
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join(_LONGEST_END_S)


def _end_with(parent: int) -> None:
    """Let this worker end soon after the process that started it, however that one ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started in the block leave Ctrl-C to this one, which ends them in good order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def connected(address: str) -> Iterator["Client"]:
    """A client of the Dask scheduler at the address, such as tcp://scheduler:8786.

    Raises InputError where no scheduler answers there within SECONDS_TO_CONNECT or it has no
    worker, and when the cluster is lost on the way.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            f"{parameter('dask')} needs dask and distributed; install them with: pip install "
            "distributed"
        ) from None
    for name in ("distributed.client", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # told in one line below
    try:
        asyncio.run(_require_scheduler(address))
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except Exception:  # what a listener that is not Dask sends may fail in any way
        raise InputError(
            f"no Dask scheduler answers at {address}; start one with 'dask scheduler', and write "
            "its address as tcp://HOST:8786"
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
                f"({type(error).__name__}); with {parameter('output', 'DIR')} what is "
                f"done is kept: continue with {parameter('resume')}"
            ) from None


async def _require_scheduler(address: str) -> None:
    """Raise an error of some kind unless a scheduler says its name in time.

    A client does not do so by itself: it waits without end for a dashboard's first word.
    """
    from distributed.comm.addressing import get_address_host_port
    from distributed.core import rpc
    from distributed.security import Security

    listening = get_address_host_port(address, strict=True)
    socket.create_connection(listening, SECONDS_TO_CONNECT).close()
    security = Security().get_connection_args("client")
    async with asyncio.timeout(SECONDS_TO_CONNECT), rpc(address, connection_args=security) as told:
        identity = await told.identity()
    if identity["type"] != "Scheduler":
        raise ValueError(identity["type"])
