"""Made fleets, and what came of them, for the tests of predict and advise on them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MODEL = "kernels"  # ships; of time and power, with intervals
CONFIGURATIONS = 100  # even steps of the engine clock, as the list of a V100 is not known
COUNTERS = ("dram_utilisation", "core_utilisation")
TEXT = ("kernel", "flags")


def write_fleet(path: Path, rows: int = 4, count: int = 12, **changes: Any) -> Path:
    """Made kernels in a Parquet file of so many rows in a row group; None leaves a column out."""
    random = np.random.default_rng(0)
    columns = {
        "device": ["v100"] * count,
        "kernel": [f"k{n}" for n in range(count)],
        "cu_count": np.full(count, 80),
        "engine_mhz": np.full(count, 1380.0),
        "memory_mhz": np.full(count, 877.0),
        "time_ms": random.uniform(0.5, 50, count),
        "power_w": random.uniform(90, 240, count),
        "launches": np.arange(1.0, count + 1),
        **{name: random.uniform(0.05, 0.9, count) for name in COUNTERS},
        **changes,
    }
    table = pa.table({name: values for name, values in columns.items() if values is not None})
    metadata = {"power_kind": "board", "counter_tool": "ncu"}
    table = table.replace_schema_metadata({"mlscale": json.dumps(metadata)})
    pq.write_table(table, path, row_group_size=rows, write_page_checksum=True)
    return path


def rows_of(folder: Path) -> dict[str, list[Any]]:
    """The rows of all parts, in the order of their names."""
    return pa.concat_tables(map(pq.read_table, sorted(folder.glob("*.parquet")))).to_pydict()


def assert_same(fleet: dict[str, list[Any]], whole: dict[str, list[Any]]) -> None:
    """Rounding of sums aside."""
    assert list(fleet) == list(whole)
    for name, values in fleet.items():
        if name in TEXT:
            assert values == whole[name]
        else:
            numbers = [np.array(of, dtype=float) for of in (values, whole[name])]
            np.testing.assert_allclose(*numbers, rtol=1e-12, atol=1e-9, err_msg=name)
