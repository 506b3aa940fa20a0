"""How latencies of an LLM server follow the engine clock, between two readings: NumPy.

f is the clock, Q a latency, R = Q2 / Q1 at the readings f1 > f2. With a fixed number of clients Q
follows the law of time of `runs`. Where requests come at a rate, a slower step lets more of them
run side by side: by Little's law a step takes a / (1 - q s), so

    s2 = R / (1 - q + q R),    Q(f) = Q1 s(f) (1 - q) / (1 - q s(f)),

s being the law of time through s2, and q how busy the server is: one for all does. Gaps between
tokens are then of two kinds, steps with a prefill and without: each follows the clock quantile by
quantile, and its share is log-linear in it. K latencies, N clocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from mlscale.arrays import Floats
from mlscale.predictors.conditioning import MeasuredRatios, condition
from mlscale.predictors.runs_law import Population, log_times

BUSY = {"itl": 0.5, "tpot": 0.5, "ttft": 0.3}  # q, as simulated servers have it
QUANTILES = 200  # that stand for a kind of gaps, evenly
LEAST_SHORT, LEAST_LONG = 50, 20  # gaps of a kind, below which they are not told apart
BINS = 256  # over the log of gaps
# Half-widths of 90 % intervals [%] midway between the readings: at the median, the 90th and the
# 99th percentile, by whether requests come at a rate; and of gaps of which no kind is known, power,
# and tokens per joule.
WIDTHS = {
    True: {"itl": (2.5, 7.0, 10.0), "tpot": (3.6, 4.2, 6.0), "ttft": (5.0, 6.5, 10.5)},
    False: {"itl": (1.2, 1.5, 3.3), "tpot": (1.3, 1.5, 2.0), "ttft": (2.3, 4.2, 4.8)},
}
ONE_KIND_WIDTH, POWER_WIDTH, TOKENS_WIDTH = 22.0, 7.5, 8.0
# Standard deviations of logs between runs of one server at one clock: the session's, and beside it
# what other requests have, where no list of them tells it (as WIDTHS); of power and tokens/s.
SESSION = {"itl": 0.015, "tpot": 0.015, "ttft": 0.03}
SAMPLED = {"itl": (0.005, 0.025, 0.1), "tpot": (0.005, 0.04, 0.05), "ttft": (0.06, 0.08, 0.15)}
OF_BLOCKS = 1.3  # times the spread that blocks of requests show, which are few
POWER_NOISE, RATE_NOISE = 0.015, {True: 0.003, False: 0.015}
RATE_WIDTH = {True: 0.5, False: 1.3}  # as WIDTHS, for tokens per second
IDLE = 0.92  # watts that go by the time, not by the token, of those of the slow reading
CAPPED = 0.01  # beside SESSION, of a clock that a power limit sets: its mean overstates it
USUAL, FURTHER = 2 / 3, 2.0  # clocks of WIDTHS, and the power of a longer way by which they widen
Z90 = 1.645
Kinds = tuple[Floats, Floats]


def width(metric: str, percentile: float, is_rate: bool) -> float:
    """The half-width of a latency's 90 % interval midway between the readings [%]."""
    return float(np.interp(percentile, [50, 90, 99], WIDTHS[is_rate][metric]))


def sampled_noise(metric: str, percentile: float) -> float:
    """Standard deviation of the log of a latency as the requests vary, where no list tells it."""
    return float(np.interp(percentile, [50, 90, 99], SAMPLED[metric]))


@dataclass(frozen=True, eq=False)
class Between:
    """Clocks between two readings: ln(f / f1), (N,) each at most 0, and that of the slow one."""

    law: Population
    log_clock: Floats
    slow: float

    @classmethod
    def at(cls, law: Population, clocks: Floats, fast: float, slow: float) -> Self:
        """From clocks (N,) and those of the readings."""
        return cls(law, np.log(clocks / fast), float(np.log(slow / fast)))

    @property
    def along(self) -> Floats:
        """How far each clock is from the fast reading to the slow one, 0 to 1, (N,)."""
        return self.log_clock / self.slow

    @property
    def off(self) -> Floats:
        """How wide intervals are, of their width midway, (N,): as of a random walk between ends."""
        return np.sqrt(np.maximum(4 * self.along * (1 - self.along), 0))

    def half_width(self, midway: float, noise: float) -> Floats:
        """Half-widths of 90 % intervals [%] of what a further run would show, (N,).

        midway: that of the law; noise: standard deviation of the log in each of the three runs.
        """
        runs = 1 + self.along**2 + (1 - self.along) ** 2
        midway *= max(1.0, self.slow / np.log(USUAL)) ** FURTHER
        return np.asarray(np.hypot(midway * self.off, 100 * Z90 * noise * np.sqrt(runs)))

    def watts(
        self, power_w: Floats, rates: Floats, rate: Floats, idle_share: float = IDLE
    ) -> Floats:
        """Power (N,) [W] where `rate` tokens/s (N,) are made, through that at the readings (2,).

        A token takes idle watts over the rate, which are a share of those of the slow reading, and
        energy that is straight in both logs.
        """
        idle_w = idle_share * power_w.min()
        first, second = np.log((power_w - idle_w) / rates)
        return np.asarray(idle_w + rate * np.exp(first + (second - first) * self.along))

    def followed(self, logs: Floats) -> Floats:
        """The law of time through ln R (K,): ln(Q / Q1), (K, N)."""
        at = np.append(self.log_clock, self.slow)
        prior = self.law.prior(lambda z: log_times(at, z), at, len(logs))
        reading = np.eye(len(at))[-1:]
        fit = condition(prior, MeasuredRatios(reading, logs[:, None], are_kept=True))
        return fit.logs[:, :-1]

    def queued(self, logs: Floats, busy: float) -> Floats:
        """The same where requests come at a rate."""
        ratio = np.exp(logs)
        step = self.followed(np.log(ratio / (1 - busy + busy * ratio)))
        return np.asarray(step + np.log((1 - busy) / (1 - busy * np.exp(step))))

    def mixed(self, kinds: Sequence[Kinds], values: Floats, percentile: float) -> Floats:
        """The log of a percentile of gaps (N,), through its values (2,) at the readings."""
        ends = Between(self.law, np.append(self.log_clock, [0, self.slow]), self.slow)
        even = (np.arange(QUANTILES) + 0.5) / QUANTILES
        logs = []
        for busy, *kind in zip((BUSY["itl"], BUSY["ttft"]), *kinds, strict=True):
            first, second = (np.log(np.quantile(gaps, even)) for gaps in kind)
            logs.append(first[:, None] + ends.queued(second - first, busy))
        first, second = (np.log(len(long) / (len(short) + len(long))) for short, long in kinds)
        share = np.exp(first + (second - first) * ends.along)
        weights = np.repeat([1 - share, share], QUANTILES, axis=0) / QUANTILES  # (2 Q, N)
        found = []
        for gaps, weight in zip(np.concatenate(logs).T, weights.T, strict=True):
            order = np.argsort(gaps)
            middles = np.cumsum(weight[order]) - weight[order] / 2
            found.append(np.interp(percentile / 100, middles, gaps[order]))
        left = values - found[-2:]
        return np.asarray(found[:-2] + left[0] + (left[1] - left[0]) * self.along)


def split(gaps: Floats) -> Kinds | None:
    """The short gaps and the long ones, by Otsu's threshold on their logs; None of too few.

    N. Otsu, IEEE Trans. Systems, Man, and Cybernetics 9 (1), 1979.
    """
    counts, edges = np.histogram(np.log(gaps), BINS)
    below, middles = np.cumsum(counts), (edges[1:] + edges[:-1]) / 2
    sums, above = np.cumsum(counts * middles), len(gaps) - np.cumsum(counts)
    apart = (sums[-1] / len(gaps) * below - sums) ** 2 / np.maximum(below * above, 1)
    threshold = np.exp(edges[int(apart.argmax()) + 1])
    short, long = gaps[gaps <= threshold], gaps[gaps > threshold]
    return (short, long) if len(short) >= LEAST_SHORT and len(long) >= LEAST_LONG else None
