"""Which tool wrote a log: known by its header, never by the file's name."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mlscale.errors import InputError
from mlscale.files import read_bytes
from mlscale.profilers.exports.unread import TITLE_LINES, mend_of
from mlscale.profilers.sampled import amd_smi, dcgm, nvidia_smi, prometheus, rocm_smi
from mlscale.profilers.sampled.log import Lines, Sample, SampledLog, logs_of

TOOLS = ("dcgm", "nvidia-smi", "rocm-smi", "amd-smi")
_HEAD_BYTES = 1 << 18
_LONGEST_HEADER = 1 << 16
_JSON_HEAD = 1 << 10  # of a document that may be one long line, what tells its form
_QUERY_NAMES = r"power\.draw|utilization\.gpu|clocks\.(current\.)?(sm|gr|graphics|mem|memory)\b"
_UNIT = r"( \[[^]]*\])?"
_NAMES = r'("?"?,)?"?[a-z_.]+{0}"?(, ?"?[\w.]+{0}"?)*\s*$'  # pandas and R number rows, and quote


@dataclass(frozen=True)
class LogFormat:
    """One kind of log. header: matches the line at which it begins; read: its samples."""

    tool: str
    title: str
    header: re.Pattern[str]
    read: Callable[[Path, Lines], Iterator[Sample]]


# nvidia-smi itself puts units behind the names, with 'nounits' too.
OWN_SCRIPT = LogFormat(
    "nvidia-smi",
    "a script of your own (nvidia-smi's names)",
    re.compile(rf"(?=.*\b({_QUERY_NAMES}))" + _NAMES.format("")),
    nvidia_smi.read_query,
)


FORMATS = (
    LogFormat("dcgm", "dcgmi dmon", re.compile(r"\s*#\s*Entity\s"), dcgm.read_dmon),
    LogFormat("dcgm", "Prometheus", prometheus.HEADER, prometheus.read_answer),
    OWN_SCRIPT,
    LogFormat(
        "nvidia-smi", "nvidia-smi --query-gpu",
        re.compile(rf"(?=.*\b({_QUERY_NAMES}))" + _NAMES.format(_UNIT)),
        nvidia_smi.read_query,
    ),
    LogFormat(
        "nvidia-smi", "nvidia-smi dmon",
        re.compile(r"\s*#\s*(Date,?\s+)?(Time,?\s+)?gpu[,\s](?!.*\bpid\b)"), nvidia_smi.read_dmon,
    ),
    LogFormat("rocm-smi", "rocm-smi --csv", re.compile(r"device,"), rocm_smi.read_csv),
    LogFormat(
        "amd-smi", "amd-smi metric --csv", re.compile(r"(timestamp,)?gpu,.*\bsocket_power\b"),
        amd_smi.read_csv,
    ),
    LogFormat(
        "amd-smi", "amd-smi monitor --csv",
        re.compile(r"(timestamp,)?gpu,.*\b(power_usage|gfx_clk)\b"), amd_smi.read_csv,
    ),
)  # fmt: skip


def log_format(path: Path) -> LogFormat | None:
    """The format of a log, from the first 256 KiB of the file; None if it is none."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError:
        return None
    return _format(list(enumerate(_decoded(head).splitlines(), 1)))[0]


def read_logs(path: Path, tool: str | None = None) -> tuple[LogFormat, list[SampledLog]]:
    """The log of each GPU in a file. tool: one of TOOLS; None for any. Raises InputError."""
    lines = _lines(path)
    form, begin = _format(lines)
    if form is None:
        first = next((text.strip()[:60] for _, text in lines if text.strip()), "")
        mends = (mend_of(text) for _, text in lines[:TITLE_LINES])
        raise InputError(
            f"{path}: holds no log that mlscale knows; it begins with '{first}'; "
            + next(filter(None, mends), "see docs/sampled-logs.md for the commands that write one")
        )
    if tool not in (None, form.tool):
        raise InputError(
            f"{path}: is of {form.title}; import it with 'import {form.tool}' or 'auto'"
        )
    while not lines[-1][1].strip():
        lines = lines[:-1]
    return form, logs_of(form.read(path, lines[begin:]), path, form.title)


def _format(lines: Lines) -> tuple[LogFormat | None, int]:
    """The format of the first line that is a header, and where that line stands."""
    for position, (_, text) in enumerate(lines):
        if text.strip() in ("{", "["):  # JSON over several lines
            further = (text for _, text in lines[position + 1 : position + 3])
            text = "".join([text.strip(), *further])  # noqa: PLW2901
        if text.startswith(("{", "[")):
            text = text[:_JSON_HEAD]  # noqa: PLW2901
        if len(text) <= _LONGEST_HEADER:
            for form in FORMATS:
                if form.header.match(text):
                    return form, position
    return None, 0


def _decoded(content: bytes) -> str:
    """The text of a log, which Windows' shell writes in UTF-16."""
    utf_16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    return content.decode("utf-16" if utf_16 else "utf-8-sig", errors="replace")


def _lines(path: Path) -> Lines:
    """The numbered lines of a log. Raises InputError on what is not text."""
    text = _decoded(read_bytes(path))
    if "\0" in text:
        raise InputError(f"{path}: is not text; give the log as the tool prints it")
    return list(enumerate(text.splitlines(), 1))
