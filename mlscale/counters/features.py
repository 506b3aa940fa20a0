"""Features: what a predictor computes from the counters of one run at the base.

Four kinds. `raw`: the counters as they are. `rates`: counts per instruction and log counts per
millisecond. `utilisation`: fractions of the device's peaks. `table2`: the 22 of Wu et al., HPCA
2015, Table II. With `+power` behind it, such as `utilisation+power`, a kind has the power at the
base beside it. Nothing is fitted here: a value depends on its own kernel and the device alone.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mlscale.arrays import Floats
from mlscale.counters.utilisation import UTILISATIONS
from mlscale.data.devices import Device, device_keys
from mlscale.data.profiles import Profiles
from mlscale.data.tables import missing_column
from mlscale.errors import InputError

FeatureKind = Literal["raw", "rates", "utilisation", "table2"]

FEATURE_KINDS: tuple[str, ...] = get_args(FeatureKind)
WITH_POWER = "+power"
BASE_POWER = "base_power_w"

TABLE_2 = (
    *("VALUInsts", "SALUInsts", "VFetchInsts", "SFetchInsts", "VWriteInsts", "LDSInsts"),
    *("VALUUtilization", "VALUBusy", "SALUBusy", "CacheHit"),
    *("MemUnitBusy", "MemUnitStalled", "WriteUnitStalled", "LDSBankConflict", "Occupancy"),
    *("V_IPC", "MemTime", "FetchPerLoadByte", "WritePerStoreByte", "NumWorkGroups"),
    *("ReadBandwidth", "WriteBandwidth"),
)


_INSTRUCTIONS = ("inst_executed", "inst_issued")


@dataclass(frozen=True, eq=False)
class Features:
    """Values (K, F) of the named features; NaN where a kernel's counters do not give one."""

    names: tuple[str, ...]
    values: Floats


def compute_features(
    kind: str,
    profiles: Profiles,
    device: Device | None,
    names: tuple[str, ...] | None = None,
    optional: Collection[str] = (),
) -> Features:
    """The features of one kind; all that the counters give, or exactly those named.

    A named feature that is optional is NaN where its counters are not there. Raises InputError
    when another needs a counter that is not there, or when the counters give no feature of the
    kind at all.
    """
    match kind.removesuffix(WITH_POWER):
        case "raw":
            columns = {name: profiles.counter(name) for name in profiles.counter_names}
        case "table2":
            columns = {n: profiles.counter(n) for n in TABLE_2 if profiles.has_counter(n)}
        case "rates":
            columns = _rates(profiles)
        case "utilisation":
            columns = _utilisations(profiles, device)
        case _:
            raise InputError(f"there are no features '{kind}'; one of {', '.join(FEATURE_KINDS)}")
    if kind.endswith(WITH_POWER):
        columns |= _base_power(profiles, names is None)
    if names is None:
        if not columns:
            there_are = ", ".join(profiles.counter_names) or (
                "none: profile with counters, or choose a predictor without features, mean-surface"
            )
            raise InputError(f"the counters give no '{kind}' features; there are {there_are}")
        return Features(tuple(columns), _side_by_side(columns, tuple(columns)))
    lacking = [name for name in names if name not in columns]
    needed = [name for name in lacking if name not in optional]
    if needed:
        raise InputError(_why_not(needed, len(set(names) - set(optional)), kind, profiles))
    for name in lacking:
        columns[name] = np.full(len(profiles.kernels), np.nan)
    return Features(names, _side_by_side(columns, names))


def _base_power(profiles: Profiles, needed: bool) -> dict[str, Floats]:
    if profiles.power_w is not None:
        return {BASE_POWER: profiles.power_w}
    if needed:
        raise InputError(f"features with '{WITH_POWER}' need the column 'power_w'")
    return {}


def _side_by_side(columns: dict[str, Floats], names: tuple[str, ...]) -> Floats:
    return np.ascontiguousarray(np.array([columns[name] for name in names]).T)


def kinds_for(counter_names: tuple[str, ...], device: str) -> tuple[str, ...]:
    """The kinds of features that a table's counters and device give, what suits best first."""
    suits = {
        "table2": len(set(TABLE_2) & set(counter_names)) >= len(TABLE_2) // 2,
        "utilisation": "dram_read_transactions" in counter_names and device in device_keys(),
        "rates": bool(set(_INSTRUCTIONS) & set(counter_names)),
        "raw": True,
    }
    return tuple(kind for kind, does in suits.items() if does)


def default_kind(counter_names: tuple[str, ...], device: str) -> str:
    """table2 for AMD's names, utilisation for nvprof's on a known device, else raw."""
    best = kinds_for(counter_names, device)[0]
    return "raw" if best == "rates" else best


def is_count(name: str) -> bool:
    """Whether an nvprof counter counts events, and so grows with the kernel's work."""
    ratio = name.endswith(
        ("_per_request", "_rate", "_throughput", "per_warp", "_per_cycle", "_overhead")
    )
    counted = name in ("warps", "issue_slots") or name.endswith("_executed")
    counted = counted or name.startswith(("inst_", "flop_count")) or "_transactions" in name
    return counted and not ratio


def _rates(profiles: Profiles) -> dict[str, Floats]:
    counts = [name for name in profiles.counter_names if is_count(name)]
    columns = {n: profiles.counter(n) for n in profiles.counter_names if n not in counts}
    instructions = _first_of(profiles, _INSTRUCTIONS)
    for name in counts:
        count = profiles.counter(name)
        if instructions is not None and name != "inst_executed":
            columns[f"{name}_per_instruction"] = count / np.where(
                instructions > 0, instructions, np.nan
            )
        columns[f"log_{name}_per_ms"] = np.log1p(count / profiles.time_ms)
    return columns


def _first_of(profiles: Profiles, names: tuple[str, ...]) -> Floats | None:
    return next((profiles.counter(n) for n in names if profiles.has_counter(n)), None)


def _utilisations(profiles: Profiles, device: Device | None) -> dict[str, Floats]:
    if device is None:
        raise InputError(
            f"utilisation features need the peaks of '{profiles.device}', which is not in the "
            "device table; use --features raw or rates"
        )
    given = {n: u for n, u in UTILISATIONS.items() if not u.missing(profiles)}
    if not any(utilisation.needs for utilisation in given.values()):
        return {}
    return {name: u.compute(profiles, device) for name, u in given.items()}


def _why_not(needed: list[str], of: int, kind: str, profiles: Profiles) -> str:
    """What is lacking of the features that a model needs, and how to mend it."""
    if len(needed) == 1:
        hints = _hints(_lacking(needed[0], kind, profiles), profiles)
        return f"the model needs the feature '{needed[0]}': {hints}"
    mend = "profile with what they need, or train without them (train --features-of TOOL)"
    if kind.removesuffix(WITH_POWER) in ("rates", "utilisation"):
        mend = _hints((c for name in needed for c in _lacking(name, kind, profiles)), profiles)
    return (
        f"the model needs {of} features, {len(needed)} of which the counters do not give: "
        f"{', '.join(needed)}; {mend}"
    )


def _hints(counters: Iterable[str], profiles: Profiles) -> str:
    named = dict.fromkeys(counters)
    return "; ".join(missing_column(counter, profiles.counter_names) for counter in named)


def _lacking(name: str, kind: str, profiles: Profiles) -> list[str]:
    """The columns that a feature comes from and that are not there."""
    if name == BASE_POWER:
        return ["power_w"]
    kind = kind.removesuffix(WITH_POWER)
    if kind == "utilisation":
        return UTILISATIONS[name].missing(profiles) if name in UTILISATIONS else [name]
    if kind == "rates":
        count = name.removeprefix("log_").removesuffix("_per_ms")
        count = count.removesuffix("_per_instruction")
        return ["inst_executed" if profiles.has_counter(count) else count]
    return [name]
