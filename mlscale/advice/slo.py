"""Limits of a server's latencies, as 'itl=50ms@p50,ttft=500ms@p90,tpot=1.1x@p90'."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mlscale.errors import InputError
from mlscale.quantities import quantity
from mlscale.readers.serving import METRICS
from mlscale.text import did_you_mean, plain_number

EXAMPLE = "ttft=500ms@p90"


@dataclass(frozen=True)
class Slo:
    """A limit of a latency: of 'ttft', 'itl' or 'tpot', its 'p90' or 'mean', in ms.

    times: in place of that so many times what it is at the highest clock that was run.
    """

    metric: str
    statistic: str
    limit_ms: float | None = None
    times: float | None = None

    @property
    def name(self) -> str:
        """Such as 'ttft p90'."""
        return f"{self.metric} {self.statistic}"

    def most_ms(self, highest_ms: float) -> float:
        """The limit [ms]; highest_ms: the latency at the highest clock."""
        return self.limit_ms if self.limit_ms is not None else (self.times or 1) * highest_ms


def read_slos(said: str | Mapping[str, str]) -> tuple[Slo, ...]:
    """The limits that a text or {'ttft': '500ms@p90'} says. Raises InputError.

    Example:
        >>> read_slos("tpot=1.1x@p90")
        (Slo(metric='tpot', statistic='p90', limit_ms=None, times=1.1),)
    """
    if isinstance(said, Mapping):
        said = ",".join(f"{metric}={limit}" for metric, limit in said.items())
    return tuple(_slo(part.strip()) for part in said.split(","))


def _slo(text: str) -> Slo:
    metric, _, rest = text.partition("=")
    metric = metric.strip().lower()
    limit, _, statistic = (part.strip() for part in rest.partition("@"))
    if metric not in METRICS:
        hint = did_you_mean(metric, METRICS)
        raise InputError(f"'{text}' is of none of {', '.join(METRICS)}{hint}; write {EXAMPLE}")
    if statistic != "mean" and not re.fullmatch(r"p\d{1,2}(\.\d+)?", statistic):
        raise InputError(f"'{text}' does not say which percentile; write {metric}={limit}@p90")
    try:
        if limit.endswith("x"):
            times, limit_ms = plain_number(limit[:-1]), None
        else:
            times, limit_ms = None, quantity(limit, "ms")
    except (InputError, ValueError):
        raise InputError(f"'{text}': '{limit}' is neither a time nor 1.1x; write {EXAMPLE}") from None
    if not 0 < (times or limit_ms or 0) < float("inf"):
        raise InputError(f"'{text}': a limit is a positive number; write {EXAMPLE}")
    return Slo(metric, statistic, limit_ms, times)
