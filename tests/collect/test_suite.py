"""The suite's sources in their three languages, each against the NumPy references.

OpenCL C is compiled and run by PoCL in test_opencl.py. Here the same sources run as CUDA C++ and
as HIP on a CPU, thread for thread with barriers and shuffles, through a small shim. What that
cannot show: races between warps, the tensor-core instructions (their tile is a plain product
here), and anything about speed.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from mlscale.collect import suite_arithmetic as arithmetic
from mlscale.collect import suite_irregular as irregular
from mlscale.collect import suite_streams as streams
from mlscale.collect.device import DeviceInfo
from mlscale.collect.entries import KERNELS, Case, Entry, size_name
from mlscale.collect.micro_kernels import micro_entries
from mlscale.collect.suite import SUITES, select
from mlscale.errors import InputError

GPU = DeviceInfo("cuda", "made", "u", 2, 1000.0, 1000.0, 4096, 32, 64)
MICRO = [entry for entry in micro_entries(GPU) if "_64" not in entry.name]
# Each source at a size of some hundred threads.
TINY = {
    "copy": (1000, partial(streams._copy, 1000)),
    "triad": (1000, partial(streams._triad, 1000, np.float32)),
    "triad_fp64": (700, partial(streams._triad, 700, np.float64)),
    "strided": (1024, partial(streams._strided, 1024, 8)),
    "gather": (1000, partial(streams._gather, 1000, 64)),
    "stencil2d": (1600, partial(streams._stencil2d, 40)),
    "stencil3d": (1728, partial(streams._stencil3d, 12)),
    "transpose_naive": (4096, partial(streams._transpose, 64)),
    "transpose_tiled": (2304, partial(streams._transpose, 96)),
    "l2_set": (1024, partial(streams._sweep, 4096, 3, 1024)),
    "chase": (1, partial(streams._chase, 32, 100, 1)),
    "chase_many": (256, partial(streams._chase, 64, 50, 256)),
    "matmul_naive": (2304, partial(arithmetic._matmul, 48)),
    "matmul_tiled": (2304, partial(arithmetic._matmul, 48)),
    "tensor": (256, partial(arithmetic._tensor, 64)),
    "nbody": (512, partial(arithmetic._nbody, 512)),
    "monte_carlo": (512, partial(arithmetic._monte_carlo, 512, 100)),
    "special": (512, partial(arithmetic._special, 512, 20, 1e-5)),
    "special_fast": (512, partial(arithmetic._special, 512, 20, 1e-3)),
    "fma": (256, partial(arithmetic._chains, 256, 50, 4, np.float32)),
    "fma_fp64": (256, partial(arithmetic._chains, 256, 50, 1, np.float64)),
    "few_threads": (32, partial(arithmetic._chains, 32, 50, 1, np.float32)),
    "integer": (512, partial(arithmetic._integer, 512, 30, 1)),
    "divergence": (512, partial(arithmetic._integer, 512, 20, 4)),
    "collatz": (700, partial(arithmetic._collatz, 700)),
    "reduction": (512, partial(irregular._reduction, 8192)),
    "scan": (1024, partial(irregular._scan, 1024)),
    "histogram_shared": (512, partial(irregular._histogram, 8192, 256, np.uint8)),
    "histogram_shared_skewed": (512, partial(irregular._histogram, 8192, 256, np.uint8, 85)),
    "histogram_global": (1000, partial(irregular._histogram, 1000, 16, np.int32)),
    "bitonic_block": (2048, partial(irregular._sorted, 4096)),
    "bitonic_step": (2048, partial(irregular._exchanged, 4096, 16)),
    "fft_stage": (1024, partial(irregular._butterflies, 2048, 64)),
    "fft_block": (1024, partial(irregular._transformed, 2048)),
    "spmv_scalar": (300, partial(irregular._spmv, 300)),
    "spmv_warp": (9600, partial(irregular._spmv, 300)),
    "shared_conflict": (512, partial(irregular._conflicts, 512, 2, 40)),
    "shared_heavy": (256, partial(irregular._looked_up, 256, 50)),
}


def tiny(entry: Entry) -> Entry:
    """The entry at the size above; its macros are of the small suite."""
    threads, case = TINY[entry.application]
    return replace(entry, threads=threads, case=case)


# The last of an application in the small suite: fma in four chains.
ENTRIES = [*{e.application: tiny(e) for e in SUITES["small"]}.values(), *MICRO]
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
        source = KERNELS / f"{entry.source or entry.application}.cu"
        macros = {"KERNEL": entry.name, **dict(entry.macros)}
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
        [compiler, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-o", library, source],
        check=True,
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
        getattr(loaded, f"run_{entry.name}")(entry.blocks, entry.block, pointers)
        return held

    return run


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_kernel_leaves_what_its_reference_says(run_on_cpu: Run, entry: Entry) -> None:
    """The references are NumPy, written apart from the sources."""
    case = entry.case()
    if not entry.name.startswith("volkov"):  # it must leave the places where it began, 0, 1, …
        assert case.error([np.array(a) for a in case.arguments]) > case.tolerance
    assert case.error(run_on_cpu(entry, case)) <= case.tolerance


def test_every_source_is_run() -> None:
    names = {entry.source or entry.application for entry in (*ENTRIES, *SUITES["full"])}
    assert {path.stem for path in KERNELS.glob("*.cu")} == names
    assert {e.application for e in SUITES["full"]} == {e.application for e in SUITES["small"]}
    assert len({entry.name for entry in SUITES["full"]}) == 90


@pytest.mark.parametrize(("n", "name"), [(65536, "64k"), (2**22, "4m"), (96, "96"), (1025, "1025")])
def test_names_of_sizes(n: int, name: str) -> None:
    """By hand."""
    assert size_name(n) == name


class TestSelect:
    def test_names_applications_and_patterns(self) -> None:
        names = [e.name for e in select("full", ["copy", "scan_4m", "nbody_*k"])]
        assert names[0] == "copy_4m"
        assert names[-1] == "scan_4m"
        assert len(names) == 3 + 1 + 3

    def test_a_backend_leaves_out_what_it_cannot_run(self) -> None:
        assert len(select("full", [], "opencl")) == 88  # two sizes of 'tensor'
        assert len(select("full", [], "hip")) == 90

    def test_a_name_that_is_none(self) -> None:
        with pytest.raises(InputError, match="'copi' in the suite 'full'; is 'copy' meant"):
            select("full", ["copi"])
