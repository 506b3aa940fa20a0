"""Measurements: from rows in any order to kernels x grid, and written back to the last bit.

By hand: tidy.rows() counts 1, 2, 3, 4 ms over engine x memory, and 11 to 14 for the second kernel.
"""

import dataclasses
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from synthetic import kernels as made
from synthetic.tidy import refused, rows, same_bits, write_csv, write_parquet

from mlscale import ConfigGrid, DataWarning, HardwareConfig, Measurements, read
from mlscale.data.devices import find_device
from mlscale.data.table import LARGEST_COUNTER, LEAST, MOST

GRID = ConfigGrid((4,), (400.0, 800.0), (500.0, 700.0))
BASE = HardwareConfig(4, 800.0, 500.0)
SECOND_MS = [11.0, 12.0, 13.0, 14.0]


def read_rows(folder: Path, table: list[dict[str, Any]], **options: Any) -> Measurements:
    return read(write_csv(folder / "table.csv", table), **options)


class TestReading:
    @pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
    def test_every_number_finds_its_place(self, tmp_path: Path, kind: str) -> None:
        if kind == "frame":
            found = Measurements.from_frame(pd.DataFrame(rows()))
        else:
            write = write_csv if kind == "csv" else write_parquet
            found = read(write(tmp_path / f"t.{kind}", rows()))
        time = np.array([[[[1.0, 2.0], [3.0, 4.0]]], [[[11.0, 12.0], [13.0, 14.0]]]])
        assert (found.device, found.grid) == ("made-gpu", GRID)
        assert found.kernels == ("first", "second")
        assert found.applications == ("app-first", "app-second")
        np.testing.assert_array_equal(found.time_ms, time)
        np.testing.assert_array_equal(found.power_w, time + 100)
        assert found.counter_names == ("loads",)
        np.testing.assert_array_equal(found.counters[0, ..., 0], time[0])
        np.testing.assert_array_equal(found.counters[1, ..., 0], time[0] + 1000)

    @pytest.mark.filterwarnings("ignore:.*repetitions differ")
    @settings(max_examples=25)
    @given(order=st.permutations(range(10)))
    def test_rows_in_any_order_give_the_same(self, order: list[int]) -> None:
        # Two rows are repeated with other numbers; kernels may come in another order.
        table = rows() + [{**row, "time_ms": 5.5, "loads": 7.0} for row in rows()[2:6:3]]
        with tempfile.TemporaryDirectory() as folder:
            one = read_rows(Path(folder), table).in_order
            other = read_rows(Path(folder), [table[position] for position in order]).in_order
        assert other.grid == one.grid
        for name in ("kernels", "applications", "time_ms", "power_w", "counters"):
            np.testing.assert_array_equal(getattr(other, name), getattr(one, name))

    def test_a_power_column_without_values_is_no_power(self, tmp_path: Path) -> None:
        found = read_rows(tmp_path, [{**row, "power_w": ""} for row in rows()])
        assert found.power_w is None
        with refused("'made-gpu' have no column 'power_w'"):
            found.quantity("power")
        assert found.quantity("time") is found.time_ms

    def test_power_of_some_rows(self, tmp_path: Path) -> None:
        """The third row is of the higher engine clock and the lower memory clock."""
        table = rows()
        table[2]["power_w"] = ""
        found, whole = read_rows(tmp_path, table), read_rows(tmp_path, rows())
        np.testing.assert_array_equal(found.quantity("time"), whole.quantity("time"))
        assert found.profiles("highest").power_w is None
        with refused(
            "no 'power_w' of kernel 'first' at cu=4,engine=800,memory=500 .1 case in all.: leave "
            "out .*, or train on time only, quantity='time'"
        ):
            found.quantity("power")


class TestDevice:
    @pytest.mark.parametrize(
        ("name", "key"),
        [
            ("NVIDIA GeForce GTX 980", "gtx980"),
            (" GeForce GTX 980", "gtx980"),
            ("GTX980", "gtx980"),
            ("A100", "A100"),  # which several GPUs are called
            ("made-gpu", "made-gpu"),
        ],
    )
    def test_under_the_name_that_its_tools_print(self, tmp_path: Path, name: str, key: str) -> None:
        # docs/reference/gpus.md promises that such a name is as good as the key.
        table = [row | {"device": name} for row in rows()]
        csv, parquet = write_csv(tmp_path / "t.csv", table), write_parquet(tmp_path / "t.pq", table)
        assert read(csv).device == read(parquet).device == key
        assert Measurements.from_frame(pd.DataFrame(table)).device == key

    def test_said_of_a_frame(self) -> None:
        """It is of a frame without a device, or with a name that is no known GPU's."""
        frame = pd.DataFrame(rows())
        named = frame.assign(device="NVIDIA GeForce GTX 980")
        for given_ in (frame.drop(columns="device"), frame.assign(device="A100"), frame, named):
            assert Measurements.from_frame(given_, device="GTX 980").device == "gtx980"
        with refused("column 'device' holds p100, but the device given is 'gtx980'"):
            Measurements.from_frame(frame.assign(device="p100"), device="gtx980")


class TestRefused:
    @pytest.mark.parametrize(
        ("column", "cell", "problem"),
        [
            ("time_ms", "0", "the value is 0; it must be positive and finite$"),
            ("time_ms", "1e-12", "the value is 1e-12; it must be from 1e-09 to 1e.15"),
            ("engine_mhz", "-3", "the value is -3; it must be positive"),
            ("memory_mhz", "inf", "the value is inf; it must be positive"),
            ("time_ms", "", "the value is not given; it must be .*; leave out the rows with"),
            ("power_w", "0", "the value is 0; it must be positive"),
            ("cu_count", "4.5", "4.5 is not a whole number of compute units"),
            ("loads", "fast", "'fast' is not a number"),
            ("loads", "-1", "the value is -1, which no counter can be; leave the cell empty"),
            ("loads", "1e19", "the value is 1e.19, which no counter can be"),
            ("loads", "1e999", "the value is infinite; leave the cell empty"),
            ("application", "other", "kernel 'first' is of 'app-first' above and of 'other' here"),
        ],
    )
    def test_a_cell(self, tmp_path: Path, column: str, cell: str, problem: str) -> None:
        """The third row is line 4 of a CSV, whose first is the header, and row 3 of a Parquet."""
        table = rows()
        table[2][column] = cell
        with refused(f"table.csv: row 4, column '{column}': {problem}"):
            read_rows(tmp_path, table)
        if column in ("time_ms", "power_w") and cell:
            table[2][column] = float(cell)
            with refused(f"table.parquet: row 3, column '{column}': {problem}"):
                read(write_parquet(tmp_path / "table.parquet", table))

    def test_two_devices(self, tmp_path: Path) -> None:
        table = rows()
        table[2]["device"] = "another"
        with refused("holds the devices another, made-gpu; make one table for each"):
            read_rows(tmp_path, table)

    @pytest.mark.parametrize(
        ("columns", "said"),
        [
            ({"power_w": "watts", "kernel": "Kernel"}, "no column 'kernel'; is 'Kernel' meant? Na"),
            ({"time_ms": "Time (MS)"}, "there is no column 'time_ms'; is 'Time (MS)' meant? Names"),
            ({"cu_count": "C.U. (count)"}, "no column 'cu_count'; is 'C.U. (count)' meant? Names"),
            ({"device": "node"}, "there is no column 'device'"),
            (
                {"device": "gpu", "engine_mhz": "Engine_MHz"},
                "there are no columns 'device' (is 'gpu' meant?), 'engine_mhz' (is 'Engine_MHz' m",
            ),
        ],
    )
    def test_missing_columns_all_at_once_ahead_of_words_in_another(
        self, tmp_path: Path, columns: dict[str, str], said: str
    ) -> None:
        table = [{columns.get(name, name): row[name] for name in row} for row in rows()]
        frame = pd.DataFrame(table).assign(remark="words")
        frame.to_csv(tmp_path / "table.csv")
        with refused(f"table.csv: .*{re.escape(said)}"):
            read(tmp_path / "table.csv")
        with refused(re.escape(said)):
            read(write_parquet(tmp_path / "table.parquet", table))
        with refused(f"the frame: .*{re.escape(said)}"):
            Measurements.from_frame(frame)

    @pytest.mark.parametrize("option", [{"aggregate": "max"}, {"incomplete": "skip"}])
    def test_a_choice_that_there_is_not(self, tmp_path: Path, option: dict[str, Any]) -> None:
        choices = "median, mean|error, drop, drop-settings, keep"
        with refused(f"'(max|skip)' is not a choice; use one of ({choices})"):
            read_rows(tmp_path, rows(), **option)


class TestIncomplete:
    @pytest.mark.parametrize(
        ("table", "said"),
        [
            (rows()[:5] + rows()[6:], "1 of 2 .*: 'second' lacks cu=4,engine=400,memory=700; mea"),
            (rows()[:5], "'second' lacks cu=4,engine=400,memory=700 and 2 more; "),
            (
                [r for n, r in enumerate(rows("abcdef")) if n < 4 or r["memory_mhz"] == 500],
                "5 of 6 kernels .*'b' lacks .*'c' lacks .*'d' lacks .*, and 2 more kernels;",
            ),
        ],
    )
    def test_is_an_error_that_names_kernels_and_configurations(
        self, tmp_path: Path, table: list[dict[str, Any]], said: str
    ) -> None:
        with refused(f"table.csv: .*{said}"):
            read_rows(tmp_path, table)

    def test_dropped_with_a_warning_that_names_it(self, tmp_path: Path) -> None:
        """The whole kernel stays as it was, and the grid; the other's repetitions do not matter."""
        table = [*rows()[1:], rows()[1], rows()[1]]
        with pytest.warns(DataWarning, match="'first' lacks cu=4,engine=400,memory=500; dropped"):
            found = read_rows(tmp_path, table, incomplete="drop", aggregate="mean")
        assert found.grid == GRID
        assert (found.kernels, found.applications) == (("second",), ("app-second",))
        np.testing.assert_array_equal(found.time_ms.ravel(), SECOND_MS)
        np.testing.assert_array_equal(found.power_w.ravel(), [111.0, 112.0, 113.0, 114.0])
        np.testing.assert_array_equal(found.counters.ravel(), [1001.0, 1002.0, 1003.0, 1004.0])
        assert len(found.to_frame()) == 4

    def test_nothing_left_is_an_error(self, tmp_path: Path) -> None:
        left = (
            "'drop' leaves 0 kernels, incomplete='drop-settings' 1 kernel x 2 configurations, inc"
        )
        with refused(f"2 of 2 kernels lack .*; measure them; or incomplete={left}"):
            read_rows(tmp_path, rows()[1:7], incomplete="drop")

    def test_what_is_kept_is_filled_in_and_not_written(self, tmp_path: Path) -> None:
        """Hand: the second kernel takes 10 ms at 400/500, 20 at 400/700 and 30 at 800/700."""
        table = [*rows()[:4], *rows()[4:]]
        table[4]["time_ms"], table[5]["time_ms"], table[7]["time_ms"] = 10.0, 20.0, 30.0
        del table[6]
        with pytest.warns(DataWarning, match="'second' lacks .*; these are filled in along the"):
            found = read_rows(tmp_path, table, incomplete="keep")
        assert np.flatnonzero(~found.measured).tolist() == [6]
        assert found.time_ms[1, 0, 1, 0] == pytest.approx(10 * 30 / 20, rel=1e-3)
        np.testing.assert_array_equal(found.time_ms[0].ravel(), [1.0, 2.0, 3.0, 4.0])
        assert found.to_frame()["time_ms"].tolist() == [row["time_ms"] for row in table]
        assert found.unmeasured == []

    def test_kernels_without_the_base_are_left_out(self, tmp_path: Path) -> None:
        """Of a kernel that has nothing but the base, too: nothing tells how it scales."""
        table = [*rows(("a", "b", "c"))[1:], *rows(("only",))[:1]]
        with pytest.warns(DataWarning, match="filled in"):
            found = read_rows(tmp_path, table, incomplete="keep")
        with pytest.warns(DataWarning, match=r"or only there: 2 kernels \('a', 'only'\)"):
            assert found.with_base((0, 0, 0)).kernels == ("b", "c")
        with refused("not all kernels were measured at the base cu=4,engine=400,memory=500"):
            found.profiles((0, 0, 0))
        with refused("no kernel .* base .* elsewhere; choose another, such as cu=4,engine=800,mem"):
            found.select([0, 3]).with_base((0, 0, 0))


class TestRepetitions:
    @pytest.mark.filterwarnings("ignore:.*repetitions differ")
    @pytest.mark.parametrize(
        ("how", "expected"),
        [("median", (2.0, 40.0, 8.0)), ("mean", (3.0, 50.0, 9.0)), ("min", (1.0, 40.0, 8.0))],
    )
    def test_by_hand(self, tmp_path: Path, how: Any, expected: tuple[float, ...]) -> None:
        """Times 6, 1, 2; power 90, 40, 20; counter 4, 15, 8, whose minimum means nothing.

        With 'min' it takes the median, and power is that of the quickest run. The other
        configurations were measured once.
        """
        repeated = [
            {**rows()[0], "time_ms": time_ms, "power_w": power_w, "loads": loads}
            for time_ms, power_w, loads in ((6, 90, 4), (1, 40, 15), (2, 20, 8))
        ]
        found = read_rows(tmp_path, [repeated[0], *rows()[1:], *repeated[1:]], aggregate=how)
        assert found.power_w is not None
        values = (found.time_ms, found.power_w, found.counters)
        assert tuple(float(of.ravel()[0]) for of in values) == expected
        np.testing.assert_array_equal(found.time_ms.ravel()[1:], [2, 3, 4, *SECOND_MS])
        # All are kept, in their order.
        np.testing.assert_array_equal(found.time_samples[:, 0, 0, 0, 0], [6.0, 1.0, 2.0])
        assert np.count_nonzero(~np.isnan(found.time_samples)) == 10

    @pytest.mark.parametrize("how", ["median", "mean", "min"])
    def test_a_counter_missing_in_one_repetition(self, tmp_path: Path, how: Any) -> None:
        # Hand: of 5 and nothing it is 5; of nothing and nothing it is missing, never 0.
        table = [*rows(), *rows()]
        table[0]["loads"], table[8]["loads"] = 5, ""
        table[1]["loads"], table[9]["loads"] = "", ""
        found = read_rows(tmp_path, table, aggregate=how).counters
        assert found[0, 0, 0, 0, 0] == 5.0
        assert math.isnan(found[0, 0, 0, 1, 0])


class TestParts:
    def test_no_profiles_stand_beside_the_grid(self, tmp_path: Path) -> None:
        """Those on it are held against what is read as profiles, in test_profiles.py."""
        with refused("engine_mhz 600 is not on the grid; it has 400, 800"):
            read_rows(tmp_path, rows()).profiles(HardwareConfig(4, 600.0, 500.0))

    def test_profiles_have_the_launches_that_the_table_says(self, tmp_path: Path) -> None:
        """By hand: 7 launches of the first kernel, of the second 39 ms in all of 13 ms each."""
        table = [
            {**row, "launches": 7 if k < 4 else "", "total_time_ms": 3 * row["time_ms"]}
            for k, row in enumerate(rows())
        ]
        found = read_rows(tmp_path, table)
        path = tmp_path / "again.csv"
        found.write(path)
        for one in (found, read(path)):
            profiles = one.profiles(BASE)
            assert profiles.launches is not None
            np.testing.assert_allclose(profiles.launches, [7.0, 3.0])
            at_first = one.select([1]).at_steps("engine_mhz", slice(1, 2)).profiles("mid")
            assert at_first.weights.tolist() == pytest.approx([3.0])

    @pytest.mark.parametrize("chosen", [[5, 0], np.array([5, 0])])
    def test_select_keeps_the_order_asked_for(self, chosen: Any) -> None:
        """Hand: three kernels of each group, in the order of made.LAWS; a mask keeps theirs."""
        every = made.measurements()
        two = every.select(chosen)
        assert two.kernels == ("bandwidth2", "compute0")
        assert two.applications == ("app-bandwidth-c", "app-compute-a")
        for name in ("time_ms", "power_w", "counters"):
            np.testing.assert_array_equal(getattr(two, name), getattr(every, name)[[5, 0]])
        assert (two.grid, two.metadata) == (every.grid, every.metadata)
        masked = every.select(np.isin(np.arange(12), chosen))
        assert masked.kernels == ("compute0", "bandwidth2")

    @pytest.mark.parametrize(
        ("axis", "at"), [("engine_mhz", np.s_[:, :, 1:]), ("memory_mhz", np.s_[..., 1:])]
    )
    def test_at_steps_keeps_a_part_of_one_axis(self, axis: str, at: Any) -> None:
        every = made.measurements()
        part = every.at_steps(axis, slice(1, None))
        steps = getattr(every.grid, axis)[1:]
        assert part.grid == dataclasses.replace(every.grid, **{axis: steps})
        np.testing.assert_array_equal(part.time_ms, every.time_ms[at])
        np.testing.assert_array_equal(part.power_w, every.power_w[at])
        counters = np.moveaxis(every.counters, -1, 0)[(slice(None), *at)]
        np.testing.assert_array_equal(part.counters, np.moveaxis(counters, 0, -1))

    def test_relative_is_1_at_the_base_and_a_ratio_elsewhere(self, tmp_path: Path) -> None:
        data = read_rows(tmp_path, rows())
        assert data.relative("time", BASE)[1].ravel() == pytest.approx(np.array(SECOND_MS) / 13)
        assert data.log_ratios("time", "highest")[0, 0] == pytest.approx(math.log(1 / 4))


@st.composite
def measurements(draw: st.DrawFn) -> Measurements:
    """Any measurements: unequal repetitions, missing counters, names with commas and quotes.

    The GPU is none that the device table knows, as its clocks would be held to what it can have;
    those of any GPU are below 10 000 MHz.
    """
    count, *shape = draw(st.tuples(*[st.integers(1, 2)] * 4))
    printed = st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp"))
    text = st.text(printed, min_size=1, max_size=6)
    name = st.one_of(text.filter(str.strip), st.sampled_from(['a,"b"', "f<1,2>", "µs", "nan"]))
    kernels = draw(st.lists(name, min_size=count, max_size=count, unique=True))
    axes = [
        tuple(sorted(draw(st.lists(steps, min_size=n, max_size=n, unique=True))))
        for n, steps in zip(shape, (st.integers(1, 512), *[st.floats(10, 1e4)] * 2), strict=True)
    ]
    repeated = draw(arrays(np.bool_, (1, count, *shape)))
    there = np.concatenate([np.ones_like(repeated), repeated])[: 1 + int(repeated.any())]
    time_ms, power_w = (
        arrays(np.float64, there.shape, elements=st.floats(LEAST, most)) for most in (MOST, 5e3)
    )
    counts = st.floats(0, LARGEST_COUNTER, exclude_max=True) | st.just(np.nan)
    counters = draw(arrays(np.float64, (*there.shape, 2), elements=counts))
    return Measurements(
        device=draw(name.filter(lambda text: find_device(text) is None)),
        grid=ConfigGrid(*axes),
        kernels=tuple(kernels),
        applications=tuple(draw(st.lists(name, min_size=count, max_size=count))),
        time_samples=np.where(there, draw(time_ms), np.nan),
        power_samples=np.where(there, draw(power_w), np.nan) if draw(st.booleans()) else None,
        counter_names=("inst_executed", "L2 (hit, %)"),
        counter_samples=np.where(there[..., None], counters, np.nan),
        metadata=draw(st.sampled_from([{}, {"origin": "made", "faults": {"k": "µ"}}])),
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.filterwarnings(
    "ignore:.*(repetitions differ|change far more|no counter|every counter|without '|always in)"
)
@settings(max_examples=60)
@given(written=measurements())
def test_written_and_read_is_the_same_to_the_last_bit(suffix: str, written: Measurements) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{suffix}"
        written.write(path)
        again = read(path)
    for name in ("device", "grid", "kernels", "applications", "counter_names", "metadata"):
        assert getattr(again, name) == getattr(written, name)
    assert same_bits(again.time_samples, written.time_samples)
    assert same_bits(again.counter_samples, written.counter_samples)
    assert (again.power_samples is None) == (written.power_samples is None)
    if written.power_samples is not None:
        assert same_bits(again.power_samples, written.power_samples)


def test_a_frame_has_a_row_for_each_measurement() -> None:
    # Hand: 4 groups x 3 kernels x 36 configurations; columns of the tidy table in order.
    frame = made.measurements().to_frame()
    assert len(frame) == 432
    identity = ("device", "application", "kernel", "cu_count", "engine_mhz", "memory_mhz")
    assert tuple(frame.columns[:8]) == (*identity, "time_ms", "power_w")
    one = frame[(frame.kernel == "compute1") & (frame.cu_count == 8)]
    one = one[(one.engine_mhz == 600) & (one.memory_mhz == 700)]
    assert one.time_ms.tolist() == [made.measurements().time_ms[1, 1, 1, 1]]
