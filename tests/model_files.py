"""Small models, their files, and the members of a model file."""

import io
import zipfile
from pathlib import Path

import numpy as np
from parameters import own
from synthetic import kernels as made

from mlscale import ConfigGrid, Model, Profiles, save, train

GRID = ConfigGrid((4,), (400.0, 800.0), (500.0,))


def small(predictor: str, power: bool = False) -> tuple[Model, Profiles]:
    """A model of four kernels on two configurations, and their profiles."""
    kernels = made.measurements(per_group=1, grid=GRID, power=power)
    model = train(kernels, GRID.mid, predictor, **own(predictor, clusters=2))
    return model, kernels.profiles(GRID.mid)


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


def npy(array: np.ndarray) -> bytes:
    """An .npy file; objects are pickled."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=True)
    return content.getvalue()
