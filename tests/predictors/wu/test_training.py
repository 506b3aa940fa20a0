"""The optimiser of wu's networks against torch's own, which it must follow to the last bit."""

import pytest

torch = pytest.importorskip("torch")

from torch.optim.rprop import rprop  # noqa: E402

from mlscale.predictors.wu_clusters import FIRST_STEP, _rprop  # noqa: E402


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
