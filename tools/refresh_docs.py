"""Run the commands shown in a page anew and put what they print in their place.

    python tools/refresh_docs.py [FOLDER] PAGE...

In a ```console block a line that begins with '$ ' is a command; the lines up to the next one, or
to the end of the block, are what it printed. Commands run in FOLDER, in the page's order; without
it in a new folder for each page, as when the site is built (tools/printed.py). A command that fails
ends the work before the page is written.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
FENCE = "```"
CONSOLE = FENCE + "console"
PROMPT = "$ "
COLUMNS = 80


def shown(page: str) -> list[tuple[str, str]]:
    """Each command of a page with the output that the page shows below it."""
    pairs: list[tuple[str, list[str]]] = []
    console = output_follows = False
    for line in page.splitlines():
        if line.startswith(FENCE):
            console, output_follows = line == CONSOLE, False
        elif console and line.startswith(PROMPT):
            output_follows = True
            pairs.append((line.removeprefix(PROMPT), []))
        elif output_follows:
            pairs[-1][1].append(line)
    return [(command, "\n".join(lines).rstrip()) for command, lines in pairs]


def refreshed(page: str, run: Callable[[str], str]) -> str:
    """The page with every command's output as `run` gives it."""
    lines: list[str] = []
    console = outdated = False
    for line in page.splitlines():
        if line.startswith(FENCE):
            console, outdated = line == CONSOLE, False
        if console and line.startswith(PROMPT):
            outdated = True
            lines += [line, *run(line.removeprefix(PROMPT)).splitlines()]
        elif not outdated:
            lines.append(line)
    return "\n".join(lines) + "\n"


@contextmanager
def new_folder() -> Iterator[Path]:
    """A folder for the commands of one page, with links to the data sets and logs that ship."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "datasets").symlink_to(ROOT / "datasets")
        (folder / "logs").symlink_to(ROOT / "docs" / "logs")
        yield folder


def process(
    command: str,
    folder: Path,
    complaints: int | None = subprocess.STDOUT,
    seconds: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """A command run by bash with this Python and this checkout, in a terminal of 80 columns.

    Raises subprocess.TimeoutExpired where it takes more than the seconds given.
    """
    python = Path(sys.executable).parent
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": str(COLUMNS),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        check=False,
        timeout=seconds,
    )


def output(command: str, folder: Path, complaints: int | None = subprocess.STDOUT) -> str:
    """What a command prints, by default warnings too, as a terminal would show it.

    Ends the program where it fails. complaints: None leaves what it says on stderr there.
    """
    print(f"$ {command}", file=sys.stderr, flush=True)
    ended = process(command, folder, complaints)
    if ended.returncode:
        sys.exit(f"exit status {ended.returncode}: {command}\n{ended.stdout}")
    return ended.stdout.rstrip()


def refresh(path: Path, folder: Path) -> None:
    """Write a page anew."""
    page = refreshed(path.read_text(encoding="utf-8"), lambda command: output(command, folder))
    path.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    first, *rest = (Path(name) for name in sys.argv[1:])
    if first.is_dir():
        for page in rest:
            refresh(page, first)
    else:
        for page in (first, *rest):
            with new_folder() as folder:
                refresh(page, folder)
