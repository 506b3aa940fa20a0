"""Text that several studies share."""

from collections.abc import Callable
from typing import Any

from mlscale.cli.text import columns, or_dash
from mlscale.data.grid import HardwareConfig
from mlscale.studies.base import Row, Rows, Study
from mlscale.text import counted

MEAN_HEADERS = ("MAPE", "std. error", "median", "p90", "worst", "worst kernel")


def origins(study: Study) -> dict[str, str | None]:
    """Return where the data of each table come from, as it says; None where it does not."""
    return {name: data.metadata.get("origin") for name, data in study.tables.items()}


def conditions(document: Row, row: Row, trained: str = "") -> str:
    """Say how a row was come by: base, protocol, what was trained on, seeds and clusters."""
    clusters = document["clusters"]
    trained_on = row.get("n_training_kernels", row.get("n_kernels", float("inf")) / 2)
    may_be_fewer = isinstance(clusters, int) and trained_on < clusters
    return (
        f"base {HardwareConfig(**row['base'])}, {document['protocol']}{trained}, "
        f"{counted(row['n_seeds'], 'seed')}, {'at most ' * may_be_fewer}{clusters} clusters"
    )


def summary_cells(row: Row) -> list[str]:
    """Return the figures of MEAN_HEADERS."""
    figures = ("mape", "standard_error", "median_kernel", "p90", "worst_kernel_mape")
    return [*(two_digits(row[name]) for name in figures), row["worst_kernel"]]


def two_digits(value: float | None) -> str:
    """Return a figure with two decimals, - where there is none."""
    return or_dash(value, "z.2f")


def means_together(
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
