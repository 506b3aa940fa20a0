"""Pooled, and a GPU never trained on, on real data, against bounds that were set beforehand [%].

Five folds of applications, each held out of every GPU: fewer training kernels than with
leave-one-application-out, and a twentieth of its fits. `mlscale study errors TABLE… --pooled` and
`--unseen-gpu` print that: 2.65 / 2.43 / 1.67 / 3.06 and 3.23 / 3.19 / 2.21 / 3.39 when written.
"""

import copy
import warnings
from pathlib import Path

import numpy as np
import pytest

from mlscale import DataWarning, Measurements
from mlscale.data.public.nv_dvfs import read_nv_dvfs
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.studies.metrics import absolute_percentage_error, without_base
from mlscale.studies.splits import folds
from mlscale.studies.training import fit_folds

FILES = {
    "gtx980-low": "dvfs/gtx980-low-dvfs-real-small-workload-Performance-Power.csv",
    "gtx980-high": "dvfs/gtx980-high-dvfs-real-small-workload-Performance-Power.csv",
    "gtx1080ti": "dvfs/gtx1080ti-dvfs-real-Performance-Power.csv",
    "p100": "dvfs/p100-dvfs-real-Performance-Power.csv",
}
POOLED = {"gtx980-low": 2.8, "gtx980-high": 2.8, "gtx1080ti": 1.8, "p100": 3.3}
UNSEEN = 3.7


@pytest.fixture(scope="module")
def tables(data_folder: Path) -> dict[str, Measurements]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return {name: read_nv_dvfs(data_folder / file, None) for name, file in FILES.items()}


def errors(model: Bottleneck, test: Measurements, unseen: bool) -> np.ndarray:  # type: ignore[type-arg]
    """Errors [%] (K, targets) of held-out kernels."""
    base, truth = test.grid.mid, test.time_ms
    at = test.grid.index(base)
    values = model.predict(test.profiles(base), test.grid if unseen else None).values
    actual = truth / truth[(slice(None), *at)][:, None, None, None]
    return without_base(absolute_percentage_error(values, actual), at)


def cross_validated(
    targets: list[Measurements], trained_on: list[Measurements], unseen: bool
) -> list[float]:
    """MAPE [%] of each target; all have the same applications, so a fold's fit serves all."""
    split = folds("k-fold", targets[0].applications, 0)
    assert all(table.kernels == targets[0].kernels for table in targets)
    based = [(table, table.grid.mid) for table in trained_on]
    models = [Bottleneck(intervals=False) for _ in split]
    fit_folds(models, split, (targets[0], targets[0].grid.mid), based, unseen=False)
    found: list[list[np.ndarray]] = [[] for _ in targets]  # type: ignore[type-arg]
    for model, (train, test) in zip(models, split, strict=True):
        for target, own in zip(targets, found, strict=True):
            ready = copy.copy(model)  # so that two files of one GPU keep their peaks apart
            if unseen:
                ready.learn_peaks(target.select(train).profiles(target.grid.mid), target.grid)
            own.append(errors(ready, target.select(test), unseen))
    return [float(np.concatenate(own).mean()) for own in found]


def test_pooled(tables: dict[str, Measurements]) -> None:
    everyone = list(tables.values())
    found = dict(zip(tables, cross_validated(everyone, everyone, unseen=False), strict=True))
    assert all(found[name] <= POOLED[name] for name in tables), found


@pytest.mark.parametrize("device", ["gtx980", "gtx1080ti", "p100"])
def test_never_trained_on(tables: dict[str, Measurements], device: str) -> None:
    """Both files of the GTX 980 are left out together."""
    targets = [table for table in tables.values() if table.device == device]
    others = [table for table in tables.values() if table.device != device]
    found = cross_validated(targets, others, unseen=True)
    assert max(found) <= UNSEEN
