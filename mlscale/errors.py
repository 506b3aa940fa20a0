"""What a user is told: errors to fix, and warnings about the data."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from mlscale.notes import Note, Severity

_EXTRAS = {  # extras in pyproject.toml: what each installs beyond the ones above it
    "tables": ("pandas", "pyarrow"),
    "figures": ("matplotlib",),
    "study": ("cloudpickle", "joblib", "pooch", "scipy", "sklearn", "threadpoolctl"),
    "train": ("torch",),
    "dask": ("dask", "distributed"),
    "measure": ("amdsmi", "pynvml"),
    "collect": ("kernel_tuner", "pyopencl"),
}
_LAST_IN_TURN = "train"  # up to it each extra holds those above
_PACKAGES = {  # by the name of a library that of its package
    "dask": "distributed",
    "kernel_tuner": "'kernel_tuner<1.6'",
    "pynvml": "nvidia-ml-py",
    "sklearn": "scikit-learn",
}


class InputError(ValueError):
    """Bad usage or bad input; the message is one line that says what to fix.

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


def install_line(*libraries: str) -> str:
    """The command that installs libraries, by the names under which they can be imported."""
    packages = dict.fromkeys(_PACKAGES.get(library, library) for library in libraries)
    return f"pip install {' '.join(packages)}"


@contextmanager
def extra_named(purpose: str, extra: str | None = None) -> Iterator[None]:
    """Tell how to install a library that turns out to be missing, and others that will be.

    extra: of mlscale, all of whose libraries are needed; else the smallest that has the library.
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
        needed = [library]
        if (last := names.index(largest)) <= names.index(_LAST_IN_TURN):
            every = [one for name in names[: last + 1] for one in _EXTRAS[name]]
            needed = [one for one in every if one == library or not find_spec(one)]
        missing = MissingLibraryError(
            f"{purpose} needs {library}; install it with: {install_line(*needed)}"
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


@contextmanager
def kept_notes(
    before: Iterable[Note] = (), tell: Callable[[Note], None] | None = None
) -> Iterator[list[Note]]:
    """Keep what is warned of the data meanwhile, each note once; it is not shown otherwise.

    before: what was kept already; tell: what shows each new note.
    """
    notes = [*before]

    def keep(message: Warning | str, category: type[Warning], *more: Any, **named: Any) -> None:
        if not isinstance(message, DataWarning):
            show(message, category, *more, **named)
        elif message.note not in notes:
            notes.append(message.note)
            if tell:
                tell(message.note)

    with warnings.catch_warnings():
        show, warnings.showwarning = warnings.showwarning, keep
        warnings.simplefilter("always", DataWarning)
        yield notes
