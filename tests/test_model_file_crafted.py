"""Model files that an attacker wrote, whose checksums are right; expected: one line, by hand."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import content_of, members_of, npy, trained, with_document, zipped
from synthetic.tidy import refused

from mlscale import InputError, load


@pytest.fixture
def nearest(tmp_path: Path) -> bytes:
    """The file of a small model of `nearest`, whose tests change it."""
    return content_of(trained("nearest")[0], tmp_path)


def with_array(content: bytes, array: bytes) -> bytes:
    """The model file with another first array."""
    return zipped(members_of(content) | {"arrays/0.npy": array})


def refusal(folder: Path, content: bytes) -> str:
    """The message on a model file of that content."""
    path = folder / "crafted.mlscale"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        load(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_other_compressions(nearest: bytes, tmp_path: Path) -> None:
    path = tmp_path / "crafted.mlscale"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, member in members_of(nearest).items():
            archive.writestr(name, member)
    with refused("compressed in an unknown way"):
        load(path)


OF_PYTHON_2 = b"{'descr': '<f8', 'fortran_order': False, 'shape': (3L,)}\n"


@pytest.mark.parametrize(
    "header", [b"{'descr': '<f8', 'shape': (", b"[" * 5000, b"(\n1\n)", OF_PYTHON_2]
)
def test_an_array_whose_header_is_damaged(nearest: bytes, tmp_path: Path, header: bytes) -> None:
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    assert "is a damaged model file" in refusal(tmp_path, with_array(nearest, array))


def test_a_document_that_unpacks_to_much(nearest: bytes, tmp_path: Path) -> None:
    zeros = b"[" + b"0," * (9 << 20) + b"0]"
    message = refusal(tmp_path, zipped(members_of(nearest) | {"model.json": zeros}))
    assert "model.json has more than 16 MiB" in message


def test_an_array_that_is_named_many_times(nearest: bytes, tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        state = document["predictors"]["time"]["state"]
        state["more"] = [{"array": "big.npy"}] * 65

    big = npy(np.zeros(1 << 21))  # 16 MiB, named 65 times
    changed = zipped(members_of(with_document(nearest, change)) | {"big.npy": big})
    assert "named for more than 1024 MiB" in refusal(tmp_path, changed)


def test_a_grid_of_more_configurations_than_any_gpu_has(nearest: bytes, tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        axis = list(range(1, 1002))
        document |= {"cu_count": axis, "engine_mhz": axis, "memory_mhz": [1.0]}

    message = refusal(tmp_path, with_document(nearest, change))
    assert "more than 1000000 configurations" in message


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_numbers_that_are_not_finite(nearest: bytes, tmp_path: Path, number: str) -> None:
    content = with_document(nearest, lambda document: document["card"].update(noise="NUMBER"))
    members = members_of(content)
    document = members["model.json"].replace(b'"NUMBER"', number.encode())
    message = refusal(tmp_path, zipped(members | {"model.json": document}))
    assert f"the number {number} is not finite" in message


@pytest.mark.parametrize(
    ("predictor", "parameter", "value", "words"),
    [
        # The mean of no surfaces would be a warning, and NaN.
        ("nearest", "neighbours", 0, "is a damaged model file"),
        *(
            ("nearest", "neighbours", v, "'neighbours' cannot be")
            for v in ("a", -1, 2.5, [1], 1e308)
        ),
        *(("wu", "clusters", v, "clusters is a whole number or 'auto', not") for v in ("a", [1])),
        ("wu", "clusters", 2.5, "clusters must be a whole number or text or None, not float"),
    ],
)
def test_hyper_parameters_of_another_kind(
    tmp_path: Path, predictor: str, parameter: str, value: Any, words: str
) -> None:
    changed = with_document(
        content_of(trained(predictor)[0], tmp_path),
        lambda document: document["predictors"]["time"]["parameters"].update({parameter: value}),
    )
    assert words in refusal(tmp_path, changed)


@pytest.mark.filterwarnings("error")
def test_an_array_of_half_precision_is_compared_without_overflow(tmp_path: Path) -> None:
    content = content_of(trained("mean-surface")[0], tmp_path)
    array = np.load(io.BytesIO(members_of(content)["arrays/0.npy"])).astype(np.float16)
    path = tmp_path / "half.mlscale"
    path.write_bytes(with_array(content, npy(array)))
    assert load(path).predictors["time"].name == "mean-surface"


def test_an_array_that_says_more_than_it_holds_or_is_too_wide(
    nearest: bytes, tmp_path: Path
) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
    )
    wide = [npy(np.zeros(4, kind)) for kind in (np.longdouble, complex)]
    messages = [
        refusal(tmp_path, with_array(nearest, array)) for array in (*wide, header.getvalue())
    ]
    assert all("arrays/0.npy" in message for message in messages)
    assert "does not hold the numbers that it says" in messages[-1]
