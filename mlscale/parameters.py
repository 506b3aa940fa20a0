"""What a message tells a user to give, in the words of the front end that runs.

These are keywords of Python, `power=500`, and the options of the command while it runs, `--power
500`. A message names the parameter as Python does, and is made when it is told, not at import.
"""

import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_OPTIONS = {  # whose names differ
    "aggregate": "repetitions",
    "caps": "power-cap",
    "columns": "map",
    "interval_s": "interval",
    "log": "output",
    "time_ms": "time",
}
_SWITCHES = ("each", "extrapolate", "force", "pooled", "profiled_only", "resume", "skip_untimed")
_ATTRIBUTES = ("commands", "notes")  # which an answer in Python has
speaks_options: ContextVar[bool] = ContextVar("speaks_options", default=False)


@contextmanager
def in_options(is_command: bool = True) -> Iterator[None]:
    """Messages that are made meanwhile name options, or not."""
    before = speaks_options.set(is_command)
    try:
        yield
    finally:
        speaks_options.reset(before)


def parameter(name: str, value: str | Mapping[str, str] = "") -> str:
    """A parameter by its name in Python, with a value or none, as a user gives it.

    Example:
        >>> parameter("time_ms", "MS"), parameter("base", "engine=1980"), parameter("force")
        ('time_ms=MS', "base='engine=1980'", 'force=True')
        >>> with in_options():
        ...     parameter("time_ms", "MS"), parameter("base", "engine=1980"), parameter("force")
        ('--time MS', '--base engine=1980', '--force')
    """
    if speaks_options.get():
        return _option(name, value)
    if name in _ATTRIBUTES:
        return f".{name}"
    if name in _SWITCHES:
        return f"{name}=True"
    if isinstance(value, Mapping):
        return f"{name}={dict(value)}"
    return f"{name}='{value}'" if value[:1].islower() else f"{name}={value}"


def call(name: str, argument: str) -> str:
    """A function of the API with an argument; the command of its name where these are spoken.

    Example:
        >>> call("advise", "FILE")
        'mlscale.advise(FILE)'
    """
    is_command = speaks_options.get()
    return command(f"{name} {argument}") if is_command else f"mlscale.{name}({argument})"


def command(words: str, *switches: str, **values: str) -> str:
    """A line for a shell, which is the same in every front end.

    Example:
        >>> command("import LOG", time_ms="MS"), command("devices show", "help")
        ('mlscale import LOG --time MS', 'mlscale devices show --help')
    """
    given = dict.fromkeys(switches, "") | values
    return " ".join(["mlscale", words, *map(_option, given, given.values())])


def _option(name: str, value: str | Mapping[str, str]) -> str:
    option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
    if isinstance(value, Mapping):
        value = shlex.quote(",".join(f"{key}={value[key]}" for key in value))
    return f"{option} {value}" if value else option
