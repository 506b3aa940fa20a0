"""Maps: every number stands where it belongs and can be read."""

from pathlib import Path

import numpy as np
import pytest
from mlscale.report.map_figures import draw_confusion, heat_maps

from mlscale import ConfigGrid, HardwareConfig


class TestHeatMaps:
    def test_every_number_stands_where_its_base_is(self) -> None:
        """8 x 8 x 7 bases: panels by engine clock, CU counts across, memory clocks down."""
        grid = ConfigGrid(
            tuple(range(4, 33, 4)), tuple(range(300, 1001, 100)), tuple(range(475, 1376, 150))
        )
        errors = {base: float(n) for n, base in enumerate(grid)}
        figure = heat_maps("title", errors, dict.fromkeys([None, *grid.engine_mhz], "heading"))
        panels = [axes for axes in figure.axes if axes.get_title()]
        assert len(panels) == 8
        for engine, panel in zip(grid.engine_mhz, panels, strict=True):
            assert f"{engine}" in panel.get_title()
            [image] = panel.get_images()
            table = np.asarray(image.get_array())
            for m, memory in enumerate(grid.memory_mhz):
                for c, cu in enumerate(grid.cu_count):
                    expected = errors[HardwareConfig(cu, engine, memory)]
                    assert table[m, c] == expected
            numbers = {(t.get_position(), t.get_text()) for t in panel.texts}
            assert ((0, 0), f"{table[0, 0]:.1f}") in numbers
            assert len(numbers) == 56
            assert [t.get_text() for t in panel.get_xticklabels()] == [*map(str, grid.cu_count)]

    @pytest.mark.parametrize(
        ("shape", "across", "down"),
        [
            ((1, 3, 4), "engine clock [MHz]", "memory clock [MHz]"),
            ((3, 1, 4), "CU count", "memory clock [MHz]"),
            ((3, 4, 1), "CU count", "engine clock [MHz]"),
            ((1, 1, 4), "memory clock [MHz]", None),
            ((5, 1, 1), "CU count", None),
        ],
    )
    def test_axes_with_one_step_are_left_out(
        self, shape: tuple[int, int, int], across: str, down: str | None
    ) -> None:
        grid = ConfigGrid(*(tuple(100 * (n + 1) for n in range(length)) for length in shape))
        figure = heat_maps("title", dict.fromkeys(grid, 1.0), {None: "heading"})
        [panel] = [axes for axes in figure.axes if axes.get_images() and axes.get_title()]
        assert panel.get_xlabel() == f"base {across}"
        assert panel.get_ylabel() == (f"base {down}" if down else "")
        lengths = [length for length in shape if length > 1]
        table = np.asarray(panel.get_images()[0].get_array())
        assert sorted(table.shape) == sorted([*lengths, 1][:2])

    def test_numbers_are_black_on_bright_cells_and_white_on_dark_ones(self) -> None:
        """The lowest error is the darkest."""
        errors = {base: float(n) for n, base in enumerate(ConfigGrid((4, 8), (300,), (475, 625)))}
        panel = heat_maps("title", errors, {None: "heading"}).axes[0]
        colours = {text.get_text(): text.get_color() for text in panel.texts}
        assert (colours["0.0"], colours["3.0"]) == ("#ffffff", "#000000")


def test_a_confusion_says_how_many_choices_were_right(tmp_path: Path) -> None:
    """Of 4 choices 3 are the oracle's; a row without any has no share."""
    row = {"table": "t", "quantity": "time", "features": "raw", "accuracy": 75.0}
    row["confusion"] = [[3, 1, 0], [0, 0, 0], [0, 0, 0]]
    _, svg = draw_confusion(tmp_path, row, "made")
    said = svg.read_text()
    assert svg.name == "confusion-t-time-raw.svg"
    assert "75 % of the choices for held-out kernels" in said
    assert "t (made data, not measured)" in said
    assert [said.count(f"<!-- {count} -->") for count in ("1", "3", "0")] == [3, 3, 8]
