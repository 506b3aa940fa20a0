"""Curves of several GPUs with latents of each kernel and numbers that all share, as one: NumPy."""

from collections.abc import Sequence

import numpy as np

from mlscale.arrays import Floats
from mlscale.predictors.sampled.curves import Curve


class Pooled:
    """Curves of one kind, one of each GPU; the kernels of each lie one after the other.

    curves and rows: of each GPU, how many kernels it has. The prior is that of the kind.
    """

    def __init__(self, curves: Sequence[Curve], rows: Sequence[int]) -> None:
        self.curves = curves
        self.ends = np.cumsum(rows)[:-1]
        self.prior = curves[0].prior

    def log_ratios(self, latents: Floats, numbers: Floats) -> Floats:
        """Log ratios (K, N) at latents (L, K) and numbers (G,)."""
        own = zip(self.curves, np.split(latents, self.ends, axis=1), strict=True)
        return np.concatenate([curve.log_ratios(part, numbers) for curve, part in own])

    def slopes(self, latents: Floats, numbers: Floats) -> tuple[Floats, Floats]:
        """Derivatives by the latents (L, K, N) and by the numbers (G, K, N)."""
        own = zip(self.curves, np.split(latents, self.ends, axis=1), strict=True)
        pairs = [curve.slopes(part, numbers) for curve, part in own]
        by_latents, by_numbers = zip(*pairs, strict=True)
        return np.concatenate(by_latents, axis=1), np.concatenate(by_numbers, axis=1)
