"""Public data sets on this machine: found, or fetched; only what has the right checksum counts.

A data set is looked for in the folder MLSCALE_DATA, by the name of its file or, whatever it is
called there, by its checksum; then in the cache (MLSCALE_CACHE, else ~/.cache/mlscale), into which
pooch downloads.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from mlscale.data.public import registry
from mlscale.data.public.registry import Dataset
from mlscale.errors import InputError, extra_named, warn


def cache_folder() -> Path:
    """The folder of fetched files: MLSCALE_CACHE, else mlscale below XDG_CACHE_HOME or ~/.cache."""
    if folder := os.environ.get("MLSCALE_CACHE"):
        return Path(folder).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "mlscale"


def find(dataset: Dataset) -> tuple[Path, str] | None:
    """The file of a data set and where it was found; None where it is not on this machine.

    A file of the right name but another checksum is passed over with a warning.
    """
    if not dataset.url:
        return (registry.path(dataset.file), "shipped") if dataset.file else None
    folders = {"cache": cache_folder()}
    if folder := os.environ.get("MLSCALE_DATA"):
        folders = {"MLSCALE_DATA": Path(folder), **folders}
    for place, folder_path in folders.items():
        for file in _files_of_name(folder_path, dataset):
            if _has_checksum(file, dataset):
                return file, place
            warn(f"{file}: is not '{dataset.name}', it has another checksum; passed over")
        if place == "MLSCALE_DATA" and (renamed := _file_of_content(folder_path, dataset)):
            return renamed, place
    return None


def named_file(text: str) -> Path:
    """A path as it is given, or the file of the public data set of that name.

    Raises InputError where that data set is not on this machine, or is a table already.
    """
    known = registry.all_datasets().get(text)
    if os.path.exists(text) or known is None:  # noqa: PTH110  Path("") is "."
        return Path(text)
    if not known.url:
        table = registry.path(known.file)
        raise InputError(f"'{text}' is a table already, which needs no import: {table}")
    if location := find(registry.dataset(text)):
        return location[0]
    raise InputError(
        f"'{text}' is not on this machine; get it with 'mlscale datasets fetch {text}'"
    )


def fetch(name: str) -> Path:
    """The file of a data set: as found on this machine, else downloaded into the cache by pooch.

    Raises InputError where the data set is not known or not to be had; a file of another checksum
    is refused.
    """
    dataset = registry.dataset(name)
    if location := find(dataset):
        return location[0]
    with extra_named("'mlscale datasets fetch'"):
        import pooch
    pooch.get_logger().setLevel("WARNING")
    known = f"sha256:{dataset.sha256}"
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty())
    try:
        file = pooch.retrieve(
            dataset.url, known, dataset.file, cache_folder(), downloader=downloader
        )
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; ValueError: checksum
        reason = " ".join(str(error).split())[:300]
        raise InputError(
            f"{dataset.url}: cannot be fetched: {reason}; where there is no network, put the file "
            "into a folder that MLSCALE_DATA names"
        ) from error
    return Path(file)


def _files_of_name(folder: Path, dataset: Dataset) -> Iterator[Path]:
    """Files of the right name: in the folder, at their path in the repository, one level below."""
    names = [folder / dataset.file, folder / dataset.path_in_repository]
    try:
        below = sorted(folder.glob(f"*/{dataset.file}"))
        yield from (file for file in dict.fromkeys([*names, *below]) if file.is_file())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from error


def _file_of_content(folder: Path, dataset: Dataset) -> Path | None:
    """The file of a data set under any name, at any depth of a folder; None without one."""
    try:
        files = sorted(folder.rglob(f"*{Path(dataset.file).suffix}"))
        alike = [f for f in files if f.is_file() and dataset.size_bytes in (None, f.stat().st_size)]
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from error
    return next((file for file in alike if _has_checksum(file, dataset)), None)


def _has_checksum(file: Path, dataset: Dataset) -> bool:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == dataset.sha256
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error
