"""Public data sets on this machine: found, or fetched; only what has the right checksum counts.

Looked for in the folder MLSCALE_DATA, then in the cache (MLSCALE_CACHE, else the platform's).
"""

import errno
import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from mlscale.data.public import registry, transfer
from mlscale.data.public.registry import Dataset
from mlscale.data.public.transfer import Progress
from mlscale.errors import DataWarning, InputError


def _ignore(_count: int) -> None:
    """No progress is shown."""


def cache_folder() -> Path:
    """Where fetched files are kept: MLSCALE_CACHE, else the platform's folder for caches."""
    if given := os.environ.get("MLSCALE_CACHE"):
        return Path(given).expanduser()
    import pooch

    return Path(pooch.os_cache("mlscale"))


def find(dataset: Dataset) -> tuple[Path, str] | None:
    """The file of a data set and where it was found; None where it is not on this machine.

    A file of the right name but another checksum is not it, and is warned about.
    """
    if not dataset.url:
        return (registry.path(dataset.file), "shipped") if dataset.file else None
    given = os.environ.get("MLSCALE_DATA")
    places = {"MLSCALE_DATA": Path(given)} if given else {}
    for place, folder in {**places, "cache": cache_folder()}.items():
        for file in _candidates(folder, dataset):
            if _has_checksum(file, dataset):
                return file, place
            warnings.warn(
                f"{file}: is not '{dataset.name}', it has another checksum; passed over",
                DataWarning,
                stacklevel=2,
            )
    return None


def named_file(text: str) -> Path:
    """A path as it is given, or the file of the public data set of that name.

    Raises InputError where that data set is not on this machine.
    """
    if os.path.exists(text) or text not in registry.public_datasets():  # noqa: PTH110, see options
        return Path(text)
    if found := find(registry.dataset(text)):
        return found[0]
    raise InputError(
        f"'{text}' is not on this machine; get it with 'mlscale datasets fetch {text}'"
    )


def fetch(name: str, mirror: str | None = None, progress: Progress = _ignore) -> Path:
    """The file of a data set: as found on this machine, else downloaded into the cache.

    mirror: a folder, or a file, http or https URL, that has the file by name or by its path in the
    repository. progress is called with numbers of bytes. Raises InputError where the data set is
    not known or not to be had; a file of another checksum is refused and replaces nothing.
    """
    dataset = registry.dataset(name)
    if not dataset.file:
        raise InputError(f"'{name}' is made, not fetched: mlscale datasets make {name} -o TABLE")
    if found := find(dataset):
        return found[0]
    cache = cache_folder()
    target = cache / dataset.file
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            raise InputError(f"{target}: is in the way and is no regular file; move it away")
        with _alone(cache, dataset):
            _into_cache(dataset, cache, mirror, progress)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            _part(cache, dataset).unlink(missing_ok=True)
        raise InputError(
            f"{target}: cannot be written: {error.strerror or error}; MLSCALE_CACHE names "
            "another folder"
        ) from error
    return target


@contextmanager
def _alone(cache: Path, dataset: Dataset) -> Iterator[None]:
    """One process at a time fetches a data set; the others wait, and say so."""
    import filelock

    lock = filelock.FileLock(cache / f".{dataset.file}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        warnings.warn(
            f"'{dataset.name}' is being fetched by another process; waiting for it",
            DataWarning,
            stacklevel=4,
        )
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _into_cache(dataset: Dataset, cache: Path, mirror: str | None, progress: Progress) -> None:
    """Download, check and put in place; a partial file that proves wrong is begun anew once.

    pooch looks into the cache first: another process may have been faster.
    """
    import pooch

    pooch.get_logger().setLevel("ERROR")
    part = _part(cache, dataset)
    if part.is_symlink() or (part.exists() and not part.is_file()):
        part.unlink()
    urls = _urls(dataset, mirror)
    source = urls[0] if urls else str(_local_copy(dataset, str(mirror)))

    def bring(_url: str, output: str, _pooch: object) -> None:
        nonlocal source
        if urls:
            largest = dataset.size_bytes or transfer.LARGEST_BYTES
            source = transfer.download(urls, part, largest, progress)
        else:
            _copy(Path(source), part, dataset, progress)
        part.replace(output)  # pooch checks it, and puts it in its place or takes it away

    while True:
        gone_on = bool(urls) and transfer.size_of(part) > 0
        try:
            pooch.retrieve(
                source, f"sha256:{dataset.sha256}", dataset.file, cache, downloader=bring
            )
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            if not gone_on:
                raise InputError(
                    f"{source}: is not '{dataset.name}': its SHA-256 is not "
                    f"{dataset.sha256}; refused, nothing was replaced"
                ) from None
        else:
            return


def _part(cache: Path, dataset: Dataset) -> Path:
    return cache / f".{dataset.file}.part"


def _urls(dataset: Dataset, mirror: str | None) -> list[str]:
    """Where to ask on the network; nothing for a mirror that is a folder."""
    if mirror is None:
        return [dataset.url]
    if urlsplit(mirror).scheme not in ("http", "https"):
        return []
    names = dict.fromkeys([dataset.file, dataset.path_in_repository])
    return [f"{mirror.rstrip('/')}/{name}" for name in names]


def _local_copy(dataset: Dataset, mirror: str) -> Path:
    """The file in a mirror that is a folder. Raises InputError."""
    parts = urlsplit(mirror)
    if "://" in mirror and parts.scheme != "file":
        raise InputError(f"{mirror}: a mirror is a folder, or a file, http or https URL")
    folder = Path(url2pathname(unquote(parts.path)) if parts.scheme == "file" else mirror)
    found = list(_candidates(folder, dataset))
    if not found:
        raise InputError(
            f"{folder}: has no file {dataset.file}, {dataset.path_in_repository} or "
            f"*/{dataset.file}"
        )
    return next((file for file in found if _has_checksum(file, dataset)), found[0])


def _candidates(folder: Path, dataset: Dataset) -> Iterator[Path]:
    """Files of the right name: in the folder, at their path in the repository, one level below."""
    names = [folder / dataset.file, folder / dataset.path_in_repository]
    try:
        below = sorted(folder.glob(f"*/{dataset.file}"))
        yield from (file for file in dict.fromkeys([*names, *below]) if file.is_file())
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from error


def _has_checksum(file: Path, dataset: Dataset) -> bool:
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest() == dataset.sha256
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error


def _copy(source: Path, part: Path, dataset: Dataset, progress: Progress) -> None:
    """A local copy, never of more than the file may have."""
    with source.open("rb") as opened:
        content = opened.read((dataset.size_bytes or transfer.LARGEST_BYTES) + 1)
    part.write_bytes(content)
    progress(len(content))
