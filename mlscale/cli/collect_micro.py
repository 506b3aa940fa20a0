"""mlscale collect --micro: what was measured becomes gpu.json, which 'literature --gpu' reads."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli.text import columns, number
from mlscale.errors import InputError, warn
from mlscale.files import write_text

if TYPE_CHECKING:
    from mlscale.collect.device import DeviceInfo

GPU = "gpu.json"


def write(
    folder: Path, rows: list[dict[str, Any]], info: DeviceInfo, failed: dict[str, str]
) -> str:
    """Fit and write; what there is to say of it. Raises InputError where a benchmark failed."""
    from mlscale.collect.micro_fit import compute_unit, setting, wang_chu_entry
    from mlscale.collect.micro_kernels import probes
    from mlscale.collect.recording import device_name
    from mlscale.data.devices import device_keys, load_device
    from mlscale.studies.volkov import measured_errors

    if failed:
        raise InputError(f"{folder}: {'; '.join(f'{name} {why}' for name, why in failed.items())}")
    of_clocks: dict[tuple[float, float], dict[str, float]] = {}
    for row in rows:
        clocks = (row["engine_mhz"], row["memory_mhz"])
        of_clocks.setdefault(clocks, {})[row["kernel"]] = row["time_ms"]
    settings = [setting(probes(info), times, *clocks) for clocks, times in of_clocks.items()]
    highest = max(settings, key=lambda measured: (measured.engine_mhz, measured.memory_mhz))
    key = device_name(info)
    schedulers, entry = 4, None
    if key in device_keys():
        schedulers = load_device(key).schedulers_per_cu
        entry = wang_chu_entry(settings, load_device(key))
    else:
        warn(
            f"'{key}' is not in the device table: there is no entry for wang-chu, and four "
            "schedulers a CU are assumed"
        )
    cu = compute_unit(highest, info, schedulers)
    volkov = [
        {"warps": warps, "intensity": intensity, "ipc": ipc}
        for (warps, intensity), ipc in highest.ipc.items()
    ]
    document = {
        "format_version": 1,
        "device": key,
        "name": info.name,
        "wang_chu": entry,
        "compute_unit": asdict(cu),
        "volkov": volkov,
        "settings": [
            {"engine_mhz": s.engine_mhz, "memory_mhz": s.memory_mhz, **s.cycles} for s in settings
        ],
    }
    write_text(folder / GPU, json.dumps(document, indent=1) + "\n")
    cycles = [[name, number(value)] for name, value in highest.cycles.items()]
    unit = [[name, number(value)] for name, value in asdict(cu).items()]
    errors = [
        [row["model"], *(number(row[k], 3) for k in ("mape", "median", "worst"))]
        for row in measured_errors(volkov, cu)
    ]
    return "\n\n".join(
        [
            f"{folder / GPU}: {key} at {len(settings)} settings of the clocks"
            + (f"; {entry['note']}" if entry else ""),
            columns(["quantity", "engine cycles"], cycles),
            columns(["CU of Volkov's survey", ""], unit),
            columns(["model", "mean error %", "median %", "largest %"], errors),
        ]
    )
