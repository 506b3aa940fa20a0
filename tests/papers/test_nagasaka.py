"""Nagasaka's model: numbers by hand and in closed form, invariants, its counters, bad input."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import powered
from synthetic.profiled import profiles, some_of
from synthetic.tidy import refused

from mlscale.data.profiles import Profiles
from mlscale.errors import DataWarning
from mlscale.papers import nagasaka
from mlscale.papers.nagasaka import SETS, derive_inputs

X = np.array([[0.0], [1.0], [2.0], [3.0]])
Y = np.array([1.0, 3.0, 5.0, 7.0])


def problem(seed: int, kernels: int, counters: int) -> tuple[np.ndarray, np.ndarray]:
    """Counters of very unlike sizes, as they are, and power of no law."""
    random = np.random.default_rng(seed)
    sizes = 10.0 ** random.uniform(-3, 10, counters)
    return random.uniform(0, 1, (kernels, counters)) * sizes, random.uniform(30, 200, kernels)


problems = st.builds(problem, st.integers(0, 10**6), st.integers(4, 30), st.integers(1, 6))
penalties = st.floats(1e-3, 1e5)


class TestVirtualCounters:
    def test_transactions_of_many_kernels(self) -> None:
        found = nagasaka.global_transactions([1, 0, 0], [0, 1, 0], [0, 0, 1])
        assert found.tolist() == [1, 2, 4]  # paper, III-C.2

    def test_memory_accesses(self) -> None:
        assert nagasaka.memory_accesses(1, 20, 300, 4000) == 4321  # paper, IV-B
        assert nagasaka.memory_accesses([1.0, 2.0], [3.0, 4.0]).tolist() == [4, 6]

    def test_per_second(self) -> None:
        # Hand: 6 events in 2 ms are 3000 a second.
        assert nagasaka.per_second([[6.0, 0.0]], [2.0]).tolist() == [[3000.0, 0.0]]

    @pytest.mark.parametrize("time_ms", [0.0, -1.0, np.nan, np.inf])
    def test_no_time(self, time_ms: float) -> None:
        with refused("time_ms must be a finite number above 0"):
            nagasaka.per_second([[1.0]], [time_ms])


class TestRidge:
    @pytest.mark.parametrize(
        ("penalty", "alpha", "beta"),
        [(0, 2, 1), (4, 1, 2.5), (1e12, 0, 4)],
    )
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

    def test_several_penalties_are_as_one_by_one(self) -> None:
        x, y = problem(0, 12, 3)
        together = nagasaka.fit_ridge(x, y, [0.0, 1.0, 30.0])
        for position, penalty in enumerate([0.0, 1.0, 30.0]):
            alone = nagasaka.fit_ridge(x, y, [penalty])
            assert together[0][position] == pytest.approx(alone[0][0], rel=1e-12)
            assert together[1][position] == pytest.approx(alone[1][0], rel=1e-12)

    @given(problems, penalties)
    @settings(max_examples=50)
    def test_normal_equations(self, made: tuple[np.ndarray, np.ndarray], penalty: float) -> None:
        """Closed form: least squares of the standardised columns with sqrt(lambda) I below them."""
        x, y = made
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        below = np.sqrt(penalty) * np.eye(x.shape[1])
        target = np.concatenate([y - y.mean(), np.zeros(x.shape[1])])
        expected = np.linalg.lstsq(np.vstack([z, below]), target, rcond=None)[0]
        alpha, beta = nagasaka.fit_ridge(x, y, [penalty])
        assert alpha[0] * x.std(axis=0) == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert beta[0] == pytest.approx(y.mean() - x.mean(axis=0) @ alpha[0], rel=1e-9)

    def test_as_scikit_learn(self) -> None:
        """Peer: its own standardising and Ridge, whose intercept is not penalised either."""
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        x, y = problem(3, 20, 4)
        peer = make_pipeline(StandardScaler(), Ridge(alpha=7.0)).fit(x, y)
        model = nagasaka.fit_power_model(x, y, 7.0)
        assert nagasaka.estimate_power_w(model, x) == pytest.approx(peer.predict(x), rel=1e-9)

    def test_known_energies_are_found(self) -> None:
        rates = np.random.default_rng(0).uniform(0, 1e10, (15, 2))
        power = 40.0 + rates @ [2e-9, 0.5e-9]
        model = nagasaka.fit_power_model(rates, power, 0.0)
        assert model.energy_j == pytest.approx([2e-9, 0.5e-9], rel=1e-9)
        assert model.intercept_w == pytest.approx(40.0)

    @pytest.mark.parametrize("penalty", [0.0, 1e-6, 3.0])
    def test_a_column_given_twice_shares_its_weight(self, penalty: float) -> None:
        both, _ = nagasaka.fit_ridge(np.hstack([X, X]), Y, [penalty])
        alone, _ = nagasaka.fit_ridge(X, Y, [penalty / 2])
        # Closed form: two weights w at a penalty lambda are one weight 2 w at lambda / 2.
        assert both[0] == pytest.approx([alone[0, 0] / 2] * 2)

    @pytest.mark.parametrize("constant", [0.0, 5e9, 0.1])
    @pytest.mark.parametrize("penalty", [0.0, 2.0])
    def test_a_constant_column_has_no_weight(self, constant: float, penalty: float) -> None:
        found, beta = nagasaka.fit_ridge(np.hstack([X, np.full((4, 1), constant)]), Y, [penalty])
        alone, beta_alone = nagasaka.fit_ridge(X, Y, [penalty])
        assert found[0].tolist() == pytest.approx([alone[0, 0], 0.0])
        assert found[0, 1] == 0
        assert beta == pytest.approx(beta_alone)

    def test_no_columns_give_the_mean(self) -> None:
        model = nagasaka.fit_power_model(np.empty((4, 0)), Y, 0.0)
        assert nagasaka.estimate_power_w(model, np.empty((2, 0))).tolist() == [4.0, 4.0]

    @given(problems, penalties, st.floats(1e-6, 1e6))
    @settings(max_examples=30)
    def test_units_of_counters_do_not_matter(
        self, made: tuple[np.ndarray, np.ndarray], penalty: float, unit: float
    ) -> None:
        x, y = made
        here = nagasaka.estimate_power_w(nagasaka.fit_power_model(x, y, penalty), x)
        there = nagasaka.estimate_power_w(nagasaka.fit_power_model(x * unit, y, penalty), x * unit)
        assert there == pytest.approx(here, rel=1e-8)

    @given(problems, penalties, st.floats(1.01, 100))
    @settings(max_examples=30)
    def test_more_penalty_means_less_weight_and_a_worse_fit(
        self, made: tuple[np.ndarray, np.ndarray], penalty: float, factor: float
    ) -> None:
        x, y = made
        alpha, beta = nagasaka.fit_ridge(x, y, [penalty, penalty * factor])
        weight = np.linalg.norm(alpha * x.std(axis=0), axis=1)
        residual = [np.linalg.norm(y - x @ a - b) for a, b in zip(alpha, beta, strict=True)]
        assert weight[1] <= weight[0] * (1 + 1e-9)
        assert residual[1] >= residual[0] * (1 - 1e-9)

    @pytest.mark.parametrize("penalty", [-1.0, np.nan, np.inf])
    def test_bad_penalty(self, penalty: float) -> None:
        with refused("every penalty must be a finite number of at least 0"):
            nagasaka.fit_ridge(X, Y, [penalty])

    def test_bad_columns(self) -> None:
        with refused(r"columns \(K, F\) and values \(K,\), not \(4, 1\) and \(3,\)"):
            nagasaka.fit_ridge(X, Y[:3], [0.0])
        with refused("needs finite numbers"):
            nagasaka.fit_ridge(np.where(X == 2, np.nan, X), Y, [0.0])
        with refused("needs finite numbers"):
            nagasaka.fit_ridge(X, np.where(Y == 5, np.inf, Y), [0.0])
        with refused("one kernel at least"):
            nagasaka.fit_ridge(X[:0], Y[:0], [0.0])


class TestContributions:
    model = nagasaka.LinearPowerModel(energy_j=np.array([2e-9, -1e-9]), intercept_w=60.0)
    rates = np.array([[20e9, 0.0], [10e9, 20e9]])

    def test_terms_and_estimate(self) -> None:
        # Hand: 20e9 / s x 2 nJ = 40 W.
        terms = nagasaka.contributions_w(self.model, self.rates)
        assert terms == pytest.approx(np.array([[40, 0, 60], [20, -20, 60]]))
        assert nagasaka.estimate_power_w(self.model, self.rates) == pytest.approx([100, 60])

    def test_mean_ratios(self) -> None:
        # Hand: the means of 40/100 and 20/60, of 0 and -20/60, of 60/100 and 60/60.
        ratios = nagasaka.contribution_ratios(self.model, self.rates)
        assert ratios == pytest.approx([(0.4 + 1 / 3) / 2, -1 / 6, 0.8])
        assert ratios.sum() == pytest.approx(1)

    def test_no_ratio_to_nothing(self) -> None:
        with refused("estimated power is not above 0"):
            nagasaka.contribution_ratios(self.model, [[0.0, 60e9]])


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
    with refused("kernel 'k1' has no 'power_w' at the base"):
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


def test_one_kernel_is_numbers() -> None:
    """By hand: 2 J and 3 J an event, 4 and 5 events a second, 1 W: 24 W, the same as of a row."""
    model = nagasaka.LinearPowerModel(energy_j=np.array([2.0, 3.0]), intercept_w=1.0)
    assert nagasaka.estimate_power_w(model, [4.0, 5.0]) == 24
    assert isinstance(nagasaka.estimate_power_w(model, [4.0, 5.0]), float)
    np.testing.assert_array_equal(nagasaka.estimate_power_w(model, [[4.0, 5.0]]), [24])
    np.testing.assert_array_equal(nagasaka.per_second([8.0, 10.0], 2000.0), [4, 5])


def test_what_cannot_be_is_named() -> None:
    model = nagasaka.LinearPowerModel(energy_j=np.array([2.0]), intercept_w=1.0)
    with refused("counts must be a finite number of at least 0, not -1"):
        nagasaka.per_second(-1, 10)
    with refused("global_loads must be .* not -1"):
        nagasaka.memory_accesses(-1, 0)
    with refused("the model is of 1 counters, not of"):
        nagasaka.estimate_power_w(model, [1.0, 2.0])
    with refused("have no times of"):
        nagasaka.per_second([[1.0, 2.0]], [1.0, 2.0, 3.0])
