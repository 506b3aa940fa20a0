"""Each figure of README and guide is what its command prints, or what docs/tables has."""

import csv
import os
import re
import sys
from pathlib import Path

import pytest
from public_tables import FILES
from refresh_docs import output, shown

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
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


def test_its_answer_is_what_is_printed(tmp_path: Path) -> None:
    """Those of the site's pages are run when it is built: tools/printed.py."""
    for command, text in shown(README):
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


def numbers_in(pattern: str) -> list[float]:
    """The numbers of the only place of README that a pattern finds."""
    (found,) = re.findall(pattern, " ".join(README.split()))
    return [float(number) for number in NUMBER.findall(" ".join(found))]


def table(name: str) -> list[dict[str, str]]:
    """The rows of a table of docs/tables, which a command wrote."""
    with (ROOT / "docs" / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_bottleneck(name: str, quantity: str = "time") -> dict[str, dict[str, str]]:
    """The predictor's rows of a study, by table."""
    rows = [row for row in table(name) if row["predictor"] == "bottleneck"]
    return {row["table"]: row for row in rows if row["quantity"] == quantity}


def test_errors_of_readings() -> None:
    rows = {row["read at"]: row for row in table("readings")}
    two, highest = rows["1, 0.6"], float(rows["highest clock"]["regret"])
    claim = r"took ([\d.]+) % more energy than the best one. The highest clock took ([\d.]+) %"
    assert numbers_in(claim) == [round(float(two["regret"]), 1), round(highest)]
    off = [float(two[f"all from 0.45, {name}"]) for name in ("time", "power", "energy")]
    assert numbers_in(r"time ([\d.]+) %, power ([\d.]+) %, energy ([\d.]+) %") == off


def test_the_caption_of_the_run() -> None:
    rows = {row["clock"]: row for row in table("clocks")}
    above = "energy above the least [%]"
    claim = (
        r"took ([\d.]+) % more energy than (?:at )?the best (?:one|clock)(?: \([^)]*\))?, "
        r"(?:at )?the highest (?:one )?([\d.]+) % more"
    )
    highest = round(float(rows["highest"][above]))
    assert numbers_in(claim) == [float(rows["advised"][above]), highest]
    seen = r"Time rises by (\d+) % from (\d+) to (\d+) MHz; energy falls by (\d+) %"
    advised, clocks = rows["advised"], (rows["highest"]["MHz"], rows["advised"]["MHz"])
    slower, saved = (round(float(advised[name])) for name in ("slower [%]", "energy saved [%]"))
    assert numbers_in(seen) == [slower, *map(int, clocks), saved]


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("new-gpus", r"(?<!: )time ([\d.]+ to [\d.]+) %()"),
        ("new-kernels", r"kernels(?: it never saw)?: time ([\d.]+ to [\d.]+) %()"),
    ],
)
def test_errors_of_time_from_a_profile(name: str, claim: str) -> None:
    """By `bottleneck`, the best or nearly so on each of the four tables."""
    means = [float(by_bottleneck(name)[table]["mape"]) for table in FILES]
    assert numbers_in(claim) == pytest.approx([min(means), max(means)], abs=0.051)


def test_intervals_hold_nine_of_ten() -> None:
    """The upper bound was 94; without its correction the P100's times are held at 95.0 %."""
    coverages = [
        float(row["coverage"])
        for quantity in ("time", "power")
        for row in by_bottleneck("new-kernels", quantity).values()
    ]
    assert len(coverages) == 10  # five tables of time and the simulated one, four of power
    assert all(by_bottleneck("new-kernels")[name]["n_kernels"] == "30" for name in FILES)
    assert 88.0 <= min(coverages) <= 90.0 <= max(coverages) <= 95.0


def test_how_often_an_answer_is_high_and_true() -> None:
    (row,) = (
        row
        for row in table("sureness")
        if (row["read at"], row["limit of slowdown"]) == ("1, 0.6", "5 %")
    )
    claim = r"is said of ([\d.]+) % of such answers, and was true of ([\d.]+) %"
    assert numbers_in(claim) == [float(row["high"]), float(row["true of these"])]


def test_how_often_intervals_hold() -> None:
    """Over all GPUs left out, and on the one of the example."""
    (here,) = (row for row in table("by-gpu") if row["GPU"] == "rtx5060ti-16gb")
    everywhere = [row for row in table("intervals") if row["clocks"] == "all from 0.45"]
    wanted = [float(row["intervals hold"]) for row in everywhere]
    wanted += [float(here[f"intervals hold, {row['quantity']}"]) for row in everywhere]
    claim = (
        r"intervals held (\d+) % of times, (\d+) % of powers and (\d+) % of energies; "
        r"on this GPU (\d+), (\d+) and (\d+) %"
    )
    assert numbers_in(claim) == wanted
