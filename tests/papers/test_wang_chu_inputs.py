"""Inputs per warp from nvprof counters: one kernel by hand, the fallbacks, and bad counters."""

from dataclasses import fields

import numpy as np
import pytest
from synthetic.tidy import refused
from synthetic.warps import GTX_980, KERNEL, derive

from mlscale.papers.wang_chu_inputs import COUNTERS, WarpInputs, missing_counters, require_counters

PER_REQUEST = [name for name in KERNEL if name.endswith("per_request")]
MEMORY = [name for name in KERNEL if name.startswith(("dram", "l2", "gld", "gst", "tex"))]
BY_HAND = {
    "warps": 100,
    "resident_warps": 32,
    "global_transactions": 16,
    "l2_hit_rate": 0.5,
    "memory_instructions": 3,
    "shared_transactions": 10,
    "compute_instructions": 42,
    "fp64_instructions": 0,
}


def without(*names: str) -> dict[str, float]:
    return {name: value for name, value in KERNEL.items() if name not in names}


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        (KERNEL, BY_HAND),
        # 10 workgroups of 100 threads are 40 warps.
        ({**without("warps"), "workgroups": 10.0, "workgroup_size": 100.0}, {"warps": 40}),
        # By the thread: 6400 / (32 x 100) = 2 of 50 instructions.
        ({**KERNEL, "inst_fp_64": 6400.0}, {"fp64_instructions": 2}),
        # nvprof gives 0 transactions per request where there were none; a warp has one period.
        (
            {**KERNEL, **dict.fromkeys(MEMORY, 0.0)},
            {"global_transactions": 0, "l2_hit_rate": 1, "memory_instructions": 1,
             "compute_instructions": 45},
        ),
        # The counters can contradict each other: no negative compute.
        ({**KERNEL, "inst_per_warp": 5.0}, {"compute_instructions": 0}),
        # docs/papers/equations.md, 1.1: o = G / 4, and shared transactions count as instructions.
        (
            without(*PER_REQUEST, "inst_fp_64", "tex_cache_transactions"),
            {"memory_instructions": 4, "compute_instructions": 50 - 4 - 10},
        ),
    ],
)  # fmt: skip
def test_by_hand(counters: dict[str, float], expected: dict[str, float]) -> None:
    found = derive(counters)
    for name, value in expected.items():
        assert getattr(found, name) == value, name


def test_a_row_of_a_frame_has_numpy_numbers() -> None:
    """Whole numbers and fractions; what is text is no counter."""
    row = {name: np.int64(value) if value > 1 else value for name, value in KERNEL.items()}
    assert WarpInputs.from_row({"kernel": "k", **row}, GTX_980).compute_instructions == 42


def test_arrays_of_other_lengths_are_no_kernels() -> None:
    arrays = {field.name: np.ones(2) for field in fields(WarpInputs) if field.name != "flags"}
    assert WarpInputs.from_numbers(**arrays).flags == ((), ())
    with refused("the inputs are of different numbers of kernels"):
        WarpInputs.from_numbers(**{**arrays, "warps": np.ones(3)})


@pytest.mark.parametrize(
    ("counters", "flags"),
    [
        (KERNEL, []),
        # By hand: 1 % of 50 instructions is 0.5 a warp, 1600 a launch.
        ({**KERNEL, "inst_fp_64": 1600.0}, []),
        ({**KERNEL, "inst_fp_64": 1632.0}, ["FP64, outside the model's scope"]),
        # More than 1.05 texture-cache transactions to a global load are not global loads alone.
        ({**KERNEL, "tex_cache_transactions": 1600.0}, []),
        ({**KERNEL, "tex_cache_transactions": 1690.0}, ["textures"]),
        ({**KERNEL, "dram_read_transactions": 2000.0}, ["clipped"]),
        ({**KERNEL, "inst_fp_64": np.nan}, ["no inst_fp_64"]),
        (
            without(*PER_REQUEST, "tex_cache_transactions"),
            [
                "no tex_cache_transactions",
                "4 transactions per memory instruction",
                "shared_store_transactions_per_request: 1 transaction per shared-memory",
            ],
        ),
    ],
)
def test_flags(counters: dict[str, float], flags: list[str]) -> None:
    [found] = derive(counters).flags
    assert len(found) == len(flags)
    for words, flag in zip(flags, found, strict=True):
        assert words in flag.text


def test_missing_counters_are_named_in_one_line() -> None:
    """All of them; and warps are not missed where the launch is known."""
    for name in COUNTERS:
        assert missing_counters(list(without(name))) == [name]
    assert missing_counters([*without("warps"), "workgroups", "workgroup_size"]) == []
    assert missing_counters([*without("warps"), "workgroups"]) == ["warps"]
    with refused(f"^Wang and Chu's model needs .*{'.*'.join(COUNTERS)}"):
        require_counters(("VALUBusy", "L2_read_transactions"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"achieved_occupancy": 0.0}, "'achieved_occupancy': 0 is not above 0 and at most 1"),
        ({"achieved_occupancy": 85.0}, "'achieved_occupancy': 85 is not above 0 and at most 1"),
        ({"warps": 0.0}, "'warps': 0 is 0; a kernel has at least one warp"),
        ({"inst_per_warp": np.nan}, "'inst_per_warp': is missing"),
        ({"inst_fp_64": -1.0}, "'inst_fp_64': -1 is not a count"),
        ({"dram_read_transactions": np.inf}, "'dram_read_transactions': inf is not a count"),
        ({"gld_transactions_per_request": 0.0}, "0 gives no requests for the transactions in 'gl"),
        (
            {"l2_read_transactions": 0.0, "l2_write_transactions": 0.0},
            "'l2_read_transactions': 0 and no L2 writes, but DRAM transactions",
        ),
    ],
)
def test_bad_counters(changed: dict[str, float], message: str) -> None:
    """The first kernel that has them is named, and the others are counted."""
    bad = {**KERNEL, **changed}
    with refused(rf"^kernel 'k1', counter .*{message}.*\(and 1 more kernels\)$"):
        derive(KERNEL, bad, bad)
