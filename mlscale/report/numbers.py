"""Numbers as a reader wants them."""

import math


def number(value: float | None, digits: int = 4) -> str:
    """A number with that many significant digits, without an exponent; '-' for None."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def times(factor: float) -> str:
    """A factor, three significant digits behind the sign of multiplication."""
    return f"\N{MULTIPLICATION SIGN}{number(factor, 3)}"


def percent(share: float) -> str:
    """A share as a percentage with its sign, to a tenth: '-12.3 %', '+4.0 %', '0.0 %'."""
    rounded = round(100 * share, 1)
    return f"{rounded:+.1f} %" if rounded else "0.0 %"
