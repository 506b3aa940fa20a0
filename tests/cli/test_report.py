"""mlscale report: the file it writes, the sample in docs/, and clean refusals."""

from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from html_page import Node, parse
from synthetic import kernels as made
from synthetic import tidy

from mlscale import save, train
from mlscale.report import kernel_report

ROOT = Path(__file__).parents[2]
MID = made.GRID.mid
SHIPPED = ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of kernels of known laws, and a profile of 24 kernels it has not seen."""
    save(train(made.measurements(), MID, "nearest"), tmp_path / "model.mlscale")
    new = made.measurements(per_group=6, seed=1).profiles(MID)
    rows = [
        {
            "kernel": f"<b>{kernel}",
            **MID.as_dict(),
            "time_ms": new.time_ms[k],
            "power_w": 100.0,
            **dict(zip(new.counter_names, new.counters[k], strict=True)),
        }
        for k, kernel in enumerate(new.kernels)
    ]
    tidy.write_csv(tmp_path / "profile.csv", rows)
    return tmp_path


def written(capsys: Capture, folder: Path, *more: object) -> Node:
    """The page on the folder's profile."""
    given = ["report", folder / "model.mlscale", folder / "profile.csv", "-o", folder / "r.html"]
    succeed(capsys, *given, *more)
    return parse((folder / "r.html").read_text(encoding="utf-8"))


def kernels_of(root: Node) -> list[str]:
    return [section.one("h2").text for section in root.all("section", "kernel")]


class TestKernels:
    def test_of_many_the_largest_are_shown_and_the_others_in_a_table(
        self, capsys: Capture, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert kernel_report.MOST_KERNELS == 20
        monkeypatch.setattr(kernel_report, "MOST_KERNELS", 3)  # as many sections are soon written
        root = written(capsys, folder)
        assert len(kernels_of(root)) == 3
        run = root.one("section", "run")
        assert "The other 21 kernels" in run.texts("h3")
        assert "<b>contended5" in run.text

    def test_those_asked_for_are_shown_once_in_that_order(
        self, capsys: Capture, folder: Path
    ) -> None:
        asked = ["<b>latency1", "<b>compute5", "<b>latency1"]
        root = written(capsys, folder, *(word for name in asked for word in ("--kernel", name)))
        assert kernels_of(root) == asked[:2]

    def test_another_name_is_refused_with_the_close_one(
        self, capsys: Capture, folder: Path
    ) -> None:
        given = ["report", folder / "model.mlscale", folder / "profile.csv"]
        said = refuse(capsys, folder, *given, "--kernel", "<b>latenzy1", "-o", folder / "r.html")
        assert said == "the profile has no kernel '<b>latenzy1'; did you mean '<b>latency1'?"


class TestTheFile:
    def test_is_told_and_is_the_same_twice(self, capsys: Capture, folder: Path) -> None:
        given = ["report", folder / "model.mlscale", folder / "profile.csv"]
        given += ["--kernel", "<b>latency1", "-o"]
        out, err = succeed(capsys, *given, folder / "r.html")
        assert (out, err) == (f"{folder / 'r.html'}: 1 of 24 kernels\n", "")
        first = (folder / "r.html").read_bytes()
        succeed(capsys, *given, folder / "r.html")
        assert (folder / "r.html").read_bytes() == first

    def test_has_the_command_without_anybodys_folders(self, capsys: Capture, folder: Path) -> None:
        root = written(capsys, folder, "--date", "14 March 2026", "--kernel", "<b>latency1")
        assert root.texts("pre")[-1] == (
            "mlscale report model.mlscale profile.csv -o r.html --date '14 March 2026' "
            "--kernel '<b>latency1'"
        )
        assert str(folder) not in (folder / "r.html").read_text(encoding="utf-8")

    def test_has_the_command_that_trained_the_model(self, capsys: Capture, tmp_path: Path) -> None:
        table = tidy.write_csv(tmp_path / "t.csv", tidy.rows(("a", "b", "c")))
        profile = [r for r in tidy.rows(("d",)) if (r["engine_mhz"], r["memory_mhz"]) == (800, 700)]
        tidy.write_csv(tmp_path / "p.csv", profile)
        given = ["--base", "mid", "--predictor", "nearest", "--leave-out", "app-c"]
        succeed(capsys, "train", table, *given, "-o", tmp_path / "m.mlscale")
        succeed(capsys, "report", tmp_path / "m.mlscale", tmp_path / "p.csv", "-o", tmp_path / "r")
        root = parse((tmp_path / "r").read_text(encoding="utf-8"))
        assert root.texts("pre")[0] == (
            "mlscale train t.csv --base mid --predictor nearest --leave-out app-c -o MODEL"
        )
        made_with = root.one("section", "end").text
        for package in ("mlscale 0", "python 3", "numpy ", "scikit-learn "):
            assert package in made_with

    def test_a_file_that_cannot_be_written_is_refused_before_the_work(
        self, capsys: Capture, folder: Path
    ) -> None:
        (folder / "model.mlscale").write_text("never read")
        given = ["report", folder / "model.mlscale", folder / "profile.csv", "-o"]
        assert "is a directory" in refuse(capsys, folder, *given, folder)
        nowhere = folder / "nowhere" / "r.html"
        assert "there is no folder" in refuse(capsys, folder, *given, nowhere)

    def test_bad_input_leaves_the_old_page(self, capsys: Capture, folder: Path) -> None:
        (folder / "r.html").write_text("old")
        (folder / "profile.csv").write_text("kernel,time_ms\na,x\n")
        given = ["report", folder / "model.mlscale", folder / "profile.csv"]
        assert "profile.csv: " in refuse(capsys, folder, *given, "-o", folder / "r.html")


def test_the_sample_in_docs_is_as_the_command_makes_it_today(
    capsys: Capture, tmp_path: Path
) -> None:
    """The same elements and words; numbers may differ in the last digit between machines."""
    succeed(capsys, "report", *SHIPPED, "-o", tmp_path / "sample-report.html")
    today, sample = (
        parse(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "sample-report.html", ROOT / "docs" / "sample-report.html")
    )
    assert shape(today) == shape(sample)
    assert "SIMULATED DATA" in sample.one("header").text
    assert len(sample.all("td", "base")) == len(sample.all("td", "best")) == 1


def shape(root: Node) -> list[tuple[str, str, str]]:
    """Every element with its class and its own words.

    Versions differ between machines, and matplotlib's strokes between its versions.
    """
    made_with = root.one("section", "end").one("dl")
    left_out = {id(node) for node in made_with.nodes()}
    for svg in root.all("svg"):
        left_out |= {id(node) for node in svg.nodes() if node.tag not in ("svg", "title", "text")}
    return [
        (node.tag, node.attributes.get("class", ""), " ".join(words(node)))
        for node in root.nodes()
        if id(node) not in left_out
    ]


def words(node: Node) -> list[str]:
    own = " ".join(child for child in node.content if isinstance(child, str))
    return [word for word in own.split() if not any(c.isdigit() for c in word)]


def test_the_verdict_is_that_of_advise_with_the_same_limits(
    capsys: Capture, tmp_path: Path
) -> None:
    limits = ("--minimize", "time", "--max-slowdown", 2)
    succeed(capsys, "report", *SHIPPED, *limits, "-o", tmp_path / "page.html")
    out, _ = succeed(capsys, "advise", *SHIPPED, *limits)
    page = parse((tmp_path / "page.html").read_text(encoding="utf-8"))
    said = " ".join(line.strip() for line in out.partition("\n\n")[0].splitlines())
    assert page.one("p", "verdict").text == said
    assert "--minimize time --max-slowdown 2" in page.text
