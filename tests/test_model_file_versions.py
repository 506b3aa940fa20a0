"""Model files of other versions of mlscale."""

from pathlib import Path

import pytest
from model_files import content_of, small, with_document
from synthetic.tidy import refused

from mlscale import load


@pytest.fixture(scope="module")
def wu(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a small model of `wu`."""
    return content_of(small("wu")[0], tmp_path_factory.mktemp("wu"))


@pytest.mark.parametrize("version", [1, 99, 0, None, "2"])
def test_another_version(version: object, wu: bytes, tmp_path: Path) -> None:
    path = tmp_path / "future.mlscale"
    path.write_bytes(with_document(wu, lambda document: document.update(format_version=version)))
    message = (
        f"has model format {version}, this mlscale reads 2; "
        "train it anew: mlscale train TABLE -o MODEL"
    )
    with refused(message):
        load(path)


def test_what_lacks_is_named(wu: bytes, tmp_path: Path) -> None:
    path = tmp_path / "old.mlscale"
    path.write_bytes(with_document(wu, lambda document: document.pop("card")))
    with refused("is a damaged model file: it lacks 'card'"):
        load(path)
