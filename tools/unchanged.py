"""Record what a change of the code must leave as it is, and compare a record with another.

    python tools/unchanged.py record FOLDER RECORD.json [--quick]
    python tools/unchanged.py compare BEFORE.json AFTER.json

FOLDER holds the tables that docs/measured-errors.md and docs/reproduction.md name. Recorded are
every figure that a command of these two pages prints, the options of each command's help, what
the file formats hold, and what the shipped model predicts. --quick leaves the figures out.
`compare` prints each difference above 0.02 and ends with status 1 where there is one. An option
that moved or was renamed is a difference too: it is for a reader to judge.
"""

import argparse
import json
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from refresh_docs import output, shown

from mlscale.cli.study.command import MODULES as STUDIES

PAGES = ("docs/measured-errors.md", "docs/reproduction.md")
COMMANDS = (
    *("demo", "datasets", "datasets list", "datasets show", "datasets fetch", "datasets make"),
    *("import", "collect", "train", "predict", "advise", "report", "cite", "study"),
    *("literature", "literature wang-chu", "literature survey", "literature nagasaka"),
)
FORMATS = ("dvfs", "auto", "ncu", "nvprof", "rocprof", "rocprofv3", "codexl")
SHIPPED = "simulated-gcn3.mlscale", "simulated-gcn3-profile.csv"
ROOT = Path(__file__).parents[1]
TOLERANCE = 0.02
TIMINGS = ("train ms", "predict us")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def shell(command: str, folder: Path) -> str:
    """What a command prints on stdout; ends the program where it fails."""
    return output(command, folder, complaints=None)


def without_timings(text: str) -> str:
    """The text with the columns of timings, which differ from run to run, taken out."""
    lines, cut = [], None
    for line in text.splitlines():
        if any(name in line for name in TIMINGS):
            cut = min(line.index(name) for name in TIMINGS if name in line)
        elif not line.strip():
            cut = None
        lines.append(line[:cut].rstrip() if cut and not line.startswith(("p:", "Named")) else line)
    return "\n".join(lines)


def options(command: str, folder: Path) -> list[str]:
    """The options that a command's help names."""
    return sorted(set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", shell(command, folder))))


def formats(folder: Path) -> dict[str, Any]:
    """Keys, columns and members of the files that the commands write."""
    model, profile = SHIPPED
    found: dict[str, Any] = {}
    with zipfile.ZipFile(ROOT / "models" / model) as archive:
        found["model members"] = sorted(archive.namelist())
        found["model keys"] = keys(json.loads(archive.read("model.json")))
    for name, command in {
        "predict": f"mlscale predict {model} {profile} --format json",
        "advise": f"mlscale advise {model} {profile} --format json",
        "errors": "mlscale study errors simulated-gcn3.parquet --predictor nearest --json",
    }.items():
        found[f"{name} json"] = keys(json.loads(shell(command, folder)))
    for command in ("predict", "advise"):
        text = shell(f"mlscale {command} {model} {profile} --format csv", folder)
        found[f"{command} csv"] = text.splitlines()[0]
    return found


def keys(value: Any, depth: int = 3) -> Any:
    """The keys of nested JSON, as deep as that."""
    if isinstance(value, dict) and depth:
        return {key: keys(value[key], depth - 1) for key in sorted(value)}
    if isinstance(value, list) and value and depth:
        return [keys(value[0], depth - 1)]
    return type(value).__name__


def record(folder: Path, quick: bool) -> dict[str, Any]:
    """Everything that must not change."""
    model, profile = SHIPPED
    with tempfile.TemporaryDirectory() as empty:
        here = Path(empty)
        helps = {c: options(f"mlscale {c} --help", here) for c in COMMANDS}
        helps["import"] = sorted(
            {o for f in FORMATS for o in options(f"mlscale import {f} --help", here)}
        )
        helps["study"] = sorted(
            {o for s in STUDIES for o in options(f"mlscale study {s} --help", here)}
        )
        found = {
            "help": helps,
            "formats": formats(here),
            "predictions": shell(f"mlscale predict {model} {profile} --format csv", here),
        }
    if not quick:
        found["figures"] = {
            command: without_timings(shell(command, folder))
            for page in PAGES
            for command, _ in shown(Path(page).read_text(encoding="utf-8"))
        }
    return found


def differences(before: Any, after: Any, where: str = "") -> list[str]:
    """Each place where two records differ; numbers in texts may differ by TOLERANCE."""
    if isinstance(before, dict) and isinstance(after, dict):
        lines = []
        for key in [*before, *(key for key in after if key not in before)]:
            place = f"{where}/{key}"
            if key not in before or key not in after:
                lines.append(f"{place}: only {'after' if key in after else 'before'}")
            else:
                lines += differences(before[key], after[key], place)
        return lines
    if isinstance(before, str) and isinstance(after, str):
        old, new = before.splitlines(), after.splitlines()
        if len(old) != len(new):
            return [f"{where}: {len(old)} lines before, {len(new)} after"]
        return [
            f"{where}, line {n}:\n  - {one}\n  + {other}"
            for n, (one, other) in enumerate(zip(old, new, strict=True), 1)
            if not alike(one, other)
        ]
    if isinstance(before, list) and isinstance(after, list) and where.startswith("/help"):
        gone, new = sorted(set(before) - set(after)), sorted(set(after) - set(before))
        return [f"{where}: gone {gone}, new {new}"] if gone or new else []
    return [] if before == after else [f"{where}: {before} before, {after} after"]


def alike(one: str, other: str) -> bool:
    """Whether two lines say the same, their numbers within TOLERANCE."""
    if NUMBER.sub("#", one).split() != NUMBER.sub("#", other).split():
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= TOLERANCE + 1e-9 for a, b in pairs)


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    actions = parser.add_subparsers(dest="action", required=True)
    recorder = actions.add_parser("record")
    recorder.add_argument("folder", type=Path)
    recorder.add_argument("record", type=Path)
    recorder.add_argument("--quick", action="store_true")
    comparer = actions.add_parser("compare")
    comparer.add_argument("before", type=Path)
    comparer.add_argument("after", type=Path)
    arguments = parser.parse_args()
    if arguments.action == "record":
        found = record(arguments.folder, arguments.quick)
        arguments.record.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        return
    before, after = (
        json.loads(path.read_text(encoding="utf-8")) for path in (arguments.before, arguments.after)
    )
    lines = differences(before, after)
    print("\n".join(lines) or "no differences")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
