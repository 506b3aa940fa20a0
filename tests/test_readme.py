"""Each figure of README and guide is what its command prints, or what measured-errors.md says."""

import os
import re
import sys
from pathlib import Path

import pytest
from public_tables import FILES
from refresh_docs import output, shown

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MEASURED = (ROOT / "docs" / "trust" / "measured-errors.md").read_text(encoding="utf-8")
SHIPPED = (
    "mlscale predict simulated-gcn3.mlscale ",
    "mlscale advise layernorm-",
    "mlscale advise datasets/",
    "mlscale predict datasets/",
)
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.fixture(autouse=True)
def this_environment_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_the_readme_fits_on_a_page() -> None:
    assert len(README.split()) <= 700


def test_the_first_answer_is_short() -> None:
    """It is of a measured run, and the way in stands before it."""
    command, text = shown(README)[0]
    above, _, _ = README.partition(command)
    assert len(above) <= 1500
    assert "    sudo mlscale measure --two-clocks " in above
    assert "[measured by others]" in above
    assert len(text.splitlines()) <= 14


@pytest.mark.parametrize("page", ["README.md", "docs/howto/predict.md", "docs/howto/advice.md"])
def test_answers_of_the_shipped_models(page: str, tmp_path: Path) -> None:
    commands = [pair for pair in shown(read(page)) if pair[0].startswith(SHIPPED)]
    assert commands
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    for command, text in commands:
        assert output(command, tmp_path) == text


@pytest.mark.parametrize(
    "page",
    [
        "docs/howto/predict.md",
        "docs/howto/train.md",
        "docs/howto/advice.md",
        "docs/papers/python.md",
        "docs/howto/scikit-learn.md",
    ],
)
def test_python_on_shipped_data_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```", read(page), flags=re.MULTILINE | re.DOTALL)
    exec(compile(code, page, "exec"), {})


def numbers_in(pattern: str, text: str) -> list[float]:
    """The numbers of the only place that a pattern finds."""
    (found,) = re.findall(pattern, text, flags=re.MULTILINE)
    return [float(number) for number in NUMBER.findall(" ".join(found))]


def test_errors_of_readings_are_those_of_sampled_errors() -> None:
    page = read("docs/trust/sampled-errors.md")
    *off, regret = numbers_in(r"^1, 0\.6 .* ([\d.]+ / [\d.]+ / [\d.]+) +([\d.]+)$", page)
    (highest,) = numbers_in(r"^highest clock .* ([\d.]+)()$", page)
    claim = r"took ([\d.]+) % more energy than the best one. The highest\nclock took ([\d.]+) %"
    assert numbers_in(claim, README) == [round(regret, 1), round(highest)]
    assert numbers_in(r"time ([\d.]+) %, power ([\d.]+) %, energy ([\d.]+) %", README) == off


def test_errors_on_gpus_without_training_data_are_those_of_errors() -> None:
    """Time by `bottleneck`, the best on each of the four tables."""
    shown = read("docs/howto/errors.md").partition("--unseen-gpu --seeds 1\n")[2].partition("\n```")[0]
    means = [
        numbers_in(rf"^  {table}, time +bottleneck +([\d.]+) % ()", shown)[0] for table in FILES
    ]
    claim = rf"time ([\d.]+ to [\d.]+) %() \(\[4 tables\]\({re.escape('docs/howto/errors.md')}"
    assert numbers_in(claim, README) == [min(means), max(means)]


def test_errors_on_new_kernels_are_those_of_measured_errors() -> None:
    """Time by `bottleneck` on four tables, from the block of means."""
    together = MEASURED.rpartition("Mean errors [%] together:")[2].partition("\n```")[0]
    head, _, *rows = together.splitlines()[1:]
    wanted = [re.split(r"\s{2,}", head.strip()).index(f"{table} time") - 2 for table in FILES]
    (row,) = (
        re.findall(r" ([\d.]+|-)(?= |$)", row) for row in rows if row.startswith("bottleneck ")
    )
    means = [float(row[column]) for column in wanted]
    claim = rf"time ([\d.]+ to [\d.]+) %() \(\[4 tables\]\({re.escape('docs/trust/measured-errors.md')}"
    assert numbers_in(claim, README) == [min(means), max(means)]


def test_intervals_hold_nine_of_ten() -> None:
    compared = MEASURED.partition("Mean errors [%] together:")[0]
    rows = re.findall(r"^bottleneck .*$", compared, flags=re.MULTILINE)
    coverages = [float(cell) for row in rows for cell in re.findall(r"\s(\d\d\.\d)(?!\S)", row)]
    assert len(coverages) >= 10  # five tables of time, four of power, the simulated one
    assert 88.0 <= min(coverages) <= 90.0 <= max(coverages) <= 92.0


def test_four_tables_of_thirty_kernels() -> None:
    for table in FILES:
        assert f"\n{table}: error of time [%], 30 kernels" in MEASURED
