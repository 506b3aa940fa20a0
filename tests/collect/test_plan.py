"""The plan: counts and clocks are by hand from the rules that the docstrings give."""

from pathlib import Path

import pytest

from mlscale.collect.caches import mend, samples
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan, cu_counts, nearest_clocks
from mlscale.errors import InputError

GPU = DeviceInfo(
    "cuda", "made", "u", 132, 0, 0, 1, 32, 64, cu_axis="green contexts", sensors="nvml"
)
CPU = DeviceInfo("opencl", "made", "u", 2, 0, 0, 1, 32, 64, cu_axis="threads")
FIXED = DeviceInfo("opencl", "made", "u", 16, 0, 0, 1, 32, 64)


class TestCounts:
    def test_eight_evenly_spaced(self) -> None:
        """Multiples of 132 / 8 = 16.5, to the nearest even where halves meet."""
        assert cu_counts(None, GPU) == (16, 33, 50, 66, 82, 99, 116, 132)
        assert cu_counts(None, CPU) == (1, 2)

    def test_asked_for(self) -> None:
        assert cu_counts((132, 8, 8), GPU) == (8, 132)
        with pytest.raises(InputError, match="--cu-counts 133: made has 132 CUs"):
            cu_counts((133,), GPU)

    def test_a_device_that_cannot(self) -> None:
        assert cu_counts(None, FIXED) == (16,)
        with pytest.raises(InputError, match="cannot run on fewer than all 16 CUs"):
            cu_counts((8,), FIXED)

    def test_a_process_for_each_count_but_for_green_contexts(self) -> None:
        plan = Plan("small", ("copy_1m",), (1, 2))
        assert [job["cu_counts"] for job in plan.jobs(CPU)] == [(1,), (2,)]
        assert [job["cu_counts"] for job in plan.jobs(GPU)] == [(1, 2)]
        assert CPU.environment(1) == {"POCL_MAX_PTHREAD_COUNT": "1"}


OFFERED = {3201: [345, 990, 1980], 1600: [345, 990]}


class TestClocks:
    def test_the_nearest_that_every_memory_clock_has(self) -> None:
        assert nearest_clocks((1900,), (), OFFERED) == ((1980,), ())
        assert nearest_clocks((1900, 300), (3000, 1600), OFFERED) == ((345, 990), (1600, 3201))

    def test_none(self) -> None:
        with pytest.raises(InputError, match="lists no clocks"):
            nearest_clocks((1900,), (), {})


def test_samples_and_seconds() -> None:
    """2 kernels x 2 counts x 3 clocks x 2 times; 2 x 1 s + 24 x (0.6 + 1) s."""
    plan = Plan("small", ("a", "b"), (1, 2), (1, 2, 3), repeat=2, power_s=1.0)
    assert (plan.configurations, plan.samples) == (6, 24)
    assert plan.seconds == pytest.approx(40.4)


HEADER = '{\n"device_name": "d",\n"cache": {'


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (HEADER + '\n"1": {"time": 1},\n"2": {"time": 2}}\n}', 2),
        (HEADER + '\n"1": {"time": 1},\n"2": {"time": 2},', 2),
        (HEADER + '\n"1": {"time": 1},\n"2": {"ti', 1),
        (HEADER + '\n"1": {"ti', 0),
        (HEADER, 0),
        ('{\n"device_na', None),
    ],
)
def test_a_cache_that_a_kill_cut_off(tmp_path: Path, text: str, left: int | None) -> None:
    """kernel_tuner writes a line for each configuration, and closes the file at the end."""
    path = tmp_path / "c.json"
    path.write_text(text)
    mend(path)
    assert path.exists() == (left is not None)
    assert len(samples(path)) == (left or 0)
