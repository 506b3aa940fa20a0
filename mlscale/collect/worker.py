"""The process that measures: `python -m mlscale.collect.worker JOB CACHE`; JOB is a JSON file.

It writes a line of JSON for each kernel, {"kernel": name, "failed": why or null}, and ends when
whoever started it does: when its standard input is closed. `… JOB --launch` launches each kernel
once, for a profiler.
"""

import json
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlscale.collect.device import DeviceInfo
from mlscale.collect.entries import Entry

_LONGEST = 300


def entries_of(job: dict[str, Any]) -> tuple[Entry, ...]:
    """The kernels of a job."""
    info = DeviceInfo(**job["info"])
    if job["suite"] == "micro":
        from mlscale.collect.micro_kernels import micro_entries

        return micro_entries(info)
    from mlscale.collect.suite import select

    return select(job["suite"], job["kernels"], info.backend)


def main(arguments: Sequence[str]) -> int:
    """Carry out the job; the exit status."""
    sys.modules["torch"] = None  # type: ignore[assignment]  # kernel_tuner would load it, for no use
    from mlscale.collect.measuring import launch, measure

    job = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    if arguments[1] == "--launch":
        for entry in entries_of(job):
            launch(entry, DeviceInfo(**job["info"]))
        return 0
    out, sys.stdout = sys.stdout, sys.stderr  # kernel_tuner prints
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for entry in entries_of(job):
        failed = None
        try:
            cache = Path(arguments[1]) / f"{entry.name}-{job['cu_counts'][-1]}.json"
            results = measure(entry, job, cache)
            if bad := [result["__error__"] for result in results if "__error__" in result]:
                failed = str(bad[0])
        except Exception as error:  # of one kernel; the others go on
            failed = " ".join(str(error).split())[:_LONGEST]
        print(json.dumps({"kernel": entry.name, "failed": failed}), file=out, flush=True)
    return 0


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
