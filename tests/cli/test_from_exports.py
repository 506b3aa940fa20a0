"""One command from a profiler's file to an answer, with the shipped model that fits.

The export that ships was written by hand: a kernel of memory and one of the CUs, on an H100.
"""

import csv
import json
import re
from pathlib import Path

import pytest
from command import Cli, flat, note_texts
from synthetic import rocpd_files

from mlscale.data.datasets import path as shipped
from mlscale.data.table_files import read_table

BY_HAND = "h100-by-hand.csv"
GIVEN = ("--device", "h100-sxm5", "--base", "engine=1980,memory=2619")


class TestExport:
    def test_alone_is_enough(self, cli: Cli) -> None:
        """The GPU, its CUs and clocks are in the file."""
        document = cli.json("advise", BY_HAND, "--max-slowdown", "5")
        assert document["device"] == "h100-sxm5"
        assert document["base"] == {"cu_count": 132, "engine_mhz": 1980.0, "memory_mhz": 2619.0}
        gemm, triad = document["kernels"]
        assert 1200 < triad["best"]["at"]["engine_mhz"] < 1750
        assert gemm["best"]["at"]["engine_mhz"] > 1800
        expected = document["expected"]["at"]["engine_mhz"]
        assert expected < document["answer"]["at"]["engine_mhz"]
        value, low, high = gemm["best"]["slowdown_percent"]
        assert low < value < high
        assert any("kernels" in text for text in note_texts(document))
        assert cli("advise", BY_HAND).startswith("  Set the engine clock to ")

    def test_with_its_power_the_clock_of_least_energy(self, cli: Cli) -> None:
        """Power is of runs on other GPUs; on how many of those left out intervals held is told."""
        document = cli.json("advise", BY_HAND, "--power", "520")
        assert document["objective"] == "energy"
        for kernel in document["kernels"]:
            best = flat(kernel["best"])
            # mJ from ms and W, by definition; below the base's 520 W at a lower clock.
            assert best["energy_mj"] == pytest.approx(best["time_ms"] * best["power_w"])
            assert best["engine_mhz"] < 1980
            assert best["power_w"] < 520
            value, low, high = kernel["best"]["energy_percent"]
            assert low < value < high
        assert re.search(
            r"or more on \d+ of 21 \(power\) unseen GPUs", " ".join(note_texts(document))
        )

    def test_power_of_also_moves_the_power(self, cli: Cli, tmp_path: Path) -> None:
        """Of one kernel, power at half of the clock: low, and high."""
        kernel = cli.json("predict", BY_HAND)["predictions"][0]["kernel"]
        also, watts = tmp_path / "also.csv", []
        at = ("--at", "engine=1005,memory=2619", "--at", "engine=1500,memory=2619")
        for power_w in (200, 300):
            also.write_text(
                "kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
                f'"{kernel}",132,1005,2619,1.2,{power_w}\n'
            )
            given = (BY_HAND, "--power", "520", "--also", also, *at)
            rows = cli.json("predict", *given)["predictions"]
            watts.append([row["power_w"] for row in rows if row["kernel"] == kernel])
        assert [low for low, _ in watts] == pytest.approx([200, 300], rel=0.005)
        assert watts[0][1] < watts[1][1]  # and in between

    def test_predict_sums_up_the_run(self, cli: Cli) -> None:
        document = cli.json("predict", BY_HAND, "--at", "engine=990")
        times = {row["kernel"][:5]: row["time_factor"] for row in document["predictions"]}
        assert times["triad"] < 1.3
        assert times["gemm_"] > 1.8
        [run] = document["whole_run"]
        each = [row["time_ms"] for row in document["predictions"]]
        assert run["time_ms"] == pytest.approx(sum(each), rel=1e-12)  # a launch of each, by hand
        assert (run["power_w"], run["flags"]) == (None, [])
        table = cli("predict", BY_HAND, "--at", "engine=990")
        assert f" 990    {run['time_ms']:.2f} ms  " in table
        assert "extrapolated" not in table
        # The training tables went down to 0.41 of their highest clock; 400 MHz is 0.2 of 1980.
        out, err = cli.both("predict", BY_HAND, "--at", "engine=400", "--notes")
        assert ": engine_mhz 400 is below" in err
        assert "  ? extrapolated\n" in out

    def test_report_shows_the_commands(self, cli: Cli) -> None:
        page = cli.page(BY_HAND, "--max-slowdown", 5)
        assert "nvidia-smi -i 0 -lgc 1920,1920" in page
        assert BY_HAND in page

    def test_a_database_of_rocprofv3_is_enough_too(self, cli: Cli, tmp_path: Path) -> None:
        """It says all but the clock that was set; the run is half a ms, by its two dispatches."""
        counters = {"SQ_WAVES": [6e4], "SQ_INSTS_VALU": [1.2e6], "GRBM_GUI_ACTIVE": [2.4e6],
                    "FETCH_SIZE": [4e5], "WRITE_SIZE": [2e5]}  # fmt: skip
        run = [
            rocpd_files.Dispatch(n, end=251_000, grid=(1 << 20, 1, 1), counters=counters)
            for n in (1, 2)
        ]
        database = rocpd_files.write_database(tmp_path / "app_results.db", run)
        assert "does not say engine_mhz; give" in cli.refused("advise", database)
        base = ("--base", "engine=2100")
        document = cli.json("advise", database, *base)
        assert document["device"] == "mi300x"
        assert document["base"] == {"cu_count": 304, "engine_mhz": 2100.0, "memory_mhz": 1300.0}
        [row] = cli.json("predict", database, *base, "--at", "engine=2100")["predictions"]
        assert row["time_ms"] == pytest.approx(0.25)


class TestModel:
    def test_may_be_named_either_way(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`FILE --model MODEL` and `MODEL.mlscale FILE`; a table called as a model is a table."""
        named = cli.json("advise", BY_HAND, "--model", "kernels")
        assert named == cli.json("advise", "kernels.mlscale", BY_HAND)
        monkeypatch.chdir(tmp_path)
        details(tmp_path).rename("kernels")
        assert cli.json("advise", "kernels", *GIVEN)["device"] == "h100-sxm5"


def details(folder: Path) -> Path:
    """ncu's details page of one kernel, which names neither GPU nor clocks."""
    file = folder / "details.csv"
    cells = '"0","1","app","node","k(int)","1","7","(32, 1, 1)","(9, 1, 1)","0","9.0"'
    metrics = ('"Duration","us","9.5"', '"DRAM Throughput","%","40.0"')
    header = (
        '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream",'
        '"Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit",'
        '"Metric Value"'
    )
    rows = [f'{cells},"Speed Of Light",{metric}' for metric in metrics]
    file.write_text("\n".join([header, *rows, ""]))
    return file


class TestWhatTheFileDoesNotSay:
    @pytest.mark.parametrize("command", ["predict", "advise", "report"])
    def test_is_asked_for_at_once(self, cli: Cli, tmp_path: Path, command: str) -> None:
        file, output = details(tmp_path), ("-o", tmp_path / "out")
        message = cli.refused(command, file, *output)
        assert "the GPU, engine_mhz, memory_mhz" in message
        assert "--device NAME --base engine=…,memory=…" in message
        cli(command, file, *GIVEN, *output)

    @pytest.mark.usefixtures("forget_own_devices")
    def test_of_a_gpu_that_the_device_table_lacks(self, cli: Cli, tmp_path: Path) -> None:
        """Counters need peaks, which a device file tells, and with them the CUs."""
        file = details(tmp_path)
        device_file = "; for a GPU that is not in the device table also cu=…, or a device file"
        assert device_file in cli.refused("advise", file)
        named = cli.refused("advise", file, "--device", "rtx6090")
        assert "does not say cu_count, engine_mhz, memory_mhz; give --base cu=…,engine=" in named
        mine = tmp_path / "mine.json"
        shown = cli("devices", "show", "h100-sxm5", "--json")
        names = {"key": "rtx6090", "name": "RTX 6090", "aliases": [], "pci_ids": []}
        mine.write_text(json.dumps({**json.loads(shown), **names}))
        cli("advise", file, "--device", mine, *GIVEN[2:])


TRIAD = "triad(float *, const float *, const float *, float)"
LONG = f"f<{', '.join(f'n::T{i}<int>' for i in range(300))}>(float *)"
CONTROLS = "\x1b[2J\x1b]0;title\x07"


def with_name(folder: Path, name: str) -> Path:
    """The export that ships, with another name for its first kernel."""
    text = shipped(BY_HAND).read_text(encoding="utf-8")
    assert TRIAD in text
    file = folder / "run.csv"
    file.write_text(text.replace(TRIAD, name), encoding="utf-8")
    return file


class TestNames:
    """Names of kernels that would steer a terminal, a page or a spreadsheet."""

    @pytest.mark.parametrize(
        "name",
        [f"evil{CONTROLS}\u202e<script>alert(1)</script>", f"evil{LONG}<script>alert(1)</script>"],
        ids=["controls", "kilobytes"],
    )
    def test_steer_nothing(self, cli: Cli, tmp_path: Path, name: str) -> None:
        file, page, table = with_name(tmp_path, name), tmp_path / "page.html", tmp_path / "t.csv"
        texts = []
        for given in (["advise", file], ["predict", file, "--kernels"]):
            for form in ("table", "csv"):
                out, err = cli.both(*given, "--format", form)
                texts += [out, f"evil {err}"]
                assert form == "csv" or max(map(len, out.splitlines())) < 400
        cli("report", file, "-o", page)
        texts.append(page.read_text(encoding="utf-8"))
        assert texts[-1].count("<script") == 2  # its data, and its own
        for text in texts:
            assert not {"\x1b", "\x07", "\u202e"} & set(text)
            assert "evil" in text
        cli("import", file, "-o", table)
        assert read_table(table).text["kernel"][0] == name.replace(CONTROLS, "")

    @pytest.mark.parametrize("name", ["=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "'=1"])
    def test_are_no_formulas(self, cli: Cli, tmp_path: Path, name: str) -> None:
        """In every CSV words; a table has the name itself when it is read again."""
        file, table = with_name(tmp_path, name), tmp_path / "t.csv"
        cli("import", file, "-o", table)
        for text in (
            cli("advise", file, "--format", "csv"),
            cli("predict", file, "--at", "engine=1500", "--format", "csv"),
            table.read_text(encoding="utf-8"),
        ):
            names = {row["kernel"] for row in csv.DictReader(text.splitlines())}
            assert f"'{name}" in names
            assert name not in names
        assert name in {
            row["kernel"]
            for row in cli.json("predict", table, "--at", "engine=1500")["predictions"]
        }
