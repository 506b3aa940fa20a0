"""Titles of columns as people have them: 96 public headers with what they mean.

`headers/headers.jsonl` of the data folder says of each header by whose hand which column is what,
in which unit. Nothing there may be taken for something else in silence.
"""

import ast
import csv
import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlscale.errors import InputError
from mlscale.readers.monitor import Samples, read_log

OURS = {"engine": "engine_mhz", "mem": "memory_mhz", "power": "power_w", "cap": "power_cap_w",
        "util": "gpu_utilisation", "mem_util": "memory_copy_utilisation"}  # fmt: skip
OF_TABLES = {**OURS, "duration": "time_ms"}
FACTOR = {"W": 1.0, "mW": 1e-3, "MHz": 1.0, "%": 0.01}
MADE = {"MHz": "1215", "W": "250", "mW": "250000", "%": "80", "-": "0", "C": "50", "J": "90"}
TIMES = {"local": "2026-03-02 10:00:0{n}.5", "iso": "2026-03-02T10:00:0{n}.5Z",
         "clock": "10:00:0{n}.5",
         "epoch_s": "177246186{n}.5", "epoch_ms": "177246186{n}500",
         "epoch_us": "177246186{n}500000", "epoch_ns": "177246186{n}500000000", "s": "{n}.5",
         "ms": "{n}500"}  # fmt: skip
AIM = 90
ARE_ONE_MOMENT = re.compile(r"^(04-03-2021,13:32:39|2,83).*\n\1", re.MULTILINE)


def made_rows(entry: dict[str, Any], titles: list[str]) -> list[str]:
    """Three rows for a header that was printed without any; what is not of its meaning is 7."""
    by_title = {at["column"]: at["unit"] for at in entry["meaning"].values()}
    if at := next((m for m in entry["meaning"].values() if m["column"] == "Date+Time"), None):
        by_title |= {"Date": "date", "Time": at["unit"].replace("local", "clock")}
    rows = []
    for n in range(3):
        cells = []
        for title in titles:
            unit = by_title.get(title, "")
            form = {"date": "2.3.2026", **TIMES}.get(unit, MADE.get(unit, "7"))
            if "timestamp" in title and not unit:
                form = TIMES["local"]  # the same moment twice
            cells.append(form.format(n=n))
        rows.append(",".join(cells))
    return rows


def file_of(entry: dict[str, Any], folder: Path) -> Path:
    lines, units = entry["lines"], entry.get("units")
    if not lines:
        lines = made_rows(entry, [t.strip() for t in next(csv.reader([entry["header"]]))])
    if units:  # as Afterburner writes them
        stamp = entry["header"].split(",")[1]
        of_units = [
            f"03,{stamp}, {n} ,{unit} ,0.000 ,100.000 ,10 , , ," for n, unit in enumerate(units)
        ]
        lines = of_units + lines
    path = folder / f"{entry['id']}.csv"
    path.write_text("\n".join([entry["header"], *lines]).lstrip("\n") + "\n")
    return path


def cells_of(entry: dict[str, Any], line: str) -> list[str]:
    if entry["delimiter"] == "blanks":  # 'GPU 0' is one cell
        return line.replace("#", "").replace("GPU ", "").split()
    return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), [])]


def expected(entry: dict[str, Any], path: Path) -> dict[tuple[str, str], list[float]]:
    """By the number of the GPU in a title and our name what the cells say, in our unit."""
    rows = [cells_of(entry, line) for line in path.read_text().splitlines()]
    titles = cells_of(entry, entry["header"])
    body = [
        row
        for row in rows
        if len(row) >= len(titles) and row != titles and row[0] not in ("02", "03")
    ]
    wanted = {}
    for quantity, at in entry["meaning"].items():
        name, _, gpu = quantity.rstrip("]").partition("[")
        if name in OURS and at["column"] in titles:
            cells = [row[titles.index(at["column"])] for row in body]
            numbers = [re.sub(r"\s*(W|%|MHz)$", "", cell) for cell in cells]
            values = [float(c) if re.fullmatch(r"[\d.]+", c) else math.nan for c in numbers]
            wanted[gpu, OURS[name]] = [v * FACTOR[at["unit"]] for v in values]
    return wanted


def unlike(entry: dict[str, Any], logs: list[Samples], path: Path, told: str) -> str:
    """'' where the samples are those of the meaning, or told to be left out; else what is not."""
    columns = {OURS[n]: m["column"] for n, m in entry["meaning"].items() if n in OURS}
    wanted = expected(entry, path)
    wide = any(gpu for gpu, _ in wanted)
    rows = {
        gpu: {ours: v for (of, ours), v in wanted.items() if of == gpu and not np.isnan(v).all()}
        for gpu in {gpu for gpu, _ in wanted} or {""}
    }
    for log in logs:
        mine = rows.get(log.gpu if wide else "", {})
        got = {name: c for name, c in log.columns.items() if name in OURS.values()}
        left = {name for name, column in columns.items() if f"left out: '{column}'" in told}
        if others := (got.keys() ^ mine.keys()) - (left - got.keys()):
            return f"{sorted(others)}"
        for name, column in got.items():
            known = set(np.round(column[~np.isnan(column)], 6).tolist())
            if name == "engine_mhz" and "gfx_0_clk" in entry["header"]:
                continue  # the mean of eight dies, checked by test_monitor
            if not known <= set(np.round(mine[name], 6).tolist()):
                return name
        has_time = "time" in entry["meaning"] and not ARE_ONE_MOMENT.search(path.read_text())
        passed_s = 0.0 if log.seconds is None else log.seconds[-1] - log.seconds[0]
        if len(log) > 1 and not has_time <= (0 < passed_s < 1e4):
            return "time"
    return ""


def outcome(entry: dict[str, Any], folder: Path) -> str:
    """'read', 'refused', which names what is right, or what is wrong."""
    path = file_of(entry, folder)
    columns = {name.partition("[")[0]: at["column"] for name, at in entry["meaning"].items()}
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            wrong = unlike(entry, read_log(path), path, "".join(str(w.message) for w in caught))
    except InputError as error:
        told = str(error)
        if entry["usable"] == "no":
            return "refused"
        if entry["usable"] == "table":
            mapped = re.search(r"columns=({.*?})", told)
            said = ast.literal_eval(mapped[1]) if mapped else {}
            names = ("engine", "mem", "cap", "duration", "power")
            wanted = {OF_TABLES[n]: columns[n] for n in names if n in columns}
            mapped_to = {name: re.sub(r":\w+$", "", source) for name, source in said.items()}
            return "refused" if mapped_to == wanted else f"wrong: {told}"
        if not entry["header"]:
            return "refused" if "begins with values, not with titles" in told else f"wrong: {told}"
        named = [
            c for n, c in columns.items() if n in ("power", "engine", "time") and f"'{c}'" in told
        ]
        return "refused" if named else f"wrong: {told}"
    return f"wrong: took {wrong}" if wrong else "read"


def test_headers_are_read_or_the_right_column_is_named(
    data_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (data_folder / "headers/headers.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    outcomes = {
        entry["id"]: outcome(entry, tmp_path) for entry in entries if not entry["kept_apart"]
    }
    right = [name for name, told in outcomes.items() if not told.startswith("wrong")]
    with capsys.disabled():
        print(f"\n{len(right)} of {len(outcomes)} headers read or named right")
    wrong = {name: told for name, told in outcomes.items() if name not in right}
    assert len(right) >= AIM, "\n".join(f"{name}: {told}" for name, told in wrong.items())
    in_silence = [name for name, told in wrong.items() if "took" in told]
    assert not in_silence
