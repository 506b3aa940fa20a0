"""mlscale advise --lever cap: runs read under caps without any clock, and two boards' cases.

By hand, as in tests/advice/test_capped_runs.py: 10 ms at 300 W and 12.5 ms at 200 W are 10.64 ms at
250 W. The logs are of 1 and of 1.3 s of work between idle samples, 0.1 s apart. The cases are two
runs on an RTX 4000 Ada, at 1683 and 1219 MHz, and made numbers of an L4; caps of 30 to 130 W were
run on the former: least energy at about 110 W, some 10 % slower, 3.4 % less.
"""

import math
import re
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from command import Cli

import mlscale

FAST = "time_ms,power_w,power_cap_w\n10,300,300\n"
SLOW = "time_ms,power_w,power_cap_w\n12.5,200,200\n"


def log(samples: int, watts: float, limit_w: float) -> str:
    """A log of nvidia-smi without a clock: so many busy samples between five idle ones."""
    rows = [(30.0, 0)] * 5 + [(watts, 100)] * samples + [(30.0, 0)] * 5
    lines = ["timestamp, name, power.draw [W], power.limit [W], utilization.gpu [%]"]
    lines += [
        f"2026/03/02 14:00:{second / 10:06.3f}, NVIDIA GeForce RTX 3090, {draw:.2f} W, "
        f"{limit_w:.2f} W, {use} %"
        for second, (draw, use) in enumerate(rows)
    ]
    return "\n".join(lines) + "\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    fast, slow = tmp_path / "fast.csv", tmp_path / "slow.csv"
    fast.write_text(FAST, encoding="utf-8")
    slow.write_text(SLOW, encoding="utf-8")
    return fast, slow


class TestWithoutAClock:
    def test_two_tables(self, cli: Cli, files: tuple[Path, Path]) -> None:
        fast, slow = files
        asked = ["--lever", "cap", "--minimize", "edp", "--device", "rtx3090", "--commands"]
        out = cli("advise", fast, "--also", slow, *asked)
        assert "# without persistence mode" in out
        assert out.startswith("  Set the power cap to 2")
        assert re.search(r"\n +cap +time +90 % +power +energy +90 %\n", out)
        shown = [line.split() for line in out.splitlines() if line.lstrip()[:3].isdigit()]
        assert (shown[0][0], shown[-1][0]) == ("200", "300")
        assert len(shown) <= 8
        assert "\n    nvidia-smi -i 0 -pl 2" in out

    def test_from_python(self, cli: Cli, files: tuple[Path, Path], tmp_path: Path) -> None:
        """The command's answer, by files and by a rate; asked for a clock the same refusal."""
        fast, slow = files
        answer = mlscale.advise(fast, also=slow, lever="cap", device="rtx3090")
        given = ("advise", fast, "--also", slow, "--lever", "cap", "--device", "rtx3090")
        assert answer.document()["caps"] == cli.json(*given)["caps"]
        assert answer.commands.set[0].startswith("nvidia-smi -i 0 -pl 2")
        answer.save(tmp_path / "own.html")
        cli("report", *given[1:], "-o", tmp_path / "page.html")
        assert (tmp_path / "own.html").read_text() == (tmp_path / "page.html").read_text()
        rated = mlscale.advise(fast, also=slow, lever="cap", device="rtx3090", rate=(100, 80))
        assert rated.best.set == answer.best.set
        with pytest.raises(mlscale.InputError, match="ask for the best cap with lever='cap'"):
            mlscale.advise(fast, also=slow)
        with pytest.raises(mlscale.InputError, match="power= does not work with runs under caps"):
            mlscale.advise(fast, also=slow, lever="cap", power=300)

    def test_frames_and_files_from_python(self, files: tuple[Path, Path]) -> None:
        """The same readings as files, as frames, as both, and as one frame of two rows."""
        fast, slow = files
        frames = [pd.read_csv(file) for file in files]
        expected = mlscale.advise(fast, also=slow, lever="cap", device="rtx3090").document()["caps"]
        for run, also in ((frames[0], frames[1]), (fast, frames[1]), (pd.concat(frames), None)):
            found = mlscale.advise(run, also=also, lever="cap", device="rtx3090")
            assert found.document()["caps"] == expected
        untimed = [frame.drop(columns="time_ms") for frame in frames]
        rated = mlscale.advise(untimed[0], also=untimed[1], lever="cap", rate=(100, 80))
        assert rated.best.slowdown_percent == pytest.approx(found.best.slowdown_percent)
        with pytest.raises(mlscale.InputError, match="frame 2: there is no column 'time_ms'"):
            mlscale.advise(frames[0], also=untimed[1], lever="cap")
        with pytest.raises(mlscale.InputError, match="ask for the best cap with lever='cap'"):
            mlscale.advise(frames[0], also=frames[1])

    def test_rows_of_one_table_in_any_order(
        self, cli: Cli, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        both = f"{SLOW}{FAST.splitlines()[1]}\n"
        (tmp_path / "both.csv").write_text(both, encoding="utf-8")
        found = []
        for given in ([tmp_path / "both.csv"], [files[0], "--also", files[1]]):
            rows = cli.csv("advise", *given, "--lever", "cap")
            found.append([row for row in rows if row["at"] == "cap"])
        assert found[0] == found[1]
        assert [float(row["power_cap_w"]) for row in found[0]] == [*range(200, 301, 5)]
        assert float(found[0][10]["time_ms"]) == pytest.approx(1 / 0.094)
        assert {row["engine_mhz"] for row in found[0]} == {""}

    @pytest.mark.parametrize("lever", ["cap", "clock"])
    def test_a_rate_of_work_stands_for_the_time(
        self, cli: Cli, files: tuple[Path, Path], lever: str
    ) -> None:
        """10 and 12.5 ms of one unit are 100 and 80 units a second: in a column, or by --rate."""
        found = []
        setting, steps = ("power_cap_w", 1) if lever == "cap" else ("engine_mhz", 6)
        for column, rates in (("time_ms", []), ("tokens_per_s", []), ("", ["--rate", "100:80"])):
            for file, time, rate, watts in zip(
                files, (10, 12.5), (100, 80), (300, 200), strict=True
            ):
                cell = {"time_ms": time, "tokens_per_s": rate}.get(column, 1)
                names = f"device,{column or 'name'},power_w,{setting}"
                row = f"rtx3090,{cell},{watts},{steps * watts}"
                file.write_text(f"{names}\n{row}\n", encoding="utf-8")
            rows = cli.csv("advise", files[0], "--also", files[1], "--lever", lever, *rates)
            found.append([float(r["slowdown_percent"]) for r in rows if r["slowdown_percent"]])
            assert found[-1]
        assert found[0] == pytest.approx(found[1])
        assert found[0] == pytest.approx(found[2])

    def test_json(self, cli: Cli, files: tuple[Path, Path]) -> None:
        fast, slow = files
        asked = ["--lever", "cap", "--power-cap", 250, "--max-slowdown", 8]
        document = cli.json("advise", fast, "--also", slow, *asked)
        assert (document["device"], document["model"]) == (None, None)
        said = "None of the power caps that can be set is certain to keep 8 %."
        assert cli.verdict(fast, "--also", slow, *asked).startswith(said)
        assert document["answer"] is None
        [point] = document["caps"]
        assert document["expected"].items() <= point.items()
        assert point["time_ms"][0] == pytest.approx(1 / 0.094)
        assert point["time_per_power"] == pytest.approx(0.53, abs=0.02)

    def test_what_is_expected_to_keep_a_limit_is_not_denied(
        self, cli: Cli, files: tuple[Path, Path]
    ) -> None:
        fast, slow = files
        limit = ["--lever", "cap", "--max-slowdown", 1]
        out = cli("advise", fast, "--also", slow, *limit)
        first, second = re.split(r"\n\n", out)[0].split(".\n")
        assert first.endswith(
            "no setting that needs less energy is certain to\n  keep a slowdown of at most 1 %"
        )
        assert re.fullmatch(
            r"  2\d\d W would be [01]\.\d % slower, .* energy, with a \d+ % chance of .*",
            second.replace("\n ", ""),
        )

    def test_two_logs(self, cli: Cli, tmp_path: Path) -> None:
        for name, text in (("fast.csv", log(10, 300, 350)), ("slow.csv", log(13, 200, 200))):
            (tmp_path / name).write_text(text, encoding="utf-8")
        given = [tmp_path / "fast.csv", "--also", tmp_path / "slow.csv"]
        document = cli.json("advise", *given, "--lever", "cap")
        assert document["device"] == "rtx3090"
        low, *_, at_limit = document["caps"]
        measured = (low["cap_w"], low["power_w"][0], low["time_ms"][0])
        assert measured == pytest.approx((200, 200, 1300))
        assert (at_limit["cap_w"], at_limit["power_w"][0]) == pytest.approx((350, 300))
        assert at_limit["flags"] == ["as under 300 W"]

    @pytest.mark.parametrize(("limit_w", "is_held"), [(300, True), (310, False), ("", True)])
    def test_above_a_limit_that_held_the_run_nothing_is_said(
        self, cli: Cli, files: tuple[Path, Path], limit_w: float, is_held: bool
    ) -> None:
        """300 W were drawn: all of 300 or of an unknown limit, and 97 % of 310 W less half a W."""
        watts = 300 if is_held else 300.2
        files[0].write_text(FAST.replace("300,300", f"{watts},{limit_w}"), encoding="utf-8")
        asked = ["--lever", "cap", "--device", "rtx3090", "--minimize", "time"]
        asked = ["advise", files[0], "--also", files[1], *asked]
        found = cli.json(*asked, "--power-cap", 350)
        [cap] = found["caps"]
        texts = " ".join(note["text"] for note in found["notes"])
        assert (
            "of 300 W: nothing above that is predicted; add a reading under" in texts
        ) == is_held
        if is_held:
            assert (cap["time_ms"], cap["flags"]) == (None, ["above the highest reading"])
            out = cli(*asked, "--power-cap", 350)
            assert "None of these power caps can be judged: above the highest reading." in out
        else:
            assert cap["slowdown_percent"][0] == 0
        out, err = cli.both(*asked, "--notes")
        assert "Leave the power cap as it is: no setting is faster." in out
        assert ("of 300 W: nothing above that is predicted" in err) == is_held


@pytest.mark.parametrize(
    ("board", "best_w", "cap_w", "slower", "saved"),
    [
        ("rtx4000ada", (110, 110), 110, (10, 3), (3.4, 1.5)),
        ("l4", (45, 45), 55, (6.7, 1.5), (17, 3)),
    ],
)
def test_cases(
    cli: Cli,
    data_folder: Path,
    board: str,
    best_w: tuple[float, float],
    cap_w: float,
    slower: tuple[float, float],
    saved: tuple[float, float],
) -> None:
    """Steps of 5 W over the board's range; bounds: a few times what the answer's digits leave."""
    base, also = (data_folder / "cases" / f"3-{board}-{name}.csv" for name in ("base", "also"))
    asked = ["--lever", "cap"]
    document = cli.json("advise", base, "--also", also, *asked)
    caps_w = [point["cap_w"] for point in document["caps"]]
    assert max(high - low for low, high in pairwise(caps_w)) <= 5
    assert best_w[0] <= document["menu"][-1]["set"]["power_cap_w"] <= best_w[1]
    [point] = [point for point in document["caps"] if math.isclose(point["cap_w"], cap_w)]
    assert point["slowdown_percent"][0] == pytest.approx(slower[0], abs=slower[1])
    assert -point["energy_percent"][0] == pytest.approx(saved[0], abs=saved[1])
