"""Prometheus' answer to a query of dcgm-exporter's metrics: JSON of its HTTP API.

Form: a matrix of a range query, or the vector of one moment, as in
https://prometheus.io/docs/prometheus/latest/querying/api/ (expression query result formats).
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mlscale.errors import InputError
from mlscale.profilers.sampled.dcgm import EXPORTER, warn_of_instances
from mlscale.profilers.sampled.log import (
    Lines,
    Sample,
    by_our_names,
    json_documents,
    values_of,
)

HEADER = re.compile(r'\s*\{\s*"(status"\s*:\s*"(success|error)"|data"\s*:\s*\{\s*"result)')
_NO_NUMBER = ("NaN", "+Inf", "-Inf")
_QUERY = '{__name__=~"DCGM_FI_.*"}'


def read_answer(path: Path, lines: Lines) -> Iterator[Sample]:
    """A sample for each GPU and time. Series of one GPU and metric, as of several pods, are one.

    A file may hold several answers one after the other, as of a query for each metric.
    Those of MIG instances are passed over, with a warning. Raises InputError on another answer, and
    on series of several hosts.
    """
    moments: dict[tuple[str, float], dict[str, float]] = {}
    names: dict[str, str] = {}
    hosts: dict[str, None] = {}
    of_instances = 0
    answers = (answer for _, answer in json_documents(path, lines))
    all_series = [one for answer in answers for one in _series(path, answer)]
    for number, one in enumerate(all_series, start=1):
        where = f"{path}: series {number}"
        labels, values = _parts(one, where)
        metric, gpu = labels.get("__name__"), labels.get("gpu", "0")
        if metric not in EXPORTER:
            continue
        if labels.get("GPU_I_ID"):
            of_instances += 1
            continue
        hosts[labels.get("Hostname") or labels.get("instance", "")] = None
        names.setdefault(gpu, labels.get("modelName", ""))
        for seconds, text in values:
            if text not in _NO_NUMBER:
                [reading] = values_of({metric: text}, EXPORTER, where).values()
                moments.setdefault((gpu, seconds), {}).setdefault(metric, reading)
    warn_of_instances(path, of_instances)
    if len(hosts) > 1:
        raise InputError(f"{path}: is of the hosts {', '.join(hosts)}; ask Prometheus for one")
    if not moments:
        raise InputError(
            f"{path}: has no metric of dcgm-exporter; ask Prometheus for {_QUERY}, of one Hostname "
            "and without functions, which take the names away; log a run on AMD's GPUs with amd-smi"
        )
    for (gpu, seconds), readings in moments.items():
        yield Sample(gpu, names[gpu] or None, seconds, by_our_names(readings, EXPORTER))


def _series(path: Path, answer: Any) -> list[Any]:
    if isinstance(answer, Mapping) and answer.get("status") == "error":
        raise InputError(f"{path}: Prometheus says: {str(answer.get('error'))[:300]}")
    data = answer.get("data") if isinstance(answer, Mapping) else None
    series = data.get("result") if isinstance(data, Mapping) else None
    if not isinstance(series, list):
        raise InputError(f"{path}: is no answer of Prometheus to a query: it has no data.result")
    return series


def _parts(one: Any, where: str) -> tuple[dict[str, str], list[tuple[float, str]]]:
    """Labels and values of a series. Raises InputError where it is of another form."""
    try:
        labels = {str(name): str(text) for name, text in one["metric"].items()}
        values = one["values"] if "values" in one else [one["value"]]
        return labels, [(float(seconds), str(text)) for seconds, text in values]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(
            f"{where}: is not of the form {{'metric': {{…}}, 'values': [[time, 'value'], …]}}"
        ) from None
