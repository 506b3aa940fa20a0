"""The model file: a zip of one JSON document and .npy arrays. Loading it runs no code.

`model.json` holds the format, its version, and the model as nested JSON, in which an array
stands as {"array": "arrays/0.npy"}. See docs/file-formats.md. A predictor of one's own is named
`module:Class`, and loaded only by a caller who hands over its class (decision 0011).
"""

import io
import json
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mlscale.arrays import LARGEST
from mlscale.data.device_table import register_facts
from mlscale.data.grid import ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import InputError
from mlscale.file_kinds import MODEL, require_kind
from mlscale.files import parse_json_object, read_bytes, whole_file
from mlscale.predictors import PREDICTORS
from mlscale.predictors.base import Predictor, Savable

FORMAT_VERSION = 2
_DOCUMENT = "model.json"
_LARGEST_BYTES = 1 << 30  # of all members unpacked, and of all arrays where they are named
_LARGEST_DOCUMENT_BYTES = 16 << 20
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_DAMAGED = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError),
    *(OverflowError, MemoryError, RecursionError),
)
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    RuntimeError,
    ValueError,
    OSError,
)


class Trained(NamedTuple):
    """What a model file holds: the first fields of `mlscale.Model`, which says what they are."""

    device: str
    grid: ConfigGrid
    base: HardwareConfig
    predictors: dict[str, Predictor]
    card: dict[str, Any]


def write(model: Trained, path: Path) -> None:
    """Write a model file whole or not at all. Raises InputError."""
    arrays: list[np.ndarray[Any, Any]] = []
    document = {
        "format": MODEL,
        "format_version": FORMAT_VERSION,
        "device": model.device,
        **grid_state(model.grid, model.base),
        "predictors": {
            quantity: _saved(predictor, arrays, path)
            for quantity, predictor in model.predictors.items()
        },
        "card": model.card,
    }
    try:
        content = json.dumps(document, indent=1, default=_python_number).encode()
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: cannot be saved, not all of it is JSON: {error}") from None
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        _store(archive, _DOCUMENT, content)
        for number, array in enumerate(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            _store(archive, _array_name(number), member.getvalue())


def read(path: Path, predictors: Sequence[type[Predictor]]) -> Trained:
    """Read a model file; no code is imported or run on its word.

    predictors: the classes of predictors of one's own, which a file only names. Raises
    InputError on a file that is damaged, foreign or too new, and on one that names a class that
    was not given.
    """
    document, members = _content(path)
    try:
        grid, base = restore_grid(document)
        arrays = _Arrays(members)
        restored = {
            quantity: _restore(quantity, saved, arrays, (grid, base), predictors)
            for quantity, saved in document["predictors"].items()
        }
        card = document["card"]
        if "time" not in restored or not isinstance(card["metadata"], dict):
            raise ValueError("it has no predictor of time, or no card")
        if not all(isinstance(n, str) for n in (document["device"], *card.get("kernels", ()))):
            raise TypeError("its device or a kernel is not a name")
        register_facts(card["metadata"], str(path))
        return Trained(document["device"], grid, base, restored, card)
    except _ClassNotGivenError as error:
        raise InputError(f"{path}: {error}") from None
    except KeyError as error:
        raise InputError(f"{path}: is a damaged model file: it lacks {error}") from None
    except _DAMAGED as error:
        raise InputError(f"{path}: is a damaged model file: {error}") from None


def predictor_names(path: Path | str) -> list[str]:
    """Return the names of a model file's predictors; an own one is called module:Class.

    No class is needed for that. Raises InputError on a file that is damaged or foreign.
    """
    document, _ = _content(Path(path))
    try:
        return [str(saved["name"]) for saved in document["predictors"].values()]
    except _DAMAGED as error:
        raise InputError(f"{path}: is a damaged model file: {error}") from None


def _content(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a model file's document, and its members. Raises InputError."""
    content = read_bytes(path)
    require_kind(content, path, MODEL)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            _check_members(archive.infolist())
            members = {info.filename: archive.read(info) for info in archive.infolist()}
    except _UNREADABLE as error:
        raise InputError(f"{path}: is not a whole mlscale model file: {error}") from None
    document = parse_json_object(members.get(_DOCUMENT, b"{}"), f"{path}: {_DOCUMENT}", True)
    if document.get("format") != MODEL:
        raise InputError(f"{path}: is not an mlscale model file")
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise InputError(
            f"{path}: has model format {version}, this mlscale reads {FORMAT_VERSION}; "
            "train it anew: mlscale train TABLE -o MODEL"
        )
    return document, members


class _ClassNotGivenError(Exception):
    """A file names a predictor that is not built in, and its class was not handed over."""


def _saved_name(kind: type[Predictor]) -> str:
    """Return a built-in predictor's name, or module:Class."""
    if PREDICTORS.get(kind.name) is kind:
        return kind.name
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_of(name: Any, own: Sequence[type[Predictor]]) -> type[Predictor]:
    """Return the class that a file names; of an own one the name of the class alone must agree."""
    if ":" not in name:
        return PREDICTORS[name]
    for kind in own:
        if kind.__qualname__ == name.partition(":")[2]:
            return kind
    class_name = name.rpartition(".")[2].rpartition(":")[2]
    raise _ClassNotGivenError(
        f"was made by the predictor '{name}', which is not part of mlscale; give its class, if you "
        "trust it, by --predictor package.module:Class, or in Python by mlscale.load(path, "
        f"predictors=[{class_name}])"
    )


def _saved(predictor: Predictor, arrays: list[np.ndarray[Any, Any]], path: Path) -> dict[str, Any]:
    if not isinstance(predictor, Savable):
        raise InputError(f"{path}: '{predictor.name}' cannot be saved: it lacks state and restore")
    try:
        state = _without_arrays(predictor.state(), arrays)
    except ValueError as error:
        raise InputError(f"{path}: '{predictor.name}' cannot be saved: {error}") from None
    return {
        "name": _saved_name(type(predictor)),
        "parameters": predictor.get_params(),
        "state": state,
    }


def _restore(
    quantity: str,
    saved: dict[str, Any],
    arrays: "_Arrays",
    trained: tuple[ConfigGrid, HardwareConfig],
    own: Sequence[type[Predictor]],
) -> Predictor:
    predictor = _class_of(saved["name"], own)()
    if ":" not in saved["name"]:
        _check_parameters(predictor, saved["parameters"])
    sequences = [n for n, default in predictor.get_params().items() if isinstance(default, tuple)]
    parameters = saved["parameters"]
    parameters |= {
        n: tuple(parameters[n]) for n in sequences if isinstance(parameters.get(n), list)
    }
    predictor.set_params(**parameters)
    if quantity not in QUANTITIES or predictor.quantity != quantity:
        raise ValueError(f"a predictor of '{predictor.quantity}' stands for '{quantity}'")
    if not isinstance(predictor, Savable):
        raise TypeError(f"'{predictor.name}' cannot be restored")
    predictor.restore(arrays.back_in(saved["state"]))
    if "base" in saved["state"] and restore_grid(saved["state"]) != trained:
        raise ValueError(f"grid or base of '{quantity}' are not those of the model")
    return predictor


def _check_parameters(predictor: Predictor, parameters: dict[str, Any]) -> None:
    """Raise ValueError on a hyper-parameter that is no number where it should be, or negative."""
    for name, default in predictor.get_params().items():
        value = parameters.get(name, default)
        fits = not isinstance(value, int | float) or value >= 0
        if isinstance(default, bool | int):
            fits &= type(value) is type(default)
        elif isinstance(default, float):
            fits &= type(value) in (int, float)
        if not fits:
            raise ValueError(f"the hyper-parameter '{name}' cannot be {str(value)[:40]!r}")


def _without_arrays(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """Return a state as JSON; its arrays are moved to the list."""
    if isinstance(value, np.ndarray):
        if not _finite_numbers(value):
            raise ValueError("an array holds something else than finite numbers")
        for number, stored in enumerate(arrays):  # what predictors share is stored once
            if stored.dtype == value.dtype and np.array_equal(stored, value):
                return {"array": _array_name(number)}
        arrays.append(value)
        return {"array": _array_name(len(arrays) - 1)}
    if isinstance(value, dict):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_arrays(item, arrays) for item in value]
    return value


class _Arrays:
    """The arrays of a file, by the name of their member, read where a state names them."""

    def __init__(self, members: dict[str, bytes]) -> None:
        self._members = members
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}
        self._bytes_named = 0

    def back_in(self, value: Any) -> Any:
        """A state with its arrays in their places. Raises ValueError where they are too many."""
        if isinstance(value, dict):
            if value.keys() == {"array"}:
                return self._array(value["array"])
            return {key: self.back_in(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.back_in(item) for item in value]
        return value

    def _array(self, name: str) -> np.ndarray[Any, Any]:
        self._bytes_named += len(self._members[name])
        if self._bytes_named > _LARGEST_BYTES:
            raise ValueError(f"its arrays are named for more than {_LARGEST_BYTES >> 20} MiB")
        if name not in self._arrays:
            self._arrays[name] = _array_of(name, self._members[name])
        return self._arrays[name]


def _array_of(name: str, content: bytes) -> np.ndarray[Any, Any]:
    """The array of a member. Raises ValueError on any but finite numbers of a sane size."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version != (1, 0):
        raise ValueError(f"{name} is of version {version}")
    try:
        with warnings.catch_warnings(action="error"):  # of a header as Python 2 wrote it
            shape, in_columns, dtype = np.lib.format.read_array_header_1_0(stream)
    except (tokenize.TokenError, SyntaxError, RecursionError, MemoryError, UserWarning) as error:
        raise ValueError(f"{name} has a damaged header: {error}") from None
    size = len(content) - stream.tell()
    if dtype.hasobject:
        raise ValueError(f"{name} holds Python objects, which are never loaded")
    if dtype.kind not in "fib":
        raise ValueError(f"{name} holds something else than finite numbers")
    if dtype.itemsize > 8 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError(f"{name} does not hold the numbers that it says")
    flat = np.frombuffer(content, dtype, offset=stream.tell())
    ends = (float(flat.min()), float(flat.max())) if size else (0.0, 0.0)
    if not (ends[0] >= -LARGEST and ends[1] <= LARGEST):  # nor is NaN within
        raise ValueError(f"{name} holds something else than finite numbers up to {LARGEST:g}")
    return flat.reshape(shape, order="F" if in_columns else "C").copy()


def _check_members(members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise BadZipFile on members that this format does not have, or that unpack to too much."""
    if sum(info.file_size for info in members) > _LARGEST_BYTES:
        raise zipfile.BadZipFile(f"unpacks to more than {_LARGEST_BYTES >> 20} MiB")
    for info in members:
        if info.compress_type not in _COMPRESSIONS:
            raise zipfile.BadZipFile(f"'{info.filename[:40]}' is compressed in an unknown way")
        if info.filename == _DOCUMENT and info.file_size > _LARGEST_DOCUMENT_BYTES:
            raise zipfile.BadZipFile(
                f"{_DOCUMENT} has more than {_LARGEST_DOCUMENT_BYTES >> 20} MiB"
            )


def _python_number(value: Any) -> Any:
    """Return NumPy's numbers and arrays as Python's own, for JSON; else raise TypeError."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{value!r} is of type {type(value).__name__}")


def _finite_numbers(array: np.ndarray[Any, Any]) -> bool:
    return array.dtype.kind in "fib" and bool(np.isfinite(array).all())


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"


def _store(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a member with a fixed date, so that the same model gives the same file."""
    info = zipfile.ZipInfo(name, date_time=(2015, 2, 7, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)
