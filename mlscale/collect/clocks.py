"""Clocks and power limits of the board that is collected on, by `mlscale.sensors.clocks`."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mlscale.collect.device import DeviceInfo
from mlscale.sensors import clocks
from mlscale.sensors.nvidia import NvidiaBoard, handle_by_uuid


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
    clocks.set_board(NvidiaBoard(handle_by_uuid(device.uuid)), settings)


@contextmanager
def given_back(device: DeviceInfo, sets_board: bool) -> Iterator[None]:
    """Within the block the board may be set; after it, it is as before. Raises InputError."""
    if device.sensors != "nvml":
        yield
        return
    with clocks.given_back(NvidiaBoard(handle_by_uuid(device.uuid)), sets_board):
        yield
