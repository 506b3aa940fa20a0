"""What holds for every predictor: the one interface, and no leak from what is held out."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from parameters import own
from sklearn.base import clone
from synthetic import bottleneck_kernels
from synthetic import kernels as made
from synthetic.profiled import one_by_one, some_of
from synthetic.tidy import refused, same_bits

from mlscale import PREDICTORS, HardwareConfig, Measurements, Profiles, create, train
from mlscale.errors import DataWarning
from mlscale.predictors import default_predictor
from mlscale.predictors.base import Predictor

MID = made.GRID.mid
AT_MID = made.GRID.index(MID)
SMALL = {"clusters": 4, "trees": 10, "seed": 3}  # keeps every predictor quick
TRAINING = range(8)
HELD_OUT = [8, 9, 10, 11]

# wang-chu and max-overlap need the counters of a real GPU; test_wang_chu.py holds them to it.
NAMES = [name for name, kind in PREDICTORS.items() if kind.applies_to(made.measurements())]

every_predictor = pytest.mark.parametrize("name", NAMES)


def small(name: str, **parameters: str) -> Predictor:
    """A predictor of that name with what it has of SMALL."""
    return create(name, **own(name, **SMALL), **parameters)


def fitted(name: str, measurements: Measurements, quantity: str = "time") -> Predictor:
    """A predictor fitted at the mid-grid."""
    return small(name, quantity=quantity).fit(measurements, MID)


def kernels(seed: int = 0) -> Measurements:
    """Twelve kernels of the four groups, mixed, so that eight hold some of each."""
    return made.measurements(seed=seed).select([0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11])


def new_profiles() -> Profiles:
    """Kernels that no training has seen, some counters outside the trained range."""
    return made.measurements(per_group=2, seed=1).profiles(MID)


def same_predictions(one: Predictor, other: Predictor, profiles: Profiles) -> bool:
    """Whether two predictors say the same, to the last bit and flag."""
    left, right = one.predict(profiles), other.predict(profiles)
    return same_bits(left.values, right.values) and left.flags == right.flags


@pytest.fixture(scope="module")
def trained() -> dict[tuple[str, str], Predictor]:
    """Every predictor, fitted on twelve kernels, by name and quantity."""
    return {
        (name, quantity): fitted(name, kernels(), quantity)
        for name in NAMES
        for quantity in ("time", "power")
    }


def test_the_documented_predictors_are_there() -> None:
    baselines = "no-scaling engine-bound core-bound memory-bound mean-surface nearest"
    assert {*baselines.split(), "extra-trees", "wu", "wang-chu", "max-overlap"} <= PREDICTORS.keys()
    assert all(predictor.name == name for name, predictor in PREDICTORS.items())


def test_the_default_suits_the_table() -> None:
    """By the GPU's peaks where they are known, by counters alone, or by neither."""
    known = bottleneck_kernels.measurements(kernels=4)
    assert default_predictor(known) == "bottleneck"
    assert default_predictor(replace(known, device="made-gpu")) == "wu"
    bare = replace(known, counter_names=(), counter_samples=known.counter_samples[..., :0])
    with pytest.warns(
        DataWarning, match="'gtx980' has no counters, so the default is 'mean-surface'"
    ):
        assert default_predictor(bare) == "mean-surface"


def test_the_default_suits_the_table_at_its_base() -> None:
    """Counted at the highest clocks alone: nothing is told at the middle, where none were."""
    table = bottleneck_kernels.measurements(kernels=4)
    counters = np.full_like(table.counter_samples, np.nan)
    counters[:, :, -1, -1, -1] = table.counter_samples[:, :, -1, -1, -1]
    table = replace(table, counter_samples=counters)
    assert default_predictor(table) == default_predictor(table, "highest") == "bottleneck"
    assert train(table, "highest").predictors["time"].name == "bottleneck"
    with refused("4 kernels .* without '.*' at the base cu=16,engine=900,memory=3000, but with it"):
        default_predictor(table, "mid")


@every_predictor
class TestHyperParameters:
    def test_are_set_and_got(self, name: str) -> None:
        predictor = create(name)
        assert predictor.get_params()["quantity"] == "time"
        assert predictor.set_params(quantity="power") is predictor
        assert predictor.quantity == predictor.get_params()["quantity"] == "power"

    def test_sklearn_clones_an_unfitted_copy(
        self, name: str, trained: dict[tuple[str, str], Predictor]
    ) -> None:
        predictor = trained[name, "power"]
        copied = clone(predictor)
        assert type(copied) is type(predictor)
        assert copied.get_params() == predictor.get_params()
        assert copied.quantity == "power"
        # Nothing but hyper-parameters: what fitting learns is not copied.
        assert vars(copied).keys() == copied.get_params().keys()
        assert vars(predictor).keys() > copied.get_params().keys()

    def test_unknown_ones_are_refused_and_the_known_ones_named(self, name: str) -> None:
        known = ", ".join(create(name).get_params())
        for refusing in (create(name).set_params, partial(create, name)):
            with refused(
                f"^the predictor '{name}' has no hyper-parameter 'depth'; it has {known}$"
            ):
                refusing(depth=3, quantity="power", sed=1)

    def test_an_unknown_quantity_is_refused(self, name: str) -> None:
        with refused("'energy'"):
            small(name).set_params(quantity="energy").fit(kernels(), MID)


@every_predictor
@pytest.mark.parametrize("quantity", ["time", "power"])
class TestPredictions:
    def test_are_positive_factors_that_are_1_at_the_base(
        self, name: str, quantity: str, trained: dict[tuple[str, str], Predictor]
    ) -> None:
        surfaces = trained[name, quantity].predict(new_profiles())
        assert surfaces.values.shape == (8, *made.GRID.shape)
        assert np.isfinite(surfaces.values).all()
        assert (surfaces.values > 0).all()
        np.testing.assert_allclose(surfaces.values[:, *AT_MID], 1.0, rtol=1e-12)
        assert (surfaces.grid, surfaces.base) == (made.GRID, MID)
        assert len(surfaces.flags) == 8

    def test_do_not_depend_on_the_other_kernels(
        self, name: str, quantity: str, trained: dict[tuple[str, str], Predictor]
    ) -> None:
        predictor, profiles = trained[name, quantity], new_profiles()
        together = predictor.predict(profiles)
        alone = [predictor.predict(one) for one in one_by_one(profiles)]
        assert same_bits(together.values, np.concatenate([one.values for one in alone]))
        assert together.flags == tuple(one.flags[0] for one in alone)
        order = [5, 0, 0, 7]
        chosen = predictor.predict(some_of(profiles, order))
        assert same_bits(chosen.values, together.values[order])

    def test_do_not_depend_on_the_time_and_power_at_the_base(
        self, name: str, quantity: str, trained: dict[tuple[str, str], Predictor]
    ) -> None:
        # Raw counters are the same, so a kernel of ten times the time has the same factors.
        profiles = new_profiles()
        assert profiles.power_w is not None
        larger = replace(profiles, time_ms=10 * profiles.time_ms, power_w=3 * profiles.power_w)
        predictor = trained[name, quantity]
        assert same_bits(predictor.predict(larger).values, predictor.predict(profiles).values)

    def test_leave_the_profiles_as_they_were(
        self, name: str, quantity: str, trained: dict[tuple[str, str], Predictor]
    ) -> None:
        profiles = new_profiles()
        before = copy.deepcopy(profiles)
        trained[name, quantity].predict(profiles)
        assert same_bits(profiles.counters, before.counters)
        assert same_bits(profiles.time_ms, before.time_ms)


@every_predictor
class TestWhatEnters:
    def test_held_out_kernels_do_not(self, name: str) -> None:
        everything, profiles = kernels(), new_profiles()
        before = fitted(name, everything.select(TRAINING))
        spoilt = kernels()
        assert spoilt.power_samples is not None
        spoilt.time_samples[:, HELD_OUT] *= np.linspace(1, 9, made.GRID.size).reshape(
            made.GRID.shape
        )
        spoilt.power_samples[:, HELD_OUT] *= 7
        spoilt.counter_samples[:, HELD_OUT] += 100
        after = fitted(name, spoilt.select(TRAINING))
        assert same_predictions(before, after, profiles)

    def test_a_held_out_kernel_is_known_by_its_base_run_alone(self, name: str) -> None:
        predictor = fitted(name, kernels().select(TRAINING))
        spoilt = kernels()
        away = np.ones(made.GRID.shape, dtype=bool)
        away[AT_MID] = False
        spoilt.time_samples[..., away] *= 3
        spoilt.counter_samples[..., away, :] = np.nan
        before, after = kernels().profiles(MID), spoilt.profiles(MID)
        values = predictor.predict(some_of(before, HELD_OUT)).values
        assert same_bits(predictor.predict(some_of(after, HELD_OUT)).values, values)

    def test_training_counters_away_from_the_base_do_not(self, name: str) -> None:
        spoilt = kernels()
        away = np.ones(made.GRID.shape, dtype=bool)
        away[AT_MID] = False
        spoilt.counter_samples[..., away, :] = 1e6
        assert same_predictions(fitted(name, kernels()), fitted(name, spoilt), new_profiles())

    def test_changes_of_the_training_data_after_fitting_do_not(self, name: str) -> None:
        measurements, profiles = kernels(), new_profiles()
        predictor = fitted(name, measurements)
        before = predictor.predict(profiles)
        measurements.time_samples[:] = 1.0
        measurements.counter_samples[:] = 7.0
        measurements.time_ms[:] = 1.0
        measurements.counters[:] = 7.0
        after = predictor.predict(profiles)
        assert same_bits(after.values, before.values)
        assert after.flags == before.flags

    def test_an_earlier_fit_does_not(self, name: str) -> None:
        other = made.measurements(seed=5).select(range(6))
        refitted = fitted(name, other).fit(kernels(), MID)
        assert same_predictions(refitted, fitted(name, kernels()), new_profiles())


@every_predictor
class TestFit:
    @pytest.mark.parametrize("base", [MID, AT_MID])
    def test_takes_a_base_by_index_or_configuration_and_tables_as_a_list(
        self,
        name: str,
        base: HardwareConfig | tuple[int, int, int],
        trained: dict[tuple[str, str], Predictor],
    ) -> None:
        one, several = small(name).fit(kernels(), base), small(name).fit([kernels()], [base])
        assert same_predictions(one, trained[name, "time"], new_profiles())
        assert same_predictions(several, trained[name, "time"], new_profiles())

    def test_together_is_as_alone(
        self, name: str, trained: dict[tuple[str, str], Predictor]
    ) -> None:
        one, other = (small(name, quantity=q) for q in ("time", "power"))
        type(one).fit_together([(one, kernels(), MID), (other, kernels(), MID)])
        assert same_predictions(one, trained[name, "time"], new_profiles())
        assert same_predictions(other, trained[name, "power"], new_profiles())

    def test_a_base_that_is_not_on_the_grid_is_refused(self, name: str) -> None:
        with refused("engine_mhz 850 is not on the grid; it has 400, 600, 800, 1000"):
            small(name).fit(kernels(), HardwareConfig(8, 850.0, 700.0))
