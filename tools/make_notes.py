"""Write docs/reference/notes.md, the page of the codes of notes, from the package's table of them.

python tools/make_notes.py
"""

from itertools import groupby
from pathlib import Path

from mlscale.advice.sureness import REASONS
from mlscale.cli.explain import NOTES

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "notes.md"
GROUPS = {
    "G": "The GPU and its settings",
    "L": "Launches in a profiler's file",
    "M": "A monitor's log, files of several GPUs",
    "T": "Tables and profiles",
    "R": "Readings of a run at several clocks",
    "V": "LLM servers under limits of latency",
    "P": "Predictions and advice",
}
HEAD = """\
# Notes by code

What you should know of an answer has a code. Each note has a severity: *warning*, the answer may be
wrong, or *note*, good to know. Errors can have a code too (severity *refused*). Codes never change
meaning. `mlscale explain CODE` prints the same text.

In JSON each note appears once, with `code`, `severity`, `text`, and `kernels`, "all" or a list of
names. In Python it is a `Note` with these attributes; a `DataWarning` has one as `note`.
"""


def page() -> str:
    """The page: a heading for each letter, and below it its codes."""
    parts = [HEAD]
    for letter, codes in groupby(NOTES, key=lambda code: code[0]):
        parts.append(f"## {GROUPS[letter]}\n")
        for code in codes:
            meaning = NOTES[code]
            parts.append(f"### {code}: {meaning.title}\n")
            parts.append(f"{meaning.explanation}\n\n**What to do.** {meaning.mend}\n")
    parts.append(
        "## How sure an answer is\n\nIf several reasons apply, the lowest level is shown.\n"
    )
    lines = [f"| {code} | {one.level} | {one.words} |" for code, one in REASONS.items()]
    parts.append("\n".join(["| | | |", "|---|---|---|", *lines]) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
