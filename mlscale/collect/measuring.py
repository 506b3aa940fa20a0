"""One kernel measured by kernel_tuner: its parameters, its observers, and the check of its result.

Needs kernel_tuner. `python -m mlscale.collect.measuring BACKEND SUITE KERNEL …` launches kernels
once each, for a profiler.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mlscale.collect.clocks import set_board
from mlscale.collect.device import DeviceInfo, find_device
from mlscale.collect.plan import Plan
from mlscale.collect.suite import Entry, select
from mlscale.collect.tuner import BenchmarkObserver, run_kernel, tune_kernel
from mlscale.errors import InputError

_SETTINGS = ("engine_mhz", "memory_mhz", "cap_w")
_LANGUAGES = {"cuda": "CUDA", "hip": "HIP", "opencl": "OpenCL"}


def _sensors(kind: str, power_s: float) -> Any:
    """kernel_tuner's observer of that kind, as DeviceInfo has it; of power over so many seconds."""
    if kind == "tegra":
        from kernel_tuner.observers.tegra import TegraObserver

        return TegraObserver([*(["tegra_power", "tegra_energy"] if power_s else []), "core_freq"])
    observed, seconds = ["core_freq", "mem_freq", "temperature"], power_s or 1
    if kind == "nvml":
        from kernel_tuner.observers.nvml import NVMLObserver

        return NVMLObserver(["nvml_power"] * bool(power_s) + observed, continuous_duration=seconds)
    from kernel_tuner.observers.amd import AMDSMIObserver

    observed += ["power", "energy"] if power_s else []
    return AMDSMIObserver(
        observed, use_continuous_observer=bool(power_s), continuous_duration=seconds
    )


class _Configuration(BenchmarkObserver):  # type: ignore[misc]
    """Sets the board for each configuration, and writes down how many CUs it really had."""

    def __init__(self, info: DeviceInfo) -> None:
        self._info = info
        self._settings: dict[str, int] = {}

    def register_configuration(self, params: dict[str, Any]) -> None:
        """Called before a configuration is timed."""
        settings = {name: params[name] for name in _SETTINGS if name in params}
        if settings != self._settings:
            set_board(self._info, settings)
        self._settings = settings

    def get_results(self) -> dict[str, Any]:
        """Called when it was timed."""
        if self._info.cu_axis == "green contexts":
            granted = getattr(self.dev, "assigned_sm_count", self._info.cu_count)
            return {"cu_count_granted": granted}
        if self._info.backend == "opencl":
            return {"cu_count_granted": self.dev.ctx.devices[0].max_compute_units}
        return {}


def parameters(entry: Entry, plan: Plan, info: DeviceInfo, cu_count: int) -> dict[str, list[Any]]:
    """What kernel_tuner varies; all combinations are measured."""
    share = round(100 * cu_count / info.cu_count, 4)
    return {
        "block_size_x": [entry.block],
        "repetition": list(range(plan.repeat)),
        "cu_count": [cu_count],
        **({"cuda_sm_percentage": [share]} if info.cu_axis == "green contexts" else {}),
        **{axis: list(values) for axis, values in plan.settings.items() if values},
    }


def measure(
    entry: Entry, plan: Plan, info: DeviceInfo, cu_count: int, cache: Path
) -> list[dict[str, Any]]:
    """Check, time and observe the kernel at every configuration that the cache does not have.

    Raises InputError where a configuration failed, and whatever kernel_tuner raises where the
    kernel cannot be compiled or run, or gives a wrong result.
    """
    case = entry.case()
    sensors = [_sensors(info.sensors, plan.power_s)] if info.sensors else []
    results, _ = tune_kernel(
        **_launch(entry, info, case.arguments),
        tune_params=parameters(entry, plan, info, cu_count),
        answer=[a if n in case.expected else None for n, a in enumerate(case.arguments)],
        verify=lambda answer, result, atol: case.error(result) <= case.tolerance,  # noqa: ARG005
        observers=[_Configuration(info), *sensors],
        cache=str(cache),
    )
    for result in results:
        if "__error__" in result:
            raise InputError(str(result["__error__"]))
    return list(results)


def _launch(entry: Entry, info: DeviceInfo, arguments: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "kernel_name": entry.name,
        "kernel_source": entry.text,
        "problem_size": entry.threads,
        "grid_div_x": ["block_size_x"],
        "arguments": [np.ascontiguousarray(a) if a.shape else a for a in arguments],
        "lang": _LANGUAGES[info.backend],
        "defines": {"KERNEL": entry.name, **entry.macros},
        "platform": info.platform,
        "device": info.place,
        "quiet": True,
    }


def main(backend: str, suite: str, kernels: Sequence[str]) -> None:
    """Launch each kernel once, on all CUs and at the clocks as they are."""
    info = find_device(backend)
    for entry in select(suite, kernels, backend):
        launch = _launch(entry, info, entry.case().arguments)
        run_kernel(**launch, params={"block_size_x": entry.block})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
