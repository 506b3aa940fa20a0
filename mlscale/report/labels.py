"""Where labels stand beside dots: under no dot, over no other label, within the picture."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

GAP = 2.0  # between a label and what is beside it [points]
DIRECTIONS = [math.pi * (1 / 2 - turn / 8) for turn in range(16)]  # the first is upwards
STEP, STEPS = 6.0, 33  # how far out a place is sought [points]


@dataclass(frozen=True)
class LabelBox:
    """A label's place: its centre and its size [points]."""

    x: float
    y: float
    width: float
    height: float

    def meets(self, other: "LabelBox") -> bool:
        """Whether two boxes come nearer than GAP."""
        near_x = abs(self.x - other.x) < (self.width + other.width) / 2 + GAP
        near_y = abs(self.y - other.y) < (self.height + other.height) / 2 + GAP
        return near_x and near_y

    def meets_dot(self, x: float, y: float, radius: float) -> bool:
        """Whether a dot comes nearer than GAP."""
        beside = max(abs(self.x - x) - self.width / 2, 0.0)
        above = max(abs(self.y - y) - self.height / 2, 0.0)
        return math.hypot(beside, above) < radius + GAP


Dot = tuple[float, float, float]  # x, y, radius [points]


def label_boxes(
    dots: Sequence[Dot],
    sizes: Sequence[tuple[float, float]],
    taken: Sequence[LabelBox],
    picture: tuple[float, float],
) -> list[LabelBox | None]:
    """A place for the label of each dot: in it where it fits, else as near beside it as is free.

    sizes: of the labels, (0, 0) for none; taken: where other words stand; picture: its width and
    height [points]. The largest dots choose first. None for no label, and where all is full.
    """
    boxes: list[LabelBox | None] = [None] * len(dots)
    occupied = list(taken)
    for i in sorted(range(len(dots)), key=lambda i: -dots[i][2]):
        if sizes[i] == (0, 0):
            continue
        others = [dot for k, dot in enumerate(dots) if k != i]
        for box in _candidates(dots[i], sizes[i]):
            inside = (
                box.width / 2 <= box.x <= picture[0] - box.width / 2
                and box.height / 2 <= box.y <= picture[1] - box.height / 2
            )
            if (
                inside
                and not any(box.meets_dot(*dot) for dot in others)
                and not any(box.meets(other) for other in occupied)
            ):
                boxes[i] = box
                occupied.append(box)
                break
    return boxes


def _candidates(dot: Dot, size: tuple[float, float]) -> Iterator[LabelBox]:
    """Where a label may stand, the best place first."""
    x, y, radius = dot
    width, height = size
    if math.hypot(width, height) / 2 <= radius:
        yield LabelBox(x, y, width, height)
    for step in range(STEPS):
        for angle in DIRECTIONS:
            across, up = math.cos(angle), math.sin(angle)
            beside = abs(across) * width / 2 + abs(up) * height / 2
            reach = radius + GAP + 1 + step * STEP + beside
            box = LabelBox(x + reach * across, y + reach * up, width, height)
            if not box.meets_dot(*dot):
                yield box
