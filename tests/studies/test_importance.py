"""The importance of features on made kernels, where one counter alone tells how they scale."""

from dataclasses import replace

import numpy as np
import pytest
from mlscale.studies.importance import ALL, BEST, SHUFFLED, ImportanceStudy, shuffled_errors
from mlscale.studies.splits import folds
from synthetic import kernels as made

from mlscale.data.measurements import Measurements
from mlscale.studies.crossval import cross_validate
from mlscale.studies.study import plan, study

KINDS = len(made.LAWS)


@pytest.fixture(scope="module")
def measurements() -> Measurements:
    """Four kernels of each law; `law` tells which, `constant` is one number, the rest is noise."""
    data = made.measurements(per_group=4, power=False)
    random = np.random.default_rng(1)
    law = np.repeat(np.arange(KINDS), 4)
    columns = [law, np.ones(len(law)), *random.uniform(0, 1, (3, len(law)))]
    values = np.broadcast_to(
        np.stack(columns, axis=-1)[:, None, None, None, :],
        (len(law), *data.grid.shape, len(columns)),
    )
    names = ("law", "constant", "noise0", "noise1", "noise2")
    return replace(data, counter_names=names, counter_samples=values[None].copy())


@pytest.fixture(scope="module")
def rows(measurements: Measurements) -> list[dict[str, object]]:
    """The rows with four clusters and one seed."""
    frame = study("importance", {"made": measurements}, jobs=1, clusters=KINDS, seeds=1)
    return frame.replace({np.nan: None}).to_dict("records")


def test_the_counter_that_tells_is_found(rows: list[dict[str, object]]) -> None:
    shuffled = {row["feature"]: row for row in rows if row["what"] == SHUFFLED}
    assert next(iter(shuffled)) == "law"  # the most important first
    others = [row["increase"] for name, row in shuffled.items() if name != "law"]
    assert shuffled["law"]["increase"] > sum(others)  # than all the noise together
    assert shuffled["law"]["chosen_percent"] == 100


def test_what_is_constant_changes_nothing(rows: list[dict[str, object]]) -> None:
    [constant] = [row for row in rows if row["feature"] == "constant"]
    assert constant["increase"] == pytest.approx(0, abs=1e-9)
    assert constant["chosen_percent"] == 0


def test_the_best_one_alone_is_enough(rows: list[dict[str, object]]) -> None:
    """Known truth: of kernels held out one at a time `law` tells the group, noise tells nothing."""
    [whole] = [row for row in rows if row["what"] == ALL]
    by_size = {row["n_features"]: row for row in rows if row["what"] == BEST}
    assert set(by_size) == {1, 2}  # of four that are not constant, which are all but the last
    assert by_size[1]["mape"] < 1e-6
    assert by_size[1]["increase"] == pytest.approx(-whole["mape"], abs=1e-6)


def test_shuffling_is_the_mean_over_the_training_kernels(measurements: Measurements) -> None:
    """By hand: the profile with each training kernel's value in turn, predicted as any profile."""
    planned = plan("importance", {"made": measurements}, clusters=KINDS, seeds=1)
    part = planned.parts[0]
    [fold] = folds("leave-one-application-out", measurements.applications, 0)[:1]
    [prediction] = cross_validate(measurements, part.bases, [fold], part.predictors)
    profiles = prediction.held_out.profiles(made.GRID.mid)
    training = measurements.select(fold[0]).profiles(made.GRID.mid)
    means = []
    for value in training.counters[:, 0]:
        changed = profiles.counters.copy()
        changed[:, 0] = value
        surfaces = prediction.predictor.predict(replace(profiles, counters=changed))
        means.append(replace(prediction, surfaces=surfaces).errors.mean())
    assert shuffled_errors(prediction)["law"] == pytest.approx([np.mean(means)])


def test_rows_count_kernels_once_and_every_seed(measurements: Measurements) -> None:
    """By hand: two seeds of the same two kernels."""
    planned = ImportanceStudy(name="importance", tables={"made": measurements}, seeds=2)
    results = [
        {
            "table": "made",
            "quantity": "time",
            "features": "raw",
            "part": part,
            "kernels": ["a", "b"],
        }
        for part in planned.parts
    ]
    head = planned.head(results)
    assert (head["n_kernels"], head["n_seeds"]) == (2, 2)


def test_files_have_the_base_in_columns(
    measurements: Measurements, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = measurements.grid.mid.as_dict()
    monkeypatch.setattr(ImportanceStudy, "rows", lambda *_: [{"base": base, "mape": 1.0}])
    planned = ImportanceStudy(name="importance", tables={"made": measurements})
    assert planned.files([]) == {"importance": [{**base, "mape": 1.0}]}
