"""Two logs that cannot be of the same work, or do not tell it: one line says what to do."""

import json
import re
from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from synthetic.two_logs import log, of_gpu_1, without_idle

from mlscale.cli.main import main


def test_limits_that_cannot_be_kept_are_told_without_exponents(
    capsys: Capture, tmp_path: Path
) -> None:
    """20 s at the base, of 1755 MHz of 1980: they cannot be 1 s."""
    longer = log(tmp_path / "longer.csv", 1755, 200, 480)
    slower = log(tmp_path / "slower.csv", 1170, 240, 300)
    message = refuse(capsys, tmp_path, "advise", longer, "--also", slower, "--max-time", 1000)
    (least,) = re.findall(r"the least is time ([\d ]+) ms$", message)
    assert 17_000 < int(least.replace(" ", "")) < 20_000


def test_power_beside_a_log_names_the_log(capsys: Capture, tmp_path: Path, fast: Path) -> None:
    message = refuse(capsys, tmp_path, "advise", fast, "--power", 500)
    assert message == f"{fast}: has power_w already; leave --power away"


def test_parts_of_runs(capsys: Capture, tmp_path: Path, fast: Path, slow: Path) -> None:
    """A minute each of a job that goes on would say that its time does not scale at all."""
    without_idle(slow)
    said = f"{slow}: this log, or that of the run at 1755 MHz, begins and ends while the GPU"
    assert said in refuse(capsys, tmp_path, "advise", fast, "--also", slow)
    tables = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for of, time_ms, table in zip((fast, slow), (10_000, 12_000), tables, strict=True):
        given = ["--time", time_ms, "--application", "job", "-o", table]
        succeed(capsys, "import", of, *given)
    options = ["--max-slowdown", 5, "--json"]
    out, _ = succeed(capsys, "advise", tables[0], "--also", tables[1], *options)
    whole, _ = succeed(capsys, "advise", fast, "--also", log(slow, 1170, 120, 300), *options)
    clocks = [json.loads(text)["whole_run"]["best"]["engine_mhz"] for text in (out, whole)]
    assert clocks[0] == clocks[1]


def test_gpus_of_other_jobs(capsys: Capture, tmp_path: Path) -> None:
    """GPU 1 works all the time: for another user of the same machine."""
    fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=2)
    slow = log(tmp_path / "slow.csv", 1170, 120, 300, gpus=2)
    for path in (fast, slow):
        of_gpu_1(path, " 0 %, 0 %", " 95 %, 30 %")
        of_gpu_1(path, " 70.00 W", " 300.00 W")
    said = refuse(capsys, tmp_path, "advise", fast, "--also", slow)
    assert said.endswith("; if some GPUs are of other jobs, name yours with --gpu")
    succeed(capsys, "advise", fast, "--also", slow, "--gpu", 0)
    said = refuse(capsys, tmp_path, "advise", fast, "--also", slow, "--gpu", 1)
    assert said.endswith("of a million tokens it is 1e9 / (tokens per second)")


def test_a_trace_beside_a_log(capsys: Capture, tmp_path: Path, fast: Path) -> None:
    trace = tmp_path / "slow.json"
    event = {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 0, "dur": 9, "args": {}}
    trace.write_text(json.dumps({"traceEvents": [event]}))
    said = refuse(capsys, tmp_path, "advise", fast, "--also", f"{trace}@engine=1170")
    assert "slow.json: is no log, and" in said
    assert "fast.csv is a monitor's; give the log of the further run" in said


def test_tables_of_other_names(capsys: Capture, tmp_path: Path, fast: Path, slow: Path) -> None:
    """Named after their logs, where one name is to be given."""
    tables = [tmp_path / f"{path.stem}-table.csv" for path in (fast, slow)]
    for path, table in zip((fast, slow), tables, strict=True):
        succeed(capsys, "import", path, "-o", table)
    said = refuse(capsys, tmp_path, "advise", tables[0], "--also", tables[1])
    assert "the profile has no run 'slow'; import the logs of one run under one name" in said


def test_gpus_at_several_clocks(capsys: Capture, tmp_path: Path) -> None:
    fast = log(tmp_path / "fast.csv", 1755, 100, 480, gpus=2)
    of_gpu_1(fast, "1755 MHz", "1695 MHz")
    message = refuse(capsys, tmp_path, "advise", fast)
    assert f"{fast}: is of several GPUs or clocks, h100-sxm5 at cu=132,engine=1755" in message
    assert "name one GPU with --gpu" in message
    table = tmp_path / "table.csv"
    succeed(capsys, "import", fast, "-o", table)
    message = refuse(capsys, tmp_path, "advise", table)
    assert "table.csv: has rows at 2 configurations; say with --base which" in message
    assert message.endswith(", or, where GPUs ran apart, import one of them with --gpu")


def test_gpus_of_several_kinds(capsys: Capture, tmp_path: Path) -> None:
    fast = log(tmp_path / "fast.csv", 1755, 100, 300, gpus=2)
    of_gpu_1(fast, "NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe")
    of_gpu_1(fast, "2619 MHz", "1593 MHz")
    message = refuse(capsys, tmp_path, "advise", fast)
    assert "is of several GPUs or clocks, h100-sxm5 at" in message
    assert ", h100-pcie at cu=114" in message


def test_two_logs_without_also(capsys: Capture, tmp_path: Path, fast: Path, slow: Path) -> None:
    message = refuse(capsys, tmp_path, "advise", fast, slow)
    assert message.endswith("and give the log of another run with --also")


def test_a_log_at_the_same_clock(capsys: Capture, tmp_path: Path, fast: Path) -> None:
    again = log(tmp_path / "again.csv", 1755, 100, 480)
    message = refuse(capsys, tmp_path, "advise", fast, "--also", again)
    assert f"{again}: ran at 1755 MHz, as the base" in message
    assert "run the same work at about 1170 MHz, locked or by a low power cap" in message


def test_more_power_than_the_board_has(capsys: Capture, tmp_path: Path) -> None:
    """As where milliwatts are taken for watts: 480 000 of 700."""
    wrong = log(tmp_path / "wrong.csv", 1755, 100, 480_000)
    message = refuse(capsys, tmp_path, "predict", wrong)
    assert f"{wrong}, GPU 0: a board power of 480000 W cannot be" in message


def test_another_number_of_gpus(capsys: Capture, tmp_path: Path, fast: Path) -> None:
    pair = log(tmp_path / "pair.csv", 1170, 120, 300, gpus=2)
    message = refuse(capsys, tmp_path, "advise", fast, "--also", pair)
    assert f"{pair}: has 2 busy GPUs, {fast} has 1; name one with --gpu" in message
    message = refuse(capsys, tmp_path, "advise", pair, "--also", fast)
    assert "has 1 busy GPU, " in message
    succeed(capsys, "predict", fast, "--also", pair, "--gpu", "0")


def test_the_time_of_the_first_run_alone(
    capsys: Capture, tmp_path: Path, fast: Path, slow: Path
) -> None:
    message = refuse(capsys, tmp_path, "advise", fast, "--time", "9990", "--also", slow)
    assert "--time tells the time of the first run alone" in message


def test_a_log_beside_a_table(capsys: Capture, tmp_path: Path, fast: Path, slow: Path) -> None:
    table = tmp_path / "table.csv"
    succeed(capsys, "import", fast, "-o", table)
    message = refuse(capsys, tmp_path, "advise", table, "--also", slow)
    assert f"{slow}: is a monitor's log, and {table} is none" in message


def test_another_memory_clock(capsys: Capture, tmp_path: Path, fast: Path) -> None:
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
