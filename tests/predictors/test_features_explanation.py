"""What a prediction rests on: neighbours by hand, clusters as they are used, files."""

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from parameters import own
from synthetic import kernels as made
from synthetic.networks import outputs
from synthetic.tidy import refused, same_bits

from mlscale import InputError, Model, Profiles, load, save, train
from mlscale.predictors.base import Explains
from mlscale.predictors.features import Explanation, TrainingKernels
from mlscale.predictors.wu.estimator import Wu

MID = made.GRID.mid


def by_hand(training: TrainingKernels | None) -> Explanation:
    """One kernel at (0, 0) of two features."""
    return Explanation(
        kind="raw",
        names=("a", "b"),
        values=np.zeros((1, 2)),
        minimum=np.zeros(2),
        maximum=np.ones(2),
        points=np.zeros((1, 2)),
        training=training,
    )


THREE = TrainingKernels(("far", "near", "mid"), np.array([[1.0, 1.0], [0.3, 0.4], [0.0, 0.8]]))


class TestNeighbours:
    def test_are_ordered_by_euclidean_distance(self) -> None:
        """By hand: sqrt 2, a 3-4-5 triangle, 0.8."""
        found = by_hand(THREE).nearest(0, 2)
        assert found == [("near", pytest.approx(0.5)), ("mid", pytest.approx(0.8))]
        assert len(by_hand(THREE).nearest(0, 9)) == 3

    def test_usual_distance_is_the_median_to_the_nearest_other(self) -> None:
        """By hand: near and mid are 0.5 apart; far is sqrt 0.85 from near, sqrt 1.04 from mid."""
        assert by_hand(THREE).usual_distance() == pytest.approx(0.5)
        two = TrainingKernels(THREE.kernels[:2], THREE.points[:2])
        assert by_hand(two).usual_distance() == pytest.approx(np.sqrt(0.85))

    def test_are_none_where_the_training_kernels_are_not_known(self) -> None:
        assert by_hand(None).nearest(0, 5) == []
        assert by_hand(None).usual_distance() is None
        one = TrainingKernels(("alone",), np.zeros((1, 2)))
        assert by_hand(one).usual_distance() is None


class TestPredictors:
    @pytest.mark.parametrize("name", ["wu", "nearest"])
    def test_a_training_kernel_is_its_own_nearest(self, name: str) -> None:
        measurements = made.measurements().in_order
        profiles = measurements.profiles(MID)
        model = train(measurements, MID, name, **own(name, clusters=4))
        for predictor in model.predictors.values():
            explanation = predictor.explain(profiles)
            assert explanation is not None
            assert explanation.names == profiles.counter_names
            assert same_bits(explanation.values, profiles.counters)
            for k, kernel in enumerate(profiles.kernels):
                assert explanation.nearest(k, 1) == [(kernel, 0.0)]

    @pytest.mark.parametrize("name", ["core-bound", "mean-surface"])
    def test_without_features_there_is_nothing_to_explain(self, name: str) -> None:
        model = train(made.measurements(), MID, name)
        assert not any(isinstance(p, Explains) for p in model.predictors.values())

    def test_clusters_are_those_whose_networks_answer_most(self) -> None:
        """Expected: each network asked by itself (Wu et al., Fig. 9)."""
        model = train(made.measurements(), MID, "wu", clusters=4)
        profiles = made.measurements(seed=1).profiles(MID)
        predictor = model.predictors["time"]
        assert isinstance(predictor, Wu)
        explanation = predictor.explain(profiles)
        points, _ = predictor.scaling_.transform(profiles)
        assert explanation.training is not None
        by_region = dict(zip((0, 1, 2, -1), explanation.choices, strict=True))
        for one in predictor.cluster_sets_:
            choice = by_region[one.region]
            assert choice.count == len(one.centroids)
            assert choice.chosen.tolist() == outputs(one.network, points).argmax(axis=1).tolist()
            known = outputs(one.network, explanation.training.points).argmax(axis=1)
            assert choice.training is not None
            assert choice.training.tolist() == known.tolist()

    def test_a_missing_feature_stays_missing(self) -> None:
        measurements = made.measurements().in_order
        counters = measurements.counter_samples.copy()
        counters[:, 2, ..., 1] = np.nan
        lacking = replace(measurements, counter_samples=counters)
        explanation = (
            train(lacking, MID, "nearest").predictors["time"].explain(lacking.profiles(MID))
        )
        assert explanation is not None
        assert np.isnan(explanation.values).nonzero() == (np.array([2]), np.array([1]))
        assert np.isfinite(explanation.points).all()

    def test_a_lacking_counter_is_refused_as_by_predict(self) -> None:
        profiles = made.measurements().profiles(MID)
        bare = replace(
            profiles, counter_names=profiles.counter_names[1:], counters=profiles.counters[:, 1:]
        )
        with refused("the model needs the feature 'busy_compute'"):
            train(made.measurements(), MID, "nearest").predictors["time"].explain(bare)


class TestFiles:
    """The training kernels are in the file."""

    def saved(self, name: str, folder: Path) -> tuple[Model, Profiles, Path]:
        model = train(made.measurements(), MID, name, **own(name, clusters=4))
        save(model, folder / "model.mlscale")
        return model, made.measurements(seed=1).profiles(MID), folder / "model.mlscale"

    @pytest.mark.parametrize("name", ["wu", "nearest"])
    def test_what_is_explained_survives_the_file(self, name: str, tmp_path: Path) -> None:
        model, profiles, path = self.saved(name, tmp_path)
        before = model.predictors["time"].explain(profiles)
        after = load(path).predictors["time"].explain(profiles)
        assert before is not None
        assert after is not None
        assert [after.nearest(k, 5) for k in range(12)] == [before.nearest(k, 5) for k in range(12)]
        assert after.usual_distance() == before.usual_distance()

    @pytest.mark.parametrize("name", ["wu", "nearest"])
    def test_fewer_names_than_points_are_refused(self, name: str, tmp_path: Path) -> None:
        _, _, path = self.saved(name, tmp_path)
        edited(path, lambda state: state.get("training", state)["kernels"].pop())
        with pytest.raises(InputError, match=r"is a damaged model file: .* has the shape"):
            load(path)


def edited(path: Path, change: object) -> None:
    """Change the state of every predictor in a model file."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members["model.json"])
    for saved in document["predictors"].values():
        change(saved["state"])  # type: ignore[operator]
    members["model.json"] = json.dumps(document).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
