"""study errors: faulty kernels, several GPUs at once, and training on other tables.

Kernels are made ones of known laws, so that what `nearest` errs by is zero.
"""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest
from command import Capture, refuse, succeed
from synthetic import bottleneck_kernels, tidy
from synthetic import kernels as made

from mlscale import ConfigGrid

pytestmark = pytest.mark.usefixtures("one_process")

GRID = ConfigGrid((4, 8), (500.0, 1000.0), (400.0, 800.0))


def test_tells_what_the_faulty_kernels_cost(capsys: Capture, tmp_path: Path) -> None:
    """Table and document agree; without the faulty kernel is the mean of the others."""
    data = made.measurements(per_group=2, grid=GRID)
    replace(data, metadata={"faults": {"compute0": "is odd"}}).write(tmp_path / "marked.csv")
    given = ["study", "errors", tmp_path / "marked.csv", "--quantity", "power"]
    given += ["--predictor", "wu", "--features", "raw", "--features", "raw+power"]
    given += ["--clusters", 2, "--seeds", 1, "--all", "-o", tmp_path / "out"]
    text, _ = succeed(capsys, *given)
    document = json.loads((tmp_path / "out" / "study.json").read_text())
    kernels = tidy.read_csv(tmp_path / "out" / "kernels.csv")
    lines = text.splitlines()
    for row, line in zip(document["rows"], lines[3:], strict=False):
        name = (row["predictor"], row["features"] or "")
        others = [
            float(k["mape"])
            for k in kernels
            if k["kernel"] != "compute0" and (k["predictor"], k["features"]) == name
        ]
        assert row["faulty_kernels"] == ["compute0"]
        assert row["without_faulty"]["mape"] == pytest.approx(mean(others), rel=1e-12)
        assert f"{row['without_faulty']['mape']:.2f}" in line.split()
    assert "Named faulty: compute0 (not scored there)." in lines
    written = tidy.read_csv(tmp_path / "out" / "errors.csv")
    assert [float(r["mape_without_faulty"]) for r in written] == [
        row["without_faulty"]["mape"] for row in document["rows"]
    ]


@pytest.fixture
def gpus(tmp_path: Path) -> list[Path]:
    """Made kernels of the bottleneck curve, as of two devices."""
    one = bottleneck_kernels.measurements(4)
    one.write(tmp_path / "one.csv")
    replace(one, device="gtx1080ti").write(tmp_path / "two.csv")
    return [tmp_path / "one.csv", tmp_path / "two.csv"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "said", "quantities"),
    [
        ("--pooled", "trained on all tables at once", ("time", "power")),
        ("--unseen-gpu", "trained on other GPUs alone", ("time",)),
    ],
)
def test_several_gpus(
    capsys: Capture,
    gpus: list[Path],
    tmp_path: Path,
    option: str,
    said: str,
    quantities: tuple[str, ...],
) -> None:
    given = ["study", "errors", *gpus, option, "--seeds", 1, "-o", tmp_path / "out"]
    document = json.loads(succeed(capsys, *given, "--json")[0])
    assert document["training"] == option.removeprefix("--")
    assert [(r["table"], r["predictor"], r["quantity"]) for r in document["rows"]] == [
        (table, "bottleneck", quantity) for table in ("one", "two") for quantity in quantities
    ]
    assert all(0 <= row["coverage"] <= 100 for row in document["rows"])
    text, _ = succeed(capsys, *given, "--resume", "--all")
    assert said in text.splitlines()[0]


@pytest.fixture
def real_and_micro(tmp_path: Path) -> list[Path]:
    """Made kernels, and others of the same laws, one of them of a tested application."""
    made.measurements(2, GRID).write(tmp_path / "real.csv")
    micro = made.measurements(4, GRID, seed=1)  # three of each law are left to `nearest`
    names = tuple(f"micro-{name}" for name in micro.kernels)
    applications = ("app-latency1", *names[1:])
    replace(micro, kernels=names, applications=applications).write(tmp_path / "micro.csv")
    return [tmp_path / "real.csv", tmp_path / "micro.csv"]


def test_train_on_names_the_protocol_and_what_was_left_out(
    capsys: Capture, real_and_micro: list[Path], tmp_path: Path
) -> None:
    real, micro = real_and_micro
    given = ["study", "errors", real, "--train-on", micro, "--predictor", "nearest"]
    given += ["--features", "raw", "--seeds", 1, "--base", "highest"]
    text, _ = succeed(capsys, *given, "--all", "-o", tmp_path / "out")
    head = (
        "real: error of time [%], 8 kernels, base cu=8,engine=1000,memory=800, "
        "train-on micro (15 kernels), 1 seed, 8 clusters"
    )
    assert text.splitlines()[0] == head
    assert "Left out of the training, as they are tested: app-latency1." in text.splitlines()
    document = json.loads((tmp_path / "out" / "study.json").read_text())
    assert (document["protocol"], document["train_on"]) == ("train-on", ["micro"])
    for row in document["rows"]:
        assert row["protocol"] == "train-on"
        assert row["left_out_of_training"] == ["app-latency1"]
    for written in tidy.read_csv(tmp_path / "out" / "errors.csv"):
        assert (written["protocol"], written["train_on"]) == ("train-on", "micro")
        assert written["left_out_of_training"] == "app-latency1"
        assert written["n_training_kernels"] == "15"
    nearest = [row["mape"] for row in document["rows"] if row["predictor"] == "nearest"]
    assert nearest == pytest.approx([0, 0], abs=1e-9)  # the same laws, told by the counters


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("one two --pooled --unseen-gpu", "argument --unseen-gpu: not allowed with arg"),
        ("one two --pooled --predictor wu", "'wu' learns from one table at a time"),
        ("one two --unseen-gpu --quantity power", "power is learnt on the GPU"),
        ("one two --unseen-gpu --predictor wu", "'wu' cannot predict a GPU that it was not train"),
        ("one --pooled", "training on several"),
        ("one --unseen-gpu", "no table is of another GPU"),
        ("one --train-on two --pooled", "argument --pooled: not allowed with argument --train-on"),
        ("one --train-on two --protocol holdout", "a study that trains on other tables has a pro"),
        ("one --train-on none", "none.csv: cannot be read: "),
        ("one --train-on one", "no kernel is left to train on: 'one' tests every application"),
        ("one --train-on one --train-on one", "two tables are named 'one'; rename one"),
    ],
)
def test_what_cannot_be_studied(
    capsys: Capture, gpus: list[Path], tmp_path: Path, words: str, problem: str
) -> None:
    files = {**{path.stem: path for path in gpus}, "none": "none.csv"}
    given = [files.get(word, word) for word in words.split()]
    message = refuse(capsys, tmp_path, "study", "errors", *given, "-o", tmp_path / "out")
    assert message.startswith(problem)
