"""Several GPUs of one run in one log: its wall clock, the power of all, the slowest GPU's clock.

The logs are made, of GPUs that are alike unless a test says otherwise. So nothing but power and
energy differs from the answer for one of them, and these are by hand so many times as large.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from command import Cli, note_texts
from synthetic import llm_server as made
from synthetic.two_logs import HEADER, log, of_gpu_1, without

import mlscale

ALL_KINDS = ("advise", "advise --max-slowdown 5", "advise --lever cap", "advise --max-time 10500ms")


def scaled(value: Any, name: str = "") -> Any:
    """A document of one GPU as that of eight: powers and energies eight times as large."""
    if isinstance(value, dict):
        return {key: scaled(inner, key) for key, inner in value.items() if key != "gpu_count"}
    if isinstance(value, list):
        return [scaled(inner, name) for inner in value]
    if not isinstance(value, float):
        return value
    return pytest.approx(8 * value if name in ("power_w", "energy_mj") else value, rel=1e-9)


@pytest.fixture
def eight(tmp_path: Path) -> list[Path]:
    """10 s at 8 x 480 W, and 12 s at 8 x 300 W."""
    readings = (("fast.csv", 1755, 100, 480), ("slow.csv", 1170, 120, 300))
    return [log(tmp_path / name, *reading, gpus=8) for name, *reading in readings]


@pytest.mark.parametrize("words", ALL_KINDS)
def test_of_eight_gpus_everything_is_as_of_one_but_power(
    cli: Cli, eight: list[Path], words: str
) -> None:
    """Limits of a board are compared with the power of one, and a cap is of each."""
    command, *options = words.split()
    given = [command, eight[0], "--also", eight[1], *options]
    one, all_of_them = cli.json(*given, "--gpu", 0), cli.json(*given)
    assert all_of_them["run"]["gpu_count"] == 8
    assert all_of_them["run"]["time_ms"] == pytest.approx(10_000)
    assert {**all_of_them, "next_commands": 0} == {
        **scaled(one),
        "run": scaled(one["run"]) | {"gpu_count": 8},
        "notes": all_of_them["notes"],
        "next_commands": 0,
    }
    assert [note["code"] for note in all_of_them["notes"]] == [n["code"] for n in one["notes"]]


def test_text_page_and_python_say_of_how_many(cli: Cli, eight: list[Path]) -> None:
    fast, slow = eight
    said = "On 8 GPUs side by side: power and energy are of all of them"
    out = cli("advise", fast, "--also", slow, "--max-slowdown", 5)
    assert f"  {said}.\n" in out
    assert "whole run of 8 GPUs, 10.0 s" in out
    caps = cli("advise", fast, "--also", slow, "--lever", "cap")
    assert f"{said}, a power cap is of each." in " ".join(caps.split())
    page = cli.page(fast, "--also", slow)
    assert '<p class="sub">1 run, 10 s on 8 x NVIDIA H100 SXM5 80 GB, from 1755' in page
    assert (
        '"nvidia-smi -i 6 -lgc {engine},{engine}","nvidia-smi -i 7 -lgc {engine},{engine}"]' in page
    )
    assert said in str(mlscale.advise(fast, also=slow))
    predicted = cli("predict", fast, "--also", slow)
    assert predicted.startswith("  fast on 8 x h100-sxm5, measured at 1755 / 2619 MHz: 10.0 s\n")
    assert cli.json("predict", fast, "--also", slow)["gpu_count"] == 8


def test_a_rate_is_of_the_run(cli: Cli, eight: list[Path]) -> None:
    """A million units at 2400 a second are 416.7 s, on however many GPUs."""
    found = cli.json("advise", eight[0], "--also", eight[1], "--rate", "2400:2000")
    assert found["run"]["time_ms"] == pytest.approx(1e9 / 2400)
    assert found["run"]["power_w"] == pytest.approx(8 * 480)


def test_the_table_of_a_log_says_the_same(cli: Cli, eight: list[Path], tmp_path: Path) -> None:
    tables = [tmp_path / f"{file.stem}-table.csv" for file in eight]
    for file, table in zip(eight, tables, strict=True):
        cli("import", file, "--application", "fast", "-o", table)
    by_log, by_table = (
        cli.json("advise", fast, "--also", slow, "--power-cap", 500)
        for fast, slow in (eight, tables)
    )
    assert {**by_table, "next_commands": 0} == {**by_log, "next_commands": 0}
    rows = tables[0].read_text().splitlines()
    tables[0].write_text("\n".join([*rows, rows[1].replace(",8,", ",4,")]) + "\n")
    said = cli.refused("advise", tables[0])
    assert said.endswith("column 'gpu_count' has 4 and 8; a table has runs on one whole number of "
                         "GPUs")  # fmt: skip


def test_gpus_that_begin_and_end_apart(cli: Cli, tmp_path: Path) -> None:
    """Of 20 ticks of 0.1 s, GPU 0 works in the 3rd to the 12th, GPU 1 in the 8th to the 17th.

    That is 1.5 s; in 5 of the 15 ticks a GPU draws its idle 70 W: (10 x 400 + 5 x 70) / 15 W and
    (10 x 300 + 5 x 70) / 15 W. 1755 MHz are 3.5 % above 1695.
    """
    lines = [HEADER]
    for tick in range(20):
        for gpu, begin, watts, mhz in ((0, 2, 400, 1755), (1, 7, 300, 1695)):
            busy = begin <= tick < begin + 10
            lines.append(
                f"2026/03/02 14:05:{10 + tick / 10:06.3f}, {gpu}, NVIDIA H100 80GB HBM3, "
                f"{watts if busy else 70} W, {mhz} MHz, 2619 MHz, {95 * busy} %, {30 * busy} %"
            )
    both, table = tmp_path / "both.csv", tmp_path / "table.csv"
    both.write_text("\n".join(lines) + "\n")
    out, told = cli.both("import", both, "-o", table)
    assert "both.csv: its GPUs ran at 1695 to 1755 MHz; the slowest is used, as the" in told
    assert "GPUs 0, 1 side by side, the first busy from sample 3 to 17 of 20" in out
    names, row = (line.split(",") for line in table.read_text().splitlines())
    found = dict(zip(names, row, strict=True))
    assert float(found["time_ms"]) == pytest.approx(1500)
    assert float(found["power_w"]) == pytest.approx((4000 + 350) / 15 + (3000 + 350) / 15)
    assert float(found["gpu_utilisation"]) == pytest.approx(0.95 * 10 / 15)
    assert (found["engine_mhz"], found["gpu_count"]) == ("1695", "2")


def test_a_log_for_each_gpu(cli: Cli, tmp_path: Path) -> None:
    """As `mlscale measure --gpu 0,1` writes them: the same seconds, so one run of two GPUs.

    A log of the same GPU, or of other seconds, is of a run by itself.
    """
    both = log(tmp_path / "both.csv", 1755, 100, 480, gpus=2)
    header, *rows = both.read_text().splitlines()
    files = [tmp_path / f"gpu{number}.csv" for number in (0, 1)]
    for number, file in enumerate(files):
        own = [row for row in rows if row.split(", ")[1] == str(number)]
        file.write_text("\n".join([header, *own, ""]))
    one, apart = cli.json("advise", both), cli.json("advise", *files)
    assert apart["run"] == one["run"]
    assert apart["run"]["gpu_count"] == 2
    later = tmp_path / "later.csv"
    later.write_text(files[1].read_text().replace(" 14:", " 17:"))
    after = cli.json("advise", files[0], later)
    assert after["run"]["gpu_count"] == 1
    assert after["run"]["time_ms"] == pytest.approx(2 * one["run"]["time_ms"])


def test_commands_of_a_table_of_several_gpus(cli: Cli, tmp_path: Path) -> None:
    """No file names them; the commands are of one, and say so."""
    table = tmp_path / "run.csv"
    table.write_text(
        "device,application,kernel,gpu_count,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
        "h100-sxm5,a,k,4,132,1755,2619,1000,2000\nh100-sxm5,a,k,4,132,1170,2619,1240,1360\n"
    )
    for lever in ("clock", "cap"):
        out = cli("advise", table, "--lever", lever, "--commands")
        assert "for one GPU; set all 4 alike" in out
    again = cli.json("advise", table, "--commands")["next_commands"]
    assert "# for one GPU; set all 4 alike" in again


def test_runs_on_unlike_numbers_of_gpus(cli: Cli, eight: list[Path], tmp_path: Path) -> None:
    pair = log(tmp_path / "pair.csv", 1170, 120, 300, gpus=2)
    said = cli.refused("advise", eight[0], "--also", pair)
    assert "pair.csv: ran on 2 GPUs, the base on 8; give runs on as many" in said


def test_under_caps_without_any_clock(cli: Cli, eight: list[Path], tmp_path: Path) -> None:
    """A cap is of each GPU; of two that draw 480 and 300 W the steps end there."""
    for file in eight:
        without(file, 4)
    given = ["advise", eight[0], "--also", eight[1], "--lever", "cap", "--commands"]
    one, all_of_them = cli.json(*given, "--gpu", 0), cli.json(*given)
    for name in ("answer", "caps", "menu", "base"):
        assert all_of_them[name] == scaled(one[name])
    assert all_of_them["run"] == scaled(one["run"]) | {"gpu_count": 8}
    assert len(all_of_them["commands"]["set"]) == 8
    caps = [cap["cap_w"] for cap in all_of_them["caps"]]
    assert (caps[0], caps[-1]) == (300, 480)
    pair = log(tmp_path / "pair.csv", 1170, 120, 300, gpus=2)
    without(pair, 4)
    assert "ran on 2 GPUs" in cli.refused("advise", eight[0], "--also", pair, "--lever", "cap")
    of_gpu_1(pair, "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe")
    said = cli.refused("advise", eight[0], "--also", pair, "--lever", "cap")
    assert "has several kinds of GPU, " in said
    assert said.endswith("; name one with --gpu")


def test_a_server_on_two_gpus(cli: Cli, tmp_path: Path) -> None:
    """The same clocks as of one, on twice the power: half of the tokens per joule."""
    words: list[object] = []
    for seed, mhz in enumerate((1980.0, 1320.0)):
        run = made.serve(made.Server(), mhz, 5.0, 200, None, seed)
        words += ["--also", *made.write(run, mhz, tmp_path)]
    one = cli.json("advise", *words[1:])
    for file in tmp_path.glob("*.csv"):
        header, *rows = file.read_text().splitlines()
        second = [row.replace(", 0, NVIDIA", ", 1, NVIDIA") for row in rows]
        file.write_text("\n".join([header, *rows, *second]) + "\n")
    both = cli.json("advise", *words[1:])
    assert both["run"]["gpu_count"] == 2
    assert both["run"]["time_ms"] == pytest.approx(one["run"]["time_ms"])
    for clock, of_one in zip(both["server"]["clocks"], one["server"]["clocks"], strict=True):
        assert clock["power_w"][0] == pytest.approx(2 * of_one["power_w"][0])
        assert clock["tokens_per_joule"][0] == pytest.approx(of_one["tokens_per_joule"][0] / 2)
    assert "On 2 GPUs side by side" in cli("advise", *words[1:])
    assert not any("side by side" in text for text in note_texts(both))


def gpus_apart(file: Path, gpus: Sequence[tuple[float, float]]) -> Path:
    """The log's GPUs, each with its own power while it works and its own limit [W]."""
    header, *rows = file.read_text().splitlines()
    lines = [f"{header}, power.limit [W]"]
    for place, row in enumerate(rows):
        watts, limit_w = gpus[place % len(gpus)]
        cells = row.split(", ")
        cells[3] = f"{watts:.2f} W" if cells[6] != "0 %" else cells[3]
        lines.append(f"{', '.join(cells)}, {limit_w:.2f} W")
    file.write_text("\n".join(lines) + "\n")
    return file


def pair_of(
    folder: Path, fast: Sequence[tuple[float, float]], slow: Sequence[tuple[float, float]]
) -> list[Path]:
    """10 s at 1755 MHz and 12.4 s at 1170 MHz, of GPUs of so many W under so many W each."""
    return [
        gpus_apart(log(folder / name, mhz, samples, 0, gpus=len(each)), each)
        for name, mhz, samples, each in (
            ("fast.csv", 1755, 100, fast),
            ("slow.csv", 1170, 124, slow),
        )
    ]


class TestGpusThatDrawUnlikePower:
    """Each GPU's own draw against its own limit; by hand."""

    def test_one_that_its_limit_holds_holds_the_run(self, cli: Cli, tmp_path: Path) -> None:
        """498 of 500 W; the sum, 1698 of 2000 W, seemed free."""
        draws = [(498, 500), *[(400, 500)] * 3]
        fast, slow = pair_of(tmp_path, draws, [(340, 500), *[(290, 500)] * 3])
        given = ("advise", fast, "--also", slow)
        clock = cli.json(*given, "--minimize", "time")
        assert clock["answer"]["set"] == {}
        told = "the run drew its power limit, 498 of 500 W at 1755 MHz: the limit set the clock"
        assert any(text.startswith(told) for text in note_texts(clock))
        assert clock["run"]["power_w"] == pytest.approx(1698)
        table = tmp_path / "table.csv"
        cli("import", fast, "--application", "fast", "-o", table)
        by_table = cli.json("advise", table, "--also", slow, "--minimize", "time")
        assert by_table["answer"]["set"] == {}
        [cap] = cli.json(*given, "--lever", "cap", "--power-cap", 400)["caps"]
        assert cap["power_w"][0] == pytest.approx(1698 * 400 / 500)  # as the hottest is cut

    def test_a_cap_cuts_the_hottest_without_any_clock(self, cli: Cli, tmp_path: Path) -> None:
        """480 and 240 W: a cap of 400 W cuts the first, and the two to 600 W."""
        fast, slow = pair_of(tmp_path, [(480, 700), (240, 700)], [(300, 300), (150, 300)])
        for file in (fast, slow):
            without(file, 4)
        given = ("advise", fast, "--also", slow, "--lever", "cap", "--power-cap", 400)
        [cap] = cli.json(*given)["caps"]
        assert cap["power_w"][0] <= 600 * (1 + 1e-9)
        assert cap["slowdown_percent"][0] > 0

    @pytest.mark.parametrize("has_clock", [True, False])
    def test_no_cap_suits_unlike_limits(self, cli: Cli, tmp_path: Path, has_clock: bool) -> None:
        limits = (300, 700, 700)
        fast, slow = (
            pair_of(tmp_path, *[[*zip(draws, limits, strict=True)]
                                for draws in ((250, 506, 506), (180, 341, 341))])
        )  # fmt: skip
        if not has_clock:
            for file in (fast, slow):
                without(file, 4)
        given = ("advise", fast, "--also", slow)
        said = cli.refused(*given, "--lever", "cap")
        assert said.endswith(
            "its GPUs have different power limits, 300 W (GPU 0) and 700 W (GPU 1, 2), so that no "
            "power cap suits all; name one with --gpu N"
        )
        assert cli.json(*given, "--lever", "cap", "--gpu", 0)["base"]["power_cap_w"] == 300

    def test_clocks_under_unlike_limits(self, cli: Cli, tmp_path: Path) -> None:
        """250 of 300 W hold nothing; 297 of 300 W do, whatever the others may draw."""
        free = pair_of(tmp_path, [(250, 300), (506, 700)], [(180, 300), (341, 700)])
        found = cli.json("advise", free[0], "--also", free[1], "--minimize", "time")
        assert found["answer"]["set"]["engine_mhz"] > 1755
        assert not any("drew its power limit" in text for text in note_texts(found))
        told = "different power limits, 300 W (GPU 0) and 700 W (GPU 1): the GPU nearest"
        assert any(told in text for text in note_texts(found))
        held = pair_of(tmp_path, [(297, 300), (506, 700)], [(180, 300), (341, 700)])
        found = cli.json("advise", held[0], "--also", held[1], "--minimize", "time")
        assert found["answer"]["set"] == {}
        assert any("297 of 300 W at 1755 MHz" in text for text in note_texts(found))


def test_a_gpu_that_tells_no_clock_counts_with_the_others(cli: Cli, tmp_path: Path) -> None:
    """A KeyError once."""
    path = log(tmp_path / "log.csv", 1755, 100, 480, gpus=2)
    of_gpu_1(path, "1755 MHz", "[N/A]")
    document = cli.json("advise", path)
    assert document["run"]["gpu_count"] == 2
    assert document["base"]["engine_mhz"] == 1755


def test_idle_gpus_are_told_once_for_each_log(cli: Cli, eight: list[Path]) -> None:
    """All but GPU 3, in both."""
    works = r", [\d.]+ W(.*), 95 %"
    for file in eight:
        lines = [
            line if ", 3, NVIDIA" in line else re.sub(works, r", 70.00 W\1, 0 %", line)
            for line in file.read_text().splitlines()
        ]
        file.write_text("\n".join(lines) + "\n")
    _, err = cli.both("advise", eight[0], "--also", eight[1])
    assert err.count("T09") == 2
    for file in eight:
        assert f"{file}: GPUs 0, 1, 2, 4, 5, 6, 7 have no busy span, so they get no row" in err
