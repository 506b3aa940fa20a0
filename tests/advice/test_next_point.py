"""What to measure next for a run: the widths of its kernels by hand, weighted by their time."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mlscale import HardwareConfig, MeasuredPoint, Model, Profiles, next_points
from mlscale.arrays import Floats
from mlscale.data.grid import ConfigGrid
from mlscale.predictors.baselines import NoScaling

GRID = ConfigGrid((4,), (500.0, 700.0, 1000.0), (900.0,))
BASE = GRID.config((0, 2, 0))
LOW, MIDDLE = GRID.config((0, 0, 0)), GRID.config((0, 1, 0))


class OfKnownWidths(NoScaling):
    """Of two kernels 700 MHz would narrow the first most, 500 the second."""

    def widths_ahead(self, *given: Any) -> tuple[Floats, Floats]:  # noqa: ARG002
        return np.array([1.0, 0.8]), np.array([[0.5, 0.1, 1.0], [0.2, 0.4, 0.8]])


def asked(*points: MeasuredPoint, launches: Floats | None) -> tuple[Model, Profiles]:
    """Kernels of 1 and 8 ms."""
    predictors: dict[str, Any] = {"time": OfKnownWidths().fit([], [])}
    times_ms, nothing = np.array([1.0, 8.0]), np.empty((2, 0))
    profiles = Profiles("gpu", BASE, ("a", "b"), ("a", "b"), times_ms, None, (), nothing)
    profiles = replace(profiles, points=points, launches=launches)
    return Model("gpu", GRID, BASE, predictors, {"metadata": {}}, untrained=True), profiles


@pytest.mark.parametrize(
    ("launches", "config", "narrower_percent"),
    [
        # 1 and 8 ms: widths of 1 and 6.4, 0.5 and 1.6 after 500 MHz, 0.1 and 3.2 after 700.
        (None, LOW, 100 * (1 - 2.1 / 7.4)),
        # 32 and 8 ms: 32 and 6.4, 16 and 1.6 after 500 MHz, 3.2 and 3.2 after 700.
        (np.array([32.0, 1.0]), MIDDLE, 100 * (1 - 6.4 / 38.4)),
    ],
)
def test_for_all_kernels_they_weigh_by_their_time_in_the_run(
    launches: Floats | None, config: HardwareConfig, narrower_percent: float
) -> None:
    each, for_all = next_points(*asked(launches=launches))
    assert [point.config for point in each] == [MIDDLE, LOW]
    assert for_all is not None
    assert for_all.config == config
    assert for_all.narrower_percent == pytest.approx(narrower_percent)


def test_what_is_measured_of_one_kernel_narrows_the_others_alone() -> None:
    """700 MHz is measured of the first: for both, 32 + 3.2 are left there, 16 + 1.6 at 500 MHz."""
    point = MeasuredPoint(MIDDLE, np.array([1.2, np.nan]), None)
    each, for_all = next_points(*asked(point, launches=np.array([32.0, 1.0])))
    assert [point.config for point in each] == [LOW, LOW]
    assert for_all is not None
    assert for_all.config == LOW
    assert for_all.narrower_percent == pytest.approx(100 * (1 - 17.6 / 38.4))
