"""The device at hand. hip-python is a stand-in with the names that are used."""

import sys
from types import SimpleNamespace
from typing import Any

import pocl
import pytest

from mlscale.collect.device import device_at_hand
from mlscale.errors import InputError

UUID = bytes(range(16))


@pytest.fixture
def mi210(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Its properties, as HIP says them; without amdsmi."""
    pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")
    given = {
        "name": b"AMD Instinct MI210", "uuid": SimpleNamespace(bytes=UUID), "l2CacheSize": 8 << 20,
        "clockRate": 1_700_000, "memoryClockRate": 1_600_000, "multiProcessorCount": 104,
        "warpSize": 64, "maxThreadsPerMultiProcessor": 2048,
    }  # fmt: skip

    def properties_of(properties: Any, _: int) -> Any:
        vars(properties).update(given)
        return (0,)

    hip = SimpleNamespace(
        hipDeviceProp_t=SimpleNamespace, hipError_t=SimpleNamespace(hipSuccess=0),
        hipGetDeviceProperties=properties_of, hipRuntimeGetVersion=lambda: (0, 60300000),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "hip", SimpleNamespace(hip=hip))
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    return given


def test_an_mi210(mi210: dict[str, Any]) -> None:
    """kHz to MHz."""
    info = device_at_hand("hip")
    assert (info.engine_mhz, info.memory_mhz, info.wave_size) == (1700, 1600, 64)
    assert (info.cu_axis, info.sensors) == ("CU mask", "")


@pytest.mark.parametrize(("counted", "sensors"), [({"board": {}}, "amdsmi"), ({}, "")])
def test_amd_smi(
    mi210: dict[str, Any], monkeypatch: pytest.MonkeyPatch, counted: Any, sensors: str
) -> None:
    """kernel_tuner's observer needs the energy; the package raises KeyErrors and others."""
    smi = SimpleNamespace(
        amdsmi_init=int,
        amdsmi_get_processor_handles=lambda: ["board"],
        amdsmi_get_energy_count=counted.__getitem__,
    )
    monkeypatch.setitem(sys.modules, "amdsmi", smi)
    assert device_at_hand("hip").sensors == sensors


def test_what_kernel_tuner_cannot_use(
    mi210: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU without a UUID, for which HIP says 'XX'; and hip-python 10, with its new signatures."""
    mi210["uuid"] = SimpleNamespace(bytes=b"XX")
    with pytest.raises(InputError, match=r"an AMD GPU that has no unique number \(UUID\)"):
        device_at_hand("hip")
    monkeypatch.setattr(sys.modules["hip"].hip, "hipGetDeviceProperties", lambda _: (0, None))
    with pytest.raises(InputError, match=r"cannot use this hip-python .*'hip-python<10'"):
        device_at_hand("hip")


def test_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")
    for module in ("cuda", "cuda.bindings", "hip"):
        monkeypatch.setitem(sys.modules, module, None)
    for backend, package in (("cuda", "nvidia-ml-py"), ("hip", "hip-python<10")):
        with pytest.raises(InputError, match=f"; {backend}: .* \\(pip install .*{package}"):
            device_at_hand(backend)


def test_the_processor() -> None:
    info = pocl.needs_pocl()
    assert info.cu_axis == "threads"
    assert info.sensors == ""
    assert info.engine_mhz > 0
