"""predict where a model was not trained: another GPU, and settings beyond with --extrapolate.

Kernels are of the law in tests/synthetic/bottleneck_kernels.py, on a GTX 980 and, with its wider
bus, a GTX 1080 Ti; clocks of real GPUs are of the device table.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Cli, note_texts
from synthetic import bottleneck_kernels as made

from mlscale import load, read_profiles, train
from mlscale.data.datasets import path
from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.model.shipped import model_for
from mlscale.predictors.base import predict_surfaces
from mlscale.readers.reading import import_profile

MID = made.CLOCKS.mid
OTHER = ConfigGrid((28,), (600.0, 900.0, 1200.0), (1500.0, 3000.0, 4500.0))
AT = ("--at", "engine=600,memory=4500", "--at", "cu=28,engine=1200,memory=1500")


def of_1080_ti(kernels: int, seed: int) -> Measurements:
    """Kernels of the same law on a GTX 1080 Ti, whose bus is 352 bits wide, not 256."""
    table = made.measurements(kernels, seed=seed, grid=OTHER)
    counters = table.counter_samples * 352 / 256
    return replace(table, device="gtx1080ti", counter_samples=counters)


def write_base(table: Measurements, base: Any, file: Path) -> None:
    """The rows of a table at its base alone."""
    frame, axes = table.to_frame(), base.as_dict()
    frame[(frame[list(axes)] == list(axes.values())).all(axis=1)].to_csv(file, index=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of a GTX 980 with a profile, and tables of the other GPU."""
    folder = tmp_path_factory.mktemp("untrained")
    trained = replace(made.measurements(12), metadata={})  # made data say nothing of others
    trained.write(folder / "trained.csv")
    train(trained, MID).save(folder / "model.mlscale")
    write_base(made.measurements(2, seed=1), MID, folder / "gtx980.csv")
    for name, table in (("new", of_1080_ti(3, 1)), ("peaks", of_1080_ti(9, 2))):
        table.write(folder / f"all-{name}.csv")
        write_base(table, OTHER.mid, folder / f"{name}.csv")
    return folder


def rows(cli: Cli, *given: object) -> list[dict[str, Any]]:
    return list(cli.json("predict", *given)["predictions"])


class TestAnotherGpu:
    def given(self, folder: Path, profile: str = "new.csv") -> list[object]:
        return [folder / "model.mlscale", folder / profile, "--device", "gtx1080ti"]

    def test_recovers_the_law(self, cli: Cli, folder: Path) -> None:
        """Made of one law: with the peak known, little is left (2.1 % mean when written)."""
        given = (*self.given(folder), *AT, "--peaks", folder / "peaks.csv")
        found = cli.json("predict", *given)
        assert found["base"] == {"cu_count": 28, "engine_mhz": 900, "memory_mhz": 3000}
        truth = of_1080_ti(3, 1)
        errors = []
        for row in found["predictions"]:
            at = OTHER.index(OTHER.parse(f"engine={row['engine_mhz']},memory={row['memory_mhz']}"))
            true_ms = truth.time_ms[(truth.kernels.index(row["kernel"]), *at)]
            errors.append(abs(row["time_ms"] / true_ms - 1))
            assert row["time_ms_low"] < row["time_ms"] < row["time_ms_high"]
            assert row["power_w"] is None
        assert len(errors) == 6
        assert np.mean(errors) < 0.03
        notes = note_texts(found)
        assert "no training data of gtx1080ti: only time is predicted" in notes
        assert any(text.startswith("no training data of gtx1080ti at cu=") for text in notes)

    def test_without_peaks_says_what_was_taken(self, cli: Cli, folder: Path) -> None:
        out, err = cli.both("predict", *self.given(folder), *AT, "--notes")
        assert "assumed: kernels reach at most 90 % of peak bandwidth" in err
        several = self.given(folder, "all-new.csv")
        given = (*several, *AT, "--base", "engine=900,memory=3000")
        assert cli("predict", *given) == out
        message = cli.refused("predict", *several, *AT, folder=folder)
        assert "has rows at 9 configurations; say with --base" in message

    def test_a_further_point_brings_it_closer(self, cli: Cli, folder: Path) -> None:
        also = ("--also", f"{folder / 'all-new.csv'}@{AT[3]}")
        truth = of_1080_ti(3, 1).time_ms[:, 0, 2, 0]
        off = []
        for more in ((), also):
            found = rows(cli, *self.given(folder), *AT, *more)
            times = [row["time_ms"] for row in found if row["engine_mhz"] == 1200]
            off.append(np.abs(times / truth - 1).max())
        assert off[1] < off[0]

    def test_without_at_all_clocks_that_the_gpu_offers(self, cli: Cli, folder: Path) -> None:
        """A GTX 1080 Ti's steps are 12.65625 MHz (nvidia-smi), the profile's clocks join them."""
        clocks = {row["engine_mhz"] for row in rows(cli, *self.given(folder))}
        assert {900, 1607, 1911} <= clocks
        # As far down as the training table went: the same share of the highest clock.
        lowest, *_, highest = made.CLOCKS.engine_mhz
        assert lowest / highest <= min(clocks) / max(clocks) < lowest / highest + 0.01

    @pytest.mark.slow
    def test_of_which_the_training_has_a_table_all_its_steps_count(
        self, cli: Cli, folder: Path, tmp_path: Path
    ) -> None:
        of_1080_ti(9, 2).write(tmp_path / "second.csv")
        two = tmp_path / "two.mlscale"
        tables = (folder / "trained.csv", tmp_path / "second.csv")
        cli("train", *tables, "--base", "mid", "-o", two)
        given = (two, *self.given(folder)[1:], *AT, "--at", "engine=700,memory=3000")
        err = cli.told("predict", *given, "--notes")
        assert "by the curve alone" not in err
        assert "power is learnt from the first table: only time is predicted" in err
        assert "no training data" not in err

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (["--device", "p100"], "is of device 'gtx1080ti', --device says 'p100'"),
            (["--base", "engine=800,memory=800"], "has no row at the base"),
            (["--peaks", "nothing.csv"], "nothing.csv: cannot be read"),
            (["--peaks", "{}/trained.csv"], "trained.csv: is of device 'gtx980', the profile of"),
            (["--at", "cu=29,engine=800,memory=3000"], "gtx1080ti has 28 compute units, not 29"),
            (["--at", "engine=2500"], "engine_mhz 2500 is above what gtx1080ti reaches, 1911"),
            (["--at", "cu=14,engine=800,memory=3000"], "no training table has several CU counts"),
        ],
    )
    def test_what_is_refused(self, cli: Cli, folder: Path, change: list[str], problem: str) -> None:
        words = [word.format(folder) for word in change]
        assert problem in cli.refused("predict", *self.given(folder), *AT, *words, folder=folder)

    @pytest.mark.parametrize(
        ("counter", "problem"),
        [
            (0.0, "no profiled kernel of 'gtx1080ti' has DRAM traffic"),
            (np.nan, "the model needs the DRAM traffic: dram_utilisation"),
        ],
    )
    def test_peaks_without_traffic(
        self, cli: Cli, folder: Path, tmp_path: Path, counter: float, problem: str
    ) -> None:
        table = of_1080_ti(9, 2)
        counters = np.full_like(table.counter_samples, counter)
        replace(table, counter_samples=counters).write(tmp_path / "idle.csv")
        given = (*self.given(folder), *AT, "--peaks", tmp_path / "idle.csv")
        assert problem in cli.refused("predict", *given)

    def test_a_predictor_that_cannot(self, cli: Cli, folder: Path, tmp_path: Path) -> None:
        mean = tmp_path / "mean.mlscale"
        train(made.measurements(4), MID, "mean-surface").save(mean)
        message = cli.refused("predict", mean, *self.given(folder)[1:], folder=folder)
        assert message.startswith(f"the model is of gtx980 at {MID}, the profile of gtx1080ti at ")
        assert message.endswith("'mean-surface' predicts no other GPU and base")


SIMULATED = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")
BEYOND = ("--at", "cu=48,engine=600,memory=700")
INSIDE = ("--at", "cu=32,engine=600,memory=700")


class TestExtrapolate:
    def test_rows_beyond_are_flagged_and_the_others_stay(self, cli: Cli) -> None:
        beyond, inside = rows(cli, *SIMULATED, *BEYOND, *INSIDE, "--extrapolate")
        [alone] = rows(cli, *SIMULATED, *INSIDE)
        assert beyond["flags"][0] == "extrapolated"
        assert inside["flags"] == alone["flags"]
        for number in ("time_ms", "time_ms_low", "time_ms_high"):
            assert inside[number] == pytest.approx(alone[number], rel=1e-9)
        widths = [row["time_ms_high"] / row["time_ms_low"] for row in (inside, beyond)]
        assert widths[1] > widths[0]
        assert 0.5 * inside["time_ms"] < beyond["time_ms"] < 1.05 * inside["time_ms"]
        given = (*SIMULATED, *BEYOND, *INSIDE, "--extrapolate", "--notes")
        out, err = cli.both("predict", *given)
        first, second = out.split("\n\n")[1].splitlines()[2:4]
        assert "  ?  " in first
        assert "?" not in second
        assert "cu_count 48 is above 32, the highest in training: " in err

    def test_where_the_gpu_can_be_set_to(self, cli: Cli, folder: Path) -> None:
        """A GTX 980 of which 500 to 1100 MHz were trained offers up to 1392 MHz and more.

        The run is quickest at the highest clock; a kernel that memory bounds is as quick at the
        lowest.
        """
        given = (folder / "model.mlscale", folder / "gtx980.csv", "--extrapolate")
        found = rows(cli, *given)
        clocks = {row["engine_mhz"] for row in found}
        assert set(made.CLOCKS.engine_mhz) < clocks
        assert 500 / 1.5 <= min(clocks) < max(clocks) <= 1100 * 1.5
        for row in found:
            is_inside = 500 <= row["engine_mhz"] <= 1100 and 1000 <= row["memory_mhz"] <= 4000
            assert ("extrapolated" in row["flags"]) != is_inside
        document = cli.json("advise", *given, "--minimize", "time")
        assert document["answer"]["at"]["engine_mhz"] > 1100
        flag = "extrapolated: the best lies beyond the trained settings"
        assert all(k["best"]["at"]["engine_mhz"] > 1100 for k in document["kernels"])
        about = [note["kernels"] for note in document["notes"] if note["text"] == flag]
        assert about == ["all"]
        assert document["sure"] == "low"
        assert f"P02 {flag}" in cli.page(*given)

    def test_a_model_that_extrapolates_is_not_saved(self, tmp_path: Path) -> None:
        model = load(path(SIMULATED[0]))
        wider = model.extrapolating([model.grid.parse("cu=48,engine=600,memory=700")])
        assert wider.grid.cu_count == (4, 8, 16, 32, 48)
        assert model.extrapolating([model.base]) is model
        with pytest.raises(
            InputError, match="a model adapted to another GPU or grid cannot be saved"
        ):
            wider.save(tmp_path / "m.mlscale")
        assert list(tmp_path.iterdir()) == []

    def test_intervals_widen_by_the_rule(self) -> None:
        """At 48 CUs, 1.5 times the most trained, 1 + 2 log 1.5 times as wide as the predictor's."""
        model = load(path(SIMULATED[0]))
        profiles = read_profiles(path(SIMULATED[1]), model.base, model.device)
        wider = model.extrapolating([model.grid.parse("cu=48,engine=800,memory=700")])
        ends = []
        for surfaces in (
            predict_surfaces(model.predictors["time"], profiles, wider.grid, 0.9),
            wider.predict(profiles, 0.9)["time"],
        ):
            assert surfaces.high is not None
            ends.append(np.log(surfaces.high / surfaces.values)[0, -2:, 2, 1])
        assert ends[1] == pytest.approx(ends[0] * [1, 1 + 2 * np.log(1.5)])

    def test_intervals_of_power_that_follows_from_times_do_so_too(self) -> None:
        """On an H100, 1 + 2 log (905 / 615) times as wide at 615 MHz as the predictor's own."""
        clocks = {"engine_mhz": 1980.0, "memory_mhz": 2619.0}
        given = {"device": "h100-sxm5", "base": clocks, "power": 500}
        profiles = import_profile(path("h100-by-hand.csv"), **given)
        model = model_for(load(path("kernels.mlscale")), profiles, extrapolate=True)
        assert model.trained_range is not None
        assert (model.trained_range.engine_mhz[0], model.grid.engine_mhz[0]) == (905, 615)
        predictions = model.predict(profiles, 0.9)
        times, powers = (predictions[quantity].at_memory(2619.0) for quantity in ("time", "power"))
        by_times = model.predictors["power"].with_times(times)  # type: ignore[attr-defined]
        ends = []
        for surfaces in (predict_surfaces(by_times, profiles, times.grid, 0.9), powers):
            assert surfaces.low is not None
            ends.append(np.log(surfaces.low / surfaces.values)[:, 0, 0])
        assert ends[1] == pytest.approx(ends[0] * (1 + 2 * np.log(905 / 615)))
