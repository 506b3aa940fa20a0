"""The checks: each rule is met by a table or facts made by hand, and by no nearly right ones.

Clocks and watts of an L40S are of NVIDIA's sheet: at most 2520 and 9001 MHz, 350 W. Rules of
further runs are tested with the commands, in tests/cli/test_two_logs.py and test_two_traces.py.
"""

import math
import re
import string
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic.tidy import refused, rows, write_csv

import mlscale
from mlscale import DataWarning, HardwareConfig, InputError, read, read_profiles
from mlscale.cli.explain import NOTES
from mlscale.data.checks import RULES, check, notes_on
from mlscale.data.datasets import path
from mlscale.data.devices import find_device
from mlscale.data.grid import ConfigGrid
from mlscale.model.shipped import model_for
from mlscale.notes import Note

Rows = list[dict[str, Any]]


def each(**cells: Any) -> Rows:
    return [{**row, **cells} for row in rows()]


def l40s(**cells: Any) -> Rows:
    """The table of `rows` as of an L40S, with other cells in line 4."""
    table = each(device="l40s", cu_count=142)
    table[2] |= cells
    return table


def scaled(column: str, factor: float) -> Rows:
    return [{**row, column: factor * row[column]} for row in rows()]


def at_clock(engine_mhz: float, *numbers: int, kernels: Sequence[str] = "abc") -> Rows:
    """The table of `rows` of kernels, some of its rows (the first is 0) at another clock."""
    table = rows(kernels)
    return [
        {**row, "engine_mhz": engine_mhz} if n in numbers else row for n, row in enumerate(table)
    ]


def repeated(*times_ms: tuple[int, float]) -> Rows:
    """The table of `rows`, and some of its rows again with other times."""
    return [*rows(), *({**rows()[number], "time_ms": time_ms} for number, time_ms in times_ms)]


def course(time_ms: float) -> Rows:
    """4000 ms x MHz at 400, 500, 600, 700 MHz, but for one row, where 8 ms are right."""
    clocks = (400, 500, 600, 700)
    table = [{**rows()[0], "engine_mhz": mhz, "time_ms": 4000 / mhz} for mhz in clocks]
    table[1]["time_ms"] = time_ms
    return table


def counted(*counts: tuple[float, float]) -> Rows:
    """Loads and stores of each kernel."""
    table = rows(("first", "second", "third")[: len(counts)])
    for n, row in enumerate(table):
        row["loads"], row["stores"] = counts[n // 4]
    return table


def with_grid(*counts: float) -> Rows:
    return [{**row, "workgroups": n} for row, n in zip(rows(), counts, strict=True)]


def with_steps(*steps: float) -> Rows:
    """The table of `rows` once with each value of a column."""
    return [
        {**row, "l1_kb": step, "time_ms": row["time_ms"] * (1.05 if step == 16 else 1)}
        for row in rows()
        for step in steps
    ]


def in_one(times: float) -> Rows:
    """Both kernels of one application, the second that many times as long as the first."""
    table = rows()
    for first, second in zip(table[:4], table[4:], strict=True):
        second["time_ms"] = first["time_ms"] * times
    return [{**row, "application": "app"} for row in table]


def pattern(said: str) -> str:
    """What is said, in which only .* stands for anything."""
    return re.escape(said).replace(r"\.\*", ".*")


NONE = math.nan
BROKEN = [
    # kHz and GHz, kW and mW; a data rate; more than any GPU has.
    ("G01", l40s(engine_mhz=2.4e6), "row 4, column 'engine_mhz': 2.4e+06 MHz is impossible, "),
    ("G01", l40s(memory_mhz=9.001), "column 'memory_mhz': 9.001 MHz is impossible, 'l40s' has"),
    ("G01", l40s(power_w=2.1e5), "column 'power_w': 210000 W is impossible, 'l40s' has at most"),
    ("G01", l40s(power_w=0.25), "column 'power_w': 0.25 W is impossible, 'l40s' has at most 350"),
    ("G01", l40s(memory_mhz=18002), "if it is the data rate, give 1/2 of it, the clock; if it is "),
    ("G01", l40s(engine_mhz=3000), "at most 2520; is it another GPU? name it with device="),
    ("G01", scaled("engine_mhz", 1e3), "MHz is impossible, no GPU has more than 10000; give"),
    ("G01", scaled("memory_mhz", 1e3), "no GPU has more than 100000; give it in MHz"),
    ("G01", scaled("memory_mhz", 1e-3), "MHz is impossible, no GPU has less than 10; give"),
    ("G01", scaled("power_w", 1e3), "W is impossible, no GPU has more than 5000; give it in W"),
    # 770 MHz ran for 800; 806 beside 800.
    ("T01", at_clock(770.0, 10), "1 of 3 kernels were at engine_mhz 770, such as 'c' in row 12"),
    ("T01", at_clock(806.0, 6, 7, kernels="ab"), "no kernel has both engine_mhz 800 and 806: if"),
    # 20 % between two rows, and a hundred percent in another cell, which is the worst.
    ("T02", repeated((0, 1.2)), "in 1 case, most those of 'first': 1 ms in row 2, 1.2 in row 10"),
    ("T02", repeated((0, 1.2), (5, 24.0)), "2 cases, most those of 'second': 12 ms in row 7, 24"),
    ("T02", with_grid(4, 4, 4, 4, 4, 4, 16, 4), "that of 'second' is 4 and, in row 8, 16: give"),
    # Tenfold: 80 to 6.667 ms is 12, a clock 1.2; 10 to 0.8 ms is 12.5, a clock 1.25.
    ("T02", course(80.0), "'first' takes 80 ms at cu=4,engine=500,memory=500 and 6.667 ms at "),
    ("T02", course(0.8), "'first' takes 10 ms at cu=4,engine=400,memory=500 and 0.8 ms at "),
    ("T05", each(temp_c=40.0), "'temp_c': treated as a counter like any other; results"),
    ("T05", each(core_freq=40.0), "'core_freq': treated as a counter"),
    ("T05", each(dram_utilization=0.5), "'dram_utilization': .*; call it 'dram_utilisation' if it"),
    ("T05", each(SM_Util=0.5), "'SM_Util': .*; call it 'core_utilisation' if it is a share"),
    ("T05", each(SM_Util=0.5, energy_mj=4.0), "'SM_Util': .*; 'energy_mj': treated as a counter"),
    # What `fillna(0)` makes of a kernel that was not counted; and counters in two halves.
    ("T06", counted((1, 2), (0, 0)), "1 kernel (second) is 0, first in row 6: leave the cell em"),
    ("T06", counted((0, 0), (0, 0)), "of 2 kernels (first, second) is 0, first in row 2"),
    ("T06", [{**row, "loads": 4 * (n > 0), "stores": n} for n, row in enumerate(rows())],
     "every counter of 1 kernel (first) is 0, first in row 2: leave"),
    ("T06", counted((1, NONE), (NONE, NONE), (NONE, 1)),
     "1 kernel (second) of 3 without counters; .* for more than 1 kernel ('loads'), so that no"),
    ("T06", counted((1, 2), (1, NONE), (1, NONE)),
     "2 kernels (second, third) without 'stores': predictors use the training median for missing"),
    # Both kernels at each configuration with 16 and with 48 kB; time is 5 % longer with 16.
    ("T05", with_steps(16, 48), "rows of one configuration differ in 'l1_kb', always in 16 and"),
    ("T08", in_one(1.0), "all kernels of 'app' have the same time at every configuration: "),
]  # fmt: skip


@pytest.mark.parametrize(("code", "table", "said"), BROKEN)
def test_a_table_that_breaks_a_rule(tmp_path: Path, code: str, table: Rows, said: str) -> None:
    file = write_csv(tmp_path / "table.csv", table)
    [severity] = {rule.severity for rule in RULES if rule.code == code}
    if severity == "refused":
        with pytest.raises(InputError) as caught:
            read(file)
        told: Any = caught.value
    else:
        with pytest.warns(DataWarning) as warned:
            read(file)
        [told] = [warning.message for warning in warned]
        assert told.note.severity == severity
    assert told.code == code
    assert str(told).startswith(f"{file}: ")
    assert re.search(pattern(said), str(told))


@pytest.mark.parametrize(
    "table",
    [
        rows(),
        # A board is overclocked by up to 15 %: 2520 and 9001 MHz are 2898 and 10351.
        [{**row, "memory_mhz": 10351.0} for row in l40s() if row["memory_mhz"] == 500],
        # What `mlscale collect` writes for a clock that nothing observed.
        [{**row, "memory_mhz": 1.0} for row in rows() if row["memory_mhz"] == 500],
        # Both kernels at 800 and 806 MHz: a dense sweep, not one clock.
        [{**row, "engine_mhz": mhz, "time_ms": 1} for row in rows()[::2] for mhz in (800, 806)],
        # 8 % between repetitions; another grid of another kernel, and with the CU count.
        [*rows(), {**rows()[5], "time_ms": 12.9}],
        with_grid(4, 4, math.nan, 4, 9, 9, 9, 9),
        [{**row, "cu_count": cus, "workgroups": cus} for row in rows() for cus in (4, 8)],
        course(9.5),
        course(6.0),
        # nvprof's levels stand beside its counts; the share under its own name.
        each(dram_utilization=5, dram_read_transactions=1e6),
        each(dram_utilisation=0.5),
        counted((1, 2), (0, 2)),
        # A kernel that makes no request has no transactions per request.
        [{**row, "loads_per_request": NONE if row["loads"] > 50 else 1} for row in rows()],
        # Repetitions whose counters scatter, or are of one value; and a few of them alone.
        [{**row, "l1_kb": n} for n, row in enumerate(with_steps(16, 48))],
        with_steps(16, 16),
        [*rows(), *rows()[:2]],
        # Two kernels that are all but alike; power alone, for which every time is 1 ms.
        in_one(1.001),
        [{**row, "time_ms": 1.0} for row in in_one(1.0)],
    ],
)
def test_a_table_that_breaks_none(tmp_path: Path, table: Rows) -> None:
    """A warning would be an error here."""
    assert read(write_csv(tmp_path / "table.csv", table)).kernels


def test_warnings_name_the_kernels_that_they_are_about(tmp_path: Path) -> None:
    table = [*rows(), {**rows()[0], "time_ms": 1.2}, {**rows()[5], "time_ms": 24.0}]
    with pytest.warns(DataWarning) as warned:
        read(write_csv(tmp_path / "table.csv", table))
    assert warned[0].message.note.kernels == ("first", "second")  # type: ignore[union-attr]


def test_a_profile_of_units_and_of_names_like_those_of_shares(tmp_path: Path) -> None:
    row = rows()[0]
    base = HardwareConfig(row["cu_count"], row["engine_mhz"], row["memory_mhz"])
    file = write_csv(tmp_path / "profile.csv", [{**row, "dram_util": 0.5, "temp_c": 40}])
    with pytest.warns(DataWarning, match=r"^[^;]*profile.csv: 'dram_util': .*; call it"):
        read_profiles(file, base, row["device"])
    with refused("'engine_mhz': 400000 MHz is impossible, no GPU has more than 10000"):
        read_profiles(write_csv(file, [{**row, "engine_mhz": 4e5}, row]), base, row["device"])


H100, L40S, MI300X = (find_device(key) for key in ("h100-sxm5", "l40s", "mi300x"))
CLOCKS = {"engine_mhz": {2000.0: 3, 2400.0: 1}, "memory_mhz": {9001.0: 4}}  # the engine's mean 2100
HOW = {"engine_mhz": " by CYCLES", "memory_mhz": ""}
GRID = ConfigGrid((1,), (400.0, 800.0), (1.0,))
COUNTED = np.array([[3.0, 3.0], [NONE, 3.0]]).reshape(2, 1, 2, 1, 1)  # two kernels, two clocks
HALF_COUNTED = np.concatenate([np.ones_like(COUNTED), COUNTED], axis=-1)  # 'loads' are everywhere
# More facts are broken by files, in tests/readers.
BROKEN_FACTS: list[tuple[str, tuple[Any, ...], str]] = [
    ("G01", ("value", None, "share", 1.06), "1.06 of the whole is impossible, no share is above"),
    ("G02", ("board power", H100, 845), "845 W is impossible: 'h100-sxm5' has a limit of 700 W"),
    ("G01", ("traffic", "ab", (0.9, 1.06), 1.05, "l40s", 9001),
     "'b': its DRAM traffic is 1.06 times what l40s can transfer at memory=9001; give the clock"),
    ("L04", ("launch clocks", CLOCKS | {"memory_mhz": {8000.0: 1, 9000.0: 1}}, {}, HOW),
     "in another; memory_mhz is 8000 in one .* with base='engine=2100,memory=8500'"),
    ("L04", ("profiled clock", L40S, 2267), "held the clock at 2267 MHz, and 'l40s' goes up to 25"),
    # A third of 345 is 115; no GPU has 60 GHz; beside one known clock alone GHz are refused.
    ("G01", ("value", H100, "engine_mhz", 2.1, (345.0, 1980.0)), "345 MHz; is 2.1GHz meant?"),
    ("G01", ("value", H100, "engine_mhz", 60.0, (345.0, 1980.0)), "345 MHz; give it in MHz"),
    ("G01", ("value", None, "memory_mhz", 7.5, (7501.0,)), "7501 MHz; is 7.5GHz meant?"),
    ("T10", ("counters at the base", "ab", ("loads",), COUNTED, GRID, (0, 0, 0)),
     "1 kernel (b) of 2 without 'loads' at the base cu=1,engine=400,memory=1, but with it at cu"),
    ("T10", ("counters at the base", "ab", ("loads", "hits"), HALF_COUNTED, GRID, (0, 0, 0)),
     "1 kernel (b) of 2 without 'hits' at the base .*=1: predictors use the training median"),
    ("M02", ("busy span", 5, 0, 16.0, 1.5, "f"), "has no sample for 16 s of the busy span; the ti"),
    ("M02", ("busy span", 12, 5, 1.0, 1.0, "f"), "5 of 12 samples of the busy span are idle"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "facts", "said"), BROKEN_FACTS)
def test_facts_that_break_a_rule(code: str, facts: tuple[Any, ...], said: str) -> None:
    """An H100 SXM5 has 700 W, which short means exceed by up to 20 %; idle it drew 70 W."""
    looks_at, *others = facts
    with pytest.raises((InputError, DataWarning), match=pattern(said)) as caught:
        check(looks_at, "run.csv", *others)
    assert caught.value.code == code


@pytest.mark.parametrize(
    "facts",
    [
        ("value", None, "share", 1.05),
        ("board power", H100, 830),
        ("board power", H100, 71),
        ("value", H100, "engine_mhz", 115.0, (345.0, 1980.0)),
        ("value", None, "memory_mhz", 810.0, (7501.0,)),
        ("partition", L40S, 142),
        ("partition", MI300X, 38),  # AMD's parts are devices of their own
        ("traffic", "ab", (0.9, 1.05), 1.05, "l40s", 9001),
        ("launch clocks", {"engine_mhz": {2000.0: 3, 2100.0: 1}}, {}, HOW),
        ("launch clocks", CLOCKS, {"engine_mhz": 2200.0}, HOW),
        ("profiled clock", L40S, 2268),  # 0.9 x 2520
        ("profiled clock", MI300X, 1000),
        ("traffic", "ab", (0.9, NONE), 1.05, "l40s", 9001),
        ("counters at the base", "ab", ("loads",), COUNTED, GRID, (0, 1, 0)),
        ("busy span", 5, 0, 15.0, 1.5, "f"),
        ("busy span", 32, 10, 1.0, 1.0, "f"),
        ("busy span", 12, 4, 1.0, 1.0, "f"),
        ("busy span", 312, 31, 1.0, 1.0, "f"),
    ],
)
def test_facts_that_break_none(facts: tuple[Any, ...]) -> None:
    """A warning would be an error here."""
    looks_at, *others = facts
    check(looks_at, "run.csv", *others)


def test_a_simulated_model_is_refused_for_a_real_gpu_unless_forced() -> None:
    """The shipped model of a simulated GCN3, and its profile as of an R9 Nano, of GCN3 too."""
    model = mlscale.load(path("simulated-gcn3.mlscale"))
    own = read_profiles(path("simulated-gcn3-profile.csv"), model.base, model.device)
    profiles = replace(own, device="r9nano")
    for predict in (model.predict, lambda other: model_for(model, other)):
        with refused("trained on simulated data of 'simulated-gcn3', which say nothing about 'r9n"):
            predict(profiles)
    forced = model_for(model, profiles, force=True).predict(profiles)
    assert len(forced.time_ms) == len(model.predict(own).time_ms) == len(own.kernels)


def test_sentences_without_a_place() -> None:
    """Notes of an answer: 920 MHz below a grid from 960 on; a feature above its range."""

    def shown(_: str, value: float) -> str:
        return f"{value:g}"

    [note] = notes_on("setting", "engine_mhz", 920.0, 960.0, 1980.0, True)
    told = "is below 960, the lowest in training: extrapolated, with a wider interval"
    assert note == Note("P02", f"engine_mhz 920 {told}")
    [note] = notes_on("feature", "loads", 2.01, 1.0, 2.0, shown, source="a table")
    assert note == Note("P02", "a table: loads 2.01 is above 2, the highest in training")
    assert notes_on("feature", "loads", 2.0, 1.0, 2.0, shown) == []


def test_the_table_of_rules() -> None:
    """At most 25, of the codes of notes; sentences are one line, begin small and name fields."""
    assert len(RULES) <= 25
    for rule in RULES:
        assert rule.code in NOTES
        assert "\n" not in rule.sentence
        assert any(name for _, name, _, _ in string.Formatter().parse(rule.sentence) if name)
