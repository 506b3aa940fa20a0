"""What a Python user calls: files, data frames or profiles in, answers and predictions out.

Thin, over what the commands use; what they have as an option is a keyword of its name here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from mlscale.advice.answer import PlainAnswer, RunGoal, answer_on_run
from mlscale.advice.commands import Commands
from mlscale.advice.document import Row, document
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Choice
from mlscale.advice.verdict import answer_lines
from mlscale.arrays import Floats
from mlscale.data.column_names import NO_COLUMNS, Columns
from mlscale.data.devices import devices_matching, key_or_name
from mlscale.data.grid import setting_of, settings_of
from mlscale.data.profiles import Profiles
from mlscale.data.surfaces import run_in_sequence
from mlscale.data.table_files import table_from_frame
from mlscale.errors import InputError, extra_named, kept_notes
from mlscale.files import write_text
from mlscale.guesses import SAVED_PLOT, Guided, instead, written
from mlscale.model.model import Model, is_model_name
from mlscale.model.plots import draw_curves
from mlscale.model.predictions import COVERAGE, Predictions
from mlscale.notes import Note
from mlscale.quantities import quantity
from mlscale.readers import source
from mlscale.readers.files import is_benchmark
from mlscale.readers.given import Given
from mlscale.readers.source import Source
from mlscale.subject import Asked, Subject, is_of_caps, rate_note, with_rates
from mlscale.subject import read as read_subject
from mlscale.text import did_you_mean, number, printable, short_names, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mlscale.advice.caps import CapAdvice
    from mlscale.sensors.log import Meter

MOST_KERNELS = 5  # rows in a notebook's card
_FACTS = ("device", "base", "power", "gpu", "interval_s", "time_ms", "skip_untimed")
_CHOICES = ("model", "weights", "profiled_only", "extrapolate", "force", "columns", "peaks")
_OF_SERVERS = {"slo", "pool", "capacity"}
_KNOWN = (*_FACTS, *_CHOICES, "also", "rate", *_OF_SERVERS)


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Guided):
    """What `mlscale.advise` finds. `print` shows the text of the command, a notebook a card.

    content: all of it, as typed values.
    """

    content: PlainAnswer

    def document(self) -> Row:
        """The answer as JSON values, as the command prints it."""
        return document(self.content)

    to_dict = document

    @property
    def advice(self) -> Advice | None:
        """What it rests on; None of an LLM server."""
        return self.content.advice

    @property
    def subject(self) -> Subject | None:
        """The run and its model, with the notes on them; None of an LLM server."""
        return self.content.subject

    @property
    def caps(self) -> "CapAdvice | None":
        """The run under power caps, where these were asked for."""
        return self.content.caps

    @property
    def best(self) -> Choice:
        """What to set. Raises InputError where nothing will do."""
        if self.content.best is None:
            raise InputError(self._headline())
        return self.content.best

    @property
    def expected(self) -> Choice | None:
        """What is expected to just keep a limit of time; None where that is `best`."""
        return self.content.expected

    @property
    def menu(self) -> dict[float | None, Choice] | None:
        """The best under each limit of slowdown [%], None for no limit; None without a menu."""
        return dict(self.content.menu) or None

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know, each under its code."""
        return self.content.notes

    @property
    def sure(self) -> str:
        """How sure the answer is: 'high', 'medium' or 'low'."""
        return self.content.sure

    @property
    def commands(self) -> Commands:
        """What sets and resets the answer; nothing is run."""
        return self.content.commands or Commands()

    @property
    @extra_named("'frame'")
    def frame(self) -> "pd.DataFrame":
        """A row for each kernel at what is best for the run, largest share of time first.

        A pandas DataFrame with columns of the command's CSV; of an LLM server a row for each clock.
        """
        import pandas as pd

        if self.content.lever == "cap" and not self.content.server:
            raise InputError("a power cap is for the whole run: take .menu or document()['caps']")
        from mlscale.cli.advise_text import rows

        table = pd.DataFrame(rows(self.content, shows_all=False))
        if self.content.server:
            return table
        is_kernel = table["number"].notna() & (table["at"] == "answer")
        return table[is_kernel].drop(columns="at").reset_index(drop=True)

    def __str__(self) -> str:
        from mlscale.cli.advise_text import Layout, text

        return text(self.content, Layout()).rstrip("\n")

    def __repr__(self) -> str:
        return f"<Answer: {self._headline()}>"

    def _headline(self) -> str:
        return " ".join(answer_lines(self.content))

    def _repr_html_(self) -> str:
        """A card for a notebook, without scripts; all text is escaped."""
        kernels = [one for one in self.content.kernels if one.in_run][:MOST_KERNELS]
        short = short_names([one.name for one in self.content.kernels])
        columns: dict[str, Iterable[Any]] = {
            "kernel": [short[one.name] for one in kernels],
            "share [%]": [one.share_percent for one in kernels],
            "slower by [%]": [one.in_run and one.in_run.slowdown_percent for one in kernels],
        }
        codes = ", ".join(dict.fromkeys(note.code for note in self.notes))
        below = escape(f"How sure: {self.sure}. Notes: {codes or 'none'}")
        style = "border:1px solid #8888;border-radius:6px;padding:8px;max-width:44em"
        card = _html_table(self._headline(), columns if kernels else {})
        return f'<div style="{style}">{card}<div>{below}</div></div>'

    @written(SAVED_PLOT)
    def plot(self) -> "Figure":
        """Time and energy of the run over the engine clock, with band, limit and what to set.

        Without power, time alone. Needs matplotlib; returns its figure.
        """
        advice, subject = self._grounds("plot")
        best, time, power = self.best, advice.held["time"], advice.held.get("power")
        grid, launches = time.grid, subject.profiles.weights
        place = grid.cu_count.index(best.cu_count), ..., grid.memory_mhz.index(best.memory_mhz)
        times: dict[str, Floats] = {}
        energies: dict[str, Floats] = {}
        for side in ("values", "low", "high"):
            if (each_ms := getattr(time, side)) is not None:
                run_ms, run_w = run_in_sequence(each_ms, getattr(power, side, None), launches)
                times[side] = run_ms[place]
                if run_w is not None and advice.no_energy is None:
                    energies[side] = (run_ms * run_w)[place] / 1000
        panels = {"time [ms]": times} | ({"energy [J]": energies} if energies else {})
        longest_ms = advice.limits.longest_ms(advice.whole_run.base.time_ms)
        title = shortened(self._headline().partition(". ")[0], 90)
        steps = np.array(grid.engine_mhz)
        return draw_curves(title, "engine_mhz", steps, panels, longest_ms, best.engine_mhz)

    def save(self, path: Path | str) -> None:
        """Write the page (.html), the document (.json) or the rows of the command's CSV (.csv).

        Raises InputError.
        """
        from mlscale.cli.advise_text import rows
        from mlscale.cli.terminal import csv_text, json_text

        path = Path(path)
        if path.suffix == ".html":
            from mlscale.pages.page import page

            text = page([self.content])
        elif path.suffix == ".json":
            text = json_text(self.document())
        elif path.suffix == ".csv":
            text = csv_text(rows(self.content, shows_all=False))
        else:
            raise InputError(f"{path}: an answer is saved as .html, .json or .csv")
        write_text(path, text)

    def _grounds(self, what: str) -> tuple[Advice, Subject]:
        """What the answer rests on. Raises InputError of an LLM server."""
        if self.advice is None or self.subject is None:
            raise InputError(
                f"an answer of a server, or of caps only, has no {what}; save it as .json"
            )
        return self.advice, self.subject


def advise(  # noqa: PLR0913 - what a call may name
    *run: Any, minimize: str | None = None, max_slowdown: float | str | None = None,
    max_time: float | str | None = None, max_power: float | str | None = None,
    lever: Literal["clock", "cap"] = "clock",
    caps: Sequence[float | str] | float | str | None = None,
    static_power: float | str | None = None, also: Any = None,
    power: float | str | Path | None = None, device: str | None = None, base: Any = None,
    gpu: int | str | None = None, interval_s: float | None = None, time_ms: float | None = None,
    skip_untimed: bool = False, rate: Any = None, model: Model | Path | str | None = None,
    weights: Path | str | None = None, profiled_only: bool = False, extrapolate: bool = False,
    force: bool = False, columns: Mapping[str, str] | None = None,
    slo: Any = None, pool: str | None = None, capacity: Any = None, **wrong: Any,
) -> Answer:  # fmt: skip
    """What to set for a run, and what it costs and saves: `mlscale advise` from Python.

    run: files of one run as the tools wrote them (profile, trace, log), a table's file, a data
    frame, or `Profiles`. minimize: 'energy', 'edp', 'ed2p', 'time', 'power' or 'clock'; by default
    energy, or the clock where power is not known. max_slowdown [%], max_time [ms] of the run,
    max_power [W] of each kernel; texts such as '5%' and '0.5kW' too. lever: 'clock' or 'cap'.
    caps [W]: power caps to predict the run under, empty for the GPU's range. also: the same work at
    another setting: a file, 'FILE@engine=1335' or a frame, or several. power [W, or a log's file],
    device, base, gpu, interval_s, time_ms, skip_untimed: what the files do not say. rate: work per
    second of each run, such as tokens, for logs that do not begin and end with it (times and
    energies are then of RATED_UNITS of it). model: the name of a shipped one, a file, or a `Model`.
    wrong: unknown keywords; the error says what to write instead.

    Of an LLM server the run is a benchmark's result and its log, also those at a second clock; slo
    limits latencies, as {'ttft': '500ms@p90'}; pool is 'prefill' or 'decode', capacity two results
    of all requests at once; with lever 'cap' two power caps are enough, without clocks.

    Warns of nothing: what a reader should know is in the answer's notes. Raises InputError.

    Example:
        answer = mlscale.advise("ncu.csv", power=500, max_slowdown=5)
        answer.best.engine_mhz, answer.best.slowdown_percent
    """
    known = _named(locals())
    if lever not in ("clock", "cap"):
        raise InputError(f"the lever is 'clock' or 'cap', not {lever!r}")
    if known.keys() & _OF_SERVERS or (run and _is_file(run[0]) and is_benchmark(Path(run[0]))):
        if (minimize, max_slowdown, max_time, max_power, caps, static_power) != (None,) * 6:
            raise InputError("for a server give limits as slo=; energy per token is minimized")
        return _server_answer(run, known, lever)
    limits = Limits(
        max_power_w=_number("max_power", max_power, "W"),
        max_time_ms=_number("max_time", max_time, "ms"),
        max_slowdown_percent=_number("max_slowdown", max_slowdown, "%"),
    )
    each_w = [_number("caps", cap_w, "W") for cap_w in _each(caps)]
    caps_w = None if caps is None and lever == "clock" else tuple(w for w in each_w if w)
    static_power_w = _number("static_power", static_power, "W")
    goal = RunGoal(minimize, limits, static_power_w, lever, caps_w)
    rates = _rates(known)
    with kept_notes() as notes:
        asked = _asked("advise", run, known)
        if (asked.also or caps_w is not None) and is_of_caps(asked, lever):
            from mlscale.advice.capped_runs import answer_on_caps

            answer, told = answer_on_caps(asked, goal, rates, has_commands=True)
            notes.extend(told)
        else:
            found = read_subject(with_rates(asked, rates) if rates else asked)
            answer = answer_on_run(found, goal, has_commands=True)
            notes.extend([rate_note()] if rates else [])
    return Answer(answer.with_notes(notes))


def predict(  # noqa: PLR0913 - what a call may name
    *run: Any, at: Any = None, also: Any = None,
    power: float | str | Path | None = None, device: str | None = None, base: Any = None,
    gpu: int | str | None = None, interval_s: float | None = None, time_ms: float | None = None,
    skip_untimed: bool = False, rate: Any = None, model: Model | Path | str | None = None,
    weights: Path | str | None = None, profiled_only: bool = False, extrapolate: bool = False,
    force: bool = False, columns: Mapping[str, str] | None = None,
    peaks: Path | str | None = None, **wrong: Any,
) -> Predictions:  # fmt: skip
    """Time and, where it can be, power and energy of each kernel, with 90 % intervals.

    at: where, as {'engine': [1200, 1400]}, 'engine=1200' or a configuration, or a list of these; by
    default everywhere. peaks: profiles of other kernels of a GPU without training data. The rest is
    as for `advise`. Raises InputError.

    Example:
        predictions = mlscale.predict("ncu.csv", at={"engine": [1200, 1400]})
        predictions.frame
    """
    known = _named(locals())
    settings = [] if at is None else settings_of(at)
    texts = [",".join(f"{axis}={one[axis]:.15g}" for axis in one) for one in settings]
    with kept_notes() as notes:
        asked, rates = replace(_asked("predict", run, known), at=tuple(texts)), _rates(known)
        found = read_subject(with_rates(asked, rates) if rates else asked)
        predictions = found.model.predict(found.profiles, COVERAGE)
    notes = [*notes, *found.notes, *predictions.warnings]
    return replace(predictions, warnings=tuple(dict.fromkeys(notes)), asked=found.targets or None)


def save(model: Model, path: Path | str) -> None:
    """Write a model file whole or not at all. Raises InputError.

    Example:
        mlscale.save(model, "my.mlscale")
    """
    if not isinstance(model, Model):
        raise InputError("save takes the model first: mlscale.save(model, 'my.mlscale')")
    model.save(path)


@extra_named("'devices'")
def devices(pattern: str | None = None) -> "pd.DataFrame":
    """The GPUs that mlscale knows, a row each with its facts, as a pandas DataFrame.

    pattern: a part of a key, a name or an alias, for these alone. Raises InputError.

    Example:
        mlscale.devices("h100")
    """
    import pandas as pd

    return pd.DataFrame([device.as_dict() for device in devices_matching(pattern)])


def measure(
    log: str | Path = "run.csv", *, gpu: int | str | None = None, rate: float | None = None
) -> "Meter":
    """Sample a GPU while a block runs, into a log that `advise` reads; a context manager.

    log: the file to write; one that is there is replaced, with a warning. gpu: its index or UUID;
    by default the one that CUDA_VISIBLE_DEVICES names, or the first. rate: work per second of a
    block that is part of a longer run. Raises InputError without a GPU.

    Example::

        with mlscale.measure("fast.csv") as log:
            step()
        log.mean_w, log.energy_j
    """
    from mlscale.sensors.log import Meter

    return Meter(log, gpu, rate)


# What a call names.


def _named(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a call names of a run, and keywords that there are not, by name."""
    wrong: dict[str, Any] = given["wrong"]
    named = {name: given.get(name) for name in _KNOWN}
    return {k: one for k, one in named.items() if one is not None and one is not False} | wrong


def _asked(function: str, run: Sequence[Any], known: Mapping[str, Any]) -> Asked:
    """What is asked for. Raises InputError on what cannot be, with what to write."""
    for name in known.keys() - {*_KNOWN} | known.keys() & _OF_SERVERS:
        what = instead(function, name, (*_KNOWN, "max_slowdown"))
        raise InputError(f"{function} has no '{name}'{what}")
    run = [one for part in run for one in (part if isinstance(part, list | tuple) else [part])]
    if not run or any(isinstance(one, Model) or is_model_name(str(one)) for one in run):
        raise InputError(f"{function} takes the run first: write {function}(run, model=model)")
    is_files = all(map(_is_file, run))
    if len(run) > 1 and not is_files:
        raise InputError(f"{function} takes several files, or one data frame, or one Profiles")
    further = _each(known.get("also"))
    facts = {name: known[name] for name in _FACTS if known.get(name) is not None}
    if "device" in facts:
        facts["device"] = key_or_name(facts["device"])
    if "base" in facts:
        facts["base"] = setting_of(facts["base"])
    if facts and isinstance(run[0], Profiles):
        raise InputError(
            "profiles say base, device and power themselves: give these where they are read, "
            "mlscale.import_profile(file, power=500)"
        )
    choices = {name: known[name] for name in _CHOICES if name in known}
    columns = choices.get("columns", NO_COLUMNS)
    model = choices.pop("model", "auto")
    return Asked(
        tuple(source.further(str(one)) for one in run) if is_files else (),
        Given(**facts),
        None if is_files else _read(run[0], columns),
        None if model in ("auto", None) else model if isinstance(model, Model) else str(model),
        also=tuple(
            source.further(str(one)) if _is_file(one) else _read(one, columns, f"frame {place}")
            for place, one in enumerate(further, start=2)
        ),
        **choices,
    )


def _read(frame: Any, columns: Columns, name: str = "the frame") -> Any:
    """The table in a data frame, by that name; profiles as they are. Raises InputError."""
    if isinstance(frame, Profiles):
        return frame
    return replace(table_from_frame(frame, columns=columns), source=name)


def _rates(known: Mapping[str, Any]) -> list[float]:
    """The work per second of each run. Raises InputError."""
    return [_number("rate", rate, "") or 1.0 for rate in _each(known.get("rate"))]


def _server_answer(
    run: Sequence[Any], known: Mapping[str, Any], lever: Literal["clock", "cap"]
) -> Answer:
    """The answer of a server. Raises InputError."""
    from mlscale.advice.server_answer import answer_on_server

    facts = {"also", "device", "base", "gpu", "interval_s", *_OF_SERVERS}
    for name in known.keys() - facts:
        raise InputError(f"advise on a server has no '{name}'{did_you_mean(name, facts)}")
    said = {name: known[name] for name in known.keys() - {"also", *_OF_SERVERS}}
    asked = _asked("advise", [*run, *_each(known.get("also"))], said)
    files = asked.files
    results = [Source(str(file)) for file in _each(known.get("capacity"))]
    slo, pool = known.get("slo") or "", known.get("pool")
    with kept_notes() as notes:
        answer = answer_on_server(files, asked.given, slo, pool, results, lever=lever)
    return Answer(answer.with_notes(notes))


def _each(given: Any) -> list[Any]:
    """What was given, one or several or None, as a list."""
    is_one = _is_file(given) or hasattr(given, "columns") or not hasattr(given, "__iter__")
    return [] if given is None else [given] if is_one else list(given)


def _number(name: str, given: float | str | None, unit: str) -> float | None:
    """A number above 0, or 0 for percent, of that unit. Raises InputError."""
    if given is None:
        return None
    is_known = isinstance(given, str | float | int | np.number) and not isinstance(given, bool)
    if not is_known:
        raise InputError(f"{name} is a number, or a text with a unit, not {given!r}")
    found = quantity(given, unit) if isinstance(given, str) else float(given)
    if not 0 <= found < np.inf or (found == 0 and unit != "%"):
        raise InputError(f"{name} is {given}, which cannot be")
    return found


def _is_file(run: Any) -> bool:
    return isinstance(run, str | Path)


def _html_table(title: str, columns: Mapping[str, Iterable[Any]]) -> str:
    """Columns by their headings below a title, for a notebook; all text is escaped."""

    def cells(tag: str, texts: Iterable[Any]) -> str:
        shown = [number(x) if isinstance(x, float) else shortened(str(x), 90) for x in texts]
        return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in shown)}</tr>"

    rows = "".join(cells("td", row) for row in zip(*columns.values(), strict=True))
    return f"<div>{escape(printable(title))}</div><table>{cells('th', columns)}{rows}</table>"
