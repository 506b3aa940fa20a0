"""The model file: a zip of one JSON document and .npy arrays. Loading it runs no code.

`model.json` holds the format, its version, and the model as nested JSON, in which an array
stands as {"array": "arrays/0.npy"}. See docs/reference/files.md. A predictor of your own is named
`module:Class`, and loaded only by a caller who hands over its class (decision 0011).
"""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from mlscale.data.devices import register_facts
from mlscale.data.grid import ConfigGrid, HardwareConfig, grid_state, restore_grid
from mlscale.errors import InputError
from mlscale.files import parse_json_object, read_bytes, whole_file
from mlscale.parameters import call, command, parameter
from mlscale.predictors import PREDICTORS
from mlscale.predictors.base import Predictor, Savable

FORMAT, FORMAT_VERSION = "mlscale model", 2
_NO_MODEL = "is not an mlscale model (truncated, or another kind of file)"
_DOCUMENT = "model.json"
_LARGEST_BYTES = 1 << 30  # the members unpacked, together
_LARGEST_DOCUMENT_BYTES = 16 << 20

Array = NDArray[Any]


class Trained(NamedTuple):
    """What a model file holds: the first fields of `mlscale.Model`, which says what they are."""

    device: str
    grid: ConfigGrid
    base: HardwareConfig
    predictors: dict[str, Predictor]
    card: dict[str, Any]


class _RefusedError(InputError):
    """The file is whole, and refused for another reason, which the message tells."""


def write(model: Trained, path: Path) -> None:
    """Write a model file whole or not at all. Raises InputError."""
    arrays: list[Array] = []
    document = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "device": model.device,
        **grid_state(model.grid, model.base),
        "predictors": {
            quantity: _saved(predictor, arrays, path)
            for quantity, predictor in model.predictors.items()
        },
        "card": model.card,
    }
    content = json.dumps(document, indent=1, default=lambda value: value.tolist()).encode()
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        _store(archive, _DOCUMENT, content)
        for number, array in enumerate(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            _store(archive, _array_name(number), member.getvalue())


def read(path: Path, classes: Sequence[type[Predictor]]) -> Trained:
    """Read a model file; this imports and runs no code.

    classes: of predictors of your own, which a file only names. Raises InputError on a file that
    is damaged, foreign or of another version, and on one that names a class that was not given.
    """
    content = read_bytes(path)
    if not zipfile.is_zipfile(io.BytesIO(content)):
        told = _NO_MODEL
        if b"," in content[:200].splitlines()[0] and b"\0" not in content[:200]:
            told = "is a table or log, not an mlscale model; advice on it: "
            told += call("advise", "FILE")
        raise InputError(f"{path}: {told}")
    try:
        return _trained(content, classes)
    except _RefusedError as error:
        raise InputError(f"{path}: {error}") from None
    except Exception as error:  # whatever is wrong with what is read
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise InputError(
            f"{path}: is a damaged model file: {why}; copy it again, or train it again: "
            f"{command('train TABLE', output='MODEL')}"
        ) from error


def _trained(content: bytes, classes: Sequence[type[Predictor]]) -> Trained:
    """What a file of this content holds. Raises whatever it does on damage."""
    members = _members(content)
    document = parse_json_object(members.pop(_DOCUMENT, b"{}"), _DOCUMENT)
    if document.get("format") != FORMAT:
        raise _RefusedError(_NO_MODEL)
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        raise _RefusedError(
            f"has model format {version}, this mlscale reads {FORMAT_VERSION}; train it again: "
            f"{command('train TABLE', output='MODEL')}"
        )
    grid, base = restore_grid(document)
    arrays = {
        name: np.lib.format.read_array(io.BytesIO(member), allow_pickle=False)
        for name, member in members.items()
    }
    predictors = {
        quantity: _restored(saved, arrays, classes)
        for quantity, saved in document["predictors"].items()
    }
    card = document["card"]
    register_facts(card["metadata"], "its card")
    return Trained(document["device"], grid, base, predictors, card)


def _members(content: bytes) -> dict[str, bytes]:
    """Unpack a zip, no more of it than there may be. Raises ValueError where it says more."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        infos = archive.infolist()
        sizes = {info.filename: info.file_size for info in infos}
        if sum(info.file_size for info in infos) > _LARGEST_BYTES:
            raise ValueError(f"unpacks to more than {_LARGEST_BYTES >> 20} MiB")
        if sizes.get(_DOCUMENT, 0) > _LARGEST_DOCUMENT_BYTES:
            raise ValueError(f"{_DOCUMENT} has more than {_LARGEST_DOCUMENT_BYTES >> 20} MiB")
        members = {}
        for info in infos:
            with archive.open(info) as member:
                members[info.filename] = member.read(info.file_size)
        return members


def _saved(predictor: Predictor, arrays: list[Array], path: Path) -> dict[str, Any]:
    if not isinstance(predictor, Savable):
        raise InputError(f"{path}: '{predictor.name}' cannot be saved: it lacks state and restore")
    return {
        "name": _class_name(type(predictor)),
        "parameters": predictor.get_params(),
        "state": _without_arrays(predictor.state(), arrays),
    }


def _restored(
    saved: dict[str, Any], arrays: dict[str, Array], classes: Sequence[type[Predictor]]
) -> Predictor:
    predictor = _class(saved["name"], classes)()
    parameters = saved["parameters"]
    for name, default in predictor.get_params().items():
        if isinstance(default, tuple) and isinstance(parameters.get(name), list):
            parameters[name] = tuple(parameters[name])
    predictor.set_params(**parameters)
    restored: Predictor = cast("Any", predictor).restore(_with_arrays(saved["state"], arrays))
    return restored


def _class_name(kind: type[Predictor]) -> str:
    """Return a built-in predictor's name, or module:Class."""
    if PREDICTORS.get(kind.name) is kind:
        return kind.name
    return f"{kind.__module__}:{kind.__qualname__}"


def _class(name: str, classes: Sequence[type[Predictor]]) -> type[Predictor]:
    """Return the class that a file names; of your own the name of the class alone must agree."""
    if ":" not in name:
        return PREDICTORS[name]
    class_name = name.partition(":")[2]
    for kind in classes:
        if kind.__qualname__ == class_name:
            return kind
    raise _RefusedError(
        f"was made by the predictor '{name}', which is not part of mlscale; "
        "give its class, if you trust it, by "
        f"{parameter('predictor', 'package.module:Class')}, or in Python by "
        f"mlscale.load(path, predictors=[{class_name.rpartition('.')[2]}])"
    )


def _without_arrays(value: Any, arrays: list[Array]) -> Any:
    """Return a state as JSON; its arrays are moved to the list."""
    if isinstance(value, np.ndarray):
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


def _with_arrays(value: Any, arrays: dict[str, Array]) -> Any:
    """Return a state with its arrays in their places."""
    if isinstance(value, dict):
        if value.keys() == {"array"}:
            return arrays[value["array"]]
        return {key: _with_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_arrays(item, arrays) for item in value]
    return value


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"


def _store(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a member with a fixed date, so that the same model gives the same file."""
    info = zipfile.ZipInfo(name, date_time=(2015, 2, 7, 0, 0, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(info, content)
