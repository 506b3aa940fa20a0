"""Profilers' files of a run as its table, a row for each kernel and geometry, or each launch."""

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats, floats_of
from mlscale.counters.features import TABLE_2
from mlscale.data.checks import check, notes_on
from mlscale.data.devices import LARGEST_SHARE, facts_to_carry, find_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.predicates import held_clock
from mlscale.data.profiles import Profiles
from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError, warn
from mlscale.files import ByteProgress, no_progress
from mlscale.parameters import parameter
from mlscale.readers.given import Given
from mlscale.readers.join import LONG_S, Kernel, join
from mlscale.readers.launches import SummedFile
from mlscale.readers.mapping import (
    CYCLES,
    CYCLES_FROM_S,
    Feature,
    Scope,
    Share,
    nvprof_counters,
    peak_shares,
    table_features,
)
from mlscale.readers.run import Imported, Setup, seen_in, set_up
from mlscale.readers.source import Source, source_of, with_sysinfo
from mlscale.text import listed, share_in_percent, shortened, without_controls

_SAME_CLOCK = 1.2  # between a kernel's times, counted and traced, at one clock
_ROCM = {"rocprof", "rocprofv3"}
_VENDORS = {"ncu": "NVIDIA", "nsys": "NVIDIA", **dict.fromkeys(_ROCM, "AMD")}


@dataclass(frozen=True)
class RunFeatures:
    """What the tool's formulas make of each kernel's counters, by kernel in their order."""

    table_2: list[dict[str, Feature]]
    shares: list[dict[str, Share]]
    nvprof: list[dict[str, float]]

    def least_near(self) -> dict[str, Feature]:
        """Each feature of Table II: the least near of the kernels that have it."""
        rank = ("nearest", "exact", "missing")
        return {
            name: min((one[name] for one in self.table_2), key=lambda f: rank.index(f.status))
            for name in TABLE_2
        }

    def sources(self) -> dict[str, str]:
        """By column from what its shares were computed, where kernels differ all of it."""
        sources: dict[str, dict[str, None]] = {}
        for shares in self.shares:
            for name, share in shares.items():
                sources.setdefault(name, {})[share.source] = None
        return {name: "; ".join(texts) for name, texts in sources.items()}


def read_exports(sources: Sequence[Source], given: Given, progress: ByteProgress) -> Imported:
    """The table of profilers' files."""
    sources = with_sysinfo(sources)
    runs = [source.launches(given.each, given.gpu, progress) for source in sources]
    _refuse_copies([run for run in runs if run.groups])
    tool = _tool_of_counters(runs)
    kernels = join(runs, given.skip_untimed)
    first = next(run.source for run in runs if run.groups)
    seen = {**seen_in(runs), "cycles_per_us": cycle_rates(kernels)}
    setup = set_up(first, seen, given)
    if traces := [run.source for run in runs if run.groups and not run.has_counters]:
        check_clock_of_counters(traces[0], kernels, setup)
    kernels = without_failed_reads(first, kernels, setup)
    features = features_of(tool, kernels, setup)
    check_traffic(first, kernels, features, setup)
    programs = [run.facts.application for run in runs if run.facts.application]
    application = without_controls(given.application or (*programs, Path(first).stem)[0])
    table = table_of(first, tool, kernels, features, setup, application)
    table.metadata["source"] = ", ".join(source.path.name for source in sources)
    table.metadata.update(_gpu_metadata(runs, given.gpu))
    warn_of_left_out(runs, kernels)
    time_s = run_time_s(kernels)
    return Imported(
        table,
        tool,
        tuple(run.kind.title for run in runs),
        setup.config,
        round(sum(kernel.launches for kernel in kernels)),
        time_s * 1e3,
        run_time_s([kernel for kernel in kernels if kernel.counters]) / time_s,
        features.least_near(),
        tuple(sorted({gpu for run in runs for gpu in run.gpus})),
    )


def _refuse_copies(runs: Sequence[SummedFile]) -> None:
    """Raise InputError where two files hold the same launches: neither a pass nor a run of its own.

    Times and counters of two runs are never the same to the last digit.
    """
    for n, run in enumerate(runs):
        for other in runs[:n]:
            if run.groups == other.groups:
                raise InputError(
                    f"{run.source}: is the same as {other.source}; omit it, or give a file of "
                    "another pass or run"
                )


def _tool_of_counters(runs: Sequence[SummedFile]) -> str:
    """The tool whose counters these are, or whose times. Raises InputError on unlike files."""
    first = next((run for run in runs if run.has_counters), runs[0])
    tool = first.kind.tool
    for run in runs:
        other = run.kind.tool
        is_one_tool = other == tool or {other, tool} == _ROCM
        makers = {_VENDORS.get(other), _VENDORS.get(tool)} - {None}
        if not is_one_tool and (run.has_counters or len(makers) > 1):
            raise InputError(
                f"{run.source}: is from {other}, {first.source} from {tool}; combine counters "
                "of one tool only with traces of the same vendor's GPUs"
            )
    return tool


def _gpu_metadata(runs: Sequence[SummedFile], gpu: str | None) -> dict[str, list[str]]:
    """The GPU as metadata name it: by the traces' numbers, or by one that no trace has.

    Such a one is of a log, or of the machine where CUDA_VISIBLE_DEVICES renumbers.
    """
    traced = list(dict.fromkeys(run.gpu for run in runs if run.gpu))
    if gpu is not None and gpu not in traced:
        return {"gpus": [gpu]}
    return {"profiled_gpus": traced} if traced else {}


def read_again(
    files: Sequence[Path | Source], trace: Path | Source, first: Profiles, at: HardwareConfig,
    gpu: str | None = None,
) -> Table:  # fmt: skip
    """Read the trace of a further run of an application, under the names that its counters have.

    files: those of the first run, of which only the counters are used. trace: of the further
    run; it may also be counters, if the times of the first run are of its counters too. at: what
    the GPU was set to then. Raises InputError.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the first reading told them
        sources, again = [source_of(file) for file in files], source_of(trace)
        runs, further = [source.launches(gpu=gpu) for source in sources], again.launches(gpu=gpu)
        _refuse_copies([*(run for run in runs if run.groups), further])
        counting = [one for one, run in zip(sources, runs, strict=True) if run.has_counters]
        sources, base = [*counting, again], first.base
        if further.has_counters:
            if len(counting) < sum(bool(run.groups) for run in runs):
                raise InputError(
                    f"{again.path}: has counters, and times while counting differ from a trace's; "
                    "give a trace of the further run too"
                )
            sources, base = [again], at
        given = Given(first.device, base.as_dict(), gpu)
        table = read_exports(sources, given, no_progress).table
    settings = {axis: np.full(len(table), value) for axis, value in at.as_dict().items()}
    return replace(table, numbers=table.numbers | settings)


def cycle_rates(kernels: Iterable[Kernel]) -> Counter[str | float]:
    """Cycles of all dies per µs of each long kernel of AMD's, weighted by its time in the run [µs].

    No tool of AMD's says a kernel's clock. GRBM_GUI_ACTIVE counts the engine's cycles in each die
    while the GPU works, and counters run one kernel at a time.
    """
    rates: Counter[str | float] = Counter()
    for kernel in kernels:
        time_s, cycles = kernel.counted_time_s, kernel.counters.get(CYCLES)
        if cycles and time_s and time_s >= CYCLES_FROM_S:
            rates[cycles / (time_s * 1e6)] += max(1, round(kernel.run_s * 1e6))
    return rates


def check_clock_of_counters(trace: str, kernels: Sequence[Kernel], setup: Setup) -> None:
    """Warn where kernels took other times while they were counted than in the trace.

    trace: its name. Raises InputError where the clock was observed while counting and the user
    has not said that both runs were at it.
    """
    ratios = sorted(
        (kernel.counted_time_s / kernel.time_s, kernel.run_s)
        for kernel in kernels
        if kernel.is_traced and kernel.counted_time_s
        if min(kernel.counted_time_s, kernel.time_s) > LONG_S
    )
    passed_s = list(accumulate(run_s for _, run_s in ratios))
    at_half = next((n for n, end_s in enumerate(passed_s) if end_s >= passed_s[-1] / 2), None)
    slower = 1.0 if at_half is None else ratios[at_half][0]  # the median over the run's time
    if 1 / _SAME_CLOCK <= slower <= _SAME_CLOCK:
        return
    told = f"{trace}: kernels took {slower:.2g} times as long while they were counted"
    counted_mhz = setup.observed.get("engine_mhz")
    is_of_cycles = any(CYCLES in kernel.counters for kernel in kernels)
    is_held = held_clock(find_device(setup.device), counted_mhz) is not None
    is_said = counted_mhz is None or "engine_mhz" in setup.requested
    if not is_said and (slower < 1 or is_of_cycles or is_held):
        raise InputError(
            f"{told}, at {counted_mhz:.0f} MHz: its clock was another, as a power or thermal limit "
            "lowers it, or ncu sets its own (unless --clock-control none is given). Lock both "
            "runs at one clock that the board can hold; or, if both were at that clock, give "
            f"{parameter('base', f'engine={counted_mhz:.0f}')}"
        )
    warn("L04", f"{told}: were the clocks different? Then counters do not match the times")


def without_failed_reads(source: str, kernels: list[Kernel], setup: Setup) -> list[Kernel]:
    """The kernels without FETCH_SIZE where RDNA counted no byte that any of them read.

    Sources: AMD's "Using rocprofv3", setting the performance level; ROCm/rocm-systems, pull request
    8022 (gfx12). Warns of it.
    """
    device = find_device(setup.device)
    reads, written = (
        [kernel.counters[name] for kernel in kernels if name in kernel.counters]
        for name in ("FETCH_SIZE", "WRITE_SIZE")
    )
    is_rdna = device is not None and device.architecture.startswith("RDNA")
    if not (is_rdna and reads and not any(reads) and any(written)):
        return kernels
    warn(
        "T10",
        f"{source}: FETCH_SIZE is 0 in all kernels, though they write: a known fault of RDNA; it "
        "counts as missing. Profile again after amd-smi set -g 0 --perf-level STABLE_STD",
    )
    return [
        replace(one, counters={n: v for n, v in one.counters.items() if n != "FETCH_SIZE"})
        for one in kernels
    ]


def features_of(tool: str, kernels: Sequence[Kernel], setup: Setup) -> RunFeatures:
    """Features of Table II, shares of peak and nvprof's counters at the run's configuration."""
    device = find_device(setup.device)
    run_facts: dict[str, float | None] = {
        "cu_count": setup.config.cu_count,
        "engine_hz": setup.config.engine_mhz * 1e6,
        "xcd_count": setup.dies,
    }
    if device is not None:
        peak = device.peak_bandwidth_gb_per_s(setup.config.memory_mhz) * 1e9
        run_facts |= {"peak_bytes_per_s": peak, "se_count": device.se_count}
    features = RunFeatures([], [], [])
    for kernel in kernels:
        facts = run_facts | {
            "time_s": kernel.counted_time_s or kernel.time_s,
            "workgroups": kernel.workgroups,
            "warps": _warps(kernel),
        }
        table_2 = table_features(Scope(tool, kernel.counters, kernel.cycles, facts))
        facts |= {name: feature.value for name, feature in table_2.items()}
        scope = Scope(tool, kernel.counters, kernel.cycles, facts)
        features.table_2.append(table_2)
        features.shares.append(peak_shares(scope))
        features.nvprof.append(nvprof_counters(scope))
    return features


def check_traffic(
    source: str, kernels: Sequence[Kernel], features: RunFeatures, setup: Setup
) -> None:
    """Raise InputError where more DRAM bytes are said to pass than can.

    AMD's L2 counts hits of the last cache too, so there they are warned of.
    """
    names = [kernel.name for kernel in kernels]
    used = [
        shares["dram_utilisation"].value if "dram_utilisation" in shares else 0.0
        for shares in features.shares
    ]
    facts = (names, used, LARGEST_SHARE, setup.device, setup.config.memory_mhz)
    device = find_device(setup.device)
    if device is None or device.vendor != "AMD":
        check("traffic", source, *facts)
        return
    for note in notes_on("traffic", *facts, source=source):
        warn(note.code, f"{note}; or it includes hits of AMD's last-level cache")


def table_of(
    source: str, tool: str, kernels: Sequence[Kernel], features: RunFeatures, setup: Setup,
    application: str,
) -> Table:  # fmt: skip
    """The tidy table: a row for each kernel and geometry, or launch. Raises InputError on times."""
    names, count = _row_names(kernels), len(kernels)
    numbers = {
        axis: np.full(count, float(setting)) for axis, setting in setup.config.as_dict().items()
    }
    numbers["time_ms"] = np.array([kernel.time_s * 1e3 for kernel in kernels])
    numbers |= _columns([{n: one.value for n, one in row.items()} for row in features.table_2])
    numbers |= _columns([{n: one.value for n, one in row.items()} for row in features.shares])
    numbers |= _columns(
        [
            {"workgroups": kernel.workgroups, "workgroup_size": kernel.workgroup_size}
            for kernel in kernels
        ]
    )
    if any(features.nvprof) and "workgroups" in numbers:
        numbers["warps"] = floats_of(map(_warps, kernels))
    counters = _columns([kernel.counters for kernel in kernels])
    taken = {*TABLE_2, *numbers}
    numbers |= {name: counters[name] for name in sorted(counters) if name not in taken}
    for name in dict.fromkeys(name for row in features.nvprof for name in row):
        numbers[name] = floats_of(row.get(name) for row in features.nvprof)
    launches = _sums_by_name(names, [kernel.launches for kernel in kernels])
    numbers["launches"] = np.array(launches)
    is_traced = [kernel.is_traced for kernel in kernels]
    if any(is_traced):
        total_ms = _sums_by_name(names, [kernel.run_s * 1e3 for kernel in kernels])
        numbers["total_time_ms"] = np.where(is_traced, total_ms, np.nan)
    metadata = {
        "origin": "measured",
        "counter_tool": tool,
        "feature_status": {name: one.status for name, one in features.least_near().items()},
        "utilisation_sources": features.sources(),
        "clocks": {"requested": setup.requested, "observed": setup.observed},
        "launches": {
            name: {
                "function": kernel.name,
                "workgroups": kernel.workgroups,
                "workgroup_size": kernel.workgroup_size,
                "launches": launches_of_name,
            }
            for name, kernel, launches_of_name in zip(names, kernels, launches, strict=True)
        },
        **facts_to_carry(setup.device),
    }
    text = {"device": [setup.device] * count, "application": [application] * count, "kernel": names}
    table = Table(source, text, numbers, metadata)
    table.positive("time_ms")
    return table


def _columns(rows: Sequence[Mapping[str, float | None]]) -> dict[str, Floats]:
    """Numbers by name of each row as columns, NaN where a row lacks one, if any row has it."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: floats_of(row.get(name) for row in rows) for name in names}
    return {name: values for name, values in columns.items() if not np.isnan(values).all()}


def _warps(kernel: Kernel) -> float | None:
    """Warps of a launch of NVIDIA's GPUs; None where its geometry is not known."""
    if kernel.workgroups is None or kernel.workgroup_size is None:
        return None
    return kernel.workgroups * math.ceil(kernel.workgroup_size / 32)


def _sums_by_name(names: Sequence[str], values: Sequence[float]) -> list[float]:
    """For each row the sum over all rows of its name, such as launches that stand apart."""
    sums = dict.fromkeys(names, 0.0)
    for name, value in zip(names, values, strict=True):
        sums[name] += value
    return [sums[name] for name in names]


def _row_names(kernels: Sequence[Kernel]) -> list[str]:
    """A name for each; grid and block are added where one function has several geometries."""
    geometries = Counter(
        name for name, *_ in {(one.name, one.workgroups, one.workgroup_size) for one in kernels}
    )
    return [
        kernel.name
        if geometries[kernel.name] == 1
        else f"{kernel.name} [grid {kernel.workgroups or 0:.0f}, "
        f"block {kernel.workgroup_size or 0:.0f}]"
        for kernel in kernels
    ]


def warn_of_left_out(runs: Sequence[SummedFile], kernels: Sequence[Kernel]) -> None:
    """Warn of what the files have and the table lacks: launches without a time, uncounted kernels.

    Of times alone nothing is said: nothing was counted.
    """
    for run in runs:
        if run.dropped:
            lost = sorted(run.untimed - {key.kernel for key in run.groups})
            names = [f"'{shortened(name)}'" for name in lost]
            more = f", and with them all of {listed(names)}" if names else ""
            warn(
                "T09",
                f"{run.source}: {run.dropped} rows without a positive time are left out{more}",
            )
    uncounted = [kernel for kernel in kernels if not kernel.counters]
    if uncounted and len(uncounted) < len(kernels):
        source = next((run.source for run in runs if run.groups and not run.has_counters), "")
        longest = sorted(uncounted, key=lambda kernel: -kernel.run_s)
        names = [f"'{shortened(name)}'" for name in dict.fromkeys(k.name for k in longest)]
        percent = share_in_percent(run_time_s(uncounted) / run_time_s(kernels))
        warn(
            "T06",
            f"{source or runs[0].source}: without counters: {listed(names)}, {percent} % of the "
            "run's time",
        )


def run_time_s(kernels: Iterable[Kernel]) -> float:
    """The time of all launches of all kernels [s]."""
    return math.fsum(kernel.run_s for kernel in kernels)
