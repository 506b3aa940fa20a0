"""Every real file of profilers, monitors and tuners: read, or refused in one line that names it.

What is read of each is tested beside its reader; this test knows no file by name, so that none is
forgotten.
"""

from pathlib import Path

import pytest

from mlscale.cli.main import main

TUNERS = ("kernel_tuner_cache", "t4_results")
GIVEN: list[list[str]] = [[], ["--device", "made-gpu", "--base", "cu=10,engine=1000,memory=1000"]]


def test_every_file_is_read_or_refused_in_one_line(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted((data_folder / "traces").glob("*/*"))
    outcomes = set()
    assert files
    for file in files:
        form = ["kernel-tuner"] if file.parent.name in TUNERS else []
        for number, given in enumerate(GIVEN):
            output = tmp_path / f"{file.name}-{number}.csv"
            status = main(["import", *form, str(file), "-o", str(output), *given])
            said = capsys.readouterr().err.splitlines()
            errors = [line for line in said if not line.startswith("mlscale: warning: ")]
            assert (status, len(errors)) in ((0, 0), (2, 1)), (file.name, status, said)
            assert output.exists() == (status == 0)
            assert all(line.startswith(f"mlscale: error: {file}") for line in errors), errors
            assert len(said) == len(set(said))
            outcomes.add(status)
    assert outcomes == {0, 2}
