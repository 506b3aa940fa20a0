"""Counters of one tool joined to the trace of another: names, launches, and what does not join.

Made files in the layouts of ncu and nsys; every expected number is written into them. A launch
that ncu counted takes 10 us there, and 16 workgroups of 128.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from synthetic.exports import (
    BASE,
    NCU,
    V3_TRACE,
    by_kernel,
    long_page,
    long_rows,
    read,
    rocprof_v1,
    rocprofv3,
)

from mlscale import DataWarning, InputError
from mlscale.data.profiles import OF_LAUNCH, profiles_at

MADE = {"device": "made-gpu", "base": BASE}
HEADER = "Start (us),Duration (us),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name\n"
SUMMARY = "Time (%),Total Time (us),Instances,Name\n"


def trace(*launches: tuple[str, int], grid: int = 16) -> str:
    """nsys' trace of launches of a kernel and for how many microseconds, without a GPU."""
    rows = (
        f'{1000 * i},{us},{grid},1,1,128,1,1,"{kernel}"\n'
        for i, (kernel, us) in enumerate(launches)
    )
    return HEADER + "".join(rows)


def summary(**launches: tuple[int, int]) -> str:
    """nsys' summary: of each kernel the number of launches and their mean in microseconds."""
    rows = (f'1,{n * us},{n},"{name}"\n' for name, (n, us) in launches.items())
    return SUMMARY + "".join(rows)


def counted(*kernels: str, grids: Sequence[str] = ("(8, 2, 1)",)) -> str:
    rows = [
        long_rows(i * len(grids) + j, kernel, grid=grid)
        for i, kernel in enumerate(kernels)
        for j, grid in enumerate(grids)
    ]
    return long_page(*rows)


class TestBothHave:
    def test_time_and_launches_are_the_traces(self, tmp_path: Path) -> None:
        """Three launches of 30 us on average; ncu saw one, of 10 us, under another writing."""
        timed = trace(("k<2>(float*)", 20), ("k<2>(float*)", 30), ("k<2>(float*)", 40))
        imported = read(tmp_path, counted("void k<(int)2>(float *)"), timed, **MADE)
        assert by_kernel(imported, "launches") == {"void k<(int)2>(float *)": 3}
        assert imported.table.numbers["time_ms"] == pytest.approx([0.03])
        assert imported.table.numbers["total_time_ms"] == pytest.approx([0.09])
        assert imported.table.numbers["VALUInsts"] == pytest.approx([40])
        assert imported.table.metadata["counter_tool"] == imported.tool == "ncu"
        assert imported.covered == 1
        assert imported.launches == 3
        assert imported.time_ms == pytest.approx(0.09)

    def test_mangled_names_are_said_and_the_readable_one_stays(self, tmp_path: Path) -> None:
        mangled, name = "_ZN1n1kILi2EEEvPf", "void n::k<(int)2>(float *)"
        for one, other in ((mangled, name), (name, mangled)):
            with pytest.warns(DataWarning, match=r"mangled in one file: 'void n::k<\(int\)2>"):
                imported = read(tmp_path, counted(one), trace((other, 20), (other, 40)), **MADE)
            assert by_kernel(imported, "time_ms") == {name: pytest.approx(0.03)}
            assert imported.covered == 1

    def test_mangled_variants_stay_apart_and_are_said(self, tmp_path: Path) -> None:
        timed = trace(("_Z1kILi2EEvPf", 20), ("_Z1kILi3EEvPf", 60), ("g(int)", 20))
        with pytest.warns(DataWarning) as warned:
            imported = read(tmp_path, counted("k<2>(float*)", "g(int)"), timed, **MADE)
        texts = [str(warning.message) for warning in warned]
        assert sum("let the tool write them in full" in text for text in texts) == 1
        assert any("80.0 % of the run's time; mangled names join" in text for text in texts)
        assert imported.covered == pytest.approx(0.2)

    def test_rates_are_of_the_pass_that_counted(self, tmp_path: Path) -> None:
        """20 kB read in ncu's 10 us; at other clocks the trace has 40 us."""
        imported = read(tmp_path, counted("k"), trace(("k", 40)), **MADE)
        assert imported.table.numbers["ReadBandwidth"] == pytest.approx([20e3 / 10e-6])
        assert imported.table.numbers["time_ms"] == pytest.approx([0.04])

    @pytest.mark.parametrize(
        ("us", "told"), [(50, False), (60, True), (90, False), (115, False), (180, True)]
    )
    def test_other_clocks_than_the_traces_are_told(
        self, tmp_path: Path, us: int, told: bool
    ) -> None:
        """Counted in 100 us; at 50 us a launch is too short to tell."""
        metrics = {**NCU, "gpu__time_duration.sum": ("us", "100")}
        page = long_page(long_rows(kernel="k", metrics=metrics))
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            read(tmp_path, page, trace(("k", us)), **MADE)
        texts = [str(warning.message) for warning in warned]
        assert any("as long while they were counted" in text for text in texts) == told

    @pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
    @pytest.mark.parametrize(
        ("counted_mhz", "traced_us", "alike_us", "told"),
        [
            pytest.param(1000, 75, 90, "took 1.3 times .*: ncu sets its own", id="ncu-held-down"),
            pytest.param(1400, 130, 115, "took 0.77 times .*: a power limit", id="run-held-down"),
        ],
    )
    def test_a_clock_that_one_of_the_runs_did_not_have_is_refused(
        self, tmp_path: Path, counted_mhz: int, traced_us: int, alike_us: int, told: str
    ) -> None:
        """Counted in 100 us on an A100 of 1410 MHz, traced as at 1333 MHz and as at 1077."""
        clock = {"sm__cycles_elapsed.avg.per_second": ("Mhz", str(counted_mhz))}
        metrics = {**NCU, **clock, "gpu__time_duration.sum": ("us", "100")}
        page = long_page(long_rows(kernel="k", metrics=metrics))
        a100 = {"device": "a100-sxm4-40gb", "base": {"memory_mhz": 1215}}
        with pytest.raises(InputError, match=rf"{told} .* say --base engine={counted_mhz}$"):
            read(tmp_path, page, trace(("k", traced_us)), **a100)
        assert len(read(tmp_path, page, trace(("k", alike_us)), **a100).table) == 1
        said = {**a100, "base": {"engine_mhz": counted_mhz, "memory_mhz": 1215}}
        assert len(read(tmp_path, page, trace(("k", traced_us)), **said).table) == 1

    @pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
    @pytest.mark.parametrize(
        ("traced_us", "told"),
        [
            (600, "took 1.7 times .* at 1500 MHz by their cycles: .* say --base engine=1500$"),
            (1300, "took 0.77 times .* at 1500 MHz: a power limit"),
        ],
    )
    def test_cycles_tell_the_clock_at_which_amd_s_kernels_were_counted(
        self, tmp_path: Path, traced_us: int, told: str
    ) -> None:
        """1.5 million cycles in 1 ms on a GPU of one die."""
        pass_of_ms = rocprofv3({"GRBM_GUI_ACTIVE": 1.5e6, "SQ_WAVES": 10}, 1000, 1_001_000)
        times = V3_TRACE.replace(",5000,9000,", f",5000,{5000 + 1000 * traced_us},")
        times = times.replace(",1000,3000,", f",1000,{1000 + 1000 * traced_us},")
        mi210 = {"device": "mi210", "base": {"memory_mhz": 1600}}
        with pytest.raises(InputError, match=told):
            read(tmp_path, pass_of_ms, times, **mi210)
        said = {**mi210, "base": {"engine_mhz": 1500, "memory_mhz": 1600}}
        with pytest.warns(DataWarning, match="were the clocks others than here[?]"):
            assert len(read(tmp_path, pass_of_ms, times, **said).table) == 1

    @pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
    def test_the_kernels_of_most_time_tell_the_clock(self, tmp_path: Path) -> None:
        """Of 421 us of the trace 225 are of k, at 100 / 75; two others are bound by memory."""
        clock = {"sm__cycles_elapsed.avg.per_second": ("Mhz", "1000")}
        metrics = {**NCU, **clock, "gpu__time_duration.sum": ("us", "100")}
        page = long_page(*(long_rows(i, kernel=k, metrics=metrics) for i, k in enumerate("kmn")))
        timed = trace(("k", 75), ("k", 75), ("k", 75), ("m", 98), ("n", 98))
        with pytest.raises(InputError, match=r"took 1.3 times .*: ncu sets its own"):
            read(tmp_path, page, timed, device="a100-sxm4-40gb", base={"memory_mhz": 1215})

    def test_a_trace_of_fewer_launches_than_counted_is_warned_of(self, tmp_path: Path) -> None:
        pages = counted("k(float *)", "k(float *)")
        with pytest.warns(DataWarning, match="fewer launches were timed than counted of 'k"):
            read(tmp_path, pages, trace(("k(float*)", 20)), **MADE)

    def test_order_of_the_files_does_not_matter(self, tmp_path: Path) -> None:
        imported = read(tmp_path, trace(("k", 20)), counted("void k(float *)"), **MADE)
        assert imported.tool == "ncu"
        assert imported.table.numbers["time_ms"] == pytest.approx([0.02])

    def test_grid_and_block_tell_launches_apart(self, tmp_path: Path) -> None:
        """At 16 workgroups the trace has 20 us, at 32 none; ncu counted both."""
        page = counted("k", grids=["(8, 2, 1)", "(32, 1, 1)"])
        message = r"not in the trace.* left out: 1 kernel \('k' \(grid 32, block 128\)\)"
        with pytest.warns(DataWarning, match=message):
            imported = read(tmp_path, page, trace(("k", 20)), **MADE)
        assert by_kernel(imported, "time_ms") == pytest.approx({"k": 0.02})
        assert imported.time_ms == pytest.approx(0.02)

    def test_counters_of_another_geometry_are_no_counters_of_the_trace(
        self, tmp_path: Path
    ) -> None:
        """Counted at 16 workgroups; in the trace two launches at 32, and 'f' as it was counted."""
        timed = trace(("k", 30), ("k", 50), ("f", 10), grid=32).replace(",10,32,", ",10,16,")
        message = (
            r"another grid or block than the traced launches, so these counters are left out: "
            r"1 kernel \('k' \(grid 16, block 128\), traced at grid 32, block 128\); profile the "
        )
        with (
            pytest.warns(DataWarning, match=message),
            pytest.warns(DataWarning, match="without counters: 1 kernel"),
        ):
            imported = read(tmp_path, counted("k", "f"), timed, **MADE)
        assert by_kernel(imported, "time_ms") == pytest.approx({"k": 0.04, "f": 0.01})
        counts = by_kernel(imported, "ReadBandwidth")
        assert (np.isnan(counts["k"]), np.isfinite(counts["f"])) == (True, True)
        assert by_kernel(imported, "workgroups") == {"k": 32, "f": 16}

    def test_of_several_geometries_in_the_trace_one_is_named(self, tmp_path: Path) -> None:
        """Counted at 16 workgroups, traced at 32 and at 64."""
        timed = trace(("k", 30), ("k", 50), grid=32).replace(",50,32,", ",50,64,")
        with pytest.raises(InputError, match=r"traced at grid 32, block 128 and 1 more\); profile"):
            read(tmp_path, counted("k"), timed, **MADE)

    @pytest.mark.parametrize("each", [False, True])
    def test_counters_all_of_another_geometry_are_refused(self, tmp_path: Path, each: bool) -> None:
        message = (
            r"export1.csv: has no kernel at the grid and block at which it was counted in .*0.csv: "
            r"1 kernel \('k' \(grid 16, block 128\), traced at grid 32, block 128\); profile the "
        )
        with pytest.raises(InputError, match=message):
            read(tmp_path, counted("k"), trace(("k", 30), grid=32), each=each, **MADE)

    def test_a_further_geometry_of_the_trace_keeps_its_own(self, tmp_path: Path) -> None:
        """Counted at 16 workgroups, traced at 16 (20 us) and at 32 (50 us)."""
        timed = trace(("k", 20), ("k", 50)).replace(",50,16,", ",50,32,")
        with pytest.warns(DataWarning, match="without counters: 1 kernel"):
            imported = read(tmp_path, counted("k"), timed, **MADE)
        assert by_kernel(imported, "time_ms") == pytest.approx(
            {"k [grid 16, block 128]": 0.02, "k [grid 32, block 128]": 0.05}
        )

    def test_of_several_geometries_none_is_guessed(self, tmp_path: Path) -> None:
        """Counted at 8 and 4 workgroups, traced at 16; 'f', on both sides, makes it a join."""
        page = counted("k", grids=["(8, 1, 1)", "(4, 1, 1)"]) + long_rows(9, "f")
        with (
            pytest.warns(DataWarning, match="left out: 2 kernels .* traced at grid 16, block 1"),
            pytest.warns(DataWarning, match="without counters: 1 kernel"),
        ):
            imported = read(tmp_path, page, trace(("k", 30), ("f", 10)), **MADE)
        counts = by_kernel(imported, "ReadBandwidth")
        assert np.isfinite(counts["f"])
        assert np.isnan(counts["k"])

    def test_by_name_alone_where_one_side_has_no_grid(self, tmp_path: Path) -> None:
        """The mean of both grids' counters, weighted by their launches, once."""
        page = counted("k", grids=["(8, 2, 1)", "(32, 1, 1)"])
        imported = read(tmp_path, page, summary(k=(5, 40)), **MADE)
        assert by_kernel(imported, "launches") == {"k": 5}
        assert by_kernel(imported, "time_ms") == pytest.approx({"k": 0.04})

    def test_several_traces_are_repetitions(self, tmp_path: Path) -> None:
        """2 launches of 20 us and 4 of 50 us: 3 in a run, of 40 us on average."""
        texts = counted("k"), summary(k=(2, 20)), summary(k=(4, 50))
        imported = read(tmp_path, *texts, **MADE)
        assert by_kernel(imported, "launches") == {"k": 3}
        assert by_kernel(imported, "time_ms") == pytest.approx({"k": 0.04})

    def test_variants_that_a_bare_name_does_not_tell_apart_are_pooled(self, tmp_path: Path) -> None:
        """Counters of 400 and 800 instructions of the vector units, pooled by launches: 2 and 1."""
        double = {name: (unit, str(2 * int(value))) if "pipe_alu" in name else (unit, value)
                  for name, (unit, value) in NCU.items()}  # fmt: skip
        page = long_page(
            long_rows(0, "void n::k<int>(int *)"),
            long_rows(1, "void n::k<int>(int *)"),
            long_rows(2, "void n::k<float>(float *)", double),
            long_rows(3, "void n::other()"),
        )
        message = "variants of 'k' are one kernel here, the mean over their launches"
        with pytest.warns(DataWarning, match=message):
            imported = read(tmp_path, page, summary(k=(3, 50), other=(1, 10)), **MADE)
        assert by_kernel(imported, "launches") == {"k": 3, "void n::other()": 1}
        once, twice = (
            read(tmp_path, long_page(long_rows(0, "k", metrics)), **MADE).table.numbers
            for metrics in (NCU, double)
        )
        name = "sm__inst_executed_pipe_alu.sum"
        mean = (2 * once[name][0] + twice[name][0]) / 3
        assert imported.table.numbers[name][0] == pytest.approx(mean)

    def test_launch_by_launch_every_row_says_the_kernels_launches(self, tmp_path: Path) -> None:
        page = long_page(long_rows(0, "k"), long_rows(1, "k"))
        imported = read(tmp_path, page, trace(("void k", 20), ("void k", 40)), each=True, **MADE)
        assert imported.table.numbers["time_ms"] == pytest.approx([0.02, 0.04])
        assert imported.table.numbers["launches"].tolist() == [2, 2]
        assert imported.table.numbers["total_time_ms"] == pytest.approx([0.06, 0.06])

    def test_launch_by_launch_where_one_side_has_no_grid(self, tmp_path: Path) -> None:
        page = long_page(*(long_rows(i, "k", grid="") for i in range(2)))
        imported = read(tmp_path, page, trace(("k", 20), ("k", 40)), each=True, **MADE)
        assert imported.table.numbers["time_ms"] == pytest.approx([0.02, 0.04])
        assert imported.table.numbers["workgroups"].tolist() == [16, 16]
        with pytest.raises(InputError, match=r"has 1 launch of 'k', .* has 2; .* leave out --ea"):
            read(tmp_path, page, trace(("k", 20)), each=True, **MADE)


class TestOneHas:
    def test_kernels_that_were_only_timed_ride_along(self, tmp_path: Path) -> None:
        """Of 100 us in all 60 are counted; f (25 us), g, h, i stand without counters."""
        launches = [("k", 60), ("f", 25), ("g", 6), ("h", 5), ("i", 4)]
        message = r"without counters: 4 kernels \('f', 'g', 'h', 1 other\), 40.0 % of the run's"
        with pytest.warns(DataWarning, match=message):
            imported = read(tmp_path, counted("k"), trace(*launches), **MADE)
        assert imported.covered == pytest.approx(0.6)
        profiles = profiles_at(imported.table, imported.config, "made-gpu")
        assert profiles.kernels == ("k", "f", "g", "h", "i")
        assert profiles.has_counters.tolist() == [True, False, False, False, False]
        columns = [name in OF_LAUNCH for name in profiles.counter_names]
        assert profiles.counters[1:, columns].tolist() == [[16, 16, 128]] * 4
        assert np.isnan(profiles.counters[1:][:, ~np.array(columns)]).all()
        assert profiles.time_ms == pytest.approx([0.06, 0.025, 0.006, 0.005, 0.004])
        assert profiles.weights.tolist() == [1, 1, 1, 1, 1]
        assert imported.table.metadata["launches"]["f"]["workgroups"] == 16

    def test_kernels_that_were_only_counted_are_left_out(self, tmp_path: Path) -> None:
        message = r"not in the trace, so not of its run and left out: 1 kernel \('f' "
        with pytest.warns(DataWarning, match=message):
            imported = read(tmp_path, counted("k", "f"), trace(("k", 90)), **MADE)
        assert by_kernel(imported, "time_ms") == pytest.approx({"k": 0.09})
        assert imported.covered == 1

    def test_even_without_a_time(self, tmp_path: Path) -> None:
        untimed = {n: v for n, v in NCU.items() if n != "gpu__time_duration.sum"}
        page = long_page(long_rows(0, "k"), long_rows(1, "f", untimed))
        with pytest.warns(DataWarning, match="not in the trace"):
            imported = read(tmp_path, page, trace(("k", 90)), **MADE)
        assert imported.table.text["kernel"] == ["k"]

    def test_no_kernel_joins(self, tmp_path: Path) -> None:
        message = r"export1.csv: has no kernel of .*export0.csv, which has 'k\(int\)' .* 'f\(int\)'"
        with pytest.raises(InputError, match=message):
            read(tmp_path, counted("k(int)"), trace(("f(int)", 20)), **MADE)


class TestUntimed:
    PAGE = long_page(
        long_rows(0, "k"),
        *(
            long_rows(i, f"u{i}", {n: v for n, v in NCU.items() if n != "gpu__time_duration.sum"})
            for i in (1, 2)
        ),
    )

    def test_are_refused_with_the_flag_that_leaves_them_out(self, tmp_path: Path) -> None:
        message = "says no time of 2 kernels, such as 'u1'.*; or leave .* out with --skip-untimed"
        with pytest.raises(InputError, match=message):
            read(tmp_path, self.PAGE, **MADE)

    def test_are_left_out_and_counted(self, tmp_path: Path) -> None:
        with pytest.warns(DataWarning, match="says no time of 2 kernels, such as 'u1'.*; left out"):
            imported = read(tmp_path, self.PAGE, skip_untimed=True, **MADE)
        assert imported.table.text["kernel"] == ["k"]

    def test_all_of_them_are_refused_all_the_same(self, tmp_path: Path) -> None:
        page = long_page(long_rows(0, "u", {"launch__grid_size": ("", "1")}))
        with pytest.raises(InputError, match="says no time of 'u'"):
            read(tmp_path, page, skip_untimed=True, **MADE)


class TestTools:
    def test_of_another_maker_are_refused(self, tmp_path: Path) -> None:
        timed = rocprof_v1({}, 1, [(1000, 2000)])
        with pytest.raises(InputError, match=r"is of rocprof, .* of ncu; .* the same maker's GPUs"):
            read(tmp_path, counted("f(int, int)"), timed, **MADE)

    @pytest.mark.parametrize("tool", ["ncu", None])
    def test_of_the_counters_is_the_one_that_is_named(
        self, tmp_path: Path, tool: str | None
    ) -> None:
        assert read(tmp_path, trace(("k", 20)), counted("k"), tool=tool, **MADE).tool == "ncu"
        with pytest.raises(InputError, match="import it with 'import ncu' or 'auto'"):
            read(tmp_path, trace(("k", 20)), counted("k"), tool="nsys", **MADE)
