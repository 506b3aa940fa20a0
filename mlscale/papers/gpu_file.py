"""gpu.json, which `mlscale collect --micro` writes: one GPU as the models of the papers see it.

And volkov.csv: throughputs of Volkov's kernel that somebody measured, without the GPU's parameters.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.data.devices import known_device, load_device
from mlscale.data.table import LEAST, MOST
from mlscale.data.table_files import read_csv
from mlscale.errors import InputError
from mlscale.files import parse_json_object, read_bytes
from mlscale.papers.micro_benchmarks import Probe, compute_unit, measured_cycles, wang_chu_row
from mlscale.papers.volkov import ComputeUnit
from mlscale.papers.wang_chu_inputs import GpuParameters, gpu_of_row

if TYPE_CHECKING:
    import pandas as pd

_POINT = ("warps", "intensity", "ipc")


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
            f"{path}: is not a gpu.json of 'mlscale collect --micro' "
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


def read_volkov(path: Path) -> tuple[dict[str, float], ...]:
    """Measured throughputs of Volkov's kernel, from a CSV file with a row for each.

    Its columns are `warps` of a CU and `intensity`, both whole numbers from 1, and `ipc`, the
    warp-instructions per cycle of that CU. Raises InputError, naming row and column.
    """
    table = read_csv(path, words=(), needs=_POINT)
    for name in _POINT:
        table.positive(name)
    for name in _POINT[:2]:
        if (broken := np.flatnonzero(table.numbers[name] % 1)).size:
            raise InputError(
                f"{path}: {table.row(int(broken[0]))}, column '{name}': "
                f"{table.numbers[name][broken[0]]:g} is not a whole number"
            )
    points = zip(*(table.numbers[name].tolist() for name in _POINT), strict=True)
    return tuple(_numbers(dict(zip(_POINT, point, strict=True))) for point in points)


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
