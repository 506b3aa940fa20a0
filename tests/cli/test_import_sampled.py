"""import dvfs: public tables of sampled profiles, in both forms; made ones, and the real ones."""

from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from synthetic import sampled_files, tidy

from mlscale import HardwareConfig, Measurements, read
from mlscale.data.points import SECOND_CLOCK, add_points

REAL = ("rtx8000-microbenchmark-dcgm.csv", "v100-microbenchmark-dcgm.csv")


def imported(capsys: Capture, folder: Path, rows: list[dict[str, object]]) -> Measurements:
    file = tidy.write_csv(folder / "raw.csv", rows)
    succeed(capsys, "import", "dvfs", file, "--device", "v100", "-o", folder / "table.csv")
    return read(folder / "table.csv")


class TestMicroBenchmarks:
    def test_have_dcgms_names_and_units(self, capsys: Capture, tmp_path: Path) -> None:
        data = imported(capsys, tmp_path, sampled_files.micro_rows())
        assert data.counter_names == (
            *("sm_active", "sm_occupancy", "dram_active", "tensor_active", "fp64_active"),
            *("fp32_active", "fp16_active"),
        )
        # As the rows have them: 0.1, 0.2, …; 80 SMs (data sheet); 3000 / clock ms.
        assert data.counters[0, 0, 0, 0].tolist() == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
        assert (data.grid.cu_count, data.grid.engine_mhz) == ((80,), (1000, 1500))
        assert data.grid.memory_mhz == (877,)
        assert data.time_ms[0].ravel().tolist() == [3, 2]
        assert data.power_w is not None
        assert data.power_w[0].ravel().tolist() == [110, 115]

    def test_of_one_program_are_one_application(self, capsys: Capture, tmp_path: Path) -> None:
        data = imported(capsys, tmp_path, sampled_files.micro_rows())
        assert data.kernels == (
            "cache.benchmark_int.input000", "cache.benchmark_int.input001",
            "mix.benchmark_int.input002",
        )  # fmt: skip
        assert data.applications == ("cache", "cache", "mix")

    def test_are_said_to_be_sampled(self, capsys: Capture, tmp_path: Path) -> None:
        metadata = imported(capsys, tmp_path, sampled_files.micro_rows()).metadata
        assert metadata == {
            "counter_tool": "dcgm",
            "profile_kind": "sampled",
            "power_kind": "board",
            "origin": "measured",
            "source": "raw.csv",
            "faults": {},
        }

    def test_may_lack_shares(self, capsys: Capture, tmp_path: Path) -> None:
        rows = sampled_files.micro_rows()
        for name in sampled_files.SHARES:
            rows[0][name] = ""
        data = imported(capsys, tmp_path, rows)
        assert data.counters[0, 0, 0, 0].tolist() == pytest.approx([float("nan")] * 7, nan_ok=True)

    def test_whose_power_halves_are_named(self, capsys: Capture, tmp_path: Path) -> None:
        rows = sampled_files.micro_rows()
        rows[4]["average_power"] = 60  # the second kernel at 1500 MHz, 110 W at 1000 MHz
        file = tidy.write_csv(tmp_path / "raw.csv", rows)
        given = ["import", "dvfs", file, "--device", "v100", "-o", tmp_path / "t.csv"]
        _, err = succeed(capsys, *given)
        said = (
            "its power falls by 45% from 1000 to 1500 MHz, a higher clock: "
            "a fault of the measurement"
        )
        assert err == f"mlscale: warning: {file}: 'cache.benchmark_int.input001': {said}\n"
        data = read(tmp_path / "t.csv")
        assert data.metadata["faults"] == {"cache.benchmark_int.input001": said}
        assert len(data.kernels) == 3

    def test_at_clocks_that_were_not_reached_are_warned_about(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        rows = sampled_files.micro_rows()
        for row in rows[:3]:
            row["time"] = 6.0  # twice what 1000 MHz explain
        file = tidy.write_csv(tmp_path / "raw.csv", rows)
        given = ["import", "dvfs", file, "--device", "v100", "-o", tmp_path / "t.csv"]
        _, err = succeed(capsys, *given)
        assert "by 2.00 at 1000 MHz: the GPU ran slower than it was set to there" in err

    def test_lacking_columns_are_named_together(self, capsys: Capture, tmp_path: Path) -> None:
        rows = [
            {name: cell for name, cell in row.items() if name not in ("DRAMA", "argNo")}
            for row in sampled_files.micro_rows()
        ]
        file = tidy.write_csv(tmp_path / "raw.csv", rows)
        given = ["import", "dvfs", file, "--device", "v100", "-o", tmp_path / "t.csv"]
        message = refuse(capsys, tmp_path, *given)
        assert message == f"{file}: lacks the columns argNo, DRAMA of sampled profiles"

    def test_impossible_powers_are_refused(self, capsys: Capture, tmp_path: Path) -> None:
        rows = sampled_files.micro_rows()
        rows[1]["average_power"] = 0
        file = tidy.write_csv(tmp_path / "raw.csv", rows)
        given = ["import", "dvfs", file, "--device", "v100", "-o", tmp_path / "t.csv"]
        message = refuse(capsys, tmp_path, *given)
        assert message.startswith(f"{file}: row 3, column 'average_power': the value is 0;")


class TestApplications:
    def test_have_dcgms_names_and_our_units(self, capsys: Capture, tmp_path: Path) -> None:
        data = imported(capsys, tmp_path, sampled_files.application_rows())
        assert data.kernels == data.applications == ("lbm", "fft")
        named = dict(zip(data.counter_names, data.counters[0, 0, 0, 0].tolist(), strict=True))
        # 95 % and 12.5 % as shares; all else as the rows have it.
        assert named == pytest.approx({
            "sm_active": 0.8, "sm_occupancy": 0.5, "dram_active": 0.25, "tensor_active": 0.0,
            "fp64_active": 0.0, "fp32_active": 0.125, "fp16_active": 0.0,
            "gr_engine_active": 0.9, "gpu_utilisation": 0.95, "memory_copy_utilisation": 0.125,
        })  # fmt: skip
        # 1500 / clock s in ms; the V100's 80 SMs and 877 MHz of its data sheet.
        assert data.time_ms[0].ravel().tolist() == [1500, 1000]
        assert (data.grid.cu_count, data.grid.memory_mhz) == ((80,), (877,))
        assert data.metadata["profile_kind"] == "sampled"

    def test_lacks_a_column(self, capsys: Capture, tmp_path: Path) -> None:
        rows = sampled_files.application_rows()
        for row in rows:
            del row["mem_copy_utilization"], row["sm_active"]
        file = tidy.write_csv(tmp_path / "raw.csv", rows)
        given = ["import", "dvfs", file, "--device", "v100", "-o", tmp_path / "t.csv"]
        message = refuse(capsys, tmp_path, *given)
        assert (
            message
            == f"{file}: lacks the columns sm_active, mem_copy_utilization of sampled profiles"
        )

    def test_need_a_device_with_a_memory_clock(self, capsys: Capture, tmp_path: Path) -> None:
        file = tidy.write_csv(tmp_path / "raw.csv", sampled_files.application_rows())
        given = ["import", "dvfs", file, "--device", "simulated-gcn3", "-o", tmp_path / "t.csv"]
        message = refuse(capsys, tmp_path, *given)
        assert message == (f"{file}: names no memory clock, nor does the entry of 'simulated-gcn3'")


# Of the V100's, whose effective clock below 700 MHz was not the one that was set.
OF_V100 = pytest.mark.filterwarnings("ignore:.*times of 76 kernels change by far more than a clock")


@OF_V100
@pytest.mark.parametrize("name", REAL)
def test_real_files_are_known_by_their_checksum(
    capsys: Capture, tmp_path: Path, data_folder: Path, name: str
) -> None:
    # 138 micro-benchmarks x 10 clocks: the data's README. Its 6 programs were counted.
    file, table = data_folder / "sampled" / name, tmp_path / "t.parquet"
    out, err = succeed(capsys, "import", "dvfs", file, "-o", table)
    assert "138 kernels of 6 applications" in out
    assert "1 CU count x 10 engine clocks x 1 memory clock, 7 counters, with power" in out
    data = read(table)
    if "rtx8000" in name:
        # The four kernels that the notes on the data name, and no other.
        assert sorted(data.metadata["faults"]) == [
            f"mixbench-cuda-alt.benchmark_int.input00{k}" for k in range(4)
        ]
        assert err.count("a fault of the measurement") == 4
    else:
        # The data's README: at 405 MHz the clock is about half; at others up to 1.3.
        assert data.metadata["faults"] == {}
        assert "1.88 at 405 MHz, 1.20 at 502 MHz, 1.31 at 600 MHz" in err


def test_the_real_a100_file_is_known_by_its_checksum(
    capsys: Capture, tmp_path: Path, data_folder: Path
) -> None:
    # 19 SPEC ACCEL applications x 61 clocks from 510 to 1410 MHz: the data's README.
    file, table = data_folder / "sampled" / "a100-spec-accel-dcgm.csv", tmp_path / "t.parquet"
    out, err = succeed(capsys, "import", "dvfs", file, "-o", table)
    assert "19 kernels of 19 applications on a100-sxm4-80gb" in out
    assert "61 engine clocks x 1 memory clock, 10 counters, with power" in out
    assert err.count("warning") == 1
    assert "'kmeans': its time" in err
    data = read(table)
    assert (data.grid.engine_mhz[0], data.grid.engine_mhz[-1]) == (510, 1410)
    # tpacf at 1410 MHz, the file's first row: 7.0867 s, 185.83 W, 0.9429 of the time active.
    tpacf = data.kernels.index("tpacf")
    assert data.time_ms[tpacf, 0, -1, 0] == pytest.approx(7086.667, rel=1e-6)
    assert data.power_w is not None
    assert data.power_w[tpacf, 0, -1, 0] == pytest.approx(185.83171)
    assert data.counters[tpacf, 0, -1, 0, 0] == pytest.approx(0.942902)


@OF_V100
@pytest.mark.parametrize("name", [*REAL, "a100-spec-accel-dcgm.csv"])
def test_sound_real_runs_at_two_clocks_are_of_the_same_work(
    capsys: Capture, tmp_path: Path, data_folder: Path, name: str
) -> None:
    """No run of the three GPUs is refused as the second log of what it is the first of."""
    table = tmp_path / "t.parquet"
    succeed(capsys, "import", "dvfs", data_folder / "sampled" / name, "-o", table)
    data = read(table)
    faulty = data.metadata["faults"]
    sound = data.select([k for k, kernel in enumerate(data.kernels) if kernel not in faulty])
    sound.write(table)
    base = data.grid.config("highest")
    clock = min(data.grid.engine_mhz, key=lambda mhz: abs(mhz - SECOND_CLOCK * base.engine_mhz))
    second = HardwareConfig(base.cu_count, clock, base.memory_mhz)
    [point] = add_points(sound.profiles(base), [(table, second)]).points
    assert len(point.time_ms) == len(sound.kernels)
