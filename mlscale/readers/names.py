"""Kernels' names as several tools write them: which are of one kernel.

One tool prints `void f<(int)4>(float *)`, others `void f<4>(float*)` or `f`. Names that a tool cut
off or that are mangled are of no other tool's kernel.
"""

import re
from collections.abc import Callable, Collection

_TRAILING = re.compile(r"(?:\s\[\d+\]|\s\[clone [^\]]*\]|\s\(\.kd\)|\.kd)+$")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)|<unnamed>|^unnamed>")
_RETURNED = re.compile(r"^std::enable_if<.*?>::type |\bvoid (?=[A-Za-z_{])")
_CONST = re.compile(r"\bconst\b")  # one tool writes it before the type, another behind it
_CAST = re.compile(r"\([A-Za-z_][\w:\s]*\)(?=-?\d)")  # (int)4, (bool)1, (at::Kind)0
_SUFFIX = re.compile(r"\b(\d+)u?l{0,2}\b", re.IGNORECASE)  # 4ul
_LAMBDA = re.compile(r"\[lambda(.*?)\(instance(\d+)\)\]")
_OPEN, _CLOSE = "(<[{", ")>]}"


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


def without_arguments(name: str) -> str:
    """A plain name up to its last list of arguments, which tools write with other types."""
    text = plain(name)
    return text[: _last_bracket(text)] if text.endswith(")") else text


def unscoped(name: str) -> str:
    """The function and its templates, without scope and arguments."""
    text, depth, begin = without_arguments(name), 0, 0
    for position, character in enumerate(text):
        depth += (character in _OPEN) - (character in _CLOSE)
        if character == ":" and not depth:
            begin = position + 1
    return text[begin:]


def bare(name: str) -> str:
    """The function alone: without scope, templates and arguments."""
    text = unscoped(name)
    return text[: _last_bracket(text)] if text.endswith(">") else text


def _last_bracket(text: str) -> int | None:
    """Where the bracket opens that the last character closes; None where none does."""
    depth = 0
    for position in range(len(text) - 1, 0, -1):
        depth += (text[position] in _CLOSE) - (text[position] in _OPEN)
        if not depth:
            return position
    return None


def common_names(counted: Collection[str], traced: Collection[str]) -> dict[str, str]:
    """Names of a trace by which kernel with counters each is of; one that is of none is left out.

    The plain name counts first, then that without arguments, then what one side alone tells: the
    function with its templates, or without; each where it has one kernel on either side.
    """
    same: dict[str, str] = {}
    ours, theirs = set(counted), set(traced)
    for form in (plain, without_arguments, unscoped, bare):
        left, right = _by_form(ours, form), _by_form(theirs, form)
        for key in left.keys() & right.keys():
            (one, *others), (other, *more) = left[key], right[key]
            tells_less = key in (without_arguments(one), without_arguments(other))
            if form is plain or (tells_less and not others and not more):
                same.update(dict.fromkeys(right[key], one))
                ours -= set(left[key])
                theirs -= set(right[key])
    return same


def _by_form(names: Collection[str], form: Callable[[str], str]) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for name in sorted(names):
        keys.setdefault(form(name), []).append(name)
    return keys
