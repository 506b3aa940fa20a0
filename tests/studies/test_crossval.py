"""Studies that train on several GPUs: what a fold sees, and that nothing held out is in it.

Kernels are made ones of the bottleneck curve; a copy of the table plays another GPU.
"""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from synthetic import bottleneck_kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid, Measurements, Profiles
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.studies.crossval import TrainingRule, own, pooled, unseen
from mlscale.studies.errors import ErrorStudy, TrainingOn

MID = made.CLOCKS.mid
TARGET = made.measurements(6)
OTHER = replace(made.measurements(6, seed=1), device="gtx1080ti")
TABLES = {"target": TARGET, "sibling": made.measurements(6, seed=2), "other": OTHER}


def study(
    tables: dict[str, Measurements], training: TrainingOn, predictor: str = "bottleneck"
) -> dict[str, Any]:
    """The errors of the target's time."""
    planned = ErrorStudy(
        tables=tables,
        predictors=[predictor],
        quantity="time",
        seeds=1,
        training=training,
    )
    work, calls = planned.calls()
    assert calls[0][0].table == "target"
    result: dict[str, Any] = work(*calls[0])
    return {**result, "errors": np.array(result["errors"])}


@cache
def of_all_tables(training: TrainingOn) -> dict[str, Any]:
    return study(TABLES, training)


def slower(table: Measurements, kernels: list[int], by: float = 2.0) -> Measurements:
    """The table with times of some kernels that grow with the memory clock, for the worse."""
    time = table.time_samples.copy()
    time[:, kernels] *= by ** np.arange(4.0)
    return replace(table, time_samples=time)


BASED = [(table, MID) for table in TABLES.values()]


def tables(training: TrainingRule, target: Any) -> list[Any]:
    """What is learnt from where nothing is held out."""
    return [table for table, _ in training(target, (np.arange(6), np.arange(0)), BASED)]


class TestTables:
    def test_own_table_all_or_other_devices(self) -> None:
        """'sibling' is of the target's device, so it is left out of what has never seen it."""
        target, sibling, other = BASED
        assert tables(own, target) == [target]
        assert tables(pooled, sibling) == [sibling, target, other]  # the target comes first
        assert tables(unseen, target) == [other]

    def test_too_few(self) -> None:
        one, sibling = {"target": TARGET}, {"target": TARGET, "sibling": TABLES["sibling"]}
        with refused("^training on several GPUs at once needs two tables at least$"):
            study(one, "pooled")
        with refused("^no table is of another GPU than 'gtx980' to train on$"):
            study(sibling, "unseen-gpu")

    def test_applications_are_left_out_of_every_table(self) -> None:
        """The last table has the kernel 3 alone, and nothing of it is left."""
        one, fold = (TARGET.select([3]), MID), (np.array([0, 1, 2, 4]), np.array([3, 5]))
        learnt = pooled(BASED[0], fold, [*BASED, one])
        assert [kernels.tolist() for _, kernels in learnt] == [[0, 1, 2, 4]] * 3


class TestPooled:
    def test_recovers_the_curve(self) -> None:
        """Made kernels of one law on each table: little is left (4.9 % when written)."""
        result = of_all_tables("pooled")
        assert result["kernels"] == list(TARGET.kernels)
        assert result["errors"].shape == (6, 15)
        assert result["errors"].mean() < 5.5
        assert result["covered"] is not None
        assert 80 < result["covered"] <= 100

    def test_a_held_out_application_is_held_out_of_every_gpu(self) -> None:
        """Ruining k2 on the other GPU cannot change the prediction of k2; it does of others."""
        before = of_all_tables("pooled")["errors"]
        after = study({**TABLES, "other": slower(OTHER, [2])}, "pooled")["errors"]
        np.testing.assert_array_equal(after[2], before[2])
        assert not np.allclose(after[[0, 1, 3, 4, 5]], before[[0, 1, 3, 4, 5]])

    def test_one_gpu_predictors_say_so(self) -> None:
        with refused("^'mean-surface' learns from one table at a time, not from 3: 'target', "):
            study(TABLES, "pooled", "mean-surface")


class TestUnseenGpu:
    def test_no_surface_of_the_gpu_enters(self) -> None:
        """Ruining all times of its second table but the base's changes nothing at all."""
        before = of_all_tables("unseen-gpu")["errors"]
        ruined = slower(TABLES["sibling"], list(range(6)))
        np.testing.assert_array_equal(
            study({**TABLES, "sibling": ruined}, "unseen-gpu")["errors"], before
        )
        after = study({**TABLES, "other": slower(OTHER, [2])}, "unseen-gpu")["errors"]
        np.testing.assert_array_equal(after[2], before[2])
        assert not np.allclose(after, before)

    def test_peaks_come_from_the_other_kernels_profiles(self) -> None:
        """More traffic of k2 at the base changes what is said of the others, whose peak it sets."""
        counters = TARGET.counter_samples.copy()
        counters[:, 2] *= 10
        busier = {**TABLES, "target": replace(TARGET, counter_samples=counters)}
        before = of_all_tables("unseen-gpu")["errors"]
        others = [0, 1, 3, 4, 5]
        assert not np.allclose(study(busier, "unseen-gpu")["errors"][others], before[others])

    def test_peaks_are_never_of_the_kernel_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Each of the six is an application of its own, and is held out once."""
        shown: list[tuple[str, ...]] = []
        usual = Bottleneck.learn_peaks

        def learn_peaks(self: Bottleneck, profiles: Profiles, grid: ConfigGrid) -> Bottleneck:
            shown.append(profiles.kernels)
            return usual(self, profiles, grid)

        monkeypatch.setattr(Bottleneck, "learn_peaks", learn_peaks)
        study(TABLES, "unseen-gpu")
        names = TARGET.kernels
        assert sorted(shown) == sorted(tuple(n for n in names if n != name) for name in names)

    def test_those_that_cannot_say_so(self) -> None:
        with refused("^'mean-surface' cannot predict a GPU that it was not trained on: 'target'"):
            study(TABLES, "unseen-gpu", "mean-surface")
