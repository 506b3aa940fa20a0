"""AMD's rocprof, v1 to v3, and rocpd: made files, by hand (real ones: test_exports.py).

No real rocpd database was at hand: the made ones have its real schema (synthetic/rocpd_files.py).
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from summed_runs import only, run_of, run_of_text
from synthetic.databases import changed
from synthetic.exports import AMD, V3_TRACE, rocprof_v1, rocprofv3
from synthetic.rocpd_files import EXTDATA, Dispatch, counters_csv, trace_csv, write_database
from synthetic.tidy import refused

from mlscale import DataWarning

F = "f(int, int)"


ONE = rocprof_v1(AMD, 1, [(1000, 3000)])
TWO = rocprof_v1(AMD, 2, [(1000, 3000), (5000, 9000)])
# Of the form in AMD's "Using rocprofv3" (section "Agent info"), with the columns read.
AGENTS = '"Node_Id","Agent_Type","Cu_Count","Max_Engine_Clk_Fcompute","Name","Product_Name"'
GPU_AGENT = '\n0,"CPU",112,0,"A CPU","A CPU"\n1,"GPU",304,2100,"gfx942","AMD Instinct MI300X"\n'


def twice(text: str) -> str:
    """The same rows again below them."""
    return text + text.partition("\n")[2]


class TestCsv:
    def test_v1(self, tmp_path: Path) -> None:
        """640 work-items in workgroups of 64; 2 and 4 us; the compiler's suffix goes."""
        run = run_of_text(tmp_path, TWO)
        assert (run.kind.tool, list(run.groups)) == ("rocprof", [(F, 10, 64, "")])
        assert only(run).time_s == pytest.approx(3e-6)
        assert only(run).means()["SQ_INSTS_VALU"] == 500
        each = run_of_text(tmp_path, TWO, each=True)
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
        lines = [",".join([header, *names]), *(row + ",8" * len(names) for row in rows)]
        assert list(run_of_text(tmp_path, "\n".join(lines)).groups) == [(F, 10, 64, "")]

    def test_a_v3_trace(self, tmp_path: Path) -> None:
        """2 and 4 us; along y 10 workgroups; a copy of 1 s is no kernel."""
        copy = V3_TRACE.splitlines()[-1].replace("KERNEL_DISPATCH", "MEMORY_COPY")
        run = run_of_text(tmp_path, V3_TRACE + copy.replace("1000,3000", "1,1000000001") + "\n")
        assert list(run.groups) == [(F, 10, 64, "")]
        assert (only(run).launches, only(run).time_s) == (2, pytest.approx(3e-6))

    def test_agents_by_the_logical_number_and_by_the_nodes(self, tmp_path: Path) -> None:
        """Of a GPU without a name its chip counts; traces of the first releases have the node's."""
        text = (
            f'{AGENTS},"Logical_Node_Id","Num_Xcc"\n5,"GPU",2,0,"gfx1036","",1,1\n'
            '7,"GPU",256,2400,"gfx950","AMD Radeon Graphics",2,8\n'
        )
        by_gpu = run_of_text(tmp_path, text).facts.by_gpu
        assert by_gpu["1"] == by_gpu["5"] == {"chip": "gfx1036", "cu_count": 2, "xcd_count": 1}
        assert by_gpu["2"] == by_gpu["7"] == {
            "chip": "gfx950", "cu_count": 256, "xcd_count": 8, "engine_limit_mhz": 2400
        }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ONE.replace(",500,", ",-500,"), "row 2, column 'SQ_INSTS_VALU': '-500' cannot be a count"),
        (ONE.replace(",1000,", ",1E+03,"), "row 2, column 'BeginNs': '1E.03' is not a time in nan"),
        (ONE.replace(",640,64,", ",640,0,"), "row 2, column 'wgr': '0' has a size of 0"),
        (ONE.replace("BeginNs", "EndNs"), "row 1: column 'EndNs' appears twice; keep one"),
        (twice(ONE), "row 3: dispatch 0 appears twice; give the rows of one run"),
        (twice(V3_TRACE), "row 4: dispatch 2 appears twice"),
        (rocprofv3(AMD)[:-20], "row 17: has .* fields, the header has 19; is the file cut off"),
        (AGENTS + GPU_AGENT.replace("GPU", "NIC"), "lists no GPU"),
        (AGENTS + GPU_AGENT.replace("304", "many"), "row 3, column 'Cu_Count': 'many' is not a nu"),
    ],
)
def test_csv_that_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with refused(message):
        run_of_text(tmp_path, text)


def test_counters_of_single_channels_are_said_to_be_unused(data_folder: Path) -> None:
    """hipprof's file lists two of a Hygon's channels: 1,048,581 requests where 1 GiB was read."""
    with pytest.warns(
        DataWarning, match="not used, .*; count TCC_EA_RDREQ_32B_sum, TCC_EA_RDREQ_sum too"
    ):
        run = run_of(data_folder / "cases4/20-hygon-hipprof-pmc.csv")
    assert not any("TCC" in name for sums in run.groups.values() for name in sums.totals)


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
    def written(folder: Path, dispatches: Sequence[Dispatch], *statements: str) -> Path:
        """A database after statements in which a table's name ends in '@' for its process."""
        path = write_database(folder / "app_results.db", dispatches)
        return changed(path, *(statement.replace("@", TABLE) for statement in statements))

    @pytest.mark.parametrize("dispatches", [COUNTED, TRACED])
    def test_gives_what_the_csv_files_give(
        self, tmp_path: Path, dispatches: tuple[Dispatch, ...]
    ) -> None:
        """g has 4 x 2 x 2 workgroups of 64; a counter is the sum over its instances."""
        run = run_of(self.written(tmp_path, dispatches))
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
        run = run_of(self.written(tmp_path, TRACED))
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
        sums = only(run_of(self.written(tmp_path, replays)))
        assert (sums.launches, sums.time_s) == (1, pytest.approx(3e-6))
        assert sums.means() == {"SQ_WAVES": 10, "SQ_INSTS_VALU": 500}

    def test_streaming_counters_are_not_added(self, tmp_path: Path) -> None:
        """Since version 3.0.3 of the schema they stand in the same table, with their sample."""
        path = self.written(
            tmp_path,
            COUNTED,
            "ALTER TABLE `rocpd_pmc_event@` ADD sample_id INTEGER",
            "INSERT INTO `rocpd_pmc_event@` (event_id, pmc_id, value, sample_id) "
            "SELECT event_id, pmc_id, 1e6, 5 FROM `rocpd_pmc_event@`",
        )
        assert only(run_of(path)).means() == {"SQ_WAVES": 10, "SQ_INSTS_VALU": 500}

    @pytest.mark.parametrize("value", [None, math.inf])
    def test_a_counter_without_a_number_is_missing(self, tmp_path: Path, value: Any) -> None:
        """Not the 200 of its other instance."""
        one = Dispatch(1, counters={**COUNTERS, "SQ_INSTS_VALU": [value, 200]})
        assert only(run_of(self.written(tmp_path, [one]))).means() == {"SQ_WAVES": 10}

    def test_processes_are_pooled_and_nodes_are_told_apart(self, tmp_path: Path) -> None:
        """Both have dispatches 1 to 3, all of which count."""
        path = write_database(tmp_path / "merged.db", TRACED)
        write_database(path, TRACED, guid=GUID)
        assert [sums.launches for sums in run_of(path).groups.values()] == [4, 2]
        assert len(run_of(path, each=True).groups) == 6
        path = write_database(tmp_path / "nodes.db", TRACED)
        write_database(path, TRACED, guid=GUID, host="node1")
        with refused(r"node0:4 \(3 launches\), node1:4 \(3 launches\)"):
            run_of(path)

    @pytest.mark.parametrize(
        ("statement", "message"),
        [
            ("DELETE FROM `rocpd_kernel_dispatch@`", "has no kernel launch"),
            ("DELETE FROM `rocpd_info_agent@`", "row 1 of its kernel dispatches lacks its GPU"),
            ("UPDATE `rocpd_kernel_dispatch@` SET grid_size_y = 0", "row 1 .* or its size"),
            ("ALTER TABLE `rocpd_info_pmc@` RENAME COLUMN name TO title", "as SQLite .*pmc.name"),
        ],
    )
    def test_refused(self, tmp_path: Path, statement: str, message: str) -> None:
        path = self.written(tmp_path, COUNTED, "DROP VIEW `rocpd_info_pmc`", statement)
        with refused(message):
            run_of(path)
