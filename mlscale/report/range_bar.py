"""A strip for each feature: the training kernels' range, and where a kernel stands in it."""

from mlscale.report.heat_map import picture
from mlscale.report.markup import Markup, element

_LEFT, _RIGHT, _MIDDLE, _WIDTH, _HEIGHT = 26, 154, 11, 180, 22


def strip(name: str, share: float | None) -> Markup:
    """The range as a bar and the kernel as a dot on it, or an arrow on the side it lies beyond.

    share: 0 at the training minimum, 1 at the maximum; None for no dot.
    """
    bar = element(
        "rect", x=_LEFT, y=_MIDDLE - 3, width=_RIGHT - _LEFT, height=6, rx=3, class_="range"
    )
    where, mark = "missing", None
    if share is not None:
        x = _LEFT + min(max(share, 0.0), 1.0) * (_RIGHT - _LEFT)
        where = "inside" if 0 <= share <= 1 else "below" if share < 0 else "above"
        where += " the training range"
        mark = element("circle", cx=x, cy=_MIDDLE, r=6, class_="mark line-0")
        if not 0 <= share <= 1:
            tip, back = (_LEFT - 20, _LEFT - 4) if share < 0 else (_RIGHT + 20, _RIGHT + 4)
            corners = f"{tip},{_MIDDLE} {back},{_MIDDLE - 8} {back},{_MIDDLE + 8}"
            mark = element("polygon", points=corners, class_="mark line-1")
    return picture(f"{name}: {where}", (_WIDTH, _HEIGHT), bar, mark)
