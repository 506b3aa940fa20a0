"""A run's monitor logs at two engine clocks, on a GPU that no model was trained on."""

import json
import re
from pathlib import Path

import pytest
from command import Capture, refuse, succeed

from mlscale.cli.main import main

HEADER = (
    "timestamp, index, name, power.draw.instant [W], clocks.current.sm [MHz], "
    "clocks.current.memory [MHz], utilization.gpu [%], utilization.memory [%]"
)


def log(
    path: Path,
    engine_mhz: int,
    samples: int,
    power_w: float,
    gpus: int = 1,
    memory_mhz: int = 2619,
    name: str = "NVIDIA H100 80GB HBM3",
) -> Path:
    """nvidia-smi's of GPUs that work for so many tenths of a second, and idle before and after."""
    lines = [HEADER]
    for tick in range(samples + 4):
        busy = 2 <= tick < samples + 2
        lines += [
            f"2026/03/02 14:05:{10 + tick / 10:06.3f}, {gpu}, {name}, "
            f"{power_w if busy else 70:.2f} W, {engine_mhz} MHz, {memory_mhz} MHz, "
            f"{95 if busy else 0} %, {30 if busy else 0} %"
            for gpu in range(gpus)
        ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    return log(tmp_path / "fast.csv", 1755, 100, 480)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """1.2 times as long at two thirds of the clock."""
    return log(tmp_path / "slow.csv", 1170, 120, 300)


def test_two_logs_are_enough(capsys: Capture, fast: Path, slow: Path) -> None:
    """10 s at 480 W, 12 s at 300 W: at both clocks the prediction is what was measured."""
    document = json.loads(succeed(capsys, "advise", fast, "--also", slow, "--format", "json")[0])
    assert document["device"] == "h100-sxm5"
    at_base, best = (document["whole_run"][name] for name in ("at_base", "best"))
    assert (at_base["time_ms"], at_base["power_w"]) == pytest.approx((10_000, 480))
    assert 900 < best["engine_mhz"] < 1755
    assert best["energy_mj"] < 12_000 * 300 * 1.001  # the least is no more than at 1170 MHz
    points = [
        *("--at", "engine=1170,memory=2619", "--at", "engine=1500,memory=2619", "--format", "json")
    ]
    document = json.loads(succeed(capsys, "predict", fast, "--also", slow, *points)[0])
    at_1170, at_1500 = document["predictions"]
    assert at_1170["time_ms"] == pytest.approx(12_000, rel=0.01)
    assert at_1170["power_w"] == pytest.approx(300, rel=0.01)
    assert 10_000 < at_1500["time_ms"] < 12_000
    assert 300 < at_1500["power_w"] < 480
    assert not any("not used" in warning for warning in document["warnings"])


@pytest.mark.parametrize("engine_mhz", [400, 1500])
def test_where_is_asked_changes_no_answer(
    capsys: Capture, fast: Path, slow: Path, engine_mhz: int
) -> None:
    """A curve through both logs is the same, whichever clocks are printed; 400 MHz is beyond."""
    given = ["predict", fast, "--also", slow, "--format", "json"]
    at = f"engine={engine_mhz},memory=2619"
    alone, beside = (
        json.loads(succeed(capsys, *given, "--at", at, *more)[0])["predictions"][0]
        for more in ((), ("--at", "engine=1170,memory=2619", "--at", "engine=900,memory=2619"))
    )
    for name, value in alone.items():
        if isinstance(value, float):
            assert value == pytest.approx(beside[name], rel=1e-6), name
    assert 300 * 400 / 1170 < alone["power_w"] < 480  # no less than in proportion to the clock


def test_one_log_says_what_the_second_is(capsys: Capture, tmp_path: Path, fast: Path) -> None:
    message = refuse(capsys, tmp_path, "advise", fast)
    assert "run it once more at another engine clock, about 1170 MHz" in message
    assert "--also LOG" in message
    low = log(tmp_path / "low.csv", 990, 100, 250)  # half of 1980 MHz: two thirds are too low
    assert "about 1485 MHz" in refuse(capsys, tmp_path, "advise", low)


class TestAGpuThatTheTableLacks:
    NAME = "NVIDIA GeForce RTX 9990 Laptop GPU"

    def test_needs_its_sms_alone(self, capsys: Capture, tmp_path: Path) -> None:
        fast = log(tmp_path / "fast.csv", 1755, 100, 110, name=self.NAME)
        slow = log(tmp_path / "slow.csv", 1170, 120, 70, name=self.NAME)
        message = refuse(capsys, tmp_path, "advise", fast, "--also", slow)
        assert "give --base cu=…" in message
        assert f"as '{self.NAME}' is not in the device table" in message
        given = ["advise", fast, "--also", slow, "--base", "cu=36", "--format", "json"]
        document = json.loads(succeed(capsys, *given)[0])
        assert 600 < document["whole_run"]["best"]["engine_mhz"] < 1755
        assert document["whole_run"]["best"]["energy_mj"] < 110 * 10_000
        assert any("even steps up to the clock of the first" in w for w in document["warnings"])

    def test_is_predicted_where_it_is_asked(self, capsys: Capture, tmp_path: Path) -> None:
        fast = log(tmp_path / "fast.csv", 1755, 100, 110, name=self.NAME)
        slow = log(tmp_path / "slow.csv", 1170, 120, 70, name=self.NAME)
        at = ["--base", "cu=36", "--at", "engine=1170", "--format", "json"]
        document = json.loads(succeed(capsys, "predict", fast, "--also", slow, *at)[0])
        [prediction] = document["predictions"]
        assert prediction["time_ms"] == pytest.approx(12_000, rel=0.01)
        assert prediction["power_w"] == pytest.approx(70, rel=0.01)

    def test_is_logged_at_its_highest_clock_first(self, capsys: Capture, tmp_path: Path) -> None:
        fast = log(tmp_path / "fast.csv", 1755, 100, 110, name=self.NAME)
        slow = log(tmp_path / "slow.csv", 1170, 120, 70, name=self.NAME)
        assert main(["advise", str(slow), "--also", str(fast), "--base", "cu=36"]) == 2
        assert "give the run at the highest clock first" in capsys.readouterr().err


def test_a_run_of_few_samples_is_told(capsys: Capture, tmp_path: Path) -> None:
    """One sample of 100 ms in a run of 2 s is 5 %."""
    fast = log(tmp_path / "fast.csv", 1755, 20, 480)
    slow = log(tmp_path / "slow.csv", 1170, 24, 300)
    _, told = succeed(capsys, "predict", fast, "--also", slow)
    assert "known to one sample, 100 ms, 5% of the shortest run" in told


def of_gpu_1(path: Path, before: str, after: str) -> None:
    """Change the rows of the second GPU of a log."""
    lines = path.read_text().splitlines()
    changed = [line.replace(before, after) if ", 1, NVIDIA" in line else line for line in lines]
    path.write_text("\n".join(changed) + "\n")


def without_idle(path: Path, end: bool = True) -> None:
    """Leave out the idle samples of a log: before the run, and behind it too."""
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], *lines[3 : -2 if end else None]]) + "\n")


def test_a_log_that_may_be_shorter_than_its_run_is_told(
    capsys: Capture, fast: Path, slow: Path
) -> None:
    without_idle(slow, end=False)
    _, told = succeed(capsys, "advise", fast, "--also", slow)
    assert "begins or ends while the GPU works; if the run was longer than its log" in told


@pytest.mark.parametrize(
    ("samples", "is_told"),
    [(120, False), (102, False), (101, True), (100, True), (95, True)],
)
def test_runs_of_a_set_length_are_told(
    capsys: Capture, tmp_path: Path, fast: Path, samples: int, is_told: bool
) -> None:
    """10 s at 1755 MHz, known to 0.1 s: at 1170 MHz 10.1 s may be the same, 10.2 s are not."""
    other = log(tmp_path / "other.csv", 1170, samples, 300)
    told = succeed(capsys, "advise", fast, "--also", other)[1]
    said = f"at 1170 MHz the run takes {samples / 100:.2f} times as long as at 1755 MHz, so that no"
    assert (said in told) == is_told
    assert ("of a million tokens it is 1e9 / (tokens per second)" in told) == is_told
    told = succeed(capsys, "advise", other, "--also", fast)[1]
    assert ("so that no clock seems to matter. If its length was set" in told) == is_told


def test_work_that_pauses_hide_is_told(capsys: Capture, tmp_path: Path) -> None:
    """By hand: three bursts of 4 s, or of 6 s, each begun 10 s after the last: 24 s, or 26 s."""

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
    told = succeed(capsys, "advise", fast, "--also", slow, "--max-slowdown", "5")[1]
    assert (
        "slow.csv: its GPU worked for 18 s, that at 1755 MHz for 12 s: 1.50 times as long, the "
        "whole run 1.08 times" in told
    )
    assert "whole where the pauses end, which may be below 1170 MHz" in told
    assert "fast.csv, GPU 0: is idle for 12 s of the busy span" in told
    assert main(["advise", str(fast), "--also", str(slow), "--lever", "cap"]) == 2
    assert "50% of the run's log are pauses, which its mean power" in capsys.readouterr().err
    other_way = succeed(capsys, "advise", slow, "--also", fast)[1]
    assert "fast.csv: its GPU worked for 12 s, that at 1170 MHz for 18 s: 0.67 times" in other_way
    assert "below 1170 MHz" in other_way


def test_gpus_at_nearly_one_clock_count_as_at_its_mean(capsys: Capture, tmp_path: Path) -> None:
    """1755 and 1745 MHz are half a percent apart: 1750, of each of the two runs."""
    fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=2)
    of_gpu_1(fast, "1755 MHz", "1745 MHz")
    slow = log(tmp_path / "slow.csv", 1170, 120, 300, gpus=2)
    document = json.loads(succeed(capsys, "advise", fast, "--also", slow, "--json")[0])
    assert document["base"]["engine_mhz"] == 1750
    assert document["whole_run"]["at_base"]["time_ms"] == pytest.approx(20_000)


def test_commands_are_for_the_gpu_of_the_log(capsys: Capture, tmp_path: Path) -> None:
    fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=3)
    slow = log(tmp_path / "slow.csv", 1170, 120, 300, gpus=3)
    given = ["advise", fast, "--also", slow, "--max-slowdown", 5, "--commands"]
    assert "nvidia-smi -i 2 -rgc" in succeed(capsys, *given, "--gpu", 2)[0]
    assert "note: for GPU 0; set 1, 2 alike" in succeed(capsys, *given)[0]
    page = tmp_path / "page.html"
    succeed(capsys, "report", *given[1:], "--gpu", 2, "-o", page)
    assert "nvidia-smi -i 2 -rgc" in page.read_text()


def test_a_page_of_logs_speaks_of_runs_and_not_of_counters(
    capsys: Capture, tmp_path: Path, fast: Path, slow: Path
) -> None:
    page = tmp_path / "page.html"
    succeed(capsys, "report", fast, "--also", slow, "-o", page)
    text = page.read_text()
    assert (
        "1, as averages of a monitor's log" in text or "1, as averages of a monitor&#x27;s" in text
    )
    assert "Counters cover" not in text


def without(path: Path, column: int) -> None:
    """Take a column out of a log."""
    rows = [line.split(", ") for line in path.read_text().splitlines()]
    path.write_text("".join(", ".join(r[:column] + r[column + 1 :]) + "\n" for r in rows))


def test_clocks_that_no_log_says_are_given(
    capsys: Capture, tmp_path: Path, fast: Path, slow: Path
) -> None:
    """The memory's highest clock by the device table is named; an engine clock stands at a log."""
    for path in (fast, slow):
        without(path, 5)
    said = refuse(capsys, tmp_path, "advise", fast, "--also", slow)
    assert said.endswith(
        "--base memory=… (memory: 2619, its highest, unless it was set to another)"
    )
    for path in (fast, slow):
        without(path, 4)
    base = ["--base", "engine=1755,memory=2619"]
    said = refuse(capsys, tmp_path, "advise", fast, "--also", slow, *base)
    assert said == f"{slow}: does not say at which engine clock it ran: --also slow.csv@engine=…"
    document = json.loads(
        succeed(capsys, "advise", fast, "--also", f"{slow}@engine=1170", *base, "--json")[0]
    )
    assert 900 < document["whole_run"]["best"]["engine_mhz"] < 1755


class TestRefusals:
    def test_limits_that_cannot_be_kept_are_told_without_exponents(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """20 s at the base, of 1755 MHz of 1980: they cannot be 1 s."""
        longer = log(tmp_path / "longer.csv", 1755, 200, 480)
        slower = log(tmp_path / "slower.csv", 1170, 240, 300)
        message = refuse(capsys, tmp_path, "advise", longer, "--also", slower, "--max-time", 1000)
        (least,) = re.findall(r"the least is time ([\d ]+) ms$", message)
        assert 17_000 < int(least.replace(" ", "")) < 20_000

    def test_power_beside_a_log_names_the_log(
        self, capsys: Capture, tmp_path: Path, fast: Path
    ) -> None:
        message = refuse(capsys, tmp_path, "advise", fast, "--power", 500)
        assert message == f"{fast}: has power_w already; leave --power away"

    def test_parts_of_runs(self, capsys: Capture, tmp_path: Path, fast: Path, slow: Path) -> None:
        """A minute each of a job that goes on would say that its time does not scale at all."""
        without_idle(slow)
        said = f"{slow}: this log, or that of the run at 1755 MHz, begins and ends while the GPU"
        assert said in refuse(capsys, tmp_path, "advise", fast, "--also", slow)
        tables = [tmp_path / "a.csv", tmp_path / "b.csv"]
        for of, time_ms, table in zip((fast, slow), (10_000, 12_000), tables, strict=True):
            given = ["--time", time_ms, "--application", "job", "-o", table]
            succeed(capsys, "import", "auto", of, *given)
        options = ["--max-slowdown", 5, "--json"]
        out, _ = succeed(capsys, "advise", tables[0], "--also", tables[1], *options)
        whole, _ = succeed(capsys, "advise", fast, "--also", log(slow, 1170, 120, 300), *options)
        clocks = [json.loads(text)["whole_run"]["best"]["engine_mhz"] for text in (out, whole)]
        assert clocks[0] == clocks[1]

    def test_a_trace_beside_a_log(self, capsys: Capture, tmp_path: Path, fast: Path) -> None:
        trace = tmp_path / "slow.json"
        event = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 9, "args": {}}
        trace.write_text(json.dumps({"traceEvents": [event]}))
        said = refuse(capsys, tmp_path, "advise", fast, "--also", f"{trace}@engine=1170")
        assert "slow.json: is no log, and" in said
        assert "fast.csv is a monitor's; give the log of the further run" in said

    def test_tables_of_other_names(
        self, capsys: Capture, tmp_path: Path, fast: Path, slow: Path
    ) -> None:
        """Named after their logs, where one name is to be given."""
        tables = [tmp_path / f"{path.stem}-table.csv" for path in (fast, slow)]
        for path, table in zip((fast, slow), tables, strict=True):
            succeed(capsys, "import", "auto", path, "-o", table)
        said = refuse(capsys, tmp_path, "advise", tables[0], "--also", tables[1])
        assert "the profile has no run 'slow'; import the logs of one run under one name" in said

    def test_gpus_at_several_clocks(self, capsys: Capture, tmp_path: Path) -> None:
        fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=2)
        of_gpu_1(fast, "1755 MHz", "1695 MHz")
        message = refuse(capsys, tmp_path, "advise", fast)
        said = "its GPUs ran at engine clocks from 1695 to 1755 MHz; name one with --gpu, and ask"
        assert f"{fast}: {said}" in message

    def test_gpus_of_several_kinds(self, capsys: Capture, tmp_path: Path) -> None:
        fast = log(tmp_path / "fast.csv", 1755, 100, 300, gpus=2)
        of_gpu_1(fast, "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe")
        of_gpu_1(fast, "2619 MHz", "1593 MHz")
        message = refuse(capsys, tmp_path, "advise", fast)
        assert "is of several kinds of GPU, h100-pcie, h100-sxm5; name one with --gpu" in message

    def test_two_logs_without_also(
        self, capsys: Capture, tmp_path: Path, fast: Path, slow: Path
    ) -> None:
        message = refuse(capsys, tmp_path, "advise", fast, slow)
        assert message.endswith("are logs at different clocks; give one, and the other with --also")

    def test_a_log_at_the_same_clock(self, capsys: Capture, tmp_path: Path, fast: Path) -> None:
        again = log(tmp_path / "again.csv", 1755, 100, 480)
        message = refuse(capsys, tmp_path, "advise", fast, "--also", again)
        assert f"{again}: ran at 1755 MHz, as the base" in message
        assert "run the same work at about 1170 MHz, locked or by a low power cap" in message

    def test_more_power_than_the_board_has(self, capsys: Capture, tmp_path: Path) -> None:
        """As where milliwatts are taken for watts: 480 000 of 700."""
        wrong = log(tmp_path / "wrong.csv", 1755, 100, 480_000)
        message = refuse(capsys, tmp_path, "predict", wrong)
        assert f"{wrong}, GPU 0: a board power of 480000 W cannot be" in message

    def test_another_number_of_gpus(self, capsys: Capture, tmp_path: Path, fast: Path) -> None:
        pair = log(tmp_path / "pair.csv", 1170, 120, 300, gpus=2)
        message = refuse(capsys, tmp_path, "advise", fast, "--also", pair)
        assert f"{pair}: has 2 busy GPUs, {fast} has 1; name one with --gpu" in message
        succeed(capsys, "predict", fast, "--also", pair, "--gpu", "0")

    def test_the_time_of_the_first_run_alone(
        self, capsys: Capture, tmp_path: Path, fast: Path, slow: Path
    ) -> None:
        message = refuse(capsys, tmp_path, "advise", fast, "--time", "9990", "--also", slow)
        assert "--time tells the time of the first run alone" in message

    def test_a_log_beside_a_table(
        self, capsys: Capture, tmp_path: Path, fast: Path, slow: Path
    ) -> None:
        table = tmp_path / "table.csv"
        succeed(capsys, "import", "nvidia-smi", fast, "-o", table)
        message = refuse(capsys, tmp_path, "advise", table, "--also", slow)
        assert f"{slow}: is a monitor's log, and {table} is none" in message

    def test_another_memory_clock(self, capsys: Capture, tmp_path: Path, fast: Path) -> None:
        other = log(tmp_path / "other.csv", 1170, 120, 300, memory_mhz=1593)
        assert main(["advise", str(fast), "--also", str(other)]) == 2
        warning, error = capsys.readouterr().err.splitlines()
        assert "memory_mhz was set to 2619, but ran at 1593" in warning
        assert "ran at the memory clock 1593 MHz, the base is at 2619" in error

    @pytest.mark.parametrize(
        ("engine_mhz", "samples", "power_w", "message"),
        [
            (1170, 170, 300, "takes 1.70 times as long as at 1755 MHz, the same work 1.00 to 1.50"),
            (1170, 90, 300, "takes 0.90 times as long"),
            (1930, 105, 520, ""),  # 5 % slower at a clock 10 % higher: noise
            (1170, 120, 510, "draws 1.06 times as much power as at 1755 MHz"),
            (1700, 101, 470, "ran at 1700 MHz, as the base at 1755 or nearly so"),
        ],
    )
    def test_a_log_of_other_work(
        self,
        capsys: Capture,
        tmp_path: Path,
        fast: Path,
        engine_mhz: int,
        samples: int,
        power_w: float,
        message: str,
    ) -> None:
        """The first log: 10 s at 1755 MHz and 480 W. Bounds by hand: 10 % of time, 5 % of power."""
        other = log(tmp_path / "other.csv", engine_mhz, samples, power_w)
        if message:
            assert message in refuse(capsys, tmp_path, "predict", fast, "--also", other)
        else:
            succeed(capsys, "predict", fast, "--also", other)
