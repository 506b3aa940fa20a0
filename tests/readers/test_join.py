"""Passes of counters and traces of one run joined; runs made by hand, and so what is expected."""

import pytest
from synthetic.tidy import refused

from mlscale import DataWarning
from mlscale.readers.join import Kernel, join
from mlscale.readers.launches import Facts, Key, LaunchSums, SummedFile
from mlscale.readers.registry import Kind

F, G = Key("void f<(int)2>(float *)", 8.0, 64.0), Key("g(int)", 8.0, 64.0)
TRACED_F = F._replace(kernel="f<2>(float*)")  # as another tool writes it


def a_run(source: str, **of: tuple[Key, int, float, dict[str, float]]) -> SummedFile:
    """Launches of each kernel, their mean time [ms], 0 for none, and their counters' means."""
    groups = {
        key: LaunchSums(
            launches,
            launches * ms / 1e3,
            launches if ms else 0,
            {name: launches * value for name, value in counters.items()},
            dict.fromkeys(counters, launches),
        )
        for key, launches, ms, counters in of.values()
    }
    return SummedFile(source, Kind("ncu", "ncu", "made"), groups, Facts())


def counts(ms: float = 1.0, launches: int = 1, key: Key = F, **counters: float) -> SummedFile:
    return a_run("counts.csv", f=(key, launches, ms, counters or {"a": 5.0}))


def trace(ms: float = 2.0, launches: int = 3, key: Key = TRACED_F) -> SummedFile:
    return a_run("trace.json", f=(key, launches, ms, {}))


@pytest.mark.parametrize("order", [1, -1])
def test_time_and_launches_are_the_traces(order: int) -> None:
    [kernel] = join([counts(), trace()][::order])
    assert kernel == Kernel(F.kernel, 8.0, 64.0, 3.0, 2e-3, True, 1e-3, {"a": 5.0}, {})
    assert kernel.run_s == pytest.approx(6e-3)


def test_counters_alone_say_their_own_time() -> None:
    [kernel] = join([counts(4.0, 7)])
    assert (kernel.launches, kernel.time_s, kernel.is_traced) == (7, pytest.approx(4e-3), False)


def test_what_only_the_trace_has_is_without_counters() -> None:
    both = a_run("trace.json", f=(TRACED_F, 3, 2.0, {}), g=(G, 1, 9.0, {}))
    kernels = join([counts(), both])
    assert [(kernel.name, kernel.counters) for kernel in kernels] == [
        (F.kernel, {"a": 5.0}),
        (G.kernel, {}),
    ]


@pytest.mark.parametrize("other", [G, F._replace(workgroups=9.0)], ids=["name", "grid"])
def test_what_was_not_traced_is_left_out(other: Key) -> None:
    counted = a_run("counts.csv", f=(F, 1, 1.0, {"a": 5.0}), g=(other, 1, 1.0, {"a": 6.0}))
    with pytest.warns(DataWarning, match=r"^counts.csv: not in the trace .*left out: 1 kernel"):
        [kernel] = join([counted, trace()])
    assert kernel.counters == {"a": 5.0}


def test_several_traces_are_repetitions() -> None:
    """2 launches of 20 ms and 4 of 50: 3 in a run, of 40 ms on average; 2 of one run: 1 in both."""
    both = a_run("trace2.json", f=(TRACED_F, 4, 50.0, {}), g=(G, 2, 5.0, {}))
    kernel, other = join([trace(20.0, 2), both])
    assert (kernel.launches, kernel.time_s) == (3, pytest.approx(0.04))
    assert (other.launches, other.time_s) == (1, pytest.approx(0.005))


def test_without_a_geometry_the_name_alone_counts() -> None:
    """Counters of both grids, of 1 and 3 launches: (4 + 3 · 8) ÷ 4. The grid is not one."""
    one, other = F, F._replace(workgroups=16.0)
    counted = a_run("c.csv", f=(one, 1, 1.0, {"a": 4.0}), g=(other, 3, 1.0, {"a": 8.0}))
    [kernel] = join([counted, trace(key=Key(TRACED_F.kernel, None, None))])
    assert kernel.counters == {"a": 7.0}
    assert (kernel.workgroups, kernel.workgroup_size) == (None, None)
    [kernel] = join([counts(), trace(key=Key(TRACED_F.kernel, None, None))])
    assert (kernel.workgroups, kernel.workgroup_size) == (8.0, 64.0)


class TestPasses:
    def test_each_brings_its_counters_and_its_cycles(self) -> None:
        """Counters of both are averaged; the time is the median of 1, 2 and 1.2 ms."""
        passes = [
            counts(1.0, GRBM_GUI_ACTIVE=10.0, a=1.0),
            counts(1.4, GRBM_GUI_ACTIVE=30.0, b=2.0),
            counts(1.2, c=3.0),
        ]
        [kernel] = join(passes)
        assert kernel.counters == {"GRBM_GUI_ACTIVE": 20.0, "a": 1.0, "b": 2.0, "c": 3.0}
        assert (kernel.cycles["a"], kernel.cycles["b"]) == (10.0, 30.0)
        assert "c" not in kernel.cycles
        assert kernel.time_s == pytest.approx(1.2e-3)

    def test_few_that_differ_keep_their_time_and_no_counter(self) -> None:
        first = a_run("a.csv", f=(F, 20, 1.0, {"a": 1.0}), g=(G, 1, 1.0, {"a": 2.0}))
        second = a_run("b.csv", f=(F, 19, 1.0, {"b": 1.0}))
        with pytest.warns(DataWarning, match=r"^b.csv: other launches than .* \('g\(int\)'"):
            kernels = join([first, second])
        assert [kernel.counters for kernel in kernels] == [{"a": 1.0, "b": 1.0}, {}]

    def test_the_pass_that_differs_from_the_first_is_named(self) -> None:
        middle = a_run("middle.csv", f=(F, 20, 1.0, {"b": 1.0}), g=(G, 9, 1.0, {"b": 2.0}))
        others = [
            a_run(name, f=(F, 20, 1.0, {"a": 1.0}), g=(G, 4, 1.0, {"a": 2.0}))
            for name in ("a.csv", "c.csv")
        ]
        with pytest.warns(DataWarning, match=r"^middle.csv: other launches than .* \('g\(int\)'"):
            join([others[0], middle, others[1]])

    def test_all_that_differ_are_refused(self) -> None:
        with refused("^counts.csv: other launches than in the other passes: .* same launches$"):
            join([counts(launches=20), counts(launches=10)])

    def test_unlike_times_are_of_two_runs(self) -> None:
        """As prefill and decode; of a launch below 50 us nothing is concluded."""
        with refused("take 2 times as long as in counts.csv; .* ask about each alone"):
            join([counts(1.0), counts(2.0)])
        assert len(join([counts(0.02), counts(0.045)])) == 1


class TestRefused:
    def test_a_trace_of_another_program(self) -> None:
        with refused(r"^trace.json: has no kernel of counts.csv, which has 'void f.* 'g\(int\)'"):
            join([counts(), trace(key=G)])

    def test_a_machine_alone(self) -> None:
        with refused("^sysinfo.csv: describes a machine, not kernels; give it beside"):
            join([a_run("sysinfo.csv")])

    def test_each_launch_of_counters_beside_a_trace(self) -> None:
        with refused("^trace.json: its launches cannot be matched with those of counts.csv; leave out --each"):
            join([counts(key=F._replace(launch="1")), trace(key=TRACED_F._replace(launch="7"))])

    @pytest.mark.parametrize("skips", [False, True])
    def test_kernels_without_any_time(self, skips: bool) -> None:
        with refused("has no times for 1 kernel .*--section SpeedOfLight$"):
            join([counts(0.0)], skips)
        some = a_run("c.csv", f=(F, 1, 1.0, {"a": 1.0}), g=(G, 1, 0.0, {"a": 1.0}))
        if skips:
            with pytest.warns(DataWarning, match=r"has no times for 1 kernel \('g.*; left out"):
                assert len(join([some], skips)) == 1
        else:
            with refused("; or leave such kernels out with --skip-untimed$"):
                join([some])
