"""Passes of counters and traces of one run joined, by the names that two tools give a kernel.

Runs and names are made by hand, as the tools write them, and so is what is expected.
"""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic.tidy import refused

from mlscale import DataWarning
from mlscale.readers.join import Kernel, bare, common_names, join, plain, unscoped
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
    counted, traced = join([counts(), both])
    assert (counted.name, counted.counters) == (F.kernel, {"a": 5.0})
    assert (traced.name, traced.counters) == (G.kernel, {})


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
        """The pass that differs from the others is named."""
        first, last = (
            a_run(name, f=(F, 20, 1.0, {"a": 1.0}), g=(G, 4, 1.0, {"a": 2.0}))
            for name in ("a.csv", "c.csv")
        )
        middle = a_run("middle.csv", f=(F, 20, 1.0, {"b": 1.0}), g=(G, 9, 1.0, {"b": 2.0}))
        with pytest.warns(DataWarning, match=r"^middle.csv: launches differ from .* \('g\(int\)'"):
            kernels = join([first, middle, last])
        assert [kernel.counters for kernel in kernels] == [{"a": 1.0, "b": 1.0}, {}]

    def test_files_of_other_kernels_each_are_parts_of_one_run(self) -> None:
        one = a_run("a.csv", f=(F, 2, 1.0, {"a": 1.0}))
        other = a_run("b.csv", g=(G, 3, 2.0, {"a": 4.0}))
        assert [(k.launches, k.counters) for k in join([one, other])] == [
            (2, {"a": 1.0}),
            (3, {"a": 4.0}),
        ]

    def test_times_of_short_launches_are_not_compared(self) -> None:
        """Of a launch below 50 us nothing is concluded."""
        assert len(join([counts(0.02), counts(0.045)])) == 1


EACH = counts(key=F._replace(launch="1")), trace(key=TRACED_F._replace(launch="7"))
SOME_TIMES = a_run("c.csv", f=(F, 1, 1.0, {"a": 1.0}), g=(G, 1, 0.0, {"a": 1.0}))


@pytest.mark.parametrize(
    ("runs", "skips", "message"),
    [
        ([counts(launches=20), counts(launches=10)], False,
         "^counts.csv: launches differ from those of the other passes: .* same launches; for"),
        ([counts(1.0), counts(2.0)], False,  # as prefill and decode
         "take 2 times as long as in counts.csv; .* ask about each separately"),
        ([counts(), trace(key=G)], False,
         r"^trace.json: has no kernel of counts.csv, which has 'void f.* 'g\(int\)'"),
        ([a_run("sysinfo.csv")], False,
         "^sysinfo.csv: describes a machine, not kernels; give it together with"),
        (EACH, False,
         "^trace.json: its launches cannot be matched with those of .*; omit each=True"),
        ([counts(0.0)], False, "has no times for 1 kernel .*--section SpeedOfLight$"),
        ([counts(0.0)], True, "has no times for 1 kernel .*--section SpeedOfLight$"),
        ([SOME_TIMES], False, "; or leave such kernels out with skip_untimed=True$"),
    ],
)  # fmt: skip
def test_refused(runs: Sequence[SummedFile], skips: bool, message: str) -> None:
    with refused(message):
        join(runs, skips)


def test_kernels_without_times_are_left_out_where_asked() -> None:
    with pytest.warns(DataWarning, match=r"has no times for 1 kernel \('g.*; left out"):
        assert len(join([SOME_TIMES], skip_untimed=True)) == 1


IDENTIFIERS = st.text("abk_19", min_size=1, max_size=8).map(lambda name: f"k{name}")
TYPES = st.sampled_from(["int", "float *", "const half *", "unsigned int", "n::Op<float>"])
WRITINGS = [  # one kernel's names: CUDA's demangler, the C++ library's, and others
    "void at::native::(anonymous namespace)::v<(int)4, F<(bool)1>, S<char *, (long)1>>(int)",
    "void at::native::(anonymous namespace)::v<4, F<true>, S<char*, 1l> >(int)",
    "at::native::<unnamed>::v<4, F<true>, S<char*, 1>>(int) [clone .kd]",
    "void at::native::<unnamed>::v<(int)4, F<(bool)1>, S<char *, (unsigned long)1>>(int) [37]",
]
LAMBDAS = [
    "void g<(int)8, void n::h<n::s(T &)::[lambda() (instance 2)]::operator ()() const>>(const T *)",
    "void g<8, n::h<n::s(T&)::{lambda()#2}::operator()() const> >(T const*)",
]


@st.composite
def signatures(draw: st.DrawFn) -> tuple[str, str, str]:
    """Scope and function, templates, arguments."""
    scope = "".join(f"{name}::" for name in draw(st.lists(IDENTIFIERS, max_size=2)))
    templates = draw(st.lists(TYPES | st.sampled_from(["(int)4", "(bool)0"]), max_size=3))
    arguments = ", ".join(draw(st.lists(TYPES, max_size=3)))
    listed = f"<{', '.join(templates)}>" if templates else ""
    return scope + draw(IDENTIFIERS), listed, f"({arguments})"


@given(signature=signatures())
def test_at_each_shortening_it_is_the_only_kernel_of_its_function(
    signature: tuple[str, str, str],
) -> None:
    function, templates, arguments = signature
    whole = f"void {function}{templates}{arguments}"
    base = function.rpartition("::")[2]
    shortenings = [
        f"{function}{templates}{arguments}".replace(" *", "*").replace(", ", ","),
        f"{function}{templates}",
        f"{base}{templates}",
        base,
    ]
    for short in shortenings:
        assert common_names([whole], [short]) == {short: whole}
        assert common_names([short], [whole]) == {whole: short}
    assert bare(whole) == base
    assert unscoped(whole) == plain(f"{base}{templates}")


@given(signature=signatures(), types=st.lists(TYPES, min_size=2, max_size=2, unique=True))
def test_variants_are_never_taken_for_each_other(
    signature: tuple[str, str, str], types: list[str]
) -> None:
    function, _, arguments = signature
    one, other = (f"void {function}<{name}>{arguments}" for name in types)
    assert common_names([one], [other]) == {}
    assert common_names([one, other], [other]) == {other: other}
    assert common_names([one, other], [function.rpartition("::")[2]]) == {}


@pytest.mark.parametrize(("one", "other"), [*product(WRITINGS, WRITINGS), LAMBDAS])
def test_as_each_tool_writes_it(one: str, other: str) -> None:
    assert plain(one) == plain(other)
    assert common_names([one], [other]) == {other: one}


@pytest.mark.parametrize(
    ("counted", "traced", "same"),
    [
        # CUDA's demangler writes T1 where the C++ library writes the type.
        (["void f<(int)4, A>(int, T2)", "void f<(int)4, B>(int, T2)"],
         ["void f<4, B>(int, B)", "void f<4, C>(int, C)"], {1: 0}),
        (["f<int>(int)", "g"], ["f<int>(int)", "f", "void g"], {0: 0, 1: 2}),
        (["void n::f<Op<int>>(T1::Params)"], ["void f<Op<int>>(Params)"], {0: 0}),
        (["a::f(int)"], ["b::f(int)"], {}),
        (["f<int>(int)", "f<int>(float)"], ["f<int>(T1)"], {}),  # ambiguous
        (["f<int>", "f<float>"], ["f"], {}),
        (["f(int)"], ["_Z1fi"], {}),  # mangled
    ],
)  # fmt: skip
def test_finest_agreement_counts(
    counted: list[str], traced: list[str], same: dict[int, int]
) -> None:
    expected = {traced[other]: counted[one] for one, other in same.items()}
    assert common_names(counted, traced) == expected


@given(name=st.text(max_size=40))
def test_of_any_text_is_itself(name: str) -> None:
    assert common_names([name], [name]) == {name: name}
