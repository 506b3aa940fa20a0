"""Files of every kind that mlscale reads, each with a command that reads it."""

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from model_files import DRAM_GRID, content_of, trained
from synthetic import (
    bottleneck_kernels,
    dvfs,
    exports,
    llm_server,
    monitor_logs,
    monitor_readings,
    rocpd_files,
    serving_results,
    traces,
    tuned,
)
from synthetic import kernels as made

from mlscale import ConfigGrid, Profiles, train
from mlscale.data.table import Table
from mlscale.data.table_files import read_table, write_table
from mlscale.predictors import PREDICTORS
from mlscale.predictors.base import Savable

AT = ("--device", "made-gpu", "--base", "cu=4,engine=1000,memory=500")
A100 = ("--device", "a100-sxm4-40gb", "--base", "cu=108,engine=1410,memory=1215")
MODELS = tuple(name for name, kind in PREDICTORS.items() if issubclass(kind, Savable))
DEVICE = {
    "key": "of-ones-own", "cu_count": 4, "lanes_per_cu": 128, "fp64_lanes_per_cu": 2,
    "special_function_lanes_per_cu": 16, "schedulers_per_cu": 4, "wave_size": 32,
    "max_waves_per_cu": 48, "memory_bus_bits": 256, "memory_transfers_per_cycle": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Reader:
    """A file, and a command that reads it: '{}' is the file, '{out}' the CSV that it writes.

    keeps: whose rows must stay as they are when a damaged file is taken: those of 'all' kernels,
    as checksums notice everything, of the 'others', whose lines are whole, or of 'nobody'.
    refuses: the faults of tests/mutations.py after which it is not taken.
    """

    name: str
    suffix: str
    content: bytes
    command: tuple[str, ...]
    keeps: str = "nobody"
    refuses: Collection[str] = ("a packed bomb",)


def readers(folder: Path, models: Sequence[str] = ()) -> Iterator[Reader]:
    """A reader of each kind; the files that the commands need besides are put into the folder.

    models: the predictors of which a model file is read too.
    """
    yield from _exports(folder)
    yield from _logs()
    yield from _servers(folder)
    yield from _tables(folder)
    yield from _further_points(folder)
    yield from _measurements()
    for predictor in models:
        yield from _model_files(folder, predictor)


def _exports(folder: Path) -> Iterator[Reader]:
    def own(name: str, *texts: str, at: tuple[str, ...] = AT, keeps: str = "others") -> Reader:
        """The last file is damaged, those before are of the same run."""
        before = []
        for number, text in enumerate(texts[:-1]):
            before.append(folder / f"{name.replace(' ', '-')}-{number}.csv")
            before[-1].write_text(text, encoding="utf-8")
        command = ("import", *map(str, before), "{}", *at, "-o", "{out}")
        return Reader(name, ".csv", texts[-1].encode(), command, keeps)

    several = [exports.long_rows(n, f"void k{n}<int>(float *)") for n in range(4)]
    v1 = exports.rocprof_v1({"SQ_WAVES": 10, "SQ_INSTS_VALU": 5}, times=[(0, 1000)])
    v3 = exports.rocprofv3({"SQ_WAVES": 10, "SQ_INSTS_VALU": 500})
    amd = ("--device", "mi210", "--base", "engine=1700,memory=1600")
    yield own("ncu details", exports.long_page(*several))
    yield own("ncu raw", exports.wide_page([{"Kernel Name": f"k{n}(int)"} for n in range(4)]))
    yield own("rocprof", v1, at=amd)
    yield own("rocprofv3", v3, exports.V3_TRACE, at=amd)
    yield own("ncu text", exports.NCU_TEXT, keeps="nobody")
    yield own("nsys trace", traces.gpu_trace(), at=A100)
    yield own("nsys summary", traces.SUM_CSV, at=A100)
    text = json.dumps(traces.chrome_trace(), indent=0)
    yield Reader("torch trace", ".json", text.encode(),
                 ("import", "{}", *A100, "-o", "{out}"))  # fmt: skip
    database = traces.write_sqlite(folder / "whole.sqlite").read_bytes()
    yield Reader("nsys sqlite", ".sqlite", database,
                 ("import", "{}", *A100, "-o", "{out}"))  # fmt: skip
    counters = {"SQ_WAVES": [4, 6], "SQ_INSTS_VALU": [300, 200]}
    run = [rocpd_files.Dispatch(n, f"k{n}(int)", counters=counters) for n in range(4)]
    database = rocpd_files.write_database(folder / "whole.db", run).read_bytes()
    yield Reader("rocpd", ".db", database,
                 ("import", "{}", "--base", "engine=2100", "-o", "{out}"))  # fmt: skip
    page = folder / "of-own-device.csv"
    page.write_text(exports.long_page(), encoding="utf-8")
    device = json.dumps(DEVICE, indent=0).encode()
    words = ("import", str(page), "--device", "{}", *AT[2:], "-o", "{out}")
    yield Reader("device file", ".json", device, words)


LOG = ("import", "{}", *AT[:2], "--base", "cu=4", "--interval", "0.1", "-o", "{out}")
TIMED_LOG = tuple(word for word in LOG if word not in ("--interval", "0.1"))
OF_RESULTS = ("a packed bomb", "a field twice", "all requests failed")
OF_ALL_LOGS = ("a packed bomb", "a header alone", "set back by an hour", "two GPUs under one index")


def _logs() -> Iterator[Reader]:
    ticks = monitor_readings.block(3, 6, 2)
    for name in ("query", "smi_dmon", "dcgmi_dmon"):
        log, words = getattr(monitor_logs, name)(ticks), TIMED_LOG if name == "query" else LOG
        yield Reader(name, ".csv", log.encode(), words, refuses=OF_ALL_LOGS)
    words = ("import", "{}", "-o", "{out}", "--base")
    for name, end, base in (
        ("named", ".csv", "cu=108"),
        ("abreast", ".csv", "cu=108,memory=1215"),
        ("gpustat", ".json", "cu=108,memory=1215,engine=1410"),
        ("prometheus", ".json", "cu=108"),
    ):
        refuses = OF_ALL_LOGS if end == ".csv" else ("a packed bomb",)
        device = () if name in ("named", "gpustat") else ("--device", "made-gpu")
        log = getattr(monitor_logs, name)(ticks).encode()
        yield Reader(f"log {name}", end, log, (*words, base, *device), refuses=refuses)


def _servers(folder: Path) -> Iterator[Reader]:
    """Results of a benchmark at one of two clocks, with the logs and the other's result."""
    for tool in (*serving_results.WHOLE, "with lists"):
        words = ["advise"]
        for mhz in (1980, 1320):
            times = (1980 / mhz) ** 0.5
            if tool == "with lists":
                run = llm_server.serve(llm_server.Server(), mhz, 9, 40, clients=4, answer=50)
                told, run_s = llm_server.result(run), run.duration_s
            else:
                told, run_s = serving_results.slower(serving_results.WHOLE[tool], times), 50 * times
            result, log = (folder / f"{tool}-{mhz}.{end}" for end in ("json", "csv"))
            text = json.dumps(told, indent=1)
            result.write_text(text, encoding="utf-8")
            log.write_text(llm_server.log_of(mhz, run_s, 0.3 * mhz), encoding="utf-8")
            words += [str(result) if mhz == 1980 else "{}", str(log), "--also"]
        read = (*words[:-1], "--slo", "tpot=1.5x@p90", "--json")
        yield Reader(f"server {tool}", ".json", text.encode(), read, refuses=OF_RESULTS)


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
    yield Reader("table Parquet", ".parquet", parquet.read_bytes(), read)
    yield Reader("weights", ".csv", b"kernel,launches\n" + b"".join(
        b"%s,%d\n" % (name.encode(), 2 + n) for n, name in enumerate(kernels.kernels)),
        ("advise", str(parquet), "--model", str(model), "--weights", "{}", "--format", "csv",
         "-o", "{out}"))  # fmt: skip


def _further_points(folder: Path) -> Iterator[Reader]:
    fitted, profiles = trained("bottleneck")
    model, profile, points = (folder / f"of-points.{end}" for end in ("mlscale", "csv", "also.csv"))
    model.write_bytes(content_of(fitted, folder))
    write_table(profile_table(profiles), profile)
    bottleneck_kernels.measurements(4, grid=DRAM_GRID).write(points)
    read = ("predict", str(profile), "--model", str(model), "--format", "csv", "-o", "{out}")
    yield Reader("further points", ".csv", points.read_bytes(), (*read, "--also", "{}"))


def _measurements() -> Iterator[Reader]:
    """Files of measurements that become tables."""
    rows = dvfs.rows()
    lines = (",".join(map(str, row)) for row in (rows[0], *(row.values() for row in rows)))
    read = ("import", "dvfs", "{}", "--device", "gtx980", "-o", "{out}")
    yield Reader("dvfs", ".csv", "\n".join(lines).encode(), read)
    read = ("import", "kernel-tuner", "{}", "--base", "cu=48,memory=7001", "-o", "{out}")
    yield Reader("kernel tuner", ".json", tuned.CACHE.encode(), read)


def _model_files(folder: Path, predictor: str) -> Iterator[Reader]:
    """The file as a disk damages it."""
    model, profiles = trained(predictor)
    profile = folder / f"{predictor}.csv"
    write_table(profile_table(profiles), profile)
    content = content_of(model, folder)
    read = ("predict", str(profile), "--model", "{}", "--format", "csv", "-o", "{out}")
    yield Reader(f"model {predictor}", ".mlscale", content, read, "all")


def profile_table(profiles: Profiles) -> Table:
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
