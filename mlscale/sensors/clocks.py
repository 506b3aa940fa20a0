"""Clocks and power limits: set, and put back in every case, after a kill at the next start.

While they may be set, a marker with what was before stands in a folder that this process alone
holds. A marker in a folder that nobody holds is of a process that was killed.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from mlscale.errors import InputError, warn
from mlscale.files import only_writer, parse_json_object, read_bytes, write_text
from mlscale.sensors.boards import GpuBoard, SettingError
from mlscale.text import shell_line

# Not from a manual: how long a GPU may take to run at a clock that was just set.
SETTLE_S = 0.2
# A process killed as it starts a program leaves the folder to that one until it has begun.
_STARTING_S, _TRIES = 0.5, 10
_RUN = Path("/run")  # emptied as the system starts, when a driver forgets what was set too


def set_board(board: GpuBoard, settings: Mapping[str, int]) -> None:
    """Hold engine_mhz, memory_mhz [MHz] and cap_w [W], as far as given. Raises SettingError."""
    try:
        board.hold(settings)
    except SettingError as error:
        what = ", ".join(f"{name} {value}" for name, value in settings.items())
        raise SettingError(f"GPU {board.index}: {what} cannot be set ({error})") from None
    time.sleep(SETTLE_S)


@contextmanager
def given_back(board: GpuBoard, sets_board: bool) -> Iterator[None]:
    """Within the block the board may be set; after it, it is as before.

    If nothing is to be set, only what a killed process left is put back. Raises SettingError if
    it may not be set, and InputError if another mlscale holds the board, or if it cannot be put
    back.
    """
    folder = _folder(board)
    marker = folder / "before.json"
    if not sets_board and not marker.exists():
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}; no clock is set") from None
    with ExitStack() as stack:
        _hold_alone(stack, folder, board)
        if marker.exists():
            _put_back_of_killed(board, marker, sets_board)
        if not sets_board:
            yield
            return
        before = board.settings()
        try:
            board.put_back(before)  # as it is: the right to set is known before anything takes time
        except SettingError as error:
            raise SettingError(
                f"GPU {board.index}: no permission to set its clocks ({error}); run as root, or "
                "ask your site (under Slurm: --gpu-freq)"
            ) from None
        write_text(marker, json.dumps(before))
        try:
            yield
        finally:
            _put_back(board, marker)


def _hold_alone(stack: ExitStack, folder: Path, board: GpuBoard) -> None:
    """Hold the folder till the end of the stack. Raises InputError where another mlscale does."""
    for _ in range(_TRIES):
        try:
            stack.enter_context(only_writer(folder))
        except InputError:
            time.sleep(_STARTING_S / _TRIES)
        else:
            return
    raise InputError(
        f"GPU {board.index}: another mlscale holds its clocks, here or in another process; wait"
    )


def _folder(board: GpuBoard) -> Path:
    """Where the marker of a board is: one place for all of the machine, if this may write there."""
    name = f"mlscale/clocks-{board.uuid}"
    shared = _RUN / name
    if state := os.environ.get("XDG_STATE_HOME"):
        return Path(state) / name
    if os.path.exists(shared / "before.json") or os.access(_RUN, os.W_OK):  # noqa: PTH110, may not
        return shared
    return Path.home() / ".local" / "state" / name


def _put_back_of_killed(board: GpuBoard, marker: Path, sets_board: bool) -> None:
    """What a killed process left; one that may not put it back is told, unless it is to set too."""
    why = f"GPU {board.index}: an earlier run was killed while it held the clocks"
    try:
        _put_back(board, marker)
    except InputError as error:
        if sets_board:
            raise
        warn("L04", f"{why}; {error}")
        return
    warn("L04", f"{why}; they are reset first", "note")


def _put_back(board: GpuBoard, marker: Path) -> None:
    """Set the board as the marker says. Raises InputError."""
    try:
        board.put_back(_settings_before(board, marker))
        marker.unlink()
    except (InputError, OSError) as error:
        raise InputError(
            f"GPU {board.index}: clock not reset ({error}); as root: {board.commands(0)[1]} && "
            f"{shell_line(['rm', str(marker)])}"
        ) from None


def _settings_before(board: GpuBoard, marker: Path) -> dict[str, Any]:
    """What a marker says, which may be damaged. Raises InputError."""
    before, now = parse_json_object(read_bytes(marker), str(marker)), board.settings()
    if before.keys() != now.keys() or any(
        not isinstance(before[name], type(value) | None) for name, value in now.items()
    ):
        raise InputError(f"{marker}: is damaged")
    return before
