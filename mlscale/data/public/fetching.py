"""Public data sets on this machine: found, or fetched; only what has the right checksum counts.

A set whose checksum is not known is taken by the name of its file, and told to be unverified.

A data set is looked for in the folder MLSCALE_DATA, by the name of its file or, whatever it is
called there, by its checksum; then in the cache (MLSCALE_CACHE, else the platform's). A transfer
fills one partial file of a known name, which goes on where an earlier one broke off, and is put in
its place in one step when its checksum is right.
"""

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from mlscale.data.public import registry
from mlscale.data.public.registry import Dataset
from mlscale.errors import InputError, warn
from mlscale.files import ByteProgress, no_progress

LARGEST_BYTES = 64 << 20  # of a file whose size is not known; the known ones are below 1 MiB
TIMEOUT_S = (10.0, 30.0)  # to connect; without a byte
CHUNK_BYTES = 1 << 12  # what a transfer that breaks off may lose
_ATTEMPTS = 5


def cache_folder() -> Path:
    """The folder of fetched files: MLSCALE_CACHE, else the platform's folder for caches."""
    if folder := os.environ.get("MLSCALE_CACHE"):
        return Path(folder).expanduser()
    import platformdirs

    return platformdirs.user_cache_path("mlscale")


def find(dataset: Dataset) -> tuple[Path, str] | None:
    """The file of a data set and where it was found; None where it is not on this machine.

    A file of the right name but another checksum is passed over with a warning. The place of a
    file that cannot be checked says so: 'cache, unverified'.
    """
    if not dataset.url:
        return (registry.path(dataset.file), "shipped") if dataset.file else None
    folders = {"cache": cache_folder()}
    if folder := os.environ.get("MLSCALE_DATA"):
        folders = {"MLSCALE_DATA": Path(folder), **folders}
    for place, folder_path in folders.items():
        for file in _files_of_name(folder_path, dataset):
            if dataset.is_unverified:
                return file, f"{place}, unverified"
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


def fetch(name: str, mirror: str | None = None, progress: ByteProgress = no_progress) -> Path:
    """The file of a data set: as found on this machine, else downloaded into the cache.

    mirror: a folder, or a file, http or https URL, that has the file by name or by its path in the
    repository. progress is called with numbers of bytes. Raises InputError where the data set is
    not known or not to be had; a file of another checksum is refused and replaces nothing. Warns
    of a file that cannot be checked, with the checksum that it has.
    """
    dataset = registry.dataset(name)
    if location := find(dataset):
        return location[0]
    cache = cache_folder()
    target = cache / dataset.file
    part = cache / f".{dataset.file}.part"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        if target.exists() and not target.is_file():
            raise InputError(f"{target}: is in the way and is no regular file; move it away")
        with _lock(cache, dataset):
            if part.is_symlink() or (part.exists() and not part.is_file()):
                part.unlink()
            _retrieve(dataset, part, mirror, progress)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            part.unlink(missing_ok=True)
        raise InputError(
            f"{target}: cannot be written: {error.strerror or error}; MLSCALE_CACHE names "
            "another folder"
        ) from error
    if dataset.is_unverified:
        warn(
            f"{target}: is not verified, as no checksum of '{name}' is known; what came has the "
            f"SHA-256 {hashlib.sha256(target.read_bytes()).hexdigest()}"
        )
    return target


@contextmanager
def _lock(cache: Path, dataset: Dataset) -> Iterator[None]:
    """One process at a time fetches a data set; the others say that they wait."""
    import filelock

    lock = filelock.FileLock(cache / f".{dataset.file}.lock")
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        warn(f"'{dataset.name}' is being fetched by another process; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _retrieve(dataset: Dataset, part: Path, mirror: str | None, progress: ByteProgress) -> None:
    """Fill `part`, check it and put it in its place; a continued file that is wrong begins anew.

    Nothing is done where another process was faster.
    """
    target = part.parent / dataset.file
    if target.is_file() and (dataset.is_unverified or _has_checksum(target, dataset)):
        return
    urls = _urls(dataset, mirror)
    largest = dataset.size_bytes or LARGEST_BYTES
    is_continued = bool(urls) and _size(part) > 0
    if urls:
        source = _download(urls, part, largest, progress)
    else:
        source = str(_file_in_mirror(dataset, str(mirror)))
        _copy(Path(source), part, largest, progress)
    if not dataset.is_unverified and not _has_checksum(part, dataset):
        part.unlink()
        if not is_continued:
            raise InputError(
                f"{source}: is not '{dataset.name}': its SHA-256 is not {dataset.sha256}; "
                "refused, nothing was replaced"
            )
        _retrieve(dataset, part, mirror, progress)
    else:
        part.replace(target)


def _urls(dataset: Dataset, mirror: str | None) -> list[str]:
    """Where the file may be on the network; nothing for a mirror that is a folder. InputError."""
    try:
        urlsplit(mirror or "")
    except ValueError as error:
        raise InputError(f"the mirror '{mirror}' is no address: {error}") from None
    if mirror is None:
        return [dataset.url]
    if urlsplit(mirror).scheme not in ("http", "https"):
        return []
    names = dict.fromkeys([dataset.file, dataset.path_in_repository])
    return [f"{mirror.rstrip('/')}/{name}" for name in names]


def _file_in_mirror(dataset: Dataset, mirror: str) -> Path:
    """The file in a mirror that is a folder. Raises InputError."""
    parts = urlsplit(mirror)
    if "://" in mirror and parts.scheme != "file":
        raise InputError(f"{mirror}: a mirror is a folder, or a file, http or https URL")
    folder = Path(url2pathname(unquote(parts.path)) if parts.scheme == "file" else mirror)
    files = list(_files_of_name(folder, dataset))
    if not files:
        raise InputError(
            f"{folder}: has no file {dataset.file}, {dataset.path_in_repository} or "
            f"*/{dataset.file}"
        )
    return next((file for file in files if _has_checksum(file, dataset)), files[0])


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
    if dataset.is_unverified:
        return None
    try:
        files = sorted(folder.rglob(f"*{Path(dataset.file).suffix}"))
        alike = [f for f in files if f.is_file() and dataset.size_bytes in (None, _size(f))]
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror or error}") from error
    return next((file for file in alike if _has_checksum(file, dataset)), None)


def _has_checksum(file: Path, dataset: Dataset) -> bool:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == dataset.sha256
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror or error}") from error


def _copy(source: Path, part: Path, largest: int, progress: ByteProgress) -> None:
    """Copy a local file, but never more than `largest` bytes and one."""
    with source.open("rb") as file:
        content = file.read(largest + 1)
    part.write_bytes(content)
    progress(len(content))


def _size(part: Path) -> int:
    """Bytes of a file, of a part for example, that may not be there."""
    return part.stat().st_size if part.exists() else 0


def _download(urls: list[str], part: Path, largest: int, progress: ByteProgress) -> str:
    """Complete `part` from the first of `urls` that the server has; returns that URL.

    A transfer that breaks off is continued at once as long as each attempt brings something;
    what came stays in `part` for another day. Raises InputError when the server has none of the
    files, cannot be reached, or sends more than `largest` bytes.
    """
    import requests

    progress(_size(part))
    for url in urls:
        for attempt in range(1, _ATTEMPTS + 1):
            before = _size(part)
            try:
                if not _continue(url, part, largest, progress):
                    break
            except requests.RequestException as error:
                if attempt < _ATTEMPTS and _size(part) > before:
                    continue
                raise InputError(f"{url}: {_reason(error, _size(part))}") from None
            return url
    raise InputError(f"{' and '.join(urls)}: the server has no such file (404)")


def _continue(url: str, part: Path, largest: int, progress: ByteProgress) -> bool:
    """One request: the rest of `part`, or all of it from a server without ranges.

    False where the server has no such file. Raises requests' errors and InputError.
    """
    import requests

    size = _size(part)
    # identity: a range of a compressed answer would not fit what is there
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={size}-"} if size else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
        if answer.status_code == requests.codes.not_found:
            return False
        if size and answer.status_code == requests.codes.requested_range_not_satisfiable:
            return True  # the file is complete; its checksum is checked later
        answer.raise_for_status()
        is_rest = answer.status_code == requests.codes.partial_content
        with part.open("ab" if is_rest else "wb") as file:
            for chunk in answer.iter_content(CHUNK_BYTES):
                if file.tell() + len(chunk) > largest:
                    file.truncate(0)
                    raise InputError(
                        f"{url}: sends more than the {largest} bytes that it may have; refused"
                    )
                file.write(chunk)
                progress(len(chunk))
    return True


def _reason(error: Exception, size: int) -> str:
    """Why a transfer failed after `size` bytes, and what to do."""
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server says {error.response.status_code} {error.response.reason}"
    if size:
        return f"the transfer broke off after {size} bytes; fetch again to go on from there"
    if isinstance(error, requests.Timeout):
        problem = "does not answer in time"
    elif isinstance(error, requests.exceptions.SSLError):
        problem = "has a certificate that was not accepted"
    elif isinstance(error, requests.ConnectionError):
        problem = "cannot be reached"
    else:
        problem = " ".join(str(error).split())[:200]
    return f"{problem}; where there is no network, give a copy with --mirror DIR"
