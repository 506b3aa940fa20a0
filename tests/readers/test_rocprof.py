"""AMD's rocprof, v1 to v3, rocprof-compute's files and rocpd: real files, and made ones by hand.

Launches, times and counters of the real files were summed up by pandas and the csv module. No real
rocpd database was at hand: the made ones have its real schema (synthetic/rocpd_files.py).
"""

import math
from pathlib import Path

import pytest
from summed_runs import only, run_of, run_of_text, totals
from synthetic.databases import changed
from synthetic.exports import AMD, V3_TRACE, rocprof_v1, rocprofv3
from synthetic.rocpd_files import EXTDATA, Dispatch, counters_csv, trace_csv, write_database

from mlscale import InputError

PE, TR = "profiler-exports", "traces"
F = "f(int, int)"


def twice(text: str) -> str:
    """The same rows again below them."""
    return text + text.partition("\n")[2]


class TestRealFiles:
    @pytest.mark.parametrize(
        ("name", "groups", "launches", "time_ms", "gpu"),
        [
            (f"{PE}/rocprof_v1/enccs_nbody_counters_timestamp.csv", 1, 1, 26.326497, "0"),
            (f"{PE}/rocprof_v1/enccs_nbody_results_stats_timing.csv", 1, 10, 261.124944, "0"),
            (f"{PE}/rocprof_v1_renamed/mi200_vcopy_pmc_perf_merged.csv", 1, 3, 0.05232, "2"),
            (f"{PE}/rocprof_v1_renamed/mi200_vcopy_timestamps.csv", 1, 3, 0.05232, "2"),
            (f"{PE}/rocprof_v2/mi300a_vcopy_pmc_perf_merged.csv", 1, 3, 0.021192, "11995"),
            (f"{PE}/rocprofv3/sdkdocs_counter_collection.csv", 4, 4, 0.1969, "1"),
            (f"{PE}/rocprofv3/sdkdocs_kernel_trace.csv", 4, 9, 0.09616, "4"),
            (f"{TR}/pmc_perf/mi300x_bmm1_pmc_perf.csv", 2, 10, 0.193756395, "0"),
            (f"{TR}/rocprof_stats/rocm_blog_results.csv", 1, 1, 0.00784, "2"),
            (f"{TR}/rocprofv3_counter_collection/gfx1151_decode_stall.csv", 21, 34, 0.463587, "1"),
            (f"{TR}/rocprofv3_counter_collection/rocm6_docs.csv", 3, 7, 0.0, "1"),  # no times
            (f"{TR}/rocprofv3_kernel_trace/gfx1151_llama_decode.csv", 21, 144, 1.857381, "1"),
            (f"{TR}/rocprofv3_kernel_trace/rocm6_docs.csv", 3, 7, 0.795453, "1"),
        ],
    )
    def test_launches_and_time(
        self, data_folder: Path, name: str, groups: int, launches: int, time_ms: float, gpu: str
    ) -> None:
        run = run_of(data_folder / name)
        assert totals(run) == (groups, launches, pytest.approx(time_ms, abs=1e-9))
        assert run.gpus == (gpu,)

    @pytest.mark.parametrize(
        ("name", "counter", "total"),
        [
            (f"{PE}/rocprof_v1/enccs_nbody_counters_timestamp.csv", "FetchSize", 9429.1875),
            (f"{PE}/rocprof_v1_renamed/mi200_vcopy_pmc_perf_merged.csv", "TCC_EA_WRREQ_sum",
             313_257),
            (f"{TR}/rocprofv3_counter_collection/gfx1151_decode_stall.csv", "GRBM_GUI_ACTIVE",
             1_295_813),
            (f"{PE}/rocprofv3_merged/mi300x_vcopy_rocpd_long_rows_filtered.csv", "SQ_WAVES",
             3 * 16_384),
        ],
    )  # fmt: skip
    def test_counters(self, data_folder: Path, name: str, counter: str, total: float) -> None:
        groups = run_of(data_folder / name).groups.values()
        assert sum(sums.totals.get(counter, 0.0) for sums in groups) == pytest.approx(total)

    def test_passes_in_one_file_are_of_the_same_launches(self, data_folder: Path) -> None:
        """Three dispatches, in ten passes each: thirty times, three launches."""
        name = f"{PE}/rocprofv3_merged/mi300x_vcopy_rocpd_long_rows_filtered.csv"
        sums = only(run_of(data_folder / name))
        assert (sums.launches, sums.time_count) == (3, 30)

    def test_a_machine(self, data_folder: Path) -> None:
        run = run_of(data_folder / TR / "pmc_perf/mi300x_bmm1_sysinfo.csv")
        assert not run.groups
        assert run.facts.seen == {
            "chip": {"MI300X": 1}, "cu_count": {304: 1}, "memory_limit_mhz": {1300: 1},
            "xcd_count": {8: 1},
        }  # fmt: skip

    def test_statistics_are_refused(self, data_folder: Path) -> None:
        for folder in ("rocprof_stats/hip_vecadd_results.stats.csv",
                       "rocprofv3_kernel_stats/pytorch_resnet_single.csv"):  # fmt: skip
            with pytest.raises(InputError, match=r"row 1: .* give …_kernel_trace.csv of rocprofv3"):
                run_of(data_folder / TR / folder)


class TestCsv:
    def test_v1(self, tmp_path: Path) -> None:
        """640 work-items in workgroups of 64; 2 and 4 us; the compiler's suffix goes."""
        run = run_of_text(tmp_path, rocprof_v1(AMD, 2, [(1000, 3000), (5000, 9000)]))
        assert (run.kind.tool, list(run.groups)) == ("rocprof", [(F, 10, 64, "")])
        assert only(run).time_s == pytest.approx(3e-6)
        assert only(run).means()["SQ_INSTS_VALU"] == 500
        each = run_of_text(tmp_path, rocprof_v1(AMD, 2, [(1000, 3000), (5000, 9000)]), each=True)
        assert [key.launch for key in each.groups] == ["0", "1"]

    def test_times_of_large_timestamps_and_of_means_over_passes(self, tmp_path: Path) -> None:
        """2000.5 ns; a float holds 1.4e18 to 256 ns."""
        begin = 1_411_551_767_635_712_000
        text = rocprof_v1(AMD, 1, [(7, 9)]).replace(",7,9,", f",{begin}.25,{begin + 2000}.75,")
        assert only(run_of_text(tmp_path, text)).time_s == pytest.approx(2.0005e-6)

    def test_v3_counters(self, tmp_path: Path) -> None:
        """A row for each counter of two dispatches."""
        run = run_of_text(tmp_path, rocprofv3(AMD))
        assert (run.kind.tool, run.gpus) == ("rocprofv3", ("4",))
        assert list(run.groups) == [(F, 10, 64, "")]
        assert (only(run).launches, only(run).time_s) == (2, pytest.approx(2e-6))
        assert only(run).means()["SQ_INSTS_VALU"] == 500
        each = run_of_text(tmp_path, rocprofv3(AMD), each=True)
        assert [key.launch for key in each.groups] == ["0:1", "0:2"]

    @pytest.mark.parametrize("more", ["_X", "_X _Y _Z"])
    def test_the_sides_of_a_grid_beside_its_product(self, tmp_path: Path, more: str) -> None:
        """640 work-items in workgroups of 64 are 10, however often the header says it."""
        names = [f"{of}{side}" for side in more.split() for of in ("Grid_Size", "Workgroup_Size")]
        header, *rows = rocprofv3(AMD).splitlines()
        cells = [
            header + "".join(f",{name}" for name in names),
            *(r + ",8" * len(names) for r in rows),
        ]
        assert list(run_of_text(tmp_path, "\n".join(cells)).groups) == [(F, 10, 64, "")]

    def test_a_v3_trace(self, tmp_path: Path) -> None:
        """2 and 4 us; along y 10 workgroups; a copy of 1 s is no kernel."""
        copy = V3_TRACE.splitlines()[-1].replace("KERNEL_DISPATCH", "MEMORY_COPY")
        run = run_of_text(tmp_path, V3_TRACE + copy.replace("1000,3000", "1,1000000001") + "\n")
        assert list(run.groups) == [(F, 10, 64, "")]
        assert (only(run).launches, only(run).time_s) == (2, pytest.approx(3e-6))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (rocprof_v1(AMD, 1, [(1000, 3000)]).replace(",500,", ",-500,"),
             "row 2, column 'SQ_INSTS_VALU': '-500' cannot be a counter's value"),
            (rocprof_v1(AMD, 1, [(1000, 3000)]).replace(",1000,", ",1E+03,"),
             "row 2, column 'BeginNs': '1E\\+03' is not a time in nanoseconds; use the file as"),
            (rocprof_v1(AMD, 1, [(1000, 3000)]).replace(",640,64,", ",640,0,"),
             "row 2, column 'wgr': '0' has a size of 0"),
            (twice(rocprof_v1(AMD, 1, [(1000, 3000)])),
             "row 3: dispatch 0 comes again; give one run's rows"),
            (twice(V3_TRACE), "row 4: dispatch 2 comes again"),
            (rocprof_v1(AMD, 1, [(1000, 3000)]).replace("BeginNs", "EndNs"),
             "row 1: column 'EndNs' is there twice; keep one"),
            (rocprofv3(AMD)[:-20], "row 17: has .* fields, the header has 19; is the file cut off"),
        ],
    )  # fmt: skip
    def test_refused(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            run_of_text(tmp_path, text)


class TestAgents:
    """Of the form in AMD's "Using rocprofv3" (section "Agent info"), with the columns read."""

    HEADER = '"Node_Id","Agent_Type","Cu_Count","Max_Engine_Clk_Fcompute","Name","Product_Name"'
    ROWS = '\n0,"CPU",112,0,"A CPU","A CPU"\n1,"GPU",304,2100,"gfx942","AMD Instinct MI300X"\n'

    def test_by_the_logical_number_and_by_the_nodes(self, tmp_path: Path) -> None:
        """Of a GPU without a name its chip counts; traces of the first releases have the node's."""
        text = (
            f'{self.HEADER},"Logical_Node_Id","Num_Xcc"\n5,"GPU",2,0,"gfx1036","",1,1\n'
            '7,"GPU",256,2400,"gfx950","AMD Radeon Graphics",2,8\n'
        )
        by_gpu = run_of_text(tmp_path, text).facts.by_gpu
        assert by_gpu["1"] == by_gpu["5"] == {"chip": "gfx1036", "cu_count": 2, "xcd_count": 1}
        assert by_gpu["2"] == by_gpu["7"] == {
            "chip": "gfx950", "cu_count": 256, "xcd_count": 8, "engine_limit_mhz": 2400
        }  # fmt: skip

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('"GPU"', '"NIC"', "lists no GPU"),
            (",304,", ",many,", "row 3, column 'Cu_Count': 'many' is not a number"),
        ],
    )
    def test_refused(self, tmp_path: Path, old: str, new: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            run_of_text(tmp_path, self.HEADER + self.ROWS.replace(old, new))


# By hand: 10 workgroups of 64 work-items; each counter in two instances.
COUNTERS = {"SQ_WAVES": [4, 6], "SQ_INSTS_VALU": [300, 200]}
COUNTED = (Dispatch(1, counters=COUNTERS), Dispatch(2, begin=5000, end=9000, counters=COUNTERS))
TRACED = (
    Dispatch(1),
    Dispatch(2, begin=5000, end=9000),
    Dispatch(3, "g(float)", begin=9500, end=10000, grid=(100, 3, 2), size=(32, 2, 1)),
)
GUID = "00000dbe-6d37-7d4f-9c8b-000000000002"
TABLE = "_00000dbe_6d37_7d4f_9c8b_3b7d2d1a4f10"


class TestDatabase:
    @staticmethod
    def change(path: Path, *statements: str) -> Path:
        """A database after statements in which a table's name ends in '@' for its process."""
        return changed(path, *(statement.replace("@", TABLE) for statement in statements))

    @pytest.mark.parametrize("dispatches", [COUNTED, TRACED])
    def test_gives_what_the_csv_files_give(
        self, tmp_path: Path, dispatches: tuple[Dispatch, ...]
    ) -> None:
        """g has 4 x 2 x 2 workgroups of 64; a counter is the sum over its instances."""
        run = run_of(write_database(tmp_path / "app_results.db", dispatches))
        text = counters_csv(dispatches) if dispatches is COUNTED else trace_csv(dispatches)
        csv = run_of_text(tmp_path, text)
        assert run.groups == csv.groups
        assert (run.gpus, run.facts.application) == (csv.gpus, "vcopy")
        if dispatches is COUNTED:
            assert only(run).means() == {"SQ_WAVES": 10, "SQ_INSTS_VALU": 500}
            assert only(run).time_s == pytest.approx(3e-6)
        else:
            assert list(run.groups) == [(F, 10, 64, ""), ("g(float)", 16, 64, "")]

    def test_says_the_gpu(self, tmp_path: Path) -> None:
        """The memory clock is the highest of the heaps on the board."""
        run = run_of(write_database(tmp_path / "app_results.db", TRACED))
        assert run.facts.seen == {
            "chip": {"AMD Instinct MI300X": 1}, "cu_count": {304: 1}, "xcd_count": {8: 1},
            "engine_limit_mhz": {2100: 1}, "memory_limit_mhz": {1300: 1},
        }  # fmt: skip

    @pytest.mark.parametrize(
        "extdata", ["no document", [], {}, {"cu_count": "many", "mem_banks": [3]},
                    {**EXTDATA, "cu_count": 0, "num_xcc": None, "max_engine_clk_fcompute": 0,
                     "mem_banks": None}]
    )  # fmt: skip
    def test_what_its_document_does_not_say_is_not_known(
        self, tmp_path: Path, extdata: object
    ) -> None:
        path = write_database(tmp_path / "app_results.db", TRACED, extdata=extdata)
        assert run_of(path).facts.seen == {"chip": {"AMD Instinct MI300X": 1}}

    def test_a_dispatch_that_was_replayed_counts_once(self, tmp_path: Path) -> None:
        """Two rows of one dispatch, of 2 and 4 us, each with counters of its own."""
        replays = [
            Dispatch(1, counters={"SQ_WAVES": [10]}),
            Dispatch(1, end=5000, counters={"SQ_INSTS_VALU": [500]}),
        ]
        sums = only(run_of(write_database(tmp_path / "app_results.db", replays)))
        assert (sums.launches, sums.time_s) == (1, pytest.approx(3e-6))
        assert sums.means() == {"SQ_WAVES": 10, "SQ_INSTS_VALU": 500}

    def test_streaming_counters_are_not_added(self, tmp_path: Path) -> None:
        """Since version 3.0.3 of the schema they stand in the same table, with their sample."""
        path = write_database(tmp_path / "app_results.db", COUNTED)
        self.change(
            path,
            "ALTER TABLE `rocpd_pmc_event@` ADD sample_id INTEGER",
            "INSERT INTO `rocpd_pmc_event@` (event_id, pmc_id, value, sample_id) "
            "SELECT event_id, pmc_id, 1e6, 5 FROM `rocpd_pmc_event@`",
        )
        assert only(run_of(path)).means() == {"SQ_WAVES": 10, "SQ_INSTS_VALU": 500}

    @pytest.mark.parametrize("value", [None, math.inf])
    def test_a_counter_without_a_number_is_missing(
        self, tmp_path: Path, value: float | None
    ) -> None:
        """Not the 200 of its other instance."""
        one = Dispatch(1, counters={**COUNTERS, "SQ_INSTS_VALU": [value, 200]})
        path = write_database(tmp_path / "app_results.db", [one])
        assert only(run_of(path)).means() == {"SQ_WAVES": 10}

    def test_processes_are_pooled_and_nodes_are_told_apart(self, tmp_path: Path) -> None:
        """Both have dispatches 1 to 3, all of which count."""
        path = write_database(tmp_path / "merged.db", TRACED)
        write_database(path, TRACED, guid=GUID)
        assert [sums.launches for sums in run_of(path).groups.values()] == [4, 2]
        assert len(run_of(path, each=True).groups) == 6
        path = write_database(tmp_path / "nodes.db", TRACED)
        write_database(path, TRACED, guid=GUID, host="node1")
        with pytest.raises(InputError, match=r"node0:4 \(3 launches\), node1:4 \(3 launches\)"):
            run_of(path)

    @pytest.mark.parametrize(
        ("statement", "message"),
        [
            ("DELETE FROM `rocpd_kernel_dispatch@`", "has no kernel launch"),
            ("DELETE FROM `rocpd_info_agent@`", "row 1 of its kernel dispatches lacks its GPU"),
            ("UPDATE `rocpd_kernel_dispatch@` SET grid_size_y = 0", "row 1 .* or its size"),
            ("ALTER TABLE `rocpd_info_pmc@` RENAME COLUMN name TO title",
             "cannot be read as SQLite .*pmc.name"),
        ],
    )  # fmt: skip
    def test_refused(self, tmp_path: Path, statement: str, message: str) -> None:
        path = write_database(tmp_path / "app_results.db", COUNTED)
        path = self.change(path, "DROP VIEW `rocpd_info_pmc`", statement)
        with pytest.raises(InputError, match=message):
            run_of(path)
