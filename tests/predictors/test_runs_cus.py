"""Time over CU counts from readings at two of them.

The RTX A6000's reading bandwidth is of green contexts of 4 to 84 SMs, in the file that the test
names; its time is 1 / bandwidth. The kernels of the H100 and the H200 are of the suites that ship.
Bounds are what the tables showed, a little wider.
"""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from command import Capture, refuse, succeed

import mlscale
from mlscale.arrays import Floats
from mlscale.data import datasets
from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import BOUNDED_BY_COUNT, Surfaces
from mlscale.model.model import Model
from mlscale.predictors.base import GivesIntervals

CLOCKS = "engine=1800,memory=8001"
HEADER = "device,kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
READ_MS = {84: 100.0, 42: 105.0}  # made; power is there, and is not predicted


@pytest.fixture(scope="module")
def runs() -> Model:
    return mlscale.load(datasets.path("runs.mlscale"))


def table(path: Path, *counts: int) -> Path:
    rows = [f"rtx-a6000,read,{n},1800,8001,{READ_MS[n]},200\n" for n in counts]
    path.write_text(HEADER + "".join(rows))
    return path


def predicted(runs: Model, times_ms: Floats, counts: list[int], second: int | None) -> Surfaces:
    """From times (K, C) at the most CUs, the last, and at a second count."""
    base, *others = [HardwareConfig(n, 1800, 8001) for n in (counts[-1], second) if n]
    points = tuple(MeasuredPoint(at, times_ms[:, counts.index(at.cu_count)], None) for at in others)
    names = tuple(str(number) for number in range(len(times_ms)))
    unknown = np.empty((len(names), 0))
    profiles = Profiles(
        "any", base, names, names, times_ms[:, -1], None, (), unknown, points=points
    )
    grid = ConfigGrid(tuple(counts), (1800.0,), (8001.0,))
    time = runs.predictors["time"]
    assert isinstance(time, GivesIntervals)
    return time.predict_interval(profiles, 0.9, grid)


class TestMeasured:
    def test_reading_memory_of_an_a6000(self, runs: Model, data_folder: Path) -> None:
        file = data_folder / "sm-axis" / "a6000-green-contexts-read-bandwidth.csv"
        with file.open() as lines:
            rows = [(int(row["sms"]), float(row["read_gb_per_s"])) for row in csv.DictReader(lines)]
        counts, times_ms = [n for n, _ in rows], np.array([[1e5 / rate for _, rate in rows]])
        surfaces = predicted(runs, times_ms, counts, 40)
        actual = (times_ms / times_ms[:, -1:]).reshape(surfaces.values.shape)
        error = np.abs(surfaces.values / actual - 1)[0, :, 0, 0]
        held = surfaces.holds(actual)
        assert held is not None
        assert held.all()
        assert error[np.array(counts) > 40].max() < 0.01
        assert error[np.array(counts) >= 20].max() < 0.1  # SMs saturate the memory down to 20

    @pytest.mark.parametrize(
        ("name", "second", "between", "half", "least_held"),
        [
            ("h100-suite", 64, 0.04, 0.08, 0.85),
            ("h200-suite", 64, 0.04, 0.08, 0.85),
            ("h200-suite", 32, 0.05, 0.07, 0.85),
        ],
    )
    def test_kernels_of_a_suite(
        self, runs: Model, name: str, second: int, between: float, half: float, least_held: float
    ) -> None:
        measured = mlscale.read(datasets.path(f"{name}.csv"))
        counts = list(measured.grid.cu_count)
        times_ms = measured.time_ms[:, :, 0, 0]
        surfaces = predicted(runs, times_ms, counts, second)
        actual = (times_ms / times_ms[:, -1:])[..., None, None]
        error = np.abs(surfaces.values / actual - 1)[:, :, 0, 0]
        held = surfaces.holds(actual)
        assert held is not None
        is_between = (np.array(counts) > second) & (np.array(counts) < counts[-1])
        is_half = np.array(counts) == second // 2
        assert error[:, is_between].mean() < between
        assert error[:, is_half].mean() < half
        assert held[:, is_between].mean() > least_held
        assert held[:, is_half].mean() > least_held


class TestLaws:
    def test_readings_are_kept_to_and_the_bounds(self, runs: Model) -> None:
        """Of times that are constant and in proportion, by hand."""
        counts = [8, 16, 32, 64]
        times_ms = np.array([[1.0, 1.0, 1.0, 1.0], [8.0, 4.0, 2.0, 1.0]])
        values = predicted(runs, times_ms, counts, 16).values[:, :, 0, 0]
        assert values[0, 1:] == pytest.approx(1, abs=0.03)
        assert 1 < values[0, 0] < 2  # all but out of the readings' sight
        assert values[1] == pytest.approx([8, 4, 2, 1], rel=0.05)

    def test_one_reading_gives_bounds(self, runs: Model) -> None:
        surfaces = predicted(runs, np.array([[0, 0, 3.0]]), [16, 32, 64], None)
        assert surfaces.low is not None
        assert surfaces.high is not None
        assert surfaces.low.ravel() == pytest.approx([1, 1, 1])
        assert surfaces.high.ravel() == pytest.approx([4, 2, 1])
        assert surfaces.flags == ((BOUNDED_BY_COUNT,),)


class TestCommand:
    @pytest.mark.parametrize("form", ["two tables", "one table", "a count in the option"])
    def test_a_second_count_gives_all_counts(
        self, capsys: Capture, tmp_path: Path, form: str
    ) -> None:
        first, second = table(tmp_path / "84.csv", 84), table(tmp_path / "42.csv", 42)
        both = table(tmp_path / "both.csv", 84, 42)
        words: dict[str, list[object]] = {
            "two tables": [first, "--also", second],
            "one table": [both, "--base", f"cu=84,{CLOCKS}"],
            "a count in the option": [first, "--also", f"{both}@cu=42"],
        }
        out, err = succeed(capsys, "predict", *words[form], "--all", "--notes")
        counts = re.findall(r"^ +(\d+)  +[\d.]+ m?s ", out, re.MULTILINE)
        assert sorted(map(int, counts)) == list(range(6, 85))
        assert "power at other CU counts is not predicted" in err

    @pytest.mark.parametrize(
        ("command", "options", "problem"),
        [
            ("predict", ["--at", "cu=42,engine=900"], "at other engine clocks or at other CU"),
            ("advise", [], "one clock, so no lower clock can be advised"),
        ],
    )
    def test_what_is_refused(
        self, capsys: Capture, tmp_path: Path, command: str, options: list[str], problem: str
    ) -> None:
        first, second = table(tmp_path / "84.csv", 84), table(tmp_path / "42.csv", 42)
        assert problem in refuse(capsys, tmp_path, command, first, "--also", second, *options)

    def test_the_fastest_count_is_advised(self, capsys: Capture, tmp_path: Path) -> None:
        first, second = table(tmp_path / "84.csv", 84), table(tmp_path / "42.csv", 42)
        out, _ = succeed(
            capsys, "advise", second, "--also", first, "--base", "cu=42", "--minimize", "time"
        )
        assert re.match(r"  Set the CU count to 8[0-4] \(now 42\): 4\.8 % faster", out)
