"""One kernel measured by kernel_tuner: its parameters, its observers, and the check of its result.

Needs kernel_tuner. `python -m mlscale.collect.measuring BACKEND SUITE KERNEL …` launches kernels
once each, for a profiler.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mlscale.collect.clocks import set_board
from mlscale.collect.device import DeviceInfo, device_at_hand, nvml_board
from mlscale.collect.plan import Entry, Plan, select
from mlscale.errors import InputError

# kernel_tuner would import torch for tensors as arguments, which takes seconds; here are none.
_modules: dict[str, Any] = sys.modules
_modules.setdefault("torch", None)
try:
    from kernel_tuner import run_kernel, tune_kernel
    from kernel_tuner.observers import BenchmarkObserver
finally:
    if _modules["torch"] is None:
        del _modules["torch"]


def _sensors(device: DeviceInfo, power_s: float) -> list[Any]:
    """kernel_tuner's observer of the device's sensors, if any; of power over so many seconds."""
    observed = ["core_freq", "mem_freq", "temperature"]
    if device.sensors == "amdsmi":
        from kernel_tuner.observers.amd import AMDSMIObserver

        window = {"use_continuous_observer": bool(power_s), "continuous_duration": power_s}
        return [AMDSMIObserver([*observed, *(["power"] if power_s else [])], **window)]
    if device.sensors == "nvml":
        import pynvml
        from kernel_tuner.observers.nvml import NVMLObserver

        place = pynvml.nvmlDeviceGetIndex(nvml_board(device.uuid))
        observer = NVMLObserver([*observed, *(["nvml_power"] if power_s else [])], device=place)
    elif device.sensors == "tegra":
        from kernel_tuner.observers.tegra import TegraObserver

        observer = TegraObserver(["core_freq", *(["tegra_power"] if power_s else [])])
    else:
        return []
    if power_s:
        observer.continuous_observer.continuous_duration = power_s
        observer.after_start = partial(_read_at_once, observer, observer.after_start)
    return [observer]


def _read_at_once(observer: Any, after_start: Callable[[], None]) -> None:
    """Read the power when the launches end; kernel_tuner does not, where they are longer."""
    after_start()
    observer.continuous_observer.power_readings.append([0.0, observer.read_power()])


class _Configuration(BenchmarkObserver):  # type: ignore[misc]
    """Sets the board for each configuration, and says how many CUs it really had.

    How it mends kernel_tuner 1.5.0 on the way: docs/decisions/0010-collecting.md.
    """

    def __init__(self, plan: Plan) -> None:
        self._device, self._varied = plan.device, plan.settings
        self._settings: dict[str, int] = {}

    def register_device(self, dev: Any) -> None:
        """Let copies wait for the kernel, which the stream of a green context does not."""
        super().register_device(dev)
        if self._device.cu_axis == "green contexts":
            for copy in ("memcpy_dtoh", "memcpy_htod"):
                setattr(dev, copy, partial(_copy_alone, dev.synchronize, getattr(dev, copy)))

    def register_configuration(self, params: dict[str, Any]) -> None:
        """Set the board, and from now on time launches behind another."""
        settings = {name: params[name] for name in self._varied if name in params}
        if settings != self._settings:
            set_board(self._device, settings)
        self._settings = settings
        if self._device.backend != "opencl":
            self.dev.run_kernel = partial(_run_behind_another, self.dev, self.dev.run_kernel)

    def get_results(self) -> dict[str, Any]:
        """The CUs that the configuration had, where the driver says it."""
        self.dev.__dict__.pop("run_kernel", None)
        if self._device.backend == "opencl":
            return {"cu_count_granted": self.dev.ctx.devices[0].max_compute_units}
        if self._device.cu_axis != "green contexts":
            return {}
        return {"cu_count_granted": getattr(self.dev, "assigned_sm_count", self._device.cu_count)}


def _copy_alone(synchronize: Callable[[], None], copy: Callable[..., None], *given: Any) -> None:
    synchronize()
    copy(*given)
    synchronize()


def _run_behind_another(dev: Any, run: Callable[..., None], *given: Any) -> None:
    """Launch twice, and time the second: for the first the device waits some 10 us, by Python."""
    run(*given)
    dev.start_event()
    run(*given)


def parameters(entry: Entry, plan: Plan, cu_count: int) -> dict[str, list[Any]]:
    """What kernel_tuner varies; all combinations are measured."""
    varied = {"block_size_x": [entry.block], "repetition": [*range(plan.repeat)]}
    varied["cu_count"] = [cu_count]
    if plan.device.cu_axis == "green contexts":
        varied["cuda_sm_percentage"] = [round(100 * cu_count / plan.device.cu_count, 4)]
    return varied | {axis: list(values) for axis, values in plan.settings.items() if values}


def measure(entry: Entry, plan: Plan, cu_count: int, cache: Path) -> list[dict[str, Any]]:
    """Check, time and observe the kernel at every configuration that the cache does not have.

    Raises InputError where a configuration failed, and whatever kernel_tuner raises where the
    kernel cannot be compiled or run, or gives a wrong result.
    """
    case, device = entry.case(), plan.device
    if device.backend == "cuda":
        gc.collect()  # else kernel_tuner's last run would hold its memory of the device
    results, _ = tune_kernel(
        **_launch(entry, device, case.arguments),
        tune_params=parameters(entry, plan, cu_count),
        answer=[a if n in case.expected else None for n, a in enumerate(case.arguments)],
        verify=lambda answer, result, atol: case.error(result) <= case.tolerance,  # noqa: ARG005
        observers=[_Configuration(plan), *_sensors(device, plan.power_s)],
        cache=str(cache),
    )
    for result in results:
        if "__error__" in result:
            raise InputError(str(result["__error__"]))
    return list(results)


def _launch(entry: Entry, device: DeviceInfo, arguments: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "kernel_name": entry.name,
        "kernel_source": entry.text,
        "problem_size": entry.threads,
        "grid_div_x": ["block_size_x"],
        "arguments": [*arguments],
        "lang": device.backend,
        "defines": {"KERNEL": entry.name, **entry.macros},
        "platform": device.platform,
        "device": device.place,
        "quiet": True,
    }


def main(backend: str, suite: str, kernels: Sequence[str]) -> None:
    """Launch each kernel once, on all CUs and at the clocks as they are."""
    device = device_at_hand(backend)
    os.environ.update(device.environment(device.cu_count))
    for entry in select(suite, kernels, backend):
        launch = _launch(entry, device, entry.case().arguments)
        run_kernel(**launch, params={"block_size_x": entry.block})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
