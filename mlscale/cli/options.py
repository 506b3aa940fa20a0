"""What can be typed: the values that argparse reads, and the options that commands share."""

import argparse
import math
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlscale.cli.parser import Group, Parser
from mlscale.data.datasets import input_file
from mlscale.data.grid import BASE_NAMES, axis_named, parse_settings
from mlscale.errors import InputError, UsageError, warn
from mlscale.quantities import number_and_unit, quantity
from mlscale.readers.given import Given
from mlscale.readers.source import PMC_PERF, Source, check_left_out, further, source_of
from mlscale.text import shell_line

if TYPE_CHECKING:
    from mlscale.advice.answer import RunGoal
    from mlscale.advice.objectives import Limits
    from mlscale.data.measurements import Measurements
    from mlscale.predictors.base import Predictor
    from mlscale.subject import Asked

LARGEST = 2**32 - 1
LEVERS = ("clock", "cap")
LEAST_CLEAR_PERCENT = 1.5  # below it and above 1 a slowdown may be meant as a ratio


# Values: each function is an argument's `type`, and raises ArgumentTypeError.


def device_key(text: str) -> str:
    """The key of the GPU that --device names, as `key_or_name` reads it."""
    from mlscale.data.devices import key_or_name

    try:
        return key_or_name(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def predictor_name(text: str) -> str:
    """The text, if it is 'default' or names a predictor."""
    from mlscale.predictors import DEFAULT

    if text != DEFAULT:
        predictor_class(text)
    return text


def predictor_class(text: str) -> "type[Predictor]":
    """The class of a predictor, mlscale's or somebody else's."""
    from mlscale.predictors import find_predictor

    try:
        return find_predictor(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seed(text: str) -> int:
    """A seed that every library takes."""
    if not text.isdecimal() or int(text) > LARGEST:
        raise argparse.ArgumentTypeError(f"must be from 0 to {LARGEST}, not '{text}'")
    return int(text)


def whole_number(text: str) -> int:
    """A whole number of at least 1."""
    with suppress(ValueError):
        if 1 <= int(text) <= LARGEST:
            return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number, 1 or more, not '{text}'")


def cluster_count(text: str) -> int | str:
    """A number of clusters, or 'auto'."""
    return text if text == "auto" else whole_number(text)


def positive_number(text: str, unit: str = "") -> float:
    """A finite number above 0, of that unit of `mlscale.quantities`."""
    number = _number(text, unit)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be above 0 and finite, not '{text}'")
    return number


def number_from_0(text: str, unit: str = "") -> float:
    """A finite number of at least 0, of that unit of `mlscale.quantities`."""
    number = _number(text, unit)
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"must be 0 or more and finite, not '{text}'")
    return number


def _number(text: str, unit: str) -> float:
    try:
        return quantity(text, unit)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


watts, milliseconds, seconds, clock_mhz = (
    partial(positive_number, unit=unit) for unit in ("W", "ms", "s", "MHz")
)


def slowdown_percent(text: str) -> float:
    """A percentage of at least 0; a number that looks like a ratio is noted."""
    percent = number_from_0(text, "%")
    if 1 < percent < LEAST_CLEAR_PERCENT and "%" not in text:
        meant = f"{100 * (percent - 1):.6g}"
        told = f"--max-slowdown {text} is {text} %. If you meant {meant} %, give {meant}."
        warn("P06", told, "note")
    return percent


def required_level(text: str) -> str:
    """The level of sure=LEVEL, how sure an answer must be at least."""
    from mlscale.advice.sureness import LEVELS

    name, _, level = text.partition("=")
    if name != "sure" or level not in LEVELS:
        levels = ", ".join(f"sure={level}" for level in LEVELS)
        raise argparse.ArgumentTypeError(f"'{text}' is not one of {levels}")
    return level


def whole_numbers(text: str, unit: str = "") -> tuple[int, ...]:
    """Whole numbers of at least 1 that commas part, of that unit, in order."""
    return tuple(sorted({whole_number(f"{_number(part, unit):.15g}") for part in text.split(",")}))


def configuration(text: str) -> str:
    """The text, if it is 'mid', 'highest' or a configuration, which a grid completes.

    What its first setting is called, if not cu, the grid says.
    """
    if text not in BASE_NAMES:
        first = text.partition("=")[0].strip()
        settings(text, first if "=" in text and axis_named(first) is None else "cu")
    return text


def settings(text: str, cu_axis: str = "cu") -> dict[str, float]:
    """The settings of some axes or of all."""
    try:
        return parse_settings(text, cu_axis)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def mapping(text: str) -> dict[str, str]:
    """What a file calls our columns, by NAME=COLUMN[:UNIT],…; '' for none."""
    found: dict[str, str] = {}
    for part in text.split(","):
        name, equals, said = map(str.strip, part.partition("="))
        if not name or not equals:
            raise argparse.ArgumentTypeError(f"'{part}' is not NAME=COLUMN[:UNIT]")
        if name in found:
            raise argparse.ArgumentTypeError(f"'{name}' is given twice")
        found[name] = said
    return found


def rates(text: str) -> tuple[float, ...]:
    """Positive numbers that colons part."""
    return tuple(positive_number(part) for part in text.split(":"))


def names(text: str) -> tuple[str, ...]:
    """Names that commas part."""
    return tuple(name.strip() for name in text.split(","))


def command_line(words: Sequence[str]) -> str:
    """The command as it was given, the names of files without their folders."""
    shown = []
    for word in words:
        option, equals, path = word.partition("=") if word.startswith("--") else ("", "", word)
        is_in_folder = os.path.isdir(os.path.dirname(path))  # noqa: PTH112, PTH120
        name = os.path.basename(path) if is_in_folder else path  # noqa: PTH119
        shown.append(f"{option}{equals}{name}")
    return shell_line(["mlscale", *shown])


# The run that predict, advise and report are about.


def add_subject(parser: Parser) -> None:
    """Add the files of a run, the model, further runs, and what the files may not say."""
    from mlscale.model.shipped import FARTHEST

    parser.usage = "%(prog)s FILE ... [options]"
    what = "profile, trace or log of one run, as the tool wrote it; or a table"
    parser.add("file", nargs="+", type=further, metavar="FILE", help=what)
    what = (
        "the same work at another setting: log, table, or trace at CONFIG, e.g. "
        "run.sqlite@engine=1335; repeatable"
    )
    parser.add(
        "--also", action="append", type=further, default=[], metavar="FILE[@CONFIG]", help=what
    )
    what = "model file, or a shipped one (default: what fits FILE)"
    parser.add("--model", metavar="MODEL", help=what)
    add_predictor_class(parser)
    what = "leave out kernels without counters (default: predict them like the mean of others)"
    parser.add_more("--profiled-only", action="store_true", help=what)
    what = (
        f"predict up to {FARTHEST:g} times beyond the trained clocks and CU counts, with wider "
        "intervals (with 'predict', where --at asks for it)"
    )
    parser.add_more("--extrapolate", action="store_true", help=what)
    what = "predict a real GPU even with a model of simulated data"
    parser.add_more("--force", action="store_true", help=what)
    add_map(parser)
    add_facts(
        parser,
        device="its GPU, e.g. h100-sxm5 ('mlscale devices list')",
        base="what it ran at, e.g. engine=1980,memory=2619; for a table with several, which to "
        "predict from",
    )


def add_predictor_class(parser: Parser) -> None:
    """Add the class of a predictor that a model file only names."""
    what = "package.module:Class of your own predictor, if MODEL was trained with it"
    parser.add_more("--predictor", type=predictor_class, metavar="PREDICTOR", help=what)


def add_facts(parser: Parser, device: str, base: str) -> None:
    """Add what the files of a run may not say; device, base: for the help."""
    group = parser.add_argument_group("if FILE does not say")
    parser.add("--device", type=device_key, metavar="DEVICE", help=device, group=group)
    parser.add("--base", type=settings, metavar="CONFIG", help=base, group=group)
    what = "the board's power, e.g. 500W, or a log of the run"
    parser.add("--power", metavar="W|FILE", help=what, group=group)
    what = "leave out kernels whose time no file says (default: refuse the export)"
    parser.add_more("--skip-untimed", action="store_true", help=what, group=group)
    what = "index of the GPU, if the log or trace covers several"
    parser.add_more("--gpu", metavar="INDEX", help=what, group=group)
    what = "time between two samples, for a log without time stamps, e.g. 1 or 100ms"
    parser.add_more("--interval", type=seconds, metavar="SECONDS", help=what, group=group)
    what = "true time of the run in a log, in ms (default: the time that the GPU is busy)"
    parser.add_more("--time", type=milliseconds, metavar="MS", help=what, group=group)


def given(
    arguments: argparse.Namespace, application: str | None = None, each: bool = False
) -> Given:
    """What the options of `add_facts` say that files may not; application, each: see `Given`."""
    power = arguments.power
    if power is not None:
        try:
            quantity(power, "W")
        except InputError as error:
            if number_and_unit(power) and not os.path.exists(power):  # noqa: PTH110
                raise UsageError(f"--power {error}, or a log's name") from None
            power = input_file(power)
    return Given(
        device=arguments.device,
        base=arguments.base or {},
        gpu=arguments.gpu,
        application=application,
        power=power,
        interval_s=arguments.interval,
        time_ms=arguments.time,
        each=each,
        skip_untimed=arguments.skip_untimed,
    )


def asked_run(
    arguments: argparse.Namespace,
    weights: str | None = None,
    at: Sequence[str] = (),
    peaks: str | None = None,
) -> "Asked":
    """What the options of `add_subject` say. Raises UsageError.

    weights, at, peaks: of the options that not all commands have.
    """
    from mlscale.model.model import is_model_name
    from mlscale.subject import Asked

    model, files = arguments.model, arguments.file
    if is_model_name(files[0].name):
        if model:
            raise UsageError(f"{files[0]} is a model too; give --model or MODEL PROFILE, not both")
        model, files = str(files[0]), files[1:]
        if not files:
            raise UsageError(f"{model} is a model; name the profile to predict too")
    return Asked(
        files=tuple(files),
        given=given(arguments),
        model=model,
        predictor=arguments.predictor,
        also=tuple(arguments.also),
        weights=weights,
        profiled_only=arguments.profiled_only,
        extrapolate=arguments.extrapolate,
        force=arguments.force,
        at=tuple(at),
        peaks=peaks,
        columns=arguments.map,
    )


# Advice: what is to be least, within which limits, and what is to set it.


def add_goal(parser: Parser) -> None:
    """Add how often kernels run, and what is asked of advice on the run."""
    from mlscale.advice.objectives import OBJECTIVES

    add_limits(parser, "the whole run")
    what = f"{', '.join(OBJECTIVES)} (default: energy, or clock where power is not known)"
    parser.add("--minimize", choices=tuple(OBJECTIVES), metavar="WHAT", help=what)
    what = "CSV with the columns kernel and launches: how often each kernel runs"
    parser.add_more("--weights", metavar="FILE", help=what)
    what = "what the answer is to set: clocks, or a power cap (default: %(default)s)"
    parser.add_more("--lever", choices=LEVERS, default="clock", help=what)
    what = "add time and energy under these power caps (without W: over the GPU's range)"
    parser.add_more("--power-cap", nargs="*", type=watts, metavar="W", help=what)


def add_answer(parser: Parser) -> None:
    """Add how the answer is shown, and how sure it must be."""
    parser.add("--all", action="store_true", help="print all kernels, the front, readings, caps")
    what = "print commands that set and reset it; nothing is run"
    parser.add("--commands", action="store_true", help=what)
    what = "one kernel's answer and notes, by its number or a part of its name"
    parser.add_more("--kernel", metavar="N|NAME", help=what)
    what = "exit with status 3 if the answer is less sure, e.g. sure=medium"
    parser.add_more("--require", type=required_level, metavar="sure=LEVEL", help=what)


def add_limits(parser: Parser, time_of: str) -> None:
    """Add what an advised configuration must keep; time_of: such as 'the kernel'."""
    what = f"how much longer {time_of} may take, in %%"
    parser.add("--max-slowdown", type=slowdown_percent, metavar="PCT", help=what)
    what = "highest power of each kernel, e.g. 300W (default: no limit)"
    parser.add_more("--max-power", type=watts, metavar="W", help=what)
    what = f"longest time of {time_of} (all launches summed up), in ms (default: no limit)"
    parser.add_more("--max-time", type=milliseconds, metavar="MS", help=what)
    what = "the board's power without power_w, in W, if power_w is dynamic power only"
    no_load = partial(number_from_0, unit="W")
    parser.add_more("--static-power", type=no_load, metavar="W", help=what)


def read_limits(arguments: argparse.Namespace) -> "Limits":
    """The limits that were given."""
    from mlscale.advice.objectives import Limits

    return Limits(
        max_power_w=arguments.max_power,
        max_time_ms=arguments.max_time,
        max_slowdown_percent=arguments.max_slowdown,
    )


def goal(arguments: argparse.Namespace) -> "RunGoal":
    """What `add_goal` asks of advice on the run."""
    from mlscale.advice.answer import RunGoal

    return RunGoal(
        objective=arguments.minimize,
        limits=read_limits(arguments),
        static_power_w=arguments.static_power,
        lever=arguments.lever,
        caps_w=caps_asked(arguments),
    )


def caps_asked(arguments: argparse.Namespace) -> tuple[float, ...] | None:
    """The caps to predict the run under, empty for those of the GPU; None if not asked for."""
    if arguments.power_cap is None and arguments.lever != "cap":
        return None
    return tuple(arguments.power_cap or ())


# Fleets: more profiles than fit in memory.


def add_fleet(parser: Parser) -> None:
    """Add the options of work on a fleet."""
    group = parser.add_argument_group(
        "fleets: FILE is a Parquet file of any size, or a folder of them; -o DIR/"
    )
    what = "continue the unfinished fleet in -o DIR/"
    parser.add_more("--resume", action="store_true", help=what, group=group)
    what = "run on the Dask cluster of this scheduler, such as tcp://host:8786"
    parser.add_more("--dask", metavar="ADDRESS", help=what, group=group)


def is_of_fleet(arguments: argparse.Namespace) -> bool:
    """Whether FILE is a folder or -o names one by a '/' at its end."""
    last = os.fspath(arguments.file[-1])
    is_folder = os.path.isdir(last)  # noqa: PTH112, which raises on some names
    is_of_one_run = os.path.isfile(os.path.join(last, PMC_PERF))  # noqa: PTH113, PTH118
    return (is_folder and not is_of_one_run) or (arguments.output or "").endswith("/")


# Tables of measurements, and the training on them.


def predictor_names() -> str:
    """What --predictor can name, for a help text."""
    return (
        "bottleneck, max-overlap (mlscale's, of kernels), runs (of whole runs), wu, wang-chu (of "
        "papers), nearest, extra-trees (by like kernels), mean-surface, no-scaling, engine-bound, "
        "core-bound, memory-bound (simple rules), package.module:Class (yours), or default: what "
        "'train' chooses"
    )


def add_wu(parser: Parser, action: str = "store", group: Group | None = None) -> None:
    """Add features, and what only the predictor wu can be told; action, group: of --features."""
    from mlscale.counters.features import FEATURE_KINDS, WITH_POWER
    from mlscale.predictors.wu_clusters import LOSSES

    more, kinds = parser.add_more, (*FEATURE_KINDS, *(kind + WITH_POWER for kind in FEATURE_KINDS))
    what = (
        "what to compute from the counters; +power adds the power at the base (default: table2 for "
        "AMD's counters, utilisation for nvprof's on a known device, else raw)"
    )
    more("--features", action=action, choices=kinds, help=what, group=group)
    what = (
        "number of clusters in each cluster set of wu, or 'auto': chosen by cross-validation "
        "(default: 8, or the number of training kernels if smaller)"
    )
    more("--clusters", type=cluster_count, metavar="K", help=what)
    what = "the loss of wu's networks; squared: of sigmoid outputs (default: cross-entropy)"
    more("--loss", choices=LOSSES, help=what)
    what = "cluster the logarithms of wu's scaling values"
    more("--log-ratios", action="store_true", default=None, help=what)
    what = "the features that wu uses, separated by commas (default: all of the kind)"
    more("--counters", type=names, metavar="NAMES", help=what)


INCOMPLETE_HELP = (
    "if a kernel lacks configurations that others have: refuse the table, drop such kernels, "
    "drop-settings (and kernels) until it is complete, or keep it and fill in what is missing "
    "(default: %(default)s)"
)


def add_reading(parser: Parser) -> None:
    """Add how tables of measurements are read."""
    from mlscale.data.measurements import AGGREGATES, INCOMPLETE

    more = parser.add_more
    more("--incomplete", choices=INCOMPLETE, default="error", help=INCOMPLETE_HELP)
    what = "treat clocks within this many MHz of each other as one, if measured clocks jitter"
    more("--snap-clocks", type=clock_mhz, default=0.0, metavar="MHZ", help=what)
    what = "how to combine repeated measurements (default: %(default)s)"
    more("--repetitions", choices=AGGREGATES, default="median", help=what)
    add_map(parser)


def add_map(parser: Parser) -> None:
    """Add what tables call our columns."""
    what = (
        "your tables' names for mlscale's columns, with a unit if it differs, or a number for "
        "all rows: engine_mhz=sm_clock,time_ms=duration_ns:ns,cu_count=28; NAME= leaves one out"
    )
    name = "NAME=COLUMN[:UNIT],..."
    parser.add_more("--map", type=mapping, action=_Together, default={}, metavar=name, help=what)


def check_map(arguments: argparse.Namespace) -> None:
    """Raise InputError on a column to leave out that no table of the command has."""
    given = vars(arguments)
    files = [one for name in ("file", "table", "also", "train_on") for one in given.get(name) or ()]
    files += [given["peaks"]] if given.get("peaks") else []
    check_left_out([source_of(file) for file in files], arguments.map)


class _Together(argparse.Action):
    """Of an option that is given again all pairs: a hint's beside those of before."""

    def __call__(self, _: Any, namespace: argparse.Namespace, values: Any, *__: Any) -> None:
        setattr(namespace, self.dest, {**getattr(namespace, self.dest), **values})


def read_tables(arguments: argparse.Namespace, texts: Sequence[str]) -> "dict[Path, Measurements]":
    """Tables of measurements by their files. Raises InputError, also on two of one name."""
    tables: dict[Path, Measurements] = {}
    for path in map(input_file, texts):
        if path.stem in {other.stem for other in tables}:
            raise InputError(f"two tables are named '{path.stem}'; rename one")
        tables[path] = read_measurements(arguments, path)
    return tables


def read_measurements(arguments: argparse.Namespace, path: Path) -> "Measurements":
    """Read a table as the options of `add_reading` say. Raises InputError, also on an export."""
    from mlscale.data.measurements import REQUIRED, from_table

    source = Source(str(path))
    if not source.is_table(arguments.map):
        sheet = None
        with suppress(InputError):
            sheet = source.sheet
        if sheet is not None and (sheet.table is None or sheet.table.has_moments):
            raise InputError(
                f"{path}: is a file of {sheet.kind.title}, not a table; make a table of runs "
                "at each configuration: mlscale import FILE … --append -o TABLE"
                + (
                    "; two logs answer by themselves: mlscale advise LOG --also LOG"
                    if sheet.kind.is_log
                    else ""
                )
            )
    table = source.table(arguments.map, REQUIRED)
    return from_table(table, arguments.incomplete, arguments.repetitions, arguments.snap_clocks)
