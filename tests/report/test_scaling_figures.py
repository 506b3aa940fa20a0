"""The picture of a kernel over CU count and clocks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from mlscale.report.scaling_figures import draw_surface, surface_figure

from mlscale import load, read_profiles
from mlscale.arrays import Floats
from mlscale.data.public import path
from mlscale.predictions import Predictions


@pytest.fixture(scope="module")
def predictions() -> Predictions:
    """Of the shipped simulated profile at 48 configurations, with intervals."""
    model = load(path("simulated-gcn3.mlscale"))
    profiles = read_profiles(path("simulated-gcn3-profile.csv"), model.base, model.device)
    return model.predict(profiles, 0.9)


@pytest.fixture(scope="module")
def true_ms(predictions: Predictions) -> Floats:
    return np.asarray(predictions.time_ms[0] * 1.1)


def test_shows_every_value_and_a_band_around_each_prediction(
    predictions: Predictions, true_ms: Floats
) -> None:
    """Heights are those of the arrays: 4 panels (CU counts) of 3 memory clocks."""
    figure = surface_figure("title", predictions, true_ms, "simulated")
    at_base_ms = float(predictions.profiles.quantity("time")[0])
    low, high = predictions["time"].low, predictions["time"].high
    assert low is not None
    assert high is not None
    assert len(figure.axes) == 4
    for c, panel in enumerate(figure.axes):
        solid, dashed = (
            [
                line
                for line in panel.lines
                if line.get_linestyle() == style and len(line.get_xdata()) > 1
            ]
            for style in ("-", "--")
        )
        for m in range(3):
            assert list(solid[m].get_ydata()) == list(true_ms[c, :, m])
            assert list(dashed[m].get_ydata()) == list(predictions.time_ms[0, c, :, m])
            band = panel.collections[m]
            assert isinstance(band, PolyCollection)
            heights = band.get_paths()[0].vertices[:, 1]
            assert heights.min() == pytest.approx(low[0, c, :, m].min() * at_base_ms)
            assert heights.max() == pytest.approx(high[0, c, :, m].max() * at_base_ms)


@pytest.mark.parametrize("origin", ["simulated", "measured"])
def test_the_legend_names_the_origin_of_the_data(
    predictions: Predictions, true_ms: Floats, origin: str
) -> None:
    figure = surface_figure("title", predictions, true_ms, origin)
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words[-4:] == [origin, "predicted", "90 % interval", "base"]


def test_without_intervals_there_is_no_band(predictions: Predictions, true_ms: Floats) -> None:
    surfaces = {"time": replace(predictions["time"], low=None, high=None)}
    bare = replace(predictions, surfaces=surfaces, coverage=None)
    figure = surface_figure("title", bare, true_ms, "measured")
    assert not any(panel.collections for panel in figure.axes)
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words[-3:] == ["measured", "predicted", "base"]


def test_times_have_plain_numbers(
    predictions: Predictions, true_ms: Floats, tmp_path: Path
) -> None:
    figure = surface_figure("title", predictions, true_ms, "simulated")
    figure.draw_without_rendering()
    assert {"0.02", "0.05"} <= {text.get_text() for text in figure.axes[0].get_yticklabels()}
    draw_surface(tmp_path / "surface.png", "title", predictions, true_ms, "simulated")
    # The PNG signature (PNG specification, 5.2).
    assert (tmp_path / "surface.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
