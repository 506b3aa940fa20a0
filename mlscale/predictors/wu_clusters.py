"""Clusters of scaling values, the networks that choose among them, how both predict and learn.

Source: Wu et al., HPCA 2015. Scaling values and the walk that multiplies them into a surface:
section III-B, Fig. 7 and 8, Eq. (1). Clusters and networks: section III-C and Fig. 9. Clusters are
made by K-means; the classifiers of all models are trained as one batch, in torch.
"""

import functools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.grid import ConfigGrid, HardwareConfig, Index
from mlscale.predictors.state import INLINE

if TYPE_CHECKING:
    import torch

Singles = NDArray[np.float32]

LOSSES = CROSS_ENTROPY, SQUARED = ("cross-entropy", "squared")  # that networks are trained by
CU_AXIS = -1  # the region of the cluster set for the CU axis; the others are indices of CU counts
KERNELS_AT_ONCE = 1024  # whose surfaces the processor's cache holds
# How networks are trained: docs/decisions/0003-wu-classifier-training.md.
STEPS = {CROSS_ENTROPY: 300, SQUARED: 1000}
FIRST_STEP = 0.05
GROW, SHRINK = 1.2, 0.5
STEP_RANGE = (1e-6, 50.0)
WEIGHT_DECAY = 0.1
OFF_FLAT = 0.1  # added to the slope of the squared error's sigmoids, so that none stays at 0 or 1
UNUSED_OUTPUT = 1e9
NUMBERS_PER_CHUNK = 4_000_000  # features and labels of the networks trained at once


@dataclass(frozen=True, eq=False)
class ScalingValues:
    """Ratios next / previous along each axis; leading dimensions (kernels, clusters) are free.

    memory (..., C, E, M-1) for a fixed engine clock (Fig. 7b), engine (..., C, E-1, M) for a
    fixed memory clock (Fig. 7c), cu (..., C-1) at the base engine and memory clock (Fig. 8).
    An axis of length 1 has no values.
    """

    memory: Floats
    engine: Floats
    cu: Floats


def scaling_values(quantity: Floats, base: Index) -> ScalingValues:
    """Return the scaling values of kernels whose time or power is known on the whole grid.

    quantity: (..., C, E, M), positive. base: the index of the base configuration.
    """
    _, base_engine, base_memory = base
    at_base_clocks = quantity[..., base_engine, base_memory]
    return ScalingValues(
        memory=quantity[..., 1:] / quantity[..., :-1],
        engine=quantity[..., 1:, :] / quantity[..., :-1, :],
        cu=at_base_clocks[..., 1:] / at_base_clocks[..., :-1],
    )


def walk(scaling: ScalingValues, base: Index) -> Floats:
    """Return the surface (..., C, E, M), relative to the base, that the scaling values span.

    The walk goes from the base to every target: CU steps first, at the base's clocks; then
    engine steps at the base's memory clock; then memory steps at the target's engine clock, where
    Equation (1) as printed, m_(i,2), runs over rows of Fig. 7, which are engine clocks. The last
    two use the values of the target's CU count; a step down divides.
    """
    base_cu, base_engine, base_memory = base
    cu_steps = _log_from(scaling.cu, base_cu)[..., :, None, None]
    engine_steps = _log_from(scaling.engine[..., base_memory], base_engine)[..., None]
    memory_steps = _log_from(scaling.memory, base_memory)
    return np.exp(cu_steps + engine_steps + memory_steps)


def _log_from(ratios: Floats, start: int) -> Floats:
    """Return the running log product of step ratios along the last axis, 0 at index start."""
    total = np.zeros((*ratios.shape[:-1], ratios.shape[-1] + 1))
    np.cumsum(np.log(ratios), axis=-1, out=total[..., 1:])
    return np.asarray(total - total[..., start : start + 1])


@dataclass(frozen=True, eq=False)
class Network:
    """A classifier (Fig. 9): F features -> K hidden -> K outputs, sigmoid on both layers.

    hidden_weights (F, K), hidden_bias (K,), output_weights (K, K), output_bias (K,).
    """

    hidden_weights: Annotated[Floats, "F K"]
    hidden_bias: Annotated[Floats, "K"]
    output_weights: Annotated[Floats, "K K"]
    output_bias: Annotated[Floats, "K"]


@dataclass(frozen=True, eq=False)
class ClusterSet:
    """The clusters of one region (section III-C) and the network that chooses among them.

    region: the index of a CU count, or CU_AXIS. centroids (K, V): mean scaling values.
    """

    region: int
    centroids: Annotated[Floats, "K V"]
    network: Annotated[Network, INLINE]


def region_values(scaling: ScalingValues) -> dict[int, Floats]:
    """Return what K-means sees: for each region the scaling values (n, V) of n kernels.

    Per CU count memory and engine scaling values, concatenated; the CU axis by itself. A region
    without values (every axis of length 1) does not exist.
    """
    count, cu_counts = scaling.memory.shape[:2]
    values = {
        c: np.concatenate(
            [scaling.memory[:, c].reshape(count, -1), scaling.engine[:, c].reshape(count, -1)],
            axis=1,
        )
        for c in range(cu_counts)
    }
    values[CU_AXIS] = scaling.cu
    return {region: v for region, v in values.items() if v.shape[1]}


def scaling_from_regions(regions: dict[int, Floats], shape: Index, count: int) -> ScalingValues:
    """Return the inverse of region_values, for `count` kernels on a grid of the shape (C, E, M)."""
    cu_counts, engines, memories = shape
    memory = np.ones((count, cu_counts, engines, memories - 1))
    engine = np.ones((count, cu_counts, engines - 1, memories))
    split = engines * (memories - 1)
    for region, values in regions.items():
        if region != CU_AXIS:
            memory[:, region] = values[:, :split].reshape(count, engines, memories - 1)
            engine[:, region] = values[:, split:].reshape(count, engines - 1, memories)
    cu = regions.get(CU_AXIS, np.ones((count, cu_counts - 1)))
    return ScalingValues(memory, engine, cu)


@dataclass(frozen=True, eq=False)
class WalkTables:
    """The walk in two parts, which multiply: along the CU axis, then within a CU count.

    S networks, one for each CU count if the grid has several clocks, then that of the CU axis if
    it has one. They are padded to K clusters, in single precision as they were trained, to be
    multiplied from the left: hidden_weights (S*K, F), hidden_bias (S*K, 1), output_weights
    (S, K, K), output_bias (S, K, 1); they make of sigmoid(x) = (1 + tanh(x / 2)) / 2 a tanh.
    cu_factors (K, C): the base's clocks at every CU count; clock_factors (C, K, E*M): every pair
    of clocks, relative to the base's clocks at that CU count.
    """

    shape: Index
    hidden_weights: Singles
    hidden_bias: Singles
    output_weights: Singles
    output_bias: Singles
    cu_factors: Floats
    clock_factors: Floats

    @classmethod
    def from_sets(
        cls, sets: Sequence[ClusterSet], features: int, grid: ConfigGrid, base: HardwareConfig
    ) -> Self:
        """Walk along every centroid once, and put the networks of F features side by side."""
        cu_counts, engines, memories = grid.shape
        most = max((len(one.centroids) for one in sets), default=1)
        hidden_weights = np.zeros((len(sets), most, features), np.float32)
        hidden_bias = np.zeros((len(sets), most, 1), np.float32)
        output_weights = np.zeros((len(sets), most, most), np.float32)
        output_bias = np.full((len(sets), most, 1), -np.inf, np.float32)
        cu_factors = np.ones((most, cu_counts))
        clock_factors = np.ones((cu_counts, most, engines * memories))
        cu_axis_last = sorted(sets, key=lambda one: (one.region == CU_AXIS, one.region))
        for s, one in enumerate(cu_axis_last):
            network, count = one.network, len(one.centroids)
            hidden_weights[s, :count] = network.hidden_weights.T / 2
            hidden_bias[s, :count, 0] = network.hidden_bias / 2
            output_weights[s, :count, :count] = network.output_weights.T / 2
            output_bias[s, :count, 0] = network.output_bias + network.output_weights.sum(axis=0) / 2
            factors = centroid_factors(one.region, one.centroids, grid.shape, grid.index(base))
            if one.region == CU_AXIS:
                cu_factors[:count] = factors
            else:
                clock_factors[one.region, :count] = factors.reshape(count, -1)
        return cls(
            shape=grid.shape,
            hidden_weights=hidden_weights.reshape(-1, features),
            hidden_bias=hidden_bias.reshape(-1, 1),
            output_weights=output_weights,
            output_bias=output_bias,
            cu_factors=cu_factors,
            clock_factors=clock_factors,
        )

    def surfaces(self, features: Floats) -> Floats:
        """Return factors (n, C, E, M) from normalised features (n, F)."""
        cu_counts, clusters, pairs = self.clock_factors.shape
        counts, walks = np.arange(cu_counts), None
        if len(features) > clusters**2:  # walked along every pair of clusters
            walks = (self.cu_factors[:, :, None, None] * self.clock_factors).reshape(-1, pairs)
        values = np.empty((len(features), cu_counts, pairs))
        for start in range(0, len(features), KERNELS_AT_ONCE):
            part = slice(start, start + KERNELS_AT_ONCE)
            chosen = self.chosen(features[part])
            none = np.zeros_like(chosen, shape=(cu_counts, chosen.shape[1]))
            on_cu_axis = chosen[-1] if cu_counts > 1 else none[0]
            regions = chosen[:cu_counts] if pairs > 1 else none
            if walks is None:
                factors = self.clock_factors[counts, regions.T]
                np.multiply(factors, self.cu_factors[on_cu_axis, :, None], out=values[part])
            else:
                rows = regions + clusters * (counts[:, None] + cu_counts * on_cu_axis)
                np.take(walks, rows.T, axis=0, out=values[part], mode="clip")  # else it copies
        return values.reshape(-1, *self.shape)

    def chosen(self, features: Floats) -> Indices:
        """Return the cluster (S, n) whose output is largest in each network.

        The output layer's sigmoid is left out: it does not change which is largest.
        """
        hidden = self.hidden_weights @ features.T.astype(np.float32)
        hidden += self.hidden_bias
        np.tanh(hidden, out=hidden)
        outputs = self.output_weights @ hidden.reshape(*self.output_bias.shape[:2], len(features))
        outputs += self.output_bias
        if len(features) < KERNELS_AT_ONCE:
            return np.asarray(outputs.argmax(axis=1))
        # A third of argmax's time over so few: of the equal largest the first has the most left.
        left = np.arange(outputs.shape[1], 0, -1, dtype=np.int16)[:, None]
        is_largest = outputs == outputs.max(axis=1, keepdims=True)
        return np.asarray(outputs.shape[1] - (is_largest * left).max(axis=1), np.intp)


def centroid_factors(region: int, centroids: Floats, shape: Index, at: Index) -> Floats:
    """Return the surfaces that a region's centroids (K, V) span, on a grid of the shape (C, E, M).

    Of the CU axis (K, C), at the clocks of the base, whose index is `at`; else (K, E, M), relative
    to the base's clocks at that CU count.
    """
    scaling = scaling_from_regions({region: centroids}, shape, len(centroids))
    walked = walk(scaling, at)
    return walked[:, :, at[1], at[2]] if region == CU_AXIS else walked[:, region]


@dataclass(frozen=True, eq=False)
class ClassifierTask:
    """What one network must learn: features (n, F) in [0, 1] -> labels (n,) in 0 … K-1.

    seed: of the first weights; they do not depend on what else is in the batch. loss: one of
    LOSSES.
    """

    features: Floats
    labels: Indices
    seed: tuple[int, ...]
    loss: str = CROSS_ENTROPY


def cluster(values: Floats, clusters: int, seed: int) -> tuple[Indices, Floats]:
    """Cluster scaling values (n, V): labels (n,) and centroids (K, V), the members' means.

    K is `clusters`, or the number of distinct rows where that is smaller (section III-C); rows
    that differ by rounding alone are not distinct.
    """
    return _cluster(np.ascontiguousarray(values).tobytes(), values.shape, clusters, seed)


@functools.lru_cache(maxsize=64)  # a CU count's regions recur with every base of a study
def _cluster(
    content: bytes, shape: tuple[int, ...], clusters: int, seed: int
) -> tuple[Indices, Floats]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    values = np.frombuffer(content).reshape(shape)
    rows = values.astype(np.float32)
    distinct, labels = np.unique(rows, axis=0, return_inverse=True)
    if clusters < len(distinct):
        with warnings.catch_warnings(), _threads().limit(limits=1):
            warnings.simplefilter("ignore", ConvergenceWarning)  # rows that nearly coincide
            labels = KMeans(clusters, n_init=10, random_state=seed).fit(rows).labels_
    used, labels = np.unique(labels, return_inverse=True)
    members = np.eye(len(used))[labels]
    centroids = members.T @ values / members.sum(axis=0)[:, None]
    labels.setflags(write=False)
    centroids.setflags(write=False)
    return labels, centroids


@functools.cache
def _threads() -> Any:
    """Return what limits threads: K-means of tables this small runs slower on several."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def train_networks(tasks: Sequence[ClassifierTask]) -> list[Network]:
    """Train a network for every task, in batches that bound the memory.

    The paper gives no loss or optimiser; see docs/decisions/0003-wu-classifier-training.md.
    """
    import torch

    networks: list[Network] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # products this small run slower on several threads
    try:
        for chunk in _chunks(tasks):
            networks += _train_batch(chunk)
    finally:
        torch.set_num_threads(threads)
    return networks


def _chunks(tasks: Sequence[ClassifierTask]) -> Iterator[Sequence[ClassifierTask]]:
    """Yield the tasks in order: of one loss, as many as the padded batch has room for."""
    start = size = 0
    for end, task in enumerate(tasks):
        kernels, features = task.features.shape
        numbers = kernels * (features + int(task.labels.max()) + 1)
        size = max(size, numbers)
        other_loss = task.loss != tasks[start].loss
        if end > start and (other_loss or size * (end + 1 - start) > NUMBERS_PER_CHUNK):
            yield tasks[start:end]
            start, size = end, numbers
    if tasks:
        yield tasks[start:]


def _train_batch(tasks: Sequence[ClassifierTask]) -> list[Network]:
    """Train by full-batch Rprop on the tasks' loss; each network by itself.

    'cross-entropy' is that of the softmax with weight decay, of inputs shifted to [-1, 1];
    'squared' the squared error of the sigmoid outputs without, of inputs in [0, 1], as the paper
    can be read literally.

    Shapes: S networks, padded to N kernels, F features and K clusters. A padded kernel has weight
    0, a padded hidden unit is held at 0, a padded output far below the others. Kernels are the
    last axis: a softmax along a last axis as short as K takes ten times as long.
    """
    import torch

    squared = tasks[0].loss == SQUARED
    sizes = [(*t.features.shape, int(t.labels.max()) + 1) for t in tasks]
    n, f, k = (max(size) for size in zip(*sizes, strict=True))
    inputs, targets = np.zeros((len(tasks), f, n)), np.zeros((len(tasks), k, n))
    first_hidden, first_output = np.zeros((len(tasks), k, f)), np.zeros((len(tasks), k, k))
    used = np.zeros((len(tasks), k, 1))
    for s, (task, (kernels, features, clusters)) in enumerate(zip(tasks, sizes, strict=True)):
        shifted = task.features if squared else 2 * task.features - 1
        inputs[s, :features, :kernels] = shifted.T
        targets[s, task.labels, np.arange(kernels)] = 1 / kernels
        used[s, :clusters] = 1
        hidden, output = _first_weights(features, clusters, task.seed)
        first_hidden[s, :clusters, :features] = hidden.T
        first_output[s, :clusters, :clusters] = output.T
    bias = np.zeros((len(tasks), k, 1))
    decay = np.array([(not squared) * WEIGHT_DECAY / n for n, _, _ in sizes])[:, None, None]
    first = [_tensor(p) for p in (first_hidden, bias, first_output, bias)]
    with torch.no_grad():
        x, y, in_use, weight = (_tensor(a) for a in (inputs, targets, used, decay))
        parameters = _descend(first, x, y, in_use, weight, squared)
    w1, b1, w2, b2 = (p.cpu().double().numpy() for p in parameters)
    networks = [
        Network(
            w1[s, :clusters, :features].T.copy(),
            b1[s, :clusters, 0].copy(),
            w2[s, :clusters, :clusters].T.copy(),
            b2[s, :clusters, 0].copy(),
        )
        for s, (_, features, clusters) in enumerate(sizes)
    ]
    return networks if squared else [_unshifted(network) for network in networks]


def _tensor(array: Floats) -> "torch.Tensor":
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.tensor(array, dtype=torch.float32, device=device)


def _descend(
    first: Sequence["torch.Tensor"],
    x: "torch.Tensor",
    y: "torch.Tensor",
    used: "torch.Tensor",
    decay: "torch.Tensor",
    squared: bool = False,
) -> "list[torch.Tensor]":
    """Train from the first parameters. The gradient is written out: half of autograd's cost."""
    import torch

    parameters, (w1, b1, w2, b2) = _side_by_side(first)
    gradient, (to_w1, to_b1, to_w2, to_b2) = _side_by_side(first)
    before = torch.zeros_like(parameters)
    step = torch.full_like(parameters, FIRST_STEP)
    unused = (used - 1) * UNUSED_OUTPUT
    weight = y.sum(dim=1, keepdim=True)
    for _ in range(STEPS[SQUARED if squared else CROSS_ENTROPY]):
        hidden = torch.baddbmm(b1, w1, x).sigmoid_().mul_(used)
        output = torch.baddbmm(b2 + unused, w2, hidden)
        # d loss / d (input of the output layer)
        if squared:
            output.sigmoid_()
            to_output = (output * weight).sub_(y).mul_(output * (1 - output) + OFF_FLAT)
        else:
            to_output = output.softmax(dim=1).mul_(weight).sub_(y)
        to_hidden = (w2.mT @ to_output).mul_(hidden).mul_(1 - hidden)
        torch.mul(w2, decay, out=to_w2).baddbmm_(to_output, hidden.mT)
        torch.sum(to_output, dim=2, keepdim=True, out=to_b2)
        torch.mul(w1, decay, out=to_w1).baddbmm_(to_hidden, x.mT)
        torch.sum(to_hidden, dim=2, keepdim=True, out=to_b1)
        _rprop(parameters, gradient, before, step)
    return [w1, b1, w2, b2]


def _side_by_side(tensors: Sequence["torch.Tensor"]) -> "tuple[torch.Tensor, list[torch.Tensor]]":
    """Return a copy of all numbers in one row, and the tensors as views of it."""
    import torch

    row = torch.cat([tensor.ravel() for tensor in tensors])
    parts = torch.split(row, [tensor.numel() for tensor in tensors])
    return row, [part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True)]


def _rprop(
    parameters: "torch.Tensor",
    gradient: "torch.Tensor",
    before: "torch.Tensor",
    step: "torch.Tensor",
) -> None:
    """Make one step of Rprop in place, as torch.optim.Rprop does, on all parameters in one row.

    A step grows while the sign of its gradient stays; where it turned, it shrinks and waits. Where
    that is so is 1, elsewhere 0, to be multiplied: masks, as in torch's, take five times as long.
    """
    turn = before.mul_(gradient)
    turned = turn.clone().lt_(0)
    stays = turn.gt_(0)
    factor = stays.mul_(GROW - 1).add_(1).sub_(turned, alpha=1 - SHRINK)
    step.mul_(factor).clamp_(*STEP_RANGE)
    gradient.mul_(turned.neg_().add_(1))
    parameters.addcmul_(gradient.sign(), step, value=-1)
    before.copy_(gradient)


def _first_weights(features: int, clusters: int, seed: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return Glorot and Bengio's uniform initial weights."""
    random = np.random.default_rng(seed)
    hidden = random.uniform(-1, 1, (features, clusters)) * np.sqrt(6 / (features + clusters))
    output = random.uniform(-1, 1, (clusters, clusters)) * np.sqrt(6 / (2 * clusters))
    return hidden, output


def _unshifted(network: Network) -> Network:
    """Return the network for features in [0, 1], from weights trained on features in [-1, 1]."""
    hidden = network.hidden_weights
    return replace(
        network, hidden_weights=2 * hidden, hidden_bias=network.hidden_bias - hidden.sum(axis=0)
    )
