"""Advice for profiled kernels: from a model's surfaces to the clocks to set."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mlscale.advice.objectives import SAME, WITHOUT_POWER, Limits, require_objective, static_power
from mlscale.advice.recommendation import (
    Advice,
    Choice,
    Costs,
    Points,
    Recommendation,
    Terms,
    Workload,
)
from mlscale.advice.search import (
    MENU_PERCENT,
    TOO_SLOW,
    USUAL_SLOWDOWN_PERCENT,
    allowed_of_run,
    best_of_kernels,
    best_of_run,
    choices,
    choices_at,
    menu_of_run,
    recommendations,
)
from mlscale.advice.sureness import DRAWS, Grounds, reasons, regret_told
from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.checks import notes_on
from mlscale.data.devices import known_device
from mlscale.data.grid import ConfigGrid
from mlscale.data.points import is_short
from mlscale.data.profiles import Profiles
from mlscale.data.supply import (
    UNLIMITED,
    WITHIN,
    has_reading_at_limit,
    limit_notes,
    supply_of_run,
    with_held_ends,
)
from mlscale.data.surfaces import Surfaces, run_in_sequence
from mlscale.errors import InputError
from mlscale.model.model import NO_POWER_THERE, Model, feature_warnings, training_warnings
from mlscale.model.predictions import COVERAGE, EXTRAPOLATED, Predictions, coverage_of_each
from mlscale.model.unprofiled import exchanging, refuse_little_cover, taken_for_the_mean
from mlscale.notes import Note
from mlscale.parameters import parameter
from mlscale.text import percent_in_words, share_in_percent

MOST_UNCOUNTED = 0.01  # most of a run's time without counters, at another memory clock
LEAST_EXCHANGED = 0.01  # share of a run's time from which it is told
BEST_IS_BEYOND = Note(
    "P02", f"{EXTRAPOLATED}: the best lies beyond the trained settings", "warning"
)


def advise(
    model: Model,
    profiles: Profiles,
    objective: str | None = None,
    limits: Limits | None = None,
    static_power_w: float | None = None,
) -> Advice:
    """The configuration of the model's grid that serves the whole run best, and each kernel.

    objective: 'energy', 'edp', 'ed2p', 'time', 'power', or 'clock', the lowest engine clock; by
    default 'energy', or 'clock' where energy cannot be known. Both are looked for within
    USUAL_SLOWDOWN_PERCENT of the base's time where no limit of time is given, and of energy the
    menu has other limits; the lowest clock is one at the CU count and memory clock of the base.
    limits: of time and slowdown for the kernels' summed time, of power for every kernel.
    static_power_w [W]: what the board draws beside dynamic power, the same at every
    configuration. Of equal configurations `best_index` says which is taken.

    Raises InputError where objective or limits need what model and profiles do not give, and
    where no configuration keeps the limits, saying what is nearest.

    Example:
        >>> import mlscale
        >>> from mlscale.advice.advise import advise
        >>> model = mlscale.load("models/simulated-gcn3.mlscale")
        >>> profile = "datasets/simulated-gcn3-profile.csv"
        >>> profiles = mlscale.read_profiles(profile, model.base, model.device)
        >>> limits = mlscale.Limits(max_slowdown_percent=5)
        >>> advice = advise(model, profiles, "time", limits)
        >>> best = advice.kernels[0].best
        >>> str(best.config), round(best.saving_percent, 1)
        ('cu=32,engine=1000,memory=1000', 20.3)
    """
    terms = terms_of(model, profiles, objective, limits, static_power_w)
    predictions, costs, surfaces, held = predicted_costs(model, profiles, terms)
    refuse_little_cover(profiles)
    workload = Workload(
        kernels=len(profiles.kernels),
        launches=None if profiles.launches is None else float(profiles.launches.sum()),
        counters_cover_percent=100 * profiles.counters_cover,
        gpu_count=profiles.gpu_count,
        power_readings=1 + sum(point.power_w is not None for point in profiles.points),
    )
    takes_caps = not predictions["time"].is_bounded
    notes = limit_notes(profiles, takes_caps) + feature_warnings(model, profiles)
    notes += exchange_warnings(exchanged_ms(profiles) / profiles.run_times_ms.sum())
    run = costs.summed()
    grounds = Grounds(
        device=model.device,
        is_learnt=not model.untrained,
        is_law=model.is_law_of_runs,
        is_bounded=model.is_law_of_runs and not profiles.has_further_time.all(),
        is_simulated=model.is_simulated,
        is_short=is_short(profiles),
        is_at_limit=has_reading_at_limit(profiles),
        is_clock_asked=profiles.are_clocks_asked,
        is_clock_doubted=profiles.is_clock_doubted,
        is_uncounted=profiles.counted_nothing_ms.sum() > profiles.run_times_ms.sum() / 2,
    )
    energies = None
    if terms.objective == "energy" and not terms.added_w and terms.limits.max_power_w is None:
        energies = model.energy_draws(predictions["time"], profiles, DRAWS)
    advice = advise_run(model, run, terms, workload, notes, grounds, energies)
    whole_run, terms = advice.whole_run, replace(terms, limits=advice.limits)
    kernels = _advise_kernels(costs, run, terms, predictions, whole_run.best)
    flags = whole_run.flags + _slower_kernels(terms.limits, kernels)
    return replace(
        advice,
        whole_run=replace(whole_run, flags=flags),
        kernels=kernels,
        measured=_measured(profiles, terms, whole_run.base),
        surfaces=surfaces,
        held=held,
        costs=costs,
    )


def _require_clocks(objective: str, grid: ConfigGrid) -> None:
    """Raise InputError where a lower clock is asked for on a grid over CU counts alone."""
    if objective == "clock" and len(grid.engine_mhz) == 1 < len(grid.cu_count):
        raise InputError(
            "the model has several CU counts and one clock, so no lower clock can be advised: "
            f"'predict' of the same gives all CU counts, {parameter('minimize', 'time')} the best"
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
    limits = limits or Limits()
    added_w, no_power, no_energy = whole_power(model, profiles, static_power_w)
    warnings = training_warnings(model)
    if objective is None:
        objective = "clock" if no_energy else "energy"
        if no_energy:
            told = f"looking for the lowest clock, not least energy: {no_energy}"
            warnings.append(Note("P04", told))
    _require_clocks(objective, model.grid)
    takes_usual = objective in ("clock", "energy") and not limits.has_time
    if takes_usual:
        limits = replace(limits, max_slowdown_percent=USUAL_SLOWDOWN_PERCENT)
    if not no_power and static_power_w is None and model.power_kind(profiles) is None:
        told = "power_w is assumed to be board power: the training table names no power_kind"
        warnings.append(Note("P04", told, "warning"))
    needs = [] if objective in WITHOUT_POWER else [f"the objective '{objective}'"]
    needs += [] if limits.max_power_w is None else ["a limit of power"]
    for need in needs:
        if no_power:
            raise InputError(f"{need} needs power: {no_power}")
        if no_energy and need != "the objective 'power'":
            raise InputError(f"{need} needs the whole power: {no_energy}")
    keeps_memory = _why_memory_is_kept(model, profiles)
    warnings += _memory_warnings(model, objective, keeps_memory, bool(needs))
    return Terms(
        objective=objective,
        limits=limits,
        has_menu=takes_usual and objective == "energy",
        static_power_w=static_power_w,
        added_w=added_w,
        no_power=no_power,
        no_energy=no_energy,
        keeps_memory=keeps_memory,
        unmeasured=model.unmeasured,
        warnings=tuple(warnings),
    )


def whole_power(
    model: Model, profiles: Profiles, static_power_w: float | None
) -> tuple[float, str | None, str | None]:
    """What to add to predicted power [W], why there is no power, and why no energy (else None).

    static_power_w [W]: as given. Raises InputError where model and profiles differ in kind, and
    on static power that is of no use or senseless.
    """
    if "time" not in model.predictors:
        raise InputError("the model predicts only power, not time: use 'mlscale predict'")
    if no_power := model.why_no_power(profiles):
        if static_power_w is not None:
            raise InputError(f"{parameter('static_power')} has no effect: {no_power}")
        return 0.0, no_power, no_power
    added_w = static_power(model.power_kind(profiles), static_power_w)
    static = parameter("static_power", "W")
    told = f"power_w is dynamic power; give the rest of the board's power as {static}"
    return added_w or 0.0, None, told if added_w is None else None


def _why_memory_is_kept(model: Model, profiles: Profiles) -> str | None:
    """Why no other memory clock is offered than that of the base; None where all are."""
    if len(model.grid.memory_mhz) == 1:
        return None
    uncounted, device = taken_for_the_mean(profiles), known_device(model.device)
    measured_mhz = {profiles.base.memory_mhz, *(p.config.memory_mhz for p in profiles.points)}
    if uncounted > MOST_UNCOUNTED:
        why = (
            f"{share_in_percent(uncounted)} % of the run's time is in kernels without "
            "counters, which may need it more than the profiled ones"
        )
    elif device and device.defers_memory_clock and model.untrained and len(measured_mhz) == 1:
        why = (
            f"{device.key} changes it only when its driver is reloaded, and the saving was "
            "measured on other GPUs only"
        )
    else:
        return None
    return f"the memory clock is left as it is: {why}"


def _memory_warnings(
    model: Model, objective: str, keeps_memory: str | None, needs_power: bool
) -> list[Note]:
    """Why other memory clocks are not offered, or not for what needs power."""
    if keeps_memory:
        return [Note("T06", keeps_memory)] * (objective != "clock")
    return [NO_POWER_THERE] * (needs_power and model.lacks_some_power)


def predicted_costs(
    model: Model, profiles: Profiles, terms: Terms, run_peak_w: float = 0.0
) -> tuple[Predictions, Costs, dict[str, Surfaces], dict[str, Surfaces]]:
    """Predictions, what they cost, and the absolute surfaces, as predicted and as held.

    Those held have high ends as the board's limit leaves them. run_peak_w [W]: what the whole run
    was measured to draw, where these are only some of its kernels. Raises InputError.
    """
    predictions = model.predict(profiles, COVERAGE)
    supply = UNLIMITED
    if not terms.no_power:
        supply = supply_of_run(profiles, terms.added_w, run_peak_w)
    is_bounded = predictions["time"].is_bounded
    if is_bounded:
        surfaces, paired, peak_w = _bounded_surfaces(model, predictions, terms.added_w)
    else:
        surfaces = paired = absolute(predictions, terms.added_w)
        peak_w = surfaces["power"].values if "power" in surfaces else None
    held = paired = with_held_ends(paired, supply)
    if not is_bounded and "power" in held:
        energy_mj = _energy_ends(predictions, held, terms.added_w)
        if energy_mj is None and all(surface.low is not None for surface in held.values()):
            at_once = absolute(model.predict(profiles, coverage_of_each(2)), terms.added_w)
            energy_mj = _products(with_held_ends(at_once, supply))
        paired = _with_energy_ends(held, energy_mj)
    power = surfaces.get("power")
    if is_bounded and power is not None and power.high is not None:
        most_w = np.maximum(supply.most_of_run_w, power.values)
        held = paired | {"power": replace(power, high=np.minimum(power.high, most_w))}
    sides = held if terms.objective == "power" else paired
    costs = Costs.from_surfaces(sides, peak_w, profiles.weights, supply)
    if (power := held.get("power")) and power.low is not None and power.high is not None:
        costs = replace(costs, power_ends_w=np.stack([power.low, power.high], axis=1))
    return predictions, costs, surfaces, held


def _energy_ends(
    predictions: Predictions, surfaces: dict[str, Surfaces], added_w: float
) -> list[Floats] | None:
    """The ends of energy [mJ] that are predicted, (K, C, E, M) each; None without such.

    surfaces: absolute ones. added_w [W]: to all power, and no part of the energy predicted.
    """
    if predictions.energy is None:
        return None
    time, profiles = surfaces["time"], predictions.profiles
    at_base_mj = profiles.quantity("time") * profiles.quantity("power")
    energy = predictions.energy.absolute(at_base_mj)
    pairs = ((energy.low, time.low), (energy.high, time.high))
    return [mj + added_w * ms for mj, ms in pairs if mj is not None and ms is not None]


def _products(surfaces: dict[str, Surfaces]) -> list[Floats]:
    """The ends of time x power [mJ], (K, C, E, M) each; none without intervals."""
    time, power = surfaces["time"], surfaces["power"]
    pairs = ((time.low, power.low), (time.high, power.high))
    return [ms * watts for ms, watts in pairs if ms is not None and watts is not None]


def _with_energy_ends(
    surfaces: dict[str, Surfaces], energy_mj: Sequence[Floats] | None
) -> dict[str, Surfaces]:
    """Surfaces whose ends of power times those of time are these of energy [mJ], if there are."""
    time, power = surfaces["time"], surfaces["power"]
    if not energy_mj or time.low is None or time.high is None:
        return surfaces
    low_mj, high_mj = energy_mj
    return surfaces | {"power": replace(power, low=low_mj / time.low, high=high_mj / time.high)}


def _bounded_surfaces(
    model: Model, predictions: Predictions, added_w: float
) -> tuple[dict[str, Surfaces], dict[str, Surfaces], Floats | None]:
    """Absolute surfaces of runs whose times are bounds, at the longest times; and peak power [W].

    What keeps a limit of time at the longest times keeps it surely. Power follows the rate of work,
    so it is highest at the shortest times. The first surfaces have the ends of time and of power
    each; the second those that give the ends of energy together: power's low end at the shortest
    times, and its high end at the longest.
    """
    times = predictions["time"]
    longest, shortest = (
        absolute(_with_times(model, predictions, end), added_w) for end in (times.high, times.low)
    )
    if "power" not in longest:
        return longest, longest, None
    power, at_shortest = longest["power"], shortest["power"]
    surfaces = longest | {"power": replace(power, high=at_shortest.high)}
    paired = longest | {"power": replace(power, low=at_shortest.low)}
    return surfaces, paired, at_shortest.values


def _with_times(model: Model, predictions: Predictions, end: Floats | None) -> Predictions:
    """Predictions as if an end of the times, relative to the base, were the times."""
    times = predictions["time"]
    surfaces = {"time": replace(times, values=times.values if end is None else end)}
    if "power" in predictions.surfaces:
        alone = replace(surfaces["time"], low=None, high=None)
        power = model.power_at(predictions.profiles, alone)
        surfaces["power"] = replace(power, flags=predictions["power"].flags)
    return replace(predictions, surfaces=surfaces)


def absolute(predictions: Predictions, added_w: float) -> dict[str, Surfaces]:
    """Predicted surfaces with their intervals in ms and W; added_w [W]: added to all power."""
    return {
        quantity: surfaces.absolute(
            predictions.profiles.quantity(quantity), added_w if quantity == "power" else 0.0
        )
        for quantity, surfaces in predictions.surfaces.items()
    }


def advise_run(
    model: Model,
    run: Costs,
    terms: Terms,
    workload: Workload,
    notes: Sequence[Note],
    grounds: Grounds,
    energies: Floats | None = None,
) -> Advice:
    """The advice for the whole run alone. Raises InputError.

    run: `Costs.summed` of all kernels. notes: the warnings of the profiles. grounds: what is known
    before of how sure it is. energies (D, N): draws of what is believed of the run's energy.
    """
    menu = menu_of_run(run, terms)
    if terms.has_menu and USUAL_SLOWDOWN_PERCENT not in menu:  # a limit of power needs more time
        slowdown = next((most for most in MENU_PERCENT[2:] if most in menu), None)
        terms = replace(terms, limits=replace(terms.limits, max_slowdown_percent=slowdown))
    best, expected = best_of_run(run, terms)
    places = np.array([*menu.values()], dtype=int)
    in_menu = choices_at(run, terms, np.zeros_like(places), places)
    [whole_run] = recommendations(run, terms, [best])
    if expected != best:
        [at_expected] = choices_at(run, terms, np.zeros(1, dtype=int), np.array([expected]))
        whole_run = replace(whole_run, expected=at_expected)
    trained = model.trained_range
    if trained is not None and not trained.spans(whole_run.best.config):
        whole_run = replace(whole_run, flags=(BEST_IS_BEYOND,))
    regret, allowed = None, allowed_of_run(run, terms)
    if energies is not None and allowed[best]:
        regret = regret_told(energies, best, allowed)
    grounds = replace(
        grounds,
        regret=regret,
        power_readings=workload.power_readings,
        needs_power=terms.objective not in WITHOUT_POWER,
        is_bounded=grounds.is_bounded or run.is_bounded,
        is_beyond=bool(whole_run.flags),
        has_intervals=run.has_intervals or not terms.limits.has_time,
    )
    return Advice(
        device=model.device,
        objective=terms.objective,
        limits=terms.limits,
        static_power_w=terms.static_power_w,
        workload=workload,
        whole_run=whole_run,
        warnings=(
            *terms.warnings,
            *_unsure_warnings(terms.limits, whole_run),
            *_board_warnings(run, whole_run.best),
            *notes,
        ),
        is_bounded=run.is_bounded,
        no_energy=terms.no_energy,
        keeps_memory=terms.keeps_memory,
        menu=dict(zip(menu, in_menu, strict=True)),
        sure_why=reasons(grounds),
        sure_why_cap=reasons(replace(grounds, needs_power=True, regret=None)),
        supply=run.supply,
        offered=run.offered(terms),
    )


def _unsure_warnings(limits: Limits, run: Recommendation) -> list[Note]:
    """That the best is only expected to keep a limit of time, as nothing keeps it surely."""
    ends = run.best.slowdown_range
    if ends is None or ends[1] <= limits.longest_percent(run.base.time_ms) + SAME:
        return []
    words = replace(limits, max_power_w=None).words()
    told = f"no setting is certain to keep {' and '.join(words)}: the best is only expected to"
    return [Note("P06", told, "warning")]


def _board_warnings(run: Costs, best: Choice) -> list[Note]:
    """Which configurations the board cannot supply, and whether the best needs its limit raised."""
    if run.peak_w is None:
        return []
    supply, peak_w = run.supply, run.peak_w[0]
    impossible_w = peak_w[~supply.suffices(peak_w)] / supply.boards
    warnings = notes_on("supply", impossible_w, peak_w.size, supply.most_in_words)
    at_best_w = peak_w[run.grid.index(best.config)]
    best_w = float(at_best_w) / supply.boards
    draws = f"at the best clocks a kernel would draw {best_w:.0f} W"
    if not supply.suffices_by_default(at_best_w):
        told = (
            f"{draws}, more than the board's default limit of {supply.default_w:g} W: unless that "
            f"is raised (to {supply.most_w:g} W at most), the GPU lowers its clock"
        )
        warnings.append(Note("P03", told, "warning"))
    elif best_w > supply.default_w * (1 + SAME):
        told = f"{draws}, and the board's limit is {supply.default_w:g} W: {WITHIN}"
        warnings.append(Note("P03", told))
    return warnings


def _advise_kernels(
    costs: Costs, run: Costs, terms: Terms, predictions: Predictions, best_of_run: Choice
) -> tuple[Recommendation, ...]:
    """What is best for each kernel."""
    run_ms = float(run.base_ms[0])
    best, too_slow = best_of_kernels(costs, terms, run_ms)
    count, run_place = len(best), run.place(best_of_run.config)
    in_run = choices_at(costs, terms, np.arange(count), np.full(count, run_place))
    shares_percent = 100 * costs.launches * costs.base_ms / run_ms
    flags = kernel_flags(predictions, best, too_slow)
    return tuple(
        replace(
            kernel,
            kernel=predictions.profiles.kernels[k],
            flags=flags[k],
            launches=float(costs.launches[k]),
            share_percent=float(shares_percent[k]),
            in_run=in_run[k],
        )
        for k, kernel in enumerate(recommendations(costs, terms, best.tolist()))
    )


def kernel_flags(predictions: Predictions, best: Indices, too_slow: Mask) -> list[tuple[Note, ...]]:
    """What a reader should know of the best of each kernel, see `best_of_kernels`."""
    trained = predictions.trained_range
    is_beyond = [trained is not None and not trained.spans(config) for config in predictions.grid]
    return [
        (*(BEST_IS_BEYOND,) * is_beyond[place], *flags, *(TOO_SLOW,) * is_too_slow)
        for place, flags, is_too_slow in zip(
            best.tolist(), predictions.flags, too_slow.tolist(), strict=True
        )
    ]


def _slower_kernels(limits: Limits, kernels: Sequence[Recommendation]) -> tuple[Note, ...]:
    """A flag of the run: a limit of slowdown holds for it, and some of its kernels break it."""
    most = limits.max_slowdown_percent
    slowdowns = [k.in_run.slowdown_percent for k in kernels if k.in_run is not None]
    is_slower = [most is not None and slowdown > most + SAME for slowdown in slowdowns]
    if not any(is_slower):
        return ()
    shares = [kernel.share_percent or 0.0 for kernel in kernels]
    percent = sum(share for share, slower in zip(shares, is_slower, strict=True) if slower)
    flag = (
        f"the limit of {most:g} % is for the whole run: {sum(is_slower)} of {len(kernels)} kernels "
        f"({percent_in_words(percent)} % of its time) get slower, by up to {max(slowdowns):.1f} %"
    )
    return (Note("P06", flag),)


def _measured(profiles: Profiles, terms: Terms, base: Choice) -> tuple[Choice, ...]:
    """The whole run at the further points at which all its kernels were measured."""
    measured: list[Choice] = []
    at_base = Points.single(base.engine_mhz, base.time_ms, base.power_w)
    for point in profiles.points:
        power_w = None if terms.no_power else point.power_w
        run_ms, run_w = run_in_sequence(point.time_ms, power_w, profiles.weights)
        if np.isnan(run_ms):
            continue
        watts = None if run_w is None else float(run_w) + terms.added_w
        at = Points.single(point.config.engine_mhz, float(run_ms), watts)
        energy_mj = None if terms.no_energy or at.power_w is None else at.time_ms * at.power_w
        measured += choices("time", [point.config], at, base.config, at_base, energy_mj)
    return tuple(measured)


def exchanged_ms(profiles: Profiles) -> float:
    """How long a run's kernels exchange data between GPUs, at the base [ms]."""
    return float(profiles.run_times_ms[exchanging(profiles)].sum())


def exchange_warnings(share: float) -> list[Note]:
    """That kernels wait for other GPUs; share: of the run's time, in those that exchange data."""
    if share < LEAST_EXCHANGED:
        return []
    warning = (
        f"{share_in_percent(share)} % of the run's time goes to exchanging data between GPUs, "
        "which no counter explains; set all GPUs alike"
    )
    return [Note("P07", warning)]
