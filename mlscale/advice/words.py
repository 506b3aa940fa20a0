"""Numbers as sentences have them: few digits, no exponents."""

EXPONENT_FROM = 999.5  # three digits of more are written with one
EXPONENT_FROM_FOUR = 9999.5  # four digits


def time_in_words(time_ms: float) -> str:
    """A time in ms, or from a second on in s, three digits of it and all of whole seconds."""
    if time_ms < EXPONENT_FROM:
        return f"{time_ms:.3g} ms"
    time_s = time_ms / 1000
    return f"{time_s:.3g} s" if time_s < EXPONENT_FROM else f"{time_s:.0f} s"


def percent_in_words(value: float) -> str:
    """A percentage without its sign, two digits of it and all of whole percents."""
    return f"{abs(value):.1f}" if abs(value) < 9.95 else f"{abs(value):.0f}"


def value_in_words(value: float) -> str:
    """A value with four digits of it, and all of whole numbers."""
    return f"{value:.4g}" if abs(value) < EXPONENT_FROM_FOUR else f"{value:.0f}"
