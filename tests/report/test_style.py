"""How figures are written."""

from pathlib import Path

from mlscale.report.style import DPI, new_figure, save_figure


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
