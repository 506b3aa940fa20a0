"""`mlscale.tune` on a made GPU in simulated time (`synthetic/tuned_job.py`).

Expected: of the clock that is found the made curve, whose best clock is known; of times and powers
the closed form; else regression only.
"""

import faulthandler
import logging
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import numpy as np
import pytest
import tune
from command import Line, traced
from synthetic import nvml
from synthetic.made_gpu import put_in
from synthetic.tuned_job import CALM, MadeBoard, MadeJob, World, made_curve

import mlscale
from mlscale import InputError, tuning
from mlscale.sensors import recorder
from mlscale.sensors import steps as sensors_steps
from mlscale.sensors.boards import ENERGY, MEAN_POWER, POWER
from mlscale.sensors.clocks import given_back
from mlscale.sensors.steps import mean_power_w, step_time
from mlscale.tuning import Tuner, TuningGoal

CURVE = made_curve()
TRACED = {tuning.__file__, sensors_steps.__file__}


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    tuning._warn_once.cache_clear()


def job(step_s: float = 0.3, world: World = CALM, seed: int = 0) -> MadeJob:
    return MadeJob(MadeBoard(CURVE), step_s, world, seed)


def run(made: MadeJob, until_s: float, **goal: Any) -> tuple[Tuner, int]:
    """The tuner of a job that ran for so long, and the clock that it held at the end."""
    tuner = Tuner(made, TuningGoal(**goal), made)
    with tuner:
        for _ in tuner:
            if made.gpu_s >= until_s or tuner.state == "off":
                return tuner, tuner.engine_mhz
    raise AssertionError


class TestTheClockThatIsFound:
    @pytest.mark.parametrize("step_s", [0.05, 0.3, 2.0])
    @pytest.mark.parametrize("percent", [2, 5, 10])
    def test_is_near_the_best_within_the_limit(self, step_s: float, percent: float) -> None:
        """The best is the curve's; clocks are 15 MHz apart, which is 0.6 % of the time."""
        tuner, mhz = run(job(step_s), 600, max_slowdown_percent=percent)
        slowdown = 100 * (CURVE.time(mhz) - 1)
        assert tuner.state == "set"
        assert percent - 1.2 < slowdown < percent + 0.3

    def test_without_a_limit_takes_about_least_energy(self) -> None:
        _, mhz = run(job(), 300, max_slowdown_percent=None)
        assert CURVE.energy(mhz) < CURVE.energy(CURVE.best_mhz(math.inf)) + 0.02

    def test_is_higher_where_it_shall_surely_keep_the_limit(self) -> None:
        cautious, expected = (run(job(), 300, is_cautious=one)[1] for one in (True, False))
        assert cautious > expected

    @pytest.mark.parametrize("minimize", ["edp", "ed2p"])
    def test_is_higher_where_time_counts_more(self, minimize: str) -> None:
        _, mhz = run(job(), 300, max_slowdown_percent=None, minimize=minimize)
        assert (mhz or 1410) > run(job(), 300, max_slowdown_percent=None)[1]

    @pytest.mark.parametrize("seed", range(3))
    def test_keeps_the_limit_in_a_world_as_it_is(self, seed: int) -> None:
        tuner, mhz = run(job(0.3, World(), seed), 1500)
        assert tuner.state == "set"
        assert CURVE.time(mhz) < 1.06

    @pytest.mark.parametrize("world", [World(ahead=10), World(waits_every=10, noise=0.01)])
    def test_is_found_by_a_loop_ahead_of_the_gpu(self, world: World) -> None:
        tuner, mhz = run(job(0.3, world), 1500)
        assert tuner.state == "set"
        assert 1.02 < CURVE.time(mhz) < 1.06

    def test_is_sought_anew_where_steps_become_longer_for_good(self) -> None:
        made = job(0.3, World(0.005, 0, 0, 0, 0, 0, grows=(1000, 1.5)))
        tuner, mhz = run(made, 2400, recheck_s=600)
        assert tuner.state == "set"
        assert tuner.readings[0].time_s == pytest.approx(0.45, rel=0.01)
        assert 1.03 < CURVE.time(mhz) < 1.055

    @pytest.mark.parametrize("window", range(3))
    def test_is_found_beside_another_job_for_a_minute(self, window: int) -> None:
        """Within the first free window, the slow one, or the second free one: steps of 2 s."""
        made = job(2.0, replace(CALM, other=0.5))
        made.other_s = 30.0 + 28 * window
        tuner, mhz = run(made, 900)
        assert tuner.state == "set"
        assert 1.02 < CURVE.time(mhz) < 1.053

    def test_is_the_free_one_where_steps_follow_the_clock(self) -> None:
        """All of the time follows the clock, and a limit of 0.2 % leaves none."""
        tuner, mhz = run(MadeJob(MadeBoard(made_curve(1.0)), 0.3), 400, max_slowdown_percent=0.2)
        assert (tuner.state, mhz) == ("stayed", 0)

    def test_is_in_a_table_that_advise_reads(self, tmp_path: Path) -> None:
        tuner, _ = run(job(), 300, log=tmp_path / "steps.csv")
        again = mlscale.advise(tmp_path / "steps.csv", max_slowdown=5)
        assert isinstance(tuner.answer, mlscale.Answer)
        assert again.subject is not None
        clocks = {point.config.engine_mhz for point in again.subject.profiles.points}
        assert clocks == {one.engine_mhz for one in tuner.readings[1:]}
        assert again.best.engine_mhz <= again.subject.profiles.base.engine_mhz == 1410


class TestNothingHarmsTheJob:
    def off(self, made: MadeJob, caplog: pytest.LogCaptureFixture, said: str) -> None:
        """Every step runs, one line says why, and the clock is free."""
        tuner = Tuner(range(3000), TuningGoal(), made)
        steps = 0
        for _ in tuner:
            made.run_step()
            steps += 1
        told = [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING]
        assert (steps, tuner.state, made.board.locked_mhz) == (3000, "off", 0)
        assert len(told) == 1
        assert said in told[0]

    def test_each_epoch_with_a_tuner_of_its_own(self, caplog: pytest.LogCaptureFixture) -> None:
        made = job()
        made.board.may_set = False
        self.off(made, caplog, "no permission to set its clocks")
        self.off(made, caplog, "no permission to set its clocks")

    def test_without_permission(self, caplog: pytest.LogCaptureFixture) -> None:
        made = job()
        made.board.may_set = False
        self.off(made, caplog, "no permission to set its clocks")

    def steps_of(self, tuner: Tuner, caplog: pytest.LogCaptureFixture) -> str:
        """The one line that tells why nothing is set; every step runs."""
        assert [*tuner] == [0, 1, 2, 3, 4]
        assert tuner.state == "off"
        [told] = caplog.messages
        return told

    def test_without_a_gpu(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", None)
        monkeypatch.setitem(sys.modules, "amdsmi", None)
        assert "needs pynvml" in self.steps_of(mlscale.tune(range(5)), caplog)

    @pytest.mark.parametrize(
        ("special", "said"),
        [({"mig": 1}, "is divided (MIG)"), ({"no_permission": 1}, "no permission to set")],
    )
    def test_on_a_gpu_that_is_not_set(
        self,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
        special: dict[str, int],
        said: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        gpu = put_in(tmp_path, monkeypatch)
        gpu.special(**special)
        assert said in self.steps_of(mlscale.tune(range(5)), caplog)
        assert gpu.locked_mhz is None

    def test_beside_another_tuner(self, caplog: pytest.LogCaptureFixture) -> None:
        made = job()
        with Tuner(None, TuningGoal(), made) as first:
            told = self.steps_of(Tuner(range(5), TuningGoal(), made), caplog)
            assert first.state == "warming"
        assert "another mlscale holds its clocks" in told

    @pytest.mark.parametrize("word", ["", "0", "1"])
    def test_the_gpu_is_that_of_the_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
    ) -> None:
        """Where torch computes, unless it is named."""
        monkeypatch.chdir(tmp_path)
        put_in(tmp_path, monkeypatch).special(gpus=2)
        cuda = SimpleNamespace(is_initialized=lambda: True, current_device=lambda: 1)
        cuda.get_device_properties = lambda number: SimpleNamespace(uuid=f"made-{number}")
        monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
        [board] = sensors_steps.Machine(word or None).boards(is_rank=False)
        assert board.index == (word or "1")

    def test_waits_for_the_gpu_where_that_is_asked_for(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After each step of a window, not later."""
        made, waited = job(world=replace(CALM, ahead=30)), list[str]()

        def synchronize() -> None:
            waited.append(tuner.state)
            made.wait(made.queued)

        cuda = SimpleNamespace(is_initialized=lambda: True, synchronize=synchronize)
        distributed = SimpleNamespace(is_available=lambda: False)
        torch = SimpleNamespace(cuda=cuda, distributed=distributed)
        monkeypatch.setitem(sys.modules, "torch", torch)
        with Tuner(None, TuningGoal(), made) as tuner:
            for _ in range(600):
                made.run_step()
                tuner.step(sync=True)
            assert tuner.state == "set"
            assert 1.03 < CURVE.time(tuner.engine_mhz) < 1.053
        assert set(waited) == {"measuring", "checking"}
        assert len(waited) < 80

    def test_several_gpus_are_set_alike(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made, second = job(), MadeBoard(CURVE)
        second.uuid = "second"
        monkeypatch.setattr(made, "boards", lambda _: [made.board, second])
        with Tuner(None, TuningGoal(), made) as tuner:
            for _ in range(300):
                made.run_step()
                tuner.step()
                assert second.locked_mhz == made.board.locked_mhz
            assert second.locked_mhz == tuner.engine_mhz > 0
        assert second.locked_mhz == 0

    @pytest.mark.parametrize("holds", range(2))
    def test_a_gpu_that_is_lost(self, holds: int, caplog: pytest.LogCaptureFixture) -> None:
        made = job()
        made.board.breaks_after = holds
        self.off(made, caplog, "GPU is lost")

    def test_a_lock_that_is_not_kept(self, caplog: pytest.LogCaptureFixture) -> None:
        self.off(job(0.3, World(keeps_lock=False)), caplog, "the GPU runs at 1410")

    def test_advice_that_fails(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(tuning, "advise", lambda *_, **__: 1 / 0)
        self.off(job(), caplog, "division by zero")

    def test_steps_whose_time_is_not_clear(self, caplog: pytest.LogCaptureFixture) -> None:
        """Each free window is slower than the one before."""
        self.off(job(0.3, World(0.001, 0, 0, 0, 20.0, 0, 0, 0, 0)), caplog, "vary too much")

    def test_the_clock_is_put_back_at_every_end(self) -> None:
        made = job()
        with suppress(KeyError):
            for _ in Tuner(made, TuningGoal(), made):
                if made.board.locked_mhz:
                    raise KeyError
        assert made.board.locked_mhz == 0
        with Tuner(None, TuningGoal(), made) as tuner:
            for _ in range(70):
                made.run_step()
                tuner.step()
            assert made.board.locked_mhz
        assert made.board.locked_mhz == 0
        tuner.step()
        assert made.board.locked_mhz == 0

    def test_a_further_epoch_begins_at_the_clock_that_was_found(self) -> None:
        made = job()
        tuner = Tuner(range(400), TuningGoal(), made)
        for _ in tuner:
            made.run_step()
        found = tuner.readings[-1].engine_mhz
        assert made.board.locked_mhz == 0
        for place, _ in enumerate(tuner):
            made.run_step()
            assert place < 2 or made.board.locked_mhz == found

    @pytest.mark.parametrize(("steps", "state"), [(40, "measuring"), (90, "checking")])
    def test_a_search_that_an_epoch_ended_begins_anew(
        self, steps: int, state: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        made, epoch = job(), [0] * steps
        tuner = Tuner(epoch, TuningGoal(), made)
        for _ in range(2):
            for _ in tuner:
                made.run_step()
            assert (tuner.state, made.board.locked_mhz) == (state, 0)
        assert caplog.text.count("the loop ended before a clock was found") == 1
        epoch += [0] * 300
        for _ in tuner:
            made.run_step()
        assert (tuner.state, made.board.locked_mhz) == ("set", 0)

    def test_short_epochs_within_one_block(self) -> None:
        """As the warning advises."""
        made = job()
        with Tuner(range(40), TuningGoal(), made) as tuner:
            for _ in range(8):
                for _ in tuner:
                    made.run_step()
            assert tuner.state == "set"
        assert made.board.locked_mhz == 0

    def test_steps_without_a_block_are_told_once(self, caplog: pytest.LogCaptureFixture) -> None:
        made = job()
        tuner = Tuner(None, TuningGoal(), made)
        for _ in range(3):
            tuner.step()
        assert caplog.text.count("step() does nothing yet") == 1

    def test_an_interrupt_that_the_job_catches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In the middle of setting a clock, and as it opens: all is as before, and stays so."""
        made = job()
        with Tuner(None, TuningGoal(), made) as tuner:
            with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
                patch.setattr(made.board, "_write", lambda _: signal.raise_signal(signal.SIGINT))
                for _ in range(100):
                    made.run_step()
                    tuner.step()
            tuner.step()
            assert (tuner.state, made.board.locked_mhz) == ("off", 0)
        monkeypatch.setattr(made, "watch", lambda _: signal.raise_signal(signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):
            Tuner(None, TuningGoal(), made).__enter__()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

    def test_steps_from_several_threads(self) -> None:
        """One after the other: none sets a clock after the end."""
        made = job()
        tuner = Tuner(None, TuningGoal(), made)

        def loop() -> None:
            for _ in range(100):
                with running:
                    made.run_step()
                tuner.step()
            tuner.close()

        running = threading.Lock()
        with tuner:
            threads = [threading.Thread(target=loop) for _ in range(4)]
            for one in threads:
                one.start()
            for one in threads:
                one.join()
        assert made.board.locked_mhz == 0
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL

    def test_handlers_that_python_does_not_know_are_kept(self, tmp_path: Path) -> None:
        """faulthandler's, which shows where the process is, and lets it go on."""
        with (tmp_path / "shown").open("w") as shown:
            faulthandler.register(signal.SIGUSR1, file=shown)
            try:
                with Tuner(None, TuningGoal(), job()):
                    os.kill(os.getpid(), signal.SIGUSR1)
            finally:
                faulthandler.unregister(signal.SIGUSR1)
        assert "most recent call first" in (tmp_path / "shown").read_text()

    def test_warnings_that_are_errors(self, caplog: pytest.LogCaptureFixture) -> None:
        """As by python -W error; an earlier process was killed, which is a note."""
        made = job()
        with warnings.catch_warnings(action="ignore"):
            if not (killed := os.fork()):
                with Tuner(None, TuningGoal(), made):
                    os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(killed, 0)
        drawn = np.random.get_state()[1].copy()  # noqa: NPY002
        with warnings.catch_warnings(action="error"), caplog.at_level(logging.INFO):
            tuner, _ = run(made, 300)
        assert tuner.state == "set"
        assert "an earlier run was killed" in caplog.text
        assert (np.random.get_state()[1] == drawn).all()  # noqa: NPY002

    def test_a_logger_that_fails(self, monkeypatch: pytest.MonkeyPatch) -> None:
        made = job()
        made.board.breaks_after = 1
        monkeypatch.setattr(logging.getLogger("mlscale.tuning"), "warning", lambda *_: 1 / 0)
        with suppress(ZeroDivisionError), Tuner(None, TuningGoal(), made) as tuner:
            for _ in range(200):
                made.run_step()
                tuner.step()
        assert made.board.locked_mhz == 0

    def test_workers_that_were_forked_hold_and_put_back_nothing(self) -> None:
        """As a loader's: one that is terminated, and one that lives on into the next epoch."""
        made = job()
        tuner = Tuner(range(100), TuningGoal(), made)
        reading, writing = os.pipe()
        with tuner, warnings.catch_warnings(action="ignore"):
            made.board.locked_mhz = 840
            if not (ended := os.fork()):
                os.kill(os.getpid(), signal.SIGTERM)
            assert os.waitpid(ended, 0)[1] == signal.SIGTERM
            assert made.board.locked_mhz == 840
            if not (living := os.fork()):
                os.close(writing)
                os.read(reading, 1)
                os._exit(0)
        assert made.board.locked_mhz == 0
        with tuner:
            assert tuner.state == "warming"
        os.close(writing)
        os.waitpid(living, 0)

    def test_what_it_takes_is_told_before(self, caplog: pytest.LogCaptureFixture) -> None:
        """At 20 s a step: 5.5 windows of 13 steps are 24 minutes."""
        run(job(20.0), 400)
        [told] = [one for one in caplog.records if "steps take" in one.getMessage()]
        assert "steps take 20 s; to find a clock takes about 23.9 min" in told.getMessage()

    def test_a_step_costs_little(self) -> None:
        """Less than 20 us of this process where nothing is measured, of the best of five."""
        made, took_s = job(), list[float]()
        with Tuner(None, TuningGoal(), made) as tuner:
            for _ in range(500):
                made.run_step()
                tuner.step()
            assert tuner.state == "set"
            for _ in range(5):
                begun_s = time.process_time()
                for _ in range(1000):
                    tuner.step()
                took_s.append((time.process_time() - begun_s) / 1000)
        print(f"step() takes {1e6 * min(took_s):.1f} us")
        assert min(took_s) < 20e-6

    @pytest.mark.parametrize(
        "wrong", [{"max_slowdown": -1}, {"minimize": "time"}, {"recheck": 0}, {"max_slowdown": "x"}]
    )
    def test_what_cannot_be_asked_is_told_at_once(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            mlscale.tune([], **wrong)

    def test_what_has_a_length_keeps_it(self) -> None:
        assert len(mlscale.tune([1, 2, 3])) == 3
        assert mlscale.tune()
        with pytest.raises(InputError, match="there are no steps"):
            next(iter(mlscale.tune()))


class InTurn(recorder.Recorder):
    """Samples when it is told to, in place of its thread."""

    live: ClassVar[list[Self]] = []

    def __enter__(self) -> Self:
        self.live.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.live.remove(self)


def test_by_the_library_of_nvidia(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the made NVML: 60 W and 250 W more by the square of the clock.

    A step takes 1 s at 1395 MHz, half of which follows the clock; a sample is 0.1 s.
    """
    monkeypatch.chdir(tmp_path)
    gpu = put_in(tmp_path, monkeypatch)
    gpu.special(serves=True)
    monkeypatch.setattr(sensors_steps, "time", recorder.time)
    monkeypatch.setattr(sensors_steps, "Recorder", InTurn)
    held, done_s = set(), 0.0
    with mlscale.tune(max_slowdown=10) as tuner:
        for _ in range(400):
            held.add(gpu.locked_mhz)
            done_s += (1 + 1395 / (gpu.locked_mhz or 1395)) / 2
            while nvml.reads() / 10 < done_s:
                InTurn.live[0]._sample()
            tuner.step()
            if tuner.state in ("set", "stayed", "off"):
                break
        assert tuner.state == "set"
        assert gpu.marker.exists()
        assert not InTurn.live, "nothing is sampled any more"
        assert gpu.locked_mhz == tuner.engine_mhz
    assert {None, 840} < held
    assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False)
    free, *others = tuner.readings
    assert (free.engine_mhz, others[0].engine_mhz) == (1395, 840)
    for one in tuner.readings:
        assert one.power_w == pytest.approx(60 + 250 * (one.engine_mhz / 1395) ** 2, rel=0.02)
        assert one.time_s == pytest.approx((1 + 1395 / one.engine_mhz) / 2, rel=0.03)


class TestKilled:
    """In a process of its own, at each line that it runs of the tuner while it may set clocks."""

    def tuned(self, folder: Path, at: Callable[[Line], object]) -> None:
        made = MadeJob(MadeBoard(CURVE, folder=folder), 0.3)
        with warnings.catch_warnings(action="ignore"):
            child = os.fork()
        if not child:
            with suppress(BaseException):
                sys.settrace(traced(TRACED, at))
                for place, _ in enumerate(Tuner(made, TuningGoal(recheck_s=60), made)):
                    if place > 500:
                        break
            os._exit(0)
        os.waitpid(child, 0)

    def killed(self, folder: Path, lines: list[Line], number: int) -> int:
        """At how many of these lines a clock was held."""
        held = 0
        for line in lines:

            def kill(now: Line, line: Line = line) -> None:
                if now == line and (folder / "locked").exists():
                    os.kill(os.getpid(), number)

            (folder / "locked").unlink(missing_ok=True)
            self.tuned(folder, kill)
            left = (folder / "locked").read_text()
            held += bool(left)
            if number != signal.SIGKILL:
                assert left == "", line
            board = MadeBoard(CURVE, folder=folder)
            with warnings.catch_warnings(action="ignore"), given_back(board, sets_board=False):
                assert (folder / "locked").read_text() == "", line
        return held

    def lines(self, folder: Path) -> list[Line]:
        path = folder / "lines"
        with path.open("w", buffering=1) as file:
            self.tuned(folder, lambda line: file.write(f"{line[0]} {line[1]}\n"))
        found = dict.fromkeys(path.read_text().splitlines())
        return [(name, int(number)) for name, number in (line.split() for line in found)]

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_at_some_lines(self, tmp_path: Path, number: int) -> None:
        every = self.lines(tmp_path)
        assert len(every) > 150
        held = self.killed(tmp_path, every[::40], number)
        assert held > 0 or number == signal.SIGTERM

    @pytest.mark.slow
    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1])
    def test_at_every_line(self, tmp_path: Path, number: int) -> None:
        every = self.lines(tmp_path)
        print(f"{len(every)} lines, held at {self.killed(tmp_path, every, number)}")


class TestWhatStepsSay:
    def test_long_steps_are_left_out(self) -> None:
        """Twelve steps of 1 s and an evaluation of 30 s."""
        took = [1.0] * 6 + [30.0] + [1.0] * 6
        time_s, error_s, left_out = step_time([0.0, *np.cumsum(took)])
        assert (time_s, left_out.tolist()) == (1.0, [[6.0, 36.0]])
        assert error_s < 1e-3

    def test_a_loop_that_waits_now_and_then_takes_its_mean(self) -> None:
        """Every tenth step takes 9.1 s, the others 0.1: 1 s in the mean."""
        took = ([0.1] * 9 + [9.1]) * 5
        assert step_time([0.0, *np.cumsum(took)])[0] == pytest.approx(1.0)

    def test_the_standard_error_is_that_of_the_mean(self) -> None:
        took = np.random.default_rng(0).normal(1.0, 0.03, 400)
        _, error_s, _ = step_time([0.0, *np.cumsum(took)])
        assert error_s == pytest.approx(0.03 / 20, rel=0.1)

    @pytest.mark.parametrize("name", [ENERGY, POWER, MEAN_POWER])
    def test_power_is_without_what_is_left_out(self, name: str) -> None:
        """At 300 W, but for 2 s at 100 W, which are left out."""
        times = np.arange(0, 10.05, 0.1)
        watts = np.where((times > 4) & (times <= 6), 100.0, 300.0)
        joules = np.append(0, np.cumsum((watts[1:] + watts[:-1]) / 2) * 0.1)
        values = joules if name == ENERGY else watts
        rows = [(t, {name: v}) for t, v in zip(times.tolist(), values.tolist(), strict=True)]
        assert mean_power_w(rows, np.array([[3.9, 6.1]])) == pytest.approx(300, rel=0.01)

    def test_power_that_no_sensor_tells(self) -> None:
        with pytest.raises(InputError, match="no sensor shows its power"):
            mean_power_w([(0.0, {}), (1.0, {})], np.empty((0, 2)))


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_measured_runs_are_tuned_as_the_page_tells() -> None:
    """Bounds: of docs/tables/tune.csv, with room for every fifth run."""
    told = tune.judged(tune.tuned, tune.cases()[::5], (0.3,), 1, World(), 5.0)
    row = dict(zip(tune.HEADER, map(float, told), strict=True))
    assert row["regret"] < 2.5
    assert row["over by 1 %"] == row["off %"] == 0
