"""The network of Wu et al. (Fig. 9) as the paper has it, in double precision: a reference."""

import numpy as np

from mlscale.arrays import Floats
from mlscale.predictors.wu_clusters import Network


def outputs(network: Network, features: Floats) -> Floats:
    """One value in (0, 1) per cluster, (N, K), from features (N, F): sigmoid on both layers."""
    hidden = sigmoid(features @ network.hidden_weights + network.hidden_bias)
    return sigmoid(hidden @ network.output_weights + network.output_bias)


def sigmoid(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))
