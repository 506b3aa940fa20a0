"""Kernels of a run that exchange data between GPUs: how much of its time they take."""

from dataclasses import dataclass

from mlscale.data.profiles import Profiles
from mlscale.text import share_in_percent, shortened
from mlscale.unprofiled import exchanging

LEAST_TOLD = 0.01  # of a run's time


@dataclass(frozen=True)
class Exchanges:
    """How long the kernels of a run exchange data between GPUs, at the base.

    run_ms: of all kernels; own_ms: of those [ms]. first: the name of one of them, None where
    there is none.
    """

    run_ms: float = 0.0
    own_ms: float = 0.0
    first: str | None = None

    def __add__(self, other: "Exchanges") -> "Exchanges":
        return Exchanges(
            self.run_ms + other.run_ms,
            self.own_ms + other.own_ms,
            self.first or other.first,
        )

    @property
    def warnings(self) -> list[str]:
        """That kernels of the run wait for other GPUs."""
        share = self.own_ms / self.run_ms
        if self.first is None or share < LEAST_TOLD:
            return []
        warning = (
            f"{share_in_percent(share)} % of the run's time is in kernels that exchange data "
            f"between GPUs ('{shortened(self.first)}'): they wait for links and for the other "
            "GPUs, which no counter tells; set all GPUs alike"
        )
        return [warning]


def exchanges_of(profiles: Profiles) -> Exchanges:
    """Those of all kernels of these profiles."""
    times_ms, own = profiles.run_times_ms, exchanging(profiles)
    first = profiles.kernels[int(own.argmax())] if own.any() else None
    own_ms = float(times_ms[own].sum())
    return Exchanges(float(times_ms.sum()), own_ms, first)
