"""The suite's CUDA sources: compiled by NVRTC where it is, and run on a CPU through a small shim.

The CPU runs the same sources at small sizes, thread for thread with barriers and shuffles, so the
NumPy references check the kernels' arithmetic. What it cannot show: races between warps, the
tensor-core instructions (their tile is a plain product here), and anything about speed.
"""

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlscale.collect import micro_kernels as micro
from mlscale.collect import suite_arithmetic as arithmetic
from mlscale.collect import suite_irregular as irregular
from mlscale.collect import suite_streams as streams
from mlscale.collect.entries import KERNELS, Case, Entry
from mlscale.collect.suite import SUITE

SMALL: tuple[Entry, ...] = (
    streams.copy(1000),
    streams.triad(1000),
    streams.triad(700, double=True),
    streams.strided(1024, 8),
    streams.gather(1000, 64),
    streams.stencil2d(40),
    streams.stencil3d(12),
    streams.transpose(64, tiled=False),
    streams.transpose(96, tiled=True),
    streams.sweep(4096, 3, blocks=4),
    streams.chase(32, 100),
    streams.chase(64, 50, 32, 2),
    arithmetic.matmul(48, tiled=False),
    arithmetic.matmul(48, tiled=True),
    arithmetic.tensor(64),
    arithmetic.nbody(512),
    arithmetic.monte_carlo(512, 100),
    arithmetic.special(512, 20, fast=False),
    arithmetic.special(512, 20, fast=True),
    arithmetic.fma("small_1", 3, 64, 50),
    arithmetic.fma("small_4", 2, 64, 50, chains=4, double=True),
    arithmetic.integer(512, 30),
    arithmetic.divergence(512, 4, 20),
    arithmetic.collatz(700),
    irregular.reduction(8192),
    irregular.scan(1024),
    irregular.histogram_shared(8192, skewed=False),
    irregular.histogram_global(1000, 16),
    irregular.bitonic_block(4096),
    irregular.bitonic_step(4096, 64, 16),
    irregular.fft_stage(2048, 64),
    irregular.fft_block(2048),
    irregular.spmv(300, by_warp=False),
    irregular.spmv(300, by_warp=True),
    irregular.shared_conflict(2, blocks=2, rounds=40),
    irregular.shared_heavy(2, rounds=50),
    micro.chase(4096),
    micro.chase(4096, shared=True),
    micro.streaming_read(2048, 3, blocks=2).entry,
    micro.shared_reads(rounds=3),
    micro.volkov(2, 4, 3, words=2048, rounds=20),
)
MICRO = {"micro_chase", "micro_read", "micro_shared", "micro_volkov"}
Run = Callable[[Entry, Case], dict[int, np.ndarray]]


@pytest.fixture(scope="module")
def run_on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A function that launches a small entry on the CPU: the content of its arguments after."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("there is no g++ to run the CUDA sources on the CPU with")
    folder = tmp_path_factory.mktemp("kernels")
    lines = [f'#include "{Path(__file__).parents[1] / "cuda_on_cpu.h"}"']
    for entry in SMALL:
        macros = entry.macros()
        lines += [f"#define {name} {value}" for name, value in macros.items()]
        lines += [f"namespace of_{entry.name} {{", f'#include "{KERNELS / entry.source}.cu"', "}"]
        lines.append(
            f'extern "C" void run_{entry.name}(unsigned b, unsigned t, void **a) '
            f"{{ launch(&of_{entry.name}::{entry.name}, b, t, a); }}"
        )
        lines += [f"#undef {name}" for name in macros]
    source, library = folder / "suite.cpp", folder / "suite.so"
    source.write_text("\n".join(lines) + "\n")
    subprocess.run(
        [compiler, "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-o", library, source],
        check=True,
    )
    loaded = ctypes.CDLL(str(library))

    def run(entry: Entry, case: Case) -> dict[int, np.ndarray]:
        held = [np.ascontiguousarray(np.array(argument)) for argument in case.arguments]
        values = [
            ctypes.c_void_p(array.ctypes.data) if isinstance(argument, np.ndarray) else None
            for argument, array in zip(case.arguments, held, strict=True)
        ]
        pointers = (ctypes.c_void_p * len(held))(
            *(
                ctypes.addressof(value) if value is not None else array.ctypes.data
                for value, array in zip(values, held, strict=True)
            )
        )
        getattr(loaded, f"run_{entry.name}")(entry.blocks, entry.threads, pointers)
        return dict(enumerate(held))

    return run


@pytest.mark.parametrize("entry", SMALL, ids=lambda entry: entry.name)
def test_a_kernel_leaves_what_its_reference_says(run_on_cpu: Run, entry: Entry) -> None:
    """The references are NumPy, written apart from the sources."""
    case = entry.case()
    untouched = {n: np.array(case.arguments[n]) for n in case.expected}
    assert case.error(untouched) > case.tolerance  # so a kernel that does nothing is noticed
    assert case.error(run_on_cpu(entry, case)) <= case.tolerance


def test_every_source_of_the_suite_is_run() -> None:
    assert {entry.source for entry in SMALL} == {entry.source for entry in SUITE} | MICRO
    on_disk = {path.stem for path in KERNELS.glob("*.cu")}
    assert on_disk == {entry.source for entry in SMALL} | {"which_sm"}


@pytest.mark.parametrize("architecture", ["sm_70", "sm_90"])
def test_every_entry_compiles(architecture: str) -> None:
    """NVRTC needs no GPU; the test is skipped where its Python binding or library is absent."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    from mlscale.collect.compiling import Compiler
    from mlscale.errors import InputError

    try:
        compiler = Compiler(architecture)
    except InputError as error:
        pytest.skip(str(error))
    seen = set()
    for entry in (*SUITE, *SMALL):
        variant = (entry.source, entry.defines)
        if variant not in seen:
            seen.add(variant)
            assert entry.name.encode() in compiler.image(entry)
