"""DCGM's logs: the table of dcgmi dmon, dcgm-exporter's Prometheus text, and the SDK's CSV."""

import re
from collections.abc import Iterator
from pathlib import Path

from mlscale.errors import InputError, warn
from mlscale.profilers.sampled.log import (
    Lines,
    Sample,
    by_our_names,
    csv_cells,
    number,
    rows,
    values_of,
)
from mlscale.text import counted

# Ours, and DCGM's names: dcgmi's column, dcgm-exporter's metric, the SDK's tag.
_FIELDS = (
    ("gr_engine_active", "GRACT", "PROF_GR_ENGINE_ACTIVE", "gr_engine_active"),
    ("sm_active", "SMACT", "PROF_SM_ACTIVE", "sm_active"),
    ("sm_occupancy", "SMOCC", "PROF_SM_OCCUPANCY", "sm_occupancy"),
    ("tensor_active", "TENSO", "PROF_PIPE_TENSOR_ACTIVE", "tensor_active"),
    ("dram_active", "DRAMA", "PROF_DRAM_ACTIVE", "dram_active"),
    ("fp64_active", "FP64A", "PROF_PIPE_FP64_ACTIVE", "fp64_active"),
    ("fp32_active", "FP32A", "PROF_PIPE_FP32_ACTIVE", "fp32_active"),
    ("fp16_active", "FP16A", "PROF_PIPE_FP16_ACTIVE", "fp16_active"),
    ("gpu_utilisation", "GPUTL", "DEV_GPU_UTIL", "gpu_utilization"),
    ("memory_copy_utilisation", "MCUTL", "DEV_MEM_COPY_UTIL", "mem_copy_utilization"),
    ("power_w", "POWER", "DEV_POWER_USAGE", "power_usage"),
    ("power_w", "POWINST", "DEV_POWER_USAGE_INSTANT", "power_usage_instant"),
    ("engine_mhz", "SMCLK", "DEV_SM_CLOCK", "sm_clock"),
    ("memory_mhz", "MMCLK", "DEV_MEM_CLOCK", "memory_clock"),
    ("engine_mhz_requested", "SACLK", "DEV_APP_SM_CLOCK", "sm_app_clock"),
)
_DMON = {dmon: ours for ours, dmon, _, _ in _FIELDS}
EXPORTER = {f"DCGM_FI_{metric}": ours for ours, _, metric, _ in _FIELDS}
_TAGS = {tag: ours for ours, _, _, tag in _FIELDS}
_ENTITY = "Entity"
# Prometheus' text format 0.0.4: behind the value there may be a time, in milliseconds.
_METRIC = re.compile(
    r"(?P<metric>DCGM_FI_\w+)\{(?P<labels>.*)\}\s+(?P<value>\S+)(\s+(?P<time>\d+))?\s*$"
)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


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


def read_exporter(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each GPU and scrape: a scrape ends where a metric of the GPU comes again.

    Lines with a time are a sample for each GPU and time, in whatever order they stand. Of several
    metrics with one meaning, the first of _FIELDS that has a value counts. Raises InputError.
    """
    scrapes: dict[str, dict[str, float]] = {}
    moments: dict[tuple[str, float], dict[str, float]] = {}
    names: dict[str, str | None] = {}  # by GPU; a line need not say it
    for metric, labels, value, time_ms in _metrics(path, lines):
        gpu = labels.get("gpu", "0")
        names[gpu] = labels.get("modelName") or names.get(gpu)
        if time_ms is not None:
            moments.setdefault((gpu, time_ms / 1e3), {}).setdefault(metric, value)
            continue
        if metric in scrapes.setdefault(gpu, {}):
            yield Sample(gpu, names[gpu], None, by_our_names(scrapes.pop(gpu), EXPORTER))
            scrapes[gpu] = {}
        scrapes[gpu][metric] = value
    for gpu, scrape in scrapes.items():
        yield Sample(gpu, names[gpu], None, by_our_names(scrape, EXPORTER))
    for (gpu, seconds), readings in moments.items():
        yield Sample(gpu, names[gpu], seconds, by_our_names(readings, EXPORTER))


def _metrics(path: Path, lines: Lines) -> Iterator[tuple[str, dict[str, str], float, float | None]]:
    """Name, labels, value and time [ms] of each metric of a whole GPU, once of each scrape.

    Where pods share a GPU, each has a line with the GPU's value, one below the other: the first
    counts. Any other line, such as a '# HELP', ends them. Warns of lines of MIG instances, and
    where pods of one scrape and scrapes of other pods cannot be told apart. Raises InputError.
    """
    host: str | None = None
    of_instances = of_pods = blocks = 0
    metric, lines_above = "", dict[str, str]()  # of that metric: their GPUs by their labels
    for line, text in lines:
        match = _METRIC.match(text)
        if match is None or match["metric"] != metric:
            metric, lines_above = match["metric"] if match else "", {}
            blocks += 1
        if match is None or metric not in EXPORTER:
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
        if match["labels"] in lines_above:
            lines_above = {}
        is_of_further_pod = gpu in lines_above.values()
        lines_above[match["labels"]] = gpu
        if is_of_further_pod:
            of_pods += 1
            continue
        [value] = values_of({metric: match["value"]}, EXPORTER, f"{path}: row {line}").values()
        stamp = match["time"]
        time_ms = None if stamp is None else number(stamp, f"{path}: row {line}")
        yield metric, labels, value, time_ms
    warn_of_instances(path, of_instances)
    if of_pods and blocks == 1:
        warn(
            f"{path}: left out: {counted(of_pods, 'line')} as of further pods on the same GPU; if "
            "pods changed from scrape to scrape, keep the lines '# HELP', which part scrapes"
        )


def warn_of_instances(path: Path, lines: int) -> None:
    """Warn of lines that are left out as they are of MIG instances, if there are any."""
    if lines:
        warn(
            f"{path}: left out: {counted(lines, 'line')} of MIG instances, which share the clock "
            "and the power of the whole GPU"
        )


def read_sdk(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each GPU and time of a CSV in long form, as DCGM's sample programs write it.

    Of several fields with one meaning, the first of _FIELDS that has a value counts. Raises
    InputError.
    """
    samples: dict[tuple[str, float], dict[str, float]] = {}
    for where, row in rows(path, lines, csv_cells, lambda cells: cells[0] == "GPUId"):
        gpu, microseconds, field, value = row.values()
        time_s = number(microseconds, f"{where}, column 'TimeStampUs'") / 1e6
        sample = samples.setdefault((gpu, time_s), {})
        for reading in values_of({field: value}, _TAGS, where).values():
            sample[field] = reading
    for (gpu, time_s), readings in samples.items():
        yield Sample(gpu, None, time_s, by_our_names(readings, _TAGS))
