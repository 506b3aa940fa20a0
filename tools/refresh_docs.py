"""Run the commands shown in a page anew and put what they print in their place.

    python tools/refresh_docs.py FOLDER PAGE...

In a fenced block a line that begins with '$ ' is a command; the lines up to the next one, or to the
end of the block, are what it printed. Commands run in FOLDER, in the page's order; a command that
fails ends the work before the page is written.
"""

import subprocess
import sys
from pathlib import Path

FENCE = "```"


def refreshed(page: str, folder: Path) -> str:
    """The page with every command's output as it is now."""
    lines: list[str] = []
    fenced = shown = False
    for line in page.splitlines():
        if line.startswith(FENCE):
            fenced, shown = not fenced, False
        if fenced and line.startswith("$ "):
            shown = True
            lines += [line, *output(line.removeprefix("$ "), folder)]
        elif not shown:
            lines.append(line)
    return "\n".join(lines) + "\n"


def output(command: str, folder: Path) -> list[str]:
    """What a command prints, warnings first, as a terminal would show it."""
    print(f"$ {command}", file=sys.stderr)
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"exit status {done.returncode}: {done.stdout}")
    return done.stdout.rstrip().splitlines()


if __name__ == "__main__":
    for name in sys.argv[2:]:
        path = Path(name)
        path.write_text(refreshed(path.read_text(encoding="utf-8"), Path(sys.argv[1])), "utf-8")
