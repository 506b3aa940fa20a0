"""What a trained time model of `bottleneck` knows, and how it predicts: NumPy only."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices, Mask, shaped
from mlscale.counters.features import TABLE_2
from mlscale.counters.kernel_use import KernelUse, UseSources, kernel_use
from mlscale.data.device import LARGEST_SHARE
from mlscale.data.extrapolation import carried, positions
from mlscale.data.grid import ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.papers.wang_chu_gpus import load_gpu, require_cu_count
from mlscale.predictors.bottleneck.correction import Correction
from mlscale.predictors.bottleneck.curve import (
    Array,
    BottleneckCurve,
    GpuPeaks,
    GridRatios,
    KernelLoad,
    curve_priors,
    latent_count,
)
from mlscale.predictors.bottleneck.process import Process
from mlscale.predictors.bottleneck.time_trees import TimeTrees
from mlscale.predictors.conditioning import SurfacePrior
from mlscale.predictors.intervals import distance_from_base, least_scale

RULE_WEIGHT = 0.25  # of max-overlap in the log time
ABOVE_PEAK = "{:.2f} times the DRAM bytes that can pass: time, clocks, GPU or counters are wrong"
UNEXPLAINED_VARIANCE = 0.5  # of the latents, whatever the inputs


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
    def without_rule(self) -> Mask:
        """Which kernels the rule has nothing to say of, (K,)."""
        count = len(self.use.memory)
        return np.ones(count, bool) if self.rule is None else np.isnan(self.rule[:, 0])

    def similarity(self, gpu: GpuPeaks) -> dict[str, Floats]:
        """Return what makes kernels alike: the curve's inputs, the launch, Table II's counters."""
        return {**gpu.inputs(self.use), **self.launch}


def blended(log_time: Array, rule: Array, weight: Array) -> Array:
    """Return log time ratios (K, N) of the curve and the rule; weight (K, 1) of the rule."""
    return (1 - weight) * log_time + weight * rule


def rule_and_weight(kernels: KernelTraits) -> tuple[Floats, Floats] | None:
    """Return the rule's log time ratios (K, N), 0 where it has none, and its weight (K, 1)."""
    if kernels.rule is None:
        return None
    weight = np.where(kernels.without_rule, 0.0, RULE_WEIGHT)[:, None]
    return np.nan_to_num(kernels.rule), weight


@dataclass(frozen=True, eq=False)
class TimeModel:
    """A trained model. values: the curve's numbers by name, see `curve_priors`.

    shares: 1 (memory), or 2 where a training table has several CU counts. uses_rule: whether
    max-overlap stands beside the curve. Of each GPU, corrections: what the curve misses;
    misfits: see `SurfacePrior`; trees: None where they do not help. parts: with
    several CU counts the models without a group of applications, whose mean the curve gives.
    """

    gpus: tuple[GpuPeaks, ...]
    values: dict[str, Floats]
    process: Process
    shares: int
    uses_rule: bool
    corrections: tuple[Correction | None, ...]
    misfits: tuple[Floats, ...]
    trees: tuple[TimeTrees | None, ...]
    parts: tuple["TimeModel", ...] = ()

    @property
    def alone(self) -> Self:
        """The curve alone: without parts, corrections and trees."""
        none = (None,) * len(self.gpus)
        return replace(self, corrections=none, trees=none, parts=())

    def prior(self, kernels: KernelTraits, gpu: GpuPeaks, number: int | None) -> SurfacePrior:
        """Return what is known of the log time ratios (K, N) before any further measured point.

        number: of the GPU among the trained ones, None for another. On a grid that goes beyond the
        trained one, corrections and misfit stay what they are at its nearest step; on one that
        does not hold all of its steps there are none.
        """
        points = self.process.points_of(gpu.inputs(kernels.use))
        mean, variance = self.process.latents(points, number)
        trained = gpu.grid if number is None else self.gpus[number].grid
        home = None if number is None else positions(trained, gpu.grid)
        misfit = np.zeros((1, gpu.grid.size))
        if number is not None and home is not None:
            misfit = carried(self.misfits[number], trained, gpu.grid)
        ratios = GridRatios.of(gpu.grid, gpu.base, trained)
        load = KernelLoad.of(kernels.use, gpu, ratios.cu_count)
        curve = BottleneckCurve.of(np, self.values, number, load, ratios)
        rule = rule_and_weight(kernels) if self.uses_rule else None
        base = [gpu.grid.position(gpu.base)] if gpu.base in gpu.grid else None

        def log_ratios(latents: Floats) -> Floats:
            log_time: Floats = curve.log_time(latents)
            if rule is not None:
                log_time = blended(log_time, *rule)
            return log_time if base is None else log_time - log_time[:, base]

        missed = np.zeros(gpu.grid.size)
        if number is not None and gpu.grid == trained:
            if self.parts or self.corrections[number] or self.trees[number]:
                missed = self._missed(kernels, gpu, number, log_ratios(mean))
        elif number is not None and home is not None:
            at_home = self.prior(kernels.at(home), self.gpus[number], number).predicted()
            missed = carried(at_home - log_ratios(mean)[:, home], trained, gpu.grid)
        missed = missed if base is None else missed - missed[..., base]
        variances = np.broadcast_to(variance + UNEXPLAINED_VARIANCE, mean.shape)
        return SurfacePrior(lambda latents: log_ratios(latents) + missed, mean, variances, misfit)

    def _missed(
        self, kernels: KernelTraits, gpu: GpuPeaks, number: int, by_curve: Floats
    ) -> Floats:
        """Return what to add to the log time ratios (K, N) that this one curve gives."""
        best = by_curve
        if self.parts:
            own = [part.prior(kernels, part.gpus[number], number) for part in self.parts]
            best = np.mean([prior.predicted() for prior in own], axis=0)
        correction, trees = self.corrections[number], self.trees[number]
        if correction is not None:
            best = best + correction.predict(kernels.similarity(gpu), best)
        if trees is not None:
            best = blended(best, trees.predict(kernels.similarity(gpu)), trees.weight)
        return best - by_curve

    def interval_scale(self, kernels: KernelTraits, gpu: GpuPeaks, prior: SurfacePrior) -> Floats:
        """Return what the intervals' half-widths are proportional to, (K, N) in log ratio.

        Wider far from the base, where a share's uncertainty tells, and for a kernel unlike all
        training kernels.
        """
        points = self.process.points_of(gpu.inputs(kernels.use))
        strangeness = 1 + self.process.distance(points)
        least = least_scale(distance_from_base(gpu.grid, gpu.base))
        return np.asarray(strangeness[:, None] * (prior.spread(self.shares) + least))

    def mean_peaks(self, device: str, grid: ConfigGrid, base: HardwareConfig) -> GpuPeaks:
        """Return a GPU that is taken to reach what the trained ones do on average."""
        memory, issue = np.mean([(gpu.memory_peak, gpu.issue_peak) for gpu in self.gpus], axis=0)
        return GpuPeaks(device, grid, base, float(memory), float(issue))

    def flags(self, kernels: KernelTraits, gpu: GpuPeaks) -> list[list[str]]:
        """Return what each kernel's prediction rests on that the reader should know."""
        flags = self.process.flags(gpu.inputs(kernels.use))
        for k in np.flatnonzero(kernels.use.memory > LARGEST_SHARE):
            flags[k].append(ABOVE_PEAK.format(kernels.use.memory[k]))
        if self.uses_rule and kernels.rule is None:
            for own in flags:
                own.append("max-overlap does not know this GPU: left out")
        elif self.uses_rule:
            for k in np.flatnonzero(kernels.without_rule):
                flags[k].append("max-overlap left out: its counters lack or contradict")
        return flags

    def state(self) -> dict[str, Any]:
        """Return arrays and JSON values for the model file."""
        gpus = [
            {
                "device": gpu.device,
                **grid_state(gpu.grid, gpu.base),
                "memory_peak": gpu.memory_peak,
                "issue_peak": gpu.issue_peak,
            }
            for gpu in self.gpus
        ]
        return {
            "gpus": gpus,
            "values": self.values,
            "process": self.process.state(),
            "shares": self.shares,
            "uses_other": self.uses_rule,
            "corrections": [None if c is None else c.state() for c in self.corrections],
            "misfits": list(self.misfits),
            "trees": [None if own is None else own.state() for own in self.trees],
            "parts": [part.state() for part in self.parts],
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """Return the model that `state` described; a damaged one raises KeyError or ValueError."""
        gpus = []
        for saved in state["gpus"]:
            peaks = float(saved["memory_peak"]), float(saved["issue_peak"])
            if not min(peaks) > 0:
                raise ValueError("a peak is not positive")
            gpus.append(GpuPeaks(str(saved["device"]), *restore_grid(saved), *peaks))
        shares = int(state["shares"])
        if shares not in (1, 2):
            raise ValueError(f"a model has 1 or 2 shares, not {shares}")
        priors = curve_priors([gpu.grid for gpu in gpus], shares)
        parts = tuple(cls.restore(part) for part in state.get("parts", ()))
        places = [(gpu.device, gpu.grid, gpu.base) for gpu in gpus]
        if any([(g.device, g.grid, g.base) for g in part.gpus] != places for part in parts):
            raise ValueError("a part of the model is for another GPU")
        trees = state.get("trees", [None] * len(gpus))  # older files lack them
        return cls(
            gpus=tuple(gpus),
            values={n: shaped(state["values"][n], *prior.shape) for n, prior in priors.items()},
            process=Process.restore(state["process"], latent_count(shares)),
            shares=shares,
            uses_rule=bool(state["uses_other"]),
            corrections=tuple(
                None if saved is None else Correction.restore(saved, gpu.grid.size)
                for gpu, saved in zip(gpus, state["corrections"], strict=True)
            ),
            misfits=tuple(
                shaped(misfit, None, gpu.grid.size)
                for misfit, gpu in zip(state["misfits"], gpus, strict=True)
            ),
            trees=tuple(
                None if saved is None else TimeTrees.restore(saved, gpu.grid.size)
                for gpu, saved in zip(gpus, trees, strict=True)
            ),
            parts=parts,
        )


def rule_log_times(profiles: Profiles, grid: ConfigGrid) -> Floats | None:
    """Return log time ratios (K, N) by max-overlap; None where it does not know the GPU.

    NaN for a kernel whose counters it needs are not there or contradict one another.
    """
    if not rule_knows(profiles, grid):
        return None
    from mlscale.papers.max_overlap import max_overlap_factor
    from mlscale.papers.wang_chu_inputs import derive_inputs, missing_counters

    gpu = load_gpu(profiles.device)
    engine, memory = (
        mesh.ravel() for mesh in np.meshgrid(grid.engine_mhz, grid.memory_mhz, indexing="ij")
    )
    clocks = (profiles.base.engine_mhz, profiles.base.memory_mhz)
    logs = np.full((len(profiles.kernels), engine.size), np.nan)

    def fill(rows: list[int]) -> None:
        """Halve the kernels until those that the rule refuses are alone."""
        part = profiles.select(rows)
        with suppress(InputError):
            known = derive_inputs(part, gpu)
            factors = max_overlap_factor(known, gpu, clocks, part.time_ms, engine, memory)
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
    if not rule_knows(profiles, grid):
        return False
    from mlscale.papers.wang_chu_inputs import missing_counters

    return not missing_counters(profiles.counter_names)
