"""How far off a model is that was just trained: its predictors on applications left out."""

import warnings
from typing import Any

import numpy as np

from mlscale.data.surfaces import mean_of_kernels
from mlscale.errors import DataWarning, InputError
from mlscale.model.model import Model
from mlscale.predictors import create
from mlscale.studies.crossval import (
    FOLDS,
    K_FOLD,
    ProfiledTable,
    cross_validate,
    folds,
    pooled,
    same_table,
    warn_of_tested_kernels,
)
from mlscale.studies.statistics import standard_error


def left_out_errors(model: Model, tables: list[ProfiledTable]) -> dict[str, Any]:
    """The errors of the model's predictors on applications that they did not learn from.

    tables: those that the model learnt from, its own first, each with its base. The applications
    of the first are left out of all tables in at most FOLDS folds, of one seed; so this takes as
    long as FOLDS trainings at most. Gives `folds`, and for each quantity the mape and its
    standard_error, in percent.
    Raises InputError where there is one application alone, or the others do not suffice.
    """
    data, base = tables[0]
    count = min(FOLDS, len(set(data.applications)))
    if count < 2:
        raise InputError("it needs two applications at least")
    made = folds(K_FOLD, data.applications, 0, count)
    applications = [data.applications[k] for _, test in made for k in test]
    predictors = model.predictors.values()
    others = [(one, np.arange(len(one[0].kernels))) for one in tables[1:]]
    warn_of_tested_kernels(data.device, data, others)
    training = pooled if len(tables) > 1 else same_table
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the training told them
        predictions = list(
            cross_validate(data, [base], made, lambda: [*map(create, predictors)], training, tables)
        )
    found: dict[str, Any] = {"folds": count}
    for quantity in model.predictors:
        errors = np.concatenate(
            [one.errors for one in predictions if one.predictor.quantity == quantity]
        )
        by_kernel = np.nanmean(errors, axis=1).tolist()
        error = standard_error(by_kernel, applications)
        found[quantity] = {"mape": mean_of_kernels(errors), "standard_error": error}
    return found
