"""A real device for the collector's tests: the processor, by OpenCL and PoCL."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from mlscale.collect.device import DeviceInfo, device_at_hand
from mlscale.errors import InputError

ROOT = Path(__file__).parents[1]


@cache
def _found() -> DeviceInfo | str:
    """The processor, or why it cannot be measured on."""
    try:
        device = device_at_hand("opencl")
    except InputError as error:
        return str(error)
    return device if device.cu_axis == "threads" else f"{device.name} is not the processor, by PoCL"


def needs_pocl() -> DeviceInfo:
    """The processor; skips the test, with the reason, where PoCL runs no kernel on it."""
    found = _found()
    if isinstance(found, str):
        pytest.skip(f"OpenCL: {found}")
    return found


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
