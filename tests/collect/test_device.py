"""The device at hand. cuda-python and hip-python are stand-ins with the names that are used."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pocl
import pytest

from mlscale.collect import device
from mlscale.collect.device import find_device
from mlscale.errors import InputError

UUID = bytes(range(16))


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that puts a module in the place of a package."""
    pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")

    def put(**modules: Any) -> None:
        for name, content in modules.items():
            parts = name.split("__")
            for depth in range(1, len(parts)):
                package = sys.modules.get(".".join(parts[:depth])) or ModuleType(parts[depth - 1])
                monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), package)
            monkeypatch.setitem(sys.modules, ".".join(parts), content)
            if len(parts) > 1:
                monkeypatch.setattr(
                    sys.modules[".".join(parts[:-1])], parts[-1], content, raising=False
                )

    return put


class Runtime(SimpleNamespace):
    """cuda.bindings.runtime of a machine with an H200, or with none."""

    cudaError_t = SimpleNamespace(cudaSuccess=0)  # noqa: N815

    def cudaGetDeviceCount(self) -> Any:  # noqa: N802
        return (0, 1) if self.driver else (SimpleNamespace(name="cudaErrorNoDevice"), 0)

    def cudaDriverGetVersion(self) -> Any:  # noqa: N802
        return 0, self.driver

    def cudaGetDeviceProperties(self, _: int) -> Any:  # noqa: N802
        properties = SimpleNamespace(
            name=b"NVIDIA H200", uuid=SimpleNamespace(bytes=UUID), multiProcessorCount=132,
            l2CacheSize=60 << 20, warpSize=32, major=9, minor=0,
        )  # fmt: skip
        return 0, properties


def test_an_h200(use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA 12.4 has green contexts, 12.3 has none."""
    use(cuda__bindings__runtime=Runtime(driver=12040))
    monkeypatch.setattr(device, "find_spec", lambda _: True)
    info = find_device()
    assert (info.backend, info.name, info.cu_count) == ("cuda", "NVIDIA H200", 132)
    assert (info.l2_bytes, info.wave_size, info.driver) == (60 << 20, 32, "CUDA 12.4")
    assert (info.cu_axis, info.sensors) == ("green contexts", "nvml")
    assert info.environment(8) == {}
    assert info.capability == 90
    use(cuda__bindings__runtime=Runtime(driver=12030))
    assert find_device("cuda").cu_axis == ""


def test_a_jetson_has_its_own_sensors(
    use: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVIDIA's release file tells it; NVML has no sensors there."""
    monkeypatch.setattr(device, "_JETSON", tmp_path)
    use(cuda__bindings__runtime=Runtime(driver=12060))
    assert find_device("cuda").sensors == "tegra"


def test_an_mi210(use: Any) -> None:
    """kHz to MHz."""

    def properties_of(properties: Any, _: int) -> Any:
        vars(properties).update(
            name=b"AMD Instinct MI210", uuid=SimpleNamespace(bytes=UUID), multiProcessorCount=104,
            clockRate=1_700_000, memoryClockRate=1_600_000, l2CacheSize=8 << 20, warpSize=64,
        )  # fmt: skip
        return (0,)

    hip = SimpleNamespace(
        hipDeviceProp_t=SimpleNamespace, hipError_t=SimpleNamespace(hipSuccess=0),
        hipGetDeviceProperties=properties_of, hipRuntimeGetVersion=lambda: (0, 60300000),
    )  # fmt: skip
    use(hip__hip=hip)
    info = find_device("hip")
    assert (info.engine_mhz, info.memory_mhz, info.wave_size) == (1700, 1600, 64)
    assert (info.cu_axis, info.sensors) == ("CU mask", "")  # without amdsmi


def test_no_gpu_is_told_with_what_to_install(use: Any) -> None:
    use(cuda__bindings__runtime=Runtime(driver=0))
    with pytest.raises(InputError, match=r"no NVIDIA GPU is visible .*cudaErrorNoDevice"):
        find_device("cuda")
    with pytest.raises(InputError, match=r"No module named 'hip' \(pip install 'mlscale\[coll"):
        find_device("hip")


def test_the_processor() -> None:
    pocl.needs_pocl()
    info = find_device("opencl")
    assert info.cu_axis == "threads"
    assert info.sensors == ""
    assert info.engine_mhz > 0
