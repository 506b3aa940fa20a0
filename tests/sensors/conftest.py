"""A made GPU (`synthetic/nvml.py`) in this process, whose clock goes on by 0.1 s a sample."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from synthetic import nvml
from synthetic.made_gpu import MadeGpu

from mlscale.sensors import clocks, program, recorder

EPOCH_S = 1_772_460_300.0


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeGpu:
    """One made GPU, a folder to work in, and in it the program job.sh."""
    made, work = tmp_path / "gpu", tmp_path / "work"
    made.mkdir()
    work.mkdir()
    monkeypatch.setenv("MADE_NVML", str(made))
    monkeypatch.setenv("XDG_STATE_HOME", str(made / "state"))
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    monkeypatch.setattr(clocks, "SETTLE_S", 0.0)
    clock = SimpleNamespace(
        monotonic=lambda: nvml.reads() / 10, time=lambda: EPOCH_S, sleep=lambda _: time.sleep(1e-3)
    )
    monkeypatch.setattr(recorder, "time", clock)
    monkeypatch.setattr(program, "time", clock)
    monkeypatch.chdir(work)
    Path("job.sh").write_text(nvml.PROGRAM)
    return MadeGpu(made)
