"""What the site's build says of a page's commands; the pages are written here."""

from pathlib import Path

import pytest
from printed import check_page, same
from refresh_docs import refreshed, shown


def check(tmp_path: Path, *lines: str) -> tuple[list[str], list[str]]:
    page = tmp_path / "page.md"
    page.write_text("\n".join(["# Page", "", "```console", *lines, "```", ""]), encoding="utf-8")
    return check_page(page)


def test_what_is_printed_still_is_no_fault(tmp_path: Path) -> None:
    assert check(tmp_path, "$ echo 1830 MHz", "1830 MHz") == (["1830 MHz"], [])


@pytest.mark.parametrize(
    ("command", "before", "fault"),
    [
        ("echo two", "one", "prints something else now:\ntwo"),
        ("echo 12 MHz", "13 MHz", "prints something else now:\n12 MHz"),
        ("seq 16", " ".join(str(i) for i in range(1, 17)), "prints 16 lines, above 15"),
        ("printf '%081d' 7", f"{7:081}", "prints a line of 81 columns, above 80"),
        ("false", "", "ends with exit status 1"),
    ],
)
def test_a_fault_is_named_with_its_command(
    tmp_path: Path, command: str, before: str, fault: str
) -> None:
    _, (said,) = check(tmp_path, f"$ {command}", before)
    assert said.startswith(f"$ {command}\n{fault}")


def test_commands_of_a_page_share_a_folder_with_the_data(tmp_path: Path) -> None:
    outputs, _ = check(
        tmp_path, "$ echo $COLUMNS > columns", "$ cat columns", "80", "$ ls", "columns"
    )
    assert outputs[1:] == ["80", "columns\ndatasets\nlogs"]


@pytest.mark.parametrize(
    ("printed", "before", "expected"),
    [
        ("took 1000 ms", "took  1005 ms", True),
        ("took 1000 ms", "took 1006 ms", False),
        ("+2.4 %", "+2.5 %", True),  # one in the last decimal
        ("+2.4 %", "+2.6 %", False),
        ("+2.4 %", "-2.4 %", False),
        ("3 kernels", "4 kernels", False),
    ],
)
def test_numbers_may_differ_in_their_last_digit(printed: str, before: str, expected: bool) -> None:
    assert same(printed, before) is expected


def test_only_blocks_of_a_console_have_commands() -> None:
    page = "```text\n$ not run\n```\n```\n$ not run\n```\n```console\n$ run\nold\n```\n"
    assert shown(page) == [("run", "old")]
    assert refreshed(page, lambda _: "new") == page.replace("old", "new")
