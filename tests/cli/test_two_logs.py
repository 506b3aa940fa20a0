"""A run's monitor logs at two engine clocks, on a GPU that no model was trained on.

The logs are made by tests/synthetic/two_logs.py; what they hold, and all bounds, are by hand.
"""

import lzma
import re
from pathlib import Path

import pytest
from command import Cli, flat, note_texts
from synthetic.two_logs import HEADER, log, of_gpu_1, without, without_idle


def imported(cli: Cli, file: Path, *given: object) -> Path:
    """A table of the log."""
    table = file.with_name(f"{file.stem}-table.csv")
    cli("import", file, *given, "-o", table)
    return table


class TestAnswers:
    def test_two_logs_are_enough(self, cli: Cli, fast: Path, slow: Path) -> None:
        """10 s at 480 W, 12 s at 300 W: at both clocks the prediction is what was measured."""
        document = cli.json("advise", fast, "--also", slow)
        assert document["device"] == "h100-sxm5"
        at_base, best = document["run"], flat(document["menu"][-1])
        assert (at_base["time_ms"], at_base["power_w"]) == pytest.approx((10_000, 480))
        assert 900 < best["engine_mhz"] < 1755
        assert best["energy_mj"] < 12_000 * 300 * 1.001  # the least is no more than at 1170 MHz
        at = ("--at", "engine=1170,memory=2619", "--at", "engine=1500,memory=2619")
        at_1170, at_1500 = cli.json("predict", fast, "--also", slow, *at)["predictions"]
        assert at_1170["time_ms"] == pytest.approx(12_000, rel=0.01)
        assert at_1170["power_w"] == pytest.approx(300, rel=0.01)
        assert 10_000 < at_1500["time_ms"] < 12_000
        assert 300 < at_1500["power_w"] < 480

    def test_the_first_may_be_a_table_of_its_log(self, cli: Cli, fast: Path, slow: Path) -> None:
        by_table = cli.json("advise", imported(cli, fast), "--also", slow)
        assert by_table["answer"] == cli.json("advise", fast, "--also", slow)["answer"]

    def test_they_may_be_compressed(self, cli: Cli, fast: Path, slow: Path) -> None:
        packed = [file.with_suffix(".csv.xz") for file in (fast, slow)]
        for file, name in zip((fast, slow), packed, strict=True):
            name.write_bytes(lzma.compress(file.read_bytes()))
        by_packed = cli.json("advise", packed[0], "--also", packed[1])
        assert by_packed["answer"] == cli.json("advise", fast, "--also", slow)["answer"]

    @pytest.mark.parametrize("engine_mhz", [400, 1500])
    def test_where_is_asked_changes_no_answer(
        self, cli: Cli, fast: Path, slow: Path, engine_mhz: int
    ) -> None:
        """A curve through both logs is the same, whichever clocks are printed; 400 is beyond."""
        given = ["predict", fast, "--also", slow, "--at"]
        at = f"engine={engine_mhz},memory=2619"
        alone, beside = (
            cli.json(*given, at, *more)["predictions"][0]
            for more in ((), ("--at", "engine=1170,memory=2619", "--at", "engine=900,memory=2619"))
        )
        for name, value in alone.items():
            if isinstance(value, float):
                assert value == pytest.approx(beside[name], rel=1e-6), name
        assert 300 * 400 / 1170 < alone["power_w"] < 480  # at least in proportion to the clock

    def test_one_log_says_what_the_second_is(self, cli: Cli, tmp_path: Path) -> None:
        """Below it, but above where 0.6 of it are too low: 990 MHz are half of an H100's 1980."""
        low = log(tmp_path / "low.csv", 990, 100, 250)
        assert "run it at about 1650 MHz too" in cli("advise", low)

    def test_a_gpu_that_the_table_lacks_needs_its_sms_alone(self, cli: Cli, tmp_path: Path) -> None:
        name = "NVIDIA GeForce RTX 9990 Laptop GPU"
        fast = log(tmp_path / "fast.csv", 1755, 100, 110, name=name)
        slow = log(tmp_path / "slow.csv", 1170, 120, 70, name=name)
        message = cli.refused("advise", fast, "--also", slow)
        assert "give --base cu=…" in message
        assert "is not in the device table" in message
        base = ("--base", "cu=36")
        document = of_both = cli.json("advise", fast, "--also", slow, *base)
        best = flat(document["answer"])
        assert 600 < best["engine_mhz"] < 1755
        assert best["energy_mj"] < 110 * 10_000
        assert any("even steps up to the highest clock measured" in w for w in note_texts(document))
        at = ("--at", "engine=1170")
        [prediction] = cli.json("predict", fast, "--also", slow, *base, *at)["predictions"]
        assert prediction["time_ms"] == pytest.approx(12_000, rel=0.01)
        assert prediction["power_w"] == pytest.approx(70, rel=0.01)
        swapped = cli.json("advise", slow, "--also", fast, *base)
        least, other = (one["menu"][-1]["at"]["engine_mhz"] for one in (of_both, swapped))
        assert least == other

    def test_gpus_at_nearly_one_clock_count_as_at_the_lower(self, cli: Cli, tmp_path: Path) -> None:
        """1755 and 1745 MHz are half a percent apart: 1745, of each of the two runs."""
        fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=2)
        of_gpu_1(fast, "1755 MHz", "1745 MHz")
        slow = log(tmp_path / "slow.csv", 1170, 120, 300, gpus=2)
        document = cli.json("advise", fast, "--also", slow)
        assert document["base"]["engine_mhz"] == 1745
        assert document["run"]["time_ms"] == pytest.approx(10_000)
        of_gpu_1(slow, "1170 MHz", "1164 MHz")
        tables = [
            imported(cli, file, "--time", time_ms, "--application", "server")
            for file, time_ms in ((fast, 5000), (slow, 6000))
        ]
        document = cli.json("advise", tables[0], "--also", tables[1])
        assert document["base"]["engine_mhz"] == 1745
        assert document["run"]["time_ms"] == pytest.approx(5_000)

    def test_commands_are_for_the_gpu_of_the_log(self, cli: Cli, tmp_path: Path) -> None:
        fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=3)
        slow = log(tmp_path / "slow.csv", 1170, 120, 300, gpus=3)
        given = ["advise", fast, "--also", slow, "--max-slowdown", 5, "--commands"]
        assert "nvidia-smi -i 2 -rgc" in cli(*given, "--gpu", 2)
        document = cli.json(*given)
        shell = {"-lgc": document["commands"]["set"], "-rgc": document["commands"]["reset"]}
        further = document["next_commands"]
        for word, lines in {**shell, "-lgc ": further[:3], "-rgc ": further[4:7]}.items():
            assert [f"nvidia-smi -i {gpu} {word.strip()}" for gpu in (0, 1, 2)] == [
                " ".join(line.split()[:4]) for line in lines
            ]
        assert further[3].startswith("# run the same work again")
        assert "nvidia-smi -i 2 -rgc" in cli.page(*given[1:-1], "--gpu", 2)

    def test_clocks_that_no_log_says_are_given(self, cli: Cli, fast: Path, slow: Path) -> None:
        """The memory's highest by the device table is named; an engine clock stands at a log."""
        for path in (fast, slow):
            without(path, 5)
        said = cli.refused("advise", fast, "--also", slow)
        assert "give --base memory=… " in said
        assert said.endswith("(memory: usually its highest, 2619)")
        for path in (fast, slow):
            without(path, 4)
        base = ["--base", "engine=1755,memory=2619"]
        said = cli.refused("advise", fast, "--also", slow, *base)
        assert said.endswith(f"at which engine clock it ran: give {slow}@engine=…")
        document = cli.json("advise", fast, "--also", f"{slow}@engine=1170", *base)
        named = (f"{fast}@engine=1755", "--also", f"{slow}@engine=1170", "--base", "memory=2619")
        assert cli.json("advise", *named)["answer"] == document["answer"]
        assert 900 < document["answer"]["at"]["engine_mhz"] < 1755


class TestTold:
    def test_few_samples_and_a_log_that_may_be_shorter_than_its_run(
        self, cli: Cli, tmp_path: Path, fast: Path, slow: Path
    ) -> None:
        """One sample of 100 ms in a run of 2 s is 5 %."""
        short = [log(tmp_path / f"{n}.csv", mhz, n, 300) for mhz, n in ((1755, 20), (1170, 24))]
        told = cli.told("predict", short[0], "--also", short[1])
        assert "known to within one sample, 100 ms, 5 % of the shortest run" in told
        without_idle(slow, end=False)
        told = cli.told("advise", fast, "--also", slow)
        assert "begins or ends while the GPU works; if the run was longer than its log" in told

    @pytest.mark.parametrize(
        ("samples", "is_told"), [(120, False), (102, False), (101, True), (95, True)]
    )
    def test_runs_of_a_set_length(
        self, cli: Cli, tmp_path: Path, fast: Path, samples: int, is_told: bool
    ) -> None:
        """10 s at 1755 MHz, known to 0.1 s: at 1170 MHz 10.1 s may be the same, 10.2 s are not."""
        other = log(tmp_path / "other.csv", 1170, samples, 300)
        told = cli.told("advise", fast, "--also", other)
        said = f"the run takes {samples / 100:.2f} times as long as at 1755 MHz, so that no clock"
        assert (said in told) == is_told
        told = cli.told("advise", other, "--also", fast)
        assert ("so that no clock seems to matter. " in told) == is_told

    def test_stands_in_documents_and_pages_too(self, cli: Cli, tmp_path: Path, fast: Path) -> None:
        """They are read by others, who do not see the terminal."""
        given = [fast, "--also", log(tmp_path / "other.csv", 1170, 100, 300)]
        for command in ("advise", "predict"):
            document = cli.json(command, *given)
            found = [text for text in note_texts(document) if "no clock seems to matter" in text]
            assert len(found) == 1
        assert "so that no clock seems to matter" in cli.page(*given)

    def test_work_that_pauses_hide(self, cli: Cli, tmp_path: Path) -> None:
        """Three bursts of 4 s, or of 6 s, each begun 10 s after the last: 24 s, or 26 s."""

        def bursts(name: str, engine_mhz: int, worked: int, power_w: int) -> Path:
            beats = [*[0] * 2, *2 * [*[95] * worked, *[0] * (100 - worked)], *[95] * worked, 0, 0]
            lines = [
                f"2026/03/02 14:05:{10 + tick / 10:06.3f}, 0, NVIDIA H100 80GB HBM3, "
                f"{power_w if beat else 70} W, {engine_mhz} MHz, 2619 MHz, {beat} %, 30 %"
                for tick, beat in enumerate(beats)
            ]
            (tmp_path / name).write_text("\n".join([HEADER, *lines]) + "\n")
            return tmp_path / name

        fast, slow = bursts("fast.csv", 1755, 40, 480), bursts("slow.csv", 1170, 60, 300)
        told = cli.told("advise", fast, "--also", slow, "--max-slowdown", "5", "--notes")
        assert "the GPU worked 1.50 times as long as at 1755 MHz, and the run takes 1.08 t" in told
        assert "pauses hide how much the work slows, perhaps no more below 1170 MHz" in told
        assert "fast.csv, GPU 0: 120 of 240 samples of the busy span are idle" in told
        told = cli.ended(2, "advise", fast, "--also", slow, "--lever", "cap")[1]
        assert "50 % of the log is pauses, which lower its mean power" in told
        other_way = cli.told("advise", slow, "--also", fast, "--notes")
        assert "slow.csv: at 1170 MHz the GPU worked 1.50 times as long as at 1755" in other_way


class TestRefused:
    @pytest.mark.parametrize(
        ("engine_mhz", "samples", "power_w", "message"),
        [
            (1170, 170, 300, "takes 1.70 times as long as at 1755 MHz, the same work 1.00 to 1.50"),
            (1170, 90, 300, "takes 0.90 times as long"),
            (1930, 105, 520, ""),  # 5 % slower at a clock 10 % higher: noise
            (1170, 120, 510, "draws 1.06 times as much power as at 1755 MHz"),
            (1700, 101, 470, "ran at 1700 MHz, as the base at 1755 or nearly so"),
            (1755, 100, 480, "run the same work at about 1050 MHz, locked or by a low power cap"),
        ],
    )
    def test_a_log_of_other_work(
        self, cli: Cli, tmp_path: Path, fast: Path, engine_mhz: int, samples: int,
        power_w: float, message: str,
    ) -> None:  # fmt: skip
        """The first log: 10 s at 1755 MHz and 480 W. Bounds: 10 % of time, 5 % of power."""
        other = log(tmp_path / "other.csv", engine_mhz, samples, power_w)
        if message:
            assert message in cli.refused("predict", fast, "--also", other)
        else:
            cli("predict", fast, "--also", other)

    def test_parts_of_runs(self, cli: Cli, fast: Path, slow: Path) -> None:
        """A minute each of a job that goes on would say that its time does not scale at all."""
        without_idle(slow)
        said = f"{slow}: this log, or that of the run at 1755 MHz, begins and ends while the GPU"
        assert said in cli.refused("advise", fast, "--also", slow)
        tables = [
            imported(cli, file, "--time", time_ms, "--application", "job")
            for file, time_ms in ((fast, 10_000), (slow, 12_000))
        ]
        most = ("--max-slowdown", 5)
        by_tables = cli.json("advise", tables[0], "--also", tables[1], *most)
        whole = cli.json("advise", fast, "--also", log(slow, 1170, 120, 300), *most)
        clocks = [one["answer"]["at"]["engine_mhz"] for one in (by_tables, whole)]
        assert clocks[0] == clocks[1]

    def test_gpus_of_other_jobs(self, cli: Cli, tmp_path: Path) -> None:
        """GPU 1 works all the time: for another user of the same machine."""
        fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=2)
        slow = log(tmp_path / "slow.csv", 1170, 120, 300, gpus=2)
        for path in (fast, slow):
            of_gpu_1(path, " 0 %, 0 %", " 95 %, 30 %")
            of_gpu_1(path, " 70.00 W", " 300.00 W")
        said = cli.refused("advise", fast, "--also", slow)
        assert said.endswith("; if some GPUs ran other jobs, name yours with --gpu")
        cli("advise", fast, "--also", slow, "--gpu", 0)

    def test_tables_of_logs(self, cli: Cli, fast: Path, slow: Path) -> None:
        """They are called as their logs are, where one name is to be given."""
        tables = [imported(cli, file) for file in (fast, slow)]
        said = cli.refused("advise", tables[0], "--also", tables[1])
        assert "the profile has no run 'slow'; import the logs of one run under one name" in said

    def test_another_memory_clock(self, cli: Cli, tmp_path: Path, fast: Path) -> None:
        other = log(tmp_path / "other.csv", 1170, 120, 300, memory_mhz=1593)
        warning, error = cli.ended(2, "advise", fast, "--also", other)[1].splitlines()
        assert "memory_mhz at the base is 2619, but ran at 1593; the" in warning
        assert "ran at the memory clock 1593 MHz, the base is at 2619" in error

    def test_limits_that_cannot_be_kept_are_told_without_exponents(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        """20 s at the base, of 1755 MHz of 1980: they cannot be 1 s."""
        longer = log(tmp_path / "longer.csv", 1755, 200, 480)
        slower = log(tmp_path / "slower.csv", 1170, 240, 300)
        message = cli.refused("advise", longer, "--also", slower, "--max-time", 1000)
        assert "keeps a time of at most 1 s; the least is time " in message
        (least,) = re.findall(r"the least is time ([\d.]+) s$", message)
        assert 17 < float(least) < 20
        message = cli.refused("advise", longer, "--also", slower, "--max-time", 21)
        assert message.endswith(
            f" {least} s (limits are in ms; are seconds meant? give --max-time 21000)"
        )
        asked = ("advise", longer, "--also", slower, "--max-time", 21000)
        assert cli(*asked) == cli(*asked[:-1], "21s")
        assert "exceeding 21 s" in " ".join(cli(*asked).split())
