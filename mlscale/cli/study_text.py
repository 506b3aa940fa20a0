"""The short answer of mlscale study errors: what was held out, and who is off by how much."""

from typing import Any

from mlscale.cli.terminal import Line, base_line, percent, sentences, shown, table
from mlscale.data.grid import HardwareConfig
from mlscale.studies.base import Row, Rows, Study, grouped
from mlscale.studies.candidates import BASELINES, ORACLE
from mlscale.studies.crossval import HOLDOUT, K_FOLD, LEAVE_ONE_OUT, RANDOM_KERNELS
from mlscale.text import counted

MOST_ROWS = 8
LINES_OF_TABLES = 16
TRIVIAL = "no-scaling"  # what anybody has without a model
HELD_OUT = {
    LEAVE_ONE_OUT: "one application left out at a time",
    K_FOLD: "{folds} groups of applications left out in turn",
    HOLDOUT: "a fifth of the applications left out",
    RANDOM_KERNELS: "a fifth of the kernels left out",
    "train-on": "trained on {train_on} instead",
}
TRAINED = {
    "own-table": "",
    "pooled": ", trained on all tables at once",
    "unseen-gpu": ", trained on other GPUs alone",
}
HEADINGS = ("", "mean error", "worst kernel", "90 % holds")
_NOT_TOLD = "~ best"
_FEWEST_ROWS = 3


def errors_in_short(study: Study, document: dict[str, Any], has_colours: bool) -> str:
    """The errors: a table for each quantity of each table, best first."""
    rows = [row for row in document["rows"] if row["predictor"] != ORACLE]
    several = len(study.tables) > 1
    blocks = {
        f"{name}, {quantity}" if several else quantity: group
        for (name, quantity), group in grouped(rows, "table", "quantity").items()
    }
    room = LINES_OF_TABLES // len(blocks) - 2
    if room >= _FEWEST_ROWS:
        lines: list[Line] = []
        for name, group in blocks.items():
            lines += [Line() for _ in lines[:1]]
            lines += _block(name if len(blocks) > 1 else "predictor", group, room)
    else:
        best = [[name, *_cells(_shown(group, 1)[0])] for name, group in blocks.items()]
        cells = [[name, who, *figures] for name, who, _, *figures in best[:LINES_OF_TABLES]]
        lines = table(["", "best", *HEADINGS[1:]], cells)
        if len(best) > len(cells):
            lines += sentences(f"and {len(best) - len(cells)} more: --all")
    legend = " ±: standard error."
    if any(_NOT_TOLD in line.text for line in lines):
        legend += f" {_NOT_TOLD}: does not differ significantly from the best."
    more_figures = "Others, medians, p90, differences: --all, or -o DIR (tables, pictures)."
    question, conditions = _in_words(study, document, rows)
    bases = dict.fromkeys(HardwareConfig(**row["base"]) for row in rows)
    highest = {data.grid.highest for data in study.tables.values()}
    base = base_line(map(str, bases), study.base, bases.keys() <= highest)
    below = [*sentences(more_figures, "dim"), *sentences(conditions + legend, "dim")]
    return shown([*base, *sentences(question, "bold"), Line(), *lines, Line(), *below], has_colours)


def _block(name: str, rows: Rows, room: int) -> list[Line]:
    """One table, the best in colour; kinds of features are told where a predictor has several."""
    shown = _shown(rows, min(room, MOST_ROWS))
    names = [row["predictor"] for row in shown]
    cells = [_cells(row) for row in shown]
    for line, row in zip(cells, shown, strict=True):
        if names.count(row["predictor"]) > 1 and row["features"]:
            line[0] += f" {row['features']}"
    most = max(row["mape"] for row in shown) or 1.0
    shares = [row["mape"] / most for row in shown]
    return table([name, *HEADINGS], cells, shares, ["answer", *[None] * len(cells[1:])])


def _shown(rows: Rows, count: int) -> Rows:
    """So many rows, best first: of predictors, then of what is trivial, then of other baselines."""

    def rank(row: Row) -> tuple[bool, bool, float]:
        return row["predictor"] in BASELINES, row["predictor"] != TRIVIAL, row["mape"]

    return sorted(sorted(rows, key=rank)[:count], key=lambda row: row["mape"])


def _cells(row: Row) -> list[str]:
    mark = ""
    if row["behind_best"] is not None and row["within_error_of_best"]:
        mark = "best" if row["behind_best"] == 0 else _NOT_TOLD
    error, held = row["standard_error"], row["coverage"]
    mean = percent(row["mape"], "") + ("" if error is None else f" ±{error:z.1f}")
    worst = percent(row["worst_kernel_mape"], "")
    return [row["predictor"], mark, mean, worst, "" if held is None else f"{held:.0f} %"]


def _in_words(study: Study, document: dict[str, Any], rows: Rows) -> tuple[str, str]:
    """What is asked, and what was tested, how often, and whether it was measured."""
    tables = study.tables.values()
    kernels = counted(sum(len(data.kernels) for data in tables), "kernel")
    applications = counted(sum(len(set(data.applications)) for data in tables), "application")
    quantities = " and ".join(dict.fromkeys(row["quantity"] for row in rows)).capitalize()
    train_on = ", ".join(document.get("train_on", ()))
    held_out = HELD_OUT[document["protocol"]].format(folds=document.get("folds"), train_on=train_on)
    question = (
        f"How far off is a prediction of a kernel that was not trained on? {quantities} of "
        f"{kernels} of {applications} on {', '.join(dict.fromkeys(d.device for d in tables))}, "
        f"{held_out}{TRAINED[document.get('training', 'own-table')]}."
    )
    origins = dict.fromkeys(data.metadata.get("origin") for data in tables)
    data = " and ".join(str(origin) for origin in origins if origin)
    told = [f"{data.capitalize()} data"] * bool(data)
    tested = "; ".join([*told, counted(rows[0]["n_seeds"], "seed")])
    return question, f"{tested[0].upper()}{tested[1:]}."
