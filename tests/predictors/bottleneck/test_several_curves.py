"""With a CU axis the curve is the mean of several; files of it, and its value at the base."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import bottleneck_kernels as made
from synthetic.tidy import same_bits

from mlscale import Model, Profiles, load, save, train
from mlscale.predictors.bottleneck.curve import KernelTraits
from mlscale.predictors.bottleneck.estimator import Bottleneck


def test_the_curve_is_the_mean_of_those_without_a_group() -> None:
    table = made.with_cu_axis(12)
    model = Bottleneck(intervals=False, amplitude=1.0).fit(table, table.grid.mid).time_
    assert len(model.parts) == 4
    model = replace(model, corrections=(None,))
    kernels = KernelTraits.from_profiles(table.profiles(table.grid.mid))
    own = [part.prior(kernels, part.gpus[0], 0).predicted() for part in model.parts]
    whole = model.prior(kernels, model.gpus[0], 0).predicted()
    np.testing.assert_allclose(whole, np.mean(own, axis=0), atol=1e-12)


@pytest.fixture(scope="module")
def trained() -> Model:
    table = made.with_cu_axis(16)
    return train(table, table.grid.mid, "bottleneck", amplitude=1.0)


def new_kernels() -> Profiles:
    table = made.with_cu_axis(5, seed=1)
    return table.profiles(table.grid.mid)


def test_a_file_gives_the_same_bits(trained: Model, tmp_path: Path) -> None:
    save(trained, tmp_path / "m.mlscale")
    again = load(tmp_path / "m.mlscale").predict(new_kernels())["time"].values
    assert same_bits(again, trained.predict(new_kernels())["time"].values)
