"""Notes: what a reader should know of an answer, each under a code; cli/explain.py has the table.

Codes never change meaning: G is for the GPU and its settings, L for a profiler's launches, M
for a monitor's log and files of several GPUs, T for tables and profiles, R for readings of a run at
several clocks, V for LLM servers, and P for predictions and advice.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from mlscale.text import with_ranges, without_numbers

Severity = Literal["refused", "warning", "note"]


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


def merged(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Notes each once, warnings first, with all kernels that each is about.

    Example:
        >>> short = [Note("P05", "a short launch", kernels=(name,)) for name in ("scan", "sort")]
        >>> merged([*short, short[0]])[0].kernels
        ('scan', 'sort')
    """
    kernels: dict[Note, list[str] | None] = {}
    for note in sorted(notes, key=lambda note: (note.severity == "note", note.code == "P08")):
        key = replace(note, kernels=())
        known = kernels.setdefault(key, [])
        kernels[key] = None if known is None or not note.kernels else [*known, *note.kernels]
    return tuple(
        replace(note, kernels=tuple(dict.fromkeys(names or ()))) for note, names in kernels.items()
    )


def note_rows(notes: Iterable[Note]) -> list[dict[str, Any]]:
    """Notes as JSON has them, as `merged` gives them; kernels: 'all', or a list of names."""
    return [
        {
            "code": note.code,
            "severity": note.severity,
            "kernels": [*note.kernels] or "all",
            "text": note.text,
        }
        for note in merged(notes)
    ]


def notes_from(rows: Iterable[Mapping[str, Any]]) -> tuple[Note, ...]:
    """The notes that `note_rows` wrote."""
    return tuple(
        Note(code, text, severity, () if kernels == "all" else tuple(kernels))
        for code, severity, kernels, text in (row.values() for row in rows)
    )
