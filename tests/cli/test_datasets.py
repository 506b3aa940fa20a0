"""datasets list, show, fetch on the command line, and import dvfs by a data set's name."""

import hashlib
from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from synthetic import tidy
from synthetic.dvfs import rows

from mlscale import read
from mlscale.data.datasets import all_datasets, public_datasets

P100 = "p100-dvfs-real-Performance-Power.csv"


@pytest.fixture(autouse=True)
def _nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLSCALE_DATA", raising=False)
    monkeypatch.setenv("MLSCALE_CACHE", str(tmp_path / "cache"))


class TestList:
    def test_has_every_set_and_where_it_is(
        self, capsys: Capture, monkeypatch: pytest.MonkeyPatch, data_folder: Path
    ) -> None:
        monkeypatch.setenv("MLSCALE_DATA", str(data_folder))
        out, err = succeed(capsys, "datasets", "list")
        lines = {line.split()[0]: line for line in out.splitlines()[2:]}
        assert lines.keys() == all_datasets().keys()
        assert lines["p100"].split() == [
            *("p100", "p100", "measured", "30", "1", "x", "5", "x", "1", "48", "yes"),
            *("none", "stated", "MLSCALE_DATA"),
        ]
        assert lines["rtx2070s"].split()[3:5] == ["-", "-"]
        assert lines["titanx"].endswith(" -")
        assert lines["simulated-gcn3"].split()[-2:] == ["MIT", "shipped"]
        assert err == ""

    @pytest.mark.parametrize("action", [["list"], ["show", "gtx1080ti"]])
    def test_the_page_shows_it(self, capsys: Capture, action: list[str]) -> None:
        """docs/datasets.md, as tools/refresh_docs.py wrote it where no set was fetched."""
        page = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
        out, _ = succeed(capsys, "datasets", *action)
        assert f"```\n$ mlscale datasets {' '.join(action)}\n{out}```\n" in page

    def test_a_damaged_file_is_not_it(self, capsys: Capture, tmp_path: Path) -> None:
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / P100).write_text("damaged")
        out, err = succeed(capsys, "datasets", "list")
        assert out.splitlines()[6].split()[-1] == "-"
        assert err == (
            f"mlscale: warning: {tmp_path}/cache/{P100}: is not 'p100', it has another checksum; "
            "passed over\n"
        )


class TestShow:
    def test_says_all_that_is_known(self, capsys: Capture) -> None:
        out, _ = succeed(capsys, "datasets", "show", "gtx1080ti", "simulated-gcn3")
        shown, simulated = out.split("\n\n")
        entry = public_datasets()["gtx1080ti"]
        for text in (entry.url, entry.sha256, entry.holds, *entry.faults.values()):
            assert text in shown
        assert "engine [MHz]  1600, 1700, 1800, 1900, 2000\n" in shown
        assert "licence       none stated by its authors" in shown
        assert "here          no\n" in shown
        assert "URL" not in simulated

    def test_another_name(self, capsys: Capture, tmp_path: Path) -> None:
        message = refuse(capsys, tmp_path, "datasets", "show", "p10")
        assert message.startswith("there is no data set 'p10'; there are wang-chu-gtx980, ")
        assert message.endswith("; is 'p100' meant?")


class TestFetch:
    def test_what_is_here_is_named(
        self, capsys: Capture, monkeypatch: pytest.MonkeyPatch, data_folder: Path
    ) -> None:
        monkeypatch.setenv("MLSCALE_DATA", str(data_folder))
        names = ["p100", "wang-chu-gtx980", "simulated-gcn3"]
        out, err = succeed(capsys, "datasets", "fetch", *names)
        lines = dict(line.split(": ") for line in out.splitlines())
        assert list(lines) == names
        for name in names[:2]:
            content = Path(lines[name]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == public_datasets()[name].sha256
        assert err == ""


class TestImport:
    def test_by_name(
        self, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_folder: Path
    ) -> None:
        table = tmp_path / "t.csv"
        given = ["import", "dvfs", "p100", "-o", table]
        assert refuse(capsys, tmp_path, *given) == (
            "'p100' is not on this machine; get it with 'mlscale datasets fetch p100'"
        )
        monkeypatch.setenv("MLSCALE_DATA", str(data_folder))
        out, _ = succeed(capsys, *given)
        assert ": 30 kernels of " in out

    def test_a_file_of_that_name_comes_first(
        self, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        tidy.write_csv(Path("p100"), rows(["mine"]))
        succeed(capsys, "import", "dvfs", "p100", "--device", "p100", "-o", "t.csv")
        assert read(Path("t.csv")).kernels == ("mine",)

    def test_the_metric_that_is_asked_for_twice(self, capsys: Capture, tmp_path: Path) -> None:
        """The header of titanx has l2_tex_write_throughput twice, as its authors' scripts do."""
        text = tidy.write_csv(tmp_path / "once.csv", [
            {**row, "l2_tex_write_throughput": 5.0, "again": 6.0} for row in rows()
        ]).read_text()  # fmt: skip
        file = tmp_path / "twice.csv"
        file.write_text(text.replace("again", "l2_tex_write_throughput", 1))
        given = ["import", "dvfs", file, "--device", "titanx", "-o", tmp_path / "t.csv"]
        succeed(capsys, *given)
        data = read(tmp_path / "t.csv")
        values = {n: data.counters[..., i] for i, n in enumerate(data.counter_names)}
        assert (values["l2_tex_write_throughput"] == 5).all()
        assert (values["l2_tex_write_throughput.1"] == 6).all()
        file.write_text(text.replace("again", "warps", 1))
        assert refuse(capsys, tmp_path, *given).endswith("row 1: column 'warps' is there twice")
