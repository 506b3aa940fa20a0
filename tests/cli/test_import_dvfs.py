"""import dvfs: files of NV-DVFS-Benchmark to tidy tables; made ones, and the public ones."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import tidy
from synthetic.dvfs import KERNELS, rows

from mlscale import Measurements, read

# kernel -> application, as the data's README says.
APPLICATIONS = dict(
    zip(
        KERNELS,
        ["backprop", "backprop", "scan", "scan", "matrixMul", "matrixMul", "vectorAdd", "hotspot"],
        strict=True,
    )
)
PUBLIC = {
    "gtx980-low": "gtx980-low-dvfs-real-small-workload-Performance-Power.csv",
    "gtx980-high": "gtx980-high-dvfs-real-small-workload-Performance-Power.csv",
    "gtx1080ti": "gtx1080ti-dvfs-real-Performance-Power.csv",
    "p100": "p100-dvfs-real-Performance-Power.csv",
}


def imported(capsys: Capture, folder: Path, table: list[dict[str, Any]]) -> Measurements:
    file = tidy.write_csv(folder / "raw.csv", table)
    succeed(capsys, "import", "dvfs", file, "--device", "gtx980", "-o", folder / "table.csv")
    return read(folder / "table.csv")


class TestMadeFile:
    def test_columns_are_renamed(self, capsys: Capture, tmp_path: Path) -> None:
        imported(capsys, tmp_path, rows())
        with (tmp_path / "table.csv").open(encoding="utf-8") as file:
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

    def test_every_number_is_at_its_kernel_and_clocks(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        shuffled = [row for step in (2, 0, 3, 1) for row in rows()[step::4]]
        data = imported(capsys, tmp_path, shuffled)
        assert (data.device, data.grid.shape) == ("gtx980", (1, 2, 2))
        assert data.grid.engine_mhz == (500, 900)
        assert data.grid.memory_mhz == (600, 800)
        for k, kernel in enumerate(KERNELS):
            at = data.kernels.index(kernel)
            assert data.time_ms[at].ravel().tolist() == [10 * k + step for step in (1, 2, 3, 4)]
            assert data.power_w is not None
            assert set(data.power_w[at].ravel().tolist()) == {50 + k}

    def test_kernels_of_one_program_are_one_application(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        data = imported(capsys, tmp_path, rows())
        assert dict(zip(data.kernels, data.applications, strict=True)) == APPLICATIONS

    def test_launches_go_to_the_metadata(self, capsys: Capture, tmp_path: Path) -> None:
        metadata = imported(capsys, tmp_path, rows()).metadata
        assert metadata["launches"]["vectorAdd"] == {
            "function": "vectorAdd_gpu",
            "arguments": "input06",
        }
        assert metadata["launches"].keys() == set(KERNELS)
        assert (metadata["origin"], metadata["counter_tool"]) == ("measured", "nvprof")
        assert (metadata["power_kind"], metadata["source"]) == ("board", "raw.csv")

    def test_parquet_holds_the_same(self, capsys: Capture, tmp_path: Path) -> None:
        data = imported(capsys, tmp_path, rows())
        given = ["import", "dvfs", tmp_path / "raw.csv", "--device", "gtx980"]
        succeed(capsys, *given, "-o", tmp_path / "table.parquet")
        other = read(tmp_path / "table.parquet")
        assert other.metadata == data.metadata
        assert other.counter_names == data.counter_names
        assert tidy.same_bits(other.time_samples, data.time_samples)
        assert tidy.same_bits(other.counter_samples, data.counter_samples)

    def test_the_index_and_what_is_not_given_may_be_left_out(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        needed = ("appName", "coreF", "memF", "time/ms")
        data = imported(capsys, tmp_path, [{k: row[k] for k in needed} for row in rows()])
        assert data.power_w is None
        assert data.counter_names == ()
        assert data.metadata["power_kind"] is None
        assert data.time_ms[1].ravel().tolist() == [11, 12, 13, 14]

    def test_says_what_it_found(self, capsys: Capture, tmp_path: Path) -> None:
        file = tidy.write_csv(tmp_path / "raw.csv", rows(inst_executed=5))
        given = ["import", "dvfs", file, "--device", "p100", "-o", tmp_path / "t.csv"]
        out, err = succeed(capsys, *given)
        assert out == (
            f"{tmp_path}/t.csv: 8 kernels of 5 applications on p100, "
            "1 CU count x 2 engine clocks x 2 memory clocks, 4 counters, with power\n"
        )
        assert err == ""

    def test_empty_counters_are_left_out_and_what_remains_serves_for_is_told(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """As the RTX 2070 Super's file has them: columns of counters without a number."""
        empty = {"dram_read_transactions": "", "inst_executed": ""}
        file = tidy.write_csv(tmp_path / "raw.csv", rows(**empty))
        table, model = tmp_path / "t.csv", tmp_path / "t.mlscale"
        _, err = succeed(capsys, "import", "dvfs", file, "--device", "rtx2070s", "-o", table)
        assert err.startswith(
            f"mlscale: warning: {file}: has no counters: it serves for predictors"
        )
        assert read(table).counter_names == ("workgroups", "workgroup_size", "warps")
        out, err = succeed(capsys, "train", table, "--base", "mid", "-o", model)
        assert out.startswith(f"{model}: 'mean-surface' for time and power, 8 kernels")
        assert "the table of 'rtx2070s' has no counters: the default is 'mean-surface'" in err

    @pytest.mark.parametrize(
        ("throughput", "rows_off"),
        # 10^6 sectors of 32 B in 1, 2, 3, 4 ms are 32, 16, 10.7, 8 GB/s, by hand.
        [([32, 16, 32 / 3, 8], 0), ([35, 17.5, 11.7, 8.7], 0), ([36, 16, 9, 8], 2)],
    )
    def test_throughput_that_disagrees_with_transactions_is_warned_about(
        self, capsys: Capture, tmp_path: Path, throughput: list[float], rows_off: int
    ) -> None:
        table = [
            {**row, "dram_read_transactions": 1e6, "dram_read_throughput": given}
            for row, given in zip(rows(["vectorAdd"]), throughput, strict=True)
        ]
        file = tidy.write_csv(tmp_path / "raw.csv", table)
        given = ["import", "dvfs", file, "--device", "gtx980", "-o", tmp_path / "t.csv"]
        _, err = succeed(capsys, *given)
        said = (
            f"mlscale: warning: {file}: of 4 rows, columns that disagree with transactions / time "
            f"by more than 10 %: dram_read_throughput in {rows_off}; kept as they are, no "
            "utilisation feature uses them\n"
        )
        assert err == (said if rows_off else "")
        kept = read(tmp_path / "t.csv")
        column = kept.counters[..., kept.counter_names.index("dram_read_throughput")]
        assert column.ravel().tolist() == pytest.approx(throughput)

    def test_incomplete_kernels_are_dropped_where_asked(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        file = tidy.write_csv(tmp_path / "raw.csv", rows()[:-1])
        given = ["import", "dvfs", file, "--device", "gtx980", "-o", tmp_path / "t.csv"]
        message = refuse(capsys, tmp_path, *given)
        assert message.startswith(f"{file}: 1 of 8 kernels lack configurations: 'hotspot' lacks ")
        out, err = succeed(capsys, *given, "--incomplete", "drop")
        assert ": 7 kernels of 4 applications " in out
        assert "'hotspot' lacks cu=16,engine=900,memory=800; dropped\n" in err


class TestRefusals:
    def refuse(self, capsys: Capture, folder: Path, table: list[dict[str, Any]]) -> str:
        file = tidy.write_csv(folder / "raw.csv", table)
        given = ["import", "dvfs", file, "--device", "gtx980", "-o", folder / "t.csv"]
        return refuse(capsys, folder, *given)

    @pytest.mark.parametrize(
        "blocks", ["", "128", "(3584 1 1)", "(3584 1) (128 1)", "(3584,1,1) (128,1,1)", "(a 1 1)"]
    )
    def test_bad_blocks(self, capsys: Capture, tmp_path: Path, blocks: str) -> None:
        table = rows()
        table[2]["blocks"] = blocks
        assert self.refuse(capsys, tmp_path, table) == (
            f"{tmp_path}/raw.csv: row 4, column 'blocks': '{blocks}' is not '(grid) (block)', "
            "each three whole numbers"
        )

    def test_another_kind_of_file(self, capsys: Capture, tmp_path: Path) -> None:
        message = self.refuse(capsys, tmp_path, tidy.rows())
        assert message == (
            f"{tmp_path}/raw.csv: there is no column 'appName'; is it an NV-DVFS file?"
        )

    def test_an_unknown_file_without_its_device(self, capsys: Capture, tmp_path: Path) -> None:
        file = tidy.write_csv(tmp_path / "raw.csv", rows())
        message = refuse(capsys, tmp_path, "import", "dvfs", file, "-o", tmp_path / "t.csv")
        assert message == f"{file}: is no known public file; name its GPU with --device"


class TestPublicFiles:
    @pytest.mark.parametrize(
        ("name", "device", "engines", "memories"),
        [  # 30 kernels and the clocks: the data's README; of 27 applications, by its rule
            ("gtx980-low", "gtx980", 6, 6),
            ("gtx980-high", "gtx980", 5, 5),
            ("gtx1080ti", "gtx1080ti", 5, 4),
            ("p100", "p100", 5, 1),
        ],
    )
    def test_are_known_by_their_checksum(
        self,
        capsys: Capture,
        tmp_path: Path,
        data_folder: Path,
        name: str,
        device: str,
        engines: int,
        memories: int,
    ) -> None:
        renamed = tmp_path / "renamed.csv"
        renamed.write_bytes((data_folder / "dvfs" / PUBLIC[name]).read_bytes())
        out, _ = succeed(capsys, "import", "dvfs", renamed, "-o", tmp_path / "t.parquet")
        assert out.startswith(
            f"{tmp_path}/t.parquet: 30 kernels of 27 applications on {device}, "
            f"1 CU count x {engines} engine clocks x "
            f"{memories} memory clock{'s' if memories > 1 else ''}, "
        )
        assert out.endswith(" counters, with power\n")

    def test_of_another_device_are_refused(
        self, capsys: Capture, tmp_path: Path, data_folder: Path
    ) -> None:
        file = data_folder / "dvfs" / PUBLIC["p100"]
        given = ["import", "dvfs", file, "--device", "v100", "-o", tmp_path / "t.csv"]
        message = refuse(capsys, tmp_path, *given)
        assert message == f"{file}: is a file of 'p100', not of 'v100'"

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
    def test_are_warned_about_by_kernel(
        self,
        capsys: Capture,
        tmp_path: Path,
        data_folder: Path,
        name: str,
        faulty: dict[str, str],
    ) -> None:
        file, table = data_folder / "dvfs" / PUBLIC[name], tmp_path / "t.csv"
        _, err = succeed(capsys, "import", "dvfs", file, "-o", table)
        *by_kernel, throughput = err.splitlines()
        assert len(by_kernel) == len(faulty)
        for line, (kernel, fault) in zip(by_kernel, faulty.items(), strict=True):
            assert line.startswith(f"mlscale: warning: {file}: '{kernel}': ")
            assert fault in line
        assert "dram_read_throughput in " in throughput
        # What was warned about stands in the metadata, and no kernel was dropped.
        metadata = json.loads(table.with_suffix(".meta.json").read_text(encoding="utf-8"))
        assert metadata["faults"].keys() == faulty.keys()
        assert len(read(table).kernels) == 30

    def test_tables_hold_the_numbers_of_the_file(
        self, capsys: Capture, tmp_path: Path, data_folder: Path
    ) -> None:
        file = data_folder / "dvfs" / PUBLIC["gtx1080ti"]
        succeed(capsys, "import", "dvfs", file, "-o", tmp_path / "t.parquet")
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
        assert np.isfinite(data.counters[..., reads]).all()
