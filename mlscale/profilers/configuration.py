"""Device and configuration of a run: from its files, from the user, and never from both at odds."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

from mlscale.data.devices import device_keys, load_device
from mlscale.data.grid import HardwareConfig
from mlscale.errors import DataWarning, InputError
from mlscale.profilers.mapping import amd_die, device_key
from mlscale.profilers.samples import Run

CLOCK_TOLERANCE = 0.05
_SHORT = {"cu_count": "cu", "engine_mhz": "engine", "memory_mhz": "memory"}


@dataclass(frozen=True)
class Setting:
    """What the run was made on; requested is what the user said, observed what the files say."""

    device: str
    config: HardwareConfig
    requested: dict[str, float]
    observed: dict[str, float]
    units: dict[str, str]

    def clocks(self) -> dict[str, dict[str, float]]:
        """For the metadata of the table."""
        return {"requested": self.requested, "observed": self.observed}


def setting_of(runs: list[Run], device: str | None, base: Mapping[str, float]) -> Setting:
    """Device, CU count and clocks. Raises InputError where unknown or contradictory."""
    facts: dict[str, dict[str | float, int]] = {}
    for run in runs:
        for fact, seen in run.facts.items():
            for value, count in seen.items():
                facts.setdefault(fact, {})[value] = facts.get(fact, {}).get(value, 0) + count
    source = runs[0].source
    key = _device(source, facts, device)
    observed: dict[str, float] = {
        fact: _observed(source, fact, facts[fact])
        for fact in ("cu_count", "engine_mhz", "memory_mhz")
        if fact in facts
    }
    chosen = {
        "cu_count": _cu_count(source, key, base.get("cu_count"), observed.get("cu_count")),
        **{
            clock: _clock(source, clock, base.get(clock), observed.get(clock))
            for clock in ("engine_mhz", "memory_mhz")
        },
    }
    lacking = [axis for axis, value in chosen.items() if value is None]
    if lacking:
        example = ",".join(f"{_SHORT[axis]}=…" for axis in lacking)
        raise InputError(
            f"{source}: does not say {', '.join(lacking)}; give --base {example} with what the "
            "GPU was set to"
        )
    config = HardwareConfig(
        int(chosen["cu_count"] or 0), chosen["engine_mhz"] or 0.0, chosen["memory_mhz"] or 0.0
    )
    units = {
        fact.removeprefix("unit of "): str(next(iter(seen)))
        for fact, seen in facts.items()
        if fact.startswith("unit of ")
    }
    return Setting(key, config, dict(base), observed, units)


def _device(source: str, facts: dict[str, dict[str | float, int]], device: str | None) -> str:
    names = [str(name) for name in facts.get("device_name", facts.get("chip", {}))]
    if len(names) > 1:
        raise InputError(f"{source}: is of several GPUs: {', '.join(sorted(names))}; import one")
    found = device_key(names[0]) if names else None
    if device is None:
        if not names:
            raise InputError(f"{source}: does not say the GPU; name it with --device")
        if found is None:
            found = "-".join(names[0].lower().split())
            warnings.warn(
                f"{source}: '{names[0]}' is not in the device table; the table's device is "
                f"'{found}' (--device gives another name)",
                DataWarning,
                stacklevel=4,
            )
        return found
    if names and device in device_keys() and found != device:
        raise InputError(f"{source}: is of '{names[0]}', not of '{device}'")
    if found is not None and device != found:
        raise InputError(f"{source}: is of '{names[0]}', which is '{found}', not '{device}'")
    return device


def _observed(source: str, fact: str, seen: Mapping[str | float, int]) -> float:
    values = {float(value): count for value, count in seen.items()}
    low, high = min(values), max(values)
    if fact == "cu_count" and low != high:
        raise InputError(f"{source}: has launches on {low:g} and on {high:g} CUs; import one")
    if high > (1 + CLOCK_TOLERANCE) * low:
        raise InputError(
            f"{source}: {fact} is {low:g} in one launch and {high:g} in another; lock the clocks "
            "and profile again, or import one configuration at a time"
        )
    return sum(value * count for value, count in values.items()) / sum(values.values())


def _cu_count(source: str, key: str, given: float | None, observed: float | None) -> float | None:
    if given is not None and observed is not None and given != observed:
        raise InputError(f"{source}: says {observed:g} CUs, --base says {given:g}")
    whole = load_device(key).cu_count if key in device_keys() else amd_die(key).get("cu_count")
    value = given if given is not None else observed if observed is not None else whole
    if value is not None and whole is not None and value > whole:
        raise InputError(f"{source}: {value:g} CUs are more than the {whole} of '{key}'")
    return value


def _clock(source: str, clock: str, given: float | None, observed: float | None) -> float | None:
    if given is None:
        if observed is None:
            return None
        warnings.warn(
            f"{source}: {clock} {observed:.0f} is what the profiler observed; give the clock that "
            f"was set with --base {_SHORT[clock]}=… if a model's base differs",
            DataWarning,
            stacklevel=4,
        )
        return float(round(observed))
    if observed is not None and abs(observed / given - 1) > CLOCK_TOLERANCE:
        raise InputError(
            f"{source}: {clock} was {observed:.0f} while profiling, --base says {given:g}; lock "
            "the clocks, and give ncu --clock-control none"
        )
    return given
