"""Commands that set and reset what the advice names, for the GPU's vendor; printed, never run.

The page of power caps in the documentation says in which manual each spelling was read, and
which were not verified; none was run on a GPU. Each is for one GPU, by the number, UUID or bus id
of the vendor's tool; the files of a run may name it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mlscale.advice.search import Advice
from mlscale.data.devices import Device, known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.points import second_clock_mhz
from mlscale.data.profiles import Profiles

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice

SAME_CLOCK = 0.01  # a clock this near to a listed one, relatively, is that one
VOLTA, AMPERE = 7.0, 8.0  # compute capabilities

_GPU = re.compile(r"[0-9A-Za-z][0-9A-Za-z:.-]{0,63}", re.ASCII)
_ROOT = (
    "these commands need root on the machine itself; a container, WSL 2 or a virtual machine may "
    "refuse them: docs/power-caps.md says what is left"
)
_PERSISTENCE = (
    "without persistence mode ({} -pm 1) the driver forgets the setting when no process uses the "
    "GPU"
)
_CAPPED_BY_AMD_SMI = ("CDNA 2", "CDNA 3", "CDNA 4", "RDNA 3", "RDNA 4")
_CU_NOTES = {
    "NVIDIA": "no command sets the number of CUs: MIG, or MPS with "
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, keep one process to a part of them",
    "AMD": "no command sets the number of CUs: HSA_CU_MASK keeps one process to a part of them",
}


@dataclass(frozen=True)
class Commands:
    """Shell commands, in the order to run them, and what to know of them."""

    to_set: tuple[str, ...] = ()
    to_reset: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def commands_for_clocks(advice: Advice, device: str, metadata: Mapping[str, Any]) -> Commands:
    """The commands for the clocks that an advice names for the whole run.

    device: a key of the device table, or another name. metadata: of the profiles, which may name
    the GPU among several.
    """
    run, known = advice.whole_run, known_device(device)
    of_clocks = partial(clock_commands, known, run.best.config, run.base.config)
    return _for_gpu(known, metadata, of_clocks)


def commands_for_second_run(profiles: Profiles) -> tuple[int, Commands]:
    """The engine clock [MHz] at which a second run tells most, and the commands for it."""
    second_mhz, known = second_clock_mhz(profiles), known_device(profiles.device)
    second = replace(profiles.base, engine_mhz=float(second_mhz))
    of_clocks = partial(clock_commands, known, second, profiles.base)
    return second_mhz, _for_gpu(known, profiles.metadata, of_clocks)


def commands_for_cap(caps: "CapAdvice", device: str, metadata: Mapping[str, Any]) -> Commands:
    """The commands for the best power cap, as `commands_for_clocks`; a note where none helps."""
    if caps.best is None or not caps.helps:
        return Commands(notes=("nothing to set: the power cap stays as it is",))
    known = known_device(device)
    return _for_gpu(known, metadata, partial(cap_commands, known, caps.best.cap_w))


def _for_gpu(
    device: Device | None, metadata: Mapping[str, Any], of: Callable[..., Commands]
) -> Commands:
    """The commands for the GPU that a run's files name, by default 0, with notes on that.

    metadata: `gpus` are a log's, by the vendor's tool, `profiled_gpus` a profiler's. of: makes
    them, given `gpu`. What is neither a number, a UUID nor a bus id is passed over, as it may not
    go into a shell.
    """
    gpus, profiled = (_gpus(metadata.get(name)) for name in ("gpus", "profiled_gpus"))
    notes = []
    if profiled and not gpus and device is not None and device.vendor == "AMD":
        notes.append(
            f"the profile is of GPU {profiled[0]}, counted with other devices: put the number that "
            "amd-smi list has of it in place of 0"
        )
    elif profiled and not gpus and profiled != ["0"]:
        gpus = profiled
        notes.append(
            f"GPU {profiled[0]} is the profiler's number: nvidia-smi -L tells which that is"
        )
    first, *others = gpus or ["0"]
    if others:
        notes.insert(0, f"for GPU {first}; set {', '.join(others)} alike")
    commands = of(gpu=first)
    return replace(commands, notes=(*commands.notes, *notes)) if commands.to_set else commands


def _gpus(said: object) -> list[str]:
    """The GPUs that metadata name, each once."""
    named = said if isinstance(said, list | tuple) else ()
    texts = dict.fromkeys(str(gpu) for gpu in named if isinstance(gpu, str | int))
    return [gpu for gpu in texts if _GPU.fullmatch(gpu)]


def clock_commands(
    device: Device | None, best: HardwareConfig, base: HardwareConfig, gpu: str = "0"
) -> Commands:
    """What sets the clocks in which `best` differs from `base`, and what undoes that.

    device: None for a GPU that the device table does not know. gpu: which GPU of the machine, as
    the vendor's tool names it.

    Example:
        >>> from mlscale.data.devices import load_device
        >>> best, base = HardwareConfig(108, 1110, 1593), HardwareConfig(108, 1410, 1593)
        >>> commands = clock_commands(load_device("a100-sxm4-80gb"), best, base)
        >>> commands.to_set, commands.to_reset
        (('nvidia-smi -i 0 -lgc 1110,1110',), ('nvidia-smi -i 0 -rgc',))
    """
    if best == base:
        return Commands(notes=(f"nothing to set: the advice is the base, {base}",))
    if device is None or device.vendor not in _CU_NOTES:
        return _unknown(device)
    commands = Commands()
    if (best.engine_mhz, best.memory_mhz) != (base.engine_mhz, base.memory_mhz):
        by_vendor = _nvidia_clocks if device.vendor == "NVIDIA" else _amd_clocks
        commands = by_vendor(device, best, base, gpu)
    cus = (_CU_NOTES[device.vendor],) if best.cu_count != base.cu_count else ()
    return replace(commands, notes=commands.notes + cus)


def cap_commands(device: Device | None, cap_w: float, gpu: str = "0") -> Commands:
    """What sets a power cap [W], and what sets the GPU's own again; gpu: as for `clock_commands`.

    Example:
        >>> from mlscale.data.devices import load_device
        >>> commands = cap_commands(load_device("a100-sxm4-80gb"), 300)
        >>> commands.to_set, commands.to_reset
        (('nvidia-smi -i 0 -pl 300',), ('nvidia-smi -i 0 -pl 400',))
    """
    if device is not None and device.vendor == "NVIDIA":
        return _nvidia_cap(device, cap_w, gpu)
    if device is not None and device.vendor == "AMD":
        return _amd_cap(device, cap_w, gpu)
    return _unknown(device)


def _unknown(device: Device | None) -> Commands:
    if device is None:
        return Commands(notes=("no command is known for a GPU that is not in the device table",))
    note = f"no command is printed for {device.name}: docs/power-caps.md says what there is"
    return Commands(notes=(note,))


def _listed(device: Device, memory_mhz: float) -> float:
    """The memory clock that the vendor's tool lists, where one is as good as that."""
    nearest = min(
        device.memory_clocks_mhz(), key=lambda mhz: abs(mhz - memory_mhz), default=memory_mhz
    )
    return nearest if abs(nearest / memory_mhz - 1) < SAME_CLOCK else memory_mhz


def _nvidia_clocks(
    device: Device, best: HardwareConfig, base: HardwareConfig, gpu: str
) -> Commands:
    smi = f"nvidia-smi -i {gpu}"
    capability = float(device.compute_capability or VOLTA)
    if device.is_jetson:
        return _unknown(device)
    engine, memory = f"{best.engine_mhz:.0f}", f"{_listed(device, best.memory_mhz):.0f}"
    if capability < VOLTA:
        if device.is_consumer:
            return Commands(notes=(f"nvidia-smi cannot lock clocks of {device.name}",))
        return Commands(
            (f"{smi} -ac {memory},{engine}",),
            (f"{smi} -rac",),
            (_ROOT, _PERSISTENCE.format(smi)),
        )
    to_set, to_reset, notes = [], [], [_ROOT, _PERSISTENCE.format(smi)]
    if best.engine_mhz != base.engine_mhz:
        to_set.append(f"{smi} -lgc {engine},{engine}")
        to_reset.append(f"{smi} -rgc")
    if best.memory_mhz != base.memory_mhz:
        of_memory = _nvidia_memory_clock(device, memory, smi)
        to_set += of_memory.to_set
        to_reset += of_memory.to_reset
        notes += of_memory.notes
    return Commands(tuple(to_set), tuple(to_reset), tuple(notes))


def _nvidia_memory_clock(device: Device, memory: str, smi: str) -> Commands:
    """Commands for a memory clock [MHz] of a GPU from Volta on; none where it has only one."""
    if len(device.memory_clocks_mhz()) == 1:
        return Commands(notes=(f"{device.name} has one memory clock, which no command changes",))
    if device.defers_memory_clock:
        note = "the memory clock changes when the driver's kernel modules are loaded anew"
        return Commands((f"{smi} -lmcd {memory}",), (f"{smi} -rmcd",), (note,))
    is_documented = float(device.compute_capability or VOLTA) >= AMPERE
    note = "NVIDIA documents -lmc for Ampere and newer; this GPU may refuse it"
    return Commands(
        (f"{smi} -lmc {memory},{memory}",), (f"{smi} -rmc",), () if is_documented else (note,)
    )


def _nvidia_cap(device: Device, cap_w: float, gpu: str) -> Commands:
    if device.is_jetson or device.form_factor in ("laptop", "integrated"):
        return _unknown(device)
    smi = f"nvidia-smi -i {gpu}"
    limits = f"{smi} -q -d POWER prints the limits of yours"
    notes = [_ROOT, _PERSISTENCE.format(smi), *_refused_cap(device, cap_w, limits)]
    if device.tdp_w is None or "tdp_w" in device.unverified:
        notes.append(f"the default limit of {device.name} is not certain: {limits}")
    return Commands(
        (f"{smi} -pl {cap_w:g}",),
        (f"{smi} -pl {device.tdp_w:g}",) if device.tdp_w else (),
        tuple(notes),
    )


def _refused_cap(device: Device, cap_w: float, limits: str) -> list[str]:
    """A note where the device table knows that the GPU takes no such cap; limits: how to ask it."""
    lowest, highest = device.min_power_limit_w, device.max_power_limit_w
    if (lowest and cap_w < lowest) or (highest and cap_w > highest):
        return [f"{device.name} is known to refuse {cap_w:g} W: {limits}"]
    return []


def _amd_clocks(device: Device, best: HardwareConfig, base: HardwareConfig, gpu: str) -> Commands:
    control = _amd_clock_control(device)
    if control is None:
        return _unknown(device)
    changes = {}
    if best.engine_mhz != base.engine_mhz:
        changes["sclk"] = f"{best.engine_mhz:.0f}"
    if best.memory_mhz != base.memory_mhz:
        changes["mclk"] = f"{_listed(device, best.memory_mhz):.0f}"
    return control(device, changes, gpu)


def _by_level(device: Device, changes: dict[str, str], gpu: str) -> Commands:  # noqa: ARG001
    """The level of a clock; which level has which clock only the GPU's own list says."""
    smi = f"rocm-smi -d {gpu}"
    to_set = [f"{smi} --setperflevel manual"]
    to_set += [f"{smi} --set{clock} LEVEL" for clock in changes]
    levels = [
        f"LEVEL of {clock}: the one that {smi} --showclkfrq lists with {mhz} MHz"
        for clock, mhz in changes.items()
    ]
    return Commands(tuple(to_set), (f"{smi} --resetclocks",), (_ROOT, *levels))


def _by_maximum(device: Device, changes: dict[str, str], gpu: str) -> Commands:  # noqa: ARG001
    """The highest clock that the GPU may take [MHz]."""
    smi = f"rocm-smi -d {gpu}"
    to_set = [f"{smi} --setextremum max {clock} {mhz}" for clock, mhz in changes.items()]
    needs = "needs OverDrive, which the kernel parameter amdgpu.ppfeaturemask allows"
    return Commands(tuple(to_set), (f"{smi} --resetclocks",), (_ROOT, needs))


_ClockControl = Callable[[Device, dict[str, str], str], Commands]
AMD_CLOCK_CONTROL: dict[str, _ClockControl] = {
    "GCN 3": _by_level,
    "GCN 4": _by_level,
    "GCN 5": _by_level,
    "CDNA 1": _by_level,
    "RDNA 2": _by_maximum,
    "RDNA 3": _by_maximum,
}


def _amd_clock_control(device: Device) -> _ClockControl | None:
    """How the clocks of its generation are set; None where ROCm's tools do not set them.

    The GPUs of AMD's processors, RDNA 3.5 too, are told apart from the boards of their number.
    """
    family, generation, *_ = f"{device.architecture} ?".split()
    if family == "GCN":
        generation = generation.split(".")[0]
    return AMD_CLOCK_CONTROL.get(f"{family} {generation}")


def _amd_cap(device: Device, cap_w: float, gpu: str) -> Commands:
    control = _amd_clock_control(device)
    if control is None and not device.architecture.startswith(("CDNA", "RDNA 4")):
        return _unknown(device)
    limits = f"amd-smi static -g {gpu} --limit prints the limits of yours"
    notes = [_ROOT, *_refused_cap(device, cap_w, limits)]
    if device.is_half_a_module:
        notes.append("the cap is the module's, which has two of these dies")
    if device.architecture.startswith("CDNA 3"):
        notes.append("in a virtual machine the driver refuses to lower the cap")
    if device.architecture.startswith(_CAPPED_BY_AMD_SMI):
        to_set = f"amd-smi set -g {gpu} --power-cap {cap_w:g}"
        to_reset = f"amd-smi reset -g {gpu} --power-cap"
        notes.append(f"later releases of ROCm 7 want the kind of limit: --power-cap ppt0 {cap_w:g}")
    else:
        to_set = f"rocm-smi -d {gpu} --setpoweroverdrive {cap_w:g}"
        to_reset = f"rocm-smi -d {gpu} --resetpoweroverdrive"
    return Commands((to_set,), (to_reset,), tuple(notes))
