"""Pages of runs read back, for the tests: what a page carries, and pages of made kernels."""

import base64
import json
import re
import zlib
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from parameters import own
from synthetic import kernels as made

from mlscale import ConfigGrid, Limits, Model, Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.answer import PlainAnswer, answer_by
from mlscale.pages.page import page
from mlscale.readers.source import Source
from mlscale.subject import Subject

MID = made.GRID.mid


def runs_of(text: str) -> list[dict[str, Any]]:
    """The runs that a page carries."""
    (carried,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    runs: list[dict[str, Any]] = json.loads(carried)["runs"]
    for run in runs:
        run["grid"] = run["grid"] and json.loads(zlib.decompress(base64.b64decode(run["grid"])))
    return runs


def unpacked(differences: list[int | None]) -> np.ndarray:
    """The factors of a surface, NaN where one is not known."""
    factors = np.full(len(differences), np.nan)
    is_known = np.array([one is not None for one in differences])
    seconds = [one for one in differences if one is not None]
    factors[is_known] = np.exp(np.cumsum(np.cumsum(seconds)) / 10_000)
    return factors


def on_grid(run: dict[str, Any], row: dict[str, Any], quantity: str) -> list[np.ndarray]:
    """Value, low and high of a run's or a kernel's quantity by CUs, engine and memory clock.

    In its unit; the value alone where there is no interval.
    """
    axes = run["grid"]["axes"]
    shape = len(axes["c"]), len(axes["m"]), len(axes["e"])
    base, value, *ends = row[quantity]
    if quantity == "energy":
        assert value is None
        factors = unpacked(row["time"][1]) * unpacked(row["power"][1])
    else:
        factors = unpacked(value)
    sides = [factors, *(unpacked(end) if end else factors for end in ends)]
    return [base * side.reshape(shape).swapaxes(1, 2) for side in sides]


@cache
def trained(name: str = "nearest", power: bool = True, grid: ConfigGrid = made.GRID) -> Model:
    """Of kernels that scale by known laws; the nearest kernel is of the same law, exactly."""
    measurements = made.measurements(power=power, grid=grid)
    return train(measurements, grid.mid, name, **own(name, neighbours=1, clusters=4))


def new_profiles(power: bool = True, grid: ConfigGrid = made.GRID, count: int = 1) -> Profiles:
    """Kernels of each law that the model has not seen: compute0, bandwidth0, …"""
    found = made.measurements(per_group=count, grid=grid, power=power, seed=1)
    return found.profiles(grid.mid)


def shown(
    model: Model, profiles: Profiles, objective: str | None = None, limits: Limits | None = None
) -> PlainAnswer:
    """The run of these profiles, as the command shows it."""
    advice = advise(model, profiles, objective, limits)
    subject = Subject(model, profiles, (), "model.mlscale", "profile.csv")
    files = (Source("profile.csv"),)
    return replace(answer_by(advice, "model"), subject=subject, files=files)


def page_of(model: Model, profiles: Profiles, **asked: Any) -> str:
    return page([shown(model, profiles, **asked)])
