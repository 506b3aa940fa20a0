"""The page of real files is what its script prints."""

from pathlib import Path

from real_files import page

ROOT = Path(__file__).parents[1]


def test_the_page_is_what_the_script_prints(data_folder: Path) -> None:
    assert page(data_folder) == (ROOT / "docs" / "trust" / "real-files.md").read_text(encoding="utf-8")
