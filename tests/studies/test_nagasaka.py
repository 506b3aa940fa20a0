"""The study of Nagasaka's model: known truth, no leakage, and the kernels it names as unseen."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic import powered
from synthetic.tidy import refused

from mlscale.papers.nagasaka_inputs import PowerInputs, derive_inputs
from mlscale.studies import nagasaka as study
from mlscale.studies.nagasaka import PowerCase, document, error_row, model_row, unseen_rows


def inputs(count: int = 20, per_application: int = 1, **replaced: object) -> PowerInputs:
    return derive_inputs(powered.profiles(count, per_application, **replaced))


def evaluated(made: PowerInputs, shuffles: int = 1) -> PowerCase:
    results = tuple(study.set_errors(made, study.GROUPINGS, shuffles))
    return PowerCase("made", "made-gpu", powered.BASE, "all", made, results)


@cache
def evaluated_once() -> PowerCase:
    return evaluated(inputs())


def noise(count: int, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 3, count)


class TestKnownTruth:
    def test_a_linear_law_is_found_without_penalty(self) -> None:
        made = inputs()
        for name in ("Mem/Inst", "Full"):  # mem is gld + gst: both hold the law
            held_out = study.hold_out(made.matrix(name), made.power_w, np.arange(20), 0)
            assert held_out.estimated_w == pytest.approx(made.power_w, rel=1e-9)
            assert (held_out.penalty <= 0.01).all()

    def test_energies_and_contributions(self) -> None:
        row = model_row(evaluated_once(), "Mem/Inst")
        assert row["energy_nj"] == pytest.approx({"mem": 1.0, "instructions": 0.3}, rel=2e-3)
        assert row["intercept_w"] == pytest.approx(30, rel=2e-3)
        assert sum(row["contribution_percent"].values()) == pytest.approx(100)
        shares = 100 * (powered.INTERCEPT_W / inputs().power_w).mean()
        assert row["contribution_percent"]["intercept"] == pytest.approx(shares, rel=5e-3)

    def test_half_the_law_is_worse_than_all_of_it(self) -> None:
        case = evaluated_once()
        mse = {name: case.result(name).mean_squared_error_w2 for name in case.inputs.sets}
        assert mse["Mem/Inst"] < 1e-6 < mse["Inst"] < mse["intercept only"]

    def test_the_baseline_is_the_mean_of_the_others(self) -> None:
        # Closed form: with ten kernels a fold is one kernel.
        power = np.arange(10.0) ** 2 + 50
        held_out = study.hold_out(np.empty((10, 0)), power, np.arange(10), 0)
        assert held_out.estimated_w == pytest.approx((power.sum() - power) / 9)

    def test_a_fixed_penalty_is_taken_as_it_is(self) -> None:
        """Closed form: without bound it leaves the mean of the other nine kernels."""
        made = inputs(10)
        rates, power = made.matrix("Mem/Inst"), made.power_w
        held_out = study.hold_out(rates, power, np.arange(10), 0, fixed=1e15)
        assert held_out.estimated_w == pytest.approx((power.sum() - power) / 9)
        assert (held_out.penalty == 1e15).all()
        assert study.fit_to_all_kernels(made, "Mem/Inst", 2.5)[1] == 2.5

    def test_counters_without_meaning_are_penalised_away(self) -> None:
        random = np.random.default_rng(2)
        rates, power = random.normal(size=(30, 6)), random.normal(100, 5, 30)
        penalty = study.choose_penalty(rates, power, np.arange(30), range(3))
        assert penalty > 30  # the standardised columns have 30 squared deviations: mostly shrunk
        alike = study.choose_penalty(rates, 100 + rates @ np.arange(6.0), np.arange(30), range(3))
        assert alike <= 0.01


class TestNoLeakage:
    @given(st.integers(0, 19), st.sampled_from(study.GROUPINGS), st.integers(0, 3))
    @settings(max_examples=8)
    def test_a_kernels_own_power_does_not_reach_its_estimate(
        self, kernel: int, grouping: study.Grouping, seed: int
    ) -> None:
        """Nor that of its application, where folds are by application (pairs of kernels here)."""
        made = inputs(per_application=2 if grouping == "application" else 1)
        rates, power = made.matrix("Full"), made.power_w + noise(20)
        groups = study.group_numbers(made, grouping)
        own = groups == groups[kernel]
        before = study.hold_out(rates, power, groups, seed)
        after = study.hold_out(rates, np.where(own, 3 * power + 7, power), groups, seed)
        assert after.estimated_w[own].tolist() == before.estimated_w[own].tolist()
        assert after.penalty[own].tolist() == before.penalty[own].tolist()
        assert (after.estimated_w != before.estimated_w)[~own].any()

    def test_a_kernels_counters_do_not_reach_the_model_that_estimates_it(self) -> None:
        """Closed form: equal steps of its counters make equal steps of its estimate.

        Its own counters would bend that through the standardisation, or the choice of lambda.
        """
        made = inputs()
        rates, power = made.matrix("Full"), made.power_w + noise(20)
        estimates = []
        for factor in (1, 6, 11):
            changed = rates.copy()
            changed[4] *= factor
            held_out = study.hold_out(changed, power, np.arange(20), 0)
            estimates.append(held_out.estimated_w[4])
        steps = np.diff(estimates)
        assert abs(steps[0]) > 1
        assert steps[1] == pytest.approx(steps[0], rel=1e-9)

    def test_kernels_of_an_application_are_not_told_apart_by_folds(self) -> None:
        made = inputs(per_application=2)
        for seed in range(5):
            for train, test in study._folds(study.group_numbers(made, "application"), seed):
                applications = [{made.applications[k] for k in side} for side in (train, test)]
                assert not set.intersection(*applications)

    def test_folds_by_application_differ_from_folds_by_kernel(self) -> None:
        """Twins of equal counters and power flatter folds by kernel only."""
        made = inputs(40, per_application=2)
        twins = {name: np.repeat(rate[::2], 2) for name, rate in made.rates.items()}
        power = np.repeat(made.power_w[::2] + 20 * noise(20), 2)
        case = evaluated(replace(made, rates=twins, power_w=power), shuffles=2)
        by_kernel, by_application = (
            case.result("Full", grouping).mean_squared_error_w2 for grouping in study.GROUPINGS
        )
        assert by_kernel < by_application

    def test_inner_and_outer_folds_are_drawn_apart(self) -> None:
        for seed in range(20):
            inner, outer = (
                [test.tolist() for _, test in study._folds(np.arange(30), start + seed)]
                for start in (study._INNER_SEED, study._OUTER_SEED)
            )
            assert inner != outer


class TestShuffles:
    def test_the_same_seed_gives_the_same(self) -> None:
        made = inputs()
        first, again, other = (
            study.hold_out(made.matrix("Mem"), made.power_w, np.arange(20), seed).estimated_w
            for seed in (0, 0, 1)
        )
        assert first.tolist() == again.tolist() != other.tolist()

    def test_errors_by_hand(self) -> None:
        found = study.SetErrors(
            name="Mem",
            variables=("mem",),
            grouping="kernel",
            estimated_w=np.array([[110.0, 45.0], [100.0, 40.0]]),
            actual_w=np.array([100.0, 50.0]),
            penalty=np.array([[0.0, 1.0], [2.0, 1.0]]),
            unlearnt=((), ()),
        )
        assert found.errors_percent == pytest.approx(np.array([[10, 10], [0, 20]]))
        assert found.mean_squared_error_w2 == pytest.approx((100 + 25 + 0 + 100) / 4)
        made = replace(inputs(), kernels=("a", "b"), power_w=found.actual_w)
        row = error_row(PowerCase("t", "d", powered.BASE, "all", made, (found,)), found)
        assert row["mape"] == pytest.approx(10)
        assert row["mape_by_shuffle"] == pytest.approx([10, 10])
        assert row["median_kernel"] == pytest.approx(10)  # of 5 and 15
        assert row["p90"] == pytest.approx(17)  # of 0, 10, 10, 20
        assert (row["worst_kernel"], row["worst_kernel_mape"]) == ("b", pytest.approx(15))


class TestUnseen:
    def test_local_memory_in_one_kernel_only(self) -> None:
        """The paper's RandomGPU: no training kernel has local memory; estimated without it."""
        loads = np.zeros(20)
        loads[7] = 1e6
        made = inputs(local_load_transactions=loads)
        case = evaluated(made)
        assert case.result("Full").unlearnt[7] == ("local_load",)
        assert not any(names for k, names in enumerate(case.result("Full").unlearnt) if k != 7)
        assert not any(case.result("Mem/Inst").unlearnt)
        (row,) = unseen_rows(case)
        assert (row["kernel"], row["counter"]) == ("k7", "local_load")
        assert "zero in all of the training" in row["why"]

    def test_local_memory_in_many_kernels_is_seen(self) -> None:
        assert unseen_rows(evaluated(inputs(local_load_transactions=np.arange(20.0)))) == []

    def test_texture_reads_are_named(self) -> None:
        texture = np.full(20, 1e6)
        texture[[2, 11]] = 5e7
        case = evaluated(inputs(tex_cache_transactions=texture))
        rows = unseen_rows(case)
        assert [row["kernel"] for row in rows] == ["k2", "k11"]
        assert {row["counter"] for row in rows} == {"tex_cache_transactions"}
        assert document([case], "Full")["unseen"] == rows


def test_too_few_groups() -> None:
    made = inputs(18, per_application=2)
    with refused("ten folds need 10 groups of kernels, not 9"):
        list(study.set_errors(made, ["application"], 1))
    assert len(list(study.set_errors(made, ["kernel"], 1))) == len(made.sets)
    with refused("two groups of kernels at least"):
        study.choose_penalty(made.matrix("Mem"), made.power_w, np.zeros(18, dtype=np.intp), [0])
