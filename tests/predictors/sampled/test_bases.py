"""What two trained bases say of a profile at a clock between them, by hand."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from synthetic import sampled_kernels as made

from mlscale import HardwareConfig, Profiles
from mlscale.arrays import Floats
from mlscale.predictors.intervals import least_scale
from mlscale.predictors.sampled import bases
from mlscale.predictors.sampled.bases import Belief, belief, inputs_at
from mlscale.predictors.sampled.estimator import Sampled
from mlscale.predictors.sampled.model import Opinions

CLOCKS = np.array([1000.0, 2000.0])
BETWEEN = 1000 * 2**0.5  # half way, in the logarithm
ASKED = np.array([1000.0, BETWEEN, 2000.0])
AT_1000, AT_2000 = np.array([[0.0, 0.2]]), np.array([[0.4, 0.0]])  # their misfits


@dataclass
class Trained:
    """Opinions of one kernel's log ratios to a base, at both clocks."""

    engine_mhz: float
    curve: list[float]
    trees: list[float]
    trees_sd: list[float]
    misfit: Floats
    scores: Floats = field(default_factory=lambda: np.array([0.0, 1.0]))

    def opinions(self, profiles: Profiles) -> tuple[Opinions, Floats]:  # noqa: ARG002
        own = [np.array([of]) for of in (self.curve, self.trees, self.trees_sd)]
        return Opinions(*own), own[0]


BELOW = Trained(1000.0, [0.0, -0.6], [0.0, -0.4], [0.0, 0.1], AT_1000)
ABOVE = Trained(2000.0, [0.8, 0.0], [0.6, 0.0], [0.2, 0.0], AT_2000, np.array([0.0, 3.0]))


def at(engine_mhz: float, monkeypatch: pytest.MonkeyPatch) -> Belief:
    monkeypatch.setattr(bases, "inputs_at", lambda *_: None)
    base = HardwareConfig(8, engine_mhz, 900.0)
    one, trained = np.ones(1), [BELOW, ABOVE]
    profile = Profiles("gpu", base, ("k",), ("k",), one, None, (), np.empty((1, 0)))
    known: Any = trained
    return belief(known, CLOCKS, ASKED, profile)


def test_half_way_both_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The curves are 0.3, 0, -0.3 and 0.4, 0, -0.4 there; the trees 0.2 and 0.3 at the ends."""
    found = at(BETWEEN, monkeypatch)
    assert found.logs == pytest.approx(np.array([[0.35, 0, -0.35]]))
    assert found.scores == pytest.approx([0, 2])
    # Of what is mispredicted, -0.1, 0, 0.1 and 0.2, 0, -0.2, the variances are averaged.
    assert (found.misfit**2).sum(axis=0) == pytest.approx([0.025, 0, 0.025])
    assert found.misfit.T[0] @ found.misfit.T[2] == pytest.approx(-0.025)
    # Half of where curve and trees differ, by 0.1 at both ends, and half of the trees' deviation.
    spread = [0.05 + 0.5 * 0.1, 0.5 * 0.075, 0.05 + 0.5 * 0.05]
    distance = np.abs(np.log(ASKED / BETWEEN))
    assert found.scale == pytest.approx(np.array([spread + least_scale(distance)]))


def test_at_a_trained_base_its_model_speaks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = at(2000.0, monkeypatch)
    assert found.logs == pytest.approx(np.array([[0.8, 0.4, 0]]))
    assert found.scores == pytest.approx([0, 3])
    assert (found.misfit**2).sum(axis=0) == pytest.approx([0.16, 0.04, 0])


def test_what_one_base_alone_has_counters_of() -> None:
    """Of what both have the range is that of both; what one alone has is of the nearer's own."""
    table = made.measurements()
    samples = table.counter_samples.copy()
    samples[:, :, :, :-1, :, table.counter_names.index("sm_active")] = np.nan
    fitted = Sampled(bases=2).fit(replace(table, counter_samples=samples), made.TOP)
    low, high = fitted.bases_
    assert set(high.asked.inputs.measured) - set(low.asked.inputs.measured) == {"sm_active"}
    for engine_mhz, own, other in ((1400.0, high, low), (700.0, low, high)):
        found, inputs = inputs_at(fitted.bases_, engine_mhz), own.asked.inputs
        assert found.measured == inputs.measured
        for k, name in enumerate(found.measured):
            of = [inputs.low[k]]
            if name in other.asked.inputs.measured:
                of.append(other.asked.inputs.low[other.asked.inputs.measured.index(name)])
            assert found.low[k] == min(of), name
    profiles = made.measurements(count=3, seed=7).profiles(made.TOP)
    between = replace(profiles, base=replace(made.TOP, engine_mhz=1400.0))
    assert np.isfinite(fitted.predict_interval(between).values).all()
