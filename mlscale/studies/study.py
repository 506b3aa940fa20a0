"""Every study by its name, and a study as a function that gives a frame of figures."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.data.column_names import NO_COLUMNS, Columns
from mlscale.data.measurements import read
from mlscale.errors import InputError, extra_named
from mlscale.guesses import SAVED_PLOT, Guided, instead, written
from mlscale.predictors import PREDICTORS
from mlscale.studies.base import Rows, Study, Tables, flat
from mlscale.studies.candidates import AnyPredictor
from mlscale.studies.crossval import K_FOLD
from mlscale.studies.errors import ErrorStudy
from mlscale.studies.regret import RegretStudy

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

AnyTables = Any  # measurements, a file or a data frame; several in a list, or in a dict by name

STUDIES: dict[str, type[Study]] = {study.name: study for study in (ErrorStudy, RegretStudy)}


@extra_named("a study", "study")
def study(
    name: str,
    tables: AnyTables,
    predictors: AnyPredictor | Sequence[AnyPredictor] | None = None,
    jobs: int | None = None,
    **options: Any,
) -> "pd.DataFrame":
    """Measure errors by cross-validation; a row of figures for each case, errors in percent.

    name: 'errors', or 'advice' for its regret. tables: measurements or their files; several in a
    list, or in a dict by name. predictors: names ('nearest', 'package.module:Class'), classes or
    objects, whose own hyper-parameters are kept. jobs: processes; as many as there are cores.

    options: of both studies base='highest', features=['raw'], clusters=8,
    protocol='leave-one-application-out', folds=5 of 'k-fold', and seeds, how many; and those of the
    class in STUDIES, such as of 'errors' quantity='time' and train_on=['micro.parquet'], tables to
    train on instead. None leaves the default.
    The columns are those of docs/reference/files.md. Raises InputError.

    Example:
        rows = study("advice", "table.parquet", ["nearest", "wu"])
    """
    import pandas as pd

    planned = plan(name, tables, predictors=predictors, **options)
    results = results_of(planned, jobs)
    return pd.DataFrame([flat(row) for row in planned.rows(results)])


def results_of(planned: Study, jobs: int | None) -> list[Any]:
    """The result of each part; jobs: processes, by default as many as there are cores."""
    return planned.results(min(jobs or os.cpu_count() or 1, len(planned.parts)))


def plan(name: str, tables: AnyTables, columns: Columns = NO_COLUMNS, **options: Any) -> Study:
    """The study of that name; an option that is None is left to its default.

    columns: what the tables call our columns, as for `read`.
    Raises InputError on a name or an option that does not exist, and where nothing can be studied.
    """
    if name not in STUDIES:
        raise InputError(f"there is no study '{name}'; one of {', '.join(STUDIES)}")
    given = {option: value for option, value in options.items() if value is not None}
    known = options_of(name)
    if unknown := [option for option in given if option not in known]:
        what = instead("study", unknown[0], known, f"; it has {', '.join(known)}")
        raise InputError(f"the study '{name}' has no option '{unknown[0]}'{what}")
    for option in ("predictors", "features", "quantity", "objectives"):
        if option in given and not isinstance(given[option], list | tuple):
            given[option] = [given[option]]
    if "folds" in given and (given.setdefault("protocol", K_FOLD) != K_FOLD or given["folds"] < 2):
        raise InputError(f"folds are only for the protocol '{K_FOLD}', and at least 2")
    if "train_on" in given:
        given["train_on"] = tables_by_name(given["train_on"], columns)
    tables = tables_by_name(tables, columns)
    if not tables:
        raise InputError("a study needs a table")
    planned = STUDIES[name](tables=tables, **given)
    if not planned.parts:
        raise InputError("no table has a column 'power_w'")
    return planned


def options_of(name: str) -> list[str]:
    """Return what a study can be planned with."""
    return [field.name for field in fields(STUDIES[name]) if field.name != "tables"]


def tables_by_name(tables: AnyTables, columns: Columns = NO_COLUMNS) -> Tables:
    """Return tables by name: the file's without suffix, or the device. Raises InputError."""
    if isinstance(tables, Mapping):
        return {name: read(table, columns=columns) for name, table in tables.items()}
    named: Tables = {}
    several = tables if isinstance(tables, list | tuple) else [tables]
    if several and isinstance(several[0], str) and several[0] in PREDICTORS:
        raise InputError(
            f"predictors come before tables; write cross_validate('{several[0]}', tables)"
        )
    for table in several:
        data = read(table, columns=columns)
        name = Path(table).stem if isinstance(table, str | Path) else data.device
        if name in named:
            raise InputError(f"two tables are named '{name}'; give a dict of tables by name")
        named[name] = data
    return named


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Guided):
    """Errors of predictors [%]: frame, a row for each table, quantity and predictor.

    A column's meaning: docs/reference/files.md. each_kernel: rows of the kernels' errors.
    """

    frame: "pd.DataFrame"
    each_kernel: Rows

    def __repr__(self) -> str:
        shown = ["table", "quantity", "predictor", "features", "n_kernels", "mape", "coverage"]
        return str(self.frame[shown].to_string(index=False))

    @written(SAVED_PLOT)
    @extra_named("'plot'")
    def plot(self) -> "Figure":
        """The error of each kernel, a row of dots for each predictor; a panel for each quantity.

        Needs matplotlib; returns its figure.
        """
        from mlscale.studies.figures import error_figure

        return error_figure(self.each_kernel)


@written("mlscale.cross_validate('wu', tables)")
@extra_named("'cross_validate'", "study")
def cross_validate(
    predictors: AnyPredictor | Sequence[AnyPredictor] | None,
    tables: AnyTables,
    jobs: int | None = None,
    **options: Any,
) -> CrossValidation:
    """Measure the errors of predictors by cross-validation, beside the baselines.

    predictors: names ('nearest', 'package.module:Class'), classes or objects, whose own
    hyper-parameters are kept; None takes what suits the tables. tables: measurements, files or data
    frames; several in a list, or in a dict by name. jobs: processes; as many as there are cores.
    options: those of `mlscale.studies.study.study`, such as quantity='time', base='highest',
    seeds=3, train_on='micro.parquet'; columns as for `read`. Raises InputError.

    Example:
        errors = mlscale.cross_validate(["nearest", "wu"], "table.parquet", quantity="time")
        errors.frame
    """
    import pandas as pd

    planned = plan("errors", tables, predictors=predictors, **options)
    results = results_of(planned, jobs)
    frame = pd.DataFrame([flat(row) for row in planned.rows(results)])
    return CrossValidation(frame, planned.files(results)["kernels"])
