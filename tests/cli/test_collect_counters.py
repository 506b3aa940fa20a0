"""mlscale collect and Nsight Compute: a stand-in for ncu prints a made raw page."""

from pathlib import Path
from typing import Any

import pytest
from command import Capture, succeed
from replayed import ReplayGpu, use

from mlscale import read

__all__ = ["use"]
KERNELS = ("--kernels", "few_threads,chase_16k")
# A raw page as Nsight Compute writes it, here with made numbers, among the tool's own lines.
NCU_PRINTS = """
cat > "$log" <<'END'
==PROF== Connected to process 1
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",\
"Grid Size","Device","CC","gpu__time_duration.sum","sm__cycles_elapsed.avg.per_second",\
"dram__cycles_elapsed.avg.per_second","dram__bytes_read.sum"
"","","","","","","","","","","","ns","hz","hz","byte"
"0","1","python","h","few_threads_1","1","7","(32, 1, 1)","(1, 1, 1)","0","9.0","20000",\
"1980000000","2600000000","1000"
"1","1","python","h","few_threads_8","1","7","(64, 1, 1)","(8, 1, 1)","0","9.0","21000",\
"1500000000","2600000000","2000"
END
"""


def fake_ncu(folder: Path, does: str) -> Path:
    """A program in the place of ncu: it finds its --log-file, and does that."""
    path = folder / "ncu"
    find = 'while [ "$1" != "" ]; do [ "$1" = --log-file ] && log="$2"; shift; done\n'
    path.write_text("#!/bin/sh\n" + find + does.replace("\\\n", "") + "\n")
    path.chmod(0o755)
    return path


def test_counters_by_nsight_compute(
    capsys: Capture, tmp_path: Path, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ncu = fake_ncu(tmp_path, NCU_PRINTS)
    monkeypatch.setattr("mlscale.collect.counters.NsightCompute.find", lambda: str(ncu))
    use(ReplayGpu())
    out = tmp_path / "out"
    succeed(capsys, "collect", "--kernels", "few_threads_1,few_threads_8", "-o", out)
    data = read(out / "measurements.csv")
    f = data.counter_names.index("dram__bytes_read.sum")
    # The fake's numbers: 1000 for the first kernel, 2000 for the second, at every CU count.
    assert data.counters[:, :, 0, 0, f].tolist() == [[1000.0] * 3, [2000.0] * 3]
    assert data.metadata["counter_tool"] == "ncu"


def test_without_the_right_to_counters_the_rest_is_collected(
    capsys: Capture, tmp_path: Path, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission'; exit 1"
    ncu = fake_ncu(tmp_path, said)
    monkeypatch.setattr("mlscale.collect.counters.NsightCompute.find", lambda: str(ncu))
    use(ReplayGpu())
    _, err = succeed(capsys, "collect", *KERNELS, "-o", tmp_path / "out")
    assert err.count("no right to read the GPU's counters (ERR_NVGPUCTRPERM)") == 1
    assert read(tmp_path / "out" / "measurements.csv").power_w is not None


def test_why_ncu_gave_nothing_is_told(
    capsys: Capture, tmp_path: Path, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU in exclusive mode, for one, refuses the program that ncu runs."""
    said = "echo 'the GPU failed: cuDevicePrimaryCtxRetain: DEVICE_UNAVAILABLE' >&2; exit 2"
    ncu = fake_ncu(tmp_path, said)
    monkeypatch.setattr("mlscale.collect.counters.NsightCompute.find", lambda: str(ncu))
    use(ReplayGpu())
    _, err = succeed(capsys, "collect", *KERNELS, "--sm-counts", "4", "-o", tmp_path / "out")
    assert (
        "counters are missing: of chase_16k, few_threads_1, few_threads_8 … at 4 CUs (ncu ended "
        "with 2: the GPU failed: cuDevicePrimaryCtxRetain: DEVICE_UNAVAILABLE)"
    ) in err


def test_without_nsight_compute_it_says_so(
    capsys: Capture, tmp_path: Path, use: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlscale.collect.counters.NsightCompute.find", lambda: None)
    use(ReplayGpu())
    _, err = succeed(capsys, "collect", *KERNELS, "-o", tmp_path / "out")
    assert "ncu) is not on the path: time and power are collected, counters are not" in err
