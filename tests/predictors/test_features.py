"""Min-max scaling of features, learnt on training kernels."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from synthetic.profiled import profiles
from synthetic.tidy import refused, same_bits

from mlscale import Profiles
from mlscale.predictors.features import FeatureScaling
from mlscale.predictors.state import restored, state_of

NAN = math.nan

values = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
tables = st.tuples(st.integers(1, 6), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=values)
)


def fitted(**columns: list[float]) -> FeatureScaling:
    """A scaling of raw features, learnt on kernels with these counters."""
    return FeatureScaling.fit("raw", profiles(columns))


def transformed(scaling: FeatureScaling, **columns: float) -> tuple[list[float], tuple[str, ...]]:
    """Features and flags of one kernel with these counters."""
    points, flags = scaling.transform(profiles({name: [v] for name, v in columns.items()}))
    return points[0].tolist(), tuple(map(str, flags[0]))


def of_table(table: np.ndarray) -> Profiles:
    """Profiles with a row of counters for each kernel."""
    return profiles({f"c{f}": column for f, column in enumerate(table.T)})


class TestMinMax:
    @settings(max_examples=50)
    @given(tables)
    def test_training_kernels_span_the_unit_range_and_raise_no_flag(
        self, table: np.ndarray
    ) -> None:
        training = of_table(table)
        points, flags = FeatureScaling.fit("raw", training).transform(training)
        for column, before in zip(points.T, table.T, strict=True):
            # Closed form: the least maps to 0, the greatest to 1; 0 where they are the same.
            assert column[before.argmin()] == 0
            assert column[before.argmax()] == (0 if before.min() == before.max() else 1)
            assert (np.diff(column[before.argsort()]) >= 0).all()
        assert flags == ((),) * len(table)


@pytest.mark.parametrize(
    ("kernel", "points", "flags"),
    [
        # By hand: 'busy' was trained from 10 to 50, 'wave' at 64 alone.
        (
            {"busy": 60.0, "wave": 64.0},
            [1.0, 0.0],
            ("busy 60 is above 50, the highest in training",),
        ),
        (
            {"busy": -10.0, "wave": 64.0},
            [0.0, 0.0],
            ("busy -10 is below 10, the lowest in training",),
        ),
        ({"busy": 30.0, "wave": 64.0}, [0.5, 0.0], ()),
        (
            {"busy": 6.0, "wave": 65.0},
            [0.0, 0.0],
            (
                "busy 6 is below 10, the lowest in training",
                "wave 65 is above 64, the highest in training",
            ),
        ),
    ],
)
def test_outside_the_trained_range_a_feature_is_clipped_and_flagged(
    kernel: dict[str, float], points: list[float], flags: tuple[str, ...]
) -> None:
    assert transformed(fitted(busy=[10.0, 50.0], wave=[64.0, 64.0]), **kernel) == (points, flags)


class TestMissingValues:
    # Trained on 10, 50, (none) and 20: the median is 20, a quarter of the way from 10 to 50.
    SOME = fitted(rate=[10.0, 50.0, NAN, 20.0], busy=[0.0, 1.0, 0.5, 0.5])

    def test_where_some_training_kernel_had_none_the_median_stands_in(self) -> None:
        assert transformed(self.SOME, rate=NAN, busy=0.5) == ([0.25, 0.5], ("missing: rate",))

    def test_there_the_column_may_be_left_out_altogether(self) -> None:
        # An absent counter is absent, whether its cell is empty or its column is not there.
        assert transformed(self.SOME, busy=0.5) == ([0.25, 0.5], ("missing: rate",))

    def test_where_every_training_kernel_had_one_too(self) -> None:
        """0.5 is the median of 0, 0.5, 0.5 and 1."""
        assert transformed(self.SOME, rate=20.0, busy=NAN) == ([0.25, 0.5], ("missing: busy",))
        kernels = profiles({"rate": [20.0, 20.0], "busy": [0.5, NAN]})
        assert self.SOME.given(kernels) == ("rate", "busy")

    def test_a_kernel_that_has_nothing_but_its_time_is_refused(self) -> None:
        scaling = FeatureScaling.fit("utilisation", TestState.TRAINING)
        assert "log_time_ms" in scaling.names
        nothing = replace(TestState.NEW, counters=TestState.NEW.counters * NAN)
        with refused("kernel 'k0' has none of the features .* such as 'dram_utilisation'; prof"):
            scaling.given(nothing)
        time_alone = FeatureScaling.fit("utilisation", TestState.TRAINING, "log_time_ms")
        assert time_alone.given(nothing) == ("log_time_ms",)

    def test_a_feature_that_no_training_kernel_has_is_left_out(self) -> None:
        scaling = fitted(rate=[NAN, NAN], busy=[0.0, 1.0])
        assert scaling.names == ("busy",)
        assert transformed(scaling, busy=0.5) == ([0.5], ())
        assert transformed(scaling, busy=0.5, rate=7.0) == ([0.5], ())

    def test_no_feature_at_all_is_refused(self) -> None:
        with refused("no training kernel has a value for any 'raw' feature"):
            fitted(rate=[NAN, NAN], busy=[NAN, NAN])


class TestColumns:
    @settings(max_examples=20)
    @given(st.permutations("abc"), st.booleans())
    def test_order_and_strangers_in_the_profile_do_not_matter(
        self, order: list[str], stranger: bool
    ) -> None:
        scaling = fitted(c=[3.0, 4.0], a=[1.0, 9.0], b=[0.0, 2.0])
        kernel = {"c": 3.5, "a": 3.0, "b": 3.0}
        given_columns = ({"stranger": 1e9} if stranger else {}) | {n: kernel[n] for n in order}
        told = "b 3 is above 2, the highest in training"
        assert transformed(scaling, **given_columns) == ([0.5, 0.25, 1.0], (told,))


class TestState:
    TRAINING = profiles(
        {
            "dram_read_transactions": [1e6, 2e6, NAN, 7e5],
            "dram_write_transactions": [3e5, 2e6, 1e6, 0.0],
            "achieved_occupancy": [0.5, 0.25, 0.9, 0.4],
        },
        time_ms=[1.0, 2.0, 3.0, 0.3],
        device="gtx980",
    )
    NEW = replace(
        TRAINING, counters=TRAINING.counters * [1.5, 0.2, 1.01], time_ms=TRAINING.time_ms / 3
    )

    @pytest.mark.parametrize("kind", ["raw", "rates", "utilisation"])
    def test_a_restored_scaling_gives_the_same_bits_and_flags(self, kind: str) -> None:
        scaling = FeatureScaling.fit(kind, self.TRAINING)
        state = state_of(scaling)
        # What is no array must pass through JSON.
        through_json: dict[str, Any] = {
            key: value if isinstance(value, np.ndarray) else json.loads(json.dumps(value))
            for key, value in state.items()
        }
        points, flags = scaling.transform(self.NEW)
        again, flags_again = restored(FeatureScaling, through_json).transform(self.NEW)
        assert same_bits(points, again)
        assert flags == flags_again
        assert any(flags)
