"""When kernels run on one GPU: how long from the first to the last, and how long any of them."""

from array import array
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlscale.arrays import Floats


class Timeline:
    """The intervals in which the kernels of a trace run, in whatever order they come.

    Only kernels count. Copies and fills between them are no kernel's time, and so are idle.
    """

    def __init__(self) -> None:
        self._origin_ns: int | Fraction = 0
        self._begins_ns = array("d")  # since the origin: as floats, absolute times are not exact
        self._ends_ns = array("d")

    def add(self, begins_ns: NDArray[Any], times_s: Floats) -> None:
        """Count kernels in: when each began, and for how long it ran, (n,) each."""
        if not self._begins_ns:
            self._origin_ns = begins_ns[0]
        since_ns = (begins_ns - self._origin_ns).astype(np.float64)
        self._begins_ns.frombytes(since_ns.tobytes())
        self._ends_ns.frombytes((since_ns + times_s * 1e9).tobytes())

    @property
    def span_s(self) -> float | None:
        """From the first kernel's begin to the last one's end [s]; None without a kernel."""
        if not self._begins_ns:
            return None
        return float(np.max(self._ends_ns) - np.min(self._begins_ns)) / 1e9

    @property
    def busy_s(self) -> float | None:
        """The time in which at least one kernel runs [s]; None without a kernel."""
        span_s = self.span_s
        if span_s is None:
            return None
        begins_ns, ends_ns = np.frombuffer(self._begins_ns), np.frombuffer(self._ends_ns)
        if (begins_ns[1:] < begins_ns[:-1]).any():
            order = np.argsort(begins_ns)
            begins_ns, ends_ns = begins_ns[order], ends_ns[order]
        busy_until_ns = np.maximum.accumulate(ends_ns)[:-1]
        gaps_ns = np.subtract(begins_ns[1:], busy_until_ns, out=busy_until_ns)
        return span_s - float(gaps_ns[gaps_ns > 0].sum()) / 1e9
