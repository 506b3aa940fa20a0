"""Small tidy tables of known content, and the check that a refusal is one line."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlscale.errors import InputError

CONFIGS = tuple((4, engine, memory) for engine in (400.0, 800.0) for memory in (500.0, 700.0))


@contextmanager
def refused(match: str) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """The block must raise an InputError whose message matches and is one line."""
    with pytest.raises(InputError, match=match) as caught:
        yield caught
    assert len(str(caught.value).splitlines()) == 1


def rows(kernels: Sequence[str] = ("first", "second")) -> list[dict[str, Any]]:
    """Each kernel at 1 x 2 x 2 configurations; kernel k takes 10 k + 1, 2, 3, 4 ms."""
    return [
        {
            "device": "made-gpu",
            "application": f"app-{kernel}",
            "kernel": kernel,
            "cu_count": cu,
            "engine_mhz": engine,
            "memory_mhz": memory,
            "time_ms": 10.0 * k + step,
            "power_w": 100.0 + 10.0 * k + step,
            "loads": 1000.0 * k + step,
        }
        for k, kernel in enumerate(kernels)
        for step, (cu, engine, memory) in enumerate(CONFIGS, start=1)
    ]


def write_csv(path: Path, table: Sequence[dict[str, Any]]) -> Path:
    """Write rows with the standard library's writer, each cell as str() shows it."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]))
        writer.writeheader()
        writer.writerows(table)
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a file, each cell as it stands there."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def write_parquet(path: Path, table: Sequence[dict[str, Any]]) -> Path:
    """Write rows with pyarrow; None is null."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(list(table)), path)
    return path


def same_bits(left: np.ndarray, right: np.ndarray) -> bool:
    """Equal shape and equal bits, all kinds of NaN being one."""
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    one, other = (np.where(np.isnan(a), np.nan, a).tobytes() for a in (left, right))
    return one == other
