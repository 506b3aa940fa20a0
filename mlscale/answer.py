"""The answer to `mlscale.advise`: its document as values, text, a card, a figure and files."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from mlscale.advice.recommendation import Advice, Interval, Row
from mlscale.advice.verdict import answer_lines
from mlscale.arrays import Floats
from mlscale.data.grid import AXES
from mlscale.data.surfaces import run_in_sequence
from mlscale.errors import InputError, extra_named
from mlscale.files import write_text
from mlscale.keywords import in_python
from mlscale.model.plots import draw_curves
from mlscale.notes import Note
from mlscale.subject import Subject
from mlscale.text import number, printable, shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mlscale.advice.caps import CapAdvice

MOST_KERNELS = 5  # of the card
_RANGES = {  # what becomes of the run, and what its interval is called
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

    set: by name what differs from the base, empty to stay there; with a power cap an engine_mhz of
    None is to be unlocked. cu_count, engine_mhz, memory_mhz:
    all that it runs at; under a power cap the clock is a mean. Changes [%] are against the base,
    negative for less. Each range is a 90 % interval.
    """

    set: Mapping[str, float | None]
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
        values: Row = {axis: row["at"][axis] for axis in AXES}
        for name, interval in _RANGES.items():
            value, *ends = row[name] or (None, None, None)
            values |= {name: value, interval: None if None in ends else tuple(ends)}
        return cls(set=row["set"], **values)


class CommandLines(NamedTuple):
    """Shell commands in the order to run them: what sets the answer, and what resets it."""

    set: tuple[str, ...]
    reset: tuple[str, ...]
    notes: tuple[str, ...]

    def __call__(self) -> NoReturn:
        """Say that these are values, to who calls them."""
        raise InputError("the commands are values: write .commands.set or .commands.reset")


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """What `mlscale.advise` finds. `print` shows the text of the command, a notebook a card.

    content: its document. advice and subject: what it rests on, None of an LLM server; the
    subject's notes are those on the files and the choice of the model. caps: the run under power
    caps, where these were asked for.
    """

    content: Row
    advice: Advice | None = None
    subject: Subject | None = None
    caps: "CapAdvice | None" = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                f"an answer has no '{name}'; print it, or take its best, expected, sure, notes, "
                "commands, menu, frame, document(), plot() or save('page.html')"
            )

    def document(self) -> Row:
        """The answer as JSON values, as `mlscale advise --json` prints it."""
        return self.content

    to_dict = document

    @property
    def best(self) -> Chosen:
        """What to set. Raises InputError where no power cap will do."""
        if self.content["answer"] is None:
            raise InputError(self._headline())
        return Chosen.from_row(self.content["answer"])

    @property
    def expected(self) -> Chosen | None:
        """What is expected to just keep a limit of time; None where that is `best`."""
        row = self.content["expected"]
        return None if row is None else Chosen.from_row(row)

    @property
    def menu(self) -> dict[float | None, Chosen] | None:
        """The best under each limit of slowdown [%], None for no limit; None without a menu."""
        rows = self.content["menu"]
        if rows is None:
            return None
        return {row["max_slowdown_percent"]: Chosen.from_row(row) for row in rows}

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a reader should know, each under its code."""
        notes = []
        for row in self.content["notes"]:
            code, names = row["code"], row["kernels"]
            kernels = () if names == "all" else tuple(names)
            notes.append(Note(code, row["text"], row["severity"], kernels))
        return tuple(notes)

    @property
    def sure(self) -> str:
        """How sure the answer is: 'high', 'medium' or 'low'."""
        return str(self.content["sure"])

    @property
    def commands(self) -> CommandLines:
        """What sets and resets the answer; nothing is run."""
        lines = self.content["commands"]
        return CommandLines(*(tuple(lines[name]) for name in CommandLines._fields))

    @property
    @extra_named("'frame'")
    def frame(self) -> "pd.DataFrame":
        """A row for each kernel at what is best for the run, largest share of time first.

        A pandas DataFrame with columns of the command's CSV; of an LLM server a row for each clock.
        """
        import pandas as pd

        if "power_cap_w" in self.content["base"]:
            raise InputError("a power cap is for the whole run: take .menu or document()['caps']")
        from mlscale.cli.answer import rows

        table = pd.DataFrame(rows(self.content, shows_all=False))
        if "server" in self.content:
            return table
        is_kernel = table["number"].notna() & (table["at"] == "answer")
        return table[is_kernel].drop(columns="at").reset_index(drop=True)

    def __str__(self) -> str:
        from mlscale.cli.answer import Layout, text

        return in_python(text(self.content, Layout())).rstrip("\n")

    def __repr__(self) -> str:
        return f"<Answer: {self._headline()}>"

    def _headline(self) -> str:
        return " ".join(answer_lines(self.content))

    def _repr_html_(self) -> str:
        """A card for a notebook, without scripts; all text is escaped."""
        kernels = [row for row in self.content["kernels"] if row["at_answer"]][:MOST_KERNELS]
        columns = {
            "kernel": [row["short"] for row in kernels],
            "share [%]": [row["share_percent"] for row in kernels],
            "slower by [%]": [row["at_answer"]["slowdown_percent"][0] for row in kernels],
        }
        codes = ", ".join(dict.fromkeys(note.code for note in self.notes))
        below = escape(f"How sure: {self.sure}. Notes: {codes or 'none'}")
        style = "border:1px solid #8888;border-radius:6px;padding:8px;max-width:44em"
        card = _html_table(self._headline(), columns if kernels else {})
        return f'<div style="{style}">{card}<div>{below}</div></div>'

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
        from mlscale.cli.answer import rows
        from mlscale.cli.text import csv_text, json_text

        path = Path(path)
        if path.suffix == ".html":
            text = self._page()
        elif path.suffix == ".json":
            text = json_text(self.content)
        elif path.suffix == ".csv":
            text = csv_text(rows(self.content, shows_all=False))
        else:
            raise InputError(f"{path}: an answer is saved as .html, .json or .csv")
        write_text(path, text)

    def _page(self) -> str:
        from mlscale.report.page import Shown, page

        advice, subject = self._grounds("page")
        return page([Shown(self.content, subject.profile_name, advice, subject, caps=self.caps)])

    def _grounds(self, what: str) -> tuple[Advice, Subject]:
        """What the answer rests on. Raises InputError of an LLM server."""
        if self.advice is None or self.subject is None:
            raise InputError(f"the answer of a server has no {what}; take .frame, or save a .csv")
        return self.advice, self.subject


def _html_table(title: str, columns: Mapping[str, Iterable[Any]]) -> str:
    """Columns by their headings below a title, for a notebook; all text is escaped."""

    def cells(tag: str, texts: Iterable[Any]) -> str:
        shown = [number(x) if isinstance(x, float) else shortened(str(x), 90) for x in texts]
        return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in shown)}</tr>"

    rows = "".join(cells("td", row) for row in zip(*columns.values(), strict=True))
    return f"<div>{escape(printable(title))}</div><table>{cells('th', columns)}{rows}</table>"
