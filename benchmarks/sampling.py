"""What sampling a GPU takes of a processor: `mlscale measure` at 10 Hz, on a made NVML.

Below 1 % of one core is asked. The made NVML reads files, which a driver does not; the driver's
calls themselves are not in it, as no GPU is here. Processor seconds over those of the clock.
"""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from table import Row
from timing import timed

sys.path.append(str(Path(__file__).parents[1] / "tests"))
SECONDS = 20
RATES = (10, 100)


def rows() -> Iterator[Row]:
    """The share of a core at each rate of sampling."""
    from synthetic import nvml

    from mlscale.sensors.boards import boards_at_hand
    from mlscale.sensors.recorder import Recorder

    sys.modules["pynvml"] = nvml
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MADE_NVML"] = folder
        for hz in RATES:
            with Recorder(boards_at_hand(["0"]), hz) as recorder:
                _, spent = timed(lambda: time.sleep(SECONDS))
            share = 100 * spent.processor_s / spent.wall_s
            samples = len(recorder.rows["0"])
            yield Row(f"sampling at {hz} Hz, {samples} samples", f"{share:.2f} % core")
