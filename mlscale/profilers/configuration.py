"""Device and configuration of a run: from its files, from the user, and never from both at odds."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mlscale.arrays import is_finite
from mlscale.counters.kernel_use import lack_of_peaks
from mlscale.data.device import Device
from mlscale.data.device_table import device_keys, devices_named, find_device
from mlscale.data.grid import AXES, SHORT_NAMES, HardwareConfig
from mlscale.data.plausibility import check_unit
from mlscale.errors import InputError, warn
from mlscale.profilers.cu_count import cu_count_of_run, not_in_pairs
from mlscale.profilers.cycle_clock import engine_clocks
from mlscale.profilers.mapping import CYCLES, CYCLES_FROM_S
from mlscale.text import without_controls

CLOCK_TOLERANCE = 0.05
KEPT = 0.02  # of a clock: further off it was not kept, and times are off by as much
LISTED_TOLERANCE = 0.01  # of a clock as a profiler counts it and as the vendor lists it
PINNED = 0.9  # of a GPU's highest engine clock: below, ncu may have held the clock down
OBSERVED = "what the profiler observed"
HIGHEST = "the GPU's highest; the file does not say at what it ran"
_OF_ONE_GPU = "what is predicted are its own settings, and no other GPU"
GpuFacts = Mapping[str, Counter[str | float]]  # by fact how often each value was seen


@dataclass(frozen=True)
class RunConfiguration:
    """The device and the configuration of a run.

    requested: what the user said of CUs and clocks; observed: what the files say; dies: of the
    GPU, by the files or the device table, None where not known.
    """

    device: str
    config: HardwareConfig
    requested: dict[str, float]
    observed: dict[str, float]
    dies: float | None = None


def require_settings(base: object) -> None:
    """Raise InputError unless a base says settings by the names of AXES."""
    if not (isinstance(base, Mapping) and set(base) <= set(AXES)):
        raise InputError(f"the base {base} is none; it may say {', '.join(AXES)}, each by its name")
    for axis, value in base.items():
        if not (is_finite(value) and value > 0):
            raise InputError(f"{axis} of the base must be a positive number, not {value!r}")


def run_configuration(
    source: str,
    facts: GpuFacts,
    device: str | None,
    base: Mapping[str, float],
    lacks: str = "",
    needs_peaks: bool = False,
) -> RunConfiguration:
    """Device, CU count and clocks. Raises InputError where unknown or contradictory.

    source: the first file, for messages; facts: what all files say of the GPU; lacks: what else
    they lack, which the message then says too; needs_peaks: a GPU whose peaks are not known is of
    no use.
    """
    require_settings(base)
    key = _device(source, facts, device, _mean_of(facts, "cu_count"))
    known = find_device(key) if key else None
    if known is not None and "cu_count" in facts:
        facts = {**facts, "cu_count": not_in_pairs(facts["cu_count"], known)}
    dies = _mean_of(facts, "xcd_count") or (known.dies if known else None)
    if by_cycles := engine_clocks(facts.get("cycles_per_us", Counter()), dies, known):
        facts = {**facts, "engine_mhz": by_cycles}
    spread = _spread(source, facts, base)
    observed = {axis: _mean(facts[axis]) for axis in AXES if axis in facts}
    settings = {
        "cu_count": cu_count_of_run(source, key, base.get("cu_count"), observed.get("cu_count")),
        "engine_mhz": _clock(source, key, "engine_mhz", base, observed, facts),
        "memory_mhz": _clock(source, key, "memory_mhz", base, observed, facts),
    }
    peaks = lack_of_peaks(key) if needs_peaks and key is not None else ""
    unknown = [axis for axis, value in settings.items() if value is None]
    if key is None and "engine_mhz" in unknown and facts.get("cycles_per_us"):
        unknown.remove("engine_mhz")  # once the GPU is known, its cycles tell it
    if peaks and "cu_count" in unknown:
        unknown.remove("cu_count")  # with the peaks it is told
    request = ""
    if key is None or unknown or spread:
        request = _request(source, key, unknown, spread, needs_peaks) + _limit(facts, unknown)
    if key is None or request or peaks:
        raise InputError("; ".join(filter(None, [request, lacks, peaks])))
    clocks = {c: settings[c] or 0.0 for c in ("engine_mhz", "memory_mhz") if c not in base}
    _warn_of_clocks(source, {c: v for c, v in clocks.items() if c in observed}, OBSERVED)
    _warn_of_clocks(source, {c: v for c, v in clocks.items() if c not in observed}, HIGHEST)
    if highest_mhz := held_below_mhz(key, base, observed):
        warn(
            f"{source}: ncu holds the engine clock down unless --clock-control none is given, and "
            f"'{key}' goes up to {highest_mhz:g} MHz: if the program itself runs faster than at "
            f"{observed['engine_mhz']:.0f} MHz, profile it so, since all is relative to that clock"
        )
    cu_count, engine_mhz, memory_mhz = (settings[axis] or 0.0 for axis in AXES)
    return RunConfiguration(
        device=key,
        config=HardwareConfig(int(cu_count), engine_mhz, memory_mhz),
        requested=dict(base),
        observed=observed,
        dies=dies,
    )


def _request(
    source: str,
    device: str | None,
    unknown: list[str],
    spread: dict[str, tuple[str, float]],
    needs_peaks: bool,
) -> str:
    """What to ask for all that is not known, at once. spread: see `_spread`."""
    needed = unknown if device else [axis for axis in unknown if axis != "cu_count"]
    lacks = [*([] if device else ["the GPU"]), *needed]
    parts = [f"does not say {', '.join(lacks)}"] if lacks else []
    parts += [f"{text} (lock the clocks, or let all count as their mean)" for text, _ in
              spread.values()]  # fmt: skip
    flags = [] if device else ["--device NAME"]
    settings = [f"{SHORT_NAMES[axis]}=…" for axis in needed]
    settings += [f"{SHORT_NAMES[axis]}={mean:.0f}" for axis, (_, mean) in spread.items()]
    if settings:
        flags.append("--base " + ",".join(settings))
    hint = " with what the GPU was set to" if needed else ""
    hint += usual_memory(device) if "memory_mhz" in needed else ""
    request = f"{source}: {'; '.join(parts)}; give {' '.join(flags)}{hint}"
    if needed == unknown:
        return request
    more = (
        "a device file as NAME (edit what 'mlscale devices show KEY --format json' prints), or "
        "cu=… and times at a second engine clock (--also)"
    )
    return (
        f"{request}; for a GPU that the device table lacks, {more if needs_peaks else 'cu=… too'}"
    )


def usual_memory(device: str | None) -> str:
    """A GPU's highest memory clock, for one that has to be given; '' where it is not known."""
    known = find_device(device or "")
    highest_mhz = known.highest_mhz("memory_mhz") if known else None
    if highest_mhz is None:
        return ""
    return f" (memory: usually its highest, {highest_mhz:g})"


def _limit(facts: GpuFacts, unknown: list[str]) -> str:
    """The highest engine clock, for one that has to be given."""
    if "engine_limit_mhz" not in facts or "engine_mhz" not in unknown:
        return ""
    return f" (engine at most {_mean(facts['engine_limit_mhz']):g})"


def key_of(name: str, cu_count: float | None = None) -> str:
    """The key that tables give a GPU: of the device table, else its name in one word."""
    device = find_device(name, cu_count)
    return device.key if device else "-".join(name.lower().split())


def names_of_gpu(facts: GpuFacts) -> list[str | float]:
    """The names that files give the GPU; none where no file says it."""
    return list(facts.get("device_name") or facts.get("chip") or ())


def _warn_of_namesakes(source: str, name: str, own: Device) -> None:
    """Warn of a name that a board bears too which the device table lacks."""
    if name in own.aliases and name in own.shared_names:
        warn(f"{source}: '{name}' is taken for '{own.key}'. {own.note}")


def _device(source: str, facts: GpuFacts, device: str | None, cu_count: float | None) -> str | None:
    """The key of the device table, or any name that the user or the file gives; None without."""
    names = [without_controls(str(name)) for name in names_of_gpu(facts)]
    if len(names) > 1:
        raise InputError(f"{source}: is of several GPUs: {', '.join(sorted(names))}; import one")
    if device is not None:
        if len(several := devices_named(device, cu_count)) > 1:
            raise InputError(f"{source}: --device {device} may be {' or '.join(several)}; name one")
        known = find_device(device, cu_count)
        device = known.key if known else device
    if not names:
        return device
    [name] = names
    possible = devices_named(name, cu_count)
    own = find_device(name, cu_count)
    if device is None:
        device = key_of(name, cu_count)
        if own is not None:
            _warn_of_namesakes(source, name, own)
            return device
        why = f"may be {' or '.join(possible)}" if possible else "is not in the device table"
        warn(
            f"{source}: '{name}' {why}; the table's device is "
            f"'{device}' (--device gives another name)"
        )
    elif own is not None and device != own.key:
        raise InputError(
            f"{source}: is of '{name}', which is '{own.key}', not '{device}'; {_OF_ONE_GPU}"
        )
    elif possible and device in device_keys() and device not in possible:
        raise InputError(f"{source}: is of '{name}', not of '{device}'; {_OF_ONE_GPU}")
    elif not possible and device in device_keys():
        warn(
            f"{source}: is of '{name}', which is not in the device table; taken for '{device}', "
            "as --device says"
        )
    return device


def _mean_of(facts: GpuFacts, fact: str) -> float | None:
    """The mean of a fact; None where the files do not say it."""
    return _mean(facts[fact]) if facts.get(fact) else None


def _mean(counts: Counter[str | float]) -> float:
    return sum(float(value) * count for value, count in counts.items()) / sum(counts.values())


def _spread(
    source: str, facts: GpuFacts, base: Mapping[str, float]
) -> dict[str, tuple[str, float]]:
    """By clock that launches disagree in, and that the user did not say: the text, and the mean.

    Warns where their mean is what the user gave. Raises InputError where it is not, and where
    CU counts differ.
    """
    spread: dict[str, tuple[str, float]] = {}
    for axis in AXES:
        values = [float(value) for value in facts.get(axis, ())]
        low, high = min(values, default=1.0), max(values, default=1.0)
        if axis == "cu_count" and low != high:
            raise InputError(f"{source}: has launches on {low:g} and on {high:g} CUs; import one")
        if high <= (1 + CLOCK_TOLERANCE) * low:
            continue
        by = f" by {CYCLES}" if _is_by_cycles(facts, axis) else ""
        text = f"{axis}{by} is {low:g} in one launch and {high:g} in another"
        mean = _mean(facts[axis])
        if axis not in base:
            spread[axis] = (text, mean)
        elif abs(mean / base[axis] - 1) > CLOCK_TOLERANCE:
            raise InputError(
                f"{source}: {text}, --base says {base[axis]:g}; lock the clocks and profile "
                f"again, or let all count as their mean with --base {SHORT_NAMES[axis]}={mean:.0f}"
            )
        else:
            warn(f"{source}: {text}: all count as {base[axis]:g}, and times may be off by as much")
    return spread


def _listed(key: str | None, clock: str, observed_mhz: float) -> float:
    """The clock that the GPU offers and that was observed, but for rounding and drift.

    Of the engine's, that is the highest alone: below it, a clock that is not listed is a mean.
    """
    device = find_device(key) if key else None
    if device is None:
        return observed_mhz
    offered = device.memory_clocks_mhz()
    if clock == "engine_mhz":
        offered = tuple(mhz for mhz in device.engine_clocks_mhz()[-1:] if mhz < observed_mhz)
    nearest = min(offered, key=lambda mhz: abs(mhz - observed_mhz), default=observed_mhz)
    return nearest if abs(observed_mhz / nearest - 1) < LISTED_TOLERANCE else observed_mhz


def _clock(
    source: str,
    key: str | None,
    clock: str,
    base: Mapping[str, float],
    observed: Mapping[str, float],
    facts: GpuFacts,
) -> float | None:
    """The clock that was set, else the observed one, else the memory's highest, or its only one.

    Raises InputError where the observed one is at odds with what was set, or with the device.
    """
    if clock in observed:
        check_unit(f"{source}: {clock}", key or "", clock, observed[clock])
    if clock in base:
        if clock == "engine_mhz" and "engine_limit_mhz" in facts:
            highest_mhz = _mean(facts["engine_limit_mhz"])
            if base[clock] > highest_mhz:
                raise InputError(
                    f"{source}: the GPU has at most engine={highest_mhz:g} by the files, --base "
                    f"says {base[clock]:g}"
                )
        check_unit(f"{source}: {clock} of --base", key or "", clock, base[clock])
        own = observed.get(clock, base[clock])
        if abs(own / base[clock] - 1) > CLOCK_TOLERANCE:
            lock = "lock the clocks, and give ncu --clock-control none"
            if _is_by_cycles(facts, clock):
                lock = (
                    "lock the clocks, and leave out first launches, which run at an idle GPU's; or "
                    f"let {SHORT_NAMES[clock]}=… out: it is then as observed"
                )
            raise InputError(
                f"{source}: {clock} was {own:.0f} while profiling{_by_what(facts, clock)}, --base "
                f"says {base[clock]:g}; {lock}"
            )
        if abs(own / base[clock] - 1) > KEPT:
            warn(
                f"{source}: {clock} was {own:.0f} while profiling, "
                f"{100 * abs(own / base[clock] - 1):.2g} % off the {base[clock]:g} of --base, at "
                "which its times are taken all the same; where a limit of power or heat lowers "
                "the clock, take one below it"
            )
        return base[clock]
    if clock in observed:
        return _listed(key, clock, float(round(observed[clock])))
    if clock == "memory_mhz" and "memory_limit_mhz" in facts:
        limit_mhz = _mean(facts["memory_limit_mhz"])
        check_unit(f"{source}: {clock}", key or "", clock, limit_mhz)
        return float(round(limit_mhz))
    device = find_device(key) if clock == "memory_mhz" and key else None
    return None if device is None else device.working_memory_mhz


def _by_what(facts: GpuFacts, clock: str) -> str:
    """In brackets how an observed clock was computed, where no tool says it."""
    if not _is_by_cycles(facts, clock):
        return ""
    return f" (by {CYCLES} of its kernels of {CYCLES_FROM_S * 1e3:g} ms or more)"


def _is_by_cycles(facts: GpuFacts, clock: str) -> bool:
    return clock == "engine_mhz" and bool(facts.get("cycles_per_us"))


def _warn_of_clocks(source: str, clocks: Mapping[str, float], what: str) -> None:
    """Warn of clocks [MHz] that were not set by --base, if there are any."""
    if not clocks:
        return
    values = " and ".join(f"{clock} {value:.0f}" for clock, value in clocks.items())
    settings = ",".join(f"{SHORT_NAMES[clock]}=…" for clock in clocks)
    warn(
        f"{source}: {values} {'is' if len(clocks) == 1 else 'are'} {what}; if set to another, "
        f"give --base {settings}"
    )


def held_below_mhz(
    key: str, base: Mapping[str, float], observed: Mapping[str, float]
) -> float | None:
    """The GPU's highest engine clock [MHz], where ncu, by which a file is lower, may have held it.

    ncu is the one tool of NVIDIA's to tell the clock. None where the user said it (base).
    """
    device = find_device(key)
    highest_mhz = device.highest_mhz("engine_mhz") if device else None
    if device is None or device.vendor != "NVIDIA" or highest_mhz is None or "engine_mhz" in base:
        return None
    held = observed.get("engine_mhz", highest_mhz) < PINNED * highest_mhz
    return highest_mhz if held else None
