"""A file that a user names is opened, known and read once, whoever asks.

Expected: one opening of each file, counted by Python's own audit of `open`, which no code evades.
"""

import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic.two_logs import log

from mlscale import InputError
from mlscale.cli.main import main
from mlscale.data.datasets import path
from mlscale.files import HELD, hold
from mlscale.readers.source import Source, further

_counting: list[Counter[str]] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _counting and event == "open" and isinstance(arguments[0], str | os.PathLike):
        _counting[0][os.path.realpath(arguments[0])] += 1


sys.addaudithook(_note)  # for good: none can be taken away


@pytest.fixture
def opened() -> Iterator[Counter[str]]:
    """How often each file was opened meanwhile."""
    _counting.append(Counter())
    yield _counting[0]
    _counting.clear()


def test_each_file_of_an_answer_is_opened_once(tmp_path: Path, opened: Counter[str]) -> None:
    """Two logs, also with the commands for a third; a profile, a trace and a log of its power."""
    logs = [log(tmp_path / "fast.csv", 1980, 60, 400), log(tmp_path / "slow.csv", 1200, 80, 250)]
    step = [path(f"training-step-{name}") for name in ("ncu.csv", "trace.json.gz", "power.csv")]
    asked = [
        [str(logs[0]), "--also", str(logs[1]), "--commands"],
        [str(step[0]), str(step[1]), "--base", "engine=1410,memory=1593", "--power", str(step[2])],
    ]
    for words, files in zip(asked, (logs, step), strict=True):
        opened.clear()
        assert main(["advise", *words]) == 0
        assert [opened[os.path.realpath(file)] for file in files] == [1] * len(files)


def test_a_long_file_is_known_by_its_beginning(tmp_path: Path, opened: Counter[str]) -> None:
    """Opened to hold its beginning, then for each walk through it: to know it, and to read it."""
    text = json.dumps({"traceEvents": [], "padding": " " * HELD})
    for name, content in (("t.json", text.encode()), ("t.json.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(content)
    opened.clear()
    long, packed = Source(str(tmp_path / "t.json")), Source(str(tmp_path / "t.json.gz"))
    for source in (long, packed):
        assert source.sheet is not None
        assert source.file.content() == text.encode()
    assert opened[str(packed.path)] == 1
    assert opened[str(long.path)] == 3
    assert len(hold(long.path).head) == HELD


@pytest.mark.parametrize(
    ("text", "name", "settings"),
    [
        ("log.csv", "log.csv", ""),
        ("log.csv@engine=1335", "log.csv", "engine=1335"),
        ("a@b/log.csv@engine=5,memory=7", "a@b/log.csv", "engine=5,memory=7"),
        ("mail@home.csv", "mail@home.csv", ""),
    ],
)
def test_where_a_further_run_was_made(text: str, name: str, settings: str) -> None:
    assert further(text) == Source(name, settings)


def test_settings_without_a_file() -> None:
    with pytest.raises(InputError, match="@engine=5: names no file before '@'"):
        _ = further("@engine=5").path
