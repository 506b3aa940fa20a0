"""mlscale study: errors of predictors on tables of measurements, and the regret of their advice."""

import argparse
import json
import os
import textwrap
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mlscale.advice.objectives import COSTS, Limits, objective_name
from mlscale.cli import options, outputs
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import (
    WIDEST,
    Line,
    base_line,
    columns,
    json_text,
    or_dash,
    percent,
    print_warnings,
    sentences,
    shown,
    shows_colours,
    table,
)
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import InputError
from mlscale.files import whole_file, write_text
from mlscale.notes import Note
from mlscale.predictors import DEFAULT, create, why_wu
from mlscale.progress import Progress
from mlscale.studies.base import PARTIAL_SPLITS, SEEDS, Row, Rows, Study, grouped
from mlscale.studies.candidates import BASELINES, ORACLE
from mlscale.studies.crossval import (
    FOLDS,
    HOLDOUT,
    K_FOLD,
    LEAVE_ONE_OUT,
    PROTOCOLS,
    RANDOM_KERNELS,
)
from mlscale.studies.parallel import connected
from mlscale.studies.regret import LAUNCH_SIGMA, MOST_APPLICATIONS
from mlscale.studies.statistics import error_over, paired_by
from mlscale.studies.study import options_of, plan
from mlscale.text import counted, spreadsheet_cell

ERRORS, ADVICE = "errors", "advice"
RUNS = " (runs: of other GPUs' tables, each run read at two clocks)"
DOCUMENT = "study.json"
OF_PREDICTORS = ("loss", "log_ratios", "counters")  # hyper-parameters that are options
AGAIN = "may be given again"
LEGEND = (
    "std. error: over {}. behind best: mean difference to the best, paired by {}, +- its "
    "standard error; = does not differ significantly from the best "
    "(paired t test, 5 %)."
)
KEPT_BY = {None: "", "cautious": "upper end", "expected": "expected"}  # limits of time
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
    "unseen-gpu": ", trained only on other GPUs",
}
HEADINGS = ("", "mean error", "worst kernel", "90 % holds")
_NOT_TOLD = "~ best"
_FEWEST_ROWS = 3

Columns = Sequence[tuple[str, Callable[[Row], str]]]


def add_arguments(parser: Parser) -> None:
    """Add a sub-command for each study, with the options of that study."""
    summaries = {
        ERRORS: "cross-validate predictors: errors on what was left out, next to the baselines",
        ADVICE: "cross-validate advice: how much more it costs than the true optimum (regret)",
    }
    studies = parser.add_commands("study", summaries)
    errors, advice = studies[ERRORS], studies[ADVICE]
    _add_predictors(errors, "bottleneck or runs where it applies, and wu")
    _add_training(errors)
    _add_held_out(errors)
    what = "print every predictor with medians, 90th percentiles and differences"
    errors.add("--all", action="store_true", help=what)
    outputs.add_colours(errors)
    _add_results(errors, "the tables errors, kernels and predictions, and figures")
    _add_predictors(advice, "all that learn and apply")
    _add_objectives(advice)
    _add_held_out(advice)
    _add_results(advice, "the tables advice and choices (with --runs also runs), and figures")


def _add_predictors(parser: Parser, usual: str) -> None:
    parser.usage = "%(prog)s TABLE ... [options]"
    add, append = parser.add, "append"
    add("table", nargs="+", metavar="TABLE", help="tidy table, CSV or Parquet")
    what = f"{options.predictor_names()}; {AGAIN} (default: {usual}); the baselines come with them"
    name = options.predictor_name
    add("--predictor", dest="predictors", action=append, type=name, metavar="PREDICTOR", help=what)
    what = "configuration to predict from, 'mid' or 'highest': every axis at its top (the default)"
    add("--base", type=options.configuration, metavar="CONFIG", help=what)
    options.add_wu(parser, append)


def _add_training(parser: Parser) -> None:
    what = f"{' or '.join(QUANTITIES)}; {AGAIN} (default: both, where the table has power)"
    kinds = tuple(QUANTITIES)
    parser.add("--quantity", action="append", choices=kinds, metavar="WHAT", help=what)
    group = parser.add_mutually_exclusive_group()
    kept: dict[str, Any] = {"action": "store_const", "dest": "training", "group": group}
    what = (
        "train on all tables at once; what is held out is held out of each (by default only "
        "bottleneck; the baselines learn from one table)"
    )
    parser.add("--pooled", const="pooled", help=what, **kept)
    what = (
        "train only on the tables of other GPUs, without what is held out; the predicted GPU "
        "contributes only base profiles of other kernels"
    )
    parser.add("--unseen-gpu", const="unseen-gpu", help=what, **kept)
    what = (
        "train on this table alone, without the applications that are tested, and test on every "
        f"kernel of the first tables, without folds; {AGAIN}, if predictors learn from several"
    )
    parser.add_more("--train-on", action="append", metavar="TABLE", group=group, help=what)


def _add_held_out(parser: Parser) -> None:
    what = (
        "what is held out: kernels of one application together, except by random-kernels, which "
        f"draws 20 %% of the kernels as Wu et al. did (default: {PROTOCOLS[0]})"
    )
    parser.add_more("--protocol", choices=PROTOCOLS, help=what)
    what = f"how many folds of applications; means --protocol {K_FOLD} (default: {FOLDS})"
    parser.add_more("--folds", type=options.whole_number, metavar="N", help=what)
    what = f"repeat with the seeds 0 to N-1 (default: {SEEDS}, or {PARTIAL_SPLITS} of 20 %% each)"
    parser.add("--seeds", type=options.whole_number, metavar="N", help=what)


def _add_results(parser: Parser, files: str) -> None:
    outputs.add_json(parser)
    what = f"folder for study.json and {files}, and for what --resume needs"
    parser.add("-o", "--output", metavar="DIR", help=what)
    what = "continue the unfinished study in -o DIR"
    parser.add("--resume", action="store_true", help=what)
    what = "format of the tables in -o DIR (default: %(default)s)"
    parser.add_more("--format", choices=("csv", "parquet"), default="csv", help=what)
    what = "run on the Dask cluster of this scheduler, such as tcp://host:8786"
    parser.add_more("--dask", metavar="ADDRESS", help=what)
    options.add_reading(parser)


def _add_objectives(parser: Parser) -> None:
    usual = "energy, and edp and ed2p in files alone, or time without power"
    what = f"{', '.join(COSTS)}; {AGAIN} (default: {usual})"
    costs: dict[str, Any] = {"dest": "objectives", "choices": tuple(COSTS), "metavar": "WHAT"}
    parser.add("--minimize", action="append", help=what, **costs)
    options.add_limits(parser, "the kernel")
    what = (
        "advise one configuration for each of N random runs, mixes of 1 to "
        f"{MOST_APPLICATIONS} held-out applications with log-normal launches "
        f"(sigma {LAUNCH_SIGMA:g}), instead of one for each kernel"
    )
    parser.add_more("--runs", type=options.whole_number, metavar="N", help=what)


def run(arguments: argparse.Namespace) -> None:
    """Run a study and print or write its figures. Raises InputError."""
    study = plan(arguments.study, _read_tables(arguments.table, arguments), **_settings(arguments))
    document, written = _carry_out(study, arguments)
    is_of_errors = study.name == ERRORS
    if arguments.json:
        print(json_text(document), end="")
        return
    if is_of_errors and not arguments.all:
        print(errors_in_short(study, document, shows_colours(arguments.color)), end="")
    else:
        print(_errors_text(document) if is_of_errors else _regrets_text(document, arguments))
    if is_of_errors and not arguments.predictors:
        print_warnings(_notes(study))
    if written:
        print(f"\nWritten to {arguments.output}: {counted(len(written), 'file')}")


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the study is planned with: the options that are its own. Raises InputError."""
    settings = dict(vars(arguments))
    given = {name: settings[name] for name in OF_PREDICTORS if settings.get(name)}
    if given:
        asked = arguments.predictors or ["wu"]
        settings["predictors"] = [_with_parameters(one, given) for one in asked]
    if arguments.study == ADVICE:
        settings["limits"] = options.read_limits(arguments)
        settings["static_power_w"] = arguments.static_power
    elif arguments.train_on:
        settings["train_on"] = _read_tables(arguments.train_on, arguments)
    known = options_of(arguments.study)
    return {name: value for name, value in settings.items() if name in known}


def _with_parameters(name: str, given: dict[str, Any]) -> Any:
    """Return a predictor with those of the given hyper-parameters that it takes. InputError."""
    known = {} if name == DEFAULT else create(name).get_params()
    taken = {parameter: value for parameter, value in given.items() if parameter in known}
    return create(name, **taken) if taken else name


def _read_tables(texts: Sequence[str], arguments: argparse.Namespace) -> dict[str, Measurements]:
    tables = options.read_tables(arguments, texts)
    return {path.stem: data for path, data in tables.items()}


def _carry_out(study: Study, arguments: argparse.Namespace) -> tuple[Row, list[Path]]:
    """Run a study: its document, and the files that were written. Raises InputError.

    What is done is kept in the folder of --output until all is; an interrupt says so.
    """
    fingerprint = study.fingerprint()
    with ExitStack() as stack:
        folder = progress = client = None
        if arguments.output:
            folder = stack.enter_context(outputs.output_folder(arguments.output))
            finished = outputs.finished_document(folder / DOCUMENT, fingerprint)
            if finished and arguments.resume and not Progress.is_in(folder):
                return finished, []
        if arguments.dask:
            client = stack.enter_context(connected(arguments.dask))
        if folder:
            progress = stack.enter_context(Progress(folder, fingerprint, arguments.resume))
        jobs = min(os.cpu_count() or 1, len(study.parts))
        try:
            running = study.run(jobs, progress, client)
            sizes = [len(part.folds(study.tables[part.table])) for part in study.parts]
            results = outputs.in_order(running, sizes, progress, arguments.output, "fold")
        except InputError:
            if progress:
                progress.remove()
            raise
        document = {**study.document(results), "fingerprint": fingerprint}
        written = []
        if folder and progress:
            written = _write(study, results, folder, arguments.format)
            write_text(folder / DOCUMENT, json.dumps(document, indent=1) + "\n")
            written.append(folder / DOCUMENT)
            progress.remove()
    return document, written


def _write(study: Study, results: Sequence[Any], folder: Path, form: str) -> list[Path]:
    """Write the tables and draw the errors or regrets of each table; the paths. InputError."""
    from mlscale.studies import figures

    tables = study.files(results)
    written = [_write_rows(folder / f"{name}.{form}", rows) for name, rows in tables.items()]
    origins = {name: data.metadata.get("origin") for name, data in study.tables.items()}
    if study.name == ERRORS:
        written += figures.draw_errors(folder, tables["kernels"], origins)
        given = tables["errors"], tables["predictions"]
        return written + figures.draw_predictions(folder, *given, origins)
    return written + figures.draw_regrets(folder, tables["choices"], origins)


def _write_rows(path: Path, rows: Any) -> Path:
    import pandas as pd

    frame = pd.DataFrame(rows)
    with whole_file(path) as temporary:
        if path.suffix == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            frame.map(spreadsheet_cell).to_csv(temporary, index=False)
    return path


def _notes(study: Study) -> list[Note]:
    """Which predictor would be better than `wu` where nobody chose, and why it does not stand."""
    notes = []
    for name, data in study.tables.items():
        parts = [part for part in study.parts if part.table == name]
        names = {part.candidate.name for part in parts}
        why = why_wu(data, parts[0].base) if "wu" in names else None
        if why and names.isdisjoint(("bottleneck", "runs")):
            notes.append(Note("P08", f"{name}: {why}"))
    return notes


def _errors_text(document: Row) -> str:
    """Return a block for each table and quantity; after several, their means together."""
    by_block = grouped(document["rows"], "table", "quantity")
    blocks = [_errors_block(document, rows) for rows in by_block.values()]
    protocol = document["protocol"]
    blocks.append(LEGEND.format(error_over(protocol), paired_by(protocol)))
    if len(by_block) > 1:
        means = _means_together(by_block, "predictor", lambda row: f"{row['mape']:.1f}")
        blocks.append(f"Mean errors [%] together:\n{means}")
    return "\n\n".join(blocks)


def _errors_block(document: Row, rows: Rows) -> str:
    """Return the table of one quantity of one table, under a heading, with its notes."""
    first = rows[0]
    trained = TRAINED[document.get("training", "own-table")]
    notes = ""
    if faulty := first["faulty_kernels"]:
        notes += f"\nNamed faulty: {', '.join(faulty)} (not scored there)."
    if "train_on" in first:
        kernels = counted(first["n_training_kernels"], "kernel")
        trained = f" {', '.join(first['train_on'])} ({kernels})"
        if left_out := first["left_out_of_training"]:
            notes += f"\nLeft out of the training, as they are tested: {', '.join(left_out)}."
    cells: Columns = (
        ("predictor", lambda row: row["predictor"]),
        ("features", lambda row: row["features"] or ""),
        ("MAPE", _two_digits("mape")),
        ("std. error", _two_digits("standard_error")),
        ("behind best", _behind_best),
        ("seeds", _range_of_seeds),
        ("median", _two_digits("median_kernel")),
        ("p90", _two_digits("p90")),
        ("worst", _two_digits("worst_kernel_mape")),
        ("worst kernel", lambda row: row["worst_kernel"]),
        ("without faulty", _without_faulty),
        ("in 90 % interval", _percent("coverage")),
    )
    return (
        f"{first['table']}: error of {first['quantity']} [%], "
        f"{counted(first['n_kernels'], 'kernel')}, {_conditions(document, first, trained)}\n"
        f"{_table(cells, rows)}{notes}"
    )


def _table(cells: Columns, rows: Rows) -> str:
    """Return rows as text; a column that is empty in all rows is left out."""
    full = [(header, cell) for header, cell in cells if any(map(cell, rows))]
    lines = [[cell(row) for _, cell in full] for row in rows]
    return columns([header for header, _ in full], lines)


def _two_digits(name: str) -> Callable[[Row], str]:
    return lambda row: or_dash(row[name], "z.2f")


def _percent(name: str) -> Callable[[Row], str]:
    return lambda row: "" if row[name] is None else f"{row[name]:.1f}"


def _without_faulty(row: Row) -> str:
    return f"{row['without_faulty']['mape']:.2f}" if row["without_faulty"] else ""


def _range_of_seeds(row: Row) -> str:
    """Return the lowest and the highest mean of a seed, '' where all are one."""
    low, high = min(row["mape_by_seed"]), max(row["mape_by_seed"])
    return f"{low:.1f} to {high:.1f}" if low < high else ""


def _behind_best(row: Row) -> str:
    """Return how far a predictor is behind the best; nothing for the oracle."""
    if row["behind_best"] is None:
        return ""
    if row["behind_best"] == 0:
        return "best"
    error = or_dash(row["behind_best_standard_error"], "z.2f")
    mark = " =" if row["within_error_of_best"] else ""
    return f"{row['behind_best']:z.2f} +- {error}{mark}"


def _regrets_text(document: Row, arguments: argparse.Namespace) -> str:
    """Return a block for each table and objective; after several, their mean regrets together.

    Without any that is asked for, the first objective alone is told.
    """
    under = Limits(**document["limits"]).under()
    rows, more = document["rows"], "medians, p90, the worst"
    objectives = list(dict.fromkeys(row["objective"] for row in rows))
    if not arguments.objectives and objectives[1:]:
        rows = [row for row in rows if row["objective"] == objectives[0]]
        more = f"{', '.join(map(objective_name, objectives[1:]))} (or --minimize), {more}"
    by_block = grouped(rows, "table", "objective")
    blocks = [_regrets_block(document, rows, under) for rows in by_block.values()]
    if len(by_block) > 1:
        by_name = {
            (table, objective_name(one)): [row | {"advisor": _with_rule(row)} for row in rows]
            for (table, one), rows in by_block.items()
        }
        means = _means_together(by_name, "advisor", _two_digits("regret_mean"))
        blocks.append(f"Mean regret [%] together{under}:\n{means}")
    return "\n\n".join(
        [*blocks, f"{more[0].upper()}{more[1:]}: -o DIR (tables, pictures), or --json."]
    )


def _regrets_block(document: Row, rows: Rows, under: str) -> str:
    """Return the table of one objective on one table, under a heading. under: the limits."""
    first = rows[0]
    what, kind = ("run", "random run") if document["runs"] else ("kernel", "kernel")
    cells: Columns = (
        ("advisor", lambda row: row["advisor"]),
        ("features", lambda row: row["features"] or ""),
        ("limit by", lambda row: KEPT_BY[row["rule"]]),
        ("mean", _two_digits("regret_mean")),
        ("±", _two_digits("regret_standard_error")),
        ("worst", _two_digits("worst_regret")),
        ("saves %", _two_digits("saving_mean")),
        ("held %", _percent("interval_holds_percent")),
        ("time %", lambda row: f"{row['slowdown_mean']:+z.1f}"),
        ("breaks %", _percent("breaks_limits_percent") if under else lambda _: ""),
        ("by >1 %", _percent("passes_limit_percent")),
    )
    beyond = f" ({first['n_beyond_limits']} more cannot keep the limits)"
    trained = RUNS * (first["table"] in document.get("runs_from_other_gpus", ()))
    heading = (
        f"{first['table']}: regret of {objective_name(first['objective'])} [%]{under}, "
        f"{counted(first[f'n_{what}s'], kind)}{beyond if first['n_beyond_limits'] else ''}, "
        f"{_conditions(document, first, trained)}; the optimum saves "
        f"{first['best_saving_mean']:z.1f} %"
    )
    lines = textwrap.wrap(heading.replace(" %", "\xa0%"), WIDEST, break_on_hyphens=False)
    return "\n".join([*(line.replace("\xa0", " ") for line in lines), _table(cells, rows)])


def _with_rule(row: Row) -> str:
    return f"{row['advisor']}{' by ' * bool(row['rule'])}{KEPT_BY[row['rule']]}"


def _conditions(document: Row, row: Row, trained: str = "") -> str:
    """Say how a row was come by: base, protocol, what was trained on, seeds and clusters."""
    clusters = document["clusters"]
    trained_on = row.get("n_training_kernels", row.get("n_kernels", float("inf")) / 2)
    may_be_fewer = isinstance(clusters, int) and trained_on < clusters
    folds = f" of {document['folds']} folds" if "folds" in document else ""
    return (
        f"base {HardwareConfig(**row['base'])}, {document['protocol']}{folds}{trained}, "
        f"{counted(row['n_seeds'], 'seed')}, {'at most ' * may_be_fewer}{clusters} clusters"
    )


def _means_together(
    by_block: dict[tuple[Any, ...], Rows], who: str, cell: Callable[[Row], str]
) -> str:
    """Return a row for each of `who` and kind of features, a column for each table and quantity."""
    cells = {
        (*block, row[who], row["features"]): cell(row)
        for block, rows in by_block.items()
        for row in rows
    }
    headers = [who, "features", *(f"{table} {quantity}" for table, quantity in by_block)]
    lines = [
        [name, features or "", *(cells.get((*block, name, features), "-") for block in by_block)]
        for name, features in dict.fromkeys(key[2:] for key in cells)
    ]
    return columns(headers, lines)


def errors_in_short(study: Study, document: Row, has_colours: bool) -> str:
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


def _in_words(study: Study, document: Row, rows: Rows) -> tuple[str, str]:
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
