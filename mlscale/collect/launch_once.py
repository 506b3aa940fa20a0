"""Launch kernels of the suite once each, for a profiler: CU count, then kernels.

`python -m mlscale.collect.launch_once 132 copy_4m triad_4m`
"""

import sys
from collections.abc import Sequence

from mlscale.collect.device import EntryError, MeasuredGpu
from mlscale.collect.suite import select
from mlscale.errors import InputError


def launch_once(gpu: MeasuredGpu, cu_count: int, names: Sequence[str]) -> list[str]:
    """Launch each kernel once on that many CUs; the complaints of those that cannot be."""
    complaints = []
    partition = gpu.partition(cu_count)
    try:
        for entry in select(names):
            try:
                launch = partition.prepare(entry, entry.case())
                launch.submit(1).elapsed_ms()
                launch.close()
            except EntryError as error:
                complaints.append(str(error))
    finally:
        partition.close()
    return complaints


def main(arguments: Sequence[str]) -> int:
    """Exit status 0, or 2 with a line on stderr."""
    from mlscale.collect.cuda_device import CudaGpu

    try:
        gpu = CudaGpu()
        complaints = launch_once(gpu, int(arguments[0]), arguments[1:])
        gpu.close()
    except InputError as error:
        complaints = [str(error)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 2 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
