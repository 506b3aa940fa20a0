"""Micro-benchmarks' analysis: a simulated GPU is recovered from times made with it, with noise."""

import json

import pandas as pd
import pytest
from synthetic.micro_benchmarks import CLOCKS, GPU, PROBES, SAMPLES, true_cycles, true_unit
from synthetic.warps import dram

from mlscale.data.devices import load_device
from mlscale.errors import InputError
from mlscale.papers.micro_benchmarks import compute_unit, measured_cycles, wang_chu_row
from mlscale.papers.wang_chu_inputs import GpuParameters, gpu_of_row

CYCLES, _ = measured_cycles(pd.concat(SAMPLES), PROBES)


class TestRecovered:
    @pytest.mark.parametrize("place", range(len(CLOCKS)))
    def test_latencies_and_delays(self, place: int) -> None:
        for name, truth in true_cycles(*CLOCKS[place]).items():
            assert CYCLES.loc[CLOCKS[place], name] == pytest.approx(truth, rel=0.05), name

    @pytest.mark.parametrize("place", range(len(CLOCKS)))
    def test_the_unit_of_the_survey(self, place: int) -> None:
        """The service time of the memory too, which 32 warps of one CU do not show."""
        truth = true_unit(*CLOCKS[place])
        found = compute_unit(*measured_cycles(SAMPLES[place], PROBES), GPU.wave_size, 4)
        for name in ("arithmetic", "memory"):
            for what in (f"{name}_latency_cycles", f"{name}_per_cycle"):
                assert getattr(found, what) == pytest.approx(getattr(truth, what), rel=0.05), what

    def test_the_parameters_of_wang_and_chu(self) -> None:
        """By what they say at each setting; a slope alone is worth less than its line."""
        found = entry()
        for engine, memory in CLOCKS:
            truth = true_cycles(engine, memory)
            expected = truth["dram_latency"], truth["dram_delay"]
            assert dram(found, engine, memory) == pytest.approx(expected, rel=0.05)
        assert "Measured at 4 settings" in found.note

    def test_one_setting_gives_constants_that_hold_there(self) -> None:
        device = load_device("gtx980")
        row = wang_chu_row(CYCLES[:1], device)
        assert row["dram_latency_offset"] == CYCLES["dram_latency"].iloc[0]
        assert "One ratio of clocks" in row["note"]
        assert "One memory clock" in row["note"]


def entry() -> GpuParameters:
    device = load_device("gtx980")
    return gpu_of_row(device, json.loads(json.dumps(wang_chu_row(CYCLES, device))))


class TestRefused:
    def test_a_longer_launch_that_is_no_slower(self) -> None:
        with pytest.raises(InputError, match="the longer of two launches was not the slower"):
            measured_cycles(SAMPLES[0].assign(time_ms=1.0), PROBES)

    def test_a_probe_without_a_time(self) -> None:
        with pytest.raises(InputError, match="micro-benchmarks failed: dram_latency"):
            measured_cycles(SAMPLES[0][20:], PROBES)
