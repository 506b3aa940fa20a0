"""How each kind of board is observed and set: kernel_tuner's observer, and what it calls things."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

# By column of the table: what the observer may call it, the best first, and the factor to our unit.
_Columns = dict[str, tuple[tuple[str, ...], float]]


@dataclass(frozen=True)
class Sensors:
    """The sensors of one kind of board.

    observer: makes kernel_tuner's, given the seconds of power and whether clocks are held;
    columns: what is read; settings: kernel_tuner's name of what is set, by field of the plan.
    """

    observer: Callable[[float, bool], Any]
    columns: _Columns
    settings: dict[str, str] = field(default_factory=dict)


def _nvml(power_s: float, hold: bool) -> Any:
    from mlscale.collect.held_clocks import HeldClocksObserver

    power = ["nvml_power", "nvml_energy"] if power_s else []
    observables = [*power, "core_freq", "mem_freq", "temperature"]
    return HeldClocksObserver(observables, use_locked_clocks=hold, continuous_duration=power_s or 1)


def _amdsmi(power_s: float, hold: bool) -> Any:  # noqa: ARG001
    from kernel_tuner.observers.amd import AMDSMIObserver

    observables = [
        *(["power", "energy"] if power_s else []),
        "core_freq",
        "mem_freq",
        "temperature",
    ]
    return AMDSMIObserver(
        observables, use_continuous_observer=bool(power_s), continuous_duration=power_s or 1
    )


def _tegra(power_s: float, hold: bool) -> Any:  # noqa: ARG001
    from kernel_tuner.observers.tegra import TegraObserver

    return TegraObserver([*(["tegra_power", "tegra_energy"] if power_s else []), "core_freq"])


SENSORS = {
    "nvml": Sensors(
        _nvml,
        {
            "power_w": (("nvml_power",), 1.0),
            "engine_mhz_observed": (("pwr_core_freq", "core_freq"), 1.0),
            "memory_mhz_observed": (("pwr_mem_freq", "mem_freq"), 1.0),
            "temperature_c": (("pwr_temperature", "temperature"), 1.0),
        },
        {
            "engine_mhz": "nvml_gr_clock",
            "memory_mhz": "nvml_mem_clock",
            "power_limits_w": "nvml_pwr_limit",
        },
    ),
    "amdsmi": Sensors(
        _amdsmi,
        {
            "power_w": (("amdsmi_power",), 1.0),
            "engine_mhz_observed": (("amdsmi_core_freq",), 1e-6),
            "memory_mhz_observed": (("amdsmi_mem_freq",), 1e-6),
            "temperature_c": (("amdsmi_temperature",), 1.0),
        },
    ),
    "tegra": Sensors(
        _tegra,
        {
            "power_w": (("tegra_power",), 1.0),
            "engine_mhz_observed": (("pwr_core_freq", "core_freq"), 1e-6),
        },
    ),
}
