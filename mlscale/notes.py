"""Notes: what a reader should know of an answer, each under a code. NOTES is the table of codes.

A code keeps its meaning for ever: G is for the GPU and its settings, L for a profiler's launches, M
for a monitor's log and files of several GPUs, T for tables and profiles, R for readings of a run at
several clocks, V for LLM servers, and P for predictions and advice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mlscale.text import with_ranges, without_numbers

Severity = Literal["refused", "warning", "note"]
Row = dict[str, Any]


@dataclass(frozen=True)
class Note:
    """What one answer says under a code: a line of plain English; kernels: whom it is about.

    severity: 'warning', the answer may be wrong, or 'note', good to know; an `InputError` has the
    code of what is refused. kernels: () where it is about all of them.
    """

    code: str
    text: str
    severity: Severity = "note"
    kernels: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Meaning:
    """What a code stands for: a title of at most 70 characters, an explanation, what to do."""

    title: str
    explanation: str
    mend: str


NOTES: dict[str, Meaning] = {
    "G01": Meaning(
        "A number that this GPU cannot have",
        "A clock is above what the GPU reaches, a power is not of its kind, or counters and time "
        "give more DRAM traffic than its memory moves. Mostly a unit is another.",
        "Give clocks in MHz, powers in W, and the GPU that they were measured on.",
    ),
    "G02": Meaning(
        "The power may not be that of this work",
        "A board's power may be of another run or GPU, of work beside yours, or one for all "
        "kernels.",
        "Log the power of the same run, with nothing else on the GPU.",
    ),
    "G03": Meaning(
        "The GPU is only partly known",
        "The model never learnt from this GPU, or the device table lacks facts of it; others "
        "replace them.",
        "Measure a second clock (--also), or describe the GPU: mlscale devices show --help.",
    ),
    "L01": Meaning(
        "The file has no kernel launch",
        "The profiler's file lists no launch with a time, or none of the GPU that was asked for.",
        "Export the launches again, as the message says.",
    ),
    "L04": Meaning(
        "The clock may not be the one that the program runs at",
        "A clock was read from the file, assumed, not kept, or unlike from launch to launch. All "
        "numbers are relative to the base clock, so a wrong one shifts them all. A clock wanders "
        "under a limit of power or heat, in pauses, or where runs at several clocks share a log.",
        "Lock the clocks (ncu: --clock-control none), or say what they were set to: --base.",
    ),
    "M01": Meaning(
        "The file is of several GPUs, or of another one",
        "A log or trace covers several GPUs, or does not say which one it is of.",
        "Name the GPU by its index in the file: --gpu.",
    ),
    "M02": Meaning(
        "The log's span is not the span of the work",
        "The log has long pauses, or begins or ends while the GPU works, so its time is not the "
        "work's.",
        "Log from before the run to after it, or give the time: --time MS.",
    ),
    "T01": Meaning(
        "Some kernels lack configurations",
        "Not every kernel was measured everywhere on the grid. Some are left out, or gaps are "
        "filled in.",
        "Measure the missing ones, or choose what becomes of them: --incomplete.",
    ),
    "T02": Meaning(
        "Measured values do not fit together",
        "Repetitions, neighbouring clocks, launches under one name or further points differ by "
        "more than a clock explains: one kernel may be two workloads.",
        "Measure them again, or take out rows of other work. Give each kind of launch a name, a "
        "row with its mean time, and their number in a column 'launches'.",
    ),
    "T05": Meaning(
        "A column may not mean what it is taken for",
        "Its name or values suggest another meaning than the one that is used.",
        "Rename the column, drop it, or map it: --map NAME=COLUMN.",
    ),
    "T06": Meaning(
        "Kernels without counters stand as the mean of the others",
        "They are assumed to scale as the profiled ones do on average, with a wide interval.",
        "Profile the kernels that take most time too.",
    ),
    "T08": Meaning(
        "Training and test may share kernels or times",
        "Errors then look smaller than they are for new kernels.",
        "Give a program one application name in all tables, and each kernel its own time.",
    ),
    "T09": Meaning(
        "Part of the input is not used",
        "Rows, kernels, files or readings were left out, and the answer rests on the others.",
        "Check that they do not matter, or mend them as the message says.",
    ),
    "T10": Meaning(
        "Counters are missing, elsewhere, or replaced",
        "A related counter, or the average of the training kernels, replaces one that is used; "
        "or kernels have counters at another configuration than the base.",
        "Profile at the base, with the counters that the message names.",
    ),
    "R01": Meaning(
        "A further run did other work",
        "The times of two runs do not fit one amount of work at two clocks.",
        "Give files of runs that do the same work, under no limit of power or heat.",
    ),
    "R02": Meaning(
        "The run's times hide how the GPU scales",
        "Pauses or the host hide how the GPU's work slows at a lower clock, or no clock seems to "
        "matter.",
        "Check that both runs ran at their clocks, and do not go far below the lowest.",
    ),
    "R07": Meaning(
        "Measured at one clock only",
        "One reading shows what a run costs, not how that changes: time is only bounded, and "
        "power follows other GPUs.",
        "Measure at about 0.6 of that clock too, and give it: --also FILE.",
    ),
    "V01": Meaning(
        "The server may be near its capacity",
        "Requests that come faster than they are served wait ever longer, and no clock's latency "
        "holds for a longer run.",
        "Measure the capacity (vllm bench serve --request-rate inf) at both clocks and give it: "
        "--capacity; or lower the rate, or run the slow reading at 0.75 to 0.8 of the clock.",
    ),
    "V02": Meaning(
        "A percentile rests on little",
        "Few requests, or no single gaps between tokens, say little about a high percentile.",
        "Send more requests, and save them all: vllm bench serve --save-detailed.",
    ),
    "P01": Meaning(
        "The model learnt from simulated data",
        "It says nothing of a real GPU, and how far off it is there is not known.",
        "Take a model of measurements; --force predicts nevertheless.",
    ),
    "P02": Meaning(
        "A kernel or a setting beyond what the model learnt from",
        "A feature is outside the trained range, the kernel uses what the model leaves out, or "
        "the model never saw the setting: it is carried there with a wider interval.",
        "Measure it at a second clock (--also), or train on kernels like it.",
    ),
    "P03": Meaning(
        "Power limits and caps",
        "Above the board's limit the GPU lowers its clock, draws less and takes longer. Caps "
        "that it does not take are not advised.",
        "Choose a setting below the limit, or raise the limit where the GPU allows it.",
    ),
    "P04": Meaning(
        "Power or energy is not fully known",
        "No power was given, or only a part of it, or the model has none; energy is then missing "
        "too.",
        "Give the board's power: --power W, or a log, or --static-power W.",
    ),
    "P05": Meaning(
        "The intervals may be too narrow or too wide",
        "There was too little to calibrate them on; some reach from no effect of a clock to its "
        "full one.",
        "Measure a second clock (--also), which narrows them.",
    ),
    "P06": Meaning(
        "How a limit of time is read and kept",
        "It is for the whole run, in percent. Kernels may break it, or no setting keeps it for "
        "certain.",
        "Give another limit, or look at the kernels' own rows.",
    ),
    "P07": Meaning(
        "Kernels that exchange data between GPUs",
        "They wait for links and other GPUs, which no counter shows; their time is assumed to "
        "stay.",
        "Set all GPUs alike, and measure a second clock to be sure.",
    ),
    "P08": Meaning(
        "Which model or predictor was chosen",
        "None was named, so one was chosen by what the file holds.",
        "Name another with --model or --predictor.",
    ),
}


def notes_by_kernel(flags: Mapping[str, Sequence[Note]]) -> list[Note]:
    """The flags of each kernel as notes that name their kernels; those alike stand once.

    So do those that differ in their numbers alone, with the range of these. Such as all kernels
    share name none.
    """
    alike: dict[tuple[str, str], list[tuple[str, Note]]] = {}
    for kernel, notes in flags.items():
        for note in notes:
            alike.setdefault((note.code, without_numbers(note.text)), []).append((kernel, note))
    merged = []
    for pairs in alike.values():
        kernels = tuple(dict.fromkeys(kernel for kernel, _ in pairs))
        text, first = with_ranges([note.text for _, note in pairs]), pairs[0][1]
        about = () if len(kernels) == len(flags) else kernels
        merged.append(Note(first.code, text, first.severity, about))
    return merged


def note_rows(notes: Iterable[Note]) -> list[Row]:
    """Notes as JSON has them, each once, warnings first; kernels: 'all', or a list of names.

    Example:
        >>> short = [Note("P05", "a short launch", kernels=(name,)) for name in ("scan", "sort")]
        >>> note_rows(short)[0]["kernels"]
        ['scan', 'sort']
    """
    kernels: dict[Note, list[str] | None] = {}
    for note in sorted(notes, key=lambda note: (note.severity == "note", note.code == "P08")):
        key = Note(note.code, note.text, note.severity)
        known = kernels.setdefault(key, [])
        kernels[key] = None if known is None or not note.kernels else [*known, *note.kernels]
    return [
        {
            "code": note.code,
            "severity": note.severity,
            "kernels": "all" if names is None else [*dict.fromkeys(names)],
            "text": note.text,
        }
        for note, names in kernels.items()
    ]
