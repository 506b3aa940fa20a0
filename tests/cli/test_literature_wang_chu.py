"""mlscale literature wang-chu on a synthetic table: text, files, figures and bad input."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic.warps import GRID, measurements

from mlscale.cli import literature_wang_chu as command
from mlscale.data.grid import ConfigGrid
from mlscale.data.measurements import Measurements
from mlscale.errors import DataWarning, InputError


def run(table: Path, *options: str) -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args([str(table), *options]))


def write(folder: Path, data: Measurements | None = None) -> Path:
    path = folder / "made.csv"
    (data or measurements()).write(path)
    return path


def test_absolute_on_its_own_predictions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(write(tmp_path), "--device", "gtx980", "--absolute")
    printed = capsys.readouterr().out
    assert "made: 2 kernels on gtx980, base cu=16,engine=700,memory=700" in printed
    assert "(11) memory-bound" in printed
    assert "(9) compute-bound" in printed
    assert "MAPE 0.00 %" in printed
    assert "over 9 configurations" in printed


def test_relative_writes_tables_and_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, out = write(tmp_path), tmp_path / "out"
    run(table, "-o", str(out))
    assert "over 8 configurations" in capsys.readouterr().out
    stems = ("fig2-speedup", "fig13-signed-error", "fig14-kernel-error")
    figures = {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")}
    assert {file.name for file in out.iterdir()} == figures | {"predictions.csv", "kernels.csv"}
    predictions = (out / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert len(predictions) == 1 + 2 * 9
    at_base = next(line for line in predictions if ",memory,16,700,700," in line)
    measured, predicted, error, case = at_base.split(",")[-4:]
    assert float(measured) == pytest.approx(float(predicted), rel=1e-12)
    assert abs(float(error)) < 1e-9
    assert case == "11"
    assert b"<dc:date>" not in (out / "fig2-speedup.svg").read_bytes()


def test_one_memory_clock(tmp_path: Path) -> None:
    """As the public P100 data: panels along the engine clock alone."""
    data = measurements()
    one = replace(
        data,
        grid=ConfigGrid((16,), GRID.engine_mhz, (700.0,)),
        time_samples=data.time_samples[..., 1:2],
        power_samples=None,
        counter_samples=data.counter_samples[..., 1:2, :],
    )
    run(write(tmp_path, one), "-o", str(tmp_path / "out"))
    drawn = (tmp_path / "out" / "fig2-speedup.svg").stat().st_size
    run(write(tmp_path), "-o", str(tmp_path / "both"))
    assert 0 < drawn < (tmp_path / "both" / "fig2-speedup.svg").stat().st_size


def test_one_configuration(tmp_path: Path) -> None:
    data = measurements()
    one = replace(
        data,
        grid=ConfigGrid((16,), (700.0,), (700.0,)),
        time_samples=data.time_samples[..., 1:2, 1:2],
        power_samples=None,
        counter_samples=data.counter_samples[..., 1:2, 1:2, :],
    )
    table = write(tmp_path, one)
    with pytest.raises(InputError, match="only: nothing to predict from it"):
        run(table)
    run(table, "--absolute", "-o", str(tmp_path / "out"))
    names = {file.name for file in (tmp_path / "out").iterdir()}
    assert "fig14-kernel-error.png" in names
    assert "fig2-speedup.png" not in names


def test_warnings_and_errors(tmp_path: Path) -> None:
    data = measurements()
    table = write(tmp_path, data)
    with pytest.raises(InputError, match="is of device 'gtx980', not of 'p100'"):
        run(table, "--device", "p100")
    with pytest.raises(InputError, match="memory_mhz 650 is not on the grid"):
        run(table, "--base", "engine=700,memory=650")
    with pytest.raises(InputError, match="there is no device 'fury'"):
        run(write(tmp_path, replace(data, device="fury")))
    named = write(tmp_path, replace(data, device="my card"))
    run(named, "--device", "gtx980")
    samples = data.counter_samples.copy()
    samples[..., data.counter_names.index("inst_fp_64")] = 1e8
    with pytest.warns(DataWarning, match=r"FP64, outside .* \(2 of 2 kernels\)"):
        run(write(tmp_path, replace(data, counter_samples=samples)))
