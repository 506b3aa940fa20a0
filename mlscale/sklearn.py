"""Every predictor as an estimator of scikit-learn, on flat rows: `to_xy`, `ScalingRegressor`.

A row is one kernel at one target setting. The index of X names device, base, application and
kernel; it goes through slices, folds, and transformers whose output is pandas.
"""

from typing import Any, Self

import numpy as np

from mlscale.arrays import Floats, Indices
from mlscale.counters.features import BASE_POWER, WITH_POWER, default_kind
from mlscale.data.grid import AXES, Base, ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import absolute_values, interpolate
from mlscale.data.table import NO_TIMES
from mlscale.errors import InputError, extra_named
from mlscale.predictors import create
from mlscale.predictors.base import Predictor, predict_surfaces
from mlscale.predictors.features import training_profiles

with extra_named("mlscale.sklearn", "study"):
    import pandas as pd
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.metrics import mean_absolute_percentage_error
    from sklearn.utils.validation import check_is_fitted, validate_data

BASE_TIME = "base_time_ms"
INDEX_LEVELS = ["device", "base", "application", "kernel"]
SETTINGS = list(AXES)
_SCALE_COUNTERS = (
    "To scale counters alone: ColumnTransformer([('scaled', StandardScaler(), counters)], "
    "remainder='passthrough', verbose_feature_names_out=False).set_output(transform='pandas'), "
    "with mlscale.sklearn.counters"
)


def to_xy(
    data: "pd.DataFrame | Measurements", base: Base | None = None, quantity: str = "time"
) -> "tuple[pd.DataFrame, pd.Series[float], pd.Series[str]]":
    """Return X, y and groups of a tidy table: a row for each kernel and setting but the base.

    Columns of X: what was profiled at the base (the counters, base_time_ms and, where it was
    measured, base_power_w), then cu_count, engine_mhz and memory_mhz of the target. base: by
    default the highest setting. y: 'time' or 'power', the quantity, at the target over that at the
    base. groups: the applications, to be held
    out as a whole. Raises InputError, and warns of kernels that were not measured at the base.
    """
    table = data if isinstance(data, Measurements) else Measurements.from_frame(data)
    base = table.base(base)
    table = table.with_base(base)
    profiles = training_profiles(table, base)
    ratios = table.measured_relative(quantity, base)
    ratios[:, *table.grid.index(base)] = np.nan
    kernel, *cell = np.nonzero(~np.isnan(ratios))
    columns = dict(zip(profiles.counter_names, profiles.counters[kernel].T, strict=True))
    columns[BASE_TIME] = profiles.time_ms[kernel]
    if profiles.power_w is not None:
        columns[BASE_POWER] = profiles.power_w[kernel]
    for (axis, steps), place in zip(table.grid.steps.items(), cell, strict=True):
        columns[axis] = np.array(steps)[place]
    names = [(table.device, profiles.base, table.applications[k], table.kernels[k]) for k in kernel]
    index = pd.MultiIndex.from_tuples(names, names=INDEX_LEVELS)
    y = pd.Series(ratios[~np.isnan(ratios)], index, name=f"{quantity}_ratio")
    groups = pd.Series(index.get_level_values("application"), index, name="application")
    return pd.DataFrame(columns, index), y, groups


def counters(X: "pd.DataFrame") -> list[str]:
    """Return the columns of X that are counters: those that a ColumnTransformer may scale."""
    return [name for name in X.columns if name not in (*AXES, BASE_TIME, BASE_POWER)]


class ScalingRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A predictor as a regressor of scikit-learn, for X and y of `to_xy`.

    predictor: a name ('wu', 'package.module:Class', …), a class or an object, such as
    `mlscale.Nearest(quantity="power")`. Its hyper-parameters are `predictor__clusters` and the
    like. `predictor_` is the fitted one.

    `fit` makes a surface of a kernel's rows; `predict` takes each row for itself, so that columns
    can be permuted, at settings between those of the training. X keeps its names and its target
    settings. Scaled counters suit features='raw' alone, as others are computed from counts.
    'bottleneck' learns power from times at every setting too, which rows of power lack: it refuses.
    """

    def __init__(self, predictor: str | type[Predictor] | Predictor = "nearest") -> None:
        self.predictor = predictor

    def set_params(self, **params: Any) -> Self:
        """Set `predictor`, or its hyper-parameters `predictor__…`. Raises InputError."""
        if any(name.startswith("predictor__") for name in params):
            params["predictor"] = create(params.get("predictor", self.predictor))
        super().set_params(**params)
        return self

    def fit(self, X: "pd.DataFrame", y: Any) -> Self:
        """Learn from rows and their ratios y, (rows,). Raises InputError."""
        learner = create(self.predictor)
        self.place_ = _place(X, learner.quantity)
        validate_data(self, X, skip_check_array=True)
        measurements = _measurements(X, _ratios(y, len(X), learner.quantity), learner.quantity)
        _require_counts(measurements, learner)
        self.predictor_ = learner.fit(measurements, self.place_[1])
        return self

    def predict(self, X: "pd.DataFrame") -> Floats:
        """Return the ratio to the base of each row, (rows,). Raises InputError."""
        check_is_fitted(self)
        if (place := _place(X, self.predictor_.quantity)) != self.place_:
            told = f"X is of '{place[0]}' at {place[1]}; the training data were"
            raise InputError(f"{told} of '{self.place_[0]}' at {self.place_[1]}")
        validate_data(self, X, reset=False, skip_check_array=True)
        profile_of_row, firsts = _numbered(X.drop(columns=SETTINGS).reset_index())
        surfaces = predict_surfaces(self.predictor_, _profiles(X.iloc[firsts]))
        config_of_row, firsts = _numbered(X[SETTINGS])
        predicted = np.empty(len(X))
        for number, (cu, engine, memory) in enumerate(X[SETTINGS].to_numpy()[firsts]):
            rows, config = config_of_row == number, HardwareConfig(int(cu), engine, memory)
            factors = surfaces.values[profile_of_row[rows]]  # noqa: PD011
            predicted[rows], _ = interpolate(factors, surfaces.grid, config)
        return predicted

    def score(self, X: "pd.DataFrame", y: Any, sample_weight: Any = None) -> float:
        """Return minus the mean absolute percentage error, so that more is better."""
        predicted = self.predict(X)
        share = mean_absolute_percentage_error(y, predicted, sample_weight=sample_weight)
        return -100.0 * float(share)


def _place(X: Any, quantity: str) -> tuple[str, HardwareConfig]:
    """The device and the base of all rows. Raises InputError where X is not as of `to_xy`."""
    if not isinstance(X, pd.DataFrame):
        told = f"X is of {type(X).__name__}, without names of columns; give the DataFrame of to_xy"
        raise InputError(f"{told}. {_SCALE_COUNTERS}")
    needed = (*SETTINGS, BASE_TIME, *([BASE_POWER] if quantity == "power" else []))
    if lacking := [name for name in needed if name not in X.columns]:
        raise InputError(f"X has no column '{lacking[0]}'; keep that of to_xy")
    if lacking := [name for name in INDEX_LEVELS if name not in X.index.names]:
        raise InputError(f"the index of X has no level '{lacking[0]}'; keep the index of to_xy")
    for name in needed:
        values = X[name].to_numpy(np.float64)
        is_good = (values > 0) & ((values % 1 == 0) | (name != "cu_count"))
        if not is_good.all():
            row = int(is_good.argmin())
            told = f"X, row {row + 1}, column '{name}': is {values[row]:g}, which is impossible"
            raise InputError(f"{told}; keep what to_xy has there. {_SCALE_COUNTERS}")
    places = X.index.to_frame(index=False)[INDEX_LEVELS[:2]].drop_duplicates().to_numpy()
    if len(places) != 1:
        raise InputError(f"X has rows of {len(places)} devices and bases; give those of one")
    return tuple(places[0])


def _ratios(y: Any, count: int, quantity: str) -> Floats:
    """The ratios y, (rows,). Raises InputError where they are none, or of the other quantity."""
    ratios, name = np.asarray(y, np.float64), str(getattr(y, "name", None))
    if name.endswith("_ratio") and name != f"{quantity}_ratio":
        raise InputError(f"y is the {name}, but the predictor's quantity is '{quantity}'")
    if ratios.shape != (count,) or not ((ratios > 0) & (ratios < np.inf)).all():
        raise InputError(f"y must be a positive ratio to the base for each of the {count} rows")
    return ratios


def _numbered(rows: "pd.DataFrame") -> tuple[Indices, Indices]:
    """Which of the distinct rows each one is, and where each of these stands first."""
    number = rows.groupby(list(rows.columns), sort=False, dropna=False).ngroup()
    return np.asarray(number, np.intp), np.unique(number, return_index=True)[1]


def _profiles(rows: "pd.DataFrame") -> Profiles:
    devices, bases, applications, kernels = map(rows.index.get_level_values, INDEX_LEVELS)
    return Profiles(
        device=devices[0],
        base=bases[0],
        kernels=tuple(kernels),
        applications=tuple(applications),
        time_ms=rows[BASE_TIME].to_numpy(np.float64),
        power_w=rows[BASE_POWER].to_numpy(np.float64) if BASE_POWER in rows else None,
        counter_names=tuple(counters(rows)),
        counters=rows[counters(rows)].to_numpy(np.float64),
    )


def _measurements(X: "pd.DataFrame", ratios: Floats, quantity: str) -> Measurements:
    """What the rows tell of one quantity, and of the profiles at the base. Raises InputError."""
    kernel_of_row, firsts = _numbered(X.index.to_frame(index=False)[INDEX_LEVELS])
    profiles = _profiles(X.iloc[firsts])
    given = X.drop(columns=SETTINGS).to_numpy(np.float64)
    is_same = np.isclose(given, given[firsts][kernel_of_row], equal_nan=True).all(axis=1)
    if not is_same.all():
        kernel = profiles.kernels[kernel_of_row[is_same.argmin()]]
        raise InputError(f"X has several profiles of kernel '{kernel}'; it has one, at the base")
    cu, engine, memory = (np.union1d(X[a], getattr(profiles.base, a)).tolist() for a in SETTINGS)
    grid = ConfigGrid(tuple(map(int, cu)), tuple(engine), tuple(memory))
    cells = [np.searchsorted(steps, X[axis]) for axis, steps in grid.steps.items()]
    at_base = (slice(None), *grid.index(profiles.base))
    factors = np.full((len(firsts), *grid.shape), np.nan)
    factors[kernel_of_row, *cells] = ratios
    factors[at_base] = 1.0
    counted = np.full((*factors.shape, len(profiles.counter_names)), np.nan)
    counted[at_base] = profiles.counters
    times, power_w, metadata = factors, None, {}
    if quantity == "power":
        times, metadata = np.where(np.isnan(factors), np.nan, 1.0), {NO_TIMES: True}
        power_w = absolute_values(factors, profiles.base_power_w)
    elif profiles.power_w is not None:
        power_w = np.full(factors.shape, np.nan)
        power_w[at_base] = profiles.power_w
    return Measurements(
        device=profiles.device,
        grid=grid,
        kernels=profiles.kernels,
        applications=profiles.applications,
        time_samples=absolute_values(times, profiles.time_ms)[None],
        power_samples=None if power_w is None else power_w[None],
        counter_names=profiles.counter_names,
        counter_samples=counted[None],
        metadata=metadata,
    )


def _require_counts(measurements: Measurements, learner: Predictor) -> None:
    """Raise InputError on counters below 0, which were scaled, but for features of any numbers."""
    kind = learner.get_params().get("features")
    kind = kind or default_kind(measurements.counter_names, measurements.device)
    is_scaled = (measurements.counter_samples < 0).any()
    if is_scaled and kind.removesuffix(WITH_POWER) not in ("raw", "table2"):
        raise InputError(
            f"X has counters below 0, so they were scaled, and '{learner.name}' here computes from "
            "counts: leave them as they are, or set predictor__features='raw'"
        )
