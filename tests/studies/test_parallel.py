"""Long work in units: what is kept is not done again, and is not mixed with other work."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib.externals.loky import get_reusable_executor
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import DataWarning, Measurements
from mlscale.errors import warn
from mlscale.progress import PROGRESS, Progress
from mlscale.studies.crossval import fingerprint, sweep

CALLS = [(n, 10 * n) for n in range(6)]


def add(left: int, right: int) -> dict[str, int]:
    return {"sum": left + right}


EXPECTED = {n: {"sum": 11 * n} for n in range(6)}


def stop_at(limit: int) -> Any:
    """Work like add's that is interrupted at that call."""

    def work(left: int, right: int) -> dict[str, int]:
        if left == limit:
            raise KeyboardInterrupt
        return add(left, right)

    return work


def take(results: Iterator[Any]) -> dict[int, Any]:
    return dict(results)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_call_is_made_once(jobs: int) -> None:
    results = list(sweep(add, CALLS, jobs))
    assert len(results) == len(CALLS)
    assert dict(results) == EXPECTED


def warn_of(number: int) -> None:
    warn(f"row {number} is odd")


@pytest.mark.parametrize("jobs", [1, 2])
def test_warnings_of_other_processes_are_this_ones(jobs: int) -> None:
    with pytest.warns(DataWarning) as caught:
        list(sweep(warn_of, [(0,), (1,)], jobs))
    assert {str(warning.message) for warning in caught} == {"row 0 is odd", "row 1 is odd"}


def test_what_fed_workers_has_ended_where_the_rest_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the interpreter may stop it while it frees a semaphore, and a leak is complained of.

    Made: a thread that ends only when it is waited for.
    """
    from joblib.externals.loky.backend.queues import Queue

    is_awaited, feed, join = threading.Event(), Queue._feed, threading.Thread.join

    def feed_until_awaited(*given: Any) -> None:
        feed(*given)
        is_awaited.wait()

    def join_noted(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread.name == "QueueFeederThread":
            is_awaited.set()
        join(thread, timeout)

    monkeypatch.setattr(Queue, "_feed", staticmethod(feed_until_awaited))
    monkeypatch.setattr(threading.Thread, "join", join_noted)
    get_reusable_executor().shutdown(wait=True)  # that of another test has its thread already
    running = sweep(add, CALLS, jobs=2)
    next(running)
    running.close()
    try:
        assert is_awaited.is_set()
        assert "QueueFeederThread" not in [thread.name for thread in threading.enumerate()]
    finally:
        is_awaited.set()


def is_deaf(_: int) -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_other_processes_leave_an_interrupt_to_this_one() -> None:
    """A terminal sends Ctrl-C to all of them; each would print its own traceback."""
    assert take(sweep(is_deaf, [(n,) for n in range(4)], jobs=2)) == dict.fromkeys(range(4), True)
    assert not is_deaf(0)


# A study of two endless parts, each of which says which process does it.
ENDLESS = """
import os, sys, time
from mlscale.studies.crossval import sweep

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
        assert take(sweep(work, CALLS, progress=progress)) == EXPECTED
    assert sorted(done) == sorted(set(range(6)) - kept)


class TestInterrupted:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """A folder whose study was interrupted when three of six units were done."""
        with Progress(tmp_path, "mark", resume=False) as kept, pytest.raises(KeyboardInterrupt):
            list(sweep(stop_at(3), CALLS, progress=kept))
        return tmp_path

    def test_leaves_a_valid_record(self, folder: Path) -> None:
        head, *units = map(json.loads, (folder / PROGRESS).read_text().splitlines())
        assert head == {"fingerprint": "mark"}
        assert {u["unit"]: u["result"] for u in units} == {n: EXPECTED[n] for n in range(3)}

    @pytest.mark.parametrize("cut", [1, 5, 20])
    def test_a_line_that_was_cut_off_is_done_again(self, folder: Path, cut: int) -> None:
        whole = (folder / PROGRESS).read_text()
        (folder / PROGRESS).write_text(whole[:-cut] if cut > 1 else whole[:-2])
        with Progress(folder, "mark", resume=True) as kept:
            assert sorted(kept.done) == [0, 1]
            assert take(sweep(add, CALLS, progress=kept)) == EXPECTED
        with Progress(folder, "mark", resume=True) as kept:
            assert kept.done == EXPECTED  # what was added after the cut is whole

    @pytest.mark.parametrize("damage", [('"unit"', '"knit"'), ("{", "["), ("}", "")])
    def test_a_damaged_line_is_done_again(self, folder: Path, damage: tuple[str, str]) -> None:
        """The record is as it was but for its last line, in which one character is another."""
        *whole, last = (folder / PROGRESS).read_text().splitlines()
        assert damage[0] in last
        text = "\n".join([*whole, last.replace(*damage, 1)]) + "\n"
        (folder / PROGRESS).write_text(text)
        with Progress(folder, "mark", resume=True) as kept:
            assert sorted(kept.done) == [0, 1]
            assert take(sweep(add, CALLS, progress=kept)) == EXPECTED

    def test_is_not_begun_anew_by_mistake(self, folder: Path) -> None:
        with refused("holds an unfinished study; go on with --resume, or name another folder"):
            Progress(folder, "mark", resume=False)

    def test_is_not_mixed_with_another(self, folder: Path) -> None:
        before = (folder / PROGRESS).read_bytes()
        with refused("was made of other data, with other settings or by another version"):
            Progress(folder, "other", resume=True)
        assert (folder / PROGRESS).read_bytes() == before

    def test_is_forgotten_when_all_is_written(self, folder: Path) -> None:
        with Progress(folder, "mark", resume=True) as kept:
            kept.remove()
        assert not Progress.is_in(folder)


class TestFingerprint:
    DATA = made.measurements(per_group=1)

    def mark(self, data: Measurements, name: str = "t", asked: Any = None) -> str:
        return fingerprint({name: data}, asked or {"units": ["a", "b"]})

    def test_is_the_same_for_the_same(self) -> None:
        again = made.measurements(per_group=1)
        assert self.mark(again) == self.mark(self.DATA)

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
        marks = {
            self.mark(self.DATA),
            self.mark(self.DATA, asked={"units": ["a"]}),
            self.mark(self.DATA, name="other"),
        }
        assert len(marks) == 3
