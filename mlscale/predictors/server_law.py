"""How latencies of an LLM server follow the engine clock, between two readings: NumPy.

f is the clock, Q a latency, R = Q2 / Q1 at the readings f1 > f2. With a fixed number of clients Q
follows the law of time of `board`. Where requests come at a rate, a slower step lets more of them
run side by side: by Little's law a step takes a / (1 - q s), so

    s2 = R / (1 - q + q R),    Q(f) = Q1 s(f) (1 - q) / (1 - q s(f)),

s being the law of time through s2, and q how busy the server is, which two clocks do not tell: one
for all is as good as the true one. Gaps between tokens are of two kinds, steps with a prefill and without.
Each kind follows the clock quantile by quantile, and their shares are log-linear in it.

K latencies, N clocks.
"""

from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.predictors.board_law import Population, log_times
from mlscale.predictors.conditioning import MeasuredRatios, condition

# q of latencies of tokens, of a kind of gaps, and of the time to first token, on simulated servers.
BUSY, BUSY_OF_KIND, BUSY_FIRST = 0.6, 0.5, 0.3
QUANTILES = 200  # of a kind of gaps, evenly
LEAST_SHORT, LEAST_LONG = 50, 20  # gaps of a kind, below which they are not told apart
BINS = 256  # of the log of gaps


@dataclass(frozen=True, eq=False)
class Between:
    """Clocks between two readings: ln(f / f1), (N,) each at most 0, and that of the slow one."""

    law: Population
    log_clock: Floats
    slow: float

    def followed(self, logs: Floats) -> Floats:
        """The law of time through ln R (K,): ln(Q / Q1), (K, N)."""
        at = np.append(self.log_clock, self.slow)
        prior = self.law.prior(lambda z: log_times(at, z), at, len(logs))
        reading = np.eye(len(at))[-1:]
        fit = condition(prior, MeasuredRatios(reading, logs[:, None], are_kept=True))
        return fit.logs[:, :-1]

    def queued(self, logs: Floats, busy: float = BUSY) -> Floats:
        """The same where requests come at a rate.

        Example:
            >>> import numpy as np
            >>> from mlscale.predictors.board_law import FIRST
            >>> ends = Between(FIRST["time"], np.log([1.0, 0.5]), np.log(0.5))
            >>> np.exp(ends.queued(np.log([1.6]))).round(3).tolist()
            [[1.0, 1.6]]
        """
        ratio = np.exp(logs)
        step = self.followed(np.log(ratio / (1 - busy + busy * ratio)))
        return np.asarray(step + np.log((1 - busy) / (1 - busy * np.exp(step))))

    def mixed(self, fast: Floats, slow: Floats, quantile: float) -> Floats | None:
        """ln of a quantile of the gaps of both readings, (N,); None where they are of one kind."""
        kinds = [split(gaps) for gaps in (fast, slow)]
        if any(len(s) < LEAST_SHORT or len(g) < LEAST_LONG for s, g in kinds):
            return None
        even = (np.arange(QUANTILES) + 0.5) / QUANTILES
        logs = []
        for place in (0, 1):
            first, second = (np.log(np.quantile(pair[place], even)) for pair in kinds)
            logs.append(first[:, None] + self.queued(second - first, BUSY_OF_KIND))
        shares = np.log([len(long) / (len(short) + len(long)) for short, long in kinds])
        share = np.exp(shares[0] + (shares[1] - shares[0]) * self.log_clock / self.slow)
        return np.array(
            [_quantile(*at, part, quantile) for *at, part in zip(logs[0].T, logs[1].T, share, strict=True)]
        )


def split(gaps: Floats) -> tuple[Floats, Floats]:
    """The short gaps and the long ones, by Otsu's threshold on their logs.

    N. Otsu, IEEE Trans. Systems, Man, and Cybernetics 9 (1), 1979.
    """
    counts, edges = np.histogram(np.log(gaps), BINS)
    below, middles = np.cumsum(counts), (edges[1:] + edges[:-1]) / 2
    sums, above = np.cumsum(counts * middles), len(gaps) - np.cumsum(counts)
    between = (sums[-1] / len(gaps) * below - sums) ** 2 / np.maximum(below * above, 1)
    threshold = np.exp(edges[int(between.argmax()) + 1])
    return gaps[gaps <= threshold], gaps[gaps > threshold]


def _quantile(short: Floats, long: Floats, share: float, quantile: float) -> float:
    """The quantile of even quantiles of two kinds; share: of the long ones."""
    values = np.concatenate([short, long])
    weights = np.repeat([(1 - share) / len(short), share / len(long)], [len(short), len(long)])
    order = np.argsort(values)
    middles = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(quantile, middles, values[order]))
