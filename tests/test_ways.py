"""The two ways through the code that CONTRIBUTING.md shows are those that Python takes.

Regression only: the page against the call stack of the command that it names.
"""

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from mlscale.advice import objectives
from mlscale.cli.main import main
from mlscale.predictors.bottleneck import curve
from mlscale.readers import ncu

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ENDS = {
    "from a file to its kernels": ncu.read,
    "from the kernels to what each clock costs": curve.p_norm,
    "from what each clock costs to the clock": objectives.best_index,
}


def stops(way: str) -> list[str]:
    """The functions that the page names on a way."""
    text = PAGE.partition(f"**{way}:**")[2].partition("\n\n")[0].partition("\n- ")[0]
    return re.findall(r"`(mlscale\.[\w.]+)`", text)


@pytest.fixture(scope="module")
def stacks() -> dict[object, list[str]]:
    """By function at a way's end the calls that led there first, from `cli.advise.run` on."""
    codes = {end.__code__: end for end in ENDS.values()}
    found: dict[object, list[str]] = {}

    def look(frame: FrameType, event: str, _: object) -> None:
        end = codes.get(frame.f_code)
        if event != "call" or end is None or end in found:
            return
        calls = []
        at: FrameType | None = frame
        while at and not (calls and calls[-1] == "mlscale.cli.advise.run"):
            calls.append(f"{at.f_globals['__name__']}.{at.f_code.co_qualname}")
            at = at.f_back
        found[end] = [call for call in reversed(calls) if "<locals>" not in call]

    sys.setprofile(look)
    try:
        assert main(["advise", str(ROOT / "datasets" / "h100-by-hand.csv")]) == 0
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("way", ENDS)
def test_the_page_shows_the_way(way: str, stacks: dict[object, list[str]]) -> None:
    """At most 12 stops, from the first that the page names on."""
    named, taken = stops(way), stacks[ENDS[way]]
    assert named == taken[taken.index(named[0]) :]
    assert len(named) <= 12
