"""Finding data sets on this machine, and fetching one by pooch from a server on it.

The content is made; that what ends up under the data set's name is the content is the truth known.
"""

import functools
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from synthetic.tidy import refused

from mlscale.data import datasets
from mlscale.data.datasets import Dataset, fetch

FILE, BELOW = "made.csv", "csvs/raw/made.csv"
CONTENT = bytes(i * i % 251 for i in range(100_000))
NAME = "made-set"


def made(url: str) -> Dataset:
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    return Dataset(
        NAME, "gtx980", "measured", "made", 1, None, 0, False, None,
        file=FILE, url=f"{url}/owner/name/commit/{BELOW}", sha256=sha256, size_bytes=len(CONTENT),
    )  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLSCALE_DATA", raising=False)
    monkeypatch.setenv("MLSCALE_CACHE", str(tmp_path / "cache"))
    for name in ("NO_PROXY", "no_proxy"):  # requests asks for the latter first
        monkeypatch.setenv(name, "127.0.0.1")
    return tmp_path / "cache"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


class TestServer:
    @pytest.fixture
    def served(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
        """The file that a server on this machine has under the data set's address."""
        file = tmp_path / "www" / "owner" / "name" / "commit" / BELOW
        file.parent.mkdir(parents=True)
        file.write_bytes(CONTENT)
        handler = functools.partial(Quiet, directory=str(tmp_path / "www"))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            dataset = made(f"http://127.0.0.1:{server.server_port}")
            monkeypatch.setattr(datasets, "all_datasets", lambda: {NAME: dataset})
            yield file
            server.shutdown()

    def test_once_and_then_from_the_cache(self, served: Path, cache: Path) -> None:
        file = fetch(NAME)
        assert file == cache / FILE
        assert file.read_bytes() == CONTENT
        served.unlink()
        assert fetch(NAME) == file
        assert {path.name for path in cache.iterdir()} == {FILE}

    def test_wrong_content_is_refused(self, served: Path, cache: Path) -> None:
        served.write_bytes(CONTENT[:-1] + b"!")
        with refused("made.csv: cannot be fetched: SHA256 hash of downloaded file"):
            fetch(NAME)
        assert list(cache.iterdir()) == []


class TestFolder:
    @pytest.fixture(autouse=True)
    def _known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(datasets, "all_datasets", lambda: {NAME: made("https://nowhere")})

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        (tmp_path / "data").mkdir()
        monkeypatch.setenv("MLSCALE_DATA", str(tmp_path / "data"))
        return tmp_path / "data"

    def test_found_in_the_folder_of_data(self, folder: Path, cache: Path) -> None:
        (folder / "sub").mkdir()
        (folder / "sub" / FILE).write_bytes(CONTENT)
        assert fetch(NAME) == folder / "sub" / FILE
        assert datasets.named_file(NAME) == folder / "sub" / FILE
        assert not cache.exists()

    @pytest.mark.parametrize("size", ["known", "unknown"])
    def test_found_under_another_name(self, folder: Path, size: str) -> None:
        """Beside a file of the same size and another content."""
        (folder / "a" / "b").mkdir(parents=True)
        (folder / "a" / "another.csv").write_bytes(CONTENT[::-1])
        renamed = folder / "a" / "b" / "renamed.csv"
        renamed.write_bytes(CONTENT)
        known = datasets.dataset(NAME)
        known = known if size == "known" else replace(known, size_bytes=None)
        assert datasets.find(known) == (renamed, "MLSCALE_DATA")
        assert datasets.named_file(NAME) == renamed

    def test_without_a_network_or_a_cache(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nobody listens at port 9 of this machine; no folder is below a file."""
        monkeypatch.setattr(datasets, "all_datasets", lambda: {NAME: made("http://127.0.0.1:9")})
        with refused("cannot be fetched: .*without a network, put the file into a folder"):
            fetch(NAME)
        (tmp_path / "taken").write_text("mine")
        monkeypatch.setenv("MLSCALE_CACHE", str(tmp_path / "taken" / "cache"))
        with refused("cannot be fetched: .*Not a directory"):
            fetch(NAME)

    def test_not_on_this_machine(self) -> None:
        with refused(f"'{NAME}' is not on this machine; get it with 'mlscale datasets fetch"):
            datasets.named_file(NAME)


def test_a_table_needs_no_import() -> None:
    name = "headroom-rtx3060"
    with refused(f"^'{name}' is a table already, which needs no import: .*{name}.csv$"):
        datasets.named_file(name)


def test_the_usual_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG Base Directory Specification: XDG_CACHE_HOME holds user-specific caches."""
    monkeypatch.delenv("MLSCALE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / "mlscale"
