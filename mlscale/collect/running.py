"""A plan carried out: a worker process for each job, one after another, and what it says."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from mlscale.collect import caches
from mlscale.collect.device import DeviceInfo
from mlscale.collect.plan import Plan
from mlscale.errors import InputError
from mlscale.files import write_text

CACHE = "cache"
_LOG = "worker.log"


def carry_out(
    plan: Plan, info: DeviceInfo, folder: Path, progress: Callable[[int], object]
) -> dict[str, str]:
    """Take every sample that the folder's cache does not have; the kernels that failed, and why.

    progress: is called with the samples of each kernel that is through. Raises InputError where a
    worker ends early.
    """
    cache = folder / CACHE
    cache.mkdir(exist_ok=True)
    for path in cache.glob("*-*.json"):
        caches.mend(path)
    failed: dict[str, str] = {}
    for job in plan.jobs(info):
        cu_count = job["cu_counts"][-1]
        path = cache / f"job{cu_count}.json"
        write_text(path, json.dumps(job))
        samples = plan.samples // len(plan.kernels) * len(job["cu_counts"]) // len(plan.cu_counts)
        with (
            (cache / _LOG).open("w+", encoding="utf-8", errors="replace") as log,
            subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "mlscale.collect.worker", str(path), str(cache)],
                stdin=subprocess.PIPE,  # its end is the worker's
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **info.environment(cu_count)},
                start_new_session=True,  # Ctrl-C reaches it through the end of its input
                text=True,
            ) as worker,
        ):
            for line in worker.stdout or ():
                said = json.loads(line)
                if said["failed"]:
                    failed.setdefault(said["kernel"], said["failed"])
                progress(samples)
            if worker.wait():
                log.seek(0)
                last = (log.read().strip().splitlines() or ["it said nothing"])[-1]
                raise InputError(f"the measuring process ended with {worker.returncode}: {last}")
    return failed
