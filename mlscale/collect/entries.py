"""What a kernel of the suite is: its source, its launch, and how its result is checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Indices

KERNELS = Path(__file__).parent / "kernels"
BACKENDS = ("cuda", "hip", "opencl")
_PLACES = 512


@dataclass(frozen=True, eq=False)
class Case:
    """The arguments of one launch, and what it must leave in some of them.

    arguments: in the kernel's order; an array is a buffer with its first content, a NumPy scalar
    is passed by value. expected: by argument, what stands at flat positions of it after one launch.
    tolerance: largest error accepted, relative to the largest expected magnitude; 0 is exact.
    """

    arguments: tuple[Any, ...]
    expected: Mapping[int, Callable[[Indices], Any]]
    tolerance: float = 0.0

    @cached_property
    def answers(self) -> dict[int, tuple[Indices, NDArray[Any]]]:
        """By argument the positions that are checked, and their values."""
        places = {number: _sampled(self.arguments[number].size) for number in self.expected}
        return {n: (at, np.asarray(self.expected[n](at), np.float64)) for n, at in places.items()}

    def error(self, outputs: Sequence[NDArray[Any] | None]) -> float:
        """The worst error of the outputs, by argument: relative, infinite for what is no number."""
        worst = 0.0
        for number, (at, values) in self.answers.items():
            left = np.ravel(outputs[number])[at].astype(np.float64)  # type: ignore[arg-type]
            scale = max(float(np.abs(values).max()), np.finfo(np.float64).tiny)
            error = float(np.abs(left - values).max() / scale)
            worst = max(worst, error if np.isfinite(error) else float("inf"))
        return worst


@dataclass(frozen=True)
class Entry:
    """One kernel at one size: a row of the table.

    Attributes:
        application: what it is a size of.
        size: the end of its name; a number in binary steps, 65536 is 64k.
        threads: of the launch, which is one-dimensional; rounded up to whole blocks.
        case: makes the arguments and what is expected; deterministic.
        block: threads of a block.
        source: the file in kernels/, without .cu; the application's name where empty.
        macros: of the source.
        backends: that have what it needs.
    """

    application: str
    size: int | str
    threads: int
    case: Callable[[], Case]
    block: int = 256
    source: str = ""
    macros: tuple[tuple[str, str], ...] = ()
    backends: tuple[str, ...] = BACKENDS

    @property
    def name(self) -> str:
        """The kernel in the table, and its function on the GPU, so that a profiler names it too."""
        size = size_name(self.size) if isinstance(self.size, int) else self.size
        return f"{self.application}_{size}"

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        return -(-self.threads // self.block)

    @property
    def text(self) -> str:
        """The source, with what makes it CUDA, HIP or OpenCL C before it."""
        files = ("languages.h", f"{self.source or self.application}.cu")
        return "".join((KERNELS / file).read_text(encoding="utf-8") for file in files)


def size_name(n: int) -> str:
    """A number in the binary steps of a name: 65536 is 64k."""
    for unit, step in (("m", 2**20), ("k", 2**10)):
        if n >= step and n % step == 0:
            return f"{n // step}{unit}"
    return str(n)


def uniform(n: int, seed: int = 0, low: float = -1.0) -> NDArray[np.float32]:
    """Made numbers of single precision from low to 1; always the same."""
    numbers = np.random.default_rng(seed).random(n, dtype=np.float32)
    return np.asarray(low + (1 - low) * numbers, dtype=np.float32)


def whole(n: int, below: int, seed: int = 0) -> NDArray[np.int32]:
    """Made whole numbers from 0; always the same."""
    return np.random.default_rng(seed).integers(0, below, n, dtype=np.int32)


def bits(n: int) -> NDArray[np.uint32]:
    """Made words of 32 bits; always the same."""
    return np.random.default_rng(0).integers(0, 2**32, n, dtype=np.uint32)


def _sampled(n: int) -> Indices:
    """Positions to check, the first and the last of n among them; always the same."""
    if n <= _PLACES:
        return np.arange(n)
    inner = np.random.default_rng(n).integers(0, n, _PLACES - 2)
    return np.concatenate([[0], inner, [n - 1]]).astype(np.intp)
