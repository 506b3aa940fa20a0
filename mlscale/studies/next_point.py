"""How the error falls with further measured points that the predictor itself asks for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from mlscale.arrays import Floats, Mask
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import MeasuredPoint, Profiles
from mlscale.data.surfaces import absolute_percentage_error
from mlscale.errors import InputError
from mlscale.predictions import COVERAGE
from mlscale.predictors.base import GivesIntervals, UsesMeasuredPoints, predict_surfaces
from mlscale.predictors.bottleneck.estimator import Bottleneck
from mlscale.studies.base import Part, Row, Rows, Study, grouped, measured_quantities
from mlscale.studies.candidates import AnyPredictor, Candidate, own_failures, single_candidate
from mlscale.studies.crossval import cross_validate
from mlscale.studies.splits import folds
from mlscale.studies.statistics import error_over, split_error, summarise

_OF_CHOICES = ("table", "quantity", "seed", "application", "kernel")


@dataclass(frozen=True, eq=False, kw_only=True)
class NextPointStudy(Study):
    """Each part is one fold of one table: its kernels are predicted with 0 to `points` points.

    predictors: one that gives intervals and makes use of measured points; by default `bottleneck`.
    """

    predictors: Sequence[AnyPredictor] = ()
    quantity: str | Sequence[str] = ()
    points: int = 3

    @cached_property
    def candidate(self) -> Candidate:
        """Return the predictor. Raises InputError on several, and on one that does not suit."""
        if len(self.predictors) > 1:
            raise InputError(f"the study '{self.name}' takes one predictor")
        asked = self.predictors[0] if self.predictors else Bottleneck.name
        tables = {name: (data, self.base_of(name)) for name, data in self.tables.items()}
        candidate = single_candidate(asked, tables)
        able = isinstance(candidate.predictor, UsesMeasuredPoints)
        if not (able and isinstance(candidate.predictor, GivesIntervals)):
            raise InputError(f"'{candidate.name}' makes nothing of further measured points")
        return candidate

    @property
    def settings(self) -> Row:
        """Return the predictor."""
        return {"predictor": self.candidate.name}

    @cached_property
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError where predictor or points do not suit a table."""
        candidate = self.candidate
        for table, data in self.tables.items():
            if candidate.predictor and not candidate.predictor.applies_to(data):
                raise InputError(f"'{candidate.name}' does not apply to '{table}'")
            if self.points > data.grid.size - 2:
                raise InputError(
                    f"'{table}': the grid has {data.grid.size} configurations; {self.points} "
                    "points and the base leave none to predict"
                )
        return [
            Part(table, candidate, self.split, seed, quantity, None, (self.base_of(table),), fold)
            for table, data in self.tables.items()
            for quantity in measured_quantities(data, self.quantity)
            if candidate.predicts(quantity)
            for seed in self.seeds_of(candidate)
            for fold in range(len(folds(self.split, data.applications, seed)))
        ]

    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return `part_errors` and the arguments of each part."""
        return part_errors, [(part, self.tables[part.table], self.points) for part in self.parts]

    def rows(self, results: Sequence[Any]) -> Rows:
        """Return one row of figures for each table, quantity and number of points."""
        by_case = grouped(self.kernel_rows(results), "table", "quantity")
        rows = []
        for (table, quantity), kernels in by_case.items():
            names, applications, seeds = (
                [kernel[key] for kernel in kernels] for key in ("kernel", "application", "seed")
            )
            for points in range(self.points + 1):
                errors = np.array([kernel["errors"][points] for kernel in kernels])
                covered = [kernel["covered"][points] for kernel in kernels]
                rows.append(
                    {
                        "table": table,
                        "base": self.base_of(table).as_dict(),
                        "quantity": quantity,
                        "points": points,
                        "n_kernels": len(set(names)),
                        **vars(summarise(errors, names)),
                        "standard_error": split_error(
                            errors.mean(axis=1).tolist(), applications, seeds, self.split
                        ),
                        "standard_error_over": error_over(self.split),
                        "coverage": None if None in covered else float(np.mean(covered)),
                    }
                )
        return rows

    def files(self, results: Sequence[Any]) -> dict[str, Rows]:
        """next-profile: the rows; chosen: what was chosen for each kernel, and its errors."""
        choices = [
            {
                **{key: kernel[key] for key in _OF_CHOICES},
                "points": points,
                "chosen": kernel["chosen"][points - 1] if points else "",
                "mape": float(np.mean(errors)),
            }
            for kernel in self.kernel_rows(results)
            for points, errors in enumerate(kernel["errors"])
        ]
        return {**super().files(results), "chosen": choices}


def part_errors(part: Part, data: Measurements, points: int) -> Rows:
    """Return what `kernel_errors` gives for each held-out kernel of a fold."""
    return [
        kernel_errors(fold.predictor, fold.held_out.select([k]), fold.surfaces.base, points)
        for fold in cross_validate(data, part.bases, part.folds(data), part.predictors)
        for k in range(len(fold.held_out.kernels))
    ]


def kernel_errors(
    predictor: Any, kernel: Measurements, base: HardwareConfig, points: int
) -> dict[str, Any]:
    """One held-out kernel with 0 to `points` further points, each chosen by the predictor.

    predictor: one that gives intervals and uses measured points. Gives `kernel`, `application`,
    `chosen`, and by points `errors` [%] (points + 1, targets) at every configuration but the base
    and all the chosen ones, and `covered` [%], the share of those in the 90 % interval, None
    without intervals.
    """
    configs, profiles = list(kernel.grid), kernel.profiles(base)
    at_base = configs.index(base)
    measured = kernel.relative(predictor.quantity, base)
    predicted: list[Floats] = []
    inside: list[Mask] = []
    points_at: list[int] = []
    for further in range(points + 1):
        with own_failures(predictor, "predict_interval", kernel.device):
            surfaces = predict_surfaces(predictor, profiles, coverage=COVERAGE)
        predicted.append(surfaces.values.ravel())
        if (held := surfaces.holds(measured)) is not None:
            inside.append(held.ravel())
        if further < points:
            with own_failures(predictor, "widths_ahead", kernel.device):
                _, [ahead] = predictor.widths_ahead(profiles, COVERAGE)
            order = np.argsort(ahead, kind="stable").tolist()
            points_at.append(next(n for n in order if n not in (at_base, *points_at)))
            profiles = _with_point(profiles, kernel, configs[points_at[-1]])
    targets = np.delete(np.arange(len(configs)), [at_base, *points_at])
    errors = absolute_percentage_error(np.array(predicted), measured.ravel())[:, targets]
    covered = 100 * np.array(inside)[:, targets].mean(axis=1) if inside else [None] * len(errors)
    return {
        "kernel": kernel.kernels[0],
        "application": kernel.applications[0],
        "chosen": [str(configs[number]) for number in points_at],
        "errors": errors.tolist(),
        "covered": list(covered),
    }


def _with_point(profiles: Profiles, kernel: Measurements, config: HardwareConfig) -> Profiles:
    """Return the profiles with what was measured at one configuration more."""
    there = kernel.profiles(config)
    return replace(
        profiles, points=(*profiles.points, MeasuredPoint(config, there.time_ms, there.power_w))
    )
