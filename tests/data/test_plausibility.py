"""What looks like a mistake in a table is told or refused; tables by hand, limits of the sheet."""

import math
from pathlib import Path
from typing import Any

import pytest
from synthetic.tidy import refused, rows, write_csv

from mlscale import DataWarning, HardwareConfig, Measurements, read, read_profiles


def of_l40s(**changed: float) -> list[dict[str, Any]]:
    """Rows of an L40S, whose clocks are at most 2520 and 9001 MHz and whose limit is 350 W.

    changed: of the row in line 4.
    """
    table = [{**row, "device": "l40s", "cu_count": 142} for row in rows()]
    table[2].update(changed)
    return table


def read_rows(folder: Path, table: list[dict[str, Any]]) -> Measurements:
    return read(write_csv(folder / "table.csv", table))


class TestUnits:
    @pytest.mark.parametrize(
        ("changed", "message"),
        [
            (
                {"engine_mhz": 2.4e6},
                "'engine_mhz': 2.4e\\+06 MHz cannot be, 'l40s' has at most 2520",
            ),
            ({"memory_mhz": 9e6}, "'memory_mhz': 9e\\+06 MHz cannot be, 'l40s' has at most 9001"),
            ({"power_w": 2.1e5}, "'power_w': 210000 W cannot be, 'l40s' has at most 350; give it"),
            ({"power_w": 0.25}, "'power_w': 0.25 W cannot be, 'l40s' has at most 350; give it"),
            ({"engine_mhz": 2.52}, "'engine_mhz': 2.52 MHz cannot be, 'l40s' has at most 2520"),
            ({"memory_mhz": 9.001}, "'memory_mhz': 9.001 MHz cannot be, 'l40s' has at most 9001"),
        ],
    )
    def test_ghz_khz_kw_and_mw_are_refused(
        self, tmp_path: Path, changed: dict[str, float], message: str
    ) -> None:
        with refused(f"table.csv: row 4, column {message}"):
            read_rows(tmp_path, of_l40s(**changed))

    def test_a_clock_that_overclocking_reaches_is_taken(self, tmp_path: Path) -> None:
        """By hand: 9001 x 1.15 is 10351; a data rate is 18002."""
        at_one = [row for row in of_l40s() if row["memory_mhz"] == 500]
        table = [{**row, "memory_mhz": 10351} for row in at_one]
        assert read_rows(tmp_path, table).grid.memory_mhz == (10351.0,)
        with refused(
            "row 2, column 'memory_mhz': 18002 MHz cannot be, 'l40s' has at most 9001; if it is "
            "the data rate, give the clock, half of it; "
        ):
            read_rows(tmp_path, [{**row, "memory_mhz": 18002} for row in at_one])

    @pytest.mark.parametrize(("axis", "most"), [("engine_mhz", 10_000), ("memory_mhz", 100_000)])
    def test_khz_of_a_gpu_that_the_table_lacks_are_refused(
        self, tmp_path: Path, axis: str, most: int
    ) -> None:
        """No GPU of 2026 is above 4 GHz, and no memory's data rate above 36 GT/s a wire."""
        table = [{**row, axis: 1e3 * row[axis]} for row in rows()]
        said = rf"row \d, column '{axis}': \d+ MHz cannot be, no GPU has more than {most}; .* \(kHz"
        with refused(f"table.csv: {said}"):
            read_rows(tmp_path, table)
        path = write_csv(tmp_path / "table.csv", table)
        base = HardwareConfig(table[0]["cu_count"], table[0]["engine_mhz"], table[0]["memory_mhz"])
        with refused(f"table.csv: {said}"):
            read_profiles(path, base, table[0]["device"])
        for allowed in (10, most):
            row = {**rows()[0], axis: allowed, "cu_count": 4}
            assert getattr(read_rows(tmp_path, [row]).grid, axis) == (allowed,)

    @pytest.mark.parametrize("axis", ["engine_mhz", "memory_mhz"])
    def test_ghz_of_a_gpu_that_the_table_lacks_are_refused(self, tmp_path: Path, axis: str) -> None:
        """By hand: GHz are thousandths of MHz; the slowest clock of a working GPU is some 60 MHz.

        400 to 700 MHz are the clocks of `rows`.
        """
        table = [{**row, axis: 1e-3 * row[axis]} for row in rows()]
        with refused(
            rf"table.csv: row \d, column '{axis}': 0.\d MHz cannot be, no GPU has less than 10; "
            r"give it in MHz \(GHz times 1000\)"
        ):
            read_rows(tmp_path, table)

    @pytest.mark.parametrize("axis", ["engine_mhz", "memory_mhz"])
    def test_the_nominal_clock_of_a_collected_table_is_read(
        self, tmp_path: Path, axis: str
    ) -> None:
        """`mlscale collect` writes 1 for a clock that nothing observed."""
        one = rows()[0]
        table = [r for r in rows() if all(r[a] == one[a] for a in ("engine_mhz", "memory_mhz"))]
        assert getattr(read_rows(tmp_path, [{**r, axis: 1} for r in table]).grid, axis) == (1.0,)

    def test_mw_of_a_gpu_that_the_table_lacks_are_refused(self, tmp_path: Path) -> None:
        """By hand: 90 W are 90000 mW."""
        table = [{**row, "power_w": 9e4} for row in rows()]
        said = r"row 2, column 'power_w': 90000 W cannot be, no GPU has more than 5000; .* \(mW"
        with refused(f"table.csv: {said}"):
            read_rows(tmp_path, table)


class TestRepetitions:
    def test_a_run_at_another_clock_is_told(self, tmp_path: Path) -> None:
        """By hand: 1 ms in line 2 and 1.2 ms in line 10; 12 and 13 ms are within a tenth."""
        table = rows()
        table += [{**table[0], "time_ms": 1.2}, {**table[5], "time_ms": 13.0}]
        message = (
            "table.csv: repetitions differ by more than 10 % in 1 case, most those of 'first' at "
            "cu=4,engine=400,memory=500: 1 ms in row 2, 1.2 in row 10; "
        )
        with pytest.warns(DataWarning, match=message):
            found = read_rows(tmp_path, table)
        assert found.time_ms[0, 0, 0, 0] == pytest.approx(1.1)

    def test_the_worst_of_several_is_named(self, tmp_path: Path) -> None:
        table = [*rows(), {**rows()[0], "time_ms": 1.2}, {**rows()[5], "time_ms": 24.0}]
        with pytest.warns(DataWarning, match="in 2 cases, most those of 'second'.* 12 ms in row 7"):
            read_rows(tmp_path, table)


class TestLaunches:
    def with_grid(self, counts: list[float]) -> list[dict[str, Any]]:
        return [
            {**row, "workgroups": count, "workgroup_size": 256}
            for row, count in zip(rows(), counts, strict=True)
        ]

    def test_two_workloads_under_one_name_are_told(self, tmp_path: Path) -> None:
        """By hand: the second kernel has 16 workgroups in line 8, and 4 before."""
        table = self.with_grid([4, 4, 4, 4, 4, 4, 16, 4])
        message = (
            "'workgroups' of 1 kernel is not the same at all clocks; that of 'second' is 4 and, "
            "in row 8, 16: rows of two workloads"
        )
        with pytest.warns(DataWarning, match=message):
            read_rows(tmp_path, table)

    def test_kernels_differ_and_a_missing_one_is_missing(self, tmp_path: Path) -> None:
        """A warning would be an error here."""
        read_rows(tmp_path, self.with_grid([4, 4, math.nan, 4, 9, 9, 9, 9]))

    def test_as_many_workgroups_as_cus_are_no_other_launch(self, tmp_path: Path) -> None:
        table = self.with_grid([4] * 8)
        table += [{**row, "cu_count": 8, "workgroups": 8} for row in table]
        assert read_rows(tmp_path, table).grid.cu_count == (4, 8)


class TestTimes:
    """Tables by hand: 10 ms at 400, 500, 600, 700 MHz times 400 / clock, but for one row."""

    def course(self, **changed: float) -> list[dict[str, Any]]:
        table = [
            {**rows()[0], "engine_mhz": mhz, "time_ms": 4000.0 / mhz, "kernel": kernel}
            for kernel in ("first", "second")
            for mhz in (400, 500, 600, 700)
        ]
        table[5].update(changed)
        return table

    @pytest.mark.parametrize("wrong", [80.0, 0.8])
    def test_one_row_ten_times_off_is_told(self, tmp_path: Path, wrong: float) -> None:
        """By hand: 80 to 6.667 ms is a tenfold step beyond the clock's, 10 to 80 ms eightfold."""
        ends = {
            80.0: "80 ms at .*engine=500,memory=500 and 6.667 ms",
            0.8: "10 ms .* and 0.8 ms at",
        }
        message = (
            f"times of 1 kernel change by far more than a clock does: 'second' takes {ends[wrong]}"
        )
        with pytest.warns(DataWarning, match=f"table.csv: the {message}"):
            read_rows(tmp_path, self.course(time_ms=wrong))

    @pytest.mark.parametrize("noise", [8.0, 9.5, 6.0])
    def test_what_noise_and_caches_do_is_not(self, tmp_path: Path, noise: float) -> None:
        """A warning would be an error here; the true time is 8 ms."""
        read_rows(tmp_path, self.course(time_ms=noise))


BESIDE = [
    "temp_c",
    "rep",
    "gpu_temperature",
    "energy_j",
    "timestamp",
    "index",
    "run_id",
    "level_0",
    "Power",
    "avg_power",
    "best_engine_mhz",
    "sm_clock",
    "core_freq",
    "time_std_ms",
    "speedup",
]


class TestCounters:
    @pytest.mark.parametrize("name", BESIDE)
    def test_what_looks_like_no_counter_is_told(self, tmp_path: Path, name: str) -> None:
        table = [{**row, name: 40.0 + n} for n, row in enumerate(rows())]
        with pytest.warns(DataWarning, match=f"table.csv: '{name}' looks like no counter, but"):
            read_rows(tmp_path, table)

    def test_a_kernel_of_zeros_is_told(self, tmp_path: Path) -> None:
        """By hand: what `fillna(0)` makes of kernels that were not counted."""
        table = [{**row, "stores": 2.0} for row in rows(("first", "second"))]
        read_rows(tmp_path, [{**row, "stores": 0.0} for row in table])
        message = r"table.csv: every counter is 0 of 1 kernel \(second\), first in row 6: 0 is"
        for row in table[4:]:
            row |= {"loads": 0.0, "stores": 0.0}
        with pytest.warns(DataWarning, match=message):
            read_rows(tmp_path, table)

    @pytest.mark.parametrize(
        ("column", "name"),
        [
            ("dram_utilization", "dram_utilisation"),
            ("memory_util", "dram_utilisation"),
            ("SM_Utilization", "core_utilisation"),
            ("core_util", "core_utilisation"),
        ],
    )
    def test_a_name_like_that_of_a_share_is_told(
        self, tmp_path: Path, column: str, name: str
    ) -> None:
        """Hand: how people write them; nvprof's level dram_utilization stands beside its counts."""
        table = [{**row, column: 0.5} for row in rows()]
        with pytest.warns(DataWarning, match=f"table.csv: '{column}'.*; call it '{name}' if"):
            read_rows(tmp_path, table)
        read_rows(tmp_path, [{**row, "dram_read_transactions": 1e6} for row in table])
        read_rows(tmp_path, [{**row, name: 0.5} for row in table])

    def test_of_a_profile_too(self, tmp_path: Path) -> None:
        row = rows()[0]
        base = HardwareConfig(row["cu_count"], row["engine_mhz"], row["memory_mhz"])
        path = write_csv(tmp_path / "table.csv", [{**row, "dram_util": 0.5}])
        with pytest.warns(DataWarning, match="'dram_util'.*; call it 'dram_utilisation'"):
            read_profiles(path, base, row["device"])

    def test_kernels_without_a_common_counter_are_told(self, tmp_path: Path) -> None:
        """By hand: 'second' has no loads, 'third' alone has stores."""
        table = rows(("first", "second", "third"))
        for n, row in enumerate(table):
            row["stores"] = 1.0 if n >= 8 else math.nan
            row["loads"] = row["loads"] if n < 4 else math.nan
        message = (
            r"table.csv: 1 kernel \(second\) of 3 without counters; no counter is given for "
            r"more than 1 kernel \('loads'\)"
        )
        with pytest.warns(DataWarning, match=message):
            read_rows(tmp_path, table)
