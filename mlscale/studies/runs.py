"""Random runs: mixes of a table's applications, each kernel launched as often as chance says."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

MOST_APPLICATIONS = 8
LAUNCH_SIGMA = 2.0  # of the logarithm: nine launch counts in ten lie within a factor 27 of 1
_SEED = 20_260_213  # keeps the runs apart from the seeds of splits and predictors


@dataclass(frozen=True)
class Run:
    """Kernels that run one after the other, by position in the table, and how often each does.

    number: from 1. launches: positive, not always whole; only their ratios matter to a regret.
    """

    number: int
    kernels: tuple[int, ...]
    launches: tuple[float, ...]


def random_runs(applications: Sequence[str], count: int) -> list[Run]:
    """That many runs of a table whose kernels belong to these applications (K,).

    A run has 1 to 8 distinct applications, each number as likely as any other, with all their
    kernels, and leaves one application out at least. Launches are log-normal with sigma 2. The
    same table gives the same runs, and the first of many are those of few.
    """
    random = np.random.default_rng(_SEED)
    names = sorted(set(applications))
    most = min(MOST_APPLICATIONS, len(names) - 1)
    runs = []
    for number in range(1, count + 1):
        chosen = random.choice(names, random.integers(1, most + 1), replace=False)
        kernels = np.flatnonzero(np.isin(applications, chosen)).tolist()
        launches = random.lognormal(0.0, LAUNCH_SIGMA, len(kernels)).tolist()
        runs.append(Run(number, tuple(kernels), tuple(launches)))
    return runs
