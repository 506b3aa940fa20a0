"""Which OpenCL is taken, by PoCL's own compiler, which real settings keep from building."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pocl
import pytest
from command import Capture, refuse

from mlscale.collect import device as finding
from mlscale.collect.device import device_at_hand
from mlscale.errors import InputError

BREAKS = {"POCL_EXTRA_BUILD_FLAGS": "-D__kernel=no"}  # unknown type name 'no'
MENDS = {"POCL_EXTRA_BUILD_FLAGS": ""}
# Of a process in which nothing builds: the second choice mends it.
SECOND = f"from mlscale.collect import device; device._ENVIRONMENTS = ({{}}, {MENDS}); "
COLLECT = "import sys; from mlscale.cli.main import main; sys.exit(main())"
LAUNCH = "from mlscale.collect.measuring import main; main('opencl', 'small', ['copy_1m'])"


@pytest.mark.parametrize("before", [BREAKS, {"PATH": "/nonexistent"}, {"POCL_CACHE_DIR": ""}])
def test_one_that_does_not_build_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, before: dict[str, str]
) -> None:
    """A build that fails; one that aborts, without 'ld'; and a loader that aborts, on PoCL's cache.

    The device is the one that builds without them.
    """
    expected = pocl.needs_pocl()
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))  # what is there needs no 'ld'
    second = expected.seen_by | MENDS
    monkeypatch.setattr(finding, "_ENVIRONMENTS", (expected.seen_by | before, second))
    assert device_at_hand("opencl") == replace(expected, seen_by=second)


@pytest.mark.parametrize("does", [COLLECT, LAUNCH])
def test_what_measures_and_what_is_profiled_see_the_one_that_was_taken(
    tmp_path: Path, does: str
) -> None:
    """Processes compile where the second choice's environment reaches them, and nowhere else."""
    device = pocl.needs_pocl()
    given = pocl.command("--suite", "small", "--kernels", "copy", "-o", tmp_path / "out")
    done = subprocess.run(
        [sys.executable, "-c", SECOND + does, *given[3:]],
        env=pocl.environment(tmp_path / "pocl") | device.seen_by | BREAKS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_where_none_builds_one_line_says_so(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The words on the type are clang's."""
    pocl.needs_pocl()
    [(name, value)] = BREAKS.items()
    monkeypatch.setenv(name, value)
    message = refuse(capsys, tmp_path, "collect", "--backend", "opencl", "-o", tmp_path / "out")
    assert "OpenCL cannot run a kernel here (Portable Computing Language " in message
    assert "unknown type name 'no'" in message
    assert "apt-get install pocl-opencl-icd" in message
    assert not (tmp_path / "out").exists()


def test_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The words on the platform are pyopencl's."""
    pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")
    nowhere = {"OCL_ICD_VENDORS": "/nonexistent"}
    monkeypatch.setattr(finding, "_ENVIRONMENTS", (nowhere,))
    with pytest.raises(
        InputError, match=r"\(/nonexistent: .*PLATFORM_NOT_FOUND_KHR\); install one"
    ):
        device_at_hand("opencl")
