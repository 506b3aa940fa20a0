"""The optimiser of wu's networks against torch's own, and where the squared error leads them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from scipy.special import expit  # noqa: E402
from torch.optim.rprop import rprop  # noqa: E402

from mlscale.predictors.wu_clusters import (  # noqa: E402
    FIRST_STEP,
    ClassifierTask,
    _rprop,
    train_networks,
)


def test_steps_are_those_of_torch() -> None:
    """200 steps on a bumpy function whose gradients turn, vanish and stay (peer: torch's Rprop)."""
    torch.manual_seed(0)
    first = torch.randn(500)
    target = torch.randn(500)

    def gradient(x: "torch.Tensor") -> "torch.Tensor":
        found = (x - target) + torch.sin(7 * x)
        found[::50] = 0
        return found

    peer = first.clone()
    peers, steps = torch.zeros(500), torch.full((500,), FIRST_STEP)
    usual = {"step_size_min": 1e-6, "step_size_max": 50, "etaminus": 0.5, "etaplus": 1.2}
    ours, before, step = first.clone(), torch.zeros(500), torch.full((500,), FIRST_STEP)
    for _ in range(200):
        # Not torch.optim.Rprop, which is this function but imports torch's compiler.
        rprop([peer], [gradient(peer)], [peers], [steps], [torch.zeros(())], **usual)
        _rprop(ours, gradient(ours), before, step)
        assert torch.equal(ours, peer)
    assert not torch.equal(ours, first)


def test_the_squared_error_falls_to_its_minimum() -> None:
    """By hand: 60 points apart in 22 features can all be told from each other, so it is 0.

    With the slope of the sigmoids alone some outputs stay at 0 for the only kernel of their
    cluster, and each costs 1 / 60 at least.
    """
    random = np.random.default_rng(0)
    features, labels = random.uniform(size=(60, 22)), np.r_[np.arange(20), np.zeros(40, int)]
    for seed in range(3):
        (network,) = train_networks([ClassifierTask(features, labels, (seed,), "squared")])
        hidden = expit(features @ network.hidden_weights + network.hidden_bias)
        output = expit(hidden @ network.output_weights + network.output_bias)
        assert ((output - np.eye(20)[labels]) ** 2).sum() < 0.01
