"""What a study trains on: the table itself, all tables at once, or those of other GPUs."""

from collections.abc import Sequence
from typing import Literal, get_args

from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.predictors import Predictor
from mlscale.predictors.base import fit_all, for_other_gpus
from mlscale.studies.splits import Fold

Training = Literal["own-table", "pooled", "unseen-gpu"]
Based = tuple[Measurements, HardwareConfig]

TRAININGS: tuple[str, ...] = get_args(Training)


def training_tables(training: str, target: Based, tables: Sequence[Based]) -> list[Based]:
    """The tables that predictors of the target train on, before anything is held out.

    pooled: all, the target first. unseen-gpu: those of other devices. Raises InputError where
    too few are left.
    """
    if training == "own-table":
        return [target]
    if training == "pooled":
        if len(tables) < 2:
            raise InputError("training on several GPUs at once needs two tables at least")
        return [target, *(table for table in tables if table is not target)]
    others = [table for table in tables if table[0].device != target[0].device]
    if not others:
        raise InputError(f"no table is of another GPU than '{target[0].device}' to train on")
    return others


def without_applications(tables: Sequence[Based], held_out: set[str]) -> list[Based]:
    """The tables without the kernels of those applications; what is then empty is left out."""
    left = []
    for table, base in tables:
        kept = [k for k, name in enumerate(table.applications) if name not in held_out]
        if kept:
            left.append((table.select(kept), base))
    return left


def fit_folds(
    models: Sequence[Predictor],
    split: Sequence[Fold],
    target: Based,
    tables: Sequence[Based],
    unseen: bool,
) -> None:
    """Fit a model for each fold on the tables without the applications that the fold holds out.

    Held out they are on every GPU. unseen: the models then learn the peaks of the target's GPU
    from the base profiles of its other kernels. Raises InputError.
    """
    data, base = target
    jobs = []
    for model, (_, test) in zip(models, split, strict=True):
        kept = without_applications(tables, {data.applications[k] for k in test})
        one = len(tables) == 1
        jobs.append(
            (model, kept[0][0], kept[0][1])
            if one and kept
            else (model, [table for table, _ in kept], [at for _, at in kept])
        )
    fit_all(jobs)
    if unseen:
        for model, (train, _) in zip(models, split, strict=True):
            for_other_gpus(model).learn_peaks(data.select(train).profiles(base), data.grid)
