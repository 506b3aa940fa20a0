"""Training on other tables than the one under test, none of whose applications they show."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from mlscale.data.grid import BASE_NAMES, Base
from mlscale.errors import InputError
from mlscale.predictors.base import PoolsGpus, PredictsOtherGpus
from mlscale.predictors.baselines import Untrained
from mlscale.studies.base import Row, Tables
from mlscale.studies.candidates import Candidate
from mlscale.studies.crossval import ProfiledTable, without_applications

TRAIN_ON = "train-on"  # the name of the protocol


@dataclass(frozen=True, eq=False)
class OtherTables:
    """What the predictors of one table, the tested one, train on.

    test, test_name: the tested table with its base, and its name. names: of all tables to train
    on. pool: these without the applications under test; one of the tested GPU and grid comes
    first. left_out: those applications.
    """

    test_name: str
    test: ProfiledTable
    names: tuple[str, ...]
    pool: tuple[ProfiledTable, ...]
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, test_name: str, test: ProfiledTable, tables: Tables, base: Base) -> Self:
        """Profile the tables at their base, and leave out what is under test.

        Raises InputError where nothing is left, and where the base is not on a table's grid.
        """
        tested = set(test[0].applications)
        pool: list[ProfiledTable] = []
        for name, data in tables.items():
            try:
                pool.append((data, data.grid.config(base)))
            except InputError as error:
                named = " and ".join(f"'{text}'" for text in BASE_NAMES)
                raise InputError(f"'{name}': {error}; {named} are on every grid") from None
        rest = without_applications(pool, tested)
        if not rest:
            raise InputError(
                f"no kernel is left to train on: '{test_name}' tests every application of "
                f"{_quoted(tables)}; --unseen-gpu and --pooled hold one out at a time"
            )
        shared = {a for data in tables.values() for a in data.applications if a in tested}
        rest.sort(key=lambda table: not _alike(table, test))
        return cls(test_name, test, tuple(tables), tuple(rest), tuple(sorted(shared)))

    @property
    def elsewhere(self) -> bool:
        """Whether no table to train on is of the tested GPU and grid."""
        return not _alike(self.pool[0], self.test)

    @property
    def quantities(self) -> tuple[str, ...]:
        """Return what can be learnt: power on the tested GPU and grid alone."""
        has_power = self.pool[0][0].power_samples is not None
        return ("time", "power") if has_power and not self.elsewhere else ("time",)

    @property
    def columns(self) -> Row:
        """Return what a row says of the training."""
        return {
            "protocol": TRAIN_ON,
            "train_on": list(self.names),
            "n_training_kernels": sum(len(data.kernels) for data, _ in self.pool),
            "left_out_of_training": list(self.left_out),
        }

    def able(self, candidates: Sequence[Candidate], asked: Sequence[str]) -> list[Candidate]:
        """The candidates that can learn from these tables and predict the tested one.

        asked: names of those that must; one that predicts its own grid alone says so itself.
        Raises InputError where one of them cannot.
        """
        able = []
        for candidate in candidates:
            refusal = self._refusal(candidate, candidate.name in asked)
            if refusal is None:
                able.append(candidate)
            elif candidate.name in asked:
                raise InputError(refusal)
        return able

    def _refusal(self, candidate: Candidate, is_asked: bool) -> str | None:
        predictor = candidate.predictor
        if len(self.pool) > 1 and not isinstance(predictor, PoolsGpus | Untrained):
            return (
                f"'{candidate.name}' learns from one table at a time, not from "
                f"{len(self.pool)}: {_quoted(self.names)}"
            )
        if not self.elsewhere or isinstance(predictor, PredictsOtherGpus):
            return None
        (data, base), (trained, trained_base) = self.test, self.pool[0]
        if trained.device != data.device:
            return (
                f"'{candidate.name}' cannot predict a GPU that it was not trained on: "
                f"'{self.test_name}' is of '{data.device}', {_quoted(self.names)} of "
                f"'{trained.device}'"
            )
        if is_asked and base == trained_base:
            return None  # it may predict between its clocks, or says itself that it cannot
        return (
            f"'{candidate.name}' predicts on the grid and from the base of its training: "
            f"{_quoted(self.names)} is at {trained_base}, '{self.test_name}' at {base}"
        )


def _alike(one: ProfiledTable, other: ProfiledTable) -> bool:
    """Whether two tables are of one GPU, grid and base."""
    return (one[0].device, one[0].grid, one[1]) == (other[0].device, other[0].grid, other[1])


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
