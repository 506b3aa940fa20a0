"""Prometheus' answers to queries of dcgm-exporter's metrics. Made files in its documented form."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from synthetic.monitor_logs import FACTS, load, row
from text_files import written

from mlscale.errors import DataWarning, InputError

CLOCK, MEMORY, POWER, BUSY = (
    f"DCGM_FI_DEV_{name}" for name in ("SM_CLOCK", "MEM_CLOCK", "POWER_USAGE", "GPU_UTIL")
)


def series(metric: str, values: Sequence[object], **labels: str) -> dict[str, Any]:
    """One every 15 s; a value of None is missing."""
    of = {"__name__": metric, "gpu": "0", "Hostname": "n1", **labels}
    pairs = [[1_700_000_000 + 15 * k, str(v)] for k, v in enumerate(values) if v is not None]
    return {"metric": of, "values": pairs}


def answer(*result: Mapping[str, Any]) -> dict[str, Any]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(result)}}


RUN = (
    series(BUSY, [0, 90, 100, 95, 0]),
    series(POWER, [70, 400, 500, 600, 70]),
    series(CLOCK, [345, 1200, 1300, None, 345]),
    series(MEMORY, [1215] * 5),
)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_range_is_a_log(tmp_path: Path, indent: int | None) -> None:
    """By hand: three busy samples of 15 s; a clock that is missing once is the mean of the rest."""
    imported = load(written(tmp_path, json.dumps(answer(*RUN), indent=indent)))
    values = row(imported)
    assert (values["time_ms"], values["power_w"], values["engine_mhz"]) == (45_000, 500, 1250)
    assert values["gpu_utilisation"] == pytest.approx(0.95)


def test_an_answer_for_each_metric_in_one_file(tmp_path: Path) -> None:
    """The run above, asked for metric by metric."""
    answers = "\n".join(json.dumps(answer(one)) for one in RUN)
    values = row(load(written(tmp_path, answers)))
    assert (values["time_ms"], values["power_w"], values["engine_mhz"]) == (45_000, 500, 1250)


def test_a_long_answer_on_one_line(tmp_path: Path) -> None:
    count = 20_000
    long = answer(
        series(BUSY, [0, *[99] * count, 0]),
        series(POWER, [70, *[500] * count, 70]),
        series(CLOCK, [345, *[1300] * count, 345]),
        series(MEMORY, [None, 1215]),
    )
    imported = load(written(tmp_path, json.dumps(long)))
    assert row(imported)["time_ms"] == pytest.approx(15e3 * count)


def test_series_of_several_pods_are_of_one_gpu(tmp_path: Path) -> None:
    """By hand: the run above, of which one pod has the first half and another the second."""
    pods = [
        series(POWER, [70, 400, 500, None, None], pod="a"),
        series(POWER, [None, None, 500, 600, 70], pod="b"),
    ]
    assert (
        row(load(written(tmp_path, json.dumps(answer(RUN[0], *pods, *RUN[2:])))))["power_w"] == 500
    )


def test_gpus_are_told_apart_and_mig_instances_left_out(tmp_path: Path) -> None:
    """The second GPU draws 100 W more; an instance's activity is none of the whole GPU."""
    other = [{**one, "metric": {**one["metric"], "gpu": "1"}} for one in (RUN[0], *RUN[2:])]
    more = series(POWER, [70, 500, 600, 700, 70], gpu="1")
    of_mig = series(BUSY, [50, 50, 50, 50, 50], GPU_I_ID="3")
    path = written(tmp_path, json.dumps(answer(*RUN, *other, more, of_mig)))
    with pytest.warns(DataWarning, match="left out: 1 line of MIG instances"):
        imported = load(path)
    assert imported.table.numbers["power_w"].tolist() == [500, 600]


def test_one_moment_needs_the_time_of_the_run(tmp_path: Path) -> None:
    vector = [
        {"metric": one["metric"], "value": one["values"][2]} for one in RUN
    ]  # fmt: skip
    path = written(tmp_path, json.dumps(answer(*vector)))
    with pytest.raises(InputError, match="give --time MS"):
        load(path)
    assert row(load(path, time_ms=5.0))["power_w"] == 500


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"status": "error", "error": "parse error"}, "Prometheus says: parse error"),
        (answer(), "has no metric of dcgm-exporter; ask Prometheus for {__name__=~"),
        (answer({"metric": {"gpu": "0"}, "values": [[1, "2"]]}), "has no metric of dcgm-exporter"),
        (answer(series(BUSY, ["NaN", "NaN"])), "has no metric of dcgm-exporter"),
        (answer({"metric": {}, "histograms": []}), "series 1: is not of the form"),
        (answer({"metric": 3}), "series 1: is not of the form"),
        (answer(series(BUSY, ["much"])), "series 1, column 'DCGM_FI_DEV_GPU_UTIL': "),
        ({"status": "success", "data": {"result": 3}}, "it has no data.result"),
        (answer(*RUN, series(BUSY, [90], Hostname="n2")), "is of the hosts n1, n2; ask Prom"),
    ],
)  # fmt: skip
def test_another_answer_is_refused(
    tmp_path: Path, document: Mapping[str, Any], problem: str
) -> None:
    path = written(tmp_path, json.dumps(document))
    with pytest.raises(InputError) as refused:
        load(path, **FACTS)
    assert problem in str(refused.value)
    assert str(refused.value).startswith(str(path))


def test_one_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps(answer(*RUN))[:-40])
    with pytest.raises(InputError, match="is not valid JSON"):
        load(path)
