"""import dvfs: files of NV-DVFS-Benchmark to tidy tables; made ones, and the public ones.

Of the public files expected: what their README and the project's notes on the data say.
"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from command import Capture, refuse, succeed
from public_tables import FILES
from synthetic import tidy
from synthetic.dvfs import KERNELS, rows

from mlscale import Measurements, read

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


def imported(capsys: Capture, folder: Path, table: list[dict[str, Any]]) -> Measurements:
    succeed(capsys, *given(folder, table))
    return read(folder / "t.csv")


class TestMadeFile:
    def test_columns_are_renamed(self, capsys: Capture, tmp_path: Path) -> None:
        imported(capsys, tmp_path, rows())
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

    def test_every_number_is_at_its_kernel_and_clocks(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        shuffled = [row for step in (2, 0, 3, 1) for row in rows()[step::4]]
        data = imported(capsys, tmp_path, shuffled)
        assert (data.device, data.grid.shape) == ("gtx980", (1, 2, 2))
        assert (data.grid.engine_mhz, data.grid.memory_mhz) == ((500, 900), (600, 800))
        assert dict(zip(data.kernels, data.applications, strict=True)) == APPLICATIONS
        for k, kernel in enumerate(KERNELS):
            at = data.kernels.index(kernel)
            assert data.time_ms[at].ravel().tolist() == [10 * k + step for step in (1, 2, 3, 4)]
            assert data.power_w is not None
            assert set(data.power_w[at].ravel().tolist()) == {50 + k}

    def test_launches_go_to_the_metadata(self, capsys: Capture, tmp_path: Path) -> None:
        metadata = imported(capsys, tmp_path, rows()).metadata
        launch = {"function": "vectorAdd_gpu", "arguments": "input06"}
        assert metadata["launches"]["vectorAdd"] == launch
        assert metadata["launches"].keys() == set(KERNELS)
        assert (metadata["origin"], metadata["counter_tool"]) == ("measured", "nvprof")
        assert (metadata["power_kind"], metadata["source"]) == ("board", "raw.csv")

    def test_parquet_holds_the_same(self, capsys: Capture, tmp_path: Path) -> None:
        data = imported(capsys, tmp_path, rows())
        out, err = succeed(capsys, *given(tmp_path, rows(), "t.parquet"))
        assert err == ""
        assert out == (
            f"{tmp_path}/t.parquet: 8 kernels of 5 applications on gtx980, "
            "1 CU count x 2 engine clocks x 2 memory clocks, 3 counters, with power\n"
        )
        other = read(tmp_path / "t.parquet")
        assert (other.metadata, other.counter_names) == (data.metadata, data.counter_names)
        assert tidy.same_bits(other.time_samples, data.time_samples)
        assert tidy.same_bits(other.counter_samples, data.counter_samples)

    def test_what_is_not_given_may_be_left_out_or_empty(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """Empty counters as the RTX 2070 Super's file has them."""
        needed = ("appName", "coreF", "memF", "time/ms")
        table = [{**{k: row[k] for k in needed}, "inst_executed": ""} for row in rows()]
        data = imported(capsys, tmp_path, table)
        assert data.power_w is None
        assert data.counter_names == ()
        assert data.metadata["power_kind"] is None
        assert data.time_ms[1].ravel().tolist() == [11, 12, 13, 14]

    def test_more_traffic_than_the_memory_passes_is_told(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """By hand: 10^7 sectors of 32 B in 1 ms are 320 GB/s; a GTX 980 passes 38.4 at 600 MHz."""
        dram = {"dram_read_transactions": 5e6, "dram_write_transactions": 5e6}
        table = [{**row, **dram, "time/ms": row["time/ms"] * 100} for row in rows(["vectorAdd"])]
        table[0]["time/ms"] = 1
        _, err = succeed(capsys, *given(tmp_path, table))
        assert "raw.csv: 1 of 4 rows have more DRAM traffic than gtx980 passes" in err
        assert "up to 8.33 times" in err

    def test_a_metric_that_is_asked_for_twice(self, capsys: Capture, tmp_path: Path) -> None:
        """The header of titanx has l2_tex_write_throughput twice, as its authors' scripts do."""
        table = [{**row, "l2_tex_write_throughput": 5.0, "again": 6.0} for row in rows()]
        words = given(tmp_path, table)
        file = tmp_path / "raw.csv"
        text = file.read_text()
        file.write_text(text.replace("again", "l2_tex_write_throughput", 1))
        succeed(capsys, *words)
        data = read(tmp_path / "t.csv")
        values = {n: data.counters[..., i] for i, n in enumerate(data.counter_names)}
        assert (values["l2_tex_write_throughput"] == 5).all()
        assert (values["l2_tex_write_throughput.1"] == 6).all()
        file.write_text(text.replace("again", "warps", 1))
        assert refuse(capsys, tmp_path, *words).endswith("row 1: column 'warps' is there twice")

    def test_incomplete_kernels_are_dropped_where_asked(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        words = given(tmp_path, rows()[:-1])
        message = refuse(capsys, tmp_path, *words)
        assert "raw.csv: 1 of 8 kernels lack configurations: 'hotspot' lacks " in message
        out, err = succeed(capsys, *words, "--incomplete", "drop")
        assert ": 7 kernels of 4 applications " in out
        assert "'hotspot' lacks cu=16,engine=900,memory=800; dropped; left are 7 kernels\n" in err


class TestRefusals:
    @pytest.mark.parametrize("blocks", ["", "(3584 1 1)", "(3584,1,1) (128,1,1)", "(a 1 1)"])
    def test_bad_blocks(self, capsys: Capture, tmp_path: Path, blocks: str) -> None:
        table = rows()
        table[2]["blocks"] = blocks
        assert refuse(capsys, tmp_path, *given(tmp_path, table)) == (
            f"{tmp_path}/raw.csv: row 4, column 'blocks': '{blocks}' is not '(grid) (block)', "
            "each three whole numbers"
        )

    def test_another_kind_of_file(self, capsys: Capture, tmp_path: Path) -> None:
        message = refuse(capsys, tmp_path, *given(tmp_path, tidy.rows()))
        assert "raw.csv: there is no column 'appName'; is it an NV-DVFS file?" in message

    def test_a_device_that_is_not_named_or_another(
        self, capsys: Capture, tmp_path: Path, data_folder: Path
    ) -> None:
        _, _, file, _, _, *output = given(tmp_path, rows())
        message = refuse(capsys, tmp_path, "import", "dvfs", file, *output)
        assert message == f"{file}: is no known public file; name its GPU with --device"
        file = data_folder / FILES["p100"]
        message = refuse(capsys, tmp_path, "import", "dvfs", file, "--device", "v100", *output)
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
        self, capsys: Capture, tmp_path: Path, data_folder: Path, name: str, said: str
    ) -> None:
        renamed = tmp_path / "renamed.csv"
        renamed.write_bytes((data_folder / FILES[name]).read_bytes())
        out, _ = succeed(capsys, "import", "dvfs", renamed, "-o", tmp_path / "t.parquet")
        assert out.startswith(f"{tmp_path}/t.parquet: 30 kernels of 27 applications on {said}")
        assert out.endswith(" counters, with power\n")

    def test_or_by_name_unless_there_is_a_file_of_that_name(
        self, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_folder: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.delenv("MLSCALE_DATA", raising=False)
        monkeypatch.setenv("MLSCALE_CACHE", str(tmp_path / "cache"))
        words = ["import", "dvfs", "p100", "--device", "p100", "-o", "t.csv"]
        assert refuse(capsys, tmp_path, *words) == (
            "'p100' is not on this machine; get it with 'mlscale datasets fetch p100'"
        )
        monkeypatch.setenv("MLSCALE_DATA", str(data_folder))
        assert ": 30 kernels of " in succeed(capsys, *words)[0]
        tidy.write_csv(Path("p100"), rows(["mine"]))
        succeed(capsys, *words)
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
        self, capsys: Capture, tmp_path: Path, data_folder: Path, name: str, faulty: dict[str, str]
    ) -> None:
        file, table = data_folder / FILES[name], tmp_path / "t.csv"
        _, err = succeed(capsys, "import", "dvfs", file, "-o", table)
        for line, (kernel, fault) in zip(err.splitlines(), faulty.items(), strict=True):
            assert line.startswith(f"mlscale: T02: {file}: '{kernel}': ")
            assert fault in line
        metadata = json.loads(table.with_suffix(".meta.json").read_text(encoding="utf-8"))
        assert metadata["faults"].keys() == faulty.keys()
        assert len(read(table).kernels) == 30

    def test_tables_hold_the_numbers_of_the_file(
        self, capsys: Capture, tmp_path: Path, data_folder: Path
    ) -> None:
        file = data_folder / FILES["gtx1080ti"]
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
