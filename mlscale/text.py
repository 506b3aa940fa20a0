"""Text: names from files made safe for a terminal, and numbers read and written."""

import math
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

# Patterns are compiled on first use, by the module re: most commands need none of them.
_ESCAPES = r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07"  # a terminal's colours and titles
_BLANKS = r"[\t-\r\x1c-\x1e\x85\u2028\u2029]+"
_CONTROLS = r"[\x00-\x1f\x7f-\x9f]"
_DIRECTIONS = r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
_MOST_NAMED = 3
_LEAST_PART = 3  # letters of a name by which it is found
_TENTH = 0.1  # percent
_ROUNDING = 1e-9  # percent by which sums of shares miss 100
_APART_FROM = 9999.5  # 10 000 has its thousands apart
_FORMULA = "'*[=+@-]."
_NUMBER = r"(?<![\w.-])-?(?:\d{1,3}(?: \d{3})+|\d+)(?:\.\d+)?(?:e[-+]\d+)?(?!\w|\.\d)"


def without_controls(text: str) -> str:
    """Text without escape sequences and control characters; ends of lines are blanks."""
    if text.isprintable():
        return text
    return re.sub(_CONTROLS, "", re.sub(_BLANKS, " ", re.sub(_ESCAPES, "", text)))


def spreadsheet_cell(cell: Any) -> Any:
    """A CSV cell that no spreadsheet reads as a formula: words that begin as one get a '."""
    return f"'{cell}" if isinstance(cell, str) and re.match(_FORMULA, cell) else cell


def from_spreadsheet_cell(cell: str) -> str:
    """The words that `spreadsheet_cell` was given."""
    return cell[1:] if cell[:1] == "'" and re.match(_FORMULA, cell) else cell


def plain_number(text: str) -> float:
    """Return a number in ASCII as float does, but not `1_0`, which only Python reads as 10.

    Raises ValueError on anything else.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"'{text}' is not a number")
    return float(text)


def delimiter_of(header: str) -> str:
    """What stands between the cells of CSV, by its header."""
    return max(",;\t", key=header.count)


def with_point(cell: str) -> str:
    """A number of CSV that has no commas between cells, its decimal comma as a point.

    Example:
        >>> with_point("0,5 W"), with_point("1,070.00 W"), with_point("1.070,00 W")
        ('0.5 W', '1,070.00 W', '1.070,00 W')
    """
    return re.sub(r"(?<![\d.,])(\d+),(\d+)(?=[^\d.,]*$)", r"\1.\2", cell)


def printable(text: str) -> str:
    """Text for a terminal: also without marks that change the direction of writing."""
    return text if text.isprintable() else re.sub(_DIRECTIONS, "", without_controls(text))


def shell_line(words: Iterable[str]) -> str:
    """Words as one line to paste into a shell; controls and bytes as bash and zsh write them."""
    return " ".join(
        shlex.quote(word) if word.isprintable() else f"$'{''.join(map(_escaped, word))}'"
        for word in words
    )


def _escaped(letter: str) -> str:
    if not letter.isprintable():
        return "".join(f"\\x{byte:02x}" for byte in os.fsencode(letter))
    return f"\\{letter}" if letter in "\\'" else letter


def shortened(text: str, longest: int = 60) -> str:
    """Printable text of at most that many characters, the middle replaced by an ellipsis."""
    text = printable(text)
    if len(text) <= longest:
        return text
    head = max(0, min(longest * 2 // 3, longest - 2))
    return f"{text[:head]}…{text[head + 1 - longest :]}"


def short_names(names: Sequence[str], longest: int = 32) -> dict[str, str]:
    """Each name in at most that many characters, keeping what distinguishes it from the others.

    A long one first loses its namespaces and brackets. If it is still long, or like another, its
    beginning stays, and the words that not all of these have. Those still alike are numbered.

    Example:
        >>> names = ["bf16_gemm_bf16_128x64_stages_64x3_nt", "bf16_gemm_bf16_256x64_stages_64x3_tn"]
        >>> [*short_names(names, 24).values()]
        ['bf16_gemm_bf16…128x64…nt', 'bf16_gemm_bf16…256x64…tn']
    """
    shown = {name: _identifier(printable(name), longest) for name in names}
    families: dict[str, list[str]] = {}
    times = Counter(shown.values())
    for name, text in shown.items():
        if len(text) > longest or times[text] > 1:
            families.setdefault(text[: longest // 3], []).append(name)
    for family in families.values():
        words_of = {name: dict.fromkeys(_words(name)) for name in family}
        common = set.intersection(*map(set, words_of.values()))
        for name in family:
            words = [word for word in words_of[name] if word not in common]
            while len(words) > 1 and sum(map(len, words)) + len(words) > longest * 2 // 3:
                words.pop()
            differing = shortened("…".join(words), longest * 2 // 3)
            beginning = shown[name][: longest - len(differing) - 1]
            shown[name] = f"{beginning}…{differing}" if words else shortened(shown[name], longest)
    seen: dict[str, int] = {}
    for name, text in shown.items():
        seen[text] = count = seen.get(text, 0) + 1
        shown[name] = text if count == 1 else f"{shortened(text, longest - 4)} ({count})"
    return shown


def _identifier(name: str, longest: int) -> str:
    """A kernel's name; of a long one the function's alone, '(…)' for its arguments."""
    if len(name) <= longest:
        return name
    bare = re.sub(r"\((anonymous namespace)\)|<(unnamed)>", "", name).removeprefix("void ")
    function, bracket, _ = bare.partition("(")
    function = re.sub(r"<.*", "", function)
    return function.rpartition("::")[2] + "(…)" * (bracket == "(") or name


def _words(name: str) -> list[str]:
    """The words of a name; a launch's grid and block go with their sizes."""
    return re.findall(r"[^\W_]+", re.sub(r"\b(grid|block) ", r"\1", printable(name)))


def without_numbers(text: str) -> str:
    """The form of a message: what messages that differ only in their numbers have in common."""
    return re.sub(_NUMBER, "#", text)


def with_ranges(texts: Sequence[str]) -> str:
    """Messages of one form as one: a number that differs between them becomes a range.

    Example:
        >>> with_ranges(["GPU 0: 75.5 MHz of 80", "GPU 10: 9 MHz of 80", "GPU 2: 9 MHz of 80"])
        'GPU 0 to 10: 9 to 75.5 MHz of 80'
    """
    ranges = []
    for numbers in zip(*(re.findall(_NUMBER, text) for text in texts), strict=True):
        in_order = sorted(numbers, key=lambda text: float(text.replace(" ", "")))
        first, last = in_order[0], in_order[-1]
        ranges.append(first if first == last else f"{first} to {last}")
    places = iter(ranges)
    return re.sub(_NUMBER, lambda _: next(places), texts[0])


def counted(number: int, noun: str) -> str:
    """How many there are: '1 kernel', '2 kernels', '2 launches'."""
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def listed(kernels: Sequence[str]) -> str:
    """Kernels in a message: how many there are, the first three, and how many others."""
    named = list(kernels[:_MOST_NAMED])
    if others := len(kernels) - len(named):
        named.append(counted(others, "other"))
    return f"{counted(len(kernels), 'kernel')} ({', '.join(named)})"


def number(value: float | None, digits: int = 4) -> str:
    """A number for a column: that many significant digits, without an exponent.

    '-' means None or not finite. From 10 000 on thousands are separated.
    """
    if value is None or not math.isfinite(value):
        return "-"
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    apart = "," if abs(value) >= _APART_FROM else ""
    return f"{value:{apart}.{decimals}f}".replace(",", " ")


def rounded(value: float, digits: int = 4) -> str:
    """A number for a sentence: at most that many digits, but all digits of whole numbers.

    Below 0.0001 it has an exponent.

    Example:
        >>> [rounded(value) for value in (2.5, 123456.7, 0.0)], rounded(2345.6, 3)
        (['2.5', '123 457', '0'], '2346')
    """
    return f"{value:z.{digits}g}" if abs(value) < 10**digits - 0.5 else number(value, digits)


def time_in_words(ms: float, digits: int = 4) -> str:
    """A time in ms, from a second on in seconds: '66 ms', '52.5 s'."""
    return f"{rounded(ms / 1000, digits)} s" if ms >= 1000 else f"{rounded(ms, digits)} ms"


def percent_in_words(value: float) -> str:
    """A percentage without its sign, in two digits, but all digits of whole percents."""
    return f"{abs(value):.1f}" if abs(value) < 9.95 else f"{abs(value):.0f}"


def share_in_percent(share: float) -> str:
    """A share as a percentage to a tenth; what is nearly 0 or nearly 100 is marked as such.

    Example:
        >>> [share_in_percent(share) for share in (0.2923, 0.0002, 0.9998, 1.0)]
        ['29.2', '<0.1', '>99.9', '100.0']
    """
    percent = 100 * share
    if 0 < percent < _TENTH / 2:
        return f"<{_TENTH}"
    if _TENTH / 2 > 100 - percent > _ROUNDING:
        return f">{100 - _TENTH}"
    return f"{percent:.1f}"


def near_names(
    name: str, names: Iterable[str], most: int = 2, least_alike: float = 0.6
) -> list[str]:
    """Which of the names an unrecognised one may mean, the likeliest first.

    Those that have it somewhere, the earlier the nearer, then those of like letters, of which that
    share is alike at least; upper and lower case are alike.

    Example:
        >>> near_names("gem", ["scan", "void gemm<float>(float *)"])
        ['void gemm<float>(float *)']
    """
    from difflib import get_close_matches

    asked = name.casefold()
    folded = {other.casefold(): other for other in names}
    holders = [form for form in folded if asked in form and len(asked) >= _LEAST_PART]
    holders.sort(key=lambda form: form.find(asked))
    like = get_close_matches(asked, folded, n=most, cutoff=least_alike)
    return [folded[form] for form in dict.fromkeys([*holders, *like])][:most]


def did_you_mean(name: str, names: Iterable[str], before: str = "") -> str:
    """What ends a message: the likeliest of the names, if any; before: what names begin with."""
    near = near_names(name, names, most=1, least_alike=0.75)
    return f"; did you mean '{before}{shortened(near[0])}'?" if near else ""
