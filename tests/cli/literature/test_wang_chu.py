"""mlscale literature wang-chu on a synthetic table: text, files, figures and bad input."""

import argparse
import io
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic.warps import measurements

from mlscale.cli.literature import wang_chu as command
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


@pytest.fixture(scope="module")
def relative(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder with tables and figures of the made table, and what was printed."""
    folder = tmp_path_factory.mktemp("relative")
    with redirect_stdout(io.StringIO()) as printed:
        run(write(folder), "-o", str(folder / "out"))
    return folder / "out", printed.getvalue()


def test_relative_writes_tables_and_figures(relative: tuple[Path, str]) -> None:
    out, printed = relative
    assert "over 8 configurations" in printed
    stems = ("fig2-speedup", "fig12-instructions", "fig13-signed-error", "fig14-kernel-error")
    figures = {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")}
    assert {file.name for file in out.iterdir()} == figures | {"predictions.csv", "kernels.csv"}
    predictions = (out / "predictions.csv").read_text(encoding="utf-8").splitlines()
    assert len(predictions) == 1 + 2 * 9
    at_base = next(line for line in predictions if ",memory,16,700,700," in line)
    measured, predicted, error, case = at_base.split(",")[-4:]
    assert float(measured) == pytest.approx(float(predicted), rel=1e-12)
    assert abs(float(error)) < 1e-9
    assert case == "11"
    speed_ups = (out / "fig2-speedup.svg").read_bytes()
    assert b"<dc:date>" not in speed_ups
    assert b"<!-- gtx980, in the table -->" in speed_ups  # it does not say that it was measured


def test_one_memory_clock(tmp_path: Path, relative: tuple[Path, str]) -> None:
    """As the public P100 data: panels along the engine clock alone."""
    one = measurements().at_steps("memory_mhz", slice(1, 2))
    run(write(tmp_path, one), "-o", str(tmp_path / "out"))
    drawn = (tmp_path / "out" / "fig2-speedup.svg").stat().st_size
    assert 0 < drawn < (relative[0] / "fig2-speedup.svg").stat().st_size


def test_one_configuration(tmp_path: Path) -> None:
    one = measurements().at_steps("memory_mhz", slice(1, 2)).at_steps("engine_mhz", slice(1, 2))
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


def test_kernels(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no kernel 'BlackScholes'"):
        run(write(tmp_path), "--kernels", "table-vi")
