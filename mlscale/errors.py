"""What a user is told: errors to mend, and warnings about the data."""

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlscale.notes import Note, Severity

_EXTRAS = {  # of pyproject.toml: what each installs beyond the ones above it
    "tables": ("pandas", "pyarrow"),
    "figures": ("matplotlib",),
    "study": ("cloudpickle", "joblib", "pooch", "scipy", "sklearn", "threadpoolctl"),
    "train": ("torch",),
    "dask": ("dask", "distributed"),
    "measure": ("amdsmi", "pynvml"),
    "collect": ("kernel_tuner", "pyopencl"),
}


class InputError(ValueError):
    """Bad usage or bad input; the message is one line that says what to mend.

    The command line prints the message on stderr and exits with status 2. code: of the check in
    `mlscale.data.checks` that refuses; empty where none does.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(" ".join(message.splitlines()))
        self.code = code


class UsageError(InputError):
    """The options of a command do not suit each other; the command line adds where its help is."""


class NotMetError(InputError):
    """An answer is given, and is not as sure as was required; exit status 3."""


class MissingLibraryError(InputError, ModuleNotFoundError):
    """A library that an optional part of mlscale needs is not installed."""


@contextmanager
def extra_named(purpose: str, extra: str | None = None) -> Iterator[None]:
    """Tell which extra of mlscale installs a library that turns out to be missing.

    extra: one to name where it has the library among others; else the smallest that has it.
    Raises MissingLibraryError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        library = str(error.name).partition(".")[0]
        having = [name for name, libraries in _EXTRAS.items() if library in libraries]
        is_told = isinstance(error, MissingLibraryError) and extra is None
        if not having or is_told:
            raise
        names = list(_EXTRAS)
        largest = max(having[0], extra or having[0], key=names.index)
        missing = MissingLibraryError(
            f"{purpose} needs {library}; install it with: pip install 'mlscale[{largest}]'"
        )
        missing.name = library
        raise missing from None


class DataWarning(UserWarning):
    """Something in the data that the user should know of; the work goes on.

    note: what is told; code: the note's.
    """

    def __init__(self, note: Note) -> None:
        super().__init__(note)
        self.note, self.code = note, note.code


def warn(code: str, text: str, severity: Severity = "warning", kernels: Sequence[str] = ()) -> None:
    """Give a `Note` as a DataWarning, as of the line outside mlscale that asked for the work."""
    warning = DataWarning(Note(code, text, severity, tuple(kernels)))
    frame, level = sys._getframe(), 1  # noqa: SLF001 - as the standard library's warnings do
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "mlscale":
        frame, level = frame.f_back, level + 1
    warnings.warn(warning, stacklevel=level)
