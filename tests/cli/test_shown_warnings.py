"""Warnings of a command: each once, with a count. Expected lines are by hand."""

import warnings

import pytest

from mlscale import DataWarning
from mlscale.cli.text import ShownWarnings, kept_warnings

OF_GPUS = [f"log.txt, GPU {gpu}: ran at {1980 - gpu}.5 MHz" for gpu in (0, 1)]


def test_each_is_shown_and_kept_once_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = ShownWarnings()
    monkeypatch.setattr(warnings, "showwarning", shown.show)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        with kept_warnings() as told:
            for text in (*OF_GPUS, OF_GPUS[0], OF_GPUS[0]):
                warnings.warn(text, DataWarning, stacklevel=1)
        warnings.warn("b has 3 rows", DataWarning, stacklevel=1)
    shown.tell_counts()
    assert told == OF_GPUS
    assert capsys.readouterr().err.splitlines() == [
        f"mlscale: warning: {text}" for text in (*OF_GPUS, "b has 3 rows", f"3 times: {OF_GPUS[0]}")
    ]
