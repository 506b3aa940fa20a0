"""Clocks are set at what is offered, and given back whatever happens."""

import errno
import json
import os
from pathlib import Path

import pytest
from replayed import SUPPORTED, Faults, ReplayGpu

from mlscale.collect.clocks import ClockKeeper, Clocks, settings, state_folder
from mlscale.collect.device import ClockError, GpuError
from mlscale.errors import DataWarning, InputError

LOCKED = Clocks(1000, 1200, None, None)


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "mlscale"


def marker(state: Path) -> Path:
    return state / "clocks-GPU-made-0001.json"


def keeper(gpu: ReplayGpu) -> ClockKeeper:
    return ClockKeeper(gpu.sensors, gpu.info.uuid)


class TestSettings:
    def test_none_are_asked_for(self) -> None:
        assert settings((), (), {}) == (Clocks(),)

    def test_nearest_that_is_offered_with_that_memory_clock(self) -> None:
        """At 1500 MHz memory the board offers engine clocks to 1200 MHz only."""
        found = settings((700, 1900), (1400, 3100), SUPPORTED)
        assert [(c.engine_requested, c.memory_requested, *c.locked) for c in found] == [
            (700, 1400, 800, 1500),
            (1900, 1400, 1200, 1500),
            (700, 3100, 800, 3000),
            (1900, 3100, 2000, 3000),
        ]

    def test_two_that_become_one_are_measured_once(self) -> None:
        assert [c.locked for c in settings((790, 810), (), SUPPORTED)] == [(800, None)]

    def test_a_board_that_lists_none(self) -> None:
        with pytest.raises(ClockError, match="lists no clocks that could be set; leave out"):
            settings((800,), (), {})


class TestKeeper:
    def test_restores_at_the_end(self, state: Path) -> None:
        gpu = ReplayGpu()
        with keeper(gpu) as held:
            held.set(LOCKED)
            held.set(LOCKED)
            assert gpu.sensors.locked == [(1200, None)]
            assert json.loads(marker(state).read_text())["locked"] == [1200, None]
        assert gpu.sensors.locked == [(1200, None), "reset"]
        assert not marker(state).exists()

    def test_restores_on_an_error(self, state: Path) -> None:
        gpu = ReplayGpu()

        def fail() -> None:
            with keeper(gpu) as held:
                held.set(LOCKED)
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail()
        assert gpu.sensors.locked[-1] == "reset"
        assert not marker(state).exists()

    def test_touches_nothing_unless_asked(self, state: Path) -> None:
        gpu = ReplayGpu()
        with keeper(gpu) as held:
            held.set(Clocks())
        assert gpu.sensors.locked == []
        assert not state.exists()

    def test_resets_what_a_killed_run_left(self, state: Path) -> None:
        state.mkdir(parents=True)
        marker(state).write_text('{"pid": 1, "locked": [1200, null]}\n')
        gpu = ReplayGpu()
        assert keeper(gpu).recover()
        assert gpu.sensors.locked == ["reset"]
        assert not marker(state).exists()
        assert not keeper(gpu).recover()

    def test_another_run_holds_them(self) -> None:
        gpu = ReplayGpu()
        with keeper(gpu) as held:
            held.set(LOCKED)
            with pytest.raises(InputError, match="another mlscale collect sets the clocks"):
                keeper(gpu).recover()
            assert gpu.sensors.locked == [(1200, None)]

    def test_without_the_right_to_reset_the_marker_stays(self, state: Path) -> None:
        state.mkdir(parents=True)
        marker(state).write_text("{}")
        with pytest.raises(ClockError, match="no right"):
            keeper(ReplayGpu(Faults(no_right=True))).recover()
        assert marker(state).exists()

    def test_what_ended_a_run_is_told_though_the_clocks_cannot_be_reset(self, state: Path) -> None:
        gpu = ReplayGpu()

        def fail() -> None:
            with keeper(gpu) as held:
                held.set(LOCKED)
                gpu.faults.no_right = True
                raise GpuError("the GPU was lost")

        with (
            pytest.warns(DataWarning, match="could not be reset .* nvidia-smi --reset-gpu-clocks"),
            pytest.raises(GpuError, match="the GPU was lost"),
        ):
            fail()
        assert marker(state).exists()  # so that the next run tries again

    def test_without_the_right_to_set_them_nothing_is_left_behind(self, state: Path) -> None:
        with pytest.raises(ClockError, match="no right"):
            keeper(ReplayGpu(Faults(no_right=True))).set(LOCKED)
        assert not marker(state).exists()

    def test_without_room_for_the_marker_no_clock_is_locked(
        self, state: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A disk that is full at the first setting, and one that is at the second."""
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        def fail(*_: object, **_options: object) -> None:
            raise full

        gpu = ReplayGpu()
        with keeper(gpu) as held:
            held.set(LOCKED)
            monkeypatch.setattr("os.fsync", fail)
            with pytest.raises(InputError, match=r"json: cannot be written \(No space left"):
                held.set(Clocks(800, 800))
        assert gpu.sensors.locked == [(1200, None), "reset"]
        assert not marker(state).exists()
        monkeypatch.setattr(Path, "mkdir", fail)
        untouched = ReplayGpu()
        with pytest.raises(InputError, match="cannot be written"), keeper(untouched) as held:
            held.set(LOCKED)
        assert untouched.sensors.locked == []

    def test_a_marker_of_another_user_is_tried(self, state: Path) -> None:
        """One of root's may be read only; without the right to reset, the marker stays."""
        state.mkdir(parents=True)
        marker(state).write_text("{}")
        marker(state).chmod(0o444)
        with pytest.raises(ClockError, match="no right"):
            keeper(ReplayGpu(Faults(no_right=True))).recover()
        assert marker(state).exists()

    def test_a_refused_clock_is_reset_all_the_same(self, state: Path) -> None:
        """A board may have taken the memory clock and refused the engine's."""
        gpu = ReplayGpu(Faults(refuse_clocks=True))
        with pytest.raises(ClockError, match="refused"), keeper(gpu) as held:
            held.set(LOCKED)
        assert gpu.sensors.locked == ["reset"]
        assert not marker(state).exists()


def test_state_folder_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert state_folder() == Path("/home/someone/.local/state/mlscale")
