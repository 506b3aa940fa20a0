"""predict to CSV and Parquet: one content however many rows, whole files, the format by the name.

Expected: what the standard library's csv writes of the same columns.
"""

import csv
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import Capture, at_base, refuse, succeed, train
from synthetic import tidy

from mlscale import ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.model import prediction_table
from mlscale.model.prediction_table import csv_by_arrow, csv_by_standard_library
from mlscale.model.predictions import Predictions

GRID = ConfigGrid((4, 8), (400.0, 800.5), (700.0,))
# Where Python and Arrow write exponents, whole numbers, the largest and the smallest differ.
NUMBERS = (1.0, 0.1, 1 / 3, 1e-5, 1.5e-7, 1e16, 123456789012.5, 5e-324, 1.7e307, 0.00012345)
NAMES = ("plain", "void k<int, 2>(float *)", 'the "fast" one', "two\nlines", "=1+1", "größe")


def predictions(count: int = 200) -> Predictions:
    """Made numbers of every size for kernels with odd names; the flags too need quotes."""
    generator = np.random.default_rng(0)
    shape = (count, *GRID.shape)
    values = generator.choice(NUMBERS, shape) * generator.choice([1, 1, np.pi], shape)
    low = np.where(generator.random(shape) < 0.1, np.nan, values * 0.9)
    flags = tuple(("a", "b, c") if k % 3 == 0 else () for k in range(count))
    kernels = tuple(f"{NAMES[k % len(NAMES)]}{k}" for k in range(count))
    profiles = Profiles(
        "made-gpu", GRID.mid, kernels, kernels, np.ones(count), None, (), np.empty((count, 0))
    )
    surfaces = Surfaces(GRID, GRID.mid, values, flags, low, values)
    return Predictions(profiles, {"time": surfaces})


def cells(content: bytes) -> list[list[str | float]]:
    """The cells of a CSV, numbers as such."""
    rows = csv.reader(io.StringIO(content.decode(), newline=""))
    is_number = re.compile(r"[-+\d.e]+").fullmatch
    return [[float(cell) if is_number(cell) else cell for cell in row] for row in rows]


def test_arrow_writes_what_the_standard_library_writes() -> None:
    """To the last bit of every number."""
    columns = predictions().columns([GRID.mid, GRID.parse("cu=6,engine=500")])
    rows = cells(csv_by_arrow(columns))
    assert rows == cells(csv_by_standard_library(columns))
    assert rows[0][0] == "plain0"
    assert rows[8][0] == "'=1+14"  # no formula, for a spreadsheet
    assert [row[5] for row in rows] == columns["time_factor"].tolist()


@pytest.fixture
def predict(capsys: Capture, tmp_path: Path) -> Callable[..., str]:
    """Predict thirty kernels at four configurations; what was printed."""
    rows = tidy.rows([f"k{i}" for i in range(30)])
    model = train(capsys, tmp_path, rows, "--predictor", "mean-surface")
    profile = tidy.write_csv(tmp_path / "profile.csv", at_base(rows))
    return lambda *options: succeed(capsys, "predict", model, profile, *options)[0]


def test_many_parts_are_the_same_as_one(
    predict: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = predict("--format", "csv")
    assert predict("-o", tmp_path / "few.csv") == ""
    monkeypatch.setattr(prediction_table, "PART", 12)  # of 120: ten parts
    monkeypatch.setattr(prediction_table, "FEW_ROWS", 0)
    assert predict("-o", tmp_path / "many.csv") == ""
    assert (tmp_path / "few.csv").read_text() == printed
    many, few = ((tmp_path / f"{name}.csv").read_bytes() for name in ("many", "few"))
    assert cells(many) == cells(few)
    predict("-o", tmp_path / "many.parquet")
    frame = pd.read_parquet(tmp_path / "many.parquet")
    texts = {name: [""] for name in frame.columns if name not in ("kernel", "flags")}
    from_csv = pd.read_csv(tmp_path / "few.csv", keep_default_na=False, na_values=texts)
    pd.testing.assert_frame_equal(frame, from_csv, check_exact=True)


def test_a_kernel_that_cannot_be_predicted_leaves_no_file(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel of the last part lacks one of the counters that the model needs."""
    rows = [row | {"stores": row["loads"]} for row in tidy.rows([f"k{i}" for i in range(6)])]
    model = train(capsys, tmp_path, rows)
    profile = at_base(rows)
    profile[-1]["loads"] = ""
    monkeypatch.setattr(prediction_table, "PART", 4)
    given = ["predict", model, tidy.write_csv(tmp_path / "p.csv", profile)]
    for output in (["-o", tmp_path / "o.csv"], ["-o", tmp_path / "o.parquet"]):
        assert "kernel 'k5' has no value for 'loads'" in refuse(capsys, tmp_path, *given, *output)


@pytest.mark.parametrize(
    ("options", "begin"),
    [
        (["o.csv"], b"kernel,"),
        (["o.json"], b"{"),
        (["o.txt"], b"kernel  "),
        (["o.csv", "--format", "json"], b"{"),
        (["odd", "--format", "parquet"], b"PAR1"),
    ],
)
def test_the_name_says_the_format(
    predict: Callable[..., str], tmp_path: Path, options: list[str], begin: bytes
) -> None:
    predict("-o", tmp_path / options[0], *options[1:])
    assert (tmp_path / options[0]).read_bytes().startswith(begin)


def test_parquet_needs_a_file(capsys: Capture, tmp_path: Path) -> None:
    given = ["predict", "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv"]
    message = refuse(capsys, tmp_path, *given, "--format", "parquet")
    assert message.startswith("--format parquet is not for a terminal; name a file with -o")


def test_many_rows_do_not_import_pandas(predict: Callable[..., str], tmp_path: Path) -> None:
    """Its import takes longer than writing a hundred thousand rows."""
    assert predict()
    code = (
        "import sys\nfrom mlscale.model import prediction_table\nfrom mlscale.cli import main\n"
        "prediction_table.FEW_ROWS, prediction_table.PART = 0, 12\n"
        "status = main.main(['predict', *sys.argv[1:]])\n"
        "print(status, 'pyarrow' in sys.modules, 'pandas' in sys.modules)\n"
    )
    files = [tmp_path / "trained.mlscale", tmp_path / "profile.csv"]
    for output in ("o.csv", "o.parquet"):
        words = [sys.executable, "-c", code, *files, "-o", tmp_path / output]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "0 True False"
