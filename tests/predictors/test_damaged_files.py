"""Model files of every predictor damaged by hand: refused in one line, or harmless."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_files import (
    DELETED,
    content_of,
    members_of,
    npy,
    outcome,
    paths_of,
    trained,
    with_value,
    zipped,
)

from mlscale import Profiles

PREDICTORS = (
    *("mean-surface", "nearest", "wu", "wang-chu", "max-overlap", "bottleneck"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("board-power", "board-time")),
)
# By predictor the arrays of a range: the lower end, and the higher.
RANGES = {
    "nearest": ("minimum", "maximum"),
    "wu": ("minimum", "maximum"),
    "bottleneck": ("low", "high"),
}

Members = dict[str, bytes]
File = tuple[Members, Profiles, Path]


@pytest.fixture(scope="module", params=PREDICTORS)
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The name of a predictor, the members of its file, profiles to ask it, and a path."""
    folder = tmp_path_factory.mktemp("damaged")
    model, profiles = trained(request.param)
    return request.param, members_of(content_of(model, folder)), profiles, folder / "d.mlscale"


def answered(path: Path, profiles: Profiles, members: Members, changed: Members) -> Any:
    path.write_bytes(zipped(members | changed))
    return outcome(path, profiles)


def holds_its_intervals(answer: Any) -> bool:
    """Whether an answer is a refusal in one line, or finite and within its own intervals."""
    if isinstance(answer, str):
        return len(answer.splitlines()) == 1
    for quantity in ("time_ms", "power_w"):
        for row in answer[0]:
            values = [row[f"{quantity}{end}"] for end in ("_low", "", "_high")]
            given = [value for value in values if value is not None]
            if not np.isfinite(given).all() or given != sorted(given):
                return False
    return True


@pytest.mark.parametrize("value", [DELETED, "x", -1], ids=["deleted", "x", "-1"])
def test_anything_in_the_document_may_be_wrong(value: object, file: Any) -> None:
    _, members, profiles, path = file
    document = json.loads(members["model.json"])
    for where in paths_of(document["predictors"]):
        wrong = with_value(document, ("predictors", *where), value)
        changed = {"model.json": json.dumps(wrong).encode()}
        assert holds_its_intervals(answered(path, profiles, members, changed)), where


def test_any_array_may_have_another_sign_or_size(file: Any) -> None:
    _, members, profiles, path = file
    for member in members.keys() - {"model.json"}:
        array = np.load(io.BytesIO(members[member])).astype(float)
        for other in (-array, 0 * array, 1e300 * array, np.concatenate([array, array])):
            answer = answered(path, profiles, members, {member: npy(other)})
            assert holds_its_intervals(answer), member


def test_a_range_that_ends_below_where_it_begins_is_refused(file: Any) -> None:
    """It would flag the kernels that are like the training's, and not the others."""
    name, members, profiles, path = file
    if name not in RANGES:
        pytest.skip("it keeps no range")
    document = json.loads(members["model.json"])
    text = [json.dumps(document["predictors"])]
    low, high = RANGES[name]
    for one, other in ((low, "\0"), (high, low), ("\0", high)):
        text.append(text[-1].replace(f'"{one}": {{"array"', f'"{other}": {{"array"'))
    document["predictors"] = json.loads(text[-1])
    changed = {"model.json": json.dumps(document).encode()}
    answer = answered(path, profiles, members, changed)
    assert answer.startswith(
        f"{path}: is a damaged model file: a range ends below where it begins; copy it anew"
    )
