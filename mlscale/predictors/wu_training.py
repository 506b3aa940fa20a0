"""Training for `wu`: K-means, and all classifiers of all models as one batch in torch."""

import functools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import ThreadpoolController

from mlscale.arrays import Floats, Indices
from mlscale.predictors.wu_clusters import CROSS_ENTROPY, SQUARED, Network

if TYPE_CHECKING:
    import torch
else:
    try:
        import torch
    except ImportError:
        torch = None


_THREADS = ThreadpoolController()  # K-means of tables this small runs slower on several threads
RPROP_STEPS = 300
FIRST_STEP = 0.05
GROW, SHRINK = 1.2, 0.5
STEP_RANGE = (1e-6, 50.0)
WEIGHT_DECAY = 0.1
UNUSED_OUTPUT = 1e9
NUMBERS_PER_CHUNK = 4_000_000  # features and labels of the networks trained at once


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
    values = np.frombuffer(content).reshape(shape)
    rows = values.astype(np.float32)
    distinct, labels = np.unique(rows, axis=0, return_inverse=True)
    if clusters < len(distinct):
        with warnings.catch_warnings(), _THREADS.limit(limits=1):
            warnings.simplefilter("ignore", ConvergenceWarning)  # rows that nearly coincide
            labels = KMeans(clusters, n_init=10, random_state=seed).fit(rows).labels_
    used, labels = np.unique(labels, return_inverse=True)
    members = np.eye(len(used))[labels]
    centroids = members.T @ values / members.sum(axis=0)[:, None]
    labels.setflags(write=False)
    centroids.setflags(write=False)
    return labels, centroids


def train_networks(tasks: Sequence[ClassifierTask]) -> list[Network]:
    """Train a network for every task, in batches that bound the memory.

    The paper gives no loss or optimiser; see docs/decisions/0003-wu-classifier-training.md.
    """
    if torch is None:
        raise ModuleNotFoundError(name="torch")
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
    weight_decay = 0.0 if squared else WEIGHT_DECAY
    decay = np.array([weight_decay / kernels for kernels, _, _ in sizes])[:, None, None]
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
    parameters, (w1, b1, w2, b2) = _side_by_side(first)
    gradient, (to_w1, to_b1, to_w2, to_b2) = _side_by_side(first)
    before = torch.zeros_like(parameters)
    step = torch.full_like(parameters, FIRST_STEP)
    unused = (used - 1) * UNUSED_OUTPUT
    weight = y.sum(dim=1, keepdim=True)
    for _ in range(RPROP_STEPS):
        hidden = torch.baddbmm(b1, w1, x).sigmoid_().mul_(used)
        output = torch.baddbmm(b2 + unused, w2, hidden)
        # d loss / d (input of the output layer)
        if squared:
            output.sigmoid_()
            to_output = (output * weight).sub_(y).mul_(output).mul_(1 - output)
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
