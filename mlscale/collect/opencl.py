"""The first OpenCL device that runs a kernel, sought by processes of their own.

OpenCL's loader reads its environment once in a process, and a compiler may end its process.
`python -m mlscale.collect.opencl N` prints the name of device N, runs a kernel on it, and prints
what it is.
"""

import json
import os
import subprocess
import sys
from itertools import count
from typing import Any

from mlscale.errors import InputError

# What is added to the environment: nothing first, then the place of the system's OpenCL.
_ENVIRONMENTS: tuple[dict[str, str], ...] = ({}, {"OCL_ICD_VENDORS": "/etc/OpenCL/vendors"})
_KERNEL = """
__kernel void one(__global int *out)
{ out[0] = 1; }
"""
_POCL = "Portable Computing Language"
_INSTALL = "install one for this processor (apt-get install pocl-opencl-icd), or the GPU's driver"
# A processor's caches are no GPU's L2: so small that the micro-benchmarks end soon.
_PROCESSOR_SET = 2**18


def device_that_builds() -> dict[str, Any]:
    """What is said of it, by the names of `DeviceInfo`; GPUs come first.

    Raises InputError that says what was tried, and ImportError without pyopencl.
    """
    import pyopencl  # noqa: F401

    tried: dict[str, str] = {}
    for environment in _ENVIRONMENTS:
        for place in count():
            done = subprocess.run(  # noqa: S603
                [sys.executable, "-m", __name__, str(place)],
                env=os.environ | environment,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            name, *said = done.stdout.splitlines() or [""]
            if done.returncode == 0 and said:
                return {**json.loads(said[-1]), "seen_by": environment}
            if done.returncode:
                where = environment.get("OCL_ICD_VENDORS", "its loader")
                tried.setdefault(name or where, _why(done))
            if not name:  # there are no more
                break
    what = "; ".join(map(": ".join, tried.items())) or "it has no device"
    raise InputError(f"OpenCL runs no kernel here ({what}); {_INSTALL}")


def _why(done: subprocess.CompletedProcess[str]) -> str:
    """The compiler's first error, else the last line."""
    lines = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
    return next((line for line in lines if "error: " in line), lines[-1])


def main(place: int) -> None:
    """Print the device's name, run the kernel, and print the device as JSON."""
    import pyopencl

    platforms = [platform.get_devices() for platform in pyopencl.get_platforms()]
    devices = [
        (p, n, device) for p, there in enumerate(platforms) for n, device in enumerate(there)
    ]
    gpu = pyopencl.device_type.GPU
    devices.sort(key=lambda found: not found[2].type & gpu)
    if place == len(devices):
        return
    platform, number, device = devices[place]
    print(f"{device.platform.name} {device.driver_version}", flush=True)
    context = pyopencl.Context([device])
    queue = pyopencl.CommandQueue(context)
    out = pyopencl.Buffer(context, pyopencl.mem_flags.WRITE_ONLY, 4)
    pyopencl.Program(context, _KERNEL).build().one(queue, (1,), None, out)
    queue.finish()
    info = {
        "backend": "opencl",
        "name": device.name,
        "uuid": f"{device.name}, {device.driver_version}",
        "driver": device.platform.version,
        "cu_count": device.max_compute_units,
        "l2_bytes": device.global_mem_cache_size if device.type & gpu else _PROCESSOR_SET,
        "wave_size": 32,
        "engine_mhz": float(device.max_clock_frequency),
        "cu_axis": "threads" if device.platform.name == _POCL else "",
        "platform": platform,
        "place": number,
    }
    print(json.dumps(info))


if __name__ == "__main__":
    main(int(sys.argv[1]))
