"""The studies of Wu et al., HPCA 2015, section V: plans, bins and rows.

Kernels are those of tests/synthetic/kernels.py, whose laws are known.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import sklearn.cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from mlscale.cli.study.wu2015 import as_text
from mlscale.studies.splits import folds
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid, HardwareConfig, Measurements, Nearest, create
from mlscale.predictors.wu import training as wu_training
from mlscale.studies import wu2015 as paper
from mlscale.studies.base import Part
from mlscale.studies.candidates import BASELINES

PAPER_GRID = ConfigGrid(
    tuple(range(4, 33, 4)), tuple(range(300, 1001, 100)), tuple(range(475, 1376, 150))
)
axis = st.integers(1, 4)


def grid_of(shape: Sequence[int]) -> ConfigGrid:
    return ConfigGrid(*(tuple(100 * (s + 1) for s in range(length)) for length in shape))


def study_of(data: Measurements, study: str, **changes: Any) -> paper.WuStudy:
    """A study of one table 't', time alone, holdout, one seed, unless told."""
    given = {"quantity": "time", "seeds": 1, "features": ["raw"], **changes}
    if study == "base-configuration":
        given = {"clusters": 4, "vary": ["cu_count"], **given}
    return paper.WuStudy(name=study, tables={"t": data}, **given)


def planned(data: Measurements, study: str, **changes: Any) -> list[Part]:
    """The parts of a study."""
    return study_of(data, study, **changes).parts


def of_wu(parts: list[Part]) -> list[Part]:
    return [part for part in parts if part.candidate.name == "wu"]


class TestBases:
    def test_five_of_the_paper_s_grid(self) -> None:
        """The first is named in the paper (Fig. 13); the others are this project's choice."""
        found = paper.five_bases(PAPER_GRID)
        assert found == (
            HardwareConfig(32, 1000, 475),
            HardwareConfig(20, 700, 925),
            HardwareConfig(32, 1000, 1375),
            HardwareConfig(4, 300, 1375),
            HardwareConfig(4, 300, 475),
        )

    @settings(max_examples=40)
    @given(st.tuples(axis, axis, axis))
    def test_five_or_fewer_that_differ(self, shape: tuple[int, int, int]) -> None:
        grid = grid_of(shape)
        found = paper.five_bases(grid)
        assert 1 <= len(found) <= 5
        assert len(set(found)) == len(found)
        assert set(found) <= set(grid)

    @settings(max_examples=40)
    @given(st.tuples(axis, axis, axis))
    def test_every_configuration_when_no_axis_is_named(self, shape: tuple[int, int, int]) -> None:
        grid = grid_of(shape)
        found = paper.varied_bases(grid, grid.mid, ())
        assert len(found) == grid.size
        assert set(found) == set(grid)

    def test_bases_of_one_clock_stand_together(self) -> None:
        """So that their CU axis is clustered once: eight CU counts, then the next clocks."""
        found = paper.varied_bases(PAPER_GRID, PAPER_GRID.mid, ())
        for start in range(0, 448, 8):
            together = found[start : start + 8]
            assert len({(b.engine_mhz, b.memory_mhz) for b in together}) == 1

    def test_others_stay_where_they_are(self) -> None:
        around = HardwareConfig(8, 500, 925)
        found = paper.varied_bases(PAPER_GRID, around, ("cu_count",))
        assert found == tuple(HardwareConfig(cu, 500, 925) for cu in range(4, 33, 4))

    @pytest.mark.parametrize(
        ("axis", "step"), [("cu_count", 100), ("engine_mhz", 100), ("memory_mhz", 100)]
    )
    def test_an_axis_with_one_step_cannot_vary(self, axis: str, step: int) -> None:
        grid = grid_of([1, 1, 1])
        with refused(f"^a study over {axis} needs several; the table has one, {step}$"):
            paper.varied_bases(grid, grid.mid, (axis,))


class TestPlan:
    def test_of_the_paper_has_448_bases_in_14_parts(self) -> None:
        data = made.measurements(grid=PAPER_GRID, per_group=3)
        bases = paper.varied_bases(data.grid, data.grid.mid, ())
        parts = of_wu(planned(data, "base-configuration", vary=[]))
        assert [len(part.bases) for part in parts] == [32] * 14
        assert [base for part in parts for base in part.bases] == list(bases)

    @pytest.mark.parametrize(
        ("study", "counts"),
        # 24 kernels: holdout trains on 19 of them (20 % of 24 applications, rounded up: 5).
        [
            ("base-configuration", [4]),
            ("cluster-count", [2, 4, 6, 8, 10, 12, 14, 16, 18, 19]),
            ("error-distribution", [2, 6, 12]),
            ("oracle", [2, 4, 6, 8, 10, 12, 14, 16, 18, 19]),
        ],
    )
    def test_numbers_of_clusters(self, study: str, counts: list[int]) -> None:
        units = planned(made.measurements(per_group=6), study)
        assert [part.clusters for part in of_wu(units)] == counts

    def test_oracle_goes_on_to_as_many_clusters_as_kernels(self) -> None:
        """100 kernels, 80 trained on: Fig. 15's claim is about the end of the axis."""
        units = planned(made.measurements(per_group=25), "oracle")
        counts = [part.clusters for part in of_wu(units)]
        assert counts[:10] == list(range(2, 21, 2))
        assert counts[-1] == 80
        assert counts == sorted(set(counts))

    def test_baselines_stand_beside(self) -> None:
        units = planned(made.measurements(per_group=6), "cluster-count")
        beside = [unit for unit in units if unit.candidate.name != "wu"]
        assert [unit.candidate.name for unit in beside] == list(BASELINES)
        assert {unit.clusters for unit in beside} == {None}

    @pytest.mark.parametrize(
        ("protocol", "wu", "baseline"),
        [("holdout", 3, 3), ("k-fold", 3, 3), ("leave-one-application-out", 3, 1)],
    )
    def test_seeds_only_where_they_matter(self, protocol: str, wu: int, baseline: int) -> None:
        data = made.measurements(per_group=2)
        units = planned(data, "base-configuration", split=protocol, seeds=3)
        assert len(of_wu(units)) == wu
        assert sum(unit.candidate.name == "nearest" for unit in units) == baseline

    def test_power_only_where_it_was_measured(self) -> None:
        both = ("time", "power")
        for power, expected in ((True, {"time", "power"}), (False, {"time"})):
            data = made.measurements(power=power)
            units = planned(data, "oracle", quantity=both)
            assert {unit.quantity for unit in units} == expected

    def test_what_the_predictor_does_not_predict_is_left_out(self) -> None:
        class TimeOnly(Nearest):
            quantities = ("time",)

        given = {"predictors": [TimeOnly], "clusters": None}
        study = study_of(made.measurements(power=True), "base-configuration", quantity=(), **given)
        assert {part.quantity for part in study.parts} == {"time"}
        assert "error of time [%], TimeOnly" in as_text(study.document(study.results()))
        with refused("^'TimeOnly' with features 'raw' does not predict power$"):
            planned(made.measurements(power=True), "base-configuration", quantity="power", **given)

    def test_more_clusters_than_a_fold_has_kernels(self) -> None:
        with refused("^9 clusters, but a fold trains on 6 kernels; give --clusters 6 or less$"):
            planned(made.measurements(per_group=2), "base-configuration", clusters=9)

    def test_fewer_applications_than_folds(self) -> None:
        with refused("^the protocol 'k-fold' needs 5 applications, not 4$"):
            planned(made.measurements(per_group=1), "cluster-count", split="k-fold")


class TestHistogram:
    def test_bins_by_hand(self) -> None:
        """Section V-B1: < 10, >= 10 and < 20, …, and >= 100 in the last."""
        errors = np.array([[0.0, 9.999, 10.0], [19.9, 99.99, 100.0], [1e9, 55.0, 50.0]])
        assert paper.histogram(errors).tolist() == [2, 2, 0, 0, 0, 2, 0, 0, 0, 1, 2]

    @settings(max_examples=50)
    @given(st.lists(st.floats(0, 1e6), min_size=1))
    def test_counts_everything_where_numpy_does(self, errors: list[float]) -> None:
        found = paper.histogram(np.array(errors))
        edges = [*range(0, 101, 10), np.inf]
        assert found.tolist() == np.histogram(errors, edges)[0].tolist()


class TestRows:
    BASES = (made.GRID.mid, made.GRID.config((0, 3, 1)))

    def test_are_those_of_models_fitted_one_by_one(self) -> None:
        """The long way round: select, fit, predict, compare, for every base by itself."""
        data = made.measurements()
        [unit] = of_wu(planned(data, "base-configuration"))
        unit = replace(unit, bases=self.BASES)
        rows = paper.part_rows(unit, data, "base-configuration")
        [(train, test)] = folds("holdout", data.applications, 0)
        for row, base in zip(rows, self.BASES, strict=True):
            model = create("wu", quantity="time", features="raw", clusters=4, seed=0)
            model.fit(data.select(train), base)
            held_out = data.select(test)
            c, e, m = data.grid.index(base)
            truth = held_out.time_ms / held_out.time_ms[:, c : c + 1, e : e + 1, m : m + 1]
            errors = 100 * np.abs(model.predict(held_out.profiles(base)).values / truth - 1)
            expected = errors.sum(axis=(1, 2, 3)) / (data.grid.size - 1)  # the base's own is 0
            assert row["mape"] == pytest.approx(expected.mean(), rel=1e-9, abs=1e-12)
            assert row["worst_kernel_mape"] == pytest.approx(expected.max(), rel=1e-9, abs=1e-12)
            assert (row["n_kernels"], row["clusters"], row["seed"]) == (len(test), 4, 0)
            assert {axis: row[axis] for axis in base.as_dict()} == base.as_dict()

    def test_distribution_counts_every_pair(self) -> None:
        data = made.measurements()
        units = planned(data, "error-distribution", split="k-fold")
        for unit in (units[0], units[-1]):
            rows = paper.part_rows(unit, data, "error-distribution")
            assert len(rows) == 11 * len(unit.bases)
            for start in range(0, len(rows), 11):
                bins = rows[start : start + 11]
                assert [row["bin_low"] for row in bins] == list(range(0, 101, 10))
                assert sum(row["count"] for row in bins) == 12 * (made.GRID.size - 1)

    def test_oracle_stands_beside_its_network_and_knows_the_training_set(self) -> None:
        """Four groups of kernels that scale alike: with four clusters nothing is left to err."""
        data = made.measurements()
        units = [u for u in of_wu(planned(data, "oracle")) if u.clusters == 4]
        rows = [row for unit in units for row in paper.part_rows(unit, data, "oracle")]
        train = len(folds("holdout", data.applications, 0)[0][0])
        assert [row["predictor"] for row in rows] == ["wu"] * 5 + ["wu-oracle"] * 5
        assert all(row["n_kernels"] == train for row in rows)
        assert all(row["mape"] < 1e-6 for row in rows if row["predictor"] == "wu-oracle")

    def test_held_out_kernels_are_not_trained_on(self) -> None:
        """Nonsense in what is held out, at every target, changes no model: same nonsense scored.

        The held-out kernels' targets times 1e-6 make each error 1e6 times the predicted ratio.
        """
        data = made.measurements()
        [(_, test)] = folds("holdout", data.applications, 0)
        base = made.GRID.mid
        at = made.GRID.index(base)
        [unit] = of_wu(planned(data, "base-configuration"))
        unit = replace(unit, bases=(base,))
        found = []
        for scale in (1e-6, 1e-7):
            time = data.time_samples.copy()
            own = time[(0, test, *at)].copy()
            time[0, test] = scale
            time[(0, test, *at)] = own
            changed = Measurements(**{**vars_of(data), "time_samples": time})
            rows = paper.part_rows(unit, changed, "base-configuration")
            found.append(rows[0]["mape"] + 100)
        assert found[1] == pytest.approx(10 * found[0], rel=1e-6)


def vars_of(data: Measurements) -> dict[str, Any]:
    return {name: getattr(data, name) for name in data.__dataclass_fields__}


def test_k_means_is_done_once_for_what_bases_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 CU counts x 4 x 3 clocks: 3 sets that no base changes, 12 of the CU axis by the clocks.

    Over all units of the study in one process; 36 bases with 4 sets each would be 144.
    """
    fitted = []

    class Counting(sklearn.cluster.KMeans):
        def fit(self, *given: Any, **named: Any) -> Any:
            fitted.append(1)
            return super().fit(*given, **named)

    monkeypatch.setattr(wu_training, "KMeans", Counting)
    wu_training._cluster.cache_clear()
    data = made.measurements(seed=11)
    # Kernels of a group scale alike but for noise, so that every set is a clustering of its own.
    noise = np.random.default_rng(0).uniform(0.9, 1.1, data.time_samples.shape)
    data = Measurements(**{**vars_of(data), "time_samples": data.time_samples * noise})
    monkeypatch.setattr(paper, "BASES_IN_PART", 9)
    units = of_wu(planned(data, "base-configuration", vary=[]))
    assert len(units) == 4
    for unit in units:
        paper.part_rows(unit, data, "base-configuration")
    assert len(fitted) == 3 + 12
