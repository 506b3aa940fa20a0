"""Where a fleet or a large table is cut changes nothing of what is said of its kernels.

Expected: the answer for the same rows in one table, and limits by hand.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import Capture, succeed
from fleets import CONFIGURATIONS, COUNTERS, MODEL, assert_same, rows_of, write_fleet
from pyarrow.csv import read_csv

from mlscale.data.datasets import path
from mlscale.data.grid import AXES

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_power_that_was_drawn_counts_in_every_part(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """By hand: a V100 supplies 250 W, unless it drew 400 W for the last of twelve kernels.

    All are alike, and at a clock higher than the base's a kernel of 245 W needs more than 250.
    """
    monkeypatch.setattr("mlscale.model.prediction_table.PART", 3 * CONFIGURATIONS)
    alike = {"engine_mhz": [1237.0] * 12} | {name: [0.4] * 12 for name in COUNTERS}
    for last_w, is_marked in ((245.0, True), (400.0, False)):
        alike["power_w"] = [245.0] * 11 + [last_w]
        table = write_fleet(tmp_path / "f.parquet", **alike)
        given = ("predict", table, "--model", MODEL)
        succeed(capsys, *given, "-o", f"{tmp_path}/{last_w}/")
        succeed(capsys, *given, "-o", tmp_path / f"whole.{form}")
        read = {"csv": read_csv, "parquet": pq.read_table}[form]
        whole = read(tmp_path / f"whole.{form}").to_pydict()
        for flags in (rows_of(tmp_path / f"{last_w}")["flags"], whole["flags"]):
            each = len(flags) // 12
            first = flags[:each]
            assert any("above power limit" in flag for flag in first) == is_marked
            assert flags[: 11 * each] == first * 11


def counted_on_an_h100(capsys: Capture, folder: Path) -> pa.Table:
    """Two kernels with counters, of a GPU whose kernels need some."""
    base = ("--base", "cu=132,engine=1980,memory=2619")
    succeed(capsys, "import", path("h100-by-hand.csv"), *base, "-o", folder / "counted.csv")
    return read_csv(folder / "counted.csv")


def renamed(table: pa.Table, *kernels: str) -> pa.Table:
    """The same rows under other names."""
    return table.set_column(table.column_names.index("kernel"), "kernel", [list(kernels)])


def test_profiled_only_looks_for_counters_in_every_row_group(
    capsys: Capture, tmp_path: Path
) -> None:
    """The first row group has none."""
    counted = counted_on_an_h100(capsys, tmp_path)
    known = [
        name
        for name in ("device", "application", "kernel", *AXES, "time_ms")
        if name in counted.column_names
    ]
    rows = [renamed(counted.select(known), "a", "b"), counted]
    table = tmp_path / "f.parquet"
    pq.write_table(pa.concat_tables(rows, promote_options="default"), table, row_group_size=2)
    given = ("predict", table, "--device", "h100-sxm5", "--profiled-only")
    succeed(capsys, *given, "-o", f"{tmp_path}/o/")
    succeed(capsys, *given, "-o", tmp_path / "whole.parquet")
    assert_same(rows_of(tmp_path / "o"), pq.read_table(tmp_path / "whole.parquet").to_pydict())


@pytest.mark.parametrize("part", [1, 250_000])
def test_exchanges_between_gpus_are_told_of_a_fleet_too(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """By the same profiles as one table, however many kernels are read at a time."""
    monkeypatch.setattr("mlscale.studies.fleet.PART", part)
    counted = counted_on_an_h100(capsys, tmp_path)
    exchanges = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_AllGather_RING_LL")
    rows = pa.concat_tables([renamed(counted, "a", "b"), renamed(counted, *exchanges), counted])
    table = tmp_path / "f.parquet"
    given = ("advise", table, "--device", "h100-sxm5", "--max-slowdown", 2, "--format", "json")
    pq.write_table(rows, table)
    whole = json.loads(succeed(capsys, *given)[0])
    told = [one for one in whole["warnings"] if "exchanging data between GPUs" in one]
    for size in (1, 2, 6):
        pq.write_table(rows, table, row_group_size=size)
        fleet = json.loads(succeed(capsys, *given, "-o", f"{tmp_path}/{size}/")[0])
        assert fleet["verdict"] == whole["verdict"]
        assert [one for one in fleet["warnings"] if "exchanging data" in one] == told
        assert len(told) == 1
