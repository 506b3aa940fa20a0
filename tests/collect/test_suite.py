"""The suite's sources in their three languages, each against the NumPy references.

OpenCL C is compiled and run by kernel_tuner and PoCL, as the command does. The same sources run as
CUDA C++ and as HIP on a CPU, thread for thread with barriers and shuffles, through a small shim.
What that cannot show: races between warps, the tensor-core instructions (their tile is a plain
product here), and anything about speed.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pocl
import pytest

from mlscale.collect import cases
from mlscale.collect.cases import Case
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import KERNELS, Entry, entries, probes, select
from mlscale.errors import InputError

GPU = DeviceInfo("cuda", "made", "u", "d", 2, 4096, 32)
MICRO = [entry for _, entry in probes(GPU) if "_64" not in entry.name]
# Each source at a size of some hundred threads.
TINY = {
    "copy": (1000, partial(cases._moved, 1000)),
    "triad": (1000, partial(cases._triad, 1000, "float32")),
    "triad_fp64": (700, partial(cases._triad, 700, "float64")),
    "strided": (1024, partial(cases._moved, 1024, 8)),
    "gather": (1000, partial(cases._gather, 1000, 64)),
    "stencil2d": (1600, partial(cases._stencil, 40, 2, 0.2, 0.2)),
    "stencil3d": (1728, partial(cases._stencil, 12, 3, 0.4, 0.1)),
    "transpose_naive": (4096, partial(cases._moved, 64 * 64, 64, 64)),
    "transpose_tiled": (2304, partial(cases._moved, 96 * 96, 96, 96)),
    "l2_set": (1024, partial(cases._sweep, 4096, 3, 1024)),
    "chase": (1, partial(cases._chase, 32, 100, 1)),
    "chase_many": (256, partial(cases._chase, 64, 50, 256)),
    "matmul_naive": (2304, partial(cases._matmul, 48)),
    "matmul_tiled": (2304, partial(cases._matmul, 48)),
    "tensor": (256, partial(cases._tensor, 64)),
    "nbody": (512, partial(cases._nbody, 512)),
    "monte_carlo": (512, partial(cases._monte_carlo, 512, 100)),
    "special": (512, partial(cases._special, 512, 20, 1e-5)),
    "special_fast": (512, partial(cases._special, 512, 20, 1e-3)),
    "fma": (256, partial(cases._chains, 256, 50, 4, "float32")),
    "fma_fp64": (256, partial(cases._chains, 256, 50, 1, "float64")),
    "few_threads": (32, partial(cases._chains, 32, 50, 1, "float32")),
    "integer": (512, partial(cases._hashes, 512, 30, 1)),
    "divergence": (512, partial(cases._hashes, 512, 20, 4)),
    "collatz": (700, partial(cases._collatz, 700)),
    "reduction": (512, partial(cases._reduction, 8192)),
    "scan": (1024, partial(cases._scan, 1024)),
    "histogram_shared": (512, partial(cases._histogram, 8192, 256, "uint8")),
    "histogram_shared_skewed": (512, partial(cases._histogram, 8192, 256, "uint8", 85)),
    "histogram_global": (1000, partial(cases._histogram, 1000, 16, "int32")),
    "bitonic_block": (2048, partial(cases._sorted_blocks, 4096)),
    "bitonic_step": (2048, partial(cases._exchanged, 4096, 16)),
    "fft_stage": (1024, partial(cases._butterflies, 2048, 64)),
    "fft_block": (1024, partial(cases._transformed, 2048)),
    "spmv_scalar": (300, partial(cases._spmv, 300)),
    "spmv_warp": (9600, partial(cases._spmv, 300)),
    "shared_conflict": (512, partial(cases._conflicts, 512, 2, 40)),
    "shared_heavy": (256, partial(cases._looked_up, 256, 50)),
}


def tiny(entry: Entry) -> Entry:
    """The entry at the size above; its macros are of the small suite."""
    threads, case = TINY[entry.application]
    return replace(entry, threads=threads, case=case)


# The last of an application in the small suite: fma in four chains.
ENTRIES = [*{e.application: tiny(e) for e in entries("small")}.values(), *MICRO]
Run = Callable[[Entry, Case], list[np.ndarray]]


@pytest.fixture(scope="module", params=["cuda", "hip"])
def run_on_cpu(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A function that launches an entry on the CPU: the content of its arguments after."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ to run the CUDA and HIP sources on the CPU with")
    folder = tmp_path_factory.mktemp("kernels")
    lines = ["#define __HIP__ 1"] if request.param == "hip" else []
    shim = Path(__file__).parents[1] / "cuda_on_cpu.h"
    lines += [f'#include "{shim}"', f'#include "{KERNELS / "languages.h"}"']
    for entry in ENTRIES:
        source = KERNELS / f"{entry.source}.cu"
        macros = {"KERNEL": entry.name, **entry.macros}
        lines += [f"#define {name} {value}" for name, value in macros.items()]
        lines += [f"namespace of_{entry.name} {{", f'#include "{source}"', "}"]
        lines += [f"#undef {name}" for name in (*macros, "WAVE")]
        lines.append(
            f'extern "C" void run_{entry.name}(unsigned b, unsigned t, void **a) '
            f"{{ launch(&of_{entry.name}::{entry.name}, b, t, a); }}"
        )
    source, library = folder / "suite.cpp", folder / "suite.so"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(
        [compiler, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-o", library, source], check=True
    )
    loaded = ctypes.CDLL(str(library))

    def run(entry: Entry, case: Case) -> list[np.ndarray]:
        held = [np.array(argument, order="C") for argument in case.arguments]
        values = [ctypes.c_void_p(array.ctypes.data) for array in held]
        pointers = (ctypes.c_void_p * len(held))(
            *(
                ctypes.addressof(value) if array.ndim else array.ctypes.data
                for value, array in zip(values, held, strict=True)
            )
        )
        getattr(loaded, f"run_{entry.name}")(
            -(-entry.threads // entry.block), entry.block, pointers
        )
        return held

    return run


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_kernel_leaves_what_its_reference_says(run_on_cpu: Run, entry: Entry) -> None:
    """The references are NumPy, written apart from the sources."""
    case = entry.case()
    if not entry.name.startswith("volkov"):  # it must leave the places where it began, 0, 1, …
        assert case.error([np.array(a) for a in case.arguments]) > case.tolerance
    assert case.error(run_on_cpu(entry, case)) <= case.tolerance


BY_OPENCL = {(e.source, *e.macros.items()): e for e in ENTRIES if "opencl" in e.backends}


@pytest.mark.parametrize("entry", BY_OPENCL.values(), ids=lambda entry: entry.name)
def test_and_by_opencl(
    entry: Entry, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    device = pocl.needs_pocl()
    from mlscale.collect.measuring import _launch, run_kernel

    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path_factory.getbasetemp()))
    case = entry.case()
    for name, value in device.environment(device.cu_count).items():
        monkeypatch.setenv(name, value)
    launch = _launch(entry, device, case.arguments)
    outputs = run_kernel(**launch, params={"block_size_x": entry.block})
    assert case.error(outputs) <= case.tolerance


def test_every_source_is_run() -> None:
    full, small = entries("full"), entries("small")
    names = {entry.source for entry in (*ENTRIES, *full)}
    assert {path.stem for path in KERNELS.glob("*.cu")} == names
    assert {source for source, *_ in BY_OPENCL} == names - {"tensor"}
    assert {e.application for e in full} == {e.application for e in small}
    assert len({entry.name for entry in full}) == 90


@pytest.mark.parametrize("suite", ["full", "small"])
def test_names_tell_the_application_and_launches_are_whole_blocks(suite: str) -> None:
    """Slips of a line of suite.json."""
    for entry in entries(suite):
        assert entry.name.startswith(f"{entry.application}_")
        assert entry.threads % entry.block == 0, entry.name


class TestSelect:
    def test_names_applications_and_patterns(self) -> None:
        names = [e.name for e in select("full", ["copy", "scan_4m", "nbody_*k"], "cuda")]
        assert names[0] == "copy_4m"
        assert names[-1] == "scan_4m"
        assert len(names) == 3 + 1 + 3

    def test_a_backend_leaves_out_what_it_cannot_run(self) -> None:
        assert len(select("full", [], "opencl")) == 88  # two sizes of 'tensor'
        assert len(select("full", [], "hip")) == 90

    def test_a_name_that_is_none(self) -> None:
        with pytest.raises(InputError, match="'copi' in the suite 'full'; is 'copy' meant"):
            select("full", ["copi"], "cuda")
