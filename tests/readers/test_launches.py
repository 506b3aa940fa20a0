"""Launches summed up: expected numbers by hand."""

import numpy as np
import pytest

from mlscale import InputError
from mlscale.readers.files import Labels
from mlscale.readers.launches import (
    Facts,
    Key,
    Launch,
    Launches,
    LaunchSums,
    SummedFile,
    in_parts,
    summed,
)

NAN = float("nan")


def run_of(*launches: Launch, each: bool = False, gpu: str | None = None) -> SummedFile:
    return summed(in_parts(launches), "made.csv", "made", "a made file", Facts(), each, gpu)


def launch(kernel: str, time_us: float | None, gpu: str = "", **counters: float) -> Launch:
    time_s = None if time_us is None else time_us / 1e6
    return Launch(7, kernel, time_s, 8, 64, gpu, counters)


class TestSummed:
    def test_means_of_a_kernel_with_one_geometry(self) -> None:
        """10 and 30 us; a counter that one launch lacks is the mean of the others."""
        run = run_of(
            launch("f", 10, a=4, b=1), launch("g", 5), launch("f", 30, a=8),
            Launch(8, "f", 50e-6, 9, 64),
        )  # fmt: skip
        assert list(run.groups) == [("f", 8, 64, ""), ("g", 8, 64, ""), ("f", 9, 64, "")]
        sums = run.groups[Key("f", 8, 64)]
        assert (sums.launches, sums.time_s) == (2, pytest.approx(20e-6))
        assert sums.means() == {"a": 6, "b": 1}
        assert run.has_counters

    def test_what_the_file_does_not_say(self) -> None:
        run = run_of(Launch(7, "f", None, None, None))
        [(key, sums)] = run.groups.items()
        assert key == ("f", None, None, "")
        assert (sums.launches, sums.time_s) == (1, None)

    def test_launches_without_a_positive_time_are_dropped(self) -> None:
        run = run_of(launch("f", 10), launch("f", 0), launch("h", -5), launch("g", None))
        assert [key.kernel for key in run.groups] == ["f", "g"]
        assert (run.dropped, run.untimed) == (2, frozenset({"f", "h"}))
        with pytest.raises(
            InputError, match=r"made.csv: has no kernel launch with a .*\(1 without"
        ):
            run_of(launch("f", 0))

    def test_each_launch_is_a_group(self) -> None:
        launches = [launch("f", 10)._replace(id="0"), launch("f", 30)._replace(id="1")]
        assert [key.launch for key in run_of(*launches, each=True).groups] == ["0", "1"]
        assert [key.launch for key in run_of(launch("f", 1), each=True).groups] == ["7"]  # the row

    def test_further_rows_of_a_launch_and_rows_of_many(self) -> None:
        """One launch in two passes; and a row that stands for 1000 launches of 2 us."""
        passes = (launch("f", 10, a=4), launch("f", 30, b=5)._replace(is_new=False))
        [sums] = run_of(*passes).groups.values()
        assert (sums.launches, sums.time_s) == (1, pytest.approx(20e-6))
        assert sums.means() == {"a": 4, "b": 5}
        many = Launches(
            np.array([2]), Labels.of(["f"]), np.array([2e-6]), np.array([NAN]), np.array([NAN]),
            weights=np.array([1000.0]),
        )  # fmt: skip
        [sums] = summed([many], "made.csv", "made", "", Facts()).groups.values()
        assert (sums.launches, sums.time_total_s) == (1000, pytest.approx(2e-3))

    def test_parts_give_what_one_gives(self, monkeypatch: pytest.MonkeyPatch) -> None:
        launches = [launch("fg"[i % 2], i + 1, a=i) for i in range(9)]
        whole = run_of(*launches).groups
        monkeypatch.setattr("mlscale.readers.launches._AT_ONCE", 2)
        assert run_of(*launches).groups == whole

    def test_of_several_gpus_one_is_chosen(self) -> None:
        facts = Facts(of_gpu={"0": {"cu_count": 4}, "1": {"cu_count": 8}})
        launches = [launch("f", 10, "0"), launch("f", 20, "1"), launch("f", 30, "1")]
        with pytest.raises(
            InputError, match=r"is of GPUs 0 \(1 launch\), 1 \(2 launches\); choose"
        ):
            run_of(*launches)
        with pytest.raises(InputError, match=r"made.csv: has no launches on GPU 5; is of GPUs"):
            run_of(*launches, gpu="5")
        run = summed(in_parts(launches), "made.csv", "made", "", facts, gpu="1")
        assert (run.gpus, run.gpu) == (("0", "1"), "1")
        assert run.groups[Key("f", 8, 64)].time_s == pytest.approx(25e-6)
        assert facts.seen == {"cu_count": {8: 1}}

    def test_a_file_of_a_machine_has_no_launch(self) -> None:
        facts = Facts(is_of_machine=True)
        assert not summed([], "made.csv", "made", "", facts).groups
        with pytest.raises(InputError, match="no kernel launch; the profiler says: ==ERROR== x"):
            summed([], "made.csv", "made", "", Facts(complaint="==ERROR== x"))

    @pytest.mark.parametrize(("name", "what"), [(" ", "empty"), ("f\ufffd", "damaged text")])
    def test_names_that_are_none(self, name: str, what: str) -> None:
        with pytest.raises(InputError, match=f"made.csv: row 7: the kernel's name is {what}"):
            run_of(launch(name, 10))

    def test_a_name_without_what_a_terminal_obeys(self) -> None:
        [key] = run_of(launch("f\x1b[31m(int)", 10)).groups
        assert key.kernel == "f(int)"


def test_sums_of_two_files() -> None:
    one, other = (
        LaunchSums(2, 6e-6, 2, {"a": 4}, {"a": 2}),
        LaunchSums(1, 9e-6, 1, {"b": 5}, {"b": 1}),
    )
    one.add(other)
    assert (one.launches, one.time_s, one.means()) == (3, pytest.approx(5e-6), {"a": 2, "b": 5})


def test_a_group_in_a_message() -> None:
    assert str(Key("f", 1_048_577, 256)) == "'f' (grid 1048577, block 256)"
    assert str(Key("f", None, 64, "3")) == "'f', launch 3"


def test_clocks_that_are_seen() -> None:
    facts = Facts()
    for mhz in (1000, 0, 1000, NAN):
        facts.note_clock("engine_mhz", mhz)
    assert facts.seen == {"engine_mhz": {1000: 2}}
