"""What two trained bases say of a profile at a clock between them, by hand."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from mlscale import HardwareConfig, Profiles
from mlscale.arrays import Floats
from mlscale.predictors.intervals import least_scale
from mlscale.predictors.sampled import bases
from mlscale.predictors.sampled.bases import Belief, belief
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
