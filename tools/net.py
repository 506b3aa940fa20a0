"""Keep what the commands that stay answer, and compare it with what they answer later.

    MLSCALE_DATA=FOLDER python tools/net.py keep tools/net
    MLSCALE_DATA=FOLDER python tools/net.py compare tools/net [--only REGEX] [--slow]

tools/net/commands.txt holds the commands; `mlscale` is the one that Python imports (PYTHONPATH
chooses it). answers.json.gz keeps their exit status, the numbers and words of their JSON or table
by flattened keys. `compare` prints a line for each number that is off by more than 1e-9 relative,
each word that differs, and the keys lost and new; its status is 1 if there is any. When an option
is renamed, edit the command's words, not its name.
What is trained differs by machine: if `compare` notes another, keep the old commit's answers anew.
"""

import argparse
import csv
import gzip
import json
import math
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow.parquet

ROOT = Path(__file__).parent.parent
# What tells the rows of a list apart, whatever their order.
IDENTITY = ("key", "table", "application", "kernel", "quantity", "predictor", "features")
IDENTITY += ("objective", "advisor", "cu_count", "engine_mhz", "memory_mhz", "power_cap_w")
NOT_KEPT = re.compile(r"(_seconds|_microseconds|train ms|predict us|fingerprint|\.here|\.mlscale)$")
LONG, LONG_INSIDE, SHOWN = 120, 6, 3  # longer lists are kept as sums and a few of their rows


def commands(slow: bool, only: str) -> dict[str, list[str]]:
    """The words of each command by its name, with the commands that write what those read."""
    text = (ROOT / "tools" / "net" / "commands.txt").read_text(encoding="utf-8")
    short = dict(re.findall(r"^(\$\w+) = (.*)$", text, re.MULTILINE))
    text = re.sub(r"\$\w+(?! =)\b", lambda match: short[match[0]], text)
    asked = text if slow else text.partition("# SLOW\n")[0]
    lines = re.findall(r"^([\w.-]+): (.*)$", asked, re.MULTILINE)
    every = {name: shlex.split(words) for name, words in lines}
    wanted = [name for name in every if re.search(only, name)]
    for name in wanted:  # grows while it is walked
        wanted += [n for n, w in every.items() if n not in wanted and output(w) in every[name]]
    return {name: words for name, words in every.items() if name in wanted}


def output(words: list[str]) -> str | None:
    """The file or folder that a command writes."""
    return words[words.index("-o") + 1] if "-o" in words else None


def answers(slow: bool, only: str) -> dict[str, dict[str, object]]:
    """The flattened answer of each command; they run one after the other in one folder."""
    told: dict[str, dict[str, object]] = {}
    os.environ["OMP_NUM_THREADS"] = "1"
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "datasets").symlink_to(ROOT / "datasets")
        (folder / "logs").symlink_to(ROOT / "docs" / "logs")
        (folder / "data").symlink_to(Path(os.environ["MLSCALE_DATA"]).resolve())
        for name, words in commands(slow, only).items():
            start = time.perf_counter()
            told[name] = flattened(answer(words, folder))
            print(f"{name}: {time.perf_counter() - start:.1f} s", file=sys.stderr)
    return told


def answer(words: list[str], folder: Path) -> dict[str, object]:
    """The exit status of a command, and its document, table or last words."""
    asked = words if "-o" in words or "--format" in words else [*words, "--json"]
    command = [sys.executable, "-m", "mlscale", *asked]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if ran.returncode:
        last = ran.stderr.strip().rpartition("\n")[2].replace(f"{folder}/", "")
        return {"status": ran.returncode, "error": last}
    written = folder / (output(words) or "")
    if written.suffix == ".parquet" or (written != folder and written.is_dir()):
        said = pyarrow.parquet.read_table(written).to_pylist()
    elif written.suffix == ".csv" or "--format" in words:
        text = ran.stdout if written == folder else written.read_text(encoding="utf-8")
        said = list(csv.DictReader(text.splitlines()))
    else:  # a model is known by its predictions
        said = None if written.suffix else json.loads(ran.stdout)
    return {"status": 0, "said": said}


def flattened(value: object, key: str = "", inside: bool = False) -> dict[str, object]:
    """Numbers and words by keys such as `kernels[gemm].best.time_ms`; long lists as sums."""
    if isinstance(value, dict):
        parts = {f"{key}.{name}".lstrip("."): part for name, part in value.items()}
    elif isinstance(value, list):
        parts = dict(zip((f"{key}[{name}]" for name in identities(value)), value, strict=True))
        if len(value) > (LONG_INSIDE if inside else LONG):
            few = dict(list(parts.items())[:: len(parts) // SHOWN])
            parts = {f"{key}.length": len(value)} | sums(value, key) | few
        inside = True
    else:
        return {} if NOT_KEPT.search(key) or value in (None, "") else {key: as_number(value)}
    return {k: v for name, part in parts.items() for k, v in flattened(part, name, inside).items()}


def identities(values: list[object]) -> list[str]:
    """A name for each element of a list, by what it says of itself or by its place."""
    dicts = [value if isinstance(value, dict) else {} for value in values]
    names = [" ".join(str(d[i]) for i in IDENTITY if d.get(i) not in (None, "")) for d in dicts]
    return names if len(set(names)) == len(names) else [*map(str, range(len(names)))]


def sums(values: list[object], key: str) -> dict[str, object]:
    """The sum of every numeric column of a list of rows, or of a list of numbers."""
    columns: dict[str, float] = {}
    for value in values:
        for name, cell in value.items() if isinstance(value, dict) else [("", value)]:
            if isinstance(number := as_number(cell), float) and math.isfinite(number):
                columns[f"{key}.sum.{name}"] = columns.get(f"{key}.sum.{name}", 0.0) + number
    return dict(columns)


def as_number(value: object) -> object:
    """A number in 12 digits, also from a CSV's cell; any other value as words."""
    try:
        return float(f"{float(value):.12g}")  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return str(value)


def differences(name: str, old: dict[str, object], new: dict[str, object]) -> list[str]:
    """A line for each value of an answer that differs, one for the keys lost, one for the new."""
    told = [f"{k}: {old[k]} is now {new[k]}" for k in old if k in new and differs(old[k], new[k])]
    for word, here, there in (("lost", old, new), ("new", new, old)):
        gone = [key for key in here if key not in there and not NOT_KEPT.search(key)]
        if keys := {re.sub(r"\[.*\]", "[*]", key): None for key in gone}:
            told.append(f"{word}: {', '.join(list(keys)[:5])}{' …' * (len(keys) > 5)}")
    return [f"{name}: {line}" for line in told]


def differs(old: object, new: object) -> bool:
    """Whether two values are apart: numbers by more than the tolerance."""
    if isinstance(old, float) and isinstance(new, float) and not math.isnan(old):
        return not math.isclose(old, new, rel_tol=1e-9, abs_tol=1e-12)
    return str(old) != str(new)


def main() -> int:
    """Keep or compare; the exit status."""
    parser = argparse.ArgumentParser(description="Keep and compare the answers of what stays.")
    parser.add_argument("action", choices=("keep", "compare"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slow", action="store_true", help="the slow commands too")
    parser.add_argument("--only", default="", metavar="REGEX", help="commands whose name has it")
    asked = parser.parse_args()
    file = asked.folder / "answers.json.gz"
    cpu = re.search(r"model name.*|$", Path("/proc/cpuinfo").read_text(encoding="utf-8"))[0]
    machine = f"{cpu.rpartition(': ')[2]}, NumPy {np.__version__}"
    kept = json.loads(gzip.decompress(file.read_bytes())) if file.exists() else {"answers": {}}
    new = answers(asked.slow, asked.only)
    if asked.action == "keep":
        asked.folder.mkdir(parents=True, exist_ok=True)
        kept = {"machine": machine, "answers": kept["answers"] | new}
        file.write_bytes(gzip.compress(json.dumps(kept, indent=0).encode(), mtime=0))
        print(f"{len(new)} answers kept, {file.stat().st_size / 1000:.0f} kB")
        return 0
    if kept["machine"] != machine:
        print(f"note: kept on {kept['machine']}; this is {machine}", file=sys.stderr)
    told = [line for n in new for line in differences(n, kept["answers"].get(n, {}), new[n])]
    print("\n".join([*told, f"{len(new)} answers compared, {len(told)} differences"]))
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
