"""Commands that set and reset what the advice names, for the GPU's vendor; printed, never run.

docs/howto/set-clocks.md says in which manuals the spellings were read, and which were not verified;
none was run on a GPU. Each is for one GPU, by the number, UUID or bus id
of the vendor's tool; the files of a run may name it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from mlscale.advice.recommendation import Advice
from mlscale.data.devices import Device, known_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError

if TYPE_CHECKING:
    from mlscale.advice.caps import CapAdvice

SAME_CLOCK = 0.01  # a clock this near to a listed one, relatively, is that one

_ROOT = (
    "these commands need root on the machine itself; a container, WSL 2 or a virtual machine may "
    "refuse them: then ask its administrator (under Slurm: --gpu-freq)"
)
_PERSISTENCE = (
    "without persistence mode (nvidia-smi -i {gpu} -pm 1) the driver forgets the setting when no "
    "process uses the GPU"
)
_MEMORY_STAYS = (
    "the memory clock is not locked: on GeForce RTX 50 locking it costs 10 to 32 % of the speed "
    "(NVIDIA/open-gpu-kernel-modules, issues 1265 and 1266)"
)
_CU_NOTES = {
    "NVIDIA": "no command sets the number of CUs; MIG, or MPS with "
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE, limits a process to some of them",
    "AMD": "no command sets the number of CUs; HSA_CU_MASK limits a process to some of them",
}


# By name: what sets it, what resets it, and what to know. The templates name gpu, engine and memory
# [MHz], watts, and default_watts, the GPU's default cap [W]; a command in a line.
TEMPLATES = {
    "-ac": ("nvidia-smi -i {gpu} -ac {memory},{engine}", "nvidia-smi -i {gpu} -rac", ""),
    "-lgc": ("nvidia-smi -i {gpu} -lgc {engine},{engine}", "nvidia-smi -i {gpu} -rgc", ""),
    "-lmc": ("nvidia-smi -i {gpu} -lmc {memory},{memory}", "nvidia-smi -i {gpu} -rmc", ""),
    "-lmc?": (
        "nvidia-smi -i {gpu} -lmc {memory},{memory}",
        "nvidia-smi -i {gpu} -rmc",
        "NVIDIA documents -lmc for Ampere and newer; this GPU may refuse it",
    ),
    "-lmcd": (
        "nvidia-smi -i {gpu} -lmcd {memory}",
        "nvidia-smi -i {gpu} -rmcd",
        "reload the driver's kernel modules to apply the memory clock",
    ),
    "-pl": ("nvidia-smi -i {gpu} -pl {watts}", "nvidia-smi -i {gpu} -pl {default_watts}", ""),
    "sclk level": (
        "rocm-smi -d {gpu} --setperflevel manual\nrocm-smi -d {gpu} --setsclk LEVEL",
        "rocm-smi -d {gpu} --resetclocks",
        "LEVEL of sclk: the one that rocm-smi -d {gpu} --showclkfrq lists for {engine} MHz",
    ),
    "mclk level": (
        "rocm-smi -d {gpu} --setperflevel manual\nrocm-smi -d {gpu} --setmclk LEVEL",
        "rocm-smi -d {gpu} --resetclocks",
        "LEVEL of mclk: the one that rocm-smi -d {gpu} --showclkfrq lists for {memory} MHz",
    ),
    "max sclk": (
        "rocm-smi -d {gpu} --setextremum max sclk {engine}",
        "rocm-smi -d {gpu} --resetclocks",
        "needs OverDrive, which the kernel parameter amdgpu.ppfeaturemask allows",
    ),
    "max mclk": (
        "rocm-smi -d {gpu} --setextremum max mclk {memory}",
        "rocm-smi -d {gpu} --resetclocks",
        "needs OverDrive, which the kernel parameter amdgpu.ppfeaturemask allows",
    ),
    "overdrive": (
        "rocm-smi -d {gpu} --setpoweroverdrive {watts}",
        "rocm-smi -d {gpu} --resetpoweroverdrive",
        "",
    ),
    "determinism": (
        "amd-smi set -g {gpu} --perf-determinism {engine}",
        "amd-smi set -g {gpu} --perf-level AUTO",
        "an MI350X ran at 0.83 of such a clock, an MI355X ignored it: read it under load",
    ),
    "power-cap": (
        "amd-smi set -g {gpu} --power-cap {watts}",
        "amd-smi reset -g {gpu} --power-cap",
        "later releases of ROCm 7 also need the kind of limit: --power-cap ppt0 {watts}",
    ),
}
LEVERS_OF_GENERATIONS: dict[str, dict[str, str]] = {  # the names in TEMPLATES, by generation
    "Kepler": {"engine": "-ac", "memory": "-ac", "cap": "-pl"},
    "Maxwell": {"engine": "-ac", "memory": "-ac", "cap": "-pl"},
    "Pascal": {"engine": "-ac", "memory": "-ac", "cap": "-pl"},
    "Volta": {"engine": "-lgc", "memory": "-lmc?", "cap": "-pl"},
    "Turing": {"engine": "-lgc", "memory": "-lmc?", "cap": "-pl"},
    "Ampere": {"engine": "-lgc", "memory": "-lmc", "cap": "-pl"},
    "Ada": {"engine": "-lgc", "memory": "-lmc", "cap": "-pl"},
    "Hopper": {"engine": "-lgc", "memory": "-lmcd", "cap": "-pl"},
    "Blackwell": {"engine": "-lgc", "memory": "-lmc", "cap": "-pl"},
    "GCN 3": {"engine": "sclk level", "memory": "mclk level", "cap": "overdrive"},
    "GCN 4": {"engine": "sclk level", "memory": "mclk level", "cap": "overdrive"},
    "GCN 5": {"engine": "sclk level", "memory": "mclk level", "cap": "overdrive"},
    "CDNA 1": {"engine": "sclk level", "memory": "mclk level", "cap": "overdrive"},
    "CDNA 2": {"engine": "determinism", "cap": "power-cap"},
    "CDNA 3": {"engine": "determinism", "cap": "power-cap"},
    "CDNA 4": {"engine": "determinism", "cap": "power-cap"},
    "RDNA 2": {"engine": "max sclk", "memory": "max mclk", "cap": "overdrive"},
    "RDNA 3": {"engine": "max sclk", "memory": "max mclk", "cap": "power-cap"},
    "RDNA 4": {"cap": "power-cap"},
}


def levers_of(device: Device) -> dict[str, str]:
    """The names in TEMPLATES by which 'engine', 'memory' and 'cap' of a GPU are set, if at all."""
    if device.vendor not in _CU_NOTES or device.is_jetson:
        return {}
    generation, number = f"{device.architecture} ?".split()[:2]
    if device.vendor == "AMD":  # 'GCN 5' of 'GCN 5.1 Vega 20', but 'RDNA 3.5' is not 'RDNA 3'
        number = number.split(".")[0] if generation == "GCN" else number
        generation = f"{generation} {number}"
    levers = LEVERS_OF_GENERATIONS.get(generation, {}).copy()
    if device.form_factor in ("laptop", "integrated"):  # it sets its limit itself
        levers.pop("cap", None)
    if device.is_consumer and levers.get("engine") == "-ac":
        return {"cap": "-pl"}
    return levers


class Commands(NamedTuple):
    """Shell commands in the order to run them: what sets, what resets, and what to know of it."""

    set: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __call__(self) -> NoReturn:
        """Say that these are values, to who calls them."""
        raise InputError("the commands are values: write .commands.set or .commands.reset")


def commands_for_clocks(advice: Advice, metadata: Mapping[str, Any]) -> Commands:
    """The commands for the clocks that an advice names for the whole run.

    metadata: of the profiles, which may name the GPU among several.
    """
    device, run = known_device(advice.device), advice.whole_run
    gpu, notes = _gpu(device, metadata, advice.workload.gpu_count)
    return _noted(clock_commands(device, run.best.config, run.base.config, gpu), notes)


def commands_for_cap(caps: "CapAdvice", metadata: Mapping[str, Any]) -> Commands:
    """The commands for the best power cap, as `commands_for_clocks`; a note where none helps."""
    if caps.best is None or not caps.helps:
        return Commands(notes=("nothing to set: the power cap stays as it is",))
    device, base = known_device(caps.runs.device), caps.runs.base.config
    gpu, notes = _gpu(device, metadata, caps.runs.supply.gpu_count)
    was_w = metadata.get("power_limit_w") or caps.runs.supply.cap_w
    commands = cap_commands(device, caps.best.cap_w, gpu, was_w)
    if caps.best.unlocks:
        lock = clock_commands(device, base, replace(base, engine_mhz=math.nan), gpu)
        to_set, to_reset = lock.reset + commands.set, commands.reset + lock.set
        commands = commands._replace(set=to_set, reset=to_reset)
        again = f"{'; '.join(lock.set)} is only for a clock that was locked; otherwise omit it"
        notes += [again if lock.set else "unlock the engine clock first, as you locked it"]
    if caps.runs.now_w is None and commands.reset:
        notes.append("the run drew more than this default: note your limit first, to restore it")
    if caps.lock_mhz is not None:
        lock = clock_commands(device, replace(base, engine_mhz=caps.lock_mhz), base, gpu)
        how = "; ".join(lock.set)
        notes += [f"better than the cap: {how}, undone by {'; '.join(lock.reset)}"] if how else []
    return _noted(commands, notes)


def commands_for_server_cap(log: Profiles, cap_w: float) -> Commands:
    """The commands for a power cap [W] of a server of that log."""
    if cap_w == log.power_cap_w:
        return Commands(notes=("nothing to set: the power cap stays as it is",))
    device, metadata = known_device(log.device), log.metadata
    gpu, notes = _gpu(device, metadata, log.gpu_count)
    was_w = metadata.get("power_limit_w") or log.power_cap_w
    return _noted(cap_commands(device, cap_w, gpu, was_w), notes)


def commands_for_further_run(profiles: Profiles, engine_mhz: float) -> Commands:
    """The commands for a further run of the profiles' work at an engine clock; notes on its GPU."""
    device, at = known_device(profiles.device), replace(profiles.base, engine_mhz=engine_mhz)
    gpu, notes = _gpu(device, profiles.metadata, profiles.gpu_count)
    return _noted(clock_commands(device, at, profiles.base, gpu)._replace(notes=()), notes)


def clock_commands(
    device: Device | None, best: HardwareConfig, base: HardwareConfig, gpu: str = "0"
) -> Commands:
    """What sets the clocks in which `best` differs from `base`, and what undoes that.

    device: None for a GPU that the device table does not know. gpu: which GPU of the machine, as
    the vendor's tool names it; several with commas between, each of which gets its commands.

    Example:
        >>> from mlscale.data.devices import load_device
        >>> best, base = HardwareConfig(108, 1110, 1593), HardwareConfig(108, 1410, 1593)
        >>> commands = clock_commands(load_device("a100-sxm4-80gb"), best, base)
        >>> commands.set, commands.reset
        (('nvidia-smi -i 0 -lgc 1110,1110',), ('nvidia-smi -i 0 -rgc',))
    """
    if best == base:
        return Commands(notes=(f"nothing to set: the advice is the base, {base}",))
    if device is None or device.vendor not in _CU_NOTES:
        return _commands(device, ["engine"], {})
    changed, notes = [], []
    if best.engine_mhz != base.engine_mhz:
        changed.append("engine")
    if best.memory_mhz != base.memory_mhz:
        if len(device.memory_clocks_mhz()) == 1:
            notes.append(f"{device.name} has one memory clock, which no command changes")
        elif device.slows_at_locked_memory:
            notes.append(_MEMORY_STAYS)
        else:
            changed.append("memory")
    if best.cu_count != base.cu_count:
        unknown = f"no known command sets {best.cu_axis}"
        notes.append(unknown if best.cu_axis else _CU_NOTES[device.vendor])
    memory_mhz = _listed_mhz(device, best.memory_mhz)
    values = {"gpu": gpu, "engine": f"{best.engine_mhz:.0f}", "memory": f"{memory_mhz:.0f}"}
    commands = _commands(device, changed, values) if changed else Commands()
    return commands._replace(notes=(*commands.notes, *notes))


def _listed_mhz(device: Device, memory_mhz: float) -> float:
    """The memory clock as the vendor's tool lists it."""
    clocks = device.memory_clocks_mhz()
    listed_mhz = min(clocks, key=lambda mhz: abs(mhz - memory_mhz), default=memory_mhz)
    return listed_mhz if abs(listed_mhz / memory_mhz - 1) < SAME_CLOCK else memory_mhz


def clock_templates(profiles: Profiles, memory_mhz: Sequence[float]) -> dict[str, Any]:
    """What sets any clocks of a run, for a page: lines that leave {engine} and {memory} [MHz] open.

    'engine' and 'memory' are what `clock_commands` says of one that is not the base's, empty where
    no command is known, and comments with what to put in them; 'memory_mhz' are these clocks as the
    vendor's tool lists them.
    """
    device, count = known_device(profiles.device), profiles.gpu_count
    if device is None:
        return {"engine": [], "memory": [], "memory_mhz": list(memory_mhz)}
    gpu, alike = _gpu(device, profiles.metadata, count)
    values = {"gpu": gpu, "engine": "{engine}", "memory": "{memory}"}
    lines = {}
    for lever in ("engine", "memory"):
        commands = _commands(device, [lever], values)
        notes = [note for note in commands.notes if "{" in note] + alike * (count > 1)
        lines[lever] = [*commands.set, *(f"# {note}" for note in notes)]
    if len(device.memory_clocks_mhz()) == 1 or device.slows_at_locked_memory:
        lines["memory"] = []
    return {**lines, "memory_mhz": [_listed_mhz(device, mhz) for mhz in memory_mhz]}


def cap_commands(
    device: Device | None, cap_w: float, gpu: str = "0", was_w: float = math.nan
) -> Commands:
    """What sets a power cap [W], and what sets the one of before again; gpu: see `clock_commands`.

    was_w: that cap [W]; where it is not known, the GPU's own.

    Example:
        >>> from mlscale.data.devices import load_device
        >>> commands = cap_commands(load_device("a100-sxm4-80gb"), 300)
        >>> commands.set, commands.reset
        (('nvidia-smi -i 0 -pl 300',), ('nvidia-smi -i 0 -pl 400',))
    """
    default_w = device.tdp_w if device else None
    values = {"gpu": gpu, "watts": f"{cap_w:g}", "default_watts": f"{default_w or 0:g}"}
    commands = _commands(device, ["cap"], values)
    if device is None or not commands.set:
        return commands
    notes = [*commands.notes]
    if not math.isnan(was_w):
        back = _commands(device, ["cap"], values | {"watts": f"{was_w:g}"})
        commands = commands._replace(reset=back.set)
    if device.is_half_a_module:
        notes.append("the cap is the module's, which has two of these dies")
    is_certain = default_w is not None and "tdp_w" not in device.unverified
    if device.vendor == "NVIDIA" and math.isnan(was_w) and not is_certain:
        limits = f"nvidia-smi -i {gpu.partition(',')[0]} -q -d POWER prints the limits of yours"
        notes.append(f"the default limit of {device.name} is not certain: {limits}")
        if default_w is None:
            commands = commands._replace(reset=())
    return commands._replace(notes=tuple(notes))


def _commands(device: Device | None, levers: Sequence[str], values: Mapping[str, str]) -> Commands:
    """The commands for some levers, each once; notes alone where one is not set by commands."""
    if device is None:
        return Commands(notes=("commands are known only for GPUs of the device table",))
    names = levers_of(device)
    if not set(levers) <= set(names):
        note = f"no known command sets the clocks or the cap of {device.name}"
        return Commands(notes=(note,))
    gpus = values["gpu"].split(",")
    persistence = _PERSISTENCE if len(gpus) == 1 else _PERSISTENCE.replace(" -i {gpu}", "")
    notes = [_ROOT, *([persistence] if device.vendor == "NVIDIA" else [])]
    to_set: list[str] = []
    to_reset: list[str] = []
    for lever in levers:
        set_by, reset_by, note = TEMPLATES[names[lever]]
        to_set += set_by.splitlines()
        to_reset += reset_by.splitlines()
        notes += note.splitlines()
    set_each, reset_each = (
        tuple(
            line.format(**{**values, "gpu": gpu}) for gpu in gpus for line in dict.fromkeys(lines)
        )
        for lines in (to_set, to_reset)
    )
    told = tuple(line.format(**{**values, "gpu": gpus[0]}) for line in dict.fromkeys(notes))
    return Commands(set_each, reset_each, told)


def _noted(commands: Commands, notes: Sequence[str]) -> Commands:
    """Commands with more notes; nothing needs them where nothing is set."""
    return commands._replace(notes=(*commands.notes, *notes)) if commands.set else commands


def _gpu(
    device: Device | None, metadata: Mapping[str, Any], gpu_count: int = 1
) -> tuple[str, list[str]]:
    """The GPU that a run's files name, or several with commas, by default 0, and notes on that.

    metadata: `gpus` are a log's, by the vendor's tool, `profiled_gpus` a profiler's. gpu_count: on
    how many the run was, whether the files name them or not.
    """
    logged, profiled = (_names(metadata.get(name)) for name in ("gpus", "profiled_gpus"))
    if len(logged) > 1:
        return ",".join(logged), []
    if gpu_count > 1:
        return (logged or ["0"])[0], [f"for one GPU; set all {gpu_count} alike"]
    if logged or not profiled:
        return (logged or ["0"])[0], []
    if device is not None and device.vendor == "AMD":
        note = (
            f"the profile calls its GPU {profiled[0]}, counting other devices too: replace 0 "
            "with its number in amd-smi list"
        )
        return "0", [note]
    note = f"GPU {profiled[0]} is the profiler's number: look up nvidia-smi's with nvidia-smi -L"
    return profiled[0], [note] if profiled[0] != "0" else []


def _names(said: Any) -> list[str]:
    """The GPUs that metadata name, each once; what is no number, UUID or bus id fits no shell."""
    named = map(str, said) if isinstance(said, list | tuple) else ()
    is_name = re.compile(r"[0-9A-Za-z][0-9A-Za-z:.-]{0,63}", re.ASCII).fullmatch
    return [gpu for gpu in dict.fromkeys(named) if is_name(gpu)]
