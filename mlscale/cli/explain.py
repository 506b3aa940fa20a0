"""mlscale explain: what the code of a note means, and what to do. NOTES is the table of codes."""

import argparse
import textwrap
from dataclasses import dataclass

from mlscale.advice.sureness import REASONS
from mlscale.cli.parser import Parser
from mlscale.cli.terminal import WIDEST
from mlscale.errors import InputError
from mlscale.text import did_you_mean

_COLUMNS = 80


@dataclass(frozen=True)
class CodeMeaning:
    """What a code stands for: a title of at most 70 characters, an explanation, what to do."""

    title: str
    explanation: str
    mend: str


NOTES: dict[str, CodeMeaning] = {
    "G01": CodeMeaning(
        "A value that this GPU cannot reach",
        "A clock is above the GPU's highest, a power does not suit its board, or counters and "
        "time imply more DRAM traffic than memory can move. The usual cause is a wrong unit.",
        "Give clocks in MHz and powers in W, and name the GPU that they were measured on.",
    ),
    "G02": CodeMeaning(
        "The power may not belong to this work",
        "It may come from another run or GPU, include other programs, or be one mean for all "
        "kernels.",
        "Log the power of the same run, with nothing else on the GPU.",
    ),
    "G03": CodeMeaning(
        "The GPU is only partly known",
        "The model was not trained on this GPU, or the device table lacks facts, which are "
        "then assumed.",
        "Measure a second clock (--also), or describe the GPU: mlscale devices show --help.",
    ),
    "L01": CodeMeaning(
        "The file has no kernel launch",
        "The profiler's file lists no launch with a time, or none on the GPU that you asked for.",
        "Export the launches again, as the message says.",
    ),
    "L04": CodeMeaning(
        "The program may run at another clock",
        "The clock was read from the file, assumed, not held, or differs between launches. "
        "All numbers are relative to the base clock, so a wrong one shifts them all. Power "
        "and heat limits and pauses change a clock; so do runs at several clocks in one log.",
        "Lock the clocks (ncu: --clock-control none), or say what they were set to: --base. Log "
        "the actual clocks: nvidia-smi's clocks.sm.",
    ),
    "M01": CodeMeaning(
        "The file covers several GPUs, or a different one",
        "A log or trace covers several GPUs, or does not say which GPU it was measured on.",
        "Name the GPU by its index in the file: --gpu.",
    ),
    "M02": CodeMeaning(
        "The log does not show how long the work took",
        "It has long pauses, or begins or ends while the GPU works.",
        "Log from before the run to after it, or give the time: --time MS.",
    ),
    "T01": CodeMeaning(
        "Some kernels were not measured at every configuration",
        "Kernels with gaps are left out, or the gaps are filled in.",
        "Measure the missing ones, or choose how to treat the gaps: --incomplete.",
    ),
    "T02": CodeMeaning(
        "Measured values do not fit together",
        "Repetitions, neighbouring clocks, launches of one name or further points differ by "
        "more than the clock explains: one name may cover two workloads.",
        "Measure them again, or remove the rows of other work. Give each kind of launch its "
        "own name and a row with its mean time, and their number in a column 'launches'.",
    ),
    "T05": CodeMeaning(
        "A column may have been misread",
        "Its name or values suggest another meaning.",
        "Rename the column, drop it, or map it: --map NAME=COLUMN.",
    ),
    "T06": CodeMeaning(
        "Kernels without counters are treated as the mean of the others",
        "They are assumed to scale as the profiled kernels do on average, with a wide interval.",
        "Profile more kernels, starting with those that take the most time.",
    ),
    "T08": CodeMeaning(
        "Training and test may share kernels or times",
        "Errors on new kernels are then larger than those shown.",
        "Use one application name for a program in all tables, and give each kernel its own time.",
    ),
    "T09": CodeMeaning(
        "Part of the input is not used",
        "Rows, kernels, files or readings were left out, and the answer is based on the rest.",
        "Check that they do not matter, or fix them as the message says.",
    ),
    "T10": CodeMeaning(
        "Counters are missing, replaced, or from another configuration",
        "The model uses a related counter, or the median of the training kernels, for one "
        "that is missing; or the counters were not measured at the base.",
        "Profile at the base, with the counters that the message names.",
    ),
    "R01": CodeMeaning(
        "A further run did different work",
        "The times of the two runs do not fit the same amount of work at two clocks.",
        "Use runs that do the same work and are not slowed by a power or heat limit.",
    ),
    "R02": CodeMeaning(
        "The run's times hide how the GPU scales",
        "Pauses or the host hide how much a lower clock slows the GPU, or no clock seems to "
        "matter.",
        "Check that both runs kept their clocks, and do not go far below the lower one.",
    ),
    "R07": CodeMeaning(
        "Measured at one clock only",
        "One reading shows what a run costs, not how the cost changes: time is only bounded, and "
        "power is estimated from other GPUs.",
        "Measure at about 0.6 of that clock too, and add that log: --also FILE.",
    ),
    "R09": CodeMeaning(
        "The base is not the first reading, or not the highest",
        "Changes are relative to the reading at the highest clock, whatever the order of the "
        "files. If two or more readings have power, only these count; without clocks it is the "
        "reading with the most watts.",
        "To compare with another reading, name its clock: --base engine=MHZ.",
    ),
    "V01": CodeMeaning(
        "The server may be near its capacity",
        "Requests that arrive faster than they are served wait longer and longer, so a longer "
        "run has higher latencies at every clock.",
        "Measure the capacity (vllm bench serve --request-rate inf) at both clocks and give it: "
        "--capacity; or lower the rate, or run the slow reading at 0.75 to 0.8 of the clock.",
    ),
    "V02": CodeMeaning(
        "A percentile rests on few samples",
        "With few requests, or without the gaps between tokens, a high percentile is uncertain.",
        "Send more requests, and save them all: vllm bench serve --save-detailed.",
    ),
    "P01": CodeMeaning(
        "The model was trained on simulated data",
        "Its error on a real GPU is unknown.",
        "Use a model trained on measurements, or predict anyway: --force.",
    ),
    "P02": CodeMeaning(
        "A kernel or setting is outside the training data",
        "A feature is outside the trained range, the kernel does something the model does not "
        "cover, or the setting was not in the training data. The model extrapolates, with a wider "
        "interval.",
        "Measure it at a second clock (--also), or train on kernels like it.",
    ),
    "P03": CodeMeaning(
        "Power limits and caps",
        "Above the board's limit the GPU lowers its clock, draws less and takes longer. Caps "
        "that it does not accept are never advised. A run that draws 97 % of its limit or more was "
        "slowed by it: the limit set its clock.",
        "Choose a setting below the limit, or raise the limit where the GPU allows it.",
    ),
    "P04": CodeMeaning(
        "Power or energy is not fully known",
        "No power was given, or only a part of it, or the model has none, or none at other memory "
        "clocks. Energy is then unknown too.",
        "Give the board's power, --power WATTS or a log, or its static part, --static-power WATTS.",
    ),
    "P05": CodeMeaning(
        "Intervals contain the truth more or less often than stated",
        "There was too little data to calibrate them, or they cover everything from 'the clock has "
        "no effect' to 'time is proportional to 1/clock'. Coverage on so few GPUs is no guarantee "
        "for a new one.",
        "Measure a second clock to narrow them: --also FILE. If the answer on two names a third, "
        "measure that too.",
    ),
    "P06": CodeMeaning(
        "How a time limit is applied",
        "It applies to the whole run, in percent. Single kernels may exceed it, or no setting is "
        "certain to keep it.",
        "Give another limit, or see the kernels' rows: --all.",
    ),
    "P07": CodeMeaning(
        "Kernels that exchange data between GPUs",
        "They wait for links and other GPUs, which counters do not show; their time is assumed "
        "constant.",
        "Set all GPUs to the same clock, and measure a second clock to be sure.",
    ),
    "P08": CodeMeaning(
        "Which model or predictor was chosen",
        "You named none, so mlscale chose one that fits the file.",
        "Name another with --model or --predictor.",
    ),
}


def add_arguments(parser: Parser) -> None:
    """Add the options of the command."""
    what = "such as G03; without one all codes are listed"
    parser.add("code", nargs="?", metavar="CODE", help=what)


def run(arguments: argparse.Namespace) -> None:
    """Print the meaning of a code, or all codes. Raises InputError."""
    if arguments.code is None:
        titles = {code: meaning.title for code, meaning in NOTES.items()}
        titles |= {code: reason.words for code, reason in REASONS.items()}
        for code, title in titles.items():
            print(
                textwrap.fill(f"{code}  {title}", WIDEST, subsequent_indent=" " * len(f"{code}  "))
            )
        return
    code = arguments.code.upper()
    if reason := REASONS.get(code):
        told = "An answer is as sure as the lowest level of its reasons; that of this one is"
        _print(f"{code}: {reason.words}.", f"{told} {reason.level}.")
        return
    if code not in NOTES:
        hint = did_you_mean(code, [*NOTES, *REASONS]) or "; mlscale explain lists them all"
        raise InputError(f"there is no code '{arguments.code}'{hint}")
    meaning = NOTES[code]
    _print(f"{code}: {meaning.title}", meaning.explanation, f"What to do: {meaning.mend}")


def _print(*paragraphs: str) -> None:
    print("\n\n".join(textwrap.fill(text, _COLUMNS) for text in paragraphs))
