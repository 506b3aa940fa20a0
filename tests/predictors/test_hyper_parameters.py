"""Hyper-parameters of a predictor of one's own, whose declarations mlscale cannot all read."""

from typing import Any

import pytest
from synthetic.tidy import refused

from mlscale.predictors.base import require_declared_type
from mlscale.predictors.baselines import NoScaling


class Own(NoScaling):
    whole: int | None = 1
    by_name: dict[str, int] | None = None
    unknown: "NotThere"  # type: ignore[name-defined]  # noqa: F821


class Plain(NoScaling):
    whole: int | None = 1
    by_name: dict[str, int] | None = None


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (Plain, "by_name", {"a": 1}),  # declared as what no rule is known of
        (Plain, "by_name", 5),
        (Plain, "nowhere", "x"),  # not declared at all
        (Own, "whole", "x"),  # beside an annotation that means nothing
        (Plain, "whole", None),
    ],
)
def test_what_cannot_be_told_passes(owner: type, name: str, value: Any) -> None:
    require_declared_type(owner, name, value)


def test_what_is_declared_is_held() -> None:
    with refused("^whole must be a whole number or None, not str$"):
        require_declared_type(Plain, "whole", "x")
