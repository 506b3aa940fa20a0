"""Model files of other versions of mlscale."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from model_files import content_of, members_of, small, zipped
from synthetic import warps
from synthetic.tidy import refused

from mlscale import MaxOverlap, load, train


@pytest.fixture(scope="module")
def wu(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a small model of `wu`."""
    return content_of(small("wu")[0], tmp_path_factory.mktemp("wu"))


@pytest.mark.parametrize("version", [2, 99, 0, None, "1"])
def test_another_version(version: object, wu: bytes, tmp_path: Path) -> None:
    members = members_of(wu)
    document = json.loads(members["model.json"]) | {"format_version": version}
    path = tmp_path / "future.mlscale"
    path.write_bytes(zipped(members | {"model.json": json.dumps(document).encode()}))
    message = f"has model format {version}, this mlscale reads 1; use the mlscale that wrote"
    with refused(message):
        load(path)


def test_what_another_version_kept_under_other_names_is_not_called_damaged_alone(
    wu: bytes, tmp_path: Path
) -> None:
    members = members_of(wu)
    document = json.loads(members["model.json"])
    del document["card"]
    path = tmp_path / "old.mlscale"
    path.write_bytes(zipped(members | {"model.json": json.dumps(document).encode()}))
    with refused("is a damaged model file, or another version's: it lacks 'card'"):
        load(path)


def test_what_bore_the_name_wang_chu_before(tmp_path: Path) -> None:
    """A file of before the paper's model had the name is of the rule max-overlap."""
    table = warps.measurements()
    model = train(replace(table, power_samples=None), warps.BASE, "max-overlap")
    members = members_of(content_of(model, tmp_path))
    document = json.loads(members["model.json"])
    document["predictors"]["time"] |= {"name": "wang-chu", "parameters": {"quantity": "time"}}
    path = tmp_path / "before.mlscale"
    path.write_bytes(zipped(members | {"model.json": json.dumps(document).encode()}))
    assert isinstance(load(path).predictors["time"], MaxOverlap)
