"""predict to CSV and Parquet: one content however many rows, whole files, the format by the name.

Expected: one part's rows for many parts; pandas' reading of the CSV for Parquet.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from command import Cli, at_base
from synthetic import tidy

from mlscale.model import prediction_table


@pytest.fixture
def predict(cli: Cli, tmp_path: Path) -> Callable[..., str]:
    """Predict thirty kernels at four configurations; what was printed."""
    rows = tidy.rows([f"k{i}" for i in range(30)])
    model = cli.train(rows, "--predictor", "mean-surface")
    profile = tidy.write_csv(tmp_path / "profile.csv", at_base(rows))
    return lambda *options: cli("predict", model, profile, *options)


def test_many_parts_are_the_same_as_one(
    predict: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = predict("--format", "csv")
    assert predict("-o", tmp_path / "few.csv") == ""
    monkeypatch.setattr(prediction_table, "PART", 12)  # so 120 are ten parts
    assert predict("-o", tmp_path / "many.csv") == ""
    assert (tmp_path / "few.csv").read_text() == printed
    assert (tmp_path / "many.csv").read_text() == printed
    predict("-o", tmp_path / "many.parquet")
    frame = pd.read_parquet(tmp_path / "many.parquet")
    texts = {name: [""] for name in frame.columns if name not in ("kernel", "flags")}
    from_csv = pd.read_csv(tmp_path / "few.csv", keep_default_na=False, na_values=texts)
    pd.testing.assert_frame_equal(frame, from_csv, check_exact=True)


def test_a_kernel_that_cannot_be_predicted_leaves_no_file(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of the last part has another counter than the model learnt."""
    rows = [row | {"stores": row["loads"]} for row in tidy.rows([f"k{i}" for i in range(6)])]
    model = cli.train(rows)
    profile = at_base(rows)
    profile[-1] |= {"loads": "", "stores": ""}
    profile = [row | {"branches": 1} for row in profile]
    monkeypatch.setattr(prediction_table, "PART", 4)
    given = ["predict", model, tidy.write_csv(tmp_path / "p.csv", profile)]
    for output in (["-o", tmp_path / "o.csv"], ["-o", tmp_path / "o.parquet"]):
        assert "kernel 'k5' has none of the features" in cli.refused(*given, *output)


@pytest.mark.parametrize(
    ("options", "begin"),
    [
        (["o.csv"], b"kernel,"),
        (["o.json"], b"{"),
        (["o.txt"], b"  30 kernels"),
        (["o.csv", "--format", "json"], b"{"),
        (["odd", "--format", "parquet"], b"PAR1"),
    ],
)
def test_the_name_says_the_format(
    predict: Callable[..., str], tmp_path: Path, options: list[str], begin: bytes
) -> None:
    predict("-o", tmp_path / options[0], *options[1:])
    assert (tmp_path / options[0]).read_bytes().startswith(begin)


def test_parquet_needs_a_file(cli: Cli) -> None:
    given = ["predict", "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv"]
    message = cli.refused(*given, "--format", "parquet")
    assert message.startswith("--format parquet is not for a terminal; name a file with -o")


def test_many_rows_do_not_import_pandas(predict: Callable[..., str], tmp_path: Path) -> None:
    """Its import takes longer than writing a hundred thousand rows."""
    assert predict()
    code = (
        "import sys\nfrom mlscale.model import prediction_table\nfrom mlscale.cli import main\n"
        "prediction_table.PART = 12\n"
        "status = main.main(['predict', *sys.argv[1:]])\n"
        "print(status, 'pandas' in sys.modules)\n"
    )
    files = [tmp_path / "trained.mlscale", tmp_path / "profile.csv"]
    for output in ("o.csv", "o.parquet"):
        words = [sys.executable, "-c", code, *files, "-o", tmp_path / output]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "0 False"
