"""mlscale show: the card, the clusters of wu with their members, and the outputs for a kernel."""

import json
from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from synthetic import kernels as made

from mlscale import ConfigGrid, train

BASE = "cu=8,engine=800,memory=700"  # the mid-grid of made.GRID


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of four clusters of four made laws, and the profile of its kernels."""
    folder = tmp_path_factory.mktemp("show")
    measurements = made.measurements()
    train(measurements, "mid", "wu", clusters=4).save(folder / "made.mlscale")
    measurements.write(folder / "made.csv")
    return folder


def test_text(capsys: Capture, folder: Path) -> None:
    out, err = succeed(capsys, "show", folder / "made.mlscale")
    assert out.startswith(f"made.mlscale: made-gpu, base {BASE}\n")
    assert "trained on: 12 kernels of 12 applications: app-bandwidth0" in out
    assert "origin: made" in out
    [bandwidth] = [
        line for line in _block(out, "time, clocks at 8 compute units") if "bandwidth0" in line
    ]
    # Closed form: time goes with 1 / memory clock alone, 700/400 and 700/1000 at the ends.
    assert bandwidth.split()[1:6] == ["3", "1.00", "1.00", "1.75", "0.700"]
    assert bandwidth.endswith("bandwidth0, bandwidth1, bandwidth2")
    [compute] = [line for line in _block(out, "time, compute units") if "compute0" in line]
    assert compute.split()[2:4] == ["2.00", "0.500"]  # 8/4 and 8/16
    assert err == ""


def test_the_outputs_for_the_kernels_of_a_profile(capsys: Capture, folder: Path) -> None:
    words = ("show", folder / "made.mlscale", folder / "made.csv")
    out, _ = succeed(capsys, *words, "--json")
    document = json.loads(out)
    sets = {one["region"]: one for one in document["predictors"]["time"]["cluster_sets"]}
    rows = [row for row in document["kernels"] if row["quantity"] == "time"]
    assert {row["region"] for row in rows} == set(sets)
    assert len(rows) == 12 * len(sets)
    for row in rows:
        cluster = sets[row["region"]]["clusters"][row["cluster"] - 1]
        assert row["kernel"] in cluster["kernels"]  # it was trained on, and learnt without error
        assert max(row["outputs"]) == row["outputs"][row["cluster"] - 1] > 0.5
    text, _ = succeed(capsys, *words)
    assert "time, clocks at 4 compute units: outputs of the clusters" in text


def test_a_picture_of_each_cluster_set(capsys: Capture, tmp_path: Path) -> None:
    grid = ConfigGrid((4, 8), (400.0, 800.0), (700.0,))
    data = made.measurements(per_group=1, grid=grid)
    train(data, grid.mid, "wu", clusters=2).save(tmp_path / "made.mlscale")
    out, _ = succeed(capsys, "show", tmp_path / "made.mlscale", "-o", tmp_path / "new")
    parts = ["4-cus", "8-cus", "cu-axis"]
    names = {
        f"centroids-{quantity}-{part}.{kind}"
        for quantity in ("time", "power")
        for part in parts
        for kind in ("png", "svg")
    }
    assert {file.name for file in (tmp_path / "new").iterdir()} == names
    assert out.count("written: ") == len(names)


def test_a_shipped_model_without_clusters(capsys: Capture, tmp_path: Path) -> None:
    out, _ = succeed(capsys, "show", "kernels")
    assert "time: bottleneck: Time by a p-norm" in out
    assert "learnt from: gtx980, gtx980, gtx1080ti, p100" in out
    assert "gives intervals, predicts GPUs that it has no training data of" in out
    assert "has no clusters to draw" in refuse(
        capsys, tmp_path, "show", "kernels", "-o", tmp_path / "new"
    )


def test_what_is_no_model_is_refused(capsys: Capture, folder: Path) -> None:
    assert "is not a whole mlscale model file" in refuse(
        capsys, folder, "show", folder / "made.csv"
    )


def test_the_parameters_and_what_a_card_nests(capsys: Capture, folder: Path) -> None:
    out, _ = succeed(capsys, "show", folder / "made.mlscale")
    assert "  parameters: clusters 4, seed 0, loss cross-entropy\n" in out
    out, _ = succeed(capsys, "show", "runs")  # from its card, quantities of several tables
    assert "errors on gpus left out: a100-sampled time mean_error_percent 3.08, " in out


def _block(text: str, heading: str) -> list[str]:
    """The lines below a heading, up to the next empty line."""
    [block] = [one for one in text.split("\n\n") if one.startswith(heading)]
    return block.splitlines()[1:]
