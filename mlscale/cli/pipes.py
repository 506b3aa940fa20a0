"""Pipes among the files of a command, which can be read only once: a file is made of each."""

import argparse
import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any


def as_files(arguments: argparse.Namespace) -> None:
    """Put files in place of pipes, but for what is written and for a program's own words."""
    for name in vars(arguments).keys() - {"output", "program_words"}:
        setattr(arguments, name, _as_files(getattr(arguments, name)))


def _as_files(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_files(one) for one in value]
    if not isinstance(value, str) or not Path(value).is_fifo():
        return value
    folder = tempfile.mkdtemp(prefix="mlscale-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = Path(folder) / Path(value).name
    with Path(value).open("rb") as pipe, file.open("wb") as copy:
        shutil.copyfileobj(pipe, copy)
    return str(file)
