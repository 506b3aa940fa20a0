"""Model files of other versions of mlscale."""

from pathlib import Path

import pytest
from model_files import content_of, small, trained, with_document
from synthetic.tidy import refused

from mlscale import MaxOverlap, load


@pytest.fixture(scope="module")
def wu(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a small model of `wu`."""
    return content_of(small("wu")[0], tmp_path_factory.mktemp("wu"))


@pytest.mark.parametrize("version", [2, 99, 0, None, "1"])
def test_another_version(version: object, wu: bytes, tmp_path: Path) -> None:
    path = tmp_path / "future.mlscale"
    path.write_bytes(with_document(wu, lambda document: document.update(format_version=version)))
    message = f"has model format {version}, this mlscale reads 1; use the mlscale that wrote"
    with refused(message):
        load(path)


def test_what_another_version_kept_under_other_names_is_not_called_damaged_alone(
    wu: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "old.mlscale"
    path.write_bytes(with_document(wu, lambda document: document.pop("card")))
    with refused("is a damaged model file, or another version's: it lacks 'card'"):
        load(path)


def test_what_bore_the_name_wang_chu_before(tmp_path: Path) -> None:
    """A file of before the paper's model had the name is of the rule max-overlap."""
    before = {"name": "wang-chu", "parameters": {"quantity": "time"}}
    content = content_of(trained("max-overlap")[0], tmp_path)
    path = tmp_path / "before.mlscale"
    path.write_bytes(with_document(content, lambda d: d["predictors"]["time"].update(before)))
    assert isinstance(load(path).predictors["time"], MaxOverlap)
