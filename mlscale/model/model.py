"""A trained model: a predictor of time and perhaps one of power, for one base configuration."""

import copy
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.features import BASE_POWER
from mlscale.counters.kernel_use import doubtful_traffic
from mlscale.data.checks import check, notes_on
from mlscale.data.column_names import NO_COLUMNS, Columns
from mlscale.data.datasets import shipped
from mlscale.data.grid import AXES, Base, ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements, read
from mlscale.data.points import with_measured
from mlscale.data.predicates import PER_ACCESS
from mlscale.data.profiles import Profiles, read_profiles
from mlscale.data.supply import limit_notes
from mlscale.data.surfaces import (
    Surfaces,
    absolute_percentage_error,
    mean_of_kernels,
    widened_beyond,
    without_base,
)
from mlscale.data.table import NO_TIMES, SNAP_CLOCKS
from mlscale.errors import InputError, warn
from mlscale.guesses import Guided
from mlscale.model import model_file
from mlscale.model.predictions import COVERAGE, Predictions, with_own_ends
from mlscale.model.unprofiled import complete, refuse_times_alone, with_exchanges_kept
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.predictors import DEFAULT, PREDICTORS, create, or_default
from mlscale.predictors.base import (
    Bases,
    HasFeatures,
    Predictor,
    PredictsFromTimes,
    ScalesFeatures,
    Training,
    TrainingSet,
    UsesMeasuredPoints,
    for_other_gpus,
    predict_beyond,
    predict_surfaces,
)
from mlscale.predictors.intervals import widened_within_reach
from mlscale.text import counted, share_in_percent

if TYPE_CHECKING:
    import pandas as pd


FORMER = {  # names of models that shipped with 0.2.0, and what to use instead
    "nvidia-time": "it is called 'kernels'",
    "nvidia-sampled": "it is called 'runs'",
    **dict.fromkeys(
        ("a100", "a100-nvidia-smi", "rtx8000", "v100"),
        "use 'runs', with a log at a second engine clock too ({also})",
    ),
}
_MODEL_SUFFIX = ".mlscale"
LEAST_TOLD = 0.01  # share of the run's time without which counters of 0 do not matter
LEAST_TRIED = 10  # GPUs left out, that an answer's sureness rests on
NO_POWER_THERE = Note(
    "P04",
    "power at other memory clocks than the base's is not predicted, as no training table has them",
)


@dataclass(frozen=True, repr=False)
class Model(Guided):
    """What `train` makes and the model file holds.

    predictors: by quantity, those of 'time' and 'power' that were learnt. card: what a
    reader should know of the training, JSON values only. untrained: whether it is for a GPU that
    it has no training data of. trained_range: the settings that training speaks for, where the grid
    goes beyond them; else None.
    """

    device: str
    grid: ConfigGrid
    base: HardwareConfig
    predictors: dict[str, Predictor]
    card: dict[str, Any]
    untrained: bool = False
    trained_range: ConfigGrid | None = None

    @staticmethod
    def load(name: Path | str) -> "Model":
        """`mlscale.load` of it. Raises InputError."""
        return load(name)

    @property
    def lead(self) -> Predictor:
        """The predictor of time; that of power in a model of power alone."""
        return self.predictors.get("time") or self.predictors["power"]

    def __repr__(self) -> str:
        kinds = " and ".join(f"{q} by {p.name}" for q, p in self.predictors.items())
        return f"<Model of '{self.device}': {kinds}, {self.grid.text}, base {self.base}>"

    @property
    def snap_clocks(self) -> float:
        """How near clocks became one in training [MHz]; a profile's, so near, are the base's."""
        kept = self.card["metadata"].get(SNAP_CLOCKS)
        return kept if isinstance(kept, int | float) else 0.0

    @property
    def unmeasured(self) -> frozenset[HardwareConfig]:
        """The configurations of the grid that no training kernel was measured at."""
        settings = () if self.untrained else self.card.get("unmeasured", ())
        return frozenset(HardwareConfig(*config) for config in settings)

    def save(self, path: Path | str) -> None:
        """Write the model file, whole or not at all. Raises InputError."""
        if self.untrained or self.trained_range is not None:
            raise InputError(
                f"{path}: a model adapted to another GPU or grid cannot be saved; save what it was"
            )
        trained = model_file.Trained(self.device, self.grid, self.base, self.predictors, self.card)
        model_file.write(trained, Path(path))

    def for_gpu(
        self,
        device: str,
        grid: ConfigGrid,
        base: HardwareConfig,
        peaks: Profiles | None = None,
        force: bool = False,
    ) -> "Model":
        """Turn the model to a GPU without training data, on a grid of your choice.

        Power is predicted only by a predictor that takes the times of another GPU.
        peaks: any profiles of that GPU, to see what its kernels reach at most; None takes what
        they reach on the trained GPUs. force: even where the model learnt from simulated data,
        which say nothing of a real GPU. Raises InputError where the predictor cannot.
        """
        if not force:
            self._check_origin(device)
        predictor = copy.copy(self.lead)
        other = for_other_gpus(predictor)
        if peaks is not None:
            other.learn_peaks(peaks, grid)
        predictors: dict[str, Predictor] = {"time": predictor}
        power = self.predictors.get("power")
        if isinstance(power, PredictsFromTimes):
            predictors["power"] = power
        return replace(
            self, device=device, grid=grid, base=base, predictors=predictors, untrained=True
        )

    def extrapolating(self, configs: Iterable[HardwareConfig]) -> "Model":
        """Return the model on a grid that also has these configurations' settings beyond its own.

        What lies beyond is flagged, and its intervals are wider. Without such settings the model is
        returned as it is.
        """
        axes: dict[str, Any] = {}
        configs = list(configs)
        for axis in AXES:
            trained = getattr(self.grid, axis)
            asked = {getattr(config, axis) for config in configs}
            beyond = {step for step in asked if not trained[0] <= step <= trained[-1]}
            axes[axis] = tuple(sorted({*trained, *beyond}))
        grid = replace(self.grid, **axes)
        return self if grid == self.grid else replace(self, grid=grid, trained_range=self.grid)

    def predict(
        self,
        profiles: "Profiles | Path | str | pd.DataFrame",
        coverage: float | None = None,
        at: Any = None,
        columns: Columns = NO_COLUMNS,
        **wrong: Any,
    ) -> Predictions:
        """Predict every quantity that model and profiles have in common, each once.

        profiles: or a table of them, see `read_profiles`. coverage: with intervals that hold this
        share of the truth, from predictors that have them. at: where, as {'engine': [1200, 1400]},
        by default everywhere, see `settings_of`. columns: as for `read`. Kernels that counters say
        nothing of are completed at the end, see `mlscale.model.unprofiled`. What was measured at
        further points is not predicted. Raises InputError where the profiles lack what a predictor
        needs, where they have further points that it makes nothing of, where their power is of
        another kind, and where the model learnt from simulated data of another device.
        """
        if at is not None or wrong:
            return self.predict(profiles, coverage, columns=columns).asked_at(at, **wrong)
        if not isinstance(profiles, Profiles):
            profiles = read_profiles(profiles, self.base, self.device, columns, self.snap_clocks)
        if not self.untrained:
            self._check_origin(profiles.device)
        if profiles.points:
            self.require_measured_points()
        if "time" not in self.predictors:
            return self._power_alone(profiles, coverage)
        if profiles.metadata.get(NO_TIMES):
            raise InputError("the profile has no column 'time_ms', and the model predicts times")
        time = self.predictors["time"]
        if isinstance(time, HasFeatures) and time.feature_names() != (BASE_POWER,):
            refuse_times_alone(profiles)
        warnings = tuple(warnings_for(self, profiles))
        profiled = profiles.profiled
        times = self._surfaces(time, profiled, coverage)
        surfaces, energy = {"time": times}, None
        if self.why_no_power(profiles) is None:
            self.power_kind(profiles)
            kept = with_exchanges_kept(profiled, times)
            surfaces["power"] = self._surfaces(self.predictors["power"], profiled, coverage, kept)
            energy = self._energy(profiled, coverage, kept)
        profiles, surfaces = complete(profiles, surfaces)
        surfaces = {q: with_measured(factors, profiles, q) for q, factors in surfaces.items()}
        if energy is not None:
            energy = with_own_ends(surfaces, energy, profiles.has_counters)
        return Predictions(
            profiles,
            surfaces,
            coverage,
            energy,
            warnings,
            self.trained_range,
            unmeasured=self.unmeasured,
        )

    def errors(
        self, test: "Measurements | Path | str | pd.DataFrame", columns: Columns = NO_COLUMNS
    ) -> dict[str, float]:
        """The mean absolute percentage error of each quantity [%], such as 2.1 of 'time'.

        test: measurements at the base and elsewhere on the model's grid, of kernels that the model
        did not learn from; the mean is over all of them, but the base. columns: as for `read`.
        Raises InputError.
        """
        data = read(test, columns=columns).with_base(self.base)
        predictions = self.predict(data.profiles(self.base), at=list(data.grid))
        table, means = predictions.columns(), {}
        for quantity in predictions:
            measured = data.measured_relative(quantity, self.base)
            predicted = table[f"{quantity}_factor"].reshape(measured.shape)
            errors = absolute_percentage_error(predicted, measured)
            means[quantity] = mean_of_kernels(without_base(errors, data.grid.index(self.base)))
        return means

    def _power_alone(self, profiles: Profiles, coverage: float | None) -> Predictions:
        """Predict power; times are not looked at where none were learnt. Raises InputError."""
        if self.card["metadata"].get(NO_TIMES):
            profiles = replace(profiles, time_ms=np.ones(len(profiles.kernels)))
        if reason := self.why_no_power(profiles):
            raise InputError(f"{reason}; the model predicts only power")
        warnings = tuple(warnings_for(self, profiles))
        surfaces = self._surfaces(self.predictors["power"], profiles, coverage)
        surfaces = with_measured(surfaces, profiles, "power")
        return Predictions(
            profiles,
            {"power": surfaces},
            coverage,
            warnings=warnings,
            trained_range=self.trained_range,
            unmeasured=self.unmeasured,
        )

    @property
    def is_simulated(self) -> bool:
        """Whether it learnt from data that were not measured."""
        return self.card["metadata"].get("origin") in ("made", "simulated")

    def _check_origin(self, device: str) -> None:
        """Raise InputError where the model learnt from simulated data of another device."""
        trained = (self.device, *self.card.get("time_learnt_from", ()))
        check("model", "the model", self.card["metadata"].get("origin"), trained, device)

    def _surfaces(
        self,
        predictor: Predictor,
        profiles: Profiles,
        coverage: float | None,
        times: Surfaces | None = None,
    ) -> Surfaces:
        """Return one quantity's surfaces; times: those of time, where it is power."""
        known = self._known_range(profiles)
        if times is not None and isinstance(predictor, PredictsFromTimes):
            profiles, here = _at_base_memory(profiles, times)
            from_times = predictor.with_times(here)
            surfaces = predict_surfaces(from_times, profiles, here.grid, coverage)
            if known is not None:
                surfaces = widened_within_reach(surfaces, known, predictor.quantity)
            return surfaces.within(times.grid)
        if known is not None:
            return predict_beyond(predictor, profiles, known, self.grid, coverage)
        grid = self.grid if self.untrained else None
        return predict_surfaces(predictor, profiles, grid, coverage)

    def _known_range(self, profiles: Profiles) -> ConfigGrid | None:
        """The trained range and what was measured: nothing between is beyond; None for all."""
        if self.trained_range is None:
            return None
        measured = [profiles.base, *(point.config for point in profiles.points)]
        return ConfigGrid.spanning([*self.trained_range, *measured])

    def _energy(
        self, profiles: Profiles, coverage: float | None, times: Surfaces
    ) -> Surfaces | None:
        """Energy over the base's, where the predictor of power has intervals of it."""
        power = self.predictors["power"]
        if coverage is None or not isinstance(power, PredictsFromTimes):
            return None
        known = self._known_range(profiles)
        is_law = self.is_law_of_runs and bool(profiles.has_further_time.all())
        profiles, here = _at_base_memory(profiles, times)
        energy = power.with_times(here, is_law).predict_energy(profiles, coverage, here.grid)
        if known is not None:
            energy = widened_beyond(energy, known, "power")
        return energy.within(times.grid)

    @property
    def is_law_of_runs(self) -> bool:
        """Whether one kind of predictor gives times, and power from times: the law of runs."""
        power = self.predictors.get("power")
        return isinstance(power, PredictsFromTimes) and type(self.lead) is type(power)

    def energy_draws(self, times: Surfaces, profiles: Profiles, draws: int) -> Floats | None:
        """What the run's energy over the base's may be, (draws, N).

        None but by the law of runs, from readings of every kernel at two clocks or more, by a model
        whose intervals of energy were tried on LEAST_TRIED GPUs left out.
        """
        power = self.predictors.get("power")
        is_read = self.is_law_of_runs and profiles.has_further_time.all()
        _, gpus = getattr(power, "held_", {}).get("energy", (0, 0))
        if not is_read or gpus < LEAST_TRIED or self.why_no_power(profiles):
            return None
        from_times = cast("PredictsFromTimes", power).with_times(times, are_of_law=True)
        at_base = profiles.weights * profiles.quantity("time") * profiles.quantity("power")
        drawn = from_times.energy_draws(profiles, times.grid, draws)
        return np.asarray(np.einsum("k,dkn->dn", at_base / at_base.sum(), drawn))

    def power_at(self, profiles: Profiles, times: Surfaces) -> Surfaces:
        """Return surfaces of power with intervals of COVERAGE, if these are the kernels' times."""
        return self._surfaces(self.predictors["power"], profiles, COVERAGE, times)

    def why_no_power(self, profiles: Profiles) -> str | None:
        """Return why power of these profiles is not predicted, None where it is."""
        power = self.predictors.get("power")
        if power is None:
            return "the model was trained without power"
        refusal = None
        if isinstance(power, PredictsFromTimes):
            refusal = power.refusal(profiles, self.grid)
        if refusal is None and profiles.power_w is None:
            return f"the profile has no power_w; give {parameter('power')}"
        return refusal

    def power_kind(self, profiles: Profiles) -> str | None:
        """Return what power_w is: 'board', 'dynamic', or None where neither says it.

        Raises InputError where model and profiles differ.
        """
        metadata = (self.card["metadata"], profiles.metadata)
        kinds = {str(m["power_kind"]) for m in metadata if m.get("power_kind") is not None}
        if len(kinds) > 1:
            raise InputError(
                f"the model's power_w is {metadata[0]['power_kind']} power, the profile's "
                f"{metadata[1]['power_kind']} power; give the profile the model's"
            )
        return kinds.pop() if kinds else None

    @property
    def lacks_some_power(self) -> bool:
        """Whether the grid has memory clocks at which power is not predicted, though time is."""
        power = self.predictors.get("power")
        return isinstance(power, PredictsFromTimes) and len(self.grid.memory_mhz) > 1

    def require_measured_points(self) -> None:
        """Raise InputError unless the predictors make use of further measured points."""
        for predictor in self.predictors.values():
            if not isinstance(predictor, UsesMeasuredPoints | PredictsFromTimes):
                raise InputError(
                    f"'{predictor.name}' cannot use further measured points; train a model "
                    f"with {parameter('predictor', 'bottleneck')}"
                )


def _at_base_memory(profiles: Profiles, times: Surfaces) -> tuple[Profiles, Surfaces]:
    """Readings and times at the memory clock of the base, the one that power is predicted at."""
    memory_mhz = profiles.base.memory_mhz
    points = tuple(one for one in profiles.points if one.config.memory_mhz == memory_mhz)
    return replace(profiles, points=points), times.at_memory(memory_mhz)


def train(
    table: "Measurements | Path | str | pd.DataFrame",
    base: Base | None = None,
    predictor: str | type[Predictor] | Predictor | None = None,
    others: Sequence[TrainingSet] = (),
    quantity: str | None = None,
    columns: Columns = NO_COLUMNS,
    **parameters: Any,
) -> Model:
    """Train a model on every quantity that a table of measurements has, or on one alone.

    base: where new kernels are profiled, a configuration of the grid, {'engine': 1200}, its index
    (c, e, m), or a text such as 'mid'; by default the highest setting, which a note says.
    predictor: a name, a class, or an object whose hyper-parameters are taken; None and 'default'
    take `default_predictor`'s.
    others: measurements of further GPUs, each with its base, that time is learnt from too, by a
    predictor that can; the model is of the first. quantity: 'time' or 'power', to learn that alone.
    columns: what the table calls our columns, as for `read`.
    parameters: the predictor's other hyper-parameters. Warns where power is to be learnt and the
    predictor predicts time alone. Raises InputError.

    Example:
        model = mlscale.train("table.parquet", base="mid", predictor="wu")
        model.errors("further-kernels.parquet")
    """
    measurements = read(table, columns=columns)
    if base is None:
        base = measurements.usual
        given = parameter("base")
        told = (
            f"the base is the highest setting, {base}: profile new kernels there, or give {given}"
        )
        warn("L04", told, "note")
    if isinstance(base, str) and base in PREDICTORS:
        raise InputError(f"train takes the base before the predictor: write predictor='{base}'")
    config = measurements.grid.config(measurements.grid.index(base))
    measurements = measurements.with_base(config)
    for name in (quantity,) if quantity else measurements.quantities:
        measurements.quantity(name)
    predictor = DEFAULT if predictor is None else predictor
    prototype = create(or_default(predictor, measurements, config), **parameters)
    predictors = _for_each_quantity(prototype, (quantity,) if quantity else measurements.quantities)
    pooled = [(measurements, config), *((table.with_base(at), at) for table, at in others)]
    training: Training = [table for table, _ in pooled] if others else measurements
    bases: Bases = [at for _, at in pooled] if others else config
    type(prototype).fit_together([(p, training, bases) for p in predictors.values()])
    if isinstance(prototype, HasFeatures) and not measurements.metadata.get(NO_TIMES):
        source, profiles = f"the table of '{measurements.device}'", measurements.profiles(config)
        check("traffic", source, *doubtful_traffic(profiles))
    metadata = measurements.metadata.items()
    card: dict[str, Any] = {
        "kernels": list(measurements.kernels),
        "applications": sorted(set(measurements.applications)),
        "metadata": {key: value for key, value in metadata if key not in ("launches", "faults")},
    }
    if holes := [list(at.as_dict().values()) for at in measurements.unmeasured]:
        card["unmeasured"] = holes
    if others:
        card["time_learnt_from"] = list(dict.fromkeys(table.device for table, _ in pooled))
    return Model(measurements.device, measurements.grid, config, predictors, card)


def _for_each_quantity(prototype: Predictor, learnt: Sequence[str]) -> dict[str, Predictor]:
    """New predictors alike, of those quantities that it can learn. Raises InputError."""
    if "quantity" in prototype.get_params():
        able = [quantity for quantity in prototype.quantities if quantity in learnt]
        predictors = {quantity: create(prototype, quantity=quantity) for quantity in able}
    else:
        predictors = {prototype.quantity: create(prototype)}
    if predictors.keys().isdisjoint(learnt):
        raise InputError(f"'{prototype.name}' cannot learn {' or '.join(learnt)} alone")
    if isinstance(predictors.get("power"), PredictsFromTimes) and "time" not in predictors:
        raise InputError(
            f"'{prototype.name}' predicts only power, from the times of another predictor; "
            "it cannot be a model by itself"
        )
    if "power" in learnt and "power" not in predictors:
        warn(
            "P04",
            f"'{prototype.name}' predicts only time: the table's power is not used, and the "
            "model gives neither power nor energy",
        )
    return predictors


def is_model_name(text: str) -> bool:
    """Whether a file is a model by its name."""
    return Path(text).suffix == _MODEL_SUFFIX


def shipped_models() -> dict[str, Path]:
    """The files of the models that ship, by name in order."""
    models = {one.stem: one for one in shipped().values() if is_model_name(one.name)}
    return dict(sorted(models.items()))


def load(name: Path | str, predictors: Sequence[type[Predictor]] = ()) -> Model:
    """Load a model file, or the shipped model of that name; this runs no code.

    predictors: the classes of predictors of your own, which a file only names. Raises
    InputError on a file that is damaged, foreign or too new, and on one that names a class that
    was not given.

    Example:
        model = mlscale.load("kernels")
    """
    text, file = str(name), Path(name)
    models = shipped_models()
    stem = text.removesuffix(_MODEL_SUFFIX)
    is_there = os.path.exists(text)  # noqa: PTH110, which raises on some names
    if stem in models and os.path.isdir(text):  # noqa: PTH112
        is_there = False
    if not is_there and "/" not in text:
        if stem in FORMER:
            instead = FORMER[stem].format(also=parameter("also", "LOG"))
            raise InputError(f"{text}: this model is no longer shipped; {instead}")
        if stem not in models:
            names = ", ".join(models)
            raise InputError(f"{text}: there is no such model file; the shipped models are {names}")
        file = models[stem]
    return Model(*model_file.read(file, list(predictors)))


def warnings_for(model: Model, profiles: Profiles) -> list[Note]:
    """Return what a reader should know of all predictions for these profiles."""
    warnings = training_warnings(model)
    missing = model.why_no_power(profiles)
    if model.untrained and "power" not in model.predictors:
        learnt = model.device in model.card.get("time_learnt_from", ())
        why = (
            "power is learnt from the first table"
            if learnt
            else f"no training data of {model.device}"
        )
        warnings.append(Note("P04", f"{why}: only time is predicted"))
    elif missing:
        warnings.append(Note("P04", f"{missing}: power_w and energy_mj are not given"))
    elif model.power_kind(profiles) == "dynamic":
        told = "power_w is dynamic power: energy_mj leaves static power out"
        warnings.append(Note("P04", told, "warning"))
    elif model.lacks_some_power:
        warnings.append(NO_POWER_THERE)
    return warnings + limit_notes(profiles) + feature_warnings(model, profiles)


def training_warnings(model: Model) -> list[Note]:
    """Say whether the model learnt from anything but measurements, or of a part of its grid."""
    origin, count = model.card["metadata"].get("origin"), len(model.unmeasured)
    made = Note("P01", f"the model was trained on {origin} data, not on measurements", "warning")
    gone = counted(count, "configuration")
    holes = Note("P02", f"left out {gone} that no training kernel was measured at")
    return [made] * model.is_simulated + [holes] * (count > 0)


def _source_warnings(model: Model, profiles: Profiles) -> list[Note]:
    """Say which numbers of the profile were computed from something else than in training."""
    others: dict[str, tuple[str, ...]] = {}
    for predictor in model.predictors.values():
        others |= predictor.other_sources(profiles)
    if not others:
        return []
    texts = [f"{' and '.join(names)} for {number}" for number, names in others.items()]
    told = f"used in place of what was measured in training: {'; '.join(texts)}"
    return [Note("T10", told)]


def feature_warnings(model: Model, profiles: Profiles) -> list[Note]:
    """Say how what the profile was computed from differs from the training kernels'."""
    at_base = _zero_warnings(profiles) + _power_of_run(model, profiles)
    profiles = profiles.profiled
    return (
        at_base
        + _power_warnings(model, profiles)
        + _held_warnings(model, profiles)
        + _table_2_warnings(model, profiles)
        + _source_warnings(model, profiles)
        + _median_warnings(model, profiles)
    )


def _median_warnings(model: Model, profiles: Profiles) -> list[Note]:
    """Say which features no kernel of the profile has, and of DRAM traffic that cannot be.

    Raises InputError where a kernel has no feature but the time.
    """
    first, *_ = model.predictors.values()
    if not isinstance(first, ScalesFeatures):
        return []
    traffic = notes_on("traffic", *doubtful_traffic(profiles), source="profile")
    given, names = first.scaling_.given(profiles), first.scaling_.names
    absent = [name for name in names if name not in given and not PER_ACCESS.fullmatch(name)]
    if not absent:
        return traffic
    what = (
        f"the profile has {len(given)} of {len(names)} features; the training median replaces "
        f"{', '.join(absent[:3])}{' …' * (len(absent) > 3)}"
    )
    if "counters" in first.get_params():
        what += f"; train {parameter('counters', ','.join(given))} makes a model without them"
    return [*traffic, Note("T10", what)]


def _zero_warnings(profiles: Profiles) -> list[Note]:
    """Say whose counters are all 0, if they take any time."""
    zero_ms, run_ms = profiles.counted_nothing_ms, profiles.run_times_ms.sum()
    if zero_ms.sum() < LEAST_TOLD * run_ms:
        return []
    names = tuple(profiles.kernels[k] for k in np.argsort(-zero_ms, kind="stable") if zero_ms[k])
    share = f"{share_in_percent(float(zero_ms.sum() / run_ms))} % of the run's time"
    told = f"all counters are 0 in {share}, as if the profiler failed: profile again"
    return [Note("T06", told, "warning", names)]


def _power_of_run(model: Model, profiles: Profiles) -> list[Note]:
    """Say that the power of each kernel is that of the run, where it was joined to them all."""
    is_joined = "power_source" in profiles.metadata and len(profiles.kernels) > 1
    if not is_joined or profiles.power_w is None or model.why_no_power(profiles) is not None:
        return []
    if (profiles.power_w != profiles.power_w[0]).any():
        return []
    watts = f"{profiles.power_w[0]:.4g} W"
    told = f"every kernel is given the run's power, {watts}: no sensor measures single kernels"
    return [Note("G02", told)]


def _power_warnings(model: Model, profiles: Profiles) -> list[Note]:
    """Say what is assumed of the power of a GPU that was not learnt from, and what is not used."""
    power = model.predictors.get("power")
    is_predicted = model.why_no_power(profiles) is None
    warnings = []
    if isinstance(power, PredictsFromTimes) and is_predicted:
        assumption = power.assumption(profiles)
        warnings += [assumption] if assumption else []
    is_used = is_predicted and isinstance(power, UsesMeasuredPoints | PredictsFromTimes)
    if not is_used and any(point.power_w is not None for point in profiles.points):
        told = "power at the further measured points is not used, only their times"
        warnings.append(Note("T09", told))
    return warnings


def _held_warnings(model: Model, profiles: Profiles) -> list[Note]:
    """Say on how many GPUs left out intervals held: of power, and of time from several readings.

    Nothing over CU counts, whose intervals are of no GPU left out.
    """
    held, name = [], "two" if profiles.points else "one"
    if any(point.config.cu_count != profiles.base.cu_count for point in profiles.points):
        return []
    for quantity, predictor in model.predictors.items():
        is_predicted = model.why_no_power(profiles) is None
        is_predicted = bool(profiles.points) if quantity == "time" else is_predicted
        count, gpus = getattr(predictor, "held_", {}).get(name, (0, 0))  # `runs` alone has it
        held += [f"{count} of {gpus} ({quantity})"] if is_predicted and gpus else []
    told = f"90 % intervals contained 85 % of the truth or more on {' and '.join(held)} unseen GPUs"
    return [Note("P05", told)] if held else []


def _table_2_warnings(model: Model, profiles: Profiles) -> list[Note]:
    """Say how the profile's features of Table II differ in meaning from the training kernels'."""
    status = profiles.metadata.get("feature_status")
    tool = profiles.metadata.get("counter_tool", "the profiler")
    needed = {
        name
        for predictor in model.predictors.values()
        if isinstance(predictor, HasFeatures)
        for name in predictor.feature_names()
    }
    if not isinstance(status, dict) or not needed & status.keys():
        return []
    trained = model.card["metadata"].get("feature_status")
    trained = trained if isinstance(trained, dict) else {}
    same_tool = model.card["metadata"].get("counter_tool") == tool
    warnings = []
    nearest = [
        name
        for name in status
        if name in needed
        and status[name] == "nearest"
        and not (same_tool and trained.get(name) == "nearest")
    ]
    if nearest:
        told = f"not Table II's but {tool}'s nearest equivalent: {', '.join(nearest)}"
        warnings.append(Note("T10", told))
    if missing := [n for n in status if n in needed and status[n] == "missing"]:
        warnings.append(Note("T10", f"not given by {tool}: {', '.join(missing)}"))
    return warnings
