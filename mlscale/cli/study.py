"""mlscale study: errors of predictors on tables of measurements, and the regret of their advice."""

import argparse
import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mlscale.advice.objectives import COSTS, Limits, objective_name
from mlscale.cli import options, outputs
from mlscale.cli.text import columns, or_dash, print_document, without_empty
from mlscale.data.grid import HardwareConfig
from mlscale.data.measurements import Measurements
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import InputError
from mlscale.files import whole_file, write_text
from mlscale.predictors import why_wu
from mlscale.predictors.wu import AUTO, DEFAULT_CLUSTERS
from mlscale.progress import Progress
from mlscale.studies.crossval import SPLITS, Row, Rows, Study, connected, grouped
from mlscale.studies.errors import plan, settings_of
from mlscale.studies.regret import LAUNCH_SIGMA, MOST_APPLICATIONS
from mlscale.text import counted, shortened, spreadsheet_cell

ERRORS, ADVICE = "errors", "advice"
SUMMARIES = {
    ERRORS: "errors of predictors beside the baselines",
    ADVICE: "how much more than the true optimum the advised configurations cost (regret)",
}
FILES = {
    ERRORS: "the tables errors and kernels, and figures",
    ADVICE: "the tables advice and choices (with --runs also runs), and figures",
}
USUAL = {
    ERRORS: "bottleneck or board-time where it applies, and wu",
    ADVICE: "all that learn and apply",
}
DOCUMENT = "study.json"
TABLE_FORMATS = ("csv", "parquet")
OF_PREDICTORS = ("loss", "log_ratios", "counters")  # hyper-parameters that are options
AGAIN = "may be given again"
LEGEND = (
    "std. error: over {}. behind best: mean difference to the best, paired by application, +- its "
    "standard error; = not told from the best (paired t test, 5 %)."
)
TRAINED = {
    "own-table": "",
    "pooled": ", trained on all tables at once",
    "unseen-gpu": ", trained on other GPUs alone",
}

Document = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add a sub-command for each study, with the options of that study."""
    studies = parser.add_subparsers(dest="study", required=True, metavar="STUDY")
    for name, summary in SUMMARIES.items():
        description = f"{summary[0].upper()}{summary[1:]}."
        study = studies.add_parser(name, help=summary, description=description)
        _add_predictors(study, USUAL[name])
        if name == ERRORS:
            _add_quantities(study)
            _add_training(study)
        else:
            _add_objectives(study)
            _add_runs(study)
        _add_held_out(study)
        _add_results(study, FILES[name])


def _add_predictors(parser: argparse.ArgumentParser, usual: str) -> None:
    """Add who predicts, from what, and where the profile is taken."""
    from mlscale.counters.features import FEATURE_KINDS, WITH_POWER

    parser.add_argument("table", nargs="+", metavar="TABLE", help="tidy table, CSV or Parquet")
    parser.add_argument(
        "--predictor",
        dest="predictors",
        action="append",
        type=options.predictor_name,
        metavar="PREDICTOR",
        help=f"{options.predictor_names()}; {AGAIN} (default: {usual}); the baselines stand beside",
    )
    options.add_wu(parser)
    parser.add_argument(
        "--features",
        action="append",
        choices=(*FEATURE_KINDS, *(kind + WITH_POWER for kind in FEATURE_KINDS)),
        help="what is computed from the counters; +power adds the power at the base, in studies of "
        f"power alone; {AGAIN} (default: what suits the counters)",
    )
    parser.add_argument(
        "--base",
        type=options.configuration,
        help="configuration to predict from, 'mid' (default) or 'highest': every axis at its top",
    )
    parser.add_argument(
        "--clusters",
        type=options.cluster_count,
        metavar="K",
        help="number of clusters in each cluster set of wu, or 'auto': chosen inside each fold "
        f"(default: {DEFAULT_CLUSTERS}, or the number of training kernels if smaller)",
    )


def _add_quantities(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quantity",
        action="append",
        choices=tuple(QUANTITIES),
        help=f"what is predicted; {AGAIN} (default: both, where the table has power)",
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--pooled",
        action="store_const",
        const="pooled",
        dest="training",
        help="train on all tables at once; what is held out is held out of each (predictors: by "
        "default bottleneck alone, which can; the baselines learn from one table)",
    )
    group.add_argument(
        "--unseen-gpu",
        action="store_const",
        const="unseen-gpu",
        dest="training",
        help="train on the tables of other GPUs alone, without what is held out; of the predicted "
        "GPU only base profiles of other kernels are seen",
    )

    group.add_argument(
        "--train-on",
        action="append",
        metavar="TABLE",
        help="train on this table alone, without the applications that are tested, and test on "
        f"every kernel of the first tables, without folds; {AGAIN}, for predictors that "
        "learn from several",
    )


def _add_held_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol",
        dest="split",
        choices=SPLITS,
        help="who is held out: kernels of one application together, except by random-kernels, "
        f"which draws 20 %% of the kernels as Wu et al. did (default: {SPLITS[0]})",
    )
    parser.add_argument(
        "--seeds",
        type=options.whole_number,
        metavar="N",
        help="repeat with the seeds 0 to N-1 (default: 12 where who is held out is drawn at "
        "random, else 3); 1 for a single split",
    )


def _add_results(parser: argparse.ArgumentParser, files: str) -> None:
    """Add how tables are read, where results go, and where the work is done."""
    options.add_reading(parser)
    outputs.add_json(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help=f"folder for study.json and {files}, and for what --resume needs",
    )
    parser.add_argument(
        "--format",
        choices=TABLE_FORMATS,
        default="csv",
        help="format of the tables in -o DIR (default: %(default)s)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue the unfinished study in -o DIR"
    )
    parser.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="run on the Dask cluster of this scheduler, such as tcp://host:8786",
    )


def _add_objectives(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--minimize",
        dest="objectives",
        action="append",
        choices=tuple(COSTS),
        help=f"what is to be least; {AGAIN} (default: energy, edp and ed2p; time where "
        "the table has no power)",
    )
    options.add_limits(parser, "the kernel")


def _add_runs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--runs",
        type=options.whole_number,
        metavar="N",
        help="advise one configuration for each of N random runs, mixes of 1 to "
        f"{MOST_APPLICATIONS} held-out applications with log-normal launches "
        f"(sigma {LAUNCH_SIGMA:g}), instead of one for each kernel",
    )


def run(arguments: argparse.Namespace) -> None:
    """Run a study and print or write its figures. Raises InputError."""
    tables = _read_tables(arguments.table, arguments)
    study = plan(arguments.study, tables, **_settings(arguments))
    document, written = _carry_out(study, arguments)
    print_document(document, arguments.json, AS_TEXT[study.name])
    if arguments.json:
        return
    if study.name == ERRORS and not arguments.predictors:
        print("".join(f"\n{note}\n" for note in _notes(study)), end="")
    if written:
        print(f"\nWritten: {', '.join(map(str, written))}")


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the study is planned with: the options that are its own. Raises InputError."""
    settings = vars(arguments)
    given = {name: settings[name] for name in OF_PREDICTORS if settings.get(name)}
    if given:
        settings = {**settings, "predictors": _with_parameters(arguments, given)}
    if "max_power" in settings:
        static = {"static_power_w": arguments.static_power}
        settings = {**settings, "limits": options.read_limits(arguments), **static}
    if settings.get("train_on"):
        settings = {**settings, "train_on": _read_tables(arguments.train_on, arguments)}
    return {name: value for name, value in settings.items() if name in settings_of(arguments.study)}


def _with_parameters(arguments: argparse.Namespace, given: dict[str, Any]) -> list[Any]:
    """Return the predictors with the hyper-parameters that some of them take. InputError."""
    from mlscale.predictors import DEFAULT, create

    predictors: list[Any] = []
    for one in arguments.predictors or ["wu"]:
        known = {} if one == DEFAULT else create(one).get_params()
        own = {name: value for name, value in given.items() if name in known}
        predictors.append(create(one, **own) if own else one)
    return predictors


def _read_tables(texts: Sequence[str], arguments: argparse.Namespace) -> dict[str, Measurements]:
    """Return each table by the stem of its name. Raises InputError."""
    tables = options.read_tables(arguments, texts)
    return {path.stem: data for path, data in tables.items()}


def _carry_out(study: Study, arguments: argparse.Namespace) -> tuple[Document, list[Path]]:
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
        running = study.run(jobs, progress, client)
        try:
            results = outputs.in_order(running, len(study.parts), progress, arguments.output)
        except InputError:
            if progress:
                progress.remove()
            raise
        document = {**study.document(results), "fingerprint": fingerprint}
        written = []
        if folder and progress:
            tables = study.files(results)
            for name, rows in tables.items():
                written.append(_write_rows(folder / f"{name}.{arguments.format}", rows))
            written += _draw(study, folder, tables)
            write_text(folder / DOCUMENT, json.dumps(document, indent=1) + "\n")
            written.append(folder / DOCUMENT)
            progress.remove()
    return document, written


def _draw(study: Study, folder: Path, tables: dict[str, Rows]) -> list[Path]:
    """Draw the errors or regrets of each table; the paths. Raises InputError."""
    from mlscale.studies import figures

    origins = {name: data.metadata.get("origin") for name, data in study.tables.items()}
    if study.name == ERRORS:
        return figures.draw_errors(folder, tables["kernels"], origins)
    return figures.draw_regrets(folder, tables["choices"], origins)


def _write_rows(path: Path, rows: Rows) -> Path:
    """Write rows as Parquet, if the name ends so, or CSV; whole or not at all. InputError."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    if "clusters" in frame and AUTO not in frame["clusters"].to_list():
        # Whole numbers, though a candidate without clusters has none.
        frame = frame.astype({"clusters": "Int64"})
    with whole_file(path) as temporary:
        if path.suffix == ".parquet":
            frame.to_parquet(temporary, index=False)
        else:
            frame.map(spreadsheet_cell).to_csv(temporary, index=False)
    return path


def _notes(study: Study) -> list[str]:
    """Which predictor would be better than `wu` where nobody chose, and why it does not stand."""
    told = []
    for table, data in study.tables.items():
        names = {part.candidate.name for part in study.parts if part.table == table}
        if "wu" in names and not names.intersection(("bottleneck", "board-time")):
            told.append((table, why_wu(data, study.base_of(table))))
    return [f"{table}: {why}" for table, why in told if why]


def _errors_text(document: Document) -> str:
    """Return a block for each table and quantity; after several, their means together."""
    by_block = grouped(document["rows"], "table", "quantity")
    blocks = [_errors_block(document, rows) for rows in by_block.values()]
    blocks.append(LEGEND.format(document["rows"][0]["standard_error_over"]))
    if len(by_block) > 1:
        means = _means_together(by_block, "predictor", lambda row: f"{row['mape']:.1f}")
        blocks.append(f"Mean errors [%] together:\n{means}")
    return "\n\n".join(blocks)


def _errors_block(document: Document, rows: Rows) -> str:
    """Return the table of one quantity of one table, under a heading, with its notes."""
    first = rows[0]
    headers = ["predictor", "features", "MAPE", "std. error", "behind best", "seeds", "median"]
    headers += ["p90", "worst", "worst kernel", "without faulty", "in 90 % interval"]
    lines = [_cells(row) for row in rows]
    notes = ""
    if faulty := first["faulty_kernels"]:
        notes += f"\nNamed faulty: {', '.join(faulty)} (not scored there)."
    trained, note = _training(document, first)
    return (
        f"{first['table']}: error of {first['quantity']} [%], "
        f"{counted(first['n_kernels'], 'kernel')}, {_conditions(document, first, trained)}\n"
        f"{columns(*without_empty(headers, lines))}{notes}{note}"
    )


def _cells(row: Row) -> list[str]:
    """Return a predictor's figures; what is empty in all rows gets no column."""
    without_faulty = row["without_faulty"]
    return [
        *(row["predictor"], row["features"] or ""),
        *(_two_digits(row[name]) for name in ("mape", "standard_error")),
        *(_behind_best(row), _range_of_seeds(row)),
        *(_two_digits(row[name]) for name in ("median_kernel", "p90", "worst_kernel_mape")),
        row["worst_kernel"],
        f"{without_faulty['mape']:.2f}" if without_faulty else "",
        "" if row["coverage"] is None else f"{row['coverage']:.1f}",
    ]


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
    error = _two_digits(row["behind_best_standard_error"])
    mark = " =" if row["within_error_of_best"] else ""
    return f"{row['behind_best']:z.2f} +- {error}{mark}"


def _training(document: Document, first: Row) -> tuple[str, str]:
    """Return what was trained on, behind the protocol, and a note on what was left out of it."""
    if "train_on" not in first:
        return TRAINED[document.get("training", "own-table")], ""
    note = ""
    if first["left_out_of_training"]:
        left_out = ", ".join(first["left_out_of_training"])
        note = f"\nLeft out of the training, as they are tested: {left_out}."
    return (
        f" {', '.join(first['train_on'])} ({counted(first['n_training_kernels'], 'kernel')})",
        note,
    )


def _regrets_text(document: Document) -> str:
    """Return a block for each table and objective; after several, their mean regrets together."""
    under = Limits(**document["limits"]).under()
    by_block = grouped(document["rows"], "table", "objective")
    blocks = [_regrets_block(document, rows, under) for rows in by_block.values()]
    if len(by_block) > 1:
        by_name = {(table, objective_name(of)): rows for (table, of), rows in by_block.items()}
        means = _means_together(by_name, "advisor", lambda row: _two_digits(row["regret_mean"]))
        blocks.append(f"Mean regret [%] together{under}:\n{means}")
    return "\n\n".join(blocks)


def _regrets_block(document: Document, rows: Rows, under: str) -> str:
    what = "run" if document["runs"] else "kernel"
    headers = [
        "advisor",
        "features",
        "mean",
        "std. error",
        "median",
        "p90",
        "worst",
        f"worst {what}",
    ]
    has_intervals = any(row["interval_holds_percent"] is not None for row in rows)
    headers += ["saves %", *(["interval holds %"] if has_intervals else [])]
    headers += ["time %", *(["breaks limits %"] if under else [])]
    lines = []
    for row in rows:
        figures = ["mean", "standard_error", "median", "p90"]
        line = [row["advisor"], row["features"] or ""]
        line += [_two_digits(row[f"regret_{figure}"]) for figure in figures]
        line += [_two_digits(row["worst_regret"]), _worst(row), _two_digits(row["saving_mean"])]
        if has_intervals:
            line.append(or_dash(row["interval_holds_percent"], ".1f"))
        line.append(f"{row['slowdown_mean']:+z.1f}")
        lines.append(line + ([f"{row['breaks_limits_percent']:.1f}"] if under else []))
    first = rows[0]
    beyond = f" ({first['n_beyond_limits']} more cannot keep the limits)"
    return (
        f"{first['table']}: regret of {objective_name(first['objective'])} [%]{under}, "
        f"{first[f'n_{what}s']} {'random ' if document['runs'] else ''}{what}s"
        f"{beyond if first['n_beyond_limits'] else ''}, {_conditions(document, first)}; "
        f"the optimum saves {first['best_saving_mean']:z.1f} %\n{columns(headers, lines)}"
    )


def _worst(row: Row) -> str:
    """Return whose regret is the largest: the kernel, or the run's number with its applications."""
    if "worst_kernel" in row:
        return row["worst_kernel"] or "-"
    if row["worst_run"] is None:
        return "-"
    return f"{row['worst_run']} ({shortened(row['worst_run_applications'], 40)})"


def _conditions(document: Row, row: Row, trained: str = "") -> str:
    """Say how a row was come by: base, protocol, what was trained on, seeds and clusters."""
    clusters = document["clusters"]
    trained_on = row.get("n_training_kernels", row.get("n_kernels", float("inf")) / 2)
    may_be_fewer = isinstance(clusters, int) and trained_on < clusters
    return (
        f"base {HardwareConfig(**row['base'])}, {document['protocol']}{trained}, "
        f"{counted(row['n_seeds'], 'seed')}, {'at most ' * may_be_fewer}{clusters} clusters"
    )


def _two_digits(value: float | None) -> str:
    """Return a figure with two decimals, - where there is none."""
    return or_dash(value, "z.2f")


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


AS_TEXT: dict[str, Callable[[Document], str]] = {ERRORS: _errors_text, ADVICE: _regrets_text}
