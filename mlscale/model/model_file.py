"""The model file: a zip of one JSON document and .npy arrays. Loading it runs no code.

`model.json` holds the format, its version, and the model as nested JSON, in which an array
stands as {"array": "arrays/0.npy"}. See docs/file-formats.md. A predictor of one's own is named
`module:Class`, and loaded only by a caller who hands over its class (decision 0011).
"""

import io
import json
import math
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mlscale.arrays import LARGEST
from mlscale.data.devices import register_facts
from mlscale.data.grid import ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.data.profiles import QUANTITIES
from mlscale.errors import InputError
from mlscale.files import MODEL, parse_json_object, read_bytes, require_kind, whole_file
from mlscale.predictors import PREDICTORS
from mlscale.predictors.base import Predictor, Savable

FORMAT_VERSION = 2
_DOCUMENT = "model.json"
_LARGEST_BYTES = 1 << 30  # of all members unpacked
_LARGEST_DOCUMENT_BYTES = 16 << 20
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


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
    archived = _archive(path)
    with _damage_told(path):
        document, members = _content(path, archived)
        grid, base = restore_grid(document)
        arrays = {name: _array_of(member) for name, member in members.items() if name != _DOCUMENT}
        restored = {
            quantity: _restore(path, quantity, saved, arrays, (grid, base), predictors)
            for quantity, saved in document["predictors"].items()
        }
        card = document["card"]
        if "time" not in restored or not isinstance(card["metadata"], dict):
            raise ValueError("it has no predictor of time, or no card")
        if not all(isinstance(n, str) for n in (document["device"], *card.get("kernels", ()))):
            raise TypeError("its device or a kernel is not a name")
        register_facts(card["metadata"], str(path))
        return Trained(document["device"], grid, base, restored, card)


def predictor_names(path: Path | str) -> list[str]:
    """Return the names of a model file's predictors; an own one is called module:Class.

    No class is needed for that. Raises InputError on a file that is damaged or foreign.
    """
    archived = _archive(Path(path))
    with _damage_told(Path(path)):
        document, _ = _content(Path(path), archived)
        return [str(saved["name"]) for saved in document["predictors"].values()]


class _RefusedError(InputError):
    """The file is whole, and refused for another reason, which the message tells."""


@contextmanager
def _damage_told(path: Path) -> Iterator[None]:
    """In the block, whatever is wrong is an InputError in one line, of a damaged file."""
    try:
        yield
    except _RefusedError:
        raise
    except Exception as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        why = " ".join(why.split())[:300] or type(error).__name__
        raise InputError(
            f"{path}: is a damaged model file: {why}; copy it anew, or train it anew: "
            "mlscale train TABLE -o MODEL"
        ) from error


def _archive(path: Path) -> io.BytesIO:
    """Return the bytes of a zip archive. Raises InputError on another file."""
    content = read_bytes(path)
    require_kind(content, path, MODEL)
    if not zipfile.is_zipfile(archived := io.BytesIO(content)):
        raise InputError(f"{path}: is not a whole mlscale model file")
    return archived


def _content(path: Path, archived: io.BytesIO) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a model file's document, and its members, which are no larger than they may be."""
    with zipfile.ZipFile(archived) as archive:
        infos = archive.infolist()
        if sum(info.file_size for info in infos) > _LARGEST_BYTES:
            raise ValueError(f"unpacks to more than {_LARGEST_BYTES >> 20} MiB")
        for info in infos:
            if info.compress_type not in _COMPRESSIONS:
                raise ValueError(f"'{info.filename[:40]}' is compressed in an unknown way")
            if info.filename == _DOCUMENT and info.file_size > _LARGEST_DOCUMENT_BYTES:
                raise ValueError(f"{_DOCUMENT} has more than {_LARGEST_DOCUMENT_BYTES >> 20} MiB")
        members = {info.filename: archive.read(info) for info in infos}
    document = parse_json_object(members.get(_DOCUMENT, b"{}"), _DOCUMENT, True)
    if document.get("format") != MODEL:
        raise _RefusedError(f"{path}: is not an mlscale model file")
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise _RefusedError(
            f"{path}: has model format {version}, this mlscale reads {FORMAT_VERSION}; "
            "train it anew: mlscale train TABLE -o MODEL"
        )
    return document, members


def _saved_name(kind: type[Predictor]) -> str:
    """Return a built-in predictor's name, or module:Class."""
    if PREDICTORS.get(kind.name) is kind:
        return kind.name
    return f"{kind.__module__}:{kind.__qualname__}"


def _class_of(path: Path, name: Any, own: Sequence[type[Predictor]]) -> type[Predictor]:
    """Return the class that a file names; of an own one the name of the class alone must agree."""
    if ":" not in name:
        return PREDICTORS[name]
    for kind in own:
        if kind.__qualname__ == name.partition(":")[2]:
            return kind
    class_name = name.rpartition(".")[2].rpartition(":")[2]
    raise _RefusedError(
        f"{path}: was made by the predictor '{name}', which is not part of mlscale; "
        "give its class, if you trust it, by --predictor package.module:Class, or in Python by "
        f"mlscale.load(path, predictors=[{class_name}])"
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
    path: Path,
    quantity: str,
    saved: dict[str, Any],
    arrays: dict[str, np.ndarray[Any, Any]],
    trained: tuple[ConfigGrid, HardwareConfig],
    own: Sequence[type[Predictor]],
) -> Predictor:
    predictor = _class_of(path, saved["name"], own)()
    parameters = saved["parameters"]
    for name, default in predictor.get_params().items():
        if isinstance(default, tuple) and isinstance(parameters.get(name), list):
            parameters[name] = tuple(parameters[name])
    predictor.set_params(**parameters)
    if quantity not in QUANTITIES or predictor.quantity != quantity:
        raise ValueError(f"a predictor of '{predictor.quantity}' stands for '{quantity}'")
    if not isinstance(predictor, Savable):
        raise TypeError(f"'{predictor.name}' cannot be restored")
    predictor.restore(_with_arrays(saved["state"], arrays))
    if "base" in saved["state"] and restore_grid(saved["state"]) != trained:
        raise ValueError(f"grid or base of '{quantity}' are not those of the model")
    return predictor


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


def _with_arrays(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Return a state with its arrays in their places."""
    if isinstance(value, dict):
        if value.keys() == {"array"}:
            return arrays[value["array"]]
        return {key: _with_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_arrays(item, arrays) for item in value]
    return value


def _array_of(content: bytes) -> np.ndarray[Any, Any]:
    """The array of a member. Raises ValueError on any but finite numbers of a sane size."""
    stream = io.BytesIO(content)
    np.lib.format.read_magic(stream)
    with warnings.catch_warnings(action="error"):  # of a header as Python 2 wrote it
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in "fib" or math.prod(shape) * dtype.itemsize > len(content):
        raise ValueError(f"an array of {dtype}, {shape}, is not of the numbers that it says")
    stream.seek(0)
    array: np.ndarray[Any, Any] = np.load(stream, allow_pickle=False)
    ends = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    if not (ends[0] >= -LARGEST and ends[1] <= LARGEST):  # nor is NaN within
        raise ValueError(f"an array holds something else than finite numbers up to {LARGEST:g}")
    return array


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
