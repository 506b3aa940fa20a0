"""The state of a made GPU (`synthetic/nvml.py`), as a test sees and changes it."""

import json
from pathlib import Path
from typing import Any


class MadeGpu:
    """The state of the made GPU."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def special(self, **what: Any) -> None:
        """What is special from now on."""
        (self.folder / "made.json").write_text(json.dumps(what))

    @property
    def locked_mhz(self) -> int | None:
        path = self.folder / "locked"
        return int(path.read_text()) if path.exists() else None

    @property
    def marker(self) -> Path:
        return self.folder / "state" / "mlscale" / "clocks-made-0" / "before.json"
