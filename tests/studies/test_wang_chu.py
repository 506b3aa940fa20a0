"""Errors of Wang and Chu's model on a table whose times are the model's own, but for one."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic.warps import BASE, GRID, measurements

from mlscale.data.measurements import Measurements
from mlscale.papers.wang_chu_gpus import load_gpu
from mlscale.studies.wang_chu import table_errors


def one_time_doubled() -> Measurements:
    """The first kernel took twice the model's time at 400 / 400 MHz."""
    data = measurements()
    samples = data.time_samples.copy()
    samples[0, 0, 0, 0, 0] *= 2
    return replace(data, time_samples=samples)


def test_rows_by_kernel() -> None:
    # By hand: half the measured time is an error of -50 %, one of nine configurations.
    first, second = (
        table_errors(one_time_doubled(), BASE, "absolute").by_kernel().to_dict("records")
    )
    assert (first["kernel"], second["kernel"]) == ("memory", "compute")
    assert first["mape"] == pytest.approx(50 / 9)
    assert first["bias_percent"] == pytest.approx(-50 / 9)
    assert first["worst_percent"] == pytest.approx(-50)
    assert second["mape"] == pytest.approx(0, abs=1e-9)
    assert (first["case_at_base"], second["case_at_base"]) == (11, 9)
    # By hand: 508 compute cycles a warp against at most 16 x (0.5 + 0.5 x 25.5) = 212 of memory.
    assert second["other_cases"] == []


def test_rows_by_configuration() -> None:
    frame = table_errors(one_time_doubled(), BASE, "absolute").by_configuration()
    assert len(frame) == 2 * GRID.size
    assert list(frame["engine_mhz"][:4]) == [400, 400, 400, 700]
    assert list(frame["memory_mhz"][:4]) == [400, 700, 1000, 400]
    assert frame["error_percent"][0] == pytest.approx(-50)
    assert np.abs(frame["error_percent"][1:]).max() < 1e-9
    assert frame["time_ms"][0] == pytest.approx(2 * frame["predicted_ms"][0])


def test_by_max_overlap_the_case_is_the_busier_one() -> None:
    # By hand: as above, the CU of the second kernel is always busier, and memory of the first.
    errors = table_errors(one_time_doubled(), BASE, "max-overlap")
    assert errors.base_case.tolist() == [11, 9]


def test_the_largest_error() -> None:
    # By hand: half of the doubled time is the only error, of 18 predictions.
    errors = table_errors(one_time_doubled(), BASE, "absolute")
    percent, kernel, config = errors.largest
    assert percent == pytest.approx(50)
    assert (kernel, config.engine_mhz, config.memory_mhz) == ("memory", 400, 400)
    assert errors.within_10 == pytest.approx(100 * 17 / 18)


def test_instructions_by_kind() -> None:
    # By hand, synthetic/warps.py: 42 others, 3 of global memory, 10 shared transactions.
    counts = table_errors(one_time_doubled(), BASE).instructions(load_gpu("gtx980"))
    assert {name: count[0] for name, count in counts.items()} == {
        "compute": 42,
        "FP64": 0,
        "global memory": 3,
        "shared memory, by transaction": 10,
    }


def test_relative_errors_leave_out_the_base() -> None:
    # By hand: an error of 50 % alone; the base is met.
    errors = table_errors(one_time_doubled(), BASE)
    assert errors.errors.shape == (2, 8)
    expected = [[50] + 7 * [0], 8 * [0]]  # 400 / 400 MHz comes first
    np.testing.assert_allclose(errors.errors, expected, atol=1e-9)
    assert errors.summary.worst_kernel == "memory"
