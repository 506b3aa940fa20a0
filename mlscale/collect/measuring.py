"""One kernel measured by kernel_tuner: its parameters, its observers, and the check of its result.

Runs in a worker's process; needs kernel_tuner.
"""

from pathlib import Path
from typing import Any

import numpy as np
from kernel_tuner import run_kernel, tune_kernel
from kernel_tuner.observers import BenchmarkObserver

from mlscale.collect.device import DeviceInfo
from mlscale.collect.entries import Entry
from mlscale.collect.plan import ITERATIONS
from mlscale.collect.sensors import SENSORS
from mlscale.errors import InputError

_LANGUAGES = {"cuda": "CUDA", "hip": "HIP", "opencl": "OpenCL"}


class _UsedUnits(BenchmarkObserver):  # type: ignore[misc]
    """Writes down how many CUs a sample really had, as far as the backend knows."""

    def __init__(self, info: DeviceInfo) -> None:
        self._info = info

    def get_results(self) -> dict[str, Any]:
        """Of the sample that was just taken."""
        if self._info.backend == "opencl":
            return {"cu_count_observed": self.dev.ctx.devices[0].max_compute_units}
        if self._info.cu_axis == "green contexts":
            return {
                "cu_count_observed": getattr(self.dev, "assigned_sm_count", self._info.cu_count)
            }
        return {}


def parameters(entry: Entry, job: dict[str, Any], info: DeviceInfo) -> dict[str, list[Any]]:
    """What kernel_tuner varies, by its names; all combinations are measured."""
    varied: dict[str, list[Any]] = {
        "block_size_x": [entry.block],
        "repetition": list(range(job["repeat"])),
    }
    if info.cu_axis == "green contexts":
        varied["cuda_sm_percentage"] = [
            round(100 * count / info.cu_count, 4) for count in job["cu_counts"]
        ]
    else:
        varied["cu_count"] = list(job["cu_counts"])
    settings = SENSORS[info.sensors].settings if info.sensors else {}
    return varied | {name: list(job[axis]) for axis, name in settings.items() if job[axis]}


def measure(entry: Entry, job: dict[str, Any], cache: Path, simulation: bool = False) -> list[Any]:
    """Check, time and observe the kernel at every configuration that the cache does not have.

    simulation: play the cache back. Raises InputError where the result is wrong; whatever
    kernel_tuner raises where the kernel cannot be compiled or run.
    """
    info = DeviceInfo(**job["info"])
    case = entry.case()
    errors: list[float] = []

    def verify(answer: Any, result: Any, atol: Any) -> bool:  # noqa: ARG001
        errors.append(case.error(result))
        return errors[-1] <= case.tolerance

    varied = parameters(entry, job, info)
    holds = any(job[axis] for axis in ("engine_mhz", "memory_mhz", "power_limits_w"))
    observers = [_UsedUnits(info)]
    if info.sensors and not simulation:
        observers.append(SENSORS[info.sensors].observer(job["power_s"], holds))
    try:
        results, _ = tune_kernel(
            **_launch(entry, info, case.arguments),
            tune_params=varied,
            answer=[a if n in case.expected else None for n, a in enumerate(case.arguments)],
            verify=verify,
            iterations=ITERATIONS,
            observers=observers,
            cache=str(cache),
            simulation_mode=simulation,
        )
    except RuntimeError as error:
        if errors and not errors[-1] <= case.tolerance:
            raise InputError(
                f"gives a wrong result: off by {errors[-1]:.1e}, {case.tolerance:.1e} is accepted"
            ) from None
        raise error from None
    return list(results)


def launch(entry: Entry, info: DeviceInfo) -> None:
    """Launch the kernel once, on all CUs and at the clocks as they are, for a profiler."""
    parameters = {"block_size_x": entry.block}
    run_kernel(**_launch(entry, info, entry.case().arguments), params=parameters)


def _launch(entry: Entry, info: DeviceInfo, arguments: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "kernel_name": entry.name,
        "kernel_source": entry.text,
        "problem_size": entry.threads,
        "grid_div_x": ["block_size_x"],
        "arguments": [np.ascontiguousarray(a) if a.shape else a for a in arguments],
        "lang": _LANGUAGES[info.backend],
        "defines": {"KERNEL": entry.name, **dict(entry.macros)},
        "platform": info.platform,
        "device": info.place,
        "quiet": True,
    }
