"""Volkov, "Poster: A microbenchmark to study GPU performance models" (PPoPP 2018).

    python reproduction/volkov2018.py [models warps fig1 fig2 measured] [--gpu JSON]

The poster's dots are measurements of a GTX 980, which are not public. The dots here are an
idealised simulation that rests on the assumptions of the classical bounds; with --gpu they are
somebody's measurements. `measured` scores the models against these, or an H100.
"""

import argparse
from pathlib import Path

import numpy as np
from common import REPOSITORY, Panel, Report, run

from mlscale.data.devices import load_device
from mlscale.papers import volkov
from mlscale.papers.gpu_file import read_gpu_file
from mlscale.papers.volkov import (
    GRID_INTENSITIES,
    GRID_WARPS,
    simulate,
    simulate_grid,
    simulated_warps_needed,
)

INTENSITIES = (1, 8, 32, 128)


def dots_of(report: Report) -> tuple[volkov.ComputeUnit, list[dict[str, float]], str]:
    """Return the CU, its throughputs by warps and intensity [IPC], and what they are."""
    if report.options.gpu:
        gpu = read_gpu_file(report.options.gpu)
        return gpu.compute_unit, list(gpu.volkov), f"measured on {gpu.name}"
    dots = [
        {"warps": n, "intensity": a, "ipc": simulate(n, a)} for a in INTENSITIES for n in GRID_WARPS
    ]
    return volkov.GTX_980, dots, "simulation (idealised, not hardware)"


def models(report: Report) -> None:
    """Each model against the simulation on 9 intensities x 14 occupancies."""
    alpha, n = np.meshgrid(GRID_INTENSITIES, GRID_WARPS, indexing="ij")
    simulated, limited = simulate_grid(), volkov.throughput_bound(alpha)
    by_latency = volkov.latency_bound(n, alpha) < limited
    errors, ratios = {}, {}
    for name, model in volkov.MODELS.items():
        ratios[name] = model(n, alpha, volkov.GTX_980) / simulated
        errors[name] = 100 * np.abs(ratios[name] - 1)
    report.rows(
        "error against the simulation [%], and model / simulation by what limits",
        ["model", "MAPE", "worst", "latency-bound", "its largest", "throughput-bound"],
        [
            [
                name,
                *(f"{v:.1f}" for v in (errors[name].mean(), errors[name].max())),
                *(f"{v:.2f}" for v in (r[by_latency].mean(), r[by_latency].max())),
                f"{r[~by_latency].mean():.2f}",
            ]
            for name, r in ratios.items()
        ],
        name="papers-survey",
    )
    over = {name: ratios[name][by_latency].max() for name in ("Hong & Kim", "Zhang & Owens, Sim")}
    report.claim(
        "Fig. 1",
        "models overestimate where latency limits",
        ", ".join(f"{name} up to {most:.2f} times the simulation" for name, most in over.items()),
        all(most > 1.5 for most in over.values()),
    )
    best = min(errors, key=lambda name: float(errors[name].mean()))
    report.claim(
        "section 3",
        "the classical bounds are most accurate",
        f"{best} err least, {errors[best].mean():.1f} %; the simulation assumes the same",
        None,
    )


def warps(report: Report) -> None:
    """Warps for 99 % of the throughput bound."""
    most = load_device("gtx980").max_waves_per_cu
    rows = {"simulation": [simulated_warps_needed(a, most) for a in INTENSITIES]}
    for name, model in volkov.MODELS.items():
        rows[name] = [volkov.warps_needed(model, a, most) for a in INTENSITIES]
    lines = [[name, *("-" if n is None else n for n in needed)] for name, needed in rows.items()]
    for name, rule in (
        ("vendor's guide", volkov.vendor_warps),
        ("Saavedra-Barrera", volkov.saavedra_barrera_warps),
    ):
        lines.append([name, *(f"{float(rule(a)):g}" for a in INTENSITIES)])
    header = ["model", *(f"alpha = {a}" for a in INTENSITIES)]
    report.rows(f"warps needed for 99 % of the throughput bound; -: not with {most}", header, lines)
    needed = {name: row[2] for name, row in rows.items()}
    report.claim(
        "Fig. 1, occupancy",
        "models underestimate the occupancy needed",
        f"at alpha = {INTENSITIES[2]} Hong & Kim ask for {needed['Hong & Kim']} warps, "
        f"the simulation for {needed['simulation']}",
        needed["Hong & Kim"] < needed["simulation"],
    )


def draw(report: Report, name: str, shown: dict[str, volkov.ThroughputModel]) -> None:
    """Draw throughput against occupancy: models, and beside each the classical bounds and dots."""
    cu, dots, what = dots_of(report)
    intensities = sorted({int(dot["intensity"]) for dot in dots})
    shown = {"classical bounds": volkov.classical_bounds, **shown}
    drawn = []
    for alpha in intensities:
        here = [dot for dot in dots if dot["intensity"] == alpha]
        warps = [dot["warps"] for dot in here]
        series = {
            label: (warps, model(np.array(warps), alpha, cu)) for label, model in shown.items()
        }
        series["dots"] = (warps, [dot["ipc"] for dot in here])
        drawn.append(Panel(f"alpha = {alpha}", "warps per CU", "instructions per cycle", series))
    report.lines(name, f"Volkov 2018, {name}; dots: {what}", drawn)


def fig1(report: Report) -> None:
    """The models beside the dots."""
    draw(report, "fig1", {k: v for k, v in volkov.MODELS.items() if "*" not in k})


def measured(report: Report) -> None:
    """Each model against measured throughputs: --gpu, else the H100 that ships."""
    if not report.options.gpu:
        report.options.gpu = REPOSITORY / "datasets" / "h100-gpu.json"
    cu, dots, what = dots_of(report)
    n, alpha, ipc = (np.array([dot[key] for dot in dots]) for key in ("warps", "intensity", "ipc"))
    ratios = {name: model(n, alpha, cu) / ipc for name, model in volkov.MODELS.items()}
    off = {name: 100 * np.abs(ratio - 1) for name, ratio in ratios.items()}
    report.rows(
        f"error against {len(dots)} throughputs [%], {what}",
        ["model", "MAPE", "median", "worst"],
        [[k, *(f"{v:.1f}" for v in (e.mean(), np.median(e), e.max()))] for k, e in off.items()],
        name="papers-measured",
    )
    limited = volkov.latency_bound(n, alpha, cu) < volkov.throughput_bound(alpha, cu)
    most = float(ratios["Hong & Kim"][limited].max())
    report.claim(
        "Fig. 1, measured",
        "models overestimate where latency limits",
        f"Hong & Kim up to {most:.2f} times",
        most > 1.5,
    )
    best = min(off, key=lambda name: float(off[name].mean()))
    report.claim(
        "section 3, measured",
        "the classical bounds are most accurate",
        f"{best} errs least, {off[best].mean():.1f} %",
        best == "classical bounds",
    )


def fig2(report: Report) -> None:
    """An underestimate and a broken issue limit."""
    shown = {"Baghsorkhi et al. (reconstructed)": volkov.baghsorkhi, "Huang et al.": volkov.huang}
    draw(report, "fig2", shown)
    ratio = float(volkov.baghsorkhi(8, 8)) / simulate(8, 8)
    report.claim(
        "Fig. 2, left",
        "Baghsorkhi et al. underestimate",
        f"{ratio:.2f} of the simulation at 8 warps, alpha = 8; the poster has no equation",
        None,
    )
    ipc, limit = float(volkov.huang(64, 128)), volkov.GTX_980.issue_per_cycle
    report.claim(
        "Fig. 2, right",
        "Huang et al. exceed the issue limit",
        f"{ipc:.2f} IPC of {limit} at 64 warps, alpha = 128",
        ipc > limit,
    )
    report.claim(
        "Fig. 2, greedy", "the greedy-then-oldest curve", "the poster has no equation of it", None
    )


def options(parser: argparse.ArgumentParser) -> None:
    """Add what gives the dots."""
    parser.add_argument("--gpu", type=Path, help="gpu.json of 'mlscale collect --micro'")


if __name__ == "__main__":
    run(
        "Volkov 2018",
        {"models": models, "warps": warps, "fig1": fig1, "fig2": fig2, "measured": measured},
        options,
    )
