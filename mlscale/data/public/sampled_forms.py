"""The forms in which public tables of sampled profiles come: DCGM's averages over core clocks.

- NV-DVFS-Benchmark's `*-profile.csv`: `benchmark, kernel, argNo`, dcgmi's abbreviations, time in
  ms.
- the A100's of Ali et al.: one row per application and clock, utilisations in %, time in s, no
  memory clock. Its PCIe traffic, temperatures, energy and `*_samples` are not taken over.
"""

from dataclasses import dataclass

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.device_table import load_device
from mlscale.data.sampled import PROFILE_KIND
from mlscale.data.table import Table
from mlscale.data.table_files import parse_numbers
from mlscale.errors import InputError

Columns = dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class SampledForm:
    """names: of the identity columns, which make the kernel's name, the first the application's.

    numbers: each tidy column with the file's column and the factor from its unit to ours.
    """

    names: tuple[str, ...]
    numbers: dict[str, tuple[str, float]]

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that a file of this form has."""
        return (*self.names, *(name for name, _ in self.numbers.values()))


FORMS = (
    SampledForm(
        names=("benchmark", "kernel", "argNo"),
        numbers={
            "engine_mhz": ("core_frequency", 1),
            "memory_mhz": ("memory_frequency", 1),
            "time_ms": ("time", 1),
            "power_w": ("average_power", 1),
            "sm_active": ("SMACT", 1),
            "sm_occupancy": ("SMOCC", 1),
            "dram_active": ("DRAMA", 1),
            "tensor_active": ("TENSO", 1),
            "fp64_active": ("FP64A", 1),
            "fp32_active": ("FP32A", 1),
            "fp16_active": ("FP16A", 1),
        },
    ),
    SampledForm(
        names=("application",),
        numbers={
            "engine_mhz": ("sm_app_clock", 1),
            "time_ms": ("run_time", 1000),
            "power_w": ("power_usage", 1),
            "sm_active": ("sm_active", 1),
            "sm_occupancy": ("sm_occupancy", 1),
            "dram_active": ("dram_active", 1),
            "tensor_active": ("tensor_activity", 1),
            "fp64_active": ("fp64_active", 1),
            "fp32_active": ("fp32_active", 1),
            "fp16_active": ("fp16_active", 1),
            "gr_engine_active": ("gr_engine_active", 1),
            "gpu_utilisation": ("gpu_utilization", 0.01),
            "memory_copy_utilisation": ("mem_copy_utilization", 0.01),
        },
    ),
)


def sampled_form(columns: Columns) -> SampledForm | None:
    """The form whose names of kernel, time and clock a file has; None if of neither."""
    for form in FORMS:
        telling = {form.names[0], form.numbers["engine_mhz"][0], form.numbers["time_ms"][0]}
        if telling <= columns.keys():
            return form
    return None


def sampled_table(
    form: SampledForm, columns: Columns, source: str, lines: tuple[int, ...], device: str
) -> Table:
    """The tidy table of a file's columns; the CU count is the device's. Raises InputError."""
    if lacking := [name for name in form.columns if name not in columns]:
        raise InputError(f"{source}: lacks the columns {', '.join(lacking)} of sampled profiles")
    raw = Table(source, {}, {}, lines=lines)
    numbers: dict[str, Floats] = {}
    for ours, (theirs, factor) in form.numbers.items():
        raw.numbers[theirs] = parse_numbers(columns[theirs], theirs, raw)
        if ours.endswith(("_mhz", "_ms", "_w")):
            raw.positive(theirs)
        numbers[ours] = raw.numbers[theirs] * factor
    gpu, rows = load_device(device), len(raw)
    if "memory_mhz" not in numbers:
        if gpu.datasheet is None:
            raise InputError(f"{source}: names no memory clock, nor does the entry of '{device}'")
        numbers["memory_mhz"] = np.full(rows, float(gpu.datasheet.memory_mhz))
    names = [columns[name] for name in form.names]
    return Table(
        source=source,
        text={
            "device": [device] * rows,
            "application": list(names[0]),
            "kernel": [".".join(parts) for parts in zip(*names, strict=True)],
        },
        numbers={"cu_count": np.full(rows, float(gpu.cu_count)), **numbers},
        metadata={"counter_tool": "dcgm", "profile_kind": PROFILE_KIND, "power_kind": "board"},
        lines=lines,
    )
