"""Errors beyond the trained settings: the outermost step of an axis is left out, and predicted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mlscale.arrays import Mask
from mlscale.data.grid import AXES, ConfigGrid, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.surfaces import without_base
from mlscale.errors import InputError
from mlscale.predictions import COVERAGE
from mlscale.predictors import applying
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.studies.base import (
    Edge,
    Part,
    PredictorStudy,
    Row,
    Rows,
    grouped,
    measured_quantities,
)
from mlscale.studies.candidates import ORACLE, Candidate, candidates
from mlscale.studies.crossval import cross_validate
from mlscale.studies.splits import RANDOM_KERNELS
from mlscale.studies.statistics import error_over, split_error

LEAST_STEPS = 3  # of an axis, so that two are left to go on from
INSIDE, OUTSIDE = "inside", "outside"


@dataclass(frozen=True, eq=False, kw_only=True)
class ExtrapolationStudy(PredictorStudy):
    """Each part is one predictor trained without an edge, the outermost step of an axis.

    Kernels are held out as in every study, so what is predicted at an edge is of kernels and of
    settings that were not trained on. Beside it stands the same predictor trained with the edge.
    Edges are those of axes with LEAST_STEPS at least that do not hold the base.

    predictors: by default `bottleneck`, where it applies, and `wu`; the baselines stand beside.
    quantity: both, where measured. What knows no law of its own goes on as between its two
    outermost steps.
    """

    quantity: str | Sequence[str] = ()

    @cached_property
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError on a table without an edge."""
        if self.split == RANDOM_KERNELS:
            raise InputError(f"the protocol '{RANDOM_KERNELS}' is not for '{self.name}'")
        return [
            Part(table, candidate, self.split, seed, quantity, count, (base,), edge=edge)
            for table, data in self.tables.items()
            for base in [self.base_of(table)]
            for quantity in measured_quantities(data, self.quantity)
            for candidate in self._candidates(data, base)
            if candidate.predicts(quantity)
            for count in [self.clusters_of(candidate)]
            for seed in self.seeds_of(candidate)
            for edge in [None, *edges(table, data.grid, base)]
        ]

    def _candidates(self, data: Measurements, base: HardwareConfig) -> list[Candidate]:
        usual = applying((Bottleneck.name, "wu"), data)
        everyone = candidates(self.predictors or usual, self.features, data, base)
        return [candidate for candidate in everyone if candidate.name != ORACLE]

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return `part_errors` and the arguments of each part."""
        return part_errors, [(part, self.tables[part.table]) for part in self.parts]

    def rows(self, results: Sequence[Any]) -> Rows:
        """Return one row of figures for each table, quantity, edge and candidate."""
        kernels = self.kernel_rows(results)
        keys = ("table", "quantity", "edge", "predictor", "features")
        with_edge = grouped([row for row in kernels if row["edge"]], *keys)
        trained = grouped([row for row in kernels if not row["edge"]], *keys)
        return [
            self._row(group, trained[table, quantity, None, *candidate])
            for (table, quantity, _, *candidate), group in with_edge.items()
        ]

    def _row(self, group: Rows, trained: Rows) -> Row:
        first = group[0]
        edge: Edge = first["edge"]
        grid = self.tables[first["table"]].grid
        sides = {INSIDE: INSIDE, OUTSIDE: _label(edge)}
        mape = {side: _mean(group, name, "error") for side, name in sides.items()}
        applications, seeds = ([row[key] for row in group] for key in ("application", "seed"))
        return {
            "table": first["table"],
            "base": self.base_of(first["table"]).as_dict(),
            "quantity": first["quantity"],
            "axis": edge[0],
            "end": edge[1],
            "step": getattr(grid, edge[0])[_position(edge)],
            "predictor": first["predictor"],
            "features": first["features"],
            "n_kernels": len({row["kernel"] for row in group}),
            **{f"mape_{side}": error for side, error in mape.items()},
            **{
                f"standard_error_{side}": split_error(
                    [row["error"][name] for row in group], applications, seeds, self.split
                )
                for side, name in sides.items()
            },
            "standard_error_over": error_over(self.split),
            "ratio": None if not mape[INSIDE] else mape[OUTSIDE] / mape[INSIDE],
            "mape_trained": _mean(trained, _label(edge), "error"),
            **{
                f"coverage_{side}": _mean(group, name, "covered") if first["covered"] else None
                for side, name in sides.items()
            },
        }


def edges(table: str, grid: ConfigGrid, base: HardwareConfig) -> list[Edge]:
    """Return the edges of a grid that do not hold the base. Raises InputError without any."""
    outermost = [
        (axis, end)
        for axis in AXES
        if len(getattr(grid, axis)) >= LEAST_STEPS
        for end in ("lowest", "highest")
        if getattr(grid, axis)[_position((axis, end))] != getattr(base, axis)
    ]
    if not outermost:
        raise InputError(
            f"'{table}': no axis has {LEAST_STEPS} steps, so none can be left out and gone on to"
        )
    return outermost


def _position(edge: Edge) -> int:
    return 0 if edge[1] == "lowest" else -1


def _label(edge: Edge) -> str:
    """Return an edge as a key of JSON."""
    return " ".join(edge)


def _mean(kernels: Rows, name: str, figure: str) -> float:
    return float(np.mean([row[figure][name] for row in kernels]))


def without_edge(data: Measurements, edge: Edge) -> Measurements:
    """Return the measurements without the outermost step of an axis."""
    axis, _ = edge
    return data.at_steps(axis, slice(1, None) if _position(edge) == 0 else slice(None, -1))


def on_edge(grid: ConfigGrid, edge: Edge) -> Mask:
    """Return which configurations are of the outermost step of an axis, (C, E, M)."""
    settings = np.reshape(grid.settings()[edge[0]], grid.shape)
    return np.asarray(settings == getattr(grid, edge[0])[_position(edge)])


def part_errors(part: Part, data: Measurements) -> Rows:
    """Return errors and coverage [%] of each held-out kernel, inside and at the edge.

    `error` and, where there are intervals, `covered` are means by name: 'inside' and the edge's
    label. A part without an edge is trained on everything and has all edges' labels. Raises
    InputError.
    """
    [base] = part.bases
    trained = data if part.edge is None else without_edge(data, part.edge)
    of_edges = [part.edge] if part.edge else edges(part.table, data.grid, base)
    masks = {_label(edge): on_edge(data.grid, edge) for edge in of_edges}
    if part.edge:
        masks[INSIDE] = ~masks[_label(part.edge)]
    at = data.grid.index(base)
    targets = {
        name: without_base(mask[None].astype(float), at)[0] > 0 for name, mask in masks.items()
    }
    rows = []
    for fold in cross_validate(
        data,
        part.bases,
        part.folds(data),
        part.predictors,
        [(trained, base)],
        coverage=COVERAGE,
    ):
        covered = fold.covered
        for k, kernel in enumerate(fold.held_out.kernels):
            rows.append(
                {
                    "kernel": kernel,
                    "application": fold.held_out.applications[k],
                    "error": {n: float(fold.errors[k][own].mean()) for n, own in targets.items()},
                    "covered": None
                    if covered is None
                    else {n: float(covered[k][own].mean()) for n, own in targets.items()},
                }
            )
    return rows
