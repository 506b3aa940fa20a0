"""DCGM's logs: the table of dcgmi dmon, dcgm-exporter's Prometheus text, and the SDK's CSV."""

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path

from mlscale.errors import InputError, warn
from mlscale.profilers.sampled.log import Lines, Sample, is_whole_row, number, values_of

# Ours, the factor, and DCGM's names: dcgmi's column, dcgm-exporter's metric, the SDK's tag.
_FIELDS = (
    ("gr_engine_active", 1.0, "GRACT", "PROF_GR_ENGINE_ACTIVE", "gr_engine_active"),
    ("sm_active", 1.0, "SMACT", "PROF_SM_ACTIVE", "sm_active"),
    ("sm_occupancy", 1.0, "SMOCC", "PROF_SM_OCCUPANCY", "sm_occupancy"),
    ("tensor_active", 1.0, "TENSO", "PROF_PIPE_TENSOR_ACTIVE", "tensor_active"),
    ("dram_active", 1.0, "DRAMA", "PROF_DRAM_ACTIVE", "dram_active"),
    ("fp64_active", 1.0, "FP64A", "PROF_PIPE_FP64_ACTIVE", "fp64_active"),
    ("fp32_active", 1.0, "FP32A", "PROF_PIPE_FP32_ACTIVE", "fp32_active"),
    ("fp16_active", 1.0, "FP16A", "PROF_PIPE_FP16_ACTIVE", "fp16_active"),
    ("gpu_utilisation", 0.01, "GPUTL", "DEV_GPU_UTIL", "gpu_utilization"),
    ("memory_copy_utilisation", 0.01, "MCUTL", "DEV_MEM_COPY_UTIL", "mem_copy_utilization"),
    ("power_w", 1.0, "POWER", "DEV_POWER_USAGE", "power_usage"),
    ("power_w", 1.0, "PWRIN", "DEV_POWER_USAGE_INSTANT", "power_usage_instant"),
    ("engine_mhz", 1.0, "SMCLK", "DEV_SM_CLOCK", "sm_clock"),
    ("memory_mhz", 1.0, "MMCLK", "DEV_MEM_CLOCK", "memory_clock"),
    ("engine_mhz_requested", 1.0, "SACLK", "DEV_APP_SM_CLOCK", "sm_app_clock"),
)
_DMON = {dmon: (ours, factor) for ours, factor, dmon, _, _ in _FIELDS}
_EXPORTER = {f"DCGM_FI_{metric}": (ours, factor) for ours, factor, _, metric, _ in _FIELDS}
_TAGS = {tag: (ours, factor) for ours, factor, _, _, tag in _FIELDS}
_METRIC = re.compile(r"(?P<metric>DCGM_FI_\w+)\{(?P<labels>.*)\}\s+(?P<value>\S+)(\s+\d+)?\s*$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def read_dmon(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each row of a GPU; those of MIG instances are passed over. Raises InputError."""
    header: list[str] = []
    for line, text in lines:
        words = text.replace("#", " ", 1).split()
        if words[:1] == ["Entity"]:
            header = words[1:]
        elif words[:1] == ["GPU"] and len(words) > 1 and words[1].isdecimal():
            where = f"{path}: row {line}"
            cells = words[2:]
            if is_whole_row(cells, header, where, is_last=line == lines[-1][0]):
                row = dict(zip(header, cells, strict=True))
                yield Sample(words[1], None, None, values_of(row, _DMON, where))


def read_exporter(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each GPU and scrape: a scrape ends where a metric of the GPU comes again.

    Of several metrics with one meaning, the first of _FIELDS that has a value counts. Metrics of
    MIG instances are passed over. Raises InputError.
    """
    host: str | None = None
    scrapes: dict[str, dict[str, float]] = {}
    names: dict[str, str | None] = {}  # by GPU; a line need not say it
    of_instances = 0
    for line, text in lines:
        match = _METRIC.match(text)
        if match is None or match["metric"] not in _EXPORTER:
            continue
        labels = dict(_LABEL.findall(match["labels"]))
        if labels.get("GPU_I_ID"):
            of_instances += 1
            continue
        if host not in (None, labels.get("Hostname", host)):
            raise InputError(
                f"{path}: row {line}: is of the hosts '{host}' and '{labels['Hostname']}'; keep "
                "the lines of one"
            )
        host, gpu = labels.get("Hostname", host), labels.get("gpu", "0")
        where = f"{path}: row {line}"
        [value] = values_of({match["metric"]: match["value"]}, _EXPORTER, where).values()
        names[gpu] = labels.get("modelName") or names.get(gpu)
        if match["metric"] in scrapes.setdefault(gpu, {}):
            yield Sample(gpu, names[gpu], None, _by_our_names(scrapes.pop(gpu)))
            scrapes[gpu] = {}
        scrapes[gpu][match["metric"]] = value
    if of_instances:
        warn(
            f"{path}: {of_instances} lines are of MIG instances and left out: they share the "
            "clock and the power of the whole GPU"
        )
    for gpu, scrape in scrapes.items():
        yield Sample(gpu, names[gpu], None, _by_our_names(scrape))


def _by_our_names(scrape: dict[str, float]) -> dict[str, float]:
    """The values of one scrape, which are in our units already."""
    values: dict[str, float] = {}
    for metric, (ours, _) in _EXPORTER.items():
        if metric in scrape and math.isnan(values.get(ours, math.nan)):
            values[ours] = scrape[metric]
    return values


def read_sdk(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each GPU and time of a CSV in long form, as DCGM's sample programs write it.

    Raises InputError.
    """
    samples: dict[tuple[str, float], dict[str, float]] = {}
    width = len(lines[0][1].split(","))
    for line, text in lines[1:]:
        where = f"{path}: row {line}"
        cells = next(csv.reader([text]), [])
        if not cells or not is_whole_row(cells, ["x"] * width, where, line == lines[-1][0]):
            continue
        gpu, microseconds, field, value = cells
        time_s = number(microseconds, f"{where}, column 'TimeStampUs'") / 1e6
        sample = samples.setdefault((gpu.strip(), time_s), {})
        sample |= values_of({field.strip(): value}, _TAGS, where)
    for (gpu, time_s), values in samples.items():
        yield Sample(gpu, None, time_s, values)
