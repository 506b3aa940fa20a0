"""The grid: order, mid-grid, and every text that is not a configuration; by hand, and Wu's grid."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic.tidy import refused

from mlscale import ConfigGrid, HardwareConfig

# The grid of Wu et al., section IV: 8 x 8 x 7 = 448 configurations.
PAPER = ConfigGrid(
    tuple(range(4, 33, 4)),
    tuple(float(mhz) for mhz in range(300, 1001, 100)),
    tuple(float(mhz) for mhz in range(475, 1376, 150)),
)
SMALL = ConfigGrid((4, 8, 16), (400.0, 800.0), (700.0,))


def axis(elements: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[float, ...]]:
    steps = st.lists(elements, min_size=1, max_size=4, unique=True)
    return steps.map(lambda found: tuple(sorted(found)))


clocks = axis(st.integers(100, 9999).map(float))
grids = st.builds(ConfigGrid, axis(st.integers(1, 256)), clocks, clocks)


class TestShapeAndOrder:
    def test_the_papers_grid(self) -> None:
        # Paper: 448 configurations. Mid: index 4, 4, 3, counted by hand on the axes.
        assert (PAPER.shape, PAPER.size) == ((8, 8, 7), 448)
        assert PAPER.mid == HardwareConfig(20, 700.0, 925.0)
        assert PAPER.highest == HardwareConfig(32, 1000.0, 1375.0)

    def test_mid_of_short_axes(self) -> None:
        # Hand: index 3 // 2 = 1, 2 // 2 = 1, 1 // 2 = 0.
        assert SMALL.mid == HardwareConfig(8, 800.0, 700.0)
        one = ConfigGrid((28,), (1000.0,), (5000.0,))
        assert list(one) == [one.mid] == [HardwareConfig(28, 1000.0, 5000.0)]

    @settings(max_examples=50)
    @given(grids, st.randoms(use_true_random=False))
    def test_index_config_and_text_are_inverse(self, grid: ConfigGrid, random) -> None:  # noqa: ANN001
        # Truth: NumPy's own order of a raveled array, in which memory varies fastest.
        configs = list(grid)
        assert len(configs) == grid.size
        for position, config in enumerate(configs):
            index = tuple(int(i) for i in np.unravel_index(position, grid.shape))
            assert grid.config(index) == config
            assert (grid.index(config), grid.position(config)) == (index, position)
            assert grid.parse(str(config)) == config
        random.shuffle(configs)
        assert ConfigGrid.spanning(configs) == grid

    def test_spanning_fills_the_box(self) -> None:
        # Hand: two opposite corners span four points.
        corners = [HardwareConfig(4, 800.0, 500.0), HardwareConfig(4, 400.0, 700.0)]
        assert ConfigGrid.spanning(corners) == ConfigGrid((4,), (400.0, 800.0), (500.0, 700.0))

    def test_spans_between_the_steps_but_not_beyond(self) -> None:
        inside = [(5, 650.0, 700.0), (16, 800.0, 700.0)]
        beyond = [(3, 650.0, 700.0), (5, 801.0, 700.0), (5, 650.0, 699.0)]
        for settings_, is_inside in [(inside, True), (beyond, False)]:
            assert {SMALL.spans(HardwareConfig(*one)) for one in settings_} == {is_inside}


MANY = tuple(float(mhz) for mhz in range(1, 1002))
RISING = "the grid's engine_mhz must be positive and rise from step to step, not"


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        *(((*steps,), RISING) for steps in ([800.0, 400.0], [400.0, 400.0], [0.0, 400.0])),
        *(((*steps,), RISING) for steps in ([-400.0, 400.0], [400.0, math.inf], [math.nan])),
        ((), "the grid has no engine_mhz"),
        (MANY, "1 CU count x 1001 engine clocks x 1001 memory clocks; at most 1000000"),
    ],
)
def test_a_bad_axis_is_refused(steps: tuple[float, ...], problem: str) -> None:
    with refused(problem):
        ConfigGrid((4,), steps, MANY)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (HardwareConfig(5, 400.0, 700.0), r"cu_count 5 is not on the grid; it has 4, 8, 16"),
        (HardwareConfig(4, 500.0, 700.0), r"engine_mhz 500 is not on the grid.*400, 800"),
        (HardwareConfig(4, 400.0, 701.0), r"memory_mhz 701 is not on the grid; it has 700$"),
        ((8, 400, 700), "has no index .8, 400, 700.; if these are settings, give a Hardware"),
    ],
)
def test_what_is_not_on_the_grid_is_refused(config: HardwareConfig, problem: str) -> None:
    with refused(problem):
        SMALL.index(config)


class TestParse:
    @pytest.mark.parametrize(
        ("text", "config"),
        [
            ("cu=8,engine=400,memory=700", (8, 400, 700)),
            ("memory=700,cu=8,engine=400", (8, 400, 700)),
            ("cu_count=8,engine_mhz=400,memory_mhz=700", (8, 400, 700)),
            (" cu=8, engine=400.0, memory= 700 ", (8, 400, 700)),
            ("cu=8.0,engine=4e2", (8, 400, 700)),  # without memory, an axis of length 1
            ("cus=8,core=0.8GHz,mem=700MHz", (8, 800, 700)),
            ("SMs=8,sm_clock=800,memory_clock=.7 GHz", (8, 800, 700)),
            # A target between the steps is interpolated, one outside refused later.
            ("cu=6,engine=900,memory=701", (6, 900, 701)),
        ],
    )
    def test_reads_every_order_name_and_unit(self, text: str, config: tuple[int, ...]) -> None:
        assert SMALL.parse(text) == HardwareConfig(*config)
        assert SMALL.parse("engine=400", HardwareConfig(8, 800.0, 700.0)).engine_mhz == 400

    def test_names(self) -> None:
        assert PAPER.parse("mid") == PAPER.mid
        assert PAPER.parse("highest") == PAPER.config("highest") == PAPER.highest
        assert PAPER.index("highest") == (7, 7, 6)

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("", "'' is not a setting; use cu, engine or memory, such as engine=1200"),
            ("MID", "'MID' is not a setting"),
            ("8,400,700", "8 of what. Write engine=8 or memory=8"),
            ("400MHz", "400MHz of what"),
            ("cu=8 engine=400", ": '8 engine=400' is not a number"),
            ("cu=8,engine=400,", "'' is not a setting"),
            ("cu=8,clock=400", "'clock' is not a setting"),
            ("cu=8,sms=16,engine=400", "'cu=8,sms=16,engine=400' has cu_count twice"),
            ("cu=,engine=400", ": '' is not a number"),
            ("cu=8,engine=400W", "'400W' has the unit 'W'; give MHz, GHz, kHz or Hz"),
            ("cu=8MHz,engine=400", "'8MHz' has the unit 'MHz'; give a plain number"),
            ("cu=8,engine=0", "'0' in .* must be positive and finite"),
            ("cu=8,engine=nan", "'nan' in .* must be positive and finite"),
            ("cu=inf,engine=400", "'inf' in .* must be positive and finite"),
            ("cu=8.5,engine=400", "'8.5' in .* must be a whole number of compute units"),
            ("engine=400", "'engine=400' gives no cu_count; one of 4, 8, 16"),
        ],
    )
    def test_refuses_what_is_no_configuration(self, text: str, problem: str) -> None:
        with refused(problem):
            SMALL.parse(text)
