"""Warnings of a command: each once, alike ones with a count. Expected lines are by hand."""

import warnings
from collections.abc import Iterator

import pytest

from mlscale import DataWarning
from mlscale.cli.shown_warnings import ShownWarnings, kept_warnings


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[ShownWarnings]:
    own = ShownWarnings()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", own.show)
        yield own


def warn(*texts: str) -> None:
    for text in texts:
        warnings.warn(text, DataWarning, stacklevel=1)


def test_alike_but_for_numbers_are_counted(
    shown: ShownWarnings, capsys: pytest.CaptureFixture[str]
) -> None:
    """One log of three GPUs, and of each a clock that was not held; one text comes twice."""
    texts = [f"a1.txt, GPU {gpu}: ran at {1980 - gpu}.5 MHz" for gpu in (0, 1, 2, 2)]
    warn(*texts, "a1.txt: is cut off", "a2.txt: is cut off")
    assert capsys.readouterr().err.splitlines() == [
        "mlscale: warning: a1.txt, GPU 0: ran at 1980.5 MHz",
        "mlscale: warning: a1.txt: is cut off",
        "mlscale: warning: a2.txt: is cut off",
    ]
    shown.tell_repeated()
    [line] = capsys.readouterr().err.splitlines()
    assert line == (
        "mlscale: warning: 3 like that: a1.txt, GPU 0 to 2: ran at 1978.5 to 1980.5 MHz"
    )


def test_what_was_said_once_is_not_told_again(
    shown: ShownWarnings, capsys: pytest.CaptureFixture[str]
) -> None:
    warn("a has 3 rows", "a has 3 rows", "b has 3 rows")
    shown.tell_repeated()
    assert capsys.readouterr().err.count("\n") == 2


def test_what_is_kept_is_shown_too(
    shown: ShownWarnings, capsys: pytest.CaptureFixture[str]
) -> None:
    with kept_warnings() as told:
        warn("a has 3 rows", "a has 3 rows", "GPU 0: idle", "GPU 1: idle", "GPU 2: idle")
    warn("b has 3 rows")
    assert told == ["a has 3 rows", "GPU 0: idle (2 more like that)"]
    shown.tell_repeated()
    assert capsys.readouterr().err.splitlines() == [
        f"mlscale: warning: {text}"
        for text in ("a has 3 rows", "GPU 0: idle", "b has 3 rows", "3 like that: GPU 0 to 2: idle")
    ]
