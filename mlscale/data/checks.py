"""The checks: what measurements may hold by mistake. RULES is the one table of them.

A rule is a row: a code, what it looks at, a severity, a predicate and a sentence. The predicate
takes the facts of what it looks at, and returns the fields that the sentence names, or None where
nothing is wrong; a field `severity` goes before the row's. To add a rule, add a row here and a
predicate in predicates.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mlscale.data import predicates
from mlscale.data.devices import Device, find_device
from mlscale.data.grid import AXES, ConfigGrid
from mlscale.data.predicates import Fields
from mlscale.data.table import Table
from mlscale.errors import InputError, warn
from mlscale.notes import Note, Severity

# Which facts a predicate takes. All predicates of one subject take the same ones, in one order.
# fmt: off
CheckedFacts = Literal[
    "value", "board power", "partition", "kernels", "traffic", "launch clocks", "profiled clock",
    "gpus", "busy span", "grid", "repetitions", "launches", "times", "columns", "counters",
    "counters at the base", "shared times", "further run", "scaling", "ends of logs", "setting",
    "model", "feature", "supply",
]
# fmt: on


@dataclass(frozen=True)
class Rule:
    """A row of RULES; the sentence names the fields that the predicate returns."""

    code: str
    looks_at: CheckedFacts
    severity: Severity
    predicate: Callable[..., Fields]
    sentence: str


# fmt: off
RULES = (
    Rule("G01", "value", "refused", predicates.impossible_value,
         "{value:g} {unit} is impossible, {limit}; {mend}"),
    Rule("G02", "board power", "refused", predicates.doubtful_power,
         "a board power of {power_w:g} W {why}"),
    Rule("G02", "partition", "warning", predicates.part_of_a_gpu,
         "ran on {cus:g} of the {all_cus} SMs of '{device}', and power is the whole board's: "
         "energy is right only if nothing ran on the others"),
    Rule("L01", "kernels", "refused", predicates.no_launch, "has no kernel launch{untimed}; {why}"),
    Rule("G01", "traffic", "refused", predicates.impossible_traffic,
         "'{kernel}': its DRAM traffic is {share:.3g} times what {device} can transfer at "
         "memory={memory_mhz:g}; give the clock and the GPU that it ran on (in a table also "
         "time_ms in milliseconds and of one launch, shares from 0 to 1, rates in bytes/s)"),
    Rule("L04", "launch clocks", "refused", predicates.unlike_clocks,
         "{what}; lock the clocks and profile again, ncu with --clock-control none{mend}"),
    Rule("L04", "profiled clock", "warning", predicates.held_clock,
         "ncu may have held the clock at {observed_mhz:.0f} MHz, and '{device}' goes up to "
         "{highest_mhz:g}; if so, profile with --clock-control none"),
    Rule("M01", "gpus", "refused", predicates.no_gpu_chosen,
         "{what}"),
    Rule("M02", "busy span", "warning", predicates.long_pauses,
         "{pause}; the time includes them{mend}"),
    Rule("T01", "grid", "refused", predicates.lacking_configurations,
         "{count} of {total} kernels lack configurations: {lacking}; {mend}"),
    Rule("T02", "repetitions", "warning", predicates.unlike_repetitions,
         "repetitions differ by more than 10 % in {cases}, most those of '{kernel}': {ends}; "
         "delete rows of other work or clocks"),
    Rule("T02", "launches", "warning", predicates.changing_launch,
         "'{column}' of {count} is not the same at all clocks; that of '{kernels[0]}' is {ends}: "
         "give different workloads different names"),
    Rule("T02", "times", "warning", predicates.jumping_times,
         "the times of {count} change far more than a clock does: '{kernel}' takes {times}; "
         "measure both again"),
    Rule("T05", "columns", "warning", predicates.doubtful_columns, "{what}"),
    Rule("T06", "counters", "warning", predicates.uncounted_kernels, "{what}"),
    Rule("T10", "counters at the base", "refused", predicates.counters_elsewhere,
         "{lacking} of {total} without '{counter}' at the base {base}, but with it at {where}: "
         "{mend}"),
    Rule("T08", "shared times", "warning", predicates.shared_times,
         "all kernels of {applications} have the same time at every configuration: is it the "
         "application's? Give each kernel its own, or the application one row"),
    Rule("R01", "further run", "refused", predicates.other_work,
         "at {mhz:g} MHz {takes} at {base_mhz:g} MHz, the same work {usual}; give {files} of runs "
         "that do the same work, below power and thermal limits"),
    Rule("R02", "scaling", "warning", predicates.hidden_slowdown,
         "at {mhz:g} MHz the GPU worked {worked:.2f} times as long as at {base_mhz:g} MHz, and "
         "{takes} there: pauses hide how much the work slows, perhaps no more below "
         "{lower_mhz:.0f} MHz"),
    Rule("R02", "scaling", "warning", predicates.no_clock_matters,
         "at {mhz:g} MHz {takes} at {base_mhz:g} MHz, so that no clock seems to matter. {doubt}"),
    Rule("M02", "ends of logs", "refused", predicates.open_ends,
         "this log, or that of the run at {base_mhz:g} MHz, {what}"),
    Rule("P02", "setting", "note", predicates.beyond_training, "{axis} {asked:g} is {how}"),
    Rule("P01", "model", "refused", predicates.simulated_for_real,
         "trained on {origin} data of '{trained}', which say nothing about '{device}'; use a model "
         "trained on measurements, or predict anyway with {force}"),
    Rule("P02", "feature", "note", predicates.feature_outside,
         "{name} {how} in training"),
    Rule("P03", "supply", "note", predicates.more_than_supplied,
         "{count} configurations are left out: a kernel would draw up to {most_w:.0f} W there, "
         "more than {supplied}"),
)
# fmt: on


def check(looks_at: CheckedFacts, where: str, *facts: Any) -> None:
    """Apply all rules that look at these facts, each sentence told as of `where`.

    Raises InputError by a rule that refuses; by the others it warns, with a `DataWarning` that has
    the rule's code.

    Example:
        check("board power", "run.csv, GPU 0", find_device("l40s"), 412.0)
    """
    for rule, fields in _broken(looks_at, facts):
        text = f"{where}: {rule.sentence.format(**fields)}"
        severity = fields.get("severity", rule.severity)
        if severity == "refused":
            raise InputError(text, rule.code)
        warn(rule.code, text, severity, fields.get("kernels", ()))


def notes_on(looks_at: CheckedFacts, *facts: Any, source: str = "") -> list[Note]:
    """The notes of the rules that these facts break, for an answer that carries them itself.

    source: what they are told of, where that is not the whole answer.
    """
    return [
        Note(
            rule.code,
            f"{source and f'{source}: '}{rule.sentence.format(**fields)}",
            fields.get("severity", rule.severity),
            tuple(fields.get("kernels", ())),
        )
        for rule, fields in _broken(looks_at, facts)
    ]


def _broken(looks_at: CheckedFacts, facts: Sequence[Any]) -> Iterator[tuple[Rule, dict[str, Any]]]:
    for rule in RULES:
        if rule.looks_at == looks_at and (fields := rule.predicate(*facts)) is not None:
            yield rule, fields


def check_named_clocks(
    device: Device | None, settings: Mapping[str, float], known: ConfigGrid | None = None
) -> None:
    """Raise InputError where a clock that the user names is far below all of a GPU and a grid."""
    for axis in AXES[1:]:
        listed = device.listed_mhz(axis) if device else ()
        clocks = [*listed, *(getattr(known, axis) if known else ())]
        if axis in settings and clocks:
            where = f"{device.key if device else 'the GPU'}, {axis}"
            check("value", where, device, axis, settings[axis], clocks)


def check_units(table: Table, key: str) -> None:
    """Raise InputError where the clocks or powers of a table are none of that GPU's."""
    for column in ("engine_mhz", "memory_mhz", "power_w", "power_cap_w"):
        values = table.numbers.get(column, np.empty(0))
        if column == "power_w" and table.has_values("gpu_count"):
            values = values / np.nan_to_num(table.numbers["gpu_count"], nan=1.0)
        known = np.flatnonzero(np.isfinite(values))
        for row in known[[values[known].argmax(), values[known].argmin()]] if known.size else ():
            where = f"{table.source}: {table.row(row)}, column '{column}'"
            check("value", where, find_device(key), column, values[row])
