"""Device and configuration of a run: from its files, from the user, and never from both at odds."""

import warnings
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from mlscale.data.devices import device_keys, devices_named, find_device
from mlscale.data.grid import AXES, HardwareConfig
from mlscale.errors import DataWarning, InputError
from mlscale.profilers.launches import FileContent
from mlscale.profilers.mapping import device_key

CLOCK_TOLERANCE = 0.05
_SHORT = {"cu_count": "cu", "engine_mhz": "engine", "memory_mhz": "memory"}
_Facts = Mapping[str, Counter[str | float]]


@dataclass(frozen=True)
class RunConfiguration:
    """The device and the configuration of a run.

    requested: what the user said of CUs and clocks; observed: what the files say; units: of
    nvprof's metrics.
    """

    device: str
    config: HardwareConfig
    requested: dict[str, float]
    observed: dict[str, float]
    units: dict[str, str]


def run_configuration(
    files: list[FileContent], device: str | None, base: Mapping[str, float]
) -> RunConfiguration:
    """Device, CU count and clocks. Raises InputError where unknown or contradictory."""
    facts: dict[str, Counter[str | float]] = defaultdict(Counter)
    for file in files:
        for fact, values in file.facts.items():
            facts[fact].update(values)
    source = files[0].source
    observed = {
        axis: _observed(source, axis, facts[axis], base.get(axis)) for axis in AXES if axis in facts
    }
    key = _device(source, facts, device, observed.get("cu_count"))
    settings = {
        "cu_count": _cu_count(source, key, base.get("cu_count"), observed.get("cu_count")),
        **{
            clock: _clock(source, clock, base.get(clock), observed.get(clock))
            for clock in ("engine_mhz", "memory_mhz")
        },
    }
    unknown = [axis for axis, value in settings.items() if value is None]
    if key is None or unknown:
        raise InputError(_request(source, key, unknown))
    cu_count, engine_mhz, memory_mhz = (settings[axis] or 0.0 for axis in AXES)
    return RunConfiguration(
        device=key,
        config=HardwareConfig(int(cu_count), engine_mhz, memory_mhz),
        requested=dict(base),
        observed=observed,
        units={
            fact.removeprefix("unit of "): str(next(iter(values)))
            for fact, values in facts.items()
            if fact.startswith("unit of ")
        },
    )


def _request(source: str, device: str | None, unknown: list[str]) -> str:
    """What to ask for all that is not known, at once."""
    needed = unknown if device else [axis for axis in unknown if axis != "cu_count"]
    lacks = ", ".join([*([] if device else ["the GPU"]), *needed])
    flags = [] if device else ["--device NAME"]
    if needed:
        flags.append("--base " + ",".join(f"{_SHORT[axis]}=…" for axis in needed))
    hint = " with what the GPU was set to" if needed else ""
    also = "" if needed == unknown else ", and cu=… for a GPU that the device table lacks"
    return f"{source}: does not say {lacks}; give {' '.join(flags)}{hint}{also}"


def _device(source: str, facts: _Facts, device: str | None, cu_count: float | None) -> str | None:
    """The key of the device table, or any name that the user or the file gives; None without."""
    names = [str(name) for name in facts.get("device_name") or facts.get("chip") or ()]
    if len(names) > 1:
        raise InputError(f"{source}: is of several GPUs: {', '.join(sorted(names))}; import one")
    if device is not None:
        device = device_key(device, cu_count) or device
    if not names:
        return device
    [name] = names
    possible = devices_named(name, cu_count)
    key = device_key(name, cu_count)
    if device is None:
        if key is not None:
            return key
        device = "-".join(name.lower().split())
        why = f"may be {' or '.join(possible)}" if possible else "is not in the device table"
        warnings.warn(
            f"{source}: '{name}' {why}; the table's device is "
            f"'{device}' (--device gives another name)",
            DataWarning,
            stacklevel=4,
        )
    elif device in device_keys() and device not in possible:
        raise InputError(f"{source}: is of '{name}', not of '{device}'")
    elif key is not None and device != key:
        raise InputError(f"{source}: is of '{name}', which is '{key}', not '{device}'")
    return device


def _observed(
    source: str, axis: str, counts: Counter[str | float], requested: float | None
) -> float:
    """The mean of what the files say of one axis.

    Raises InputError where launches disagree; only warns where their mean is what the user gave.
    """
    values = {float(value): count for value, count in counts.items()}
    low, high = min(values), max(values)
    mean = sum(value * count for value, count in values.items()) / sum(values.values())
    if axis == "cu_count" and low != high:
        raise InputError(f"{source}: has launches on {low:g} and on {high:g} CUs; import one")
    if high > (1 + CLOCK_TOLERANCE) * low:
        spread = f"{source}: {axis} is {low:g} in one launch and {high:g} in another"
        if requested is None or abs(mean / requested - 1) > CLOCK_TOLERANCE:
            raise InputError(
                f"{spread}; lock the clocks and profile again, or say that all count as their "
                f"mean with --base {_SHORT[axis]}={mean:.0f}"
            )
        warnings.warn(
            f"{spread}: all count as {requested:g}, and times may be off by as much",
            DataWarning,
            stacklevel=4,
        )
    return mean


def _cu_count(
    source: str, key: str | None, requested: float | None, observed: float | None
) -> float | None:
    if requested is not None and observed is not None and requested != observed:
        raise InputError(f"{source}: says {observed:g} CUs, --base says {requested:g}")
    device = None if key is None else find_device(key)
    whole = None if device is None else device.cu_count
    value = next((count for count in (requested, observed, whole) if count is not None), None)
    if value is not None and whole is not None and value > whole:
        raise InputError(f"{source}: {value:g} CUs are more than the {whole} of '{key}'")
    return value


def _clock(
    source: str, clock: str, requested: float | None, observed: float | None
) -> float | None:
    """The clock that was set, else the observed one with a warning. Raises InputError at odds."""
    if requested is None:
        if observed is None:
            return None
        warnings.warn(
            f"{source}: {clock} {observed:.0f} is what the profiler observed; give the clock that "
            f"was set with --base {_SHORT[clock]}=… if a model's base differs",
            DataWarning,
            stacklevel=4,
        )
        return float(round(observed))
    if observed is not None and abs(observed / requested - 1) > CLOCK_TOLERANCE:
        raise InputError(
            f"{source}: {clock} was {observed:.0f} while profiling, --base says {requested:g}; "
            "lock the clocks, and give ncu --clock-control none"
        )
    return requested
