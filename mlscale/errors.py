"""What a user is told: errors to mend, and warnings about the data."""

import warnings


class InputError(ValueError):
    """Bad usage or bad input; the message is one line that says what to mend.

    The command line prints the message on stderr and exits with status 2.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.splitlines()))


class UsageError(InputError):
    """The options of a command do not suit each other; the command line adds where its help is."""


class MissingLibraryError(InputError, ImportError):
    """A library that an optional part of mlscale needs is not installed."""


def missing_library(purpose: str, library: str, extra: str) -> MissingLibraryError:
    """Make the error that says how to install a library; `extra` is mlscale's that has it."""
    return MissingLibraryError(
        f"{purpose} needs {library}; install it with: pip install 'mlscale[{extra}]'"
    )


class DataWarning(UserWarning):
    """Something in the data that the user should know of; the work goes on."""


def warn(message: str) -> None:
    """Warn about the data, as of the line that called the caller."""
    warnings.warn(message, DataWarning, stacklevel=3)
