"""Model files of the bottleneck predictor damaged by hand: what is refused, and why."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import DRAM_GRID, content_of, members_of, npy, trained, zipped
from synthetic import bottleneck_kernels as made
from synthetic.tidy import refused

from mlscale import load, save, train

Members = dict[str, bytes]
File = tuple[Members, Path]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> File:
    """The members of a small model's file of time and power, and a path."""
    folder = tmp_path_factory.mktemp("damaged")
    model, _ = trained("bottleneck")
    return members_of(content_of(model, folder)), folder / "damaged.mlscale"


def written(path: Path, members: Members, changed: Members) -> Path:
    """The file with some members changed."""
    path.write_bytes(zipped(members | changed))
    return path


@pytest.mark.parametrize(
    ("quantity", "keys", "damage", "problem"),
    [
        ("time", ("time", "process", "spread"), lambda a: 0 * a, "spread is not positive"),
        (
            "time",
            ("scores", "trained"),
            lambda a: -a,
            "the scores of the intervals do not rise from 0",
        ),
        (
            "time",
            ("scores", "trained"),
            lambda a: a[:, ::-1],
            "the scores of the intervals do not rise from 0",
        ),
        ("power", ("power", "idle_w"), lambda a: -a, "idle_w is not positive"),
        ("power", ("power", "spread"), lambda a: 0 * a, "spread is not positive"),
    ],
)
def test_what_would_give_wrong_numbers_is_refused(
    file: File, quantity: str, keys: tuple[str, ...], damage: Any, problem: str
) -> None:
    members, path = file
    place = json.loads(members["model.json"])["predictors"][quantity]["state"]
    for key in keys:
        place = place[key]
    array = np.load(io.BytesIO(members[place["array"]]))
    with refused(f"damaged.mlscale: is a damaged model file: {problem}"):
        load(written(path, members, {place["array"]: npy(damage(array))}))


def test_a_model_turned_to_another_gpu_is_not_saved(tmp_path: Path) -> None:
    """Its grid is not that of its predictor, so the file could not be read."""
    model = train(made.measurements(4, grid=DRAM_GRID), DRAM_GRID.mid, "mean-surface")
    other = replace(model, device="p100", untrained=True)
    with refused("m.mlscale: a model .* is not saved; save what it was"):
        save(other, tmp_path / "m.mlscale")
    assert not list(tmp_path.iterdir())


def test_an_unknown_input_is_refused(file: File) -> None:
    members, path = file
    document = json.loads(members["model.json"])
    document["predictors"]["time"]["state"]["time"]["process"]["names"][0] = "luck"
    with refused("damaged.mlscale: is a damaged model file: there is no input 'luck'"):
        load(written(path, members, {"model.json": json.dumps(document).encode()}))
