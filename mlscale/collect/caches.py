"""kernel_tuner's cache files, one for each kernel: mended after a kill, and read."""

import json
from pathlib import Path
from typing import Any

from mlscale.files import read_bytes


def mend(path: Path) -> None:
    """Take away a last line that a kill cut off, or the file where no header is whole."""
    text = read_bytes(path).decode("utf-8", "replace").rstrip()
    while text and _parsed(text) is None:
        text = text[: max(text.rfind("\n"), 0)].rstrip()
    if text:
        path.write_text(text + "\n", encoding="utf-8")
    else:
        path.unlink()


def samples(path: Path) -> list[dict[str, Any]]:
    """What the file holds, a dictionary for each configuration; nothing without a file."""
    if not path.is_file():
        return []
    document = _parsed(path.read_text(encoding="utf-8", errors="replace").rstrip())
    return list(document["cache"].values()) if document else []


def _parsed(text: str) -> dict[str, Any] | None:
    """The document, of a file that may not be closed; None where a line is cut off."""
    for end in ("", "}}"):
        try:
            document = json.loads(text.rstrip(",") + end)
        except ValueError:
            continue
        if isinstance(document, dict) and isinstance(document.get("cache"), dict):
            return document
    return None
