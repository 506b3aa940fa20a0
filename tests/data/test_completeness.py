"""Why kernels lack configurations, where one mistake explains it; tables by hand."""

from pathlib import Path

from synthetic.tidy import refused, rows, write_csv

from mlscale import read


def test_one_kernel_under_two_names(tmp_path: Path) -> None:
    table = rows()
    table[6]["kernel"] = "second_v2"
    with refused(
        "2 of 3 kernels lack .*; 'second_v2' has just what 'second' lacks: if they are one kernel "
        "under two names, give it one$"
    ):
        read(write_csv(tmp_path / "table.csv", table))


def test_kernels_of_two_applications_are_not_taken_for_one(tmp_path: Path) -> None:
    table = rows()
    table[6].update(kernel="third", application="another")
    with refused("2 of 3 kernels lack .*; measure them or use --incomplete drop .*$"):
        read(write_csv(tmp_path / "table.csv", table))


def test_a_clock_that_was_not_kept(tmp_path: Path) -> None:
    """By hand: of three kernels the third ran at 770 MHz in line 12, where 800 was set."""
    table = rows(("first", "second", "third"))
    table[10]["engine_mhz"] = 770.0
    with refused(
        "3 of 3 kernels lack .*; 1 of 3 kernels has a row at engine_mhz 770, such as 'third' in "
        "row 12: if a clock was not kept there, measure again, or leave these rows out$"
    ):
        read(write_csv(tmp_path / "table.csv", table))


def test_one_clock_that_was_measured_twice(tmp_path: Path) -> None:
    """By hand: 800 MHz in the one kernel's rows and 806 in the other's."""
    table = rows()
    for row in table[6:]:
        row["engine_mhz"] = 806.0
    with refused(
        "2 of 2 kernels lack .*; no kernel has both engine_mhz 800 and 806: if these are one"
    ):
        read(write_csv(tmp_path / "table.csv", table))


def test_a_dense_sweep_has_clocks_as_near(tmp_path: Path) -> None:
    """By hand: both kernels ran at 800 and at 806 MHz; the second lacks one of these rows."""
    table = rows() + [{**row, "engine_mhz": 806.0} for row in rows() if row["engine_mhz"] == 800]
    with refused("1 of 2 kernels lack .*; measure them or use --incomplete drop .*$"):
        read(write_csv(tmp_path / "table.csv", table[:-1]))


def test_a_configuration_that_no_kernel_has(tmp_path: Path) -> None:
    table = [row for row in rows() if (row["engine_mhz"], row["memory_mhz"]) != (800, 500)]
    with refused(
        "2 of 2 kernels lack .*; no kernel has cu=4,engine=800,memory=500: measure it, or leave "
        "out all rows of one of its settings$"
    ):
        read(write_csv(tmp_path / "table.csv", table))
