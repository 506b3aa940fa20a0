"""mlscale collect on a real device: the processor, by OpenCL and PoCL.

Sources are compiled, checked against NumPy and timed; nothing stands in for anything.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from itertools import product
from pathlib import Path

import numpy as np
import pocl
import pytest
from command import Cli

from mlscale import read
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import select
from mlscale.collect.running import cache_file
from mlscale.data.table_files import read_table
from mlscale.papers.gpu_file import read_gpu_file
from mlscale.readers.kernel_tuner import read_document

FEW = "copy,fma,nbody"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """PoCL's own cache, so that a kernel is compiled once for all tests."""
    pocl.needs_pocl()
    return tmp_path_factory.mktemp("pocl")


@pytest.fixture
def _compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of this process use that cache too."""
    monkeypatch.setenv("POCL_CACHE_DIR", str(cache))


@pytest.fixture(scope="module")
def counts() -> str:
    return "1,2" if pocl.needs_pocl().cu_count > 1 else "1"


@pytest.fixture(scope="module")
def collected(cache: Path, counts: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small collection at 1 and 2 CUs."""
    folder = tmp_path_factory.mktemp("collected") / "out"
    done = pocl.collect(
        cache, "--suite", "small", "--kernels", FEW, "--cu-counts", counts, "-o", folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "without power" in done.stdout
    return folder


def test_the_table_has_every_kernel_at_every_count(collected: Path, counts: str) -> None:
    """4 kernels, 'fma' at two sizes; the counts are those that it ran on."""
    data = read(collected / "measurements.csv")
    assert len(data.kernels) == 4
    assert ",".join(f"{n:g}" for n in data.grid.cu_count) == counts
    table = read_table(collected / "measurements.csv")
    assert (table.numbers["time_ms"] > 0).all()
    assert table.metadata["unknown_clocks"] == ["engine_mhz", "memory_mhz"]
    record = json.loads((collected / "collect.json").read_text())
    assert record["finished"]
    assert record["failed"] == {}


@pytest.mark.slow
@pytest.mark.usefixtures("_compiled_once")
def test_the_whole_small_suite_killed_goes_on_and_is_trained_on(
    cache: Path, counts: str, cli: Cli, tmp_path: Path
) -> None:
    """SIGKILL in the middle: the worker dies with it, and what was measured is not taken again."""
    folder = tmp_path / "out"
    given = ("--suite", "small", "--cu-counts", counts, "-o", folder)
    with subprocess.Popen(
        pocl.command(*given),
        env=pocl.environment(cache),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        caches = folder / "cache"
        for _ in range(3000):
            taken = sorted(
                (p for p in caches.glob("*-*.json") if '"times"' in p.read_text()),
                key=lambda p: p.stat().st_mtime,
            )
            if len(taken) > 8:
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    _wait_for_the_end_of(process.pid)
    assert not (folder / "measurements.csv").exists()
    first = next(p for p in taken if p.name.startswith("copy"))
    before = read_document(first)["cache"]
    torn = taken[-1].read_text()
    taken[-1].write_text(torn[: torn.rindex('"times"')])  # as a kill in the middle of a write

    again = ("collect", "--backend", "opencl", *given)
    message = cli.refused(*again, folder=folder)
    assert "holds an unfinished collection; continue with --resume" in message
    resumed = pocl.collect(cache, *given, "--resume")
    assert resumed.returncode == 0, resumed.stderr
    assert read_document(first)["cache"] == before
    table = read_table(folder / "measurements.csv")
    rows = zip(table.text["kernel"], table.numbers["cu_count"], strict=True)
    kernels = [entry.name for entry in select("small", (), "opencl")]
    assert sorted(rows) == sorted(product(kernels, map(float, counts.split(","))))
    assert "nothing is left to measure" in cli(*again, "--resume")
    _predicts_a_kernel_left_out(folder / "measurements.csv", cli, tmp_path)


def _predicts_a_kernel_left_out(measured: Path, cli: Cli, tmp_path: Path) -> None:
    """The mean surface: by hand, the geometric mean over the others of the ratio of their times."""
    data = read(measured)
    most = f"{data.grid.cu_count[-1]:g}"
    model, profile = tmp_path / "cpu.mlscale", tmp_path / "nbody.csv"
    err = cli.told("train", measured, "--base", f"cu={most}", "--leave-out", "nbody", "-o", model)
    assert "has no counters, so the default is 'mean-surface'" in err
    header, *lines = measured.read_text().splitlines()
    [row] = [line for line in lines if f",nbody_1k,{most}," in line]
    profile.write_text(f"{header}\n{row}\n")
    out = cli("predict", model, profile, "--format", "json")
    factors = data.time_ms[:, 0, 0, 0] / data.time_ms[:, -1, 0, 0]
    others = [f for f, name in zip(factors, data.kernels, strict=True) if name != "nbody_1k"]
    at_base = data.time_ms[data.kernels.index("nbody_1k"), -1, 0, 0]
    predicted = {row["cu_count"]: row["time_ms"] for row in json.loads(out)["predictions"]}
    expected = at_base * np.exp(np.mean(np.log(others)))
    assert predicted[data.grid.cu_count[0]] == pytest.approx(expected)


def _wait_for_the_end_of(group: int) -> None:
    """Its processes may be in the middle of a write when the first of them is killed."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(100):  # where nobody takes the dead away, they stay in their group
            os.killpg(group, 0)
            time.sleep(0.1)


def test_a_finished_run_tries_what_failed_again(
    collected: Path, cache: Path, counts: str, tmp_path: Path
) -> None:
    """What kernel_tuner noted of the failure is forgotten; what was measured stays."""
    folder = shutil.copytree(collected, tmp_path / "out")
    record = json.loads((folder / "collect.json").read_text())
    (folder / "collect.json").write_text(json.dumps({**record, "failed": {"copy_1m": "made"}}))
    failed, other = (cache_file(folder, name, 1) for name in ("copy_1m", "nbody_1k"))
    document = read_document(failed)
    [sample] = document["cache"].values()
    sample["__error__"] = "RuntimeFailedConfig"
    failed.write_text(json.dumps(document))
    before = other.read_bytes()
    given = ("--suite", "small", "--kernels", FEW, "--cu-counts", counts, "-o", folder)
    done = pocl.collect(cache, *given, "--resume")
    assert done.returncode == 0, done.stderr
    [sample] = read_document(failed)["cache"].values()
    assert "__error__" not in sample
    assert sample["times"]
    assert other.read_bytes() == before
    assert json.loads((folder / "collect.json").read_text())["failed"] == {}


@pytest.mark.usefixtures("_compiled_once")
def test_a_finished_run_without_counters_is_gone_on_with(
    collected: Path, counts: str, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A processor that ncu could count: first it is not there, then nobody asks for it."""
    folder = shutil.copytree(collected, tmp_path / "out")
    record = json.loads((folder / "collect.json").read_text())
    (folder / "collect.json").write_text(json.dumps({**record, "uncounted": ["by a run before"]}))
    given = ("--suite", "small", "--kernels", FEW, "--cu-counts", counts, "-o", folder, "--resume")
    with monkeypatch.context() as patch:
        patch.setattr(DeviceInfo, "profiler", "ncu")
        patch.setattr(shutil, "which", lambda _: None)
        err = cli.told("collect", "--backend", "opencl", *given)
    assert "no counters: ncu is not on the path; --resume when it is" in err
    [why] = json.loads((folder / "collect.json").read_text())["uncounted"]
    assert why in err
    samples = 4 * len(counts.split(","))
    for said in (f"{samples} samples of 4 kernels", "nothing is left to measure"):
        assert said in cli("collect", "--backend", "opencl", *given)


def test_asked_to_end_it_ends_as_by_ctrl_c(cache: Path, tmp_path: Path) -> None:
    """SIGTERM while a kernel is measured: no process is left, and one line says how to go on."""
    folder = tmp_path / "out"
    given = ("--suite", "small", "--cu-counts", "1", "-o", folder)  # much is left by then
    with subprocess.Popen(
        pocl.command(*given), env=pocl.environment(cache), stderr=subprocess.PIPE, text=True
    ) as process:
        for _ in range(3000):
            if (folder / "cache" / "process.log").exists():
                break
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert (
            process.stderr.read() == f"mlscale: interrupted; continue with --resume -o {folder}\n"
        )
    assert json.loads((folder / "collect.json").read_text())["finished"] is None


@pytest.mark.usefixtures("_compiled_once")
def test_another_plan_in_the_same_folder_is_refused(
    collected: Path, counts: str, cli: Cli, tmp_path: Path
) -> None:
    """Of other kernels, and one begun by another version on another device."""
    given = ("collect", "--backend", "opencl", "--suite", "small", "-o", collected)
    message = cli.refused(*given, folder=collected)
    assert "holds a collection with another kernels (collect.json says which); ask" in message
    record = json.loads((collected / "collect.json").read_text())
    older = tmp_path / "older"
    older.mkdir()
    (older / "collect.json").write_text(json.dumps({**record, "version": "0.0", "device": {}}))
    given = ("collect", "--backend", "opencl", "--suite", "small", "--kernels", FEW, "-o", older)
    message = cli.refused(*given, "--cu-counts", counts, folder=older)
    assert "holds a collection with another version, device (collect.json" in message


@pytest.mark.slow
def test_micro_benchmarks(cache: Path, tmp_path: Path) -> None:
    """5 intensities x 7 occupancies; the device table has no processor for wang-chu."""
    folder = tmp_path / "micro"
    done = pocl.collect(cache, "--micro", "-o", folder)
    assert done.returncode == 0, done.stderr
    assert "no entry for wang-chu" in done.stdout
    assert len(read_gpu_file(folder / "gpu.json").volkov) == 35


def test_the_plan_is_printed(cli: Cli, tmp_path: Path) -> None:
    """5 kernels, 3 of copy and 2 of scan, at one count, 4 times."""
    pocl.needs_pocl()
    given = ("--dry-run", "--kernels", "copy,scan", "--cu-counts", "1", "--repeat", "4")
    out = cli("collect", "--backend", "opencl", *given, "-o", tmp_path / "o")
    lines = dict(line.split(":", 1) for line in out.splitlines())
    assert lines["kernels"].strip() == "5: copy_4m, copy_16m, copy_64m, scan_4m, scan_32m"
    assert lines["engine_mhz"].strip() == "as they are"
    assert lines["samples"].strip().startswith("20, about ")
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("--kernels copi", "no kernel or application 'copi' in the suite 'full'; is 'copy' meant?"),
        ("--cu-counts 9999", "has {device.cu_count} CUs"),
        ("--engine 800", "only through NVML"),
        ("--cu-counts 0", "must be a whole number, 1 or more, not '0'"),
        ("--power-seconds -1", "must be 0 or more and finite, not '-1'"),
    ],
)
def test_what_is_refused(cli: Cli, tmp_path: Path, given: str, message: str) -> None:
    device = pocl.needs_pocl()
    words = ("collect", "--backend", "opencl", *given.split(), "-o", tmp_path / "o")
    assert message.format(device=device) in cli.refused(*words)
