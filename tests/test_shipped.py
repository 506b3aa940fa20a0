"""Which shipped model answers for a profile, and at which clocks.

Clocks are those of the device table, as nvidia-smi and the data sheets list them; answers are by
hand, from what bounds a kernel; the cards' figures are held to the bounds of models/README.md.
"""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import bottleneck_kernels as made
from synthetic import profiled
from synthetic.tidy import refused

from mlscale import HardwareConfig, Profiles, train
from mlscale.data.datasets import path
from mlscale.data.devices import load_device
from mlscale.data.grid import ConfigGrid
from mlscale.data.profiles import MeasuredPoint
from mlscale.data.surfaces import BOUNDED
from mlscale.model.model import load
from mlscale.model.shipped import (
    EVEN_STEPS,
    KERNELS,
    RUNS,
    choice_note,
    model_for,
    offered_grid,
    shipped_model,
)

TRAINED = (ConfigGrid((16,), (500.0, 1000.0), (400.0, 800.0)),)


def profiles(device: str, config: HardwareConfig) -> Profiles:
    """One kernel that uses half of the DRAM's bandwidth and a third of the CUs."""
    shares = {"dram_utilisation": [0.5], "core_utilisation": [0.33]}
    return profiled.profiles(shares, base=config, device=device)


def sampled_run(device: str, config: HardwareConfig) -> Profiles:
    """A run that keeps SMs and DRAM busy most of the time."""
    shares = {"sm_active": [0.8], "dram_active": [0.3], "gpu_utilisation": [0.9]}
    sampled = {"power_w": np.array([180.0]), "metadata": {"profile_kind": "sampled"}}
    return profiled.profiles(shares, base=config, device=device, **sampled)


class TestOfferedGrid:
    def test_of_an_a100_by_hand(self) -> None:
        # 210 to 1410 MHz in steps of 15 (nvidia-smi); training went down to half of the highest.
        at = HardwareConfig(108, 1410.0, 1593.0)
        grid = offered_grid(load_device("a100-sxm4-80gb"), at, TRAINED)
        assert grid.engine_mhz == tuple(float(mhz) for mhz in range(705, 1411, 15))
        assert (grid.cu_count, grid.memory_mhz) == ((108,), (1593.0,))
        at = HardwareConfig(108, 1093.0, 1590.0)
        grid = offered_grid(load_device("a100-sxm4-80gb"), at, TRAINED)
        assert 1093.0 in grid.engine_mhz  # the base joins the clocks
        assert grid.memory_mhz == (1590.0, 1593.0)

    @pytest.mark.parametrize(
        ("device", "memory_mhz", "offered"),
        [
            # An RTX 4090 lists 405, 810, 5001, 10251 and 10501 MHz; half of 10501 is 5250.5.
            ("rtx4090", 10251.0, (10251.0,)),
            ("rtx4090", 5001.0, (5001.0, 10251.0)),
            # Under CUDA its driver keeps the state P2, of 10251; ncu prints 10501 as 10.49 GHz.
            ("rtx4090", 10490.0, (10251.0, 10490.0, 10501.0)),
            ("rtx-a6000", 7601.0, (5001.0, 7601.0, 8001.0)),
            # ROCm lists 772 and 1100 MHz too, and sets neither.
            ("rx7900xtx", 1249.0, (1249.0,)),
            ("mi300x", 1300.0, (1300.0,)),
        ],
    )
    def test_memory_clocks(self, device: str, memory_mhz: float, offered: tuple[float]) -> None:
        at = HardwareConfig(load_device(device).cu_count, 1500.0, memory_mhz)
        assert offered_grid(load_device(device), at, TRAINED).memory_mhz == offered

    def test_the_lowest_clock_is_that_of_the_table_that_went_lowest(self) -> None:
        """The second table went down to 0.3 of its highest clock: of 1410 MHz that is 423."""
        lower = ConfigGrid((16,), (600.0, 2000.0), (400.0, 800.0))
        at = HardwareConfig(108, 1410.0, 1593.0)
        for trained in ((*TRAINED, lower), (lower, *TRAINED)):
            grid = offered_grid(load_device("a100-sxm4-80gb"), at, trained)
            assert grid.engine_mhz[0] == 435

    def test_a_radeons_clocks_end_near_the_rated_one(self) -> None:
        # The driver takes 500 to 5000 MHz, the sheet says 2500; training went down to half.
        grid = offered_grid(load_device("rx7900xtx"), HardwareConfig(96, 2400.0, 1249.0), TRAINED)
        assert (grid.engine_mhz[0], grid.engine_mhz[-1]) == (1313.0, 2625.0)

    def test_even_steps_where_the_list_is_not_known(self) -> None:
        grid = offered_grid(load_device("mi300x"), HardwareConfig(304, 2100.0, 1300.0), TRAINED)
        assert grid.engine_mhz[-1] == 2100
        assert np.allclose(np.diff(grid.engine_mhz), 2100 / EVEN_STEPS, atol=1)
        assert min(grid.engine_mhz) >= 1050


class TestModelFor:
    MODEL = train(replace(made.measurements(8), metadata={}), made.CLOCKS.mid)

    def test_another_gpu_is_predicted_at_its_clocks(self) -> None:
        new = profiles("a100-sxm4-80gb", HardwareConfig(108, 1410.0, 1593.0))
        model = model_for(self.MODEL, new)
        assert (model.device, model.untrained) == ("a100-sxm4-80gb", True)
        times = model.predict(new).time_ms[0, 0, :, 0]
        assert times[-1] == pytest.approx(1.0)
        assert (np.diff(times) < 0).all()  # a lower engine clock is never quicker

    def test_a_point_moves_the_curve_over_all_clocks_and_is_within_them(self) -> None:
        base = HardwareConfig(108, 1410.0, 1593.0)
        at = [HardwareConfig(108, 720.0, 1593.0)]
        point = MeasuredPoint(HardwareConfig(108, 705.0, 1593.0), np.array([1.9]), None)
        new = replace(profiles("a100-sxm4-80gb", base), points=(point,))
        assert model_for(self.MODEL, new, at).grid == model_for(self.MODEL, new).grid
        above = replace(point, config=replace(base, engine_mhz=1500.0))
        assert max(model_for(self.MODEL, replace(new, points=(above,))).grid.engine_mhz) == 1500

    def test_a_predictor_that_cannot_says_so(self) -> None:
        model = train(made.measurements(4), made.CLOCKS.mid, "mean-surface")
        new = profiles("a100-sxm4-80gb", HardwareConfig(108, 1410.0, 1593.0))
        with refused("'mean-surface' predicts no other GPU and base"):
            model_for(model, new)

    def test_a_gpu_that_is_not_known_is_refused(self) -> None:
        with refused("the GPU 'gtx9999' is unknown; describe it"):
            model_for(self.MODEL, profiles("gtx9999", HardwareConfig(1, 1.0, 1.0)))


class TestShippedModel:
    def test_a_folder_of_its_name_is_not_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """TensorBoard makes a folder 'runs'."""
        (tmp_path / "runs").mkdir()
        monkeypatch.chdir(tmp_path)
        assert "time" in load("runs").predictors

    def test_of_a_profiled_kernel_on_any_gpu(self) -> None:
        new = profiles("h100-sxm5", HardwareConfig(132, 1980.0, 2619.0))
        name, model = shipped_model(new)
        assert name == KERNELS
        assert set(model.predictors) == {"time", "power"}
        bound_by_memory = replace(new, counters=np.array([[0.9, 0.1]]))
        bound_by_cores = replace(new, counters=np.array([[0.02, 0.9]]))
        slowdowns = []
        for kernel in (bound_by_memory, bound_by_cores):
            turned = model_for(model, kernel, [HardwareConfig(132, 990.0, 2619.0)])
            slowdowns.append(turned.predict(kernel).time_ms[0, 0, 0, 0])
        # At half of the clock: near 1 for what memory bounds, near 2 for what the CUs bound.
        assert slowdowns[0] < 1.3
        assert slowdowns[1] > 1.8

    @pytest.mark.parametrize("device", ["a100-sxm4-80gb", "h100-sxm5", "my-laptop"])
    def test_one_run_has_its_time_bounded(self, device: str) -> None:
        """By hand: at two thirds of the clock a run takes 1 to 1.5 times as long, at less power."""
        base = HardwareConfig(108, 1395.0, 1593.0)
        new = sampled_run(device, base)
        name, model = shipped_model(new)
        assert name == RUNS
        target = replace(base, engine_mhz=930)
        predictions = model_for(model, new, [target]).predict(new, coverage=0.9)
        at = predictions.grid.index(target)
        times = predictions["time"]
        assert (times.low[0][at], times.high[0][at]) == pytest.approx((1, 1.5))
        assert BOUNDED in predictions.flags[0]
        if device == "my-laptop":  # its power limit is not known
            assert set(predictions) == {"time"}
        else:
            assert 0.4 < predictions["power"].values[0][at] < 0.9

    def test_two_runs_have_it_predicted(self) -> None:
        """A made run at 1980 MHz and 1320 MHz: the share that follows the clock decides."""
        base = HardwareConfig(132, 1980.0, 2619.0)
        at_1320 = HardwareConfig(132, 1320.0, 2619.0)
        one = sampled_run("h100-sxm5", base)
        halfway = []
        for slowdown in (1.02, 1.45):  # 1.5 follows the clock whole
            point = MeasuredPoint(at_1320, one.time_ms * slowdown, None)
            new = replace(one, points=(point,))
            name, model = shipped_model(new)
            assert name == RUNS
            times = model_for(model, new).predict(new, coverage=0.9)["time"]
            assert times.grid.memory_mhz == (2619.0,)  # no table tells of other memory clocks
            at = times.grid.index(at_1320)
            assert times.values[0][at] == pytest.approx(slowdown)
            assert times.low is not None
            assert times.high is not None
            halfway.append(float(times.values[0][times.grid.index(replace(base, engine_mhz=1650))]))
            assert times.low[0][at] == pytest.approx(slowdown)  # as it was measured
            assert times.high[0][at] == pytest.approx(slowdown)
        # 1980 / 1650 is 1.2.
        assert halfway[0] < 1.02
        assert 1.15 < halfway[1] < 1.2

    def test_two_runs_on_a_gpu_that_is_not_known_are(self) -> None:
        """Clocks and a board's limit are not known: 100 even steps, power by the second run's."""
        base, second = HardwareConfig(36, 2000.0, 8001.0), HardwareConfig(36, 1400.0, 8001.0)
        one = sampled_run("my-laptop", base)
        one = replace(one, metadata={**one.metadata, "counter_tool": "nvidia-smi"})
        _, model = shipped_model(one)
        turned = model_for(model, one)
        assert turned.grid.engine_mhz[-3:] == (1960.0, 1980.0, 2000.0)
        assert (turned.grid.cu_count, turned.grid.memory_mhz) == ((36,), (8001.0,))
        why = "'my-laptop' is not in the device table, and its power is known at one engine clock"
        assert turned.why_no_power(one) == f"{why} only; add a second: also=FILE"
        point = MeasuredPoint(second, np.array([1.3]), np.array([100.0]))
        predictions = turned.predict(replace(one, points=(point,)), coverage=0.9)
        at = predictions.grid.index(second)
        assert predictions["time"].values[0][at] == pytest.approx(1.3, rel=0.01)
        assert predictions["power"].values[0][at] == pytest.approx(100 / 180, rel=0.01)
        powers = predictions["power"].values.ravel()
        assert (np.diff(powers) > 0).all()  # the same work draws more at every higher clock

    def test_is_chosen_by_what_the_profile_tells(self) -> None:
        """One that lacks all counters, as of a trace, is predicted like the others."""
        at = HardwareConfig(132, 1980.0, 2619.0)
        for core, chosen in (([0.33, 0.4], RUNS), ([0.33, np.nan], KERNELS)):
            shares = {"dram_utilisation": [0.5, np.nan], "core_utilisation": core}
            two = profiled.profiles(shares, [1.0, 1.0], at, device="h100-sxm5")
            assert shipped_model(two)[0] == chosen
        simulated = profiles("simulated-gcn3", HardwareConfig(16, 800.0, 700.0))
        assert shipped_model(simulated)[0] == "simulated-gcn3.mlscale"

    def test_the_card_says_how_far_off_two_clocks_are(self) -> None:
        """Means over the GPUs left out in turn [%], just above what was measured."""
        card = load(path(RUNS)).card
        errors = card["errors_on_gpus_left_out"]
        assert len(errors) == 21
        for quantity, bound, least in (("time", 2.5, 85), ("power", 4, 85), ("energy", 3.6, 88)):
            off = [one[quantity] for one in errors.values() if quantity in one]
            assert np.mean([one["mean_error_percent"] for one in off]) < bound
            assert np.mean([one["intervals_hold_percent"] for one in off]) > least
        assert set(card["intervals_hold_on"]) == {"time", "power", "energy"}
        for words in card["intervals_hold_on"].values():
            held, of = map(int, re.findall(r"\d+", words))
            assert held >= 0.65 * of >= 13

    def test_the_card_of_any_gpu_says_how_far_off_its_times_are(self) -> None:
        """Bounds by models/README.md, with GPUs left out: 1.8 to 3.7 % off, 91 to 98 % held."""
        card = load(path("kernels.mlscale")).card
        assert card["time_on_gpus_left_out_from"].startswith("mlscale study errors gtx980-low")
        assert set(card["time_on_gpus_left_out"]) == {
            "gtx980-low",
            "gtx980-high",
            "gtx1080ti",
            "p100",
        }
        for held_out in card["time_on_gpus_left_out"].values():
            assert 1.5 < held_out["mean_error_percent"] < 4
            assert 88 < held_out["intervals_hold_percent"] < 99

    @pytest.mark.parametrize("name", [RUNS, KERNELS])
    def test_a_note_tells_of_other_vendors_gpus(self, name: str) -> None:
        """docs/tables/power-alone.csv has figures: no time was measured on those."""
        model, words = load(path(name)), "it was trained only on NVIDIA GPUs"
        amd = profiles("mi300x", HardwareConfig(304, 2000.0, 1300.0))
        nvidia = profiles("h100-sxm5", HardwareConfig(132, 1980.0, 2619.0))
        assert words in choice_note(name, model, amd).text
        assert words not in choice_note(name, model, nvidia).text

    def test_clocks_that_are_not_listed_are_told(self) -> None:
        """A GB200's list is not known, an H100's is."""
        for key, cus, is_told in (("gb200", 152, True), ("h100-sxm5", 132, False)):
            name, model = shipped_model(new := profiles(key, HardwareConfig(cus, 1980.0, 2619.0)))
            assert ("mlscale tries even steps" in choice_note(name, model, new).text) == is_told, (
                key
            )
