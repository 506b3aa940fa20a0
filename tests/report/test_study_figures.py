"""What the figures of section V show, by hand; and that they are drawn on every kind of grid."""

import re
from pathlib import Path
from typing import Any

import matplotlib.image as mpl_image
import numpy as np
import pytest
from synthetic import kernels as made

from mlscale import ConfigGrid, HardwareConfig
from mlscale.report import study_figures
from mlscale.report.study_figures import heat_maps
from mlscale.studies import wu2015 as paper
from mlscale.studies import wu2015_summary as paper_summary

PNG = b"\x89PNG\r\n\x1a\n"


def row(
    mape: float,
    base: tuple[int, float, float] = (4, 300.0, 475.0),
    seed: int = 0,
    clusters: int | None = 12,
    predictor: str = "wu",
) -> dict[str, Any]:
    given = {"predictor": predictor, "features": None, "clusters": clusters, "seed": seed}
    return {**given, **HardwareConfig(*base).as_dict(), "n_kernels": 2, "mape": mape}


class TestSummary:
    # Two bases at 300 MHz, one at 500; two seeds each.
    ROWS = (
        row(10, (4, 300, 475)), row(20, (4, 300, 475), seed=1),
        row(30, (8, 300, 475)), row(50, (8, 300, 475), seed=1),
        row(7, (8, 500, 475)), row(5, (8, 500, 475), seed=1),
        row(90, (8, 500, 475), clusters=None, predictor="nearest"),
    )  # fmt: skip

    def test_labels(self) -> None:
        assert paper_summary.labels(self.ROWS) == ["wu 12", "nearest"]
        assert paper_summary.labels(self.ROWS, "nearest") == ["nearest"]

    def test_by_base(self) -> None:
        found = paper_summary.by_base(self.ROWS)["wu 12"]
        assert found[HardwareConfig(4, 300, 475)] == paper_summary.Spread(15, 10, 20)
        assert found[HardwareConfig(8, 300, 475)] == paper_summary.Spread(40, 30, 50)
        assert found[HardwareConfig(8, 500, 475)] == paper_summary.Spread(6, 5, 7)

    def test_overall(self) -> None:
        """Means of the seeds: (10 + 30 + 7) / 3 and (20 + 50 + 5) / 3."""
        found = paper_summary.overall(self.ROWS)
        assert found["wu 12"].low == pytest.approx(47 / 3)
        assert found["wu 12"].high == pytest.approx(25)
        assert found["wu 12"].mean == pytest.approx((47 / 3 + 25) / 2)
        assert found["nearest"] == paper_summary.Spread(90, 90, 90)

    def test_boxes(self) -> None:
        """Fig. 12: 15 and 40 have the mean 27.5 and the standard deviation 12.5."""
        found = paper_summary.boxes(self.ROWS)["wu 12"]
        assert list(found) == [300, 500]
        assert found[300] == paper_summary.Box(2, 27.5, 12.5, 15, 40)
        assert found[500] == paper_summary.Box(1, 6, 0, 6, 6)

    def test_shares_pool_the_bases(self) -> None:
        """Seed 0: 3 of 4 and 1 of 4 values; seed 1: half and half."""
        counts = {(0, 4): (1, 1), (0, 8): (2, 0), (1, 4): (2, 0), (1, 8): (0, 2)}
        rows = [
            {**row(0, (cu, 300, 475), seed), "bin_low": low, "count": count}
            for (seed, cu), of_bins in counts.items()
            for low, count in zip((0.0, 10.0), of_bins, strict=True)
        ]
        found = paper_summary.shares(rows)["wu 12"]
        assert found[0.0] == paper_summary.Spread(62.5, 50, 75)
        assert found[10.0] == paper_summary.Spread(37.5, 25, 50)


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


def rows_of(study: str, shape: tuple[int, int, int], seeds: int) -> list[dict[str, Any]]:
    """The rows of a study of made kernels on a grid of that shape, all baselines beside."""
    grid = ConfigGrid(*(tuple(100 * (n + 1) for n in range(length)) for length in shape))
    data = made.measurements(grid=grid)
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
        what = study_figures.FigureSubject("wu", "t", "time", "made")
        rows = rows_of(study, shape, seeds)
        paths = study_figures.draw_study(study, tmp_path, what, rows)
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
        what = study_figures.FigureSubject("wu", "t", "time", "measured")
        contents = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            paths = study_figures.draw_study(study, tmp_path / name, what, rows)
            contents.append([path.read_bytes() for path in paths])
        assert contents[0] == contents[1]
        assert b"not measured" not in b"".join(contents[0])
