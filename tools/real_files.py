"""Write docs/tables/real-files.csv: what mlscale makes of real files of public repositories.

    MLSCALE_DATA=FOLDER python tools/real_files.py

FOLDER has the files, which do not ship, below traces/. `result` is the first line that `mlscale
import FILE` says (of kernel_tuner's and T4 files `import kernel-tuner FILE`). `made_up` has the
options that were given where a file does not say GPU or clocks.
"""

import csv
import io
import os
import re
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from mlscale.cli.main import main

TABLE = Path(__file__).parents[1] / "docs" / "tables" / "real-files.csv"
HEAD = ("file", "repository", "read", "made_up", "result")
# What the files may not say, the least that is made up first.
MADE_UP = (
    (),
    ("--base", "engine=1000,memory=1000"),
    ("--device", "made-gpu"),
    ("--device", "made-gpu", "--base", "cu=10"),
    ("--device", "made-gpu", "--base", "cu=10,engine=1000,memory=1000"),
    ("--device", "h100-sxm5", "--base", "engine=1980,memory=2619", "--interval", "1"),
)
LACKS = "does not say|--base says|leave --interval away"
KERNEL_TUNERS = ("kernel_tuner_cache", "t4_results")
LONGEST_CELL = 200


def rows(folder: Path) -> list[tuple[str, ...]]:
    """By HEAD; the repository is the one that the list of the files names. folder: has traces/."""
    traces = folder / "traces"
    text = (traces / "README.md").read_text(encoding="utf-8")
    repositories = dict(re.findall(r"^\| (\S+/\S+) \| ([\w.-]+/\S+) ", text, re.MULTILINE))
    names = {path: str(path.relative_to(traces)) for path in sorted(traces.glob("*/*"))}
    return [(name, repositories.get(name, ""), *_outcome(path)) for path, name in names.items()]


def _outcome(path: Path) -> tuple[str, str, str]:
    """Whether it was read, the options that were made up for it, and the first line."""
    lacks, kind = "", ["kernel-tuner"] if path.parent.name in KERNEL_TUNERS else []
    for options in MADE_UP:
        with (
            TemporaryDirectory() as folder,
            chdir(path.parent),
            redirect_stdout(io.StringIO()) as printed,
            redirect_stderr(io.StringIO()) as complaints,
        ):
            output = f"{folder}/table.csv"
            status = main(["import", *kind, path.name, *options, "-o", output])
        if status == 0:
            first = printed.getvalue().splitlines()[0].removeprefix(f"{output}: ")
            return "yes", " ".join(options), _cell(first.partition("; Table II")[0])
        error = complaints.getvalue().splitlines()[-1].removeprefix("mlscale: error: ")
        lacks = lacks or error
        if not re.search(LACKS, error):
            break
    else:
        error = lacks
    return "no", "", _cell(error.removeprefix(f"{path.name}: "))


def _cell(text: str) -> str:
    """A text that is cut off where it is long."""
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"


def text_of(folder: Path) -> str:
    """The whole table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEAD, *rows(folder)])
    return text.getvalue()


if __name__ == "__main__":
    TABLE.write_text(text_of(Path(os.environ["MLSCALE_DATA"])), encoding="utf-8")
