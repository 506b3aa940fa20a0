"""Launches summed up by kernel and geometry; made by hand, and so what is expected."""

from collections.abc import Sequence

import numpy as np
import pytest

from mlscale import InputError
from mlscale.readers.columns import labels
from mlscale.readers.launches import Facts, Key, Launch, Launches, SummedFile, in_parts, summed
from mlscale.readers.registry import Kind

NAN = float("nan")
KIND = Kind("made", "made", "a made file")


def run_of(*launches: Launch, each: bool = False, gpu: str | None = None) -> SummedFile:
    return summed(in_parts(launches), "made.csv", KIND, Facts(), each, gpu)


def launch(kernel: str, time_us: float | None, gpu: str = "", **counters: float) -> Launch:
    time_s = None if time_us is None else time_us / 1e6
    return Launch(7, kernel, time_s, 8, 64, gpu, counters)


def test_means_of_a_kernel_with_one_geometry() -> None:
    """10 and 30 us; a counter that one launch lacks is the mean of the others."""
    run = run_of(
        launch("f", 10, a=4, b=1), launch("g\x1b[31m", 5), launch("f", 30, a=8),
        Launch(8, "f", 50e-6, 9, 64), Launch(9, "h", None, None, None),
    )  # fmt: skip
    keys = [("f", 8, 64, ""), ("g", 8, 64, ""), ("f", 9, 64, ""), ("h", None, None, "")]
    assert list(run.groups) == keys
    sums = run.groups[Key("f", 8, 64)]
    assert (sums.launches, sums.time_s) == (2, pytest.approx(20e-6))
    assert sums.means() == {"a": 6, "b": 1}
    assert run.groups[Key("h", None, None)].time_s is None
    assert run.has_counters


def test_launches_without_a_positive_time_are_dropped() -> None:
    run = run_of(launch("f", 10), launch("f", 0), launch("h", -5), launch("g", None))
    assert [key.kernel for key in run.groups] == ["f", "g"]
    assert (run.dropped, run.untimed) == (2, frozenset({"f", "h"}))


def test_each_launch_is_a_group() -> None:
    launches = [launch("f", 10)._replace(id="0"), launch("f", 30)._replace(id="1")]
    assert [key.launch for key in run_of(*launches, each=True).groups] == ["0", "1"]
    assert [key.launch for key in run_of(launch("f", 1), each=True).groups] == ["7"]  # the row


def test_further_rows_of_a_launch_and_rows_of_many() -> None:
    """One launch in two passes; and a row that stands for 1000 launches of 2 us."""
    passes = (launch("f", 10, a=4), launch("f", 30, b=5)._replace(is_new=False))
    [sums] = run_of(*passes).groups.values()
    assert (sums.launches, sums.time_s) == (1, pytest.approx(20e-6))
    assert sums.means() == {"a": 4, "b": 5}
    none = np.array([NAN])
    many = Launches(np.array([2]), labels(["f"]), np.array([2e-6]), none, none)
    many.weights = np.array([1000.0])
    [sums] = summed([many], "made.csv", KIND, Facts()).groups.values()
    assert (sums.launches, sums.time_total_s) == (1000, pytest.approx(2e-3))


def test_parts_give_what_one_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    launches = [launch("fg"[i % 2], i + 1, a=i) for i in range(9)]
    whole = run_of(*launches).groups
    monkeypatch.setattr("mlscale.readers.launches._AT_ONCE", 2)
    assert run_of(*launches).groups == whole


def test_of_several_gpus_one_is_chosen() -> None:
    facts = Facts(by_gpu={"0": {"cu_count": 4}, "1": {"cu_count": 8}})
    launches = [launch("f", 10, "0"), launch("f", 20, "1"), launch("f", 30, "1")]
    run = summed(in_parts(launches), "made.csv", KIND, facts, gpu="1")
    assert (run.gpus, run.gpu) == (("0", "1"), "1")
    assert run.groups[Key("f", 8, 64)].time_s == pytest.approx(25e-6)
    assert facts.seen == {"cu_count": {8: 1}}


SEVERAL = (launch("f", 10, "0"), launch("f", 20, "1"), launch("f", 30, "1"))


@pytest.mark.parametrize(
    ("launches", "gpu", "message"),
    [
        (SEVERAL, None, r"made.csv: is of GPUs 0 \(1 launch\), 1 \(2 launches\); name one"),
        (SEVERAL, "5", r"made.csv: has nothing of GPU 5; is of GPUs"),
        ([launch("f", 0)], None, r"made.csv: has no kernel launch with a positive .*\(1 without"),
        ([launch(" ", 10)], None, "made.csv: row 7: the kernel's name is empty"),
    ],
)
def test_refused(launches: Sequence[Launch], gpu: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run_of(*launches, gpu=gpu)


def test_a_file_of_a_machine_has_no_launch() -> None:
    assert not summed([], "made.csv", KIND, Facts(is_machine=True)).groups
    with pytest.raises(InputError, match="no kernel launch; the profiler says: ==ERROR== x"):
        summed([], "made.csv", KIND, Facts(complaint="==ERROR== x"))


def test_a_group_in_a_message() -> None:
    assert str(Key("f", 1_048_577, 256)) == "'f' (grid 1048577, block 256)"
    assert str(Key("f", None, 64, "3")) == "'f', launch 3"
