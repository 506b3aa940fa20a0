"""Data sets by name: the public ones we know by checksum, and the shipped ones by path."""

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from mlscale.errors import InputError

_PACKAGE = Path(__file__).parent.parent


@dataclass(frozen=True)
class PublicDataset:
    """A public file of measurements. faults: what is known to be wrong, by kernel."""

    name: str
    file: str
    url: str
    sha256: str
    device: str
    holds: str
    faults: dict[str, str]


@functools.cache
def public_datasets() -> dict[str, PublicDataset]:
    """The public data sets, by name."""
    entries = json.loads(Path(__file__).with_name("public.json").read_text(encoding="utf-8"))
    return {name: PublicDataset(name, **entry) for name, entry in entries["datasets"].items()}


def identify(content: bytes) -> PublicDataset | None:
    """The public data set whose file has exactly this content."""
    sha256 = hashlib.sha256(content).hexdigest()
    return next((d for d in public_datasets().values() if d.sha256 == sha256), None)


def path(name: str) -> Path:
    """Where a shipped data set or model file lies, in a checkout and in a wheel alike.

    Raises InputError, naming what is shipped, when there is none of that name.
    """
    shipped = {
        file.name: file
        for root in (_PACKAGE.parent, _PACKAGE / "_shipped")
        for kind in ("datasets", "models")
        for file in sorted((root / kind).glob("*.*"))
        if file.suffix in (".parquet", ".csv", ".mlscale")
    }
    if name not in shipped:
        raise InputError(f"no file '{name}' is shipped; there are {', '.join(shipped)}")
    return shipped[name]
