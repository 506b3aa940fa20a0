"""References of the models and data sets, from citations.json: as text and as BibTeX.

The references are as far as the papers themselves and the papers that cite them give them.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlscale.errors import InputError
from mlscale.files import shipped_json
from mlscale.text import near_names

# BibTeX fields in the order they are printed; citations.json has them by these names.
_FIELDS = ("booktitle", "journal", "volume", "number", "publisher", "pages", "doi", "url", "note")


@dataclass(frozen=True)
class Reference:
    """One paper, guide or data set.

    Attributes:
        key: its BibTeX key.
        kind: its BibTeX type.
        authors: 'Family, Given'; 'others' stands for further authors; a name in braces is whole.
        title: its title.
        year: None where it is not known.
        fields: other BibTeX fields, text each.
    """

    key: str
    kind: str
    authors: tuple[str, ...]
    title: str
    year: int | None
    fields: Mapping[str, str]

    def as_text(self) -> str:
        """One line for a reader."""
        names = [_spoken(author) for author in self.authors]
        last = " et al." if names[-1] == "others" else f" and {names[-1]}"
        people = names[0] if len(names) == 1 else f"{', '.join(names[:-1])}{last}"
        volume = f"{self.fields.get('volume', '')}({self.fields.get('number', '')})"
        where = [
            f"In {self.fields['booktitle']}" if "booktitle" in self.fields else "",
            f"{self.fields['journal']} {volume}" if "journal" in self.fields else "",
            self.fields.get("publisher", ""),
            "" if self.year is None else str(self.year),
            f"pages {self.fields['pages'].replace('-', ' to ')}" if "pages" in self.fields else "",
        ]
        parts = [people.removesuffix("."), f'"{self.title}"', ", ".join(filter(None, where))]
        parts += [self.fields.get("note", "")]
        parts += [f"doi:{self.fields['doi']}" if "doi" in self.fields else ""]
        parts += [self.fields.get("url", "")]
        return ". ".join(filter(None, parts))

    def as_bibtex(self) -> str:
        """One entry; the title keeps its capitals."""
        fields = {"author": " and ".join(self.authors), "title": f"{{{self.title}}}"}
        fields |= {name: self.fields[name] for name in _FIELDS if name in self.fields}
        if "pages" in fields:
            fields["pages"] = fields["pages"].replace("-", "--")
        if self.year is not None:
            fields["year"] = str(self.year)
        lines = [f"  {name} = {{{value}}}" for name, value in fields.items()]
        return f"@{self.kind}{{{self.key},\n" + ",\n".join(lines) + "\n}"


def citable_names() -> tuple[str, ...]:
    """Return the names that have an entry: predictors, models of the literature, data sets."""
    return tuple(_table()[1])


def references_of(names: Sequence[str]) -> list[tuple[Reference, list[str]]]:
    """The references of predictors, models or data sets, each with those names that rest on it.

    In the order of citations.json. Raises InputError on a name that has no entry.
    """
    references, known = _table()
    for name in names:
        if name not in known:
            close = near_names(name, known, most=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InputError(
                f"there is no predictor, model or data set '{name}'; there are "
                f"{', '.join(known)}{hint}"
            )
    users = [
        (reference, [name for name in dict.fromkeys(names) if key in known[name]])
        for key, reference in references.items()
    ]
    return [(reference, names) for reference, names in users if names]


@functools.cache
def _table() -> tuple[dict[str, Reference], dict[str, tuple[str, ...]]]:
    table = shipped_json(__file__, "citations.json")
    references = {
        key: Reference(
            key=key,
            kind=entry["type"],
            authors=tuple(entry["authors"]),
            title=entry["title"],
            year=entry.get("year"),
            fields={name: entry[name] for name in _FIELDS if name in entry},
        )
        for key, entry in table["references"].items()
    }
    return references, {name: tuple(keys) for name, keys in table["names"].items()}


def _spoken(author: str) -> str:
    """'Family, Given' as 'Given Family'."""
    family, _, given = author.strip("{}").partition(", ")
    return f"{given} {family}".strip()
