"""The table of real files is what its script writes, and the counts of trust.md are the table's."""

import csv
import re
from pathlib import Path

from real_files import TABLE, text_of

PAGE = Path(__file__).parents[1] / "docs" / "trust.md"


def test_the_table_is_what_the_script_writes(data_folder: Path) -> None:
    assert text_of(data_folder) == TABLE.read_text(encoding="utf-8")


def test_the_page_has_the_counts_of_the_table() -> None:
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    read = [row for row in rows if row["read"] == "yes"]
    alone = [row for row in read if not row["made_up"]]
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    (found,) = re.findall(r"[Oo]f (\d+) files .*? mlscale reads (\d+), (\d+) of them", text)
    assert [int(count) for count in found] == [len(rows), len(read), len(alone)]
