"""One trial: mlscale as a process of its own, with limits, and what is wrong with how it ended."""

import json
import math
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from readers import profile_table
from reliability_copies import GUARD_BYTES, End, ended_copy
from synthetic import bottleneck_kernels as made

from mlscale import ConfigGrid
from mlscale.data.table_files import write_table

GRID = ConfigGrid((16,), (500.0, 1000.0), (3000.0, 4000.0))
# mlscale with two worker processes, also on a machine of one core.
MLSCALE = (
    sys.executable, "-c",
    "import os, sys; os.cpu_count = lambda: 2; from mlscale.__main__ import main; sys.exit(main())",
)  # fmt: skip
PROCESSOR_S = 10
WALL_S = 120.0  # the machine may be busy
MEBIBYTES = 1024
STEERING = {chr(code) for code in (*range(9), *range(11, 32), 127, *range(0x80, 0xA0))} | set(
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
)

Faults = list[str]
Trial = Callable[[], Faults]
Attacks = dict[str, Sequence[Trial]]


class Files:
    """What the attacks begin with: made tables, profiles and models, written when asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def table(self) -> Path:
        """Six kernels at four configurations, as CSV."""
        made.measurements(6, grid=GRID).write(self.folder / "t.csv")
        return self.folder / "t.csv"

    @cached_property
    def profile(self) -> Path:
        """The six kernels at the base."""
        profiles = made.measurements(6, grid=GRID).profiles(GRID.mid)
        write_table(profile_table(profiles), self.folder / "p.csv")
        return self.folder / "p.csv"

    @cached_property
    def model(self) -> Path:
        """A model of the table."""
        path = self.folder / "m.mlscale"
        words = ("train", self.table, "--base", "mid", "--predictor", "nearest", "-o", path)
        if faults := tried(*words, expected={0}):
            raise RuntimeError(str(faults))
        return path


def begun(*words: object, **options: Any) -> subprocess.Popen[str]:
    """Begin mlscale in a session of its own, whose output is read at the end."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.Popen(
        [*MLSCALE, *map(_word, words)], text=True, start_new_session=True, **pipes
    )


def _word(word: object) -> str:
    return os.fsdecode(word) if isinstance(word, bytes) else str(word)


def ended(process: subprocess.Popen[str], seconds: float = 300.0) -> tuple[int, str]:
    """Exit status, and what it said on stderr."""
    _, said = process.communicate(timeout=seconds)
    return process.returncode, said or ""


def tried(
    *words: object,
    expected: Collection[int] = (0, 2),
    processor_s: float = PROCESSOR_S,
    wall_s: float = WALL_S,
    mebibytes: int = MEBIBYTES,
    written: Sequence[Path] = (),
    check: Callable[[str], Faults] = lambda _: [],
    environment: dict[str, str] | None = None,
) -> Faults:
    """Run a command within limits; what is wrong with how it ended, and with what it printed.

    written: files that it may write; none may be left where it is refused. check: what else may be
    wrong with what it printed, where it was not refused. environment: of a
    process that is begun anew.
    """
    name = " ".join(str(word)[-60:] for word in words[:3])
    with (
        NamedTemporaryFile("w+", errors="surrogateescape") as out,
        NamedTemporaryFile("w+") as said,
    ):
        if environment is None:
            end = ended_copy([*map(_word, words)], out.name, said.name, wall_s)
        else:
            end = _ended_anew(words, out, said, wall_s, environment)
        printed = out.read()
        faults = _faults_of(end.status, printed, said.read(), expected)
        faults += [] if end.status else check(printed)
    if end.hangs:
        faults = [f"over {wall_s:g} s"]
    elif end.processor_s > processor_s:
        faults.append(f"over {processor_s:g} s of processor")
    if end.mebibytes > mebibytes:
        faults.append(f"{end.mebibytes} MiB")
    if end.status:
        faults += [f"leaves {path.name}" for path in written if path.exists()]
    return [f"{name}: {fault}" for fault in faults]


def _ended_anew(
    words: Sequence[object], out: IO[str], said: IO[str], wall_s: float, environment: dict[str, str]
) -> End:
    """Run a command as a process that is begun anew."""
    number = begun(*words, stdout=out, stderr=said, env=environment).pid
    resource.prlimit(number, resource.RLIMIT_AS, (GUARD_BYTES,) * 2)
    timer = threading.Timer(wall_s, lambda: os.killpg(number, signal.SIGKILL))
    timer.start()
    _, state, usage = os.wait4(number, 0)
    hangs = not timer.is_alive()
    timer.cancel()
    seconds = usage.ru_utime + usage.ru_stime
    out.seek(0)
    said.seek(0)
    return End(os.waitstatus_to_exitcode(state), hangs, seconds, usage.ru_maxrss >> 10)


def _faults_of(status: int, out: str, said: str, expected: Collection[int]) -> Faults:
    faults = []
    if status not in expected:
        faults.append(f"exit status {status}: {said[-200:]!a}")
    elif status:
        faults += in_one_line(status, said)
    if raw := [line for line in said.splitlines() if not line.startswith("mlscale: ")]:
        faults.append(f"says {raw[-1][:200]!a}")
    if STEERING & set(out + said):
        faults.append("prints control characters")
    if numbers := {"nan", "inf", "-inf", "infinity"} & set(
        out.lower().replace(",", " ").replace(":", " ").split()
    ):
        faults.append(f"prints {numbers}")
    return faults


def in_one_line(status: int, said: str) -> Faults:
    """What is wrong with how a command was refused, or was not."""
    if status == 0:
        return []
    errors = [line for line in said.splitlines() if line.startswith("mlscale: error: ")]
    is_clean = status == 2 and len(errors) == 1 and said.endswith(errors[0] + "\n")
    return [] if is_clean else [f"exit status {status}: {said[-300:]!a}"]


def outside_their_intervals(document: str) -> Faults:
    """Which rows of predictions (JSON) are not finite, or not within their intervals."""
    faults = []
    for row in json.loads(document)["predictions"]:
        for quantity in ("time_ms", "power_w", "energy_mj"):
            ends = [row.get(f"{quantity}{end}") for end in ("_low", "", "_high")]
            given = [value for value in ends if value is not None]
            if not all(map(math.isfinite, given)) or given != sorted(given):
                faults.append(f"{row['kernel']}: {quantity} {ends}")
    return faults[:1]
