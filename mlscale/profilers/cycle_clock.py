"""The engine clock that AMD's kernels ran at, by the cycles that were counted while they ran.

No tool of AMD's says a kernel's clock, as ncu does. GRBM_GUI_ACTIVE counts the engine's cycles
while the GPU works, in each of its dies; counters run one kernel at a time, so over the kernel's
time they are its clock. Short kernels do not tell (mapping.CYCLES_FROM_S).
"""

from collections import Counter
from collections.abc import Iterable

from mlscale.data.device import Device
from mlscale.data.plausibility import ABOVE_HIGHEST
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.mapping import CYCLES, CYCLES_FROM_S

FEW = 0.05  # of the time of long kernels: what is slower or faster so briefly tells no clock


def cycle_rates(records: Iterable[KernelRecord]) -> Counter[str | float]:
    """Cycles of all dies per µs of each long kernel, weighted by its time in the run [µs]."""
    rates: Counter[str | float] = Counter()
    for record in records:
        time_s, cycles = record.counted_time_s, record.counters.get(CYCLES)
        if cycles and time_s and time_s >= CYCLES_FROM_S:
            run_us = record.launches * record.time_s * 1e6
            rates[cycles / (time_s * 1e6)] += max(1, round(run_us))
    return rates


def engine_clocks(
    rates: Counter[str | float], dies: float | None, device: Device | None
) -> Counter[str | float]:
    """The engine clocks [MHz] by `cycle_rates`, with their weights; none without a number of dies.

    What is a little above the highest clock of the device is that clock, as cycles are counted
    before a kernel and after it too; more is of another GPU, or number of dies, and is refused.
    The slowest and the fastest FEW of the time are left out, such as a first launch on an idle GPU.
    """
    clocks: Counter[str | float] = Counter()
    highest_mhz = None if device is None else device.highest_mhz("engine_mhz")
    for rate, weight in rates.items() if dies else ():
        mhz = float(round(float(rate) / float(dies or 1.0)))
        if highest_mhz is not None and highest_mhz < mhz <= ABOVE_HIGHEST * highest_mhz:
            mhz = highest_mhz
        clocks[mhz] += weight
    passed, few = 0, FEW * clocks.total()
    kept: Counter[str | float] = Counter()
    for clock_mhz in sorted(clocks, key=float):
        before, passed = passed, passed + clocks[clock_mhz]
        if few < passed and before < clocks.total() - few:
            kept[clock_mhz] = clocks[clock_mhz]
    return kept
