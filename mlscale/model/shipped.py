"""The shipped models: which of them answers for a profile, and on which clocks.

A model that learnt from other GPUs is turned to the GPU of the profile: it predicts at the clocks
that this GPU offers, as far down as the training tables went from their highest.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlscale.arrays import distinct
from mlscale.counters.kernel_use import device_with_peaks, tells_traffic
from mlscale.data.checks import check_named_clocks, notes_on
from mlscale.data.datasets import path
from mlscale.data.devices import Device, find_device
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.logs import is_sampled
from mlscale.data.profiles import Profiles
from mlscale.errors import InputError
from mlscale.model.model import Model, load
from mlscale.model.unprofiled import refuse_times_alone
from mlscale.notes import Note
from mlscale.predictors.base import HasFeatures, PredictsOtherGpus

KERNELS = "kernels.mlscale"  # for any GPU, by a profiler's counters
RUNS = "runs.mlscale"  # for any GPU, by times and powers at one or more engine clocks
OF_ITS_DEVICE = {"simulated-gcn3": "simulated-gcn3.mlscale"}
LEAST_CU_SHARE = 0.06  # down to which time over CU counts was checked: 8 of 132
BEYOND = 0.05  # by which a clock may be above the highest that is known of a GPU
FARTHEST = 1.5  # times beyond the trained settings that is predicted where no target is given
_AT_HIGHEST = 0.995  # a memory clock from here on is the highest: profilers print it rounded
EVEN_STEPS = 100  # tried on a GPU whose list of engine clocks is not known


def shipped_model(profiles: Profiles) -> tuple[str, Model]:
    """Choose the shipped model for profiles: its file name and itself, not yet turned to their GPU.

    RUNS for runs that a monitor sampled, for kernels that a trace knows by their time alone, and
    for those that were counted without the DRAM's traffic or on a GPU whose peaks are not known,
    and for those read at other CU counts; from one reading it gives bounds of time alone.

    Example:
        name, model = shipped_model(profiles)
        predictions = model_for(model, profiles).predict(profiles)
    """
    is_of_runs = is_sampled(profiles.metadata) or profiles.are_times_alone
    if is_of_runs or _is_over_cus(profiles) or not tells_traffic(profiles):
        name = RUNS
    else:
        name = OF_ITS_DEVICE.get(profiles.device, KERNELS)
    return name, load(path(name))


def choice_note(name: str, model: Model, profiles: Profiles) -> Note:
    """Say which shipped model was chosen, and what it does not know of the GPU."""
    note = f"the shipped model {name} was chosen for {profiles.device}"
    device = find_device(profiles.device)
    if device is None and name == RUNS:
        note += (
            ", which is not in the device table: mlscale tries even steps up to the highest "
            "clock measured, some of which the GPU may not accept"
        )
    elif name in (KERNELS, RUNS) and device and not device.engine_clocks_mhz():
        note += (
            ", whose clocks the device table does not list: mlscale tries even steps, some of "
            "which the GPU may not accept"
        )
    others = model.card.get("other_vendors")
    if others and device is not None and device.vendor != "NVIDIA":
        note += f"; it was trained only on NVIDIA GPUs, and {others}"
    return Note("P08", note)


def extrapolations(model: Model, has_points: bool) -> list[Note]:
    """Tell of settings of a model's grid beyond those that its training speaks for.

    has_points: whether there are readings at further clocks; without, times are bounds, which are
    no wider there.
    """
    is_bounded = model.lead.name == "runs" and not has_points
    trained = model.trained_range
    told: list[Note] = []
    for axis in AXES if trained else ():
        known, steps = getattr(trained, axis), getattr(model.grid, axis)
        for asked in dict.fromkeys((steps[0], steps[-1])):
            told += notes_on("setting", axis, asked, known[0], known[-1], not is_bounded)
    return told


def model_for(
    model: Model,
    profiles: Profiles,
    targets: Sequence[HardwareConfig] = (),
    peaks: Profiles | None = None,
    extrapolate: bool = False,
    force: bool = False,
) -> Model:
    """The model as it is where it fits the profiles' GPU and base, else turned to them.

    targets: where to predict that GPU, by default at the clocks that it offers; peaks: see
    `Model.for_gpu`. extrapolate: beyond the trained settings too, at the targets, or by default
    at what the GPU offers up to FARTHEST times beyond. force: see `Model.for_gpu`. Raises
    InputError where the predictor of time cannot predict another GPU, the peaks of the GPU are not
    known, a clock is above what it reaches, the profiles are times alone, a point of theirs has
    other CUs than the model's grid, or the model learnt from simulated data of another GPU.
    """
    if (model.device, model.base) != (profiles.device, profiles.base):
        model = _turned(model, profiles, targets, peaks, extrapolate, force)
    else:
        for target in targets:
            check_named_clocks(find_device(model.device), target.as_dict(), model.grid)
        asked = (targets or _offered_beyond(model, profiles)) if extrapolate else ()
        model = model.extrapolating([*asked, *_with_readings(model.grid, profiles)])
    grid = model.grid
    for point in profiles.points:
        if not grid.spans(point.config):
            raise InputError(
                f"{point.source}: {point.config} is outside the model's grid, {grid.bounds}; "
                "measure within it"
            )
    return model


def _turned(
    model: Model,
    profiles: Profiles,
    targets: Sequence[HardwareConfig],
    peaks: Profiles | None,
    extrapolate: bool,
    force: bool,
) -> Model:
    """The model turned to the profiles' GPU and base; see `model_for`. Raises InputError."""
    predictor, base = model.lead, profiles.base
    if not isinstance(predictor, PredictsOtherGpus):
        raise InputError(
            f"the model is of {model.device} at {model.base}, the profile of {profiles.device} at "
            f"{base}; '{predictor.name}' predicts no other GPU and base"
        )
    if isinstance(predictor, HasFeatures):
        refuse_times_alone(profiles)
        device: Device | None = device_with_peaks(profiles.device)
    else:
        device = find_device(profiles.device)
    trained = predictor.trained_grids()
    fastest_mhz = max(config.engine_mhz for config in _measured(profiles))
    if device and profiles.points:
        fastest_mhz = min(fastest_mhz, max(_clocks(device)["engine_mhz"], default=fastest_mhz))
    highest = replace(base, engine_mhz=fastest_mhz)
    is_over_cus = _is_over_cus(profiles)
    grid = usual = (
        _offered_counts(device, profiles) if is_over_cus else offered_grid(device, highest, trained)
    )
    if targets:
        _require_reachable(device, usual, targets)
        around = usual if profiles.points else ()  # a point moves the curve over all clocks
        grid = ConfigGrid.spanning([base, *targets, *around])
    elif extrapolate and not is_over_cus:
        grid = offered_grid(device, highest, trained, FARTHEST)
    asked, grid = grid, _with_readings(grid, profiles)
    turned = model.for_gpu(profiles.device, grid, base, peaks, force)
    return replace(turned, trained_range=_trained_range(grid, asked, usual, trained))


def _with_readings(grid: ConfigGrid, profiles: Profiles) -> ConfigGrid:
    """A grid with the base, the readings' clocks, and all that is offered between them."""
    device = find_device(profiles.device)
    offered = {} if device is None else _clocks(device)
    axes: dict[str, Any] = {}
    for axis in AXES[1:]:
        steps = getattr(grid, axis)
        base, *read = (getattr(config, axis) for config in _measured(profiles))
        low, high = min([base, *read]), max([base, *read])
        between = {mhz for mhz in offered.get(axis, ()) if low <= mhz <= high}
        axes[axis] = tuple(sorted({*steps, base, *read, *between}))
    return ConfigGrid(grid.cu_count, **axes)


def _measured(profiles: Profiles) -> list[HardwareConfig]:
    """Where kernels were measured: at the base, and at the further points."""
    return [profiles.base, *(point.config for point in profiles.points)]


def _is_over_cus(profiles: Profiles) -> bool:
    """Whether there are readings at other CU counts."""
    return any(point.config.cu_count != profiles.base.cu_count for point in profiles.points)


def _offered_counts(device: Device | None, profiles: Profiles) -> ConfigGrid:
    """All CU counts of a GPU from LEAST_CU_SHARE of them, and those read, at the readings' clocks.

    Of an unknown GPU up to the most that was read.
    """
    read = _measured(profiles)
    most = device.cu_count if device else max(config.cu_count for config in read)
    counts = range(math.ceil(LEAST_CU_SHARE * most), most + 1)
    return ConfigGrid.spanning([*read, *(replace(profiles.base, cu_count=n) for n in counts)])


def _trained_range(
    grid: ConfigGrid, asked: ConfigGrid, usual: ConfigGrid, trained: Sequence[ConfigGrid]
) -> ConfigGrid | None:
    """What training speaks for on another GPU's grid, None where the grid stays within.

    From the least of its highest clock that training knows to the highest offered or asked for.
    """
    axes: dict[str, Any] = {"cu_count": grid.cu_count}
    for axis in AXES[1:]:
        first, highest = getattr(usual, axis)[0], getattr(usual, axis)[-1]
        lowest = min(round(_least_share(trained, axis) * highest), first)
        axes[axis] = tuple(sorted({lowest, highest, max(highest, getattr(asked, axis)[-1])}))
    known = ConfigGrid(**axes)
    return None if all(map(known.spans, grid)) else known


def _least_share(trained: Sequence[ConfigGrid], axis: str) -> float:
    """The lowest clock of any training table as a share of its highest."""
    return float(min(getattr(grid, axis)[0] / getattr(grid, axis)[-1] for grid in trained))


def _require_reachable(
    device: Device | None, usual: ConfigGrid, targets: Sequence[HardwareConfig]
) -> None:
    """Raise InputError on a clock that the GPU does not reach, or far below all of its clocks."""
    for target in targets:
        check_named_clocks(device, target.as_dict(), usual)
    for axis in AXES[1:]:
        highest = getattr(usual, axis)[-1]
        if device is not None and device.datasheet is not None:
            highest = max(highest, getattr(device.datasheet, axis))
        most = max(getattr(target, axis) for target in targets)
        if most > (1 + BEYOND) * highest:
            what = device.key if device else "the run"
            raise InputError(f"{axis} {most:g} is above what {what} reaches, {highest:g}")


def _offered_beyond(model: Model, profiles: Profiles) -> list[HardwareConfig]:
    """What a GPU offers beyond the model's grid, at most FARTHEST times; none of an unknown GPU."""
    device = find_device(profiles.device)
    if device is None:
        return []
    offered: dict[str, tuple[float, ...]] = _clocks(device)
    if len(model.grid.cu_count) > 1:
        offered["cu_count"] = (device.cu_count,)
    configs = []
    for axis, steps in offered.items():
        trained = getattr(model.grid, axis)
        near = [step for step in steps if trained[0] / FARTHEST <= step <= trained[-1] * FARTHEST]
        settings = [profiles.base.as_dict() | {axis: step} for step in near]
        configs += [HardwareConfig(**setting) for setting in settings]  # type: ignore[arg-type]
    return configs


def offered_grid(
    device: Device | None, base: HardwareConfig, trained: Sequence[ConfigGrid], beyond: float = 1.0
) -> ConfigGrid:
    """Span the clocks that a GPU offers around the base of its profiles.

    device: None for even steps up to the base's engine clock, at the base's memory clock.
    trained: the grids of the training tables. No clock is lower, as a share of the GPU's highest,
    than the lowest of any table is of its own, divided by `beyond`. What no table varies, as the
    CU count, is the base's.
    """
    if device is None:
        clocks = {"engine_mhz": _even_steps(base.engine_mhz), "memory_mhz": (base.memory_mhz,)}
    else:
        clocks = _clocks(device)
        clocks["memory_mhz"] = _for_cuda(device, base.memory_mhz, clocks["memory_mhz"])
    axes: dict[str, Any] = {}
    for axis, offered in clocks.items():
        at_base = getattr(base, axis)
        is_varied = any(len(getattr(grid, axis)) > 1 for grid in trained)
        steps = np.array([*(offered if is_varied else ()), at_base])
        lowest = _least_share(trained, axis) / beyond * steps.max()
        axes[axis] = tuple(distinct(steps[(steps >= lowest) | (steps == at_base)]).tolist())
    return ConfigGrid((base.cu_count,), **axes)


def _clocks(device: Device) -> dict[str, tuple[float, ...]]:
    """By axis the clocks that a GPU offers [MHz].

    Where those of the engine are not listed, even steps up to the highest that is known.
    """
    engine_mhz = device.engine_clocks_mhz()
    if not engine_mhz:
        known = [device.max_clock_mhz, device.datasheet and device.datasheet.engine_mhz]
        highest = max((clock for clock in known if clock), default=0.0)
        engine_mhz = _even_steps(highest) if highest else ()
    return {"engine_mhz": engine_mhz, "memory_mhz": device.settable_memory_mhz()}


def _for_cuda(device: Device, base_mhz: float, memory_mhz: tuple[float, ...]) -> tuple[float, ...]:
    """The memory clocks that a CUDA program can be given, on a GPU on which one ran at base_mhz."""
    highest = max(memory_mhz, default=0.0)
    if not device.is_consumer or base_mhz > _AT_HIGHEST * highest:
        return memory_mhz
    return tuple(clock for clock in memory_mhz if clock < highest)


def _even_steps(highest_mhz: float) -> tuple[float, ...]:
    return tuple(np.round(np.linspace(highest_mhz / EVEN_STEPS, highest_mhz, EVEN_STEPS)).tolist())
