"""In whatever order the files of a run's readings are given, the answer is the same.

The readings are drawn by fixed seeds; no number is expected here but that of another order.
"""

import csv
import json
import re
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Cli, note_texts
from synthetic import llm_server as made
from synthetic import tidy
from synthetic.two_logs import log, without

import mlscale
from mlscale.data.datasets import path as shipped

HEADER = "device,application,kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
Reading = tuple[int, float, float]  # MHz, seconds, W


def readings(seed: int, count: int) -> list[Reading]:
    """Of one run on an H100: time rises by less than the clock falls, power by more than a tenth.

    Of three the first is not always the highest.
    """
    draw = np.random.default_rng(seed).uniform
    found, mhz, seconds, watts = [], 15 * round(draw(1500, 1980) / 15), draw(10, 30), draw(400, 650)
    for _ in range(count):
        found.append((mhz, round(seconds, 1), round(watts, 1)))
        step = draw(0.7, 0.85)
        mhz, seconds = 15 * round(step * mhz / 15), seconds * (1 / step) ** draw(0.2, 0.8)
        watts *= step ** draw(0.9, 1.5)
    return found


def logs(folder: Path, found: Sequence[Reading]) -> list[Path]:
    return [
        log(folder / f"r{n}.csv", mhz, round(10 * s), watts)
        for n, (mhz, s, watts) in enumerate(found)
    ]


def tables(folder: Path, found: Sequence[Reading]) -> list[Path]:
    files = [folder / f"r{n}.csv" for n in range(len(found))]
    for file, (mhz, s, watts) in zip(files, found, strict=True):
        file.write_text(f"{HEADER}h100-sxm5,j,j,132,{mhz},2619,{1e3 * s},{watts}\n")
    return files


def capped_logs(folder: Path, found: Sequence[Reading]) -> list[Path]:
    files = logs(folder, found)
    for file in files:
        without(file, 4)
    return files


def capped_tables(folder: Path, found: Sequence[Reading]) -> list[Path]:
    files = [folder / f"r{n}.csv" for n in range(len(found))]
    for file, (_, s, watts) in zip(files, found, strict=True):
        file.write_text(f"time_ms,power_w,power_cap_w\n{1e3 * s},{watts},{watts}\n")
    return files


def alike(document: Any) -> Any:
    """A document without what the names of files and the order of notes make of it."""
    document["notes"] = sorted(
        (note for note in document["notes"] if note["code"] != "R09"), key=lambda n: n["text"]
    )
    return json.loads(re.sub(r"[\w/.-]*\b(r|bench-|log-)\d+[\w.-]*", "FILE", json.dumps(document)))


def also(files: Sequence[object]) -> list[object]:
    """The words of files, of which the first one comes first."""
    return [files[0], *(word for file in files[1:] for word in ("--also", file))]


def in_every_order(cli: Cli, words: Sequence[object], files: Sequence[Path]) -> list[Any]:
    """The documents, each with whether it says that the base is not the first file."""
    command, *options = words
    found = []
    for order in permutations(range(len(files))):
        document = cli.json(command, *also([files[n] for n in order]), *options)
        told = [text for note, text in zip(document["notes"], note_texts(document), strict=True)
                if note["code"] == "R09"]  # fmt: skip
        assert len(told) == (order[0] != 0)
        assert all(f"{files[0]}, " in text and str(files[order[0]]) in text for text in told)
        found.append(alike(document))
    return found


KINDS = {
    "logs": (logs, ["advise"]),
    "logs, a cap": (logs, ["advise", "--lever", "cap", "--minimize", "time"]),
    "logs, predicted": (logs, ["predict"]),
    "tables": (tables, ["advise", "--max-slowdown", 7]),
    "capped logs": (capped_logs, ["advise", "--lever", "cap"]),
    "capped tables": (capped_tables, ["advise", "--lever", "cap", "--minimize", "edp"]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("count", [2, 3])
def test_the_order_changes_nothing(
    cli: Cli, tmp_path: Path, kind: str, seed: int, count: int
) -> None:
    write, words = KINDS[kind]
    first, *others = in_every_order(cli, words, write(tmp_path, readings(seed, count)))
    for other in others:
        assert other == first
    if "base" in first and kind in ("logs", "tables"):
        assert first["base"]["engine_mhz"] == readings(seed, count)[0][0]


def test_of_servers(cli: Cli, tmp_path: Path) -> None:
    clocks = (1980.0, 1650.0, 1320.0)
    pairs = [
        made.write(made.serve(made.Server(), mhz, 5.0, 200, None, n), mhz, tmp_path)
        for n, mhz in enumerate(clocks)
    ]
    for count in (2, 3):
        found = []
        for order in permutations(range(count)):
            words: list[object] = [w for n in order for w in ("--also", *pairs[n])][1:]
            document = cli.json("advise", *words, "--slo", "tpot=1.2x@p90")
            told = [note for note in document["notes"] if note["code"] == "R09"]
            assert len(told) == (order[0] != 0)
            found.append(alike(document))
        assert all(one == found[0] for one in found[1:])


@pytest.mark.parametrize("seed", range(2))
def test_each_rate_stays_with_its_file(cli: Cli, tmp_path: Path, seed: int) -> None:
    found = readings(seed, 3)
    files, rates = logs(tmp_path, found), [round(1e4 / s) for _, s, _ in found]
    documents = []
    for order in permutations(range(3)):
        given = also([files[n] for n in order])
        rate = ":".join(str(rates[n]) for n in order)
        out = cli("advise", *given, "--rate", rate, "--json")
        documents.append(alike(json.loads(out)))
        answer = mlscale.advise(files[order[0]], also=[files[n] for n in order[1:]],
                                rate=[rates[n] for n in order])  # fmt: skip
        assert answer.document()["answer"] == json.loads(out)["answer"]
    assert all(one == documents[0] for one in documents[1:])
    assert documents[0]["run"]["time_ms"] == pytest.approx(1e9 / rates[0])


@pytest.mark.parametrize("seed", range(2))
def test_rows_of_tables_in_any_order(cli: Cli, tmp_path: Path, seed: int) -> None:
    """Three rows of one table are three tables, or one and another of two rows."""
    files = tables(tmp_path, readings(seed, 3))
    rows = [file.read_text().splitlines()[1] for file in files]
    expected = alike(cli.json("advise", *also(files)))
    for order in permutations(rows):
        one, two = tmp_path / "r8.csv", tmp_path / "r9.csv"
        for given in ((order,), (order[:1], order[1:])):
            for file, part in zip((one, two), given, strict=False):
                file.write_text(HEADER + "".join(f"{row}\n" for row in part))
            words = also([one, two][: len(given)])
            found = alike(cli.json("advise", *words))
            assert {**found, "next_commands": 0} == {**expected, "next_commands": 0}


@pytest.mark.parametrize("write", [logs, tables])
def test_base_names_another_reading(cli: Cli, tmp_path: Path, write: Any) -> None:
    """Whichever comes first; a clock that no reading has is told, or refused of tables."""
    found = readings(0, 3)
    files, low = write(tmp_path, found), found[1][0]
    documents = []
    near = low + 5 * (write is logs)  # a log's sampled clock may be 1 % off
    for order in permutations(files):
        document = cli.json("advise", *also(order), "--base", f"engine={near}")
        assert document["base"]["engine_mhz"] == near
        assert len(document["measured"]) == 2
        assert (order[0] == files[1]) == ("R09" not in {n["code"] for n in document["notes"]})
        documents.append(alike(document))
    assert all(one == documents[0] for one in documents[1:])
    nowhere = ["advise", *also(files), "--base", f"engine={round(1.1 * low)}"]
    if write is tables:
        assert f"no reading is at engine={1.1 * low:.0f}; " in cli.refused(*nowhere)
    else:
        said = f"engine_mhz was set to {1.1 * low:.0f}, but ran at {low} on average"
        assert said in "".join(cli.both(*nowhere, "--notes"))


def powerless(file: Path) -> Path:
    """The same log or table without its power."""
    if file.read_text().startswith("device,"):
        lines = [line.rpartition(",")[0] for line in file.read_text().splitlines()]
        file.write_text("\n".join(lines) + "\n")
    else:
        without(file, 3)
    return file


@pytest.mark.parametrize("write", [logs, tables])
def test_power_that_may_be_of_either_reading_is_refused(
    cli: Cli, tmp_path: Path, write: Any
) -> None:
    """It went to the one given first: of the same two files -1.0 or -4.9 % energy."""
    files = [powerless(file) for file in write(tmp_path, readings(0, 2))]
    for first, second in permutations(files):
        said = cli.refused("advise", first, "--also", second, "--power", 300)
        assert said.startswith(f"{second}: shows no power either, and --power is for one run; ")
    both = tmp_path / "both.csv"
    if write is tables:
        lines = [*files[0].read_text().splitlines(), files[1].read_text().splitlines()[1]]
        both.write_text("\n".join(lines) + "\n")
        asked: tuple[object, ...] = ("advise", both)
    else:
        asked = ("import", *files, "-o", both)
    assert "has runs at 2 settings, and --power is for one" in cli.refused(*asked, "--power", 300)


def test_power_that_one_reading_lacks_is_its_own(cli: Cli, tmp_path: Path) -> None:
    high, low = logs(tmp_path, readings(0, 2))
    powerless(high)
    assert cli.json("advise", high, "--also", low, "--power", 300)["run"]["power_w"] == 300
    said = cli.refused("advise", low, "--also", high, "--power", 300)
    assert "already has power_w; omit --power, or give first a file without power" in said


@pytest.mark.parametrize("write", [logs, tables])
def test_a_higher_reading_without_power_is_told(cli: Cli, tmp_path: Path, write: Any) -> None:
    """Whichever comes first, it is the base, of which only time is known; named or not.

    Where two others have power, the higher of these is the base, and a warning says so.
    """
    found = readings(0, 3)
    files = write(tmp_path, found)
    powerless(files[0])
    for first, second in permutations(files[:2]):
        asked = ("advise", first, "--also", second)
        for named in ((), ("--base", f"engine={found[0][0]}")):
            document = cli.json(*asked, *named)
            assert document["base"]["engine_mhz"] == found[0][0]
            assert (document["run"]["power_w"], document["objective"]) == (None, "clock")
            told = f"The run at {found[0][0]} MHz shows no power: for energy, log it there again."
            assert document["next"] == told
            codes = [note["code"] for note in document["notes"]]
            assert not [text for text in note_texts(document) if "was set to" in text]
            assert ("R09" in codes) == (first == files[1])
        document = cli.json(*asked, "--also", files[2])
        assert document["base"]["engine_mhz"] == found[1][0]
        [note] = [note for note in document["notes"] if note["code"] == "R09"]
        assert note["text"].endswith(f", not {files[0]}, which is higher but shows no power")
        assert note["severity"] == "warning"


def test_the_base_stays_where_the_counters_are(cli: Cli, tmp_path: Path) -> None:
    """A profile as if at 1500 MHz, and its times at 1980 MHz, which say less."""
    profile, further = tmp_path / "profile.csv", tmp_path / "further.csv"
    cli("import", shipped("h100-by-hand.csv"), "-o", profile)
    with profile.open(newline="", encoding="utf-8") as file:
        rows = [{**row, "engine_mhz": 1500} for row in csv.DictReader(file)]
    tidy.write_csv(profile, rows)
    tidy.write_csv(further, [
        {"kernel": row["kernel"], "engine_mhz": 1980, "time_ms": 0.9 * float(row["time_ms"])}
        for row in rows
    ])  # fmt: skip
    for order in ([profile, further], [further, profile]):
        given = [*also(order), "--device", "h100-sxm5", "--base", "memory=2619,cu=132"]
        document = cli.json("advise", *given, "--minimize", "clock")
        assert (document["base"]["engine_mhz"], document["model"]) == (1500, "kernels")
        codes = {note["code"] for note in document["notes"]}
        assert ("R09" in codes) == (order[0] == further)
