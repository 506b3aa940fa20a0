"""Data sets by name: public ones known by checksum, shipped ones by path, made ones by command."""

import functools
from dataclasses import dataclass, field
from pathlib import Path

from mlscale.errors import InputError
from mlscale.files import shipped_json
from mlscale.text import near_names

_PACKAGE = Path(__file__).parents[2]


@dataclass(frozen=True)
class Dataset:
    """A set of measurements, and where it comes from.

    origin: 'measured' or 'simulated'. kernels, axes, counters, size_bytes: None where
    nobody here has looked; axes in MHz; counters as in the tidy table. licence: None where its
    authors state none. faults: what is known to be wrong, by kernel or column. url and sha256 are
    of a public file; without a url the file is shipped. parts: the SHA-256 of each public file that
    a shipped table was made of, by name below url_of_parts.
    """

    name: str
    device: str
    origin: str
    holds: str
    kernels: int | None
    axes: dict[str, list[float]] | None
    counters: int | None
    power: bool
    licence: str | None
    faults: dict[str, str] = field(default_factory=dict)
    file: str = ""
    url: str = ""
    sha256: str = ""
    size_bytes: int | None = None
    url_of_parts: str = ""
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def path_in_repository(self) -> str:
        """Where a public file stands in its repository: its URL below owner, name and commit."""
        return self.url.split("/", 6)[-1]


@functools.cache
def all_datasets() -> dict[str, Dataset]:
    """Every data set that mlscale knows, by name."""
    entries = shipped_json(__file__, "datasets.json")["datasets"]
    return {name: Dataset(name, **entry) for name, entry in entries.items()}


def public_datasets() -> dict[str, Dataset]:
    """Those that are fetched from where their authors published them, by name."""
    return {name: dataset for name, dataset in all_datasets().items() if dataset.url}


def dataset(name: str) -> Dataset:
    """The data set of that name. Raises InputError, naming those that there are."""
    datasets = all_datasets()
    if name not in datasets:
        close = near_names(name, datasets, most=1)
        hint = f"; is '{close[0]}' meant?" if close else ""
        raise InputError(f"there is no data set '{name}'; there are {', '.join(datasets)}{hint}")
    return datasets[name]


def identify(content: bytes) -> Dataset | None:
    """The public data set whose file has exactly this content."""
    import hashlib

    sha256 = hashlib.sha256(content).hexdigest()
    return next((d for d in public_datasets().values() if d.sha256 == sha256), None)


def shipped() -> dict[str, Path]:
    """Where each shipped data set or model file lies, by name, in a checkout and a wheel alike."""
    return {
        file.name: file
        for root in (_PACKAGE.parent, _PACKAGE / "_shipped")
        for kind in ("datasets", "models")
        for file in sorted((root / kind).glob("*.*"))
        if file.suffix in (".parquet", ".csv", ".gz", ".mlscale")
    }


def path(name: str) -> Path:
    """Where the shipped file of that name lies.

    Raises InputError, naming what is shipped, when there is none of that name.
    """
    files = shipped()
    if name not in files:
        raise InputError(f"no file '{name}' is shipped; there are {', '.join(files)}")
    return files[name]
