"""What `sampled` learns at one base: of each quantity a curve with latents, and trees: NumPy."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, shaped
from mlscale.data.profiles import Profiles
from mlscale.predictors.forest import Forest
from mlscale.predictors.intervals import least_scale, restored_scores
from mlscale.predictors.sampled.curves import Curve, PowerCurve, TimeCurve
from mlscale.predictors.sampled.inputs import SampledInputs
from mlscale.predictors.sampled.latents import Latents, Setting

# Averaged, none selected: two scales of the inputs' influence.
SETTINGS = {
    "time": (Setting(0.03, 1.3, 0.5, 1.0), Setting(0.03, 2.0, 1.0, 1.0)),
    "power": (Setting(0.01, 1.2, 0.5, 0.7), Setting(0.02, 1.5, 0.5, 0.7)),
}
PRIORS = {"time": TimeCurve.prior, "power": PowerCurve.prior}
TREES, LEAST_LEAF = 80, 2
# What the intervals' half-widths are proportional to.
SHARE_OF_TREES, SHARE_OF_DIFFERENCE = 0.5, 0.5


@dataclass(frozen=True, eq=False)
class Opinions:
    """Log ratios (K, N) by the curve and by the trees, and the trees' standard deviation (K, N)."""

    by_curve: Floats
    by_trees: Floats
    trees_sd: Floats

    def blended(self, tree_weight: float) -> Floats:
        """Their mean with that weight of the trees."""
        return (1 - tree_weight) * self.by_curve + tree_weight * self.by_trees

    def scale(self, log_clock: Floats) -> Floats:
        """How unsure they are, (K, N): where trees differ from each other or from the curve."""
        difference = np.abs(self.by_curve - self.by_trees)
        spread = SHARE_OF_TREES * self.trees_sd + SHARE_OF_DIFFERENCE * difference
        return np.asarray(spread + least_scale(np.abs(log_clock)))


@dataclass(frozen=True, eq=False)
class QuantityModel:
    """A trained model of time or power over N clocks.

    fits: one for each of the quantity's settings, averaged. residual (N,): what the training
    kernels' median log ratio is above the curve, the GPU's own table of clocks.
    """

    inputs: SampledInputs
    fits: tuple[Latents, ...]
    residual: Floats
    forest: Forest

    @classmethod
    def fit(cls, quantity: str, profiles: Profiles, curve: Curve, logs: Floats, seed: int) -> Self:
        """Learn from kernels' profiles and log ratios (n, N). Raises InputError.

        curve: with the training kernels' own times where it is of power.
        """
        inputs = SampledInputs.of(profiles, with_utilisation=quantity == "time")
        settings = SETTINGS[quantity]
        fits = tuple(Latents.fit(curve, logs, inputs.points, setting) for setting in settings)
        forest = Forest.grow(inputs.points, logs, TREES, LEAST_LEAF, seed).rounded()
        model = cls(inputs, fits, np.zeros(logs.shape[1]), forest)
        missed = np.median(logs - model._curve(curve, inputs.points), axis=0)
        return replace(model, residual=missed)

    def opinions(self, profiles: Profiles, curve: Curve) -> Opinions:
        """The log ratios of new kernels; curve: with their predicted times where it is of power.

        Raises InputError where a kernel's DRAM share is missing.
        """
        points = self.inputs.points_of(profiles)
        by_trees, trees_sd = self.forest.predict(points)
        return Opinions(self._curve(curve, points) + self.residual, by_trees, trees_sd)

    def _curve(self, curve: Curve, points: Floats) -> Floats:
        own = [fit.at(curve, self.inputs.points, points) for fit in self.fits]
        return np.asarray(np.mean(own, axis=0))

    def state(self) -> dict[str, Any]:
        """Arrays and JSON values for the model file."""
        return {
            "inputs": self.inputs.state(),
            "fits": [fit.state() for fit in self.fits],
            "residual": self.residual,
            "forest": self.forest.state(),
        }

    @classmethod
    def restore(cls, quantity: str, state: dict[str, Any], clocks: int) -> Self:
        """What `state` described; a damaged one raises KeyError or ValueError."""
        inputs = SampledInputs.restore(state["inputs"])
        kernels, width = inputs.points.shape
        pairs = zip(state["fits"], SETTINGS[quantity], strict=True)
        return cls(
            inputs=inputs,
            fits=tuple(
                Latents.restore(own, setting, PRIORS[quantity], kernels) for own, setting in pairs
            ),
            residual=shaped(state["residual"], clocks),
            forest=Forest.restore(state["forest"], width, clocks),
        )


@dataclass(frozen=True, eq=False)
class BaseModel:
    """What is learnt from one GPU's profiles at one base clock [MHz], over N clocks.

    log_clock (N,): ln(clock / base). tree_weight: of the trees in the log time; power, where it is
    asked for, is the curve's alone, which is as good on kernels like the trained ones and better
    on others. scores: of held-out kernels in units of the intervals' scale, see
    `calibrated_scores`; empty without intervals. misfit: covariance of what is mispredicted of
    kernels held out, see `SurfacePrior`; of log time (R, N), with power (R, 2 N).
    """

    engine_mhz: float
    log_clock: Floats
    tree_weight: float
    time: QuantityModel
    power: QuantityModel | None
    scores: Floats
    misfit: Floats

    @property
    def asked(self) -> QuantityModel:
        """The model of the quantity predicted."""
        return self.power or self.time

    def opinions(self, profiles: Profiles) -> tuple[Opinions, Floats]:
        """The opinions of the quantity predicted, and all log ratios, of time and then power.

        The log ratios are (K, N), with power (K, 2 N). Raises InputError.
        """
        time = self.time.opinions(profiles, TimeCurve(self.log_clock))
        log_time = time.blended(self.tree_weight)
        if self.power is None:
            return time, log_time
        power = self.power.opinions(profiles, power_curve(self.log_clock, log_time))
        return power, np.hstack([log_time, power.by_curve])

    def state(self) -> dict[str, Any]:
        """Arrays and JSON values for the model file."""
        return {
            "engine_mhz": self.engine_mhz,
            "tree_weight": self.tree_weight,
            "time": self.time.state(),
            "power": None if self.power is None else self.power.state(),
            "scores": self.scores,
            "misfit": self.misfit,
        }

    @classmethod
    def restore(cls, state: dict[str, Any], clocks: Floats, quantity: str) -> Self:
        """What `state` described; a damaged one raises KeyError or ValueError."""
        power = state["power"]
        if (power is None) != (quantity == "time"):
            raise ValueError("a power model is there for another quantity, or lacks")
        tree_weight = float(state["tree_weight"])
        if not 0 <= tree_weight <= 1:
            raise ValueError("the weight of the trees is not between 0 and 1")
        base = float(state["engine_mhz"])
        if base not in clocks:
            raise ValueError("a base is none of the trained clocks")
        size = len(clocks)
        return cls(
            engine_mhz=base,
            log_clock=np.log(clocks / base),
            tree_weight=tree_weight,
            time=QuantityModel.restore("time", state["time"], size),
            power=None if power is None else QuantityModel.restore("power", power, size),
            scores=restored_scores(state["scores"]),
            misfit=shaped(state["misfit"], None, size * (1 + (power is not None))),
        )


def power_curve(log_clock: Floats, log_time: Floats) -> PowerCurve:
    """The curve of power of kernels with those log time ratios (K, N)."""
    return PowerCurve(log_clock, float(np.exp(log_clock.max())), log_time)
