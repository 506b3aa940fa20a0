"""Extremely randomised trees as arrays: grown by scikit-learn, evaluated by NumPy alone."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices, shaped

LEAF = -1


@dataclass(frozen=True, eq=False)
class Forest:
    """T trees from D inputs to N outputs.

    Nodes of all trees one after another: feature, LEAF for a leaf; threshold, at most which an
    input goes left; left and right, the numbers of the next nodes; value: of a leaf, its row in
    `leaves` (leaves, N). roots (T,): each tree's first node.
    """

    roots: Indices
    feature: Indices
    threshold: Floats
    left: Indices
    right: Indices
    value: Indices
    leaves: Floats

    @classmethod
    def grow(cls, points: Floats, outputs: Floats, trees: int, least_leaf: int, seed: int) -> Self:
        """Trees grown on points (n, D) and outputs (n, N), without NaN, with scikit-learn.

        They are those of `ExtraTreesRegressor`, which takes twice as long: it makes, clones and
        checks an estimator for each tree.
        """
        from sklearn import config_context
        from sklearn.tree import ExtraTreeRegressor

        points, outputs = points.astype(np.float32, "C"), outputs.astype(np.float64, "C")
        seeds = np.random.RandomState(seed)
        tree, grown = ExtraTreeRegressor(min_samples_leaf=least_leaf), []
        with config_context(skip_parameter_validation=True):
            for _ in range(trees):
                tree.random_state = seeds.randint(np.iinfo(np.int32).max)
                grown.append(tree.fit(points, outputs, check_input=False).tree_)
        sizes = [tree.node_count for tree in grown]
        roots = np.cumsum([0, *sizes[:-1]])
        inner = np.concatenate([tree.children_left >= 0 for tree in grown])
        start = np.repeat(roots, sizes)

        def joined(name: str) -> Any:
            return np.concatenate([getattr(tree, name) for tree in grown])

        leaves = np.concatenate([tree.value[:, :, 0] for tree in grown])[~inner]
        return cls(
            roots=roots,
            feature=np.where(inner, joined("feature"), LEAF),
            threshold=np.where(inner, joined("threshold"), 0.0),
            left=np.where(inner, joined("children_left") + start, 0),
            right=np.where(inner, joined("children_right") + start, 0),
            value=np.where(inner, 0, np.cumsum(~inner) - 1),
            leaves=leaves,
        )

    def rounded(self) -> Self:
        """The same with leaves in single precision: a model file is a third smaller."""
        return replace(self, leaves=self.leaves.astype(np.float32))

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """The mean and the standard deviation over the trees, (K, N) each, at points (K, D)."""
        inputs = points.astype(np.float32)  # as scikit-learn compares them
        kernels = np.arange(len(points))[:, None]
        node = np.tile(self.roots, (len(points), 1))
        while (inner := self.feature[node] != LEAF).any():
            is_left = inputs[kernels, self.feature[node]] <= self.threshold[node]
            node = np.where(inner, np.where(is_left, self.left[node], self.right[node]), node)
        outputs = self.leaves[self.value[node]].astype(np.float64)
        return outputs.mean(axis=1), outputs.std(axis=1)

    def state(self) -> dict[str, Any]:
        """Arrays for the model file."""
        return dict(vars(self))

    @classmethod
    def restore(cls, state: dict[str, Any], inputs: int, outputs: int) -> Self:
        """What `state` described; a damaged one raises KeyError or ValueError."""
        size = len(state["feature"])
        leaves = shaped(state["leaves"], None, outputs)
        numbers = {
            "roots": (None, 0, size - 1),
            "feature": (size, LEAF, inputs - 1),
            "left": (size, 0, size - 1),
            "right": (size, 0, size - 1),
            "value": (size, 0, len(leaves) - 1),
        }
        arrays = {}
        for name, (length, low, high) in numbers.items():
            arrays[name] = shaped(state[name], length).astype(np.intp)
            if not ((low <= arrays[name]) & (arrays[name] <= high)).all():
                raise ValueError(f"the trees' {name} points nowhere")
        inner, own = arrays["feature"] != LEAF, np.arange(size)
        if not (np.minimum(arrays["left"], arrays["right"]) > own)[inner].all():
            raise ValueError("a tree leads back to an earlier node")
        threshold = shaped(state["threshold"], size)
        return cls(threshold=threshold, leaves=leaves, **arrays)
