"""import dvfs: files of NV-DVFS-Benchmark and of sampled profiles; made ones, and the public ones.

Of the public files expected: what their README and the notes on the data say; of made samples what
follows by hand (tests/synthetic/sampled_files.py). A V100 has 80 SMs and 877 MHz by its data sheet.
"""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Cli
from public_tables import FILES
from synthetic import sampled_files, tidy
from synthetic.dvfs import KERNELS, rows

from mlscale import HardwareConfig, Measurements, read
from mlscale.data.points import SECOND_CLOCK, add_points

# Kernel -> application, as the data's README says.
APPLICATIONS = dict(
    zip(
        KERNELS,
        ["backprop", "backprop", "scan", "scan", "matrixMul", "matrixMul", "vectorAdd", "hotspot"],
        strict=True,
    )
)


def given(folder: Path, table: list[dict[str, Any]], output: str = "t.csv") -> list[object]:
    """The command that imports a made file of a GTX 980."""
    file = tidy.write_csv(folder / "raw.csv", table)
    return ["import", "dvfs", file, "--device", "gtx980", "-o", folder / output]


def imported(cli: Cli, folder: Path, table: list[dict[str, Any]]) -> Measurements:
    cli(*given(folder, table))
    return read(folder / "t.csv")


class TestMadeFile:
    def test_columns_are_renamed(self, cli: Cli, tmp_path: Path) -> None:
        imported(cli, tmp_path, rows())
        with (tmp_path / "t.csv").open(encoding="utf-8") as file:
            header, first, *_ = csv.reader(file)
        assert header == [
            *("device", "application", "kernel", "cu_count", "engine_mhz", "memory_mhz"),
            *("time_ms", "power_w", "workgroups", "workgroup_size", "warps"),
        ]
        # The GTX 980 has 16 SMs (its data sheet); 6 x 5 x 4 workgroups of 8 x 4 x 2 threads.
        assert first == [
            *("gtx980", "backprop", "backpropForward", "16", "500", "600"),
            *("1", "50", "120", "64", "14336"),
        ]

    def test_every_number_is_at_its_kernel_and_clocks(self, cli: Cli, tmp_path: Path) -> None:
        shuffled = [row for step in (2, 0, 3, 1) for row in rows()[step::4]]
        data = imported(cli, tmp_path, shuffled)
        assert (data.device, data.grid.shape) == ("gtx980", (1, 2, 2))
        assert (data.grid.engine_mhz, data.grid.memory_mhz) == ((500, 900), (600, 800))
        assert dict(zip(data.kernels, data.applications, strict=True)) == APPLICATIONS
        for k, kernel in enumerate(KERNELS):
            at = data.kernels.index(kernel)
            assert data.time_ms[at].ravel().tolist() == [10 * k + step for step in (1, 2, 3, 4)]
            assert data.power_w is not None
            assert set(data.power_w[at].ravel().tolist()) == {50 + k}

    def test_launches_go_to_the_metadata(self, cli: Cli, tmp_path: Path) -> None:
        metadata = imported(cli, tmp_path, rows()).metadata
        launch = {"function": "vectorAdd_gpu", "arguments": "input06"}
        assert metadata["launches"]["vectorAdd"] == launch
        assert metadata["launches"].keys() == set(KERNELS)
        assert (metadata["origin"], metadata["counter_tool"]) == ("measured", "nvprof")
        assert (metadata["power_kind"], metadata["source"]) == ("board", "raw.csv")

    def test_parquet_holds_the_same(self, cli: Cli, tmp_path: Path) -> None:
        data = imported(cli, tmp_path, rows())
        out, err = cli.both(*given(tmp_path, rows(), "t.parquet"))
        assert err == ""
        assert out == (
            f"{tmp_path}/t.parquet: 8 kernels of 5 applications on gtx980, "
            "1 CU count x 2 engine clocks x 2 memory clocks, 3 counters, with power\n"
        )
        other = read(tmp_path / "t.parquet")
        assert (other.metadata, other.counter_names) == (data.metadata, data.counter_names)
        assert tidy.same_bits(other.time_samples, data.time_samples)
        assert tidy.same_bits(other.counter_samples, data.counter_samples)

    def test_what_is_not_given_may_be_left_out_or_empty(self, cli: Cli, tmp_path: Path) -> None:
        """Empty counters as the RTX 2070 Super's file has them."""
        needed = ("appName", "coreF", "memF", "time/ms")
        table = [{**{k: row[k] for k in needed}, "inst_executed": ""} for row in rows()]
        data = imported(cli, tmp_path, table)
        assert data.power_w is None
        assert data.counter_names == ()
        assert data.metadata["power_kind"] is None
        assert data.time_ms[1].ravel().tolist() == [11, 12, 13, 14]

    def test_more_traffic_than_the_memory_passes_is_told(self, cli: Cli, tmp_path: Path) -> None:
        """By hand: 10^7 sectors of 32 B in 1 ms are 320 GB/s; a GTX 980 passes 38.4 at 600 MHz."""
        dram = {"dram_read_transactions": 5e6, "dram_write_transactions": 5e6}
        table = [{**row, **dram, "time/ms": row["time/ms"] * 100} for row in rows(["vectorAdd"])]
        table[0]["time/ms"] = 1
        err = cli.told(*given(tmp_path, table))
        assert "raw.csv: 1 of 4 rows have more DRAM traffic than gtx980 can transfer" in err
        assert "up to 8.33 times" in err

    def test_a_metric_that_is_asked_for_twice(self, cli: Cli, tmp_path: Path) -> None:
        """The header of titanx has l2_tex_write_throughput twice, as its authors' scripts do."""
        table = [{**row, "l2_tex_write_throughput": 5.0, "again": 6.0} for row in rows()]
        words = given(tmp_path, table)
        file = tmp_path / "raw.csv"
        text = file.read_text()
        file.write_text(text.replace("again", "l2_tex_write_throughput", 1))
        cli(*words)
        data = read(tmp_path / "t.csv")
        values = {n: data.counters[..., i] for i, n in enumerate(data.counter_names)}
        assert (values["l2_tex_write_throughput"] == 5).all()
        assert (values["l2_tex_write_throughput.1"] == 6).all()
        file.write_text(text.replace("again", "warps", 1))
        assert cli.refused(*words).endswith("row 1: column 'warps' appears twice")

    def test_incomplete_kernels_are_dropped_where_asked(self, cli: Cli, tmp_path: Path) -> None:
        words = given(tmp_path, rows()[:-1])
        message = cli.refused(*words)
        assert "raw.csv: 1 of 8 kernels lack configurations: 'hotspot' lacks " in message
        out, err = cli.both(*words, "--incomplete", "drop")
        assert ": 7 kernels of 4 applications " in out
        assert "'hotspot' lacks cu=16,engine=900,memory=800; dropped; left are 7 kernels\n" in err


class TestRefusals:
    @pytest.mark.parametrize("blocks", ["", "(3584 1 1)", "(3584,1,1) (128,1,1)", "(a 1 1)"])
    def test_bad_blocks(self, cli: Cli, tmp_path: Path, blocks: str) -> None:
        table = rows()
        table[2]["blocks"] = blocks
        assert cli.refused(*given(tmp_path, table)) == (
            f"{tmp_path}/raw.csv: row 4, column 'blocks': '{blocks}' is not '(grid) (block)', "
            "each three whole numbers"
        )

    def test_another_kind_of_file(self, cli: Cli, tmp_path: Path) -> None:
        message = cli.refused(*given(tmp_path, tidy.rows()))
        assert "raw.csv: there is no column 'appName'; is it an NV-DVFS file?" in message

    def test_a_device_that_is_not_named_or_another(
        self, cli: Cli, tmp_path: Path, data_folder: Path
    ) -> None:
        _, _, file, _, _, *output = given(tmp_path, rows())
        message = cli.refused("import", "dvfs", file, *output)
        assert message == f"{file}: is not a known public file; name its GPU with --device"
        file = data_folder / FILES["p100"]
        message = cli.refused("import", "dvfs", file, "--device", "v100", *output)
        assert message == f"{file}: is a file of 'p100', not of 'v100'"


class TestPublicFiles:
    @pytest.mark.parametrize(
        ("name", "said"),
        [  # 30 kernels and the clocks: the data's README; of 27 applications, by its rule
            ("gtx980-low", "gtx980, 1 CU count x 6 engine clocks x 6 memory clocks, "),
            ("gtx980-high", "gtx980, 1 CU count x 5 engine clocks x 5 memory clocks, "),
            ("gtx1080ti", "gtx1080ti, 1 CU count x 5 engine clocks x 4 memory clocks, "),
            ("p100", "p100, 1 CU count x 5 engine clocks x 1 memory clock, "),
        ],
    )
    def test_are_known_by_their_checksum(
        self, cli: Cli, tmp_path: Path, data_folder: Path, name: str, said: str
    ) -> None:
        renamed = tmp_path / "renamed.csv"
        renamed.write_bytes((data_folder / FILES[name]).read_bytes())
        out = cli("import", "dvfs", renamed, "-o", tmp_path / "t.parquet")
        assert out.startswith(f"{tmp_path}/t.parquet: 30 kernels of 27 applications on {said}")
        assert out.endswith(" counters, with power\n")

    def test_or_by_name_unless_there_is_a_file_of_that_name(
        self, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_folder: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("MLSCALE_DATA", raising=False)
        monkeypatch.setenv("MLSCALE_CACHE", str(tmp_path / "cache"))
        words = ["import", "dvfs", "p100", "--device", "p100", "-o", "t.csv"]
        assert cli.refused(*words) == (
            "'p100' is not on this machine; get it with 'mlscale datasets fetch p100'"
        )
        monkeypatch.setenv("MLSCALE_DATA", str(data_folder))
        assert ": 30 kernels of " in cli(*words)
        tidy.write_csv(Path("p100"), rows(["mine"]))
        cli(*words)
        assert read("t.csv").kernels == ("mine",)

    # Kernels that the project's notes on the data name as faulty, and what is said of them.
    @pytest.mark.parametrize(
        ("name", "faulty"),
        [
            ("gtx980-low", {"gaussian": "follows neither clock"}),
            ("gtx980-high", {"gaussian": "constant to 0.3 %"}),
            ("gtx1080ti", {
                "gaussian": "worst kernel",
                "transpose": "a clock of 0.81",
                "quasirandomGenerator": "1600/5500",
            }),
            ("p100", {"gaussian": "607 MHz", "nn": "607 MHz"}),
        ],
    )  # fmt: skip
    def test_are_warned_about_by_kernel_and_kept(
        self, cli: Cli, tmp_path: Path, data_folder: Path, name: str, faulty: dict[str, str]
    ) -> None:
        file, table = data_folder / FILES[name], tmp_path / "t.csv"
        err = cli.told("import", "dvfs", file, "-o", table)
        for line, (kernel, fault) in zip(err.splitlines(), faulty.items(), strict=True):
            assert line.startswith(f"mlscale: warning T02: {file}: '{kernel}': ")
            assert fault in line
        metadata = json.loads(table.with_suffix(".meta.json").read_text(encoding="utf-8"))
        assert metadata["faults"].keys() == faulty.keys()
        assert len(read(table).kernels) == 30

    def test_tables_hold_the_numbers_of_the_file(
        self, cli: Cli, tmp_path: Path, data_folder: Path
    ) -> None:
        file = data_folder / FILES["gtx1080ti"]
        cli("import", "dvfs", file, "-o", tmp_path / "t.parquet")
        data = read(tmp_path / "t.parquet")
        with file.open(encoding="utf-8") as raw:
            found = list(csv.DictReader(raw))
        assert len(found) == data.time_ms.size
        assert data.power_w is not None
        reads = data.counter_names.index("dram_read_transactions")
        for row in found:
            engine = data.grid.engine_mhz.index(float(row["coreF"]))
            memory = data.grid.memory_mhz.index(float(row["memF"]))
            at = (data.kernels.index(row["appName"]), 0, engine, memory)
            assert data.time_ms[at] == float(row["time/ms"])
            assert data.power_w[at] == float(row["power/W"])
            assert data.counters[(*at, reads)] == float(row["dram_read_transactions"])


def words(folder: Path, rows: list[dict[str, Any]], device: str = "v100") -> list[object]:
    file = tidy.write_csv(folder / "raw.csv", rows)
    return ["import", "dvfs", file, "--device", device, "-o", folder / "table.csv"]


def sampled(cli: Cli, folder: Path, rows: list[dict[str, Any]]) -> tuple[Measurements, str]:
    told = cli.told(*words(folder, rows))
    return read(folder / "table.csv"), told


class TestMicroBenchmarks:
    def test_have_dcgms_names_and_units(self, cli: Cli, tmp_path: Path) -> None:
        """Programs with several inputs are one application; the first takes 3000 / clock ms."""
        rows = sampled_files.micro_rows()
        for name in sampled_files.SHARES:
            rows[1][name] = ""  # a row may lack its shares
        data, _ = sampled(cli, tmp_path, rows)
        assert data.counter_names == (
            *("sm_active", "sm_occupancy", "dram_active", "tensor_active", "fp64_active"),
            *("fp32_active", "fp16_active"),
        )
        assert data.counters[0, 0, 0, 0].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
        missing = pytest.approx([float("nan")] * 7, nan_ok=True)
        assert data.counters[1, 0, 0, 0].tolist() == missing
        assert (data.grid.cu_count, data.grid.engine_mhz) == ((80,), (1000, 1500))
        assert data.grid.memory_mhz == (877,)
        assert data.time_ms[0].ravel().tolist() == [3, 2]
        assert data.power_w is not None
        assert data.power_w[0].ravel().tolist() == [110, 115]
        assert data.kernels == (
            "cache.benchmark_int.input000", "cache.benchmark_int.input001",
            "mix.benchmark_int.input002",
        )  # fmt: skip
        assert data.applications == ("cache", "cache", "mix")
        assert data.metadata == {
            "counter_tool": "dcgm",
            "profile_kind": "sampled",
            "power_kind": "board",
            "origin": "measured",
            "source": "raw.csv",
            "faults": {},
        }

    def test_whose_power_halves_are_named(self, cli: Cli, tmp_path: Path) -> None:
        rows = sampled_files.micro_rows()
        rows[4]["average_power"] = 60  # the second kernel at 1500 MHz, 110 W at 1000 MHz
        data, err = sampled(cli, tmp_path, rows)
        fault = data.metadata["faults"]["cache.benchmark_int.input001"]
        assert fault.startswith("its power falls by 45 % from 1000 to 1500 MHz, a higher clock: ")
        assert fault in err
        assert len(data.kernels) == 3

    def test_at_clocks_that_were_not_reached_are_warned_about(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        rows = sampled_files.micro_rows()
        for row in rows[:3]:
            row["time"] = 6.0  # twice what 1000 MHz explain
        _, err = sampled(cli, tmp_path, rows)
        assert "by 2.00 at 1000 MHz: the GPU ran slower than it was set to there" in err


def test_applications_have_dcgms_names_and_our_units(cli: Cli, tmp_path: Path) -> None:
    """95 % and 12.5 % as shares, all else as the rows have it; 1500 / clock s in ms."""
    data, _ = sampled(cli, tmp_path, sampled_files.application_rows())
    assert data.kernels == data.applications == ("lbm", "fft")
    named = dict(zip(data.counter_names, data.counters[0, 0, 0, 0].tolist(), strict=True))
    assert named == pytest.approx({
        "sm_active": 0.8, "sm_occupancy": 0.5, "dram_active": 0.25, "tensor_active": 0.0,
        "fp64_active": 0.0, "fp32_active": 0.125, "fp16_active": 0.0,
        "gr_engine_active": 0.9, "gpu_utilisation": 0.95, "memory_copy_utilisation": 0.125,
    })  # fmt: skip
    assert data.time_ms[0].ravel().tolist() == [1500, 1000]
    assert (data.grid.cu_count, data.grid.memory_mhz) == ((80,), (877,))
    assert data.metadata["profile_kind"] == "sampled"


@pytest.mark.parametrize(
    ("rows", "lacking", "said"),
    [
        (sampled_files.micro_rows, ("DRAMA", "argNo"), "there are no columns 'argNo', 'DRAMA'"),
        (
            sampled_files.application_rows,
            ("mem_copy_utilization", "sm_active"),
            "there are no columns 'sm_active', 'mem_copy_utilization'",
        ),
    ],
)
def test_lacking_columns_are_named_together(
    cli: Cli,
    tmp_path: Path,
    rows: Callable[[], list[dict[str, Any]]],
    lacking: tuple[str, ...],
    said: str,
) -> None:
    kept = [{k: v for k, v in row.items() if k not in lacking} for row in rows()]
    assert said in cli.refused(*words(tmp_path, kept))


def test_what_else_is_refused(cli: Cli, tmp_path: Path) -> None:
    rows = sampled_files.micro_rows()
    rows[1]["average_power"] = 0
    assert "row 3, column 'average_power': the value is 0;" in cli.refused(*words(tmp_path, rows))
    no_memory_clock = words(tmp_path, sampled_files.application_rows(), "simulated-gcn3")
    message = cli.refused(*no_memory_clock)
    assert message.endswith("has no memory clock, and neither has 'simulated-gcn3'")


A100, RTX8000, V100 = (
    "a100-spec-accel-dcgm.csv", "rtx8000-microbenchmark-dcgm.csv", "v100-microbenchmark-dcgm.csv",
)  # fmt: skip
REAL = {
    RTX8000: ("138 kernels of 6 applications", "10 engine clocks x 1 memory clock, 7 counters"),
    V100: ("138 kernels of 6 applications", "10 engine clocks x 1 memory clock, 7 counters"),
    A100: ("19 kernels of 19 applications", "61 engine clocks x 1 memory clock, 10 counters"),
}
# Of the V100's, whose effective clock below 700 MHz was not the one that was set.
OF_V100 = pytest.mark.filterwarnings("ignore:.*times of 76 kernels change far more than a clock")


@OF_V100
@pytest.mark.parametrize("name", REAL)
def test_real_files_are_known_by_their_checksum(
    cli: Cli, tmp_path: Path, data_folder: Path, name: str
) -> None:
    """Their faults are those of the data's README; no sound run is refused as another's second."""
    table = tmp_path / "t.parquet"
    out, err = cli.both("import", "dvfs", data_folder / "sampled" / name, "-o", table)
    assert all(said in out for said in REAL[name])
    data = read(table)
    faults = sorted(data.metadata["faults"])
    if name == RTX8000:
        assert faults == [f"mixbench-cuda-alt.benchmark_int.input00{k}" for k in range(4)]
        assert err.count("a fault of the measurement") == 4
    elif name == V100:
        assert faults == []
        assert "1.89 at 405 MHz, 1.51 at 502 MHz, 1.67 at 600 MHz, 1.21 at 705 MHz" in err
    else:
        assert err.count("mlscale: warning T02: ") == 1
        assert "'kmeans': its time" in err
        # tpacf at 1410 MHz, the file's first row: 7.0867 s, 185.83 W, 0.9429 of the time active.
        tpacf = (data.kernels.index("tpacf"), 0, -1, 0)
        assert (data.grid.engine_mhz[0], data.grid.engine_mhz[-1]) == (510, 1410)
        assert data.time_ms[tpacf] == pytest.approx(7086.667, rel=1e-6)
        assert data.power_w is not None
        assert data.power_w[tpacf] == pytest.approx(185.83171)
        assert data.counters[tpacf][0] == pytest.approx(0.942902)
    sound = data.select([k for k, kernel in enumerate(data.kernels) if kernel not in faults])
    sound.write(table)
    base = data.grid.config("highest")
    clock = min(data.grid.engine_mhz, key=lambda mhz: abs(mhz - SECOND_CLOCK * base.engine_mhz))
    second = HardwareConfig(base.cu_count, clock, base.memory_mhz)
    [point] = add_points(sound.profiles(base), [(table, second)]).points
    assert len(point.time_ms) == len(sound.kernels)
