"""The CU count of a run, by what the user says, the files and the device table."""

from collections import Counter

from mlscale.data.device import Device
from mlscale.data.device_table import device_keys, find_device, load_device
from mlscale.errors import InputError


def not_in_pairs(counts: Counter[str | float], device: Device) -> Counter[str | float]:
    """CU counts; HIP, which PyTorch asks, counts RDNA's in pairs (ROCm/hip, issue 3767)."""
    if not device.architecture.startswith("RDNA"):
        return counts
    whole = float(device.cu_count)
    single: Counter[str | float] = Counter()
    for count, weight in counts.items():
        single[whole if float(count) == whole / 2 else count] += weight
    return single


def cu_count_of_run(
    source: str, key: str | None, requested: float | None, observed: float | None
) -> float | None:
    """The CUs that the user said, or the files, or the device's. Raises InputError.

    It does so where they contradict each other, and of a part of an AMD GPU.
    """
    if requested is not None and observed is not None and requested != observed:
        raise InputError(f"{source}: says {observed:g} CUs, --base says {requested:g}")
    device = None if key is None else find_device(key)
    whole = None if device is None else device.cu_count
    value = next((count for count in (requested, observed, whole) if count is not None), None)
    if device is not None and value is not None and value > device.cu_count:
        others = " or ".join(own for own in device_keys() if _is_like(device, value, own))
        raise InputError(
            f"{source}: {value:g} CUs are more than the {whole} of '{key}'; is it another GPU? "
            + (f"{others} has as many: give --device NAME" if others else "Name it with --device")
        )
    if device is None or value is None or whole is None or value >= whole:
        return value
    if device.vendor == "AMD" and observed is not None:
        raise InputError(
            f"{source}: {value:g} CUs are fewer than the {whole} of '{key}'; is it another GPU, or "
            "a partition of this one (DPX, CPX)? A partition has its part of the memory too: give "
            f"--device FILE, made of what 'mlscale devices show {key} --format json' prints with "
            "a key, cu_count, memory_bus_bits, xcd_count and peaks of its own (docs/devices.md)"
        )
    if device.vendor == "NVIDIA" and requested is None:
        raise InputError(
            f"{source}: {value:g} SMs are fewer than the {whole} of '{key}'; is it another GPU? "
            f"name it with --device, or give --base cu={value:g} for a part of this one (MIG)"
        )
    return value


def _is_like(device: Device, cu_count: float, key: str) -> bool:
    """Return whether the device of that key has so many CUs, and the vendor of another."""
    other = load_device(key)
    return other.cu_count == cu_count and other.vendor == device.vendor
