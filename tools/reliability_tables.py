"""Tables attacked: damaged Parquet, numbers that cannot be, names that steer, kinds of power."""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from reliability_trials import Attacks, Faults, Files, outside_their_intervals, tried
from synthetic import bottleneck_kernels as made
from synthetic import frugal, tidy

from mlscale import ConfigGrid, save, train
from mlscale.data.public import path as shipped
from mlscale.data.table_files import read_table, write_table

READ = "dram_read_transactions"
EXTREMES = [
    *(("time_ms", value) for value in ("1e308", "1e40", "1e-300", "0", "-1", "nan", "1_0")),
    *(("power_w", value) for value in ("1e308", "1e-300", "-1", "1_0")),
    *((READ, value) for value in ("1e300", str(2**64), "-5", "1_0", "inf")),
    *(("engine_mhz", value) for value in ("1e308", "-1", "1_0")),
]
DOUBTFUL = [("1e15", "1e15"), ("1e-9", "1e-9"), ("1e-9", "1e15"), ("1e15", "1e-9")]
TRIAD = "triad(float *, const float *, const float *, float)"
STEERING_NAMES = (
    "evil\x1b[2J\x1b]0;title\x07<script>alert(1)</script>", "evil\u202ebad", "evil\x9b31m\x7f",
    "=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "\t=1", "'=1",
)  # fmt: skip


def attacks(files: Files, trials: int, seed: int) -> Attacks:
    """By name."""
    return {
        "one bit of a Parquet table": [
            partial(_one_bit, files, f"{seed} {n}") for n in range(trials)
        ],
        "a byte of a Parquet column's name": [
            partial(_column_name, files, n) for n in range(len(_COLUMNS))
        ],
        "numbers that cannot be": [partial(_extreme, files, *pair) for pair in EXTREMES],
        "numbers at the ends of what can be": [partial(_at_ends, files, *p) for p in DOUBTFUL],
        "an odd row that is kept": [
            partial(_odd_row, files, study, column, value)
            for study in STUDIES for column, value in ODD
        ],
        "a model of an odd row": [
            partial(_odd_model, files, predictor, column, value)
            for predictor in LEARNING for column, value in ODD
        ],
        "profiles that cannot be": [
            partial(_impossible, files, *way) for way in IMPOSSIBLE
        ] + [partial(_impossible_export, files, number) for number in IMPOSSIBLE_CELLS],
        "names that steer, or are formulas": [
            partial(_steering, files, name) for name in STEERING_NAMES
        ],
        "power of two kinds": [
            partial(_power_kinds, files, *kinds)
            for kinds in (("board", "dynamic"), ("dynamic", "board"), ("board", "none such"))
        ],
    }  # fmt: skip


# Parquet.

_COLUMNS = ("kernel", "application", "device", "cu_count", "engine_mhz", "memory_mhz", "time_ms",
            "power_w", READ)  # fmt: skip


def _parquet(files: Files) -> tuple[Path, list[Any]]:
    """The profile as Parquet, and its predictions."""
    path, out = files.folder / "whole.parquet", files.folder / "whole.json"
    if not out.exists():
        write_table(read_table(files.profile), path)
        words = ("predict", path, "--model", files.model, "--format", "json", "-o", out)
        if faults := tried(*words, expected={0}):
            raise RuntimeError(str(faults))
    return path, json.loads(out.read_text())["predictions"]


def _same_or_refused(files: Files, content: bytes) -> Faults:
    _, whole = _parquet(files)
    path = files.folder / "damaged.parquet"
    path.write_bytes(content)

    def check(out: str) -> Faults:
        return [] if json.loads(out)["predictions"] == whole else ["other predictions"]

    return tried("predict", path, "--model", files.model, "--format", "json", check=check)


def _one_bit(files: Files, seed: str) -> Faults:
    content = bytearray(_parquet(files)[0].read_bytes())
    bit = Random(seed).randrange(8 * len(content))  # noqa: S311
    content[bit // 8] ^= 1 << bit % 8
    return _same_or_refused(files, bytes(content))


def _column_name(files: Files, number: int) -> Faults:
    """Each place where the name stands, once with another letter and once with none."""
    content, name = _parquet(files)[0].read_bytes(), _COLUMNS[number].encode()
    return [
        fault
        for place in (match.start() for match in re.finditer(name, content))
        for byte in (b"\xff", b"q")
        for fault in _same_or_refused(files, content[:place] + byte + content[place + 1 :])
    ]


# Numbers.


def _changed(path: Path, folder: Path, rows: slice = slice(1, 2), **values: str) -> Path:
    """The table with other values in some rows, the second if none are named."""
    with path.open(encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    table[rows] = [row | values for row in table[rows]]
    return tidy.write_csv(folder / f"changed-{path.name}", table)


def _commands(files: Files, table: Path, profile: Path) -> list[Sequence[object]]:
    """Every command that reads tables or profiles."""
    model, study = files.model, ("--predictor", "nearest", "--seeds", "1")
    learn = ("--base", "highest", "--predictor", "nearest", "-o", files.folder / "x.mlscale")
    return [
        ("predict", profile, "--model", model),
        ("advise", profile, "--model", model),
        ("report", profile, "--model", model, "-o", files.folder / "x.html"),
        ("predict", files.profile, "--model", model, "--also", table),
        ("train", table, *learn),
        ("study", "errors", table, *study),
        ("study", "advice", table, *study),
    ]


def _extreme(files: Files, column: str, value: str) -> Faults:
    """One line from every command: it is no measurement."""
    both = [
        _changed(path, files.folder, **{column: value}) for path in (files.table, files.profile)
    ]
    return [f for words in _commands(files, *both) for f in tried(*words, expected={2})]


def _at_ends(files: Files, time_ms: str, power_w: str) -> Faults:
    """One line, or finite numbers; no warning of NumPy's."""
    values = {"time_ms": time_ms, "power_w": power_w}
    both = [_changed(path, files.folder, **values) for path in (files.table, files.profile)]
    return [fault for words in _commands(files, *both) for fault in tried(*words)]


NEAREST = ("--predictor", "nearest")
STUDIES = {
    "errors": NEAREST, "compare": NEAREST, "base-configuration": NEAREST, "cluster-count": (),
    "error-distribution": (), "oracle": (), "classifier": ("--clusters", "3"),
    "importance": ("--clusters", "3"),
    "advice": NEAREST, "next-profile": ("--predictor", "bottleneck", "--points", "1"),
    "extrapolation": NEAREST,
}  # fmt: skip
LEARNING = ("nearest", "mean-surface", "wu", "bottleneck")
# Values that no reader refuses, and one at which a kernel lacks a configuration of the others'.
ODD = [
    *((column, value) for column in ("time_ms", "power_w") for value in ("1e15", "1e-9")),
    *((READ, value) for value in ("0", str(2**62))),
    ("engine_mhz", "1e15"),
]
ODD_GRID = ConfigGrid((16,), (500.0, 750.0, 1000.0), (3000.0, 4000.0))
ODD_ROWS = (slice(5, 6), slice(0, 6))  # a kernel at the highest clocks, and all of it


def _odd_tables(files: Files, column: str, value: str) -> Iterator[Path]:
    table = files.folder / "odd.csv"
    if not table.exists():
        made.measurements(6, grid=ODD_GRID).write(table)
    for rows in ODD_ROWS:
        yield _changed(table, files.folder, rows, **{column: value})


def _odd_row(files: Files, study: str, column: str, value: str) -> Faults:
    """Finite numbers, or one line."""
    options = (*STUDIES[study], "--seeds", "1", "--incomplete", "drop")
    return [
        fault
        for table in _odd_tables(files, column, value)
        for fault in tried("study", study, table, *options, processor_s=60)
    ]


def _odd_model(files: Files, predictor: str, column: str, value: str) -> Faults:
    """Where a model is trained on it, what it predicts is finite and within its interval."""
    model, faults = files.folder / "odd.mlscale", []
    learn = ("--base", "highest", "--predictor", predictor, "--incomplete", "drop", "-o", model)
    asked = ("predict", files.profile, "--model", model, "--format", "json")
    for table in _odd_tables(files, column, value):
        model.unlink(missing_ok=True)
        faults += tried("train", table, *learn, processor_s=60)
        if model.exists():
            faults += tried(*asked, check=outside_their_intervals)
    return faults


# Profiles: the values of every row, and the commands' exit status.
IMPOSSIBLE: tuple[tuple[dict[str, str], set[int]], ...] = (
    ({"time_ms": "1e-6"}, {2}),  # seconds for milliseconds: far above the DRAM's peak
    ({READ: "-1e6"}, {2}),
    ({READ: str(2**64 - 1)}, {2}),
    ({"achieved_occupancy": "-1"}, {2}),
    ({"achieved_occupancy": "7"}, {0, 2}),
    ({READ: "0", "dram_write_transactions": "0"}, {0, 2}),
)
IMPOSSIBLE_CELLS = (str(2**64), "-5", "1_0", "nan", "inf", "1e300", "9" * 400)


def _impossible(files: Files, values: dict[str, str], expected: set[int]) -> Faults:
    profile = _changed(files.profile, files.folder, slice(None), **values)
    return [
        fault
        for command in ("predict", "advise")
        for fault in tried(
            command, profile, "--model", shipped("nvidia-time.mlscale"), "--format", "json",
            expected=expected, check=outside_their_intervals if command == "predict" else _nothing,
        )
    ]  # fmt: skip


def _nothing(_: str) -> Faults:
    return []


def _impossible_export(files: Files, number: str) -> Faults:
    """Each number of an export in turn, by every second."""
    text = shipped("h100-by-hand.csv").read_text(encoding="utf-8")
    faults = []
    for match in [*re.finditer(r'"[0-9][0-9.,]*"\n', text)][::6]:
        export = files.folder / "impossible-export.csv"
        export.write_text(text[: match.start()] + f'"{number}"\n' + text[match.end() :])
        faults += tried("predict", export, "--format", "json", check=outside_their_intervals)
    return faults


# Names and kinds of power.


def _steering(files: Files, name: str) -> Faults:
    """Through tables, CSV, JSON, the page and an error line; `tried` looks for controls."""
    export, page = files.folder / "steering.csv", files.folder / "steering.html"
    table, out = files.folder / "steering-table.csv", files.folder / "steering-out.csv"
    text = shipped("h100-by-hand.csv").read_text(encoding="utf-8").replace(TRIAD, name)
    export.write_text(text, encoding="utf-8")
    ask = ("advise", export, "--max-slowdown", "5")
    faults = []
    for words in (
        ("predict", export), ("predict", export, "--format", "json"), ask,
        (*ask, "--format", "json"), ("import", export, "-o", table),
        ("predict", export, "--format", "csv", "-o", out), ("report", export, "-o", page),
    ):  # fmt: skip
        faults += tried(*words, expected={0})
    for words in (("predict", export, "--model", f"no{name}"), ("predict", f"no{name}.csv")):
        faults += tried(*words, expected={2})
    texts = [path.read_text(encoding="utf-8") for path in (page, table, out)]
    if "<script>alert" in texts[0] or {"\x1b", "\x9b", "\x07"} & set("".join(texts)):
        faults.append("a name steers the page or a table")
    for file in (table, out):
        with file.open(encoding="utf-8", newline="") as lines:
            cells = {row["kernel"] for row in csv.DictReader(lines)}
        if formulas := [cell for cell in cells if cell[:1] in tuple("=+-@")]:
            faults.append(f"a formula in CSV: {formulas}")
    return faults


def _power_kinds(files: Files, of_model: str, of_profile: str) -> Faults:
    """Refused, by each command that predicts power."""
    model, profile = files.folder / "kind.mlscale", files.folder / "kind.csv"
    table = frugal.measurements(power_kind=of_model)
    save(train(table, table.grid.mid, "nearest"), model)
    frugal.measurements(per_group=1, power_kind=of_profile).write(profile)
    page = ("report", profile, "--model", model, "-o", files.folder / "kind.html")
    asked = [("predict", profile, "--model", model), ("advise", profile, "--model", model), page]
    return [fault for words in asked for fault in tried(*words, expected={2})]
