"""gpu.json, as `mlscale collect --micro` writes it: one GPU as the models of the papers see it."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mlscale.data.devices import load_device
from mlscale.errors import InputError
from mlscale.files import parse_json_object, read_bytes
from mlscale.papers.volkov import ComputeUnit
from mlscale.papers.wang_chu_gpus import GpuParameters, gpu_of_row


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


def read_gpu_file(path: Path) -> MeasuredGpu:
    """Read it. Raises InputError where it is another file, or of a device that is not known."""
    document = parse_json_object(read_bytes(path), str(path))
    try:
        row = document["wang_chu"]
        device, unit = str(document["device"]), document["compute_unit"]
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
            f"{path}: is no gpu.json of 'mlscale collect --micro' ({type(error).__name__}: {error})"
        ) from None


def read_gpu_parameters(path: Path) -> GpuParameters:
    """The parameters of Wang and Chu's model in the file. Raises InputError without them."""
    gpu = read_gpu_file(path)
    if gpu.parameters is None:
        raise InputError(
            f"{path}: '{gpu.device}' was not in the device table when it was measured, so it has "
            "no parameters for wang-chu; describe it with 'devices new' and collect again"
        )
    return gpu.parameters


def _numbers(point: dict[str, Any]) -> dict[str, float]:
    return {
        "warps": int(point["warps"]),
        "intensity": int(point["intensity"]),
        "ipc": float(point["ipc"]),
    }
