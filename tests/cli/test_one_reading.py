"""advise on a log or a trace at one engine clock alone: bounds, and the second run to make."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Cli, flat
from synthetic.two_logs import log, without

from mlscale import import_profile
from mlscale.data.datasets import path
from mlscale.model.shipped import model_for, shipped_model

LOG = Path(__file__).parents[2] / "docs" / "logs" / "training-1755.csv"
TRACE = (path("training-step-trace.json.gz"), "--base", "engine=1410,memory=1593")


def test_a_limit_is_kept_by_the_longest_time(cli: Cli) -> None:
    """By hand: 1755 / 1.05 = 1671.4, and an H100 offers 1665 and 1680 MHz; 1755 / 1680 = 1.0446."""
    document = cli.json("advise", LOG, "--max-slowdown", 5)
    assert document["answer"]["at"]["engine_mhz"] == 1680
    _, low, high = document["answer"]["slowdown_percent"]
    assert [low, high] == pytest.approx([0, 100 * (1755 / 1680 - 1)])
    said = cli.verdict(LOG, "--max-slowdown", 5)
    assert said.startswith("Set the engine clock to 1680 MHz (now 1755): at most 4.5 % slower, ")
    assert said.endswith(": these are bounds, so 5 % is kept in any case.")
    assert document["sure"] == "low"


def test_energy_is_a_range_that_time_and_power_give_together(cli: Cli) -> None:
    """Energy saved is least where time is longest, most where it stays: both with power's own."""
    document = cli.json("advise", LOG)
    value, low, high = document["answer"]["energy_percent"]
    assert low < value < high
    best, base = flat(document["answer"]), document["run"]
    assert best["time_ms"] == pytest.approx(base["time_ms"] * 1755 / best["engine_mhz"])
    assert best["energy_mj"] == pytest.approx(best["time_ms"] * best["power_w"])
    # Power does not rise at a lower clock, and time by no more than the clock falls.
    assert high < 100 * (1755 / best["engine_mhz"] - 1) + 1e-9


def test_a_limit_of_power_is_kept_by_the_shortest_time(cli: Cli) -> None:
    """Where time stays, work goes on at the highest rate, and draws most: up to 480 W."""
    profiles = import_profile(LOG)
    model = model_for(shipped_model(profiles)[1], profiles)
    times = model.predict(profiles, 0.9)["time"]
    stays = replace(times, values=np.ones_like(times.values), low=None, high=None)
    watts = 521.583 * model.power_at(profiles, stays).values[0, 0, :, 0]
    highest = np.array(model.grid.engine_mhz)[watts <= 480].max()
    document = cli.json("advise", LOG, "--minimize", "time", "--max-power", 480)
    assert document["answer"]["at"]["engine_mhz"] == highest


@pytest.mark.parametrize("words", [(LOG,), TRACE])
def test_the_second_run_is_told(cli: Cli, words: tuple[object, ...]) -> None:
    """By hand, at 0.6: 1755 to 1053, and 1410 to 846; these GPUs offer steps of 15 MHz."""
    is_log = words[0] == LOG
    clock = 1050 if is_log else 840
    file = f"training-1755-{clock}.csv" if is_log else f"training-step-trace-{clock}.json.gz@engine"
    document = cli.json("advise", *words)
    to_set, what, to_reset, command = document["next_commands"]
    assert to_set == f"nvidia-smi -i 0 -lgc {clock},{clock}"
    assert what.startswith("# run the same work again, recorded as before, into training-")
    assert to_reset == "nvidia-smi -i 0 -rgc"
    again = f"mlscale advise {' '.join(map(str, words))} --json --also {file}"
    assert command.startswith(again)
    said = f"To be sure, run it at about {clock} MHz too: --also FILE."
    assert document["next"].startswith(said)
    assert ("One run is enough with a profile of the kernels" in document["next"]) != is_log


def test_two_logs_say_nothing_of_bounds(cli: Cli) -> None:
    document = cli.json("advise", LOG, "--also", LOG.with_name("training-1170.csv"))
    assert not document["run"]["is_bounded"]
    assert document["sure_why"] == ["S01"]  # within 5 %; without a limit 1 and 0.67 leave more open
    told = cli.json(
        "advise", LOG, "--also", LOG.with_name("training-1170.csv"), "--max-slowdown", 99
    )
    assert told["sure_why"] == ["S11"]
    assert "between these clocks" in document["next"]


def test_each_kernel_keeps_the_limit_of_power_as_the_run_does(cli: Cli) -> None:
    """One kernel is the whole run, so that both have the same best clocks."""
    for words in (("--max-power", 480), ("--max-power", 480, "--minimize", "time")):
        document = cli.json("advise", LOG, *words)
        [kernel] = document["kernels"]
        assert flat(kernel["best"]) == pytest.approx(flat(document["answer"]))


def test_a_fleet_has_bounds_too(cli: Cli, tmp_path: Path) -> None:
    """One row is the whole fleet: the answer is that of the table."""
    rows = tmp_path / "runs.parquet"
    cli("import", LOG, "-o", rows)
    for words in ((), ("--minimize", "power"), ("--max-slowdown", "5")):
        folder = tmp_path / "-".join(("out", *words))
        out = cli("advise", rows, *words, "-o", f"{folder}/")
        first, bounds, _ = cli.verdict(rows, *words).partition(" One clock does not show how time ")
        assert bounds
        assert " ".join(out.split()).startswith(first)


def test_least_power_is_between_its_own_ends(cli: Cli) -> None:
    """Work draws least if it takes longest, and most if it takes no longer."""
    answer = cli.json("advise", LOG, "--minimize", "power")["answer"]
    assert answer["at"]["engine_mhz"] == 720
    profiles = import_profile(LOG)
    model = model_for(shipped_model(profiles)[1], profiles)
    times = model.predict(profiles, 0.9)["time"]
    assert times.low is not None
    assert times.high is not None
    of_longest, of_shortest = (
        model.power_at(profiles, replace(times, values=end, low=None, high=None))
        for end in (times.high, times.low)
    )
    assert of_longest.low is not None
    assert of_shortest.high is not None
    lowest = model.grid.engine_mhz.index(720)
    ends = [float(end[0, 0, lowest, 0]) for end in (of_longest.low, of_shortest.high)]
    assert answer["power_percent"][1:] == pytest.approx([100 * (end - 1) for end in ends])


def test_nothing_is_surely_faster(cli: Cli) -> None:
    """1980 MHz may be 11 % faster."""
    said = "Stay at the base, 132 CUs, 1755 MHz, memory 2619 MHz: no setting is faster."
    assert cli.verdict(LOG, "--minimize", "time").startswith(said)


def test_only_times_have_bounds(cli: Cli) -> None:
    """Power, and what is saved of energy, have intervals of 90 %."""
    text = cli("advise", LOG, "--max-slowdown", 5)
    assert re.search(r" at 1680 MHz +bounds +energy +90 %\n", text)
    assert '"is_bounded":true' in cli.page(LOG, "--max-slowdown", 5)


def of_no_clock(path: Path, watts: float) -> Path:
    """A log of 20 s without clocks, of nvidia-smi's names: idle for 2 s before and after."""
    samples = [(s, watts, 100) if 2 <= s < 22 else (s, 60, 0) for s in range(24)]
    lines = [f"{s}, {power}, {use}" for s, power, use in samples]
    header = "timestamp, power.draw [W], utilization.gpu [%]"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.mark.parametrize("time", [(), ("--time", "10000")])
@pytest.mark.parametrize("has_clock", [True, False])
def test_the_commands_of_a_second_run_work(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    time: tuple[str, ...],
    has_clock: bool,
) -> None:
    """With the log of a second run where they say, and its own time in place of MS."""
    monkeypatch.chdir(tmp_path)
    if has_clock:
        given, mhz, log = (), 1050, Path("training-1755.csv")
        log.write_text(LOG.read_text())
        slower = LOG.with_name("training-1170.csv").read_text().replace("1170 MHz", "1050 MHz")
        Path("training-1755-1050.csv").write_text(slower)
    else:
        base = ("--base", "engine=1410,memory=1215")
        given, mhz, log = (
            ("--device", "a100-sxm4-40gb", *base),
            840,
            of_no_clock(Path("a.csv"), 300),
        )
        of_no_clock(Path("a-840.csv"), 220)
    commands = cli.json("advise", log, *given, *time)["next_commands"]
    ours = [command for command in commands if command.startswith("mlscale ")]
    for command in ours:
        words = shlex.split(command.replace(" --time MS ", " --time 12000 "))
        out = cli(*words[1:])
    [point] = map(flat, json.loads(out)["measured"])
    assert point["engine_mhz"] == mhz
    assert len(ours) == (2 if time else 1)
    if time:
        assert point["time_ms"] == 12000


def test_the_power_of_a_second_run_is_asked_for_too(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs without power, of which --power may be of one alone; W is 200 W or a log."""
    monkeypatch.chdir(tmp_path)
    for name, mhz, tenths in (("run", 1500, 300), ("run-900", 900, 420)):
        without(log(Path(f"{name}.csv"), mhz, tenths, 300), 3)
    log(Path("watts.csv"), 900, 420, 200)
    commands = cli.json("advise", "run.csv", "--power", "300")["next_commands"]
    assert "# replace W with the board's power in that run, or a log" in commands
    for said in ("200", "watts.csv"):
        for command in [one for one in commands if one.startswith("mlscale ")]:
            words = shlex.split(command.replace(" --power W ", f" --power {said} "))
            out = cli(*words[1:])
        [point] = map(flat, json.loads(out)["measured"])
        assert (point["engine_mhz"], point["power_w"]) == (900, pytest.approx(200))


def test_the_gpus_of_a_log_are_all_set(cli: Cli, tmp_path: Path) -> None:
    header, *rows = LOG.read_text().splitlines()
    log = tmp_path / "two.csv"
    other = [row.replace(", 0, ", ", 1, ", 1) for row in rows]
    log.write_text("\n".join([header, *rows, *other]) + "\n")
    out = cli("advise", log, "--commands")
    assert all(f"nvidia-smi -i {gpu} -rgc\n" in out for gpu in (0, 1))


def test_a_gpu_without_commands_is_locked_before_it_is_recorded(cli: Cli, tmp_path: Path) -> None:
    table = tmp_path / "foo.csv"
    table.write_text(
        "kernel,cu_count,engine_mhz,memory_mhz,time_ms,gpu_utilisation\nrun,80,1500,1000,5000,0.98\n"
    )
    text = cli("advise", table, "--device", "foo", "--commands")
    again = "run the same work again, locked or by a low power cap, recorded as before, into foo-"
    assert again in text
    assert "One run is enough" not in text  # no run of averages is


def test_bounds_are_no_wider_beyond_the_trained_clocks(cli: Cli) -> None:
    """By hand: 1755 / 480, and 1; the training data reach from 716 MHz."""
    out, err = cli.both("predict", LOG, "--extrapolate", "--at", "engine=480", "--format", "json")
    [row] = json.loads(out)["predictions"]
    assert [row[f"time_ms_{end}"] for end in ("low", "high")] == pytest.approx(
        [30000, 30000 * 1755 / 480]
    )
    assert "extrapolated" in err + out
    assert "with a wider interval" not in err + out
