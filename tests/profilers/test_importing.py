"""Exports as profiles and as tables that grow; expected values are those of the made page.

The made page (tests/synthetic/exports.py): one launch of 10 us, 40 % vector instructions, 16
workgroups.
"""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic.exports import BASE, NCU, V3_TRACE, long_page, long_rows, read, rocprofv3
from synthetic.monitor_logs import PERIOD_S, dcgmi_dmon, query
from synthetic.monitor_readings import MEMORY_MHZ, block
from synthetic.tidy import refused

from mlscale import HardwareConfig
from mlscale.profilers import import_profile
from mlscale.profilers.appending import append, repeated_rows


def write(folder: Path, *texts: str) -> list[Path]:
    paths = [folder / f"run{i}.csv" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


class TestImportProfile:
    @pytest.mark.parametrize("as_type", [str, Path])
    def test_of_one_file(self, tmp_path: Path, as_type: type) -> None:
        [path] = write(tmp_path, long_page())
        profiles = import_profile(as_type(path), device="made-gpu", base=BASE)
        assert profiles.device == "made-gpu"
        assert profiles.base == HardwareConfig(4, 1000.0, 500.0)
        assert profiles.applications == ("app",)
        assert profiles.time_ms == pytest.approx([0.01])
        assert profiles.power_w is None
        assert profiles.counter("VALUInsts") == pytest.approx([40])
        assert profiles.counter("NumWorkGroups") == pytest.approx([16])
        assert profiles.metadata["counter_tool"] == "ncu"

    def test_of_a_pass_and_its_trace(self, tmp_path: Path) -> None:
        """The trace has launches of 4 us and 2 us: 3 us on average."""
        profiles = import_profile(
            write(tmp_path, rocprofv3({"SQ_WAVES": 10}), V3_TRACE),
            "mi210",
            base={"engine_mhz": 1700.0, "memory_mhz": 1600.0},
            tool="rocprofv3",
            application="mine",
        )
        assert profiles.device == "mi210"
        assert profiles.applications == ("mine",)
        assert profiles.time_ms == pytest.approx([0.003])

    @pytest.mark.parametrize(("each", "time_ms"), [(False, 0.02), (True, 0.01)])
    def test_launch_by_launch_is_the_median(
        self, tmp_path: Path, each: bool, time_ms: float
    ) -> None:
        """Launches of 10, 10 and 40 us: their mean is 20 us, their median 10 us."""
        rows = [
            long_rows(i, metrics={**NCU, "gpu__time_duration.sum": ("us", time)})
            for i, time in enumerate(("10", "10", "40"))
        ]
        [path] = write(tmp_path, long_page(*rows))
        profiles = import_profile(path, device="made-gpu", base=BASE, each=each)
        assert profiles.time_ms == pytest.approx([time_ms])

    def test_of_a_monitors_log(self, tmp_path: Path) -> None:
        """A busy block of 5 samples of 200 W and 1410 MHz, one a period; DCGM's has no times."""
        path = tmp_path / "run.log"
        path.write_text(query(block(1, 5, 1), PERIOD_S))
        profiles = import_profile(path, device="made-gpu", base={"cu_count": 4})
        assert profiles.base == HardwareConfig(4, 1410.0, MEMORY_MHZ)
        assert profiles.time_ms == pytest.approx([5e3 * PERIOD_S])
        assert profiles.power_w == pytest.approx([200])
        with refused("has power_w already"):
            import_profile(path, device="made-gpu", base={"cu_count": 4}, power=500)
        with refused("is a log of runs; each and skip_untimed are of launches"):
            import_profile(path, device="made-gpu", base={"cu_count": 4}, each=True)
        path.write_text(dcgmi_dmon(block(1, 5, 1)))
        base = {"cu_count": 4}
        profiles = import_profile(path, device="made-gpu", base=base, interval_s=0.5)
        assert profiles.time_ms == pytest.approx([2500])
        profiles = import_profile(path, device="made-gpu", base=base, time_ms=2400)
        assert profiles.time_ms.tolist() == [2400]

    def test_of_several_monitors_logs(self, tmp_path: Path) -> None:
        """One run on two nodes; the command line refuses logs at different clocks likewise."""
        one, two = tmp_path / "one.log", tmp_path / "two.log"
        one.write_text(query(block(1, 5, 1, power_w=200), PERIOD_S))
        two.write_text(query(block(1, 5, 1, power_w=300), PERIOD_S))
        profiles = import_profile([one, two], device="made-gpu", base={"cu_count": 4})
        assert profiles.power_w == pytest.approx([200, 300])
        two.write_text(query(block(1, 5, 1, engine_mhz=1400), PERIOD_S))
        with refused("one.log and .*two.log: are logs at different clocks; give one"):
            import_profile([one, two], device="made-gpu", base={"cu_count": 4})

    @pytest.mark.parametrize("of_log", [{"interval_s": 0.1}, {"time_ms": 5}])
    def test_what_is_of_logs_alone_is_refused(
        self, tmp_path: Path, of_log: dict[str, float]
    ) -> None:
        [path] = write(tmp_path, long_page())
        with refused("is no monitor's log; interval_s and time_ms are of logs"):
            import_profile(path, device="made-gpu", base=BASE, **of_log)

    def test_a_log_beside_an_export_is_refused_by_what_it_is(self, tmp_path: Path) -> None:
        [path] = write(tmp_path, long_page())
        log = tmp_path / "power.csv"
        log.write_text(query(block(1, 5, 1), PERIOD_S))
        with refused("power.csv: is a log of nvidia-smi --query-gpu, no profiler's export"):
            import_profile([path, log], device="made-gpu", base=BASE)

    @pytest.mark.parametrize("base", [{"engine": 1000, "memory": 500}, "engine=1000,memory=500"])
    def test_a_base_by_other_names_is_refused(self, tmp_path: Path, base: Any) -> None:
        [path] = write(tmp_path, long_page())
        with refused("is none; it may say cu_count, engine_mhz, memory_mhz, each by its name"):
            import_profile(path, device="made-gpu", base=base)

    def test_of_no_file_is_refused(self) -> None:
        with refused("no file is given to import"):
            import_profile([])

    def test_of_another_tool_is_refused(self, tmp_path: Path) -> None:
        [path] = write(tmp_path, long_page())
        with refused("is of Nsight Compute, details page; import it with 'import ncu' or 'auto'"):
            import_profile(path, device="made-gpu", base=BASE, tool="rocprof")


class TestLaunches:
    """How often a kernel runs, and for how long in all; the made files say so themselves."""

    @pytest.mark.parametrize("each", [False, True])
    def test_without_a_trace_are_those_counted(self, tmp_path: Path, each: bool) -> None:
        """With a row for each launch, every row says how many there are of its kernel."""
        page = long_page(*(long_rows(i) for i in range(3)), long_rows(3, kernel="other()"))
        table = read(tmp_path, page, each=each).table
        by_kernel = dict(zip(table.text["kernel"], table.numbers["launches"], strict=True))
        assert by_kernel == {"void k<int, 2>(float *, int)": 3, "other()": 1}
        assert "total_time_ms" not in table.numbers
        profiles = import_profile(write(tmp_path, page), device="made-gpu", base=BASE, each=each)
        assert dict(zip(profiles.kernels, profiles.weights, strict=True)) == by_kernel

    def test_are_no_counters(self, tmp_path: Path) -> None:
        profiles = import_profile(write(tmp_path, long_page()), device="made-gpu", base=BASE)
        assert not {"launches", "total_time_ms"} & set(profiles.counter_names)


class TestAppend:
    @pytest.mark.parametrize(("application", "idle_ms"), [("app", 2.0), ("other", 7.0)])
    def test_idle_time_adds_up_over_applications_alone(
        self, tmp_path: Path, application: str, idle_ms: float
    ) -> None:
        """2 ms of one application, 5 ms of the other; at another clock it is the same 2 ms."""
        first = read(tmp_path, long_page()).table
        second = read(
            tmp_path,
            long_page(),
            base={**BASE, "engine_mhz": 800.0},
            application=application,
        ).table
        for name in ("idle_ms", "hidden_exchange_ms"):
            first.metadata[name], second.metadata[name] = 2.0, 5.0
            assert append(first, second, "both.csv").metadata[name] == idle_ms

    def test_keeps_launches(self, tmp_path: Path) -> None:
        first = read(tmp_path, long_page(long_rows(0), long_rows(1))).table
        second = read(tmp_path, long_page(), base={**BASE, "engine_mhz": 800.0}).table
        assert append(first, second, "both.csv").numbers["launches"].tolist() == [2, 1]

    def test_rows_of_both_with_the_least_near_status(self, tmp_path: Path) -> None:
        first = read(tmp_path, long_page()).table
        without = {name: metric for name, metric in NCU.items() if name != "dram__bytes_read.sum"}
        second = read(
            tmp_path,
            long_page(long_rows(metrics=without)),
            base={**BASE, "engine_mhz": 800.0},
        ).table
        both = append(first, second, "both.csv")
        assert both.numbers["engine_mhz"].tolist() == [1000, 800]
        np.testing.assert_allclose(both.numbers["ReadBandwidth"], [2e9, np.nan])
        assert both.metadata["feature_status"]["ReadBandwidth"] == "missing"
        assert both.metadata["feature_status"]["WriteBandwidth"] == "exact"
        assert both.metadata["clocks"] == first.metadata["clocks"]

    @pytest.mark.parametrize(
        "name", ["launches", "busy_spans", "sample_ms", "working_ms", "open_ends"]
    )
    def test_keeps_what_is_said_of_each_kernel(self, tmp_path: Path, name: str) -> None:
        first, second = (read(tmp_path, long_page()).table for _ in range(2))
        first.metadata[name], second.metadata[name] = {"one": 1, "both": 2}, {"both": 3, "two": 4}
        together = append(first, second, "both.csv").metadata[name]
        assert together == {"one": 1, "both": 3, "two": 4}

    def test_what_both_say_is_said_once(self, tmp_path: Path) -> None:
        first, second = (read(tmp_path, long_page()).table for _ in range(2))
        first.metadata.update(gpus=["0", "1"], utilisation_sources={"use": "a; b"})
        second.metadata.update(gpus=["1", "2"], utilisation_sources={"use": "b; c", "of": "a"})
        both = append(first, second, "both.csv").metadata
        assert both["gpus"] == ["0", "1", "2"]
        assert both["utilisation_sources"] == {"use": "a; b; c", "of": "a"}

    def test_rows_are_repeated_of_one_application_alone(self, tmp_path: Path) -> None:
        first = read(tmp_path, long_page(), application="app").table
        for application, repeated in (("app", 1), ("other", 0)):
            second = read(tmp_path, long_page(), application=application).table
            assert repeated_rows(first, second) == repeated

    def test_of_another_device_is_refused(self, tmp_path: Path) -> None:
        first = read(tmp_path, long_page()).table
        other = read(tmp_path, long_page(), device="another-gpu").table
        with refused("^both.csv: is of 'made-gpu', the new rows are of 'another-gpu'$"):
            append(first, other, "both.csv")


@pytest.mark.parametrize(
    ("begin", "command"),
    [
        (b"\x04\x22\x4d\x18", "lz4 -d"),
        (b"\x28\xb5\x2f\xfd", "zstd -d"),
        (b"\xfd7zXZ\0", "xz -d"),
        (b"BZh9", "bzip2 -d"),
    ],
)
def test_a_compressed_file_says_what_unpacks_it(tmp_path: Path, begin: bytes, command: str) -> None:
    """Each begins with the mark of its format, by the formats' own specifications."""
    path = tmp_path / "app_results.db"
    path.write_bytes(begin + bytes(99))
    with refused(f"app_results.db: is compressed; unpack it first: {command} app_results.db$"):
        import_profile(path)


@pytest.mark.parametrize(
    "text", ['{"rocprofiler-sdk-tool":[{', '{\n    "rocprofiler-sdk-tool": [\n']
)
def test_json_of_rocprofv3_says_what_to_profile_with(tmp_path: Path, text: str) -> None:
    """As AMD's page of rocprofv3 shows it; it may be one line, longer than any that is read."""
    path = tmp_path / "7_results.json"
    path.write_text(text + " " * (5 << 20))
    with refused("is rocprofv3's JSON, .*; profile again with --output-format csv, or, from ROCm"):
        import_profile(path)


def test_a_model_is_no_export() -> None:
    model = Path(__file__).parents[2] / "models" / "kernels.mlscale"
    with refused(r"kernels.mlscale: is a ZIP archive, as mlscale's models are, and no profiler"):
        import_profile(model)


def test_what_is_compressed_by_gzip_and_no_trace_is_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(long_page().encode()))
    with refused(r"a.csv.gz: is compressed, and not PyTorch's .*; unpack it first: gunzip a.csv"):
        import_profile(tmp_path / "a.csv.gz")
