"""mlscale literature nagasaka: board power from counters per second, on tables of measurements."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mlscale.cli import options
from mlscale.cli.text import columns, number
from mlscale.errors import DataWarning, InputError
from mlscale.literature.nagasaka_counters import BASELINE, FULL, SETS

if TYPE_CHECKING:
    from mlscale.grid import HardwareConfig
    from mlscale.literature.nagasaka_counters import PowerInputs
    from mlscale.studies.nagasaka import SetErrors

SEEDS = 5
ALL, PAPER = "all", "as in the paper"
_TEXTURE = "reads more through the texture cache than its global loads: textures, or spilled "
_TEXTURE += "registers, of which no counter of the model counts the cache's hits"
_UNTRAINED = "was zero in all of the training kernels: its energy could not be learnt"

NOTE = f"""\
Power at the base, every kernel held out once in ten folds; mean of the shuffles. Published:
4.7 % and 54.9 W² with Full on a GTX 285 (43 kernels); squared errors do not compare across GPUs.
*: DRAM transactions stand in for TLB misses. '{BASELINE}': the mean power, without counters.
{PAPER}: without kernels of fewer than 4 blocks per CU and those that read textures."""


@dataclass(frozen=True, eq=False)
class _Case:
    """One table with some of its kernels, and the errors of every set of counters there."""

    table: str
    device: str
    base: HardwareConfig
    kernels: str
    inputs: PowerInputs
    results: list[SetErrors]

    def chosen(self, name: str) -> SetErrors:
        """The errors of one set with folds by application."""
        return next(r for r in self.results if (r.name, r.grouping) == (name, "application"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "table", nargs="+", metavar="TABLE", help="tidy table with nvprof counters and power"
    )
    parser.add_argument(
        "--base",
        default="mid",
        help="configuration of counters, time and power, or 'mid' (default)",
    )
    parser.add_argument(
        "--counters",
        choices=tuple(SETS),
        default=FULL,
        metavar="SET",
        help="set of counters to show contributions and watts of: "
        f"{', '.join(SETS)} (default: {FULL}, as in the paper)",
    )
    parser.add_argument(
        "--shuffles",
        type=options.whole_number,
        default=SEEDS,
        metavar="N",
        help="repeat the ten folds with N shuffles (default: %(default)s)",
    )
    options.add_reading(parser)
    parser.add_argument(
        "--figure",
        metavar="DIR",
        help="draw the paper's Fig. 2 to 5 there for each table, as PNG and SVG",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead")


def run(arguments: argparse.Namespace) -> None:
    """Evaluate every table, print the figures, and draw them. Raises InputError."""
    from tqdm import tqdm

    inputs = dict(_read(arguments))
    total = sum(2 * len(i.sets) for *_, i in inputs.values())
    with tqdm(total=total, unit="set", disable=None, leave=False) as bar:
        cases = [
            _Case(table, device, base, kernels, some, _evaluate(some, arguments, bar))
            for (table, kernels), (device, base, some) in inputs.items()
        ]
    document = _document(cases, arguments.counters)
    if arguments.figure:
        with options.output_folder(arguments.figure) as folder:
            document["figures"] = [str(f) for f in _draw(folder, cases, arguments.counters)]
    print(json.dumps(document, indent=1) if arguments.json else _as_text(document))


def _read(
    arguments: argparse.Namespace,
) -> Iterator[tuple[tuple[str, str], tuple[str, HardwareConfig, PowerInputs]]]:
    """By table and choice of kernels: device, base and inputs. Errors name the file."""
    from mlscale.literature.nagasaka_counters import derive_inputs
    from mlscale.measurements import read_measurements
    from mlscale.studies.nagasaka import FOLDS

    seen = set()
    for text in arguments.table:
        path = options.input_file(text)
        data = read_measurements(path, arguments.incomplete, arguments.repetitions)
        base = data.grid.parse(arguments.base)
        if path.stem in seen:
            raise InputError(f"two tables are named '{path.stem}'; rename one")
        seen.add(path.stem)
        try:
            inputs = derive_inputs(data.profiles(base))
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        if arguments.counters not in inputs.sets:
            raise InputError(f"{path}: lacks the counters of the set '{arguments.counters}'")
        found = len(set(inputs.applications))
        if found < FOLDS:
            raise InputError(
                f"{path}: has {found} applications and ten-fold evaluation needs {FOLDS}; "
                "measure kernels of more applications"
            )
        yield (path.stem, ALL), (data.device, base, inputs)
        as_in_paper = inputs.as_in_paper()
        if len(set(as_in_paper.applications)) >= FOLDS:
            yield (path.stem, PAPER), (data.device, base, as_in_paper)
        else:
            warnings.warn(
                f"{path}: of the kernels that the paper would keep there are those of "
                f"{len(set(as_in_paper.applications))} applications, too few for ten folds: "
                "they are not evaluated by themselves",
                DataWarning,
                stacklevel=2,
            )


def _evaluate(inputs: PowerInputs, arguments: argparse.Namespace, bar: Any) -> list[SetErrors]:
    from mlscale.studies.nagasaka import GROUPINGS, evaluate

    results = []
    for result in evaluate(inputs, tuple(inputs.sets), GROUPINGS, arguments.shuffles):
        results.append(result)
        bar.update()
    return results


def _document(cases: list[_Case], chosen: str) -> dict[str, Any]:
    """The figures as JSON: docs/file-formats.md."""
    return {
        "literature": "nagasaka",
        "counters": chosen,
        "rows": [_row(case, result) for case in cases for result in case.results],
        "models": [_model(case, chosen) for case in cases],
        "estimates": [
            {"table": case.table, "kernels": case.kernels, "kernel": kernel}
            | {"actual_w": float(actual), "estimated_w": float(estimated)}
            for case in cases
            for kernel, actual, estimated in zip(
                case.inputs.kernels,
                case.inputs.power_w,
                case.chosen(chosen).estimated_w.mean(axis=0),
                strict=True,
            )
        ],
        "unseen": [row for case in cases if case.kernels == ALL for row in _unseen(case)],
    }


def _identity(case: _Case) -> dict[str, Any]:
    return {
        "table": case.table,
        "device": case.device,
        "base": case.base.as_dict(),
        "kernels": case.kernels,
        "n_kernels": len(case.inputs.kernels),
    }


def _row(case: _Case, result: SetErrors) -> dict[str, Any]:
    from mlscale.metrics import summarise

    errors = result.errors_percent
    summary = summarise(errors.reshape(-1, 1), case.inputs.kernels * len(errors))
    return {
        **_identity(case),
        "counters": result.name,
        "variables": list(result.variables),
        "folds_by": result.grouping,
        "n_shuffles": len(errors),
        "mape": summary.mape,
        "mape_by_shuffle": errors.mean(axis=1).tolist(),
        "mean_squared_error_w2": result.mean_squared_error_w2,
        "median_kernel": summary.median_kernel,
        "p90": summary.p90,
        "worst_kernel": summary.worst_kernel,
        "worst_kernel_mape": summary.worst_kernel_mape,
        "penalty_median": float(np.median(result.penalty)),
    }


def _model(case: _Case, chosen: str) -> dict[str, Any]:
    """The model of all kernels: energies, intercept and mean contributions (Fig. 4)."""
    from mlscale.literature.nagasaka import contribution_ratios
    from mlscale.studies.nagasaka import fit_all

    model, penalty = fit_all(case.inputs, chosen)
    names = case.inputs.sets[chosen]
    try:
        ratios = contribution_ratios(model, case.inputs.matrix(chosen))
    except InputError as error:
        raise InputError(f"{case.table}: {error}; choose other counters with --counters") from None
    return {
        **_identity(case),
        "counters": chosen,
        "penalty": penalty,
        "intercept_w": model.intercept_w,
        "energy_nj": dict(zip(names, (1e9 * model.energy_j).tolist(), strict=True)),
        "contribution_percent": dict(
            zip((*names, "intercept"), (100 * ratios).tolist(), strict=True)
        ),
    }


def _unseen(case: _Case) -> list[dict[str, Any]]:
    """The kernels that the model cannot see, the counter at fault, and why."""
    texture = [
        (kernel, "tex_cache_transactions", _TEXTURE)
        for kernel, flag in zip(case.inputs.kernels, case.inputs.texture, strict=True)
        if flag == 1
    ]
    zero = {
        (kernel, variable, _UNTRAINED): None
        for result in case.results
        for kernel, variables in zip(case.inputs.kernels, result.untrained, strict=True)
        for variable in variables
    }
    found = (*texture, *zero)
    return [{"table": case.table, "kernel": k, "counter": c, "why": why} for k, c, why in found]


def _as_text(document: dict[str, Any]) -> str:
    """For each table and choice of kernels the errors and the model; then what is unseen."""
    blocks = [NOTE]
    for model in document["models"]:
        case = (model["table"], model["kernels"])
        rows = [row for row in document["rows"] if (row["table"], row["kernels"]) == case]
        headers = ["counters", "by kernel", "MSE", "by application", "MSE"]
        headers += ["median", "p90", "worst", "worst kernel"]
        lines = []
        for name in dict.fromkeys(row["counters"] for row in rows):
            his, ours = (
                next(r for r in rows if (r["counters"], r["folds_by"]) == (name, by))
                for by in ("kernel", "application")
            )
            cells = [name]
            for row in (his, ours):
                cells += [f"{row['mape']:.1f}", number(row["mean_squared_error_w2"], 3)]
            cells += [f"{ours[key]:.1f}" for key in ("median_kernel", "p90", "worst_kernel_mape")]
            lines.append([*cells, ours["worst_kernel"]])
        base = ", ".join(f"{axis} {value:g}" for axis, value in model["base"].items())
        blocks.append(
            f"{model['table']}: error of power [%] and mean squared error [W²] on {model['device']}"
            f", {model['n_kernels']} kernels ({model['kernels']}), {base}, "
            f"{rows[0]['n_shuffles']} shuffles; median, p90 and worst: folds by application\n"
            f"{columns(headers, lines)}\n\n{_model_text(model)}"
        )
    unseen: dict[tuple[str, str, str], list[str]] = {}
    for row in document["unseen"]:
        unseen.setdefault((row["table"], row["counter"], row["why"]), []).append(row["kernel"])
    blocks += [
        f"{table}: the model cannot see all of {', '.join(kernels)}: {counter}: {why}"
        for (table, counter, why), kernels in unseen.items()
    ]
    return "\n\n".join([*blocks, *document.get("figures", [])])


def _model_text(model: dict[str, Any]) -> str:
    lines = [
        [name, number_or_sign(model["energy_nj"].get(name)), f"{share:+6.1f}"]
        for name, share in model["contribution_percent"].items()
    ]
    headers = [model["counters"], "energy [nJ/event]", "share of power [%]"]
    return (
        f"model of all these kernels: intercept {model['intercept_w']:.1f} W, "
        f"lambda {model['penalty']:.3g}\n{columns(headers, lines)}"
    )


def number_or_sign(value: float | None) -> str:
    """A signed energy in three digits; '-' for the intercept, which has none."""
    return "-" if value is None else f"{value:+.3g}"


def _draw(folder: Path, cases: list[_Case], chosen: str) -> list[Path]:
    """Fig. 2 to 4 of the kernels as in the paper, where there are enough; Fig. 5 of all."""
    files = []
    for table in dict.fromkeys(case.table for case in cases):
        of_table = [case for case in cases if case.table == table]
        files += _draw_table(folder, of_table[0], of_table[-1], chosen)
    return files


def _draw_table(folder: Path, everyone: _Case, seen: _Case, chosen: str) -> list[Path]:
    from mlscale.report import nagasaka_figures as figures

    def title(case: _Case, what: str) -> str:
        return (
            f"{case.table}: {what}\n{len(case.inputs.kernels)} kernels ({case.kernels}), "
            f"{case.device}, base {case.base}"
        )

    by_name = {
        (row["counters"], row["folds_by"]): row for row in (_row(seen, r) for r in seen.results)
    }
    bars = []
    for name in seen.inputs.sets:
        his, ours = by_name[name, "kernel"], by_name[name, "application"]
        bars.append(
            figures.SetBars(
                name,
                (his["mape"], ours["mape"]),
                (his["mean_squared_error_w2"], ours["mean_squared_error_w2"]),
                name == BASELINE,
            )
        )
    shares = _model(seen, chosen)["contribution_percent"]
    unseen = [row["kernel"] for row in _unseen(everyone)]
    watts = f"power estimated with {chosen} counters, folds by application"
    stem = f"{everyone.table}-nagasaka"
    return [
        *figures.draw_sets(folder, title(seen, "sets of counters"), bars, f"{stem}-fig2"),
        *figures.draw_watts(
            folder,
            title(seen, watts),
            seen.inputs.kernels,
            seen.inputs.power_w,
            seen.chosen(chosen).estimated_w.mean(axis=0),
            unseen,
            f"{stem}-fig3",
        ),
        *figures.draw_contributions(
            folder,
            title(seen, f"what the estimated power is made of, {chosen} counters"),
            list(shares),
            np.array(list(shares.values())),
            f"{stem}-fig4",
        ),
        *figures.draw_watts(
            folder,
            title(everyone, watts),
            everyone.inputs.kernels,
            everyone.inputs.power_w,
            everyone.chosen(chosen).estimated_w.mean(axis=0),
            unseen,
            f"{stem}-fig5",
        ),
    ]
