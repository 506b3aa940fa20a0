"""Power caps: what a run does under each, from its kernels' time and power over the engine clock.

Under a cap a GPU runs each kernel at the highest engine clock whose power is at most the cap.
Between two clocks of the grid it dithers: it runs a share of the time at the upper one and the
rest at the lower, so that the mean power is the cap. Power, mean clock and work done per
millisecond are therefore linear in that share.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlscale.advice.objectives import SAME
from mlscale.arrays import Floats, Indices
from mlscale.data.sequence import run_in_sequence
from mlscale.errors import InputError

MOST_IDLE = 0.1  # of a logged run, whose mean power then is that of the work


@dataclass(frozen=True, eq=False)
class CapCurve:
    """K kernels, and the run of all their launches, under each of P power caps.

    power_w (K, P) [W]: of one launch of each kernel, NaN where even the lowest clock draws more
    than the cap, or time or power is not known. run_time_ms [ms], run_power_w [W], run_energy_mj
    [mJ], run_engine_mhz [MHz] (P,): of the run, power and clock as the mean over its time; NaN
    where any kernel's is. too_low (P,): how many kernels draw more than the cap at every clock.
    """

    power_w: Floats
    run_time_ms: Floats
    run_power_w: Floats
    run_energy_mj: Floats
    run_engine_mhz: Floats
    too_low: Indices


def cap_curve(
    cap_w: Sequence[float] | Floats,
    engine_mhz: Sequence[float] | Floats,
    time_ms: Floats,
    power_w: Floats,
    launches: Floats | None = None,
) -> CapCurve:
    """Time, power and energy of a run under each power cap.

    cap_w (P,) [W], infinity for none; engine_mhz (E,) [MHz], ascending; time_ms, power_w (K, E):
    of one launch of each kernel at each engine clock, at the same CU count and memory clock
    [ms], [W]; launches (K,): how often each runs, by default once.

    Example:
        >>> curve = cap_curve([300, 200, 100], [1000, 1400],
        ...                   np.array([[2.0, 1.5]]), np.array([[150.0, 250.0]]))
        >>> curve.run_time_ms.round(3).tolist()  # at 1400 MHz, half of the time at each, unknown
        [1.5, 1.714, nan]
        >>> curve.too_low.tolist()
        [0, 0, 1]
    """
    caps, clocks = (np.asarray(values, dtype=np.float64) for values in (cap_w, engine_mhz))
    within = power_w[:, None, :] <= caps[:, None] * (1 + SAME)  # (K, P, E)
    lower = len(clocks) - 1 - np.argmax(within[:, :, ::-1], axis=2)
    upper = np.minimum(lower + 1, len(clocks) - 1)
    low_w, high_w = (np.take_along_axis(power_w, steps, axis=1) for steps in (lower, upper))
    share = np.zeros(lower.shape)  # of the time, at the upper clock
    dithers = upper > lower
    np.divide(caps - low_w, high_w - low_w, out=share, where=dithers)
    share = np.where(within.any(axis=2), np.clip(share, 0.0, 1.0), np.nan)

    def mean(values: Floats) -> Floats:
        low, high = (np.take_along_axis(values, steps, axis=1) for steps in (lower, upper))
        return np.asarray(low + share * (high - low))

    of_kernels, power = 1 / mean(1 / time_ms), mean(power_w)
    clock = mean(np.broadcast_to(clocks, power_w.shape))
    counts = np.ones(len(time_ms)) if launches is None else launches
    run_ms, run_w = run_in_sequence(of_kernels, power, counts)
    _, run_mhz = run_in_sequence(of_kernels, clock, counts)
    return CapCurve(
        power_w=power,
        run_time_ms=run_ms,
        run_power_w=run_w,
        run_energy_mj=run_ms * run_w,
        run_engine_mhz=run_mhz,
        too_low=(power_w[:, None, :] > caps[:, None] * (1 + SAME)).all(axis=2).sum(axis=0),
    )


def refuse_pauses(metadata: Mapping[str, Any], time_ms: Floats) -> None:
    """Raise InputError where a logged run has pauses, so that its mean power is not of the work.

    time_ms (K,): of the runs [ms]. Where the logs do not tell, nothing is refused.
    """
    working_ms = sum(metadata.get("working_ms", {}).values())
    paused = 1 - working_ms / float(time_ms.sum())
    if working_ms and paused > MOST_IDLE:
        raise InputError(
            f"a power cap acts while the GPU works, and {paused:.0%} of the run's log are pauses, "
            "which its mean power holds too: log a run under a load that keeps the GPU busy"
        )
