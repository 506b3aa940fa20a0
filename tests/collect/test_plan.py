"""The plan: counts are by hand from the rules that the docstrings give."""

import json
from dataclasses import replace

import pytest

from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan, cu_counts, select
from mlscale.errors import InputError

GPU = DeviceInfo("hip", "made", "u", "d", 132, 1, 32, cu_axis="CU mask")
CPU = DeviceInfo("opencl", "made", "u", "d", 2, 1, 32, cu_axis="threads")
FIXED = DeviceInfo("opencl", "made", "u", "d", 16, 1, 32)


class TestCounts:
    def test_eight_evenly_spaced(self) -> None:
        """Multiples of 132 / 8 = 16.5, to the nearest even where halves meet."""
        assert cu_counts(None, GPU) == (16, 33, 50, 66, 82, 99, 116, 132)
        assert cu_counts(None, CPU) == (1, 2)

    def test_asked_for(self) -> None:
        assert cu_counts((8, 132), GPU) == (8, 132)
        with pytest.raises(InputError, match="cu_counts=133: made has 132 CUs"):
            cu_counts((133,), GPU)

    def test_a_device_that_cannot(self) -> None:
        assert cu_counts(None, FIXED) == (16,)
        with pytest.raises(InputError, match="cannot run on fewer than all 16 CUs"):
            cu_counts((8,), FIXED)


def test_what_tells_a_process_its_count() -> None:
    assert CPU.environment(1) == {"POCL_MAX_PTHREAD_COUNT": "1"}
    seen_by = {"OCL_ICD_VENDORS": "/etc/OpenCL/vendors"}
    assert replace(FIXED, seen_by=seen_by).environment(16) == seen_by
    assert GPU.environment(8) == {"HSA_CU_MASK": "0:0-7"}
    assert GPU.environment(132) == {}


def test_configurations() -> None:
    """2 counts x 3 clocks."""
    entries = select("full", ["copy_4m", "copy_16m"], "hip")
    settings = {"engine_mhz": (1, 2, 3), "memory_mhz": (), "cap_w": ()}
    plan = Plan("full", GPU, entries, (1, 2), settings, repeat=2, power_s=1.0)
    assert plan.configurations == 6
    assert json.loads(json.dumps(plan.record())) == plan.record()
    assert plan.record()["kernels"] == ["copy_4m", "copy_16m"]
    assert plan.record()["device"]["name"] == "made"


def test_the_long_chase_goes_past_an_l2_cache() -> None:
    """A line of 128 bytes for each load: more than twice the 50 MB of an H100's cache."""
    [chase] = select("full", ["chase_128m"], "cuda")
    assert chase.case.keywords["steps"] * 128 > 2 * 50e6  # type: ignore[attr-defined]
