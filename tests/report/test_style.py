"""How figures are set up and written."""

from pathlib import Path

from mlscale.report.style import DPI, new_figure, panels_in_rows, save_figure, shades


def test_labels_stay_inside_and_apart_in_both_files(tmp_path: Path) -> None:
    """Two panels, whose labels of four lines need room that matplotlib does not leave unasked."""
    figure = new_figure(4, 2)
    left, right = figure.subplots(1, 2)
    for panel in (left, right):
        panel.set_ylabel("one\ntwo\nthree\nfour")
    files = save_figure(figure, tmp_path / "labels")
    assert [file.name for file in files] == ["labels.png", "labels.svg"]
    boxes = [panel.get_tightbbox() for panel in (left, right)]
    assert 0 <= boxes[0].x0 < boxes[0].x1 <= boxes[1].x0 < boxes[1].x1 <= 4 * DPI


def test_panels_stand_in_rows_and_what_is_left_over_is_hidden() -> None:
    """Five, four in a row: 4 x 2 and 1 inches wide, 2 x 3 and half an inch high."""
    figure, panels = panels_in_rows("title", 5, 4, (2, 3), (1, 0.5))
    assert figure.get_size_inches().tolist() == [9, 6.5]
    assert [panel in panels for panel in figure.axes] == [True] * 5 + [False] * 3
    assert [panel.get_visible() for panel in figure.axes] == [True] * 5 + [False] * 3


def test_steps_differ_in_colour_and_marker() -> None:
    colours, markers = zip(*shades(8), strict=True)
    assert len(set(colours)) == len(set(markers)) == 8
