"""Data sets by name: public ones known by their checksum, shipped ones, and where each lies.

A public data set is looked for in the folder MLSCALE_DATA, under any name, and then in the cache
(MLSCALE_CACHE, else ~/.cache/mlscale), into which pooch downloads. Only a file that has the right
checksum counts.
"""

import functools
import os
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mlscale.errors import InputError, extra_named, warn
from mlscale.files import shipped_json
from mlscale.text import near_names

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Dataset:
    """A set of measurements, and where it comes from.

    origin: 'measured' or 'simulated'. kernels, axes, counters, size_bytes: None if nobody
    here has looked; axes in MHz; counters as in the tidy table. licence: None if its
    authors state none. faults: what is known to be wrong, by kernel or column. url and sha256 are
    of a public file; without a sha256 the file is shipped. parts: the SHA-256 of each public file
    that a shipped table was made of, by name below url_of_parts; a file with a sha256 and no url
    was gathered from there.
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


@functools.cache
def all_datasets() -> dict[str, Dataset]:
    """Every data set that mlscale knows, by name."""
    entries = shipped_json(__file__, "datasets.json")["datasets"]
    return {name: Dataset(name, **entry) for name, entry in entries.items()}


def public_datasets() -> dict[str, Dataset]:
    """Those that are not shipped and known by their checksum, by name."""
    return {name: dataset for name, dataset in all_datasets().items() if dataset.sha256}


def dataset(name: str) -> Dataset:
    """The data set of that name. Raises InputError, naming those available."""
    datasets = all_datasets()
    if name not in datasets:
        close = near_names(name, datasets, most=1)
        hint = f"; is '{close[0]}' meant?" if close else ""
        raise InputError(f"there is no data set '{name}'; available: {', '.join(datasets)}{hint}")
    return datasets[name]


def identify(file: Path) -> Dataset | None:
    """The public data set with a file's checksum. Raises InputError."""
    sha256 = _sha256(file)
    return next((d for d in public_datasets().values() if d.sha256 == sha256), None)


def shipped() -> dict[str, Path]:
    """The path of each shipped data set or model file, by name, in a checkout and a wheel alike."""
    return {
        file.name: file
        for root in (_PACKAGE.parent, _PACKAGE / "_shipped")
        for kind in ("datasets", "models")
        for file in sorted((root / kind).glob("*.*"))
        if file.suffix in (".parquet", ".csv", ".gz", ".mlscale")
    }


def input_file(text: str) -> Path:
    """A file to read: the path, or else the shipped file of that name.

    Raises InputError if it is missing and its folder has one of a similar name.
    """
    path = Path(text)
    if os.path.exists(text):  # noqa: PTH110, which raises on some names
        return path
    from difflib import get_close_matches

    named = {} if "/" in text else shipped()
    if text in named:
        return named[text]
    beside = [*named]
    with suppress(OSError):
        beside += sorted(os.listdir(path.parent))  # noqa: PTH208, names alone
    by_stem = {name.partition(".")[0]: name for name in beside}
    if near := get_close_matches(path.name.partition(".")[0], by_stem, n=1, cutoff=0.66):
        hint = f"did you mean '{path.parent / by_stem[near[0]]}'?"
        raise InputError(f"{text}: cannot be read: No such file or directory; {hint}")
    return path


def path(name: str) -> Path:
    """The path of the shipped file of that name. Raises InputError, naming what is shipped."""
    files = shipped()
    if name not in files:
        raise InputError(f"no file '{name}' is shipped; available: {', '.join(files)}")
    return files[name]


def cache_folder() -> Path:
    """The folder of fetched files: MLSCALE_CACHE, else mlscale below XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("MLSCALE_CACHE"):
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "mlscale"


def find(dataset: Dataset) -> tuple[Path, str] | None:
    """The file of a data set and where it was found; None if it is not on this machine.

    A file of the right name but another checksum is skipped with a warning. Raises InputError
    if a file cannot be read.
    """
    if not dataset.sha256:
        return (path(dataset.file), "shipped") if dataset.file else None
    folders = {"cache": cache_folder()}
    if folder := os.environ.get("MLSCALE_DATA"):
        folders = {"MLSCALE_DATA": Path(folder), **folders}
    for place, folder_path in folders.items():
        for file in _candidates(folder_path, dataset):
            if _sha256(file) == dataset.sha256:
                return file, place
            if file.name == dataset.file:
                warn("T09", f"{file}: is not '{dataset.name}', its checksum differs; skipped")
    return None


def _candidates(folder: Path, dataset: Dataset) -> list[Path]:
    """Files below a folder that may be a data set: those of its name, then those of its size."""
    files = [file for file in folder.rglob(f"*{Path(dataset.file).suffix}") if file.is_file()]
    named = [file for file in files if file.name == dataset.file]
    others = [file for file in files if dataset.size_bytes in (None, file.stat().st_size)]
    return list(dict.fromkeys([*sorted(named), *sorted(others)]))


def _sha256(file: Path) -> str:
    import hashlib

    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error


def named_file(text: str) -> Path:
    """A path as given, or the file of the public data set of that name.

    Raises InputError if that data set is not on this machine, or is already a table.
    """
    known = all_datasets().get(text)
    if os.path.exists(text) or known is None:  # noqa: PTH110  Path("") is "."
        return Path(text)
    if not known.sha256:
        raise InputError(f"'{text}' is a table already, which needs no import: {path(known.file)}")
    if location := find(known):
        return location[0]
    _require_url(known)
    raise InputError(
        f"'{text}' is not on this machine; get it with 'mlscale datasets fetch {text}'"
    )


def _require_url(dataset: Dataset) -> None:
    """Raise InputError where a data set was gathered from files of other forms."""
    if not dataset.url:
        raise InputError(
            f"'{dataset.name}' was gathered from {dataset.url_of_parts} and cannot be fetched; put "
            f"its file, {dataset.file}, into a folder that MLSCALE_DATA names"
        )


def fetch(name: str) -> Path:
    """The file of a data set: as found on this machine, else downloaded into the cache by pooch.

    Raises InputError if the data set is unknown or cannot be downloaded; a file with another
    checksum is refused.
    """
    found = dataset(name)
    if location := find(found):
        return location[0]
    _require_url(found)
    with extra_named("'mlscale datasets fetch'"):
        import pooch
    pooch.get_logger().setLevel("WARNING")
    known = f"sha256:{found.sha256}"
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty())
    try:
        file = pooch.retrieve(found.url, known, found.file, cache_folder(), downloader=downloader)
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; ValueError: checksum
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"{found.url}: cannot be fetched: {reason}; without a network, put the file "
            "into a folder that MLSCALE_DATA names"
        ) from error
    return Path(file)
