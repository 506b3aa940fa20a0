"""Nsight Compute's pages, made excerpts; the expected values are worked out by hand."""

from pathlib import Path

import numpy as np
import pytest
from synthetic.exports import NCU, NCU_TEXT, long_page, long_rows, quoted, read, row, wide_page

from mlscale import DataWarning, InputError
from mlscale.profilers.tools.ncu_metrics import parse_unit

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


@pytest.mark.parametrize("page", [long_page(), wide_page()], ids=["details", "raw"])
def test_both_pages_give_the_same(tmp_path: Path, page: str) -> None:
    imported = read(tmp_path, page)
    values = row(imported)
    assert {n: values[n] for n in NCU_FEATURES} == pytest.approx(NCU_FEATURES, rel=1e-12)
    assert imported.tool == "ncu"
    assert imported.table.text == {
        "device": ["made-gpu"],
        "application": ["app"],
        "kernel": ["void k<int, 2>(float *, int)"],
    }


@pytest.mark.parametrize(
    "page",
    [
        long_page(long_rows(0), long_rows(1, gpu=1)),
        wide_page([{}, {"Device": "1", "gpu__time_duration.sum": "30000"}]),
        NCU_TEXT.replace("Device 0", "Device 1").replace("Device 1", "Device 0", 1),
    ],
    ids=["details", "raw", "text"],
)
def test_of_several_gpus_one_is_chosen(tmp_path: Path, page: str) -> None:
    """One launch on each; pooled they would be a run of two."""
    with pytest.raises(InputError, match=r"is of GPUs 0 \(1 launch\), 1 \(1 launch\); choose one"):
        read(tmp_path, page)
    of_each = [read(tmp_path, page, gpu=gpu) for gpu in ("0", "1")]
    assert [imported.launches for imported in of_each] == [1, 1]
    if "gpu__time_duration.sum" in page.splitlines()[0]:
        assert [imported.time_ms for imported in of_each] == pytest.approx([0.01, 0.03])


def test_an_attribute_names_the_gpu_and_other_metrics_are_passed_over(tmp_path: Path) -> None:
    named = {"device__attribute_display_name": ("", "NVIDIA L4"), "made__metric.sum": ("inst", "7")}
    page = long_page(long_rows(metrics={**NCU, **named}))
    imported = read(tmp_path, page, device=None, base={"engine_mhz": 1000.0, "memory_mhz": 500.0})
    assert imported.table.text["device"] == ["l4"]
    assert "made__metric.sum" not in imported.table.numbers


@pytest.mark.parametrize("unit", ["gpc", "smsp"])
def test_the_raw_names_of_sm_frequency(tmp_path: Path, unit: str) -> None:
    """SpeedOfLight's raw page names it by the GPC or the SM's partition, as ncu's version is."""
    clock = {f"{unit}__cycles_elapsed.avg.per_second": ("Ghz", "1.20")}
    with pytest.raises(InputError, match=r"engine_mhz.*1200"):  # the others' base is 1000 MHz
        read(tmp_path, long_page(long_rows(metrics={**NCU, **clock})))


def test_what_the_tool_cannot_give_is_no_column(tmp_path: Path) -> None:
    imported = read(tmp_path, long_page())
    missing = {n for n, f in imported.features.items() if f.status == "missing"}
    assert {"SFetchInsts", "MemUnitStalled", "WriteUnitStalled", "CacheHit"} <= missing
    assert not missing & set(imported.table.numbers)
    assert imported.table.metadata["feature_status"]["CacheHit"] == "missing"


def test_without_fp64_there_is_no_sum_of_instructions(tmp_path: Path) -> None:
    """A pipe that was not counted is not taken to be idle."""
    metrics = {n: v for n, v in NCU.items() if "fp64" not in n}
    imported = read(tmp_path, long_page(long_rows(metrics=metrics)))
    assert imported.features["VALUInsts"].status == "missing"
    assert imported.features["ReadBandwidth"].status == "exact"


def test_launches_are_averaged_by_geometry(tmp_path: Path) -> None:
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


def test_each_launch_is_a_repetition(tmp_path: Path) -> None:
    imported = read(tmp_path, with_launches(10, 30), each=True)
    assert imported.table.numbers["time_ms"] == pytest.approx([0.01, 0.03])
    assert len(set(imported.table.text["kernel"])) == 1


def test_twelve_columns_unquoted_with_bom_and_crlf(tmp_path: Path) -> None:
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


def test_rule_rows_and_short_rows(tmp_path: Path) -> None:
    """20 columns: metric rows end early in one comma, rule rows have no metric."""
    rules = ["Rule Name", "Rule Type", "Rule Description", "Estimated Speedup Type",
             "Estimated Speedup"]  # fmt: skip
    header, *rows = long_page(before="").splitlines()
    identity = rows[0].split(',"Command', maxsplit=1)[0]
    rule = identity + ',"SpeedOfLight","","","","SOLBottleneck","OPT","text","",""'
    text = "\n".join([header + "," + quoted(rules).strip(), *(r + "," for r in rows), rule])
    assert row(read(tmp_path, text + "\n"))["VALUInsts"] == pytest.approx(40)


def test_program_output_around_the_table(tmp_path: Path) -> None:
    before = "device: GPU, 48 SMs\nID, name\n==PROF== Disconnected from process 77\n"
    text = long_page(before=before) + "==PROF== Disconnected\nresult: 1, 2, 3\n"
    with pytest.warns(
        DataWarning, match="passed over: 2 lines inside the table, output of the program"
    ):
        assert row(read(tmp_path, text))["time_ms"] == 0.01


@pytest.mark.parametrize(
    ("unit", "dimension", "scale"),
    [
        ("us", "s", 1e-6), ("msecond", "s", 1e-3), ("Kbyte", "byte", 1e3),
        ("Gbyte/second", "byte/s", 1e9), ("cycle/nsecond", "hz", 1e9), ("Ghz", "hz", 1e9),
        ("%", "%", 1.0), ("", "1", 1.0), ("register/thread", "1", 1.0),
    ],
)  # fmt: skip
def test_units_are_decimal(unit: str, dimension: str, scale: float) -> None:
    assert parse_unit(unit) == (dimension, pytest.approx(scale))


def test_clocks_and_sms_of_the_file(tmp_path: Path) -> None:
    metrics = {
        **NCU,
        "launch__sm_count": ("SM", "36"),
        "SM Frequency": ("Ghz", "1.25"),
        "DRAM Frequency": ("Mhz", "700"),
    }
    with pytest.warns(
        DataWarning, match="mhz 1250 and memory_mhz 700 are what the profiler observed"
    ):
        values = row(read(tmp_path, long_page(long_rows(metrics=metrics)), base={}))
    assert (values["cu_count"], values["engine_mhz"], values["memory_mhz"]) == (36, 1250, 700)


def test_a_raw_name_comes_before_what_a_section_shows(tmp_path: Path) -> None:
    """Sections round: 12.35 us are shown of 12,346 ns."""
    both = {"Duration": ("us", "12.35"), "gpu__time_duration.sum": ("nsecond", "12346")}
    for metrics in (NCU | both, both | NCU | both):
        page = long_page(long_rows(metrics=metrics))
        assert row(read(tmp_path, page))["time_ms"] == pytest.approx(0.012346)


@pytest.mark.parametrize("name", ["memory_clock_rate", "max_mem_frequency_khz"])
def test_a_memory_clock_that_was_not_counted_is_the_gpus_highest(tmp_path: Path, name: str) -> None:
    """In kHz, as CUDA tells it."""
    metrics = {n: of for n, of in NCU.items() if not n.startswith("dram__cycles")}
    metrics[f"device__attribute_{name}"] = ("", "2619000")
    base = {"cu_count": 4.0, "engine_mhz": 1000.0}
    with pytest.warns(DataWarning, match="memory_mhz 2619 is the GPU's highest"):
        values = row(read(tmp_path, long_page(long_rows(metrics=metrics)), base=base))
    assert values["memory_mhz"] == 2619


def test_missing_values_are_nan_in_a_table_of_several(tmp_path: Path) -> None:
    rows = [{}, {"dram__bytes_read.sum": "n/a", "Grid Size": "(3, 1, 1)"}]
    imported = read(tmp_path, wide_page(rows))
    values = imported.table.numbers["ReadBandwidth"]
    assert values[0] == pytest.approx(2e9)
    assert np.isnan(values[1])


SPEED_OF_LIGHT = {
    "DRAM Frequency": ("Ghz", "1.00"),
    "SM Frequency": ("Mhz", "990.00"),
    "Elapsed Cycles": ("cycle", "10,000"),
    "SM Active Cycles": ("cycle", "8,000.00"),
    "Duration": ("us", "10.00"),
    "Memory Throughput": ("%", "60.00"),
    "DRAM Throughput": ("%", "20.00"),
    "Compute (SM) Throughput": ("%", "40.00"),
    "Issue Slots Busy": ("%", "50.00"),
}


def shares(tmp_path: Path, metrics: dict[str, tuple[str, str]]) -> tuple[dict[str, float], dict]:
    base = {"cu_count": 4.0, "engine_mhz": 1000.0, "memory_mhz": 1000.0}
    imported = read(tmp_path, long_page(long_rows(metrics=metrics)), device="gtx980", base=base)
    return row(imported), imported.table.metadata["utilisation_sources"]


class TestShares:
    """By hand; a GTX 980 at 1000 MHz of memory passes 256 / 8 x 2 x 1 GHz = 64 GB/s."""

    def test_of_the_speed_of_light_section(self, tmp_path: Path) -> None:
        """Of 10000 cycles the SMs are active in 8000: half of these slots are 0.4 of all."""
        values, sources = shares(tmp_path, SPEED_OF_LIGHT)
        assert values["dram_utilisation"] == pytest.approx(0.2)
        assert sources["dram_utilisation"].startswith("DRAM throughput, % of peak = {gpu__dram_")
        assert values["core_utilisation"] == pytest.approx(0.4)
        assert values["issue_utilisation"] == pytest.approx(0.4)
        assert sources["issue_utilisation"].startswith("instructions per issue slot = ")

    def test_memory_throughput_in_percent_is_a_bound(self, tmp_path: Path) -> None:
        metrics = {name: v for name, v in SPEED_OF_LIGHT.items() if name != "DRAM Throughput"}
        values, sources = shares(tmp_path, metrics)
        assert values["dram_utilisation"] == pytest.approx(0.6)
        assert "an upper bound" in sources["dram_utilisation"]

    @pytest.mark.parametrize(
        ("l1", "l2", "is_dram"),
        [
            ("10.00", "57.90", True),
            ("10.00", "58.00", False),
            ("75.00", "20.00", False),  # of active cycles; 8000 of 10000: 60 of all
            ("70.00", "20.00", True),  # 56 of all
        ],
    )
    def test_memory_throughput_of_a_cache_says_nothing_of_dram(
        self, tmp_path: Path, l1: str, l2: str, is_dram: bool
    ) -> None:
        """By hand: memory throughput is 60 %; a cache at 58 % of all cycles or more explains it."""
        metrics = {name: v for name, v in SPEED_OF_LIGHT.items() if name != "DRAM Throughput"}
        metrics |= {"L1/TEX Cache Throughput": ("%", l1), "L2 Cache Throughput": ("%", l2)}
        values, sources = shares(tmp_path, metrics)
        assert ("dram_utilisation" in values) == is_dram
        assert ("dram_utilisation" in sources) == is_dram

    @pytest.mark.parametrize(
        "metrics",
        [
            {"dram__bytes.sum": ("Kbyte", "320.00")},
            {"dram__bytes.sum.per_second": ("Gbyte/second", "32.00")},
            {"Memory Throughput": ("Gbyte/s", "32.00")},
            {"dram__bytes_read.sum": ("Kbyte", "300"), "dram__bytes_write.sum": ("byte", "20,000")},
        ],
    )
    def test_bytes_come_first(self, tmp_path: Path, metrics: dict[str, tuple[str, str]]) -> None:
        """320 kB in 10 us are 32 GB/s, half of the peak."""
        values, sources = shares(tmp_path, {**SPEED_OF_LIGHT, **metrics})
        assert values["dram_utilisation"] == pytest.approx(0.5)
        assert sources["dram_utilisation"].startswith("DRAM bytes = ")

    def test_issue_by_count(self, tmp_path: Path) -> None:
        """8000 instructions in 40000 cycles of SMs with 4 slots each."""
        counts = {
            "sm__inst_executed.sum": ("inst", "8,000"),
            "sm__cycles_elapsed.sum": ("cycle", "40,000"),
        }
        values, _ = shares(tmp_path, {**SPEED_OF_LIGHT, **counts})
        assert values["issue_utilisation"] == pytest.approx(0.05)

    def test_more_bytes_than_pass_are_refused(self, tmp_path: Path) -> None:
        """1280 kB in 10 us are 128 GB/s, twice the peak."""
        metrics = {**SPEED_OF_LIGHT, "dram__bytes.sum": ("Kbyte", "1,280.00")}
        with pytest.raises(InputError, match=r"2\.00 times what gtx980 passes at memory=1000"):
            shares(tmp_path, metrics)
