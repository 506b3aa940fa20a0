"""Many independent fits at once: maximum a posteriori by L-BFGS, gradients by torch.

B fits, P parameters each.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from mlscale.arrays import Floats
from mlscale.predictors.bottleneck.curve import Prior
from mlscale.predictors.bottleneck.optimiser import minimize_together

# The robust loss: squared below this log ratio, absolute above; its weight against the priors.
ROBUST_SCALE, DATA_WEIGHT = 0.015, 4 / 0.03

Tensor = torch.Tensor
Values = dict[str, Tensor]
Loss = Callable[[Values], Tensor]


class Posterior:
    """The posterior of B fits' parameters.

    priors: of each fit, the same names and shapes in all. loss: minus the log likelihoods (B,) of
    the fits at parameters (B, *shape).
    """

    def __init__(self, priors: Sequence[dict[str, Prior]], loss: Loss) -> None:
        self._shapes = {name: prior.shape for name, prior in priors[0].items()}
        self.loss = loss
        self.start = np.array([_joined(own, "mean") for own in priors])
        self._mean = torch.from_numpy(self.start)
        self._precision = torch.from_numpy(np.array([_joined(own, "sd") for own in priors]) ** -2)

    def named(self, points: Tensor) -> Values:
        """Return the parameters (B, *shape) by their names, of points (B, P)."""
        parts = torch.split(points, [math.prod(shape) for shape in self._shapes.values()], 1)
        shapes = self._shapes.items()
        return {n: part.reshape(-1, *own) for (n, own), part in zip(shapes, parts, strict=True)}

    def evaluate(self, points: Floats) -> tuple[Floats, Floats]:
        """Return minus the log posterior (B,) and its gradient (B, P) at points (B, P)."""
        vectors = torch.tensor(points, requires_grad=True)
        off = (vectors - self._mean) ** 2 * self._precision
        value = 0.5 * off.sum(1) + self.loss(self.named(vectors))
        (gradient,) = torch.autograd.grad(value.sum(), vectors)
        return value.detach().numpy(), gradient.numpy()

    def most_probable(self, steps: int) -> list[dict[str, Floats]]:
        """Return each fit's parameters by name, at the largest density that L-BFGS finds."""
        best = minimize_together(self.evaluate, self.start, steps)
        values = self.named(torch.from_numpy(best))
        return [{name: own[b].numpy() for name, own in values.items()} for b in range(len(best))]


def _joined(priors: dict[str, Prior], field: str) -> Floats:
    """Return the means or the standard deviations of all parameters, one after another."""
    parts = [np.broadcast_to(getattr(own, field), own.shape).ravel() for own in priors.values()]
    return np.concatenate(parts)


class RobustLoss(torch.autograd.Function):
    """See `robust_loss`; with its gradient by hand, for it is most of the work of training."""

    @staticmethod
    def forward(ctx: Any, predicted: Tensor, measured: Tensor, weight: Tensor) -> Tensor:
        """Return the losses (B,), and keep the slope by the error, error / size."""
        error = predicted - measured
        size = torch.sqrt_((error**2).add_(ROBUST_SCALE**2))
        losses = (DATA_WEIGHT * weight * (size.mean(2) - ROBUST_SCALE)).sum(1)
        ctx.save_for_backward(error.div_(size), weight)
        return losses

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """Return the gradient by what is predicted (B, K, N)."""
        slope, weight = ctx.saved_tensors
        of_kernels = gradients[0][:, None] * weight * (DATA_WEIGHT / slope.shape[2])
        return slope * of_kernels[..., None], None, None


def robust_loss(predicted: Tensor, measured: Tensor, weight: Tensor) -> Tensor:
    """Return minus the log likelihoods (B,) of log ratios (B, K, N): mean over N, sum over K.

    weight (B, K): 1 of a kernel, 0 of one that only fills the batch.
    """
    losses: Tensor = RobustLoss.apply(predicted, measured, weight)  # type: ignore[no-untyped-call]
    return losses
