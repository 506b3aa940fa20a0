"""Files of every kind that mlscale reads, damaged, and whether it bears them.

A damaged file is refused in one line, with exit status 2, or read; then no number of a kernel that
the damage does not touch may be another. For tests/test_mutations.py and tools/reliability.py.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from model_files import content_of, members_of, trained, zipped
from synthetic import exports, monitor_logs, traces
from synthetic import kernels as made

from mlscale import ConfigGrid, Profiles, train
from mlscale.cli.main import main
from mlscale.data.table import Table
from mlscale.data.tables import read_table, write_table

AT = ("--device", "made-gpu", "--base", "cu=4,engine=1000,memory=500")
A100 = ("--device", "a100-sxm4-40gb", "--base", "cu=108,engine=1410,memory=1215")
MODELS = (
    "mean-surface",
    "nearest",
    "wu",
    "bottleneck",
    "wang-chu",
    "max-overlap",
    "sampled",
    "board-power",
)
JUNK = (b"", b",", b'"', b"\n", b"\r", b"\0", b"-", b"1e999", b"\xff\xfe", b"n/a", b"[" * 5000)
NUMBERS = ("-1", "0", "nan", "inf", "1e308", "1e-320", "1_0", "9" * 400, "0x10", "1,5", "")
LONGEST_CUT = 40
DEVICE = {
    "key": "of-ones-own", "cu_count": 4, "lanes_per_cu": 128, "fp64_lanes_per_cu": 2,
    "special_function_lanes_per_cu": 16, "schedulers_per_cu": 4, "wave_size": 32,
    "max_waves_per_cu": 48, "memory_bus_bits": 256, "memory_transfers_per_cycle": 2,
}  # fmt: skip

Rows = dict[str, list[dict[str, str]]]


@dataclass(frozen=True)
class Reader:
    """A file, and a command that reads it: '{}' is the file, '{out}' the CSV that it writes.

    keeps: whose rows must stay as they are when a damaged file is taken: those of 'all' kernels,
    as checksums notice everything, of the 'others', whose lines are whole, or of 'nobody'.
    damage: what makes a fault in the content, where it is not `damaged`.
    """

    name: str
    suffix: str
    content: bytes
    command: tuple[str, ...]
    keeps: str = "nobody"
    damage: Callable[[bytes, Random], bytes] | None = None


def readers(folder: Path, models: Sequence[str] = ()) -> Iterator[Reader]:
    """A reader of each kind; the files that the commands need besides are put into the folder.

    models: the predictors of which a model file is read too.
    """
    yield from _exports(folder)
    for name, log in _logs().items():
        read = ("import", "auto", "{}", *AT[:2], "--base", "cu=4", "--interval", "0.1")
        own_times = name in ("query", "dcgm_sdk", "amd_metric", "amd_monitor")
        yield Reader(
            name, ".csv", log.encode(), (*read[: -2 if own_times else None], "-o", "{out}")
        )
    yield from _tables(folder)
    for predictor in models:
        yield from _model_files(folder, predictor)


def _exports(folder: Path) -> Iterator[Reader]:
    def own(name: str, *texts: str, at: tuple[str, ...] = AT, keeps: str = "others") -> Reader:
        """The last file is damaged, those before are of the same run."""
        before = []
        for number, text in enumerate(texts[:-1]):
            before.append(folder / f"{name.replace(' ', '-')}-{number}.csv")
            before[-1].write_text(text, encoding="utf-8")
        command = ("import", "auto", *map(str, before), "{}", *at, "-o", "{out}")
        return Reader(name, ".csv", texts[-1].encode(), command, keeps)

    several = [exports.long_rows(n, f"void k{n}<int>(float *)") for n in range(4)]
    v1 = exports.rocprof_v1({"SQ_WAVES": 10, "SQ_INSTS_VALU": 5}, times=[(0, 1000)])
    v3 = exports.rocprofv3({"SQ_WAVES": 10, "SQ_INSTS_VALU": 500})
    amd = ("--device", "mi210", "--base", "engine=1700,memory=1600")
    p100 = ("--device", "p100", "--base", "engine=1328,memory=715")
    yield own("ncu details", exports.long_page(*several))
    yield own("ncu raw", exports.wide_page([{"Kernel Name": f"k{n}(int)"} for n in range(4)]))
    yield own("nvprof", exports.NVPROF_METRICS, exports.NVPROF_TRACE, at=p100)
    yield own("rocprof", v1, at=amd)
    yield own("rocprofv3", v3, exports.V3_TRACE, at=amd)
    yield own("codexl", exports.codexl(), at=("--base", "engine=925,memory=1375"))
    yield own("nsys trace", traces.gpu_trace(), at=A100)
    text = json.dumps(traces.chrome_trace(), indent=0)
    yield Reader("torch trace", ".json", text.encode(),
                 ("import", "auto", "{}", *A100, "-o", "{out}"))  # fmt: skip
    database = traces.write_sqlite(folder / "whole.sqlite").read_bytes()
    yield Reader("nsys sqlite", ".sqlite", database,
                 ("import", "auto", "{}", *A100, "-o", "{out}"))  # fmt: skip
    page = folder / "of-own-device.csv"
    page.write_text(exports.long_page(), encoding="utf-8")
    device = json.dumps(DEVICE, indent=0).encode()
    words = ("import", "auto", str(page), "--device", "{}", *AT[2:], "-o", "{out}")
    yield Reader("device file", ".json", device, words)


def _logs() -> dict[str, str]:
    ticks = monitor_logs.block(3, 6, 2)
    names = ("query", "smi_dmon", "dcgmi_dmon", "dcgm_exporter", "dcgm_sdk")
    names += ("rocm_csv", "rocm_json", "amd_metric", "amd_monitor")
    return {name: getattr(monitor_logs, name)(ticks) for name in names}


def _tables(folder: Path) -> Iterator[Reader]:
    grid = ConfigGrid((4,), (400.0, 800.0), (500.0,))
    kernels = made.measurements(per_group=2, grid=grid)
    model = folder / "of-the-tables.mlscale"
    model.write_bytes(content_of(train(kernels, grid.mid, "nearest"), folder))
    table = folder / "whole.csv"
    kernels.write(table)
    read = ("predict", "{}", "--model", str(model), "--format", "csv", "-o", "{out}")
    yield Reader("table CSV", ".csv", table.read_bytes(), read, "others")
    parquet = folder / "whole.parquet"
    write_table(read_table(table), parquet)
    yield Reader("table Parquet", ".parquet", parquet.read_bytes(), read, "all")
    yield Reader("weights", ".csv", b"kernel,launches\n" + b"".join(
        b"%s,%d\n" % (name.encode(), 2 + n) for n, name in enumerate(kernels.kernels)),
        ("advise", str(parquet), "--model", str(model), "--weights", "{}", "--format", "csv",
         "-o", "{out}"))  # fmt: skip


def _model_files(folder: Path, predictor: str) -> Iterator[Reader]:
    """The file as a disk damages it, and its members as an attacker would, who mends checksums."""
    model, profiles = trained(predictor)
    profile = folder / f"{predictor}.csv"
    write_table(_profile_table(profiles), profile)
    content = content_of(model, folder)
    read = ("predict", str(profile), "--model", "{}", "--format", "csv", "-o", "{out}")
    yield Reader(f"model {predictor}", ".mlscale", content, read, "all")
    members = members_of(content)

    def mended(_: bytes, random: Random) -> bytes:
        name = random.choice([*members])
        return zipped(members | {name: damaged(members[name], random)})

    yield Reader(f"model {predictor}, made right", ".mlscale", content, read, damage=mended)


def _profile_table(profiles: Profiles) -> Table:
    """The rows of the profiles at their base."""
    count = len(profiles.kernels)
    numbers = {
        axis: np.full(count, float(value)) for axis, value in profiles.base.as_dict().items()
    }
    numbers["time_ms"] = profiles.time_ms
    if profiles.power_w is not None:
        numbers["power_w"] = profiles.power_w
    numbers |= dict(zip(profiles.counter_names, profiles.counters.T, strict=True))
    text = {
        "device": [profiles.device] * count,
        "application": [*profiles.applications],
        "kernel": [*profiles.kernels],
    }
    return Table("made", text, numbers, profiles.metadata)


def damaged(content: bytes, random: Random) -> bytes:
    """The content with one fault: of the disk, of an editor, or put there on purpose."""
    return random.choice(FAULTS)(content, random)


def _flipped(content: bytes, random: Random) -> bytes:
    place = random.randrange(len(content))
    return (
        content[:place] + bytes([content[place] ^ 1 << random.randrange(8)]) + content[place + 1 :]
    )


def _replaced(content: bytes, random: Random) -> bytes:
    start = random.randrange(len(content))
    return content[:start] + random.choice(JUNK) + content[start + random.randrange(LONGEST_CUT) :]


def _truncated(content: bytes, random: Random) -> bytes:
    return content[: random.randrange(len(content))]


def _lines_moved(content: bytes, random: Random) -> bytes:
    """A line is left out, there twice, or changes its place."""
    lines = content.splitlines(keepends=True)
    line = lines.pop(random.randrange(len(lines)))
    for _ in range(random.randrange(3)):
        lines.insert(random.randrange(len(lines) + 1), line)
    return b"".join(lines)


def _number_replaced(content: bytes, random: Random) -> bytes:
    """One number in the text is another, or is none."""
    starts = [i for i in range(1, len(content)) if content[i : i + 1].isdigit()
              and not content[i - 1 : i].isalnum()]  # fmt: skip
    if not starts:
        return _flipped(content, random)
    start = end = random.choice(starts)
    while content[end : end + 1].isdigit() or content[end : end + 1] == b".":
        end += 1
    return content[:start] + random.choice(NUMBERS).encode() + content[end:]


FAULTS: tuple[Callable[[bytes, Random], bytes], ...] = (
    _flipped, _replaced, _truncated, _lines_moved, _number_replaced,
)  # fmt: skip


class Trial:
    """A reader with what comes of its whole file; gives damaged ones to the command."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self.reader, self._folder = reader, folder
        problem, self.whole = self._run(reader.content)
        if problem or not self.whole:
            raise AssertionError(
                f"{reader.name}: the whole file is not read: {problem or self.said}"
            )

    def problem(self, random: Random) -> str | None:
        """What is wrong with how the command bears one fault; None where nothing is."""
        return self.problem_of((self.reader.damage or damaged)(self.reader.content, random))

    def problem_of(self, content: bytes) -> str | None:
        """What is wrong with how the command bears this content."""
        problem, rows = self._run(content)
        if problem or not rows or self.reader.keeps == "nobody":
            return problem
        names = list(self.whole)
        if self.reader.keeps == "others":
            names = untouched(self.reader.content, content, names)
        others = [name for name in names if rows.get(name) != self.whole[name]]
        return f"other numbers of {others[0]!a}" if others else None

    def _run(self, content: bytes) -> tuple[str | None, Rows]:
        path, out = self._folder / f"damaged{self.reader.suffix}", self._folder / "out.csv"
        path.write_bytes(content)
        for old in (out, out.with_suffix(".meta.json")):
            old.unlink(missing_ok=True)
        given = {"{}": str(path), "{out}": str(out)}
        said = io.StringIO()
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            try:
                status = main([given.get(word, word) for word in self.reader.command])
            except SystemExit as end:
                status = int(end.code or 0)
            except Exception as error:  # a traceback, for a user
                return f"{type(error).__name__}: {str(error)[:200]}", {}
        self.said = said.getvalue()
        lines = self.said.splitlines()
        if status not in (0, 2):
            return f"exit status {status}", {}
        if raw := [line for line in lines if not line.startswith("mlscale: ")]:
            return f"says {raw[0][:200]!a}", {}
        if status == 2:
            return ("leaves a file" if out.exists() else None), {}
        with out.open(encoding="utf-8", newline="") as file:
            cells = list(csv.DictReader(file))
        rows: Rows = {}
        for row in cells:
            if {"nan", "inf", "-inf"} & {str(cell).lower() for cell in row.values()}:
                return "writes a number that is none", {}
            rows.setdefault(row["kernel"], []).append(row)
        return None, rows


def untouched(whole: bytes, other: bytes, names: Sequence[str]) -> list[str]:
    """The names of which no line differs; none where the lines before the first one's do."""
    before, after = whole.splitlines(), other.splitlines()
    same = next((i for i, pair in enumerate(zip(before, after, strict=False))
                 if pair[0] != pair[1]), min(len(before), len(after)))  # fmt: skip
    first = next((i for i, line in enumerate(before) if any(n.encode() in line for n in names)), 0)
    if same < first:
        return []
    below = 0
    while below < min(len(before), len(after)) - same and before[-1 - below] == after[-1 - below]:
        below += 1
    differ = b"\n".join([*before[same : len(before) - below], *after[same : len(after) - below]])
    return [name for name in names if name.encode() not in differ]
