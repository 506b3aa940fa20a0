"""Model files that an attacker wrote, whose checksums are right."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import content_of, members_of, npy, small, zipped
from synthetic.tidy import refused

from mlscale import InputError, load


class TestCrafted:
    """What an attacker writes whose checksums are right; expected: one line, by hand."""

    @staticmethod
    def refusal(folder: Path, changes: dict[str, bytes], model: str = "mean-surface") -> str:
        """The message on a small model with these members in place of its own."""
        path = folder / "crafted.mlscale"
        path.write_bytes(zipped(members_of(content_of(small(model)[0], folder)) | changes))
        with pytest.raises(InputError) as error:
            load(path)
        assert "\n" not in str(error.value)
        return str(error.value)

    @staticmethod
    def document(folder: Path, change: Callable[[dict[str, Any]], object]) -> bytes:
        """The changed document of a small model of `nearest`."""
        document = json.loads(members_of(content_of(small("nearest")[0], folder))["model.json"])
        change(document)
        return json.dumps(document).encode()

    def test_other_compressions(self, tmp_path: Path) -> None:
        path = tmp_path / "crafted.mlscale"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
            for name, member in members_of(content_of(small("nearest")[0], tmp_path)).items():
                archive.writestr(name, member)
        with refused("compressed in an unknown way"):
            load(path)

    @pytest.mark.parametrize("header", [b"{'descr': '<f8', 'shape': (", b"[" * 5000, b"(\n1\n)"])
    def test_an_array_whose_header_does_not_end(self, tmp_path: Path, header: bytes) -> None:
        array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        message = self.refusal(tmp_path, {"arrays/0.npy": array}, "nearest")
        assert "is a damaged model file" in message

    def test_no_neighbours(self, tmp_path: Path) -> None:
        """The mean of no surfaces would be a warning, and NaN."""

        def change(document: dict[str, Any]) -> None:
            document["predictors"]["time"]["parameters"]["neighbours"] = 0

        members = {"model.json": self.document(tmp_path, change)}
        assert "is a damaged model file" in self.refusal(tmp_path, members, "nearest")

    def test_a_document_that_unpacks_to_much(self, tmp_path: Path) -> None:
        zeros = b"[" + b"0," * (9 << 20) + b"0]"
        message = self.refusal(tmp_path, {"model.json": zeros})
        assert "model.json has more than 16 MiB" in message

    def test_an_array_that_is_named_many_times(self, tmp_path: Path) -> None:
        def change(document: dict[str, Any]) -> None:
            state = document["predictors"]["time"]["state"]
            state["more"] = [{"array": "big.npy"}] * 65

        big = npy(np.zeros(1 << 21))  # 16 MiB, named 65 times
        changes = {"model.json": self.document(tmp_path, change), "big.npy": big}
        assert "named for more than 1024 MiB" in self.refusal(tmp_path, changes, "nearest")

    def test_a_grid_of_more_configurations_than_any_gpu_has(self, tmp_path: Path) -> None:
        def change(document: dict[str, Any]) -> None:
            axis = list(range(1, 1002))
            document |= {"cu_count": axis, "engine_mhz": axis, "memory_mhz": [1.0]}

        content = self.document(tmp_path, change)
        assert "more than 1000000 configurations" in self.refusal(tmp_path, {"model.json": content})

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
    def test_numbers_that_are_not_finite(self, tmp_path: Path, number: str) -> None:
        content = self.document(tmp_path, lambda d: d["card"].update(noise="NUMBER"))
        content = content.replace(b'"NUMBER"', number.encode())
        assert f"the number {number} is not finite" in self.refusal(
            tmp_path, {"model.json": content}
        )

    @pytest.mark.parametrize("value", ["a", -1, 2.5, [1], 1e308])
    def test_hyper_parameters_of_another_kind(self, tmp_path: Path, value: Any) -> None:
        def change(document: dict[str, Any]) -> None:
            document["predictors"]["time"]["parameters"]["neighbours"] = value

        content = self.document(tmp_path, change)
        assert "'neighbours' cannot be" in self.refusal(tmp_path, {"model.json": content})

    @pytest.mark.parametrize("value", ["a", [1], 2.5])
    def test_clusters_that_are_no_number(self, tmp_path: Path, value: Any) -> None:
        document = json.loads(members_of(content_of(small("wu")[0], tmp_path))["model.json"])
        document["predictors"]["time"]["parameters"]["clusters"] = value
        message = self.refusal(tmp_path, {"model.json": json.dumps(document).encode()}, "wu")
        assert "clusters is a whole number or 'auto', not" in message

    @pytest.mark.filterwarnings("error")
    def test_an_array_of_half_precision_is_compared_without_overflow(self, tmp_path: Path) -> None:
        members = members_of(content_of(small("mean-surface")[0], tmp_path))
        array = np.load(io.BytesIO(members["arrays/0.npy"])).astype(np.float16)
        path = tmp_path / "half.mlscale"
        path.write_bytes(zipped(members | {"arrays/0.npy": npy(array)}))
        assert load(path).predictors["time"].name == "mean-surface"

    def test_an_array_that_says_more_than_it_holds_or_is_too_wide(self, tmp_path: Path) -> None:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
        )
        wide = [npy(np.zeros(4, kind)) for kind in (np.longdouble, complex)]
        messages = [
            self.refusal(tmp_path, {"arrays/0.npy": array}) for array in (*wide, header.getvalue())
        ]
        assert all("arrays/0.npy" in message for message in messages)
        assert "does not hold the numbers that it says" in messages[-1]
