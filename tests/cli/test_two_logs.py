"""A run's monitor logs at two engine clocks, on a GPU that no model was trained on."""

import json
from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from synthetic.two_logs import HEADER, log, of_gpu_1, without, without_idle

from mlscale.cli.main import main


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


def test_one_log_says_what_the_second_is(capsys: Capture, tmp_path: Path) -> None:
    """Below it, but above where two thirds are too low: 990 MHz are half of an H100's 1980."""
    low = log(tmp_path / "low.csv", 990, 100, 250)
    assert "run it at about 1485 MHz too" in succeed(capsys, "advise", low)[0]


class TestAGpuThatTheTableLacks:
    NAME = "NVIDIA GeForce RTX 9990 Laptop GPU"

    def test_needs_its_sms_alone(self, capsys: Capture, tmp_path: Path) -> None:
        fast = log(tmp_path / "fast.csv", 1755, 100, 110, name=self.NAME)
        slow = log(tmp_path / "slow.csv", 1170, 120, 70, name=self.NAME)
        message = refuse(capsys, tmp_path, "advise", fast, "--also", slow)
        assert "give --base cu=…" in message
        assert "is not in the device table" in message
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


def test_what_is_told_of_the_logs_stands_in_documents_and_pages(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    """They are read by others, who do not see the terminal."""
    given = [fast, "--also", log(tmp_path / "other.csv", 1170, 100, 300)]
    for command in ("advise", "predict"):
        out, told = succeed(capsys, command, *given, "--json")
        [warning] = [w for w in json.loads(out)["warnings"] if "no clock seems to matter" in w]
        assert told == f"mlscale: warning: {warning}\n"
        out, told = succeed(capsys, command, *given)
        assert "no clock seems to matter" not in out
        assert "no clock seems to matter" in told
    succeed(capsys, "report", *given, "-o", tmp_path / "page.html")
    assert "so that no clock seems to matter" in (tmp_path / "page.html").read_text()


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
        "slow.csv: at 1170 MHz the GPU worked 1.50 times as long as at 1755 MHz, and the run takes "
        "1.08 times as long as there" in told
    )
    assert "whole where the pauses end, which may be below 1170 MHz" in told
    assert "fast.csv, GPU 0: 120 of 240 samples of the busy span are idle" in told
    assert main(["advise", str(fast), "--also", str(slow), "--lever", "cap"]) == 2
    assert "50% of the run's log are pauses, which its mean power" in capsys.readouterr().err
    other_way = succeed(capsys, "advise", slow, "--also", fast)[1]
    assert "fast.csv: at 1755 MHz the GPU worked 0.67 times as long as at 1170 MHz" in other_way
    assert "below 1170 MHz" in other_way


def test_gpus_at_nearly_one_clock_count_as_at_its_mean(capsys: Capture, tmp_path: Path) -> None:
    """1755 and 1745 MHz are half a percent apart: 1750, of each of the two runs."""
    fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=2)
    of_gpu_1(fast, "1755 MHz", "1745 MHz")
    slow = log(tmp_path / "slow.csv", 1170, 120, 300, gpus=2)
    document = json.loads(succeed(capsys, "advise", fast, "--also", slow, "--json")[0])
    assert document["base"]["engine_mhz"] == 1750
    assert document["whole_run"]["at_base"]["time_ms"] == pytest.approx(20_000)
    of_gpu_1(slow, "1170 MHz", "1164 MHz")
    tables = [tmp_path / "fast-table.csv", tmp_path / "slow-table.csv"]
    for path, table, time_ms in zip((fast, slow), tables, (5000, 6000), strict=True):
        given = ["--time", time_ms, "--application", "server", "-o", table]
        succeed(capsys, "import", path, *given)
    document = json.loads(succeed(capsys, "advise", tables[0], "--also", tables[1], "--json")[0])
    assert document["base"]["engine_mhz"] == 1750
    assert document["whole_run"]["at_base"]["time_ms"] == pytest.approx(10_000)


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


def test_clocks_that_no_log_says_are_given(
    capsys: Capture, tmp_path: Path, fast: Path, slow: Path
) -> None:
    """The memory's highest clock by the device table is named; an engine clock stands at a log."""
    for path in (fast, slow):
        without(path, 5)
    said = refuse(capsys, tmp_path, "advise", fast, "--also", slow)
    assert "give --base memory=… " in said
    assert said.endswith("(memory: usually its highest, 2619)")
    for path in (fast, slow):
        without(path, 4)
    base = ["--base", "engine=1755,memory=2619"]
    said = refuse(capsys, tmp_path, "advise", fast, "--also", slow, *base)
    assert said == f"{slow}: does not say at which engine clock it ran: --also slow.csv@engine=…"
    document = json.loads(
        succeed(capsys, "advise", fast, "--also", f"{slow}@engine=1170", *base, "--json")[0]
    )
    assert 900 < document["whole_run"]["best"]["engine_mhz"] < 1755
