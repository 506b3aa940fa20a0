"""Kernels of a run that exchange data between GPUs: how much of its time they take."""

from dataclasses import dataclass

from mlscale.data.profiles import Profiles
from mlscale.text import share_in_percent, shortened, time_in_words
from mlscale.unprofiled import exchanging

LEAST_TOLD = 0.01  # of a run's time


@dataclass(frozen=True)
class Exchanges:
    """How long the kernels of a run exchange data between GPUs, at the base.

    run_ms: of all kernels; own_ms: of those [ms]. first: the name of one of them, None where
    there is none. beside_ms: how long the traced run does so beside other kernels [ms].
    """

    run_ms: float = 0.0
    own_ms: float = 0.0
    first: str | None = None
    beside_ms: float = 0.0

    def __add__(self, other: "Exchanges") -> "Exchanges":
        return Exchanges(
            self.run_ms + other.run_ms,
            self.own_ms + other.own_ms,
            self.first or other.first,
            self.beside_ms + other.beside_ms,
        )

    @property
    def hidden_percent(self) -> float:
        """The share of the kernels' time that other kernels hide [%]; 0 where it is little."""
        hidden = min(self.beside_ms, self.own_ms) / self.run_ms
        return 100 * hidden if LEAST_TOLD < hidden < 1 else 0.0

    @property
    def warnings(self) -> list[str]:
        """That kernels of the run wait for other GPUs, some of them beside others."""
        share = self.own_ms / self.run_ms
        if self.first is None or share < LEAST_TOLD:
            return []
        warning = (
            f"{share_in_percent(share)} % of the run's time is in kernels that exchange data "
            f"between GPUs ('{shortened(self.first)}'): they wait for links and for the other "
            "GPUs, which no counter tells; set all GPUs alike"
        )
        if self.hidden_percent:
            hidden_ms = self.hidden_percent / 100 * self.run_ms
            warning += f"; {time_in_words(hidden_ms)} of them run beside other kernels"
        return [warning]


def exchanges_of(profiles: Profiles) -> Exchanges:
    """Those of all kernels of these profiles. Raises InputError on senseless metadata."""
    times_ms, own = profiles.run_times_ms, exchanging(profiles)
    first = profiles.kernels[int(own.argmax())] if own.any() else None
    own_ms = float(times_ms[own].sum())
    return Exchanges(float(times_ms.sum()), own_ms, first, profiles.hidden_exchange_ms)
