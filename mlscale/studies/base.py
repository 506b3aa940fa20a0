"""What every study is: parts that can be done apart, and rows of figures that sum them up."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlscale import __version__
from mlscale.data.grid import Base, HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.errors import InputError
from mlscale.parameters import parameter
from mlscale.predictors.base import Predictor
from mlscale.predictors.features import LearnsFeatures, training_profiles
from mlscale.predictors.wu import DEFAULT_CLUSTERS
from mlscale.progress import Progress
from mlscale.studies.candidates import AnyPredictor, Candidate
from mlscale.studies.crossval import (
    FOLDS,
    K_FOLD,
    LEAVE_ONE_OUT,
    Fold,
    folds,
    is_partial,
    is_random,
)
from mlscale.studies.parallel import sweep
from mlscale.studies.statistics import paired_by
from mlscale.text import shortened

if TYPE_CHECKING:
    from distributed import Client

SEEDS = 5  # by default, where a predictor or the folds are random
PARTIAL_SPLITS = 12  # by default, of a fifth of the kernels each: five would miss a third of them

FOLDS_AT_ONCE = 100

Row = dict[str, Any]
Rows = list[Row]
Tables = dict[str, Measurements]


@dataclass(frozen=True)
class Part:
    """One candidate, cross-validated with one seed on one table: what is done or resumed whole.

    protocol: None where all kernels are tested, and other tables learnt from. base: where the
    kernels are profiled. quantity: None where the study needs all. clusters: None for a candidate
    that has none. fold_count: of k-fold. first_fold: of FOLDS_AT_ONCE; None to take all.
    """

    table: str
    candidate: Candidate
    protocol: str | None
    seed: int
    base: HardwareConfig
    quantity: str | None = None
    clusters: int | str | None = None
    fold_count: int = FOLDS
    first_fold: int | None = None

    def folds(self, data: Measurements) -> list[Fold]:
        """Return the folds. Raises InputError where the table has too few applications."""
        if self.protocol is None:
            return [(np.arange(0), np.arange(len(data.kernels)))]
        everyone = folds(self.protocol, data.applications, self.seed, self.fold_count)
        first = self.first_fold
        return everyone if first is None else everyone[first : first + FOLDS_AT_ONCE]

    def pieces(self, data: Measurements) -> list["Part"]:
        """Return it in parts of FOLDS_AT_ONCE folds: each copies tables. Raises InputError."""
        starts = range(0, len(self.folds(data)), FOLDS_AT_ONCE)
        return [replace(self, first_fold=first) for first in starts]

    def predictors(self, quantities: Sequence[str | None], **parameters: Any) -> list[Predictor]:
        """Make a new predictor of each quantity. parameters: further hyper-parameters."""
        shared = {"clusters": self.clusters, "seed": self.seed, **parameters}
        return [self.candidate.create(quantity=quantity, **shared) for quantity in quantities]


@dataclass(frozen=True, eq=False, kw_only=True)
class Study(ABC):
    """A study of predictors on some tables; its fields are its options.

    predictors: objects, classes or names; each study says what it takes without any. features:
    kinds of them; without any, the kind that suits a table best. clusters: of those of clusters
    that do not set their own; by default DEFAULT_CLUSTERS, or the number of training kernels if
    that is smaller. base: where the kernels are profiled: a configuration, its index, or a text
    such as 'mid'; by default the highest setting. protocol: what is held out; see `crossval.folds`.
    folds: how many, of k-fold.
    seeds: with how many seeds each part is repeated that a random number enters; None for
    PARTIAL_SPLITS where each holds out some kernels alone, else SEEDS.
    """

    name: ClassVar[str]  # as the command calls it

    tables: Tables
    predictors: Sequence[AnyPredictor] = ()
    features: Sequence[str] = ()
    clusters: int | str | None = None
    base: Base | None = None
    protocol: str = LEAVE_ONE_OUT
    folds: int = FOLDS
    seeds: int | None = None

    def __post_init__(self) -> None:
        """Take the tables `in_order` and `with_base`. Raise InputError on one configuration."""
        in_order = {
            table: data.with_base(self.base_on(table, data)).in_order
            for table, data in self.tables.items()
        }
        object.__setattr__(self, "tables", in_order)
        for table, data in self.tables.items():
            if data.grid.size < 2:
                raise InputError(f"'{table}' has one configuration; a study needs at least two")

    @cached_property
    @abstractmethod
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError where options do not suit each other or a table."""

    @abstractmethod
    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return a function that gives JSON values, and for each part its arguments."""

    @abstractmethod
    def rows(self, results: Sequence[Any]) -> Rows:
        """Return the figures, as JSON values, of the parts' results: docs/reference/files.md."""

    @abstractmethod
    def files(self, results: Sequence[Any]) -> dict[str, Any]:
        """Return the tables to write, by the name of their file: rows of plain values."""

    @property
    def settings(self) -> Row:
        """Return what the document says of the study beside its rows, as JSON values."""
        folds = {"folds": self.folds} if self.protocol == K_FOLD else {}
        return {"protocol": self.protocol, **folds, "clusters": self.clusters or DEFAULT_CLUSTERS}

    @property
    def sources(self) -> Tables:
        """Return all measurements that the figures depend on, by name."""
        return self.tables

    @property
    def seed_count(self) -> int:
        """Return the number of seeds, by default what suits the protocol."""
        return self.seeds or (PARTIAL_SPLITS if is_partial(self.protocol) else SEEDS)

    def seeds_of(self, candidate: Candidate) -> range:
        """Return the seeds to repeat with: the first alone where no random number enters."""
        random = is_random(self.protocol) or "seed" in candidate.parameters
        return range(self.seed_count if random else 1)

    def clusters_of(self, candidate: Candidate) -> int | str | None:
        """Return the number to set; None for a candidate without clusters, or to leave its own."""
        return self.clusters if "clusters" in candidate.parameters else None

    def base_on(self, name: str, data: Measurements) -> HardwareConfig:
        """Return the base on the grid of a table of that name. Raises InputError."""
        try:
            return data.base(self.base)
        except InputError as error:
            raise InputError(f"'{name}': {error}") from None

    def run(
        self, jobs: int = 1, progress: Progress | None = None, client: "Client | None" = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield number and result of each part as they come; see sweep. Raises InputError."""
        for part in dict.fromkeys(replace(part, quantity=None) for part in self.parts):
            has_folds = part.seed == 0 or is_random(self.protocol)  # that no other seed has
            if part.candidate.features is not None and has_folds:
                self._check_features(part)
        work, calls = self.calls()
        return sweep(work, calls, jobs, progress, client)

    def _check_features(self, part: Part) -> None:
        """Raise InputError, naming what is held out, where the others' features do not suffice."""
        data, unit = self.tables[part.table], paired_by(self.protocol)
        profiles = training_profiles(data, part.base)
        [predictor] = part.predictors([None])
        if not isinstance(predictor, LearnsFeatures) or part.protocol is None:
            return
        predictor.fit_features(profiles)
        for training, test in part.folds(data):
            try:
                predictor.fit_features(profiles.select(training))
            except InputError as error:
                names = shortened(", ".join(sorted({getattr(data, f"{unit}s")[k] for k in test})))
                larger = f", or hold out fewer at once by a larger {parameter('folds')}"
                fewer = larger * is_random(self.protocol)
                raise InputError(
                    f"'{part.table}', {unit} {names} held out: {error}; give the other kernels "
                    f"counters that do{fewer}"
                ) from None

    def results(self, jobs: int = 1) -> list[Any]:
        """Return the result of each part, in their order. Raises InputError."""
        return [result for _, result in sorted(self.run(jobs), key=itemgetter(0))]

    def document(self, results: Sequence[Any]) -> Row:
        """Return everything as JSON values: docs/reference/files.md."""
        head = {"study": self.name, "tables": list(self.tables), **self.settings}
        return {**head, "rows": self.rows(results)}

    def fingerprint(self) -> str:
        """Return a digest of the measurements, the options, the predictors, and the version."""
        apart = ("tables", "predictors", "train_on")
        options = {f.name: repr(getattr(self, f.name)) for f in fields(self) if f.name not in apart}
        parts = [[repr(part), part.candidate.description] for part in self.parts]
        digest = hashlib.sha256(json.dumps([__version__, self.name, options, parts]).encode())
        for name, data in self.sources.items():
            names = [name, data.device, data.kernels, data.applications, data.counter_names]
            rest = [data.aggregate, str(data.grid), data.metadata]
            digest.update(json.dumps([*names, *rest], sort_keys=True).encode())
            for array in (data.time_samples, data.power_samples, data.counter_samples):
                digest.update(b"" if array is None else array.tobytes())
        return digest.hexdigest()


def flat(row: Row) -> Row:
    """Return the row with its base, if it has one, as columns of their own instead of a dict."""
    return {key: value for key, value in {**row.get("base", {}), **row}.items() if key != "base"}


def grouped(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], Rows]:
    """Return the rows by the values of some keys, in the order in which these come first."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups
