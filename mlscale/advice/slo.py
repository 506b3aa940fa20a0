"""Limits of a server's latencies, as 'itl=50ms@p50,ttft=500ms@p90,tpot=1.1x@p90'."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mlscale.errors import InputError
from mlscale.quantities import quantity
from mlscale.readers.serving import METRICS, STATISTICS

_FORM = re.compile(
    rf"\s*({'|'.join(METRICS)})\s*=\s*(.+?)(x?)\s*@\s*({'|'.join(STATISTICS)})\s*", re.IGNORECASE
)


@dataclass(frozen=True)
class Slo:
    """A limit of a latency [ms], or so many times what it is at the highest clock that was run."""

    metric: str
    statistic: str
    limit_ms: float | None = None
    times: float = 1.0

    @property
    def name(self) -> str:
        """Such as 'ttft p90'."""
        return f"{self.metric} {self.statistic}"

    @property
    def percentile(self) -> float:
        """Such as 90; of a mean 50."""
        return 50.0 if self.statistic == "mean" else float(self.statistic[1:])

    @property
    def is_of_long_gaps(self) -> bool:
        """Whether gaps that are longer than most decide it."""
        return self.metric == "itl" and self.percentile > 50

    def most_ms(self, highest_ms: float) -> float:
        """The limit [ms], where the latency at the highest clock is highest_ms."""
        return self.times * highest_ms if self.limit_ms is None else self.limit_ms


def read_slos(said: str | Mapping[str, str]) -> tuple[Slo, ...]:
    """The limits that a text or {'ttft': '500ms@p90'} says. Raises InputError.

    Example:
        >>> read_slos("tpot=1.1x@p90")
        (Slo(metric='tpot', statistic='p90', limit_ms=None, times=1.1),)
    """
    if isinstance(said, Mapping):
        said = ",".join(f"{metric}={limit}" for metric, limit in said.items())
    found = []
    for text in filter(str.strip, str(said).split(",")):
        if (parts := _FORM.fullmatch(text)) is None:
            raise InputError(
                f"'{text}' is no limit; write ttft=500ms@p90, itl=50ms@p50 or tpot=1.1x@p90, of "
                f"{', '.join(STATISTICS)}"
            )
        metric, limit, is_times, statistic = parts.groups()
        number = quantity(limit, "" if is_times else "ms")
        if not 0 < number < float("inf"):
            raise InputError(f"'{text}': a limit is a positive number")
        given = {"times": number} if is_times else {"limit_ms": number}
        found.append(Slo(metric.lower(), statistic.lower(), **given))
    return tuple(found)
