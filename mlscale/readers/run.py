"""The GPU of a run and its settings: by its files and what is given, never by both at odds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING

from mlscale.data.checks import check, check_named_clocks
from mlscale.data.devices import Device, device_keys, devices_named, find_device
from mlscale.data.grid import AXES, SHORT_NAMES, HardwareConfig
from mlscale.data.predicates import ABOVE_HIGHEST, APART, unlike_launches
from mlscale.errors import InputError, warn
from mlscale.parameters import command, parameter
from mlscale.readers.given import Given
from mlscale.text import without_controls

if TYPE_CHECKING:
    from mlscale.data.table import Table
    from mlscale.readers.launches import SummedFile
    from mlscale.readers.mapping import Feature

Seen = Mapping[str, Counter[str | float]]  # by fact of the GPU how often each value was seen
UNLISTED = "unlisted-gpu"  # one that has no name, of which the user says the number of CUs
UNNAMED = "does not say the GPU; if 'mlscale devices list' has it: {}"
KEPT = 0.02  # share of a clock: further off it was not kept, and times are off by as much
_LISTED = 0.01  # between a clock as a profiler counts it and as the vendor lists it
_FEW = 0.05  # share of the long kernels' time without a clock, as a first launch


@dataclass(frozen=True)
class Imported:
    """The tidy table of a run, with a description of it.

    Attributes:
        table: a row for each kernel and geometry, or for each launch; of logs for each GPU.
        tool: whose counters, or whose times, it has.
        titles: what each file is, in words.
        config: of the run; None for logs at several.
        launches: how many the rows represent; time_ms: their total time.
        covered: the share of it that kernels with counters take.
        features: each feature of Table II with its least near status over the kernels.
        gpus: the numbers of the GPUs that the files have launches on, where they say them.
    """

    table: "Table"
    tool: str
    titles: tuple[str, ...]
    config: HardwareConfig | None = None
    launches: int = 0
    time_ms: float = 0.0
    covered: float = 0.0
    features: "dict[str, Feature]" = field(default_factory=dict)
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class Setup:
    """The GPU of a run and its configuration.

    requested: the CUs and clocks that the user gave; observed: those in the files; dies: of the
    GPU, None if unknown.
    """

    device: str
    config: HardwareConfig
    requested: dict[str, float]
    observed: dict[str, float]
    dies: float | None = None


def seen_in(runs: "Sequence[SummedFile]") -> dict[str, Counter[str | float]]:
    """What all files say of the GPU.

    From a file that lists the GPUs of a machine, the one on which the launches of the other files
    ran is used. Raises InputError if these do not say which, and its GPUs differ.
    """
    seen: dict[str, Counter[str | float]] = {}
    ran = {run.gpu for run in runs if run.gpu}
    for run in runs:
        for fact, values in run.facts.seen.items():
            seen.setdefault(fact, Counter()).update(values)
        if run.groups:
            continue
        gpus = run.facts.by_gpu
        first, *others = (
            [gpus[gpu] for gpu in sorted(ran & gpus.keys())] or [*gpus.values()] or [{}]
        )
        if any(other != first for other in others):
            names = dict.fromkeys(str(facts.get("chip")) for facts in (first, *others))
            raise InputError(
                f"{run.source}: lists different GPUs ({', '.join(names)}); keep the row of the one "
                f"that ran, or omit this file and give {parameter('device')}"
            )
        for fact, value in first.items():
            seen.setdefault(fact, Counter())[value] += 1
    return seen


def set_up(source: str, seen: Seen, given: Given) -> Setup:
    """GPU, CU count and clocks: each as given, else as observed, else the only possible one.

    source: the first file, for messages. Raises InputError if one is unknown, naming all that
    are missing, and if the files contradict each other or what is given.
    """
    base = given.base
    key, note = _device(source, seen, given.device)
    if key is None and "cu_count" in base:
        key, note = UNLISTED, UNNAMED.format(parameter("device"))
    device = find_device(key) if key else None
    dies = _mean(seen, "xcd_count") or (device.dies if device else None)
    if clocks := _clocks_by_cycles(seen.get("cycles_per_us", Counter()), dies, device):
        seen = {**seen, "engine_mhz": clocks}
    observed = {axis: mean for axis in AXES if (mean := _mean(seen, axis)) is not None}
    settings = {"cu_count": _cu_count(source, device, base.get("cu_count"), observed, seen)}
    check_named_clocks(device, base)
    for clock in AXES[1:]:
        settings[clock] = _clock(source, device, clock, base.get(clock), observed.get(clock), seen)
    known = {axis: value for axis, value in settings.items() if value is not None}
    launches = {axis: seen[axis] for axis in AXES[1:] if seen.get(axis)}
    how = {axis: _by_what(seen, axis) for axis in launches}
    check("launch clocks", source, launches, base, how)
    unknown = [axis for axis in AXES if axis not in known]
    if note and "cu_count" not in unknown:  # else the error tells of the GPU
        warn("G03", f"{source}: {note}")
    if key is None or unknown:
        raise InputError(_request(source, key, unknown, _mean(seen, "engine_limit_mhz")))
    config = HardwareConfig(int(known["cu_count"]), known["engine_mhz"], known["memory_mhz"])
    setup = Setup(key, config, dict(base), observed, dies)
    _warn_of_clocks(source, setup)
    return setup


def _warn_of_clocks(source: str, setup: Setup) -> None:
    """Say which clocks were not given, and where ncu may have held one down."""
    clocks = setup.config.as_dict()
    for are_observed, what in (
        (True, "as the profiler observed"),
        (False, "the GPU's highest, as the file has no clock"),
    ):
        not_given = [axis for axis in AXES[1:] if axis not in setup.requested]
        if axes := [axis for axis in not_given if (axis in setup.observed) == are_observed]:
            values = " and ".join(f"{axis} {clocks[axis]:.0f}" for axis in axes)
            base = parameter("base", ",".join(f"{SHORT_NAMES[axis]}=…" for axis in axes))
            told = f"{values}, {what}; if it was set to another, give {base}"
            warn("L04", f"{source}: {told}", "note" if are_observed else "warning")
    if "engine_mhz" not in setup.requested:
        device = find_device(setup.device)
        check("profiled clock", source, device, setup.observed.get("engine_mhz"))


def _request(source: str, key: str | None, unknown: Sequence[str], limit_mhz: float | None) -> str:
    """What to ask for all that is not known, at once; limit_mhz: the engine's by the files."""
    lacks = [
        *([] if key else ["the GPU"]),
        *(axis for axis in unknown if key or axis != "cu_count"),
    ]
    asked = [axis for axis in lacks if axis in AXES]
    flags = [] if key else [parameter("device", "NAME")]
    clocks = ",".join(f"{SHORT_NAMES[axis]}=…" for axis in asked)
    flags += [parameter("base", clocks)] if asked else []
    hint = " with what the GPU was set to" if asked else " of 'mlscale devices list'"
    if "cu_count" in asked:
        hint += f" (cu: its SMs or compute units, as '{key}' is not in the device table)"
    device = find_device(key) if key else None
    highest_mhz = device.highest_mhz("memory_mhz") if device else None
    if "engine_mhz" in asked and limit_mhz:
        hint += f" (engine at most {limit_mhz:g})"
    if "memory_mhz" in asked and highest_mhz:
        hint += f" (memory: usually its highest, {highest_mhz:g})"
    if "cu_count" in unknown and not key:
        hint += (
            "; for a GPU that is not in the device table also cu=…, or a device file "
            f"('{command('devices show', 'help')}')"
        )
    return f"{source}: does not say {', '.join(lacks)}; give {' '.join(flags)}{hint}"


def key_of(name: str, cu_count: float | None = None) -> str:
    """The key that tables give a GPU: of the device table, else its name in one word."""
    device = find_device(name, cu_count)
    return device.key if device else "-".join(name.lower().split())


def names_of_gpu(seen: Seen) -> list[str]:
    """The names of the GPU in the files; none if no file has one."""
    names = {*seen.get("device_name", ())} - {""} or {*seen.get("chip", ())} - {""}
    return sorted(without_controls(str(name)) for name in names)


def _device(source: str, seen: Seen, given: str | None) -> tuple[str | None, str]:
    """The key of the device table, or any name that the user or the file gives; None without.

    And what to warn of, where a name tells not quite which it is. Raises InputError where both are
    at odds.
    """
    names, cu_count = names_of_gpu(seen), _mean(seen, "cu_count")
    if len(names) > 1:
        raise InputError(f"{source}: has several GPUs: {', '.join(names)}; import one")
    if given is not None:
        if len(several := devices_named(given, cu_count)) > 1:
            told = " or ".join(several)
            raise InputError(f"{source}: {parameter('device', given)} may be {told}; name one")
        known = find_device(given, cu_count)
        given = known.key if known else given
    if not names:
        return given, ""
    [name] = names
    possible, named = devices_named(name, cu_count), find_device(name, cu_count)
    if given is None:
        key = key_of(name, cu_count)
        if named is None:
            why = f"may be {' or '.join(possible)}" if possible else "is not in the device table"
            other = f"({parameter('device')} gives another name)"
            return key, f"'{name}' {why}; its device is '{key}' {other}"
        is_shared = name in named.aliases and name in named.shared_names
        return key, f"'{name}' is assumed to be '{named.key}'. {named.note}" if is_shared else ""
    is_known = given in device_keys()
    if possible and given not in possible and (named is not None or is_known):
        which = f"'{name}', which is '{named.key}'" if named is not None else f"'{name}'"
        raise InputError(
            f"{source}: is of {which}, not of '{given}'; predictions are for the settings of "
            "the GPU that ran, not of another GPU"
        )
    if possible or not is_known:
        return given, ""
    what = f"is of '{name}', which is not in the device table"
    return given, f"{what}; used as '{given}', as {parameter('device')} says"


def _mean(seen: Seen, fact: str) -> float | None:
    """The mean of a fact; None where the files do not say it."""
    if not (counts := seen.get(fact)):
        return None
    return sum(float(value) * count for value, count in counts.items()) / sum(counts.values())


def _cu_count(
    source: str, device: Device | None, given: float | None, observed: Mapping[str, float],
    seen: Seen,
) -> float | None:  # fmt: skip
    """The CUs that the user said, or the files, or all of the device's. Raises InputError."""
    if len(counts := sorted({float(count) for count in seen.get("cu_count", ())})) > 1:
        several = " and on ".join(f"{count:g}" for count in counts)
        raise InputError(f"{source}: has launches on {several} CUs; import one")
    said, whole = observed.get("cu_count"), device.cu_count if device else None
    if device and said == device.cu_count / 2 and device.architecture.startswith("RDNA"):
        said = float(device.cu_count)  # HIP counts them in pairs (ROCm/hip, issue 3767)
    if given is not None and said not in (None, given):
        told = f"says {said:g} CUs, {parameter('base')} says {given:g}; omit cu there"
        raise InputError(f"{source}: {told}")
    value = next((count for count in (given, said, whole) if count is not None), None)
    if device is None or value is None:
        return value
    if value > device.cu_count:
        raise InputError(
            f"{source}: {value:g} CUs are more than the {whole} of '{device.key}'; if it is "
            f"another GPU, name it with {parameter('device')}"
        )
    is_part = value < device.cu_count and said is not None
    if is_part and (given is None or device.vendor == "AMD"):
        raise InputError(
            f"{source}: {value:g} CUs are fewer than the {whole} of '{device.key}'; if it is "
            f"another GPU, name it with {parameter('device')}; for a part of this one give "
            f"NVIDIA's (MIG) with {parameter('base', f'cu={value:g}')}, and AMD's (DPX, CPX) with "
            f"{parameter('device', 'FILE')}, as it also has a part of the memory "
            f"('{command('devices show', 'help')}')"
        )
    return value


def _clock(
    source: str, device: Device | None, clock: str, given: float | None, observed: float | None,
    seen: Seen,
) -> float | None:  # fmt: skip
    """The clock [MHz] that was set, else the observed one, else the memory's highest or only one.

    Raises InputError where one cannot be the device's; warns where what was set was not kept.
    """
    where = f"{source}: {clock}"
    if observed is not None:
        check("value", where, device, clock, observed)
    if given is not None:
        check("value", f"{where} of {parameter('base')}", device, clock, given)
        limit_mhz = _mean(seen, "engine_limit_mhz") if clock == "engine_mhz" else None
        if limit_mhz is not None and given > limit_mhz:
            raise InputError(
                f"{source}: according to the files the GPU goes up to engine={limit_mhz:g}, but "
                f"{parameter('base')} says {given:g}"
            )
        off = abs(observed / given - 1) if observed is not None else 0.0
        told = unlike_launches([float(mhz) for mhz in seen.get(clock, ())])
        if told and off <= APART:
            warn(
                "L04",
                f"{where}{_by_what(seen, clock)} is {told}: {given:g} is used for all, and times "
                "may be wrong by as much",
            )
        elif KEPT < off <= APART:
            warn(
                "L04",
                f"{where} was {observed:.0f} while profiling{_by_what(seen, clock)}, "
                f"{100 * off:.2g} % off the {given:g} of {parameter('base')}, which is used; if "
                "a power or thermal limit lowers the clock, choose one below it",
            )
        return given
    if observed is not None:
        return _listed_clock(device, clock, float(round(observed)))
    if clock != "memory_mhz":
        return None
    if (limit_mhz := _mean(seen, "memory_limit_mhz")) is not None:
        check("value", where, device, clock, limit_mhz)
        return float(round(limit_mhz))
    return None if device is None else device.working_memory_mhz


def _listed_clock(device: Device | None, clock: str, observed_mhz: float) -> float:
    """The clock that the GPU offers and that was observed, but for rounding and drift.

    Of the engine's, that is the highest alone: below it, a clock that is not listed is a mean.
    """
    if device is None:
        return observed_mhz
    offered = device.memory_clocks_mhz()
    if clock == "engine_mhz":
        offered = tuple(mhz for mhz in device.engine_clocks_mhz()[-1:] if mhz < observed_mhz)
    nearest = min(offered, key=lambda mhz: abs(mhz - observed_mhz), default=observed_mhz)
    return nearest if abs(observed_mhz / nearest - 1) < _LISTED else observed_mhz


def _by_what(seen: Seen, clock: str) -> str:
    """In a message: how an observed clock was computed, where no tool says it."""
    from mlscale.readers.mapping import CYCLES

    return f" by {CYCLES}" if clock == "engine_mhz" and seen.get("cycles_per_us") else ""


def _clocks_by_cycles(
    rates: Counter[str | float], dies: float | None, device: Device | None
) -> Counter[str | float]:
    """The engine clocks [MHz] by `cycle_rates`, with their weights; none without a number of dies.

    What is a little above the device's highest clock is that clock. The slowest and the fastest
    few of the time are left out, such as a first launch on an idle GPU.
    """
    clocks: Counter[str | float] = Counter()
    highest_mhz = device.highest_mhz("engine_mhz") if device else None
    for rate, weight in rates.items() if dies else ():
        mhz = float(round(float(rate) / float(dies or 1.0)))
        if highest_mhz is not None and highest_mhz < mhz <= ABOVE_HIGHEST * highest_mhz:
            mhz = highest_mhz
        clocks[mhz] += weight
    ordered = sorted(clocks, key=float)
    few, ends = _FEW * clocks.total(), list(accumulate(clocks[mhz] for mhz in ordered))
    return Counter(
        {
            mhz: clocks[mhz]
            for mhz, end in zip(ordered, ends, strict=True)
            if few < end and end - clocks[mhz] < clocks.total() - few
        }
    )
