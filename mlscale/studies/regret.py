"""Regret: what following an advice costs, on the measured surfaces, above the true optimum."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mlscale.advice import objectives as advice
from mlscale.data.grid import Index
from mlscale.studies.advice import Chosen, Tables, whole_power
from mlscale.studies.metrics import kernel_means

Rows = list[dict[str, Any]]


def choices(results: Iterable[Chosen], tables: Tables) -> Rows:
    """A row for each choice: what was chosen, and what it costs as measured.

    regret_percent: 100 (objective there / objective at the best configuration that keeps the
    limits - 1); None where the choice breaks a limit, so that the two cannot be compared.
    best_saving_percent: what the true optimum saves against the base. A kernel of which no
    configuration keeps the limits is left out.
    """
    return [
        row
        for result in results
        for objective, indices in result.indices.items()
        for k, index in zip(result.kernels, indices, strict=True)
        if (row := _row(result, tables, objective, k, index)) is not None
    ]


def _row(
    result: Chosen, tables: Tables, objective: str, k: int, chosen: Index
) -> dict[str, Any] | None:
    unit = result.unit
    data, asked = tables[unit.table]
    power = whole_power(data, asked)
    time_ms, power_w = data.time_ms[k], None if power is None else power[k]
    base = data.grid.index(asked.base)
    values = advice.objective_values(objective, time_ms, power_w)
    kept = advice.feasible(asked.limits, time_ms, power_w, float(time_ms[base]))
    if not kept.any():
        return None
    least = float(values[kept].min())
    return {
        "table": unit.table,
        "objective": objective,
        "advisor": unit.advisor.predictor,
        "features": unit.advisor.features,
        "seed": unit.seed,
        "application": data.applications[k],
        "kernel": data.kernels[k],
        **data.grid.config(chosen).as_dict(),
        "breaks_limits": not kept[chosen],
        "regret_percent": float(100 * (values[chosen] / least - 1)) if kept[chosen] else None,
        "saving_percent": float(advice.saving_percent(values[chosen], values[base])),
        "best_saving_percent": float(advice.saving_percent(least, values[base])),
        "slowdown_percent": float(100 * (time_ms[chosen] / time_ms[base] - 1)),
    }


def rows(chosen: Rows, tables: Tables, seeds: int) -> Rows:
    """One row of figures for each table, objective and advisor: docs/advice.md.

    Regrets are summed up over kernels, the mean over seeds of each; None where no choice kept
    the limits.
    """
    grouped: dict[tuple[Any, ...], Rows] = {}
    for row in chosen:
        key = (row["table"], row["objective"], row["advisor"], row["features"])
        grouped.setdefault(key, []).append(row)
    return [_summary(group, tables, seeds) for group in grouped.values()]


def _summary(group: Rows, tables: Tables, seeds: int) -> dict[str, Any]:
    first = group[0]
    data, asked = tables[first["table"]]
    compared = [row for row in group if not row["breaks_limits"]]
    regrets = kernel_means(
        np.array([[row["regret_percent"]] for row in compared]), [r["kernel"] for r in compared]
    )
    each = list(regrets.values())
    worst = max(regrets, key=lambda kernel: regrets[kernel]) if regrets else None
    judged = {row["kernel"] for row in group}
    return {
        **{name: first[name] for name in ("table", "objective", "advisor", "features")},
        "base": asked.base.as_dict(),
        "n_kernels": len(judged),
        "n_beyond_limits": len(data.kernels) - len(judged),
        "n_seeds": seeds,
        "breaks_limits_percent": 100 * (1 - len(compared) / len(group)),
        "regret_mean": float(np.mean(each)) if each else None,
        "regret_median": float(np.median(each)) if each else None,
        "regret_p90": float(np.percentile(each, 90)) if each else None,
        "worst_kernel": worst,
        "worst_regret": None if worst is None else regrets[worst],
        **{
            f"{name}_mean": float(np.mean([row[f"{name}_percent"] for row in group]))
            for name in ("saving", "best_saving", "slowdown")
        },
    }
