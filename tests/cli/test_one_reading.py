"""advise on a log or a trace at one engine clock alone: bounds, and the second run to make."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Capture, succeed

from mlscale import import_profile
from mlscale.data.public import path
from mlscale.shipped import model_for, shipped_model

LOG = Path(__file__).parents[2] / "docs" / "logs" / "training-1755.csv"
TRACE = (path("training-step-trace.json.gz"), "--base", "engine=1410,memory=1593")


def advice(capsys: Capture, *words: object) -> dict[str, object]:
    return json.loads(succeed(capsys, "advise", *words, "--format", "json")[0])


def test_a_limit_is_kept_by_the_longest_time(capsys: Capture) -> None:
    """By hand: 1755 / 1.05 = 1671.4, and an H100 offers 1665 and 1680 MHz; 1755 / 1680 = 1.0446."""
    document = advice(capsys, LOG, "--max-slowdown", 5)
    run = document["whole_run"]
    assert run["best"]["engine_mhz"] == 1680  # type: ignore[index]
    ends = [run[f"slowdown_{end}_percent"] for end in ("low", "high")]  # type: ignore[index]
    assert ends == pytest.approx([0, 100 * (1755 / 1680 - 1)])
    verdict = str(document["verdict"])
    assert verdict.startswith("Set the engine clock to 1680 MHz (of 1755): at most 4.5 % slower, ")
    assert "so that a slowdown of at most 5 % is kept in any case" in verdict
    assert "A second run at another clock tells." in verdict


def test_energy_is_a_range_that_time_and_power_give_together(capsys: Capture) -> None:
    """Energy saved is least where time is longest, most where it stays: both with power's own."""
    run = advice(capsys, LOG)["whole_run"]
    low, high = (run[f"saving_{end}_percent"] for end in ("low", "high"))  # type: ignore[index]
    assert low < run["saving_percent"] < high  # type: ignore[index]
    best, base = run["best"], run["at_base"]  # type: ignore[index]
    assert best["time_ms"] == pytest.approx(base["time_ms"] * 1755 / best["engine_mhz"])
    assert best["energy_mj"] == pytest.approx(best["time_ms"] * best["power_w"])
    # Power does not rise at a lower clock, and time by no more than the clock falls.
    assert low > -100 * (1755 / best["engine_mhz"] - 1)


def test_a_limit_of_power_is_kept_by_the_shortest_time(capsys: Capture) -> None:
    """Where time stays, work goes on at the highest rate, and draws most: up to 400 W."""
    profiles = import_profile(LOG)
    model = model_for(shipped_model(profiles)[1], profiles)
    times = model.predict(profiles, 0.9)["time"]
    stays = replace(times, values=np.ones_like(times.values), low=None, high=None)
    watts = 521.583 * model.power_at(profiles, stays).values[0, 0, :, 0]
    highest = np.array(model.grid.engine_mhz)[watts <= 400].max()
    run = advice(capsys, LOG, "--minimize", "time", "--max-power", 400)["whole_run"]
    assert run["best"]["engine_mhz"] == highest  # type: ignore[index]


@pytest.mark.parametrize("words", [(LOG,), TRACE])
def test_the_second_run_is_told(capsys: Capture, words: tuple[object, ...]) -> None:
    """By hand, at two thirds: 1755 to 1170, and 1410 to 940, next to which an A100 offers 945."""
    is_log = words[0] == LOG
    clock = 1170 if is_log else 945
    file = f"training-1755-{clock}.csv" if is_log else f"training-step-trace-{clock}.json.gz@engine"
    second = advice(capsys, *words)["second_run"]
    assert second["set"] == [f"nvidia-smi -i 0 -lgc {clock},{clock}"]  # type: ignore[index]
    assert second["reset"] == ["nvidia-smi -i 0 -rgc"]  # type: ignore[index]
    again = f"mlscale advise {' '.join(map(str, words))} --format json --also {file}"
    assert str(second["advise"]).startswith(again)  # type: ignore[index]
    assert ("profile of the kernels" in str(second["instead"])) != is_log  # type: ignore[index]
    text = succeed(capsys, "advise", *words)[0]
    assert f"To find out, run it at about {clock} MHz too:\n" in text
    assert f"\n  nvidia-smi -i 0 -lgc {clock},{clock}\n" in text
    assert "Pareto front" not in text
    assert "90 % interval" not in text


def test_two_logs_say_nothing_of_bounds(capsys: Capture) -> None:
    document = advice(capsys, LOG, "--also", LOG.with_name("training-1170.csv"))
    assert "second_run" not in document
    assert "bounds" not in str(document["verdict"])


def test_a_cap_claims_no_limit_that_power_may_break(capsys: Capture) -> None:
    """Under a cap the clock itself is predicted, from a power that one reading tells poorly."""
    text = succeed(capsys, "advise", LOG, "--lever", "cap", "--max-slowdown", 5)[0]
    assert text.startswith("Set the power cap to ")
    assert "in any case" not in text
    assert "from unchanged to in proportion." in text
