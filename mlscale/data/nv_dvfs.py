"""Reader for the measurement files of NV-DVFS-Benchmark (Wang and Chu, 2018, and later).

One row per kernel and pair of clocks; columns `appName, coreF, memF` [MHz, as the vendor's tool
lists them], `time/ms`, nvprof metrics, often `power/W` and the launch (`kernel, argNo, blocks`).
Its tables of sampled profiles, and others' that come in a similar form, are read too: see
`sampled_forms`.

The forms in which public tables of sampled profiles come: DCGM's averages over core clocks.

- NV-DVFS-Benchmark's `*-profile.csv`: `benchmark, kernel, argNo`, dcgmi's abbreviations, time in
  ms.
- the A100's of Ali et al.: one row per application and clock, utilisations in %, time in s, no
  memory clock. Its PCIe traffic, temperatures, energy and `*_samples` are not taken over.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.datasets import identify
from mlscale.data.devices import LARGEST_SHARE, SECTOR_BYTES, load_device
from mlscale.data.logs import PROFILE_KIND, clocks_not_reached, power_faults
from mlscale.data.measurements import Incomplete, Measurements, from_table
from mlscale.data.profiles import NOT_COUNTERS, OF_LAUNCH
from mlscale.data.table import Table
from mlscale.data.table_files import parse_numbers, read_csv_rows
from mlscale.errors import InputError, warn
from mlscale.files import read_bytes

_RENAMED = {
    "coreF": "engine_mhz",
    "memF": "memory_mhz",
    "time/ms": "time_ms",
    "power/W": "power_w",
}
_LAUNCH = {"kernel": "function", "argNo": "arguments", "abbr.": "abbreviation"}
_ONE_APPLICATION = ("backprop", "scan", "matrixMul")
_BLOCKS = re.compile(r"\((\d+) (\d+) (\d+)\) \((\d+) (\d+) (\d+)\)")
_REPEATED = ("l2_tex_write_throughput",)  # the benchmark's scripts ask for it twice
_DISAGREEMENT = 0.10


def read_nv_dvfs(path: Path, device: str | None, incomplete: Incomplete = "error") -> Measurements:
    """Read one file of measurements of a device of the device table.

    device: None for that of a public file known by its checksum.
    The CU count is the device's; the kernel is `appName`, and kernels that begin with backprop,
    scan or matrixMul are one application each. Launch names stand in the metadata, the launch
    geometry becomes the counters `workgroups` and `workgroup_size`. Counters whose column is
    empty are left out. Warns, by name, of faults known or found. Raises InputError.
    """
    header, rows, lines = read_csv_rows(path, repeated=_REPEATED)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    form = sampled_form(columns)
    for name in () if form else ("appName", "coreF", "memF", "time/ms"):
        if name not in columns:
            raise InputError(f"{path}: there is no column '{name}'; is it an NV-DVFS file?")
    dataset = identify(read_bytes(path))
    if dataset is not None:
        if device not in (None, dataset.device):
            raise InputError(f"{path}: is a file of '{dataset.device}', not of '{device}'")
        device = dataset.device
    if device is None:
        raise InputError(f"{path}: is no known public file; name its GPU with --device")
    if form:
        table = sampled_table(form, columns, str(path), lines, device)
    else:
        table = _counted_table(columns, str(path), lines, device)
    table.metadata.update(
        origin="measured",
        source=dataset.url if dataset else path.name,
        faults=dict(dataset.faults) if dataset else {},
    )
    measurements = from_table(table, incomplete)
    faults = measurements.metadata["faults"]
    if form:
        faults |= {k: fault for k, fault in power_faults(measurements).items() if k not in faults}
        _warn_of_clocks(measurements, str(path))
    for kernel, fault in faults.items():
        warn(f"{path}: '{kernel}': {fault}")
    if not form:
        _warn_of_counters(table)
        _warn_of_traffic(table)
    return measurements


def _counted_table(
    columns: dict[str, tuple[str, ...]], source: str, lines: tuple[int, ...], device: str
) -> Table:
    """The tidy table of a file with nvprof's counters."""
    kernels = list(columns.pop("appName"))
    raw = Table(source, {}, {}, lines=lines)
    for name, cells in columns.items():
        if name == "blocks":
            raw.numbers.update(_launch_geometry(cells, raw))
        elif name not in _LAUNCH:
            raw.numbers[name] = parse_numbers(cells, name, raw)
    for name in _RENAMED.keys() & columns.keys():
        raw.positive(name)
    return Table(
        source=source,
        text={
            "device": [device] * len(kernels),
            "application": [_application(kernel) for kernel in kernels],
            "kernel": kernels,
        },
        numbers={
            "cu_count": np.full(len(kernels), float(load_device(device).cu_count)),
            **{
                _RENAMED.get(name, name): values
                for name, values in raw.numbers.items()
                if name in _RENAMED or raw.has_values(name)
            },
        },
        metadata={
            "counter_tool": "nvprof",
            "power_kind": "board" if "power/W" in columns else None,
            "launches": _launches(kernels, columns),
        },
        lines=lines,
    )


def _application(kernel: str) -> str:
    return next((one for one in _ONE_APPLICATION if kernel.startswith(one)), kernel)


def _launches(kernels: list[str], columns: dict[str, tuple[str, ...]]) -> dict[str, dict[str, str]]:
    """For each kernel the texts of its first row that are neither numbers nor axes."""
    texts = {ours: columns[theirs] for theirs, ours in _LAUNCH.items() if theirs in columns}
    first = {kernel: kernels.index(kernel) for kernel in dict.fromkeys(kernels)}
    return {
        kernel: {name: cells[row] for name, cells in texts.items()} for kernel, row in first.items()
    }


def _launch_geometry(cells: tuple[str, ...], table: Table) -> dict[str, Floats]:
    """Workgroups and threads per workgroup, from '(3584 1 1) (128 1 1)'."""
    sizes = np.empty((len(cells), 6))
    for row, cell in enumerate(cells):
        match = _BLOCKS.fullmatch(cell.strip())
        if match is None:
            raise InputError(
                f"{table.source}: {table.row(row)}, column 'blocks': '{cell}' is not "
                "'(grid) (block)', each three whole numbers"
            )
        sizes[row] = [float(size) for size in match.groups()]
    return {
        "workgroups": sizes[:, :3].prod(axis=1),
        "workgroup_size": sizes[:, 3:].prod(axis=1),
    }


def _warn_of_clocks(measurements: Measurements, source: str) -> None:
    """Warn where the GPU cannot have run at the clock that was set."""
    clocks = clocks_not_reached(measurements)
    if clocks:
        times = ", ".join(f"{over:.2f} at {clock:g} MHz" for clock, over in clocks.items())
        warn(
            f"{source}: times are longer than the set clocks explain, by {times}: the GPU ran "
            "slower than it was set to there; good for power, poor for time"
        )


def _warn_of_counters(table: Table) -> None:
    """Warn where there are none, and of throughputs that the profiler's own counts contradict."""
    if set(table.numbers) <= {*NOT_COUNTERS, *OF_LAUNCH}:
        warn(
            f"{table.source}: has no counters: it serves for predictors that need none "
            "(mean-surface, no-scaling and the other rules) and for studies of them, not for those "
            "that learn from counters"
        )
    suspect: dict[str, int] = {}
    for name, throughput in table.numbers.items():
        count = table.numbers.get(name.replace("_throughput", "_transactions"))
        if name.startswith(("dram_", "l2_read", "l2_write")) and "_throughput" in name:
            if count is None:
                continue
            gb_per_s = SECTOR_BYTES * count / table.numbers["time_ms"] / 1e6
            off = np.abs(throughput - gb_per_s) > _DISAGREEMENT * np.maximum(gb_per_s, 1.0)
            if off.any():
                suspect[name] = int(off.sum())
    if suspect:
        counts = ", ".join(f"{name} in {rows}" for name, rows in suspect.items())
        warn(
            f"{table.source}: of {len(table)} rows, columns that disagree with transactions / "
            f"time by more than 10 %: {counts}; kept as they are, no utilisation feature uses them"
        )


def _warn_of_traffic(table: Table) -> None:
    """Warn of rows with more DRAM traffic than the GPU passes at the memory clock of the row."""
    counts = [table.numbers.get(f"dram_{way}_transactions") for way in ("read", "write")]
    if counts[0] is None or counts[1] is None:
        return
    device = load_device(table.text["device"][0])
    dram_bytes, seconds = SECTOR_BYTES * (counts[0] + counts[1]), table.numbers["time_ms"] / 1e3
    share = device.share_of_bandwidth(dram_bytes, seconds, table.numbers["memory_mhz"])
    if (above := share > LARGEST_SHARE).any():
        warn(
            f"{table.source}: {int(above.sum())} of {len(table)} rows have more DRAM traffic than "
            f"{device.key} passes at their memory clock, up to {np.nanmax(share):.2f} times"
        )


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
