"""What the user states about a run because its files do not."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlscale.data.grid import AXES
from mlscale.errors import InputError


@dataclass(frozen=True)
class Given:
    """What the user states besides the files of a run. Raises InputError on impossible values.

    Attributes:
        device: a key of the device table, or any name.
        base: what the GPU was set to: 'cu_count', 'engine_mhz', 'memory_mhz' [MHz], some or all.
        gpu: whose launches or samples to take where a file has those of several, by its number.
        application: of all kernels; None uses the profiled program, or the file's name.
        power: board power of the run [W], or a monitor's log of it.
        interval_s: between two samples [s] of a log without time stamps.
        time_ms: the true time of a log's run [ms]; None uses its busy span.
        each: a row for each launch instead of their mean.
        skip_untimed: leave out kernels for which no file has a time.
    """

    device: str | None = None
    base: Mapping[str, float] = field(default_factory=dict)
    gpu: str | None = None
    application: str | None = None
    power: float | str | Path | None = None
    interval_s: float | None = None
    time_ms: float | None = None
    each: bool = False
    skip_untimed: bool = False

    def __post_init__(self) -> None:
        if not set(self.base) <= set(AXES):
            raise InputError(f"{self.base} is not a base; it may give {', '.join(AXES)}, by name")
        numbers: dict[str, float | None] = {
            f"{axis} of the base": value for axis, value in self.base.items()
        }
        numbers |= {"interval_s": self.interval_s, "time_ms": self.time_ms}
        for name, value in numbers.items():
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InputError(f"{name} must be a positive number, not {value!r}")
