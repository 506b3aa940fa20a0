"""What a trained time model of `bottleneck` knows, and how it predicts: NumPy only."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, positive, shaped
from mlscale.counters.kernel_use import KernelUse, input_names, inputs, kernel_use
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.papers.wang_chu import predict_time_factor
from mlscale.papers.wang_chu_gpus import load_gpu, require_cu_count
from mlscale.papers.wang_chu_inputs import derive_inputs, missing_counters
from mlscale.predictors.bottleneck.correction import Correction, similarity
from mlscale.predictors.bottleneck.curve import (
    CORE,
    MEMORY,
    SLOWING_SCALE,
    Load,
    Process,
    Targets,
    active_issue,
    bottleneck_curve,
    log_load_ratio,
    physics_logit,
)
from mlscale.predictors.conditioning import Law

Flags = tuple[tuple[str, ...], ...]

TOP = 3  # peaks are the mean of so many largest uses
LEAST_PEAK = 1e-6  # of a use that no kernel shows
OTHER_LAW = 0.25  # weight of Wang and Chu's rule in the log time
TYPICAL_SOFTNESS = 0.7
LEAST_SPREAD = 0.02  # half-widths are so many times (spread + this), in log ratio
SPREAD_BEYOND_PRIOR = 0.5  # variance of the log odds that no input explains


@dataclass(frozen=True, eq=False)
class Gpu:
    """One GPU at one base: its grid, and the largest uses that kernels reach on it.

    memory_peak: of the DRAM bandwidth; issue_peak: of a CU's issue, for many waves.
    """

    device: str
    grid: ConfigGrid
    base: HardwareConfig
    memory_peak: float
    issue_peak: float

    @classmethod
    def of(cls, profiles: Profiles, grid: ConfigGrid, use: KernelUse) -> Self:
        """With the peaks that the kernels of some profiles show; no times are looked at."""
        load = Load.of(use, np.array([profiles.base.cu_count]), profiles.base.cu_count)
        issue = active_issue(use, profiles.base.cu_count) / (1 + TYPICAL_SOFTNESS / load.at_base)
        return cls(profiles.device, grid, profiles.base, _top(use.memory), _top(issue))


@dataclass(frozen=True, eq=False)
class TimeModel:
    """A trained model. values: the named groups of numbers of bottleneck_training.Layout.

    shares: 1 (memory), or 2 where a training table has several CU counts. uses_other: whether
    Wang and Chu's rule stands beside the curve. Of each GPU, corrections: what the curve misses;
    misfits: see conditioning.Law.
    """

    gpus: tuple[Gpu, ...]
    values: dict[str, Floats]
    process: Process
    shares: int
    uses_other: bool
    corrections: tuple[Correction | None, ...]
    misfits: tuple[Floats, ...]

    def predict(self, profiles: Profiles, gpu: Gpu, number: int) -> tuple[Law, Floats, Flags]:
        """The law of the log time ratios (K, N), half their spread (K, N), and the kernels' flags.

        number: of the GPU among the trained ones, -1 for another. The spread is what the inputs
        leave open of the shares.
        """
        use = kernel_use(profiles)
        share = use.memory / gpu.memory_peak
        points, found = self.process.standardise(inputs(use, share))
        latents, variance = self.process.latents(points, number)
        at = gpu.grid.index(gpu.base) if gpu.base in set(gpu.grid) else None
        targets = Targets.of(gpu.grid, gpu.base, at)
        other = other_law(profiles, gpu.grid) if self.uses_other else None
        left_out = np.zeros(0, dtype=bool) if other is None else np.isnan(other[:, 0])
        deviation = np.sqrt(variance + SPREAD_BEYOND_PRIOR)

        def logs(latents: Floats) -> Floats:
            log_time = self._curve(use, gpu, number, targets, latents)
            if other is not None:
                log_time = np.where(
                    left_out[:, None], log_time, (1 - OTHER_LAW) * log_time + OTHER_LAW * other
                )
            return log_time if at is None else log_time - log_time[:, [targets.base]]

        spread = np.zeros((len(points), gpu.grid.size))
        for j in range(self.shares):
            shift = np.zeros_like(latents)
            shift[j] = deviation
            spread += (logs(latents + shift) - logs(latents - shift)) ** 2 / 4
        own = number >= 0 and gpu.grid == self.gpus[number].grid
        correction = self.corrections[number] if own else None
        missed = np.zeros(gpu.grid.size)
        if correction is not None:
            missed = correction.predict(similarity(profiles, use, share), logs(latents))
        if self.uses_other and other is None:
            for flags in found:
                flags.append("Wang and Chu's rule does not know this GPU: left out")
        for k in np.flatnonzero(left_out):
            found[k].append("Wang and Chu's rule left out: its counters lack or contradict")
        misfit = self.misfits[number] if own else np.zeros((1, gpu.grid.size))
        prior = np.broadcast_to(variance + SPREAD_BEYOND_PRIOR, latents.shape)
        law = Law(lambda at: logs(at) + missed, latents, prior, misfit)
        return law, np.sqrt(spread), tuple(map(tuple, found))

    def _curve(
        self, use: KernelUse, gpu: Gpu, number: int, targets: Targets, latents: Floats
    ) -> Floats:
        """The bottleneck curve itself; the clock tables of a GPU that is not trained are 0.

        Those of one that is are interpolated in the logarithm between its steps.
        """
        values = self.values
        own = number >= 0
        p = float(
            np.exp(values["sharpness"][0] + (values["gpu_sharpness"][number] if own else 0.0))
        )
        offset = values["offset"][number] if own else np.zeros(self.shares)
        softness = float(np.exp(values["softness"][0]))
        load = Load.of(use, targets.cu_count, gpu.base.cu_count)
        uses = [np.log(np.maximum(use.memory / gpu.memory_peak, 1e-9))]
        if self.shares > 1:
            issue = active_issue(use, gpu.base.cu_count) / gpu.issue_peak
            log_core = np.log(np.maximum(issue, 1e-9)) - values["capacity"][0]
            uses.append(log_core - np.log1p(softness / load.at_base))
        gain = np.exp(values["gain"])
        logits = np.array(
            [gain[j] * physics_logit(u, p)[0] + offset[j] for j, u in enumerate(uses)]
        )
        c, e, m = (
            self._table(axis, number, gpu.grid)[steps] if own else np.zeros(gpu.grid.size)
            for axis, steps in enumerate(targets.steps)
        )
        slow = np.empty((self.shares + 1, len(use.memory), gpu.grid.size))
        slow[0], slow[1 + MEMORY] = -(targets.engine + e), -(targets.memory + m)
        exponent: Floats = np.zeros_like(slow[0])
        if self.shares > 1:
            slow[1 + CORE] = log_load_ratio(load, softness)[0] - (targets.engine + e)
            slowing = values["slowing"][0] + SLOWING_SCALE * latents[self.shares]
            exponent = slowing[:, None] * targets.cu + c
        curve = bottleneck_curve(logits + latents[: self.shares], slow, p)
        return curve.log_time + exponent

    def _table(self, axis: int, number: int, grid: ConfigGrid) -> Floats:
        trained, name = self.gpus[number], ("cu", "engine", "memory")[axis]
        table = self.values[f"{name}{number}"].copy()
        table[trained.grid.index(trained.base)[axis]] = 0
        asked, there = (np.log(getattr(g, AXES[axis])) for g in (grid, trained.grid))
        return np.asarray(np.interp(asked, there, table))

    def state(self) -> dict[str, Any]:
        """Arrays and JSON values for the model file."""
        gpus = [
            {
                "device": g.device,
                **grid_state(g.grid, g.base),
                "memory_peak": g.memory_peak,
                "issue_peak": g.issue_peak,
            }
            for g in self.gpus
        ]
        return {
            "gpus": gpus,
            "values": self.values,
            "process": self.process.state(),
            "shares": self.shares,
            "uses_other": self.uses_other,
            "corrections": [None if c is None else c.state() for c in self.corrections],
            "misfits": list(self.misfits),
        }

    @classmethod
    def restore(cls, state: dict[str, Any]) -> Self:
        """The model that `state` described; a damaged one raises KeyError or ValueError."""
        gpus = []
        for saved in state["gpus"]:
            peaks = float(saved["memory_peak"]), float(saved["issue_peak"])
            if not min(peaks) > 0:
                raise ValueError("a peak is not positive")
            gpus.append(Gpu(str(saved["device"]), *restore_grid(saved), *peaks))
        shares, process = int(state["shares"]), state["process"]
        names = tuple(map(str, process["names"]))
        if unknown := set(names) - set(input_names()):
            raise ValueError(f"there is no input {min(unknown)!r}")
        n, d = len(process["points"]), len(names)
        latents = shares + (shares > 1)
        sizes: dict[str, tuple[int, ...]] = {
            "sharpness": (1,),
            "gpu_sharpness": (len(gpus),),
            "gain": (shares,),
            "offset": (len(gpus), shares),
            **dict.fromkeys(("capacity", "softness", "slowing"), (1,)),
        }
        for g, gpu in enumerate(gpus):
            for axis, length in zip(("cu", "engine", "memory"), gpu.grid.shape, strict=True):
                sizes[f"{axis}{g}"] = (length,)
        shapes: dict[str, tuple[int, ...]] = {
            **dict.fromkeys(("mean", "spread", "low", "high"), (d,)),
            "points": (n, d),
            "gpu": (n,),
            "weights": (latents, n),
            "inverse": (n, n),
        }
        arrays = {name: shaped(process[name], *shape) for name, shape in shapes.items()}
        positive(arrays["spread"], "a spread")
        gpu_of_point = arrays.pop("gpu").astype(np.intp)
        if shares not in (1, 2):
            raise ValueError(f"a model has 1 or 2 shares, not {shares}")
        return cls(
            gpus=tuple(gpus),
            values={name: shaped(state["values"][name], *size) for name, size in sizes.items()},
            process=Process(
                names=names,
                gpu=gpu_of_point,
                amplitude=float(process["amplitude"]),
                **arrays,
            ),
            shares=shares,
            uses_other=bool(state["uses_other"]),
            corrections=tuple(
                None if saved is None else Correction.restore(saved, gpu.grid.size)
                for gpu, saved in zip(gpus, state["corrections"], strict=True)
            ),
            misfits=tuple(
                shaped(misfit, None, gpu.grid.size)
                for misfit, gpu in zip(state["misfits"], gpus, strict=True)
            ),
        )


def other_law(profiles: Profiles, grid: ConfigGrid) -> Floats | None:
    """Log time ratios (K, N) by Wang and Chu's rule; None on a GPU or CU counts it does not know.

    NaN for a kernel whose counters it needs are not there or contradict one another.
    """
    try:
        gpu = load_gpu(profiles.device)
        require_cu_count(gpu, (profiles.base.cu_count, *grid.cu_count))
    except InputError:
        return None
    engine, memory = (
        mesh.ravel() for mesh in np.meshgrid(grid.engine_mhz, grid.memory_mhz, indexing="ij")
    )
    clocks = (profiles.base.engine_mhz, profiles.base.memory_mhz)

    def logs(some: Profiles) -> Floats:
        known = derive_inputs(some, gpu)
        return np.log(predict_time_factor(known, gpu, clocks, some.time_ms, engine, memory))

    try:
        return logs(profiles)
    except InputError:  # of one kernel or several
        found = np.full((len(profiles.kernels), engine.size), np.nan)
        for k in range(len(found)):
            with suppress(InputError):
                found[k] = logs(profiles.select([k]))
        return found


def other_law_applies(profiles: Sequence[Profiles], grids: Sequence[ConfigGrid]) -> bool:
    """Whether Wang and Chu's rule knows every one of these GPUs, and has its counters."""
    return all(
        not missing_counters(p.counter_names) and other_law(p, grid) is not None
        for p, grid in zip(profiles, grids, strict=True)
    )


def training_use(profiles: Profiles, gpu: Gpu) -> tuple[KernelUse, dict[str, Floats]]:
    """Uses and named inputs of kernels on a GPU whose peaks are known."""
    use = kernel_use(profiles)
    return use, inputs(use, use.memory / gpu.memory_peak)


def _top(values: Floats) -> float:
    """Mean of the largest few, and above 0."""
    return float(max(np.sort(np.nan_to_num(values))[-TOP:].mean(), LEAST_PEAK))
