"""A small study of advice."""

from typing import Any

from mlscale import Measurements
from mlscale.studies.regret import RegretStudy


def regret_of(data: Measurements, **options: Any) -> RegretStudy:
    """A study of one table, of `nearest`, energy and one seed unless told."""
    usual: dict[str, Any] = {"predictors": ["nearest"], "objectives": ["energy"], "seeds": 1}
    given = {"features": ["raw"], "clusters": 2, **usual, **options}
    return RegretStudy(tables={"made": data}, **given)
