"""Nagasaka's counters from nvprof's, what is left out, and which kernels are named as unseen."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from synthetic import powered
from synthetic.profiled import profiles, some_of
from synthetic.tidy import refused

from mlscale.data.profiles import Profiles
from mlscale.errors import DataWarning
from mlscale.papers.nagasaka import SETS, derive_inputs, untrained

# Two kernels of 2 ms and 4 ms: the rates below are the counts x 500 and x 250.
COUNTERS = {
    "l2_read_transactions": [10.0, 20.0],
    "l2_write_transactions": [4.0, 8.0],
    "inst_executed": [100.0, 200.0],
    "cf_executed": [8.0, 16.0],
    "branch_efficiency": [0.75, 1.0],
    "shared_load_transactions": [12.0, 0.0],
    "shared_load_transactions_per_request": [3.0, 0.0],
    "shared_store_transactions": [6.0, 0.0],
    "shared_store_transactions_per_request": [1.0, 0.0],
    "dram_read_transactions": [5.0, 6.0],
    "dram_write_transactions": [1.0, 2.0],
    "local_load_transactions": [3.0, 0.0],
    "local_store_transactions": [0.0, 2.0],
    "gld_transactions": [100.0, 0.0],
    "tex_cache_transactions": [105.0, 1.0],
    "workgroups": [64.0, 63.0],
}
SHARED = tuple(name for name in COUNTERS if name.startswith("shared_"))


def two(**replaced: list[float] | None) -> Profiles:
    counters = COUNTERS | replaced
    given = {name: values for name, values in counters.items() if values is not None}
    made = profiles(given, time_ms=[2.0, 4.0])
    return replace(made, power_w=np.array([50.0, 60.0]))


def test_variables_by_hand() -> None:
    rates = derive_inputs(two()).rates
    counts = {
        "gld": (10, 20),
        "gst": (4, 8),
        "mem": (14, 28),
        "instructions": (100, 200),
        "branch": (8, 16),
        "divergent_branch": (2, 0),
        "warp_serialize": (12 - 12 / 3 + 6 - 6, 0),
        "tlb_miss*": (6, 8),
        "local_load": (3, 0),
        "local_store": (0, 2),
    }
    assert rates.keys() == counts.keys()
    for name, (first, second) in counts.items():
        assert rates[name] == pytest.approx([500 * first, 250 * second]), name


def test_the_sets_are_those_of_the_paper() -> None:
    """Paper, IV-B: seven, in this order; the baseline has no counters."""
    inputs = derive_inputs(two())
    assert list(inputs.sets) == [
        *("Mem", "Inst", "Mem/Inst", "Mem/Inst/Branch", "Mem/Inst/WS", "Mem/Inst/TLB*", "Full"),
        "intercept only",
    ]
    assert inputs.sets["Full"] == (*SETS["Full"], "local_load", "local_store")
    assert inputs.matrix("Mem/Inst").tolist() == [[7000, 50000], [7000, 50000]]
    assert inputs.matrix("intercept only").shape == (2, 0)


def test_full_does_without_local_memory_and_says_so() -> None:
    with pytest.warns(DataWarning, match="local_load_transactions .* does not see local memory"):
        inputs = derive_inputs(two(local_load_transactions=None))
    assert inputs.sets["Full"] == (*SETS["Full"], "local_store")


@pytest.mark.parametrize(
    ("counters", "left_out"),
    [
        (["cf_executed"], ["Mem/Inst/Branch", "Full"]),
        (["branch_efficiency"], ["Full"]),
        (["dram_write_transactions"], ["Mem/Inst/TLB*"]),
        ([SHARED[1]], ["Mem/Inst/WS", "Full"]),
    ],
)
def test_sets_without_their_counters_are_left_out_by_name(
    counters: list[str], left_out: list[str]
) -> None:
    message = f"sets {re.escape(', '.join(left_out))}: .*'{counters[0]}'"
    with pytest.warns(DataWarning, match=message) as seen:
        inputs = derive_inputs(two(**dict.fromkeys(counters)))
    assert len(seen) == 1
    assert list(inputs.sets) == [name for name in SETS if name not in left_out]


def test_no_counters_at_all() -> None:
    nothing = two(**dict.fromkeys([*COUNTERS]), loads=[1.0, 2.0])
    with refused("needs counters as nvprof names them: .*'l2_read_transactions'"):
        derive_inputs(nothing)


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        ({"inst_executed": [1.0, np.nan]}, "'k1', counter 'inst_executed': is missing"),
        ({"cf_executed": [-1.0, 1.0]}, "'k0', counter 'cf_executed': -1 is not a count"),
        ({"branch_efficiency": [75.0, 1.0]}, "'branch_efficiency': 75 is above 1; .* percentage"),
        ({SHARED[1]: [0.0, 0.0]}, "gives no requests for the transactions in 'shared_load_tran"),
    ],
)
def test_bad_counters(replaced: dict[str, list[float]], message: str) -> None:
    with refused(message):
        derive_inputs(two(**replaced))


def test_power_must_be_there() -> None:
    with refused("no column 'power_w'"):
        derive_inputs(replace(two(), power_w=None))
    with refused("kernel 'k1' has no power at cu=16,engine=1000,memory=1000"):
        derive_inputs(replace(two(), power_w=np.array([50.0, np.nan])))


def test_kernels_as_in_the_paper() -> None:
    # 16 CUs: k0 has 4 blocks for each, k1 one less; 105 of 100 loads is at the margin of 5 %.
    inputs = derive_inputs(two())
    assert inputs.texture.tolist() == [0, 1]
    assert inputs.few_blocks.tolist() == [False, True]
    kept = inputs.as_in_paper()
    assert (kept.kernels, kept.applications) == (("k0",), ("k0",))
    assert kept.power_w.tolist() == [50]
    assert kept.matrix("Mem").tolist() == [[7000]]


@pytest.mark.parametrize(
    ("counter", "field"), [("tex_cache_transactions", "texture"), ("workgroups", "few_blocks")]
)
def test_what_cannot_be_told_is_said(counter: str, field: str) -> None:
    with pytest.warns(DataWarning, match=f"no {counter}.*: kernels .* cannot be named"):
        inputs = derive_inputs(two(**{counter: None}))
    assert not (getattr(inputs, field) == 1).any()


def test_kernels_on_their_own_have_the_same_rates() -> None:
    made = powered.profiles(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        together = derive_inputs(made)
        alone = [derive_inputs(some_of(made, [k])) for k in range(5)]
    for name, rates in together.rates.items():
        assert rates.tolist() == [one.rates[name][0] for one in alone]


def test_longer_runs_of_the_same_kernels_have_the_same_rates() -> None:
    """Closed form: counters and time times one factor change nothing; ratios are no counts."""
    made = powered.profiles(5)
    ratio = [name.endswith(("efficiency", "request", "groups")) for name in made.counter_names]
    longer = replace(
        made,
        time_ms=8 * made.time_ms,
        counters=np.where(ratio, made.counters, 8 * made.counters),
    )
    rates, of_longer = derive_inputs(made).rates, derive_inputs(longer).rates
    for name in rates:
        assert of_longer[name] == pytest.approx(rates[name], rel=1e-12)


def test_untrained() -> None:
    training = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 3.0]])
    held_out = np.array([[5.0, 1.0, 1.0], [5.0, 0.0, 1.0]])
    assert untrained(training, held_out).tolist() == [[False, True, False], [False] * 3]
