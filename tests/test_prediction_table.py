"""predict to CSV and Parquet: one text however many rows, whole files, the format by the name."""

import csv
import io
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import Capture, at_base, refuse, succeed, train
from synthetic import tidy
from threadpoolctl import ThreadpoolController

from mlscale import ConfigGrid
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import Surfaces
from mlscale.model import prediction_table
from mlscale.model.prediction_table import csv_by_arrow, csv_by_standard_library
from mlscale.model.predictions import Predictions

GRID = ConfigGrid((4, 8), (400.0, 800.5), (700.0,))
# Where Python and Arrow write exponents, whole numbers, the largest and the smallest differ.
NUMBERS = (1.0, 0.1, 1 / 3, 1e-5, 1.5e-7, 1e16, 123456789012.5, 7e11, 5e-324, 1.7e307,
           999999999.25, 0.0001, 0.00012345, 2.0**52)  # fmt: skip
NAMES = ("plain", "void k<int, 2>(float *)", 'the "fast" one', "two\nlines", " space ", "größe")


def predictions(count: int = 200) -> Predictions:
    """Made numbers of every size for kernels with hostile names; the flags too need quotes."""
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


class TestText:
    @pytest.mark.parametrize(
        "targets", [None, [GRID.mid], [GRID.mid, GRID.parse("cu=6,engine=500")]]
    )
    def test_arrow_writes_what_the_standard_library_writes(self, targets: list | None) -> None:
        synthetic = predictions()
        assert csv_by_arrow(synthetic, targets) == csv_by_standard_library(synthetic, targets)

    def test_every_number_reads_back_to_the_last_bit(self) -> None:
        synthetic = predictions()
        rows = list(csv.reader(io.StringIO(csv_by_arrow(synthetic, None).to_pybytes().decode())))
        columns = synthetic.columns()
        assert [row[0] for row in rows] == columns["kernel"].tolist()
        position = list(columns).index("time_factor")
        assert [float(row[position]) for row in rows] == columns["time_factor"].tolist()
        position = list(columns).index("time_ms_low")
        missing = np.isnan(columns["time_ms_low"]).tolist()
        assert [row[position] == "" for row in rows] == missing


@pytest.fixture
def predict(capsys: Capture, tmp_path: Path) -> Callable[..., str]:
    """Predict thirty kernels at four configurations; what was printed."""
    rows = tidy.rows([f"k{i}" for i in range(30)])
    model = train(capsys, tmp_path, rows, "--predictor", "mean-surface")
    profile = tidy.write_csv(tmp_path / "profile.csv", at_base(rows))
    return lambda *options: succeed(capsys, "predict", model, profile, *options)[0]


class TestFiles:
    def test_many_parts_are_the_same_file_as_one(
        self, predict: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        printed = predict("--format", "csv")
        assert predict("-o", tmp_path / "few.csv") == ""
        monkeypatch.setattr(prediction_table, "PART", 12)  # of 120: ten parts
        monkeypatch.setattr(prediction_table, "FEW_ROWS", 0)
        assert predict("-o", tmp_path / "many.csv") == ""
        assert (tmp_path / "few.csv").read_text() == printed
        assert (tmp_path / "many.csv").read_bytes() == (tmp_path / "few.csv").read_bytes()
        predict("-o", tmp_path / "many.parquet")
        frame = pd.read_parquet(tmp_path / "many.parquet")
        from_csv = pd.read_csv(tmp_path / "few.csv", keep_default_na=False, na_values={
            name: [""] for name in frame.columns if name not in ("kernel", "flags")
        })  # fmt: skip
        pd.testing.assert_frame_equal(frame, from_csv, check_exact=True)

    def test_each_part_has_one_thread_of_blas(
        self, predict: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As the parts fill all cores; with two threads each they took a third longer."""
        threads = []

        def note(*given: Any) -> bytes:
            threads.extend(own["num_threads"] for own in blas.info())
            return csv_by_standard_library(*given)

        blas = ThreadpoolController().select(user_api="blas")
        monkeypatch.setattr(prediction_table, "PART", 12)
        monkeypatch.setattr(prediction_table, "csv_by_standard_library", note)
        with blas.limit(limits=2):
            predict("-o", tmp_path / "many.csv")
            assert set(threads) == {1}
            assert {own["num_threads"] for own in blas.info()} == {2}

    def test_a_kernel_that_cannot_be_predicted_leaves_no_file(
        self, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The kernel of the last part lacks one of the counters that the model needs."""
        rows = [row | {"stores": row["loads"]} for row in tidy.rows([f"k{i}" for i in range(6)])]
        model = train(capsys, tmp_path, rows)
        profile = at_base(rows)
        profile[-1]["loads"] = ""
        monkeypatch.setattr(prediction_table, "PART", 4)
        given = ["predict", model, tidy.write_csv(tmp_path / "p.csv", profile)]
        for output in (
            ["-o", tmp_path / "o.csv"],
            ["-o", tmp_path / "o.parquet"],
            ["--format", "csv"],
        ):
            assert "kernel 'k5' has no value for 'loads'" in refuse(
                capsys, tmp_path, *given, *output
            )

    def test_the_name_says_the_format(self, predict: Callable[..., str], tmp_path: Path) -> None:
        for name, begin in (
            ("o.csv", "kernel,"),
            ("o.json", "{"),
            ("o.txt", "kernel  "),
            ("o", "kernel  "),
        ):
            predict("-o", tmp_path / name)
            assert (tmp_path / name).read_text().startswith(begin)
        predict("-o", tmp_path / "o.csv", "--format", "json")
        assert (tmp_path / "o.csv").read_text().startswith("{")
        predict("-o", tmp_path / "odd", "--format", "parquet")
        assert (tmp_path / "odd").read_bytes()[:4] == b"PAR1"

    def test_parquet_needs_a_file(self, capsys: Capture, tmp_path: Path) -> None:
        given = ["predict", "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv"]
        message = refuse(capsys, tmp_path, *given, "--format", "parquet")
        assert message.startswith("--format parquet is not for a terminal; name a file with -o")


def test_many_rows_do_not_import_pandas(predict: Callable[..., str], tmp_path: Path) -> None:
    """Its import takes longer than writing a hundred thousand rows."""
    code = (
        "import sys\nfrom mlscale.model import prediction_table\nfrom mlscale.cli import main\n"
        "prediction_table.FEW_ROWS, prediction_table.PART = 0, 12\n"
        "status = main.main(sys.argv[1:])\n"
        "print(status, 'pyarrow' in sys.modules, 'pandas' in sys.modules)\n"
    )
    for name in ("o.csv", "o.parquet"):
        given = [
            "predict",
            tmp_path / "trained.mlscale",
            tmp_path / "profile.csv",
            "-o",
            tmp_path / name,
        ]
        done = subprocess.run(
            [sys.executable, "-c", code, *map(str, given)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert re.fullmatch("0 True False", done.stdout.strip()), done
