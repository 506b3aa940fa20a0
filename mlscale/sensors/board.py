"""A sample's headings in a log, and the errors of a GPU that is measured."""

from mlscale.errors import InputError

Sample = dict[str, float]  # by the heading in a log; what a GPU does not tell is left out

POWER, MEAN_POWER = "power.draw.instant [W]", "power.draw [W]"
ENGINE, MEMORY = "clocks.current.sm [MHz]", "clocks.current.memory [MHz]"
BUSY, COPIES = "utilization.gpu [%]", "utilization.memory [%]"
TEMPERATURE, LIMIT = "temperature.gpu", "enforced.power.limit [W]"
REASONS, ENERGY = "clocks_event_reasons.active", "total_energy [J]"


class LostError(InputError):
    """The GPU does not answer any more."""


class SettingError(InputError):
    """The GPU refuses to be set: no right to, or it cannot."""
