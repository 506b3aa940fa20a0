"""The pictures of measured data: there, small, and the figures beside README's are the command's.

Expected: what tools/draw_pictures.py wrote into docs/tables/clocks.csv.
"""

import csv
from pathlib import Path

import pytest
from draw_pictures import HERO, PICTURES, TABLES, a_run, choices

IMAGES = Path(__file__).parents[1] / "docs" / "images"


@pytest.mark.parametrize("name", [*PICTURES, "clocks-dark"])
def test_every_picture_is_there_and_small(name: str) -> None:
    file = IMAGES / f"{'clocks-light' if name == 'clocks' else name}.svg"
    assert file.stat().st_size < 60_000


@pytest.mark.slow
@pytest.mark.usefixtures("data_folder")
def test_the_choices_of_the_run_are_those_of_the_table() -> None:
    with (TABLES / "clocks.csv").open(encoding="utf-8", newline="") as file:
        assert choices(a_run(*HERO)) == list(csv.reader(file))
