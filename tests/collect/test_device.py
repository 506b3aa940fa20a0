"""The device at hand. hip-python is a stand-in with the names that are used."""

import sys
from types import SimpleNamespace
from typing import Any

import pocl
import pytest

from mlscale.collect.device import find_device
from mlscale.errors import InputError

UUID = bytes(range(16))


def test_an_mi210(monkeypatch: pytest.MonkeyPatch) -> None:
    """kHz to MHz."""
    pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")

    def properties_of(properties: Any, _: int) -> Any:
        vars(properties).update(
            name=b"AMD Instinct MI210", uuid=SimpleNamespace(bytes=UUID), multiProcessorCount=104,
            clockRate=1_700_000, memoryClockRate=1_600_000, l2CacheSize=8 << 20, warpSize=64,
            maxThreadsPerMultiProcessor=2048,
        )  # fmt: skip
        return (0,)

    hip = SimpleNamespace(
        hipDeviceProp_t=SimpleNamespace, hipError_t=SimpleNamespace(hipSuccess=0),
        hipGetDeviceProperties=properties_of, hipRuntimeGetVersion=lambda: (0, 60300000),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "hip", SimpleNamespace(hip=hip))
    info = find_device("hip")
    assert (info.engine_mhz, info.memory_mhz, info.wave_size) == (1700, 1600, 64)
    assert (info.cu_axis, info.sensors) == ("CU mask", "")  # without amdsmi


def test_what_to_install() -> None:
    pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")
    with pytest.raises(InputError, match=r"No module named 'cuda' \(pip install .*-ml-py"):
        find_device("cuda")
    with pytest.raises(InputError, match=r"No module named 'hip' \(pip install 'mlscale\[coll"):
        find_device("hip")


def test_the_processor() -> None:
    pocl.needs_pocl()
    info = find_device("opencl")
    assert info.cu_axis == "threads"
    assert info.sensors == ""
    assert info.engine_mhz > 0
