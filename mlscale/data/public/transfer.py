"""Bytes from a server to a file, going on where an earlier transfer broke off.

pooch checks and caches but begins anew each time, so this is the downloader that it is given.
"""

from collections.abc import Callable
from pathlib import Path

from mlscale.errors import InputError

Progress = Callable[[int], None]

LARGEST_BYTES = 64 << 20  # of a file whose size is not known; the known ones are below 1 MiB
TIMEOUT_S = (10.0, 30.0)  # to connect; without a byte
_ATTEMPTS = 5
CHUNK = 1 << 12  # bytes that a transfer which breaks off may lose


def download(urls: list[str], part: Path, largest: int, progress: Progress) -> str:
    """Complete `part` from the first of `urls` that is there; returns that URL.

    A transfer that breaks off is continued at once as long as each attempt brings something;
    what came stays in `part` for another day. Raises InputError, in words, when the server
    has none of the files, cannot be reached, or sends more than `largest` bytes.
    """
    import requests

    progress(size_of(part))
    for url in urls:
        for attempt in range(1, _ATTEMPTS + 1):
            before = size_of(part)
            try:
                if not _append(url, part, largest, progress):
                    break  # not found; the next URL
            except requests.RequestException as error:
                if attempt < _ATTEMPTS and size_of(part) > before:
                    continue
                raise InputError(_in_words(url, error, size_of(part))) from None
            return url
    raise InputError(f"{' and '.join(urls)}: the server has no such file (404)")


def size_of(part: Path) -> int:
    """Bytes of a file that may not be there."""
    return part.stat().st_size if part.exists() else 0


def _append(url: str, part: Path, largest: int, progress: Progress) -> bool:
    """One request: the rest of `part`, or all of it from a server without ranges.

    False where the server has no such file. Raises requests' errors and InputError.
    """
    import requests

    have = size_of(part)
    # identity: a range of a compressed answer would not fit what is there
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT_S) as answer:
        if answer.status_code == requests.codes.not_found:
            return False
        if have and answer.status_code == requests.codes.requested_range_not_satisfiable:
            return True  # all of it is here; its checksum will tell
        answer.raise_for_status()
        goes_on = answer.status_code == requests.codes.partial_content
        with part.open("ab" if goes_on else "wb") as file:
            for chunk in answer.iter_content(CHUNK):
                if file.tell() + len(chunk) > largest:
                    file.truncate(0)
                    raise InputError(
                        f"{url}: sends more than the {largest} bytes that it may have; refused"
                    )
                file.write(chunk)
                progress(len(chunk))
    return True


def _in_words(url: str, error: Exception, have: int) -> str:
    import requests

    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"{url}: the server says {error.response.status_code} {error.response.reason}"
    if have:
        return f"{url}: the transfer broke off after {have} bytes; fetch again to go on from there"
    if isinstance(error, requests.Timeout):
        problem = "does not answer in time"
    elif isinstance(error, requests.exceptions.SSLError):
        problem = "has a certificate that was not accepted"
    elif isinstance(error, requests.ConnectionError):
        problem = "cannot be reached"
    else:
        problem = " ".join(str(error).split())[:200]
    return f"{url}: {problem}; where there is no network, give a copy with --mirror DIR"
