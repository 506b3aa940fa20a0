"""GPUs as the model of Wang and Chu sees them: micro-benchmarked, or from the specification.

wang_chu_gpus.json holds what was micro-benchmarked or tuned; the units of a GPU come from the
device table. All cycles are engine cycles. The DRAM parameters of another GPU are fitted to a
latency benchmark (Table II, Eq. (4)) and a bandwidth benchmark (Table III), section IV-A; a fit
goes into `GpuParameters` by `dataclasses.replace`.
"""

import functools
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mlscale.arrays import Floats
from mlscale.data.device import SECTOR_BYTES, Device
from mlscale.data.device_table import load_device
from mlscale.errors import InputError
from mlscale.files import shipped_json
from mlscale.papers.arguments import above_0, finite, from_0

# Bandwidth that a saturated memory reaches: Table III has 0.76 to 0.85 of the peak, its fit
# against ideal_dram_delay 0.79 to 0.89.
DRAM_EFFICIENCY = 0.85

_REFERENCE = "gtx980"
_LATENCIES = ("dram_latency_slope", "dram_latency_offset", "l2_latency", "shared_latency")


@dataclass(frozen=True)
class GpuParameters:
    """The parameters of one GPU (paper, Table IV); cycles of the engine clock.

    Attributes:
        key: the name in the device table.
        cu_count: CUs of the device (#SM); the delays hold for all of them together.
        max_resident_warps: warps that a CU can hold.
        dram_latency_slope: DRAM latency per engine_mhz / memory_mhz, Eq. (4) [cycles].
        dram_latency_offset: the part of the DRAM latency that follows the engine [cycles].
        dram_delay_slope: fall of the DRAM delay with the memory clock [cycles MHz].
        dram_delay_offset: DRAM delay at equal clocks, both very high [cycles].
        l2_latency: latency of a transaction that hits the L2 cache [cycles].
        l2_delay: time between two such transactions of a CU [cycles].
        shared_latency: latency of a shared-memory transaction [cycles].
        shared_delay: time between two such transactions of a CU [cycles].
        instruction_delay: time between two warp instructions of a CU [cycles].
        fp64_delay: what an FP64 warp instruction adds [cycles].
        source: where the parameters are from.
        note: what else a reader must know.
    """

    key: str
    cu_count: int
    max_resident_warps: int
    dram_latency_slope: float
    dram_latency_offset: float
    dram_delay_slope: float
    dram_delay_offset: float
    l2_latency: float
    l2_delay: float
    shared_latency: float
    shared_delay: float
    instruction_delay: float
    fp64_delay: float
    source: str
    note: str

    def __post_init__(self) -> None:
        numbers = {f.name: getattr(self, f.name) for f in fields(self) if f.type in (int, float)}
        for name, value in numbers.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{name} of a GPU must be a number, not {value!r}")
        may_fall = [name for name in numbers if name.endswith(("_slope", "_offset"))]
        finite(**{name: numbers.pop(name) for name in may_fall})
        from_0(fp64_delay=numbers.pop("fp64_delay"))
        above_0(**numbers)


def load_gpu(key: str) -> GpuParameters:
    """The GPU of that name: its row of the table, else what its specification gives.

    Raises InputError where the device table has no such device.

    Section IV-B has 222 cycles for the GTX 980's L2 cache.

    >>> load_gpu("gtx980").l2_latency
    222
    """
    device = load_device(key)
    row = _rows().get(key)
    return specification_gpu(device) if row is None else gpu_of_row(device, row)


def ideal_dram_delay(device: Device) -> float:
    """Engine cycles of a CU between two 32-byte DRAM transactions, both clocks equal.

    All CUs share the full bandwidth of the data sheet.

    By hand: 16 CUs of a GTX 980, 32 bytes each, over 256 / 8 bytes twice a cycle.

    >>> print(ideal_dram_delay(load_device("gtx980")))
    8.0
    """
    bytes_per_memory_cycle = device.memory_bus_bits / 8 * device.memory_transfers_per_cycle
    return device.cu_count * SECTOR_BYTES / bytes_per_memory_cycle


def specification_gpu(device: Device) -> GpuParameters:
    """A GPU without micro-benchmarks: throughputs from its units, latencies of the GTX 980.

    The DRAM delay is the ideal one at 85 % efficiency, at every clock. max-overlap uses
    throughputs only, so the borrowed latencies do not matter to it.

    By hand: the ideal 8 cycles of a GTX 980 / 0.85.

    >>> print(f"{specification_gpu(load_device('gtx980')).dram_delay_offset:.3f}")
    9.412
    """
    reference = _rows()[_REFERENCE]
    row = {name: reference[name] for name in _LATENCIES} | {
        "dram_delay_slope": 0.0,
        "dram_delay_offset": ideal_dram_delay(device) / DRAM_EFFICIENCY,
        "l2_delay": 1.0,
        "shared_delay": 1.0,
        "instruction_factor": 1.0,
        "fp64_delay": device.wave_size / device.fp64_lanes_per_cu,
        "source": f"specification only; latencies of {_REFERENCE}",
        "note": "Never micro-benchmarked.",
    }
    return gpu_of_row(device, row)


def require_cu_count(gpu: GpuParameters, cu_counts: Iterable[int]) -> None:
    """Raise InputError on a number of CUs other than the GPU's own.

    (6) would scale with the CUs, but the DRAM delay was measured with all of them at work, and no
    data with these counters vary their number.
    """
    for cu_count in cu_counts:
        if cu_count != gpu.cu_count:
            raise InputError(
                f"Wang and Chu's model of '{gpu.key}' holds for its {gpu.cu_count} CUs, not for "
                f"{cu_count}: its memory delays are those of all of them at work"
            )


def gpu_of_row(device: Device, row: dict[str, Any]) -> GpuParameters:
    """The GPU of a row as wang_chu_gpus.json has it. Raises TypeError where a field is missing.

    By hand: a warp of 32 threads takes 32 / 128 cycles of a CU of the GTX 980.

    >>> latencies = {"dram_latency_slope": 222.78, "dram_latency_offset": 277.32, "l2_latency": 222,
    ...     "shared_latency": 28}
    >>> delays = {"dram_delay_slope": 805.03, "dram_delay_offset": 8.1762, "l2_delay": 1,
    ...     "shared_delay": 1, "fp64_delay": 8, "instruction_factor": 1}
    >>> row = latencies | delays | {"source": "the paper", "note": ""}
    >>> print(gpu_of_row(load_device("gtx980"), row).instruction_delay)
    0.25
    """
    measured = {name: value for name, value in row.items() if name != "instruction_factor"}
    return GpuParameters(
        key=device.key,
        cu_count=device.cu_count,
        max_resident_warps=device.max_waves_per_cu,
        instruction_delay=row["instruction_factor"] * device.wave_size / device.lanes_per_cu,
        **measured,
    )


@functools.cache
def _rows() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = shipped_json(__file__, "wang_chu_gpus.json")["gpus"]
    return rows


@dataclass(frozen=True)
class LineFit:
    """A fitted line: slope x + offset, and the share of the variance that it explains."""

    slope: float
    offset: float
    r_squared: float


def fit_dram_latency(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, latency_cycles: ArrayLike
) -> LineFit:
    """dram_latency_slope [cycles] and dram_latency_offset [cycles] of Eq. (4), least squares.

    latency_cycles: of one DRAM transaction without contention, in engine cycles, one for each
    pair of clocks [MHz]. Raises InputError unless the pairs have two ratios of clocks at least.

    By hand, through the first and last row of Table II, whose engine ran at 400 MHz:
    (500 - 366.4) / (1 - 0.4), and the rest of 500. The paper fits 222.78 and 277.32 to all rows.

    >>> line = fit_dram_latency([400, 400], [400, 1000], [500, 366.4])
    >>> print(f"{line.slope:.2f} {line.offset:.2f}")
    222.67 277.33
    """
    engine, memory, latency = _samples(engine_mhz, memory_mhz, latency_cycles)
    return _line(engine / memory, latency, "ratios of engine to memory clock")


def fit_dram_delay(
    engine_mhz: ArrayLike, memory_mhz: ArrayLike, delay_cycles: ArrayLike
) -> LineFit:
    """dram_delay_slope [cycles MHz] and dram_delay_offset [cycles], least squares.

    delay_cycles: time between two 32-byte transactions of a CU with the memory saturated, in
    engine cycles, one for each pair of clocks [MHz]. It is scaled to equal clocks first, where
    Table III has its values. For that table the authors use 805.03 and 8.1762 (R2 0.980); least
    squares gives 726.127 and 8.28061. Raises InputError unless there are two memory clocks.

    By hand, at equal clocks: 1.5 / (1 / 400 - 1 / 1000), and 9 less a thousandth of that.

    >>> line = fit_dram_delay([400, 1000], [400, 1000], [10.5, 9])
    >>> print(f"{line.slope:.1f} {line.offset:.1f}")
    1000.0 8.0
    """
    engine, memory, delay = _samples(engine_mhz, memory_mhz, delay_cycles)
    return _line(1 / memory, delay * memory / engine, "memory clocks")


def _samples(engine_mhz: ArrayLike, memory_mhz: ArrayLike, cycles: ArrayLike) -> tuple[Floats, ...]:
    columns = above_0(engine_mhz=engine_mhz, memory_mhz=memory_mhz, cycles=cycles)
    shapes = {column.shape for column in columns}
    if len(shapes) > 1 or columns[0].ndim != 1:
        raise InputError(
            "a fit needs as many engine clocks as memory clocks and cycles, not "
            + ", ".join(str(column.size) for column in columns)
        )
    return columns


def _line(x: Floats, y: Floats, what: str) -> LineFit:
    from sklearn.linear_model import LinearRegression

    if np.unique(x).size < 2:
        raise InputError(f"a fit needs samples at two {what} at least, not {np.unique(x).size}")
    line = LinearRegression().fit(x[:, None], y)
    return LineFit(float(line.coef_[0]), float(line.intercept_), line.score(x[:, None], y))
