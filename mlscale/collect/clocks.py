"""Clocks and power limits of an NVIDIA board: set, and given back even after a crash.

While they may be set, a marker stands in a folder of the user's state that the run alone holds. A
marker in a folder that nobody holds is of a run that was killed: the next one resets the board.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from mlscale.collect.device import DeviceInfo, nvml_board
from mlscale.errors import InputError, warn
from mlscale.files import only_writer, parse_json_object, read_bytes, write_text

_RESET = "nvidia-smi --reset-gpu-clocks; nvidia-smi --reset-memory-clocks; nvidia-smi -pl WATTS"
# Not from a manual: how long a board may take to run at a clock that was just set.
_SETTLE_S = 0.2


def why_fixed(device: DeviceInfo) -> str:
    """Why clocks and power limits cannot be set, and what serves in their place; '' if they can."""
    if device.sensors != "nvml":
        return (
            "clocks and power limits are set by NVML alone. For AMD set them with amd-smi (on a "
            "Jetson with nvpmodel) and collect once for each setting; an MI300X refuses to hold "
            "its clocks (--setsclk), performance determinism caps them instead"
        )
    if os.geteuid() != 0:
        return (
            "clocks and power limits are set by root; the CU count, time and power need no rights. "
            "For a program of yours nvidia-smi's logs at two engine clocks do, whoever sets them: "
            "mlscale advise LOG --also LOG"
        )
    return ""


def set_board(device: DeviceInfo, settings: Mapping[str, int]) -> None:
    """Hold the clocks [MHz] and limit the power [W] as far as they are given; not by kernel_tuner.

    Why: docs/decisions/0010-collecting.md.
    """
    import pynvml

    board = nvml_board(device.uuid)
    if mhz := settings.get("engine_mhz"):
        pynvml.nvmlDeviceSetGpuLockedClocks(board, mhz, mhz)
    if mhz := settings.get("memory_mhz"):
        pynvml.nvmlDeviceSetMemoryLockedClocks(board, mhz, mhz)
    if watts := settings.get("cap_w"):
        pynvml.nvmlDeviceSetPowerManagementLimit(board, 1000 * watts)
    time.sleep(_SETTLE_S)


@contextmanager
def given_back(device: DeviceInfo, sets_board: bool) -> Iterator[None]:
    """Within the block the board may be set; after it the board is reset.

    Where nothing is to be set, only what a killed run left is reset. Raises InputError where
    another run holds the board, and where it cannot be reset.
    """
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / "mlscale" / f"clocks-{device.uuid}"
    marker = folder / "before.json"
    if not sets_board and not marker.exists():
        yield
        return
    import pynvml

    folder.mkdir(parents=True, exist_ok=True)
    with only_writer(folder):
        if marker.exists():
            warn("L04", "an earlier run was killed while it held the clocks; they are reset first")
            _reset(device, marker)
        before = pynvml.nvmlDeviceGetPowerManagementLimit(nvml_board(device.uuid))
        write_text(marker, json.dumps({"power_limit_mw": before}))
        try:
            yield
        finally:
            _reset(device, marker)


def _reset(device: DeviceInfo, marker: Path) -> None:
    """The driver's clocks, and the power limit of before. Raises InputError."""
    import pynvml

    before = parse_json_object(read_bytes(marker), str(marker))["power_limit_mw"]
    board = nvml_board(device.uuid)
    try:
        with suppress(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceResetGpuLockedClocks(board)
        with suppress(pynvml.NVMLError_NotSupported):
            pynvml.nvmlDeviceResetMemoryLockedClocks(board)
        if pynvml.nvmlDeviceGetPowerManagementLimit(board) != before:
            pynvml.nvmlDeviceSetPowerManagementLimit(board, before)
    except pynvml.NVMLError as error:
        raise InputError(f"the board could not be reset ({error}); as root: {_RESET}") from None
    marker.unlink()
