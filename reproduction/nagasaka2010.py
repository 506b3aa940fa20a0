"""Nagasaka et al., "Statistical power modeling of GPU kernels using performance counters" (2010).

    python reproduction/nagasaka2010.py [fig2 fig3 fig4 fig5 penalty] [--counters SET]

The paper's GTX 285 and its kernels are not public; here are the 30 kernels of four public tables,
with the nearest counters of nvprof. Ten folds, lambda chosen anew inside each by a cross-validation
of its training kernels alone, as in section IV; means over five shuffles of the folds.
"""

import argparse
import warnings
from collections.abc import Sequence
from functools import cache

import numpy as np
from common import MEASURED, Panel, Report, base_of, run, table

from mlscale import HardwareConfig
from mlscale.arrays import Floats, Indices
from mlscale.papers.nagasaka import (
    BASELINE,
    FULL,
    PowerInputs,
    contribution_ratios,
    derive_inputs,
    estimate_power_w,
    fit_power_model,
    fit_ridge,
)
from mlscale.studies.crossval import grouped_folds

FOLDS, SHUFFLES = 10, 5
PENALTIES = (0.0, *np.logspace(-2, 4, 25))  # from none to nothing but the intercept
OUTER, INNER = 20_100_815, 70_000_000  # keep the folds of evaluation and choice apart


def base(name: str) -> HardwareConfig:
    """Return where a table's power is estimated: the P100 at its highest clock."""
    return HardwareConfig(56, 1328, 715) if name == "p100" else base_of(name)


@cache
def inputs(name: str, as_in_paper: bool = True) -> PowerInputs:
    """Return the kernels of a table; as in the paper without textures and tiny grids."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = derive_inputs(table(name).profiles(base(name)))
    return found.as_in_paper() if as_in_paper else found


def groups(kernels: PowerInputs, by: str) -> Indices:
    """Return a number for each kernel, the same for those that are held out together."""
    names = kernels.kernels if by == "kernel" else kernels.applications
    return np.unique(np.array(names), return_inverse=True)[1]


def chosen_penalty(rates: Floats, watts: Floats, of: Indices, seeds: Sequence[int]) -> float:
    """Return the lambda of least squared error in a cross-validation of these kernels alone."""
    if not rates.shape[1]:
        return 0.0
    squared = np.zeros(len(PENALTIES))
    for seed in seeds:
        for train, test in grouped_folds(of, min(FOLDS, len(set(of.tolist()))), INNER + seed):
            alpha, beta = fit_ridge(rates[train], watts[train], PENALTIES)
            squared += ((rates[test] @ alpha.T + beta - watts[test, None]) ** 2).sum(axis=0)
    return float(PENALTIES[int(squared.argmin())])


@cache
def held_out(
    name: str, counters: str, by: str, as_in_paper: bool = True, penalty: float | None = None
) -> Floats:
    """Return each kernel's watts by models that were trained without it, (shuffles, kernels)."""
    kernels = inputs(name, as_in_paper)
    rates, watts, of = kernels.matrix(counters), kernels.power_w, groups(kernels, by)
    estimated = np.empty((SHUFFLES, len(watts)))
    for seed in range(SHUFFLES):
        for train, test in grouped_folds(of, FOLDS, OUTER + seed):
            strength = penalty
            if strength is None:
                strength = chosen_penalty(rates[train], watts[train], of[train], [seed])
            model = fit_power_model(rates[train], watts[train], strength)
            estimated[seed, test] = estimate_power_w(model, rates[test])
    return estimated


def scores(estimated: Floats, watts: Floats) -> tuple[float, float]:
    """Return the mean absolute error [%] and the mean squared error [W^2]."""
    off = estimated - watts
    return float(100 * np.abs(off / watts).mean()), float((off**2).mean())


def fig2(report: Report) -> None:
    """The seven sets of counters, folds by kernel and by application."""
    percent: dict[str, dict[str, float]] = {}
    squared: dict[str, dict[str, float]] = {}
    header = ["table", "kernels", "counters"]
    header += ["by kernel %", "MSE W²", "by application %", "MSE W²"]
    for which, table_name in (("as in the paper", "papers-nagasaka"), ("all", "")):
        lines = []
        for name in MEASURED:
            selected = which != "all"
            kernels = inputs(name, selected)
            for counters in kernels.sets:
                both = [
                    scores(held_out(name, counters, by, selected), kernels.power_w)
                    for by in ("kernel", "application")
                ]
                cells = [f"{number:.1f}" for pair in both for number in pair]
                lines.append([name, f"{which}, {len(kernels.kernels)}", counters, *cells])
                if selected:
                    percent.setdefault(name, {})[counters] = both[1][0]
                    squared.setdefault(name, {})[counters] = both[1][1]
        report.rows(f"power at the base, kernels: {which}", header, lines, table_name)
    shown = [Panel(name, "", "error [%]", {"by application": ([*of], [*of.values()])})
             for name, of in percent.items()]  # fmt: skip
    report.bars("fig2", "Nagasaka Fig. 2: error by counters, folds by application", shown)
    best = {name: min(of, key=lambda s, of=of: of[s]) for name, of in squared.items()}
    full = ", ".join(f"{of[FULL]:.1f}" for of in percent.values())
    report.claim(
        "Fig. 2",
        "Full is the best set, with 4.7 %",
        f"Full errs by {full} %; best are {', '.join(best.values())}",
        all(one == FULL for one in best.values()),
    )
    simple = {name: min(v for s, v in of.items() if s not in (FULL, BASELINE))
              for name, of in percent.items()}  # fmt: skip
    report.claim(
        "IV-B, simpler sets",
        "simpler sets are comparable",
        f"the best of them errs by {', '.join(f'{v:.1f}' for v in simple.values())} %",
        all(simple[name] <= of[FULL] + 1 for name, of in percent.items()),
    )
    for counters, what in (("Inst", "instruction counts"), ("Mem", "memory accesses")):
        gains = [of[BASELINE] - of[counters] for of in squared.values()]
        report.claim(
            f"IV-B, {what}",
            f"{what} are essential",
            f"alone better than no counters on {sum(g > 0 for g in gains)} of {len(gains)} tables",
            all(g > 0 for g in gains),
        )


def draw_watts(report: Report, name: str, as_in_paper: bool) -> dict[str, list[float]]:
    """Draw estimated beside measured watts of four tables; the signed errors [%] of each."""
    counters, signed, shown = report.options.counters, {}, []
    for gpu in MEASURED:
        kernels = inputs(gpu, as_in_paper)
        mean_w = held_out(gpu, counters, "application", as_in_paper).mean(axis=0)
        order = np.argsort(kernels.power_w)
        names = np.array(kernels.kernels)[order]
        both = {"measured": (names, kernels.power_w[order]), "held out": (names, mean_w[order])}
        shown.append(Panel(gpu, "", "power [W]", both))
        signed[gpu] = (100 * (mean_w / kernels.power_w - 1)).tolist()
    report.bars(name, f"Nagasaka {name}: measured and estimated power, {counters}", shown)
    return signed


def fig3(report: Report) -> None:
    """Estimated beside measured power of each kernel."""
    signed = draw_watts(report, "fig3", as_in_paper=True)
    means = {name: float(np.abs(errors).mean()) for name, errors in signed.items()}
    report.claim(
        "Fig. 3",
        "the estimates follow the measured power (4.7 %)",
        ", ".join(f"{name} {mean:.1f} %" for name, mean in means.items()),
        max(means.values()) < 10,
    )
    report.claim("Fig. 3, two kernels",
                 "RandomGPU and simpleCUBLAS's sgemm are 23 and 18 W too low",
                 "no table has these kernels", None)  # fmt: skip
    report.claim("Fig. 1, Tables I and II", "a GTX 285 and its kernels", "other GPUs here", None)


def fig4(report: Report) -> None:
    """What the estimated power is made of, on the paper's selection of kernels."""
    shown, least, most = [], {}, {}
    for counters in dict.fromkeys((FULL, "Mem/Inst", report.options.counters)):
        constant = {}
        for name in MEASURED:
            kernels = inputs(name)
            rates, of = kernels.matrix(counters), groups(kernels, "application")
            penalty = chosen_penalty(rates, kernels.power_w, of, range(SHUFFLES))
            model = fit_power_model(rates, kernels.power_w, penalty)
            ratios = 100 * contribution_ratios(model, rates)
            constant[name] = float(ratios[-1])
            names = (*kernels.sets[counters], "constant")
            if counters == FULL:
                least[name] = names[ratios[:-1].argmin()] if ratios.min() < 0 else "none"
                most[name] = names[ratios[:-1].argmax()]
            energies = [f"{1e9 * e:+.3g}" for e in model.energy_j]
            report.rows(
                f"{name}, {counters}: lambda {penalty:.3g}, constant {model.intercept_w:.1f} W",
                ["variable", "nJ/event", "share of the power [%]"],
                zip(names, [*energies, ""], [f"{r:+z.1f}" for r in ratios], strict=True),
            )
            if counters == report.options.counters:
                shown.append(Panel(name, "", "share [%]", {counters: (names, ratios)}))
        report.claim(
            f"Fig. 4, {counters}",
            "the constant is about 70 % of the power",
            ", ".join(f"{name} {share:.0f} %" for name, share in constant.items()),
            all(60 <= share <= 80 for share in constant.values()),
        )
    report.claim("Fig. 4, negative",
                 "the most negative weights are those of branches and TLB misses",
                 ", ".join(f"{name} {variable}" for name, variable in least.items()),
                 all(variable == "branch" for variable in least.values()))  # fmt: skip
    report.claim("Fig. 4, positive", "instructions, loads or stores add most to the power",
                 ", ".join(f"{name} {variable}" for name, variable in most.items()),
                 {*most.values()} <= {"instructions", "gld", "gst"})  # fmt: skip
    report.bars("fig4", "Nagasaka Fig. 4: mean contribution to the estimated power", shown)


def fig5(report: Report) -> None:
    """All kernels, with those that read textures."""
    signed = draw_watts(report, "fig5", as_in_paper=False)
    under = {
        name: [e < 0 for e, is_texture in
               zip(errors, inputs(name, as_in_paper=False).texture == 1, strict=True) if is_texture]
        for name, errors in signed.items()
    }  # fmt: skip
    squared = {name: [scores(held_out(name, FULL, "application", few), inputs(name, few).power_w)[1]
                      for few in (True, False)] for name in MEASURED}  # fmt: skip
    report.claim(
        "Fig. 5, error",
        "with them the squared error of Full rises from 54.9 to 140.4 W²",
        ", ".join(f"{name} {few:.1f} to {every:.1f}" for name, (few, every) in squared.items()),
        all(every > 1.5 * few for few, every in squared.values()),
    )
    report.claim(
        "Fig. 5",
        "texture kernels are underestimated",
        ", ".join(f"{name} {sum(of)} of {len(of)}" for name, of in under.items()),
        all(all(of) for of in under.values()),
    )


def penalty(report: Report) -> None:
    """Not in the paper: what the choice of lambda costs, on the GTX 980's low clocks."""
    watts = inputs("gtx980-low").power_w
    report.rows(
        "gtx980-low, as in the paper, folds by application: error [%] and MSE [W²]",
        ["lambda", "Mem/Inst", "", FULL, ""],
        [
            ["chosen" if one is None else f"{one:g}"]
            + [
                f"{v:.1f}"
                for s in ("Mem/Inst", FULL)
                for v in scores(held_out("gtx980-low", s, "application", penalty=one), watts)
            ]
            for one in (None, 0.0, 0.1, 1.0, 10.0, 100.0)
        ],
    )


def options(parser: argparse.ArgumentParser) -> None:
    """Add the set of counters of Fig. 3 to 5."""
    parser.add_argument("--counters", default=FULL, help=f"set of Fig. 3 to 5 (default: {FULL})")


if __name__ == "__main__":
    parts = (fig2, fig3, fig4, fig5, penalty)
    run("Nagasaka et al. 2010", {part.__name__: part for part in parts}, options)
