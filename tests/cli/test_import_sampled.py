"""import dvfs: public tables of sampled profiles, in both forms; made ones, and the real ones.

Made rows, and what follows from them by hand, are of tests/synthetic/sampled_files.py; 80 SMs and
877 MHz are a V100's by its data sheet. Counts of the real files are of the data's README.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Capture, refuse, succeed
from synthetic import sampled_files, tidy

from mlscale import HardwareConfig, Measurements, read
from mlscale.data.points import SECOND_CLOCK, add_points

Rows = list[dict[str, Any]]


def words(folder: Path, rows: Rows, device: str = "v100") -> list[object]:
    file = tidy.write_csv(folder / "raw.csv", rows)
    return ["import", "dvfs", file, "--device", device, "-o", folder / "table.csv"]


def imported(capsys: Capture, folder: Path, rows: Rows) -> tuple[Measurements, str]:
    _, err = succeed(capsys, *words(folder, rows))
    return read(folder / "table.csv"), err


class TestMicroBenchmarks:
    def test_have_dcgms_names_and_units(self, capsys: Capture, tmp_path: Path) -> None:
        """Programs with several inputs are one application; the first takes 3000 / clock ms."""
        rows = sampled_files.micro_rows()
        for name in sampled_files.SHARES:
            rows[1][name] = ""  # a row may lack its shares
        data, _ = imported(capsys, tmp_path, rows)
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

    def test_whose_power_halves_are_named(self, capsys: Capture, tmp_path: Path) -> None:
        rows = sampled_files.micro_rows()
        rows[4]["average_power"] = 60  # the second kernel at 1500 MHz, 110 W at 1000 MHz
        data, err = imported(capsys, tmp_path, rows)
        fault = data.metadata["faults"]["cache.benchmark_int.input001"]
        assert fault.startswith("its power falls by 45% from 1000 to 1500 MHz, a higher clock: ")
        assert fault in err
        assert len(data.kernels) == 3

    def test_at_clocks_that_were_not_reached_are_warned_about(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        rows = sampled_files.micro_rows()
        for row in rows[:3]:
            row["time"] = 6.0  # twice what 1000 MHz explain
        _, err = imported(capsys, tmp_path, rows)
        assert "by 2.00 at 1000 MHz: the GPU ran slower than it was set to there" in err


def test_applications_have_dcgms_names_and_our_units(capsys: Capture, tmp_path: Path) -> None:
    """95 % and 12.5 % as shares, all else as the rows have it; 1500 / clock s in ms."""
    data, _ = imported(capsys, tmp_path, sampled_files.application_rows())
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
    capsys: Capture, tmp_path: Path, rows: Callable[[], Rows], lacking: tuple[str, ...], said: str
) -> None:
    kept = [{k: v for k, v in row.items() if k not in lacking} for row in rows()]
    assert said in refuse(capsys, tmp_path, *words(tmp_path, kept))


def test_what_else_is_refused(capsys: Capture, tmp_path: Path) -> None:
    rows = sampled_files.micro_rows()
    rows[1]["average_power"] = 0
    message = refuse(capsys, tmp_path, *words(tmp_path, rows))
    assert "row 3, column 'average_power': the value is 0;" in message
    no_memory_clock = words(tmp_path, sampled_files.application_rows(), "simulated-gcn3")
    message = refuse(capsys, tmp_path, *no_memory_clock)
    assert message.endswith("names no memory clock, nor does 'simulated-gcn3'")


A100, RTX8000, V100 = (
    "a100-spec-accel-dcgm.csv", "rtx8000-microbenchmark-dcgm.csv", "v100-microbenchmark-dcgm.csv",
)  # fmt: skip
REAL = {
    RTX8000: ("138 kernels of 6 applications", "10 engine clocks x 1 memory clock, 7 counters"),
    V100: ("138 kernels of 6 applications", "10 engine clocks x 1 memory clock, 7 counters"),
    A100: ("19 kernels of 19 applications", "61 engine clocks x 1 memory clock, 10 counters"),
}
# Of the V100's, whose effective clock below 700 MHz was not the one that was set.
OF_V100 = pytest.mark.filterwarnings("ignore:.*times of 76 kernels change by far more than a clock")


@OF_V100
@pytest.mark.parametrize("name", REAL)
def test_real_files_are_known_by_their_checksum(
    capsys: Capture, tmp_path: Path, data_folder: Path, name: str
) -> None:
    """Their faults are those of the data's README; no sound run is refused as another's second."""
    table = tmp_path / "t.parquet"
    out, err = succeed(capsys, "import", "dvfs", data_folder / "sampled" / name, "-o", table)
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
