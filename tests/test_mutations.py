"""Damaged files of every kind, some hundred of them; tools/reliability.py makes thousands."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import Trial, untouched
from readers import readers

MODELS = ("nearest",)


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    folder = tmp_path_factory.mktemp("mutations")
    return [Trial(reader, folder) for reader in readers(folder, MODELS)]


@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_refused_or_changes_no_other_row(
    trials: list[Trial], data: st.DataObject, seed: int
) -> None:
    trial = data.draw(st.sampled_from(trials))
    assert trial.problem(Random(seed)) is None, trial.reader.name


class TestUntouched:
    """By hand: what a fault in a line leaves alone."""

    WHOLE = b"kernel,x\na,1\nb,2\nc,3\n"

    @pytest.mark.parametrize(
        ("other", "names"),
        [
            (b"kernel,x\na,1\nb,9\nc,3\n", ["a", "c"]),
            (b"kernel,x\na,1\nc,3\n", ["a", "c"]),
            (b"kernel,x\na,1\nb,2\n", ["a", "b"]),
            (b"kernel,y\na,1\nb,2\nc,3\n", []),
            (b"kernel,x\na,1\nb,2\nc,3\na,1\n", ["b", "c"]),
            (b"kernel,x\nb,2\na,1\nc,3\n", ["c"]),
        ],
    )
    def test_names(self, other: bytes, names: list[str]) -> None:
        assert untouched(self.WHOLE, other, ["a", "b", "c"]) == names


@pytest.mark.parametrize(
    ("keeps", "problem"), [("others", None), ("all", "other numbers of 'compute0'")]
)
def test_another_number_is_noticed(tmp_path: Path, keeps: str, problem: str | None) -> None:
    """The time of the first kernel at the base is twice what it was."""
    reader = next(r for r in readers(tmp_path) if r.name == "table CSV")
    time = reader.content.splitlines()[2].split(b",")[6]
    changed = reader.content.replace(time, b"%f" % (2 * float(time)))
    assert Trial(replace(reader, keeps=keeps), tmp_path).problem_of(changed) == problem
