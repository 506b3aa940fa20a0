"""Readers of profilers' exports on made excerpts; expected values worked out by hand."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from synthetic.exported import (
    BASE,
    NCU,
    NVPROF_METRICS,
    NVPROF_TRACE,
    V3_TRACE,
    codexl,
    long_page,
    long_rows,
    quoted,
    read,
    rocprof_v1,
    rocprofv3,
    row,
    wide_page,
)

from mlscale import DataWarning
from mlscale.profilers.ncu import parse_unit
from mlscale.profilers.nvprof import parse_metric
from mlscale.profilers.reader import layout_of

# NCU: 400 VALU + 100 uniform + 200 loads + 100 stores + 200 shared = 1000 instructions; 10 us.
NCU_FEATURES = {
    "time_ms": 0.01, "VALUInsts": 40, "SALUInsts": 10, "VFetchInsts": 20, "VWriteInsts": 10,
    "LDSInsts": 20, "VALUBusy": 100 * 400 / 160_000, "V_IPC": 0.01, "Occupancy": 75,
    "NumWorkGroups": 16, "ReadBandwidth": 2e9, "WriteBandwidth": 5e8,
    "FetchPerLoadByte": 200 / 20_000, "WritePerStoreByte": 100 / 5000,
    "workgroups": 16, "workgroup_size": 128, "cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500,
}  # fmt: skip


def with_launches(*times_us: int) -> str:
    return long_page(
        *(
            long_rows(i, metrics={**NCU, "gpu__time_duration.sum": ("us", str(time))})
            for i, time in enumerate(times_us)
        )
    )


class TestNcu:
    @pytest.mark.parametrize("page", [long_page(), wide_page()], ids=["details", "raw"])
    def test_both_pages_give_the_same(self, tmp_path: Path, page: str) -> None:
        imported = read(tmp_path, page)
        values = row(imported)
        assert {n: values[n] for n in NCU_FEATURES} == pytest.approx(NCU_FEATURES, rel=1e-12)
        assert imported.tool == "ncu"
        assert imported.table.text == {
            "device": ["made-gpu"],
            "application": ["app"],
            "kernel": ["void k<int, 2>(float *, int)"],
        }

    def test_what_the_tool_cannot_give_is_no_column(self, tmp_path: Path) -> None:
        imported = read(tmp_path, long_page())
        missing = {n for n, f in imported.features.items() if f.status == "missing"}
        assert {"SFetchInsts", "MemUnitStalled", "WriteUnitStalled", "CacheHit"} <= missing
        assert not missing & set(imported.table.numbers)
        assert imported.table.metadata["feature_status"]["CacheHit"] == "missing"

    def test_without_fp64_there_is_no_sum_of_instructions(self, tmp_path: Path) -> None:
        """A pipe that was not counted is not taken to be idle."""
        metrics = {n: v for n, v in NCU.items() if "fp64" not in n}
        imported = read(tmp_path, long_page(long_rows(metrics=metrics)))
        assert imported.features["VALUInsts"].status == "missing"
        assert imported.features["ReadBandwidth"].status == "exact"

    def test_launches_are_averaged_by_geometry(self, tmp_path: Path) -> None:
        """10 and 30 us at one grid, 50 us at another: means 20 and 50 us."""
        times = [10, 30, 50]
        rows = [
            long_rows(
                i,
                metrics={**NCU, "gpu__time_duration.sum": ("us", str(time))},
                grid="(8, 2, 1)" if time < 50 else "(9, 1, 1)",
            )
            for i, time in enumerate(times)
        ]
        imported = read(tmp_path, long_page(*rows))
        assert imported.table.numbers["time_ms"] == pytest.approx([0.02, 0.05])
        assert imported.table.text["kernel"] == [
            "void k<int, 2>(float *, int) [grid 16, block 128]",
            "void k<int, 2>(float *, int) [grid 9, block 128]",
        ]
        launches = imported.table.metadata["launches"].values()
        assert [launch["launches"] for launch in launches] == [2, 1]

    def test_each_launch_is_a_repetition(self, tmp_path: Path) -> None:
        imported = read(tmp_path, with_launches(10, 30), each=True)
        assert imported.table.numbers["time_ms"] == pytest.approx([0.01, 0.03])
        assert len(set(imported.table.text["kernel"])) == 1

    def test_twelve_columns_unquoted_with_bom_and_crlf(self, tmp_path: Path) -> None:
        """The layout of 2019 to 2021 as a spreadsheet saves it; old display names and units."""
        head = (
            "ID,Process ID,Process Name,Host Name,Kernel Name,Kernel Time,Context,Stream,"
            "Section Name,Metric Name,Metric Unit,Metric Value\r\n"
        )
        body = "".join(
            f"0,7,app,h,K,2020-Oct-25 20:27:10,1,15,GPU Speed Of Light,{name},{unit},{value}\r\n"
            for name, unit, value in (
                ("Duration", "nsecond", "211232"),
                ("SM Frequency", "cycle/second", "1010000000"),
                ("SOL DRAM", "%", "73.11"),
                ("Memory [%]", "%", "12"),
            )
        )
        values = row(read(tmp_path, ("\ufeff" + head + body).encode()))
        assert values["time_ms"] == pytest.approx(0.211232)
        assert values["MemTime"] == pytest.approx(0.7311)

    def test_rule_rows_and_short_rows(self, tmp_path: Path) -> None:
        """20 columns: metric rows end early in one comma, rule rows have no metric."""
        rules = ["Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type",
                 "Estimated Speedup"]  # fmt: skip
        header, *rows = long_page(before="").splitlines()
        identity = rows[0].split(',"Command', maxsplit=1)[0]
        rule = identity + ',"SpeedOfLight","","","","SOLBottleneck","OPT","text","",""'
        text = "\n".join([header + "," + quoted(rules).strip(), *(r + "," for r in rows), rule])
        assert row(read(tmp_path, text + "\n"))["VALUInsts"] == pytest.approx(40)

    def test_program_output_around_the_table(self, tmp_path: Path) -> None:
        before = "device: GPU, 48 SMs\nID, name\n==PROF== Disconnected from process 77\n"
        text = long_page(before=before) + "==PROF== Disconnected\nresult: 1, 2, 3\n"
        with pytest.warns(DataWarning, match="2 lines inside the table were the program's"):
            assert row(read(tmp_path, text))["time_ms"] == 0.01

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-8-sig"])
    def test_encodings(self, tmp_path: Path, encoding: str) -> None:
        text = ("\ufeff" if encoding == "utf-16-le" else "") + long_page().replace("\n", "\r\n")
        assert row(read(tmp_path, text.encode(encoding)))["VALUInsts"] == pytest.approx(40)

    @pytest.mark.parametrize(
        ("unit", "dimension", "scale"),
        [
            ("us", "s", 1e-6), ("msecond", "s", 1e-3), ("Kbyte", "byte", 1e3),
            ("Gbyte/second", "byte/s", 1e9), ("cycle/nsecond", "hz", 1e9), ("Ghz", "hz", 1e9),
            ("%", "%", 1.0), ("", "1", 1.0), ("register/thread", "1", 1.0),
        ],
    )  # fmt: skip
    def test_units_are_decimal(self, unit: str, dimension: str, scale: float) -> None:
        assert parse_unit(unit) == (dimension, pytest.approx(scale))

    def test_clocks_and_sms_of_the_file(self, tmp_path: Path) -> None:
        metrics = {
            **NCU,
            "launch__sm_count": ("SM", "36"),
            "SM Frequency": ("Ghz", "1.25"),
            "DRAM Frequency": ("Mhz", "700"),
        }
        with pytest.warns(DataWarning, match="mhz .* is what the profiler observed"):
            values = row(read(tmp_path, long_page(long_rows(metrics=metrics)), base={}))
        assert (values["cu_count"], values["engine_mhz"], values["memory_mhz"]) == (36, 1250, 700)


class TestNvprof:
    def test_metrics_and_trace(self, tmp_path: Path) -> None:
        """VALU 500 of 1000 thread instructions; KB/s are binary: 976.5625 KB/s = 1e6 B/s."""
        imported = read(tmp_path, NVPROF_METRICS, NVPROF_TRACE, device=None, base={**BASE})
        values = row(imported)
        expected = {
            "time_ms": 0.05, "VALUInsts": 50, "VALUUtilization": 80, "V_IPC": 2 * 0.5 * 0.5,
            "Occupancy": 25, "ReadBandwidth": 1e6, "MemUnitBusy": 30, "NumWorkGroups": 20,
            "workgroups": 20, "warps": 40, "sm_efficiency": 0.5, "inst_executed": 1000,
        }  # fmt: skip
        assert {name: values[name] for name in expected} == pytest.approx(expected)
        assert imported.table.text["device"] == ["p100"]
        assert imported.table.text["application"] == ["app"]
        assert imported.features["VALUInsts"].status == "nearest"
        assert imported.features["ReadBandwidth"].status == "exact"

    def test_bank_conflicts_from_metrics_alone(self, tmp_path: Path) -> None:
        """150 replays; 1000 instructions at 2 a cycle, active half the time: 1000 cycles."""
        shared = {
            "shared_load_transactions": 300, "shared_store_transactions": 100,
            "inst_executed_shared_loads": 200, "inst_executed_shared_stores": 50,
        }  # fmt: skip
        more = "".join(
            f'"Tesla P100-PCIE-16GB (0)","k(int, float*)",2,"{name}","of {name}",0,0,{value}\n'
            for name, value in shared.items()
        )
        imported = read(tmp_path, NVPROF_METRICS + more, NVPROF_TRACE, device=None)
        assert row(imported)["LDSBankConflict"] == pytest.approx(15)
        assert imported.features["LDSBankConflict"].status == "nearest"

    @pytest.mark.parametrize(
        ("cell", "value"),
        [
            ("678.5MB/s", (678.5 * 2**20, "B/s")), ("1.5GB/s", (1.5 * 2**30, "B/s")),
            ("98.5%", (98.5, "%")), ("Mid (5)", (5, "level")), ("7714", (7714, "")),
        ],
    )  # fmt: skip
    def test_glued_units(self, cell: str, value: tuple[float, str]) -> None:
        assert parse_metric(cell, "here") == value

    def test_summary_has_a_unit_for_each_column(self, tmp_path: Path) -> None:
        """Avg in us beside Max in ms; the second table is not read."""
        text = (
            '"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,us,us,ms,\n'
            '"GPU activities",68.7,268.35,6000,44.725000,43.106000,1.791976,"k(int)"\n'
            '"GPU activities",4.8,19.1,2000,9.551000,8.992000,0.014209,"[CUDA memcpy DtoD]"\n\n'
            '==9== Unified Memory profiling result:\n"Device","Count"\nTotal: 49\n'
        )
        with pytest.warns(DataWarning, match="times without counters"):
            imported = read(tmp_path, text)
        assert imported.table.numbers["time_ms"] == pytest.approx([0.044725])
        assert imported.launches == 6000


AMD = {
    "SQ_WAVES": 10, "SQ_INSTS_VALU": 500, "SQ_INSTS_SALU": 200, "SQ_INSTS_SMEM": 50,
    "SQ_INSTS_VMEM_RD": 100, "SQ_INSTS_VMEM_WR": 50, "SQ_INSTS_LDS": 100,
    "GRBM_GUI_ACTIVE": 8000,
}  # fmt: skip
AMD_FEATURES = {
    "VALUInsts": 50, "SALUInsts": 20, "SFetchInsts": 5, "VFetchInsts": 10, "VWriteInsts": 5,
    "LDSInsts": 10, "NumWorkGroups": 10,
}  # fmt: skip


class TestRocprof:
    def test_v1(self, tmp_path: Path) -> None:
        text = rocprof_v1({**AMD, "FETCH_SIZE": 4}, times=[(1000, 3000)])
        imported = read(tmp_path, text, device="mi210", base={**BASE})
        values = row(imported)
        assert {n: values[n] for n in AMD_FEATURES} == pytest.approx(AMD_FEATURES)
        assert values["time_ms"] == pytest.approx(0.002)
        assert values["ReadBandwidth"] == pytest.approx(4096 / 2e-6)
        assert values["V_IPC"] == pytest.approx(500 / (4 * 8000))
        assert imported.table.text["kernel"] == ["f(int, int)"]

    def test_negative_durations_are_left_out_and_said(self, tmp_path: Path) -> None:
        text = rocprof_v1(AMD, 3, times=[(1000, 3000), (5000, 4244), (7000, 7000)])
        with pytest.warns(DataWarning, match="2 rows without a positive time were left out"):
            imported = read(tmp_path, text)
        assert imported.launches == 1
        assert row(imported)["time_ms"] == pytest.approx(0.002)

    def test_derived_metrics_of_the_worked_check(self, tmp_path: Path) -> None:
        """By hand from AMD's formulas, the n-body kernel of ENCCS: 86.03, 9.31, 4.65 %."""
        counters = {
            "Wavefronts": 2048, "VALUInsts": 1212443, "VFetchInsts": 12, "VWriteInsts": 12,
            "SALUInsts": 131228.5, "SFetchInsts": 65553, "LDSInsts": 0, "FetchSize": 9429.1875,
        }  # fmt: skip
        text = rocprof_v1(counters, times=[(1594244111978746, 1594244138305243)])
        values = row(read(tmp_path, text))
        assert values["VALUInsts"] == pytest.approx(86.03, abs=0.005)
        assert values["SALUInsts"] == pytest.approx(9.31, abs=0.005)
        assert values["SFetchInsts"] == pytest.approx(4.65, abs=0.005)
        assert values["ReadBandwidth"] == pytest.approx(366.8e6, rel=1e-3)
        assert "VFetchInsts" not in values  # FLAT loads are not in the derived metric

    def test_channels_are_summed(self, tmp_path: Path) -> None:
        counters = {**AMD, "TCC_HIT[0]": 30, "TCC_HIT[1]": 10, "TCC_MISS[0]": 5, "TCC_MISS[1]": 5}
        values = row(read(tmp_path, rocprof_v1(counters, times=[(0, 1000)])))
        assert values["CacheHit"] == pytest.approx(80)

    def test_v3_passes_and_trace(self, tmp_path: Path) -> None:
        """Cycles are those of the counter's own pass, over 8 XCDs; time is the trace's mean, 3 us.

        VALUBusy: 100 * 640 / (4 * 16000 / 8) = 8 %, with 8000 cycles of the other pass 16 %.
        """
        second = {"SQ_WAVES": 10, "SQ_ACTIVE_INST_VALU": 640, "GRBM_GUI_ACTIVE": 16000}
        imported = read(
            tmp_path, rocprofv3(AMD, 1, 7001), rocprofv3(second, 1, 9001), V3_TRACE,
            device="mi300x",
        )  # fmt: skip
        values = row(imported)
        assert {n: values[n] for n in AMD_FEATURES} == pytest.approx(AMD_FEATURES)
        assert values["time_ms"] == pytest.approx(0.003)
        assert values["VALUBusy"] == pytest.approx(8.0)
        assert imported.launches == 2

    def test_v3_without_a_trace_takes_the_median_of_the_passes(self, tmp_path: Path) -> None:
        """6, 8 and 9 us: 8 us."""
        passes = [rocprofv3({"SQ_WAVES": 10}, 0, ns) for ns in (6000, 9000, 8000)]
        assert row(read(tmp_path, *passes))["time_ms"] == pytest.approx(0.008)

    def test_without_the_number_of_xcds_there_are_no_ratios_to_cycles(self, tmp_path: Path) -> None:
        imported = read(tmp_path, rocprof_v1(AMD, times=[(0, 1000)]), device="mi999")
        assert imported.features["V_IPC"].status == "missing"


class TestCodexl:
    # 60 + 20 + 10 + 5 + 5 + 0 = 100 instructions a wave; 4 KB read in 2.5 ms.
    EXPECTED: ClassVar = {
        "VALUInsts": 60, "SALUInsts": 20, "VFetchInsts": 10, "SFetchInsts": 5, "VWriteInsts": 5,
        "LDSInsts": 0, "Occupancy": 100, "CacheHit": 50, "NumWorkGroups": 16, "time_ms": 2.5,
        "ReadBandwidth": 4096 / 2.5e-3, "FetchPerLoadByte": 10 * 16 / 4096,
    }  # fmt: skip

    @pytest.mark.parametrize(("separator", "point"), [(",", "."), (";", "."), (";", ",")])
    def test_separators(self, tmp_path: Path, separator: str, point: str) -> None:
        imported = read(tmp_path, codexl(separator, point), device="hd7970")
        values = row(imported)
        assert {n: values[n] for n in self.EXPECTED} == pytest.approx(self.EXPECTED)
        assert imported.table.text["application"] == ["vadd"]
        assert imported.table.text["kernel"] == ["add__k1"]

    def test_commas_inside_braces(self, tmp_path: Path) -> None:
        text = codexl().replace("{64 1 1}", "{64,1,1}")
        assert row(read(tmp_path, text, device="hd7970"))["NumWorkGroups"] == 16

    def test_flat_instructions_cannot_be_split(self, tmp_path: Path) -> None:
        text = codexl().replace("LDSInsts", "FlatVMemInsts")
        head, body = text.rsplit("0.00, 4.00", 1)
        imported = read(tmp_path, f"{head}100.00, 4.00{body}", device="hd7970")
        assert imported.features["VFetchInsts"].status == "missing"


def test_a_header_is_known_by_its_names() -> None:
    assert layout_of(["ID", "name"]) is None
    assert layout_of([]) is None


def test_missing_values_are_nan_in_a_table_of_several(tmp_path: Path) -> None:
    rows = [{}, {"dram__bytes_read.sum": "n/a", "Grid Size": "(3, 1, 1)"}]
    imported = read(tmp_path, wide_page(rows))
    values = imported.table.numbers["ReadBandwidth"]
    assert values[0] == pytest.approx(2e9)
    assert np.isnan(values[1])
