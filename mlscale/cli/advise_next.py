"""mlscale advise --next-profile: where to measure next, as text."""

import csv
import io
import json
from dataclasses import asdict
from typing import Any

from mlscale.advice.next_point import COVERAGE, NextProfile, next_profile
from mlscale.cli.text import columns
from mlscale.data.profiles import Profiles
from mlscale.model import Model

TOGETHER = "all kernels together"


def next_profile_text(model: Model, profiles: Profiles, form: str) -> str:
    """The next configurations as a table, CSV or JSON. Raises InputError."""
    each, together = next_profile(model, profiles)
    if form == "json":
        document = {
            "device": model.device,
            "base": model.base.as_dict(),
            "also": [point.config.as_dict() for point in profiles.also],
            "coverage": COVERAGE,
            "kernels": [{"kernel": one.kernel, **_as_dict(one)} for one in each],
            "together": together and _as_dict(together),
        }
        return json.dumps(document, indent=1) + "\n"
    found = [*each, *([together] if together else [])]
    if form == "csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, ["kernel", *_as_dict(each[0])], lineterminator="\n")
        writer.writeheader()
        writer.writerows({"kernel": one.kernel or TOGETHER, **_as_dict(one)} for one in found)
        return text.getvalue()
    headers = ["kernel", "CUs", "engine MHz", "memory MHz", "narrower %"]
    calibrated = found[0].now_percent is not None
    headers += ["now +- %", "then +- %"] if calibrated else []
    lines = []
    for one in found:
        line = [one.kernel or TOGETHER, *(f"{axis:g}" for axis in one.config.as_dict().values())]
        line.append(f"{one.narrower_percent:.0f}")
        if calibrated:
            line += [f"{percent or 0:.1f}" for percent in (one.now_percent, one.after_percent)]
        lines.append(line)
    return (
        f"Measure next, for --also:\n{columns(headers, lines)}\n\n"
        f"+- %: half the {100 * COVERAGE:g} % interval of time, mean over the grid; "
        f"base {model.base} on {model.device}\n"
    )


def _as_dict(one: NextProfile) -> dict[str, Any]:
    row = asdict(one)
    return {**one.config.as_dict(), **{k: row[k] for k in row if k not in ("kernel", "config")}}
