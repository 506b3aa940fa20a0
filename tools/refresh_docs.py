"""Run the commands shown in a page anew and put what they print in their place.

    python tools/refresh_docs.py FOLDER PAGE...

In a fenced block a line that begins with '$ ' is a command; the lines up to the next one, or to the
end of the block, are what it printed. Commands run in FOLDER, in the page's order; a command that
fails ends the work before the page is written.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

FENCE = "```"
PROMPT = "$ "


def shown(page: str) -> list[tuple[str, str]]:
    """Each command of a page with the output that the page shows below it."""
    pairs: list[tuple[str, list[str]]] = []
    fenced = output_follows = False
    for line in page.splitlines():
        if line.startswith(FENCE):
            fenced, output_follows = not fenced, False
        elif fenced and line.startswith(PROMPT):
            output_follows = True
            pairs.append((line.removeprefix(PROMPT), []))
        elif output_follows:
            pairs[-1][1].append(line)
    return [(command, "\n".join(lines).rstrip()) for command, lines in pairs]


def refreshed(page: str, run: Callable[[str], str]) -> str:
    """The page with every command's output as `run` gives it."""
    lines: list[str] = []
    fenced = outdated = False
    for line in page.splitlines():
        if line.startswith(FENCE):
            fenced, outdated = not fenced, False
        if fenced and line.startswith(PROMPT):
            outdated = True
            lines += [line, *run(line.removeprefix(PROMPT)).splitlines()]
        elif not outdated:
            lines.append(line)
    return "\n".join(lines) + "\n"


def output(command: str, folder: Path, complaints: int | None = subprocess.STDOUT) -> str:
    """What a command prints, by default warnings first, as a terminal would show it.

    Ends the program where it fails. complaints: None leaves what it says on stderr there.
    """
    print(f"$ {command}", file=sys.stderr, flush=True)
    process = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        check=False,
    )
    if process.returncode:
        sys.exit(f"exit status {process.returncode}: {command}\n{process.stdout}")
    return process.stdout.rstrip()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        path = Path(name)
        page = refreshed(path.read_text(encoding="utf-8"), lambda command: output(command, folder))
        path.write_text(page, encoding="utf-8")
