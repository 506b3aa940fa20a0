"""Rows in the layout of NV-DVFS-Benchmark's files."""

from collections.abc import Sequence
from typing import Any

KERNELS = (
    *("backpropForward", "backpropBackward", "scanExclusiveLocal1", "scanUniformUpdate"),
    *("matrixMulShared", "matrixMulGlobal", "vectorAdd", "hotspot"),
)


def rows(kernels: Sequence[str] = KERNELS, **changes: Any) -> list[dict[str, Any]]:
    """Each kernel at 2 x 2 clocks; kernel k takes 10 k + 1, 2, 3, 4 ms and 50 + k W."""
    found = []
    for k, kernel in enumerate(kernels):
        for step, (core, memory) in enumerate(((500, 600), (500, 800), (900, 600), (900, 800)), 1):
            row = {
                "": 4 * k + step,
                "appName": kernel,
                "coreF": core,
                "memF": memory,
                "argNo": f"input0{k}",
                "kernel": f"{kernel}_gpu",
                "time/ms": 10 * k + step,
                "blocks": "(3584 1 1) (128 1 1)" if k else "(6 5 4) (8 4 2)",
                "warps": 14336.0,
                "power/W": 50 + k,
            }
            found.append({**row, **changes})
    return found
