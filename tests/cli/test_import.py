"""import of profilers' exports and monitors' logs: what it says, writes, appends and refuses.

Exports and logs are made in the tools' forms by tests/synthetic/; every real file is read too.
"""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command import Cli
from synthetic.exports import V3_TRACE, long_page, long_rows, rocprof_v1, rocprofv3
from synthetic.monitor_logs import query, smi_dmon
from synthetic.monitor_readings import block
from text_files import written

from mlscale.cli.main import main
from mlscale.data.table import Table
from mlscale.data.table_files import read_table, write_table

BASE = "cu=4,engine=1000,memory=500"
MADE = ("--device", "made-gpu", "--base", BASE)
LOGGED = ("--device", "made-gpu", "--base", "cu=4")
AMD = {
    "SQ_WAVES": 10, "SQ_INSTS_VALU": 500, "SQ_INSTS_SALU": 200, "SQ_INSTS_SMEM": 50,
    "SQ_INSTS_VMEM_RD": 100, "SQ_INSTS_VMEM_WR": 50, "SQ_INSTS_LDS": 100,
}  # fmt: skip
MI210 = ("--device", "mi210", "--base", "engine=1700,memory=1600")


def import_ncu(cli: Cli, folder: Path, *options: object) -> tuple[Path, str]:
    export, table = written(folder, long_page(), "run.csv"), folder / "profile.csv"
    return table, cli("import", export, *MADE, "-o", table, *options)


class TestExports:
    def test_says_what_came_of_it(self, cli: Cli, tmp_path: Path) -> None:
        table, out = import_ncu(cli, tmp_path, "-v")
        first, *_ = out.splitlines()
        assert first == (
            f"{table}: 1 kernel from 1 launch (means) on made-gpu at {BASE}; "
            "Table II: 4 exact, 10 nearest, 8 missing"
        )
        mapping = {line.split()[0]: line.split()[1:3] for line in out.splitlines()[4:]}
        assert mapping["VALUInsts"] == ["nearest", "40.00"]
        assert mapping["SFetchInsts"] == ["missing", "-"]
        assert mapping["Occupancy"] == ["exact", "75.00"]
        [row] = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
        assert float(row["VALUInsts"]) == pytest.approx(40)
        metadata = json.loads(table.with_suffix(".meta.json").read_text())
        assert metadata["counter_tool"] == "ncu"
        assert metadata["feature_status"]["VALUInsts"] == "nearest"
        assert metadata["clocks"]["requested"]["engine_mhz"] == 1000

    def test_append_adds_a_configuration(self, cli: Cli, tmp_path: Path) -> None:
        table, _ = import_ncu(cli, tmp_path)
        slower = written(tmp_path, long_page(long_rows()), "slow.csv")
        base = ("--device", "made-gpu", "--base", "cu=4,engine=500,memory=500")
        assert cli("import", slower, *base, "--append", "-o", table).endswith("; 2 rows in total\n")
        assert read_table(table).numbers["engine_mhz"].tolist() == [1000, 500]
        _, out = import_ncu(cli, tmp_path, "--append")
        assert out.endswith("; 1 repetition of rows already there; 3 rows in total\n")
        other = written(tmp_path, rocprof_v1(AMD, times=[(0, 1000)]), "amd.csv")
        message = cli.refused("import", other, *MADE, "--append", "-o", table)
        assert "its counters are of ncu, the new ones of rocprof" in message
        worded = table.read_text(encoding="utf-8").replace("\n", ",1MB\n").replace("1MB", "size", 1)
        table.write_text(worded, encoding="utf-8")  # which writing it again would lose
        message = cli.refused("import", slower, *base, "--append", "-o", table)
        assert "column 'size': '1MB' is not a number" in message

    def test_the_share_that_counters_cover_comes_first(self, cli: Cli, tmp_path: Path) -> None:
        """Several files of one run: 6 us of the counted kernel, 18 us of another in the trace."""
        other = '"KERNEL_DISPATCH","Agent 4",1,7,3,3,"other()",3,10000,28000,64,1,1,64,10,1\n'
        counters = written(tmp_path, rocprofv3(AMD), "m.csv")
        traced = written(tmp_path, V3_TRACE, "t.csv")
        out = cli("import", counters, traced, *MI210, "-o", tmp_path / "t.parquet")
        assert "1 kernel from 2 launches (means) on mi210 at cu=104,engine=1700" in out
        table = tmp_path / "table.csv"
        traced.write_text(V3_TRACE + other)
        out, err = cli.both("import", counters, traced, *MI210, "-o", table)
        assert out.startswith(
            f"{table}: counters cover 25.0 % of the 0.02400 ms of the run's kernels; 2 kernels "
        )
        assert "without counters: 1 kernel ('other()'), 75.0 % of the run's time" in err

    def test_kernels_without_a_time(self, cli: Cli, tmp_path: Path) -> None:
        untimed = long_rows(1, "u", {"dram__bytes_read.sum": ("byte", "5")})
        export = written(tmp_path, long_page(long_rows(), untimed), "run.csv")
        given = ["import", export, *MADE, "-o", tmp_path / "t.csv"]
        assert "has no times for 1 kernel ('u'" in cli.refused(*given)
        out, err = cli.both(*given, "--skip-untimed")
        assert ": 1 kernel from 1 launch" in out
        assert "has no times for 1 kernel ('u' (grid 16, block 128)); left out" in err


TABLE_II = ("VALUInsts", "SFetchInsts", "VFetchInsts", "MemUnitStalled", "Occupancy",
            "NumWorkGroups", "ReadBandwidth", "WriteBandwidth", "V_IPC", "SALUInsts",
            "LDSInsts")  # fmt: skip


def training_table(path: Path) -> Path:
    """Six kernels of three applications at three clocks, with eleven features of Table II."""
    rows = [(kernel, mhz) for kernel in range(6) for mhz in (500.0, 1000.0, 1500.0)]
    features = np.random.default_rng(0).uniform(0, 100, (6, len(TABLE_II)))
    numbers = {
        "cu_count": np.full(18, 4.0),
        "engine_mhz": np.array([mhz for _, mhz in rows]),
        "memory_mhz": np.full(18, 500.0),
        "time_ms": np.array([(1 + k) * (1000 / mhz) ** (k / 5) for k, mhz in rows]),
        **{n: np.array([features[k, f] for k, _ in rows]) for f, n in enumerate(TABLE_II)},
    }
    text = {
        "device": ["made-gpu"] * 18,
        "application": [f"a{k // 2}" for k, _ in rows],
        "kernel": [f"k{k}" for k, _ in rows],
    }
    metadata = {"counter_tool": "rocprof", "feature_status": dict.fromkeys(TABLE_II, "exact")}
    write_table(Table("made", text, numbers, metadata), path)
    return path


class TestTrainAndPredict:
    """A model of Table II's features, and a profile of ncu, which has the nearest of some."""

    GIVEN = ("--base", "mid", "--predictor", "nearest")

    @pytest.mark.parametrize("of_tool", [False, True])
    def test_features_of_the_target_tool(self, cli: Cli, tmp_path: Path, of_tool: bool) -> None:
        model, table = tmp_path / "m.mlscale", training_table(tmp_path / "training.csv")
        more = ("--features-of", "ncu") if of_tool else ()
        out = cli("train", table, *self.GIVEN, *more, "-o", model)
        assert f"with {9 if of_tool else 11} counters: " in " ".join(out.split())
        profile, _ = import_ncu(cli, tmp_path)
        err = cli.told("predict", model, profile, "--at", "mid", "--notes")
        told = "has 9 of 11 features; the training median replaces SFetchInsts, Mem"
        assert (told in err) != of_tool
        assert (
            ": not Table II's but ncu's nearest equivalent: "
            "VALUInsts, SALUInsts, VFetchInsts, LDSInsts, V_IPC\n"
        ) in err

    def test_the_default_predictor_learns_from_nothing_that_the_tool_lacks(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        """The simulator's own waitcnt_stall_pct is no counter of ncu's; what a launch is, stays."""
        model, profile = tmp_path / "m.mlscale", tmp_path / "p.csv"
        given = ["simulated-gcn3.parquet", "--base", "mid", "--features-of", "ncu"]
        given += ["-o", model, "--no-check"]
        cli("train", *given)
        export = written(tmp_path, long_page(), "run.csv")
        base = ["--device", "simulated-gcn3", "--base", "cu=16,engine=800,memory=700"]
        cli("import", export, *base, "-o", profile)
        flags = cli.told("predict", model, profile, "--at", "mid", "--notes").splitlines()
        assert any("busiest core unit 2 % is below " in flag for flag in flags)
        assert not any(
            "stall" in flag for flag in flags
        )  # with the other counter: above the highest


class TestLogs:
    def test_become_a_row_and_the_busy_span_is_printed(self, cli: Cli, tmp_path: Path) -> None:
        """20 idle samples, 30 busy ones of 0.1 s at 200 W and 1410 MHz, 10 idle ones."""
        path, output = written(tmp_path, query(block(20, 30, 10)), "fft.csv"), tmp_path / "p.csv"
        first, span, averages = cli("import", path, *LOGGED, "-o", output).splitlines()
        assert first == f"{output}: 1 row on made-gpu"
        assert span.startswith("fft: fft.csv: busy from sample 21 to 50 of 60: gpu_utilisation is")
        assert span.endswith("2 s before and 1 s after are cut; a sample every 0.1 s")
        assert averages == (
            "  engine_mhz 1410, memory_mhz 1215, time_ms 3000, power_w 200.0, "
            "gpu_utilisation 0.8000"
        )
        table = read_table(output)
        assert table.text == {"device": ["made-gpu"], "application": ["fft"], "kernel": ["fft"]}
        assert table.metadata["profile_kind"] == "sampled"

    def test_further_ones_are_appended(self, cli: Cli, tmp_path: Path) -> None:
        output = tmp_path / "profile.csv"
        for gpu, name in enumerate(("fft.csv", "gemm.csv")):
            path = written(tmp_path, query(block(2, 3, 1, gpu=gpu)), name)
            out = cli("import", path, *LOGGED, "--append", "-o", output)
        assert "; 2 rows in total" in out
        table = read_table(output)
        assert table.text["kernel"] == list(table.metadata["busy_spans"]) == ["fft", "gemm"]
        assert table.metadata["gpus"] == ["0", "1"]

    def test_interval_and_time(self, cli: Cli, tmp_path: Path) -> None:
        path, output = written(tmp_path, smi_dmon(block(2, 3, 1)), "fft.csv"), tmp_path / "p.csv"
        complaint = cli.refused("import", path, *LOGGED, "-o", output)
        assert complaint.endswith("give --interval SECONDS (between two samples)")
        for given, time_ms in ((("--interval", "2"), 6000), (("--time", "17"), 17)):
            cli("import", path, *LOGGED, *given, "-o", output)
            assert read_table(output).numbers["time_ms"].tolist() == [time_ms]

    def test_are_the_power_of_an_export(self, cli: Cli, tmp_path: Path) -> None:
        log = written(tmp_path, query(block(2, 3, 1)), "smi.csv")
        for power, watts in (("250", 250), (log, 200)):
            table, out = import_ncu(cli, tmp_path, "--power", power)
            assert f"board power {watts}" in out
            assert set(read_table(table).numbers["power_w"]) == {watts}
            metadata = json.loads(table.with_suffix(".meta.json").read_text())
            assert metadata["power_kind"] == "board"


TUNERS = ("kernel_tuner_cache", "t4_results")
GIVEN = ("--device", "made-gpu", "--base", "cu=10,engine=1000,memory=1000")


@pytest.mark.parametrize("name", ["", "pmc_perf.csv"])
def test_a_folder_of_rocprof_compute_says_its_gpu(
    cli: Cli, data_folder: Path, tmp_path: Path, name: str
) -> None:
    """sysinfo.csv has 104 CUs and 1600 MHz of memory; it is found beside the counters."""
    folder = data_folder / "cases4/23-rocprof-compute-folder"
    told = cli("import", folder / name, "--base", "engine=1700", "-o", tmp_path / "t.csv")
    assert "3 launches (means) on gfx90a at cu=104,engine=1700,memory=1600" in told
    *_, warning, error = cli.ended(2, "advise", folder / name)[1].splitlines()
    assert "'gfx90a' may be mi210 or mi250-gcd; " in warning
    assert error.endswith("with what the GPU was set to (engine at most 1700)")
    said = cli.ended(2, "advise", folder / name, "--base", "engine=1700")[1]
    assert "error: 'gfx90a' may be mi210 or mi250-gcd; " in said


def test_every_real_file_is_read_or_refused_in_one_line(
    cli: Cli, tmp_path: Path, data_folder: Path
) -> None:
    """What is read of each is tested beside its reader; none is forgotten here."""
    files = sorted((data_folder / "traces").glob("*/*"))
    outcomes = set()
    for file in files:
        form = ["kernel-tuner"] if file.parent.name in TUNERS else []
        for number, given in enumerate(((), GIVEN)):
            output = tmp_path / f"{file.name}-{number}.csv"
            status = main(["import", *form, str(file), "-o", str(output), *given])
            said = cli.capsys.readouterr().err.splitlines()
            errors = [
                line for line in said if not re.match(r"mlscale: (warning|note) [A-Z]\d\d: ", line)
            ]
            assert (status, len(errors)) in ((0, 0), (2, 1)), (file.name, status, said)
            assert output.exists() == (status == 0)
            assert all(line.startswith(f"mlscale: error: {file}") for line in errors), errors
            assert len(said) == len(set(said))
            outcomes.add(status)
    assert outcomes == {0, 2}
