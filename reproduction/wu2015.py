"""Wu et al., "GPGPU performance and power estimation using machine learning" (HPCA 2015).

    python reproduction/wu2015.py [fig1 fig10 fig13 fig14 fig15 measured split real-sms] [--seeds N]

The paper's measurements of an HD 7970 are not public: section V is repeated on a made one of the
same size (make_hd7970.py), which shows that the method is built as described and how it behaves,
and on measured tables. Its protocol: 20 % of the applications held out at random, here twelve
times; errors over the held-out kernels and all configurations but the base; 12 clusters.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from common import MEASURED, SUITES, Panel, Report, run, table
from make_hd7970 import GRID, make_hd7970

from mlscale import ConfigGrid, HardwareConfig, Measurements
from mlscale.arrays import Floats
from mlscale.studies.candidates import BASELINES, Candidate
from mlscale.studies.crossval import cross_validate, folds

CLUSTERS, COUNTS = 12, tuple(range(2, 21, 2))  # section V; Fig. 13, 15, 16
BINS = np.arange(0, 101, 10)  # Fig. 14, 17; the last bin is open
BASES_AT_ONCE = 32
MADE = "hd7970"


@dataclass(frozen=True, eq=False)
class Scores:
    """Errors [%] by split and base, (S, B), and how many fall in each bin, (S, B, 11)."""

    mape: Floats
    counts: Floats

    @property
    def mean(self) -> float:
        """Return the mean over splits and bases."""
        return float(self.mape.mean())

    @property
    def sem(self) -> float:
        """Return the standard error of that mean, over the splits."""
        of_split = self.mape.mean(axis=1)
        return float(of_split.std(ddof=1) / np.sqrt(len(of_split))) if len(of_split) > 1 else 0.0

    @property
    def shares(self) -> Floats:
        """Return the mean share of the errors in each bin [%]."""
        of_split = self.counts.sum(axis=1)
        return np.asarray((100 * of_split / of_split.sum(axis=1, keepdims=True)).mean(axis=0))


@cache
def data_of(name: str) -> Measurements:
    """Return the made set or a table, without the kernel whose times hold Python's launches."""
    data = make_hd7970() if name == MADE else table(name)
    return data.select(np.flatnonzero(np.array(data.kernels) != "few_threads_128"))


@cache
def scores(  # noqa: PLR0913, PLR0917 - what section V varies
    name: str,
    bases: tuple[HardwareConfig, ...],
    predictor: str,
    clusters: int | None,
    quantity: str,
    seeds: int,
    split: str = "holdout",
    of_training: bool = False,
    loss: str = "cross-entropy",
) -> Scores:
    """Score a predictor from each base, over the splits of so many seeds.

    of_training: score the kernels trained on instead of those held out (Fig. 15). More clusters
    than kernels to train on are as many.
    """
    data = data_of(name)
    order = sorted(bases, key=lambda b: (b.engine_mhz, b.memory_mhz, b.cu_count))
    mape, counts = np.empty((seeds, len(bases))), np.empty((seeds, len(bases), len(BINS)))
    for seed in range(seeds):
        ((train, test),) = folds(split, data.applications, seed)
        fold = (train, train if of_training else test)

        def make(seed: int = seed, most: int = len(train)) -> list[Any]:
            at_most = None if clusters is None else min(clusters, most)
            options = {"quantity": quantity, "clusters": at_most, "seed": seed, "loss": loss}
            return [Candidate.from_predictor(predictor).create(**options)]

        for start in range(0, len(order), BASES_AT_ONCE):  # bases that share clocks share clusters
            part = order[start : start + BASES_AT_ONCE]
            for found in cross_validate(data, part, [fold], make):
                at = bases.index(found.surfaces.base)
                errors = found.errors
                mape[seed, at] = errors.mean()
                bins = np.minimum(errors.ravel() // 10, len(BINS) - 1).astype(int)
                counts[seed, at] = np.bincount(bins, minlength=len(BINS))
    return Scores(mape, counts)


def five_bases(grid: ConfigGrid) -> tuple[HardwareConfig, ...]:
    """Return the bases of Fig. 13 to 17; the paper names the first alone.

    Most CUs and engine clock with the slowest memory; mid-grid; everything highest; fewest CUs and
    engine clock with the fastest memory; everything lowest.
    """
    c, e, m = (n - 1 for n in grid.shape)
    indices = [(c, e, 0), grid.index(grid.mid), (c, e, m), (0, 0, m), (0, 0, 0)]
    return tuple(grid.config(index) for index in dict.fromkeys(indices))


def spread(of: Scores) -> str:
    """Return mean and standard error, in words."""
    return f"{of.mean:.2f} +- {of.sem:.2f} %"


def decided(of_split: Floats) -> tuple[str, bool | None]:
    """Return a mean over splits, and whether it is above 0; None within two standard errors."""
    count, mean = len(of_split), of_split.mean()
    sem = of_split.std(ddof=1) / np.sqrt(count) if count > 1 else np.inf
    return f"{mean:+.2f} +- {sem:.2f} points", None if abs(mean) < 2 * sem else bool(mean > 0)


def fig1(report: Report) -> None:
    """How kernels scale: by clocks, by SMs, and simulated where both are there."""
    gains = {}
    for name in (*MEASURED, "simulated-gcn3"):
        data = data_of(name)
        rates = data.time_ms[:, :1, :1, :1] / data.time_ms
        top = rates[:, -1, -1, -1]
        low = {"engine": rates[:, -1, 0, -1], "memory": rates[:, -1, -1, 0]}
        gain = {axis: top / rate for axis, rate in low.items()}
        gains[name] = gain
        behind = 100 * (rates.max(axis=(1, 2, 3)) / top - 1)
        balance = -np.abs(np.log(gain["engine"] / gain["memory"]))
        shown = [int(of.argmax()) for of in (gain["engine"], gain["memory"], balance, behind)]
        across = "cu_count" if len(data.grid.cu_count) > 1 else "engine_mhz"
        steps = getattr(data.grid, across)
        kernels = []
        for k in shown:
            curves = rates[k, :, -1] if across == "cu_count" else rates[k, -1]
            by_clock = zip(data.grid.memory_mhz, curves.T, strict=True)
            series = {f"memory {clock:g} MHz": (steps, curve) for clock, curve in by_clock}
            kernels.append(Panel(data.kernels[k], across, "speed-up", series))
        report.lines(f"fig1-{name}", f"Wu Fig. 1: over the lowest configuration, {name}", kernels)
        gain["behind"] = behind
    measured = [gains[name] for name in MEASURED]
    for kind, high, other in (("compute", "engine", "memory"), ("bandwidth", "memory", "engine")):
        of = np.concatenate([g[high][g[other] < 1.05] for g in measured])
        report.claim(
            f"Fig. 1, {kind}-bound",
            f"some kernels gain by the {high} clock alone",
            f"{len(of)} kernels of four tables, up to {of.max(initial=0):.2f} times",
            bool(of.max(initial=0) > 1.5),
        )
    both = sum(int(((g["engine"] > 1.15) & (g["memory"] > 1.15)).sum()) for g in measured)
    report.claim("Fig. 1, balanced", "some gain by both", f"{both} kernels", both > 0)
    peaks, panels, names = [], [], ()
    for name in SUITES:
        data = data_of(name)
        speed = data.time_ms[:, :1, 0, 0] / data.time_ms[:, :, 0, 0]
        lost = 100 * (speed.max(axis=1) / speed[:, -1] - 1)
        k = int(lost.argmax())
        peaks.append((lost[k], data.kernels[k], data.grid.cu_count[speed[k].argmax()], name))
        order = speed[:, -1].argsort()
        names = names or [data.kernels[i] for i in (*order[[-1, len(order) // 2, 0]], k)]
        series = {n: (data.grid.cu_count, speed[data.kernels.index(n)]) for n in names}
        panels.append(Panel(name, "SMs", "speed-up", series))
    report.lines("fig1-sms", "Wu Fig. 1: most, median and least gain, and the peak", panels)
    most = max(float(g["behind"].max()) for g in measured)
    of = [f"{name}: {kernel} by {lost:.1f} % ({sms} SMs best)" for lost, kernel, sms, name in peaks]
    report.claim("Fig. 1, peak, measured", "some are slower with more CUs",
                 f"{'; '.join(of)}; by clocks alone by {most:.1f} % at most",
                 all(lost > 5 for lost, *_ in peaks))  # fmt: skip
    behind = gains["simulated-gcn3"]["behind"]
    report.claim(
        "Fig. 1, peak, simulated",
        "some are slower with more CUs",
        f"{int((behind > 5).sum())} of {len(behind)} kernels are behind their best by more than "
        f"5 % at the highest configuration, up to {behind.max():.1f} %",
        bool(behind.max() > 5),
    )
    report.claim("Table I", "five products of one design", "the paper's motivation alone", None)


def fig10(report: Report) -> None:
    """Fig. 10, 11, 12: every configuration as the base, time and power."""
    seeds = report.options.seeds
    bases = tuple(GRID)
    found = {q: scores(MADE, bases, "wu", CLUSTERS, q, seeds) for q in report.options.quantities}
    for quantity, of in found.items():
        at = of.mape.mean(axis=0)
        by_base = dict(zip(bases, at, strict=True))
        cube = np.array([by_base[base] for base in bases]).reshape(GRID.shape)
        surfaces = [
            Panel(
                f"engine {clock:g} MHz",
                "CUs of the base",
                "error [%]",
                {f"memory {m:g} MHz": (GRID.cu_count, cube[:, e, n])
                 for n, m in enumerate(GRID.memory_mhz)},
            )
            for e, clock in enumerate(GRID.engine_mhz)
        ]  # fmt: skip
        report.lines(f"fig10-{quantity}", f"Wu Fig. 10 and 11: {quantity}, by base", surfaces)
        extremes = {
            name: (GRID.engine_mhz, summed(cube, axis=(0, 2)))
            for name, summed in (("mean", np.mean), ("least", np.min), ("most", np.max))
        }
        spread_panel = Panel("", "engine clock of the base [MHz]", "error [%]", extremes)
        report.lines(f"fig12-{quantity}", f"Wu Fig. 12: {quantity}, over the bases", [spread_panel])
        report.rows(
            f"error of {quantity} [%], {seeds} splits, 12 clusters: {spread(of)}, by base "
            f"{at.min():.2f} to {at.max():.2f}",
            ["base engine MHz", "mean", "std", "min", "max"],
            [[f"{c:g}", *(f"{f(cube[:, e]):.2f}" for f in (np.mean, np.std, np.min, np.max))]
             for e, c in enumerate(GRID.engine_mhz)],
            name="papers-wu-bases" if quantity == "time" else "",
        )  # fmt: skip
        by_cu = ", ".join(f"{n}: {v:.1f}" for n, v in zip(GRID.cu_count, cube.mean(axis=(1, 2)),
                                                          strict=True))  # fmt: skip
        print(f"by CUs of the base: {by_cu}")
        if quantity == "time":
            time_claims(report, of, cube)
    if "power" in found:
        at = found["power"].mape.mean(axis=0)
        report.claim(
            "V-C, below 10 %",
            "power errs by less than 10 %",
            f"made set: {spread(found['power'])}, {at.min():.2f} to {at.max():.2f} by base",
            found["power"].mean < 10,
        )


def time_claims(report: Report, of: Scores, cube: Floats) -> None:
    """Print the claims of Fig. 10 to 12; cube: mean error by base, (C, E, M)."""
    report.claim(
        "V-A, Fig. 10 and 11",
        "time errs by about 15 % on average",
        f"{spread(of)} on the made set",
        abs(of.mean - 15) < max(2.0, 2 * of.sem),
    )
    of_split = of.mape.reshape(-1, *cube.shape)
    others = cube[:, -1].copy()
    others[-1, 0] = 0
    c, m = np.unravel_index(int(others.argmax()), others.shape)
    above, is_worst = decided(of_split[:, -1, -1, 0] - of_split[:, c, -1, m])
    report.claim(
        "Fig. 10",
        "at 1000 MHz the worst base is 32 CUs, 475 MHz (31.6 %)",
        f"there {cube[-1, -1, 0]:.2f} %, {above} from the worst other, {GRID.cu_count[c]} CUs, "
        f"{GRID.memory_mhz[m]:g} MHz",
        is_worst,
    )
    middle = cube[tuple(np.array(GRID.index(GRID.mid)))]
    report.claim(
        "Fig. 11",
        "at 300 MHz the opposite corner is bad (26.9 %)",
        f"{cube[0, 0, -1]:.2f} % against {middle:.2f} % at mid-grid",
        bool(cube[0, 0, -1] > 1.5 * middle),
    )
    by_cu, by_engine = cube.mean(axis=(1, 2)), cube.mean(axis=(0, 2))
    report.claim(
        "Fig. 12, middle",
        "bases in the middle are best",
        f"{GRID.cu_count[int(by_cu.argmin())]} CUs are best",
        0 < int(by_cu.argmin()) < len(by_cu) - 1,
    )
    report.claim(
        "Fig. 12, engine",
        "the error depends little on the base's engine clock",
        f"{by_engine.min():.2f} to {by_engine.max():.2f} % by engine, "
        f"{by_cu.min():.2f} to {by_cu.max():.2f} by CUs",
        bool(np.ptp(by_engine) < np.ptp(by_cu) / 2),
    )
    best = GRID.engine_mhz.index(500)
    e = int(np.argsort(by_engine)[0 if by_engine.argmin() != best else 1])
    below, is_best = decided((of_split[:, :, e] - of_split[:, :, best]).mean(axis=(1, 2)))
    report.claim("Fig. 12, 500 MHz", "500 MHz is the best base engine clock",
                 f"there {by_engine[best]:.2f} %, {below} to the best other, "
                 f"{GRID.engine_mhz[e]:g} MHz", is_best)  # fmt: skip
    least = cube.min(axis=(0, 2))
    report.claim("Fig. 12, good bases", "each engine clock has a good base",
                 f"the best of each errs by {least.min():.2f} to {least.max():.2f} %",
                 bool(least.max() < cube.mean() - of.sem))  # fmt: skip


def by_clusters(
    report: Report, quantity: str, counts: Sequence[int] = COUNTS, split: str = "holdout"
) -> dict[int, Scores]:
    """Return the scores at the five bases by number of clusters."""
    bases, seeds = five_bases(GRID), report.options.seeds
    return {n: scores(MADE, bases, "wu", n, quantity, seeds, split) for n in counts}


def baselines(report: Report, quantity: str, split: str = "holdout") -> dict[str, Scores]:
    """Return those of what needs no clusters."""
    bases, seeds = five_bases(GRID), report.options.seeds
    return {name: scores(MADE, bases, name, None, quantity, seeds, split) for name in BASELINES}


def fig13(report: Report) -> None:
    """Fig. 13 (time) and 16 (power): the number of clusters, at five bases."""
    for quantity in report.options.quantities:
        number = 13 if quantity == "time" else 16
        of, others = by_clusters(report, quantity), baselines(report, quantity)
        bases = five_bases(GRID)
        series = {
            str(base): (COUNTS, [of[n].mape[:, b].mean() for n in COUNTS])
            for b, base in enumerate(bases)
        }
        series["mean"] = (COUNTS, [of[n].mean for n in COUNTS])
        series["nearest"] = (COUNTS, [others["nearest"].mean] * len(COUNTS))
        panel = Panel("", "clusters", "error [%]", series)
        report.lines(f"fig{number}", f"Wu Fig. {number}: error of {quantity} by clusters", [panel])
        lines = [(f"wu {n}", s) for n, s in of.items()] + list(others.items())
        report.rows(
            f"error of {quantity} [%] at {'; '.join(map(str, bases))}",
            ["predictor", *map(str, range(1, 6)), "mean", "std. error"],
            [[name, *(f"{v:.2f}" for v in (*s.mape.mean(axis=0), s.mean, s.sem))]
             for name, s in lines],
            name="papers-wu-clusters" if quantity == "time" else "papers-wu-clusters-power",
        )  # fmt: skip
        from_8 = [of[n].mean for n in COUNTS if n >= 8]
        from_6 = [of[n].mean for n in COUNTS if n >= 6]
        if quantity == "time":
            report.claim(
                "Fig. 13",
                "the error falls up to about 12 clusters, then is flat",
                f"{of[2].mean:.2f} % at 2, {of[8].mean:.2f} at 8, {spread(of[12])} at 12, "
                f"{of[20].mean:.2f} at 20",
                of[2].mean > of[8].mean + of[8].sem and np.ptp(from_8) < 2 * of[12].sem,
            )
            rest = [1 + int(s.mape[:, 1:].mean(axis=0).argmax()) for s in of.values()]
            ahead = np.array([s.mape[:, 0] - s.mape[:, b]
                              for s, b in zip(of.values(), rest, strict=True)])  # fmt: skip
            above, is_worst = decided(ahead.mean(axis=0))
            report.claim("V-B, bases", "32 CUs, 1000, 475 MHz errs most with all numbers",
                         f"{above} from the worst other, by number {ahead.mean(axis=1).min():.2f} "
                         f"to {ahead.mean(axis=1).max():.2f}", is_worst)  # fmt: skip
            report.claim(
                "not in the paper",
                "a simpler baseline is clearly worse",
                f"nearest {spread(others['nearest'])}, 12 clusters {spread(of[12])}",
                others["nearest"].mean > of[12].mean + of[12].sem,
            )
        else:
            report.claim(
                "Fig. 16",
                "power is flat beyond 2 to 6 clusters",
                f"{of[2].mean:.2f} % at 2, {min(from_6):.2f} to {max(from_6):.2f} from 6 on, "
                f"standard error {of[6].sem:.2f}",
                np.ptp(from_6) < 2 * of[6].sem,
            )
    if len(report.options.quantities) == 2:
        time, power = (by_clusters(report, q, (12,))[12].mape.mean(axis=0).std()
                       for q in ("time", "power"))  # fmt: skip
        report.claim("V-C, bases", "power depends less on the base than time",
                     f"of 12 clusters: std {time:.2f} for time, {power:.2f} for power",
                     power < time)  # fmt: skip


def fig14(report: Report) -> None:
    """Fig. 14 (time) and 17 (power): the distribution of the errors."""
    shares: dict[str, dict[int, Floats]] = {}
    for quantity in report.options.quantities:
        number = 14 if quantity == "time" else 17
        found = by_clusters(report, quantity, (2, 6, 12))
        of = {n: one.shares for n, one in found.items()}
        shares[quantity] = of
        series = {f"{n} clusters": (BINS, share) for n, share in of.items()}
        panel = Panel("", "error from [%]; the last bin is open", "share [%]", series)
        report.lines(f"fig{number}", f"Wu Fig. {number}: errors of {quantity}, five bases", [panel])
        report.rows(
            f"share of the errors of {quantity} [%]",
            ["error from", *(f"wu {n}" for n in of)],
            [[low, *(f"{share[i]:.2f}" for share in of.values())] for i, low in enumerate(BINS)],
        )
    if "time" in shares:
        of = shares["time"]
        report.claim(
            "Fig. 14",
            "the bins decay exponentially, faster with more clusters",
            f"the first holds {of[2][0]:.1f}, {of[6][0]:.1f} and {of[12][0]:.1f} %; each next is "
            "smaller, but for the open one",
            all((np.diff(share[:6]) < 0).all() for share in of.values()) and of[2][0] < of[12][0],
        )
    if "power" in shares:
        of = shares["power"]
        report.claim(
            "Fig. 17, clusters",
            "little change from 6 to 12 clusters",
            f"{of[2][0]:.1f}, {of[6][0]:.1f} and {of[12][0]:.1f} % below 10 %",
            abs(of[12][0] - of[6][0]) < abs(of[6][0] - of[2][0]) / 3,
        )
    if len(shares) == 2:
        report.claim(
            "Fig. 17",
            "power's errors are smaller than time's",
            f"below 10 % are {shares['power'][12][0]:.1f} % of power, {shares['time'][12][0]:.1f} "
            "of time",
            shares["power"][12][0] > shares["time"][12][0],
        )


def fig15(report: Report) -> None:
    """Fig. 15: network and oracle on the kernels that they were trained on; two losses."""
    counts = (*COUNTS, 29, 41, 59, 84)
    found: dict[str, list[Scores]] = {}
    seeds, bases = min(6, report.options.seeds), (GRID.mid,)
    for name, predictor, loss in (
        ("wu-oracle", "wu-oracle", "cross-entropy"),
        ("wu, cross-entropy", "wu", "cross-entropy"),
        ("wu, squared error", "wu", "squared"),
    ):
        found[name] = [
            scores(MADE, bases, predictor, n, "time", seeds, of_training=True, loss=loss)
            for n in counts
        ]
    series = {name: (counts, [s.mean for s in of]) for name, of in found.items()}
    panel = Panel("", "clusters", "error of time [%]", series)
    report.lines("fig15", "Wu Fig. 15: error on the training set, from mid-grid", [panel])
    report.rows(
        f"error of time on the training set [%], from mid-grid, {seeds} splits",
        ["clusters", *found],
        [[n, *(f"{of[i].mean:.2f}" for of in found.values())] for i, n in enumerate(counts)],
        name="papers-wu-fig15",
    )
    oracle, entropy, squared = ([s.mean for s in of] for of in found.values())
    report.claim(
        "Fig. 15, oracle",
        "the oracle falls to zero as clusters reach the kernels",
        f"{oracle[0]:.2f} % at 2, {oracle[-1]:.2f} at 84",
        oracle[-1] < 0.1,
    )
    at_8, at_41 = counts.index(8), counts.index(41)
    for name, of in (("cross-entropy", entropy), ("squared error", squared)):
        report.claim(
            f"Fig. 15, network, {name}",
            "the network stays flat from 8 clusters on",
            f"{of[at_8]:.2f} % at 8, {of[counts.index(14)]:.2f} at 14, {of[at_41]:.2f} at 41; the "
            f"oracle {oracle[at_41]:.2f}",
            of[at_41] > 0.7 * of[counts.index(14)],
        )


def measured(report: Report) -> None:
    """Section V on the measured tables, and the simulated one: every configuration as base."""
    lines, power, steady = [], {}, 0
    for name in (*MEASURED, "simulated-gcn3"):
        data = data_of(name)
        stds = {}
        for quantity in report.options.quantities:
            if quantity == "power" and data.power_samples is None:
                continue
            of, near = (
                scores(name, tuple(data.grid), p, n, quantity, report.options.seeds)
                for p, n in (("wu", CLUSTERS), ("nearest", None))
            )
            at = of.mape.mean(axis=0)
            stds[quantity] = at.std()
            if quantity == "power":
                power[name] = float(at.max())
            cells = [f"{v:.2f}" for v in (of.mean, of.sem, at.min(), at.max(), near.mean)]
            lines.append([name, quantity, *cells])
        steady += len(stds) == 2 and stds["power"] < stds["time"]
    header = ["table", "quantity", "wu 12", "std. error", "best base", "worst base", "nearest"]
    report.rows(f"error [%], {report.options.seeds} splits", header, lines, "papers-wu-measured")
    if power:
        report.claim(
            "V-C, measured",
            "power errs by less than 10 %",
            f"on four measured tables at most {max(power.values()):.2f} % at any base",
            max(power.values()) < 10,
        )
        report.claim(
            "V-C, bases, measured",
            "power depends less on the base than time",
            f"on {steady} of {len(power)} tables",
            steady == len(power),
        )


def split(report: Report) -> None:
    """The paper's split, which may leave a kernel's relatives in training; at five bases."""
    lines = []
    for quantity in report.options.quantities:
        for protocol in ("holdout", "random-kernels"):
            by_count = by_clusters(report, quantity, (8, 12), protocol)
            found = {f"wu {n}": of for n, of in by_count.items()}
            found["nearest"] = baselines(report, quantity, protocol)["nearest"]
            lines += [[quantity, protocol, name, spread(of)] for name, of in found.items()]
    header = ["quantity", "held out", "predictor", "error"]
    report.rows("held out: applications, or kernels", header, lines, "papers-wu-split")


def real_sms(report: Report) -> None:
    """Section V on the SMs of an H100 and an H200: one cluster set, that of the CU axis (Fig. 8).

    The base is all SMs: there alone the kernels have counters, so that Fig. 10 has one entry.
    """
    found, clusters, bins, training = {}, [], [], []
    others = ("bottleneck", "no-scaling", "core-bound", "mean-surface", "nearest")
    for name in SUITES:
        grid = data_of(name).grid
        base, seeds = (grid.config((len(grid.cu_count) - 1, 0, 0)),), report.options.seeds
        for quantity in report.options.quantities:
            of = {f"wu {n}": scores(name, base, "wu", n, quantity, seeds) for n in COUNTS}
            of |= {p: scores(name, base, p, None, quantity, seeds) for p in others}
            found[name, quantity] = of
            title, flat = f"{name}, {quantity}", ("bottleneck", "mean-surface", "nearest")
            series = {p: (COUNTS, [of[p].mean] * len(COUNTS)) for p in flat}
            series["wu"] = (COUNTS, [of[f"wu {n}"].mean for n in COUNTS])
            clusters.append(Panel(title, "clusters", "error [%]", series))
            shares = {p: (BINS, of[p].shares) for p in ("wu 2", "wu 6", "wu 12", "bottleneck")}
            bins.append(Panel(title, "error from [%]; the last bin is open", "share [%]", shares))
        counts = (*COUNTS, 29, 41)
        own = {
            p: (counts, [scores(name, base, p, n, "time", seeds, of_training=True).mean
                         for n in counts])
            for p in ("wu-oracle", "wu")
        }  # fmt: skip
        training.append(Panel(name, "clusters", "error of time [%]", own))
    report.lines("sms-clusters", "Wu Fig. 13 and 16, from all SMs to fewer", clusters)
    report.lines("sms-bins", "Wu Fig. 14 and 17, from all SMs to fewer", bins)
    report.lines("sms-training", "Wu Fig. 15, SMs: error on the training set", training)
    report.rows(
        f"from all SMs to fewer: error and standard error [%], {seeds} splits",
        ["predictor", *(f"{name}, {q}{end}" for name, q in found for end in ("", ", std. error"))],
        [[p, *(f"{v:.2f}" for of in found.values() for v in (of[p].mean, of[p].sem))] for p in of],
        "papers-wu-sms",
    )
    for quantity in report.options.quantities:
        aim, *figures = {"time": (15, 13, 14), "power": (10, 16, 17)}[quantity]
        these = [of for (_, q), of in found.items() if q == quantity]
        report.claim(f"V, SMs, {quantity}", f"{quantity} errs by {aim} % or less",
                     " and ".join(spread(of["wu 12"]) for of in these),
                     all(of["wu 12"].mean < aim + 2 * of["wu 12"].sem for of in these))  # fmt: skip
        later = [decided((of["wu 8"].mape - of["wu 20"].mape)[:, 0]) for of in these]
        gains = [of["wu 2"].mean - of["wu 8"].mean for of in these]
        report.claim(f"Fig. {figures[0]}, SMs",
                     "the error falls up to about 8 clusters, then is flat",
                     f"from 2 to 8 by {gains[0]:.2f} and {gains[1]:.2f} points; from 8 to 20 by "
                     f"{later[0][0]} and {later[1][0]}",
                     min(gains) > 0 and all(is_less is None for _, is_less in later))  # fmt: skip
        low = [[of[f"wu {n}"].shares[0] for n in (2, 6, 12)] for of in these]
        report.claim(f"Fig. {figures[1]}, SMs", "more errors are below 10 % with more clusters",
                     " and ".join(", ".join(f"{share:.1f}" for share in of) + " %" for of in low),
                     all(of[0] < of[1] and of[0] < of[2] for of in low))  # fmt: skip
        behind = [decided((of["bottleneck"].mape - of["wu 12"].mape)[:, 0]) for of in these]
        report.claim(f"not in the paper, SMs, {quantity}", "12 clusters err less than 'bottleneck'",
                     " and ".join(difference for difference, _ in behind),
                     all(is_less for _, is_less in behind))  # fmt: skip
    ends = [[(of[1][COUNTS.index(8)], of[1][-1]) for of in panel.series.values()]
            for panel in training]  # fmt: skip
    report.claim("Fig. 15, SMs", "the oracle falls, the network is flat from 8 clusters on",
                 "; ".join(f"oracle {a:.2f} to {b:.2f} %, network {c:.2f} to {d:.2f}"
                 for (a, b), (c, d) in ends), all(d > 0.7 * c for _, (c, d) in ends))  # fmt: skip


def options(parser: argparse.ArgumentParser) -> None:
    """Add the number of splits and the quantities."""
    parser.add_argument("--seeds", type=int, default=12, help="random splits (default: 12)")
    both = ["time", "power"]
    parser.add_argument("--quantities", nargs="+", choices=both, default=both)


PARTS = (fig1, fig10, fig13, fig14, fig15, measured, split, real_sms)

if __name__ == "__main__":
    run("Wu et al. 2015", {part.__name__.replace("_", "-"): part for part in PARTS}, options)
