"""From files of one run to tables and profiles: real ones, and made ones (synthetic/exports.py).

The made page of ncu: one launch of 10 us, 40 % vector instructions, 16 workgroups of 128.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic.exports import AMD, BASE, NCU, V3_TRACE, long_page, long_rows, rocprofv3
from synthetic.monitor_logs import PERIOD_S, query
from synthetic.monitor_readings import block
from synthetic.tidy import refused

from mlscale import DataWarning, HardwareConfig, import_profile
from mlscale.cli.import_ import appended, repeated_rows
from mlscale.counters.kernel_use import kernel_use, use_sources
from mlscale.data.grid import parse_settings
from mlscale.data.profiles import profiles_at
from mlscale.data.table import Table
from mlscale.readers.given import Given
from mlscale.readers.reading import Imported, read, read_table
from mlscale.readers.source import Source
from mlscale.readers.table import read_again

DOCS = Path(__file__).parents[2] / "docs"
K = "void k<int, 2>(float *, int)"
TRACE = "Start (us),Duration (us),GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Name\n"
PE, TR = "profiler-exports", "traces"
DETAILS = f"{TR}/ncu_details_csv/rtx5090_kernel0003_details.csv"
BYTES, DRAM = "DRAM bytes", "DRAM throughput, % of peak"


def write(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"run{i}.csv" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def imported(folder: Path, *texts: str, **given: Any) -> Imported:
    return read_table(write(folder, *texts), Given(**{"device": "made-gpu", "base": BASE, **given}))


def traced(*launches: tuple[str, int], grid: int = 16) -> str:
    """nsys' trace of launches of a kernel and for how many microseconds."""
    return TRACE + "".join(
        f'{1000 * i},{us},{grid},1,1,128,1,1,"{name}"\n' for i, (name, us) in enumerate(launches)
    )


def test_reads_that_rdna_failed_to_count_are_missing(tmp_path: Path) -> None:
    """RX 7900 XTX is RDNA 3, see `without_failed_reads`; of a MI300X 0 is what was counted."""
    page = rocprofv3({**AMD, "FETCH_SIZE": 0, "WRITE_SIZE": 50})
    at = {"engine_mhz": 2000.0, "memory_mhz": 1249.0}
    with pytest.warns(DataWarning, match=r"run0.csv: FETCH_SIZE is 0 in all kernels"):
        run = imported(tmp_path, page, device="rx7900xtx", base=at)
    assert "FETCH_SIZE" not in run.table.numbers
    assert run.features["ReadBandwidth"].status == "missing"
    assert run.features["WriteBandwidth"].status != "missing"
    run = imported(tmp_path, page, device="mi300x", base=at)
    assert run.table.numbers["FETCH_SIZE"].tolist() == [0]


class TestProfilers:
    def test_one_file(self, tmp_path: Path) -> None:
        [path] = write(tmp_path, long_page())
        profiles = import_profile(path, device="made-gpu", base=BASE)
        assert profiles.device == "made-gpu"
        assert profiles.base == HardwareConfig(4, 1000.0, 500.0)
        assert (profiles.kernels, profiles.applications) == ((K,), ("app",))
        assert profiles.time_ms == pytest.approx([0.01])
        assert profiles.power_w is None
        assert profiles.counter("VALUInsts") == pytest.approx([40])
        assert profiles.counter("NumWorkGroups") == pytest.approx([16])
        assert profiles.metadata["counter_tool"] == "ncu"
        assert profiles.metadata["source"] == "run0.csv"

    def test_counters_beside_a_trace(self, tmp_path: Path) -> None:
        """Three launches of 30 us on average; ncu saw one, whose 20 kB are of its own 10 us."""
        timed = traced(("k<int, 2>(float*, int)", 20), ("k<int, 2>(float*, int)", 40), ("f", 5))
        with pytest.warns(DataWarning, match=r"run1.csv: without counters: 1 kernel \('f'\), 7.7"):
            run = imported(tmp_path, long_page(), timed)
        numbers = run.table.numbers
        assert run.table.text["kernel"] == [K, "f"]
        assert numbers["time_ms"] == pytest.approx([0.03, 0.005])
        assert numbers["launches"].tolist() == [2, 1]
        assert numbers["total_time_ms"] == pytest.approx([0.06, 0.005])
        np.testing.assert_allclose(numbers["ReadBandwidth"], [20e3 / 10e-6, np.nan])
        assert (run.tool, run.launches) == ("ncu", 3)
        assert run.time_ms == pytest.approx(0.065)
        assert run.covered == pytest.approx(60 / 65)
        assert run.features["VALUInsts"].status == "nearest"
        geometry = {"function": K, "workgroups": 16, "workgroup_size": 128}
        assert run.table.metadata["launches"][K] == geometry | {"launches": 2}

    def test_geometries_are_kernels_of_their_own(self, tmp_path: Path) -> None:
        """A number in six digits would name these two alike."""
        more = traced(("f", 30), ("f", 50), grid=1048577).removeprefix(TRACE)
        table = imported(tmp_path, traced(("f", 10), grid=1048576) + more).table
        names = [f"f [grid {grid}, block 128]" for grid in (1048576, 1048577)]
        assert table.text["kernel"] == names
        assert table.numbers["time_ms"] == pytest.approx([0.01, 0.04])

    @pytest.mark.parametrize(("each", "time_ms"), [(False, 0.02), (True, 0.01)])
    def test_launch_by_launch_is_the_median(
        self, tmp_path: Path, each: bool, time_ms: float
    ) -> None:
        """Launches of 10, 10 and 40 us: their mean is 20 us, their median 10 us."""
        rows = [
            long_rows(i, metrics={**NCU, "gpu__time_duration.sum": ("us", time)})
            for i, time in enumerate(("10", "10", "40"))
        ]
        paths = write(tmp_path, long_page(*rows))
        given = Given("made-gpu", BASE, each=each)
        profiles = read(paths, given)
        assert profiles.time_ms == pytest.approx([time_ms])
        assert profiles.weights.tolist() == [3]
        assert len(read_table(paths, given).table) == (3 if each else 1)

    def test_a_pass_and_its_trace_under_a_name_of_ones_own(self, tmp_path: Path) -> None:
        """The trace has launches of 4 us and 2 us: 3 us on average."""
        base = {"engine_mhz": 1700.0, "memory_mhz": 1600.0}
        paths = write(tmp_path, rocprofv3({"SQ_WAVES": 10}), V3_TRACE)
        profiles = read(paths, Given("mi210", base, application="mine"))
        assert (profiles.device, profiles.applications) == ("mi210", ("mine",))
        assert profiles.time_ms == pytest.approx([0.003])


class TestLogs:
    def test_several_at_different_clocks_are_refused(self, tmp_path: Path) -> None:
        one, two = tmp_path / "one.log", tmp_path / "two.log"
        one.write_text(query(block(1, 5, 1), PERIOD_S))
        two.write_text(query(block(1, 5, 1, engine_mhz=1300), PERIOD_S))
        given = Given("made-gpu", {"cu_count": 4})
        assert Source(str(one)).is_log
        assert read_table([one, two], given).table.numbers["engine_mhz"].tolist() == [1410, 1300]
        with refused("one.log: .* of 2 runs, at 1410 and 1300 MHz; .* with also=: .*one.log also="):
            read([one, two], given)

    @pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
    def test_the_python_of_the_page_gives_the_answer_of_its_command(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Of docs/howto/nvidia-smi.md, whose logs were typed by hand."""
        page = (DOCS / "howto" / "nvidia-smi.md").read_text(encoding="utf-8")
        [code] = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
        said = r"^  (Set the engine clock to \d+ MHz \(now 1755\).*)$"
        monkeypatch.chdir(DOCS)
        exec(code, {})
        answer = re.findall(said, page, re.MULTILINE)[0]
        assert capsys.readouterr().out.splitlines()[0].strip() == answer


# By hand: 3 MB in 10 us are 300 GB/s; a GTX 980 passes 224 at 3505 MHz of memory.
MORE_THAN_PASS = {**NCU, "dram__bytes_read.sum": ("Mbyte", "3"), "dram__bytes_write.sum": ("", "0")}
GTX980 = {"device": "gtx980", "base": {"engine_mhz": 1000.0, "memory_mhz": 3505.0}}
LOG = query(block(1, 5, 1), PERIOD_S)


@pytest.mark.parametrize(
    ("texts", "given", "message"),
    [
        (["hello, world\n"], {},
         "^.*run0.csv: unrecognised file; its columns 'hello', 'world' show nothing"),
        ([long_page(long_rows(metrics=MORE_THAN_PASS))], GTX980,
         "^.*run0.csv: 'void k.*: its DRAM traffic is 1.34 times what gtx980 can transfer"),
        ([long_page(), long_page()], {},
         r"run1.csv: is the same as .*run0.csv; omit it, or give a file of another pass"),
        ([long_page(), LOG], {},
         "run1.csv: is a log of nvidia-smi --query-gpu, not a profiler's export"),
        ([long_page(), V3_TRACE], {}, "is from rocprofv3, .* from ncu; .* the same vendor's GPUs"),
        ([], {"base": {"engine": 1000}}, "is not a base; it may give cu_count, engine_mhz"),
        ([], {"base": {"engine_mhz": 0}}, "engine_mhz of the base must be a positive number"),
        ([], {"time_ms": float("nan")}, "time_ms must be a positive number, not nan"),
    ],
)  # fmt: skip
def test_refused(tmp_path: Path, texts: list[str], given: dict[str, Any], message: str) -> None:
    with refused(message):
        imported(tmp_path, *texts, **given)


def test_a_file_twice_is_refused(tmp_path: Path) -> None:
    [path] = write(tmp_path, long_page())
    with refused(r"run0.csv: is the same as .*run0.csv; omit it, or give a file of another pass"):
        read([path, path], Given("made-gpu", BASE))


class TestFurtherRun:
    AT = HardwareConfig(4, 800.0, 500.0)

    def test_its_trace_is_read_under_the_names_of_the_counters(self, tmp_path: Path) -> None:
        name = "k<int, 2>(float*, int)"
        texts = long_page(), traced((name, 20)), traced((name, 25))
        counts, trace, further = write(tmp_path, *texts)
        first = read([counts, trace], Given("made-gpu", BASE))
        table = read_again([counts, trace], further, first, self.AT)
        assert table.text["kernel"] == [K]
        assert table.numbers["time_ms"] == pytest.approx([0.025])
        assert table.numbers["engine_mhz"].tolist() == [800]
        assert "VALUInsts" in table.numbers

    def test_what_is_none_is_refused(self, tmp_path: Path) -> None:
        """A copy of the first run; counters in place of a trace, beside counters and a trace."""
        texts = long_page(), traced((K, 20)), traced((K, 20)), long_page(long_rows(0), long_rows(1))
        counts, trace, copy, counted = write(tmp_path, *texts)
        first = read([counts, trace], Given("made-gpu", BASE))
        with refused("run2.csv: is the same as .*run1.csv"):
            read_again([counts, trace], copy, first, self.AT)
        with refused("run3.csv: has counters, .*; give a trace of the further run too"):
            read_again([counts, trace], counted, first, self.AT)
        alone = read([counts], Given("made-gpu", BASE))
        table = read_again([counts], counted, alone, self.AT)
        assert table.numbers["time_ms"] == pytest.approx([0.01])


class TestAppended:
    def run(self, folder: Path, page: str = "", **given: Any) -> Table:
        return imported(folder, page or long_page(), **given).table

    def test_rows_of_both_with_the_least_near_status(self, tmp_path: Path) -> None:
        first = self.run(tmp_path, long_page(long_rows(0), long_rows(1)))
        without = {name: metric for name, metric in NCU.items() if name != "dram__bytes_read.sum"}
        page = long_page(long_rows(metrics=without))
        second = self.run(tmp_path, page, base={**BASE, "engine_mhz": 800.0})
        both = appended(first, second, "both.csv")
        assert both.numbers["engine_mhz"].tolist() == [1000, 800]
        assert both.numbers["launches"].tolist() == [2, 1]
        np.testing.assert_allclose(both.numbers["ReadBandwidth"], [2e9, np.nan])
        assert both.metadata["feature_status"]["ReadBandwidth"] == "missing"
        assert both.metadata["feature_status"]["WriteBandwidth"] == "exact"
        assert both.metadata["clocks"] == first.metadata["clocks"]

    def test_metadata_of_both(self, tmp_path: Path) -> None:
        first, second = (self.run(tmp_path) for _ in range(2))
        first.metadata["busy_spans"], second.metadata["busy_spans"] = {"a": 1, "b": 2}, {"b": 3}
        first.metadata.update(gpus=["0", "1"], utilisation_sources={"use": "a; b"})
        second.metadata.update(gpus=["1", "2"], utilisation_sources={"use": "b; c", "of": "a"})
        both = appended(first, second, "both.csv").metadata
        assert both["busy_spans"] == {"a": 1, "b": 3}
        assert both["gpus"] == ["0", "1", "2"]
        assert both["utilisation_sources"] == {"use": "a; b; c", "of": "a"}

    def test_rows_are_repeated_of_one_application_alone(self, tmp_path: Path) -> None:
        first = self.run(tmp_path, application="app")
        assert repeated_rows(first, self.run(tmp_path, application="app")) == 1
        assert repeated_rows(first, self.run(tmp_path, application="other")) == 0

    def test_of_another_device_or_tool_is_refused(self, tmp_path: Path) -> None:
        first = self.run(tmp_path)
        with refused("^both.csv: is of 'made-gpu', the new rows are of 'another-gpu'$"):
            appended(first, self.run(tmp_path, device="another-gpu"), "both.csv")
        with refused("^both.csv: its counters are of ncu, the new ones of nsys; one table has"):
            appended(first, self.run(tmp_path, traced(("f", 1))), "both.csv")


# File, its GPU, what of the base the file does not say, from what the DRAM use is, the first one.
REAL = [
    (f"{PE}/ncu_details/rtx5070_ncu2026.2_gemm_tiled.csv", "rtx5070", "1500,14001", BYTES, 0.00827),
    (f"{PE}/ncu_details/v100_2020_12col_resaved.csv", "v100", "", BYTES, 0.731),
    (f"{PE}/rocprof_v1/enccs_nbody_counters_timestamp.csv", "mi250x-gcd", "1700,1600", BYTES,
     0.00041),
    (f"{PE}/rocprof_v1_renamed/mi200_vcopy_pmc_perf_merged.csv", "mi210", "1700,1600", BYTES,
     0.527),
    (f"{PE}/rocprof_v2/mi300a_vcopy_pmc_perf_merged.csv", "mi300a", "2100,1300", BYTES, 0.446),
    (f"{PE}/rocprofv3_merged/mi300x_vcopy_rocpd_long_rows_filtered.csv", "mi300x", "2100,1300",
     BYTES, 0.459),
    (f"{TR}/ncu_details_csv/b200_cublaslt_base_units.csv", "gb200", "", DRAM, 0.0074),
    (DETAILS, "rtx5090", "", BYTES, 0.0813),
    (f"{TR}/ncu_details_csv/torch_gcn_nvtx.csv", "a100-pcie-40gb", "1410,1215", DRAM, 0.014),
    (f"{TR}/ncu_details_text/rtx4090_flashinfer_issue188.txt", "rtx4090", "", DRAM, 0.9459),
    (f"{TR}/ncu_metrics_csv/rtx5090_kernel0003_metrics.csv", "rtx5090", "1500,14001", BYTES,
     0.0798),
    (f"{TR}/ncu_speedoflight_csv/rtx5090_kernel0003_sol.csv", "rtx5090", "", DRAM, 0.0813),
    (f"{TR}/pmc_perf/mi300x_bmm1_pmc_perf.csv", "mi300x", "2100,1300", BYTES, 0.404),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
@pytest.mark.parametrize(("name", "device", "clocks", "source", "share"), REAL)
def test_real_exports_reach_a_use_of_dram(
    data_folder: Path, name: str, device: str, clocks: str, source: str, share: float
) -> None:
    """Shares that ncu printed itself (0.7311, 0.0813, …) are met by those from bytes.

    Other shares are regression only.
    """
    engine, _, memory = clocks.partition(",")
    base = parse_settings(f"engine={engine},memory={memory}") if clocks else {}
    profiles = read([data_folder / name], Given(device, base))
    assert use_sources(profiles)["memory"] == (source,)
    of_the_program = [not kernel.startswith("__amd_rocclr_") for kernel in profiles.kernels]
    assert kernel_use(profiles).memory[of_the_program][0] == pytest.approx(share, rel=0.02)


@pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
def test_real_passes_of_rocprofv3_and_their_trace(data_folder: Path) -> None:
    """The trace has 144 dispatches that take 1857381 ns, copies of the runtime among them."""
    paths = [
        data_folder / TR / "rocprofv3_counter_collection/gfx1151_decode_stall.csv",
        data_folder / TR / "rocprofv3_kernel_trace/gfx1151_llama_decode.csv",
    ]
    base = {"cu_count": 40.0, "engine_mhz": 2900.0, "memory_mhz": 1000.0}
    run = read_table(paths, Given("gfx1151", base))
    assert run.launches == run.table.numbers["launches"].sum() == 144
    assert run.time_ms == pytest.approx(1.857381)


@pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
def test_a_real_training_step_counted_and_traced() -> None:
    """Regression only: 18 of 28 kernels have counters."""
    folder = Path(__file__).parents[2] / "datasets"
    paths = [folder / "training-step-ncu.csv", folder / "training-step-trace.json.gz"]
    base = {"engine_mhz": 1410.0, "memory_mhz": 1593.0}
    run = read_table(paths, Given(base=base, power=folder / "training-step-power.csv"))
    assert run.table.text["device"][0] == "a100-sxm4-80gb"
    profiles = profiles_at(run.table, HardwareConfig(108, 1410.0, 1593.0), "a100-sxm4-80gb")
    assert (len(profiles.kernels), profiles.has_counters.sum()) == (28, 18)
    assert run.covered == pytest.approx(profiles.counters_cover)
    assert np.isfinite(profiles.base_power_w).all()
