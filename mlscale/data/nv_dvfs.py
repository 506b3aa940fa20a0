"""The public tables of NV-DVFS-Benchmark (Wang and Chu, 2018, and later), and one like them.

- With nvprof's counters: a row per kernel and pair of clocks, `appName, coreF, memF` [MHz, as the
  vendor's tool lists them], `time/ms`, metrics, often `power/W` and the launch
  (`kernel, argNo, blocks`).
- With DCGM's averages over a run, NV-DVFS-Benchmark's `*-profile.csv`: `benchmark, kernel, argNo`,
  dcgmi's abbreviations, time in ms.
- With DCGM's averages, of the A100 by Ali et al.: a row per application and clock, utilisations in
  %, time in s, no memory clock. Its PCIe traffic, temperatures, energy and `*_samples` are not
  taken over.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.datasets import identify
from mlscale.data.devices import LARGEST_SHARE, SECTOR_BYTES, load_device
from mlscale.data.grid import AXES
from mlscale.data.logs import PROFILE_KIND, clocks_not_reached, power_faults
from mlscale.data.measurements import Incomplete, Measurements, from_table
from mlscale.data.table import Table
from mlscale.data.table_files import csv_header, read_csv
from mlscale.errors import InputError, warn
from mlscale.parameters import parameter

_NVPROF_COLUMNS = {
    "coreF": "engine_mhz",
    "memF": "memory_mhz",
    "time/ms": "time_ms",
    "power/W": "power_w",
}
_LAUNCH = {"kernel": "function", "argNo": "arguments", "abbr.": "abbreviation"}
_WORDS = {*_LAUNCH, "appName", "blocks", "benchmark", "application"}
_MEASURED = {*AXES, "time_ms", "power_w"}
_ONE_APPLICATION = ("backprop", "scan", "matrixMul")
_BLOCKS = re.compile(r"\((\d+) (\d+) (\d+)\) \((\d+) (\d+) (\d+)\)")
_REPEATED = ("l2_tex_write_throughput",)  # the benchmark's scripts ask for it twice


@dataclass(frozen=True)
class DcgmForm:
    """A form of DCGM's averages.

    names: columns that make the kernel's name, the first the application's. numbers: each tidy
    column with the file's column and the factor from its unit to ours.
    """

    names: tuple[str, ...]
    numbers: dict[str, tuple[str, float]]

    def fits(self, header: Collection[str]) -> bool:
        """Whether a file with that header has its names of kernel, clock and time."""
        clock, time = self.numbers["engine_mhz"][0], self.numbers["time_ms"][0]
        return all(name in header for name in (self.names[0], clock, time))


DCGM_FORMS = (
    DcgmForm(
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
    DcgmForm(
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


def read_nv_dvfs(path: Path, device: str | None, incomplete: Incomplete = "error") -> Measurements:
    """Read one file of measurements of a device of the device table.

    device: None for that of a public file known by its checksum.
    The CU count is the device's; the kernel is `appName`, and kernels that begin with backprop,
    scan or matrixMul are one application each. Launch names stand in the metadata, the launch
    geometry becomes the counters `workgroups` and `workgroup_size`. Counters whose column is
    empty are left out. Warns, by name, of faults known or found. Raises InputError.
    """
    header = csv_header(path, _REPEATED)
    form = next((form for form in DCGM_FORMS if form.fits(header)), None)
    for name in () if form else ("appName", "coreF", "memF", "time/ms"):
        if name not in header:
            raise InputError(f"{path}: there is no column '{name}'; is it an NV-DVFS file?")
    dataset = identify(path)
    if dataset is not None and device not in (None, dataset.device):
        raise InputError(f"{path}: is a file of '{dataset.device}', not of '{device}'")
    key = dataset.device if dataset else device
    if key is None:
        named = parameter("device")
        raise InputError(f"{path}: is not a known public file; name its GPU with {named}")

    raw = read_csv(path, _WORDS, repeated=_REPEATED)
    table = _table_of_averages(raw, form, key) if form else _table_of_counters(raw, key)
    table.metadata.update(origin="measured", source=dataset.url if dataset else path.name)
    table.metadata["faults"] = dict(dataset.faults) if dataset else {}
    measurements = from_table(table, incomplete)
    faults = measurements.metadata["faults"]
    if form:
        for kernel, fault in power_faults(measurements).items():
            faults.setdefault(kernel, fault)
    for kernel, fault in faults.items():
        warn("T02", f"{path}: '{kernel}': {fault}")
    if form:
        _warn_of_clocks(measurements, path)
    else:
        _warn_of_traffic(table)
    return measurements


def _table_of_counters(raw: Table, device: str) -> Table:
    """The tidy table of a file with nvprof's counters. Raises InputError."""
    kernels = raw.text["appName"]
    numbers = {"cu_count": np.full(len(raw), float(load_device(device).cu_count))}
    if any(raw.text.get("blocks", ())):
        numbers |= _launch_geometry(raw)
    for name, values in raw.numbers.items():
        if name in _NVPROF_COLUMNS:
            numbers[_NVPROF_COLUMNS[name]] = raw.positive(name)
        elif raw.has_values(name):
            numbers[name] = values
    launches: dict[str, dict[str, str]] = {}
    for row, kernel in enumerate(kernels):
        launch = {ours: raw.text[name][row] for name, ours in _LAUNCH.items() if name in raw.text}
        launches.setdefault(kernel, launch)
    metadata = {
        "counter_tool": "nvprof",
        "power_kind": "board" if "power_w" in numbers else None,
        "launches": launches,
    }
    text = {
        "device": [device] * len(raw),
        "application": [_application(kernel) for kernel in kernels],
        "kernel": kernels,
    }
    return Table(raw.source, text, numbers, metadata, raw.lines)


def _application(kernel: str) -> str:
    return next((one for one in _ONE_APPLICATION if kernel.startswith(one)), kernel)


def _launch_geometry(raw: Table) -> dict[str, Floats]:
    """Workgroups and threads per workgroup, from '(3584 1 1) (128 1 1)'. Raises InputError."""
    sizes = np.empty((len(raw), 6))
    for row, cell in enumerate(raw.text["blocks"]):
        match = _BLOCKS.fullmatch(cell.strip())
        if match is None:
            raise InputError(
                f"{raw.cell(row, 'blocks')}: '{cell}' is not '(grid) (block)', each three whole "
                "numbers"
            )
        sizes[row] = [float(size) for size in match.groups()]
    return {"workgroups": sizes[:, :3].prod(axis=1), "workgroup_size": sizes[:, 3:].prod(axis=1)}


def _table_of_averages(raw: Table, form: DcgmForm, device: str) -> Table:
    """The tidy table of a file with DCGM's averages; the CU count is the device's.

    Raises InputError.
    """
    raw.require([*form.names, *(name for name, _ in form.numbers.values())])
    gpu = load_device(device)
    numbers = {"cu_count": np.full(len(raw), float(gpu.cu_count))}
    for ours, (theirs, factor) in form.numbers.items():
        values = raw.positive(theirs) if ours in _MEASURED else raw.numbers[theirs]
        numbers[ours] = values * factor
    if "memory_mhz" not in numbers:
        if gpu.datasheet is None:
            raise InputError(f"{raw.source}: has no memory clock, and neither has '{device}'")
        numbers["memory_mhz"] = np.full(len(raw), float(gpu.datasheet.memory_mhz))
    names = [raw.text[name] for name in form.names]
    text = {
        "device": [device] * len(raw),
        "application": names[0],
        "kernel": [".".join(parts) for parts in zip(*names, strict=True)],
    }
    metadata = {"counter_tool": "dcgm", "profile_kind": PROFILE_KIND, "power_kind": "board"}
    return Table(raw.source, text, numbers, metadata, raw.lines)


def _warn_of_clocks(measurements: Measurements, path: Path) -> None:
    """Warn where the GPU cannot have run at the clock that was set."""
    clocks = clocks_not_reached(measurements)
    if clocks:
        times = ", ".join(f"{over:.2f} at {clock:g} MHz" for clock, over in clocks.items())
        warn(
            "L04",
            f"{path}: times are longer than the set clocks explain, by {times}: the GPU ran "
            "slower than it was set to there; good for power, poor for time",
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
            "G01",
            f"{table.source}: {int(above.sum())} of {len(table)} rows have more DRAM traffic than "
            f"{device.key} can transfer at their memory clock, up to {np.nanmax(share):.2f} times",
        )
