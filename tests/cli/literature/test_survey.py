"""mlscale literature survey: text, JSON, figures and bad input."""

import json
import re
from pathlib import Path

import pytest
from command import Capture, refuse, succeed

from mlscale.papers.volkov import MODELS

COMMAND = ("literature", "survey")


def test_three_tables(capsys: Capture) -> None:
    printed, _ = succeed(capsys, *COMMAND, "--alpha", 128, "--warps", 64)
    lines = {
        tuple(line.split()[:-1]): line.split()[-1] for line in printed.splitlines()[:25] if line
    }
    assert "it is not hardware" in printed
    # docs/equations.md, 2.4: 7.267606, shown with four digits; case 3 and 4 IPC by hand.
    assert lines["Huang",] == "7.268"
    assert lines["case", "of", "Hong", "&", "Kim"] == "3"
    assert lines["classical", "bounds"] == "4.000"
    # docs/equations.md, 2.4: claim (ii) and the mean errors.
    assert "simulation                    42" in printed
    assert "vendor's guide             11.50" in printed
    assert "Hong & Kim            41.0" in printed


def test_one_json_document_and_the_figures(tmp_path: Path, capsys: Capture) -> None:
    out, _ = succeed(capsys, *COMMAND, "--json", "--alpha", 32, "-o", tmp_path / "new")
    document = json.loads(out)
    assert [row["warps"] for row in document["throughput"]] == [1, 8, 16, 32, 64]
    by_warps = {row["warps"]: row for row in document["throughput"]}
    # docs/equations.md, 2.4, at (32, 16).
    assert by_warps[16]["models"]["Zhang & Owens, Sim"] == pytest.approx(1.434783, abs=5e-7)
    assert by_warps[16]["hong_kim_case"] == 1
    assert document["warps_needed"][0]["models"]["Chen & Aamodt 1"] is None
    assert {row["model"] for row in document["errors"]} == set(MODELS)
    # docs/equations.md, 2.4: the errors are over 9 alpha x 14 occupancies, whatever is asked for.
    assert [len(values) for values in document["errors_over"].values()] == [9, 14]
    assert (document["errors_over"]["alpha"][0], document["errors_over"]["warps"][-1]) == (1, 64)
    names = ["survey-figure-1.png", "survey-figure-1.svg"]
    names += ["survey-figure-2.png", "survey-figure-2.svg"]
    assert [Path(path).name for path in document["figures"]] == names
    for path in map(Path, document["figures"]):
        content = path.read_bytes()
        assert content.startswith(b"\x89PNG\r\n\x1a\n" if path.suffix == ".png" else b"<?xml")
        assert len(content) > 10_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--warps", "65"], "--warps 65: a CU of gtx980 holds at most 64 warps"),
        (["--alpha", "2000"], "2000 arithmetic instructions .* at most 1024"),
    ],
)
def test_bad_input(tmp_path: Path, capsys: Capture, arguments: list[str], message: str) -> None:
    assert re.search(message, refuse(capsys, tmp_path, *COMMAND, *arguments))


def test_a_cu_of_ones_own(tmp_path: Path, capsys: Capture) -> None:
    """By hand: 4 warps, alpha 3, A 2, L 10, I 3, T 2, B 0.5: lambda 4/16, n lambda 1."""
    own = (*COMMAND, "--cu", "2,10,3,2,0.5", "--alpha", 3, "--warps", 4)
    out, _ = succeed(capsys, *own, "--json")
    (row,) = json.loads(out)["throughput"]
    assert row["models"]["Chen & Aamodt 1"] == pytest.approx(0.25)
    assert row["models"]["classical bounds"] == pytest.approx(1.0)
    printed, _ = succeed(capsys, *own)
    assert "the CU that was given" in printed
    assert "GTX 980" not in printed
    message = refuse(capsys, tmp_path, *COMMAND, "--cu", "2,10,3")
    assert "five numbers A,L,I,T,B are needed" in message


def test_measured_points(tmp_path: Path, capsys: Capture) -> None:
    """By hand: two warps of lambda 1/4 give 1/2; 0.4 was measured, so the bounds err by 25 %."""
    points = tmp_path / "volkov.csv"
    points.write_text("warps,intensity,ipc\n2,3,0.4\n")
    command = (*COMMAND, "--cu", "2,10,3,2,0.5", "--measured", points)
    document = json.loads(succeed(capsys, *command, "--json", "-o", tmp_path / "figures")[0])
    assert document["throughput"][0]["ipc"] == 0.4
    errors = {row["model"]: row["mape"] for row in document["errors"]}
    assert errors["classical bounds"] == pytest.approx(25)
    assert len(document["figures"]) == 4
    printed, _ = succeed(capsys, *COMMAND, "--measured", points)
    assert "GTX 980, measured" in printed
    assert "Error against 1 measured throughput [" in printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warps,alpha,ipc\n2,3,0.4\n", "there is no column 'intensity'"),
        ("warps,intensity,ipc\n2,3,0.4\n4,3,\n", "row 3, column 'ipc': the value is not given"),
        ("warps,intensity,ipc\n2.5,3,0.4\n", "row 2, column 'warps': 2.5 is not a whole number"),
    ],
)
def test_bad_measured_points(tmp_path: Path, capsys: Capture, text: str, message: str) -> None:
    points = tmp_path / "volkov.csv"
    points.write_text(text)
    assert message in refuse(capsys, tmp_path, *COMMAND, "--measured", points)
