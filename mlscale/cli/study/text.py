"""The figures of `study errors` and `study compare` as text."""

from collections.abc import Callable
from typing import Any

from mlscale.cli.text import columns
from mlscale.data.grid import HardwareConfig

Rows = list[dict[str, Any]]

TRAINED = {
    "own-table": "",
    "pooled": "trained on all tables at once, ",
    "unseen-gpu": "trained on other GPUs alone, ",
}


def as_text(document: dict[str, Any]) -> str:
    """A block for each table of measurements and quantity; after several, their means together."""
    timed = document["study"] == "compare"
    by_block: dict[tuple[str, str], Rows] = {}
    for row in document["rows"]:
        by_block.setdefault((row["table"], row["quantity"]), []).append(row)
    blocks = [_block(document, rows, timed) for rows in by_block.values()]
    if len(blocks) > 1:
        means = together(by_block, "predictor", lambda row: f"{row['mape']:.1f}")
        blocks.append(f"Mean errors [%] together:\n{means}")
    return "\n\n".join(blocks)


def _block(document: dict[str, Any], rows: Rows, timed: bool) -> str:
    headers = ["predictor", "features", "MAPE", "seeds", "median", "p90", "worst", "worst kernel"]
    covered = any(row["coverage"] is not None for row in rows)
    faulty = rows[0]["faulty_kernels"]
    [reference] = {row["compared_with"] for row in rows if row["p_value"] is not None} or {None}
    tested = timed and any(row["p_value"] is not None for row in rows)
    headers += ["without faulty"] if faulty else []
    headers += ["in 90 % interval"] if covered else []
    headers += ["p"] if tested else []
    headers += ["train ms", "predict us"] if timed else []
    lines = []
    for row in rows:
        low, high = min(row["mape_by_seed"]), max(row["mape_by_seed"])
        spread = f"{low:.1f} to {high:.1f}" if low < high else ""
        cells = [row["predictor"], row["features"] or "", f"{row['mape']:.2f}", spread]
        cells += [f"{row[k]:.2f}" for k in ("median_kernel", "p90", "worst_kernel_mape")]
        cells += [row["worst_kernel"]]
        if faulty:
            cells += [f"{row['without_faulty']['mape']:.2f}" if row["without_faulty"] else ""]
        if covered:
            cells += ["" if row["coverage"] is None else f"{row['coverage']:.1f}"]
        if tested:
            cells += ["" if row["p_value"] is None else f"{row['p_value']:.2g}"]
        if timed:
            cells += [f"{1e3 * row['train_seconds']:.1f}", f"{row['predict_microseconds']:.0f}"]
        lines.append(cells)
    first = rows[0]
    notes = ""
    if faulty:
        notes += f"\nNamed faulty: {', '.join(faulty)} (trained on, not scored there)."
    if tested:
        notes += (
            f"\np: that it errs as much as wu on {reference}; Wilcoxon's signed-rank test on the "
            f"mean errors of {first['n_applications']} applications, after Holm."
        )
    trained = TRAINED[document.get("training", "own-table")]
    return (
        f"{first['table']}: error of {first['quantity']} [%], {first['n_kernels']} kernels, "
        f"base {HardwareConfig(**first['base'])}, {document['protocol']}, {trained}"
        f"{first['n_seeds']} seeds, {document['clusters']} clusters\n"
        f"{columns(headers, lines)}{notes}"
    )


def together(
    by_block: dict[tuple[str, str], Rows], who: str, cell: Callable[[dict[str, Any]], str]
) -> str:
    """A row for each of `who` and kind of features, a column for each table and quantity."""
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
