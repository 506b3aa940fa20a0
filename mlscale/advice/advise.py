"""Advice for profiled kernels: from a model's surfaces to the clocks to set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mlscale.advice.objectives import SAME, WITHOUT_POWER, Limits, require_objective, static_power
from mlscale.advice.search import (
    TOO_SLOW,
    Advice,
    OperatingPoint,
    PowerAtEnds,
    Recommendation,
    Run,
    RunBase,
    Search,
    exchanges_of,
)
from mlscale.arrays import Floats
from mlscale.data.checks import sentences
from mlscale.data.devices import known_device
from mlscale.data.grid import ConfigGrid
from mlscale.data.logs import is_sampled
from mlscale.data.profiles import Profiles
from mlscale.data.supply import UNLIMITED, WITHIN, Supply, drawn_w, supply_of
from mlscale.data.surfaces import Surfaces, run_in_sequence
from mlscale.errors import InputError, require_type
from mlscale.model.model import A_MODEL, PROFILES, Model, feature_warnings, training_warnings
from mlscale.model.predictions import EXTRAPOLATED, Predictions, coverage_of_each
from mlscale.model.unprofiled import refuse_little_cover, taken_for_the_mean
from mlscale.text import percent_in_words, share_in_percent

MOST_UNCOUNTED = 0.01  # of a run's time in kernels without counters, at another memory clock
USUAL_SLOWDOWN_PERCENT = 5.0  # allowed for the lowest clock, where no limit is given
BEST_IS_BEYOND = f"{EXTRAPOLATED}: the best lies beyond the trained settings"
DYNAMIC_POWER = "power_w is dynamic power; give what the board draws beside it as --static-power W"


@dataclass(frozen=True)
class WholePower:
    """How power_w becomes the whole power of the board.

    kind: 'board', 'dynamic', or None for unknown, which is taken for board power.
    static_w [W]: what is added to power_w; None where that is not known. absent: why there is no
    power_w.
    """

    kind: str | None
    static_w: float | None
    absent: str | None

    @property
    def why_no_energy(self) -> str | None:
        """Why energy cannot be given; None where it can."""
        return self.absent or (DYNAMIC_POWER if self.static_w is None else None)


@dataclass(frozen=True)
class Terms:
    """What is sought for a run, and what is known of power; the same for all its kernels.

    warnings: what a reader should know of that. keeps_memory: why only the base's memory clock is
    offered, for a reader; None where all are.
    """

    objective: str
    limits: Limits
    static_power_w: float | None
    power: WholePower
    warnings: tuple[str, ...]
    keeps_memory: str | None = None


def advise(
    model: Model,
    profiles: Profiles,
    objective: str | None = None,
    limits: Limits | None = None,
    static_power_w: float | None = None,
) -> Advice:
    """The configuration of the model's grid that serves the whole run best, and each kernel.

    objective: 'energy', 'edp', 'ed2p', 'time', 'power', or 'clock', the lowest engine clock; by
    default 'energy', or 'clock' where energy cannot be known. The lowest clock is sought at the
    CU count and memory clock of the base, within USUAL_SLOWDOWN_PERCENT of its time where no
    limit of time is given. limits: of time and slowdown for the kernels' summed time, of power
    for every kernel. static_power_w [W]: what the board draws beside dynamic power, the
    same at every configuration. Of equal configurations `best_index` says which is taken.

    Raises InputError where objective or limits need what model and profiles do not give, and
    where no configuration keeps the limits, saying what is nearest.

    Example:
        >>> import mlscale
        >>> model = mlscale.load("models/simulated-gcn3.mlscale")
        >>> profile = "datasets/simulated-gcn3-profile.csv"
        >>> profiles = mlscale.read_profiles(profile, model.base, model.device)
        >>> limits = mlscale.Limits(max_slowdown_percent=5)
        >>> advice = mlscale.advise(model, profiles, "time", limits)
        >>> str(advice.kernels[0].best.config), round(advice.kernels[0].saving_percent, 1)
        ('cu=32,engine=1000,memory=1000', 21.4)
    """
    require_type("model", model, Model, A_MODEL)
    require_type("profiles", profiles, Profiles, PROFILES)
    terms = terms_of(model, profiles, objective, limits, static_power_w)
    predictions, search = search_for(model, profiles, terms)
    refuse_little_cover(profiles)
    notes, trained = feature_warnings(model, profiles), predictions.trained_range
    exchanges = exchanges_of(profiles)
    advice = advice_on(search, terms, _run(profiles), notes, trained, predictions)
    return replace(
        advice,
        warnings=(*advice.warnings, *exchanges.warnings),
        measured=_measured_runs(profiles, terms.power),
    )


def terms_of(
    model: Model,
    profiles: Profiles,
    objective: str | None,
    limits: Limits | None,
    static_power_w: float | None,
) -> Terms:
    """The terms of what `advise` is asked for. Raises InputError as it does."""
    if objective is not None:
        require_objective(objective)
    if not isinstance(limits, Limits | None):
        raise InputError(f"limits are a mlscale.Limits, not {limits!r}")
    limits = limits or Limits()
    power = whole_power(model, profiles, static_power_w)
    warnings = training_warnings(model)
    if objective is None:
        objective = "clock" if power.why_no_energy else "energy"
        if power.why_no_energy:
            warnings.append(f"the lowest clock is sought, not least energy: {power.why_no_energy}")
    if objective == "clock" and limits.max_slowdown_percent is None and limits.max_time_ms is None:
        limits = replace(limits, max_slowdown_percent=USUAL_SLOWDOWN_PERCENT)
    if not power.absent and power.kind is None and static_power_w is None:
        warnings.append(
            "power_w is taken for board power; the model does not say what it is: its training "
            "table's metadata may (power_kind, docs/file-formats.md)"
        )
    _require_power(objective, limits, power)
    keeps_memory = _why_memory_is_kept(model, profiles)
    if keeps_memory and objective != "clock":
        warnings.append(keeps_memory)
    return Terms(objective, limits, static_power_w, power, tuple(warnings), keeps_memory)


def _why_memory_is_kept(model: Model, profiles: Profiles) -> str | None:
    """Why no other memory clock is offered than that of the base; None where all are."""
    if len(model.grid.memory_mhz) == 1:
        return None
    uncounted, device = taken_for_the_mean(profiles), known_device(model.device)
    measured_mhz = {profiles.base.memory_mhz, *(p.config.memory_mhz for p in profiles.points)}
    if uncounted > MOST_UNCOUNTED:
        why = (
            f"{share_in_percent(uncounted)} % of the run's time is in kernels without counters, "
            "which may need it more than the others"
        )
    elif device and device.defers_memory_clock and model.untrained and len(measured_mhz) == 1:
        why = (
            f"{device.key} takes another only when its driver is loaded anew, and what that "
            "saves was measured on other GPUs alone"
        )
    else:
        return None
    return f"the memory clock is left as it is: {why}"


def search_for(
    model: Model, profiles: Profiles, terms: Terms, run_base: RunBase | None = None
) -> tuple[Predictions, Search]:
    """Predictions for kernels, and the search on them. Raises InputError.

    run_base: of the whole run, where these are only some of its kernels.
    """
    predictions = model.predict(profiles, coverage_of_each(1 if terms.power.absent else 2))
    known: dict[str, Any] = {"run_base": run_base}
    surfaces = absolute(predictions, terms.power)
    if predictions["time"].is_bounded:
        surfaces, known["at_ends"] = _at_longest(model, predictions, terms.power)
    _require_finite(profiles.kernels, surfaces)
    of_run = (run_base and run_base.peak_w) or 0.0
    own = drawn_w(profiles) + (terms.power.static_w or 0.0)
    supply = UNLIMITED if terms.power.absent else supply_of(model.device, own, of_run)
    return predictions, search_on(surfaces, profiles.weights, terms, supply, **known)


def _at_longest(
    model: Model, predictions: Predictions, power: WholePower
) -> tuple[dict[str, Surfaces], PowerAtEnds | None]:
    """Absolute surfaces of runs whose times are bounds, at the longest times; power at both ends.

    What keeps a limit of time at the longest times keeps it surely. Bounds hold for certain, so
    that power has intervals of COVERAGE alone; they reach from the low end at the longest times to
    the high end at the shortest.
    """
    times = predictions["time"]
    longest, shortest = (
        absolute(_with_times(model, predictions, end), power) for end in (times.high, times.low)
    )
    if "power" not in longest:
        return longest, None
    of_longest, of_shortest = longest["power"], shortest["power"]
    at_ends = PowerAtEnds(of_shortest.values, of_shortest.low, of_longest.high)
    return longest | {"power": replace(of_longest, high=of_shortest.high)}, at_ends


def _with_times(model: Model, predictions: Predictions, end: Floats | None) -> Predictions:
    """Predictions as if an end of the times, relative to the base, were the times."""
    times = predictions["time"]
    values = times.values if end is None else end
    surfaces = {"time": replace(times, values=values)}
    if "power" in predictions:
        alone = replace(surfaces["time"], low=None, high=None)
        of_power = model.power_at(predictions.profiles, alone)
        surfaces["power"] = replace(of_power, flags=predictions["power"].flags)
    return replace(predictions, surfaces=surfaces)


def search_on(
    surfaces: dict[str, Surfaces],
    launches: Floats,
    terms: Terms,
    supply: Supply,
    **known: Any,
) -> Search:
    """The search on absolute surfaces. known: `run_base`, `peak_w` or `at_ends` of Search."""
    has_energy = terms.power.why_no_energy is None
    known |= {"supply": supply, "keeps_memory": terms.keeps_memory is not None}
    return Search(surfaces, launches, terms.objective, terms.limits, has_energy, **known)


def advice_on(
    search: Search,
    terms: Terms,
    run: Run,
    notes: Sequence[str],
    trained: ConfigGrid | None,
    predictions: Predictions | None = None,
) -> Advice:
    """The advice for a run, and for each of its kernels where their predictions are given.

    notes: the warnings of the profiles. trained: the range of training, see Predictions. Raises
    InputError.
    """
    kernels: tuple[Recommendation, ...] = ()
    try:
        whole_run = search.for_whole_run()
    except InputError as error:
        subject = "the whole run"
        if predictions is not None and run.is_one_launch:
            subject = f"kernel '{predictions.profiles.kernels[0]}'"
        raise InputError(f"{subject}: {error}") from None
    if predictions is not None:
        each = zip(predictions.profiles.kernels, kernel_flags(search, predictions), strict=True)
        kernels = tuple(search.for_kernel(k, *of) for k, of in enumerate(each))
    whole_run = replace(whole_run, flags=_slower_kernels(terms.limits, kernels))
    if trained is not None and not trained.spans(whole_run.best.config):
        whole_run = replace(whole_run, flags=(BEST_IS_BEYOND, *whole_run.flags))
    return Advice(
        objective=terms.objective,
        limits=terms.limits,
        static_power_w=terms.static_power_w,
        kernels=kernels,
        whole_run=whole_run,
        run=run,
        tried_mhz=search.surfaces["time"].grid.engine_mhz,
        warnings=(*terms.warnings, *_board_warnings(search, whole_run.best), *notes),
        surfaces=search.surfaces,
        held=search.held,
        supply=search.supply,
        offered=search.offered,
        keeps_memory=terms.keeps_memory,
        is_bounded=search.surfaces["time"].is_bounded,
    )


def kernel_flags(search: Search, predictions: Predictions) -> list[tuple[str, ...]]:
    """What a reader should know of the best of each kernel."""
    trained = predictions.trained_range
    beyond = [trained is not None and not trained.spans(config) for config in predictions.grid]
    best, too_slow = search.best_of_kernels
    each = zip(best.tolist(), predictions.flags, too_slow.tolist(), strict=True)
    return [
        (*(BEST_IS_BEYOND,) * beyond[place], *flags, *(TOO_SLOW,) * slow)
        for place, flags, slow in each
    ]


def _run(profiles: Profiles) -> Run:
    launches = None if profiles.launches is None else float(profiles.launches.sum())
    cover_percent = 100 * profiles.counters_cover
    is_of_monitor = is_sampled(profiles.metadata)
    return Run(
        kernels=len(profiles.kernels),
        launches=launches,
        counters_cover_percent=cover_percent,
        is_sampled=is_of_monitor,
    )


def _measured_runs(profiles: Profiles, power: WholePower) -> tuple[OperatingPoint, ...]:
    """The whole run at the further points at which all its kernels were measured."""
    runs = []
    for at in profiles.points:
        watts = None if power.absent or at.power_w is None else at.power_w + (power.static_w or 0.0)
        of_run = run_in_sequence(at.time_ms, watts, profiles.weights)
        time_ms, power_w = (None if of is None or np.isnan(of) else float(of) for of in of_run)
        if time_ms is not None:
            has_energy = power_w is not None and power.why_no_energy is None
            energy_mj = time_ms * power_w if power_w is not None and has_energy else None
            runs.append(OperatingPoint(at.config, time_ms, power_w, energy_mj))
    return tuple(runs)


def _board_warnings(search: Search, best: OperatingPoint) -> list[str]:
    """Which configurations the board cannot supply, and whether the best needs its limit raised."""
    supply, configs = search.supply, search.surfaces["time"].grid.size
    warnings = sentences("supply", search.impossible_w, configs, supply.most_in_words)
    best_w = search.peak_at(best.config)
    if best_w is not None and not supply.suffices_by_default(np.asarray(best_w)):
        warnings.append(
            f"at the best clocks a kernel draws {best_w:.0f} W as predicted, more than the board's "
            f"default limit of {supply.default_w:g} W: unless that is raised (to "
            f"{supply.most_w:g} W at most), the GPU lowers its clock"
        )
    elif best_w is not None and best_w > supply.default_w * (1 + SAME):
        warnings.append(
            f"at the best clocks a kernel draws {best_w:.0f} W as predicted, the board's limit is "
            f"{supply.default_w:g} W: {WITHIN}"
        )
    return warnings


def _slower_kernels(limits: Limits, kernels: Sequence[Recommendation]) -> tuple[str, ...]:
    """A flag of the run: a limit of slowdown holds for it, and some of its kernels break it."""
    most = limits.max_slowdown_percent
    slower = [] if most is None else [k for k in kernels if k.slowdown_in_run_percent > most + SAME]
    if not slower:
        return ()
    percent = sum(kernel.share.percent for kernel in slower if kernel.share)
    worst = max(kernel.slowdown_in_run_percent for kernel in slower)
    flag = (
        f"the limit of {most:g} % is of the run's time: {len(slower)} of {len(kernels)} kernels, "
        f"{percent_in_words(percent)} % of it, get slower than that, at most {worst:+.1f} %"
    )
    return (flag,)


def whole_power(model: Model, profiles: Profiles, static_power_w: float | None) -> WholePower:
    """What is known of the power of model and profiles, with the static power that is given [W].

    Raises InputError where model and profiles differ in kind, and on static power that is of no
    use or senseless.
    """
    absent = model.why_no_power(profiles)
    kind = None if absent else model.power_kind(profiles)
    if absent and static_power_w is not None:
        raise InputError(f"static power is of no use: {absent}")
    return WholePower(kind, static_power(kind, static_power_w), absent)


def absolute(predictions: Predictions, power: WholePower) -> dict[str, Surfaces]:
    """Predicted surfaces with their intervals in ms and W, static power added where it is known."""
    in_units = {}
    for quantity, surfaces in predictions.surfaces.items():
        at_base = predictions.profiles.quantity(quantity)
        added = (power.static_w or 0.0) if quantity == "power" else 0.0
        in_units[quantity] = surfaces.absolute(at_base, added)
    return in_units


def _require_finite(kernels: Sequence[str], surfaces: Mapping[str, Surfaces]) -> None:
    """Raise InputError where an absolute value of a kernel is too large, or nothing."""
    for of_quantity in surfaces.values():
        fits = np.isfinite(of_quantity.values) & (of_quantity.values > 0)
        if not fits.all():
            kernel = kernels[int(np.argwhere(~fits)[0][0])]
            raise InputError(f"kernel '{kernel}': its predictions are not finite")


def _require_power(objective: str, limits: Limits, power: WholePower) -> None:
    """Raise InputError where objective or limits need power that is not there, or not whole."""
    needs = [] if objective in WITHOUT_POWER else [f"the objective '{objective}'"]
    needs += ["a limit of power"] if limits.max_power_w is not None else []
    for need in needs:
        if power.absent:
            raise InputError(f"{need} needs power: {power.absent}")
        if power.static_w is None and need != "the objective 'power'":
            raise InputError(f"{need} needs the whole power: {DYNAMIC_POWER}")
