"""A file of another kind is refused by what it is and which command reads it; others pass."""

from pathlib import Path

import pytest
from synthetic.tidy import refused

from mlscale.files import GPU, MODEL, require_kind

# Beginnings of files as their writers make them, and a word of what is said of them.
KINDS = {
    MODEL: (b"PK\x03\x04rest", "a model file, for --model"),
    GPU: (b'{"name": "x", "compute_unit": {}}', "which mlscale.papers.gpu_file reads"),
    "device": (b'{"key": "mine", "cu_count": 4}', "a device file, for --device"),
    "table": (b"PAR1\x15\x00rest", "a Parquet table"),
    "csv": (b"kernel,time_ms\na,1\n", "text, as a table or a profiler's export is"),
}


@pytest.mark.parametrize("own", [MODEL, GPU])
@pytest.mark.parametrize("kind", KINDS)
def test_other_kinds_are_named_with_their_reader(own: str, kind: str) -> None:
    content, words = KINDS[kind]
    if kind == own:
        require_kind(content, Path("f"), own)
        return
    with refused(rf"^f: is not a .*: it is .*{words}"):
        require_kind(content, Path("f"), own)


@pytest.mark.parametrize("content", [b"\x00\x01\xff", b"{broken", b"[1]", b"{}", b"[" * 100_000])
def test_what_is_not_known_passes_to_its_reader(content: bytes) -> None:
    require_kind(content, Path("f"), MODEL)
