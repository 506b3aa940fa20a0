"""mlscale collect --micro-benchmarks: a device entry for wang-chu, and Volkov's survey measured."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli import options
from mlscale.cli.text import columns, number
from mlscale.errors import warn
from mlscale.files import write_text

if TYPE_CHECKING:
    from mlscale.collect.device import MeasuredGpu

RECORD, ENTRY, SURVEY = "micro.json", "wang_chu_gpus.json", "volkov.csv"


def run(arguments: argparse.Namespace, gpu: MeasuredGpu) -> None:
    """Measure and write. Raises InputError; nothing is written unless all was measured."""
    from tqdm import tqdm

    from mlscale.cli.collect import recover
    from mlscale.collect.clocks import ClockKeeper, settings
    from mlscale.collect.micro import measure_memory, measure_volkov
    from mlscale.collect.micro_kernels import INTENSITIES, WARPS

    clocks = settings(arguments.engine, arguments.memory, gpu.sensors.supported_clocks())
    with ExitStack() as stack:
        folder = stack.enter_context(options.output_folder(arguments.output))
        keeper = stack.enter_context(ClockKeeper(gpu.sensors, gpu.info.uuid))
        recover(keeper)
        total = len(clocks) + len(INTENSITIES) * len(WARPS)
        bar = stack.enter_context(tqdm(total=total, disable=None, leave=False))
        samples = measure_memory(gpu, keeper, clocks, bar.update)
        rows = measure_volkov(gpu, bar.update)
        bar.close()
        keeper.restore()
        print(_write(folder, gpu, samples, rows))


def _write(folder: Path, gpu: MeasuredGpu, samples: list[Any], rows: list[dict[str, Any]]) -> str:
    import pandas as pd

    from mlscale.collect.micro_fit import (
        device_entry,
        fit_compute_unit,
        survey_errors,
        survey_rows,
    )
    from mlscale.collect.recording import device_name
    from mlscale.data.devices import device_keys, load_device

    key = device_name(gpu.info)
    record: dict[str, Any] = {
        "device": key,
        "name": gpu.info.name,
        "uuid": gpu.info.uuid,
        "versions": gpu.info.versions,
        "memory": [sample.as_dict() for sample in samples],
        "volkov": rows,
    }
    entry_note = []
    schedulers = 4
    if key in device_keys():
        device = load_device(key)
        schedulers = device.schedulers_per_cu
        entry = device_entry(samples, device, "mlscale collect --micro-benchmarks")
        document = {"format_version": 1, "gpus": {key: entry}}
        write_text(folder / ENTRY, json.dumps(document, indent=1) + "\n")
        entry_note.append(f"{folder / ENTRY}: the entry of '{key}' for wang-chu; {entry['note']}")
    else:
        warn(
            f"'{key}' is not in mlscale/data/devices.json: describe it there for an entry of "
            "wang-chu; four schedulers a CU are assumed"
        )
    cu = fit_compute_unit(rows, schedulers)
    beside = survey_rows(rows, cu)
    errors = survey_errors(beside)
    record["compute_unit"] = {name: getattr(cu, name) for name in cu.__dataclass_fields__}
    record["survey_errors"] = errors
    write_text(folder / SURVEY, pd.DataFrame(beside).to_csv(index=False))
    write_text(folder / RECORD, json.dumps(record, indent=1) + "\n")
    table = columns(
        ["model", "mean error %", "median %", "largest %"],
        [[e["model"], *(number(e[k], 3) for k in ("mape", "median", "worst"))] for e in errors],
    )
    return "\n".join([f"{folder}: {RECORD}, {SURVEY}", *entry_note, table])
