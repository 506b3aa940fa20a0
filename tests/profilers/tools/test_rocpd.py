"""rocprofv3's database (rocpd): made ones in the real schema, and the same runs as CSV files."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic.databases import changed
from synthetic.exports import AMD_FEATURES, row
from synthetic.rocpd_files import (
    EXTDATA,
    Dispatch,
    counters_csv,
    trace_csv,
    write_database,
)

from mlscale import DataWarning, InputError
from mlscale.profilers import ImportedTable, import_exports

pytestmark = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
CLOCKS = {"engine_mhz": 2100.0, "memory_mhz": 1300.0}
OTHER_GUID = "00000dbe-6d37-7d4f-9c8b-000000000002"
# By hand: 10 workgroups of 640 work-items, 10 waves; each counter in two instances.
AMD = {
    "SQ_WAVES": [4, 6], "SQ_INSTS_VALU": [300, 200], "SQ_INSTS_SALU": [100, 100],
    "SQ_INSTS_SMEM": [50, 0], "SQ_INSTS_VMEM_RD": [60, 40], "SQ_INSTS_VMEM_WR": [25, 25],
    "SQ_INSTS_LDS": [100, 0], "GRBM_GUI_ACTIVE": [5000, 3000],
}  # fmt: skip
COUNTED = (Dispatch(1, counters=AMD), Dispatch(2, begin=5000, end=9000, counters=AMD))
TRACED = (
    Dispatch(1),
    Dispatch(2, begin=5000, end=9000),
    Dispatch(3, "g(float)", begin=9500, end=10000, grid=(100, 3, 2), size=(32, 2, 1)),
)
TABLE = "_00000dbe_6d37_7d4f_9c8b_3b7d2d1a4f10"


def load(*paths: Path, **options: Any) -> ImportedTable:
    return import_exports(paths, **{"base": CLOCKS, "application": "app", **options})


def change(path: Path, *statements: str) -> Path:
    """A database after statements in which a table's name ends in '@' for its process."""
    return changed(path, *(statement.replace("@", TABLE) for statement in statements))


def alike(one: ImportedTable, other: ImportedTable) -> None:
    assert one.config == other.config
    assert one.table.text == other.table.text
    assert one.table.numbers.keys() == other.table.numbers.keys()
    for name, values in one.table.numbers.items():
        np.testing.assert_allclose(values, other.table.numbers[name], rtol=1e-12, err_msg=name)
    assert one.table.metadata.get("idle_ms") == pytest.approx(other.table.metadata.get("idle_ms"))
    assert one.launches == other.launches


class TestOneFile:
    def test_counters_are_summed_over_instances(self, tmp_path: Path) -> None:
        imported = load(write_database(tmp_path / "app_results.db", COUNTED))
        values = row(imported)
        assert {n: values[n] for n in AMD_FEATURES} == pytest.approx(AMD_FEATURES)
        assert values["time_ms"] == pytest.approx(0.003)  # of 2 and 4 us
        assert values["launches"] == 2
        assert imported.table.text["kernel"] == ["f(int, int)"]
        assert imported.tool == "rocprofv3"
        assert "idle_ms" not in imported.table.metadata  # gaps are the profiler's own

    def test_without_counters_it_is_a_trace(self, tmp_path: Path) -> None:
        """Along x, y and z 4, 2 and 2 workgroups of g; nothing runs in 2000 and in 500 ns."""
        imported = load(write_database(tmp_path / "app_results.db", TRACED))
        assert imported.table.text["kernel"] == ["f(int, int)", "g(float)"]
        assert imported.table.numbers["launches"].tolist() == [2, 1]
        assert imported.table.numbers["workgroups"].tolist() == [10, 16]
        assert imported.table.numbers["workgroup_size"].tolist() == [64, 64]
        assert imported.table.metadata["idle_ms"] == pytest.approx(2.5e-3)

    def test_says_the_gpu_and_its_highest_clocks(self, tmp_path: Path) -> None:
        path = write_database(tmp_path / "app_results.db", COUNTED)
        with pytest.raises(InputError, match=r"does not say engine_mhz; give .*at most 2100\)"):
            load(path, base={})
        imported = load(path, base={"engine_mhz": 2000})
        assert imported.table.text["device"] == ["mi300x"]
        assert str(imported.config) == "cu=304,engine=2000,memory=1300"

    @pytest.mark.parametrize(
        "extdata", ["no document", [], {}, {"cu_count": "many", "mem_banks": [3]},
                    {"cu_count": -1, "mem_banks": {"mem_clk_max": 1}, "max_engine_clk_fcompute": 0}]
    )  # fmt: skip
    def test_what_the_gpu_does_not_say_is_asked_for(self, tmp_path: Path, extdata: object) -> None:
        path = write_database(tmp_path / "app_results.db", COUNTED, extdata=extdata)
        with pytest.raises(InputError, match="does not say engine_mhz; ") as refusal:
            load(path, base={})
        assert "engine at most" not in str(refusal.value)

    def test_a_document_of_a_gpu_that_is_compressed_says_nothing(self, tmp_path: Path) -> None:
        """As proposed for a later rocprofv3: LZ4 in place of the text; all else is as it was."""
        path = write_database(tmp_path / "app_results.db", COUNTED)
        change(path, "UPDATE `rocpd_info_agent@` SET extdata = x'04224d18'")
        with pytest.raises(InputError, match="does not say engine_mhz; "):
            load(path, base={})
        assert row(load(path))["VALUInsts"] == pytest.approx(50)

    @pytest.mark.parametrize("extdata", ["{broken", "[" * 100_000, ""])
    def test_a_damaged_document_of_a_gpu_says_nothing(self, tmp_path: Path, extdata: str) -> None:
        path = write_database(tmp_path / "app_results.db", COUNTED)
        change(path, f"UPDATE `rocpd_info_agent@` SET extdata = '{extdata}'")
        with pytest.raises(InputError, match="does not say engine_mhz; "):
            load(path, base={})

    def test_the_program_names_the_application(self, tmp_path: Path) -> None:
        path = write_database(tmp_path / "7_results.db", TRACED)
        assert load(path, application=None).table.text["application"][0] == "vcopy"

    def test_each_launch_is_a_row(self, tmp_path: Path) -> None:
        imported = load(write_database(tmp_path / "app_results.db", COUNTED), each=True)
        assert imported.table.numbers["time_ms"] == pytest.approx([0.002, 0.004])

    def test_a_dispatch_that_was_replayed_counts_once(self, tmp_path: Path) -> None:
        """By a later column: two rows of one dispatch, each with counters of its own."""
        first = {"SQ_WAVES": AMD["SQ_WAVES"]}
        second = {name: values for name, values in AMD.items() if name not in first}
        replays = [Dispatch(1, counters=first), Dispatch(1, end=5000, counters=second)]
        path = change(
            write_database(tmp_path / "app_results.db", replays),
            "ALTER TABLE `rocpd_kernel_dispatch@` ADD replay_pass INTEGER",
            "UPDATE `rocpd_kernel_dispatch@` SET replay_pass = id",
        )
        values = row(load(path))
        assert values["launches"] == 1
        assert values["time_ms"] == pytest.approx(0.003)  # of 2 and 4 us
        assert values["VALUInsts"] == pytest.approx(50)

    def test_streaming_counters_are_not_added(self, tmp_path: Path) -> None:
        """Since version 3.0.3 of the schema they stand in the same table, with their sample."""
        path = write_database(tmp_path / "app_results.db", [Dispatch(1, counters=AMD)])
        change(
            path,
            "ALTER TABLE `rocpd_pmc_event@` ADD sample_id INTEGER",
            "INSERT INTO `rocpd_pmc_event@` (event_id, pmc_id, value, sample_id) "
            "SELECT event_id, pmc_id, 1e6, 5 FROM `rocpd_pmc_event@`",
        )
        assert row(load(path))["VALUInsts"] == pytest.approx(50)

    def test_a_counter_without_a_number_is_missing(self, tmp_path: Path) -> None:
        """Not the 200 of its other instance, and not 0."""
        one = Dispatch(1, counters={**AMD, "SQ_INSTS_VALU": [None, 200]})
        values = row(load(write_database(tmp_path / "app_results.db", [one])))
        assert "SQ_INSTS_VALU" not in values
        assert values["SQ_INSTS_VMEM_RD"] == 100

    @pytest.mark.parametrize("value", [math.inf, -math.inf])
    def test_an_infinite_counter_is_missing_and_told(self, tmp_path: Path, value: float) -> None:
        """In the first two of four launches; the mean of the others stands, 500 instructions."""
        one, other = {**AMD, "SQ_INSTS_VALU": [value, 200], "OTHER": [value]}, AMD
        runs = [Dispatch(n, counters=one if n < 3 else other) for n in (1, 2, 3, 4)]
        path = write_database(tmp_path / "app_results.db", runs)
        said = r"results.db: counters are infinite and .* there: SQ_INSTS_VALU \(2 launches\)$"
        with pytest.warns(DataWarning, match=said):
            assert row(load(path))["SQ_INSTS_VALU"] == 500

    def test_a_counter_of_a_text_is_refused_as_in_a_csv_file(self, tmp_path: Path) -> None:
        """Bytes are shown as SQL writes them."""
        for value, shown in (("many", "'many'"), (b"\x01\xff", "X'01FF'")):
            many = Dispatch(1, counters={**AMD, "SQ_INSTS_SALU": [value, 100]})
            path = write_database(tmp_path / f"{len(shown)}_results.db", [many])
            with pytest.raises(InputError, match=rf"'SQ_INSTS_SALU': {shown} is not a number$"):
                load(path)

    def test_kernels_without_counters_have_times(self, tmp_path: Path) -> None:
        """As of --kernel-trace beside --pmc with a filter of kernels."""
        path = write_database(tmp_path / "app_results.db", [*COUNTED, TRACED[2]])
        imported = load(path)
        assert imported.table.numbers["time_ms"] == pytest.approx([0.003, 0.0005])
        assert np.isnan(imported.table.numbers["VALUInsts"]).tolist() == [False, True]
        assert imported.covered == pytest.approx(6 / 6.5)


class TestSeveral:
    def test_gpus(self, tmp_path: Path) -> None:
        """Agents 6 and 7 of the node are numbers 4 and 5 where the host's CPUs are not counted."""
        other = [Dispatch(d.number, d.kernel, d.begin, d.end, agent=7) for d in TRACED[:1]]
        path = write_database(tmp_path / "app_results.db", [*TRACED, *other])
        with pytest.raises(InputError, match=r"GPUs 4 \(3 launches\), 5 \(1 launch\); choose one"):
            load(path)
        assert load(path, gpu="5").launches == 1

    def test_processes_are_pooled(self, tmp_path: Path) -> None:
        """Both have dispatches 1 to 3, all of which count."""
        path = write_database(tmp_path / "merged.db", TRACED)
        imported = load(write_database(path, TRACED, guid=OTHER_GUID))
        assert imported.table.numbers["launches"].tolist() == [4, 2]
        assert len(load(path, each=True).table) == 6

    def test_nodes_are_told_apart(self, tmp_path: Path) -> None:
        path = write_database(tmp_path / "merged.db", TRACED)
        write_database(path, TRACED, guid=OTHER_GUID, host="node1")
        with pytest.raises(InputError, match=r"node0:4 \(3 launches\), node1:4 \(3 launches\)"):
            load(path)
        assert load(path, gpu="node1:4").launches == 3

    def test_a_process_without_kernels_is_passed_over(self, tmp_path: Path) -> None:
        path = write_database(tmp_path / "merged.db", TRACED)
        assert load(write_database(path, [], guid=OTHER_GUID)).launches == 3

    def test_passes_and_a_trace(self, tmp_path: Path) -> None:
        """Cycles are those of the counter's own pass, over 8 XCDs; time is the trace's, 3 us.

        VALUBusy: 100 * 48640 / (304 * 16000 / 8) = 8 %, with 8000 cycles of the other pass 16 %.
        """
        second = {"SQ_WAVES": [10], "SQ_ACTIVE_INST_VALU": [48640], "GRBM_GUI_ACTIVE": [16000]}
        files = [
            write_database(tmp_path / "1.db", COUNTED),
            write_database(tmp_path / "2.db", [Dispatch(n, counters=second) for n in (1, 2)]),
            write_database(tmp_path / "3.db", TRACED[:2]),
        ]
        values = row(load(*files))
        assert {n: values[n] for n in AMD_FEATURES} == pytest.approx(AMD_FEATURES)
        assert values["VALUBusy"] == pytest.approx(8.0)
        assert values["time_ms"] == pytest.approx(0.003)

    def test_beside_a_csv(self, tmp_path: Path) -> None:
        """Counters of one form, and the trace of the other."""
        trace, counters = tmp_path / "t.csv", tmp_path / "c.csv"
        trace.write_text(trace_csv(TRACED))
        counters.write_text(counters_csv(COUNTED))
        databases = [write_database(tmp_path / "1.db", COUNTED),
                     write_database(tmp_path / "2.db", TRACED)]  # fmt: skip
        both = load(*databases)
        alike(load(databases[0], trace), both)
        alike(load(counters, databases[1]), both)


AGENTS_CSV = (
    '"Node_Id","Agent_Type","Cu_Count","Max_Engine_Clk_Fcompute","Name","Product_Name"\n'
    '6,"GPU",304,2100,"gfx942","AMD Instinct MI300X"\n'
)


@st.composite
def runs(draw: st.DrawFn) -> list[Dispatch]:
    """Launches of three kernels on two GPUs, all with the same counters or all without."""
    names = draw(st.lists(st.sampled_from(sorted(AMD)), unique=True))
    names = [*names, "SQ_WAVES"] if names and "SQ_WAVES" not in names else names
    dispatches = []
    for number in range(1, draw(st.integers(1, 8)) + 1):
        begin = draw(st.integers(1, 10**15))
        size = draw(st.tuples(*[st.integers(1, 8)] * 3))
        groups = draw(st.tuples(*[st.integers(1, 5)] * 3))
        values = st.lists(st.integers(1, 10**9), min_size=1, max_size=3)
        dispatches.append(
            Dispatch(
                number,
                draw(st.sampled_from(["f(int, int)", "void g<8>(float*)", "h.kd"])),
                begin,
                begin + draw(st.integers(1, 499_999)),  # cycles of longer ones are a clock
                (size[0] * groups[0], size[1] * groups[1], size[2] * groups[2]),
                size,
                draw(st.sampled_from([6, 7])),
                {name: draw(values) for name in names},
            )
        )
    return dispatches


class TestAsTheCsvs:
    """The same run in both forms gives the same table."""

    @given(dispatches=runs(), each=st.booleans())
    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_run(self, tmp_path: Path, dispatches: list[Dispatch], each: bool) -> None:
        files = [tmp_path / name for name in ("run.db", "run.csv", "agents.csv")]
        files[0].unlink(missing_ok=True)
        write_database(files[0], dispatches)
        counted = bool(dispatches[0].counters)
        files[1].write_text((counters_csv if counted else trace_csv)(dispatches))
        files[2].write_text(AGENTS_CSV)
        gpu = str(dispatches[0].agent - 2)
        alike(
            load(files[0], gpu=gpu, each=each),
            load(*files[1:], gpu=gpu, each=each),
        )


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n"


class TestRefused:
    """Each in one line that says what is wrong."""

    @pytest.mark.parametrize(
        ("statement", "message"),
        [
            ("DROP TABLE `rocpd_kernel_dispatch@`", r"lacks rocpd_kernel_dispatch; versions 3.0"),
            ("DROP TABLE `rocpd_info_pmc@`", r"lacks rocpd_info_pmc; .* 'rocpd convert -i app_res"),
            ("ALTER TABLE `rocpd_kernel_dispatch@` RENAME agent_id TO track_id",
             r"lacks rocpd_kernel_dispatch.agent_id; versions 3.0 of its schema are read"),
            ("DELETE FROM `rocpd_kernel_dispatch@`", "no kernel dispatch; .* --kernel-trace"),
            ("UPDATE `rocpd_kernel_dispatch@` SET grid_size_y = 'many'", "row 1 of .* lacks its"),
            ("UPDATE `rocpd_kernel_dispatch@` SET agent_id = 3", "row 1 of .* lacks its .*GPU"),
            ("UPDATE `rocpd_kernel_dispatch@` SET grid_size_y = 0", r"of 'f\(int, .*a size of 0"),
            ("UPDATE `rocpd_kernel_dispatch@` SET start = 9, `end` = 9",
             r"no kernel launch with a positive time \(2 without\)"),
            ("UPDATE `rocpd_info_kernel_symbol@` SET display_name = CAST(x'ff' AS TEXT)",
             "kernel's name is damaged text"),
            ("UPDATE `rocpd_info_kernel_symbol@` SET display_name = x'ff'", "lacks its kernel's"),
            ("UPDATE `rocpd_pmc_event@` SET value = -1", "counter 'GRBM.*' is negative"),
            (
                "UPDATE `rocpd_pmc_event@` SET value = -3 WHERE id = 1",  # the other one has 6
                "row 1 of .*, counter 'SQ_WAVES': '-3.0' is negative",
            ),
            ("UPDATE `rocpd_pmc_event@` SET value = 1e30", "more than any counter counts"),
            ("UPDATE `rocpd_pmc_event@` SET value = 0", "which is a failure of the profiler"),
        ],
    )  # fmt: skip
    def test_damaged_content(self, tmp_path: Path, statement: str, message: str) -> None:
        with pytest.raises(InputError, match=message) as refusal:
            load(change(write_database(tmp_path / "app_results.db", COUNTED), statement))
        assert "\n" not in str(refusal.value)

    def test_all_that_lacks_is_said_at_once(self, tmp_path: Path) -> None:
        path = change(
            write_database(tmp_path / "app_results.db", COUNTED),
            "ALTER TABLE `rocpd_kernel_dispatch@` RENAME start TO start_id",
            "DROP TABLE `rocpd_info_agent@`",
        )
        lacks = "lacks rocpd_kernel_dispatch.start, rocpd_info_agent; .*"
        with pytest.raises(InputError, match=f"{lacks} rocprofv3 --output-format csv$"):
            load(path)

    def test_a_file_that_is_cut_off_damaged_or_empty(self, tmp_path: Path) -> None:
        path = write_database(tmp_path / "app_results.db", COUNTED)
        whole = path.read_bytes()
        for length in (len(whole) // 2, len(whole) - 5000, 5000, 100):
            path.write_bytes(whole[:length])
            with pytest.raises(InputError, match=r"cannot be read as SQLite: .*; profile it again"):
                load(path)
        path.write_bytes(
            whole.replace(b"CREATE TABLE `rocpd_event", b"CREATE \x81ABLE `rocpd_event")
        )
        with pytest.raises(InputError, match="cannot be read as SQLite: its schema is damaged"):
            load(path)
        path.write_bytes(b"")
        with pytest.raises(InputError, match="is empty"):
            load(path)

    def test_an_older_rpd_file(self, tmp_path: Path) -> None:
        """The tables that the former tracer of that name wrote."""
        path = change(tmp_path / "trace.rpd", "CREATE TABLE rocpd_op (id INTEGER)")
        with pytest.raises(InputError, match="lacks rocpd_kernel_dispatch"):
            load(path)

    def test_a_view_is_not_read(self, tmp_path: Path) -> None:
        """It could compute for ever."""
        path = change(
            write_database(tmp_path / "app_results.db", COUNTED),
            "DROP TABLE `rocpd_pmc_event@`",
            f"CREATE VIEW `rocpd_pmc_event@` AS {ENDLESS}",
        )
        with pytest.raises(InputError, match="lacks rocpd_pmc_event;"):
            load(path)


def test_the_views_of_the_file_are_not_used(tmp_path: Path) -> None:
    path = write_database(tmp_path / "app_results.db", COUNTED)
    names = ("rocpd_kernel_dispatch", "rocpd_info_agent", "rocpd_pmc_event")
    change(path, *(f"DROP VIEW {name}" for name in names))
    change(path, *(f"CREATE VIEW {name} AS {ENDLESS}" for name in names))
    assert load(path).launches == 2


def test_nothing_is_written(tmp_path: Path) -> None:
    path = change(write_database(tmp_path / "app_results.db", COUNTED), "PRAGMA journal_mode = WAL")
    before = path.read_bytes()
    assert load(path).launches == 2
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def test_launches_of_no_named_kernel_are_left_out(tmp_path: Path) -> None:
    """rocprofv3 writes such a dispatch where it does not know the kernel; its CSV lacks it too."""
    path = change(
        write_database(tmp_path / "app_results.db", TRACED),
        "DELETE FROM `rocpd_info_kernel_symbol@` WHERE display_name = 'g(float)'",
    )
    with pytest.warns(DataWarning, match="1 launch of kernels that it does not name is left out"):
        assert load(path).launches == 2


def test_a_gpu_that_the_table_lacks_goes_by_its_name(tmp_path: Path) -> None:
    path = change(
        write_database(tmp_path / "app_results.db", COUNTED, extdata={**EXTDATA, "cu_count": 64}),
        "UPDATE `rocpd_info_agent@` SET name = 'gfx999', product_name = 'Radeon of a made name'",
    )
    with pytest.warns(DataWarning, match="'Radeon of a made name' is not in the"):
        assert load(path).config.cu_count == 64
