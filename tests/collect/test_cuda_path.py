"""The CUDA path through kernel_tuner's own backend, on a made GPU (`synthetic/cuda_gpu.py`).

kernel_tuner's code runs as it is; only NVIDIA's packages are stand-ins. The expected times are
those of the made GPU.
"""

import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command import Capture, succeed
from synthetic import cuda_gpu

from mlscale.collect import cases, device, recording
from mlscale.collect.device import device_at_hand
from mlscale.collect.plan import Plan, cu_counts, select
from mlscale.collect.running import cache_file
from mlscale.errors import DataWarning, InputError

pytest.importorskip("kernel_tuner", reason="the extra 'collect' is not installed")
from mlscale.collect import measuring

AS_IT_IS: dict[str, tuple[int, ...]] = {"engine_mhz": (), "memory_mhz": (), "cap_w": ()}
_CUDA_MODULES = [
    "kernel_tuner.utils.nvcuda", "kernel_tuner.observers.nvcuda", "kernel_tuner.backends.nvcuda",
    "kernel_tuner.observers.nvml",
]  # fmt: skip


def copies(source: Any, target: Any, count: int) -> None:
    """The kernel `copy`."""
    target[: 4 * count] = source[: 4 * count]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[cuda_gpu.Gpu]:
    made = cuda_gpu.Gpu(copies)
    bindings = {
        "driver": cuda_gpu.Driver(made),
        "runtime": cuda_gpu.Runtime(made),
        "nvrtc": cuda_gpu.Nvrtc(),
    }
    modules = {name: cuda_gpu.module(name, content) for name, content in bindings.items()}
    package = cuda_gpu.module("cuda.bindings", type("", (), modules))
    for name, content in {
        "cuda": cuda_gpu.module("cuda", type("", (), {"bindings": package})),
        "cuda.bindings": package,
        **{f"cuda.bindings.{name}": content for name, content in modules.items()},
        "pynvml": cuda_gpu.module("pynvml", cuda_gpu.Nvml(made)),
    }.items():
        monkeypatch.setitem(sys.modules, name, content)
    monkeypatch.setattr(device, "find_spec", lambda _: True)
    for name in _CUDA_MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in _CUDA_MODULES:
        importlib.import_module(name)
    return made


@pytest.fixture
def measured(gpu: cuda_gpu.Gpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function: the samples of a copy of 1000 numbers at 8 and at all SMs, twice each."""
    monkeypatch.setattr(measuring, "perf_counter", lambda: gpu.now_us / 1e6)
    monkeypatch.setattr(measuring, "_made", {})
    (tmp_path / "cache").mkdir()
    monkeypatch.chdir(tmp_path)  # kernel_tuner leaves the source of what fails

    def measure(power_s: float = 1.0, repeat: int = 2) -> Any:
        info = device_at_hand("cuda")
        [copy] = select("small", ["copy"], "cuda")
        entry = replace(copy, threads=1000, case=partial(cases._moved, n=1000))
        plan = Plan("small", info, (entry,), (8, 132), AS_IT_IS, repeat, power_s)
        for count in plan.cu_counts:
            path = cache_file(tmp_path, entry.name, count)
            measuring.measure(entry, plan, count, path)
        return recording.samples(tmp_path, plan)

    return measure


def test_a_collection_at_two_counts(measured: Any, gpu: cuda_gpu.Gpu) -> None:
    """0.4 ms on 132 SMs, without the 10 us in which Python launches; on 8 by 132 / 8, with them.

    Nothing is measured twice: a check, a launch that says how long it takes, 7 that are timed, the
    short ones each behind two others, and a second of launches for power; by two repetitions.
    """
    gpu.kernel_us = 400.0
    samples = measured()
    assert samples["cu_count"].tolist() == [8, 8, 132, 132]
    assert samples["time_ms"].tolist() == pytest.approx([6.61, 6.61, 0.4, 0.4])
    assert set(samples["power_w"]) == {321}
    assert set(samples["engine_mhz_observed"]) == {1755}
    assert set(samples["temperature_c"]) == {55}
    on_all, on_8 = 2 + 21 + 1000 / 0.4, 2 + 7 + 152  # 152 of 6.61 ms are a second
    assert gpu.sms_used == [8] * 2 * on_8 + [132] * 2 * int(on_all)


@pytest.mark.parametrize(("kernel_us", "at_middle"), [(50.0, 215), (30.0, 213)])
def test_power_over_the_whole_window(
    measured: Any, gpu: cuda_gpu.Gpu, kernel_us: float, at_middle: int
) -> None:
    """It rises by 200 W from the first launch to the last, and its median is told.

    Read is from 0.1 s on to the last launch, 1024 before the end of 1 s. In the middle of that,
    at 0.52 s, 10 500 are done and 1024 queued: 215 W. For 30 us: 0.53 s, 17 800 and 1024, 213 W.
    """
    gpu.kernel_us = kernel_us
    launches = 1e6 / kernel_us

    def power_mw(gpu: cuda_gpu.Gpu) -> int:
        launch = gpu.sms_used.count(132) % launches
        return round(1e3 * (100 + 200 * launch / launches))

    gpu.power_mw = power_mw
    on_all = measured(repeat=1).query("cu_count == 132")
    assert on_all["power_w"].tolist() == pytest.approx([at_middle], rel=0.03)


def test_long_kernels_are_launched_less_often(measured: Any, gpu: cuda_gpu.Gpu) -> None:
    """0.2 s each: one launch is checked, one tells how long it takes, and three are timed."""
    gpu.kernel_us = 200_000.0
    samples = measured(power_s=0.0, repeat=1)
    assert samples["time_ms"].iloc[-1] == pytest.approx(200.01)
    assert samples["power_w"].isna().all()
    assert gpu.sms_used.count(132) == 5


def test_a_clock_that_moves_over_the_cu_count(measured: Any, gpu: cuda_gpu.Gpu) -> None:
    """As on an H100, whose matrix products reach the power limit on all SMs alone."""
    gpu.engine_mhz = lambda gpu: 1400 if gpu.sms_used[-1] == 132 else 1980
    samples = measured()
    plan = Plan("small", device_at_hand("cuda"), (), (8, 132), AS_IT_IS)
    told = r"^the engine clock differed .* \(column 'engine_mhz_observed'\): copy_1m$"
    with pytest.warns(DataWarning, match=told):
        recording.warn_of_samples(samples, plan)


def test_copies_wait_for_a_green_context(measured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream does not block: kernel_tuner alone would check a result that is not there yet."""
    monkeypatch.setattr(measuring, "_copy_alone", lambda _, copy, *given: copy(*given))
    with pytest.raises(RuntimeError, match="verification failed"):
        measured()


def test_memory_is_given_back(measured: Any, gpu: cuda_gpu.Gpu) -> None:
    """Of the runs before the last one: two buffers of a run are left."""
    measured()
    assert sum(buffer is not None for buffer in gpu.buffers) == 2


def test_a_launch_for_a_profiler(gpu: cuda_gpu.Gpu, capsys: Capture) -> None:
    """Twice, on all SMs; the profiler sees the second, which finds the caches warm.

    After one that fails the next kernel is launched all the same.
    """
    failing = iter([InputError("no memory")])

    def kernel(*_: Any) -> None:
        for error in failing:
            raise error

    gpu.kernel = kernel
    measuring.main("cuda", "small", ["copy_1m", "triad_1m"])
    assert "copy_1m: no memory" in capsys.readouterr().err
    assert gpu.sms_used == [132] * 3  # one that fails, and two of the other
    assert gpu.profiled == 1


def test_the_dry_run_of_a_user_who_is_not_root(
    gpu: cuda_gpu.Gpu, capsys: Capture, monkeypatch: Any
) -> None:
    """It says which counts the driver grants, and what is there in place of clocks."""
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("shutil.which", lambda _: None)
    out, _ = succeed(capsys, "collect", "--dry-run", "--kernels", "copy")
    lines = dict(line.split(":", 1) for line in out.splitlines())
    assert lines["CUs"].strip() == "16, 40, 56, 72, 88, 104, 120, 132 (green contexts)"
    assert "need no rights" in lines["clocks"]
    assert "mlscale advise LOG --also LOG" in out
    assert lines["power"].strip() == "2 s a sample"
    assert lines["counters"].strip() == "by ncu, not on the path"
    assert lines["samples"].strip() == "24, about 1.0 min (an estimate)"  # 3 kernels x 8 counts


def test_the_device(gpu: cuda_gpu.Gpu) -> None:
    """Groups of 8 SMs; eight counts, 132 / 8 apart and rounded up; 130 are more than 16 groups."""
    info = device_at_hand("cuda")
    assert (info.name, info.uuid) == ("NVIDIA H100 80GB HBM3", cuda_gpu.UUID_TEXT)
    assert (info.cu_axis, info.sensors, info.driver) == ("green contexts", "nvml", "CUDA 12.8")
    assert cu_counts(None, info) == (16, 40, 56, 72, 88, 104, 120, 132)
    assert cu_counts((8, 130), info) == (8, 132)


def answering(monkeypatch: pytest.MonkeyPatch, name: str, function: str, *answer: Any) -> None:
    """Let a function of cuda-python answer so."""
    module = getattr(sys.modules["cuda.bindings"], name)
    monkeypatch.setattr(module, function, lambda: answer)


@pytest.mark.parametrize(("driver", "axis"), [(12040, "green contexts"), (12030, "")])
def test_what_a_device_can(
    gpu: cuda_gpu.Gpu, monkeypatch: Any, tmp_path: Path, driver: int, axis: str
) -> None:
    """Green contexts came with CUDA 12.4. A MIG slice is none of NVML's boards: without power.

    NVIDIA's release file tells a Jetson, which has its own sensors.
    """
    answering(monkeypatch, "runtime", "cudaDriverGetVersion", 0, driver)
    answering(monkeypatch, "nvrtc", "nvrtcVersion", 0, 12, 3)
    assert device_at_hand().cu_axis == axis
    monkeypatch.setattr(cuda_gpu, "UUID_TEXT", "another")
    assert device_at_hand("cuda").sensors == ""
    monkeypatch.setattr(device, "_JETSON", tmp_path)
    assert device_at_hand("cuda").sensors == "tegra"


@pytest.mark.parametrize(
    ("function", "answer", "message"),
    [
        (
            "cudaGetDeviceCount",
            (cuda_gpu.cudaError_t.cudaErrorNoDevice, None),
            "no NVIDIA GPU is visible .*cudaErrorNoDevice",
        ),
        ("cudaDriverGetVersion", (0, 0), "no NVIDIA driver is installed"),
        (  # a driver refuses the PTX of a newer NVRTC
            "cudaDriverGetVersion",
            (0, 12040),
            r"NVRTC 12\.8 is newer than the driver, .* CUDA 12\.4: .*-nvrtc-cu12==12\.4",
        ),
    ],
)
def test_what_does_not_fit_together(
    gpu: cuda_gpu.Gpu, monkeypatch: Any, function: str, answer: tuple[Any, ...], message: str
) -> None:
    answering(monkeypatch, "runtime", function, *answer)
    with pytest.raises(InputError, match=message):
        device_at_hand("cuda")


def test_without_the_compiler(gpu: cuda_gpu.Gpu, monkeypatch: Any) -> None:
    def missing() -> None:
        raise RuntimeError("Failure finding libnvrtc.so")

    monkeypatch.setattr(sys.modules["cuda.bindings"].nvrtc, "nvrtcVersion", missing)
    with pytest.raises(InputError, match="NVRTC, CUDA's compiler, is missing: pip install"):
        device_at_hand("cuda")


@pytest.mark.parametrize("name", ["cuda.bindings.driver", "cuda.bindings.runtime", "pynvml"])
def test_the_stand_ins_have_the_signatures_of_the_packages(name: str) -> None:
    package = pytest.importorskip(name, reason=f"{name} is not installed")
    made = cuda_gpu.Nvml if name == "pynvml" else getattr(cuda_gpu, name[14:].title())
    for function, content in vars(made).items():
        if inspect.isfunction(content) and not function.startswith("_"):
            _, *parameters = inspect.signature(content).parameters
            theirs = [*inspect.signature(getattr(package, function)).parameters]
            # cuda-python 13 calls `useFlags` of one function `flags`.
            names = [name.replace("useFlags", "flags") for name in (*parameters, *theirs)]
            assert names[: len(parameters)] == names[len(parameters) :], function
