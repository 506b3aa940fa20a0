"""The state of a made GPU (`synthetic/nvml.py`), as a test sees and changes it."""

import json
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mlscale.sensors import clocks, program, recorder
from synthetic import nvml

EPOCH_S = 1_772_460_300.0


class MadeGpu:
    """The state of the made GPU."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def special(self, **what: Any) -> None:
        """What is special from now on, at once: a sampler may be reading it."""
        told = self.folder / "made.json.part"
        told.write_text(json.dumps(what))
        told.replace(self.folder / "made.json")

    @property
    def locked_mhz(self) -> int | None:
        return nvml._number("locked", 0) or None  # of a kill amid the call the file is empty

    @property
    def marker(self) -> Path:
        return self.folder / "state" / "mlscale" / "clocks-made-0" / "before.json"


def made_gpu() -> MadeGpu:
    """The one in this process."""
    return MadeGpu(Path(os.environ["MADE_NVML"]))


def put_in(folder: Path, patch: pytest.MonkeyPatch) -> MadeGpu:
    """Put a made GPU into this process, its clock goes on by 0.1 s a sample; and its job.sh here.

    folder: of its state.
    """
    patch.setenv("MADE_NVML", str(folder))
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        patch.delenv(name, raising=False)
    patch.setitem(sys.modules, "pynvml", nvml)
    patch.setitem(sys.modules, "amdsmi", None)
    patch.setattr(clocks, "SETTLE_S", 0.0)
    patch.setattr(recorder, "_TURN_S", 60.0)  # work begins after the first sample, however late
    clock = SimpleNamespace(
        monotonic=lambda: nvml.reads() / 10, time=lambda: EPOCH_S, sleep=lambda _: time.sleep(1e-3)
    )
    patch.setattr(recorder, "time", clock)
    patch.setattr(program, "time", clock)
    Path("job.sh").write_text(nvml.PROGRAM)
    return made_gpu()
