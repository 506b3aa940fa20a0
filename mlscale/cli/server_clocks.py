"""The clocks of an LLM server as a terminal's table has them, and as rows of CSV."""

from typing import Any

from mlscale.cli.terminal import Line, Meaning, table
from mlscale.text import number

MOST_CLOCKS = 7  # of the table, with those that the answer names
_ENDS = ("", "_low", "_high")
Row = dict[str, Any]


def clock_lines(document: Row, width: int, shows_all: bool) -> list[Line]:
    """A line for each clock, or for a few evenly apart with those that the answer names."""
    clocks, names = document["server"]["clocks"], ("answer", "expected")
    named = {document[name]["at"]["engine_mhz"]: name for name in names[::-1] if document[name]}
    most = len(clocks) if shows_all else MOST_CLOCKS - len(named)
    evenly = {round(k * (len(clocks) - 1) / (most - 1)) for k in range(most)}
    rows: list[list[str]] = []
    meanings: list[Meaning | None] = []
    for place, clock in enumerate(clocks):
        mhz, over = clock["engine_mhz"], clock["breaks"]
        if not (place in evenly or mhz in named or clock["is_measured"]):
            continue
        above = ", ".join(name.split()[0] for name in over) if len(over) < 3 else "limits"
        said = [named.get(mhz), "measured" * clock["is_measured"], over and f"above {above}"]
        ranges = (*clock["latency_ms"].values(), clock["power_w"], clock["tokens_per_joule"])
        cells = [f"{mhz:g}", *(number(values[0], 3) for values in ranges)]
        rows.append([*cells, ", ".join(filter(None, said))])
        meanings.append("bold" if named.get(mhz) == "answer" else "over" if over else None)
    header = ["MHz", *clocks[0]["latency_ms"], "W", "tokens/J", ""]
    return table(header, rows, meanings=meanings, width=width)


def clock_row(clock: Row) -> Row:
    """A row of CSV, each interval in three columns."""
    row = {name: clock[name] for name in ("engine_mhz", "is_measured", "output_per_s")}
    ranges = clock["latency_ms"] | {name: clock[name] for name in ("power_w", "tokens_per_joule")}
    for name, values in ranges.items():
        row |= {name + end: value for end, value in zip(_ENDS, values, strict=True)}
    return {**row, "capacity_share": clock["capacity_share"], "breaks": "; ".join(clock["breaks"])}
