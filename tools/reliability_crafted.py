"""Model files that an attacker wrote, whose checksums are right: they exhaust, or mislead."""

import bz2
import io
import json
import lzma
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from model_files import npy, zipped

Members = dict[str, bytes]
Document = dict[str, Any]
Crafted = tuple[str, Callable[[], bytes], bool]  # its name, its content, whether it is refused

DOCUMENT = "model.json"
AXIS = [float(step) for step in range(1, 1001)]
# What a leaf of the document may become: of another type, out of every range, or no number.
LEAVES = ('"a"', "-1", "0", "2.5", "null", "true", "[]", "{}", "1e400", "9" * 401, "NaN", "1e300")
RANGES = (("minimum", "maximum"), ("low", "high"))


class Vandal:
    """Pickled, it would write a file where it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def misleading(members: Members, mark: Path, trials: int, seed: int) -> Iterator[Crafted]:
    """Files like the one of these members, which must be refused, or do no harm.

    mark: a file that would be there if code of a file had run; trials: how many leaves are changed.
    """
    has_arrays = any(name.endswith(".npy") for name in members)
    for name, (change, refused) in ARRAYS.items():
        yield name, partial(_arrays_replaced, members, change), refused and has_arrays
    yield "Python objects", partial(_arrays_replaced, members, lambda _: [Vandal(mark)]), has_arrays
    for how in COMPRESSIONS:
        yield how, partial(_recompressed, members, how), True
    swapped = _range_swapped(members)
    yield "ends of ranges swapped", lambda: swapped, swapped != zipped(members)
    yield from _hyper_parameters(members)
    for number in range(trials):
        yield "a leaf", partial(_leaf_replaced, members, Random(f"{seed} {number}")), False  # noqa: S311


# Files of at most some hundred kilobytes that would ask for gigabytes.


def _state(document: Document) -> Document:
    state: Document = document["predictors"]["time"]["state"]
    return state


EXHAUSTING_STATES: dict[str, Callable[[Document], object]] = {
    "an array named 300 times": lambda d: _state(d).update(more=[{"array": "big"}] * 300),
    "14 MB of zeros": lambda d: _state(d).update(more=[0] * (7 << 20)),
    "14 MB of objects": lambda d: _state(d).update(more=[{}] * (14 << 20 >> 2)),
    "14 MB of objects with members": lambda d: _state(d).update(more=[{"": 0}] * (2 << 20)),
    "14 MB of lists, in the card": lambda d: d["card"].update(more=[[]] * (14 << 20 >> 2)),
    "a grid of 10^9": lambda d: d.update(cu_count=[*range(1, 1001)], engine_mhz=AXIS,
                                         memory_mhz=AXIS),
    "an axis of 10^6": lambda d: d.update(engine_mhz=[*range(1, 10**6)]),
    "a grid of 10^9 in a predictor": lambda d: _state(d).update(
        cu_count=[*range(1, 1001)], engine_mhz=AXIS, memory_mhz=AXIS, base=[1, 1, 1]),
    "a million neighbours": lambda d: d["predictors"]["time"]["parameters"].update(
        neighbours=10**6),
}  # fmt: skip


def _streamed(member: str, piece: bytes, count: int) -> bytes:
    """A zip of one member that is a piece many times over."""
    content = io.BytesIO()
    with (
        zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(member, "w", force_zip64=True) as file,
    ):
        for _ in range(count):
            file.write(piece)
    return content.getvalue()


EXHAUSTING_FILES: dict[str, Callable[[], bytes]] = {
    "a document of 300 MB": lambda: _streamed(DOCUMENT, b"[" + b"0," * (1 << 19), 300),
    "a document of 10^5 brackets": lambda: zipped({DOCUMENT: b"[" * 10**5}),
    "an array of 1.2 GB": lambda: _streamed("arrays/0.npy", bytes(1 << 20), 1200),
    "an array of 400 MB": lambda: _streamed("arrays/0.npy", bytes(1 << 20), 400),
    "60 000 members": lambda: zipped({f"{n}": b"" for n in range(60_000)}),
}


def exhausting(members: Members) -> Iterator[Crafted]:
    """Files like the one of these members, which would ask for much memory."""
    for name, content in EXHAUSTING_FILES.items():
        yield name, content, True
    for name, change in EXHAUSTING_STATES.items():
        yield name, partial(_with_document, members, change), False


def _with_document(members: Members, change: Callable[[Document], object]) -> bytes:
    document = json.loads(members[DOCUMENT])
    change(document)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(DOCUMENT, json.dumps(document, separators=(",", ":")))
        archive.writestr("big", npy(np.zeros(7 << 20)))
        for member in members.keys() - {DOCUMENT}:
            archive.writestr(member, members[member])
    return content.getvalue()


# What misleads: arrays, hyper-parameters and leaves of the document that cannot be.

ARRAYS: dict[str, tuple[Callable[[np.ndarray], object], bool]] = {
    "longdouble": (lambda a: a.astype(np.longdouble), True),
    "complex": (lambda a: a.astype(complex), True),
    "text": (lambda a: a.astype(str), True),
    "NaN": (lambda a: np.full_like(a, np.nan, float), True),
    "infinite": (lambda a: np.full_like(a, np.inf, float), True),
    "1e308": (lambda a: np.full_like(a, 1e308, float), True),
    "half precision": (lambda a: a.astype(np.float16), False),
    "without an entry": (lambda a: a[:0], False),
    "negated": (lambda a: -1.0 * a, False),
    "transposed": (lambda a: a.T, False),
    "doubled": (lambda a: np.concatenate([a, a]) if a.ndim else a, False),
}
COMPRESSIONS = ("LZMA", "BZIP2", "LZMA inside")


def _arrays_replaced(members: Members, change: Callable[[np.ndarray], object]) -> bytes:
    """All arrays of the file, so that it does not matter which one is looked at first."""
    arrays = {member for member in members if member.endswith(".npy")}
    others = {m: npy(np.array(change(np.load(io.BytesIO(members[m]))))) for m in arrays}
    return zipped(members | others)


def _recompressed(members: Members, how: str) -> bytes:
    if how == "LZMA inside":
        packed = {name: lzma.compress(bz2.compress(content)) for name, content in members.items()}
        return zipped(packed)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", getattr(zipfile, f"ZIP_{how}")) as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return content.getvalue()


def _range_swapped(members: Members) -> bytes:
    """Lower ends for higher ones, wherever a range is kept."""
    document = members[DOCUMENT].decode()
    for one, other in RANGES:
        for old, new in ((one, "\0"), (other, one), ("\0", other)):
            document = document.replace(f'"{old}": {{', f'"{new}": {{')
    return zipped(members | {DOCUMENT: document.encode()})


def _hyper_parameters(members: Members) -> Iterator[Crafted]:
    """Each number among them of another type, negative, and large."""
    for quantity, saved in json.loads(members[DOCUMENT])["predictors"].items():
        for name, value in saved["parameters"].items():
            if isinstance(value, bool | int | float):
                where = ("predictors", quantity, "parameters", name)
                for text in ('"a"', "-1", "[1]", "1e308"):
                    refused = not (isinstance(value, float) and text == "1e308")
                    yield f"{name} {text}", partial(_leaf_set, members, where, text), refused


def _leaf_set(members: Members, where: tuple[Any, ...], text: str) -> bytes:
    """The file with that JSON text in one place of its document."""
    document: Any = json.loads(members[DOCUMENT])
    parent = document
    for key in where[:-1]:
        parent = parent[key]
    parent[where[-1]] = "LEAF"
    content = json.dumps(document).replace('"LEAF"', text).encode()
    return zipped(members | {DOCUMENT: content})


def _leaf_replaced(members: Members, random: Random) -> bytes:
    """One leaf of the document, by chance."""
    where = random.choice([*_leaves(json.loads(members[DOCUMENT]))])
    return _leaf_set(members, where, random.choice(LEAVES))


def _leaves(value: Any, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the document has something else than an object or a list."""
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    inside = False
    for key, item in items:
        inside = True
        yield from _leaves(item, (*where, key))
    if not inside:
        yield where
