"""Clocks and power limits are given back. pynvml is a stand-in that writes down what is asked."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlscale.collect import clocks
from mlscale.collect.device import DeviceInfo
from mlscale.errors import DataWarning, InputError

GPU = DeviceInfo("cuda", "made", "abc", 132, 0, 0, 1, 32, 64, sensors="nvml")


class NvmlError(Exception):
    """As pynvml's."""


class NotSupportedError(NvmlError):
    """As pynvml's."""


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """A board with a limit of 600 W; `done` is what was asked of it, `refuse` makes it refuse."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state = SimpleNamespace(limit=600_000, done=[], refuse=None, marker=None)
    state.marker = tmp_path / "mlscale" / "clocks-abc.json"

    def ask(name: str) -> Any:
        def answer(*given: Any) -> Any:
            if name == "nvmlDeviceGetPowerManagementLimit":
                return state.limit
            if name == "nvmlDeviceSetPowerManagementLimit":
                state.limit = given[1]
            if state.refuse and name.startswith("nvmlDeviceReset"):
                raise state.refuse
            state.done.append(name)
            return {"nvmlDeviceGetSupportedMemoryClocks": [3201], "nvmlDeviceGetSupportedGraphicsClocks": [990, 1980]}.get(name)  # noqa: E501 # fmt: skip

        return answer

    class Module(SimpleNamespace):
        def __getattr__(self, name: str) -> Any:
            return ask(name)

    module = Module(NVMLError=NvmlError, NVMLError_NotSupported=NotSupportedError)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return state


def test_offered(board: SimpleNamespace) -> None:
    assert clocks.offered_clocks(GPU) == {3201: [990, 1980]}


def test_the_marker_stands_while_the_board_may_be_set(board: SimpleNamespace) -> None:
    with clocks.given_back(GPU):
        assert json.loads(board.marker.read_text())["power_limit_mw"] == 600_000
        board.limit = 300_000  # as kernel_tuner sets it
        assert "nvmlDeviceResetGpuLockedClocks" not in board.done
    assert board.limit == 600_000
    assert "nvmlDeviceResetGpuLockedClocks" in board.done
    assert "nvmlDeviceResetMemoryLockedClocks" in board.done
    assert not board.marker.exists()


def test_after_a_kill_the_next_run_resets_first(board: SimpleNamespace) -> None:
    """The marker of a run that nobody holds any more, with the limit of before it."""
    board.marker.parent.mkdir()
    board.marker.write_text('{"pid": 1, "power_limit_mw": 700000}')
    assert clocks.left_behind(GPU)
    manager = clocks.given_back(GPU)
    with pytest.warns(DataWarning, match="was killed while it held the clocks"):
        manager.__enter__()
    assert board.limit == 700_000
    manager.__exit__(None, None, None)
    assert not clocks.left_behind(GPU)


def test_two_runs_do_not_share_a_board(board: SimpleNamespace) -> None:
    with clocks.given_back(GPU), pytest.raises(InputError, match="another mlscale collect"):
        clocks.given_back(GPU).__enter__()


def test_an_error_in_the_run_resets_too(board: SimpleNamespace) -> None:
    with pytest.raises(KeyboardInterrupt), clocks.given_back(GPU):
        raise KeyboardInterrupt
    assert "nvmlDeviceResetGpuLockedClocks" in board.done


def test_a_board_that_refuses_is_told_of_and_the_marker_stays(board: SimpleNamespace) -> None:
    board.refuse = NvmlError("no permission")
    with pytest.raises(InputError, match="run as root: nvidia-smi"), clocks.given_back(GPU):
        pass
    assert board.marker.exists()


def test_what_a_board_cannot_do_at_all_is_no_error(board: SimpleNamespace) -> None:
    board.refuse = NotSupportedError()
    with clocks.given_back(GPU):
        pass
    assert not board.marker.exists()


def test_no_place_for_the_marker(board: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "mlscale").write_text("a file")
    with pytest.raises(InputError, match="without it clocks are not set"):
        clocks.given_back(GPU).__enter__()


class TestHeldClocks:
    """kernel_tuner's own setter takes the other clock from a reading; ours from what was asked."""

    @pytest.fixture
    def held(self) -> Any:
        pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")
        from mlscale.collect.held_clocks import HeldClocks

        class Board(HeldClocks):
            def __init__(self) -> None:
                self.use_locked_clocks, self.modified_clocks = True, False
                self.pwr_limit_default = None
                self.locked_gr_clock, self.locked_mem_clock = 1980, 3201
                self.done: list[tuple[int, int]] = []

            def set_clocks(self, mem_clock: int, gr_clock: int) -> None:
                self.done.append((mem_clock, gr_clock))
                self.locked_mem_clock, self.locked_gr_clock = mem_clock, gr_clock

        return Board()

    def test_both_clocks_are_as_asked(self, held: Any) -> None:
        """By hand: engine 990 at memory 3201, then memory 1600 at engine 990."""
        held.gr_clock = 990
        held.mem_clock = 1600
        held.mem_clock = 1600
        assert held.done == [(3201, 990), (1600, 990)]

    def test_without_leave_nothing_is_set(self, held: Any) -> None:
        held.use_locked_clocks = False
        held.gr_clock = 990
        assert held.done == []
