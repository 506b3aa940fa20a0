"""Launches from a file of one's own."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import frugal
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import Profiles
from mlscale.data.profiles import with_weights


@pytest.fixture
def profiles() -> Profiles:
    """Kernels compute0 and bandwidth0, of 3 and 5 launches."""
    two = frugal.measurements(per_group=1).profiles(made.GRID.mid)
    return replace(two, launches=np.array([3.0, 5.0]))


def written(folder: Path, text: str) -> Path:
    path = folder / "weights.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_they_override_and_the_others_keep_theirs(profiles: Profiles, tmp_path: Path) -> None:
    weighted = with_weights(profiles, written(tmp_path, "kernel,launches\nbandwidth0,0.5\n"))
    assert weighted.weights.tolist() == [3.0, 0.5]
    none = replace(profiles, launches=None)
    weighted = with_weights(none, written(tmp_path, "kernel,launches\nbandwidth0,70\n"))
    assert weighted.weights.tolist() == [1.0, 70.0]


def test_rows_in_any_order_and_names_with_commas(profiles: Profiles, tmp_path: Path) -> None:
    named = replace(profiles, kernels=("f<int, 2>(a, b)", "g"))
    path = written(tmp_path, 'launches,kernel\n2,g\n9,"f<int, 2>(a, b)"\n')
    assert with_weights(named, path).weights.tolist() == [9.0, 2.0]


def test_a_kernel_that_does_not_run_is_left_out(profiles: Profiles, tmp_path: Path) -> None:
    """By definition: the sums over the run are those of the other kernels."""
    weighted = with_weights(profiles, written(tmp_path, "kernel,launches\ncompute0,0\n"))
    assert weighted.kernels == ("bandwidth0",)
    assert weighted.run_times_ms.tolist() == [5.0 * profiles.time_ms[1]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "kernel,launches\ncompute,1\nx,2\n",
            "weights.csv: the profile has no kernel 'compute', 'x'; near the first: 'compute0'$",
        ),
        ("kernel,launches\nzzz,1\n", "the profile has no kernel 'zzz'$"),
        (f"kernel,launches\n{'z' * 500},1\n", "has no kernel 'z{40}…z{19}'$"),
        ("kernel,launches\ncompute0,1\ncompute0,2\n", "several rows for 'compute0'; give each"),
        ("kernel,launches\nband,1\n", "no kernel 'band'; near the first: 'bandwidth0'$"),
        (
            "kernel,launches\ncompute0,-1\n",
            "row 2, column 'launches': the value is -1; it must be 0 or positive, and finite$",
        ),
        ("kernel,launches\ncompute0,0\nbandwidth0,0\n", "every kernel has 0 launches; at least"),
        ("kernel,launches\ncompute0,\n", "row 2, column 'launches': the value is not given"),
        ("kernel,count\ncompute0,1\n", "there is no column 'launches'"),
    ],
)
def test_refused(profiles: Profiles, tmp_path: Path, text: str, complaint: str) -> None:
    with refused(complaint):
        with_weights(profiles, written(tmp_path, text))
