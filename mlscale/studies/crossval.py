"""What every study is: parts that can be done apart, and rows of figures that sum them up.

Long work in units: on processes or a Dask cluster, kept as it is done, taken up again.

The one cross-validation of all studies: what is held out is predicted from everything else.

Everything random and everything chosen is fitted anew inside each fold. `folds` says who is held
out; a training, such as `own`, says what is learnt from instead.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES, require_quantity
from mlscale.errors import InputError
from mlscale.predictors.base import Predictor
from mlscale.predictors.wu import DEFAULT_CLUSTERS
from mlscale.progress import Progress
from mlscale.studies.candidates import AnyPredictor, Candidate

if TYPE_CHECKING:
    from distributed import Client

import asyncio
import hashlib
import json
import logging
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Generator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING

from mlscale import __version__
from mlscale.data.devices import Device, register_device, registered_devices
from mlscale.errors import DataWarning
from mlscale.model.model import Model

if TYPE_CHECKING:
    from distributed import Client

from functools import cache
from typing import Literal, get_args

from numpy.typing import NDArray

from mlscale.arrays import Floats, Indices
from mlscale.data.surfaces import Surfaces, absolute_percentage_error, absolute_values, without_base
from mlscale.errors import warn
from mlscale.predictors.base import Bases, Training, for_other_gpus, predict_surfaces
from mlscale.studies.candidates import Oracle, own_failures
from mlscale.text import counted

Fold = tuple[Indices, Indices]
Row = dict[str, Any]
Rows = list[Row]
Tables = dict[str, Measurements]


@dataclass(frozen=True)
class Part:
    """One candidate, cross-validated with one seed on one table: what is done or resumed whole.

    split: None where all kernels are tested, and other tables learnt from. base: where the kernels
    are profiled. quantity: None where the study needs all. clusters: None for a candidate that has
    none.
    """

    table: str
    candidate: Candidate
    split: str | None
    seed: int
    base: HardwareConfig
    quantity: str | None = None
    clusters: int | str | None = None

    def folds(self, data: Measurements) -> list[Fold]:
        """Return the folds. Raises InputError where the table has too few applications."""
        if self.split is None:
            return [(np.arange(0), np.arange(len(data.kernels)))]
        return folds(self.split, data.applications, self.seed)

    def predictors(self, quantities: Sequence[str] = (), **parameters: Any) -> list[Predictor]:
        """Make a new predictor of each quantity, by default of the part's own.

        parameters: hyper-parameters beside quantity, clusters and seed.
        """
        shared = {"clusters": self.clusters, "seed": self.seed, **parameters}
        return [
            self.candidate.create(quantity=quantity, **shared)
            for quantity in quantities or (self.quantity,)
        ]


@dataclass(frozen=True, eq=False, kw_only=True)
class Study(ABC):
    """A study of predictors on some tables; its fields are its options.

    predictors: objects, classes or names; each study says what it takes without any. features:
    kinds of them; without any, the kind that suits a table best. clusters: of those of clusters
    that do not set their own; by default DEFAULT_CLUSTERS, or the number of training kernels if
    that is smaller. base: where the kernels are profiled: a configuration, its index, or a text
    such as 'mid'. split: who is held out; see `folds`. seeds: with how many seeds each part is
    repeated that a random number enters; None for RANDOM_SPLITS where the split is random, else
    SEEDS.
    """

    name: ClassVar[str]  # of the command

    tables: Tables
    predictors: Sequence[AnyPredictor] = ()
    features: Sequence[str] = ()
    clusters: int | str | None = None
    base: Any = "mid"
    split: str = "leave-one-application-out"
    seeds: int | None = None

    def __post_init__(self) -> None:
        """Take the tables `in_order`. Raise InputError where there is nothing to predict."""
        in_order = {table: data.in_order for table, data in self.tables.items()}
        object.__setattr__(self, "tables", in_order)
        for table, data in self.tables.items():
            if data.grid.size < 2:
                raise InputError(f"'{table}' has one configuration; a study needs two at least")

    @cached_property
    @abstractmethod
    def parts(self) -> list[Part]:
        """Return all parts. Raises InputError where options do not suit each other or a table."""

    @property
    def settings(self) -> Row:
        """Return what the document says of the study beside its rows, as JSON values."""
        return {"clusters": self.clusters or DEFAULT_CLUSTERS}

    @abstractmethod
    def calls(self) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
        """Return a function that gives JSON values, and for each part its arguments."""

    @abstractmethod
    def rows(self, results: Sequence[Any]) -> Rows:
        """Return the figures, as JSON values, of the parts' results: docs/file-formats.md."""

    @abstractmethod
    def files(self, results: Sequence[Any]) -> dict[str, Rows]:
        """Return the tables to write, by the name of their file: rows of plain values."""

    @property
    def seed_count(self) -> int:
        """Return the number of seeds, by default what suits the split."""
        return self.seeds or (RANDOM_SPLITS if is_random(self.split) else SEEDS)

    @property
    def protocol(self) -> str:
        """Return who is held out, as documents say it."""
        return self.split

    @property
    def sources(self) -> Tables:
        """Return all measurements that the figures depend on, by name."""
        return self.tables

    def base_of(self, table: str) -> HardwareConfig:
        """Return the base on the grid of a table. Raises InputError."""
        return self.tables[table].grid.config(self.base)

    def seeds_of(self, candidate: Candidate) -> range:
        """Return the seeds to repeat with: the first alone where no random number enters."""
        random = is_random(self.split) or "seed" in candidate.parameters
        return range(self.seed_count if random else 1)

    def clusters_of(self, candidate: Candidate) -> int | str | None:
        """Return the number to set; None for a candidate without clusters, or to leave its own."""
        return self.clusters if "clusters" in candidate.parameters else None

    def run(
        self, jobs: int = 1, progress: Progress | None = None, client: "Client | None" = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield number and result of each part as they come; see sweep. Raises InputError."""
        work, calls = self.calls()
        return sweep(work, calls, jobs, progress, client)

    def results(self, jobs: int = 1) -> list[Any]:
        """Return the result of each part, in their order. Raises InputError."""
        return [result for _, result in sorted(self.run(jobs), key=itemgetter(0))]

    def document(self, results: Sequence[Any]) -> Row:
        """Return everything as JSON values: docs/file-formats.md."""
        head = {"study": self.name, "tables": list(self.tables), "protocol": self.protocol}
        return {**head, **self.settings, "rows": self.rows(results)}

    def fingerprint(self) -> str:
        """Return a digest of the measurements, the options, the predictors, and the version."""
        options = [f.name for f in fields(self) if f.name not in ("tables", "predictors")]
        asked = {
            "study": self.name,
            "options": {name: repr(getattr(self, name)) for name in options},
            "parts": [repr(part) for part in self.parts],
            "candidates": {repr(p.candidate): p.candidate.description for p in self.parts},
        }
        return fingerprint(self.sources, asked)


def measured_quantities(data: Measurements, asked: str | Sequence[str]) -> list[str]:
    """The quantities to study: those that are asked for, or all, if they were measured.

    Raises InputError on a quantity that does not exist.
    """
    if isinstance(asked, str) or not isinstance(asked, Iterable):
        asked = [asked]
    names = list(dict.fromkeys(asked)) or list(QUANTITIES)
    for name in names:
        require_quantity(name)
    return [name for name in names if name == "time" or data.power_samples is not None]


def flat(row: Row) -> Row:
    """Return the row with its base, if it has one, as columns of their own instead of a dict."""
    return {key: value for key, value in {**row.get("base", {}), **row}.items() if key != "base"}


def grouped(rows: Sequence[Row], *keys: str) -> dict[tuple[Any, ...], Rows]:
    """Return the rows by the values of some keys, in the order in which these come first."""
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups


_LARGE = (Measurements, Model)  # are sent to each worker once
_LONGEST_END_S = 5.0  # of a thread with nothing left to do
SECONDS_TO_CONNECT = 5.0  # to a Dask scheduler
SECONDS_BETWEEN_LOOKS = 1.0  # of a worker, whether its parent is alive


def fingerprint(tables: dict[str, Measurements], asked: dict[str, Any]) -> str:
    """Return a digest of measurements, of what was asked of them (JSON), and of the version."""
    digest = hashlib.sha256(json.dumps([__version__, asked], sort_keys=True).encode())
    for name, data in tables.items():
        names = [name, data.device, data.kernels, data.applications, data.counter_names]
        rest = [data.aggregate, str(data.grid), data.metadata]
        digest.update(json.dumps([*names, *rest], sort_keys=True).encode())
        for array in (data.time_samples, data.power_samples, data.counter_samples):
            digest.update(b"" if array is None else array.tobytes())
    return digest.hexdigest()


def sweep(
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    jobs: int = 1,
    progress: Progress | None = None,
    client: "Client | None" = None,
) -> Iterator[tuple[int, Any]]:
    """Make every call that is not kept yet; yields number and result as they come, kept ones first.

    calls: the arguments of each call of `work`, which gives a JSON value. On that many processes,
    or on the Dask cluster of the client.
    """
    done = dict(progress.done) if progress else {}
    yield from done.items()
    left = [number for number in range(len(calls)) if number not in done]
    with closing(_results(work, calls, left, jobs, client)) as results:
        for number, result in results:
            if progress:
                progress.add(number, result)
            yield number, result


def _results(
    work: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    left: Sequence[int],
    jobs: int,
    client: "Client | None",
) -> Generator[tuple[int, Any], None, None]:
    if client is None and min(jobs, len(left)) < 2:
        yield from ((number, work(*calls[number])) for number in left)
        return
    import joblib

    backend: AbstractContextManager[Any] = joblib.parallel_config(
        "loky", initializer=_end_with, initargs=(os.getpid(),)
    )
    if client is not None:
        large = {id(a): a for call in calls for a in call if isinstance(a, _LARGE)}
        backend = joblib.parallel_config("dask", client=client, scatter=list(large.values()))
        jobs = -1
    # A worker that grew is replaced, and joblib says so from a thread of its own; nothing is lost.
    warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
    with backend, _deaf_to_interrupts():
        parallel = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        devices = registered_devices()
        results = parallel(joblib.delayed(_numbered)(devices, work, n, *calls[n]) for n in left)
    try:
        for number, result, said in results:
            for message, category in said:
                warnings.warn(message, category, stacklevel=2)
            yield number, result
    except BaseException:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib says that what was begun is given up
            results.close()
        _await_feeders()
        raise


def _await_feeders() -> None:
    """Wait until the threads that fed workers have ended, when these were stopped in their work.

    The last of it is to free a semaphore. loky leaves them behind; where the interpreter ends first
    it stops one in the midst of that, and loky's resource tracker complains of a leak.
    """
    for thread in threading.enumerate():
        if thread.name == "QueueFeederThread":
            thread.join(_LONGEST_END_S)


def _end_with(parent: int) -> None:
    """Let this worker end soon after the process that started it, however that one ended."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes started in the block leave Ctrl-C to this one, which ends them in good order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _numbered(
    devices: Sequence[Device], work: Callable[..., Any], number: int, *call: Any
) -> tuple[int, Any, list[tuple[str, type[Warning]]]]:
    """Make a call in a process that does not know the user's own devices yet.

    What it warns of comes back with its result, to be shown by the process that asked.
    """
    for device in devices:
        register_device(device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        result = work(*call)
    return number, result, [(str(warning.message), warning.category) for warning in caught]


@contextmanager
def connected(address: str) -> Iterator["Client"]:
    """A client of the scheduler at the address, such as tcp://scheduler:8786.

    Raises InputError when nothing listens there, at once, when what listens there does not answer
    as a scheduler within SECONDS_TO_CONNECT, when there is no worker, and when the cluster is
    lost on the way.
    """
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ImportError:
        raise InputError(
            "--dask needs dask and distributed; install them with: pip install 'mlscale[dask]'"
        ) from None
    try:
        listening = get_address_host_port(address, strict=True)
    except (ValueError, TypeError, RuntimeError):  # the last for inproc:// addresses
        raise InputError(
            f"'{address}' is not the address of a scheduler; write it as tcp://HOST:8786"
        ) from None
    for name in ("distributed.client", "distributed.comm"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # told in one line below
    try:
        socket.create_connection(listening, SECONDS_TO_CONNECT).close()
        asyncio.run(_require_scheduler(address))
        client = Client(address, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except Exception as error:  # what a listener that is not Dask sends may fail in any way
        reason = (
            getattr(error, "strerror", None) or "what listens there is not Dask, or stands still"
        )
        if address.startswith("tls:"):
            reason += "; tls:// needs the certificates in Dask's own configuration"
        raise InputError(
            f"no Dask scheduler answers at {address} ({reason}); start one with: dask scheduler"
        ) from None
    with client:
        if not client.ncores():
            raise InputError(
                f"the scheduler at {address} has no worker; start one with: dask worker {address}"
            )
        try:
            yield client
        except Exception as error:
            if not type(error).__module__.startswith("distributed"):
                raise
            raise InputError(
                f"the Dask cluster at {address} lost all its workers or its scheduler "
                f"({type(error).__name__}); with -o DIR what is done is kept: go on with --resume"
            ) from None


async def _require_scheduler(address: str) -> None:
    """Raise an error of some kind unless a scheduler says its name in time.

    A client does not do so by itself: it waits without end for the first word.
    """
    from distributed.core import rpc
    from distributed.security import Security

    security = Security().get_connection_args("client")
    async with asyncio.timeout(SECONDS_TO_CONNECT), rpc(address, connection_args=security) as told:
        identity = await told.identity()
    if identity["type"] != "Scheduler":
        raise ValueError(identity["type"])


Split = Literal["leave-one-application-out", "k-fold", "holdout", "random-kernels"]

SPLITS: tuple[str, ...] = get_args(Split)
FOLDS = 5
RANDOM_KERNELS = "random-kernels"
HELD_OUT_SHARE = 0.2
RANDOM_SPLITS = 12  # to repeat with by default: three say little of their mean
SEEDS = 3  # by default where the folds are not random, but a predictor may be
_OUTER_SEED = 20_150_207  # keeps the splits' random numbers apart from the predictors' seeds

ProfiledTable = tuple[Measurements, HardwareConfig]
Learnt = list[tuple[ProfiledTable, Indices]]  # tables, and which of their kernels
TrainingRule = Callable[[ProfiledTable, Fold, Sequence[ProfiledTable]], Learnt]

TRAIN, TEST = 0, 1  # the places in a fold


def folds(split: str, applications: tuple[str, ...], seed: int) -> list[Fold]:
    """Positions of training and held-out kernels, for each fold.

    k-fold: 5 folds of the applications; holdout: 20 % of the applications once; random-kernels:
    20 % of the kernels once, as Wu et al. hold them out, whatever application they are of.
    Raises InputError where there are too few applications, or kernels.
    """
    grouped = split != RANDOM_KERNELS
    count = len(set(applications) if grouped else applications)
    needed = FOLDS if split == "k-fold" else 2
    if count < needed:
        what = "applications" if grouped else "kernels"
        raise InputError(f"the protocol '{split}' needs {needed} {what}, not {count}")
    match split:
        case "leave-one-application-out":
            # Not scikit-learn's LeaveOneGroupOut: its import takes longer than many a study.
            own = np.array(applications)
            return [(np.flatnonzero(own != a), np.flatnonzero(own == a)) for a in np.unique(own)]
        case "k-fold":
            return grouped_folds(np.array(applications), FOLDS, _OUTER_SEED + seed)
        case "holdout" | "random-kernels":
            return [_random_fold(applications, grouped, _OUTER_SEED + seed)]
        case _:
            raise InputError(f"there is no protocol '{split}'; one of {', '.join(SPLITS)}")


def _random_fold(applications: tuple[str, ...], grouped: bool, seed: int) -> Fold:
    """Return one fold with a share of the applications held out, or of the kernels."""
    from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit

    kind, groups = (GroupShuffleSplit, applications) if grouped else (ShuffleSplit, None)
    splitter = kind(1, test_size=HELD_OUT_SHARE, random_state=seed)
    fold: Fold = next(splitter.split(np.zeros(len(applications)), groups=groups))
    return fold


def grouped_folds(groups: NDArray[Any], count: int, seed: int) -> list[Fold]:
    """That many folds, drawn at random; groups (K,): kernels of one group are held out together."""
    from sklearn.model_selection import GroupKFold

    splitter = GroupKFold(count, shuffle=True, random_state=seed)
    return list(splitter.split(np.zeros(len(groups)), groups=groups))


def is_partial(split: str) -> bool:
    """Whether each seed holds out some kernels alone, so that a mean depends on which."""
    return split in ("holdout", RANDOM_KERNELS)


def is_random(split: str) -> bool:
    """Whether the folds depend on the seed."""
    return split != "leave-one-application-out"


def own(target: ProfiledTable, fold: Fold, _: Sequence[ProfiledTable] = ()) -> Learnt:
    """Learn from the target itself, without what is held out."""
    return [(target, fold[TRAIN])]


def pooled(target: ProfiledTable, fold: Fold, tables: Sequence[ProfiledTable]) -> Learnt:
    """Learn from all tables, without the applications that are held out of the target.

    The target comes first if it is among them, then those like it; a table of which nothing is left
    is left out.
    """
    tested = {target[0].applications[k] for k in fold[TEST]}
    in_turn = sorted(tables, key=lambda one: (one[0] is not target[0], not alike(one, target)))
    learnt = []
    for table in in_turn:
        kernels = [k for k, name in enumerate(table[0].applications) if name not in tested]
        if kernels:
            learnt.append((table, np.array(kernels)))
    return learnt


def unseen(target: ProfiledTable, fold: Fold, tables: Sequence[ProfiledTable]) -> Learnt:
    """Learn from the tables of other GPUs alone, without the applications that are held out."""
    return pooled(target, fold, [one for one in tables if one[0].device != target[0].device])


def alike(one: ProfiledTable, other: ProfiledTable) -> bool:
    """Whether two tables are of one GPU, grid and base."""
    return (one[0].device, one[0].grid, one[1]) == (other[0].device, other[0].grid, other[1])


def is_elsewhere(target: ProfiledTable, learnt: Learnt) -> bool:
    """Whether nothing that is learnt from is of the target's GPU, grid and base."""
    return not any(alike(table, target) for table, _ in learnt)


@dataclass(frozen=True, eq=False)
class FoldPrediction:
    """The predicted surfaces of one fold's held-out kernels, beside what was measured.

    train_seconds: of this fold's predictor, as its share of all that were fitted together;
    predict_seconds: of all these kernels.
    """

    predictor: Predictor
    held_out: Measurements
    surfaces: Surfaces
    train_seconds: float
    predict_seconds: float

    @cached_property
    def measured(self) -> Floats:
        """Return the measured surfaces, relative to the base (K, C, E, M)."""
        return self.held_out.relative(self.predictor.quantity, self.surfaces.base)

    @property
    def predicted(self) -> Floats:
        """Return the predicted quantity in its unit, (K, C, E, M) [ms] or [W]."""
        return self.in_units(self.surfaces.values)

    def in_units(self, factors: Floats) -> Floats:
        """Return factors of these kernels, such as an end of the intervals, in [ms] or [W]."""
        profiles = self.held_out.profiles(self.surfaces.base)
        return absolute_values(factors, profiles.quantity(self.predictor.quantity))

    @property
    def errors(self) -> Floats:
        """Return the absolute errors at every configuration but the base, (K, targets) [%]."""
        errors = absolute_percentage_error(self.surfaces.values, self.measured)
        return without_base(errors, self.held_out.grid.index(self.surfaces.base))

    @property
    def covered(self) -> Floats | None:
        """100 where an interval holds the truth, else 0, (K, targets) [%]; None without intervals.

        Its mean is the coverage.
        """
        inside = self.surfaces.holds(self.measured)
        if inside is None:
            return None
        percent = np.where(inside, 100.0, 0.0)
        return without_base(percent, self.held_out.grid.index(self.surfaces.base))


def cross_validate(
    data: Measurements,
    bases: Sequence[HardwareConfig],
    folds: Sequence[Fold],
    make: Callable[[], Sequence[Predictor]],
    training: TrainingRule = own,
    tables: Sequence[ProfiledTable] = (),
    coverage: float | None = None,
) -> Iterator[FoldPrediction]:
    """Predict the held-out kernels of each fold, and within a fold from each base.

    make: gives new predictors, one of each quantity that is wanted; those of all folds, bases and
    quantities are fitted as one batch where they can be. training: what they learn from, of these
    tables. Where none is of the GPU, grid and base of `data`, the predictors learn its peaks
    from the base profiles of the other kernels, if there are any. coverage: of the intervals; None
    for none. Raises InputError where something cannot be fitted or predicted.
    """
    cases = [
        (n, base, predictor) for n in range(len(folds)) for base in bases for predictor in make()
    ]
    learnt = {
        (n, base): training((data, base), fold, tables)
        for n, fold in enumerate(folds)
        for base in bases
    }
    selected: dict[tuple[int, int], Measurements] = {}  # by fold and table: it is a copy

    def select(fold: int, table: Measurements, kernels: Indices) -> Measurements:
        if (fold, id(table)) not in selected:
            selected[fold, id(table)] = table.select(kernels)
        return selected[fold, id(table)]

    started = time.perf_counter()
    jobs: list[tuple[Predictor, Training, Bases]] = []
    for n, base, predictor in cases:
        own_tables = [
            (select(n, table, kernels), own_base) for (table, own_base), kernels in learnt[n, base]
        ]
        jobs.append((predictor, *_as_training(own_tables)))
    with own_failures(cases[0][2], "fit", data.device):
        type(cases[0][2]).fit_together(jobs)
    elsewhere = {key: is_elsewhere((data, key[1]), tables) for key, tables in learnt.items()}
    for n, base, predictor in cases:
        if elsewhere[n, base] and len(folds[n][TRAIN]):
            others = data.select(folds[n][TRAIN]).profiles(base)
            with own_failures(predictor, "learn_peaks", data.device):
                for_other_gpus(predictor).learn_peaks(others, data.grid)
    train_seconds = (time.perf_counter() - started) / len(cases)
    held_out = cache(lambda n: data.select(folds[n][TEST]))  # a fold has many bases
    for n, base, predictor in cases:
        started = time.perf_counter()
        surfaces = _predicted(predictor, held_out(n), base, elsewhere[n, base], coverage)
        predict_seconds = time.perf_counter() - started
        yield FoldPrediction(predictor, held_out(n), surfaces, train_seconds, predict_seconds)


def _as_training(tables: Sequence[ProfiledTable]) -> tuple[Training, Bases]:
    """One table as it is, of which every predictor learns; several as lists."""
    if len(tables) == 1:
        return tables[0]
    return [table for table, _ in tables], [base for _, base in tables]


def _predicted(
    predictor: Predictor,
    held_out: Measurements,
    base: HardwareConfig,
    elsewhere: bool,
    coverage: float | None,
) -> Surfaces:
    """The surfaces of held-out kernels; elsewhere: nothing was learnt on their GPU and grid."""
    if isinstance(predictor, Oracle):
        return predictor.predict_measured(held_out)
    profiles, grid = held_out.profiles(base), held_out.grid if elsewhere else None
    with own_failures(predictor, "predict", held_out.device):
        return predict_surfaces(predictor, profiles, grid, coverage)


def warn_of_tested_kernels(name: str, tested: Measurements, learnt: Learnt) -> None:
    """Warn where tables to train on have kernels under test, under another application's name.

    What is tested is left out of them by its application, so that these would be trained on.
    """
    ours = {k.casefold(): a for k, a in zip(tested.kernels, tested.applications, strict=True)}
    known = [
        f"'{kernel}' of '{application}', there of '{ours[kernel.casefold()]}'"
        for (table, _), positions in learnt
        if table is not tested
        for kernel, application in ((table.kernels[k], table.applications[k]) for k in positions)
        if ours.get(kernel.casefold(), application) != application
    ]
    if known:
        warn(
            f"{counted(len(known), 'kernel')} to train on may be under test in '{name}', such as "
            f"{known[0]}: what is tested is left out of the training by its application; if it is "
            "one program, name its application alike in all tables"
        )
