"""How far advice lands from the true optimum: chosen by cross-validation, judged as measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.advice import objectives as advice
from mlscale.advice.objectives import Limits
from mlscale.arrays import Floats, Indices
from mlscale.data.grid import HardwareConfig, Index
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.predictors import PREDICTORS, create
from mlscale.predictors.base import fit_all
from mlscale.predictors.baselines import RateBound
from mlscale.records import Progress
from mlscale.studies.candidates import Contender, contenders, has_parameter, predicts
from mlscale.studies.parallel import sweep
from mlscale.studies.splits import Fold, folds, is_random

if TYPE_CHECKING:
    from distributed import Client


HIGHEST, BASE, FIXED = "highest-clocks", "stay-at-base", "best-fixed"
STRATEGIES = (HIGHEST, BASE, FIXED)
OF_ENERGY = ("energy", "edp", "ed2p")


@dataclass(frozen=True)
class Asked:
    """What is asked of one table: objectives, limits, static power to add [W], at which base."""

    base: HardwareConfig
    objectives: tuple[str, ...]
    limits: Limits
    static_power_w: float


Tables = dict[str, tuple[Measurements, Asked]]


@dataclass(frozen=True)
class Unit:
    """One cross-validation of one advisor, a predictor or one of STRATEGIES, on one table."""

    table: str
    advisor: Contender
    objectives: tuple[str, ...]
    clusters: int
    protocol: str
    seed: int


@dataclass(frozen=True)
class Chosen:
    """The kernels, by position in the table, and what was chosen for each, by objective."""

    unit: Unit
    kernels: tuple[int, ...]
    indices: dict[str, tuple[Index, ...]]


def ask(
    table: str,
    data: Measurements,
    base: HardwareConfig,
    objectives: Sequence[str],
    limits: Limits,
    static_power_w: float | None,
) -> Asked:
    """What can be asked of a table; without objectives those of energy, or time without power.

    Static power is for tables of dynamic power, or of power of unknown kind. Raises InputError
    where objectives or limits need power that is not there or is not whole.
    """
    has_power = data.power_samples is not None
    chosen = tuple(dict.fromkeys(objectives)) or (OF_ENERGY if has_power else ("time",))
    needing = [f"the objective '{o}'" for o in chosen if o != "time"]
    needing += ["a limit of power"] if limits.max_power_w is not None else []
    if needing and not has_power:
        raise InputError(f"{needing[0]} needs power; '{table}' has no column 'power_w'")
    if not has_power:
        return Asked(base, chosen, limits, 0.0)
    try:
        static = advice.static_power(data.metadata.get("power_kind"), static_power_w)
    except InputError as error:
        raise InputError(f"'{table}': {error}") from None
    if static is None and set(needing) - {"the objective 'power'"}:
        raise InputError(f"'{table}': power_w is dynamic power; give the rest as --static-power W")
    return Asked(base, chosen, limits, static or 0.0)


def whole_power(data: Measurements, asked: Asked) -> Floats | None:
    """Measured power with the static power, (K, C, E, M) [W]; None where not measured."""
    return None if data.power_w is None else data.power_w + asked.static_power_w


def advisors(
    predictors: Sequence[str], kinds: Sequence[str], data: Measurements
) -> list[Contender]:
    """The strategies and, behind them, predictors, each with every kind of features it takes.

    predictors: empty for all that apply to the table and learn; kinds: empty for what suits it.
    """
    names = predictors or [
        name
        for name, predictor in PREDICTORS.items()
        if predictor.applies_to(data) and not issubclass(predictor, RateBound)
    ]
    strategies = [Contender(name, None) for name in STRATEGIES]
    standing = contenders(names, kinds, data)
    return strategies + [contender for contender in standing if contender.predictor in names]


def plan(
    tables: Tables,
    advisors: dict[str, list[Contender]],
    clusters: int,
    protocol: str,
    seeds: int,
) -> list[Unit]:
    """All units of a study; a unit that no random number enters for the first seed only.

    A predictor that knows no power is left out of what needs power.
    """
    units = []
    for table, (_, asked) in tables.items():
        without_power = [
            o for o in asked.objectives if o == "time" and not asked.limits.max_power_w
        ]
        for advisor in advisors[table]:
            simple = advisor.predictor in STRATEGIES
            knows_power = simple or predicts(advisor.predictor, "power")
            objectives = tuple(asked.objectives if knows_power else without_power)
            seeded = not simple and has_parameter(advisor.predictor, "seed")
            units += [
                Unit(table, advisor, objectives, clusters, protocol, seed)
                for seed in range(seeds if seeded or is_random(protocol) else 1)
                if objectives
            ]
    return units


def run(
    units: Sequence[Unit],
    tables: Tables,
    jobs: int = 1,
    kept: Progress | None = None,
    client: "Client | None" = None,
) -> Iterator[Chosen]:
    """What each unit chooses, as it comes; see sweep."""
    calls = [(unit, *tables[unit.table]) for unit in units]
    for number, found in sweep(_as_json, calls, jobs, kept, client):
        indices = {o: tuple((c, e, m) for c, e, m in at) for o, at in found["indices"].items()}
        yield Chosen(units[number], tuple(found["kernels"]), indices)


def _as_json(unit: Unit, data: Measurements, asked: Asked) -> dict[str, Any]:
    """What run_unit finds, as JSON values."""
    found = run_unit(unit, data, asked)
    return {"kernels": list(found.kernels), "indices": found.indices}


def run_unit(unit: Unit, data: Measurements, asked: Asked) -> Chosen:
    """Choose for every held-out kernel from what was learnt without it. Raises InputError."""
    split = folds(unit.protocol, data.applications, unit.seed)
    held_out = tuple(int(k) for _, test in split for k in test)
    base = data.grid.index(asked.base)
    c, e, m = data.grid.shape
    indices: dict[str, tuple[Index, ...]] = {}
    if unit.advisor.predictor == HIGHEST:
        indices = dict.fromkeys(unit.objectives, ((c - 1, e - 1, m - 1),) * len(held_out))
    elif unit.advisor.predictor == BASE:
        indices = dict.fromkeys(unit.objectives, (base,) * len(held_out))
    elif unit.advisor.predictor == FIXED:
        for objective in unit.objectives:
            fixed = [(best_fixed(objective, data, asked, train), test) for train, test in split]
            indices[objective] = tuple(best for best, test in fixed for _ in test)
    else:
        predicted = list(_by_kernel(*_predicted(unit, data, asked, split)))
        for objective in unit.objectives:
            indices[objective] = tuple(
                choose(objective, time_ms, power_w, base, asked.limits)
                for time_ms, power_w in predicted
            )
    return Chosen(unit, held_out, indices)


def _by_kernel(time_ms: Floats, power_w: Floats | None) -> Iterator[tuple[Floats, Floats | None]]:
    return zip(time_ms, [None] * len(time_ms) if power_w is None else power_w, strict=True)


def _predicted(
    unit: Unit, data: Measurements, asked: Asked, split: Sequence[Fold]
) -> tuple[Floats, Floats | None]:
    """Time [ms] and power [W] of the held-out kernels, in the order of the folds."""
    advisor = unit.advisor
    has_power = data.power_samples is not None and predicts(advisor.predictor, "power")
    training = [data.select(train) for train, _ in split]
    profiles = [data.select(test).profiles(asked.base) for _, test in split]
    models = {
        quantity: [
            create(
                advisor.predictor,
                quantity=quantity,
                features=advisor.features,
                clusters=unit.clusters,
                seed=unit.seed,
                intervals=False,
            )
            for _ in split
        ]
        for quantity in (("time", "power") if has_power else ("time",))
    }
    jobs = [
        (model, without, asked.base)
        for of_quantity in models.values()
        for model, without in zip(of_quantity, training, strict=True)
    ]
    fit_all(jobs)
    found = {
        quantity: np.concatenate(
            [
                model.predict(new).values * new.quantity(quantity)[:, None, None, None]
                for model, new in zip(of_quantity, profiles, strict=True)
            ]
        )
        for quantity, of_quantity in models.items()
    }
    return found["time"], found["power"] + asked.static_power_w if has_power else None


def choose(
    objective: str, time_ms: Floats, power_w: Floats | None, base: Index, limits: Limits
) -> Index:
    """The best configuration of one kernel; where none keeps the limits, what breaks them least."""
    base_time_ms = float(time_ms[base])
    if advice.feasible(limits, time_ms, power_w, base_time_ms).any():
        return advice.best_index(objective, time_ms, power_w, base_time_ms, limits)
    return _position(advice.load(limits, time_ms, power_w, base_time_ms))


def best_fixed(
    objective: str, data: Measurements, asked: Asked, training: Sequence[int] | Indices
) -> Index:
    """The one configuration that serves the training kernels best.

    The one at which the fewest of them break a limit, of these the one of the least mean ratio
    of the objective to what `choose` would reach from the measured surfaces.
    """
    base = data.grid.index(asked.base)
    power_w = whole_power(data, asked)
    broken = np.zeros(data.grid.shape)
    ratios = np.zeros(data.grid.shape)
    for time, power in _by_kernel(
        data.time_ms[training], None if power_w is None else power_w[training]
    ):
        values = advice.objective_values(objective, time, power)
        ratios += values / values[choose(objective, time, power, base, asked.limits)]
        broken += ~advice.feasible(asked.limits, time, power, float(time[base]))
    return _position(np.where(broken == broken.min(), ratios, np.inf))


def _position(values: Floats) -> Index:
    """Where the least value stands."""
    c, e, m = np.unravel_index(int(np.nanargmin(values)), values.shape)
    return int(c), int(e), int(m)
