"""Model files of the bottleneck predictor damaged by hand: refused in one line, or harmless."""

import copy
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic import bottleneck_kernels as made
from synthetic.tidy import refused
from test_model_file import DELETED, content_of, members_of, npy, outcome, paths_of, zipped

from mlscale import ConfigGrid, Profiles, load, save, train

GRID = ConfigGrid((16,), (500.0, 1000.0), (3000.0, 4000.0))

Members = dict[str, bytes]
File = tuple[Members, Profiles, Path]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> File:
    """The members of a small model's file of time and power, profiles to ask it, and a path."""
    folder = tmp_path_factory.mktemp("damaged")
    model = train(made.measurements(4, grid=GRID), GRID.mid, "bottleneck")
    profiles = made.measurements(2, seed=1, grid=GRID).profiles(GRID.mid)
    return members_of(content_of(model, folder)), profiles, folder / "damaged.mlscale"


def written(path: Path, members: Members, changed: Members) -> Path:
    """The file with some members changed."""
    path.write_bytes(zipped(members | changed))
    return path


def holds_its_intervals(found: Any) -> bool:
    """Whether an answer is a refusal in one line, or finite and within its own intervals."""
    if isinstance(found, str):
        return len(found.splitlines()) == 1
    rows = [[row[name] for name in ("time_ms_low", "time_ms", "time_ms_high")] for row in found[0]]
    return all(None in row or (np.isfinite(row).all() and row == sorted(row)) for row in rows)


@pytest.mark.parametrize("value", [DELETED, "x", -1], ids=["deleted", "x", "-1"])
def test_anything_in_the_state_of_time_may_be_wrong(value: object, file: File) -> None:
    members, profiles, path = file
    document = json.loads(members["model.json"])
    for where in paths_of(document["predictors"]["time"]):
        wrong = copy.deepcopy(document)
        parent = wrong["predictors"]["time"]
        for key in where[:-1]:
            parent = parent[key]
        if value is DELETED:
            del parent[where[-1]]
        else:
            parent[where[-1]] = value
        written(path, members, {"model.json": json.dumps(wrong).encode()})
        assert holds_its_intervals(outcome(path, profiles)), where


def test_any_array_may_have_another_sign_or_size(file: File) -> None:
    members, profiles, path = file
    for name in members.keys() - {"model.json"}:
        array = np.load(io.BytesIO(members[name]))
        for other in (-array, 0 * array, np.concatenate([array, array])):
            written(path, members, {name: npy(other)})
            assert holds_its_intervals(outcome(path, profiles)), name


@pytest.mark.parametrize(
    ("quantity", "keys", "damage", "problem"),
    [
        ("time", ("time", "process", "spread"), lambda a: 0 * a, "a spread is not positive"),
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
    members, _, path = file
    place = json.loads(members["model.json"])["predictors"][quantity]["state"]
    for key in keys:
        place = place[key]
    array = np.load(io.BytesIO(members[place["array"]]))
    with refused(f"damaged.mlscale: is a damaged model file: {problem}"):
        load(written(path, members, {place["array"]: npy(damage(array))}))


def test_a_model_turned_to_another_gpu_is_not_saved(tmp_path: Path) -> None:
    """Its grid is not that of its predictor, so the file could not be read."""
    model = train(made.measurements(4, grid=GRID), GRID.mid, "mean-surface")
    other = replace(model, device="p100", untrained=True)
    with refused("m.mlscale: a model turned to p100 is not saved; save what it was"):
        save(other, tmp_path / "m.mlscale")
    assert not list(tmp_path.iterdir())


def test_an_unknown_input_is_refused(file: File) -> None:
    members, _, path = file
    document = json.loads(members["model.json"])
    document["predictors"]["time"]["state"]["time"]["process"]["names"][0] = "luck"
    with refused("damaged.mlscale: is a damaged model file: there is no input 'luck'"):
        load(written(path, members, {"model.json": json.dumps(document).encode()}))
