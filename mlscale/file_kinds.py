"""What kind of file a reader was given in place of its own, and which command reads that kind."""

from pathlib import Path

from mlscale.errors import InputError
from mlscale.files import parse_json

MODEL, GPU = "mlscale model", "gpu.json"
_OWN = {
    MODEL: "a whole mlscale model file",
    GPU: "a gpu.json of 'mlscale collect --micro'",
}
_READERS = {
    MODEL: "a model file, for --model of 'mlscale predict' and 'mlscale advise'",
    GPU: "a gpu.json, which mlscale.papers.gpu_file reads",
    "device": "a device file, for --device",
    "table": "a Parquet table, for 'mlscale train' and 'mlscale predict FILE'",
    "text": "text, as a table or a profiler's export is, for 'mlscale predict FILE'",
}

_STARTS = {b"PK\x03\x04": MODEL, b"PAR1": "table"}


def require_kind(content: bytes, path: Path, own: str) -> None:
    """Raise InputError, saying what it is, where a content is known to be of another kind.

    own: the kind wanted, MODEL or GPU. What is of no kind that is known passes.
    """
    kind = _kind(content, path)
    if kind not in (None, own):
        raise InputError(f"{path}: is not {_OWN[own]}: it is {_READERS[kind]}")


def _kind(content: bytes, path: Path) -> str | None:
    """Return the key of _READERS that a file's content has; None where it is not known."""
    for start, kind in _STARTS.items():
        if content.startswith(start):
            return kind
    try:
        text = content.decode()
        if not text.lstrip("\ufeff \n\r\t").startswith(("{", "[")):
            return None if "\0" in text else "text"
        document = parse_json(text, str(path))
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    keys = {"compute_unit": GPU, "key": "device"}
    return next((kind for key, kind in keys.items() if key in document), None)
