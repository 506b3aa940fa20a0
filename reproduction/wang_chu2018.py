"""Wang and Chu, "GPGPU performance estimation with core and memory frequency scaling" (2018).

    python reproduction/wang_chu2018.py [fig2 fig12 fig13 misprints times]

On the authors' own table of a GTX 980 at 49 pairs of clocks, with the counters of one of them,
700/700 MHz. The paper's Table VI names 12 kernels and prints 11; these are scored.
"""

import csv
import os
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
from common import MEASURED, Panel, Report, base_of, run, table

from mlscale import Measurements
from mlscale.arrays import Floats
from mlscale.papers.wang_chu import (
    average_access_cycles,
    average_compute_cycles,
    dram_delay_cycles,
    dram_latency_cycles,
    execution_time_ms,
    kernel_round,
    max_overlap_factor,
    over_clocks,
    predict_time_factor,
    predict_time_ms,
    round_time,
)
from mlscale.papers.wang_chu_inputs import GpuParameters, WarpInputs, derive_inputs, load_gpu

TABLE_VI = (
    *("BlackScholes", "conjugateGradient", "fastWalshTransform", "matrixMul(Global)", "matrixMul"),
    *("scan", "sortingNetworks", "scalarProd", "transpose", "vectorAdd", "convolutionSeparable"),
)
MODELS = ("absolute", "wang-chu", "max-overlap")


def inputs_of(name: str) -> tuple[Measurements, WarpInputs, GpuParameters, Floats, Floats]:
    """Return a table, its kernels' inputs, its GPU, and its clocks as (E, 1) and (M,) [MHz]."""
    data = table(name)
    gpu = load_gpu(data.device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kernels beyond the model's scope are scored all the same
        inputs = derive_inputs(data.profiles(base_of(name)), gpu)
    return (
        data,
        inputs,
        gpu,
        np.array(data.grid.engine_mhz)[:, None],
        np.array(data.grid.memory_mhz),
    )


@cache
def signed_errors(name: str, model: str) -> Floats:
    """Return predicted / measured - 1 of a table, (K, E, M) [%], by one of MODELS."""
    data, inputs, gpu, engine, memory = inputs_of(name)
    base = base_of(name)
    clocks, at_base = (base.engine_mhz, base.memory_mhz), data.profiles(base).time_ms
    if model == "absolute":
        predicted = predict_time_ms(inputs, gpu, engine, memory)
    elif model == "wang-chu":
        predicted = predict_time_factor(inputs, gpu, clocks, engine, memory)
    else:
        predicted = max_overlap_factor(inputs, gpu, clocks, at_base, engine, memory)
    if model != "absolute":
        predicted = predicted * at_base[:, None, None]
    return np.asarray(100 * (predicted / data.time_ms[:, 0] - 1))


def of_table_vi(values: Floats) -> Floats:
    """Return the rows of the paper's kernels in the authors' table."""
    return np.asarray(values[[table("gtx980-49").kernels.index(kernel) for kernel in TABLE_VI]])


def sweeps(data: Measurements, ends: Sequence[Floats], across: str) -> list[Panel]:
    """Panels of the paper's kernels over one clock, (kernel, clock), the other at its two ends."""
    clocks, others = data.grid.engine_mhz, data.grid.memory_mhz
    other = "memory"
    if across == "memory":
        clocks, others, other = others, clocks, "engine"
    return [
        Panel(
            f"{other} {others[end]:g} MHz",
            f"{across} clock [MHz]",
            "",
            {kernel: (clocks, curve) for kernel, curve in zip(TABLE_VI, values, strict=True)},
        )
        for end, values in zip((0, -1), ends, strict=True)
    ]


def fig2(report: Report) -> None:
    """Measured speed-up by each clock, the other at its ends."""
    data = table("gtx980-49")
    time, engines = data.time_ms[:, 0], data.grid.engine_mhz
    kernels = of_table_vi(time)
    report.lines("fig2", "Wang and Chu Fig. 2: measured speed-up", [
        *sweeps(data, [kernels[:, :1, e] / kernels[:, :, e] for e in (0, -1)], "engine"),
        *sweeps(data, [kernels[:, e, :1] / kernels[:, e] for e in (0, -1)], "memory"),
    ])  # fmt: skip
    of = time[data.kernels.index("transpose")]
    gains = [float(of[e, 0] / of[e, -1]) for e in (0, -1)]
    for engine, gain in zip((engines[0], engines[-1]), gains, strict=True):
        report.claim(
            f"Fig. 2, {engine:g} MHz",
            "transpose gains about 2.5 times from 2.5 times the memory clock",
            f"{gain:.2f} times",
            abs(gain - 2.5) < 0.25,
        )
    names = ("transpose", "BlackScholes", "vectorAdd", "convolutionSeparable")
    tr, bs, va, conv, global_, shared = map(TABLE_VI.index, (*names, *TABLE_VI[3:5]))
    by_memory = kernels[:, (0, -1), 0] / kernels[:, (0, -1), -1]  # at either core clock
    by_core = kernels[:, 0, (0, -1)] / kernels[:, -1, (0, -1)]  # at either memory clock
    streams, products = by_memory[[bs, va, conv]], by_memory[[global_, shared]]
    report.claim("Fig. 2, streaming", f"{', '.join(names[1:])} gain almost or over 2.5 times too",
                 f"{streams.min():.2f} to {streams.max():.2f} times",
                 bool(streams.min() > 2.25))  # fmt: skip
    by_kernel = [f"{low:.2f} and {high:.2f} times" for low, high in products]
    report.claim("Fig. 2, products", "both matrix products gain next to nothing by memory",
                 f"at 400 and 1000 MHz {', '.join(by_kernel)}",
                 bool(products.max() < 1.15))  # fmt: skip
    report.claim("Fig. 2, products, core", "they gain more by memory at the higher core clock",
                 f"{', '.join(f'{high / low:.2f}' for low, high in products)} times as much",
                 bool((products[:, 1] > products[:, 0]).all()))  # fmt: skip
    little, much = by_core[[tr, bs, va]], by_core[[conv, global_, shared]]
    report.claim("Fig. 2, core", f"the core clock does little for {', '.join(names[:3])}, much for "
                 "the other three", f"up to {', '.join(f'{v:.2f}' for v in little.max(axis=1))} "
                 f"times, and up to {', '.join(f'{v:.2f}' for v in much.max(axis=1))}",
                 bool(little.max() < 1.25 and much.max(axis=1).min() > 1.5))  # fmt: skip
    report.claim("Fig. 5", "latency of each request", "their time stamps are not public", None)


def fig12(report: Report) -> None:
    """Kinds of instructions, as far as the counters tell them."""
    data, inputs, *_ = inputs_of("gtx980-49")
    kinds = {
        "compute": inputs.compute_instructions - inputs.fp64_instructions,
        "FP64": inputs.fp64_instructions,
        "global memory": inputs.memory_instructions,
        "shared memory, by transaction": inputs.shared_transactions,
    }
    total = np.sum(list(kinds.values()), axis=0)
    series = {kind: (data.kernels, 100 * count / total) for kind, count in kinds.items()}
    panel = Panel("", "", "share of a warp's instructions [%]", series)
    report.bars("fig12", "Wang and Chu Fig. 12: kinds of instructions", [panel])
    shares = of_table_vi(100 * kinds["compute"] / total)
    report.claim(
        "Fig. 12",
        "the kernels have various kinds of instructions",
        f"compute is {shares.min():.0f} to {shares.max():.0f} %; the counters tell no more kinds",
        bool(np.ptp(shares) > 30),
    )


def fig13(report: Report) -> None:
    """Fig. 13 and 14: errors from the counters alone, by clocks and by kernel."""
    data, inputs, gpu, *_ = inputs_of("gtx980-49")
    errors = of_table_vi(signed_errors("gtx980-49", "absolute"))
    engines, memories = data.grid.engine_mhz, data.grid.memory_mhz
    report.lines("fig13", "Wang and Chu Fig. 13: error of the predicted time [%]", [
        *sweeps(data, [errors[:, :, end] for end in (0, -1)], "engine"),
        *sweeps(data, [errors[:, end] for end in (0, -1)], "memory"),
    ])  # fmt: skip
    off = np.abs(errors)
    k, e, m = np.unravel_index(int(off.argmax()), off.shape)
    report.claim(
        "Fig. 13, largest",
        "every error is below 16 %",
        f"largest {off.max():.1f} % ({TABLE_VI[k]} at {engines[e]:g}/{memories[m]:g} MHz)",
        bool(off.max() < 16),
    )
    below = 100 * (off < 10).mean()
    report.claim("Fig. 13, 90 %", "90 % are below 10 %", f"{below:.1f} % are", bool(below >= 90))
    means = off.mean(axis=(1, 2))
    case = of_table_vi(kernel_round(inputs, gpu, *clocks_of("gtx980-49")).case)
    panel = Panel("", "", "mean absolute error [%]", {"absolute": (TABLE_VI, means)})
    report.bars("fig14", "Wang and Chu Fig. 14: error by kernel", [panel])
    report.rows(
        "the 11 kernels, from counters alone: error [%]",
        ["kernel", "case at the base", "MAPE", "bias"],
        [
            [kernel, int(one), f"{mean:.2f}", f"{of.mean():+.2f}"]
            for kernel, one, mean, of in zip(TABLE_VI, case, means, errors, strict=True)
        ],
        name="papers-wang-chu",
    )
    report.claim(
        "Fig. 14",
        "kernels err by 0.7 to 6.9 %",
        f"{means.min():.2f} to {means.max():.2f} %",
        bool(means.max() <= 6.9),
    )
    report.claim(
        "abstract, conclusion",
        "the mean is 3.5 % (3.8 %)",
        f"{means.mean():.2f} %",
        bool(means.mean() <= 3.8),
    )
    report.claim("Table VI", "12 kernels are named", f"it prints {len(TABLE_VI)}", holds=False)


def clocks_of(name: str) -> tuple[float, float]:
    """Return the clocks of a table's base [MHz]."""
    return base_of(name).engine_mhz, base_of(name).memory_mhz


def as_printed_ms(inputs: WarpInputs, gpu: GpuParameters, engine: Floats, memory: Floats) -> Floats:
    """Return the times [ms] of `predict_time_ms` with the print taken at its word.

    equations.md, section 1.3, has the places: (5a) multiplies (4) by the ratio of the clocks
    again, (7a) has one transaction a period, (10b) and (12b) are exchanged and have #Aw - 1, and
    shared memory is charged by (16) to (21) alone.
    """
    of, ratio = over_clocks(inputs, engine, memory), engine / memory
    dram = dram_latency_cycles(engine, memory, gpu.dram_latency_slope, gpu.dram_latency_offset)
    latency = average_access_cycles(gpu.l2_latency, dram * ratio, of.l2_hit_rate)  # (5a)
    dram = dram_delay_cycles(engine, memory, gpu.dram_delay_slope, gpu.dram_delay_offset)
    delay = average_access_cycles(gpu.l2_delay, dram, of.l2_hit_rate)  # (5b)
    periods, warps = np.maximum(1, of.global_transactions), of.resident_warps  # (7a)
    service = delay * of.global_transactions / periods
    fp64 = gpu.fp64_delay * of.fp64_instructions
    issue = gpu.instruction_delay
    compute = average_compute_cycles(issue, of.compute_instructions, periods, fp64)  # (7b)
    cycles = round_time(compute, service, latency, warps, periods).cycles
    many_queueing = compute + latency >= service * (warps - 1)  # (10b), (12b)
    by_queue = latency + compute + service * warps * periods  # (11)
    by_chain = service * warps + (compute + latency) * periods  # (13)
    memory_bound = np.where(many_queueing, by_queue, by_chain)
    cycles = np.where(compute >= service, cycles, memory_bound)
    return execution_time_ms(cycles, of.warps, warps, gpu.cu_count, engine)  # (6)


def misprints(report: Report) -> None:
    """What the 11 kernels err by the print at its word, and as it was settled."""
    data, inputs, gpu, engine, memory = inputs_of("gtx980-49")
    printed = as_printed_ms(inputs, gpu, engine, memory) / data.time_ms[:, 0] - 1
    means = [
        float(np.abs(of_table_vi(errors)).mean())
        for errors in (100 * printed, signed_errors("gtx980-49", "absolute"))
    ]
    report.claim(
        "misprints",
        "the equations hold as printed",
        f"as printed {means[0]:.2f} %, as settled {means[1]:.2f} %",
        means[0] <= means[1] + 0.5,
    )


def times(report: Report) -> None:
    """Not in the paper: errors on every table, from counters alone and from the base's time."""
    lines = []
    for name in ("gtx980-49", *MEASURED):
        data = table(name)
        _, engine, memory = data.grid.index(base_of(name))
        for model in MODELS:
            off = np.abs(signed_errors(name, model)).reshape(len(data.kernels), -1)
            if model != "absolute":  # the base is given
                off = np.delete(off, engine * len(data.grid.memory_mhz) + memory, axis=1)
            means = off.mean(axis=1)
            figures = (means.mean(), np.median(means), np.percentile(off, 90), means.max())
            worst = data.kernels[int(means.argmax())]
            lines.append([name, model, *(f"{figure:.2f}" for figure in figures), worst])
    header = ["table", "model", "MAPE", "median kernel", "p90", "worst kernel", "its name"]
    report.rows("all kernels: error [%]", header, lines, "papers-times")
    own = Path(os.environ["MLSCALE_DATA"]) / "wang-chu-gtx980/gtx980-dvfs-real-qiang2018-dvfs.csv"
    with own.open() as file:
        rows = [(row[0], abs(float(row[5]))) for row in list(csv.reader(file))[1:]]
    few = [off for kernel, off in rows if kernel in TABLE_VI]
    every = [off for _, off in rows]
    print(f"the authors' own predictions: {100 * np.mean(every):.2f} % on all their kernels, "
          f"{100 * np.mean(few):.2f} % on the 11 of Table VI")  # fmt: skip


if __name__ == "__main__":
    parts = (fig2, fig12, fig13, misprints, times)
    run("Wang and Chu 2018", {part.__name__: part for part in parts})
