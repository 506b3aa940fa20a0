"""Nsight Systems' SQLite export: read and never run, whatever is in it. Made files."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from synthetic.databases import changed
from synthetic.traces import write_sqlite

from mlscale import DataWarning, InputError
from mlscale.profilers import ImportedTable, import_exports
from mlscale.profilers.exports.sqlite import open_read_only

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
CLOCKS = {"engine_mhz": 1410.0, "memory_mhz": 1215.0}


def load(path: Path, **options: Any) -> ImportedTable:
    return import_exports([path], base=CLOCKS, **options)


def test_without_kernels(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "none.sqlite", devices=())
    with pytest.raises(InputError, match=r"no kernels were traced$"):
        load(path)
    path = write_sqlite(tmp_path / "graphs.sqlite", devices=(), graphs=3)
    with pytest.raises(InputError, match="no kernels were traced; 3 launches of CUDA graphs were"):
        load(path)


def test_another_database_is_told(tmp_path: Path) -> None:
    path = changed(tmp_path / "places.sqlite", "CREATE TABLE moz_places (id INTEGER)")
    with pytest.raises(InputError, match=r"tables neither of rocprofv3 nor of Nsight Systems"):
        load(path)


def test_graphs_beside_kernels_are_warned_of(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "run.sqlite", graphs=3)
    with pytest.warns(DataWarning, match="3 launches of CUDA graphs .* --cuda-graph-trace=node"):
        load(path)


@pytest.mark.parametrize(("each_ns", "refused"), [(33_333, False), (33_334, True)])
def test_graphs_that_took_longer_than_the_kernels_are_refused(
    tmp_path: Path, each_ns: int, refused: bool
) -> None:
    """By hand: three graphs, and kernels of 40, 20 and 40 us, 100 us in all."""
    longer = f"UPDATE CUPTI_ACTIVITY_KIND_GRAPH_TRACE SET end = start + {each_ns}"
    path = changed(write_sqlite(tmp_path / "run.sqlite", graphs=3), longer)
    if not refused:
        assert load(path).launches == 3
        return
    said = r"3 launches of CUDA graphs were traced whole, 0.0001 s in all, .*=node$"
    with pytest.raises(InputError, match=said):
        load(path)


def of_two_processes(path: Path) -> Path:
    """The last kernel's process, 4001, sees GPU 1 alone, as its number 0; the others' sees GPU 0.

    Processes and devices as in the schema of Nsight Systems 2025: a process' number stands from
    bit 24 on.
    """
    write_sqlite(path)
    processes = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET globalPid ="
    for statement in (
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN globalPid INTEGER",
        f"{processes} {1 << 48 | 4000 << 24}",
        f"{processes} {1 << 48 | 4001 << 24} WHERE rowid = 3",
        "UPDATE TARGET_INFO_GPU SET name = 'NVIDIA H100 80GB HBM3', smCount = 132 WHERE id = 1",
        "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER)",
        "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 4000), (1, 0, 4001)",
    ):
        changed(path, statement)
    return path


def test_gpus_that_each_process_numbers_from_0_are_told_apart(tmp_path: Path) -> None:
    """By CUDA_VISIBLE_DEVICES, as of Slurm, Ray or a chosen GPU: CUDA's number is 0 in each."""
    path = of_two_processes(tmp_path / "run.sqlite")
    with pytest.raises(InputError, match="--gpu"):
        load(path)
    first, second = load(path, gpu="0"), load(path, gpu="1")
    assert (first.launches, second.launches) == (2, 1)
    devices = [set(imported.table.text["device"]) for imported in (first, second)]
    assert devices == [{"a100-sxm4-40gb"}, {"h100-sxm5"}]


def test_a_process_whose_gpu_is_not_told_keeps_cudas_number(tmp_path: Path) -> None:
    path = of_two_processes(tmp_path / "run.sqlite")
    changed(path, "UPDATE TARGET_INFO_CUDA_DEVICE SET gpuId = NULL")
    assert load(path).launches == 3


def test_nothing_is_written(tmp_path: Path) -> None:
    """Also where its author left it in a mode in which SQLite writes two files beside it."""
    path = changed(write_sqlite(tmp_path / "run.sqlite"), "PRAGMA journal_mode = WAL")
    with closing(open_read_only(path)) as database:
        assert database.execute("SELECT count(*) FROM StringIds").fetchone() == (2,)
        assert list(tmp_path.iterdir()) == [path]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            database.execute("DELETE FROM StringIds")


def test_a_view_is_not_read(tmp_path: Path) -> None:
    """It could compute for ever: this one counts without an end."""
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    path = changed(
        write_sqlite(tmp_path / "run.sqlite", devices=()),
        f"CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS {endless}",
    )
    with pytest.raises(InputError, match="no kernels were traced"):
        load(path)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE StringIds SET value = CAST(x'ff' AS TEXT) WHERE id = 7",
            "kernel's name is damaged text",
        ),
        ("DELETE FROM StringIds WHERE id = 7", "kernel 1 lacks its name"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 'many'", "kernel 1 lacks its name"),
        ("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 0", "kernel 1, 'void f.*a size of 0"),
        ("DROP TABLE StringIds", "has no table StringIds"),
        ("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME gridX TO x", "has no column gridX"),
    ],
)
def test_damaged_content_is_refused(tmp_path: Path, statement: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(changed(write_sqlite(tmp_path / "run.sqlite"), statement))


def test_a_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = write_sqlite(tmp_path / "run.sqlite")
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(InputError, match="cannot be read as SQLite"):
        load(path)


def test_a_number_of_sms_that_is_none_is_asked_for(tmp_path: Path) -> None:
    """SQLite keeps any value in any column; a text was a ValueError of float's."""
    path = changed(
        write_sqlite(tmp_path / "run.sqlite"), "UPDATE TARGET_INFO_GPU SET smCount = 'x'"
    )
    with pytest.raises(InputError, match=r"does not say .*cu_count; give"):
        load(path, device="made")
