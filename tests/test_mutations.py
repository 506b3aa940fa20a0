"""Damaged files of every kind: refused in one line, or harmless.

Expected: what comes of the whole file. tools/reliability.py makes thousands.
"""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import Trial
from readers import readers


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    folder = tmp_path_factory.mktemp("mutations")
    return [Trial(reader, folder) for reader in readers(folder, ("nearest",))]


@given(data=st.data(), seed=st.integers(0, 2**32))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_refused_or_harmless(
    trials: list[Trial], data: st.DataObject, seed: int
) -> None:
    trial = data.draw(st.sampled_from(trials))
    fault = data.draw(st.sampled_from(trial.faults))
    assert trial.problem(Random(seed), fault) is None, f"{trial.reader.name}, {fault}"


def test_a_whole_file_is_read_from_a_pipe(trials: list[Trial]) -> None:
    assert {t.reader.name: problem for t in trials if (problem := t.problem_of_pipe())} == {}
