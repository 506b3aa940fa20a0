"""`sampled`: time and power over the engine clock from averages of one run (DCGM and the like)."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from mlscale.arrays import Floats, shaped
from mlscale.data.grid import ConfigGrid, grid_state, restore_grid
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import is_sampled, power_faults
from mlscale.data.surfaces import Surfaces
from mlscale.errors import InputError, missing_library, warn
from mlscale.predictors.base import Bases, Predictor, State, Training, single_gpu
from mlscale.predictors.bottleneck.curve import base_position
from mlscale.predictors.conditioning import (
    SurfacePosterior,
    SurfacePrior,
    condition,
    measured_ratios,
)
from mlscale.predictors.features import Explanation
from mlscale.predictors.sampled.model import QuantityModel, SampledModels

LARGEST_SURPRISE = 4.0
STRANGE = "a further point is {:.1f} standard deviations off: not like the training kernels"


@dataclass
class Sampled(Predictor):
    """Time by a p-norm of what follows the engine clock and what does not; power by three parts.

    From the share of time that SMs and DRAM are active, and the board's power. It learns from one
    GPU and predicts that one: sampled averages do not tell how another GPU's times scale.
    intervals: calibrate `predict_interval` while fitting. seed: of the trees.
    """

    name = "sampled"
    quantities: ClassVar[tuple[str, ...]] = ("time", "power")
    quantity: str = "time"
    intervals: bool = True
    seed: int = 0

    @classmethod
    def applies_to(cls, measurements: Measurements) -> bool:
        """Whether these are sampled profiles over the engine clock alone."""
        cus, _, memories = measurements.grid.shape
        has_dram = "dram_active" in measurements.counter_names
        return is_sampled(measurements.metadata) and has_dram and cus == memories == 1

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
        try:
            from mlscale.predictors.sampled.training import SampledKernels, train

            trained = train(SampledKernels.of(table, self.base_), self.quantity, self.seed)
        except ModuleNotFoundError as error:
            raise missing_library("training 'sampled'", str(error.name), "train") from None
        self.device_, self.grid_ = table.device, table.grid
        self.models_ = trained.models
        self.scores_ = trained.scores if self.intervals else np.empty(0)
        self.misfit_ = trained.misfit
        return self

    def predict(self, profiles: Profiles, grid: ConfigGrid | None = None) -> Surfaces:
        """The surfaces on the training clocks, or on others between them. Raises InputError."""
        posterior, _, flags = self._posterior(profiles, grid)
        return Surfaces(grid or self.grid_, self.base_, self._factors(posterior.logs, grid), flags)

    def predict_interval(
        self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
    ) -> Surfaces:
        """Surfaces with low and high, which hold that share of kernel x configuration.

        low and high are None where they were not calibrated: not asked for, or fewer than three
        applications. Raises InputError.
        """
        if not 0 < coverage < 1:
            raise InputError(f"a coverage is between 0 and 1, not {coverage:g}")
        if not self.scores_.size:
            return self.predict(profiles, grid)
        posterior, scale, flags = self._posterior(profiles, grid)
        width = self._score(coverage) * scale * self._own(posterior.narrowing())
        width[:, base_position(self.grid_, self.base_)] = 0
        logs = self._own(posterior.logs)
        values, low, high = (self._factors(x, grid) for x in (logs, logs - width, logs + width))
        return Surfaces(grid or self.grid_, self.base_, values, flags, low, high)

    def widths_ahead(self, profiles: Profiles, coverage: float = 0.9) -> tuple[Floats, Floats]:
        """How wide the intervals are now, (K,), and after one more measurement, (K, N).

        The mean over the clocks of half the interval of the log factor; in the second array at
        each clock what measuring time there is expected to leave. Without calibrated intervals in
        units of the score. Raises InputError.
        """
        posterior, scale, _ = self._posterior(profiles, None)
        width = (self._score(coverage) if self.scores_.size else 1.0) * scale
        width[:, base_position(self.grid_, self.base_)] = 0
        now = (width * self._own(posterior.narrowing())).mean(axis=1)
        size = self.grid_.size
        ahead = [
            self._own(posterior.further_narrowing(k))[:size] @ width[k] / size
            for k in range(len(width))
        ]
        return now, np.array(ahead)

    def needs(self) -> tuple[str, ...]:
        """DRAM's share of the time; others may be missing."""
        return ("dram_active",)

    def feature_names(self) -> tuple[str, ...]:
        """What is looked at, the board's power too."""
        return self._model.inputs.measured

    def explain(self, profiles: Profiles) -> Explanation:
        """What was measured beside its range over the training kernels."""
        self._check(profiles)
        inputs = self._model.inputs
        values = inputs.values(profiles)
        width = np.where(inputs.high > inputs.low, inputs.high - inputs.low, np.inf)
        middle = np.where(np.isnan(values), (inputs.low + inputs.high) / 2, values)
        return Explanation(
            kind=self.name,
            names=inputs.measured,
            values=values,
            minimum=inputs.low,
            maximum=inputs.high,
            points=np.clip((middle - inputs.low) / width, 0, 1),
            training=None,
        )

    @property
    def _model(self) -> QuantityModel:
        """That of the quantity predicted."""
        return self.models_.power or self.models_.time

    def _score(self, coverage: float) -> float:
        """The quantile of the held-out scores; scores_ are at evenly spaced levels 0 to 1."""
        levels = np.linspace(0, 1, len(self.scores_))
        return float(np.interp(coverage, levels, self.scores_))

    def _check(self, profiles: Profiles) -> None:
        """Raise InputError unless the profiles are of the trained GPU at the trained base."""
        if profiles.device != self.device_:
            raise InputError(
                f"'{self.name}' learnt '{self.device_}', and how times scale on another GPU does "
                f"not follow from sampled averages; train on measurements of '{profiles.device}'"
            )
        if profiles.base != self.base_:
            raise InputError(
                f"the model's base is {self.base_}, the profile was taken at {profiles.base}"
            )

    def _posterior(
        self, profiles: Profiles, grid: ConfigGrid | None
    ) -> tuple[SurfacePosterior, Floats, tuple[tuple[str, ...], ...]]:
        """Log ratios given the further points, the intervals' scale (K, N), and flags."""
        self._check(profiles)
        self._check_grid(grid)
        opinions, logs = self.models_.opinions(profiles)
        none = np.empty((0, len(logs)))
        prior = SurfacePrior(lambda _: logs, none, none, self.misfit_)
        points = measured_ratios(profiles, self.grid_, self.models_.power is not None)
        posterior = condition(prior, points)
        flags = self._model.inputs.flags(profiles)
        for own, surprise in zip(flags, posterior.surprise.tolist(), strict=True):
            if surprise > LARGEST_SURPRISE:
                own.append(STRANGE.format(surprise))
        scale = opinions.scale(self.models_.log_clock)
        return posterior, scale, tuple(map(tuple, flags))

    def _check_grid(self, grid: ConfigGrid | None) -> None:
        """Raise InputError unless a grid differs from the trained one in clocks between its own."""
        if grid is None or grid == self.grid_:
            return
        trained = self.grid_
        if (grid.cu_count, grid.memory_mhz) != (trained.cu_count, trained.memory_mhz):
            raise InputError(
                f"'{self.name}' predicts other engine clocks alone, at "
                f"cu={trained.cu_count[0]},memory={trained.memory_mhz[0]:g}"
            )
        low, high = trained.engine_mhz[0], trained.engine_mhz[-1]
        outside = [clock for clock in grid.engine_mhz if not low <= clock <= high]
        if outside:
            raise InputError(
                f"engine_mhz {outside[0]:g} is outside the trained {low:g} to {high:g}; "
                "the model does not extrapolate"
            )

    def _own(self, outputs: Floats) -> Floats:
        """Of outputs (..., N or 2 N) those of the predictor's quantity."""
        return outputs[..., -self.grid_.size :]

    def _factors(self, logs: Floats, grid: ConfigGrid | None) -> Floats:
        """Factors (K, 1, E, 1) of log ratios at the training clocks; between them interpolated."""
        own, asked = self._own(logs), grid or self.grid_
        if asked != self.grid_:
            at, known = np.log(asked.engine_mhz), np.log(self.grid_.engine_mhz)
            own = np.array([np.interp(at, known, row) for row in own])
        return np.exp(own).reshape(len(own), *asked.shape)

    def state(self) -> State:
        """Grid, base, the models, and what intervals and further points rest on."""
        models = self.models_
        return {
            **grid_state(self.grid_, self.base_),
            "device": self.device_,
            "tree_weight": models.tree_weight,
            "time": models.time.state(),
            "power": None if models.power is None else models.power.state(),
            "scores": self.scores_,
            "misfit": self.misfit_,
        }

    def restore(self, state: State) -> Self:
        """Take over what `state` gave; shapes are checked."""
        self.grid_, self.base_ = restore_grid(state)
        self.device_ = str(state["device"])
        clocks, power = self.grid_.size, state["power"]
        if (power is None) != (self.quantity == "time"):
            raise ValueError("a power model is there for another quantity, or lacks")
        tree_weight = float(state["tree_weight"])
        if not 0 <= tree_weight <= 1:
            raise ValueError("the weight of the trees is not between 0 and 1")
        self.models_ = SampledModels(
            log_clock=np.log(np.array(self.grid_.engine_mhz) / self.base_.engine_mhz),
            tree_weight=tree_weight,
            time=QuantityModel.restore("time", state["time"], clocks),
            power=None if power is None else QuantityModel.restore("power", power, clocks),
        )
        self.scores_ = shaped(state["scores"], None)
        if self.scores_.size and not (self.scores_[0] >= 0 and (np.diff(self.scores_) >= 0).all()):
            raise ValueError("the scores of the intervals do not rise from 0")
        self.misfit_ = shaped(state["misfit"], None, clocks * (1 + (power is not None)))
        return self


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
