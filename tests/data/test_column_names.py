"""Columns under other names: --map and columns= give what plain columns give.

By hand: tidy.rows() counts 1, 2, 3, 4 ms over engine x memory, 101 to 104 W, and 10 ms, 10 W more
for the second kernel.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import Capture, main, refuse, succeed
from synthetic.dvfs import rows as dvfs_rows
from synthetic.tidy import refused, rows, same_bits, write_csv, write_parquet

from mlscale import DataWarning, HardwareConfig, Measurements, read, read_profiles, train
from mlscale.data.column_names import source_meant
from mlscale.data.table_files import table_from_frame

BASE = HardwareConfig(4, 800.0, 700.0)


def renamed(name: str, column: str, per_unit: float) -> list[dict[str, Any]]:
    """tidy.rows() with a column under another name, times a number."""
    return [
        {column if n == name else n: v * per_unit if n == name else v for n, v in row.items()}
        for row in rows()
    ]


@pytest.mark.parametrize(
    ("name", "unit", "per_unit"),
    [
        ("time_ms", "s", 1e-3),
        ("time_ms", "ms", 1),
        ("time_ms", "us", 1e3),
        ("time_ms", "ns", 1e6),
        ("engine_mhz", "Hz", 1e6),
        ("engine_mhz", "kHz", 1e3),
        ("memory_mhz", "MHz", 1),
        ("memory_mhz", "GHz", 1e-3),
        ("power_w", "mW", 1e3),
        ("power_w", "W", 1),
        ("power_w", "kW", 1e-3),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_units(tmp_path: Path, name: str, unit: str, per_unit: float, kind: str) -> None:
    table, columns = renamed(name, "a: b", per_unit), {name: f"a: b:{unit}"}
    if kind == "frame":
        found = Measurements.from_frame(pd.DataFrame(table), columns=columns)
    else:
        write = write_csv if kind == "csv" else write_parquet
        found = read(write(tmp_path / f"t.{kind}", table), columns=columns)
    plain = Measurements.from_frame(pd.DataFrame(rows()))
    assert (found.grid, found.counter_names) == (plain.grid, plain.counter_names)
    np.testing.assert_allclose(found.time_ms, plain.time_ms, rtol=1e-15)
    np.testing.assert_allclose(found.quantity("power"), plain.quantity("power"), rtol=1e-15)


def test_performance_in_place_of_time() -> None:
    """Rates of 1, 1/2, 1/4 in a second take 1000, 2000, 4000 ms."""
    table = [{**row, "fps": 2.0**-k} for k, row in enumerate(rows(["alone"]))]
    frame = pd.DataFrame(table).drop(columns="time_ms")
    with pytest.warns(DataWarning, match="if 'fps' is a performance over a reference's"):
        found = Measurements.from_frame(frame, columns={"time_ms": "fps:1/s"})
    assert found.time_ms.ravel().tolist() == [1000, 2000, 4000, 8000]


def test_a_unit_in_the_name_counts_and_a_column_that_is_replaced_is_told() -> None:
    """2 us are 0.002 ms."""
    frame = pd.DataFrame([{**row, "runtime_us": 2.0} for row in rows(["alone"])])
    with pytest.warns(DataWarning, match="time_ms=runtime_us stands in place of its column 'time"):
        found = Measurements.from_frame(frame, columns={"time_ms": "runtime_us"})
    assert found.time_ms.ravel().tolist() == [0.002] * 4


# What each command says of an axis "L1 kB", of the steps 16 and 128, that stands for CUs.
AT_BASE = "base L1 kB=128,engine=800,memory=700"
MODEL = ("--model", "m.mlscale")
PREDICT = ("predict", "t.csv", *MODEL, "--at", "L1 kB=16")
ADVISE = ("advise", "t.csv", *MODEL, "--minimize", "time", "--commands")
STUDY = ("t.csv", "--base", "L1 kB=128,engine=800,memory=700", "--predictor", "mean-surface")
NAMED = [
    (
        ("show", "m.mlscale", "--all"),
        "L1 kB 16 to 128 in 2 steps; engine 400",
    ),
    (PREDICT, "  L1 kB    time   slower"),
    ((*PREDICT, "--base", "cu=128"), " on gtx980, measured at 128 L1 kB, 800 / 700 MHz"),
    ((*PREDICT[:4], "--also", "t.csv@L1 kB=16"), "cannot use further measured points"),
    (ADVISE, "Set L1 kB to 16 (now 128)"),
    (ADVISE, "no known command sets L1 kB"),
    (("study", "errors", *STUDY, "--all"), AT_BASE),
    (("study", "advice", *STUDY), AT_BASE),
]


@pytest.mark.usefixtures("in_an_empty_folder", "one_process")
def test_an_axis_of_any_name(capsys: Capture) -> None:
    """L1 sizes on a GPU that has fewer CUs; a step of the larger takes eight times as long."""
    both = [
        {
            "L1 kB": size,
            **{n: v for n, v in row.items() if n != "cu_count"},
            "device": "gtx980",
            "time_ms": row["time_ms"] * size,
        }
        for size in (16, 128)
        for row in rows()
    ]
    file, given = write_csv(Path("t.csv"), both), ("--map", "cu_count=L1 kB")
    out, _ = succeed(capsys, "train", *STUDY, *given, "-o", "m.mlscale")
    assert " at 8 settings of gtx980" in " ".join(out.split())
    for command, said in NAMED:
        main([*command, *(given if command[0] != "show" else ())])
        assert said in "".join(capsys.readouterr())
    succeed(capsys, "report", "t.csv", *MODEL, *given, "-o", "r.html")
    page = Path("r.html").read_text()
    assert '"cu_axis":"L1 kB"' in page
    assert read(file, columns={"cu_count": "L1 kB"}).counter_names == ("loads",)


def test_constants_and_what_the_device_tells() -> None:
    """The GTX 980 has 16 SMs."""
    frame = pd.DataFrame(rows()).drop(columns=["cu_count", "device", "application"])
    columns = {"cu_count": 3, "device": "gtx980", "application": "kernel"}
    found = Measurements.from_frame(frame, columns=columns)
    assert (found.grid.cu_count, found.device) == ((3,), "gtx980")
    assert found.applications == found.kernels
    del columns["cu_count"]
    assert Measurements.from_frame(frame, columns=columns).grid.cu_count == (16,)


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"time_ms": "tme_ms"},
            "the mapping time_ms=tme_ms: there is no column 'tme_ms'; is 'time_ms' m",
        ),
        ({"kernel": "name"}, "the mapping kernel=name: there is no column 'name'"),
        (
            {"engin_mhz": "loads"},
            "engin_mhz=loads: there is no 'engin_mhz'; did you mean engine_mh",
        ),
        ({"cu": "loads"}, "the mapping cu=loads: there is no 'cu'; did you mean cu_count?"),
        ({"power": 3}, "the mapping power=3: there is no 'power'; did you mean power_w?"),
        ({"ipc": "loads", "time_ms": "loads:us"}, "time_ms=loads:us: 'loads' is ipc already; each"),
        ({"time_ms": "loads:MHz"}, "the unit 'MHz' must be one of s, ms, us, ns, 1/s"),
        ({"cu_count": "loads:kHz"}, "the unit 'kHz' must be left out there"),
    ],
)
def test_refused(columns: dict[str, str | float], said: str) -> None:
    with refused(said):
        Measurements.from_frame(pd.DataFrame(rows()), columns=columns)


@pytest.mark.parametrize(
    ("name", "column", "source"),
    [
        *(("engine_mhz", name, name) for name in ("core_clock", "sm_clock", "freq", "gpu_clock")),
        ("engine_mhz", "Core Freq (GHz)", "Core Freq (GHz):GHz"),
        *(("memory_mhz", name, name) for name in ("mem_freq", "mem_clock", "memF")),
        *(("cu_count", name, name) for name in ("num_sms", "cus", "sms")),
        ("time_ms", "duration_ns", "duration_ns:ns"),
        ("time_ms", "runtime_ms", "runtime_ms"),
        ("time_ms", "time_us", "time_us:us"),
        ("time_ms", "duration", "duration:UNIT"),
        ("kernel", "kernel_name", "kernel_name"),
        ("device", "gpu", "gpu"),
        ("power_w", "power/W", "power/W"),
        ("application", "app", "app"),
        ("application", "benchmark", "benchmark"),
        ("time_ms", "inst_executed", None),
    ],
)
def test_usual_names(name: str, column: str, source: str | None) -> None:
    assert source_meant(name, ["other", column]) == source


def test_a_time_under_another_name_is_not_power_alone() -> None:
    with refused(
        "there is no column 'time_ms'; is 'runtime_us' meant.* --map time_ms=runtime_us:us"
    ):
        Measurements.from_frame(pd.DataFrame(renamed("time_ms", "runtime_us", 1e3)))


def test_the_same_model_and_prediction(capsys: Capture, tmp_path: Path) -> None:
    """From mapped and plain columns, of a table, a data frame and a fleet."""
    plain, other = rows(["a", "b", "c"]), []
    for row in plain:
        row["loads"] = row["time_ms"] * 7
        other.append({**row, "dur": row["time_ms"] / 1024, "mhz": row["engine_mhz"]})
        del other[-1]["time_ms"], other[-1]["engine_mhz"]
    columns = {"time_ms": "dur:s", "engine_mhz": "mhz"}
    frame = pd.DataFrame(plain).assign(time_ms=lambda f: f["time_ms"] / 1.024)
    models = [
        train(Measurements.from_frame(pd.DataFrame(table), columns=named), BASE, "nearest")
        for table, named in ((frame, {}), (other, columns))
    ]
    profile = [row for row in other if (row["mhz"], row["memory_mhz"]) == (800, 700)]
    named = read_profiles(pd.DataFrame(profile), BASE, "made-gpu", columns)
    one, two = models[0].predict(frame), models[1].predict(named)
    np.testing.assert_allclose(two.time_ms, one.time_ms, rtol=1e-12)
    models[1].save(tmp_path / "m.mlscale")
    file = write_parquet(tmp_path / "p.parquet", profile)
    given = ["--map", "time_ms=dur:s,engine_mhz=mhz"]
    out, _ = succeed(capsys, "predict", tmp_path / "m.mlscale", file, *given, "--format", "csv")
    assert out.count("\n") == 1 + two.time_ms.size
    succeed(capsys, "predict", tmp_path / "m.mlscale", file, *given, "-o", f"{tmp_path}/fleet/")
    [part] = (tmp_path / "fleet").glob("*.parquet")
    np.testing.assert_allclose(pd.read_parquet(part)["time_ms"], two.time_ms.ravel(), rtol=1e-12)


def test_a_word_that_maps_nothing(capsys: Capture, tmp_path: Path) -> None:
    file = write_csv(tmp_path / "t.csv", rows())
    given = ["train", file, "--base", "mid", "-o", tmp_path / "m", "--map", "time_ms"]
    assert "'time_ms' is not NAME=COLUMN[:UNIT]" in refuse(capsys, tmp_path, *given)


def test_no_launches_of_the_benchmark(capsys: Capture, tmp_path: Path) -> None:
    """The RTX 2070 Super's file has the columns blocks and warps, and nothing in them."""
    table = [{**row, "blocks": "", "warps": "", "ipc": ""} for row in dvfs_rows()]
    file = write_csv(tmp_path / "raw.csv", table)
    succeed(capsys, "import", "dvfs", file, "--device", "rtx2070s", "-o", tmp_path / "t.csv")
    assert read(tmp_path / "t.csv").counter_names == ()


def test_another_name_is_a_counter_and_a_column_can_name_two_things() -> None:
    frame = pd.DataFrame(rows()).drop(columns="application")
    columns = {"ipc": "loads", "application": "kernel", "kernel": "kernel"}
    found = Measurements.from_frame(frame, columns=columns)
    assert (found.counter_names, found.applications) == (("ipc",), found.kernels)


def test_the_frame_is_not_changed() -> None:
    frame = pd.DataFrame(renamed("time_ms", "t", 1))
    table = table_from_frame(frame, columns={"time_ms": "t"})
    assert "t" in frame
    assert "t" not in table.columns
    assert same_bits(table.numbers["time_ms"], frame["t"].to_numpy())
