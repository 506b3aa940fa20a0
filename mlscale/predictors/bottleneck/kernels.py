"""What profiles tell of kernels and their GPU before any model: uses, peaks, and a rule's surfaces.

The largest uses that kernels reach are taken for the GPU's peaks. The rule max-overlap stands
beside the curve where it knows the GPU and its counters were taken.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.counters.features import TABLE_2
from mlscale.counters.kernel_use import SCHEDULERS, KernelUse, UseSources, inputs, kernel_use
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.papers.wang_chu_gpus import load_gpu, require_cu_count

Array = Any  # of NumPy or torch

TOP = 3  # peaks are the mean of so many largest uses
LEAST_PEAK = 1e-6  # of a use that no kernel shows
TYPICAL_SOFTNESS = 0.7  # of a CU's capacity: the waves that can issue twice what one can
RULE_WEIGHT = 0.25  # of max-overlap in the log time


@dataclass(frozen=True, eq=False)
class GpuPeaks:
    """One GPU at one base: its grid, and the largest uses that kernels reach on it.

    memory_peak: of the DRAM bandwidth; issue_peak: of a CU's issue, for many waves.
    """

    device: str
    grid: ConfigGrid
    base: HardwareConfig
    memory_peak: float
    issue_peak: float

    @classmethod
    def of(cls, device: str, grid: ConfigGrid, base: HardwareConfig, use: KernelUse) -> Self:
        """Take the peaks that some kernels show at the base; no times are looked at."""
        waves = waves_per_simd(use, np.array([float(base.cu_count)]))[:, 0]
        issue = active_issue(use, base.cu_count) / (1 + TYPICAL_SOFTNESS / waves)
        return cls(device, grid, base, _top(use.memory), _top(issue))

    def inputs(self, use: KernelUse) -> dict[str, Floats]:
        """Return the named inputs of kernels on this GPU, (K,) each, NaN where missing."""
        return inputs(use, use.memory / self.memory_peak)


def _top(values: Floats) -> float:
    """Return the mean of the largest few, and above 0."""
    return float(max(np.sort(np.nan_to_num(values))[-TOP:].mean(), LEAST_PEAK))


@dataclass(frozen=True, eq=False)
class KernelLoad:
    """What kernels ask of the parts of a GPU, at the base unless said otherwise.

    memory, issue (K,): use of the DRAM bandwidth, and of the issue of the CUs that have work, as
    a share of what the GPU reaches. waves_at_base (K,) and waves (K, C): waves per SIMD of the
    fullest CU, at C CU counts. unit (K,): use of the busiest unit of the CUs that have work, as a
    share of its peak. turns (K, C): log of how often the fullest CU is filled with waves, relative
    to the base; less than once counts as once.
    """

    memory: Array
    issue: Array
    waves_at_base: Array
    waves: Array
    unit: Array
    turns: Array

    @classmethod
    def of(cls, use: KernelUse, gpu: GpuPeaks, cu_count: Floats) -> Self:
        """Take what kernels use. A launch that is not known fills every CU alike."""
        base = gpu.base.cu_count
        at_base, waves = (waves_per_simd(use, of) for of in (np.array([float(base)]), cu_count))
        held = np.fmax(use.resident_waves, use.waves_per_workgroup)[:, None] / SCHEDULERS
        turns, turns_at_base = (np.log(np.fmax(own / held, 1)) for own in (waves, at_base))
        return cls(
            memory=use.memory / gpu.memory_peak,
            issue=active_issue(use, base) / gpu.issue_peak,
            waves_at_base=at_base[:, 0],
            waves=waves,
            unit=np.nan_to_num(use.unit) / active_share(use, base),
            turns=turns - turns_at_base,
        )


def waves_per_simd(use: KernelUse, cu_count: Floats) -> Floats:
    """Return waves per SIMD of the fullest CU, (K, C): a CU without a workgroup idles.

    A SIMD works at one wave at least.
    """
    workgroups = np.where(np.isnan(use.workgroups), 1e9, use.workgroups)[:, None]
    waves = np.where(np.isnan(use.waves_per_workgroup), 1.0, use.waves_per_workgroup)[:, None]
    return np.asarray(np.maximum(np.maximum(workgroups / cu_count, 1) * waves / SCHEDULERS, 1))


def active_issue(use: KernelUse, base_cu_count: int) -> Floats:
    """Return the issue rate of the CUs that have work, (K,); 0 where it is not known."""
    return np.nan_to_num(use.issue) / active_share(use, base_cu_count)


def active_share(use: KernelUse, base_cu_count: int) -> Floats:
    """Return the share of the CUs that have work, (K,); 1 where the launch is not known."""
    return np.asarray(np.fmin(1, use.workgroups / base_cu_count))


@dataclass(frozen=True, eq=False)
class KernelTraits:
    """What profiles tell of K kernels, before any model of them.

    rule (K, N): log time ratios by max-overlap, NaN for a kernel whose counters it cannot
    use; None where it knows none. launch: logs of the launch, and Table II's counters, (K,) each,
    by which kernels are told to be alike.
    """

    use: KernelUse
    rule: Floats | None
    launch: dict[str, Floats]

    @classmethod
    def of(
        cls,
        profiles: Profiles,
        grid: ConfigGrid,
        with_rule: bool,
        trained: UseSources | None = None,
    ) -> Self:
        """Take those of profiled kernels. Raises InputError, see `kernel_use`."""
        use = kernel_use(profiles, trained)
        with np.errstate(divide="ignore"):
            launch = {
                "log workgroups": np.log(use.workgroups),
                "log waves": np.log(use.waves_per_workgroup),
            }
        table_2 = {name: profiles.counter(name) for name in TABLE_2 if profiles.has_counter(name)}
        rule = rule_log_times(profiles, grid) if with_rule else None
        return cls(use, rule, {**launch, **table_2})

    def select(self, rows: Indices) -> Self:
        """Return the same of some kernels."""
        return type(self)(
            KernelUse(**{name: values[rows] for name, values in vars(self.use).items()}),
            None if self.rule is None else self.rule[rows],
            {name: values[rows] for name, values in self.launch.items()},
        )

    def at(self, configurations: Indices) -> Self:
        """Return the same with the rule's log time ratios at some configurations."""
        return replace(self, rule=None if self.rule is None else self.rule[:, configurations])

    @property
    def rule_and_weight(self) -> tuple[Floats, Floats] | None:
        """The rule's log time ratios (K, N), 0 where it has none, and its weight (K, 1)."""
        if self.rule is None:
            return None
        lacks = np.isnan(self.rule)
        return np.where(lacks, 0.0, self.rule), np.where(lacks[:, :1], 0.0, RULE_WEIGHT)

    def similarity(self, gpu: GpuPeaks) -> dict[str, Floats]:
        """Return what makes kernels alike: the curve's inputs, the launch, Table II's counters."""
        return {**gpu.inputs(self.use), **self.launch}


def rule_log_times(profiles: Profiles, grid: ConfigGrid) -> Floats | None:
    """Return log time ratios (K, N) by max-overlap; None where it does not know the GPU.

    NaN for a kernel whose counters it needs are not there or contradict one another.
    """
    if not rule_knows(profiles, grid):
        return None
    from mlscale.papers.max_overlap import max_overlap_factor
    from mlscale.papers.wang_chu_inputs import derive_inputs, missing_counters

    gpu = load_gpu(profiles.device)
    settings, base = grid.settings(), profiles.base
    clocks = base.engine_mhz, base.memory_mhz
    targets = settings["engine_mhz"], settings["memory_mhz"]
    logs = np.full((len(profiles.kernels), grid.size), np.nan)

    def fill(rows: list[int]) -> None:
        """Halve the kernels until those that the rule refuses are alone."""
        part = profiles.select(rows)
        with suppress(InputError):
            warps = derive_inputs(part, gpu)
            factors = max_overlap_factor(warps, gpu, clocks, part.time_ms, *targets)
            logs[rows] = np.log(factors)
            return
        if len(rows) > 1:
            fill(rows[: len(rows) // 2])
            fill(rows[len(rows) // 2 :])

    if not missing_counters(profiles.counter_names):
        fill(list(range(len(logs))))
    return logs


def rule_knows(profiles: Profiles, grid: ConfigGrid) -> bool:
    """Return whether max-overlap knows the GPU and all these CU counts."""
    try:
        require_cu_count(load_gpu(profiles.device), (profiles.base.cu_count, *grid.cu_count))
    except InputError:
        return False
    return True


def rule_applies(profiles: Profiles, grid: ConfigGrid) -> bool:
    """Return whether max-overlap knows the GPU, and the profiles have its counters."""
    from mlscale.papers.wang_chu_inputs import missing_counters

    return rule_knows(profiles, grid) and not missing_counters(profiles.counter_names)
