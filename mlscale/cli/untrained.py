"""Options for a GPU that the model has no training data of."""

import argparse

from mlscale.cli.options import input_file
from mlscale.counters.kernel_use import device_with_peaks
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig, parse_settings
from mlscale.data.profiles import Profiles, profiles_at
from mlscale.data.tables import Table, read_table
from mlscale.errors import InputError
from mlscale.model import Model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    group = parser.add_argument_group("a GPU that the model has no training data of (time alone)")
    group.add_argument(
        "--device",
        metavar="DEVICE",
        help="the GPU of PROFILE, by its name in the device table; --at says where to predict",
    )
    group.add_argument(
        "--base",
        metavar="CONFIG",
        help="where PROFILE was taken (default: the one configuration that it holds)",
    )
    group.add_argument(
        "--peaks",
        metavar="PROFILES",
        help="profiles of other kernels of that GPU at the same base, best with some that are "
        "bound by memory: what they reach is taken for its peak (default: what the kernels of "
        "the trained GPUs reach of theirs)",
    )


def asked(arguments: argparse.Namespace) -> bool:
    """Whether such a GPU is meant. Raises InputError where an option does not fit the others."""
    for name in ("base", "peaks"):
        if getattr(arguments, name) and not arguments.device:
            raise InputError(f"--{name} is for a GPU without training data; name it with --device")
    if arguments.device and not arguments.at:
        raise InputError("--device needs --at: the model has no grid of that GPU")
    return arguments.device is not None


def read(
    arguments: argparse.Namespace, model: Model
) -> tuple[Model, Profiles, list[HardwareConfig]]:
    """The model for that GPU, the profiles, and where to predict. Raises InputError."""
    device: str = arguments.device
    device_with_peaks(device)
    table = read_table(input_file(arguments.profile))
    base = _config(arguments.base, device) if arguments.base else _only(table)
    if (device, base) == (model.device, model.base):
        raise InputError(f"the model is of {device} at {base} itself; leave out --device")
    profiles = _profiles(table, base, device)
    peaks = None
    if arguments.peaks:
        peaks = _profiles(read_table(input_file(arguments.peaks)), base, device)
    targets = [_config(text, device, base.cu_count) for text in arguments.at]
    grid = ConfigGrid.spanning([base, *targets])
    return model.for_gpu(device, grid, base, peaks), profiles, targets


def _profiles(table: Table, base: HardwareConfig, device: str) -> Profiles:
    for other in table.text.get("device", []):
        if other != device:
            raise InputError(f"{table.source}: is of device '{other}', --device says '{device}'")
    return profiles_at(table, base, device)


def _config(text: str, device: str, cu_count: int | None = None) -> HardwareConfig:
    """A configuration; without cu that count, by default all of the device's."""
    most = device_with_peaks(device).cu_count
    given = {"cu_count": float(cu_count or most)} | parse_settings(text)
    if given["cu_count"] > most:
        raise InputError(f"'{text}': {device} has {most} compute units")
    for axis in AXES:
        if axis not in given:
            raise InputError(f"'{text}' gives no {axis}")
    return HardwareConfig(int(given["cu_count"]), given["engine_mhz"], given["memory_mhz"])


def _only(table: Table) -> HardwareConfig:
    """The configuration of all rows."""
    table.require(AXES)
    found = set(zip(*(table.positive(axis).tolist() for axis in AXES), strict=True))
    if len(found) != 1:
        raise InputError(
            f"{table.source}: has rows at {len(found)} configurations; say with --base which is "
            "the base"
        )
    cu_count, engine_mhz, memory_mhz = found.pop()
    return HardwareConfig(int(cu_count), engine_mhz, memory_mhz)
