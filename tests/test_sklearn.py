"""Predictors as estimators of scikit-learn.

Expected: by hand of two made kernels; power laws, which are known everywhere; the same predictor
trained by mlscale itself; of a real GPU, what docs/tables/new-kernels.csv has.
"""

import importlib
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from public_tables import measured
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.metrics import mean_absolute_percentage_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    cross_val_predict,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from synthetic import bottleneck_kernels, tidy
from synthetic import kernels as made
from synthetic.tidy import refused

import mlscale
from mlscale import Bottleneck, CoreBound, ExtraTrees, MeanSurface, Nearest, Wu
from mlscale.predictors.base import Predictor
from mlscale.sklearn import ScalingRegressor, counters, to_xy

MEASURED = Path(__file__).parents[1] / "docs" / "tables" / "new-kernels.csv"


@cache
def made_xy() -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Twelve kernels of four power laws, at 36 configurations."""
    return to_xy(made.measurements(), "mid")


def scaled(*others: Any) -> Pipeline:
    """The pipeline with scaled counters, as the page has it."""
    scaling = ColumnTransformer(
        [("scaled", StandardScaler(), counters)],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    return make_pipeline(scaling.set_output(transform="pandas"), *others)


class TestRows:
    def test_are_ratios_to_the_base_beside_what_was_profiled_there(self) -> None:
        """The base is the last of four settings; kernel k takes 10 k + 1, 2, 3, 4 ms."""
        X, y, groups = to_xy(pd.DataFrame(tidy.rows()), "highest")
        assert list(y) == [1 / 4, 2 / 4, 3 / 4, 11 / 14, 12 / 14, 13 / 14]
        assert list(groups) == ["app-first"] * 3 + ["app-second"] * 3
        assert X.to_dict("list") == {
            "loads": [4, 4, 4, 1004, 1004, 1004],
            "base_time_ms": [4, 4, 4, 14, 14, 14],
            "base_power_w": [104, 104, 104, 114, 114, 114],
            "cu_count": [4] * 6,
            "engine_mhz": [400, 400, 800] * 2,
            "memory_mhz": [500, 700, 500] * 2,
        }
        assert list(to_xy(pd.DataFrame(tidy.rows()), "highest", "power")[1][:2]) == [
            101 / 104,
            102 / 104,
        ]

    def test_of_what_was_not_measured_there_are_none(self) -> None:
        frame = pd.DataFrame(tidy.rows()).drop(index=[0, 7])
        with pytest.warns(mlscale.DataWarning):
            data = mlscale.Measurements.from_frame(frame, incomplete="keep")
        with pytest.warns(mlscale.DataWarning, match="left out, as not measured at the base"):
            X, y, _ = to_xy(data, "highest")
        assert list(y) == [2 / 4, 3 / 4]
        assert ScalingRegressor("mean-surface").fit(X, y).predict(X) == pytest.approx(y)


@pytest.mark.parametrize("quantity", ["time", "power"])
@pytest.mark.parametrize(
    "kind", [CoreBound, MeanSurface, Nearest, ExtraTrees, Wu, Bottleneck], ids=lambda k: k.name
)
def test_learns_and_scores_as_mlscale_itself(kind: type[Predictor], quantity: str) -> None:
    data = bottleneck_kernels.measurements(12)
    train, test = data.select(range(8)), data.select(range(8, 12))
    predictor = mlscale.create(kind, quantity=quantity)
    regressor = ScalingRegressor(predictor)
    if (kind, quantity) == (Bottleneck, "power"):  # power is learnt from times too
        with refused("have no column 'time_ms'"):
            regressor.fit(*to_xy(train, "mid", quantity)[:2])
        return
    regressor.fit(*to_xy(train, "mid", quantity)[:2])
    expected = predictor.fit(train, "mid").score(test, "mid")
    assert regressor.score(*to_xy(test, "mid", quantity)[:2]) == pytest.approx(expected, rel=1e-9)


class TestScikitLearn:
    def test_folds_of_rows_fill_in_power_laws(self) -> None:
        """What is held out of a kernel follows from its other rows: it is its own neighbour."""
        X, y, _ = made_xy()
        nearest = ScalingRegressor(Nearest(neighbours=1))
        predicted = cross_val_predict(nearest, X, y, cv=KFold(3, shuffle=True, random_state=0))
        assert predicted == pytest.approx(y.to_numpy(), rel=1e-3)

    def test_between_clocks_a_power_law_is_met(self) -> None:
        X, y, _ = to_xy(made.measurements(laws={"compute": made.LAWS["compute"]}), "highest")
        regressor = ScalingRegressor("mean-surface").fit(
            X[X.engine_mhz != 600], y[X.engine_mhz != 600]
        )
        assert regressor.predict(X) == pytest.approx(y.to_numpy())

    def test_a_search_finds_the_clusters_that_there_are(self) -> None:
        X, y, groups = made_xy()
        search = GridSearchCV(
            ScalingRegressor("wu"), {"predictor__clusters": [1, 4]}, cv=GroupKFold(2)
        )
        search.fit(X, y, groups=groups)
        assert search.best_params_ == {"predictor__clusters": 4}
        assert search.best_estimator_.predictor_.clusters == 4

    def test_scaled_raw_counters_tell_the_same(self) -> None:
        """Nearest scales features itself, so that an affine map before it changes nothing."""
        X, y, groups = made_xy()
        plain, pipeline = (
            cross_val_predict(one, X, y, groups=groups, cv=LeaveOneGroupOut())
            for one in (ScalingRegressor("nearest"), scaled(ScalingRegressor("nearest")))
        )
        assert pipeline == pytest.approx(plain)

    def test_is_a_regressor_that_is_cloned_and_pickled(self) -> None:
        X, y, _ = made_xy()
        given = Nearest(neighbours=2)
        regressor = ScalingRegressor(given).fit(X, y)
        assert is_regressor(regressor)
        assert regressor.get_params() == {
            "predictor": given,
            **{f"predictor__{name}": value for name, value in given.get_params().items()},
        }
        assert list(regressor.feature_names_in_) == list(X.columns)
        assert not hasattr(given, "scaling_")
        again = clone(regressor).set_params(predictor__neighbours=1)
        assert (again.predictor.neighbours, given.neighbours) == (1, 2)
        read = pickle.loads(pickle.dumps(regressor))
        assert np.array_equal(read.predict(X), regressor.predict(X))
        assert "Nearest" in regressor._repr_html_()

    def test_its_own_checks_fail_of_arrays_without_names_alone(self) -> None:
        """What needs no data passes; all else gives fit an array, which is refused in one line."""
        results = check_estimator(ScalingRegressor("mean-surface"), on_fail=None, on_skip=None)
        for result in results:
            if result["status"] == "failed":
                assert any(
                    "without names of columns" in str(e) for e in chain(result["exception"])
                ), result
        passed = {result["check_name"] for result in results if result["status"] == "passed"}
        assert passed >= {
            "check_estimator_cloneable",
            "check_estimators_unfitted",
            "check_get_params_invariance",
            "check_no_attributes_set_in_init",
            "check_parameters_default_constructible",
            "check_set_params",
            "check_valid_tag_types",
        }


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that it came of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def of_two_bases(X: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([X, to_xy(made.measurements(), "highest")[0]])


MISTAKES: dict[str, tuple[Callable[[pd.DataFrame], Any], str]] = {
    "an array": (lambda X: X.to_numpy(), "^X is of ndarray, without names .* To scale counters"),
    "scaled settings": (
        lambda X: StandardScaler().set_output(transform="pandas").fit_transform(X),
        "^X, row 1, column 'cu_count': is -1.06271, which is impossible; .* To scale counters",
    ),
    "half a CU": (lambda X: X.assign(cu_count=0.5), "row 1, column 'cu_count': is 0.5,"),
    "no time at the base": (lambda X: X.drop(columns="base_time_ms"), "no column 'base_time_ms'"),
    "another index": (lambda X: X.reset_index(drop=True), "index of X has no level 'device'; keep"),
    "two bases": (of_two_bases, "^X has rows of 2 devices and bases; give those of one$"),
    "two profiles of a kernel": (
        lambda X: X.assign(busy_compute=np.arange(len(X))),
        "^X has several profiles of kernel 'compute0'; it has one, at the base$",
    ),
}


class TestMistakes:
    @pytest.mark.parametrize("mistake", MISTAKES)
    def test_in_rows(self, mistake: str) -> None:
        change, message = MISTAKES[mistake]
        changed = change(made_xy()[0])
        with refused(message):
            ScalingRegressor("nearest").fit(changed, np.ones(len(changed)))

    @pytest.mark.parametrize("y", [None, np.zeros(420), np.ones(3)], ids=["none", "zeros", "few"])
    def test_in_ratios(self, y: Any) -> None:
        with refused("^y must be a positive ratio to the base for each of the 420 rows$"):
            ScalingRegressor("nearest").fit(made_xy()[0], y)

    def test_of_the_quantity(self) -> None:
        X, y, _ = to_xy(made.measurements(), "mid", "power")
        with refused("^y is the power_ratio, but the predictor's quantity is 'time'"):
            ScalingRegressor("nearest").fit(X, y)

    def test_scaled_counts(self) -> None:
        X, y, _ = to_xy(bottleneck_kernels.measurements(4))
        with refused(
            "counters below 0, so they were scaled, and 'nearest' .*predictor__features='raw'$"
        ):
            scaled(ScalingRegressor("nearest")).fit(X, y)
        scaled(ScalingRegressor(Nearest(features="raw"))).fit(X, y)

    def test_at_prediction(self) -> None:
        X, y, _ = made_xy()
        regressor = ScalingRegressor("mean-surface").fit(X, y)
        with refused("^X is of 'made-gpu' at .*memory=1000; the training data were of 'made-gpu'"):
            regressor.predict(to_xy(made.measurements(), "highest")[0])
        with refused("^engine_mhz 2000 is outside the grid"):
            regressor.predict(X.assign(engine_mhz=2000.0))

    def test_a_predictor_itself_says_what_to_write(self) -> None:
        X, y, _ = made_xy()
        for use in (is_regressor, lambda it: make_pipeline(it).fit(X, y), lambda it: it.fit(X, y)):
            with refused(r"flat rows X, y write mlscale.sklearn.ScalingRegressor\('nearest'\)"):
                use(Nearest())

    def test_without_scikit_learn_one_line_names_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delitem(sys.modules, "mlscale.sklearn")
        monkeypatch.setitem(sys.modules, "sklearn.base", None)
        with refused(
            r"^mlscale.sklearn needs sklearn; install it with: pip install .*scikit-learn"
        ):
            importlib.import_module("mlscale.sklearn")


@pytest.mark.parametrize("quantity", ["time", "power"])
def test_errors_of_a_real_gpu_are_those_of_the_study(quantity: str, data_folder: Path) -> None:
    X, y, groups = to_xy(measured(data_folder, "gtx980-low"), "mid", quantity)
    regressor = ScalingRegressor(Nearest(quantity=quantity))
    predicted = cross_val_predict(regressor, X, y, groups=groups, cv=LeaveOneGroupOut())
    rows = pd.read_csv(MEASURED).set_index(["table", "quantity", "predictor", "features"])
    shown = rows.loc[("gtx980-low", quantity, "nearest", "utilisation"), "mape"]
    error = 100 * mean_absolute_percentage_error(y, predicted)
    assert error == pytest.approx(float(shown), abs=0.02)
