"""rocprof's files, v1 to v3, made excerpts; the expected values are worked out by hand."""

from pathlib import Path

import pytest
from synthetic.exports import (
    AMD,
    AMD_FEATURES,
    BASE,
    V3_TRACE,
    read,
    rocprof_v1,
    rocprofv3,
    row,
)
from text_files import written

from mlscale import HardwareConfig, InputError
from mlscale.profilers import ImportedTable
from mlscale.profilers.importing import import_again


def test_v1(tmp_path: Path) -> None:
    text = rocprof_v1({**AMD, "FETCH_SIZE": 4}, times=[(1000, 3000)])
    imported = read(tmp_path, text, device="mi210", base={**BASE})
    values = row(imported)
    assert {n: values[n] for n in AMD_FEATURES} == pytest.approx(AMD_FEATURES)
    assert values["time_ms"] == pytest.approx(0.002)
    assert values["ReadBandwidth"] == pytest.approx(4096 / 2e-6)
    assert values["V_IPC"] == pytest.approx(500 / (4 * 2000))  # of 8000 cycles, in 2 us at 1 GHz
    assert imported.table.text["kernel"] == ["f(int, int)"]


def test_derived_metrics_of_the_worked_check(tmp_path: Path) -> None:
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


def test_channels_are_summed(tmp_path: Path) -> None:
    counters = {**AMD, "TCC_HIT[0]": 30, "TCC_HIT[1]": 10, "TCC_MISS[0]": 5, "TCC_MISS[1]": 5}
    values = row(read(tmp_path, rocprof_v1(counters, times=[(0, 1000)])))
    assert values["CacheHit"] == pytest.approx(80)


def test_v3_passes_and_trace(tmp_path: Path) -> None:
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


def test_rows_of_a_v3_trace_that_are_no_kernels_are_passed_over(tmp_path: Path) -> None:
    """4 and 2 us of the two launches, 3 us on average; the third row is as long as 1 s."""
    last = V3_TRACE.splitlines()[-1].replace("KERNEL_DISPATCH", "MEMORY_COPY")
    imported = read(tmp_path, V3_TRACE + last.replace("1000,3000", "10000,1000010000") + "\n")
    assert row(imported)["time_ms"] == pytest.approx(0.003)
    assert imported.launches == 2


def test_of_several_gpus_one_is_chosen(tmp_path: Path) -> None:
    """Two launches on each agent; pooled they would be a run of four."""
    one = rocprofv3(AMD)
    other = one.partition("\n")[2].replace("Agent 4", "Agent 5")
    other = other.replace('1,1,"', '3,3,"').replace('2,2,"', '4,4,"')
    with pytest.raises(InputError, match=r"of GPUs 4 \(2 launches\), 5 \(2 launches\); choose one"):
        read(tmp_path, one + other, device="mi300x")
    assert read(tmp_path, one + other, device="mi300x", gpu="5").launches == 2


def test_v1_of_several_gpus(tmp_path: Path) -> None:
    text = rocprof_v1(AMD, 3, times=[(1000, 3000), (5000, 9000), (7000, 7500)])
    text = text.replace('1,"f(int, int) [clone .kd]",0,', '1,"f(int, int) [clone .kd]",6,')
    with pytest.raises(InputError, match=r"is of GPUs 0 \(2 launches\), 6 \(1 launch\); choose"):
        read(tmp_path, text)
    assert row(read(tmp_path, text, gpu="6"))["time_ms"] == pytest.approx(0.004)


def test_v3_without_a_trace_takes_the_median_of_the_passes(tmp_path: Path) -> None:
    """6, 8 and 9 us: 8 us."""
    passes = [rocprofv3({"SQ_WAVES": 10}, 0, ns) for ns in (6000, 9000, 8000)]
    assert row(read(tmp_path, *passes))["time_ms"] == pytest.approx(0.008)


def test_without_the_number_of_xcds_there_are_no_ratios_to_cycles(tmp_path: Path) -> None:
    imported = read(tmp_path, rocprof_v1(AMD, times=[(0, 1000)]), device="mi999")
    assert imported.features["V_IPC"].status == "missing"


MACHINE = "gpu_model,gpu_arch,cu_per_gpu,max_sclk,max_mclk\nMI300X_A1,gfx942,304,2100,1300\n"


@pytest.mark.parametrize(
    "text",
    [
        '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"f(int)",4,6000,1500,90.0\n',
        "    ROCPROFV3 SUMMARY:\n\n    | NAME | DOMAIN | CALLS | DURATION (nsec) |\n",
    ],
)
def test_statistics_say_which_flag_writes_the_launches(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"_kernel_trace.csv of rocprofv3 --kernel-trace --output"):
        read(tmp_path, text)


def test_the_summary_of_a_database_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="that is what 'rocpd summary' prints; give the database"):
        read(tmp_path, "KERNELS_SUMMARY:\n    Name  Calls  DURATION (nsec)\n       k      1  5\n")


@pytest.mark.parametrize(
    ("header", "what"),
    [
        ('"Domain","Function","Process_Id","Thread_Id","Correlation_Id"', "the host's calls"),
        ('"Kind","Direction","Source_Agent_Id","Correlation_Id","Start_Timestamp"', "copies"),
    ],
)
def test_v3_traces_that_are_not_of_kernels(tmp_path: Path, header: str, what: str) -> None:
    with pytest.raises(InputError, match=f"row 1: is rocprofv3's trace of {what}, not of kernels"):
        read(tmp_path, f"{header}\n1,2,3,4,5\n")


def test_passes_in_which_the_runtime_copies_more_or_less_often(tmp_path: Path) -> None:
    """All of it is in the row of the first pass; of other kernels passes must be alike."""
    one = rocprof_v1({"SQ_WAVES": 10, "FETCH_SIZE": 5}, 1, [(1000, 3000)])
    kernels = "f(int, int)", "__amd_rocclr_copyBuffer"
    copies = [
        line.replace("0,", f"{1 + i},", 1).replace(*kernels)
        for i, line in enumerate(one.splitlines(keepends=True)[1:] * 2)
    ]
    for first, second in (([], copies), (copies[:1], copies), (copies, [])):
        imported = read(tmp_path, one + "".join(first), one + "".join(second))
        assert imported.launches == 1 + len(first)


def test_sysinfo_says_gpu_and_cus(tmp_path: Path) -> None:
    """A gfx942 with 304 CUs may also be an MI325X (the device table): the model decides."""
    counted = rocprof_v1({"SQ_WAVES": 10, "FETCH_SIZE": 5}, times=[(1000, 3000)])
    with pytest.warns(match="memory_mhz 1300 is the GPU's highest"):
        imported = read(tmp_path, counted, MACHINE, device=None, base={"engine_mhz": 2100.0})
    assert imported.table.text["device"] == ["mi300x"]
    assert str(imported.config) == "cu=304,engine=2100,memory=1300"
    with pytest.raises(InputError, match="tells of a machine, not of kernels"):
        read(tmp_path, MACHINE)


def test_a_clock_that_sysinfo_does_not_know_is_that_of_the_table(tmp_path: Path) -> None:
    """It was a traceback: no whole number is nearest to NaN."""
    counted = rocprof_v1({"SQ_WAVES": 10, "FETCH_SIZE": 5}, times=[(1000, 3000)])
    assert "1300" in MACHINE
    machine = MACHINE.replace("1300", "N/A")
    with pytest.warns(match="memory_mhz 1300 is the GPU's highest"):
        read(tmp_path, counted, machine, device=None, base={"engine_mhz": 900})


# Of the form in AMD's "Using rocprofv3" (section "Agent info"), with the columns that are read.
AGENTS = (
    '"Node_Id","Agent_Type","Cu_Count","Max_Engine_Clk_Fcompute","Name","Product_Name"\n'
    '0,"CPU",112,0,"A CPU","A CPU"\n'
    '1,"GPU",304,2100,"gfx942","AMD Instinct MI300X"\n'
    '2,"GPU",304,2100,"gfx942","AMD Instinct MI300X"\n'
)


class TestAgents:
    """rocprofv3's agent_info.csv beside the counters."""

    @staticmethod
    def given(folder: Path, agents: str = AGENTS, **base: float) -> ImportedTable:
        return read(folder, rocprofv3(AMD), agents, device=None, base=base)

    def test_say_gpu_and_cus(self, tmp_path: Path) -> None:
        imported = self.given(tmp_path, engine_mhz=2000.0, memory_mhz=1300.0)
        assert imported.table.text["device"] == ["mi300x"]
        assert str(imported.config) == "cu=304,engine=2000,memory=1300"

    def test_are_asked_for_where_nothing_says_the_gpu(self, tmp_path: Path) -> None:
        with pytest.raises(
            InputError, match=r"does not say the GPU, .*_agent_info\.csv, or rocprof"
        ):
            read(tmp_path, rocprofv3(AMD), device=None, base={})

    def test_in_front_give_the_table_no_name(self, tmp_path: Path) -> None:
        base = {"engine_mhz": 2000.0, "memory_mhz": 1300.0}
        imported = read(tmp_path, AGENTS, rocprofv3(AMD), device=None, base=base, application=None)
        assert imported.table.text["application"] == ["export1"]

    def test_are_no_trace_beside_which_a_second_profile_is_refused(self, tmp_path: Path) -> None:
        """Its launches take 4000 ns."""
        paths = [
            written(tmp_path, rocprofv3(AMD), "fast.csv"),
            written(tmp_path, AGENTS, "agents.csv"),
            written(tmp_path, rocprofv3(AMD, 1000, 5000), "slow.csv"),
        ]
        base, at = HardwareConfig(304, 2000, 1300), HardwareConfig(304, 1000, 1300)
        table = import_again(paths[:2], paths[2], "mi300x", base, at)
        assert table.numbers["time_ms"] == pytest.approx([0.004])
        assert table.numbers["engine_mhz"].tolist() == [1000]

    def test_the_highest_clock_is_told_where_a_clock_lacks(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as refusal:
            self.given(tmp_path)
        assert "does not say engine_mhz; give --base engine=… with" in str(refusal.value)
        assert "(engine at most 2100)" in str(refusal.value)

    def test_a_clock_that_is_not_known_is_no_highest_one(self, tmp_path: Path) -> None:
        with pytest.raises(InputError) as refusal:
            self.given(tmp_path, AGENTS.replace(",2100,", ",N/A,"))
        assert "engine at most" not in str(refusal.value)

    def test_no_higher_clock_was_set(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="at most engine=2100 by the files, --base says 2500"):
            self.given(tmp_path, engine_mhz=2500.0, memory_mhz=1300.0)

    def test_a_gpu_that_the_table_lacks_goes_by_its_name(self, tmp_path: Path) -> None:
        other = AGENTS.splitlines()[0] + '\n1,"GPU",64,1630,"gfx999","Radeon of a made name"\n'
        with pytest.warns(match="'Radeon of a made name' is not in the device table"):
            imported = self.given(tmp_path, other, engine_mhz=1500.0, memory_mhz=945.0)
        assert imported.config.cu_count == 64

    def test_one_whose_chip_says_more_goes_by_that(self, tmp_path: Path) -> None:
        """The driver's files may lack its name: of gfx950, the table has two boards."""
        other = AGENTS.splitlines()[0] + '\n1,"GPU",256,2400,"gfx950","AMD Radeon Graphics"\n'
        with pytest.warns(match="'gfx950' may be mi350x or mi355x"):
            self.given(tmp_path, other, engine_mhz=2000.0, memory_mhz=2000.0)

    def test_of_unlike_ones_that_of_the_launches_counts(self, tmp_path: Path) -> None:
        """Agent 2 of the trace by its logical number; the node's is another one in a container."""
        header = AGENTS.splitlines()[0].replace('"Node_Id"', '"Node_Id","Logical_Node_Id"')
        agents = (
            f'{header}\n5,1,"GPU",2,2200,"gfx1036","AMD Radeon Graphics"\n'
            '1,2,"GPU",304,2100,"gfx942","AMD Instinct MI300X"\n'
        )
        counted = rocprofv3(AMD)
        assert '"Agent 4"' in counted
        for agent in ('"Agent 2"', "2"):
            text = counted.replace('"Agent 4"', agent)
            base = {"engine_mhz": 2000.0, "memory_mhz": 1300.0}
            imported = read(tmp_path, text, agents, device=None, base=base)
            assert imported.table.text["device"] == ["mi300x"]

    def test_say_the_dies(self, tmp_path: Path) -> None:
        """4 dies in place of the 8 of an MI300X: instructions per cycle are half as many."""
        header, _, row, _ = AGENTS.splitlines()
        busy = []
        for dies in (8, 4):
            agents = f'{header},"Num_Xcc"\n{row},{dies}\n'
            imported = self.given(tmp_path, agents, engine_mhz=2000.0, memory_mhz=1300.0)
            busy.append(imported.table.numbers["V_IPC"][0])
        assert busy[1] == pytest.approx(busy[0] / 2)

    @pytest.mark.parametrize(
        ("row", "message"),
        [
            ('3,"GPU",2,2200,"gfx1036","AMD Radeon Graphics"', "unlike GPUs .*; keep the row of"),
            ('3,"GPU",304,two,"gfx942","AMD Instinct MI300X"', "row 5, column 'Max_Engine_Clk"),
            ('3,"GPU",0,2100,"gfx942","AMD Instinct MI300X"', "row 5, column 'Cu_Count'"),
        ],
    )
    def test_refused(self, tmp_path: Path, row: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            self.given(tmp_path, f"{AGENTS}{row}\n", engine_mhz=2000.0, memory_mhz=1300.0)

    def test_without_a_gpu_or_alone(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="lists no GPU"):
            self.given(tmp_path, "\n".join(AGENTS.splitlines()[:2]))
        with pytest.raises(InputError, match="tells of a machine, not of kernels"):
            read(tmp_path, AGENTS)


def test_timestamps_that_are_means_of_passes(tmp_path: Path) -> None:
    text = rocprof_v1({"SQ_WAVES": 10}, times=[(1000, 3000)])
    values = row(read(tmp_path, text.replace(",1000,3000,", ",1000.25,3000.75,")))
    assert values["time_ms"] == pytest.approx(2.0005e-3)
