"""A real device for the collector's tests: the processor, by OpenCL and PoCL."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@cache
def why_not() -> str:
    """Why the processor cannot be measured on; empty where it can."""
    try:
        import kernel_tuner  # noqa: F401
        import pyopencl
    except ImportError as error:
        return f"{error.name} is not installed (the extra 'collect')"
    try:
        platforms = pyopencl.get_platforms()
    except pyopencl.Error:
        platforms = []
    if not any(platform.name == "Portable Computing Language" for platform in platforms):
        return "there is no PoCL: pocl-binary-distribution is for Linux on x86-64"
    if shutil.which("ld") is None:
        return "PoCL links its kernels with 'ld' (binutils), which is not there"
    return ""


def needs_pocl() -> None:
    """Skip the test, with the reason, where there is no PoCL."""
    if why_not():
        pytest.skip(why_not())


def command(*arguments: object) -> list[str]:
    """The command line of `mlscale collect` by OpenCL."""
    given = ["collect", "--backend", "opencl", *map(str, arguments)]
    return [sys.executable, "-m", "mlscale", *given]


def environment(folder: Path) -> dict[str, str]:
    """Of such a command; kernels are compiled anew for each folder."""
    return {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "POCL_CACHE_DIR": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
    }


def collect(cache_folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return subprocess.run(
        command(*arguments),
        capture_output=True,
        text=True,
        check=False,
        env=environment(cache_folder),
        timeout=600,
    )
