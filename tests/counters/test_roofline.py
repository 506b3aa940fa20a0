"""Where kernels stand between the peaks of their GPU, counters in words and units; by hand."""

import math

import numpy as np
import pytest
from synthetic.profiled import profiles

from mlscale.counters.kernel_use import KernelUse, inputs
from mlscale.counters.roofline import INPUTS, RooflinePlace, readable, roofline
from mlscale.data.grid import HardwareConfig

BASE = HardwareConfig(16, 1000.0, 3500.0)  # a GTX 980: 224 GB/s, 4 issue slots per cycle and CU


def places(counters: dict[str, list[float]], **metadata: object) -> tuple[RooflinePlace, ...]:
    made = profiles(counters, base=BASE, device="gtx980")
    made.metadata.update(metadata)
    return roofline(made)


@pytest.mark.parametrize(
    ("dram", "core", "bound"),
    [
        (0.84, 0.12, "memory-bound"),
        (0.12, 0.84, "core-bound"),
        (0.59, 0.12, "latency-bound"),
        (0.84, 0.75, "balanced"),
        (0.84, 0.73, "memory-bound"),
        (math.nan, 0.8, None),
        (0.8, math.nan, None),
    ],
)
def test_the_word_follows_from_the_two_shares(dram: float, core: float, bound: str | None) -> None:
    """By hand: 60 % of a peak at least, and 10 points between the two."""
    assert RooflinePlace(dram, core, "issue").bound == bound


def test_in_words_the_larger_share_stands_first() -> None:
    text = "memory-bound: 84 % of peak DRAM bandwidth, 12 % of peak issue"
    assert str(RooflinePlace(0.84, 0.12, "issue")) == text
    text = "core-bound: 84 % of peak L2 bandwidth, 12 % of peak DRAM bandwidth"
    assert str(RooflinePlace(0.12, 0.84, "L2 bandwidth")) == text


def test_what_is_not_known_is_not_said() -> None:
    assert str(RooflinePlace(math.nan, 0.3, "issue")) == "30 % of peak issue"
    assert str(RooflinePlace(math.nan, math.nan, "issue")) == "not known"


def test_counts_become_shares_of_the_peaks() -> None:
    """By hand, in the profile's 1 ms: 112 MB of 224; 16e6 instructions of 16 x 1e6 x 4."""
    (place,) = places(
        {
            "dram_read_transactions": [2.5e6],
            "dram_write_transactions": [1e6],
            "inst_executed": [16e6],
        }
    )
    assert (place.dram, place.core, place.unit) == (pytest.approx(0.5), 0.25, "issue")


def test_the_busiest_unit_is_named_for_each_kernel() -> None:
    first, second, third = places(
        {
            "dram_utilisation": [0.3, 0.4, 0.5],
            "issue_utilisation": [0.2, 0.7, math.nan],
            "l2_utilisation": [0.6, 0.1, math.nan],
        }
    )
    assert (first.unit, first.core) == ("L2 bandwidth", 0.6)
    assert (second.unit, second.core) == ("issue", 0.7)
    assert math.isnan(third.core)


def test_a_profilers_own_share_of_the_whole_core_comes_before_issue() -> None:
    (place,) = places({"dram_utilisation": [0.3], "core_utilisation": [0.8]})
    assert str(place) == (
        "core-bound: 80 % of peak compute (SM) throughput, 30 % of peak DRAM bandwidth"
    )


def test_a_texture_unit_that_waits_for_memory_is_no_use_of_the_core() -> None:
    (place,) = places({"dram_utilisation": [0.9], "MemUnitBusy": [99.0], "VALUBusy": [10.0]})
    assert (place.unit, place.core) == ("issue", pytest.approx(0.1))


def test_an_upper_bound_is_called_one() -> None:
    source = "memory throughput, % of the busiest: an upper bound = {a}/100"
    (place,) = places(
        {"dram_utilisation": [0.9], "issue_utilisation": [0.1]},
        utilisation_sources={"dram_utilisation": source},
    )
    assert str(place).startswith("memory-bound: at most 90 % of peak DRAM bandwidth")


def test_a_gpu_without_peaks_has_no_place() -> None:
    made = profiles({"dram_utilisation": [0.9, 0.8]}, base=BASE, device="no-such-gpu")
    assert [str(place) for place in roofline(made)] == ["not known"] * 2


def test_inputs_are_shown_without_their_logarithms_and_roots() -> None:
    """A kernel that uses 25 % of everything, with 4 waves ready: that is what a reader sees."""
    quarter = np.array([0.25])
    use = KernelUse(*[quarter] * 7, np.log([4.1]), np.log([0.25]), *[quarter] * 7)
    shown = {name: readable(name, values[0]) for name, values in inputs(use, quarter).items()}
    assert shown.pop("eligible waves") == "4"
    assert shown.pop("stall") == "0.25"
    assert set(shown.values()) == {"25 %"}
    assert set(inputs(use, quarter)) == set(INPUTS)
