"""Long work in units: what is kept is not done again, and is not mixed with other work."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import DataWarning, Measurements
from mlscale.errors import warn
from mlscale.notes import Note
from mlscale.progress import PROGRESS, Progress
from mlscale.studies.errors import ErrorStudy
from mlscale.studies.parallel import sweep

CALLS = [(n, 10 * n) for n in range(6)]


def add(left: int, right: int) -> dict[str, int]:
    return {"sum": left + right}


EXPECTED = {n: {"sum": 11 * n} for n in range(6)}


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_call_is_made_once(jobs: int) -> None:
    results = list(sweep(add, CALLS, jobs))
    assert len(results) == len(CALLS)
    assert dict(results) == EXPECTED


def warn_of(number: int) -> None:
    warn("T09", f"row {number} is odd")


@pytest.mark.parametrize("jobs", [1, 2])
def test_warnings_of_other_processes_are_this_ones(jobs: int) -> None:
    with pytest.warns(DataWarning) as caught:
        list(sweep(warn_of, [(0,), (1,)], jobs))
    notes = {getattr(warning.message, "note", None) for warning in caught}
    assert notes == {Note("T09", f"row {number} is odd", "warning") for number in (0, 1)}


def is_deaf(_: int) -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_processes_leave_an_interrupt_to_this_one() -> None:
    """A terminal sends Ctrl-C to all of them; each would print its own traceback."""
    assert dict(sweep(is_deaf, [(n,) for n in range(4)], jobs=2)) == dict.fromkeys(range(4), True)
    assert not is_deaf(0)


# A study of two endless parts, each of which says which process does it.
ENDLESS = """
import os, sys, time
from mlscale.studies.parallel import sweep

def work(_):
    os.write(2, f"{os.getpid()}\\n".encode())
    time.sleep(600)

list(sweep(work, [(0,), (1,)], jobs=2))
"""


def test_workers_end_with_the_process_that_started_them() -> None:
    """They hold its output too: at the end of it the last one is gone."""
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stderr=subprocess.PIPE, start_new_session=True
    ) as study:
        assert study.stderr is not None
        workers = {int(study.stderr.readline()) for _ in range(2)}
        assert study.pid not in workers
        study.kill()
        killed = time.monotonic()
        assert b"Traceback" not in study.stderr.read()
        assert time.monotonic() - killed < 100  # the work would take 600 s


@settings(max_examples=30)
@given(st.sets(st.integers(0, 5)), st.data())
def test_what_is_kept_is_not_done_again(
    tmp_path_factory: pytest.TempPathFactory, kept: set[int], data: st.DataObject
) -> None:
    """Whatever was done before, in whatever order: the rest is done, the whole is the same."""
    folder = tmp_path_factory.mktemp("study")
    with Progress(folder, "mark", resume=False) as progress:
        for number in data.draw(st.permutations(sorted(kept))):
            progress.add(number, EXPECTED[number])
    done = []

    def work(left: int, right: int) -> dict[str, int]:
        done.append(left)
        return add(left, right)

    with Progress(folder, "mark", resume=True) as progress:
        assert dict(sweep(work, CALLS, progress=progress)) == EXPECTED
    assert sorted(done) == sorted(set(range(6)) - kept)


class TestInterrupted:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A folder whose study was interrupted when three of six units were done."""

        def stop_at_3(left: int, right: int) -> dict[str, int]:
            if left == 3:
                raise KeyboardInterrupt
            return add(left, right)

        with Progress(tmp_path, "mark", resume=False) as kept, pytest.raises(KeyboardInterrupt):
            list(sweep(stop_at_3, CALLS, progress=kept))
        return tmp_path

    @pytest.mark.parametrize("damage", ["cut", ('"unit"', '"knit"'), ("{", "["), ("}", "")])
    def test_a_damaged_last_line_is_done_again(self, folder: Path, damage: Any) -> None:
        """It was cut off, or one character in it is another."""
        *whole, last = (folder / PROGRESS).read_text().splitlines()
        last = last[:-5] if damage == "cut" else last.replace(*damage, 1) + "\n"
        (folder / PROGRESS).write_text("\n".join([*whole, last]))
        with Progress(folder, "mark", resume=True) as kept:
            assert sorted(kept.done) == [0, 1]
            assert dict(sweep(add, CALLS, progress=kept)) == EXPECTED
        with Progress(folder, "mark", resume=True) as kept:
            assert kept.done == EXPECTED  # what was added after the cut is whole

    @pytest.mark.parametrize(
        ("mark", "resume", "problem"),
        [
            ("mark", False, "holds an unfinished study; continue with resume=True, or name"),
            ("other", True, "was made of other data, with other settings or by another version"),
        ],
    )
    def test_is_not_mixed_with_another(
        self, folder: Path, mark: str, resume: bool, problem: str
    ) -> None:
        before = (folder / PROGRESS).read_bytes()
        with refused(problem):
            Progress(folder, mark, resume)
        assert (folder / PROGRESS).read_bytes() == before


class TestFingerprint:
    """A study is taken up only with the same data and options."""

    DATA = made.measurements(per_group=1)

    def mark(self, data: Measurements, name: str = "t", **options: Any) -> str:
        return ErrorStudy(tables={name: data}, predictors=["wu"], **options).fingerprint()

    def test_is_the_same_for_the_same(self) -> None:
        assert self.mark(made.measurements(per_group=1)) == self.mark(self.DATA)

    @pytest.mark.parametrize("array", ["time_samples", "power_samples", "counter_samples"])
    def test_knows_every_number(self, array: str) -> None:
        changed = getattr(self.DATA, array).copy()
        changed.flat[-1] = np.nextafter(changed.flat[-1], np.inf)
        assert self.mark(replace(self.DATA, **{array: changed})) != self.mark(self.DATA)

    @pytest.mark.parametrize(
        "change",
        [
            {"device": "other"},
            {"grid": replace(made.GRID, memory_mhz=(400.0, 700.0, 1001.0))},
            {"kernels": ("a", "b", "c", "d")},
            {"applications": ("a", "b", "c", "d")},
            {"aggregate": "min"},
            {"metadata": {"origin": "measured"}},
            {"power_samples": None},
        ],
    )
    def test_knows_every_name(self, change: dict[str, Any]) -> None:
        assert self.mark(replace(self.DATA, **change)) != self.mark(self.DATA)

    def test_knows_what_was_asked_and_the_tables_name(self) -> None:
        asked: list[dict[str, Any]] = [{}, {"name": "other"}, {"seeds": 2}, {"clusters": 2}]
        assert len({self.mark(self.DATA, **options) for options in asked}) == len(asked)
