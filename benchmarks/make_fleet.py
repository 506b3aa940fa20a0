"""Make a fleet: a Parquet file of many profiles, for `mlscale predict` and `advise` on it.

    python benchmarks/make_fleet.py TABLE CONFIG KERNELS FILE

Made data: the kernels of a table at one configuration, drawn with replacement; times are multiplied
by a factor from 0.01 to 100, counters by one of 100 000 draws of 5 % noise, and each kernel has 1
to 1000 launches.
"""

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mlscale import read

ROWS = 100_000  # of a row group


def main(table: str, config: str, kernels: int, output: Path) -> None:
    """Make so many kernels, a row group at a time."""
    measured = read(table)
    profiles = measured.profiles(measured.grid.config(config))
    random = np.random.default_rng(0)
    noise = np.exp(random.normal(0, 0.05, (ROWS, len(profiles.counter_names))))
    writer = None
    for begin in range(0, kernels, ROWS):
        drawn = random.integers(len(profiles.kernels), size=min(ROWS, kernels - begin))
        columns = {
            "kernel": [f"{profiles.kernels[k]} {begin + n}" for n, k in enumerate(drawn)],
            "device": [profiles.device] * len(drawn),
            **{axis: np.full(len(drawn), value) for axis, value in profiles.base.as_dict().items()},
            "time_ms": profiles.time_ms[drawn] * 10 ** random.uniform(-2, 2, len(drawn)),
            "launches": random.integers(1, 1001, len(drawn)),
        }
        if profiles.power_w is not None:
            columns["power_w"] = profiles.power_w[drawn]
        counters = profiles.counters[drawn] * noise[random.permutation(ROWS)[: len(drawn)]]
        columns |= dict(zip(profiles.counter_names, counters.T, strict=True))
        rows = pa.table(columns)
        writer = writer or pq.ParquetWriter(output, rows.schema, write_page_checksum=True)
        writer.write_table(rows)
    if writer:
        writer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
