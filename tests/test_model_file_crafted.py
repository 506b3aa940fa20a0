"""Model files that an attacker wrote, whose checksums are right; expected: one line, by hand."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import content_of, members_of, npy, outcome, trained, zipped

from mlscale import InputError, load

Members = dict[str, bytes]
DOCUMENT = "model.json"
AXIS = list(range(1, 1002))


def refusal(folder: Path, content: bytes) -> str:
    """The message on a model file of that content."""
    path = folder / "crafted.mlscale"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        load(path)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(f"{path}: is a damaged model file: ")
    return str(error.value)


def by_lzma(members: Members) -> bytes:
    """Whose dictionary may be any size."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_LZMA) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


def with_header(text: bytes) -> Callable[[Members], bytes]:
    """The file with an array of that header, and no numbers."""
    array = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    return lambda members: zipped(members | {"arrays/0.npy": array})


def with_array(array: bytes) -> Callable[[Members], bytes]:
    """The file with another first array."""
    return lambda members: zipped(members | {"arrays/0.npy": array})


def with_document(**changes: Any) -> Callable[[Members], bytes]:
    """The file with other values in its document."""

    def crafted(members: Members) -> bytes:
        document = json.loads(members[DOCUMENT]) | changes
        return zipped(members | {DOCUMENT: json.dumps(document).encode()})

    return crafted


def with_noise(number: bytes) -> Callable[[Members], bytes]:
    """The file with that number in its document."""
    return lambda members: zipped(
        members | {DOCUMENT: members[DOCUMENT].replace(b'"card": {', b'"card": {"x": %s,' % number)}
    )


@pytest.mark.parametrize(
    ("crafted", "words"),
    [
        (by_lzma, "compressed in an unknown way"),
        (lambda m: zipped(m | {DOCUMENT: bytes(17 << 20)}), "model.json has more than 16 MiB"),
        (with_header(b"{'descr': '<f8', 'shape': ("), ""),
        (with_header(b"[" * 5000), ""),
        (with_header(b"[" * 20_000), "Header"),
        (with_header(b"(\n1\n)"), "Header"),
        (
            with_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (3L,)}\n"),
            "created on Python 2",
        ),
        # 8 TB, of which none are there.
        (
            with_header(b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,)}\n"),
            "is not of the numbers that it says",
        ),
        (with_array(b""), "magic string"),
        (with_array(zipped({"a.npy": npy(np.zeros(3))})), "magic string"),
        (with_array(npy(np.zeros(4, complex))), "an array of complex128"),
        (with_array(npy(np.zeros(4, np.float16))), "minimum is not an array of float64"),
        (with_array(npy(np.full(4, 1e31))), "finite numbers up to 1e+30"),
        (
            with_document(cu_count=AXIS, engine_mhz=AXIS, memory_mhz=[1.0]),
            "more than 1000000 configurations",
        ),
        (with_noise(b"NaN"), "the number NaN is not finite"),
        (with_noise(b"Infinity"), "the number Infinity is not finite"),
        (with_noise(b"1e999"), "the number 1e999 is not finite"),
    ],
    ids=range(17),
)
def test_is_refused(crafted: Callable[[Members], bytes], words: str, tmp_path: Path) -> None:
    members = members_of(content_of(trained("nearest")[0], tmp_path))
    assert words in refusal(tmp_path, crafted(members))


def test_that_unpacks_to_more_than_there_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    members = members_of(content_of(trained("nearest")[0], tmp_path))
    monkeypatch.setattr("mlscale.model.model_file._LARGEST_BYTES", 1 << 20)
    assert "unpacks to more than 1 MiB" in refusal(
        tmp_path, zipped(members | {"more.npy": npy(np.zeros(1 << 17))})
    )


@pytest.mark.parametrize("neighbours", [0, -1, "a", 2.5, [1], 1e308])
def test_neighbours_that_cannot_be(tmp_path: Path, neighbours: Any) -> None:
    """The mean of no surfaces would be a warning, and NaN."""
    members = members_of(content_of(trained("nearest")[0], tmp_path))
    document = json.loads(members[DOCUMENT])
    document["predictors"]["time"]["parameters"]["neighbours"] = neighbours
    changed = zipped(members | {DOCUMENT: json.dumps(document).encode()})
    assert "it has no neighbours" in refusal(tmp_path, changed)


def test_surfaces_beyond_any_number_are_refused_without_a_warning(tmp_path: Path) -> None:
    model, profiles = trained("nearest")
    members = members_of(content_of(model, tmp_path))
    place = json.loads(members[DOCUMENT])["predictors"]["time"]["state"]["log_surfaces"]["array"]
    array = np.full_like(np.load(io.BytesIO(members[place])), 1e4)
    path = tmp_path / "crafted.mlscale"
    path.write_bytes(zipped(members | {place: npy(array)}))
    assert "that is not finite and positive" in str(outcome(path, profiles))
