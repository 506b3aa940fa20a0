"""The answer to `mlscale.advise`: what to set, as values, text, a card, a figure and files."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mlscale.advice.commands import commands_for_cap, commands_for_clocks
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Interval, Row
from mlscale.advice.verdict import cap_verdict, verdict
from mlscale.answer_document import document
from mlscale.arrays import Floats
from mlscale.data.grid import AXES
from mlscale.data.surfaces import run_in_sequence
from mlscale.errors import InputError, extra_named
from mlscale.files import write_text
from mlscale.keywords import in_python
from mlscale.model.plots import Curve, draw_curves
from mlscale.notes import Note
from mlscale.subject import Subject
from mlscale.text import html_table, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mlscale.advice.caps import CapAdvice

MOST_KERNELS = 5  # of the card
_EFFECTS = {  # of a document, and what a choice calls its interval
    "slowdown_percent": "slowdown_range",
    "energy_percent": "energy_percent_range",
    "power_percent": "power_percent_range",
    "time_ms": "time_range_ms",
    "power_w": "power_range_w",
    "energy_mj": "energy_range_mj",
}


@dataclass(frozen=True)
class Chosen:
    """What to set, and what becomes of the run there; None for what is not known.

    set: by name what differs from the base, empty to stay there. cu_count, engine_mhz, memory_mhz:
    all that it runs at; under a power cap the clock is a mean. Changes [%] are against the base,
    negative for less. Each range is a 90 % interval.
    """

    set: Mapping[str, float]
    cu_count: int
    engine_mhz: float
    memory_mhz: float
    slowdown_percent: float
    slowdown_range: Interval
    energy_percent: float | None
    energy_percent_range: Interval
    power_percent: float | None
    power_percent_range: Interval
    time_ms: float
    time_range_ms: Interval
    power_w: float | None
    power_range_w: Interval
    energy_mj: float | None
    energy_range_mj: Interval

    @classmethod
    def from_row(cls, row: Row) -> "Chosen":
        """From a choice of an answer's document."""
        values: Row = {}
        for name, interval in _EFFECTS.items():
            value, low, high = row[name] or (None, None, None)
            values |= {name: value, interval: None if low is None else (low, high)}
        return cls(set=row["set"], **row["at"], **values)


class CommandLines(NamedTuple):
    """Shell commands in the order to run them: what sets the answer, and what resets it."""

    set: tuple[str, ...]
    reset: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What `mlscale.advise` finds. `print` shows the text of the command, a notebook a card.

    told: what was told of the files and of the choice of the model. advice, subject, caps: what it
    rests on; is_cap: whether a power cap is to set. asked: objective and limits as they were given.
    """

    told: tuple[Note, ...]
    advice: Advice
    subject: Subject
    caps: "CapAdvice | None" = None
    is_cap: bool = False
    asked: tuple[str | None, Limits] = (None, Limits())

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"an answer has no '{name}'; print it, or take its best, expected, sure, notes, "
                "commands, menu, frame, document(), plot() or save('page.html')"
            )

    @cached_property
    def _document(self) -> Row:
        metadata, lever = self.subject.profiles.metadata, "cap" if self.is_cap else "clock"
        if self.is_cap and self.caps is not None:
            commands = commands_for_cap(self.caps, metadata)
        else:
            commands = commands_for_clocks(self.advice, metadata)
        name = self.subject.model_name.removesuffix(".mlscale")
        found = document(self.advice, name, self.caps, lever, self.told, commands)
        notes = [{**note, "text": in_python(note["text"])} for note in found["notes"]]
        return {**found, "notes": notes}

    def document(self) -> Row:
        """The answer as JSON values, as `mlscale advise --json` prints it."""
        return self._document

    to_dict = document

    @property
    def best(self) -> Chosen:
        """What to set."""
        return Chosen.from_row(self._document["answer"])

    @property
    def expected(self) -> Chosen | None:
        """What is expected to just keep a limit of time; None where that is `best`."""
        row = self._document["expected"]
        return None if row is None else Chosen.from_row(row)

    @property
    def menu(self) -> dict[float | None, Chosen] | None:
        """The best under each limit of slowdown [%], None for no limit; None without a menu."""
        rows = self._document["menu"]
        if rows is None:
            return None
        return {row["max_slowdown_percent"]: Chosen.from_row(row) for row in rows}

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know, each under its code."""
        rows = self._document["notes"]
        named = [() if row["kernels"] == "all" else tuple(row["kernels"]) for row in rows]
        return tuple(Note(**{**row, "kernels": k}) for row, k in zip(rows, named, strict=True))

    @property
    def sure(self) -> str | None:
        """How sure the answer is: 'high', 'medium' or 'low'."""
        sure: str | None = self._document["sure"]
        return sure

    @property
    def commands(self) -> CommandLines:
        """What sets and resets the answer; nothing is run."""
        lines = self._document["commands"]
        return CommandLines(*(tuple(lines[name]) for name in CommandLines._fields))

    @property
    @extra_named("'frame'")
    def frame(self) -> "pd.DataFrame":
        """A row for each kernel, largest share first, as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame([_flat_kernel(row) for row in self._document["kernels"]])

    def __str__(self) -> str:
        from mlscale.cli.advise import text_of

        warnings = (*self.told, *self.advice.warnings)
        advice, lever = replace(self.advice, warnings=warnings), "cap" if self.is_cap else "clock"
        return in_python(text_of(advice, lever, self.caps)).rstrip("\n")

    def __repr__(self) -> str:
        return f"<Answer: {self._headline()}>"

    def _headline(self) -> str:
        if self.is_cap and self.caps is not None:
            return cap_verdict(self.caps, self.advice)
        return verdict(self.advice)

    def _repr_html_(self) -> str:
        """A card for a notebook, without scripts; all text is escaped."""
        frame_columns = ("short", "share_percent", "slowdown_percent")
        kernels = [_flat_kernel(row) for row in self._document["kernels"][:MOST_KERNELS]]
        columns = {name: [kernel[name] for kernel in kernels] for name in frame_columns}
        codes = dict.fromkeys(note.code for note in self.notes if note.code)
        sure = f"How sure: {self.sure}. " if self.sure else ""
        below = f"{sure}{len(self.notes)} notes: {', '.join(codes) or 'see .notes'}"
        style = "border:1px solid #8888;border-radius:6px;padding:8px;max-width:44em"
        card = html_table(self._headline(), columns)
        return f'<div style="{style}">{card}<div>{escape(below)}</div></div>'

    def plot(self) -> "Figure":
        """Time and energy of the run over the engine clock, with band, limit and what to set.

        Without power, time alone. Needs matplotlib; returns its figure.
        """
        return draw_curves(shortened(self._headline(), 90), self._curves(), self.best.engine_mhz)

    def _curves(self) -> list[Curve]:
        advice, best = self.advice, self.best
        time, power = advice.held["time"], advice.held.get("power")
        launches = self.subject.profiles.weights
        cu, memory = best.cu_count, best.memory_mhz
        place = time.grid.cu_count.index(cu), slice(None), time.grid.memory_mhz.index(memory)
        steps = np.array(time.grid.engine_mhz)
        longest_ms = advice.limits.longest_ms(advice.whole_run.base.time_ms)
        times: dict[str, Floats] = {}
        energies: dict[str, Floats] = {}
        for side in ("values", "low", "high"):
            each_ms, each_w = getattr(time, side), getattr(power, side, None)
            if each_ms is not None:
                run_ms, run_w = run_in_sequence(each_ms, each_w, launches)
                times[side] = run_ms[place]
                energies |= {} if run_w is None else {side: (run_ms * run_w)[place]}
        limit = longest_ms if np.isfinite(longest_ms) else None
        curves = [Curve("engine_mhz", steps, "time [ms]", *_ends(times), limit)]
        if energies and advice.no_energy is None:
            curves.append(Curve("engine_mhz", steps, "energy [mJ]", *_ends(energies)))
        return curves

    def save(self, path: Path | str) -> None:
        """Write the report (.html), the document (.json) or a row for each kernel (.csv).

        Raises InputError.
        """
        from mlscale.cli.text import csv_text, json_text

        path = Path(path)
        if path.suffix == ".html":
            text = self._page()
        elif path.suffix == ".json":
            text = json_text(self._document)
        elif path.suffix == ".csv":
            text = csv_text([_flat_kernel(row) for row in self._document["kernels"]])
        else:
            raise InputError(f"{path}: an answer is saved as .html, .json or .csv")
        write_text(path, text)

    def _page(self) -> str:
        from mlscale.report.kernel_report import largest_kernels
        from mlscale.report.page import Source, page

        found, (objective, limits) = self.subject, self.asked
        source = Source(
            model_file=found.model_name,
            profile_file=found.profile_name,
            command="mlscale.advise",
            static_power_w=self.advice.static_power_w,
            notes=self.told,
            power_caps_w=None if self.caps is None else tuple(p.cap_w for p in self.caps.points),
            objective=objective,
            limits=limits,
            has_commands=True,
            is_cap=self.is_cap,
        )
        return page(found.model, found.profiles, largest_kernels(found.profiles), source)


def _ends(sides: Mapping[str, Floats]) -> tuple[Floats, Floats | None, Floats | None]:
    return sides["values"], sides.get("low"), sides.get("high")


def _flat_kernel(row: Row) -> Row:
    """A kernel of the document as one row of a table."""
    flat = {name: row[name] for name in ("number", "kernel", "short", "share_percent", "launches")}
    for name in _EFFECTS:
        value, low, high = row["at_answer"][name] or (None, None, None)
        flat |= {name: value, f"{name}_low": low, f"{name}_high": high}
    return flat | {f"best_{axis}": row["best"]["at"][axis] for axis in AXES}
