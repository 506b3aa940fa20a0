"""Inputs per warp from nvprof counters: one kernel by hand, the fallbacks, and bad counters."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic.tidy import refused
from synthetic.warps import GTX_980, KERNEL, derive

from mlscale.errors import InputError
from mlscale.papers.wang_chu_inputs import COUNTERS, WarpInputs, missing_counters, require_counters

PER_REQUEST = [name for name in KERNEL if name.endswith("per_request")]


def without(*names: str) -> dict[str, float]:
    return {name: value for name, value in KERNEL.items() if name not in names}


def test_by_hand() -> None:
    found = derive(KERNEL)
    assert found.warps == 100
    assert found.resident_warps == 32
    assert found.global_transactions == 16
    assert found.l2_hit_rate == 0.5
    assert found.memory_instructions == 3
    assert found.shared_transactions == 10
    assert found.compute_instructions == 42
    assert found.fp64_instructions == 0
    assert found.flags == ((),)


def test_a_row_of_a_frame_has_numpy_numbers() -> None:
    """Whole numbers and fractions; what is text is no counter."""
    row = {name: np.int64(value) if value > 1 else value for name, value in KERNEL.items()}
    assert WarpInputs.from_row({"kernel": "k", **row}, GTX_980).compute_instructions == 42


def test_arrays_of_other_lengths_are_no_kernels() -> None:
    arrays = {field.name: np.ones(2) for field in fields(WarpInputs) if field.name != "flags"}
    assert WarpInputs.from_numbers(**arrays).flags == ((), ())
    with refused("the inputs are of different numbers of kernels"):
        WarpInputs.from_numbers(**{**arrays, "warps": np.ones(3)})


def test_fp64_instructions_are_counted_by_thread() -> None:
    """By hand: 32 threads a warp; 6400 / (32 x 100) = 2 of 50 instructions."""
    found = derive({**KERNEL, "inst_fp_64": 6400.0})
    assert found.fp64_instructions == 2
    assert len(found.flags[0]) == 1
    assert "FP64, outside the model's scope" in found.flags[0][0]


def test_a_trace_of_fp64_is_not_worth_a_flag() -> None:
    """By hand: 1 % of 50 instructions is 0.5 a warp, 1600 a launch."""
    assert derive({**KERNEL, "inst_fp_64": 1600.0}).flags == ((),)
    assert derive({**KERNEL, "inst_fp_64": 1632.0}).flags != ((),)


@pytest.mark.parametrize(("texture", "flagged"), [(1600.0, False), (1690.0, True)])
def test_texture_use(texture: float, flagged: bool) -> None:
    """More than 1.05 texture-cache transactions to a global load cannot be global loads alone."""
    found = derive({**KERNEL, "tex_cache_transactions": texture})
    assert any("textures" in flag for flag in found.flags[0]) == flagged


def test_fallbacks_of_the_49_settings() -> None:
    """docs/equations.md, 1.1: o = G / 4, and shared transactions count as instructions."""
    found = derive(without(*PER_REQUEST, "inst_fp_64", "tex_cache_transactions"))
    assert found.memory_instructions == 4
    assert found.compute_instructions == 50 - 4 - 10
    assert found.fp64_instructions == 0
    assert len(found.flags[0]) == 4
    for needle in (
        "inst_fp_64",
        "tex_cache_transactions",
        "4 transactions per memory instruction",
        "shared_store_transactions_per_request: 1 transaction per shared-memory instruction",
    ):
        assert any(needle in flag for flag in found.flags[0])


def test_dram_transactions_that_never_passed_the_l2() -> None:
    with refused("counter 'l2_read_transactions': 0 and no L2 writes, but DRAM transactions"):
        derive({**KERNEL, "l2_read_transactions": 0.0, "l2_write_transactions": 0.0})


def test_warps_from_the_launch() -> None:
    """By hand: 10 workgroups of 100 threads are 40 warps."""
    launch = {**without("warps"), "workgroups": 10.0, "workgroup_size": 100.0}
    assert derive(launch).warps == 40


def test_a_missing_optional_counter_is_not_zero() -> None:
    flags = derive({**KERNEL, "inst_fp_64": np.nan}, KERNEL).flags
    assert any("no inst_fp_64" in flag for flag in flags[0])
    assert flags[1] == ()


def test_more_dram_than_l2_transactions_are_clipped() -> None:
    found = derive({**KERNEL, "dram_read_transactions": 2000.0}, KERNEL)
    assert found.l2_hit_rate.tolist() == [0, 0.5]
    assert "clipped" in found.flags[0][0]


def test_a_kernel_without_global_memory() -> None:
    """nvprof gives 0 transactions per request where there were none; a warp has one period."""
    memory = [name for name in KERNEL if name.startswith(("dram", "l2", "gld", "gst", "tex"))]
    found = derive({**KERNEL, **dict.fromkeys(memory, 0.0)})
    assert found.global_transactions == 0
    assert found.l2_hit_rate == 1
    assert found.memory_instructions == 1
    assert found.compute_instructions == 45
    assert found.flags == ((),)


def test_more_memory_than_other_instructions() -> None:
    """The counters can contradict each other: no negative compute."""
    assert derive({**KERNEL, "inst_per_warp": 5.0}).compute_instructions == 0


@given(
    scale=st.floats(0.01, 1e6),
    counts=st.lists(st.floats(1, 1e6), min_size=6, max_size=6),
    occupancy=st.floats(0.01, 1),
)
@settings(max_examples=50)
def test_inputs_are_per_warp(scale: float, counts: list[float], occupancy: float) -> None:
    """A launch of more warps, each alike, has the same inputs; all are in their range."""
    totals = dict(zip([name for name in COUNTERS if "transactions" in name], counts, strict=True))
    small = {**KERNEL, **totals, "achieved_occupancy": occupancy}
    small["shared_store_transactions_per_request"] = 1.0
    large = {
        name: value * scale if name == "warps" or name.endswith("_transactions") else value
        for name, value in small.items()
    }
    found, scaled = derive(small), derive(large)
    for name in ("resident_warps", "global_transactions", "l2_hit_rate", "memory_instructions"):
        assert getattr(scaled, name) == pytest.approx(getattr(found, name), rel=1e-9)
    assert scaled.compute_instructions == pytest.approx(found.compute_instructions, abs=1e-6)
    assert 0 <= found.l2_hit_rate <= 1
    assert found.memory_instructions >= 1
    assert found.compute_instructions >= 0


@pytest.mark.parametrize("name", COUNTERS)
def test_missing_counters_are_named(name: str) -> None:
    assert missing_counters(list(without(name))) == [name]
    with pytest.raises(InputError, match=f"^Wang and Chu's model needs .* no column '{name}'"):
        derive(without(name))


def test_all_missing_counters_are_named_in_one_line() -> None:
    with pytest.raises(InputError) as error:
        require_counters(("VALUBusy", "L2_read_transactions"))
    assert str(error.value).count("\n") == 0
    for name in COUNTERS:
        assert name in str(error.value)


def test_warps_are_not_missed_where_the_launch_is_known() -> None:
    assert missing_counters([*without("warps"), "workgroups", "workgroup_size"]) == []
    assert missing_counters([*without("warps"), "workgroups"]) == ["warps"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("achieved_occupancy", 0.0, "'achieved_occupancy': 0 is not above 0 and at most 1"),
        ("achieved_occupancy", 1.01, "'achieved_occupancy': 1.01 is not above 0 and at most 1"),
        ("achieved_occupancy", 85.0, "'achieved_occupancy': 85 is not above 0 and at most 1"),
        ("achieved_occupancy", np.nan, "'achieved_occupancy': is missing"),
        ("warps", 0.0, "'warps': 0 is 0; a kernel has one warp at least"),
        ("inst_per_warp", np.nan, "'inst_per_warp': is missing"),
        ("l2_read_transactions", -1.0, "'l2_read_transactions': -1 is not a count"),
        ("inst_fp_64", -1.0, "'inst_fp_64': -1 is not a count"),
        ("dram_read_transactions", np.inf, "'dram_read_transactions': inf is not a count"),
        (
            "gld_transactions_per_request",
            0.0,
            "'gld_transactions_per_request': 0 gives no requests for the transactions in 'gld",
        ),
        (
            "shared_load_transactions_per_request",
            np.nan,
            "'shared_load_transactions_per_request': gives no requests",
        ),
    ],
)
def test_bad_counters(name: str, value: float, message: str) -> None:
    with pytest.raises(InputError) as error:
        derive(KERNEL, {**KERNEL, name: value})
    assert str(error.value).startswith(f"kernel 'k1', counter {message}")
    assert "\n" not in str(error.value)


def test_several_bad_kernels_are_counted() -> None:
    bad = {**KERNEL, "achieved_occupancy": 0.0}
    with pytest.raises(InputError, match=r"kernel 'k0'.* \(and 1 more kernels\)$"):
        derive(bad, KERNEL, bad)
