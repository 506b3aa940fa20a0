"""Many independent minimisations at once, in one array loop: L-BFGS for B functions of P variables.

A call of torch costs by the call rather than by the function, so all are evaluated together.
Nocedal and Wright, Numerical Optimization (2006): algorithm 7.4 gives the directions, with the
start of (7.20); a line search gives steps that meet the weak Wolfe conditions, (3.6).
"""

from collections.abc import Callable

import numpy as np

from mlscale.arrays import Floats, Mask

MEMORY = 20  # steps whose gradients are remembered
DECREASE, CURVATURE = 1e-3, 0.9  # of the Wolfe conditions
MOST_TRIES = 20  # steps of one line search; after so many rounding hides any decrease
LEAST_SLOPE, LEAST_GAIN = 1e-5, 2.2e-9  # of the gradient, and of the value, relative: converged
LONGER = 4.0  # times a step that is too short
INSIDE = 0.1  # a step between two others is so far from both at least, as a share

Evaluate = Callable[[Floats], tuple[Floats, Floats]]


@np.errstate(all="ignore")  # of steps that end where a function is no number
def minimize_together(evaluate: Evaluate, starts: Floats, steps: int) -> Floats:
    """Minimise B functions from starts (B, P), by so many steps at most, and return where they end.

    evaluate: points (B, P) to values (B,) and gradients (B, P). No function moves another.
    """
    points = starts.copy()
    values, gradients = evaluate(points)
    memory, taken = Memory(*points.shape), np.zeros(len(points), int)
    directions = -gradients / np.linalg.norm(gradients, axis=1, keepdims=True).clip(1e-300)
    search = LineSearch(values, dot(gradients, directions))
    goes_on = np.abs(gradients).max(axis=1) > LEAST_SLOPE
    while goes_on.any():
        tried = points + search.step[:, None] * directions
        new_values, new_gradients = evaluate(tried)
        arrived = search.judge(new_values, dot(new_gradients, directions)) & goes_on
        goes_on &= search.tries < MOST_TRIES
        memory.add(arrived, tried - points, new_gradients - gradients)
        gain = (values - new_values) / np.maximum(1, np.maximum(abs(values), abs(new_values)))
        points[arrived], values[arrived] = tried[arrived], new_values[arrived]
        gradients[arrived] = new_gradients[arrived]
        taken += arrived
        is_flat = (gain <= LEAST_GAIN) | (np.abs(gradients).max(axis=1) <= LEAST_SLOPE)
        goes_on &= ~(arrived & (is_flat | (taken == steps)))
        directions[arrived] = memory.directions(gradients)[arrived]
        search.restart(arrived, values, dot(gradients, directions))
    return points


def dot(a: Floats, b: Floats) -> Floats:
    """Return the inner products (B,) of the rows of two arrays (B, P)."""
    return np.asarray(np.einsum("bp,bp->b", a, b))


class Memory:
    """The last steps and what the gradient changed by on them, both (M, B, P), the newest last."""

    def __init__(self, functions: int, variables: int) -> None:
        self.steps, self.changes = np.zeros((2, MEMORY, functions, variables))
        self.weights = np.zeros((MEMORY, functions))  # 0 of a step that is not there
        self.scale = np.ones(functions)

    def add(self, rows: Mask, steps: Floats, changes: Floats) -> None:
        """Remember steps and changes (B, P) of some functions, unless one curves downwards."""
        curvature, length = dot(steps, changes), dot(changes, changes)
        rows = rows & (curvature > np.finfo(float).eps * length)
        for kept, new in ((self.steps, steps), (self.changes, changes)):
            kept[:, rows] = np.roll(kept[:, rows], -1, axis=0)
            kept[-1, rows] = new[rows]
        self.weights[:, rows] = np.roll(self.weights[:, rows], -1, axis=0)
        self.weights[-1, rows] = 1 / curvature[rows]
        self.scale[rows] = curvature[rows] / length[rows]

    def directions(self, gradients: Floats) -> Floats:
        """Return where the functions fall from points with these gradients, (B, P)."""
        result, shares = -gradients, np.zeros_like(self.weights)
        for m in reversed(range(MEMORY)):
            shares[m] = self.weights[m] * dot(self.steps[m], result)
            result -= shares[m, :, None] * self.changes[m]
        result *= self.scale[:, None]
        for m in range(MEMORY):
            back = self.weights[m] * dot(self.changes[m], result)
            result += (shares[m] - back)[:, None] * self.steps[m]
        return np.asarray(result)


class LineSearch:
    """How far to go along B directions: `step` (B,), tried after `tries` (B,) others.

    values, slopes (B,): of each function and along its direction, where the search starts.
    """

    def __init__(self, values: Floats, slopes: Floats) -> None:
        self.values, self.slopes = values.copy(), slopes.copy()
        # The longest step that was too short, with value and slope there; the shortest too long.
        self.low, self.low_values, self.low_slopes = 0 * values, values.copy(), slopes.copy()
        self.high, self.step = np.full_like(values, np.inf), np.ones_like(values)
        self.tries = np.zeros(len(values), int)

    def restart(self, rows: Mask, values: Floats, slopes: Floats) -> None:
        """Begin anew for some functions."""
        for name, new in vars(LineSearch(values, slopes)).items():
            getattr(self, name)[rows] = new[rows]

    def judge(self, values: Floats, slopes: Floats) -> Mask:
        """Return which steps are right, by what is found there (B,); the others are changed."""
        enough = values <= self.values + DECREASE * self.step * self.slopes
        too_short = enough & (slopes < CURVATURE * self.slopes)
        width = self.step - self.low
        bend = values - self.low_values - self.low_slopes * width
        lowest = self.low - 0.5 * self.low_slopes * width**2 / bend  # of a parabola
        self.high = np.where(enough, self.high, self.step)
        for name, new in (("low", self.step), ("low_values", values), ("low_slopes", slopes)):
            setattr(self, name, np.where(too_short, new, getattr(self, name)))
        between = self.high - self.low
        inside = np.where(enough | ~np.isfinite(lowest), self.low + 0.5 * between, lowest)
        inside = np.clip(inside, self.low + INSIDE * between, self.high - INSIDE * between)
        self.step = np.where(np.isinf(self.high), LONGER * self.step, inside)
        self.tries += 1
        return np.asarray(enough & ~too_short)
