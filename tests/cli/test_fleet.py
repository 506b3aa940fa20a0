"""predict and advise on a fleet: as on one table, however it is cut, stopped or damaged."""

import json
import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import Cli, files_in, flat, note_texts, when_kept
from dask_cluster import workers
from fleets import CONFIGURATIONS, COUNTERS, MODEL, assert_same, rows_of, write_fleet
from pyarrow.csv import read_csv

import mlscale.studies.fleet
from mlscale.cli import fleet
from mlscale.data.datasets import path
from mlscale.data.grid import AXES
from mlscale.model.prediction_table import PART
from mlscale.progress import PROGRESS

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three kernels at a time: a row group of four takes two."""
    monkeypatch.setattr(mlscale.studies.fleet, "PART", 3 * CONFIGURATIONS)


class TestTheSame:
    @pytest.mark.parametrize("at", [(), ("--at", "engine=1087", "--at", "engine=1000")])
    def test_predictions_as_of_one_table(
        self, cli: Cli, tmp_path: Path, at: tuple[str, ...]
    ) -> None:
        table = write_fleet(tmp_path / "f.parquet")
        out = cli("predict", table, "--model", MODEL, *at, "-o", f"{tmp_path}/o/")
        written, notes = out.splitlines()
        assert written == f"Written: 12 kernels in 3 parts in {tmp_path}/o/"
        assert notes.startswith("  Notes P05, T10: ")
        cli("predict", table, "--model", MODEL, *at, "-o", tmp_path / "whole.parquet")
        assert_same(rows_of(tmp_path / "o"), pq.read_table(tmp_path / "whole.parquet").to_pydict())

    @pytest.mark.parametrize(
        "asked",
        [
            (),
            ("--minimize", "edp", "--max-slowdown", 5),
            ("--minimize", "time", "--max-power", 200),
            ("--max-time", 2300),
            ("--minimize", "clock"),
        ],
    )
    def test_advice_as_of_one_table(self, cli: Cli, tmp_path: Path, asked: tuple[Any, ...]) -> None:
        given = ("advise", write_fleet(tmp_path / "f.parquet"), "--model", MODEL, *asked)
        out = cli(*given, "-o", f"{tmp_path}/o/", "--format", "json")
        whole = cli.json(*given)
        document = json.loads(out)
        assert document["run"] == pytest.approx(whole["run"], rel=1e-9)
        assert document["limits"] == whole["limits"]
        for name in ("answer", "expected"):
            found, expected = document[name], whole[name]
            assert (found is None) == (expected is None)
            assert found is None or flat(found) == pytest.approx(flat(expected), rel=1e-9)
        assert len(document["front"]) == len(whole["front"])
        rows = rows_of(tmp_path / "o")
        assert len(rows["kernel"]) == len(whole["kernels"])
        for kernel in whole["kernels"]:
            place, best = rows["kernel"].index(kernel["kernel"]), kernel["best"]
            shown = {name: rows[name][place] for name in ("launches", "share_percent")}
            assert shown == pytest.approx({name: kernel[name] for name in shown})
            shown = {name: rows[name][place] for name in best["at"]}
            assert shown == best["at"]
            ends = [rows[f"slowdown_{end}percent"][place] for end in ("", "low_", "high_")]
            assert ends == pytest.approx(best["slowdown_percent"])
            assert rows["time_ms"][place] == pytest.approx(best["time_ms"][0])

    def test_a_folder_is_its_files(self, cli: Cli, tmp_path: Path) -> None:
        table = pq.read_table(write_fleet(tmp_path / "f.parquet"))
        (tmp_path / "in").mkdir()
        for number, begin in enumerate(range(0, 12, 4)):
            pq.write_table(table.slice(begin, 4), tmp_path / "in" / f"{number}.parquet")
        given = ("advise", "--model", MODEL, "--minimize", "energy")
        results = []
        for name in ("in", "f.parquet"):
            cli(*given, tmp_path / name, "-o", f"{tmp_path}/from-{name}/")
            files = files_in(tmp_path / f"from-{name}")
            document = json.loads(files.pop("_fleet.json"))
            results.append((files, document["answer"]))
        assert len(results[0][0]) == 3
        assert results[0] == results[1]

    def test_profiled_only_leaves_out(self, cli: Cli, tmp_path: Path) -> None:
        """A whole row group, and three kernels of another."""
        plain = pq.read_table(write_fleet(tmp_path / "f.parquet")).to_pydict()
        without = {name: plain[name][:1] + [None] * 7 + plain[name][8:] for name in COUNTERS}
        table = write_fleet(tmp_path / "f.parquet", **without)
        given = ("advise", table, "--model", MODEL)
        assert cli.refused(*given, "-o", f"{tmp_path}/o/") == (
            f"{table}: row group 0: row 2: has no counters, and in a fleet the mean of the others "
            "does not replace them; leave such kernels out with --profiled-only"
        )
        given = (*given, "--profiled-only", "--format", "json")
        document = json.loads(cli(*given, "-o", f"{tmp_path}/o/"))
        whole = json.loads(cli(*given))
        assert (document["run"]["kernels"], document["parts"]) == (5, 2)
        assert document["answer"]["set"] == whole["answer"]["set"]

    def test_kernels_that_are_left_out_hold_no_memory_clock(self, cli: Cli, tmp_path: Path) -> None:
        """A model of several memory clocks; half of the run's time is without counters."""
        rows = read_csv(path("simulated-gcn3-profile.csv"))
        known = ["device", "application", "kernel", *AXES, "time_ms"]
        uncounted = rows.select(known).set_column(2, "kernel", pa.array(["other"]))
        table = tmp_path / "f.parquet"
        pq.write_table(pa.concat_tables([rows, uncounted], promote_options="default"), table)
        given = ("advise", table, "--model", "simulated-gcn3", "--minimize", "time")
        given = (*given, "--profiled-only", "--format", "json")
        document = json.loads(cli(*given, "-o", f"{tmp_path}/o/"))
        whole = json.loads(cli(*given))
        assert document["answer"]["set"] == whole["answer"]["set"]
        assert not [one for one in note_texts(document) if one.startswith("the memory clock")]


class TestStopped:
    def test_what_is_resumed_is_the_same(self, cli: Cli, tmp_path: Path) -> None:
        """Also where a part that was done is gone, and one that was begun lies about."""
        given = ("advise", write_fleet(tmp_path / "f.parquet"), "--model", MODEL)
        stopped = tmp_path / "stopped"
        said = cli.interrupted(*given, "-o", f"{stopped}/")
        assert "2 of 3 parts are kept in" in said
        assert "holds an unfinished fleet" in cli.refused(*given, "-o", f"{stopped}/")
        (stopped / "part-000000.parquet").unlink()
        (stopped / ".x.mlscale-part").write_text("begun")
        resumed = cli(*given, "-o", f"{stopped}/", "--resume")
        cli(*given, "-o", f"{tmp_path}/whole/")
        assert files_in(stopped) == files_in(tmp_path / "whole")
        assert cli(*given, "-o", f"{stopped}/", "--resume") == resumed
        (stopped / "part-000001.parquet").unlink()
        cli(*given, "-o", f"{stopped}/", "--resume")
        assert files_in(stopped) == files_in(tmp_path / "whole")

    def test_what_is_whole_is_not_done_again(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        given = ("predict", write_fleet(tmp_path / "f.parquet"), "--model", MODEL)
        cli.interrupted(*given, "-o", f"{tmp_path}/o/")
        numbers, do_part = [], fleet.do_part

        def counted(model: Any, work: Any, number: int) -> Any:
            numbers.append(number)
            return do_part(model, work, number)

        monkeypatch.setattr(fleet, "do_part", counted)
        cli(*given, "-o", f"{tmp_path}/o/", "--resume")
        assert numbers == [2]

    @pytest.mark.parametrize("other", [("--at", "engine=1087"), ("--profiled-only",), "data"])
    def test_it_is_not_mixed_with_another(self, cli: Cli, tmp_path: Path, other: Any) -> None:
        table = write_fleet(tmp_path / "f.parquet")
        given = ["predict", table, "--model", MODEL, "-o", f"{tmp_path}/o/"]
        cli.interrupted(*given)
        if other == "data":
            write_fleet(table, time_ms=np.full(12, 2.5))
        else:
            given += other
        assert "was made of other data, with other settings" in cli.refused(*given, "--resume")


class TestRefused:
    def test_a_damaged_row_group_is_named(self, cli: Cli, tmp_path: Path) -> None:
        """What is done before it is kept."""
        table = write_fleet(tmp_path / "f.parquet")
        group = pq.ParquetFile(table).metadata.row_group(1)
        names = [group.column(c).path_in_schema for c in range(group.num_columns)]
        counter = group.column(names.index(COUNTERS[0]))
        whole = bytearray(table.read_bytes())
        whole[counter.data_page_offset + counter.total_compressed_size - 3] ^= 0xFF
        table.write_bytes(whole)
        said = cli.ended(2, "predict", table, "--model", MODEL, "-o", f"{tmp_path}/o/")[1]
        assert said.startswith(f"mlscale: error: {table}: row group 1: is not a readable Parquet")
        assert said.count("\n") == 1
        assert sorted(files_in(tmp_path / "o")) == ["part-000000.parquet", PROGRESS]

    @pytest.mark.parametrize(
        ("changes", "options", "problem"),
        [
            (
                {"engine_mhz": [1380.0] * 9 + [1237.0] * 3},
                "--base cu=80,engine=1380,memory=877 -o o/",
                "row 10: is not at the base",
            ),
            ({"power_w": [60.0] * 8 + [None] * 4}, "-o o/", "row group 2: power_w must be in all"),
            ({"time_ms": [1.0] * 11 + [-1.0]}, "-o o/", "row 12, column 'time_ms': the value is"),
            ({}, "-o f.parquet/", "f.parquet: is a file; give the name of a folder to write to"),
            ({}, "-o ./", "holds other Parquet files; name another folder"),
            ({}, "-o o/ --format csv", "results of a fleet are Parquet files"),
            (
                {name: [None] * 12 for name in COUNTERS},
                "-o o/ --profiled-only",
                "no kernel has counters, which this model needs: ",
            ),
        ],
    )
    def test_before_anything_is_written(
        self,
        cli: Cli,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        changes: dict[str, Any],
        options: str,
        problem: str,
    ) -> None:
        monkeypatch.chdir(tmp_path)
        table = write_fleet(tmp_path / "f.parquet", **changes)
        assert problem in cli.refused("advise", table, "--model", MODEL, *options.split())


# mlscale on two processes that kills all of them when a part is kept.
KILLED = """
import os
os.cpu_count = lambda: 2
import signal, sys
from mlscale.cli.main import main
from mlscale.data.grid import AXES
from mlscale.data.datasets import path
from mlscale.model.prediction_table import PART
from mlscale.progress import Progress

add = Progress.add

def add_and_kill(self, number, result):
    add(self, number, result)
    os.killpg(0, signal.SIGKILL)

Progress.add = add_and_kill
if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("command", ["predict", "advise"])
def test_killed_and_resumed_in_another_process(
    cli: Cli, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlscale.studies.fleet, "PART", PART)  # as in the other processes
    given = (command, str(write_fleet(tmp_path / "f.parquet")), "--model", MODEL)
    killed = [sys.executable, "-c", KILLED, *given, "-o", f"{tmp_path}/o/"]
    done = subprocess.run(killed, check=False, start_new_session=True, timeout=300)
    assert done.returncode == -signal.SIGKILL
    assert len((tmp_path / "o" / PROGRESS).read_text().splitlines()) == 1 + 1
    cli(*given, "-o", f"{tmp_path}/o/", "--resume")
    cli(*given, "-o", f"{tmp_path}/whole/")
    assert files_in(tmp_path / "o") == files_in(tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # a killed worker warns
def test_a_killed_worker_changes_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mlscale.studies.fleet, "PART", PART)  # as in the workers
    killed: list[int] = []
    given = ("advise", write_fleet(tmp_path / "f.parquet", rows=2), "--model", MODEL)
    with workers() as cluster:

        def kill() -> None:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

        with when_kept(2, kill):
            address = cluster.scheduler_address
            cli(*given, "--dask", address, "-o", f"{tmp_path}/spread/")
    assert len(killed) == 1
    cli(*given, "-o", f"{tmp_path}/alone/")
    assert files_in(tmp_path / "spread") == files_in(tmp_path / "alone")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_fleet(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six times the rows; what NumPy and Python hold at most grows by little."""
    monkeypatch.setattr(mlscale.studies.fleet, "PART", 50 * CONFIGURATIONS)
    monkeypatch.setattr("mlscale.data.table_files._ROWS_WRITTEN", 50 * CONFIGURATIONS)
    peaks = []
    for number, count in enumerate((100, 100, 600)):  # the first for what is imported
        table = write_fleet(tmp_path / f"{count}.parquet", rows=count, count=count)
        tracemalloc.start()
        cli("predict", table, "--model", MODEL, "-o", f"{tmp_path}/{number}/")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_power_that_was_drawn_counts_in_every_part(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
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
        cli(*given, "-o", f"{tmp_path}/{last_w}/")
        cli(*given, "-o", tmp_path / f"whole.{form}")
        read = {"csv": read_csv, "parquet": pq.read_table}[form]
        whole = read(tmp_path / f"whole.{form}").to_pydict()
        for flags in (rows_of(tmp_path / f"{last_w}")["flags"], whole["flags"]):
            each = len(flags) // 12
            first = flags[:each]
            assert any("above power limit" in flag for flag in first) == is_marked
            assert flags[: 11 * each] == first * 11


def counted_on_an_h100(cli: Cli, folder: Path) -> pa.Table:
    """Two kernels with counters, of a GPU whose kernels need some."""
    base = ("--base", "cu=132,engine=1980,memory=2619")
    cli("import", path("h100-by-hand.csv"), *base, "-o", folder / "counted.csv")
    return read_csv(folder / "counted.csv")


def renamed(table: pa.Table, *kernels: str) -> pa.Table:
    """The same rows under other names."""
    return table.set_column(table.column_names.index("kernel"), "kernel", [list(kernels)])


def test_profiled_only_looks_for_counters_in_every_row_group(cli: Cli, tmp_path: Path) -> None:
    """The first row group has none."""
    counted = counted_on_an_h100(cli, tmp_path)
    known = [
        name
        for name in ("device", "application", "kernel", *AXES, "time_ms")
        if name in counted.column_names
    ]
    rows = [renamed(counted.select(known), "a", "b"), counted]
    table = tmp_path / "f.parquet"
    pq.write_table(pa.concat_tables(rows, promote_options="default"), table, row_group_size=2)
    given = ("predict", table, "--device", "h100-sxm5", "--profiled-only")
    cli(*given, "-o", f"{tmp_path}/o/")
    cli(*given, "-o", tmp_path / "whole.parquet")
    assert_same(rows_of(tmp_path / "o"), pq.read_table(tmp_path / "whole.parquet").to_pydict())


@pytest.mark.parametrize("part", [1, 250_000])
def test_exchanges_between_gpus_are_told_of_a_fleet_too(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    """By the same profiles as one table, however many kernels are read at a time."""
    monkeypatch.setattr("mlscale.studies.fleet.PART", part)
    counted = counted_on_an_h100(cli, tmp_path)
    exchanges = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_AllGather_RING_LL")
    rows = pa.concat_tables([renamed(counted, "a", "b"), renamed(counted, *exchanges), counted])
    table = tmp_path / "f.parquet"
    given = ("advise", table, "--device", "h100-sxm5", "--max-slowdown", 2)
    pq.write_table(rows, table)
    whole = cli.json(*given)
    said = [one for one in note_texts(whole) if "exchanging data between GPUs" in one]
    for size in (1, 2, 6):
        pq.write_table(rows, table, row_group_size=size)
        fleet = cli.json(*given, "-o", f"{tmp_path}/{size}/")
        assert fleet["answer"]["set"] == whole["answer"]["set"]
        assert [one for one in note_texts(fleet) if "exchanging data" in one] == said
        assert len(said) == 1
