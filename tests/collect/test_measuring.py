"""The CUDA and HIP paths, played back by kernel_tuner's simulation mode from caches made by hand.

No device is there: what is tested is what kernel_tuner is asked for (its parameters, in its order),
and what becomes of its answers. The numbers of the caches are made; what is expected of them is
computed by hand beside each test.
"""

import itertools
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic.tidy import refused

from mlscale import read
from mlscale.collect import recording
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan, select
from mlscale.collect.running import cache_file
from mlscale.data.table_files import read_table
from mlscale.errors import DataWarning, InputError
from mlscale.readers.kernel_tuner import readings

pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")
from kernel_tuner.observers import BenchmarkObserver

from mlscale.collect import measuring

H200 = DeviceInfo(
    "cuda", "NVIDIA H200", "abc", "d", 132, 50 << 20, 32, 1980.0, 3201.0,
    cu_axis="green contexts", sensors="nvml",
)  # fmt: skip
MI210 = DeviceInfo(
    "hip", "AMD Instinct MI210", "def", "d", 104, 8 << 20, 64, 1700.0, 1600.0,
    cu_axis="CU mask", sensors="amdsmi",
)  # fmt: skip
[ENTRY] = select("small", ["copy"], "cuda")
GRANTED = {8: 8, 16: 16, 32: 32, 60: 64, 100: 104, 132: 132}  # groups of 8, as the driver rounds up
AS_IT_IS: dict[str, tuple[int, ...]] = {"engine_mhz": (), "memory_mhz": (), "cap_w": ()}
CUDA = Plan(
    "small", H200, (ENTRY,), tuple(GRANTED),
    {"engine_mhz": (990, 1980), "memory_mhz": (3201,), "cap_w": (300, 700)}, 2, 1.0,
)  # fmt: skip
HIP = Plan("small", MI210, (ENTRY,), (52, 104), AS_IT_IS, power_s=1.0)


Answer = Callable[[dict[str, Any]], dict[str, Any]]
PlayBack = Callable[[Plan, Answer], list[Any]]


@pytest.fixture
def play_back(tmp_path: Path) -> PlayBack:
    """A function: what `played_back` gives in the test's folder."""
    return partial(played_back, tmp_path)


def played_back(folder: Path, plan: Plan, answer: Answer) -> list[Any]:
    """Write a cache for each CU count into the folder, and measure by playing it back.

    What the function `answer` gives for a configuration stands in the cache.
    """
    (folder / "cache").mkdir(exist_ok=True)
    simulated = partial(measuring.tune_kernel, simulation_mode=True)
    results = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "tune_kernel", simulated)
        patch.setattr(measuring, "_sensors", made_observers)
        for cu_count in plan.cu_counts:
            varied = measuring.parameters(ENTRY, plan, cu_count)
            entries = {}
            for values in itertools.product(*varied.values()):
                given = dict(zip(varied, values, strict=True))
                entries[",".join(map(str, values))] = {**given, **answer(given)}
            document = {
                "device_name": plan.device.name,
                "kernel_name": ENTRY.name,
                "problem_size": ENTRY.threads,
                "tune_params_keys": list(varied),
                "tune_params": varied,
                "objective": "time",
                "cache": entries,
            }
            path = cache_file(folder, ENTRY.name, cu_count)
            path.write_text(json.dumps(document))
            results += measuring.measure(ENTRY, plan, cu_count, path)
    return results


def made_observers(device: DeviceInfo, power_s: float) -> Any:
    """Stands for the sensors'; what it would have read stands in the cache."""

    class Observer(BenchmarkObserver):  # type: ignore[misc]
        def get_results(self) -> dict[str, Any]:
            return {}

    return [Observer()]


@pytest.fixture(scope="module")
def cuda_samples(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """An H200 at six CU counts, two clocks and two power limits, twice each."""

    def answer(given: dict[str, Any]) -> dict[str, Any]:
        clock, granted = given["engine_mhz"], GRANTED[given["cu_count"]]
        capped = given["cap_w"] == 300 and clock == 1980
        times = [1e5 / granted / clock * factor for factor in (1.0, 1.1, 0.9)]
        return {
            "time": float(np.mean(times)), "times": times, "cu_count_granted": granted,
            "nvml_power": 250.0, "core_freq": 300.0, "mem_freq": 3201.0,
            "pwr_core_freq": 1500.0 if capped else float(clock), "temperature": 50.0,
        }  # fmt: skip

    folder = tmp_path_factory.mktemp("cuda")
    results = played_back(folder, CUDA, answer)
    assert len(results) == CUDA.configurations * CUDA.repeat == 6 * 2 * 1 * 2 * 2
    return recording.samples(folder, CUDA)


class TestCuda:
    def test_what_is_asked_of_kernel_tuner(self) -> None:
        """8 of 132 SMs in %: a green context of so many, as kernel_tuner counts back."""
        assert measuring.parameters(ENTRY, CUDA, 8) == {
            "block_size_x": [256],
            "repetition": [0, 1],
            "cu_count": [8],
            "cuda_sm_percentage": [6.0606],
            "engine_mhz": [990, 1980],
            "memory_mhz": [3201],
            "cap_w": [300, 700],
        }
        assert max(1, round(132 * 6.0606 / 100)) == 8

    def test_the_board_is_set_once_for_each_configuration(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By kernel_tuner's hook before a configuration is timed."""
        done: list[Any] = []
        monkeypatch.setattr(measuring, "board_by_uuid", str)
        monkeypatch.setattr(measuring, "set_board", lambda _, settings: done.append(settings))
        observer = measuring._Configuration(CUDA)
        observer.dev = SimpleNamespace(assigned_sm_count=64, run_kernel=print)
        for clock in (990, 990, 1980):
            observer.register_configuration({"block_size_x": 256, "engine_mhz": clock})
        assert done == [{"engine_mhz": 990}, {"engine_mhz": 1980}]
        assert observer.get_results() == {"cu_count_granted": 64}

    def test_rows_are_at_what_the_driver_granted_and_at_the_clock_under_load(
        self, cuda_samples: pd.DataFrame
    ) -> None:
        """64 of 60 asked for; the median of 1, 1.1 and 0.9 is 1: 1e5 / 64 / 990 ms.

        1500 of 1980 MHz under the limit of 300 W; else the clock that was set.
        """
        at_64 = cuda_samples.query("cu_count == 64 and engine_mhz == 990")
        assert at_64["time_ms"].tolist() == pytest.approx([1e5 / 64 / 990] * 4, rel=1e-6)
        assert set(at_64["power_w"]) == {250}
        assert set(cuda_samples["cu_count"]) == {8, 16, 32, 64, 104, 132}
        assert set(cuda_samples["engine_mhz_observed"]) == {990, 1980, 1500}
        throttled = cuda_samples[cuda_samples["throttled"]]
        assert set(throttled["cap_w"]) == {300}
        assert set(throttled["engine_mhz"]) == {1980}

    def test_a_table_for_each_power_limit(self, cuda_samples: pd.DataFrame, tmp_path: Path) -> None:
        paths = recording.write_tables(tmp_path, cuda_samples, CUDA)
        assert [path.name for path in paths] == ["measurements-300w.csv", "measurements-700w.csv"]
        data = read(paths[0])
        assert data.device == "h200"
        assert data.grid.shape == (6, 2, 1)
        assert len(read_table(paths[0])) == 6 * 2 * 2
        assert data.metadata["cap_w"] == 300
        with pytest.warns(DataWarning, match="12 of 48 samples ran more than 2 % off"):
            recording.warn_of_samples(cuda_samples, CUDA)

    def test_counters_stand_at_all_units_and_the_highest_clocks(
        self, cuda_samples: pd.DataFrame
    ) -> None:
        counted = recording.with_counters(cuda_samples, {ENTRY.name: {"Wavefronts": 7.0}})
        table = recording.to_table(counted.drop(columns="cap_w"), CUDA)
        there = ~np.isnan(table.numbers["Wavefronts"])
        assert set(table.numbers["cu_count"][there]) == {132}
        assert set(table.numbers["engine_mhz"][there]) == {1980}
        assert table.metadata["counter_tool"] == "ncu"


class TestHip:
    @pytest.mark.parametrize(("suite", "time_ms"), [("small", 3.0), ("micro", 2.0)])
    def test_the_time_is_the_median_and_of_micro_benchmarks_the_least(
        self, play_back: PlayBack, tmp_path: Path, suite: str, time_ms: float
    ) -> None:
        plan = replace(HIP, suite=suite, cu_counts=(104,))
        play_back(plan, lambda _: {"time": 1.0, "times": [9.0, 2.0, 3.0], "amdsmi_power": 200.0})
        assert recording.samples(tmp_path, plan)["time_ms"].tolist() == [time_ms]

    def test_without_power_of_any_row_there_is_no_column(
        self, play_back: PlayBack, tmp_path: Path
    ) -> None:
        plan = replace(HIP, device=replace(MI210, name="Made", sensors=""), power_s=0.0)
        play_back(plan, lambda _: {"time": 1.0, "times": [1.0, 1.0]})
        samples = recording.samples(tmp_path, plan)
        with (
            pytest.warns(
                DataWarning, match="neither power nor clocks were observed: amdsmi is not"
            ),
            pytest.warns(
                DataWarning, match="'made' is not in the device table, so 'bottleneck' do"
            ),
        ):
            recording.warn_of_samples(samples, plan)
        table = recording.to_table(samples.drop(columns="cap_w"), plan)
        assert "power_w" not in table.numbers
        assert table.numbers["engine_mhz"][0] == 1700  # the highest, as the driver says
        assert table.metadata["unknown_clocks"] == ["engine_mhz", "memory_mhz"]


def observed(observer: Any, about: SimpleNamespace) -> dict[str, float]:
    """What kernel_tuner's own observer reads while a kernel of 2 ms runs in a loop."""
    observer.register_device(about)
    window = observer.continuous_observer
    window.warmup_time = 0.0
    window.results = {"time": 2.0}
    window.before_start()
    window.after_start()
    for _ in range(1000):
        window.during()
    window.after_finish()
    return readings({"time": 2.0, **window.get_results()})


def test_amd_smi(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 mJ in 10 us are 200 W; its clocks are in Hz."""
    counted = itertools.count()
    kinds = SimpleNamespace(GFX=1.7e9, MEM=1.6e9, HOTSPOT=60, CURRENT=0)
    smi = SimpleNamespace(
        amdsmi_init=int, amdsmi_get_processor_handles=lambda: ["board"],
        amdsmi_get_gpu_device_uuid=lambda _: "abc", amdsmi_get_gpu_bdf_id=lambda _: 0x100,
        amdsmi_get_temp_metric=lambda _, kind, __: kind,
        amdsmi_get_clk_freq=lambda _, kind: {"frequency": [0, kind], "current": 1},
        amdsmi_get_energy_count=lambda _: {
            "energy_accumulator": 1000 * (n := next(counted)), "counter_resolution": 2.0,
            "timestamp": 10_000 * n,
        },
        AmdSmiClkType=kinds, AmdSmiTemperatureType=kinds, AmdSmiTemperatureMetric=kinds,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "amdsmi", smi)
    monkeypatch.delitem(sys.modules, "kernel_tuner.observers.amd", raising=False)
    place = {"pci_domain_id": 0, "pci_bus_id": 1, "pci_device_id": 0}
    [observer] = measuring._sensors(MI210, 0.01)
    assert observed(observer, SimpleNamespace(env={"uuid": "abc", **place})) == {
        "power_w": pytest.approx(200), "engine_mhz_observed": 1700,
        "memory_mhz_observed": 1600, "temperature_c": 60,
    }  # fmt: skip
    [observer] = measuring._sensors(MI210, 0.0)
    assert not observer.use_continuous_observer


def test_a_jetson(monkeypatch: pytest.MonkeyPatch) -> None:
    """The GPU's rail and clock."""
    rail = SimpleNamespace(gr_clock=1_300_500_000, read_gpu_power=lambda: 7.5)
    monkeypatch.setattr("kernel_tuner.observers.tegra.tegra", lambda **_: rail)
    [observer] = measuring._sensors(replace(H200, sensors="tegra"), 0.01)
    found = observed(observer, SimpleNamespace(units={}))
    assert (found["power_w"], found["engine_mhz_observed"]) == (7.5, 1300.5)


def test_a_kernel_without_power_is_left_out(
    play_back: PlayBack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another has it; where none has it, all stay."""
    play_back(HIP, lambda _: {"time": 1.0, "times": [1.0, 1.0]})
    silent = recording.samples(tmp_path, HIP)
    assert silent["power_w"].isna().all()
    with pytest.warns(DataWarning, match=r"^no power: the sensor \(amdsmi\) gave none$"):
        recording.warn_of_samples(silent, HIP)
    other = replace(ENTRY, name="other")
    plan = replace(HIP, entries=(ENTRY, other))
    for cu_count in HIP.cu_counts:
        text = cache_file(tmp_path, ENTRY.name, cu_count).read_text()
        powered = text.replace('"time": 1.0', '"time": 1.0, "amdsmi_power": 200.0')
        cache_file(tmp_path, "other", cu_count).write_text(powered)
    with pytest.warns(DataWarning, match=r"left out, .*amdsmi.* gave no power: copy_1m"):
        rows = recording.samples(tmp_path, plan)
    assert rows["kernel"].tolist() == ["other", "other"]


def test_a_folder_is_of_one_plan(tmp_path: Path) -> None:
    record = recording.begin(tmp_path, HIP, resume=False)
    with refused("holds a collection with another power_s, kernels .*; ask for the same again"):
        recording.begin(tmp_path, replace(HIP, power_s=2.0, entries=()), resume=True)
    recording.finish(tmp_path, record)
    with refused("holds a finished collection; continue with resume=True, or name another folder"):
        recording.begin(tmp_path, HIP, resume=False)


def test_a_failed_configuration_fails_the_kernel(play_back: PlayBack, tmp_path: Path) -> None:
    """kernel_tuner's word for it stands in the cache; its rows have no times."""
    with pytest.raises(InputError, match="RuntimeFailedConfig"):
        play_back(HIP, lambda _: {"__error__": "RuntimeFailedConfig"})
    with pytest.raises(InputError, match="no kernel could be measured"):
        recording.samples(tmp_path, HIP)
