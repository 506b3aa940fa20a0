"""Profiles: new kernels at the base, from the same tidy table, made by hand (tidy.rows)."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic.tidy import refused, rows, same_bits, write_csv, write_parquet

from mlscale import DataWarning, HardwareConfig, Profiles, read, read_profiles
from mlscale.data.points import add_points
from mlscale.data.profiles import MeasuredPoint, with_weights

BASE = HardwareConfig(4, 400.0, 700.0)


def read_rows(folder: Path, table: list[dict[str, Any]], device: str = "made-gpu") -> Profiles:
    return read_profiles(write_csv(folder / "profile.csv", table), BASE, device)


def without(name: str) -> list[dict[str, Any]]:
    return [{key: row[key] for key in row if key != name} for row in rows()]


class TestReading:
    @pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
    def test_rows_at_other_configurations_are_left_out(self, tmp_path: Path, kind: str) -> None:
        # Hand: the base is the second of each kernel's four rows.
        write = write_csv if kind == "csv" else write_parquet
        table = pd.DataFrame(rows()) if kind == "frame" else write(tmp_path / f"p.{kind}", rows())
        found = read_profiles(table, BASE, "made-gpu")
        assert (found.device, found.base) == ("made-gpu", BASE)
        assert found.kernels == ("first", "second")
        assert found.applications == ("app-first", "app-second")
        np.testing.assert_array_equal(found.time_ms, [2.0, 12.0])
        np.testing.assert_array_equal(found.power_w, [102.0, 112.0])
        assert found.counter_names == ("loads",)
        np.testing.assert_array_equal(found.counter("loads"), [2.0, 1002.0])
        assert found.has_counter("loads")
        assert not found.has_counter("Loads")

    def test_the_power_limit_is_no_counter_and_of_several_the_lowest(self, tmp_path: Path) -> None:
        limits = [{**row, "power_cap_w": 300 + 50 * n} for n, row in enumerate(rows())]
        with pytest.warns(DataWarning, match="power limits of 350 to 550 W: the lowest is used"):
            found = read_rows(tmp_path, limits)  # the base is the second of each kernel's four
        assert (found.power_cap_w, found.counter_names) == (350, ("loads",))
        assert np.isnan(read_rows(tmp_path, rows()).power_cap_w)

    def test_of_a_whole_data_set_is_what_its_measurements_hold(self, data_folder: Path) -> None:
        # Two ways to the same numbers, NaN included.
        path = data_folder / "mgpusim" / "gcn3-scaling.csv"
        base = HardwareConfig(16, 800.0, 700.0)
        found = read_profiles(path, base, "simulated-gcn3")
        expected = read(path).profiles(base)
        assert (found.kernels, found.applications) == (expected.kernels, expected.applications)
        assert found.counter_names == expected.counter_names
        assert same_bits(found.time_ms, expected.time_ms)
        assert same_bits(found.counters, expected.counters)

    def test_device_and_application_may_be_left_out(self, tmp_path: Path) -> None:
        # docs/reference/files.md; an application is then each kernel's own.
        found = read_rows(tmp_path, without("device"), device="any-gpu")
        assert found.device == "any-gpu"
        found = read_rows(tmp_path, without("application"))
        assert found.applications == ("first", "second")


@pytest.mark.parametrize("empty", [True, False], ids=["empty column", "no column"])
def test_power_that_is_not_there_is_asked_for_in_vain(tmp_path: Path, empty: bool) -> None:
    table = [{**row, "power_w": ""} for row in rows()] if empty else without("power_w")
    found = read_rows(tmp_path, table)
    assert found.power_w is None
    np.testing.assert_array_equal(found.quantity("time"), [2.0, 12.0])
    with refused("the profile has no column 'power_w'; power needs it at the base"):
        found.quantity("power")
    assert read_rows(tmp_path, rows()).quantity("power").tolist() == [102, 112]


class TestRepetitions:
    def test_the_median_of_each(self, tmp_path: Path) -> None:
        """By hand; a counter that is missing in one repetition is the median of the others."""
        repeated = [
            {**rows()[1], "time_ms": time_ms, "power_w": power_w, "loads": loads}
            for time_ms, power_w, loads in ((6, 90, 4), (1, 40, ""), (2, 20, 8))
        ]
        message = "in 1 case, most those of 'first': 1 ms in row 4, 6 in row 2; delete"
        with pytest.warns(DataWarning, match=message):
            found = read_rows(tmp_path, [repeated[0], rows()[5], *repeated[1:]])
        np.testing.assert_array_equal(found.time_ms, [2.0, 12.0])
        np.testing.assert_array_equal(found.power_w, [40.0, 112.0])
        np.testing.assert_array_equal(found.counter("loads"), [6.0, 1002.0])

    def test_are_not_told_where_they_are_alike_or_launches_are_said(self, tmp_path: Path) -> None:
        """Hand: a warning would be an error here; 8 % is less than what tables are warned of."""
        at_base = rows()[1]
        alike = [{**at_base, "time_ms": time} for time in (2.0, 2.16)]
        said = [{**at_base, "time_ms": time, "launches": 2} for time in (2.0, 6.0)]
        for repeated, time_ms in ((alike, 2.08), (said, 4.0)):
            assert read_rows(tmp_path, repeated).time_ms.tolist() == pytest.approx([time_ms])


class TestApplications:
    """The same kernel in two applications is two kernels: 'one' 2 ms, 'two' 6 ms, at the base."""

    @staticmethod
    def profiles(folder: Path) -> Profiles:
        one = {**rows()[1], "application": "one", "launches": 3}
        two = {**one, "application": "two", "time_ms": 6, "loads": 8, "launches": 2}
        return read_rows(folder, [one, two, {**rows()[5], "launches": ""}])

    def test_are_kept_apart_by_their_names(self, tmp_path: Path) -> None:
        """The run takes, by hand, 3 x 2 ms + 2 x 6 ms + 12 ms."""
        profiles = self.profiles(tmp_path)
        assert profiles.kernels == ("one: first", "two: first", "second")
        assert profiles.applications == ("one", "two", "app-second")
        assert profiles.time_ms.tolist() == [2, 6, 12]
        assert profiles.counter("loads").tolist() == [2, 8, 1002]
        assert profiles.weights @ profiles.time_ms == 30

    def test_rows_of_another_configuration_may_be_of_another(self, tmp_path: Path) -> None:
        """A file's stem is its kernels' application, where the profiler does not say it."""
        table = rows()
        table[0]["application"] = "at 400 MHz"
        assert read_rows(tmp_path, table).kernels == ("first", "second")

    def test_of_further_points(self, tmp_path: Path) -> None:
        point = {**rows()[0], "application": "two", "time_ms": 9}
        table = write_csv(tmp_path / "point.csv", [point])
        [at_point] = add_points(self.profiles(tmp_path), [(table, None)]).points
        np.testing.assert_array_equal(at_point.time_ms, [np.nan, 9, np.nan])


def test_one_row_of_another_device_is_refused(tmp_path: Path) -> None:
    table = rows()
    table[5]["device"] = "another"
    with refused("profile.csv: is of device 'another', the model of 'made-gpu'; train a model for"):
        read_rows(tmp_path, table)


class TestLaunches:
    # Hand: 'first' takes 2 ms at the base, 'second' 12 ms.
    @staticmethod
    def profiles(folder: Path, **columns: tuple[Any, Any]) -> Profiles:
        first, second = rows()[1], rows()[5]
        for name, (one, two) in columns.items():
            first, second = {**first, name: one}, {**second, name: two}
        return read_rows(folder, [first, second])

    def test_are_read_and_are_no_counter(self, tmp_path: Path) -> None:
        profiles = self.profiles(tmp_path, launches=(1000, 1))
        assert profiles.launches is not None
        assert profiles.weights.tolist() == [1000.0, 1.0]
        assert profiles.counter_names == ("loads",)
        assert profiles.select([1]).weights.tolist() == [1.0]

    def test_count_once_where_the_table_does_not_say(self, tmp_path: Path) -> None:
        profiles = self.profiles(tmp_path)
        assert profiles.launches is None
        assert profiles.weights.tolist() == [1.0, 1.0]
        assert self.profiles(tmp_path, launches=("", 7)).weights.tolist() == [1.0, 7.0]

    def test_follow_from_the_total_time(self, tmp_path: Path) -> None:
        profiles = self.profiles(tmp_path, total_time_ms=(10.0, 6.0))
        assert profiles.weights.tolist() == [5.0, 0.5]
        both = self.profiles(tmp_path, launches=(3, ""), total_time_ms=(10.0, 6.0))
        assert both.weights.tolist() == [3.0, 0.5]

    @pytest.mark.parametrize("value", [0, -1, "inf"])
    def test_must_be_positive(self, tmp_path: Path, value: Any) -> None:
        with refused(r"column 'launches': the value is .*positive"):
            self.profiles(tmp_path, launches=(1, value))

    def test_a_kernel_without_any_counter_was_not_profiled(self, tmp_path: Path) -> None:
        profiles = self.profiles(tmp_path, loads=(5, ""))
        assert profiles.has_counters.tolist() == [True, False]
        assert self.profiles(tmp_path, loads=("", "")).has_counters.tolist() == [True, True]

    def test_the_run_is_made_of_launches_times_time(self, tmp_path: Path) -> None:
        # Hand: 3 x 2 ms and 1 x 12 ms; only the first has counters: 6 of 18 ms.
        profiles = self.profiles(tmp_path, launches=(3, 1), loads=(5, ""))
        assert profiles.run_times_ms.tolist() == [6.0, 12.0]
        assert profiles.counters_cover == pytest.approx(1 / 3, rel=1e-12)

    @pytest.mark.parametrize(
        "name", ["NumWorkGroups", "workgroups", "workgroup_size", "waves", "warps", "n_launches"]
    )
    def test_what_a_launch_is_counts_nothing(self, tmp_path: Path, name: str) -> None:
        """A trace tells grid and block; the share is by hand: 2 of 14 ms."""
        profiles = self.profiles(tmp_path, loads=(5, ""), **{name: (8, 16)})
        assert profiles.has_counters.tolist() == [True, False]
        assert profiles.counters_cover == pytest.approx(2 / 14)
        assert not profiles.are_times_alone
        assert self.profiles(tmp_path, loads=("", ""), **{name: (8, 16)}).are_times_alone


class TestWeights:
    """Launches from a file of one's own, of 'first' and 'second' with 3 and 5 launches."""

    @staticmethod
    def weighted(folder: Path, text: str, *names: str) -> Profiles:
        table = [{**rows()[1], "launches": 3}, {**rows()[5], "launches": 5}]
        profiles = read_rows(folder, table)
        path = folder / "weights.csv"
        path.write_text(text)
        return with_weights(replace(profiles, kernels=names or profiles.kernels), path)

    def test_override_and_the_others_keep_theirs(self, tmp_path: Path) -> None:
        weighted = self.weighted(tmp_path, "kernel,launches\nsecond,0.5\n")
        assert weighted.weights.tolist() == [3.0, 0.5]

    def test_are_read_in_any_order_and_by_names_with_commas(self, tmp_path: Path) -> None:
        text = 'launches,kernel\n2,g\n9,"f<int, 2>(a, b)"\n'
        weighted = self.weighted(tmp_path, text, "f<int, 2>(a, b)", "g")
        assert weighted.weights.tolist() == [9.0, 2.0]

    def test_of_0_leave_a_kernel_out(self, tmp_path: Path) -> None:
        """By definition: the sums over the run are those of the other kernels, 5 x 12 ms."""
        weighted = self.weighted(tmp_path, "kernel,launches\nfirst,0\n")
        assert weighted.kernels == ("second",)
        assert weighted.run_times_ms.tolist() == [60.0]

    @pytest.mark.parametrize(
        ("text", "complaint"),
        [
            ("kernel,launches\nfirts,1\n", "row 2, .* no kernel 'firts'; did you mean 'first'?"),
            (f"kernel,launches\n{'z' * 500},1\n", "has no kernel 'z{40}…z{19}'$"),
            ("kernel,launches\nfirst,1\nfirst,2\n", "row 3, .*a second row for 'first'; give each"),
            ("kernel,launches\nfirst,-1\n", "row 2, column 'launches': the value is -1; it must "),
            ("kernel,launches\nfirst,\n", "row 2, column 'launches': the value is not given"),
            ("kernel,launches\nfirst,0\nsecond,0\n", "every kernel has 0 launches; at least one"),
            ("kernel,count\nfirst,1\n", "there is no column 'launches'"),
        ],
    )
    def test_that_cannot_be_are_refused(self, tmp_path: Path, text: str, complaint: str) -> None:
        with refused(complaint):
            self.weighted(tmp_path, text)


def test_which_kernels_have_a_further_time(tmp_path: Path) -> None:
    """By hand: at the one further configuration the second kernel was not measured."""
    profiles = read_rows(tmp_path, [rows()[1], rows()[5]])
    assert profiles.has_further_time.tolist() == [False, False]
    point = MeasuredPoint(HardwareConfig(4, 800.0, 700.0), np.array([1.0, math.nan]), None)
    assert replace(profiles, points=(point,)).has_further_time.tolist() == [True, False]
