"""Files of a text, as a profiler, a monitor or a user leaves them."""

from pathlib import Path


def written(folder: Path, text: str, name: str = "run.log") -> Path:
    """A file of that text in the folder."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path
