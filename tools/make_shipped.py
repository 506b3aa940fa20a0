"""Make what ships in datasets/ from the raw table of the simulated set.

    python tools/make_shipped.py path/to/gcn3-scaling.csv

datasets/README.md says what the raw table is; models/README.md how the model is made.
"""

import sys
from dataclasses import replace
from pathlib import Path

from mlscale.counters.features import TABLE_2
from mlscale.data.measurements import read
from mlscale.data.table import Table
from mlscale.data.table_files import write_table

DATASETS = Path(__file__).parent.parent / "datasets"
PROFILED_APPLICATION = "fastwalshtransform"
NEAREST = ("MemUnitBusy", "MemTime")


def main(raw: Path) -> None:
    """Write the data set as Parquet, and the profile of one application beside it."""
    measurements = read(raw)
    status = {
        name: "nearest" if name in NEAREST else "exact"
        for name in TABLE_2
        if name in measurements.counter_names
    }
    status |= {name: "missing" for name in TABLE_2 if name not in status}
    metadata = {
        "origin": "simulated",
        "counter_tool": "MGPUSim",
        "power_kind": None,
        "source": "MGPUSim (Sun et al., ISCA 2019), a cycle-level simulator; not measured",
        "feature_status": status,
    }
    measurements = replace(measurements, metadata=metadata)
    measurements.write(DATASETS / "simulated-gcn3.parquet")
    everything, base = measurements.to_table(), measurements.grid.mid
    rows = [
        row
        for row, application in enumerate(everything.text["application"])
        if application == PROFILED_APPLICATION
        and all(everything.numbers[axis][row] == value for axis, value in base.as_dict().items())
    ]
    profile = Table(
        "profile",
        {name: [cells[row] for row in rows] for name, cells in everything.text.items()},
        {name: values[rows] for name, values in everything.numbers.items()},
    )
    write_table(profile, DATASETS / "simulated-gcn3-profile.csv")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
