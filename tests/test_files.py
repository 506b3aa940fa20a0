"""Files are written whole or not at all; what the file system refuses is one line.

Expected: by hand, and by what the operating system says.
"""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic.tidy import refused

from mlscale.files import only_writer, parse_json_object, read_bytes, whole_file, write_text


def names(folder: Path) -> list[str]:
    """Everything in a folder, hidden files too."""
    return sorted(path.name for path in folder.iterdir())


def write_some_then_fail(path: Path, error: BaseException) -> None:
    with whole_file(path) as temporary:
        temporary.write_text("half of it", encoding="utf-8")
        raise error


class TestWholeFile:
    def test_replaces_an_old_file_at_the_end_only(self, tmp_path: Path) -> None:
        path = tmp_path / "file.txt"
        for before, after in ((None, b"old"), (b"old", b"new")):
            with whole_file(path) as temporary:
                temporary.write_bytes(after)
                assert (path.read_bytes() if path.exists() else None) == before
            assert path.read_bytes() == after
            assert names(tmp_path) == ["file.txt"]

    @pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
    def test_the_old_file_stays_when_the_block_fails(
        self, tmp_path: Path, error: BaseException
    ) -> None:
        path = tmp_path / "old.txt"
        path.write_bytes(b"old")
        with pytest.raises(type(error)) as caught:
            write_some_then_fail(path, error)
        assert caught.value is error
        assert path.read_bytes() == b"old"
        assert names(tmp_path) == ["old.txt"]

    def test_a_full_disk_is_said_and_leaves_nothing(self, tmp_path: Path) -> None:
        full = OSError(28, "No space left on device")
        with refused("new.txt: cannot be written: No space left on device"):
            write_some_then_fail(tmp_path / "new.txt", full)
        assert names(tmp_path) == []

    def test_the_umask_decides_who_may_read_it(self, tmp_path: Path) -> None:
        # Hand: 0o666 without the bits of umask 0o027.
        before = os.umask(0o027)
        try:
            write_text(tmp_path / "new.txt", "text")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "new.txt").stat().st_mode) == 0o640

    @pytest.mark.parametrize(
        ("place", "problem"),
        [
            ("folder", "is a directory; give the name of a file"),
            ("nowhere/new.txt", "cannot be written: No such file or directory"),
        ],
    )
    def test_a_place_for_no_file_is_refused(self, tmp_path: Path, place: str, problem: str) -> None:
        (tmp_path / "folder").mkdir()
        with refused(f"{place}: {problem}"):
            write_text(tmp_path / place, "text")
        assert names(tmp_path) == ["folder"]

    def test_a_stream_is_written_to_and_stays(self, tmp_path: Path) -> None:
        # `-o /dev/null` as root must not turn the device into a file; a pipe stands for it.
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        write_text(pipe, "text")
        assert os.read(reader, 100) == b"text"
        os.close(reader)
        assert pipe.is_fifo()
        assert names(tmp_path) == ["pipe"]

    def test_an_open_file_is_added_to(self, tmp_path: Path) -> None:
        # As `mlscale ... -o /dev/stdout >> log` does.
        log = tmp_path / "log"
        log.write_bytes(b"before\n")
        with log.open("ab") as file:
            write_text(Path(f"/dev/fd/{file.fileno()}"), "text\n")
        assert log.read_bytes() == b"before\ntext\n"

    def test_a_link_stays_and_its_file_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "folder").mkdir()
        target, link = tmp_path / "folder" / "target", tmp_path / "link"
        target.write_bytes(b"old")
        link.symlink_to(target)
        write_text(link, "µs\n")
        assert link.is_symlink()
        assert target.read_bytes() == b"\xc2\xb5s\n"


# A process that holds a folder, has begun to write a file there, and is killed.
KILLED = """
import os, signal, sys
from pathlib import Path
from mlscale.files import only_writer, whole_file

folder = Path(sys.argv[1])
with only_writer(folder), whole_file(folder / "new.txt") as part:
    part.write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""


class TestOnlyWriter:
    def test_a_second_one_is_refused_as_long_as_the_first_is_there(self, tmp_path: Path) -> None:
        with only_writer(tmp_path):
            for _ in range(2):
                with (
                    refused(f"{tmp_path}: another mlscale is writing there"),
                    only_writer(tmp_path),
                ):
                    pass
        with only_writer(tmp_path):
            assert names(tmp_path) == []

    def test_one_that_was_killed_is_in_nobodys_way(self, tmp_path: Path) -> None:
        (tmp_path / ".mine").write_text("stays")
        killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert len(names(tmp_path)) == 2
        with only_writer(tmp_path):
            assert names(tmp_path) == [".mine"]
            (tmp_path / ".x.mlscale-part").write_text("half of it, by a worker that was killed")
        assert names(tmp_path) == [".mine"]


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        ("nothing.csv", "cannot be read: No such file or directory"),
        (".", "cannot be read: Is a directory"),
        ("empty", "is empty"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, place: str, problem: str) -> None:
    (tmp_path / "empty").touch()
    with refused(f"^{tmp_path / place}: {problem}"):
        read_bytes(tmp_path / place)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"a": 1', "x.json: is not valid JSON"),
        (b"\xff\xfe\xfd", "x.json: is not valid JSON"),
        ("[" * 100_000, "x.json: is not valid JSON"),
        ("[1, 2]", "x.json: must hold a JSON object, not list"),
    ],
)
def test_what_is_no_json_object_names_its_source(content: str | bytes, problem: str) -> None:
    assert parse_json_object(b'\xef\xbb\xbf{"a": [1, null]}', "x.json") == {"a": [1, None]}
    with refused(problem):
        parse_json_object(content, "x.json")
