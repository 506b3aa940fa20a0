"""Clocks and power limits are given back. pynvml is a stand-in that writes down what is asked."""

import json
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlscale.collect import clocks
from mlscale.collect.device import DeviceInfo
from mlscale.errors import DataWarning, InputError

GPU = DeviceInfo("cuda", "made", "abc", "CUDA 12.4", 132, 1, 32, sensors="nvml")


class NvmlError(Exception):
    """As pynvml's."""


class NotSupportedError(NvmlError):
    """As pynvml's."""


@pytest.fixture
def board(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """A board with a limit of 600 W; `done` is what was asked of it, `refuse` makes it refuse."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state = SimpleNamespace(limit=600_000, done=[], refuse=None, marker=None)
    state.marker = tmp_path / "mlscale" / "clocks-abc" / "before.json"

    def ask(name: str) -> Any:
        def answer(*given: Any) -> Any:
            if name == "nvmlDeviceGetPowerManagementLimit":
                return state.limit
            if name == "nvmlDeviceSetPowerManagementLimit":
                state.limit = given[1]
            if state.refuse and name.startswith("nvmlDeviceReset"):
                raise state.refuse
            state.done.append((name, *given[1:]))
            return None

        return answer

    class Module(SimpleNamespace):
        def __getattr__(self, name: str) -> Any:
            return ask(name)

    module = Module(NVMLError=NvmlError, NVMLError_NotSupported=NotSupportedError)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return state


def test_what_cannot_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NVML, and without root."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert clocks.why_fixed(GPU) == ""
    assert "set by NVML alone" in clocks.why_fixed(replace(GPU, sensors=""))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "set by root; the CU count, time and power need no rights" in clocks.why_fixed(GPU)


def test_what_is_set(board: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both clocks are locked by themselves; 300 W are 300 000 mW; what is not given stays."""
    monkeypatch.setattr(clocks, "_SETTLE_S", 0)
    clocks.set_board(GPU, {"engine_mhz": 990, "memory_mhz": 1600})
    assert ("nvmlDeviceSetGpuLockedClocks", 990, 990) in board.done
    assert ("nvmlDeviceSetMemoryLockedClocks", 1600, 1600) in board.done
    assert board.limit == 600_000
    board.done.clear()
    clocks.set_board(GPU, {"cap_w": 300})
    assert board.limit == 300_000
    assert not [name for name, *_ in board.done if "Locked" in name]


@pytest.mark.parametrize("ends", [None, KeyboardInterrupt])
def test_the_marker_stands_while_the_board_may_be_set(
    board: SimpleNamespace, ends: type[BaseException] | None
) -> None:
    """However the run ends, clocks and limit are given back."""
    with suppress(KeyboardInterrupt), clocks.given_back(GPU, sets_board=True):
        assert json.loads(board.marker.read_text())["power_limit_mw"] == 600_000
        board.limit = 300_000  # as kernel_tuner sets it
        assert ("nvmlDeviceResetGpuLockedClocks",) not in board.done
        if ends:
            raise ends
    assert board.limit == 600_000
    assert ("nvmlDeviceResetGpuLockedClocks",) in board.done
    assert ("nvmlDeviceResetMemoryLockedClocks",) in board.done
    assert not board.marker.exists()


def test_a_board_that_refuses_is_told_of_and_the_marker_stays(board: SimpleNamespace) -> None:
    """What it cannot do at all is no error."""
    board.refuse = NvmlError("no permission")
    with (
        pytest.raises(InputError, match="as root: nvidia-smi"),
        clocks.given_back(GPU, sets_board=True),
    ):
        pass
    assert board.marker.exists()
    board.refuse = NotSupportedError()
    with pytest.warns(DataWarning), clocks.given_back(GPU, sets_board=True):
        pass
    assert not board.marker.exists()


def test_after_a_kill_the_next_run_resets_first(board: SimpleNamespace) -> None:
    """The marker of a run that nobody holds any more, with the limit of before it."""
    board.marker.parent.mkdir(parents=True)
    board.marker.write_text('{"power_limit_mw": 700000}')
    manager = clocks.given_back(GPU, sets_board=False)
    with pytest.warns(DataWarning, match="was killed while it held the clocks"):
        manager.__enter__()
    assert board.limit == 700_000
    manager.__exit__(None, None, None)
    assert not board.marker.exists()
    board.done.clear()
    with clocks.given_back(GPU, sets_board=False):
        assert not board.marker.exists()
    assert board.done == []


def test_two_runs_do_not_share_a_board(board: SimpleNamespace) -> None:
    with (
        clocks.given_back(GPU, sets_board=True),
        pytest.raises(InputError, match="another mlscale writes there"),
    ):
        clocks.given_back(GPU, sets_board=True).__enter__()
