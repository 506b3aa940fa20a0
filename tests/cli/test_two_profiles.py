"""Counters of the same kernels at two engine clocks: of the second run its times count."""

import json
from pathlib import Path

import pytest
from command import Capture, succeed
from synthetic.exports import NCU_TEXT

from mlscale.cli.main import main

ORIN = ("--device", "jetson-agx-orin-64gb", "--base", "memory=3199")


def profile(path: Path, mhz: float) -> Path:
    """ncu's text of an Orin, whose DRAM it has no counters of: 40 us at 1300 MHz, by the clock."""
    path.write_text(
        "  softmax(float *) (64, 1, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 8.7\n"
        "    Section: GPU Speed Of Light Throughput\n"
        "    ----------------------- ----------- ------------\n"
        "    Metric Name             Metric Unit Metric Value\n"
        "    ----------------------- ----------- ------------\n"
        f"    SM Frequency                    Mhz     {mhz:>8.2f}\n"
        f"    Duration                         us     {40 * 1300 / mhz:>8.2f}\n"
        "    Memory Throughput                 %        60.00\n"
        "    L1/TEX Cache Throughput           %        60.00\n"
        "    Compute (SM) Throughput           %        50.00\n"
        "    ----------------------- ----------- ------------\n"
    )
    return path


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    return profile(tmp_path / "fast.txt", 1300)


def refused(capsys: Capture, *arguments: object) -> str:
    assert main(["advise", *map(str, arguments)]) == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_two_profiles_answer_where_dram_has_no_counters(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    """The kernel takes as much longer as the clock is lower."""
    slow = profile(tmp_path / "slow.txt", 900)
    given = (fast, *ORIN, "--also", f"{slow}@engine=900", "--max-slowdown", 10)
    run = json.loads(succeed(capsys, "advise", *given, "--format", "json")[0])["whole_run"]
    assert run["at_base"]["time_ms"] == pytest.approx(0.04)
    mhz = run["best"]["engine_mhz"]
    assert 900 < mhz < 1300
    assert run["slowdown_percent"] == pytest.approx(100 * (1300 / mhz - 1), abs=0.6)


def test_two_profiles_answer_on_a_gpu_that_the_device_table_lacks(
    capsys: Capture, tmp_path: Path
) -> None:
    """Its peaks are not known, of which DRAM's traffic is a share; times are as by the clock."""
    files = [tmp_path / name for name in ("fast.txt", "slow.txt")]
    for path, mhz in zip(files, (1300, 900), strict=True):
        text = profile(path, mhz).read_text()
        path.write_text(
            text.replace("    Memory Thr", "    DRAM Throughput   %  20.00\n    Memory Thr")
        )
    given = ("--device", "my-gpu", "--base", "cu=16,memory=3199")
    also = ("--also", f"{files[1]}@engine=900", "--format", "json")
    run = json.loads(succeed(capsys, "advise", files[0], *given, *also)[0])["whole_run"]
    mhz = run["best"]["engine_mhz"]
    assert 1200 < mhz < 1300
    assert run["slowdown_percent"] == pytest.approx(100 * (1300 / mhz - 1), abs=0.6)
    alone = refused(capsys, files[0], *given)
    assert "the peaks of 'my-gpu' are not in the device table" in alone
    assert alone.endswith("a monitor's log, and times without counters, need none of it")


def test_one_profile_alone_gives_bounds_and_says_what_it_lacks(capsys: Capture, fast: Path) -> None:
    out, _ = succeed(capsys, "advise", fast, *ORIN)
    assert "it is between unchanged and in proportion" in out
    assert "One run is enough with the DRAM traffic: ncu's --section SpeedOfLight (" in out
    assert "second engine clock" not in out  # a second run is what it asks for above


def test_the_clock_of_the_second_run_is_the_files_own(
    capsys: Capture, tmp_path: Path, fast: Path
) -> None:
    slow = profile(tmp_path / "slow.txt", 900)
    complaint = refused(capsys, fast, *ORIN, "--also", f"{slow}@engine=1000")
    assert "slow.txt: engine_mhz was 900 while profiling, --base says 1000" in complaint


def test_a_second_profile_is_no_second_trace(capsys: Capture, tmp_path: Path) -> None:
    """Times under the profiler, beside times of a trace at the base."""
    counted, second = tmp_path / "counted.txt", tmp_path / "second.txt"
    text = NCU_TEXT.replace("    500.00", "  10501.00")
    counted.write_text(text)
    second.write_text(text.replace("1.00\n", "0.70\n"))
    trace = tmp_path / "trace.csv"
    trace.write_text(
        '"Time (%)","Total Time (ns)","Instances","Name"\n'
        '100.0,60000,2,"void add<float, 2>(float *, int)"\n'
    )
    base = ("--device", "rtx4090", "--base", "cu=4,engine=1000,memory=10501")
    complaint = refused(capsys, counted, trace, *base, "--also", f"{second}@engine=700")
    assert "second.txt: has counters, beside which times are others than a trace's" in complaint
