"""Counters and features in words and units; the values are worked out by hand."""

import math

import numpy as np
import pytest

from mlscale.counters.features import TABLE_2
from mlscale.counters.kernel_use import KernelUse, inputs
from mlscale.counters.roofline import INPUTS, meaning, readable


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("ReadBandwidth", 24933010000.0, "24.93 GB/s"),
        ("WriteBandwidth", 0.0, "0 B/s"),
        ("VALUBusy", 15.0126, "15.01 %"),
        ("NumWorkGroups", 1048576.0, "1 048 576"),
        ("inst_valu", 33280.0, "33 280"),
        ("dram_read_bytes", 431808.5, "431.8 kB"),
        ("dram__bytes.sum", 3.22e9, "3.22 GB"),
        ("dram__cycles_elapsed.avg.per_second", 2.62e9, "2.62 GHz"),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", 14.2, "14.2 %"),
        ("vmem_latency_ns", 282.356, "282.4 ns"),
        ("achieved_occupancy", 0.05, "0.05"),
        ("anything", math.nan, "missing"),
        ("anything", 1.5e-7, "1.5e-07"),
    ],
)
def test_values_have_units_and_thousands(name: str, value: float, shown: str) -> None:
    assert readable(name, value) == shown


def test_every_feature_of_table_ii_has_words() -> None:
    assert all(meaning(name) for name in TABLE_2)
    assert meaning("inst_executed") is None


def test_inputs_are_shown_without_their_logarithms_and_roots() -> None:
    """A kernel that uses 25 % of everything, with 4 waves ready: that is what a reader sees."""
    quarter = np.array([0.25])
    use = KernelUse(*[quarter] * 7, np.log([4.1]), np.log([0.25]), *[quarter] * 7)
    shown = {name: readable(name, values[0]) for name, values in inputs(use, quarter).items()}
    assert shown.pop("eligible waves") == "4"
    assert shown.pop("stall") == "0.25"
    assert set(shown.values()) == {"25 %"}
    assert set(inputs(use, quarter)) == set(INPUTS)
