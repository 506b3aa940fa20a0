"""`sampled`: time and power over the engine clock from averages of one run (DCGM and the like)."""

import itertools
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.devices import are_same_chip
from mlscale.data.grid import ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import is_sampled, power_faults
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError, extra_named, warn
from mlscale.predictors.base import (
    Bases,
    Predictor,
    State,
    Training,
    TrainingSet,
    single_gpu,
)
from mlscale.predictors.bottleneck.curve import base_position
from mlscale.predictors.conditioning import (
    SurfacePosterior,
    SurfacePrior,
    condition,
    measured_ratios,
)
from mlscale.predictors.features import Explanation
from mlscale.predictors.intervals import score_at
from mlscale.predictors.sampled.bases import (
    BaseModel,
    Belief,
    belief,
    inputs_at,
    spread_bases,
    without_intervals,
)

SAME_MEMORY_CLOCK = 0.01  # by which a profile's may differ from the trained one
LARGEST_SURPRISE = 4.0
OTHER_BOARD = "learnt on {}, another board of the same chip"
STRANGE = "a further point is {:.1f} standard deviations off: not like the training kernels"


@dataclass
class Sampled(Predictor):
    """Time by a p-norm of what follows the engine clock and what does not; power by three parts.

    From the share of time that SMs and DRAM are active, and the board's power. It learns from one
    GPU and predicts that one: sampled averages do not tell how another GPU's times scale. The base
    of a profile may be any clock within the trained ones.
    intervals: calibrate `predict_interval` while fitting. bases: so many base clocks, spread over
    the trained ones, are learnt from besides the one asked for. seed: of the trees.
    """

    name = "sampled"
    quantities: ClassVar[tuple[str, ...]] = ("time", "power")
    quantity: str = "time"
    intervals: bool = True
    bases: int = 5
    seed: int = 0

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Whether these are sampled profiles over the engine clock alone."""
        cus, _, memories = measurements.grid.shape
        has_dram = "dram_active" in measurements.counter_names
        return is_sampled(measurements.metadata) and has_dram and cus == memories == 1

    @extra_named("training 'sampled'", "train")
    def fit(self, training: Training, base: Bases) -> Self:
        """Train on one GPU's kernels, without those whose power is faulty.

        Raises InputError on fewer than two kernels or clocks, several CU counts or memory clocks,
        and profiles without DRAM's share; ImportError without scikit-learn, which training needs.
        """
        table, self.base_ = single_gpu(self, training, base)
        table = _without_faults(table)
        cus, engines, memories = table.grid.shape
        if len(table.kernels) < 2 or engines < 2:
            raise InputError(f"'{self.name}' needs two training kernels and two engine clocks")
        if cus > 1 or memories > 1:
            raise InputError(
                f"'{self.name}' learns from one CU count and one memory clock, not from "
                f"{cus} and {memories}"
            )
        table.quantity(self.quantity)
        from mlscale.predictors.sampled.training import SampledKernels, train

        trained = [
            train(SampledKernels.of(own, base), self.quantity, self.seed)
            for own, base in _at_bases(table, self.base_, self.bases)
        ]
        self.device_, self.grid_ = table.device, table.grid
        self.bases_ = [own if self.intervals else without_intervals(own) for own in trained]
        return self

    def grid_from(self, profiles: Profiles) -> ConfigGrid:
        """The clocks that are predicted from the profiles' base: the trained ones, and itself.

        Raises InputError where the profiles are of another GPU, another memory clock or CU count,
        or of an engine clock beyond the bases trained. Another board of the same chip is taken.
        """
        own, base = self.grid_, profiles.base
        is_other_board = profiles.device != self.device_
        if is_other_board and not are_same_chip(profiles.device, self.device_):
            raise InputError(
                f"'{self.name}' learnt '{self.device_}', and how times scale on another GPU does "
                f"not follow from sampled averages; train on measurements of '{profiles.device}'"
            )
        memory = own.memory_mhz[0]
        has_memory = is_other_board or abs(base.memory_mhz / memory - 1) < SAME_MEMORY_CLOCK
        lowest, highest = (self.bases_[k].engine_mhz for k in (0, -1))
        if (
            base.cu_count != own.cu_count[0]
            or not has_memory
            or not lowest <= base.engine_mhz <= highest
        ):
            raise InputError(
                f"the model predicts from cu={own.cu_count[0]}, memory={memory:g} and an engine "
                f"clock from {lowest:g} to {highest:g} MHz; the profile was taken at {base}"
            )
        clocks = tuple(sorted({*own.engine_mhz, base.engine_mhz}))
        return ConfigGrid(own.cu_count, clocks, (base.memory_mhz,))

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """The surfaces on the training clocks, or on others between them. Raises InputError."""
        own = self._knowledge(profiles)
        values = self._factors(own.posterior.logs, own.grid, grid)
        return Surfaces(grid or own.grid, profiles.base, values, own.flags)

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Surfaces with low and high, which hold that share of kernel x configuration.

        low and high are None where they were not calibrated: not asked for, or fewer than three
        applications. Raises InputError.
        """
        if not 0 < coverage < 1:
            raise InputError(f"a coverage is between 0 and 1, not {coverage:g}")
        own = self._knowledge(profiles)
        if not own.belief.scores.size:
            return self.predict(profiles, grid)
        width = own.width(coverage) * self._own(own.posterior.narrowing(), own.grid)
        logs = self._own(own.posterior.logs, own.grid)
        values, low, high = (
            self._factors(x, own.grid, grid) for x in (logs, logs - width, logs + width)
        )
        return Surfaces(grid or own.grid, profiles.base, values, own.flags, low, high)

    def widths_ahead(self, profiles: Profiles, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """How wide the intervals are now, (K,), and after one more measurement, (K, N).

        The mean over the clocks of half the interval of the log factor; in the second array at
        each clock what measuring time there is expected to leave. Without calibrated intervals in
        units of the score. Raises InputError.
        """
        own = self._knowledge(profiles)
        width, posterior, size = own.width(coverage), own.posterior, own.grid.size
        now = (width * self._own(posterior.narrowing(), own.grid)).mean(axis=1)
        ahead = [
            self._own(posterior.further_narrowing(k), own.grid)[:size] @ width[k] / size
            for k in range(len(width))
        ]
        return now, np.array(ahead)

    def needs(self) -> tuple[str, ...]:
        """DRAM's share of the time; others may be missing."""
        return ("dram_active",)

    def feature_names(self) -> tuple[str, ...]:
        """What is looked at, the board's power too."""
        return inputs_at(self.bases_, self.base_.engine_mhz).measured

    def explain(self, profiles: Profiles) -> Explanation:
        """What was measured beside its range over the training kernels."""
        self.grid_from(profiles)
        inputs = inputs_at(self.bases_, profiles.base.engine_mhz)
        return Explanation.of(
            self.name,
            inputs.measured,
            inputs.values(profiles),
            (inputs.low, inputs.high),
            usual=(inputs.low + inputs.high) / 2,
        )

    def _knowledge(self, profiles: Profiles) -> "_Knowledge":
        """What is known of profiles on the grid from their base. Raises InputError."""
        grid = self.grid_from(profiles)
        trained, asked = np.array(self.grid_.engine_mhz), np.array(grid.engine_mhz)
        own = belief(self.bases_, trained, asked, profiles)
        none = np.empty((0, len(own.logs)))
        prior = SurfacePrior(lambda _: own.logs, none, none, own.misfit)
        points = measured_ratios(profiles, grid, self.quantity == "power")
        posterior = condition(prior, points)
        flags = own.inputs.flags(profiles)
        for of_kernel, surprise in zip(flags, posterior.surprise.tolist(), strict=True):
            if profiles.device != self.device_:
                of_kernel.append(OTHER_BOARD.format(self.device_))
            if surprise > LARGEST_SURPRISE:
                of_kernel.append(STRANGE.format(surprise))
        return _Knowledge(grid, profiles.base, own, posterior, tuple(map(tuple, flags)))

    def _own(self, outputs: Floats, grid: ConfigGrid) -> Floats:
        """Of outputs (..., N or 2 N) those of the predictor's quantity."""
        return outputs[..., -grid.size :]

    def _factors(self, logs: Floats, known: ConfigGrid, grid: ConfigGrid | None) -> Floats:
        """Factors (K, 1, E, 1) of log ratios on one grid, interpolated on the one asked for.

        Raises InputError unless they differ in clocks between the trained ones alone.
        """
        own, asked = self._own(logs, known), grid or known
        if (asked.cu_count, asked.memory_mhz) != (known.cu_count, known.memory_mhz):
            raise InputError(
                f"'{self.name}' predicts other engine clocks alone, at "
                f"cu={known.cu_count[0]},memory={known.memory_mhz[0]:g}"
            )
        low, high = known.engine_mhz[0], known.engine_mhz[-1]
        outside = [clock for clock in asked.engine_mhz if not low <= clock <= high]
        if outside:
            raise InputError(
                f"engine_mhz {outside[0]:g} is outside the trained {low:g} to {high:g}; "
                "the model does not extrapolate"
            )
        if asked != known:
            at, clocks = np.log(asked.engine_mhz), np.log(known.engine_mhz)
            own = np.array([np.interp(at, clocks, row) for row in own])
        return np.exp(own).reshape(len(own), *asked.shape)

    def state(self) -> State:
        """Grid, base, GPU, and what was learnt at each base."""
        return {
            **grid_state(self.grid_, self.base_),
            "device": self.device_,
            "bases": [own.state() for own in self.bases_],
        }

    def restore(self, state: State) -> Self:
        """Take over what `state` gave; shapes are checked."""
        self.grid_, self.base_ = restore_grid(state)
        self.device_ = str(state["device"])
        clocks = np.array(self.grid_.engine_mhz)
        self.bases_ = [BaseModel.restore(own, clocks, self.quantity) for own in state["bases"]]
        bases = [own.engine_mhz for own in self.bases_]
        if not bases or any(low >= high for low, high in itertools.pairwise(bases)):
            raise ValueError("the bases do not rise")
        return self


@dataclass(frozen=True, eq=False)
class _Knowledge:
    """What is known of profiles on a grid, with their further points."""

    grid: ConfigGrid
    base: HardwareConfig
    belief: Belief
    posterior: SurfacePosterior
    flags: tuple[tuple[str, ...], ...]

    def width(self, coverage: float) -> Floats:
        """Half of the interval of the log factor without further points, (K, N).

        Without calibrated intervals in units of the score.
        """
        scores = self.belief.scores
        width = (score_at(scores, coverage) if scores.size else 1.0) * self.belief.scale
        width[:, base_position(self.grid, self.base)] = 0
        return width


def _at_bases(table: Measurements, base: HardwareConfig, count: int) -> list[TrainingSet]:
    """The table at its base, and at others spread over the clocks where it has most profiles.

    Of another base those kernels are left out that have no DRAM share there.
    """
    sets = []
    for clock in spread_bases(table.grid.engine_mhz, base.engine_mhz, count):
        at = replace(base, engine_mhz=clock)
        known = ~np.isnan(table.profiles(at).optional_counter("dram_active"))
        if at == base:
            sets.append((table, base))
        elif known.sum() >= max(2, len(known) / 2):
            sets.append((table.select(known), at))
    return sets


def _without_faults(table: Measurements) -> Measurements:
    """Return the kernels whose power does not fall at a higher clock.

    Warns by name of the others that the table's `faults` do not name.
    """
    faults = power_faults(table)
    unknown = [name for name in faults if name not in table.metadata.get("faults", {})]
    if unknown:
        warn(
            f"'{table.device}': not trained on, for their power falls where the clock rises: "
            + ", ".join(unknown)
        )
    return table.select([k for k, name in enumerate(table.kernels) if name not in faults])
