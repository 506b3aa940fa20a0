"""Counters by Nsight Compute, run as a program over one launch of each kernel."""

import csv
import io
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlscale.collect.entries import Entry
from mlscale.collect.plan import PlanStep
from mlscale.data.profiles import NOT_COUNTERS
from mlscale.data.tables import Table
from mlscale.errors import DataWarning, InputError
from mlscale.profilers import import_exports

_METRICS = Path(__file__).with_name("ncu_metrics.txt")
_NO_RIGHT = "ERR_NVGPUCTRPERM"
_HOW_TO_ALLOW = (
    "no right to read the GPU's counters (ERR_NVGPUCTRPERM): run as root, or let the driver allow "
    "it (NVreg_RestrictProfilingToAdminUsers=0)"
)


def metrics(capability: int) -> tuple[str, ...]:
    """What Nsight Compute is asked for, as in docs/profiling.md, of a GPU of that capability."""
    names = tuple(_METRICS.read_text(encoding="utf-8").split())
    if capability < 75:  # no uniform pipe
        names = tuple(name for name in names if "pipe_uniform" not in name)
    if capability >= 120:
        names = tuple(name.replace("dram__bytes_", "dram__bytes_op_") for name in names)
    return names


class NsightCompute:
    """Runs `ncu` over `python -m mlscale.collect.launch_once`."""

    def __init__(
        self, program: str, entries: Sequence[Entry], device: str, capability: int
    ) -> None:
        self._program, self._device, self._metrics = program, device, metrics(capability)
        self._entries = [entry for entry in entries if entry.capability <= capability]

    @staticmethod
    def find() -> str | None:
        """The program on the path."""
        return shutil.which("ncu")

    def __call__(self, step: PlanStep) -> dict[str, Any]:
        """The counters at a step's CU count: {'counters': by kernel, 'missing': why not all}."""
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "ncu.csv"
            names = [entry.name for entry in self._entries]
            command = [
                self._program, "--csv", "--page", "raw", "--print-units", "base",
                "--clock-control", "none", "--log-file", str(log), "--metrics",
                ",".join(self._metrics), "--kernel-name", f"regex:^({'|'.join(names)})$",
                sys.executable, "-m", "mlscale.collect.launch_once", str(step.cu_count), *names,
            ]  # fmt: skip
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, errors="replace", check=False
            )
            text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
            if _NO_RIGHT in text + done.stdout + done.stderr:
                return {"missing": [_HOW_TO_ALLOW]}
            said = done.stderr if text.strip() == "" else text
            last = (said.strip().splitlines() or ["nothing was printed"])[-1][:200]
            reason = f"ncu ended with {done.returncode}: {last}"
            return self._imported(text, Path(folder), step.cu_count, reason)

    def _imported(self, text: str, folder: Path, cu_count: int, reason: str) -> dict[str, Any]:
        """Each kernel's launches through the importer: unlocked clocks differ between kernels.

        reason: why there are no counters of a kernel that the text does not have.
        """
        found: dict[str, dict[str, float]] = {}
        missing = []
        for kernel, part in by_kernel(text).items():
            path = folder / f"{kernel}.csv"
            path.write_text(part, encoding="utf-8")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DataWarning)
                    imported = import_exports(
                        [path], "ncu", device=self._device, base={"cu_count": cu_count}
                    )
            except InputError as error:
                missing.append(f"{kernel}: {str(error).removeprefix(str(path) + ': ')}")
                continue
            found[kernel] = _counters(imported.table)
        lacking = [e.name for e in self._entries if e.name not in found]
        if lacking and not missing:
            missing.append(
                f"of {', '.join(lacking[:3])}{' …' if len(lacking) > 3 else ''} at {cu_count} CUs "
                f"({reason})"
            )
        return {"counters": found, "missing": missing}


def by_kernel(text: str) -> dict[str, str]:
    """The raw page parted by kernel: header, units, and the rows of each, without other output."""
    header: list[str] | None = None
    units: list[str] | None = None
    rows: dict[str, list[list[str]]] = {}
    for row in csv.reader(io.StringIO(text)):
        if header is None:
            header = row if "Kernel Name" in row else None
        elif len(row) != len(header):
            continue
        elif units is None:
            units = row
        else:
            rows.setdefault(row[header.index("Kernel Name")], []).append(row)
    parts = {}
    for kernel, of_kernel in rows.items():
        part = io.StringIO()
        csv.writer(part, quoting=csv.QUOTE_ALL).writerows([header or [], units or [], *of_kernel])
        parts[kernel] = part.getvalue()
    return parts


def _counters(table: Table) -> dict[str, float]:
    return {
        name: float(values[0])
        for name, values in table.numbers.items()
        if name not in NOT_COUNTERS and values[0] == values[0]
    }
