"""gpu.json, which `mlscale collect` writes: one GPU as the models of the papers see it.

From times of launches come cycles, from cycles the parameters. The time of a launch is its work
times a quantity, and the launch itself, which drops out of the difference of a short and a long
one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.data.devices import SECTOR_BYTES, Device, known_device, load_device
from mlscale.data.table import LEAST, MOST
from mlscale.errors import InputError
from mlscale.files import parse_json_object, read_bytes
from mlscale.papers.volkov import ComputeUnit
from mlscale.papers.wang_chu_inputs import (
    GpuParameters,
    LineFit,
    fit_dram_delay,
    fit_dram_latency,
    gpu_of_row,
)
from mlscale.parameters import command

if TYPE_CHECKING:
    import pandas as pd

WORD_BYTES = 4
_NEAR_THE_TOP = 0.9
_CLOCKS = ["engine_mhz", "memory_mhz"]
Rates = Mapping[tuple[int, int], float]


@dataclass(frozen=True)
class Probe:
    """One launch that measures: time = work x a quantity + the launch.

    kernel: its name in a table of samples. quantity: 'dram_latency' and so on, or 'volkov'. work:
    loads one after another, or transactions of a CU, or of Volkov's kernel instructions of a CU.
    warps, intensity: of Volkov's kernel.
    """

    kernel: str
    quantity: str
    work: float
    warps: int = 0
    intensity: int = 0


def measured_cycles(
    samples: "pd.DataFrame", probes: Sequence[Probe]
) -> "tuple[pd.DataFrame, Rates]":
    """Cycles of the engine by quantity, and the rate of Volkov's kernel by warps and intensity.

    samples: columns kernel, engine_mhz, memory_mhz and time_ms. probes: a short and a long one of
    each quantity, one after the other, and any number of Volkov's. Cycles are of one load
    (latency), or between two transactions of a CU with all CUs at work (delay); a row for each
    setting of the clocks [MHz]. The rate is in warp-instructions per cycle and CU, at the highest
    clocks. Raises InputError where a kernel has no time, or a longer one took no longer.

    By hand: 99 loads more take 9.9 us more, so 0.1 us each, of a clock of 1000 MHz.

    >>> import pandas as pd
    >>> samples = pd.DataFrame({"kernel": ["short", "long"], "time_ms": [0.0051, 0.015],
    ...     "engine_mhz": 1000.0, "memory_mhz": 3500.0})
    >>> probes = [Probe("short", "l2_latency", 1), Probe("long", "l2_latency", 100)]
    >>> cycles, _ = measured_cycles(samples, probes)
    >>> print(f"{cycles['l2_latency'].item():.1f}")
    100.0
    """
    import pandas as pd

    times = samples.pivot_table("time_ms", _CLOCKS, "kernel", aggfunc="median")
    times = times.reindex(columns=[probe.kernel for probe in probes])
    if missing := [str(name) for name in times.columns[times.isna().any()]]:
        raise InputError(f"micro-benchmarks failed: {', '.join(missing[:3])}")
    all_cycles = times.mul(1e3 * times.index.get_level_values("engine_mhz"), axis=0)
    pairs = [probe for probe in probes if probe.quantity != "volkov"]
    cycles = pd.DataFrame(index=all_cycles.index)
    for short, long in zip(pairs[::2], pairs[1::2], strict=True):
        longer = all_cycles[long.kernel] - all_cycles[short.kernel]
        if (longer <= 0).any():
            raise InputError(
                f"micro-benchmark {long.quantity}: the longer of two launches was not the slower; "
                "is something else running on the device?"
            )
        cycles[long.quantity] = longer / (long.work - short.work)
    fastest = all_cycles.iloc[-1]
    volkov = [probe for probe in probes if probe.quantity == "volkov"]
    return cycles, {(p.warps, p.intensity): p.work / float(fastest[p.kernel]) for p in volkov}


def wang_chu_row(cycles: "pd.DataFrame", device: Device) -> dict[str, Any]:
    """A row of wang_chu_gpus.json: latencies and delays as Wang and Chu 2018, section IV-A.

    cycles: as `measured_cycles` gives them. DRAM parameters are lines through the settings of the
    clocks, Eq. (4) and Table III; with one setting the latency is taken to follow the engine alone
    and the delay the memory alone, which the note says. The issue and FP64 delays follow from the
    device's lanes.
    """
    engine, memory = (cycles.index.get_level_values(clock).to_numpy() for clock in _CLOCKS)
    latency, delay = cycles["dram_latency"].to_numpy(), cycles["dram_delay"].to_numpy()
    note = f"Measured at {len(cycles)} settings of the clocks."
    if np.unique(engine / memory).size > 1:
        latency_line = fit_dram_latency(engine, memory, latency)
        note += f" DRAM latency: R2 {latency_line.r_squared:.3f}."
    else:
        latency_line = LineFit(0.0, float(latency.mean()), 0.0)
        note += " One ratio of clocks: the DRAM latency is a constant of engine cycles."
    if np.unique(memory).size > 1:
        delay_line = fit_dram_delay(engine, memory, delay)
        note += f" DRAM delay: R2 {delay_line.r_squared:.3f}."
    else:
        delay_line = LineFit(0.0, float(np.mean(delay * memory / engine)), 0.0)
        note += " One memory clock: the DRAM delay is a constant of memory cycles."
    return {
        "dram_latency_slope": latency_line.slope,
        "dram_latency_offset": latency_line.offset,
        "dram_delay_slope": delay_line.slope,
        "dram_delay_offset": delay_line.offset,
        **cycles.drop(columns=["dram_latency", "dram_delay"]).median(),
        "instruction_factor": 1,
        "fp64_delay": device.wave_size / device.fp64_lanes_per_cu,
        "source": command("collect", "micro"),
        "note": note,
    }


def compute_unit(
    cycles: "pd.DataFrame", ipc: Rates, wave_size: int, issue_per_cycle: float
) -> ComputeUnit:
    """The latencies and rates of a CU from Volkov's kernel and the read of DRAM.

    cycles, ipc: as `measured_cycles` gives them. A and L: the line intensity A + L through the
    cycles of a loop of one warp alone. T: the median of the rates of arithmetic near the highest
    one. B: one warp's load, in the transactions that the DRAM gives a CU.
    """
    loops = {a: (a + 1) / rate for (warps, a), rate in ipc.items() if warps == 1}
    arithmetic, memory = np.polyfit(np.array([*loops]), np.array([*loops.values()]), 1)
    rates = np.array([rate * a / (a + 1) for (_, a), rate in ipc.items()])
    transactions = wave_size * WORD_BYTES / SECTOR_BYTES
    return ComputeUnit(
        arithmetic_latency_cycles=max(float(arithmetic), 1.0),
        memory_latency_cycles=max(float(memory), 1.0),
        issue_per_cycle=issue_per_cycle,
        arithmetic_per_cycle=float(np.median(rates[rates >= _NEAR_THE_TOP * rates.max()])),
        memory_per_cycle=1 / (transactions * cycles["dram_delay"].iloc[-1]),
    )


@dataclass(frozen=True)
class MeasuredGpu:
    """One GPU, micro-benchmarked.

    Attributes:
        name: as its driver calls it.
        device: its key in the device table, or another name.
        parameters: of Wang and Chu's model; None where the device table does not know the GPU.
        compute_unit: of Volkov's survey.
        volkov: throughput of Volkov's kernel, by `warps` of a CU and `intensity`: `ipc`.
    """

    name: str
    device: str
    parameters: GpuParameters | None
    compute_unit: ComputeUnit
    volkov: tuple[dict[str, float], ...]


def gpu_document(
    key: str, name: str, wave_size: int, samples: "pd.DataFrame", probes: Sequence[Probe]
) -> dict[str, Any]:
    """What gpu.json says of the GPU of that key and name, from samples of the probes.

    Where the device table lacks the GPU, there is no entry for wang-chu, and four schedulers a
    CU are assumed. Raises InputError where a benchmark failed.
    """
    cycles, ipc = measured_cycles(samples, probes)
    known = known_device(key)
    issue_per_cycle = known.schedulers_per_cu if known else 4
    return {
        "format_version": 1,
        "device": key,
        "name": name,
        "wang_chu": wang_chu_row(cycles, known) if known else None,
        "compute_unit": asdict(compute_unit(cycles, ipc, wave_size, issue_per_cycle)),
        "volkov": [
            {"warps": warps, "intensity": intensity, "ipc": rate}
            for (warps, intensity), rate in ipc.items()
        ],
        "settings": cycles.reset_index().to_dict("records"),
    }


def read_gpu_file(path: Path) -> MeasuredGpu:
    """Read it. Raises InputError where it is another file, or of a device that is not known."""
    document = parse_json_object(read_bytes(path), str(path))
    try:
        row, unit = document["wang_chu"], document["compute_unit"]
        for numbers in (row or {}, unit):
            _check_sizes(numbers)
        device = str(document["device"])
        return MeasuredGpu(
            name=str(document["name"]),
            device=device,
            parameters=None if row is None else gpu_of_row(load_device(device), row),
            compute_unit=ComputeUnit(**{f.name: float(unit[f.name]) for f in fields(ComputeUnit)}),
            volkov=tuple(_numbers(point) for point in document["volkov"]),
        )
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{path}: is not a gpu.json of '{command('collect', 'micro')}' "
            f"({type(error).__name__}: {error})"
        ) from None


def read_gpu_parameters(path: Path) -> GpuParameters:
    """The parameters of Wang and Chu's model in the file. Raises InputError without them."""
    gpu = read_gpu_file(path)
    if gpu.parameters is None:
        raise InputError(
            f"{path}: '{gpu.device}' was not in the device table when it was measured, so it has "
            "no parameters for wang-chu; describe it in a device file and collect again"
        )
    return gpu.parameters


def _check_sizes(numbers: dict[str, Any]) -> None:
    """Raise InputError on a number with which products or quotients could overflow."""
    for name, value in numbers.items():
        least = 0 if name.endswith(("_slope", "_offset")) or not value else LEAST
        if isinstance(value, int | float) and not least <= abs(value) <= MOST:
            raise InputError(f"{name} is {float(value):g}; it must be from {LEAST:g} to {MOST:g}")


def _numbers(point: dict[str, Any]) -> dict[str, float]:
    return {
        "warps": int(point["warps"]),
        "intensity": int(point["intensity"]),
        "ipc": float(point["ipc"]),
    }
