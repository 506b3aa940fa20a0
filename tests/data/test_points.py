"""Tables of further measured points: what is read, and what is refused. Numbers by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import tidy
from synthetic.profiled import profiles

from mlscale import HardwareConfig
from mlscale.data.points import add_points, second_clock_mhz, third_clock_mhz
from mlscale.data.profiles import MeasuredPoint

BASE = HardwareConfig(4, 800.0, 700.0)
CORNER = HardwareConfig(4, 400.0, 500.0)


def of_two() -> Any:
    """Profiles of k0 and k1 at BASE."""
    return profiles({"loads": [1.0, 2.0]}, base=BASE)


def at(config: HardwareConfig, kernel: str, time_ms: float, **more: Any) -> dict[str, Any]:
    return {"kernel": kernel, **config.as_dict(), "time_ms": time_ms, **more}


def test_rows_name_their_own_configuration(tmp_path: Path) -> None:
    """Repetitions by their median, the base's rows left out, a kernel without a row is NaN.

    The points are in the order of the clock, whatever that of the rows.
    """
    other = HardwareConfig(4, 800.0, 500.0)
    rows = [at(CORNER, "k0", t) for t in (3.0, 5.0, 4.0)]
    rows += [at(BASE, "k0", 1.0), at(CORNER, "k1", 7.0), at(other, "k1", 8.0)]
    table = tidy.write_csv(tmp_path / "t.csv", rows)
    second, first = add_points(of_two(), [(table, None)]).points
    assert (first.config, second.config) == (CORNER, other)
    assert first.time_ms.tolist() == [4, 7]
    assert np.isnan(second.time_ms[0])
    assert second.time_ms[1] == 8
    assert first.power_w is None


def test_a_configuration_is_stated_or_picks_rows(tmp_path: Path) -> None:
    rows = [at(CORNER, "k0", 3.0, power_w=50.0), at(CORNER, "k1", 4.0, power_w=60.0)]
    without_axes = [{k: row[k] for k in ("kernel", "time_ms", "power_w")} for row in rows]
    bare = tidy.write_csv(tmp_path / "bare.csv", without_axes)
    more = [*rows, at(HardwareConfig(4, 400.0, 700.0), "k0", 9.0, power_w=70.0)]
    full = tidy.write_csv(tmp_path / "full.csv", more)
    for table in (bare, full):
        [point] = add_points(of_two(), [(table, CORNER)]).points
        assert point.config == CORNER
        assert point.time_ms.tolist() == [3, 4]
        assert point.power_w is not None
        assert point.power_w.tolist() == [50, 60]


def test_several_tables_join(tmp_path: Path) -> None:
    """The same cell in two tables is measured twice: the median of 3 and 5."""
    tables = [
        (tidy.write_csv(tmp_path / f"{time}.csv", [at(CORNER, "k0", time)]), None)
        for time in (3.0, 5.0)
    ]
    [point] = add_points(of_two(), tables).points
    assert point.time_ms[0] == 4
    assert np.isnan(point.time_ms[1])


ELSEWHERE = HardwareConfig(4, 800.0, 500.0)


@pytest.mark.parametrize(
    ("row", "config", "message"),
    [
        (at(CORNER, "new", 1.0), None, "row 2, column 'kernel': the profile has no kernel 'new'"),
        (at(BASE, "k0", 1.0), None, "has no row at a configuration other than the base"),
        (at(CORNER, "k0", 1.0), BASE, "is the base, which the profile has"),
        (at(CORNER, "k0", 1.0), ELSEWHERE, f"has no row at {ELSEWHERE}; its rows are at {CORNER}"),
        (at(CORNER, "k0", -1.0), None, "column 'time_ms': the value is -1; it must be positive"),
        (at(CORNER, "k0", 1.0, power_w=0), None, "column 'power_w': the value is 0"),
        (at(CORNER, "k0", 1.0, device="other"), None, "is of device 'other', the profile of"),
        (at(CORNER, "k0", 1.0) | {"cu_count": 4.5}, None, "4.5 is not a whole number"),
        ({"kernel": "k0", "time_ms": 1.0}, None, "no columns 'cu_count', 'engine_mhz', 'mem"),
        ({"kernel": "k0", **CORNER.as_dict()}, None, "there is no column 'time_ms'"),
    ],
)
def test_bad_input_is_refused(
    tmp_path: Path, row: dict[str, Any], config: HardwareConfig | None, message: str
) -> None:
    table = tidy.write_csv(tmp_path / "bad.csv", [row])
    with tidy.refused(rf"bad\.csv: .*{message}"):
        add_points(of_two(), [(table, config)])


@pytest.mark.parametrize(
    ("device", "base_mhz", "second_mhz"),
    [
        ("h100-sxm5", 1980, 1185),  # 0.6 of it is 1188, in steps of 15
        ("h100-sxm5", 990, 1650),  # 594 is below 0.4 of 1980
        ("h100-sxm5", 1305, 1980),  # 783 is too, and 2175 is more than there is
        ("rtx-4000-ada", 1683, 1005),  # 1010 is above 0.4 of the rated 2175, if not of 3105
        ("unknown", 1000, 600),
    ],
)
def test_where_to_read_next(device: str, base_mhz: float, second_mhz: int) -> None:
    """By hand, from the clocks that the GPU lists."""
    base = HardwareConfig(4, float(base_mhz), 700.0)
    assert second_clock_mhz(profiles({}, [1.0], base, device=device)) == second_mhz


@pytest.mark.parametrize(
    ("device", "lowest_mhz", "advised_mhz", "third_mhz"),
    [
        ("h100-sxm5", 1185, 1185, 1590),  # 0.8 of 1980 is 1584
        ("h100-sxm5", 1185, 1050, 1050),  # below all, the answer itself
        ("h100-sxm5", 1500, 1050, 990),  # 0.76 of the highest: half of it
        ("h100-sxm5", 1380, 1500, 1590),  # 0.697
        ("h100-sxm5", 360, 340, None),  # 345 is the lowest that it offers, near the reading
        ("unknown", 600, 500, 500),
    ],
)
def test_where_to_read_a_third_time(
    device: str, lowest_mhz: float, advised_mhz: float, third_mhz: int | None
) -> None:
    """By hand, from the rule and the clocks that the GPU lists."""
    at_base = HardwareConfig(4, 1980.0, 700.0)
    point = MeasuredPoint(HardwareConfig(4, float(lowest_mhz), 700.0), np.array([2.0]), None)
    two = replace(profiles({}, [1.0], at_base, device=device), points=(point,))
    third = third_clock_mhz(two, advised_mhz)
    assert (third and third[0]) == third_mhz
    again = replace(two, points=(point, replace(point, config=replace(at_base, engine_mhz=700.0))))
    assert third_clock_mhz(again, 1500.0) is None  # a fourth is not named
