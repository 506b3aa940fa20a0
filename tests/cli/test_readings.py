"""Readings of a run at several clocks: which are used, noted or refused, and which to take next.

Numbers are by hand, but for those of `data_folder / "cases"`: readings of real GPUs.
"""

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
from command import Cli, flat, note_texts
from synthetic.two_logs import log

HEADER = "device,cu_count,engine_mhz,memory_mhz,kernel,time_ms,power_w\n"
ADA = "rtx-4000-ada,48,{},9001,run,{},{}\n"  # which lists 210 to 3105 MHz in steps of 15
OTHER = "not-listed,48,{},9001,run,{},{}\n"
BASE = (1683, 46987, 125.4)


def table(path: Path, form: str, *rows: tuple[float, float, float]) -> Path:
    """Engine clock [MHz], time [ms] and power [W] of each row."""
    path.write_text(HEADER + "".join(form.format(*row) for row in rows))
    return path


@pytest.mark.parametrize(
    ("form", "base", "also", "noted"),
    [
        (ADA, BASE, (700, 101_000, 60), "engine_mhz 700 is below 1120, the lowest in training: "),
        (ADA, (700, 101_000, 60), BASE, "engine_mhz 700 is below 1120, the lowest in training: "),
        (ADA, BASE, (2205, 38_000, 180), None),
        (
            ADA,
            BASE,
            (3300, 28_000, 260),
            "engine_mhz 3300 is above 3105, the highest in training: ",
        ),
        (OTHER, BASE, (1920, 42_000, 160), None),
        (OTHER, (1920, 42_000, 160), BASE, None),
        (OTHER, BASE, (300, 210_000, 45), "engine_mhz 300 is below 607, the lowest in training: "),
    ],
)
def test_what_was_measured_is_never_outside(
    cli: Cli, tmp_path: Path, form: str, base: tuple[float, float, float],
    also: tuple[float, float, float], noted: str | None,
) -> None:  # fmt: skip
    """Of readings at clocks above and below those that are tried else, on a listed GPU or not.

    That at the highest clock is the base.
    """
    files = table(tmp_path / "base.csv", form, base), table(tmp_path / "also.csv", form, also)
    given = (files[0], "--also", files[1])
    document = cli.json("advise", *given)
    measured = flat(*document["measured"])
    assert (measured["engine_mhz"], measured["time_ms"]) == pytest.approx(min(base, also)[:2])
    notes = [text for text in note_texts(document) if text.startswith("engine_mhz")]
    assert len(notes) == (noted is not None)
    assert all(note.startswith(str(noted)) for note in notes)
    rows = cli.json("predict", *given)["predictions"]
    between = [row["engine_mhz"] for row in rows if 700 < row["engine_mhz"] < 1100]
    assert len(between) > 20 or 700 not in (base[0], also[0])


@pytest.mark.parametrize("clock", [30, 3700])
def test_a_clock_that_cannot_be_is_refused(cli: Cli, tmp_path: Path, clock: int) -> None:
    """The GPU has 210 to 3105 MHz as listed: a third of the least is 70, 15 % above is too much.

    A table's row is held against the highest alone, of which 30 MHz are less than a hundredth.
    """
    base = table(tmp_path / "base.csv", ADA, BASE)
    also = table(tmp_path / "also.csv", ADA, (clock, 46_987 * 1683 / clock, 100))
    bare = tmp_path / "bare.csv"
    bare.write_text(f"kernel,time_ms\nrun,{46_987 * 1683 / clock}\n")
    known = "the lowest clock known is 210" if clock == 30 else "'rtx-4000-ada' has at most 3105"
    row = "'rtx-4000-ada' has at most 3105"
    for further, limit in ((also, row), (f"{bare}@engine={clock}", known)):
        assert f"{clock} MHz is impossible, {limit}" in cli.refused(
            "advise", base, "--also", further
        )


def test_readings_of_nearly_one_clock_count_beside_others(cli: Cli, tmp_path: Path) -> None:
    """1545 and 1560 MHz are 1 % apart, as are 960 and 975: each may be off by its noise."""
    form = "rtx3090,82,{},9501,run,{},{}\n"
    base = table(tmp_path / "base.csv", form, (1560, 28_852, 334))
    readings = [(1545, 28_700, 336), (975, 39_730, 250), (960, 39_400, 252), (1575, 28_900, 331)]
    further = [table(tmp_path / f"{row[0]}.csv", form, row) for row in readings]
    together = table(tmp_path / "all.csv", form, *readings)
    also = [word for file in further for word in ("--also", file)]
    out, err = cli.both("advise", base, *also, "--json")
    assert "no clock seems to matter" not in err
    one, other = (json.loads(out), cli.json("advise", base, "--also", together))
    assert one["answer"] == other["answer"]
    assert len(one["measured"]) == 4
    alone = cli.refused("advise", base, "--also", further[0])
    assert "ran at 1545 MHz, as the base at 1560 or nearly so" in alone


class TestTheSameMeasurement:
    """Under another name, in another form, or as a row: it tells nothing of another clock."""

    TWICE = "one measurement is given twice"

    @pytest.mark.parametrize("form", ["copy", "indented", "gzip", "tables"])
    def test_of_a_trace(self, cli: Cli, data_folder: Path, tmp_path: Path, form: str) -> None:
        first, copy = (data_folder / f"cases/8-same-trace-twice{end}.json" for end in ("", "-copy"))
        base = ("--base", "engine=1965,memory=3996")
        document = json.loads(copy.read_text())
        further, said = copy, "is the same as"
        if form == "indented":
            further = tmp_path / "indented.json"
            further.write_text(json.dumps(document, indent=1))
        elif form == "gzip":
            further = tmp_path / "copy.json.gz"
            further.write_bytes(gzip.compress(json.dumps(document).encode()))
        elif form == "tables":
            said = self.TWICE
            further = tmp_path / "copy.csv"
            cli("import", copy, "--base", "engine=1300,memory=3996", "-o", further)
        config = "" if form == "tables" else "@engine=1300"
        assert said in cli.ended(2, "advise", first, *base, "--also", f"{further}{config}")[1]

    def test_of_logs(self, cli: Cli, tmp_path: Path) -> None:
        fast = log(tmp_path / "fast.csv", 1755, 100, 480)
        copy = tmp_path / "copy.csv"
        copy.write_text(fast.read_text().replace(", ", ","))
        assert "copy.csv, GPU 0: has the same samples as " in cli.refused("advise", fast, copy)
        copy.write_text(fast.read_text().replace("1755 MHz", "1170 MHz"))
        told = cli.ended(2, "advise", fast, "--also", copy)[1]
        assert (
            f"copy.csv: row 1: holds the same numbers at cu=132,engine=1170,memory=2619 as the "
            f"run at cu=132,engine=1755,memory=2619: {self.TWICE}\n" in told
        )

    def test_of_rows(self, cli: Cli, tmp_path: Path) -> None:
        rows = table(tmp_path / "rows.csv", ADA, BASE, (1200, *BASE[1:]), (1005, 61_000, 90))
        assert self.TWICE in cli.ended(2, "advise", rows, "--base", "engine=1683")[1]
        further = [table(tmp_path / f"{mhz}.csv", ADA, (mhz, 61_000, 90)) for mhz in (1200, 1005)]
        base = table(tmp_path / "base.csv", ADA, BASE)
        also = [word for file in further for word in ("--also", str(file))]
        assert (
            "1005.csv: row 2: holds the same numbers at " in cli.ended(2, "advise", base, *also)[1]
        )


class TestTheThirdRun:
    """Half of the highest clock where both readings are high, else between them."""

    def test_is_asked_for(self, cli: Cli, tmp_path: Path) -> None:
        """1605 is 0.91 of 1755; half of that is 877.5, next to which the GPU offers 870 MHz."""
        fast, slow = (
            log(tmp_path / "f.csv", 1755, 100, 480),
            log(tmp_path / "s.csv", 1605, 105, 420),
        )
        given = ("advise", fast, "--also", slow, "--max-slowdown", 20)
        found = cli.json(*given)
        assert found["answer"]["at"]["engine_mhz"] < 1605
        said = "To know more below these clocks, run it at about 870 MHz too: --also FILE."
        assert found["next"] == said
        assert found["next_commands"][0] == "nvidia-smi -i 0 -lgc 870,870"
        assert f"\n  {said}\n" in cli(*given)

    def test_its_command_works(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        log(Path("f.csv"), 1755, 100, 480)
        log(Path("s.csv"), 1605, 105, 420)
        given = ("advise", "f.csv", "--also", "s.csv", "--max-slowdown", 20)
        further = cli.json(*given)["next_commands"][-1]
        log(Path("f-870.csv"), 870, 160, 240)
        out = cli(*shlex.split(further)[1:])
        measured = [at["at"]["engine_mhz"] for at in json.loads(out)["measured"]]
        assert sorted(measured) == [870, 1605]

    @pytest.mark.parametrize("more", [("--minimize", "time"), ("--max-slowdown", 2)])
    def test_is_between_where_one_is_low(
        self, cli: Cli, fast: Path, slow: Path, more: tuple[object, ...]
    ) -> None:
        document = cli.json("advise", fast, "--also", slow, *more)
        assert document["answer"]["at"]["engine_mhz"] > 1170
        said = "To know more between these clocks, run it at about 1410 MHz too: --also FILE."
        assert document["next"] == said


def test_on_how_many_gpus_intervals_held_is_said_once(cli: Cli, fast: Path, slow: Path) -> None:
    """From one reading times are bounds, and power alone is told of."""
    of_time, of_power = r"\d+ of \d+ \(time\)", r"\d+ of \d+ \(power\)"
    held = re.compile(
        f"intervals contained 85 % of the truth or more on {of_time} and {of_power} u"
    )
    for command in ("advise", "predict"):
        two = (command, fast, "--also", slow)
        notes = note_texts(cli.json(*two))
        assert len([text for text in notes if held.search(text)]) == 1
        one = note_texts(cli.json(command, fast))
        [told] = [text for text in one if "of the truth" in text]
        assert re.search(rf"more on {of_power} unseen GPUs", told)


class TestCases:
    def test_two_rows_of_one_memory_clock(self, cli: Cli, data_folder: Path) -> None:
        rows = data_folder / "cases/9-two-rows-one-memory-clock.csv"
        document = cli.json("advise", rows, "--base", "engine=1560")
        assert document["base"]["memory_mhz"] == 9501
        assert [at["at"]["engine_mhz"] for at in document["measured"]] == [975]

    def test_cus_of_the_device_table(self, cli: Cli, data_folder: Path) -> None:
        rows = data_folder / "cases/10-no-cu-count.csv"
        assert cli.json("advise", rows)["base"]["cu_count"] == 82

    def test_half_of_the_traffic(self, cli: Cli, data_folder: Path) -> None:
        given = (
            data_folder / "cases/11-ncu-read-bytes-only.csv",
            *("--device", "v100", "--base", "engine=1380,memory=877"),
        )
        half = "the profile has dram__bytes_read.sum, lacks dram__bytes_write.sum"
        assert cli.refused("predict", "kernels.mlscale", *given).endswith(half)
        assert cli.json("advise", *given)["next"].endswith(half)

    def test_a_trace_that_does_not_say_the_gpu(
        self, cli: Cli, data_folder: Path, tmp_path: Path
    ) -> None:
        trace = data_folder / "cases/7-trace-empty-gpu-name.json"
        said = cli.refused("import", trace, "-o", tmp_path / "t.csv")
        assert "does not say the GPU, engine_mhz, memory_mhz; give --device NAME --base" in said


def test_rows_of_a_gpu_without_a_name_need_its_cus_and_memory_clock(
    cli: Cli, tmp_path: Path
) -> None:
    """As logs do; the answer is that for a name that is not listed."""
    text = "engine_mhz,time_ms,power_w\n{},{},{}\n"
    (fast := tmp_path / "fast.csv").write_text(text.format(2000, 30_000, 200))
    (slow := tmp_path / "slow.csv").write_text(text.format(1300, 36_000, 130))
    given = ["advise", fast, "--also", slow, "--base", "cu=56,memory=7000"]
    unnamed, named = cli.json(*given), cli.json(*given, "--device", "not-listed")
    assert "does not say the GPU; if" in " ".join(note_texts(unnamed))
    assert unnamed["answer"] == named["answer"]
    assert "name it with --device" in cli.refused(*given[:4])


def test_rows_with_a_rate_under_other_titles_are_no_log(cli: Cli, tmp_path: Path) -> None:
    """The columns that the error gives answer as our own names do."""
    header = "SM clock [GHz],output_tokens_per_second,Power [W]\n"
    ours = "engine_mhz,tokens_per_s,power_w\n"
    for name, text in {"theirs": header + "{:.3f},{},{}\n", "ours": ours + "{},{},{}\n"}.items():
        for mhz, *of in ((1755, 2400, 525), (1170, 2030, 345)):
            clock = mhz / 1000 if name == "theirs" else mhz
            (tmp_path / f"{name}-{mhz}.csv").write_text(text.format(clock, *of))
    theirs, also = tmp_path / "theirs-1755.csv", ("--also", tmp_path / "theirs-1170.csv")
    told = cli.refused("advise", theirs, *also)
    assert "is a table of runs with other column names; say which is which: --map" in told
    mapped = shlex.split(told.partition("which: ")[2])
    device = ("--device", "h100-sxm5")
    answer = cli.json("advise", theirs, *also, *mapped, *device)["answer"]
    files = (tmp_path / "ours-1755.csv", "--also", tmp_path / "ours-1170.csv")
    assert answer == cli.json("advise", *files, *device)["answer"]
