"""Clocks and power limits of the board that is collected on: a made one (`synthetic/nvml.py`).

How they are put back: tests/sensors/test_clocks.py.
"""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import nvml

from mlscale.collect.device import DeviceInfo
from mlscale.sensors import clocks
from mlscale.sensors.boards import board_by_uuid

GPU = DeviceInfo("cuda", "made", "made-0", "CUDA 12.4", 108, 1, 32, sensors="nvml")


def test_what_cannot_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NVML, and without root."""
    monkeypatch.setattr("os.geteuid", lambda: 0)
    assert GPU.why_fixed == ""
    assert "only through NVML" in replace(GPU, sensors="").why_fixed
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert "only root sets clocks and power limits; the CU count, time" in GPU.why_fixed


def test_what_is_set_is_put_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Both clocks are locked by themselves; 300 W are 300 000 mW; what is not given stays."""
    monkeypatch.setattr(clocks, "SETTLE_S", 0)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    for name in ("MADE_NVML", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    board = board_by_uuid(GPU.uuid)
    with clocks.given_back(board, sets_board=True):
        clocks.set_board(board, {"engine_mhz": 990, "memory_mhz": 1215})
        assert not (tmp_path / "limit").exists()
        clocks.set_board(board, {"cap_w": 300})
        held = {name: (tmp_path / name).read_text() for name in ("locked", "memory", "limit")}
        assert held == {"locked": "990", "memory": "1215", "limit": "300000"}
    assert not (tmp_path / "locked").exists()
    assert not (tmp_path / "memory").exists()
    assert (tmp_path / "limit").read_text() == "400000"
