"""Print docs/trust/real-files.md: what mlscale makes of real files of public repositories.

    MLSCALE_DATA=FOLDER python tools/real_files.py > docs/trust/real-files.md

FOLDER has the files, which do not ship, below traces/.
"""

import io
import os
import re
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory

from mlscale.cli.main import main

HEAD = """\
# Real files, and what came out

These files were found in public repositories. We made none of them, and they do not ship with
mlscale. The table has what `mlscale import FILE` says of each (of files of kernel_tuner and T4
files, `import kernel-tuner FILE`). Where a file does not say GPU or clocks, they were made up: (1)
engine and memory at 1000 MHz; (2) a GPU's name; (3) and 10 CUs; (4) and 1000 MHz; (5) an H100 at
its highest clocks, sampled every second. [Measured errors](measured-errors.md) says how far off
predictions are where there are measurements.

| file | from | what came out |
|---|---|---|
"""
TAIL = """
This page is what `tools/real_files.py` prints; `MLSCALE_DATA` names the folder with the files.
"""
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


def page(folder: Path) -> str:
    """The whole page, with the repository that the list of the files names. folder: has traces/."""
    traces = folder / "traces"
    text = (traces / "README.md").read_text(encoding="utf-8")
    repositories = dict(re.findall(r"^\| (\S+/\S+) \| ([\w.-]+/\S+) ", text, re.MULTILINE))
    names = {path: str(path.relative_to(traces)) for path in sorted(traces.glob("*/*"))}
    rows = [f"| {n} | {repositories.get(n, '')} | {_outcome(p)} |\n" for p, n in names.items()]
    return HEAD + "".join(rows) + TAIL


def _outcome(path: Path) -> str:
    """The first line that importing says, with the number of what was made up for it."""
    lacks, kind = "", ["kernel-tuner"] if path.parent.name in KERNEL_TUNERS else []
    for number, options in enumerate(MADE_UP):
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
            made_up = f"({number}) " if number else ""
            return made_up + _cell(first.partition("; Table II")[0])
        error = complaints.getvalue().splitlines()[-1].removeprefix("mlscale: error: ")
        lacks = lacks or error
        if not re.search(LACKS, error):
            break
    else:
        error = lacks
    return f"refused: {_cell(error.removeprefix(f'{path.name}: '))}"


def _cell(text: str) -> str:
    """A text as a cell of a table in Markdown."""
    shown = text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
    return f"`{shown.replace('|', '/').replace('`', '')}`"


if __name__ == "__main__":
    sys.stdout.write(page(Path(os.environ["MLSCALE_DATA"])))
