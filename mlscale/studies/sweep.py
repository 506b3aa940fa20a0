"""Long work in units: in parallel, kept as it is done, taken up again where it stopped.

What is done is kept in FOLDER/progress.jsonl: a first line with the fingerprint of data and
settings, then a line for each unit that is done. A line that was cut off is not counted.
"""

import hashlib
import json
import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO

import joblib

from mlscale import __version__
from mlscale.errors import InputError
from mlscale.files import read_bytes, write_text
from mlscale.measurements import Measurements

if TYPE_CHECKING:
    from distributed import Client

PROGRESS = "progress.jsonl"


def fingerprint(tables: dict[str, Measurements], asked: dict[str, Any]) -> str:
    """A digest of the measurements, of what was asked of them (JSON values), and of the version."""
    digest = hashlib.sha256(json.dumps([__version__, asked], sort_keys=True).encode())
    for name, data in tables.items():
        names = [name, data.device, data.kernels, data.applications, data.counter_names]
        rest = [data.aggregate, str(data.grid), data.metadata]
        digest.update(json.dumps([*names, *rest], sort_keys=True).encode())
        for array in (data.time_samples, data.power_samples, data.counter_samples):
            digest.update(b"" if array is None else array.tobytes())
    return digest.hexdigest()


def sweep(
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    jobs: int = 1,
    kept: "Progress | None" = None,
    client: "Client | None" = None,
) -> Iterator[tuple[int, Any]]:
    """Make every call that is not kept yet; yields number and result as they come, kept ones first.

    calls: the arguments of each call of `work`, which gives a JSON value. On that many processes,
    or on the Dask cluster of the client.
    """
    done = dict(kept.done) if kept else {}
    yield from done.items()
    left = [number for number in range(len(calls)) if number not in done]
    with closing(_results(work, calls, left, jobs, client)) as results:
        for number, result in results:
            if kept:
                kept.add(number, result)
            yield number, result


def _results(
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    left: Sequence[int],
    jobs: int,
    client: "Client | None",
) -> Generator[tuple[int, Any], None, None]:
    if client is None and min(jobs, len(left)) < 2:
        yield from ((number, work(*calls[number])) for number in left)
        return
    backend: AbstractContextManager[Any] = nullcontext()
    if client is not None:
        large = {id(a): a for call in calls for a in call if isinstance(a, Measurements)}
        backend = joblib.parallel_config("dask", client=client, scatter=list(large.values()))
        jobs = -1
    with backend, _deaf_to_interrupts():
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        results = parallel(joblib.delayed(_numbered)(work, n, *calls[n]) for n in left)
    try:
        # Not 'yield from', which would close the results before the warning is silenced.
        for result in results:  # noqa: UP028
            yield result
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib says that what was begun is given up
            results.close()


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


def _numbered(work: Callable[..., Any], number: int, *call: Any) -> tuple[int, Any]:
    return number, work(*call)


class Progress:
    """The results that are there, by number of the unit, in a folder; a context manager."""

    def __init__(self, folder: Path, mark: str, resume: bool) -> None:
        """Begin a new record, or with `resume` take up the one that is there.

        Raises InputError when the folder holds an unfinished study and `resume` is off, or one
        of another fingerprint.
        """
        self._path = folder / PROGRESS
        self.done: dict[int, Any] = {}
        if self.is_in(folder):
            if not resume:
                raise InputError(
                    f"{folder}: holds an unfinished study; go on with --resume, or name another "
                    "folder"
                )
            self._read(mark)
        head = [{"fingerprint": mark}]
        units = [{"unit": number, "result": result} for number, result in self.done.items()]
        lines = [json.dumps(line) + "\n" for line in [*head, *units]]
        write_text(self._path, "".join(lines))
        try:
            self._file: TextIO = self._path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"{self._path}: cannot be written: {error.strerror}") from error

    @staticmethod
    def is_in(folder: Path) -> bool:
        """Whether a folder holds an unfinished study."""
        return (folder / PROGRESS).exists()

    def _read(self, mark: str) -> None:
        """Take over the whole lines of a record of that fingerprint."""
        head, *units = read_bytes(self._path).decode("utf-8", "replace").splitlines()
        if head != json.dumps({"fingerprint": mark}):
            raise InputError(
                f"{self._path}: was made of other data, with other settings or by another "
                "version; ask for the same again, or name another folder"
            )
        for line in units:
            try:
                unit = json.loads(line)
            except ValueError:
                return
            self.done[unit["unit"]] = unit["result"]

    def add(self, number: int, result: Any) -> None:
        """Keep the result of one unit."""
        self._file.write(json.dumps({"unit": number, "result": result}) + "\n")
        self._file.flush()
        self.done[number] = result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def remove(self) -> None:
        """Forget the record, once the results are written."""
        self._file.close()
        self._path.unlink(missing_ok=True)
