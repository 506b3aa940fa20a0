"""Colours of the heat maps: even in lightness, the same to colour-blind readers."""

import numpy as np

# Nine stops of matplotlib's cividis, from low to high, in sRGB.
_STOPS = np.array(
    [
        (0, 34, 78),
        (26, 56, 111),
        (67, 78, 108),
        (97, 101, 111),
        (125, 124, 120),
        (155, 148, 118),
        (188, 174, 108),
        (222, 201, 88),
        (254, 232, 56),
    ]
)
DARK, LIGHT = "#000000", "#ffffff"


def colour(share: float) -> tuple[str, str]:
    """The colour at a share from 0 to 1 of the scale, and black or white for text on it."""
    at = np.linspace(0, 1, len(_STOPS))
    red, green, blue = (int(np.rint(np.interp(share, at, stops))) for stops in _STOPS.T)
    fill = f"#{red:02x}{green:02x}{blue:02x}"
    return fill, max(DARK, LIGHT, key=lambda text: contrast(fill, text))


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, 1 to 21. Source: WCAG 2.1, section 1.4.3."""
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _luminance(code: str) -> float:
    channels = np.array([int(code[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
