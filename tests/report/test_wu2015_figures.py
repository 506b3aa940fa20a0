"""What the figures of section V show, by hand; and that they are drawn on every kind of grid."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.image as mpl_image
import numpy as np
import pytest
from synthetic import kernels as made
from synthetic.study_rows import row

from mlscale import ConfigGrid
from mlscale.report import wu2015_figures
from mlscale.studies import wu2015 as paper

PNG = b"\x89PNG\r\n\x1a\n"


def rows_of(study: str, shape: tuple[int, int, int], seeds: int) -> list[dict[str, Any]]:
    """The rows of a study of made kernels on a grid of that shape, all baselines beside."""
    grid = ConfigGrid(*(tuple(100 * (n + 1) for n in range(length)) for length in shape))
    data = made.measurements(per_group=2, grid=grid)
    bases = paper.five_bases(grid)
    if study == "base-configuration":
        bases = paper.varied_bases(grid, grid.mid, ())
    planned = paper.WuStudy(
        name=study,
        tables={"t": data},
        base=None if study == "base-configuration" else list(bases),
        features=["raw"],
        quantity="time",
        clusters=3 if study == "base-configuration" else None,
        seeds=seeds,
    )
    return planned.rows(planned.results())


WHAT = wu2015_figures.FigureSubject("wu", "t", "time", "measured")


def baseline(mape: float, base: tuple[int, float, float], seed: int = 0) -> dict[str, Any]:
    return row(mape, base, seed, None, "nearest")


class TestWhatIsDrawn:
    def test_one_base_for_an_engine_clock_is_a_point_and_no_box(self) -> None:
        # Two seeds, so each point is their mean; the bars end at the seeds.
        low, high = (56, 607.0, 715.0), (56, 810.0, 715.0)
        rows = [row(6, low), row(8, low, 1), row(3, high), row(5, high, 1)]
        rows += [baseline(9, low), baseline(9, low, 1), baseline(2, high), baseline(2, high, 1)]
        [panel] = wu2015_figures.engine_clock_boxes(WHAT, rows).axes
        assert not panel.patches
        points = [line for line in panel.lines if line.get_marker() in ("o", "s")]
        assert [list(line.get_ydata()) for line in points] == [[7, 4], [9, 2]]
        assert {line.get_color() for line in points} == set(wu2015_figures.COLOURS[:2])

    def test_several_bases_of_an_engine_clock_are_a_box(self) -> None:
        # Bases of 15 and 40: the box is 27.5 +- 12.5.
        rows = [row(15, (4, 300, 475)), row(40, (8, 300, 475)), row(6, (8, 500, 475))]
        [panel] = wu2015_figures.engine_clock_boxes(WHAT, rows).axes
        ends = [patch.get_path().vertices[:, 1] for patch in panel.patches]
        assert [(end.min(), end.max()) for end in ends] == [(15, 40), (6, 6)]

    def test_the_network_is_seen_where_the_oracle_is_the_same(self) -> None:
        rows = [
            row(10 / n, clusters=n, predictor=name) for name in ("wu", "wu-oracle") for n in (2, 4)
        ]
        [panel] = wu2015_figures.oracle(WHAT, rows)[""].axes
        oracle, network = (line for line in panel.lines if line.get_marker() in ("o", "s"))
        assert list(oracle.get_ydata()) == list(network.get_ydata()) == [5, 2.5]
        assert oracle.get_linewidth() > 2 * network.get_linewidth()
        assert oracle.get_markersize() > 2 * network.get_markersize()

    def test_bases_of_one_error_stand_side_by_side(self) -> None:
        bases = [(4, 300.0, 475.0), (8, 300.0, 475.0), (8, 500.0, 475.0)]
        rows = [row(10 / n, base, clusters=n) for base in bases for n in (2, 4)]
        upper, lower = wu2015_figures.cluster_count(WHAT, rows)[""].axes
        lines = [line for line in upper.lines if len(line.get_xdata()) == 2]
        places = [line.get_xdata() for line in lines if line.get_marker() in wu2015_figures.MARKERS]
        drawn = {tuple(np.round(x, 6)) for x in places}
        assert len(drawn) == 3
        assert all(np.abs(np.array(x) - [2, 4]).max() < 0.5 for x in drawn)
        assert [t.get_text() for t in lower.get_xticklabels()] == ["2", "4"]

    def test_labels_of_near_numbers_of_clusters_do_not_meet(self) -> None:
        counts = (2, 12, 20, 21, 22, 23, 24)
        rows = [row(9, clusters=n, predictor=name) for name in ("wu", "wu-oracle") for n in counts]
        figure = wu2015_figures.oracle(WHAT, rows)[""]
        figure.canvas.draw()
        [panel] = figure.axes
        texts = [label for label in panel.get_xticklabels() if label.get_text()]
        assert texts[-1].get_text() == "24"
        ends = [(t.get_window_extent().x0, t.get_window_extent().x1) for t in texts]
        assert all(right < left for (_, right), (left, _) in pairwise(ends))


class TestDrawing:
    @pytest.mark.parametrize(
        ("study", "shape", "seeds"),
        [
            ("base-configuration", (2, 2, 2), 2),
            ("base-configuration", (1, 1, 2), 1),
            ("cluster-count", (1, 2, 2), 2),
            ("error-distribution", (1, 1, 3), 2),
            ("oracle", (1, 2, 1), 1),
        ],
    )
    def test_png_and_svg_that_say_what_they_are(
        self, study: str, shape: tuple[int, int, int], seeds: int, tmp_path: Path
    ) -> None:
        what = wu2015_figures.FigureSubject("wu", "t", "time", "made")
        rows = rows_of(study, shape, seeds)
        paths = wu2015_figures.draw_study(study, tmp_path, what, rows)
        suffixes = ("-heat-maps", "-boxes") if study == "base-configuration" else ("",)
        names = [f"{study}-t-time{s}.{kind}" for s in suffixes for kind in ("png", "svg")]
        assert [path.name for path in paths] == names
        for path in paths:
            content = path.read_bytes()
            if path.suffix == ".png":
                assert content.startswith(PNG)
                assert mpl_image.imread(path)[..., :3].std() > 0.05  # something is drawn
            else:
                text = " ".join(re.findall(r"<!-- (.*?) -->", content.decode()))
                assert "made data, not measured" in text
                assert "mean of 2 seeds" in text if seeds == 2 else "one seed" in text
                assert "[%]" in text
                assert "mean-surface" in text
                assert "nearest" in text

    def test_the_same_rows_give_the_same_files(self, tmp_path: Path) -> None:
        study = "oracle"
        rows = rows_of(study, (1, 2, 1), 1)
        what = wu2015_figures.FigureSubject("wu", "t", "time", "measured")
        contents = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            paths = wu2015_figures.draw_study(study, tmp_path / name, what, rows)
            contents.append([path.read_bytes() for path in paths])
        assert contents[0] == contents[1]
        assert b"not measured" not in b"".join(contents[0])
