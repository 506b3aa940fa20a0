"""Wilcoxon's signed-rank test between predictors: p by enumeration of signs, Holm by hand."""

import numpy as np
import pytest

from mlscale.studies.candidates import Candidate
from mlscale.studies.errors import application_errors
from mlscale.studies.significance import holm, p_values, signed_rank

NAMES = "abcdef"


def by_application(values: list[float]) -> dict[str, float]:
    return dict(zip(NAMES, values, strict=False))


class TestSignedRank:
    def test_all_of_six_better(self) -> None:
        """Of 2^6 ways to sign six ranks one has all +, one all -: p = 2/64."""
        worse = by_application([2.0, 4.0, 6.0, 8.0, 10.0, 12.0])
        better = by_application([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        assert signed_rank(better, worse) == pytest.approx(2 / 64)
        assert signed_rank(worse, better) == pytest.approx(2 / 64)

    def test_one_small_loss_among_four(self) -> None:
        """Differences -1, 2, 3, 4: rank sum 1 of the minus; sums 0 and 1 have one way each of 16,
        twice for both sides: p = 4/16."""
        one, other = by_application([0.0, 2, 3, 4]), by_application([1.0, 0, 0, 0])
        assert signed_rank(one, other) == pytest.approx(4 / 16)

    def test_pairs_are_by_name_and_equal_ones_do_not_count(self) -> None:
        one = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 9.0}
        other = {"d": 9.0, "c": 6.0, "b": 4.0, "a": 2.0}
        assert signed_rank(one, other) == pytest.approx(2 / 8)

    def test_no_difference_at_all(self) -> None:
        assert signed_rank(by_application([1.0, 2.0]), by_application([1.0, 2.0])) == 1.0


@pytest.mark.parametrize(
    ("p", "corrected"),
    [
        ([0.04, 0.01, 0.03], [0.06, 0.03, 0.06]),  # 3 * .01, 2 * .03, max(.06, 1 * .04)
        ([0.5, 0.4], [0.8, 0.8]),
        ([0.7, 0.9, 0.6], [1.0, 1.0, 1.0]),  # 3 * .6 is cut at 1
        ([], []),
    ],
)
def test_holm_by_hand(p: list[float], corrected: list[float]) -> None:
    assert holm(p) == pytest.approx(corrected)


class TestPValues:
    def block(self, quantity: str, kinds: list[str]) -> dict[tuple[str, str, Candidate], dict]:  # type: ignore[type-arg]
        """wu errs twice as much as nearest; the oracle and wu's other kinds stand beside."""
        wu = {("t", quantity, Candidate("wu", kind)): by_application([2.0, 4, 6, 8, 10, 12])
              for kind in kinds}  # fmt: skip
        return {
            ("t", quantity, Candidate("nearest", None)): by_application([1.0, 2, 3, 4, 5, 6]),
            **wu,
            ("t", quantity, Candidate("wu-oracle", None)): by_application([0.0] * 6),
        }

    def test_against_the_first_wu(self) -> None:
        found = p_values(self.block("time", ["utilisation", "raw"]))
        of = {(c.name, c.features): row for (_, _, c), row in found.items()}
        # Two are tested: nearest (p 2/64, doubled by Holm) and wu on raw, equal to the reference.
        assert of["nearest", None] == {
            "n_applications": 6, "compared_with": "utilisation", "p_value": pytest.approx(4 / 64),
        }  # fmt: skip
        assert of["wu", "raw"]["p_value"] == 1.0
        for alone in (("wu", "utilisation"), ("wu-oracle", None)):
            assert of[alone]["p_value"] is of[alone]["compared_with"] is None

    def test_power_is_compared_with_the_wu_that_sees_the_power_too(self) -> None:
        found = p_values(self.block("power", ["utilisation", "utilisation+power"]))
        compared = {row["compared_with"] for row in found.values()}
        assert compared == {None, "utilisation+power"}

    def test_without_wu_there_is_none(self) -> None:
        found = p_values(self.block("time", []))
        assert {row["p_value"] for row in found.values()} == {None}


def test_mean_error_of_an_application_is_over_kernels_targets_and_seeds() -> None:
    """a has the kernels 1 (errors 1, 3) and 2 (5, 7) with seed 0, all 2 more with seed 1."""
    values = np.array([[1.0, 3.0], [10.0, 30.0], [5.0, 7.0]])
    results = [
        {"applications": ["a", "b", "a"], "errors": errors.tolist()}
        for errors in (values, values + 2)
    ]
    assert application_errors(results) == {"a": 5.0, "b": 21.0}
