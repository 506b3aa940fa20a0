"""Cross-validated errors of Nagasaka's power model, with lambda chosen anew inside every fold.

Source: Nagasaka et al. 2010, section IV: ten-fold evaluation, lambda by n-fold cross-validation.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from mlscale.arrays import Floats, Indices, Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import absolute_percentage_error
from mlscale.errors import DataWarning, InputError, warn
from mlscale.papers.nagasaka import (
    LinearPowerModel,
    contribution_ratios,
    estimate_power_w,
    fit_power_model,
    fit_ridge,
)
from mlscale.papers.nagasaka_inputs import (
    BLOCKS_PER_CU,
    TEXTURE,
    UNLEARNT,
    PowerInputs,
    derive_inputs,
    unlearnt,
)
from mlscale.studies.splits import Fold, grouped_folds
from mlscale.studies.statistics import summarise

Grouping = Literal["kernel", "application"]

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
PAPER_FOLDS = 10
SHUFFLES = 5
ALL, PAPER = "all", "as in the paper"
# No penalty, and 1/100 to 10 000: from hardly any to nothing but the intercept.
PENALTIES: tuple[float, ...] = (0.0, *np.logspace(-2, 4, 25).tolist())
# Keeps the random numbers of the evaluation apart from those of the choice of lambda.
_OUTER_SEED = 20_100_815
_INNER_SEED = 70_000_000


@dataclass(frozen=True, eq=False)
class HeldOutPower:
    """Every kernel estimated by a model that was trained without it.

    estimated_w (K,) [W]; penalty (K,): the lambda of the kernel's fold; unlearnt (K, F): the
    variables that are not zero in the kernel but were in all of its fold's training.
    """

    estimated_w: Floats
    penalty: Floats
    unlearnt: Mask


@dataclass(frozen=True, eq=False)
class SetErrors:
    """One set of counters under one grouping of folds, over S shuffles of the folds.

    estimated_w (S, K) and actual_w (K,) [W]; penalty (S, K); unlearnt: for each kernel the names
    of the variables that some shuffle's training could not teach.
    """

    name: str
    variables: tuple[str, ...]
    grouping: Grouping
    estimated_w: Floats
    actual_w: Floats
    penalty: Floats
    unlearnt: tuple[tuple[str, ...], ...]

    @property
    def errors_percent(self) -> Floats:
        """Return the absolute error of each estimate, (S, K) [%]."""
        return absolute_percentage_error(self.estimated_w, self.actual_w)

    @property
    def mean_squared_error_w2(self) -> float:
        """Average squared error over kernels and shuffles, section IV [W^2]."""
        return float(np.mean((self.estimated_w - self.actual_w) ** 2))


@dataclass(frozen=True, eq=False)
class PowerCase:
    """One table with all or some of its kernels, and the errors of every set of counters there.

    kernels: 'all', or 'as in the paper' (enough blocks, no texture reads). results: empty until
    the case is evaluated. origin: of the table's power: 'measured', 'simulated', 'made', or None
    where the table does not say. fixed_penalty: the lambda, where none was chosen.
    """

    table: str
    device: str
    base: HardwareConfig
    kernels: str
    inputs: PowerInputs
    results: tuple[SetErrors, ...] = ()
    origin: str | None = None
    fixed_penalty: float | None = None

    def result(self, name: str, grouping: Grouping = "application") -> SetErrors:
        """Return the errors of one set of counters."""
        return next(r for r in self.results if (r.name, r.grouping) == (name, grouping))

    @property
    def identity(self) -> dict[str, Any]:
        """Return what names the case in every row."""
        return {
            "table": self.table,
            "device": self.device,
            "base": self.base.as_dict(),
            "kernels": self.kernels,
            "n_kernels": len(self.inputs.kernels),
        }


def choose_penalty(rates: Floats, power_w: Floats, groups: Indices, seeds: Sequence[int]) -> float:
    """The lambda of least squared error in a cross-validation of these kernels alone.

    rates (K, F) [1/s], power_w (K,) [W], groups (K,): kernels of one group are held out together.
    10 folds, or as many as there are groups, once for each seed; the smallest lambda of those that
    are equally good. Raises InputError where there is one group only.
    """
    if not rates.shape[1]:
        return PENALTIES[0]
    squared = np.zeros(len(PENALTIES))
    for seed in seeds:
        for train, test in _folds(groups, _INNER_SEED + seed):
            alpha, beta = fit_ridge(rates[train], power_w[train], PENALTIES)
            estimated = rates[test] @ alpha.T + beta
            squared += ((estimated - power_w[test, None]) ** 2).sum(axis=0)
    return PENALTIES[int(squared.argmin())]


def hold_out(
    rates: Floats, power_w: Floats, groups: Indices, seed: int, fixed: float | None = None
) -> HeldOutPower:
    """Ten-fold evaluation: standardising, lambda and coefficients are learnt inside each fold.

    rates (K, F) [1/s], power_w (K,) [W], groups (K,): at least 10 groups, held out together.
    fixed: a lambda in place of the one chosen. Raises InputError where there are fewer groups.
    """
    count = len(np.unique(groups))
    if count < PAPER_FOLDS:
        raise InputError(f"ten folds need {PAPER_FOLDS} groups of kernels, not {count}")
    estimated, penalty = np.empty(len(power_w)), np.empty(len(power_w))
    unknown = np.zeros(rates.shape, dtype=bool)
    for train, test in _folds(groups, _OUTER_SEED + seed):
        chosen = fixed
        if chosen is None:
            chosen = choose_penalty(rates[train], power_w[train], groups[train], [seed])
        penalty[test] = chosen
        model = fit_power_model(rates[train], power_w[train], chosen)
        estimated[test] = estimate_power_w(model, rates[test])
        unknown[test] = unlearnt(rates[train], rates[test])
    return HeldOutPower(estimated, penalty, unknown)


def set_errors(
    inputs: PowerInputs, groupings: Sequence[Grouping], shuffles: int, fixed: float | None = None
) -> Iterator[SetErrors]:
    """The errors of every set of counters under each grouping of the folds, one by one.

    fixed: a lambda in place of the one that each fold chooses. Raises InputError where there are
    fewer than 10 groups.
    """
    for grouping in groupings:
        groups = group_numbers(inputs, grouping)
        for name, variables in inputs.sets.items():
            rates = inputs.matrix(name)
            runs = [
                hold_out(rates, inputs.power_w, groups, seed, fixed) for seed in range(shuffles)
            ]
            unknown = np.any([run.unlearnt for run in runs], axis=0)
            yield SetErrors(
                name=name,
                variables=variables,
                grouping=grouping,
                estimated_w=np.array([run.estimated_w for run in runs]),
                actual_w=inputs.power_w,
                penalty=np.array([run.penalty for run in runs]),
                unlearnt=tuple(tuple(np.array(variables)[row].tolist()) for row in unknown),
            )


def fit_to_all_kernels(
    inputs: PowerInputs, name: str, fixed: float | None = None
) -> tuple[LinearPowerModel, float]:
    """Return the model of all kernels and its lambda, chosen with folds grouped by application.

    fixed: a lambda in place of that.
    """
    rates = inputs.matrix(name)
    groups = group_numbers(inputs, "application")
    penalty = fixed
    if penalty is None:
        penalty = choose_penalty(rates, inputs.power_w, groups, range(SHUFFLES))
    return fit_power_model(rates, inputs.power_w, penalty), penalty


def group_numbers(inputs: PowerInputs, grouping: Grouping) -> Indices:
    """Return a number for each kernel, the same for those that are held out together, (K,)."""
    if grouping == "kernel":
        return np.arange(len(inputs.kernels))
    return np.unique(np.array(inputs.applications), return_inverse=True)[1]


def select_cases(path: Path, data: Measurements, base_text: str, counters: str) -> list[PowerCase]:
    """A table with all its kernels and, where they are enough, with those of the paper.

    base_text: the configuration of counters, time and power as `ConfigGrid.parse` takes it;
    counters: the set that the table must give. Raises InputError and warns (DataWarning), naming
    the path, as `derive_inputs` does, and where fewer than ten applications remain.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        try:
            base = data.grid.parse(base_text)
            inputs = derive_inputs(data.profiles(base))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
    for warning in caught:
        warn(f"{path}: {warning.message}")
    if counters not in inputs.sets:
        raise InputError(
            f"{path}: does not give the counters of the set '{counters}'; "
            f"it gives {', '.join(inputs.sets)}: choose one with --counters"
        )
    origin = data.metadata.get("origin")
    everything = PowerCase(path.stem, data.device, base, ALL, inputs, origin=origin)
    if (count := len(set(inputs.applications))) < PAPER_FOLDS:
        raise InputError(
            f"{path}: ten folds need kernels of {PAPER_FOLDS} applications, not {count}; "
            "measure more"
        )
    as_in_paper = replace(everything, kernels=PAPER, inputs=inputs.as_in_paper())
    if (count := len(set(as_in_paper.inputs.applications))) >= PAPER_FOLDS:
        return [everything, as_in_paper]
    warn(
        f"{path}: {count} applications remain without the kernels that read textures or have "
        f"fewer than {BLOCKS_PER_CU} blocks per CU, too few for ten folds: only all kernels "
        "together are evaluated"
    )
    return [everything]


def document(cases: Sequence[PowerCase], counters: str) -> dict[str, Any]:
    """The figures as JSON, as docs/file-formats.md describes them.

    counters: the set whose model, estimates and energies are shown.
    """
    unseen = {
        (row["table"], row["kernel"], row["counter"]): row
        for case in cases
        for row in unseen_rows(case)
    }
    return {
        "literature": "nagasaka",
        "counters": counters,
        "rows": [error_row(case, result) for case in cases for result in case.results],
        "models": [
            model_row(case, counters) | {"left_out": _left_out(case, cases)} for case in cases
        ],
        "estimates": [
            {"table": case.table, "kernels": case.kernels, "kernel": kernel}
            | {"actual_w": float(actual), "estimated_w": float(estimated)}
            for case in cases
            for kernel, actual, estimated in zip(
                case.inputs.kernels,
                case.inputs.power_w,
                case.result(counters).estimated_w.mean(axis=0),
                strict=True,
            )
        ],
        "unseen": list(unseen.values()),
    }


def error_row(case: PowerCase, result: SetErrors) -> dict[str, Any]:
    """Return the errors [%] of one set of counters under one grouping of the folds."""
    errors = result.errors_percent
    summary = summarise(errors.reshape(-1, 1), case.inputs.kernels * len(errors))
    return {
        **case.identity,
        "counters": result.name,
        "variables": list(result.variables),
        "folds_by": result.grouping,
        "n_shuffles": len(errors),
        **asdict(summary),
        "mape_by_shuffle": errors.mean(axis=1).tolist(),
        "mean_squared_error_w2": result.mean_squared_error_w2,
        "penalty_median": float(np.median(result.penalty)),
    }


def model_row(case: PowerCase, counters: str) -> dict[str, Any]:
    """Return the model of all kernels: energies, intercept and mean contributions (Fig. 4)."""
    model, penalty = fit_to_all_kernels(case.inputs, counters, case.fixed_penalty)
    names = case.inputs.sets[counters]
    try:
        ratios = contribution_ratios(model, case.inputs.matrix(counters))
    except InputError as error:
        raise InputError(f"{case.table}: {error}; choose other counters with --counters") from None
    return {
        **case.identity,
        "counters": counters,
        "penalty": penalty,
        "intercept_w": model.intercept_w,
        "energy_nj": dict(zip(names, (1e9 * model.energy_j).tolist(), strict=True)),
        "contribution_percent": dict(
            zip((*names, "intercept"), (100 * ratios).tolist(), strict=True)
        ),
    }


def unseen_rows(case: PowerCase) -> list[dict[str, Any]]:
    """Return the kernels that the model cannot see, the counter at fault, and why."""
    texture = [
        (kernel, "tex_cache_transactions", TEXTURE)
        for kernel, flag in zip(case.inputs.kernels, case.inputs.texture, strict=True)
        if flag == 1
    ]
    zero = {
        (kernel, variable, UNLEARNT): None
        for result in case.results
        for kernel, variables in zip(case.inputs.kernels, result.unlearnt, strict=True)
        for variable in variables
    }
    return [
        {"table": case.table, "kernel": kernel, "counter": counter, "why": why}
        for kernel, counter, why in (*texture, *zero)
    ]


def _left_out(case: PowerCase, cases: Sequence[PowerCase]) -> list[str]:
    """Return the kernels of the same table that the case does without."""
    others = [kernel for c in cases if c.table == case.table for kernel in c.inputs.kernels]
    return [kernel for kernel in dict.fromkeys(others) if kernel not in case.inputs.kernels]


def _folds(groups: Indices, seed: int) -> list[Fold]:
    count = min(PAPER_FOLDS, len(np.unique(groups)))
    if count < 2:
        raise InputError("cross-validation needs two groups of kernels at least, not one")
    return grouped_folds(groups, count, seed)
