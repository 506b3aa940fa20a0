"""Cross-validated errors of predictors for a Python user: a frame of figures, and their picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mlscale.errors import extra_named
from mlscale.studies.base import Rows, flat
from mlscale.studies.candidates import AnyPredictor
from mlscale.studies.study import AnyTables, plan, results_of, tables_by_name

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """Errors of predictors [%]: frame, a row for each table, quantity and predictor.

    A column's meaning: docs/reference/files.md. each_kernel: rows of the kernels' errors.
    """

    frame: "pd.DataFrame"
    each_kernel: Rows

    def __repr__(self) -> str:
        shown = ["table", "quantity", "predictor", "features", "n_kernels", "mape", "coverage"]
        return str(self.frame[shown].to_string(index=False))

    @extra_named("'plot'")
    def plot(self) -> "Figure":
        """The error of each kernel, a row of dots for each predictor; a panel for each quantity.

        Needs matplotlib; returns its figure.
        """
        from mlscale.studies.figures import error_figure

        return error_figure(self.each_kernel)


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
    seeds=3, train_on='micro.parquet'. Raises InputError.

    Example:
        errors = mlscale.cross_validate(["nearest", "wu"], "table.parquet", quantity="time")
        errors.frame
    """
    import pandas as pd

    planned = plan("errors", tables_by_name(tables), predictors=predictors, **options)
    results = results_of(planned, jobs)
    frame = pd.DataFrame([flat(row) for row in planned.rows(results)])
    return CrossValidation(frame, planned.files(results)["kernels"])
