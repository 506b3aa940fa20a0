"""The intervals of `runs`: their scores, from GPUs predicted by the others, and widths: NumPy.

A score is |log error| over what half-widths are proportional to. K training runs, M clocks of each.
Over CU counts, of which no GPU has a table, they are set by hand.
"""

from collections.abc import Sequence

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import scaling_bounds
from mlscale.predictors.conditioning import SurfacePosterior, condition
from mlscale.predictors.intervals import calibrated_scores, score_at
from mlscale.predictors.runs_law import Population, Sweeps

LEAST_SPREAD = {"time": 0.01, "power": 0.045, "energy": 0.04}  # that intervals have, in the log
SECOND_CLOCKS = (0.9, 0.8, 0.67, 0.55)  # that GPUs left out are read at, over the base's
ENOUGH = 0.85  # a left-out GPU counts as held where 90 % intervals held this share of its truth
# Half-widths over CU counts, in the log, the least; and times a Gaussian's: 90 % of the two suites'
# times at other counts were held, from a second reading at 96, 64 or 32 SMs of 132.
LEAST_CU_SPREAD, CU_SCORE = 0.03, 1.2
WAVES = 0.05  # in the log: workgroups are dealt to CUs as wholes, so that times rise in steps

Scores = dict[str, Floats]  # from 'two' readings or more, from 'one', and of 'energy' from two
Held = dict[str, tuple[int, int]]  # on how many GPUs left out, of how many, intervals held


def calibrated(quantity: str, laws: dict[str, Population], sweeps: Sweeps) -> tuple[Scores, Held]:
    """The scores of 'time' or 'power', and on how many GPUs they held. Empty with one GPU."""
    if quantity == "time":
        sweeps = sweeps.select(sweeps.are_timed)
    scores: dict[str, list[Floats]] = {"two": [], "one": [], "energy": []}
    groups: dict[str, list[str]] = {name: [] for name in scores}
    devices = np.unique(sweeps.devices).tolist()
    for device in devices if len(devices) > 1 else ():
        is_left = sweeps.devices == device
        others, left = sweeps.select(~is_left), sweeps.select(is_left)
        known = {
            name: Population.learn(others, name, law).for_gpu(device) for name, law in laws.items()
        }
        for name, found in _scores(quantity, known, left).items():
            scores[name] += found
            groups[name] += [device] * len(found)
    limits = {
        name: calibrated_scores(found, groups[name], alike=True) for name, found in scores.items()
    }
    return limits, {name: _held(found, groups[name]) for name, found in scores.items()}


def _scores(quantity: str, known: dict[str, Population], left: Sweeps) -> dict[str, list[Floats]]:
    """Of each run, where it was not read."""
    found: dict[str, list[tuple[Floats, Mask]]] = {"two": [], "one": [], "energy": []}
    reads = [("two", left.second(share)) for share in SECOND_CLOCKS]
    for name, read in [*reads, ("one", np.zeros_like(left.away))]:
        new = left.away & ~read
        fit = _fitted(known[quantity], left, quantity, read)
        off = np.abs(fit.logs - getattr(left, quantity))
        found[name].append((off / scale_of(fit.after, quantity), new))
        if quantity == "power" and name == "two":
            time = _fitted(known["time"], left, "time", read)
            ends = np.minimum(0, -left.log_clock), np.maximum(0, -left.log_clock)
            times = np.clip(time.logs, *ends)
            power = _fitted(known["power"], left, "power", read, times)
            follows = following(times, known["power"].unknowns(power.latents)[0])
            variance = np.diagonal(energy_covariance(power, time, follows), axis1=1, axis2=2)
            off = np.abs(times + power.logs - left.time - left.power)
            scores = off / scale_of(variance, "energy")
            found["energy"].append((scores, new & left.are_timed[:, None]))
    return {
        name: [
            row[at]
            for row, at in zip(*(np.hstack(part) for part in zip(*parts, strict=True)), strict=True)
            if at.any()
        ]
        for name, parts in found.items()
        if parts
    }


def _fitted(
    known: Population, left: Sweeps, quantity: str, read: Mask, log_time: Floats | None = None
) -> SurfacePosterior:
    """Runs after the readings at some clocks (K, M); log_time: see `Sweeps.law`."""
    prior = known.prior(left.law(quantity, log_time), left.log_clock, len(read))
    return condition(prior, left.points(quantity, read))


def _held(scores: Sequence[Floats], devices: Sequence[str]) -> tuple[int, int]:
    """On how many GPUs, of how many, 90 % intervals by the others' scores held ENOUGH."""
    names, held = list(dict.fromkeys(devices)), 0
    if len(names) < 3:
        return 0, 0
    for device in names:
        pairs = list(zip(scores, devices, strict=True))
        others = [(score, name) for score, name in pairs if name != device]
        their_scores, gpus = map(list, zip(*others, strict=True))
        limit = score_at(calibrated_scores(their_scores, gpus, alike=True), 0.9)
        shares = [np.mean(score <= limit) for score, name in pairs if name == device]
        held += bool(np.mean(shares) >= ENOUGH)
    return held, len(names)


def following(log_time: Floats, log_odds: Floats) -> Floats:
    """The share of the watts (K, N) that follows the rate of work; log_odds (K,): ln a."""
    return np.asarray(1 / (1 + np.exp(log_time - log_odds[:, None])))


def energy_covariance(power: SurfacePosterior, time: SurfacePosterior, follows: Floats) -> Floats:
    """That of log energy (K, N, N), of power at the times predicted, and of these times.

    Energy moves with time by the share of the watts that does not follow the work, 1 - follows.
    """
    stays = 1 - follows
    return np.asarray(power.covariance + stays[:, :, None] * time.covariance * stays[:, None, :])


def scale_of(variance: Floats, quantity: str) -> Floats:
    """What half-widths of the log are proportional to."""
    return np.sqrt(np.maximum(variance, 0) + LEAST_SPREAD[quantity] ** 2)


def ends_over_cus(
    profiles: Profiles, grid: ConfigGrid, fit: SurfacePosterior, coverage: float
) -> list[Floats]:
    """Low and high log time ratios (K, N) on a grid of CU counts, given all readings.

    From each reading time is unchanged to in proportion to the count, WAVES further out.
    """
    from statistics import NormalDist  # which loads decimal numbers

    score = CU_SCORE * NormalDist().inv_cdf((1 + coverage) / 2)
    is_base = grid.settings()["cu_count"] == profiles.base.cu_count
    width = np.where(is_base, 0, score * np.sqrt(fit.after + LEAST_CU_SPREAD**2))
    low, high = fit.logs - width, fit.logs + width
    at_base = np.ones(len(profiles.kernels))
    for config, factors in [(profiles.base, at_base), *profiles.measured_factors("time")]:
        least, most = (np.log(end).ravel() for end in scaling_bounds(grid, config))
        reading = np.log(factors)[:, None]
        low = np.fmax(low, reading + least - WAVES)
        high = np.fmin(high, reading + most + WAVES)
    return [np.minimum(low, fit.logs), np.maximum(high, fit.logs)]
