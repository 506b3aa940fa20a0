"""Fetching: from folders and from a server on this machine that breaks off, lies, hangs, is away.

The content is made; that what ends up under the data set's name is the content is the truth known.
"""

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import Served, serve
from synthetic.tidy import refused

from mlscale import DataWarning
from mlscale.data.public import fetching, registry
from mlscale.data.public.fetching import fetch
from mlscale.data.public.registry import Dataset

FILE, BELOW = "made.csv", "csvs/raw/made.csv"
CONTENT = bytes(i * i % 251 for i in range(100_000))
WRONG = CONTENT[:-1] + b"!"
NAME = "made-set"


def made(url: str) -> Dataset:
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    return Dataset(
        NAME, "gtx980", "measured", "made", 1, None, 0, False, None,
        file=FILE, url=f"{url}/owner/name/commit/{BELOW}", sha256=sha256, size_bytes=len(CONTENT),
    )  # fmt: skip


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MLSCALE_DATA", raising=False)
    monkeypatch.setenv("MLSCALE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "cache"


@pytest.fixture
def server(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with serve({f"/owner/name/commit/{BELOW}": CONTENT}) as served:
        monkeypatch.setattr(registry, "all_datasets", lambda: {NAME: made(served.url)})
        yield served


def part_of(cache: Path, content: bytes = b"") -> Path:
    part = cache / f".{FILE}.part"
    if content:
        cache.mkdir(exist_ok=True)
        part.write_bytes(content)
    return part


def left(cache: Path) -> set[str]:
    """What lies in the cache, locks aside."""
    return {file.name for file in cache.iterdir() if file.suffix != ".lock"}


class TestUnknownChecksum:
    """A public file that nobody here has had is taken by its name, and said to be unverified."""

    def test_is_told_with_what_came(
        self, server: Served, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        unverified = replace(made(server.url), sha256="", size_bytes=None)
        monkeypatch.setattr(registry, "all_datasets", lambda: {NAME: unverified})
        with pytest.warns(DataWarning) as warned:
            file = fetch(NAME)
        said = (
            f"{cache / FILE}: is not verified, as no checksum of '{NAME}' is known; what came has "
            f"the SHA-256 {hashlib.sha256(CONTENT).hexdigest()}"
        )
        assert [str(warning.message) for warning in warned] == [said]
        assert file.read_bytes() == CONTENT
        assert fetching.find(unverified) == (file, "cache, unverified")
        assert fetch(NAME) == file
        assert server.asked == [None]

    def test_is_of_no_other_file(self) -> None:
        """Not even of an empty one: no content has the checksum ''."""
        assert registry.identify(b"") is None


class TestServer:
    def test_once_and_then_from_the_cache(self, server: Served, cache: Path) -> None:
        steps: list[int] = []
        file = fetch(NAME, progress=steps.append)
        assert file == cache / FILE
        assert file.read_bytes() == CONTENT
        assert sum(steps) == len(CONTENT)
        assert fetch(NAME) == file
        assert server.asked == [None]
        assert left(cache) == {FILE}

    def test_that_breaks_off_is_asked_for_the_rest_at_once(self, server: Served) -> None:
        server.send = [7 * fetching.CHUNK_BYTES, 5 * fetching.CHUNK_BYTES + 1]
        assert fetch(NAME).read_bytes() == CONTENT
        assert server.asked == [None, "bytes=28672-", "bytes=49152-"]  # whole chunks of 4096

    def test_that_stays_away_is_gone_on_with_another_day(self, server: Served, cache: Path) -> None:
        server.send = [7 * fetching.CHUNK_BYTES, 0]
        with refused("broke off after 28672 bytes; fetch again to go on from there"):
            fetch(NAME)
        assert left(cache) == {f".{FILE}.part"}
        assert fetch(NAME).read_bytes() == CONTENT
        assert server.asked == [None, "bytes=28672-", "bytes=28672-"]
        assert left(cache) == {FILE}

    def test_without_ranges(self, server: Served, cache: Path) -> None:
        server.ranges = False
        part_of(cache, CONTENT[:700])
        assert fetch(NAME).read_bytes() == CONTENT

    def test_a_whole_part_is_not_sent_again(self, server: Served, cache: Path) -> None:
        part_of(cache, CONTENT)
        assert fetch(NAME).read_bytes() == CONTENT
        assert server.asked == [f"bytes={len(CONTENT)}-"]

    def test_a_wrong_part_is_begun_anew(self, server: Served, cache: Path) -> None:
        part_of(cache, b"something else")
        assert fetch(NAME).read_bytes() == CONTENT
        assert server.asked == ["bytes=14-", None]

    @pytest.mark.parametrize("wrong", [WRONG, CONTENT[:-1], b""])
    def test_of_other_content_is_refused(self, server: Served, cache: Path, wrong: bytes) -> None:
        server.content = dict.fromkeys(server.content, wrong)
        cache.mkdir()
        (cache / FILE).write_bytes(b"mine")
        with (
            refused(rf"{BELOW}: is not '{NAME}': its SHA-256 is not .*; refused, nothing was rep"),
            pytest.warns(DataWarning, match="has another checksum; passed over"),
        ):
            fetch(NAME)
        assert (cache / FILE).read_bytes() == b"mine"
        assert left(cache) == {FILE}

    def test_that_sends_too_much_is_cut_short(self, server: Served, cache: Path) -> None:
        server.content = dict.fromkeys(server.content, CONTENT + bytes(1_000_000))
        with refused("sends more than the 100000 bytes that it may have; refused"):
            fetch(NAME)
        assert part_of(cache).stat().st_size == 0
        assert not (cache / FILE).exists()

    @pytest.mark.parametrize(
        ("status", "said"), [(404, "no such file"), (500, "says 500 Internal")]
    )
    def test_that_refuses(self, server: Served, cache: Path, status: int, said: str) -> None:
        server.status = status
        with refused(f"{server.url}/owner.*: the server (has|says).*") as _:
            fetch(NAME)
        with refused(said):
            fetch(NAME)
        assert left(cache) == set()

    def test_that_hangs(self, server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fetching, "TIMEOUT_S", (1.0, 0.05))
        server.hang = True
        with refused("does not answer in time; where there is no network, .* --mirror DIR"):
            fetch(NAME)

    @pytest.mark.usefixtures("cache")
    def test_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setattr(registry, "all_datasets", lambda: {NAME: made(url)})
        with refused("cannot be reached; where there is no network, give a copy with --mirror DIR"):
            fetch(NAME)

    def test_mirror_by_name_or_by_path_in_the_repository(self, server: Served, cache: Path) -> None:
        server.content = {f"/mirror/{BELOW}": CONTENT}
        assert fetch(NAME, f"{server.url}/mirror/").read_bytes() == CONTENT
        (cache / FILE).unlink()
        server.content = {f"/mirror/{FILE}": CONTENT}
        assert fetch(NAME, f"{server.url}/mirror").read_bytes() == CONTENT
        (cache / FILE).unlink()
        with refused(f"mirror/nowhere/{FILE} and .*/{BELOW}: the server has no such file"):
            fetch(NAME, f"{server.url}/mirror/nowhere")

    @given(
        part=st.one_of(
            st.integers(0, len(CONTENT)).map(lambda n: CONTENT[:n]), st.binary(max_size=40)
        ),
        send=st.lists(st.integers(0, len(CONTENT)), max_size=4),
        ranges=st.booleans(),
    )
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_what_ends_up_is_the_data_set_or_nothing(
        self, server: Served, cache: Path, part: bytes, send: list[int], ranges: bool
    ) -> None:
        (cache / FILE).unlink(missing_ok=True)
        part_of(cache).unlink(missing_ok=True)
        part_of(cache, part)
        server.send, server.ranges = list(send), ranges
        for _ in range(6):  # a server with ranges needs at most as many as it breaks off
            try:
                assert fetch(NAME).read_bytes() == CONTENT
            except ValueError:
                assert not (cache / FILE).exists()
        assert fetch(NAME).read_bytes() == CONTENT


class TestTwoProcesses:
    def test_fetch_once_and_both_end_well(self, server: Served, cache: Path) -> None:
        cache.mkdir()
        script = (
            "from test_fetching import *\n"
            f"registry.all_datasets = lambda: {{NAME: made({server.url!r})}}\n"
            "print(fetch(NAME))\n"
        )
        here = Path(__file__).parent
        paths = [str(here), str(here.parents[1]), *sys.path]
        with FileLock(cache / f".{FILE}.lock"):
            running = [
                subprocess.Popen(
                    [sys.executable, "-c", script],
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                for _ in range(2)
            ]
            for process in running:
                assert process.stderr is not None
                assert "is being fetched by another process; wait" in process.stderr.readline()
        for process in running:
            out, _ = process.communicate(timeout=60)
            assert (process.returncode, out) == (0, f"{cache / FILE}\n")
        assert server.asked == [None]
        assert (cache / FILE).read_bytes() == CONTENT
        assert left(cache) == {FILE}


class TestFolder:
    @pytest.fixture(autouse=True)
    def _known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(registry, "all_datasets", lambda: {NAME: made("https://nowhere")})

    @pytest.fixture
    def mirror(self, tmp_path: Path) -> Path:
        (tmp_path / "mirror").mkdir()
        return tmp_path / "mirror"

    @pytest.mark.parametrize("place", [FILE, BELOW, f"dvfs/{FILE}"])
    @pytest.mark.parametrize("as_url", [False, True])
    def test_mirror(self, mirror: Path, cache: Path, place: str, as_url: bool) -> None:
        (mirror / place).parent.mkdir(parents=True, exist_ok=True)
        (mirror / place).write_bytes(CONTENT)
        given = mirror.as_uri() if as_url else str(mirror)
        assert fetch(NAME, given).read_bytes() == CONTENT
        assert left(cache) == {FILE}

    def test_mirror_of_other_content(self, mirror: Path, cache: Path) -> None:
        (mirror / FILE).write_bytes(WRONG)
        with refused(f"{mirror}/{FILE}: is not '{NAME}'"):
            fetch(NAME, str(mirror))
        assert left(cache) == set()

    def test_mirror_without_it(self, mirror: Path) -> None:
        with refused(f"^{mirror}: has no file {FILE}, {BELOW} or "):
            fetch(NAME, str(mirror))
        with refused("has no file"):
            fetch(NAME, str(mirror / "nowhere"))
        os.mkfifo(mirror / FILE)
        with refused("has no file"):
            fetch(NAME, str(mirror))

    @pytest.mark.parametrize("mirror_url", ["ftp://there/files", "s3://bucket"])
    def test_mirror_of_another_kind(self, mirror_url: str) -> None:
        with refused(f"{mirror_url}: a mirror is a folder, or a file, http or https URL"):
            fetch(NAME, mirror_url)

    def test_found_in_the_folder_of_data(
        self, mirror: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MLSCALE_DATA", str(mirror))
        (mirror / "sub").mkdir()
        (mirror / "sub" / FILE).write_bytes(CONTENT)
        assert fetch(NAME) == mirror / "sub" / FILE
        assert fetching.named_file(NAME) == mirror / "sub" / FILE
        assert not cache.exists()

    @pytest.mark.parametrize("size", ["known", "unknown"])
    def test_found_under_another_name(
        self, mirror: Path, monkeypatch: pytest.MonkeyPatch, size: str
    ) -> None:
        """Beside a file of the same size and another content."""
        monkeypatch.setenv("MLSCALE_DATA", str(mirror))
        (mirror / "a" / "b").mkdir(parents=True)
        (mirror / "a" / "another.csv").write_bytes(CONTENT[::-1])
        renamed = mirror / "a" / "b" / "renamed.csv"
        renamed.write_bytes(CONTENT)
        known = registry.dataset(NAME)
        known = known if size == "known" else replace(known, size_bytes=None)
        assert fetching.find(known) == (renamed, "MLSCALE_DATA")
        assert fetching.named_file(NAME) == renamed

    @pytest.mark.parametrize("hidden", [FILE, f".{FILE}.part"])
    @pytest.mark.parametrize("there", [True, False])
    def test_links_in_the_cache_are_replaced_and_not_followed(
        self, mirror: Path, cache: Path, tmp_path: Path, hidden: str, there: bool
    ) -> None:
        (mirror / FILE).write_bytes(CONTENT)
        cache.mkdir()
        precious = tmp_path / "precious"
        if there:
            precious.write_text("mine")
        (cache / hidden).symlink_to(precious)
        if there and hidden == FILE:
            with pytest.warns(DataWarning, match="passed over"):
                file = fetch(NAME, str(mirror))
        else:
            file = fetch(NAME, str(mirror))
        assert file.read_bytes() == CONTENT
        assert not file.is_symlink()
        assert precious.exists() == there
        assert not there or precious.read_text() == "mine"

    @pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
    def test_something_else_in_its_place(self, mirror: Path, cache: Path, make: object) -> None:
        (mirror / FILE).write_bytes(CONTENT)
        cache.mkdir()
        make(cache / FILE)  # type: ignore[operator]
        with refused(f"{cache}/{FILE}: is in the way and is no regular file; move it away"):
            fetch(NAME, str(mirror))

    def test_cache_below_a_file(
        self, mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (mirror / FILE).write_bytes(CONTENT)
        (tmp_path / "taken").write_text("mine")
        monkeypatch.setenv("MLSCALE_CACHE", str(tmp_path / "taken" / "cache"))
        with refused("cannot be written: Not a directory; MLSCALE_CACHE names another folder"):
            fetch(NAME, str(mirror))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_cache_that_may_not_be_written(self, mirror: Path, cache: Path) -> None:
        (mirror / FILE).write_bytes(CONTENT)
        cache.mkdir(mode=0o500)
        with refused("cannot be written: Permission denied; MLSCALE_CACHE names another folder"):
            fetch(NAME, str(mirror))

    def test_no_space(self, mirror: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(self: Path, content: bytes) -> int:
            with self.open("wb") as file:
                file.write(content[:1000])
            raise OSError(28, "No space left on device")

        (mirror / FILE).write_bytes(CONTENT)
        monkeypatch.setattr(Path, "write_bytes", full)
        with refused("cannot be written: No space left on device"):
            fetch(NAME, str(mirror))
        assert left(cache) == set()

    def test_not_on_this_machine(self) -> None:
        with refused(f"'{NAME}' is not on this machine; get it with 'mlscale datasets fetch"):
            fetching.named_file(NAME)


def test_a_table_needs_no_import() -> None:
    name = "headroom-rtx3060"
    with refused(f"^'{name}' is a table already, which needs no import: .*{name}.csv$"):
        fetching.named_file(name)


def test_the_platforms_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """XDG Base Directory Specification: XDG_CACHE_HOME holds user-specific caches (Linux)."""
    monkeypatch.delenv("MLSCALE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform.startswith("linux"):
        assert fetching.cache_folder() == tmp_path / "mlscale"
