"""mlscale show: the card, and what each predictor holds."""

from pathlib import Path

import pytest
from command import Cli
from synthetic import kernels as made

from mlscale import train

BASE = "cu=8,engine=800,memory=700"  # the mid-grid of made.GRID


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of four clusters, and its training table."""
    folder = tmp_path_factory.mktemp("show")
    measurements = made.measurements()
    train(measurements, "mid", "wu", clusters=4).save(folder / "made.mlscale")
    measurements.write(folder / "made.csv")
    return folder


def test_text(cli: Cli, folder: Path) -> None:
    out, err = cli.both("show", folder / "made.mlscale", "--all")
    lines = out.splitlines()
    assert f"  for           profiles of made-gpu at {BASE}" in lines
    assert "  trained on    12 kernels of 12 applications on made-gpu" in lines
    assert "  data          made" in lines
    assert "applications  app-bandwidth-a, " in " ".join(out.split("\n\n")[1].split("   "))
    assert err == ""


def test_a_shipped_model(cli: Cli) -> None:
    words = " ".join(cli("show", "kernels", "--all").split())
    assert " time bottleneck: Time by a p-norm" in words
    assert " trained on gtx980, gtx980, gtx1080ti, p100" in words
    assert " gives intervals, predicts unseen GPUs" in words


def test_the_parameters_and_what_a_card_nests(cli: Cli, folder: Path) -> None:
    out = cli("show", folder / "made.mlscale", "--all")
    assert " parameters clusters 4, seed 0, loss cross-entropy " in " ".join(out.split())
    out = cli("show", "runs", "--all")  # from its card, quantities of several tables
    words = " ".join(out.split())
    assert "errors on gpus left out a100-sxm4-80gb time mean_error_percent 2." in words
