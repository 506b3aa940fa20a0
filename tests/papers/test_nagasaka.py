"""Nagasaka's model: numbers by hand and in closed form, its counters, and what is refused."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from synthetic.profiled import profiles
from synthetic.tidy import refused

from mlscale.data.profiles import Profiles
from mlscale.errors import DataWarning
from mlscale.papers import nagasaka
from mlscale.papers.nagasaka import SETS, derive_inputs

X = np.array([[0.0], [1.0], [2.0], [3.0]])
Y = np.array([1.0, 3.0, 5.0, 7.0])


def test_virtual_counters() -> None:
    found = nagasaka.global_transactions([1, 0, 0], [0, 1, 0], [0, 0, 1])
    assert found.tolist() == [1, 2, 4]  # paper, III-C.2
    assert nagasaka.memory_accesses(1, 20, 300, 4000) == 4321  # paper, IV-B
    # By hand: 6 events in 2 ms are 3000 a second.
    assert nagasaka.per_second([[6.0, 0.0]], [2.0]).tolist() == [[3000.0, 0.0]]


def problem(seed: int, kernels: int, counters: int) -> tuple[np.ndarray, np.ndarray]:
    """Counters of very unlike sizes, the first one twice, and power of no law."""
    random = np.random.default_rng(seed)
    sizes = 10.0 ** random.uniform(-3, 10, counters)
    x = random.uniform(0, 1, (kernels, counters)) * sizes
    return np.hstack([x, x[:, :1]]), random.uniform(30, 200, kernels)


class TestRidge:
    @pytest.mark.parametrize(("penalty", "alpha", "beta"), [(0, 2, 1), (4, 1, 2.5), (1e12, 0, 4)])
    def test_one_column(self, penalty: float, alpha: float, beta: float) -> None:
        """Closed form: Sxy / (Sxx + lambda s^2) = 10 / (5 + 1.25 lambda); beta = 4 - 1.5 alpha."""
        found_alpha, found_beta = nagasaka.fit_ridge(X, Y, [penalty])
        assert found_alpha == pytest.approx(np.array([[alpha]]), abs=1e-10)
        assert found_beta == pytest.approx([beta], abs=1e-10)

    def test_columns_that_depend_on_each_other_share(self) -> None:
        """By hand: of a, 3 a and -a / 7 each takes a third of the slope of a alone, Sxy / Sxx."""
        a, noise = np.random.default_rng(0).normal(size=(2, 30))
        y = 2 * a + noise
        slope = np.cov(a, y)[0, 1] / np.var(a, ddof=1)
        alpha, _ = nagasaka.fit_ridge(np.stack([a, 3 * a, -a / 7], axis=1), y, [0])
        assert alpha[0] == pytest.approx(slope * np.array([1 / 3, 1 / 9, -7 / 3]))

    def test_as_scikit_learn(self) -> None:
        """Peer: its own standardising and Ridge, whose intercept is not penalised either."""
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        x, y = problem(3, 20, 4)
        peer = make_pipeline(StandardScaler(), Ridge(alpha=7.0)).fit(x, y)
        model = nagasaka.fit_power_model(x, y, 7.0)
        assert nagasaka.estimate_power_w(model, x) == pytest.approx(peer.predict(x), rel=1e-9)

    @pytest.mark.parametrize("penalty", [0.0, 2.0])
    def test_a_constant_column_has_no_weight(self, penalty: float) -> None:
        found, beta = nagasaka.fit_ridge(np.hstack([X, np.full((4, 1), 5e9)]), Y, [penalty])
        alone, beta_alone = nagasaka.fit_ridge(X, Y, [penalty])
        assert found[0].tolist() == pytest.approx([alone[0, 0], 0.0])
        assert found[0, 1] == 0
        assert beta == pytest.approx(beta_alone)

    def test_no_columns_give_the_mean(self) -> None:
        model = nagasaka.fit_power_model(np.empty((4, 0)), Y, 0.0)
        assert nagasaka.estimate_power_w(model, np.empty((2, 0))).tolist() == [4.0, 4.0]


class TestContributions:
    model = nagasaka.LinearPowerModel(energy_j=np.array([2e-9, -1e-9]), intercept_w=60.0)
    rates = np.array([[20e9, 0.0], [10e9, 20e9]])

    def test_terms_and_estimate(self) -> None:
        # By hand: 20e9 / s x 2 nJ = 40 W.
        terms = nagasaka.contributions_w(self.model, self.rates)
        assert terms == pytest.approx(np.array([[40, 0, 60], [20, -20, 60]]))
        assert nagasaka.estimate_power_w(self.model, self.rates) == pytest.approx([100, 60])
        assert nagasaka.estimate_power_w(self.model, self.rates[0]) == pytest.approx(100)

    def test_mean_ratios(self) -> None:
        # By hand: the means of 40/100 and 20/60, of 0 and -20/60, of 60/100 and 60/60.
        ratios = nagasaka.contribution_ratios(self.model, self.rates)
        assert ratios == pytest.approx([(0.4 + 1 / 3) / 2, -1 / 6, 0.8])


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
    return profiles(given, time_ms=[2.0, 4.0], power_w=np.array([50.0, 60.0]))


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
    ("counter", "left_out"),
    [
        ("cf_executed", ["Mem/Inst/Branch", "Full"]),
        ("branch_efficiency", ["Full"]),
        ("dram_write_transactions", ["Mem/Inst/TLB*"]),
        (SHARED[1], ["Mem/Inst/WS", "Full"]),
    ],
)
def test_sets_without_their_counters_are_left_out_by_name(
    counter: str, left_out: list[str]
) -> None:
    message = f"sets {re.escape(', '.join(left_out))}: .*'{counter}'"
    with pytest.warns(DataWarning, match=message):
        inputs = derive_inputs(two(**{counter: None}))
    assert list(inputs.sets) == [name for name in SETS if name not in left_out]


@pytest.mark.parametrize(
    ("counter", "message"),
    [
        ("tex_cache_transactions", "kernels .* cannot be identified"),
        ("workgroups", "kernels .* cannot be identified"),
        ("local_load_transactions", "does not see local memory"),
    ],
)
def test_what_cannot_be_seen_is_said(counter: str, message: str) -> None:
    with pytest.warns(DataWarning, match=f"no {counter}.*{message}"):
        inputs = derive_inputs(two(**{counter: None}))
    if counter == "workgroups":
        assert not inputs.few_blocks.any()
    elif counter == "local_load_transactions":
        assert inputs.sets["Full"] == (*SETS["Full"], "local_store")
    else:
        assert not (inputs.texture == 1).any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: derive_inputs(two(**dict.fromkeys(COUNTERS), loads=[1.0, 2.0])),
            "needs counters as nvprof names them: .*'l2_read_transactions'",
        ),
        (
            lambda: derive_inputs(two(inst_executed=[1.0, np.nan])),
            "'k1', counter 'inst_executed': is missing",
        ),
        (lambda: derive_inputs(two(cf_executed=[-1.0, 1.0])), "'cf_executed': -1 is not a count"),
        (
            lambda: derive_inputs(two(branch_efficiency=[75.0, 1.0])),
            "'branch_efficiency': 75 is above 1; .* percentage",
        ),
        (
            lambda: derive_inputs(two(**{SHARED[1]: [0.0, 0.0]})),
            "gives no requests for the transactions in 'shared_load_tran",
        ),
        (lambda: derive_inputs(replace(two(), power_w=None)), "no column 'power_w'"),
        (
            lambda: derive_inputs(replace(two(), power_w=np.array([50.0, np.nan]))),
            "kernel 'k1' has no 'power_w' at the base",
        ),
        (lambda: nagasaka.per_second([[1.0]], [0.0]), "time_ms must be a finite number above 0"),
        (lambda: nagasaka.memory_accesses(-1, 0), "global_loads must be .* not -1"),
        (lambda: nagasaka.fit_ridge(X, Y, [-1.0]), "every penalty must be .* at least 0"),
        (lambda: nagasaka.fit_ridge(np.where(X == 2, np.nan, X), Y, [0.0]), "finite numbers"),
        (
            lambda: nagasaka.contribution_ratios(TestContributions.model, [[0.0, 60e9]]),
            "estimated power is not above 0",
        ),
    ],
)
def test_what_cannot_be_is_named(call: Callable[[], object], message: str) -> None:
    with refused(message):
        call()
