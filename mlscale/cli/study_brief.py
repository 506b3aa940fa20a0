"""The short answer of mlscale study: what was held out, and who is off by how much, best first."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from mlscale.advice.objectives import Limits, objective_name
from mlscale.cli.brief import MOST_LINES, percent, sentences, table
from mlscale.cli.terminal import Meaning, painted
from mlscale.data.grid import HardwareConfig
from mlscale.studies.base import Row, Rows, Study, grouped
from mlscale.studies.candidates import BASELINES, ORACLE
from mlscale.studies.crossval import HOLDOUT, K_FOLD, LEAVE_ONE_OUT, RANDOM_KERNELS
from mlscale.studies.regret import STRATEGIES
from mlscale.text import counted

KEPT_BY = {None: "", "cautious": "upper end", "expected": "expected time"}  # limits of time
MOST_ROWS = 8
TRIVIAL = ("no-scaling", "stay-at-base")  # what anybody has without a model
HELD_OUT = {
    LEAVE_ONE_OUT: "one application left out at a time",
    K_FOLD: "{folds} groups of applications left out in turn",
    HOLDOUT: "a fifth of the applications left out",
    RANDOM_KERNELS: "a fifth of the kernels left out",
    "train-on": "with {train_on} trained on instead",
}
TRAINED = {"pooled": ", trained on all tables", "unseen-gpu": ", trained on other GPUs alone"}
_SCAFFOLD = 8  # lines around the tables
_FEWEST_ROWS = 3
_NOT_TOLD = "~ best"

Document = dict[str, Any]
Cells = Callable[[Row], list[str]]


def errors_brief(study: Study, document: Document, has_colours: bool) -> list[str]:
    """The errors, line by line."""
    rows = [row for row in document["rows"] if row["predictor"] != ORACLE]
    quantities = " and ".join(dict.fromkeys(row["quantity"] for row in rows)).capitalize()
    question = "How far off is a prediction of a kernel that was not trained on?"
    blocks = {
        f"{table_name}{quantity}": group
        for (table_name, quantity), group in _blocks(study, rows, "quantity").items()
    }
    headings = ["", "mean error", "worst kernel", "90 % holds"]
    lines = _tables(blocks, "predictor", "mape", headings, _error_cells, has_colours)
    legend = ""
    if any(_NOT_TOLD in line for line in lines):
        legend = f" {_NOT_TOLD}: does not differ significantly from the best."
    more = "Others, medians, p90, differences: --all, or -o DIR (tables, pictures)."
    first = f"{question} {quantities} of {_kernels(study)}, {_held_out(document)}."
    last = f"{_conditions(study, rows)} ±: standard error.{legend}"
    return _framed(first, lines, [more, last], has_colours)


def regrets_brief(study: Study, document: Document, has_colours: bool) -> list[str]:
    """The regret of advice, line by line."""
    rows = document["rows"]
    under = Limits(**document["limits"]).under()
    what = counted(document["runs"], "random run") if document["runs"] else "each kernel"
    blocks = {
        f"{table_name}{objective_name(objective)}": group
        for (table_name, objective), group in _blocks(study, rows, "objective").items()
    }
    aims = ", ".join(dict.fromkeys(objective_name(row["objective"]) for row in rows))
    first = (
        f"How much more than the true best do the advised settings cost? {aims} of {what}{under}: "
        f"{_kernels(study)}, {_held_out(document)}."
    )
    headings = ["", "limit kept by", "regret", "worst", "saves", "slower", "over limit"]
    cells = _regret_cells if under else lambda row: [*_regret_cells(row)[:-1], ""]
    lines = _tables(blocks, "advisor", "regret_mean", headings, cells, has_colours)
    saved = ", ".join(
        f"{percent(group[0]['best_saving_mean'], '')} of {name}" for name, group in blocks.items()
    )
    more = "Others, medians, p90: --all, or -o DIR (tables, pictures)."
    last = f"The best setting saves {saved}. {_conditions(study, rows)} ±: standard error."
    return _framed(first, lines, [more, last], has_colours)


def _framed(
    first: str, lines: Sequence[str], ending: Sequence[str], has_colours: bool
) -> list[str]:
    head = [painted(line, "bold", has_colours) for line in sentences(first)]
    foot = [painted(line, "dim", has_colours) for text in ending for line in sentences(text)]
    return [*head, "", *lines, "", *foot]


def _blocks(study: Study, rows: Rows, key: str) -> dict[tuple[str, str], Rows]:
    """The rows of each table and quantity or objective; the table is '' where it is the only."""
    several = len(study.tables) > 1
    by_block = grouped(rows, "table", key).items()
    return {(f"{name}, " if several else "", kind): group for (name, kind), group in by_block}


def _tables(
    blocks: dict[str, Rows],
    who: str,
    value: str,
    headings: Sequence[str],
    cells: Cells,
    has_colours: bool,
) -> list[str]:
    """A table for each block, or of many blocks one with the best of each.

    value: by which rows are sorted. headings, cells: behind the name.
    """
    room = (MOST_LINES - _SCAFFOLD) // len(blocks) - (2 if len(blocks) > 1 else 1)
    if room < _FEWEST_ROWS:
        best = {name: _shown(rows, who, value, 1)[0] for name, rows in blocks.items()}
        told = [[name, row[who], *cells(row)[1:]] for name, row in best.items()]
        room = MOST_LINES - _SCAFFOLD
        named = ["", "best"]
        lines = table([*named, *headings[1:]], told[:room], named, has_colours=has_colours)
        more = sentences(f"and {len(told) - room} more: --all")
        return [*lines, *more] if len(told) > room else lines
    lines = []
    for name, rows in blocks.items():
        shown = _shown(rows, who, value, min(room, MOST_ROWS))
        names = [row[who] for row in shown]
        labels = [
            f"{row[who]} {row['features']}" if names.count(row[who]) > 1 and row["features"]
            else row[who]
            for row in shown
        ]  # fmt: skip
        values = [_size(row, value) for row in shown]
        most = max((one for one in values if math.isfinite(one)), default=0.0) or 1.0
        meanings: list[Meaning | None] = ["answer", *[None] * (len(shown) - 1)]
        lines += ["" for _ in lines[:1]] + table(
            [name if len(blocks) > 1 else who, *headings],
            [[label, *cells(row)] for label, row in zip(labels, shown, strict=True)],
            [name, who, "", "limit kept by"],
            [min(one / most, 1.0) for one in values],
            meanings,
            has_colours,
        )
    return lines


def _shown(rows: Rows, who: str, value: str, count: int) -> Rows:
    """So many rows, best first: predictors, then what is trivial, then other baselines."""
    known = (*BASELINES, *STRATEGIES)

    def rank(row: Row) -> tuple[bool, bool, float]:
        return row[who] in known, row[who] not in TRIVIAL, _size(row, value)

    kept = sorted(rows, key=rank)[:count]
    return sorted(kept, key=lambda row: _size(row, value))


def _size(row: Row, value: str) -> float:
    return math.inf if row[value] is None else row[value]


def _error_cells(row: Row) -> list[str]:
    mark = ""
    if row["behind_best"] is not None and row["within_error_of_best"]:
        mark = "best" if row["behind_best"] == 0 else _NOT_TOLD
    worst, held = percent(row["worst_kernel_mape"], ""), row["coverage"]
    return [mark, _with_error(row, "mape", "standard_error"), worst, _share(held)]


def _regret_cells(row: Row) -> list[str]:
    return [
        "",
        KEPT_BY[row["rule"]],
        _with_error(row, "regret_mean", "regret_standard_error"),
        *(
            "" if row[name] is None else percent(row[name], sign)
            for name, sign in (("worst_regret", ""), ("saving_mean", ""), ("slowdown_mean", "+"))
        ),
        _share(row["breaks_limits_percent"]),
    ]


def _with_error(row: Row, value: str, error: str) -> str:
    if row[value] is None:
        return "-"
    return percent(row[value], "") + ("" if row[error] is None else f" ±{row[error]:z.1f}")


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0f} %"


def _kernels(study: Study) -> str:
    """How many kernels of how many applications are tested, and on which GPUs."""
    tables = study.tables.values()
    kernels = counted(sum(len(data.kernels) for data in tables), "kernel")
    applications = counted(sum(len(set(data.applications)) for data in tables), "application")
    return f"{kernels} of {applications} on {', '.join(dict.fromkeys(d.device for d in tables))}"


def _held_out(document: Document) -> str:
    train_on = ", ".join(document.get("train_on", ()))
    words = HELD_OUT[document["protocol"]].format(folds=document.get("folds"), train_on=train_on)
    return words + TRAINED.get(document.get("training", ""), "")


def _conditions(study: Study, rows: Rows) -> str:
    """From where it is predicted, how often, and whether the data were measured."""
    bases = dict.fromkeys(str(HardwareConfig(**row["base"])) for row in rows)
    origins = dict.fromkeys(data.metadata.get("origin") for data in study.tables.values())
    said = " and ".join(str(origin) for origin in origins if origin)
    parts = [*([f"{said} data"] if said else []), f"base {next(iter(bases))}"][: 1 + bool(said)]
    if len(bases) > 1:
        parts[-1] += " and others"
    seeds = counted(rows[0]["n_seeds"], "seed")
    text = f"{'; '.join(parts)}; {seeds}."
    return text[0].upper() + text[1:]
