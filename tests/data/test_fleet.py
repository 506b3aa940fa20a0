"""Which files are a fleet: their row groups, and what is told of the rest; made by hand."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic.tidy import refused

from mlscale.data.fleet import Fleet, row_groups
from mlscale.data.grid import HardwareConfig
from mlscale.errors import DataWarning


def write(path: Path, *names: str, rows: int = 3) -> None:
    """Rows of zeros, two in a row group."""
    pq.write_table(pa.table({name: [0.0] * rows for name in names}), path, row_group_size=2)


def test_the_row_groups_of_a_folder_stand_in_the_order_of_its_files(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", "time_ms")
    write(tmp_path / "a.pq", "time_ms", rows=2)
    write(tmp_path / "c.parquet", "time_ms", rows=0)
    for name in ("d.csv", "_SUCCESS", ".a.parquet.crc"):
        (tmp_path / name).touch()
    with pytest.warns(DataWarning, match=r"only its Parquet files .*, not d\.csv$"):
        groups, columns = row_groups(tmp_path)
    assert [(group.path.name, group.number) for group in groups] == [
        ("a.pq", 0), ("b.parquet", 0), ("b.parquet", 1),
    ]  # fmt: skip
    assert columns == ("time_ms",)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.parquet", "cannot be read: No such file or directory"),
        ("f.csv", "a fleet is a Parquet file, or a folder of them"),
        ("in", "holds no Parquet file"),
        ("empty.parquet", "has no rows"),
        ("unlike/b.parquet", "column 'launches' is not in all files of the fleet$"),
    ],
)
def test_what_is_no_fleet(tmp_path: Path, name: str, problem: str) -> None:
    for folder in ("in", "unlike"):
        (tmp_path / folder).mkdir()
    (tmp_path / "f.csv").write_text("kernel,time_ms\nk,1\n")
    write(tmp_path / "in" / "_unfinished.parquet", "time_ms")
    write(tmp_path / "empty.parquet", "time_ms", rows=0)
    write(tmp_path / "unlike" / "a.parquet", "time_ms", "launches")
    write(tmp_path / "unlike" / "b.parquet", "time_ms")
    with refused(f"{name}: {problem}"):
        row_groups(tmp_path / name.removesuffix("/b.parquet"))


@pytest.mark.parametrize(("profiled_only", "most_w"), [(False, 310.0), (True, 300.0)])
@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_the_most_that_was_drawn_is_of_every_part_and_of_the_kernels_that_are_kept(
    tmp_path: Path, at_once: int, profiled_only: bool, most_w: float
) -> None:
    """310 W are of a kernel without counters; neither it nor the one of 300 W stands last."""
    powers_w = [300.0, 240.0, 250.0, 310.0, 200.0]
    counters = [0.5, 0.5, 0.5, None, 0.5]
    table = pa.table({"power_w": powers_w, "sm_active": counters})
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=2)
    base = HardwareConfig(80, 1380.0, 877.0)
    fleet = Fleet(*row_groups(tmp_path / "f.parquet"), "v100", base, profiled_only, has_power=True)
    assert fleet.most_drawn_w(at_once) == most_w
