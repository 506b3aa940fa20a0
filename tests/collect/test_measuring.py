"""The CUDA and HIP paths, played back by kernel_tuner's simulation mode from caches made by hand.

No device is there: what is tested is what kernel_tuner is asked for (its parameters, in its order),
and what becomes of its answers. The numbers of the caches are made; what is expected of them is
computed by hand beside each test.
"""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlscale import read
from mlscale.collect import recording
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan
from mlscale.collect.suite import SUITES
from mlscale.data.tables import read_table

pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")
from mlscale.collect.measuring import measure, parameters

H200 = DeviceInfo(
    "cuda", "NVIDIA H200", "abc", 132, 1980.0, 3201.0, 50 << 20, 32, 64,
    cu_axis="green contexts", sensors="nvml",
)  # fmt: skip
MI210 = DeviceInfo(
    "hip", "AMD Instinct MI210", "def", 104, 1700.0, 1600.0, 8 << 20, 64, 32,
    cu_axis="CU mask", sensors="amdsmi",
)  # fmt: skip
ENTRY = next(entry for entry in SUITES["small"] if entry.name == "copy_1m")
GRANTED = {8: 8, 60: 64, 132: 132}  # whole groups of 8, as the driver rounds up


def cached(folder: Path, plan: Plan, info: DeviceInfo, answer: Any) -> list[list[Any]]:
    """Play back a cache for each job; what `measure` returns. answer: of a configuration."""
    (folder / "cache").mkdir(exist_ok=True)
    results = []
    for job in plan.jobs(info):
        varied = parameters(ENTRY, job, info)
        entries = {}
        for values in itertools.product(*varied.values()):
            given = dict(zip(varied, values, strict=True))
            entries[",".join(map(str, values))] = {**given, **answer(given)}
        document = {
            "device_name": info.name,
            "kernel_name": ENTRY.name,
            "problem_size": ENTRY.threads,
            "tune_params_keys": list(varied),
            "tune_params": varied,
            "objective": "time",
            "cache": entries,
        }
        path = folder / "cache" / f"{ENTRY.name}-{job['cu_counts'][-1]}.json"
        path.write_text(json.dumps(document))
        results.append(measure(ENTRY, json.loads(json.dumps(job)), path, simulation=True))
    return results


@pytest.fixture
def cuda_rows(tmp_path: Path) -> list[dict[str, Any]]:
    """An H200 at three CU counts, two clocks and two power limits, twice each."""
    plan = Plan("small", (ENTRY.name,), tuple(GRANTED), (990, 1980), (3201,), (300, 700), 2, 1.0)

    def answer(given: dict[str, Any]) -> dict[str, Any]:
        asked = round(given["cuda_sm_percentage"] * 1.32)
        clock = given["nvml_gr_clock"]
        capped = given["nvml_pwr_limit"] == 300 and clock == 1980
        times = [1e5 / GRANTED[asked] / clock * factor for factor in (1.0, 1.1, 0.9)]
        return {
            "time": float(np.mean(times)), "times": times, "cu_count_observed": GRANTED[asked],
            "nvml_power": 250.0, "nvml_energy": 1.0, "core_freq": 300.0, "mem_freq": 3201.0,
            "pwr_core_freq": 1500.0 if capped else float(clock), "temperature": 50.0,
        }  # fmt: skip

    [results] = cached(tmp_path, plan, H200, answer)
    assert len(results) == plan.configurations * plan.repeat == 3 * 2 * 1 * 2 * 2
    return recording.rows_of(tmp_path, plan, H200)


class TestCuda:
    def test_what_is_asked_of_kernel_tuner(self) -> None:
        """Shares of 132 SMs in %: 8/132 and 132/132."""
        plan = Plan("small", ("copy_1m",), (8, 132), (990,), (3201,), (700,), 2)
        [job] = plan.jobs(H200)
        assert parameters(ENTRY, job, H200) == {
            "block_size_x": [256],
            "repetition": [0, 1],
            "cuda_sm_percentage": [6.0606, 100.0],
            "nvml_gr_clock": [990],
            "nvml_mem_clock": [3201],
            "nvml_pwr_limit": [700],
        }
        assert max(1, round(132 * 6.0606 / 100)) == 8  # as kernel_tuner counts back

    def test_nothing_is_set_that_was_not_asked_for(self) -> None:
        [job] = Plan("small", ("copy_1m",), (132,)).jobs(H200)
        assert not [n for n in parameters(ENTRY, job, H200) if n.startswith("nvml_")]

    def test_rows_are_at_what_the_driver_granted(self, cuda_rows: list[dict[str, Any]]) -> None:
        """64 of 60 asked for; the median of 1, 1.1 and 0.9 is 1: 1e5 / 64 / 990 ms."""
        row = next(r for r in cuda_rows if r["cu_count"] == 64 and r["engine_mhz"] == 990)
        assert row["time_ms"] == pytest.approx(1e5 / 64 / 990, rel=1e-6)
        assert row["power_w"] == 250
        assert {r["cu_count"] for r in cuda_rows} == {8, 64, 132}

    def test_the_clock_is_that_under_load_and_off_it_is_throttled(
        self, cuda_rows: list[dict[str, Any]]
    ) -> None:
        """1500 of 1980 MHz under the limit of 300 W; else the clock that was set."""
        assert {r["engine_mhz_observed"] for r in cuda_rows} == {990, 1980, 1500}
        throttled = {(r["cap_w"], r["engine_mhz"]) for r in cuda_rows if r["throttled"]}
        assert throttled == {(300, 1980)}

    def test_a_table_for_each_power_limit(
        self, cuda_rows: list[dict[str, Any]], tmp_path: Path
    ) -> None:
        plan = Plan("small", (ENTRY.name,), tuple(GRANTED), power_s=1.0)
        paths = recording.write_tables(tmp_path, cuda_rows, plan, H200, {}, {})
        assert [path.name for path in paths] == ["measurements-300w.csv", "measurements-700w.csv"]
        data = read(paths[0])
        assert data.device == "h200"
        assert data.grid.shape == (3, 2, 1)
        assert len(read_table(paths[0])) == 3 * 2 * 2
        assert data.metadata["cap_w"] == 300
        [note] = recording.notes(cuda_rows, plan, H200, {})
        assert "6 of 24 samples ran more than 2% off" in note

    def test_counters_stand_at_all_units_and_the_highest_clocks(
        self, cuda_rows: list[dict[str, Any]]
    ) -> None:
        plan = Plan("small", (ENTRY.name,), tuple(GRANTED), power_s=1.0)
        table = recording.to_table(cuda_rows, plan, H200, {}, {ENTRY.name: {"Wavefronts": 7.0}})
        there = ~np.isnan(table.numbers["Wavefronts"])
        assert set(table.numbers["cu_count"][there]) == {132}
        assert set(table.numbers["engine_mhz"][there]) == {1980}
        assert table.metadata["counter_tool"] == "ncu"


class TestHip:
    def test_amd_smi_counts_in_hz_and_a_process_has_a_mask(self, tmp_path: Path) -> None:
        """1.7e9 Hz is 1700 MHz; CUs 0 to 51 are 52 of them."""
        plan = Plan("small", (ENTRY.name,), (52, 104), power_s=1.0)

        def answer(given: dict[str, Any]) -> dict[str, Any]:
            return {
                "time": 1.0, "times": [104 / given["cu_count"]] * 3, "amdsmi_power": 200.0,
                "amdsmi_core_freq": 1.7e9, "amdsmi_mem_freq": 1.6e9, "amdsmi_temperature": 60.0,
            }  # fmt: skip

        assert len(cached(tmp_path, plan, MI210, answer)) == 2
        rows = recording.rows_of(tmp_path, plan, MI210)
        assert [(r["cu_count"], r["time_ms"]) for r in rows] == [(52, 2.0), (104, 1.0)]
        assert {(r["engine_mhz"], r["memory_mhz"], r["power_w"]) for r in rows} == {
            (1700, 1600, 200)
        }
        assert MI210.environment(52) == {"HSA_CU_MASK": "0:0-51"}
        assert MI210.environment(104) == {}

    def test_without_power_of_any_row_there_is_no_column(self, tmp_path: Path) -> None:
        plan = Plan("small", (ENTRY.name,), (104,))
        info = replace(MI210, sensors="")
        cached(tmp_path, plan, info, lambda _: {"time": 1.0, "times": [1.0, 1.0]})
        rows = recording.rows_of(tmp_path, plan, info)
        table = recording.to_table(rows, plan, info, {}, {})
        assert "power_w" not in table.numbers
        assert table.numbers["engine_mhz"][0] == 1700  # the highest, as the driver says


def test_a_failed_configuration_leaves_the_kernel_out(tmp_path: Path) -> None:
    """kernel_tuner's word for it stands in the cache; its rows have no times."""
    plan = Plan("small", (ENTRY.name,), (104,))
    info = replace(MI210, sensors="")
    [[result]] = cached(tmp_path, plan, info, lambda _: {"__error__": "RuntimeFailedConfig"})
    assert "__error__" in result
    assert recording.rows_of(tmp_path, plan, info) == []
