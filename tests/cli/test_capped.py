"""mlscale advise --lever cap: runs read under caps without any clock, and two boards' cases.

By hand, as in tests/advice/test_capped_runs.py: 10 ms at 300 W and 12.5 ms at 200 W are 10.64 ms at
250 W. The logs are of 1 and of 1.3 s of work between idle samples, 0.1 s apart. The cases are two
runs on an RTX 4000 Ada, at 1683 and 1219 MHz, and made numbers of an L4; caps of 30 to 130 W were
run on the former: least energy at about 110 W, some 10 % slower, 3.4 % less.
"""

import csv
import io
import json
import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
from command import Capture, refuse, succeed

from mlscale.advice.verdict import answer_lines

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
    def test_two_tables(self, capsys: Capture, files: tuple[Path, Path]) -> None:
        fast, slow = files
        asked = ["--lever", "cap", "--minimize", "edp", "--device", "rtx3090", "--commands"]
        out, _ = succeed(capsys, "advise", fast, "--also", slow, *asked)
        assert "# without persistence mode" in out
        assert out.startswith("  Set the power cap to 2")
        assert re.search(r"\n +cap +time +90 % +power +energy +90 %\n", out)
        shown = [line.split() for line in out.splitlines() if line.lstrip()[:3].isdigit()]
        assert (shown[0][0], shown[-1][0]) == ("200", "300")
        assert len(shown) <= 8
        assert "\n    nvidia-smi -i 0 -pl 2" in out

    def test_rows_of_one_table_in_any_order(
        self, capsys: Capture, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        rows = f"{SLOW}{FAST.splitlines()[1]}\n"
        (tmp_path / "both.csv").write_text(rows, encoding="utf-8")
        found = []
        for given in ([tmp_path / "both.csv"], [files[0], "--also", files[1]]):
            out, _ = succeed(capsys, "advise", *given, "--lever", "cap", "--format", "csv")
            found.append([r for r in csv.DictReader(io.StringIO(out)) if r["at"] == "cap"])
        assert found[0] == found[1]
        assert [float(row["power_cap_w"]) for row in found[0]] == [*range(200, 301, 5)]
        assert float(found[0][10]["time_ms"]) == pytest.approx(1 / 0.094)
        assert {row["engine_mhz"] for row in found[0]} == {""}

    def test_a_rate_of_work_stands_for_the_time(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        """10 and 12.5 ms of one unit are 100 and 80 units a second: in a column, or by --rate."""
        asked, found = ["--lever", "cap", "--format", "csv"], []
        for column, rates in (("time_ms", []), ("tokens_per_s", []), ("", ["--rate", "100:80"])):
            for file, time, rate, watts in zip(
                files, (10, 12.5), (100, 80), (300, 200), strict=True
            ):
                cell = {"time_ms": time, "tokens_per_s": rate}.get(column, 1)
                names = f"device,{column or 'n'},power_w,power_cap_w"
                file.write_text(f"{names}\nrtx3090,{cell},{watts},{watts}\n", encoding="utf-8")
            out, _ = succeed(capsys, "advise", files[0], "--also", files[1], *asked, *rates)
            rows = [row for row in csv.DictReader(io.StringIO(out)) if row["at"] == "cap"]
            found.append([float(row["slowdown_percent"]) for row in rows])
        assert found[0] == pytest.approx(found[1])
        assert found[0] == pytest.approx(found[2])

    def test_json(self, capsys: Capture, files: tuple[Path, Path]) -> None:
        fast, slow = files
        asked = ["--lever", "cap", "--power-cap", 250, "--max-slowdown", 8, "--format", "json"]
        document = json.loads(succeed(capsys, "advise", fast, "--also", slow, *asked)[0])
        assert (document["device"], document["model"]) == (None, None)
        said = "None of these power caps can be set and surely keeps 8 %."
        assert answer_lines(document)[0] == said
        assert document["answer"] is None
        [point] = document["caps"]
        assert document["expected"].items() <= point.items()
        assert point["time_ms"][0] == pytest.approx(1 / 0.094)
        assert point["time_per_power"] == pytest.approx(0.53, abs=0.02)

    def test_what_is_expected_to_keep_a_limit_is_not_denied(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        fast, slow = files
        limit = ["--lever", "cap", "--max-slowdown", 1]
        out, _ = succeed(capsys, "advise", fast, "--also", slow, *limit)
        first, second = re.split(r"\n\n", out)[0].split(".\n")
        assert first.endswith(
            "nothing that needs less energy surely keeps a\n  slowdown of at most 1 %"
        )
        assert re.fullmatch(
            r"  2\d\d W would be [01]\.\d % slower, .* less energy, and above 1 % about .*",
            second.replace("\n ", ""),
        )

    def test_two_logs(self, capsys: Capture, tmp_path: Path) -> None:
        for name, text in (("fast.csv", log(10, 300, 350)), ("slow.csv", log(13, 200, 200))):
            (tmp_path / name).write_text(text, encoding="utf-8")
        given = [tmp_path / "fast.csv", "--also", tmp_path / "slow.csv"]
        out, _ = succeed(capsys, "advise", *given, "--lever", "cap", "--format", "json")
        document = json.loads(out)
        assert document["device"] == "rtx3090"
        low, *_, at_limit = document["caps"]
        measured = (low["cap_w"], low["power_w"][0], low["time_ms"][0])
        assert measured == pytest.approx((200, 200, 1300))
        assert (at_limit["cap_w"], at_limit["power_w"][0]) == pytest.approx((350, 300))
        assert at_limit["flags"] == ["as under 300 W"]

    @pytest.mark.parametrize(("limit_w", "is_held"), [(300, True), (310, False), ("", True)])
    def test_above_a_limit_that_held_the_run_nothing_is_said(
        self, capsys: Capture, files: tuple[Path, Path], limit_w: float, is_held: bool
    ) -> None:
        """300 W were drawn: all of 300 or of an unknown limit, and 97 % of 310 W less half a W."""
        watts = 300 if is_held else 300.2
        files[0].write_text(FAST.replace("300,300", f"{watts},{limit_w}"), encoding="utf-8")
        asked = ["--lever", "cap", "--device", "rtx3090", "--minimize", "time"]
        asked = ["advise", files[0], "--also", files[1], *asked]
        found = json.loads(succeed(capsys, *asked, "--power-cap", 350, "--json")[0])
        [cap] = found["caps"]
        texts = " ".join(note["text"] for note in found["notes"])
        assert (
            "of 300 W: nothing above that is predicted; add a reading under" in texts
        ) == is_held
        if is_held:
            assert (cap["time_ms"], cap["flags"]) == (None, ["above the highest reading"])
            out, _ = succeed(capsys, *asked, "--power-cap", 350)
            assert "None of these power caps can be judged: above the highest reading." in out
        else:
            assert cap["slowdown_percent"][0] == 0
        out, err = succeed(capsys, *asked, "--notes")
        assert "Leave the power cap as it is: nothing is faster." in out
        assert ("of 300 W: nothing above that is predicted" in err) == is_held

    def test_refused(self, capsys: Capture, files: tuple[Path, Path], tmp_path: Path) -> None:
        fast, slow = files
        lever = ["--lever", "cap"]
        said = refuse(capsys, tmp_path, "advise", fast, *lever)
        assert "fast.csv: row 2: a power cap needs readings at two powers, and there is on" in said
        assert "run it under a cap of about 195 W too: --also FILE" in said
        said = refuse(capsys, tmp_path, "advise", fast, "--also", slow, *lever, "--time", 10)
        assert "--time does not work with runs under caps at unknown clocks" in said
        mixed = "kernel,time_ms,power_w\na,10,300\nb,12,200\n"
        (tmp_path / "mixed.csv").write_text(mixed, encoding="utf-8")
        said = refuse(capsys, tmp_path, "advise", tmp_path / "mixed.csv", *lever)
        assert "mixed.csv: has several runs in column 'kernel' (a, b), and no engine_mhz" in said
        for row, why in (
            ("0.012,200,200", "takes 0.012 ms at 200 W"),  # seconds
            ("9,200,200", "takes 9 ms at 200 W"),  # faster on less
        ):
            text = f"device,time_ms,power_w,power_cap_w\nrtx3090,{row}\n"
            (tmp_path / "odd.csv").write_text(text, encoding="utf-8")
            said = refuse(capsys, tmp_path, "advise", fast, "--also", tmp_path / "odd.csv", *lever)
            assert why in said
            assert "the same work takes longer on less power" in said
        milliwatts = "device,time_ms,power_w\nrtx3090,12,200000\nrtx3090,10,300000\n"
        (tmp_path / "mw.csv").write_text(milliwatts, encoding="utf-8")
        said = refuse(capsys, tmp_path, "advise", tmp_path / "mw.csv", *lever)
        assert "mw.csv: row 2: 200000 W cannot be, 'rtx3090' has at most 350" in said
        (tmp_path / "bad.csv").write_text(FAST.replace("10,300", "10,-3"), encoding="utf-8")
        said = refuse(capsys, tmp_path, "advise", tmp_path / "bad.csv", "--also", slow, *lever)
        assert "bad.csv: row 2, column 'power_w'" in said

    def test_a_log_of_power_alone_with_pauses(self, capsys: Capture, tmp_path: Path) -> None:
        """Three of ten samples draw 30 W amid 300."""
        watts = [30, 300, 300, 30, 300, 30, 300, 30, 300, 300, 300, 30]
        rows = [f"2026/03/02 14:00:{n:06.3f}, {draw}.00 W" for n, draw in enumerate(watts)]
        text = "\n".join(["timestamp, power.draw [W]", *rows, ""])
        (tmp_path / "log.csv").write_text(text, encoding="utf-8")
        asked = [tmp_path / "log.csv", "--lever", "cap", "--device", "rtx3090"]
        said = refuse(capsys, tmp_path, "advise", *asked)
        assert "30% of the log is pauses" in said

    def test_messages_lead_to_the_lever(
        self, capsys: Capture, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        fast, slow = files
        for asked in ([fast, "--also", slow], [fast, "--power-cap", 200]):
            said = refuse(capsys, tmp_path, "advise", *asked)
            assert "fast.csv: no file has an engine clock; for runs under power caps" in said
            assert said.endswith("and that of a further file as FILE@engine=…")
            assert "--lever cap" in said
        (tmp_path / "no.csv").write_text("device,time_ms\nrtx3090,12\n", encoding="utf-8")
        said = refuse(
            capsys, tmp_path, "advise", fast, "--also", tmp_path / "no.csv", "--lever", "cap"
        )
        assert "no.csv: there is no column 'power_w'" in said
        header = "device,application,kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
        for count, row in ((84, "100,280"), (42, "170,220")):
            text = f"{header}rtx-a6000,j,j,{count},1800,8001,{row}\n"
            (tmp_path / f"{count}.csv").write_text(text, encoding="utf-8")
        asked = [tmp_path / "84.csv", "--also", tmp_path / "42.csv", "--lever", "cap"]
        said = refuse(capsys, tmp_path, "advise", *asked)
        assert "a power cap acts on the engine clock, and all readings are at 1800 MHz; run" in said


@pytest.mark.parametrize(
    ("board", "best_w", "cap_w", "slower", "saved"),
    [
        ("rtx4000ada", (110, 110), 110, (10, 3), (3.4, 1.5)),
        ("l4", (45, 45), 55, (6.7, 1.5), (17, 3)),
    ],
)
def test_cases(
    capsys: Capture,
    data_folder: Path,
    board: str,
    best_w: tuple[float, float],
    cap_w: float,
    slower: tuple[float, float],
    saved: tuple[float, float],
) -> None:
    """Steps of 5 W over the board's range; bounds: a few times what the answer's digits leave."""
    base, also = (data_folder / "cases" / f"3-{board}-{name}.csv" for name in ("base", "also"))
    asked = ["--lever", "cap", "--format", "json"]
    document = json.loads(succeed(capsys, "advise", base, "--also", also, *asked)[0])
    caps_w = [point["cap_w"] for point in document["caps"]]
    assert max(high - low for low, high in pairwise(caps_w)) <= 5
    assert best_w[0] <= document["menu"][-1]["set"]["power_cap_w"] <= best_w[1]
    [point] = [point for point in document["caps"] if math.isclose(point["cap_w"], cap_w)]
    assert point["slowdown_percent"][0] == pytest.approx(slower[0], abs=slower[1])
    assert -point["energy_percent"][0] == pytest.approx(saved[0], abs=saved[1])
