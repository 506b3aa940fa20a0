"""Values of options as argparse reads them: numbers, names, configurations, GPUs, predictors.

Options that several commands share, and how they are read.

Options of advice: what is to be least, within which limits, and what is to set it.
"""

import argparse
import math
from contextlib import suppress
from typing import TYPE_CHECKING

from mlscale.data.grid import BASE_NAMES, parse_settings
from mlscale.data.table import MOST
from mlscale.errors import InputError
from mlscale.text import plain_number

if TYPE_CHECKING:
    from mlscale.predictors.base import Predictor

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlscale.data import datasets
from mlscale.data.devices import known_device
from mlscale.data.grid import AXES, SHORT_NAMES, HardwareConfig
from mlscale.data.table_files import is_tidy
from mlscale.text import near_names, shortened

if TYPE_CHECKING:
    from mlscale.data.measurements import Measurements
    from mlscale.model.model import Model
    from mlscale.readers.given import Given

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlscale.advice.objectives import Limits


LARGEST_SEED = 2**32 - 1


def device_key(text: str) -> str:
    """The key of the GPU that --device names, for argparse; a name that is not known stays.

    text: a key or another name of the device table, or a device file, which is made known.
    """
    from mlscale.data.devices import find_device, load_device_file

    try:
        device = load_device_file(text) if text.endswith(".json") else find_device(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text if device is None else device.key


def known_device_key(text: str) -> str:
    """As device_key, for a GPU that must be known."""
    from mlscale.data.devices import load_device

    try:
        return load_device(device_key(text)).key
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def predictor_names() -> str:
    """Return what `--predictor` can name, for a help text."""
    from mlscale.predictors import PREDICTORS

    return (
        f"{', '.join(PREDICTORS)}, package.module:Class for one of your own, or default: what "
        "'train' takes on the table"
    )


def predictor_name(text: str) -> str:
    """Return the text if it is 'default' or the name of a predictor, for argparse."""
    from mlscale.predictors import DEFAULT

    if text != DEFAULT:
        _predictor(text)
    return text


def own_predictor(text: str) -> "type[Predictor]":
    """Return the class of a predictor that is not part of mlscale, for argparse."""
    from mlscale.predictors import PREDICTORS

    if text in PREDICTORS:
        raise argparse.ArgumentTypeError(f"'{text}' is mlscale's own, and a model file says so")
    return _predictor(text)


def _predictor(text: str) -> "type[Predictor]":
    from mlscale.predictors import find_predictor

    try:
        return find_predictor(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seed(text: str) -> int:
    """Return a seed that every library takes, for argparse."""
    if not text.isdecimal() or int(text) > LARGEST_SEED:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 0 to {LARGEST_SEED}")
    return int(text)


def whole_number(text: str) -> int:
    """Return a whole number of at least 1, for argparse."""
    with suppress(ValueError):
        if plain_number(text) > MOST:
            raise argparse.ArgumentTypeError(f"'{text[:20]}…' is more than {MOST:g}")
        if plain_number(text) >= 1:
            return int(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of at least 1")


def cluster_count(text: str) -> int | str:
    """Return a number of clusters, or 'auto', for argparse."""
    from mlscale.predictors.wu import AUTO

    return text if text == AUTO else whole_number(text)


def positive_number(text: str) -> float:
    """Return a finite number above 0, for argparse."""
    with suppress(ValueError):
        if 0 < plain_number(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a positive, finite number")


def number_from_0(text: str) -> float:
    """Return a finite number of at least 0, for argparse."""
    with suppress(ValueError):
        if 0 <= plain_number(text) < math.inf:
            return float(text)
    raise argparse.ArgumentTypeError(f"'{text}' is not a finite number of at least 0")


def configuration(text: str) -> str:
    """Return the text if it is 'mid', 'highest' or a configuration, for argparse.

    A grid completes it.
    """
    if text not in BASE_NAMES:
        settings(text)
    return text


def settings(text: str) -> dict[str, float]:
    """Return the settings of some axes or of all, for argparse."""
    try:
        return parse_settings(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def names(text: str) -> tuple[str, ...]:
    """Return names that commas part, for argparse."""
    return tuple(name.strip() for name in text.split(","))


Options = argparse.ArgumentParser | argparse._ArgumentGroup  # noqa: SLF001, the type has no other


def command_line(words: Sequence[str]) -> str:
    """The command as it was given, the names of files without their folders."""
    return shlex.join(["mlscale", *map(_without_folder, words)])


def _without_folder(word: str) -> str:
    option, equals, path = word.partition("=") if word.startswith("--") else ("", "", word)
    is_in_folder = os.path.isdir(os.path.dirname(path))  # noqa: PTH112, PTH120
    return f"{option}{equals}{os.path.basename(path) if is_in_folder else path}"  # noqa: PTH119


def input_file(text: str) -> Path:
    """Return a file to read: the path, or else the shipped file of that name."""
    if not os.path.exists(text) and "/" not in text:  # noqa: PTH110, which raises on some names
        try:
            return datasets.path(text)
        except InputError:
            pass
    return Path(text)


def is_table(path: Path) -> bool:
    """Whether a file that is there is a tidy table."""
    return os.path.isfile(path) and is_tidy(path)  # noqa: PTH113, which raises on some names


def is_log(path: Path) -> bool:
    """Whether a file is a monitor's log. Raises InputError where it cannot be read."""
    from mlscale.readers.reading import is_log as is_of_monitor

    return is_of_monitor(path)


def is_model_name(text: str) -> bool:
    """Whether a file is a model by its name."""
    return Path(text).suffix == ".mlscale"


def shipped_model_file(text: str) -> Path | None:
    """The shipped model of that name, with or without its ending; None where there is none."""
    file = input_file(text if is_model_name(text) else f"{text}.mlscale")
    return file if os.path.exists(file) else None  # noqa: PTH110, which raises on some names


def load_model(arguments: argparse.Namespace, text: str) -> "Model":
    """Load a model file by path or name, with the class of --predictor. Raises InputError."""
    from mlscale.model.model import load

    own = arguments.predictor
    file = Path(text) if os.path.exists(text) else shipped_model_file(text)  # noqa: PTH110
    try:
        return load(file or Path(text), [own] if own else [])
    except InputError as error:
        is_missing = isinstance(error.__cause__, FileNotFoundError)
        if former := _of_former_model(text, arguments.command):
            said = f"{text}: {former}" if is_missing else f"{error}; {former}"
            raise InputError(said) from None
        if not is_missing or "/" in text:
            raise
        names = (Path(name).stem for name in datasets.shipped() if is_model_name(name))
        shipped = ", ".join(sorted(names))
        raise InputError(
            f"{text}: there is no such model file; those that ship are {shipped}"
        ) from None


def _of_former_model(text: str, command: str) -> str | None:
    """What became of the model of 0.2.0 that has the name of a file; None where none had it."""
    from mlscale.model.shipped import FORMER, RUNS_INSTEAD

    instead = FORMER.get(Path(text).stem)
    if instead is None:
        return None
    needs_profile = instead == RUNS_INSTEAD and command == "show"  # which takes a model alone
    return "this model is not shipped any more" + ("" if needs_profile else f"; {instead}")


def add_device(parser: Options, what: str) -> None:
    """Add the GPU by its key; what: for the help."""
    parser.add_argument("--device", type=device_key, metavar="DEVICE", help=what)


def add_settings(parser: Options, what: str) -> None:
    """Add what the GPU was set to; what: for the help."""
    parser.add_argument("--base", type=settings, metavar="CONFIG", help=what)


def add_wu(parser: argparse.ArgumentParser) -> None:
    """Add what only the predictor wu can be told."""
    from mlscale.predictors.wu_clusters import LOSSES

    parser.add_argument(
        "--loss",
        choices=LOSSES,
        help="the loss that wu's networks are trained by; squared: of sigmoid outputs, as the "
        "paper can be read literally (default: cross-entropy)",
    )
    parser.add_argument(
        "--log-ratios",
        action="store_true",
        default=None,
        help="cluster the logarithms of wu's scaling values",
    )
    parser.add_argument(
        "--counters",
        type=names,
        metavar="NAMES",
        help="the features that wu uses, separated by commas (default: all of the kind)",
    )


def add_fleet(parser: argparse.ArgumentParser) -> None:
    """Add the options of work on more profiles than fit in memory."""
    group = parser.add_argument_group(
        "fleets",
        "FILE is a Parquet file of any size, or a folder of them, each row a\n"
        "kernel; -o DIR/ gets a Parquet file for each row group",
    )
    group.add_argument(
        "--resume", action="store_true", help="continue the unfinished fleet in -o DIR/"
    )
    group.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on the Dask cluster of this scheduler, such as tcp://host:8786; its machines "
        "must see FILE and DIR/ under the same names",
    )


def is_of_fleet(arguments: argparse.Namespace) -> bool:
    """Whether FILE is a folder or -o names one by a '/' at its end."""
    is_folder = os.path.isdir(arguments.file[-1])  # noqa: PTH112, which raises on some names
    return is_folder or (arguments.output or "").endswith("/")


def add_power(parser: Options, of: str) -> None:
    """Add board power that no file says, and the choice of one GPU; of: what it is the power of."""
    parser.add_argument(
        "--power",
        metavar="W|FILE",
        help=f"board power {of}: in watts, or a monitor's log of the run, of which the mean is "
        "taken while the GPU works",
    )
    parser.add_argument(
        "--gpu", metavar="INDEX", help="the GPU to take from a log or trace of several"
    )


def add_log(parser: Options) -> None:
    """Add what a monitor's log may not say."""
    parser.add_argument(
        "--interval",
        type=positive_number,
        metavar="SECONDS",
        help="seconds between two samples, for a log without time stamps",
    )
    parser.add_argument(
        "--time",
        type=positive_number,
        metavar="MS",
        help="the true time of the run in a log, in ms (default: as long as the GPU works in the "
        "log)",
    )


def given(arguments: argparse.Namespace) -> "Given":
    """What the files of a run may not say, as the options give it."""
    from mlscale.readers.given import Given

    return Given(
        device=arguments.device,
        base=arguments.base or {},
        gpu=arguments.gpu,
        application=getattr(arguments, "application", None),
        power=arguments.power,
        interval_s=arguments.interval,
        time_ms=arguments.time,
        each=getattr(arguments, "each", False),
        skip_untimed=arguments.skip_untimed,
    )


def add_untimed(parser: Options) -> None:
    """Add what is done with the kernels of an export that has no times of them."""
    parser.add_argument(
        "--skip-untimed",
        action="store_true",
        help="leave out kernels whose time no file says (default: refuse the export)",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that reads tables."""
    from mlscale.data.measurements import AGGREGATES, INCOMPLETE

    parser.add_argument(
        "--incomplete",
        choices=INCOMPLETE,
        default="error",
        help="what to do with a kernel that lacks configurations (default: %(default)s)",
    )
    parser.add_argument(
        "--repetitions",
        choices=AGGREGATES,
        default="median",
        help="how repeated measurements become one (default: %(default)s)",
    )


def read_tables(arguments: argparse.Namespace, texts: Sequence[str]) -> "dict[Path, Measurements]":
    """Read tables as the options of `add_reading` say. Raises InputError, on two of one name too.

    A table is called as its file is, without the suffix.
    """
    tables: dict[Path, Measurements] = {}
    for path in map(input_file, texts):
        if path.stem in {other.stem for other in tables}:
            raise InputError(f"two tables are named '{path.stem}'; rename one")
        tables[path] = read_measurements(arguments, path)
    return tables


def read_measurements(arguments: argparse.Namespace, path: Path) -> "Measurements":
    """Read a table as the options of `add_reading` say. Raises InputError."""
    from mlscale.data.measurements import read

    if os.path.isfile(path) and not is_tidy(path):  # noqa: PTH113, which raises on some names
        _refuse_run(path)
    return read(path, arguments.incomplete, arguments.repetitions)


def _refuse_run(path: Path) -> None:
    """Raise InputError on a profiler's export or a monitor's log, which a table is made of."""
    from mlscale.readers.files import open_file

    sheet = None
    with suppress(InputError):
        sheet = open_file(path)
    if sheet is not None:
        raise InputError(
            f"{path}: is of {sheet.kind.title}, and no table; 'mlscale import FILE … --append -o "
            "TABLE' adds a run to one, which needs a run at each configuration"
        )


def positions(asked: Iterable[str], kernels: Sequence[str], where: str) -> list[int]:
    """Where the kernels stand that are asked for, in that order, each once.

    where: they are looked for, for messages. Raises InputError on one that is not there.
    """
    for kernel in asked:
        if kernel not in kernels:
            near = near_names(kernel, kernels, most=1)
            hint = f"; did you mean '{shortened(near[0])}'?" if near else ""
            raise InputError(f"{where} has no kernel '{kernel}'{hint}")
    return [kernels.index(kernel) for kernel in dict.fromkeys(asked)]


def config_of(
    settings: Mapping[str, float], device: str, usual: Mapping[str, float] | None = None
) -> HardwareConfig:
    """A configuration of a GPU; what the settings leave out is as usual, or all of its CUs.

    Raises InputError.
    """
    known = known_device(device)
    whole = {"cu_count": float(known.cu_count)} if known else {}
    complete = {**whole, **(usual or {}), **settings}
    if known and complete["cu_count"] > known.cu_count:
        raise InputError(
            f"{device} has {known.cu_count} compute units, not {complete['cu_count']:g}"
        )
    if missing := [axis for axis in AXES if axis not in complete]:
        given = ",".join(f"{SHORT_NAMES[axis]}={value:g}" for axis, value in settings.items())
        lacking = ",".join(f"{SHORT_NAMES[axis]}=…" for axis in missing)
        raise InputError(f"'{given}' gives no {' and no '.join(missing)}; say {lacking} too")
    return HardwareConfig(int(complete["cu_count"]), complete["engine_mhz"], complete["memory_mhz"])


LEVERS = ("clock", "cap")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is asked of advice on a run."""
    from mlscale.advice.objectives import OBJECTIVES

    parser.add_argument(
        "--minimize",
        choices=tuple(OBJECTIVES),
        help="what is to be least: energy, edp (energy x time), ed2p (energy x time^2), time, "
        "power, or clock: the engine clock within a limit of time, by default 5 %% slower than "
        "the base (default: energy, or clock where model or profile give no energy)",
    )
    add_limits(parser, "the whole run (all launches summed up)")
    parser.add_argument(
        "--lever",
        choices=LEVERS,
        default="clock",
        help="what the answer is to set: clocks, or a power cap (default: %(default)s)",
    )
    parser.add_argument(
        "--power-cap",
        nargs="*",
        type=positive_number,
        metavar="W",
        help="add time and energy of the run under these power caps, in W (without W, and by "
        "default with --lever cap: from the GPU's lowest power limit to its highest)",
    )
    parser.add_argument(
        "--commands",
        action="store_true",
        help="print the commands that set the advice on this GPU, and those that reset it; none is "
        "run",
    )


def add_limits(parser: argparse.ArgumentParser, of: str) -> None:
    """Add what an advised configuration must keep, and what makes dynamic power whole.

    of: what the limits of time are of, such as 'the kernel'.
    """
    parser.add_argument(
        "--max-power",
        type=positive_number,
        metavar="W",
        help="highest power of each kernel, in W (default: no limit)",
    )
    parser.add_argument(
        "--max-time",
        type=positive_number,
        metavar="MS",
        help=f"highest time of {of}, in ms (default: no limit)",
    )
    parser.add_argument(
        "--max-slowdown",
        type=number_from_0,
        metavar="PCT",
        help=f"how much longer {of} may take than at the base, in percent",
    )
    parser.add_argument(
        "--static-power",
        type=number_from_0,
        metavar="W",
        help="what the board draws beside power_w, in W, if power_w is dynamic power only",
    )


def read_limits(arguments: argparse.Namespace) -> "Limits":
    """Return the limits that were given."""
    from mlscale.advice.objectives import Limits

    return Limits(
        max_power_w=arguments.max_power,
        max_time_ms=arguments.max_time,
        max_slowdown_percent=arguments.max_slowdown,
    )


def caps_asked(arguments: argparse.Namespace) -> tuple[float, ...] | None:
    """The caps to tell the run under, empty for those that the GPU takes; None where none are."""
    if arguments.power_cap is None and arguments.lever != "cap":
        return None
    return tuple(arguments.power_cap or ())
