"""--extrapolate: beyond the trained clocks by choice, flagged row by row, with wider intervals."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import bottleneck_kernels as made

from mlscale import load, read_profiles, train
from mlscale.data.datasets import path
from mlscale.errors import InputError
from mlscale.model.shipped import model_for
from mlscale.predictors.base import predict_surfaces
from mlscale.readers.reading import import_profile

SIMULATED = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")
BEYOND = ("--at", "cu=48,engine=600,memory=700")
INSIDE = ("--at", "cu=32,engine=600,memory=700")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("trained")
    train(made.measurements(12), made.CLOCKS.mid).save(folder / "model.mlscale")
    profile = folder / "profile.csv"
    frame = made.measurements(2, seed=1).to_frame()
    base = made.CLOCKS.mid.as_dict()
    at_base = (frame[list(base)] == list(base.values())).all(axis=1)
    frame[at_base].to_csv(profile, index=False)
    return folder / "model.mlscale", profile


def predictions(capsys: Capture, *given: Any) -> list[dict[str, Any]]:
    out, _ = succeed(capsys, "predict", *given, "--format", "json")
    return list(json.loads(out)["predictions"])


def test_without_it_settings_beyond_are_refused(capsys: Capture, tmp_path: Path) -> None:
    err = refuse(capsys, tmp_path, "predict", *SIMULATED, *BEYOND)
    assert "cu_count 48 is outside the grid (4, 8, 16, 32)" in err
    assert "unless asked to (--extrapolate)" in err


def test_rows_beyond_are_flagged_and_the_others_stay(capsys: Capture) -> None:
    beyond, inside = predictions(capsys, *SIMULATED, *BEYOND, *INSIDE, "--extrapolate")
    [alone] = predictions(capsys, *SIMULATED, *INSIDE)
    assert beyond["flags"][0] == "extrapolated"
    assert inside["flags"] == alone["flags"]
    for number in ("time_ms", "time_ms_low", "time_ms_high"):
        assert inside[number] == pytest.approx(alone[number], rel=1e-9)
    widths = [row["time_ms_high"] / row["time_ms_low"] for row in (inside, beyond)]
    assert widths[1] > widths[0]
    assert 0.5 * inside["time_ms"] < beyond["time_ms"] < 1.05 * inside["time_ms"]


def test_the_table_marks_rows_and_says_how_far(capsys: Capture) -> None:
    out, _ = succeed(capsys, "predict", *SIMULATED, *BEYOND, *INSIDE, "--extrapolate")
    first, second = out.splitlines()[2:4]
    assert first.endswith("  extrapolated")
    assert not second.endswith("extrapolated")
    assert "warning: cu_count 48 is above 32, the highest that the training data speak for" in out


class TestWhereTheGpuCanBeSet:
    """A GTX 980 of which 500 to 1100 MHz were trained offers up to 1392 MHz and more."""

    def test_predict_goes_there(self, capsys: Capture, files: tuple[Path, Path]) -> None:
        rows = predictions(capsys, *files, "--extrapolate")
        clocks = {row["engine_mhz"] for row in rows}
        assert set(made.CLOCKS.engine_mhz) < clocks
        assert min(clocks) >= 500 / 1.5
        assert max(clocks) <= 1100 * 1.5
        for row in rows:
            is_inside = 500 <= row["engine_mhz"] <= 1100 and 1000 <= row["memory_mhz"] <= 4000
            assert ("extrapolated" in row["flags"]) != is_inside

    def test_advice_says_where_its_best_is_extrapolated(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        """The run is quickest at the highest clock, which was not trained; a kernel that memory
        bounds is as quick at the lowest."""
        out, _ = succeed(
            *(capsys, "advise", *files, "--extrapolate"),
            *("--minimize", "time", "--format", "json"),
        )
        document = json.loads(out)
        assert document["whole_run"]["best"]["engine_mhz"] > 1100
        for advised in (*document["kernels"], document["whole_run"]):
            is_beyond = advised["best"]["engine_mhz"] > 1100
            flag = "extrapolated: the best lies beyond the trained settings"
            assert (flag in advised["flags"]) == is_beyond

    def test_the_report_says_so(
        self, capsys: Capture, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        page = tmp_path / "page.html"
        succeed(capsys, "report", *files, "--extrapolate", "-o", page)
        text = page.read_text(encoding="utf-8")
        assert "are extrapolated, with wider intervals" in text
        assert "--extrapolate" in text


def test_a_model_that_extrapolates_is_not_saved(tmp_path: Path) -> None:
    model = load(path("simulated-gcn3.mlscale"))
    wider = model.extrapolating([model.grid.parse("cu=48,engine=600,memory=700")])
    assert wider.grid.cu_count == (4, 8, 16, 32, 48)
    assert model.extrapolating([model.base]) is model
    with pytest.raises(InputError, match="is not saved; save what it was"):
        wider.save(tmp_path / "m.mlscale")
    assert not os.listdir(tmp_path)  # noqa: PTH208


def test_intervals_beyond_widen_by_the_rule() -> None:
    """At 48 CUs, 1.5 times the most trained, 1 + 2 log 1.5 times as wide as the predictor's own."""
    model = load(path("simulated-gcn3.mlscale"))
    profiles = read_profiles(path("simulated-gcn3-profile.csv"), model.base, model.device)
    wider = model.extrapolating([model.grid.parse("cu=48,engine=800,memory=700")])
    ends = []
    for surfaces in (
        predict_surfaces(model.predictors["time"], profiles, wider.grid, 0.9),
        wider.predict(profiles, 0.9)["time"],
    ):
        assert surfaces.high is not None
        ends.append(np.log(surfaces.high / surfaces.values)[0, -2:, 2, 1])
    assert ends[1] == pytest.approx(ends[0] * [1, 1 + 2 * np.log(1.5)])


def test_intervals_of_power_that_follows_from_times_widen_by_the_rule_too() -> None:
    """On an H100, 1 + 2 log (905 / 615) times as wide at 615 MHz as the predictor's own."""
    clocks = {"engine_mhz": 1980.0, "memory_mhz": 2619.0}
    of_h100 = {"device": "h100-sxm5", "base": clocks, "power": 500}
    profiles = import_profile(path("h100-by-hand.csv"), **of_h100)
    model = model_for(load(path("kernels.mlscale")), profiles, extrapolate=True)
    assert model.trained_range is not None
    assert (model.trained_range.engine_mhz[0], model.grid.engine_mhz[0]) == (905, 615)
    predictions = model.predict(profiles, 0.9)
    by_times = model.predictors["power"].with_times(predictions["time"])  # type: ignore[attr-defined]
    ends = []
    for surfaces in (
        predict_surfaces(by_times, profiles, model.grid, 0.9),
        predictions["power"],
    ):
        assert surfaces.low is not None
        ends.append(np.log(surfaces.low / surfaces.values)[:, 0, 0])
    assert ends[1] == pytest.approx(ends[0] * (1 + 2 * np.log(905 / 615)))
