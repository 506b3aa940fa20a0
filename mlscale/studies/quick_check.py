"""How far off a model is that was just trained: its predictor on applications left out."""

import warnings
from typing import Any

import numpy as np

from mlscale.errors import DataWarning, InputError
from mlscale.model.model import Model
from mlscale.model.predictions import COVERAGE
from mlscale.predictors import create
from mlscale.studies.crossval import (
    FOLDS,
    K_FOLD,
    ProfiledTable,
    cross_validate,
    folds,
    pooled,
    same_table,
)
from mlscale.studies.statistics import split_error, summarise


def left_out_errors(model: Model, tables: list[ProfiledTable]) -> dict[str, Any]:
    """The errors of the model's predictors on applications that they did not learn from.

    tables: those that the model learnt from, its own first, each with its base. The applications
    of the first are left out of all tables in at most FOLDS folds, of one seed; so this takes as
    long as FOLDS trainings at most. Gives `folds` and for each quantity mape, standard_error,
    worst_kernel, worst_kernel_mape and coverage (None without intervals), all in percent.
    Raises InputError where there is one application alone, or the others do not suffice.
    """
    data, base = tables[0]
    count = min(FOLDS, len(set(data.applications)))
    if count < 2:
        raise InputError("it needs two applications at least")
    made = folds(K_FOLD, data.applications, 0, count)
    kernels = [k for _, test in made for k in test]
    names = [data.kernels[k] for k in kernels]
    applications = [data.applications[k] for k in kernels]
    found: dict[str, Any] = {"folds": count}
    for quantity, predictor in model.predictors.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # the training told them
            predictions = list(
                cross_validate(
                    *(data, [base], made, lambda: [create(predictor)]),  # noqa: B023, used here
                    *(pooled if len(tables) > 1 else same_table, tables, COVERAGE),
                )
            )
        errors = np.concatenate([one.errors for one in predictions])
        covered = [one.covered for one in predictions]
        inside = [shares for shares in covered if shares is not None]
        summary = summarise(errors, names)
        means = np.nanmean(errors, axis=1).tolist()
        found[quantity] = {
            "mape": summary.mape,
            "standard_error": split_error(means, applications, [0] * len(means), K_FOLD),
            "worst_kernel": summary.worst_kernel,
            "worst_kernel_mape": summary.worst_kernel_mape,
            "coverage": float(np.nanmean(np.concatenate(inside))) if inside else None,
        }
    return found
