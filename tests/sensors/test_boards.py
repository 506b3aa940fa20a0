"""AMD's boards on a made AMD SMI, and the made NVML's signatures against nvidia-ml-py's.

No AMD GPU has run this. Expected: by hand from the made answers, in AMD SMI's units.
"""

import inspect
import sys
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from command import Capture, succeed
from synthetic import nvml
from synthetic.made_gpu import MadeGpu

from mlscale.cli.main import main
from mlscale.readers.monitor import read_log


class SmiError(Exception):
    """As amdsmi's."""


class Level(IntEnum):
    AUTO = 0
    DETERMINISM = 8


@pytest.fixture
def smi(gpu: MadeGpu, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """An MI210 in place of the NVIDIA GPU; `set` is what was asked of it. It works throughout."""
    made = SimpleNamespace(set=[], level=Level.AUTO, may=True)

    def reset(_: Any, level: Level) -> None:
        if not made.may:
            raise SmiError("NO_PERM")
        made.level = level
        made.set.append(level.name)

    def determinism(_: Any, mhz: int) -> None:
        made.level = Level.DETERMINISM
        made.set.append(mhz)

    def metric(*_: Any) -> int:
        with (gpu.folder / "reads").open("ab") as file:
            file.write(b".")
        return 61

    def missing(_: Any) -> None:
        raise SmiError("NOT_SUPPORTED")

    answers = {
        "init": lambda: None,
        "get_processor_handles": lambda: ["handle"],
        "get_gpu_device_uuid": lambda _: "a1ff740f",
        "get_gpu_asic_info": lambda _: {"market_name": "AMD Instinct MI210"},
        "get_gpu_driver_info": lambda _: {"driver_version": "6.12.12"},
        "get_power_info": lambda _: {"current_socket_power": "N/A", "average_socket_power": 280},
        "get_power_cap_info": lambda _: {"power_cap": 300_000_000},
        "get_clock_info": lambda _, kind: {"clk": 1695 if kind == "gfx" else 1600},
        "get_gpu_activity": lambda _: {"gfx_activity": 99, "umc_activity": "N/A"},
        "get_temp_metric": metric,
        "get_energy_count": missing,
        "get_gpu_compute_partition": missing,
        "get_gpu_process_list": lambda _: [],
        "get_gpu_perf_level": lambda _: f"AMDSMI_DEV_PERF_LEVEL_{made.level.name}",
        "set_gpu_perf_level": reset,
        "set_gpu_perf_determinism_mode": determinism,
    }
    module = SimpleNamespace(
        AmdSmiException=SmiError,
        AmdSmiDevPerfLevel=Level,
        AmdSmiClkType=SimpleNamespace(GFX="gfx", MEM="mem"),
        AmdSmiTemperatureType=SimpleNamespace(HOTSPOT=1),
        AmdSmiTemperatureMetric=SimpleNamespace(CURRENT=0),
        **{f"amdsmi_{name}": answer for name, answer in answers.items()},
    )
    monkeypatch.setitem(sys.modules, "amdsmi", module)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return made


def test_an_amd_gpu(smi: SimpleNamespace, capsys: Capture) -> None:
    """Its clock is a highest one, and the level of before is put back."""
    words = ("measure", "--at", "1300", "--for", "1s", "--rate", "5", "-o", "log.csv")
    _, err = succeed(capsys, *words)
    assert "AMD Instinct MI210, GPU 0: " in err
    assert " at 5/s, 1695 MHz (set), 280 W mean, 56.0 J each" in err
    assert smi.set == ["AUTO", 1300, "AUTO"]
    [log] = read_log(Path("log.csv"))
    assert log.columns["power_cap_w"][0] == 300


def test_an_amd_gpu_without_rights(smi: SimpleNamespace, capsys: Capture) -> None:
    smi.may = False
    assert main(["measure", "--at", "1300", "--", "true"]) == 2
    assert "sudo amd-smi set -g 0 --perf-determinism 1300; " in capsys.readouterr().err


def test_the_made_nvml_has_the_signatures_of_the_package() -> None:
    package = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed")
    for name, function in vars(nvml).items():
        if name.startswith("nvml"):
            theirs = inspect.signature(getattr(package, name)).parameters
            assert [*inspect.signature(function).parameters] == [*theirs], name
    for name in ("NVML_CLOCK_SM", "NVML_CLOCK_MEM", "NVML_FI_DEV_POWER_INSTANT"):
        assert getattr(nvml, name) == getattr(package, name)
