"""Traces of a run at two engine clocks, of which neither has counters."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command import Capture, succeed
from synthetic.monitor_logs import query
from synthetic.monitor_readings import block

from mlscale.cli.main import main

Times = Mapping[str, float]  # of each kernel [us]
BASE = ("--base", "engine=1980,memory=2619")
FAST = {"gemm": 800.0, "axpy": 600.0, "ncclDevKernel_AllReduce_Sum_f32_RING_LL": 100.0}


def trace(path: Path, times: Times, gpus: int = 1) -> Path:
    """PyTorch's of an H100, or of several, 100 launches of each kernel one after the other."""
    events: list[dict[str, Any]] = []
    for gpu in range(gpus):
        begin = 0.0
        for name, us in [*times.items()] * 100:
            where = {"device": gpu, "grid": [132, 1, 1], "block": [256, 1, 1]}
            sizes = {**where, "registers per thread": 32}
            event = {"ph": "X", "cat": "kernel", "name": name, "ts": begin, "dur": us}
            events.append({**event, "args": sizes})
            begin += us
    names = [{"id": gpu, "name": "NVIDIA H100 80GB HBM3", "numSms": 132} for gpu in range(gpus)]
    path.write_text(json.dumps({"deviceProperties": names, "traceEvents": events}))
    return path


def at(gemm_mhz: float, **others: float) -> dict[str, float]:
    """Times where gemm follows the engine clock and axpy none."""
    return {**FAST, "gemm": 800.0 * 1980 / gemm_mhz, **others}


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    return trace(tmp_path / "fast.json", FAST)


def advise(capsys: Capture, *arguments: object) -> Any:
    return json.loads(succeed(capsys, "advise", *arguments, "--format", "json")[0])


def refused(capsys: Capture, *arguments: object) -> str:
    """The complaint, below a warning that there are no counters."""
    assert main(["advise", *map(str, arguments)]) == 2
    *_, complaint = capsys.readouterr().err.splitlines()
    return complaint


def test_each_kernel_follows_its_own_two_times(capsys: Capture, tmp_path: Path, fast: Path) -> None:
    """At 2/3 of the clock gemm takes 1.5 times as long; at the best, in between, by its law."""
    slow = trace(tmp_path / "slow.json", at(1320))
    document = advise(capsys, fast, *BASE, "--also", f"{slow}@engine=1320", "--max-slowdown", 10)
    run = document["whole_run"]
    mhz = run["best"]["engine_mhz"]
    assert (document["device"], document["objective"]) == ("h100-sxm5", "clock")
    assert run["at_base"]["time_ms"] == pytest.approx(150.0)
    assert run["launches"] == 300
    assert 1320 < mhz < 1980
    slowdowns = {
        kernel["kernel"]: kernel["at_whole_run_best"]["slowdown_percent"]
        for kernel in document["kernels"]
    }
    assert slowdowns["gemm"] == pytest.approx(100 * (1980 / mhz - 1), abs=0.6)
    assert slowdowns["axpy"] == pytest.approx(0, abs=0.6)
    assert run["slowdown_percent"] == pytest.approx(800 / 1500 * slowdowns["gemm"], abs=0.6)


def test_power_gives_energy(capsys: Capture, tmp_path: Path, fast: Path) -> None:
    slow = trace(tmp_path / "slow.json", at(1320))
    given = (fast, *BASE, "--power", 600, "--also", f"{slow}@engine=1320")
    document = advise(capsys, *given, "--max-slowdown", 5)
    assert document["objective"] == "energy"
    assert document["whole_run"]["at_base"]["energy_mj"] == pytest.approx(150 * 600)


def test_what_the_further_run_does_not_say_is_the_bases(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    """An H100 has two memory clocks; with counters both are on the grid."""
    slow = trace(tmp_path / "slow.json", at(1320))
    given = [
        advise(capsys, fast, *BASE, "--also", f"{slow}@{config}")["whole_run"]
        for config in ("engine=1320", "cu=132,engine=1320,memory=2619")
    ]
    assert given[0] == given[1]


def test_a_kernel_of_one_trace_alone_is_as_others_are(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    """Its interval is wide, gemm's is not."""
    times = at(1320)
    del times["axpy"]
    slow = trace(tmp_path / "slow.json", times)
    document = advise(capsys, fast, *BASE, "--also", f"{slow}@engine=1320")
    assert widths(document)["axpy"] > 2 * widths(document)["gemm"]


def with_grid(path: Path, name: str, blocks: int, launches: int) -> Path:
    """The first launches of a kernel at another grid, each of which takes twice as long."""
    document = json.loads(path.read_text())
    for event in [e for e in document["traceEvents"] if e["name"] == name][:launches]:
        event["args"]["grid"] = [blocks, 1, 1]
        event["dur"] *= 2
    path.write_text(json.dumps(document))
    return path


def widths(document: Any) -> dict[str, float]:
    """Of the interval of each kernel's slowdown where the whole run is best [%]."""
    return {
        kernel["kernel"]: kernel["slowdown_high_percent"] - kernel["slowdown_low_percent"]
        for kernel in document["kernels"]
    }


def test_launches_at_another_grid_are_other_work(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    """As of a server's other batches: 20 of axpy's 100 launches, or all, at twice grid and time.

    axpy takes 600 of 1500 us. Its time does not follow the clock, and is not taken to.
    """
    slow = trace(tmp_path / "slow.json", at(1320))
    given = [fast, *BASE, "--max-slowdown", 10, "--also"]
    alone = pytest.approx(widths(advise(capsys, *given, f"{slow}@engine=1320")))
    some = with_grid(trace(tmp_path / "some.json", at(1320)), "axpy", 264, 20)
    assert widths(advise(capsys, *given, f"{some}@engine=1320")) == alone
    table = tmp_path / "table.csv"
    config = "engine=1320,memory=2619"
    succeed(capsys, "import", some, "--base", config, "--application", "fast", "-o", table)
    assert widths(advise(capsys, *given, table)) == alone
    every = with_grid(trace(tmp_path / "every.json", at(1320)), "axpy", 264, 100)
    document = advise(capsys, *given, f"{every}@engine=1320")
    [told] = [w for w in document["warnings"] if "at the grid and block that they have" in w]
    assert "every.json: has no launch of 1 kernel ('axpy')" in told
    assert ", 40.0 % of the run's time: they are taken to scale as training runs do" in told
    assert widths(document)["axpy"] > 2 * widths(document)["gemm"]
    table.unlink()
    of_both = [(trace(tmp_path / "mid.json", at(1650)), 1650), (every, 1320)]
    for path, mhz in of_both:
        config = f"engine={mhz},memory=2619"
        succeed(capsys, "import", path, "--base", config, "--append", "-o", table)
    kernels = {k["kernel"]: k for k in advise(capsys, *given, table)["kernels"]}
    of_axpy = kernels["axpy"]["at_whole_run_best"]
    assert of_axpy["slowdown_percent"] == pytest.approx(0, abs=0.6)


def test_of_several_gpus_one_is_taken_of_both(capsys: Capture, tmp_path: Path) -> None:
    fast = trace(tmp_path / "fast.json", FAST, gpus=2)
    slow = trace(tmp_path / "slow.json", at(1320), gpus=2)
    given = (fast, *BASE, "--also", f"{slow}@engine=1320")
    assert "is of GPUs 0 (300 launches), 1 (300 launches)" in refused(capsys, *given)
    assert advise(capsys, *given, "--gpu", 1)["whole_run"]["launches"] == 300


@pytest.mark.parametrize(
    ("times", "config", "match"),
    [
        (FAST, "engine=1320", "slow.json: holds the same as"),  # a copy of the first
        (at(1950), "engine=1950", "ran at 1950 MHz, as the base at 1980 or nearly so"),
        (at(1320), "engine=1320,memory=1593", "the base is at 2619; both runs must be at the same"),
        # (1200 + 600 + 100) / 1500 = 1.27, and 1980 / 1800 = 1.1
        (at(1320), "engine=1800", "kernels take 1.27 times as long as at 1980 MHz, the same work"),
        (
            {"copy": 800.0},
            "engine=1320",
            "slow.json: has none of the profile's kernels, at the same grid",
        ),
    ],
)
def test_what_cannot_be_the_same_work_is_refused(
    capsys: Capture, tmp_path: Path, fast: Path, times: Times, config: str, match: str
) -> None:
    slow = trace(tmp_path / "slow.json", times)
    assert match in refused(capsys, fast, *BASE, "--also", f"{slow}@{config}")


def test_power_of_the_further_run_comes_in_its_table(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    """A log beside traces is refused with the way; 600 W and 330 W are then met."""
    slow, log, table = (
        trace(tmp_path / "slow.json", at(1320)),
        tmp_path / "w.csv",
        tmp_path / "t.csv",
    )
    log.write_text(query(block(1, 3, 1, power_w=330)))
    complaint = refused(capsys, fast, *BASE, "--also", log)
    assert complaint.endswith("import that trace with --power LOG, and give the table")
    given = ("import", slow, "--base", "engine=1320,memory=2619", "--power", 330)
    succeed(capsys, *given, "-o", table)
    document = advise(capsys, fast, *BASE, "--power", 600, "--also", table, "--max-time", 300)
    powers = {p["engine_mhz"]: p["power_w"] for p in document["whole_run"]["front"]}
    assert powers[1320] == pytest.approx(330, rel=0.05)


def test_a_gpu_that_the_device_table_lacks_is_named(capsys: Capture, tmp_path: Path) -> None:
    """Its peaks, which are not known, are not needed; even steps are tried."""
    traces = [trace(tmp_path / name, times) for name, times in (("a", FAST), ("b", at(1320)))]
    for path in traces:
        path.write_text(path.read_text().replace("NVIDIA H100 80GB HBM3", "GPU 1"))
    given = ("--device", "my-gpu", "--base", "cu=132,engine=1980,memory=2619")
    document = advise(capsys, traces[0], *given, "--also", f"{traces[1]}@engine=1320")
    assert document["device"] == "my-gpu"
    assert document["whole_run"]["best"]["engine_mhz"] < 1980
    alone = advise(capsys, traces[0], *given)
    assert "between unchanged and in proportion" in alone["verdict"]
    assert alone["second_run"]["set"] == []  # no command is known for a GPU that is not


def test_one_trace_alone_has_all_kernels_bounded_alike(capsys: Capture, fast: Path) -> None:
    """By hand: 1980 / 1.05 = 1885.7, above which an H100 offers 1890 MHz."""
    document = advise(capsys, fast, *BASE)
    assert {kernel["best"]["engine_mhz"] for kernel in document["kernels"]} == {1890}
    out, err = succeed(capsys, "advise", fast, *BASE)
    assert err == ""
    assert [line.split()[0] for line in out.splitlines()[3:6]] == ["kernel", "---------", "whole"]


def test_with_a_second_clock_it_is_asked_for_nowhere(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    """Nothing is said beside the advice, and a refusal asks for what lacks alone."""
    further = ("--also", f"{trace(tmp_path / 'slow.json', at(1320))}@engine=1320")
    assert succeed(capsys, "advise", fast, *BASE, *further)[1] == ""
    assert main(["advise", *map(str, (fast, *further))]) == 2
    asked = (
        "give --base engine=…,memory=… with what the GPU was set to (memory: usually its highest, "
        "2619)"
    )
    assert capsys.readouterr().err.rstrip().endswith(asked)


def test_a_model_that_needs_counters_says_to_name_none(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    slow = trace(tmp_path / "slow.json", at(1320))
    given = (fast, *BASE, "--also", f"{slow}@engine=1320", "--model")
    assert "this model needs some: name none" in refused(capsys, *given, "kernels")


def test_a_clock_that_changes_nothing_is_told(capsys: Capture, tmp_path: Path, fast: Path) -> None:
    """1500 us of the three kernels; 1514 us are 0.93 % more, 1518 us 1.2 %, 1440 us 4 % less."""
    for us, told in ((740.0, "0.96"), (814.0, "1.01"), (818.0, None)):
        slow = trace(tmp_path / "slow.json", {**FAST, "gemm": us})
        err = succeed(capsys, "advise", fast, *BASE, "--also", f"{slow}@engine=1320")[1]
        said = f"slow.json: at 1320 MHz its kernels take {told} times as long as at 1980 MHz"
        assert (said in err) == bool(told)
        assert ("no clock seems to matter" in err) == bool(told)


def test_the_trace_of_the_base_is_none_of_another_clock(capsys: Capture, fast: Path) -> None:
    said = refused(capsys, fast, *BASE, "--also", f"{fast}@engine=1320")
    assert "is of the base already; give the trace of a run at cu=132,engine=1320" in said
