"""Notes by code: the table, its page, and how notes are merged. By hand, but for the package's own.

What the package tells is found in its text: every call of `Note`, `warn` and every row of RULES.
"""

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import make_notes
import pytest
from command import Cli

from mlscale.advice.sureness import REASONS
from mlscale.cli.explain import NOTES
from mlscale.data.checks import RULES
from mlscale.data.datasets import path
from mlscale.errors import DataWarning, warn
from mlscale.notes import Note, note_rows, notes_by_kernel

ROOT = Path(__file__).parents[1]
FLAGS = {
    "scan": [Note("P05", "a launch of 3 us"), Note("G03", "no data")],
    "sort": [Note("P05", "a launch of 12.5 us"), Note("G03", "no data")],
    "gemm": [Note("G03", "no data"), Note("T10", "missing: loads", "warning")],
}


def told() -> Iterator[str]:
    """The code of every note that the package makes, where it is not a rule's."""
    for file in sorted((ROOT / "mlscale").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Note", "warn"):
                code = node.args[0]
                if isinstance(code, ast.Constant):
                    yield str(code.value)
                elif not isinstance(code, ast.Starred):
                    assert ast.unparse(code).endswith("code")


def test_every_note_has_a_code_and_every_code_a_note() -> None:
    codes = set(told())
    of_checks = {rule.code for rule in RULES}
    assert codes | of_checks == set(NOTES)
    only_refused = {rule.code for rule in RULES if rule.severity == "refused"}
    only_refused -= codes | {rule.code for rule in RULES if rule.severity != "refused"}
    assert 12 <= len(NOTES) - len(only_refused) <= 28


@pytest.mark.parametrize("code", NOTES)
def test_a_code_is_explained(cli: Cli, code: str) -> None:
    meaning = NOTES[code]
    assert re.fullmatch(r"[GLMTRVP]\d\d", code)
    assert len(meaning.title) <= 70
    assert all(text.endswith(".") for text in (meaning.explanation, meaning.mend))
    out = cli("explain", code.lower())
    assert out.startswith(f"{code}: {meaning.title}\n")
    assert max(map(len, out.splitlines())) <= 80
    assert "\nWhat to do: " in out


def test_all_codes_are_listed(cli: Cli) -> None:
    lines = cli("explain").splitlines()
    assert [line[:3] for line in lines if line[:1] != " "] == [*NOTES, *REASONS]
    assert max(map(len, lines)) <= 100
    assert " ".join(cli("explain", "s02").split()).endswith("; that of this one is medium.")
    assert "there is no code 'G3'; did you mean 'G03'?" in cli.refused("explain", "G3")


def test_the_page_is_as_the_table() -> None:
    assert make_notes.PAGE.read_text("utf-8") == make_notes.page(), "run tools/make_notes.py"


def test_flags_of_kernels_stand_once() -> None:
    short, no_data, missing = notes_by_kernel(FLAGS)
    assert short == Note("P05", "a launch of 3 to 12.5 us", "note", ("scan", "sort"))
    assert no_data == Note("G03", "no data")
    assert missing == Note("T10", "missing: loads", "warning", ("gemm",))
    assert notes_by_kernel({}) == []


def test_rows_merge() -> None:
    by_kernel = [
        Note("T10", "missing: loads", "warning", ("gemm",)),
        Note("P08", "chosen"),
        Note("T10", "missing: loads", "warning", ("scan", "gemm")),
        Note("P08", "chosen", "note", ("gemm",)),
    ]
    assert note_rows(by_kernel) == [
        {
            "code": "T10",
            "severity": "warning",
            "kernels": ["gemm", "scan"],
            "text": "missing: loads",
        },
        {"code": "P08", "severity": "note", "kernels": "all", "text": "chosen"},
    ]


def test_a_warning_has_its_note() -> None:
    """In Python, and in another process, as of a study."""
    with pytest.warns(DataWarning, match="^odd$") as caught:
        warn("T05", "odd", kernels=["gemm"])
    again = pickle.loads(pickle.dumps(caught[0].message))
    assert (again.note, str(again)) == (Note("T05", "odd", "warning", ("gemm",)), "odd")
    assert caught[0].filename == __file__


def test_what_is_read_is_told_once_with_its_code(cli: Cli) -> None:
    err = cli.told("predict", path("h100-by-hand.csv"), "--at", "engine=1200", "--notes")
    assert err.count("mlscale: note L04: ") == 1
    assert re.fullmatch(r"(mlscale: (warning|note) [GLMTRVP]\d\d: [^\n]+\n)+", err)
