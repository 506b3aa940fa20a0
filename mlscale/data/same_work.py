"""Further runs at other engine clocks: which clock tells most, and whether they did the same work.

The times of the same work rise by no more than the clock falls, and its power falls with it; runs
of which this is not so are refused.
"""

from collections.abc import Sequence

import numpy as np

from mlscale.arrays import Floats
from mlscale.data.device_table import find_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles
from mlscale.data.sampled import UNEXPLAINED
from mlscale.data.table import Table
from mlscale.errors import InputError, warn

LEAST_STEP = 1.05  # between the engine clocks of two runs that tell how a run scales
SECOND_CLOCK = 2 / 3  # of the base's, for a second run that tells most of the range
LOW = 0.4  # of a GPU's highest engine clock: training tables begin a little below
COARSE = 0.03  # of a run's time, between two samples: what two times tell of a clock is lost
NEAR = 1.03  # between two clocks: up to here time may stay the same within its noise
SAME_TIME = 1.01  # at the lower clock over the higher: more tell that the clock matters
HIDDEN = 1.05  # of what work slows by, over what its run does, where pauses hide it
POWER_NOISE = 1.05  # of board power between two runs of the same work
_GIVE_TIMES = (
    "import each log with the time that the same work takes (mlscale import LOG --time MS "
    "--application NAME) and give the tables; of a million tokens it is 1e9 / (tokens per second)"
)


def second_clock_mhz(profiles: Profiles) -> int:
    """The engine clock at which a second run tells most [MHz]: below the base's, if it is not low.

    Low is what a model predicts at most a little below: see LOW. It is one that the GPU is known
    to offer, where its clocks are.
    """
    device, base_mhz = find_device(profiles.device), profiles.base.engine_mhz
    offered = device.engine_clocks_mhz() if device else ()
    sheet_mhz = device.datasheet.engine_mhz if device and device.datasheet else 0.0
    highest = max(base_mhz, sheet_mhz, *offered)
    below = SECOND_CLOCK * base_mhz
    best = below if below >= LOW * highest else base_mhz / SECOND_CLOCK
    nearest: float = min(offered, key=lambda mhz: abs(mhz - best), default=best)
    return round(nearest)


def require_same_work(
    profiles: Profiles, table: Table, kernels: Sequence[str], configs: Sequence[HardwareConfig]
) -> None:
    """Raise InputError unless a table's rows can be the profiled runs at other engine clocks.

    kernels and configs: of each row. Times rise by no more than the clock falls, and power falls
    with it. Warns where a time is known too coarsely, where a run may be longer than its log, and
    where the lower clock costs no time.
    """
    base = profiles.base
    _require_whole_runs(profiles, table)
    clocks = _clock_ratios(profiles, table, configs)
    positions = {name: k for k, name in enumerate(profiles.kernels)}
    known = [positions[kernel] for kernel in kernels]
    times = table.positive("time_ms") / profiles.time_ms[known]
    powers = np.full(len(table), np.nan)
    if table.has_values("power_w") and profiles.power_w is not None:
        powers = table.positive("power_w") / profiles.power_w[known]
    sample_ms = max(
        (ms for one in (profiles, table) for ms in one.metadata.get("sample_ms", {}).values()),
        default=0.0,
    )
    shortest_ms = float(min(profiles.time_ms[known].min(), table.positive("time_ms").min()))
    if sample_ms > COARSE * shortest_ms:
        warn(
            f"{table.source}: times are known to one sample, {sample_ms:.4g} ms, "
            f"{sample_ms / shortest_ms:.0%} of the shortest run, so the intervals are too narrow; "
            "let the runs take longer, or sample more often"
        )
    for row, (clock, time, power) in enumerate(zip(clocks, times, powers, strict=True)):
        where = f"{table.source}: '{kernels[row]}' at {configs[row].engine_mhz:g} MHz"
        at_base = f"at {base.engine_mhz:g} MHz"
        _require_explained(f"{where} takes", at_base, clock, time, "logs")
        if (power if clock < 1 else 1 / power) > POWER_NOISE:
            raise InputError(
                f"{where} draws {power:.2f} times as much power as {at_base}, the same work draws "
                "more at the higher clock; give logs of runs that do the same work, under no "
                "power or thermal limit"
            )
    if not _warn_of_hidden_work(profiles, table, float(np.median(clocks)), float(np.median(times))):
        _warn_of_no_slowdown(table, profiles, clocks, times, sample_ms / shortest_ms)


def require_same_trace(
    profiles: Profiles, table: Table, kernels: Sequence[str], configs: Sequence[HardwareConfig]
) -> None:
    """Raise InputError unless a table's rows can be the profiled kernels at other engine clocks.

    kernels and configs: of each row. At each clock the sum of their times, each as often as the
    profiles' launches say, rises by no more than the clock falls. Warns where it does not rise.
    """
    clocks = _clock_ratios(profiles, table, configs)
    positions = {name: k for k, name in enumerate(profiles.kernels)}
    known = np.array([positions[kernel] for kernel in kernels])
    times = profiles.weights[known] * table.positive("time_ms")
    for clock in np.unique(clocks):
        rows = clocks == clock
        ratio = float(times[rows].sum() / profiles.run_times_ms[known[rows]].sum())
        where = f"{table.source}: at {clock * profiles.base.engine_mhz:g} MHz"
        at_base = f"at {profiles.base.engine_mhz:g} MHz"
        _require_explained(f"{where} its kernels take", at_base, float(clock), ratio, "traces")
        if (ratio if clock < 1 else 1 / ratio) < SAME_TIME and max(clock, 1 / clock) > NEAR:
            warn(
                f"{where} its kernels take {ratio:.2f} times as long as {at_base}, so that no "
                "clock seems to matter: did the GPU run at that clock? A trace does not tell; a "
                "log of nvidia-smi does"
            )


def _clock_ratios(profiles: Profiles, table: Table, configs: Sequence[HardwareConfig]) -> Floats:
    """Engine clocks over the base's, of each row. Raises InputError where they tell nothing."""
    base = profiles.base
    if memories := sorted({at.memory_mhz for at in configs} - {base.memory_mhz}):
        raise InputError(
            f"{table.source}: ran at the memory clock {memories[0]:g} MHz, the base is at "
            f"{base.memory_mhz:g}; both runs must be at the same one"
        )
    clocks = np.array([at.engine_mhz for at in configs]) / base.engine_mhz
    if np.abs(np.log(clocks)).max() < np.log(LEAST_STEP):
        raise InputError(
            f"{table.source}: ran at {configs[0].engine_mhz:g} MHz, as the base at "
            f"{base.engine_mhz:g} or nearly so, which does not tell how times scale; run the same "
            f"work at about {second_clock_mhz(profiles)} MHz, locked or by a low power cap"
        )
    return clocks


def _require_explained(what: str, at_base: str, clock: float, time: float, files: str) -> None:
    """Raise InputError on a ratio of times that a ratio of clocks does not explain."""
    least, most = sorted((1.0, 1 / clock))
    if not least / UNEXPLAINED <= time <= most * UNEXPLAINED:
        raise InputError(
            f"{what} {time:.2f} times as long as {at_base}, the same work {least:.2f} to "
            f"{most:.2f} times; give {files} of runs that do the same work"
        )


def _warn_of_no_slowdown(
    table: Table, profiles: Profiles, clocks: Floats, times: Floats, sample: float
) -> None:
    """Warn where runs take no longer at the lower clock, as runs of a set length do.

    clocks and times: of each row over the base's, of which half are such; sample: to which a time
    is known, as a part of it. Two runs of one length may differ by it.
    """
    for clock in np.unique(clocks):
        time = float(np.median(times[clocks == clock]))
        least = max(SAME_TIME, 1 + 1.5 * sample)
        if (time if clock < 1 else 1 / time) < least and max(clock, 1 / clock) > NEAR:
            warn(
                f"{table.source}: at {clock * profiles.base.engine_mhz:g} MHz the run takes "
                f"{time:.2f} times as long as at {profiles.base.engine_mhz:g} MHz, so that no "
                "clock seems to matter. If its length was set and not its work, as of a load of a "
                f"minute, this is wrong: {_GIVE_TIMES}"
            )


def _warn_of_hidden_work(profiles: Profiles, table: Table, clock: float, time: float) -> bool:
    """Warn where the GPU worked longer at the lower clock by more than the whole run took.

    clock and time: of the further run over the base's. Pauses then hide what the work loses.
    Returns whether it warned.
    """
    base_ms, other_ms = (
        sum(one.metadata.get("working_ms", {}).values()) for one in (profiles, table)
    )
    if not (base_ms and other_ms):
        return False
    worked = other_ms / base_ms
    if (worked / time if clock < 1 else time / worked) <= HIDDEN:
        return False
    lower_mhz = min(clock, 1.0) * profiles.base.engine_mhz
    warn(
        f"{table.source}: its GPU worked for {other_ms / 1e3:.4g} s, that at "
        f"{profiles.base.engine_mhz:g} MHz for {base_ms / 1e3:.4g} s: {worked:.2f} times as "
        f"long, the whole run {time:.2f} times. Slowdowns are of the whole run; what runs "
        "between its pauses, such as the answer to a request, slows by more, and so does the "
        f"whole where the pauses end, which may be below {lower_mhz:.0f} MHz"
    )
    return True


def _require_whole_runs(profiles: Profiles, table: Table) -> None:
    """Raise InputError where a log begins and ends amid a run, whose time it does not say."""
    of_logs = [one.metadata.get("open_ends", {}) for one in (profiles, table)]
    which = f"{table.source}: this log, or that of the run at {profiles.base.engine_mhz:g} MHz,"
    parts = max(sum(len(ends) > 1 for ends in log.values()) for log in of_logs)
    if parts:
        of_others = "; if some GPUs are of other jobs, name yours with --gpu"
        raise InputError(
            f"{which} begins and ends while the GPU works: parts of runs do not tell how their "
            f"times scale; log from before a run to after it, or {_GIVE_TIMES}"
            + (of_others if parts < len(profiles.kernels) else "")
        )
    if any(of_logs):
        warn(
            f"{which} begins or ends while the GPU works; if the run was longer than its log, what "
            "is predicted is wrong"
        )
