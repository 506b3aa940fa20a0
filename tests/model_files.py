"""Small models, their files, and the members of a model file."""

import io
import json
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from parameters import own
from synthetic import bottleneck_kernels, sampled_kernels, warps
from synthetic import kernels as made

from mlscale import ConfigGrid, Model, Profiles, save, train
from mlscale.model.predictions import COVERAGE

GRID = ConfigGrid((4,), (400.0, 800.0), (500.0,))
DRAM_GRID = ConfigGrid((16,), (500.0, 1000.0), (3000.0, 4000.0))

Answer = tuple[list[dict[str, Any]], list[str]]


def small(predictor: str, power: bool = False) -> tuple[Model, Profiles]:
    """A model of four kernels on two configurations, and their profiles."""
    kernels = made.measurements(per_group=1, grid=GRID, power=power)
    model = train(kernels, GRID.mid, predictor, **own(predictor, clusters=2))
    return model, kernels.profiles(GRID.mid)


@cache
def trained(name: str) -> tuple[Model, Profiles]:
    """A small model, and profiles to ask it."""
    if name == "runs":
        kernels = replace(sampled_kernels.measurements(count=12), device="v100")
        others = [(replace(kernels, device="other"), sampled_kernels.TOP)]
        model = train(kernels, sampled_kernels.TOP, "runs", others=others)
        new = sampled_kernels.measurements(count=3, seed=7).profiles(sampled_kernels.TOP)
        return model, replace(new, device="v100")
    if name == "bottleneck":
        kernels = bottleneck_kernels.measurements(4, grid=DRAM_GRID)
        return train(kernels, DRAM_GRID.mid, name), kernels.profiles(DRAM_GRID.mid)
    if name in ("wang-chu", "max-overlap"):
        table = replace(warps.measurements(), power_samples=None)
        return train(table, warps.BASE, name), table.profiles(warps.BASE)
    return small(name)


def content_of(model: Model, folder: Path) -> bytes:
    """A model's file."""
    path = folder / "whole.mlscale"
    save(model, path)
    return path.read_bytes()


def members_of(content: bytes) -> dict[str, bytes]:
    """The members of a model file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: dict[str, bytes]) -> bytes:
    """A zip of these members."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


def with_document(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The model file with its document changed in place."""
    members = members_of(content)
    document = json.loads(members["model.json"])
    change(document)
    return zipped(members | {"model.json": json.dumps(document).encode()})


def npy(array: np.ndarray) -> bytes:
    """An .npy file; objects are pickled."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=True)
    return content.getvalue()


def answer(model: Model, profiles: Profiles) -> Answer:
    """All that a user gets from a model."""
    predictions = model.predict(profiles, COVERAGE)
    return predictions.rows(), list(predictions.warnings)
