"""Power of a GPU that no table to train on is of."""

from dataclasses import replace

import pytest
from synthetic import board_kernels
from synthetic import sampled_kernels as made
from synthetic.tidy import refused

import mlscale


@pytest.mark.filterwarnings("ignore:.*has no counters:mlscale.DataWarning")
@pytest.mark.parametrize("training", ["train_on", "unseen-gpu"])
def test_power_of_another_gpu(training: str) -> None:
    """The same laws, and boards of 250 W both: what is left are the times, which it guesses."""
    one = board_kernels.measurements("v100", 0)
    two = board_kernels.measurements("p100", 1)
    others = tuple(f"other {name}" for name in two.kernels)
    two = replace(two, applications=others, kernels=others)
    how = {"train_on": {"one": one}} if training == "train_on" else {"training": training}
    tables = {"two": two} if training == "train_on" else {"one": one, "two": two}
    predictors = ["board-power", "engine-bound"]
    frame = mlscale.study(
        "errors", tables, predictors, quantity="power", base="highest", seeds=1, **how
    )
    errors = frame[frame.table == "two"].set_index("predictor").mape
    assert errors["board-power"] < 5
    assert errors["board-power"] < errors["engine-bound"] / 3


def test_others_learn_power_on_the_gpu_itself() -> None:
    two = replace(made.measurements(seed=1), device="two")
    with refused("only time is for unseen GPUs, or power by 'board-power'"):
        mlscale.study(
            "errors",
            {"one": made.measurements(), "two": two},
            ["bottleneck"],
            quantity="power",
            training="unseen-gpu",
        )
