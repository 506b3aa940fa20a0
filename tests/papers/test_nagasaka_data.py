"""Nagasaka's model on public measurements, against docs/papers/equations.md, section 3.4.

By the functions of reproduction/nagasaka2010.py, which chooses lambda and holds out as the paper.
"""

from pathlib import Path

import numpy as np
import pytest
from nagasaka2010 import SHUFFLES, chosen_penalty, groups, held_out, inputs, scores
from public_tables import FILES, measured

from mlscale.data.grid import HardwareConfig
from mlscale.data.surfaces import absolute_percentage_error
from mlscale.papers.nagasaka import (
    SETS,
    LinearPowerModel,
    PowerInputs,
    derive_inputs,
    estimate_power_w,
    fit_power_model,
)

# An independent implementation (equations.md, 3.4): error ratio [%] and mean squared error
# [W^2] of the sets in the order of SETS, 30 kernels, ten folds by kernel, nested lambda, mean of 5
# shuffles.
EXPECTED = {
    "gtx980-low": ([9.6, 5.9, 5.5, 5.3, 5.4, 5.8, 6.7, 9.6], [28, 12, 9.4, 9.4, 9.4, 10, 18, 30]),
    "gtx980-high": (
        [13.4, 10.6, 10.8, 11.1, 11.9, 11.7, 14.0, 12.9],
        [186, 125, 122, 130, 151, 145, 211, 176],
    ),
    "gtx1080ti": (
        [21.7, 14.8, 14.2, 13.9, 13.9, 14.9, 19.9, 20.5],
        [2137, 1056, 948, 934, 911, 1091, 2672, 1995],
    ),
    "p100": (
        [20.5, 20.6, 10.6, 11.1, 10.5, 9.4, 13.9, 24.0],
        [676, 600, 168, 182, 170, 152, 368, 917],
    ),
}


def fit(kernels: PowerInputs) -> LinearPowerModel:
    """The model of all kernels, by Mem/Inst."""
    rates, applications = kernels.matrix("Mem/Inst"), groups(kernels, "application")
    penalty = chosen_penalty(rates, kernels.power_w, applications, range(SHUFFLES))
    return fit_power_model(rates, kernels.power_w, penalty)


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", FILES)
def test_errors_of_the_sets(name: str) -> None:
    """Within what shuffles differ by: Full, which overfits, more than the others.

    Data: 'Full is best' is not reproduced, 'memory and instructions are essential' is.
    """
    assert list(inputs(name, False).sets) == list(SETS)
    errors = {}
    for counters, error, squared in zip(SETS, *EXPECTED[name], strict=True):
        predicted = held_out(name, counters, "kernel", False)
        ratio, mse = scores(predicted, inputs(name, False).power_w)
        assert ratio == pytest.approx(error, abs=0.75 if counters == "Full" else 0.55), counters
        assert mse == pytest.approx(squared, rel=0.11), counters
        errors[counters] = ratio
    assert errors["Mem/Inst"] < errors["Full"]
    assert errors["Mem/Inst"] < 0.9 * errors["intercept only"]
    assert errors["Mem/Inst"] < errors["Mem"]


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", FILES)
def test_kernels_that_it_cannot_see(name: str) -> None:
    """Data: two kernels read textures; on the P100 two others spill into the same cache.

    Paper, Fig. 5: for want of a counter their estimated power is lower than the actual.
    """
    kernels = inputs(name, False)
    texture = {kernels.kernels[k] for k in np.flatnonzero(kernels.texture == 1)}
    spilling = {"cfd", "dxtc"} if name == "p100" else set()
    assert texture == {"convolutionTexture", "stereoDisparity"} | spilling
    k = kernels.kernels.index("convolutionTexture")
    assert held_out(name, "Full", "kernel", False)[:, k].mean() < 0.95 * kernels.power_w[k]


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize(
    ("name", "percent"),
    # equations.md, 3.4: the intercept of least squares in percent of the mean power; the
    # paper has about 70.
    [("gtx980-low", 86), ("gtx980-high", 84), ("gtx1080ti", 70), ("p100", 36)],
)
def test_intercept_and_energies(name: str, percent: float) -> None:
    """The penalty that is chosen moves little of the power into the intercept."""
    found = inputs(name, False)
    model = fit(found)
    assert 100 * model.intercept_w / found.power_w.mean() == pytest.approx(percent, abs=2.5)
    # equations.md, 3.4: 0.6 to 2.9 nJ a transaction, 0.24 to 0.63 nJ a warp instruction.
    assert (model.energy_j > np.array([0.55e-9, 0.2e-9])).all()
    assert (model.energy_j < np.array([2.95e-9, 0.67e-9])).all()


@pytest.mark.parametrize(
    ("name", "engine", "memory", "expected"),
    # docs/papers/equations.md, 3.4: trained at one clock, applied to the others, Mem/Inst.
    [
        ("gtx980-low", 700, 700, 9.2),
        ("gtx980-low", 1000, 1000, 18.6),
        ("gtx980-high", 1100, 3100, 15.2),
        ("gtx980-high", 1500, 3900, 52.7),
        ("gtx1080ti", 1800, 5000, 13.2),
        ("gtx1080ti", 2000, 5500, 14.9),
        ("p100", 1328, 715, 28.8),
    ],
)
@pytest.mark.filterwarnings("ignore::mlscale.errors.DataWarning")
def test_the_model_of_one_clock_is_wrong_at_others(
    data_folder: Path, name: str, engine: float, memory: float, expected: float
) -> None:
    """The intercept holds the clocks and the voltage, even for the kernels it was trained with."""
    data = measured(data_folder, name)
    base = HardwareConfig(data.grid.cu_count[0], engine, memory)
    model = fit(derive_inputs(data.profiles(base)))
    others = [derive_inputs(data.profiles(config)) for config in data.grid if config != base]
    errors = [
        absolute_percentage_error(estimate_power_w(model, o.matrix("Mem/Inst")), o.power_w).mean()
        for o in others
    ]
    assert np.mean(errors) == pytest.approx(expected, abs=0.4)
