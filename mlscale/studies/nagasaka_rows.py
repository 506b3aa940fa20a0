"""Nagasaka's study as rows: errors of every set, the model, what it cannot see."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlscale.data.grid import HardwareConfig
from mlscale.errors import InputError
from mlscale.papers.nagasaka import contribution_ratios
from mlscale.papers.nagasaka_counters import PowerInputs
from mlscale.studies.metrics import summarise
from mlscale.studies.nagasaka import Grouping, SetErrors, fit_all

ALL, PAPER = "all", "as in the paper"

TEXTURE = (
    "it reads textures, or spilled registers, through the texture cache (more transactions than "
    "global loads), whose hits no counter of the model counts"
)
UNTRAINED = "it was zero in all of the training kernels, so that its energy could not be learnt"


@dataclass(frozen=True, eq=False)
class Case:
    """One table with all or some of its kernels, and the errors of every set of counters there.

    kernels: 'all', or 'as in the paper' (enough blocks, no texture reads).
    """

    table: str
    device: str
    base: HardwareConfig
    kernels: str
    inputs: PowerInputs
    results: list[SetErrors] = field(default_factory=list)

    def result(self, name: str, grouping: Grouping = "application") -> SetErrors:
        """The errors of one set of counters."""
        return next(r for r in self.results if (r.name, r.grouping) == (name, grouping))


def document(cases: Sequence[Case], chosen: str) -> dict[str, Any]:
    """The figures as JSON: docs/file-formats.md."""
    unseen = {
        (row["table"], row["kernel"], row["counter"]): row
        for case in cases
        for row in unseen_rows(case)
    }
    return {
        "literature": "nagasaka",
        "counters": chosen,
        "rows": [error_row(case, result) for case in cases for result in case.results],
        "models": [
            model_row(case, chosen) | {"left_out": _left_out(case, cases)} for case in cases
        ],
        "estimates": [
            {"table": case.table, "kernels": case.kernels, "kernel": kernel}
            | {"actual_w": float(actual), "estimated_w": float(estimated)}
            for case in cases
            for kernel, actual, estimated in zip(
                case.inputs.kernels,
                case.inputs.power_w,
                case.result(chosen).estimated_w.mean(axis=0),
                strict=True,
            )
        ],
        "unseen": list(unseen.values()),
    }


def _left_out(case: Case, cases: Sequence[Case]) -> list[str]:
    """The kernels of the same table that the case does without."""
    others = [kernel for c in cases if c.table == case.table for kernel in c.inputs.kernels]
    return [kernel for kernel in dict.fromkeys(others) if kernel not in case.inputs.kernels]


def _identity(case: Case) -> dict[str, Any]:
    return {
        "table": case.table,
        "device": case.device,
        "base": case.base.as_dict(),
        "kernels": case.kernels,
        "n_kernels": len(case.inputs.kernels),
    }


def error_row(case: Case, result: SetErrors) -> dict[str, Any]:
    """The errors [%] of one set of counters under one grouping of the folds."""
    errors = result.errors_percent
    summary = summarise(errors.reshape(-1, 1), case.inputs.kernels * len(errors))
    return {
        **_identity(case),
        "counters": result.name,
        "variables": list(result.variables),
        "folds_by": result.grouping,
        "n_shuffles": len(errors),
        "mape": summary.mape,
        "mape_by_shuffle": errors.mean(axis=1).tolist(),
        "mean_squared_error_w2": result.mean_squared_error_w2,
        "median_kernel": summary.median_kernel,
        "p90": summary.p90,
        "worst_kernel": summary.worst_kernel,
        "worst_kernel_mape": summary.worst_kernel_mape,
        "penalty_median": float(np.median(result.penalty)),
    }


def model_row(case: Case, chosen: str) -> dict[str, Any]:
    """The model of all kernels: energies, intercept and mean contributions (Fig. 4)."""
    model, penalty = fit_all(case.inputs, chosen)
    names = case.inputs.sets[chosen]
    try:
        ratios = contribution_ratios(model, case.inputs.matrix(chosen))
    except InputError as error:
        raise InputError(f"{case.table}: {error}; choose other counters with --counters") from None
    return {
        **_identity(case),
        "counters": chosen,
        "penalty": penalty,
        "intercept_w": model.intercept_w,
        "energy_nj": dict(zip(names, (1e9 * model.energy_j).tolist(), strict=True)),
        "contribution_percent": dict(
            zip((*names, "intercept"), (100 * ratios).tolist(), strict=True)
        ),
    }


def unseen_rows(case: Case) -> list[dict[str, Any]]:
    """The kernels that the model cannot see, the counter at fault, and why."""
    texture = [
        (kernel, "tex_cache_transactions", TEXTURE)
        for kernel, flag in zip(case.inputs.kernels, case.inputs.texture, strict=True)
        if flag == 1
    ]
    zero = {
        (kernel, variable, UNTRAINED): None
        for result in case.results
        for kernel, variables in zip(case.inputs.kernels, result.untrained, strict=True)
        for variable in variables
    }
    found = (*texture, *zero)
    return [{"table": case.table, "kernel": k, "counter": c, "why": why} for k, c, why in found]
