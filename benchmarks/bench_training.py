"""Training the classifiers of `wu`: one batch in torch against a loop of scikit-learn networks.

    python benchmarks/bench_training.py

The work is that of one leave-one-application-out study on the simulated set: 28 models of 5
cluster sets each. Both sides learn the same labels from the same features.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from mlscale.datasets import path
from mlscale.measurements import read_measurements
from mlscale.predictors.feature_scaling import FeatureScaling
from mlscale.predictors.wu_clusters import region_values
from mlscale.predictors.wu_training import WEIGHT_DECAY, ClassifierTask, cluster, train_networks
from mlscale.scaling import scaling_values
from mlscale.studies.protocols import folds

CLUSTERS = 8


def make_tasks() -> list[ClassifierTask]:
    """The classifier tasks of every fold."""
    data = read_measurements(path("simulated-gcn3.parquet"))
    base = data.grid.mid
    tasks = []
    for train, _ in folds("leave-one-application-out", data.applications, 0):
        training = data.select(train)
        profiles = training.profiles(base)
        points, _ = FeatureScaling.fit("table2", profiles).transform(profiles)
        regions = region_values(scaling_values(training.time_ms, data.grid.index(base)))
        for region, values in regions.items():
            labels, _ = cluster(values, CLUSTERS, 0)
            tasks.append(ClassifierTask(points, labels, (0, region + 1)))
    return tasks


def main() -> None:
    """Print seconds and training accuracy of both, and the ratio of the seconds."""
    tasks = make_tasks()
    train_networks(tasks[:1])
    started = time.perf_counter()
    networks = train_networks(tasks)
    ours = time.perf_counter() - started
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        peers = [
            MLPClassifier(
                (CLUSTERS,), "logistic", solver="lbfgs", alpha=WEIGHT_DECAY, max_iter=300
            ).fit(2 * task.features - 1, task.labels)
            for task in tasks
        ]
    theirs = time.perf_counter() - started
    right = [
        (n.outputs(t.features).argmax(axis=1) == t.labels).mean()
        for n, t in zip(networks, tasks, strict=True)
    ]
    right_peer = [p.score(2 * t.features - 1, t.labels) for p, t in zip(peers, tasks, strict=True)]
    print(
        f"{len(tasks)} networks of {CLUSTERS} hidden units, {tasks[0].features.shape[1]} features"
    )
    for name, spent, share in (
        ("mlscale, one batch", ours, right),
        ("scikit-learn, one by one", theirs, right_peer),
    ):
        print(f"{name:26s} {spent:7.2f} s   right on {100 * np.mean(share):.1f} % of training")
    print(f"{'scikit-learn / mlscale':26s} {theirs / ours:7.2f}")


if __name__ == "__main__":
    main()
