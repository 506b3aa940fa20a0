"""One kernel measured by kernel_tuner: its parameters, its observers, and the check of its result.

Needs kernel_tuner, which is patched from outside: docs/decisions/0010-collecting.md says how, and
why. `python -m mlscale.collect.measuring BACKEND SUITE KERNEL …` launches kernels for a profiler.
"""

import gc
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from math import ceil
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from mlscale.collect.cases import Case
from mlscale.collect.device import DeviceInfo, device_at_hand
from mlscale.collect.plan import Entry, Plan, select
from mlscale.errors import InputError
from mlscale.sensors.boards import board_by_uuid
from mlscale.sensors.clocks import set_board

# kernel_tuner would import torch and CuPy for arguments of their types, which takes seconds; here
# are none.
_modules: dict[str, Any] = sys.modules
_modules.setdefault("torch", None)
try:
    from kernel_tuner import core, run_kernel, tune_kernel
    from kernel_tuner.observers import BenchmarkObserver
    from kernel_tuner.runners import sequential
finally:
    if _modules["torch"] is None:
        del _modules["torch"]

# Launches that are timed, and fewer where one takes so long; before a short one others, so many
# that the device is at work meanwhile: by Python a launch takes some 20 us.
_TIMED, _TIMED_LONG, _LONG_S = 7, 3, 0.1
_SHORT_S, _AHEAD_S = 1e-3, 5e-4
# A sensor shows its board some 0.1 s later, and is read anew every 10 ms.
_SETTLE_S, _PERIOD_S = 0.1, 0.01


class _Device(core.DeviceInterface):  # type: ignore[misc]
    """kernel_tuner's device: it times short launches behind others, and reads power throughout."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.requires_warmup = False  # which measures the first configuration twice

    def check_kernel_output(self, func: Any, gpu_args: Any, instance: Any, *given: Any) -> None:
        """Check it on as many SMs as it is timed on."""
        if (share := instance.params.get("cuda_sm_percentage")) is not None:
            self.dev.set_sm_percentage(share)
        super().check_kernel_output(func, gpu_args, instance, *given)

    def benchmark_default(
        self, func: Any, gpu_args: Any, threads: Any, grid: Any, result: dict[str, Any]
    ) -> None:
        """Time the kernel alone; before that, a launch says how long one takes."""
        launch = partial(self.dev.run_kernel, func, gpu_args, threads, grid)
        self.dev.synchronize()
        begin = perf_counter()
        launch()
        self.dev.synchronize()
        took_s = perf_counter() - begin
        is_short = took_s < _SHORT_S and self.lang.upper() != "OPENCL"
        ahead = ceil(_AHEAD_S / took_s) if is_short else 0
        for _ in range(_TIMED_LONG if took_s > _LONG_S else _TIMED):
            for observer in self.benchmark_observers:
                observer.before_start()
            self.dev.synchronize()
            for _ in range(ahead):
                launch()
            self.dev.start_event()
            launch()
            self.dev.stop_event()
            for observer in self.benchmark_observers:
                observer.after_start()
            while not self.dev.kernel_finished():
                for observer in self.benchmark_observers:
                    observer.during()
                sleep(1e-6)
            self.dev.synchronize()
            for observer in self.benchmark_observers:
                observer.after_finish()
        for observer in self.benchmark_observers:
            result.update(observer.get_results())

    def benchmark_continuous(
        self,
        func: Any,
        gpu_args: Any,
        threads: Any,
        grid: Any,
        result: dict[str, Any],
        duration: float,
    ) -> None:
        """Run the kernel in a loop, and read the sensors while it is launched, not only after."""
        observers, run = self.continuous_observers, self.dev.run_kernel
        self.dev.synchronize()
        for observer in observers:
            observer.before_start()
        self.dev.start_event()
        due = perf_counter() + _SETTLE_S
        for launch in range(ceil(1e3 * duration / result["time"])):
            run(func, gpu_args, threads, grid)
            if launch == 0:
                for observer in observers:
                    observer.after_start()
            due = _read_if_due(observers, due)
        self.dev.stop_event()
        while not self.dev.kernel_finished():
            due = _read_if_due(observers, due)
            sleep(1e-3)
        self.dev.synchronize()
        for observer in observers:
            observer.after_finish()
            result.update(observer.get_results())


def _read_if_due(observers: Sequence[Any], due: float) -> float:
    """Let the observers read where it is time; when it is time again."""
    now = perf_counter()
    if now < due:
        return due
    for observer in observers:
        observer.during()
    return now + _PERIOD_S


class _SecondLaunchCounted(_Device):
    """It launches twice, and lets ncu see the second: with warm caches, as times are taken."""

    def run_kernel(self, func: Any, gpu_args: Any, instance: Any) -> bool:
        """Launch it. False where the device has too few resources for it."""
        from cuda.bindings import driver

        done = super().run_kernel(func, gpu_args, instance)
        self.dev.synchronize()
        driver.cuProfilerStart()
        done = done and super().run_kernel(func, gpu_args, instance)
        self.dev.synchronize()
        driver.cuProfilerStop()
        return bool(done)


sequential.DeviceInterface = _Device
core._get_cupy = lambda: None  # noqa: SLF001


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

        def refused(*_: Any) -> None:
            raise pynvml.NVMLError_NotSupported

        # Clocks that nothing here uses; new drivers refuse with an error that it lets through.
        pynvml.nvmlDeviceGetDefaultApplicationsClock = refused
        place = int(board_by_uuid(device.uuid).index)
        observer = NVMLObserver([*observed, *(["nvml_power"] if power_s else [])], device=place)
    elif device.sensors == "tegra":
        from kernel_tuner.observers.tegra import TegraObserver

        observer = TegraObserver(["core_freq", *(["tegra_power"] if power_s else [])])
    else:
        return []
    if power_s:
        observer.continuous_observer.continuous_duration = power_s
    return [observer]


class _Configuration(BenchmarkObserver):  # type: ignore[misc]
    """Sets the board for each configuration, and says how many CUs it really had."""

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
        """Set the board; not by kernel_tuner: docs/decisions/0010-collecting.md."""
        settings = {name: params[name] for name in self._varied if name in params}
        if settings != self._settings:
            set_board(board_by_uuid(self._device.uuid), settings)
        self._settings = settings

    def get_results(self) -> dict[str, Any]:
        """The CUs that the configuration had, where the driver says it."""
        if self._device.backend == "opencl":
            return {"cu_count_granted": self.dev.ctx.devices[0].max_compute_units}
        if self._device.cu_axis != "green contexts":
            return {}
        return {"cu_count_granted": getattr(self.dev, "assigned_sm_count", self._device.cu_count)}


def _copy_alone(synchronize: Callable[[], None], copy: Callable[..., None], *given: Any) -> None:
    synchronize()
    copy(*given)
    synchronize()


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
    case, device = _case(entry), plan.device
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


def _case(entry: Entry) -> Case:
    """That of the kernel, which is kept for its next number of CUs: to make one takes seconds."""
    if entry.name not in _made:
        _made.clear()
        _made[entry.name] = entry.case()
    return _made[entry.name]


_made: dict[str, Case] = {}


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
    """Launch each kernel on all CUs and at the clocks as they are: twice by CUDA, else once.

    What fails is printed, and the others are launched.
    """
    device, plain = device_at_hand(backend), core.DeviceInterface
    os.environ.update(device.environment(device.cu_count))
    if backend == "cuda":
        core.DeviceInterface = _SecondLaunchCounted
    for entry in select(suite, kernels, backend):
        gc.collect()  # else the kernel before would hold its memory of the device
        try:
            launch = _launch(entry, device, entry.case().arguments)
            run_kernel(**launch, params={"block_size_x": entry.block})
        except Exception as error:  # the other kernels go on
            print(f"{entry.name}: {error}", file=sys.stderr)
    core.DeviceInterface = plain


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
