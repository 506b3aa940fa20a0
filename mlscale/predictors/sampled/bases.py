"""What is learnt from profiles at several base clocks, and what follows for one between: NumPy.

K kernels, N trained clocks, A clocks asked for; M outputs: the log time ratios and, with power,
after them those of power.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.grid import step_weights
from mlscale.data.profiles import Profiles
from mlscale.predictors.sampled.inputs import SampledInputs
from mlscale.predictors.sampled.model import BaseModel, Opinions


@dataclass(frozen=True, eq=False)
class Belief:
    """What is known of kernels profiled at one base clock, before any further point.

    logs (K, M): log ratios to the base; scale (K, A): of the intervals. scores, misfit: see
    `BaseModel`. inputs: with the ranges that the nearest bases were trained in.
    """

    logs: Floats
    scale: Floats
    scores: Floats
    misfit: Floats
    inputs: SampledInputs


def belief(
    trained: Sequence[BaseModel], clocks: Floats, asked: Floats, profiles: Profiles
) -> Belief:
    """What the two models whose bases are nearest say of profiles at a base between them.

    Each takes the profiles as if they were of its own base, and its log ratios are divided by
    those at theirs; the logs of both are weighted by the distance of the log clocks. At a trained
    base its own model speaks alone. clocks (N,): the trained ones; asked (A,): where to predict,
    the base among them [MHz]. Raises InputError where a kernel's memory share is missing.
    """
    base_mhz = profiles.base.engine_mhz
    at = step_weights(clocks, asked)
    rebased = at - step_weights(clocks, np.array([base_mhz]))
    parts = []
    for own, weight in nearest(trained, base_mhz):
        opinions, logs = own.opinions(profiles)
        there = Opinions(
            opinions.by_curve @ rebased.T, opinions.by_trees @ rebased.T, opinions.trees_sd @ at.T
        )
        scale = there.scale(np.log(asked / base_mhz))
        misfit = np.sqrt(weight) * _of_each(own.misfit, rebased)
        parts.append((weight, _of_each(logs, rebased), scale, own.scores, misfit))
    weights, logs_of, scales, scores, misfits = zip(*parts, strict=True)
    return Belief(
        logs=_mean(weights, logs_of),
        scale=_mean(weights, scales),
        scores=_mean(weights, scores),
        misfit=np.vstack(misfits),
        inputs=inputs_at(trained, base_mhz),
    )


def inputs_at(trained: Sequence[BaseModel], base_mhz: float) -> SampledInputs:
    """The inputs of the model nearest to a base clock, with the ranges of both beside it."""
    pairs = sorted(nearest(trained, base_mhz), key=lambda pair: -pair[1])
    return reduce(SampledInputs.with_ranges_of, (own.asked.inputs for own, _ in pairs))


def nearest(trained: Sequence[BaseModel], base_mhz: float) -> list[tuple[BaseModel, float]]:
    """The one or two models whose bases (ascending) lie beside a clock, with their weights."""
    bases = np.array([own.engine_mhz for own in trained])
    weights = step_weights(bases, np.array([base_mhz]))[0]
    return [(own, float(w)) for own, w in zip(trained, weights, strict=True) if w > 0]


def _of_each(logs: Floats, weights: Floats) -> Floats:
    """Log ratios (K, N) or (K, 2 N) at other clocks, (K, A) or (K, 2 A)."""
    halves = logs.reshape(len(logs), -1, weights.shape[1])
    return (halves @ weights.T).reshape(len(logs), -1)


def _mean(weights: Sequence[float], values: Sequence[Floats]) -> Floats:
    """The weighted mean; empty where one is."""
    if not all(own.size for own in values):
        return np.empty_like(values[0][:0])
    return np.asarray(sum(w * own for w, own in zip(weights, values, strict=True)))
