"""What a kernel of the suite is: its source, its launch, and how its result is checked."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Indices

KERNELS = Path(__file__).parent / "kernels"
_SAMPLES = 512

Argument = NDArray[Any] | np.generic
Positions = Indices


@dataclass(frozen=True, eq=False)
class Case:
    """The arguments of one launch, and what it must leave in some of them.

    arguments: in the kernel's order; an array is a buffer with its first content, a NumPy scalar
    is passed by value. expected: by argument, flat positions and their values after one launch.
    tolerance: largest error accepted, relative to the largest expected magnitude; 0 is exact.
    """

    arguments: tuple[Argument, ...]
    expected: dict[int, tuple[Positions, NDArray[Any]]]
    tolerance: float = 0.0

    def error(self, outputs: dict[int, NDArray[Any]]) -> float:
        """The worst error of the outputs, by argument: relative, infinite for what is no number."""
        worst = 0.0
        for argument, (positions, values) in self.expected.items():
            found = outputs[argument].ravel()[positions].astype(np.float64)
            wanted = values.astype(np.float64)
            scale = max(float(np.abs(wanted).max()), np.finfo(np.float64).tiny)
            error = np.abs(found - wanted).max() / scale
            worst = max(worst, float(error) if np.isfinite(error) else float("inf"))
        return worst


@dataclass(frozen=True)
class Entry:
    """One kernel at one size: a row of the table.

    Attributes:
        name: the kernel in the table, and the function's name on the GPU, so that a profiler's
            export names it too.
        application: what it is a size of.
        source: the file in kernels/, without .cu.
        blocks: of the launch; one-dimensional.
        threads: of a block.
        case: makes the arguments and what is expected; deterministic.
        defines: macros of the source.
        capability: least compute capability, times ten.
    """

    name: str
    application: str
    source: str
    blocks: int
    threads: int
    case: Callable[[], Case]
    defines: tuple[tuple[str, str], ...] = ()
    capability: int = 50

    def text(self) -> str:
        """The source."""
        return (KERNELS / f"{self.source}.cu").read_text(encoding="utf-8")

    def macros(self) -> dict[str, str]:
        """All macros of the source, the function's name among them."""
        return {"KERNEL": self.name, **dict(self.defines)}


def blocks_for(n: int, threads: int = 256) -> int:
    """Blocks that hold n threads."""
    return -(-n // threads)


def size_name(n: int) -> str:
    """A power of two in the binary steps of a name: 65536 is 64k."""
    for unit, step in (("m", 2**20), ("k", 2**10)):
        if n >= step:
            return f"{n // step}{unit}"
    return str(n)


def sampled(n: int) -> Positions:
    """Positions to check, the first and the last of n among them; always the same."""
    if n <= _SAMPLES:
        return np.arange(n)
    inner = np.random.default_rng(n).integers(0, n, _SAMPLES - 2)
    return np.concatenate([[0], inner, [n - 1]]).astype(np.intp)


def uniform(n: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> NDArray[np.float32]:
    """Made numbers of single precision; always the same."""
    numbers = np.random.default_rng(seed).random(n, dtype=np.float32)
    return np.asarray(low + (high - low) * numbers, dtype=np.float32)


def whole(n: int, below: int, seed: int = 0) -> NDArray[np.int32]:
    """Made whole numbers from 0; always the same."""
    return np.random.default_rng(seed).integers(0, below, n, dtype=np.int32)
