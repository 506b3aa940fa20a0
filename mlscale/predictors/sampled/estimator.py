"""`sampled`: time and power over the engine clock from averages of one run (DCGM and the like)."""

import itertools
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.device_table import are_same_chip
from mlscale.data.extrapolation import by_power_laws
from mlscale.data.grid import ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import (
    is_engine_sweep,
    power_faults,
    require_engine_sweep,
    without_power_faults,
)
from mlscale.data.surfaces import Surfaces, full_scaling
from mlscale.errors import InputError, extra_named, warn
from mlscale.predictors.base import Bases, Predictor, State, Training, TrainingSet, single_gpu
from mlscale.predictors.conditioning import (
    ConditionedSurfaces,
    SurfacePrior,
    condition,
    measured_ratios,
)
from mlscale.predictors.features import Explanation
from mlscale.predictors.intervals import reaching, score_at
from mlscale.predictors.sampled import tensor_cores
from mlscale.predictors.sampled.bases import Belief, belief, inputs_at
from mlscale.predictors.sampled.inputs import MEMORY_SHARES, memory_share
from mlscale.predictors.sampled.model import BaseModel

SAME_MEMORY_CLOCK = 0.01  # by which a profile's may differ from the trained one
OTHER_BOARD = "learnt on {}, another board of the same chip"


@dataclass
class Sampled(Predictor):
    """Time by a p-norm of what follows the engine clock and what does not; power by three parts.

    From the share of time that SMs and DRAM are active (or, by nvidia-smi, that the memory is read
    or written), and the board's power. It learns from one GPU and predicts that one: sampled
    averages do not tell how another GPU's times scale. The base of a profile may be any clock
    within the trained ones.
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
        has_memory = not set(MEMORY_SHARES).isdisjoint(measurements.counter_names)
        return is_engine_sweep(measurements) and has_memory

    @extra_named("training 'sampled'", "train")
    def fit(self, training: Training, base: Bases) -> Self:
        """Train on one GPU's kernels, without those whose power is faulty.

        Raises InputError on fewer than two kernels or clocks, several CU counts or memory clocks,
        and profiles without the memory's share; ImportError without scikit-learn, for training.
        """
        table, self.base_ = single_gpu(self, training, base)
        _warn_of_faults(table)
        table = without_power_faults(table)
        require_engine_sweep(self.name, table, least=2)
        if len(table.kernels) < 2:
            raise InputError(f"'{self.name}' needs two training kernels")
        table.quantity(self.quantity)
        from threadpoolctl import ThreadpoolController

        from mlscale.predictors.sampled.training import SampledKernels, train

        with ThreadpoolController().limit(limits=1):  # matrices this small are slower on several
            trained = [
                train(SampledKernels.of(own, base), self.quantity, self.seed)
                for own, base in _at_bases(table, self.base_, self.bases)
            ]
        self.device_, self.grid_ = table.device, table.grid
        if not self.intervals:
            trained = [replace(own, scores=np.empty(0)) for own in trained]
        self.bases_ = trained
        self.most_tensor_ = tensor_cores.most_active(table)
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
        own, _ = self._conditioned(profiles)
        return self._on(own.surfaces(), grid)

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Surfaces with low and high, which hold that share of kernel x configuration.

        low and high are None where they were not calibrated: not asked for, or fewer than three
        applications. Intervals of time reach full scaling for kernels that use tensor cores more
        than any training kernel did, or may do so. Raises InputError.
        """
        own, known = self._conditioned(profiles)
        if not known.scores.size:
            return self._on(own.surfaces(), grid)
        half_width = score_at(known.scores, coverage) * known.scale * own.narrowing()
        surfaces = self._on(own.surfaces(half_width), grid)
        if self.quantity == "power":
            return surfaces
        full = full_scaling(surfaces.grid, profiles.base)
        return reaching(surfaces, tensor_cores.unlike(profiles, self.most_tensor_), (full, full))

    def widths_ahead(self, profiles: Profiles, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """How wide the intervals are now, (K,), and after one more measurement, (K, N).

        The mean over the clocks of half the interval of the log factor; in the second array at
        each clock what measuring time there is expected to leave. Without calibrated intervals in
        units of the score. Raises InputError.
        """
        own, known = self._conditioned(profiles)
        return own.widths_ahead(score_at(known.scores, coverage) * known.scale)

    def needs(self) -> tuple[str, ...]:
        """The memory's share of the time; others may be missing."""
        return (inputs_at(self.bases_, self.base_.engine_mhz).memory,)

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

    def _conditioned(self, profiles: Profiles) -> tuple[ConditionedSurfaces, Belief]:
        """Surfaces given the points on the grid from their base, and what was known before.

        Raises InputError.
        """
        grid = self.grid_from(profiles)
        trained, asked = np.array(self.grid_.engine_mhz), np.array(grid.engine_mhz)
        known = belief(self.bases_, trained, asked, profiles)
        none = np.empty((0, len(known.logs)))
        prior = SurfacePrior(lambda _: known.logs, none, none, known.misfit)
        quantities = dict.fromkeys(("time", self.quantity))
        posterior = condition(prior, measured_ratios(profiles, grid, *quantities))
        is_other_board = profiles.device != self.device_
        board = (OTHER_BOARD.format(self.device_),) if is_other_board else ()
        tensor = tensor_cores.flags(profiles, self.most_tensor_)
        each = zip(known.inputs.flags(profiles), tensor, posterior.surprise_flags(), strict=True)
        flags = tuple((*own, *board, *of_tensor, *surprise) for own, of_tensor, surprise in each)
        return ConditionedSurfaces(grid, profiles.base, posterior, flags), known

    def _on(self, surfaces: Surfaces, grid: ConfigGrid | None) -> Surfaces:
        """The surfaces, interpolated on the grid if one is asked for.

        Raises InputError unless it differs in clocks between the trained ones alone.
        """
        known = surfaces.grid
        if grid in (None, known):
            return surfaces
        if (grid.cu_count, grid.memory_mhz) != (known.cu_count, known.memory_mhz):
            raise InputError(
                f"'{self.name}' predicts other engine clocks alone, at "
                f"cu={known.cu_count[0]},memory={known.memory_mhz[0]:g}"
            )
        low, high = known.engine_mhz[0], known.engine_mhz[-1]
        outside = [clock for clock in grid.engine_mhz if not low <= clock <= high]
        if outside:
            raise InputError(
                f"engine_mhz {outside[0]:g} is outside the trained {low:g} to {high:g}; "
                "the model does not extrapolate"
            )
        return by_power_laws(surfaces, grid)

    def state(self) -> State:
        """Grid, base, GPU, and what was learnt at each base."""
        return {
            **grid_state(self.grid_, self.base_),
            "device": self.device_,
            "bases": [own.state() for own in self.bases_],
            "most_tensor": self.most_tensor_,
        }

    def restore(self, state: State) -> Self:
        """Take over what `state` gave; shapes are checked."""
        self.grid_, self.base_ = restore_grid(state)
        self.device_ = str(state["device"])
        clocks = np.array(self.grid_.engine_mhz)
        self.bases_ = [BaseModel.restore(own, clocks, self.quantity) for own in state["bases"]]
        self.most_tensor_ = tensor_cores.restored(state.get("most_tensor"))
        bases = [own.engine_mhz for own in self.bases_]
        if not bases or any(low >= high for low, high in itertools.pairwise(bases)):
            raise ValueError("the bases do not rise")
        return self


def _at_bases(table: Measurements, base: HardwareConfig, count: int) -> list[TrainingSet]:
    """The table at its base, and at others spread over the clocks where it has most profiles.

    Of another base those kernels are left out that have no memory share there.
    """
    sets, clocks = [], table.grid.engine_mhz
    memory = memory_share(table.profiles(base)) or MEMORY_SHARES[0]
    positions = np.linspace(0, len(clocks) - 1, count).astype(int)
    for clock in sorted({*(clocks[k] for k in positions.tolist()), base.engine_mhz}):
        at = replace(base, engine_mhz=clock)
        known = ~np.isnan(table.profiles(at).optional_counter(memory))
        if at == base:
            sets.append((table, base))
        elif known.sum() >= max(2, len(known) / 2):
            sets.append((table.select(known), at))
    return sets


def _warn_of_faults(table: Measurements) -> None:
    """Warn by name of kernels whose power is faulty and that the table's `faults` do not name."""
    unknown = [name for name in power_faults(table) if name not in table.metadata.get("faults", {})]
    if unknown:
        warn(
            f"'{table.device}': not trained on, for their power falls where the clock rises: "
            + ", ".join(unknown)
        )
