"""Made kernels whose most frugal clocks are known: power is 30 W + 70 W (engine / 1000 MHz)^3.

With time by made.LAWS, the energy of a compute kernel at 16 CUs goes with (30 + 70 x^3) / x, x the
engine clock in GHz: 86.2, 75.2, 82.3 and 100 at 0.4, 0.6, 0.8 and 1.0; and its energy x time with
(30 + 70 x^3) / x^2: 215.5, 125.3, 102.8 and 100. A bandwidth kernel's goes with 30 + 70 x^3 alone:
34.48, 45.12, 65.84 and 100, and inversely with the memory clock.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mlscale import Measurements, Model, Predictor, Profiles, Surfaces, save, train
from mlscale.data.grid import ConfigGrid
from synthetic import kernels as made

MID = made.GRID.mid  # cu=8, engine=800, memory=700
LAWS = {group: made.LAWS[group] for group in ("compute", "bandwidth")}


def measurements(per_group: int = 3, power_kind: str | None = "board") -> Measurements:
    """Kernels compute0, ..., bandwidth0, ...; base times differ by a factor only."""
    plain = made.measurements(per_group=per_group, laws=LAWS)
    engine = np.array(made.GRID.engine_mhz)[:, None] / 1000
    power = np.broadcast_to(30 + 70 * engine**3, plain.time_samples.shape)
    return replace(
        plain, power_samples=power.copy(), metadata={"origin": "measured", "power_kind": power_kind}
    )


def new_kernels(
    launches: tuple[float, float] | np.ndarray | None = None, power: bool = True
) -> Profiles:
    """A compute and a bandwidth kernel, 2 ms and 4 ms at the base, both at the base's 65.84 W."""
    profiles = measurements(per_group=1).profiles(made.GRID.mid)
    return replace(
        profiles,
        time_ms=np.array([2.0, 4.0]),
        power_w=profiles.power_w if power else None,
        launches=None if launches is None else np.array(launches),
    )


def files(
    folder: Path, device: str = "made-gpu", power_kind: str = "board", power: float | None = 1.0
) -> tuple[Path, Path]:
    """A model, and a table with both new kernels, whose power is so many times that; None: none."""
    model, profile = folder / "made.mlscale", folder / "profile.csv"
    training = replace(measurements(power_kind=power_kind), device=device)
    save(train(training, MID, "nearest"), model)
    new = replace(measurements(per_group=1, power_kind=power_kind), device=device)
    at_base = new.time_ms[:, 1, 2, 1][:, None, None, None]
    watts = None if power is None or new.power_samples is None else power * new.power_samples
    times = new.time_samples / at_base * np.array([2.0, 4.0])[:, None, None, None]
    replace(new, time_samples=times, power_samples=watts).write(profile)
    return model, profile


class Unsure(Predictor):
    """Before a predictor: every prediction but the base's is 10 % less to 20 % more."""

    def predict_interval(
        self,
        profiles: Profiles,
        coverage: float = 0.9,  # noqa: ARG002
        grid: ConfigGrid | None = None,
    ) -> Surfaces:
        surfaces = self.predict(profiles, grid)
        away = np.ones(surfaces.grid.shape)
        away[surfaces.grid.index(surfaces.base)] = 0
        low, high = surfaces.values * (1 - 0.1 * away), surfaces.values * (1 + 0.2 * away)
        return replace(surfaces, low=low, high=high)


def model_of(kind: Callable[..., Any]) -> Model:
    """A model of time and power by a predictor that is not mlscale's."""
    by_nearest = train(measurements(), MID, "nearest")
    fitted = {q: kind(quantity=q).fit(measurements(), MID) for q in ("time", "power")}
    return replace(by_nearest, predictors=fitted)
