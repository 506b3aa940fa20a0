"""Kernel names of two tools matched: signatures, bare names, mangled ones, and ones cut off.

One tool prints `void f<(int)4>(float *)`, others `void f<4>(float*)`, `f`, `_Z1fILi4EEvPf`, or
`void f<4>(fl…`. Two names are of one kernel where they agree in all that both tools tell.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from mlscale.errors import warn

_CUT = re.compile(r"(?:\u2026|\.{3})\s*$")
_TRAILING = re.compile(r"(?:\s\[\d+\]|\s\[clone [^\]]*\]|\s\(\.kd\)|\.kd)+$")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|\{anonymous\}|^unnamed>")
_RETURNED = re.compile(r"^std::enable_if<.*?>::type |\bvoid (?=[A-Za-z_{])")
_CONST = re.compile(r"\bconst\b")  # one tool writes it before the type, another behind it
_CAST = re.compile(r"\([A-Za-z_][\w:\s]*\)(?=-?\d)")  # (int)4, (bool)1, (at::Kind)0
_SUFFIX = re.compile(r"\b(\d+)u?l{0,2}\b", re.IGNORECASE)  # 4ul
_LAMBDA = re.compile(r"\[lambda(.*?)\(instance(\d+)\)\]")
_HALF_WORD = re.compile(
    r"(?<=[<,\s(])(?:v|vo|voi|void|t|tr|tru|f|fa|fal|fals|c|co|con|cons)$|\((?:[A-Za-z_][\w:\s]*\)?)?$"
)
_PLACEHOLDER = re.compile(r"\bT\d+\b")  # cu++filt's for an argument of the template's type
_MANGLED = re.compile(r"_ZN?[rVK]*(?=L?[1-9])")
_LENGTH = re.compile(r"L?([1-9][0-9]{0,4})")
_CLOSING = {"(": ")", "<": ">", "[": "]", "{": "}"}


@dataclass(frozen=True)
class NameParts:
    """What a name tells: of `void n::f<int>(float *)` the parts are n::, f, <int>, (float*).

    What it does not tell is empty.
    """

    scope: str
    function: str
    templates: str
    arguments: str


@dataclass(frozen=True)
class SameKernels:
    """Names of one kernel in both files; several on one side where the other tells them not apart.

    counted: of the file with counters; traced: of the other.
    """

    counted: tuple[str, ...]
    traced: tuple[str, ...]


def plain(name: str) -> str:
    """A name without what each tool writes in its own way: return type, blanks, casts, suffixes.

    Example:
        plain("void (anonymous namespace)::f<(int)4>(int *)") == plain("<unnamed>::f<4>(int*)")
    """
    text = _ANONYMOUS.sub("{anonymous}", _TRAILING.sub("", name.strip()))
    text = _CONST.sub("", _RETURNED.sub("", text))
    text = _SUFFIX.sub(r"\1", _CAST.sub("", text.replace("->", "{to}")))
    text = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", text))
    text = "".join(text.split()).replace("operator()", "operator{call}")
    return _LAMBDA.sub(r"{lambda\1#\2}", text)


@lru_cache(maxsize=4096)
def parts(name: str) -> NameParts:
    """What a name tells."""
    return _of_mangled(name) or _of_readable(name)


def _of_mangled(name: str) -> NameParts | None:
    """Scope and function of a name as compilers mangle it (Itanium C++ ABI, section 5.1).

    That is `_Z` and the function's length and name, or `_ZN` and those of its namespaces before. A
    kernel is no member of a class, so what follows are its templates and arguments, left unread.
    """
    prefix = _MANGLED.match(name)
    if prefix is None:
        return None
    names: list[str] = []
    position = prefix.end()
    while (length := _LENGTH.match(name, position)) and not (names and "N" not in prefix.group()):
        begin, position = length.end(), length.end() + int(length.group(1))
        own = name[begin:position]
        names.append("{anonymous}" if "_GLOBAL__N_" in own else own)
    if position > len(name):
        return None
    *scope, function = names
    return NameParts("".join(f"{own}::" for own in scope), function, "", "")


def _of_readable(name: str) -> NameParts:
    """Its parts; a name whose brackets do not pair is a function's name as a whole."""
    text = plain(name)
    head = templates = arguments = ""
    begin = function = 0
    closing: list[str] = []
    for position, character in enumerate(text):
        if character in _CLOSING:
            begin = begin if closing else position
            closing.append(_CLOSING[character])
        elif character in _CLOSING.values():
            if not closing or closing.pop() != character:
                return NameParts("", text, "", "")
            group = text[begin : position + 1]
            if closing:
                continue
            if character == ">":
                templates += group
            elif character == ")" and head:
                arguments = group
            else:
                head += group
        elif not closing and (character == ":" or not arguments):
            head += arguments + character  # of a lambda's scope they are no last ones
            arguments = ""
            function = len(head) if character == ":" else function
    if closing or function == len(head):
        return NameParts("", text, "", "")
    return NameParts(head[:function], head[function:], templates, arguments)


def same_kernels(counted: Collection[str], traced: Collection[str]) -> list[SameKernels]:
    """Which names of two files are of the same kernels; one that is ambiguous or alone is in none.

    The whole name counts first, then the plain one, then all that both files tell: a part that no
    name of a file has is not told there, and the names that differ in it alone belong together. A
    name that is cut off is of the only kernel whose name begins so, and one that is mangled of the
    only kernel of its function.
    """
    ours, theirs = list(dict.fromkeys(counted)), list(dict.fromkeys(traced))
    told = _told(ours) & _told(theirs)
    same: list[SameKernels] = []

    def take(edges: Iterable[tuple[str, str]]) -> None:
        for group in _groups(edges):
            if _is_one(group.counted, told) and _is_one(group.traced, told):
                same.append(group)
                ours[:] = [name for name in ours if name not in group.counted]
                theirs[:] = [name for name in theirs if name not in group.traced]

    cut = [*_cut_edges(ours, theirs), *((o, t) for t, o in _cut_edges(theirs, ours))]
    traced_names = set(theirs)
    take((name, name) for name in ours if name in traced_names)
    take(_edges(ours, theirs, plain))
    take((one, other) for one, other in cut if one in ours and other in theirs)
    take(
        (one, other)
        for one, other in _edges(ours, theirs, lambda name: parts(name).function)
        if not (is_mangled(one) or is_mangled(other) or is_cut_off(one + other))
        and _agree(parts(one), parts(other), told)
    )
    of_mangled = (
        (one, other)
        for one, other in _edges(ours, theirs, lambda name: parts(name).function)
        if is_mangled(one) != is_mangled(other)
        and _agree(parts(one), parts(other), told & {"scope", "function"})
    )
    same += [group for group in _groups(of_mangled) if len(group.counted + group.traced) == 2]
    return same


def is_mangled(name: str) -> bool:
    """Whether a name is written as compilers do, and not as people read it."""
    return bool(_MANGLED.match(name))


def hint_of_mangled(names: Iterable[str]) -> str:
    """What to say behind names that joined none, where some are mangled; else nothing."""
    if not any(map(is_mangled, names)):
        return ""
    return "; mangled names join where a function has one variant: let the tool write them in full"


def is_cut_off(name: str) -> bool:
    """Whether a tool shortened a name to what fits into its column."""
    return bool(_CUT.search(name))


def warn_of_cut_off(source: Path, count: int, mend: str) -> None:
    """Warn where names of kernels are cut off. mend: how the tool writes them whole."""
    if count:
        warn(
            f"{source}: {count} names of kernels are cut off, so that several may count as one; "
            f"{mend}"
        )


def _told(names: Collection[str]) -> set[str]:
    """The parts that some name of a file has; of one that is cut off it cannot be said."""
    whole = [parts(name) for name in names if not is_cut_off(name)]
    return {
        field.name for field in fields(NameParts) if any(getattr(own, field.name) for own in whole)
    }


def _is_one(names: Sequence[str], told: Collection[str]) -> bool:
    """Whether names differ at most in what the other file does not tell."""
    return all(len({getattr(parts(name), part) for name in names}) == 1 for part in told)


def _edges(
    ours: Collection[str], theirs: Collection[str], form: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Every pair of names that are alike in a form."""
    by_form: dict[str, list[str]] = {}
    for name in theirs:
        by_form.setdefault(form(name), []).append(name)
    return ((one, other) for one in ours for other in by_form.get(form(one), ()))


def _cut_edges(names: Collection[str], others: Collection[str]) -> Iterator[tuple[str, str]]:
    """The names that are cut off, each with the only other that begins so."""
    wholes = {other: plain(other) for other in others if not is_cut_off(other)}
    for name in names:
        if is_cut_off(name):
            start = _before_arguments(plain(_HALF_WORD.sub("", _CUT.sub("", name).rstrip())))
            alike = [other for other, whole in wholes.items() if whole.startswith(start)]
            if start and len(alike) == 1:
                yield name, alike[0]


def _before_arguments(start: str) -> str:
    """The beginning of a name as far as tools write it alike: to where its arguments open."""
    depth = 0
    for position, character in enumerate(start):
        if character == "(" and position and not depth:
            return start[: position + 1]
        depth += (character in _CLOSING) - (character in _CLOSING.values())
    return start


def _agree(one: NameParts, other: NameParts, told: Collection[str]) -> bool:
    """Whether two names are alike in every part that both files tell."""
    return all(
        getattr(one, part) == getattr(other, part)
        or (part == "arguments" and _same_arguments(one.arguments, other.arguments))
        for part in told
    )


def _same_arguments(one: str, other: str) -> bool:
    """Whether two lists of arguments are alike, but for those of a template's type."""
    ours, theirs = _listed(one), _listed(other)
    return len(ours) == len(theirs) and all(
        own == others or _PLACEHOLDER.search(f"{own} {others}")
        for own, others in zip(ours, theirs, strict=True)
    )


def _listed(arguments: str) -> list[str]:
    """The arguments of a list, parted at its own commas alone."""
    listed, depth = [""], 0
    for character in arguments[1:-1]:
        depth += (character in _CLOSING) - (character in _CLOSING.values())
        if character == "," and not depth:
            listed.append("")
        else:
            listed[-1] += character
    return listed


def _groups(edges: Iterable[tuple[str, str]]) -> list[SameKernels]:
    """One name with all that it is paired with, where those are paired with no other."""
    of_ours: dict[str, list[str]] = {}
    of_theirs: dict[str, list[str]] = {}
    for one, other in edges:
        of_ours.setdefault(one, []).append(other)
        of_theirs.setdefault(other, []).append(one)
    groups: dict[tuple[str, ...], tuple[str, ...]] = {
        (one,): tuple(others)
        for one, others in of_ours.items()
        if all(of_theirs[other] == [one] for other in others)
    }
    groups |= {
        tuple(ones): (other,)
        for other, ones in of_theirs.items()
        if all(of_ours[one] == [other] for one in ones)
    }
    return [SameKernels(counted, traced) for counted, traced in groups.items()]
