"""DCGM's logs: the table of dcgmi dmon, and the names of dcgm-exporter's metrics."""

from collections.abc import Iterator
from pathlib import Path

from mlscale.errors import warn
from mlscale.profilers.sampled.log import Lines, Sample, rows, values_of
from mlscale.text import counted

# Ours, and DCGM's names: dcgmi's column, dcgm-exporter's metric.
_FIELDS = (
    ("gr_engine_active", "GRACT", "PROF_GR_ENGINE_ACTIVE"),
    ("sm_active", "SMACT", "PROF_SM_ACTIVE"),
    ("sm_occupancy", "SMOCC", "PROF_SM_OCCUPANCY"),
    ("tensor_active", "TENSO", "PROF_PIPE_TENSOR_ACTIVE"),
    ("dram_active", "DRAMA", "PROF_DRAM_ACTIVE"),
    ("fp64_active", "FP64A", "PROF_PIPE_FP64_ACTIVE"),
    ("fp32_active", "FP32A", "PROF_PIPE_FP32_ACTIVE"),
    ("fp16_active", "FP16A", "PROF_PIPE_FP16_ACTIVE"),
    ("gpu_utilisation", "GPUTL", "DEV_GPU_UTIL"),
    ("memory_copy_utilisation", "MCUTL", "DEV_MEM_COPY_UTIL"),
    ("power_w", "POWER", "DEV_POWER_USAGE"),
    ("power_w", "POWINST", "DEV_POWER_USAGE_INSTANT"),
    ("engine_mhz", "SMCLK", "DEV_SM_CLOCK"),
    ("memory_mhz", "MMCLK", "DEV_MEM_CLOCK"),
    ("engine_mhz_requested", "SACLK", "DEV_APP_SM_CLOCK"),
)
_DMON = {dmon: ours for ours, dmon, _ in _FIELDS}
EXPORTER = {f"DCGM_FI_{metric}": ours for ours, _, metric in _FIELDS}
_ENTITY = "Entity"


def read_dmon(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a GPU; those of MIG instances are passed over. Raises InputError."""
    is_of_gpu = False
    for where, row in rows(path, lines, _dmon_cells, lambda cells: cells[0] == _ENTITY):
        is_of_gpu = True
        yield Sample(row[_ENTITY], None, None, values_of(row, _DMON, where))
    if is_of_gpu:
        warn_of_instances(path, sum(text.lstrip().startswith("GPU-") for _, text in lines))


def _dmon_cells(text: str) -> list[str] | None:
    """The names below '#Entity', and the values of 'GPU 0', each with the entity as one cell."""
    words = text.replace("#", " ", 1).split()
    if words[:1] == [_ENTITY]:
        return words
    is_of_gpu = words[:1] == ["GPU"] and len(words) > 1 and words[1].isdecimal()
    return words[1:] if is_of_gpu else None


def warn_of_instances(path: Path, lines: int) -> None:
    """Warn of lines that are left out as they are of MIG instances, if there are any."""
    if lines:
        warn(
            f"{path}: left out: {counted(lines, 'line')} of MIG instances, which share the clock "
            "and the power of the whole GPU"
        )
