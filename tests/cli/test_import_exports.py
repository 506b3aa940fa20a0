"""import of profilers' exports on the command line, and what train and predict make of it."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic.exports import (
    V3_TRACE,
    long_page,
    long_rows,
    rocprof_v1,
    rocprofv3,
)
from text_files import written

from mlscale.data.table import Table
from mlscale.data.table_files import read_table, write_table

BASE = "cu=4,engine=1000,memory=500"
AMD = {
    "SQ_WAVES": 10, "SQ_INSTS_VALU": 500, "SQ_INSTS_SALU": 200, "SQ_INSTS_SMEM": 50,
    "SQ_INSTS_VMEM_RD": 100, "SQ_INSTS_VMEM_WR": 50, "SQ_INSTS_LDS": 100,
}  # fmt: skip


def training_table(folder: Path) -> Path:
    """Six kernels of three applications at three clocks, with eight features of Table II."""
    generator = np.random.default_rng(0)
    names = ("VALUInsts", "SFetchInsts", "VFetchInsts", "MemUnitStalled", "Occupancy",
             "NumWorkGroups", "ReadBandwidth", "WriteBandwidth", "V_IPC", "SALUInsts",
             "LDSInsts")  # fmt: skip
    rows = [(k, e) for k in range(6) for e in (500.0, 1000.0, 1500.0)]
    features = generator.uniform(0, 100, (6, len(names)))
    numbers = {
        "cu_count": np.full(18, 4.0),
        "engine_mhz": np.array([e for _, e in rows]),
        "memory_mhz": np.full(18, 500.0),
        "time_ms": np.array([(1 + k) * (1000 / e) ** (k / 5) for k, e in rows]),
        **{n: np.array([features[k, f] for k, _ in rows]) for f, n in enumerate(names)},
    }
    text = {
        "device": ["made-gpu"] * 18,
        "application": [f"a{k // 2}" for k, _ in rows],
        "kernel": [f"k{k}" for k, _ in rows],
    }
    path = folder / "training.csv"
    metadata = {"counter_tool": "rocprof", "feature_status": dict.fromkeys(names, "exact")}
    write_table(Table("made", text, numbers, metadata), path)
    return path


def import_ncu(capsys: Capture, folder: Path, *options: object) -> tuple[Path, str]:
    export, table = written(folder, long_page(), "run.csv"), folder / "profile.csv"
    given = ["import", export, "--device", "made-gpu", "--base", BASE, "-o", table]
    out, _ = succeed(capsys, *given, *options)
    return table, out


class TestImport:
    def test_says_what_came_of_it(self, capsys: Capture, tmp_path: Path) -> None:
        table, out = import_ncu(capsys, tmp_path)
        assert out == (
            f"{table}: 1 kernel from 1 launch (means) on made-gpu at {BASE}; "
            "Table II: 4 exact, 10 nearest, 8 missing\n"
        )
        [row] = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
        assert float(row["VALUInsts"]) == pytest.approx(40)
        metadata = json.loads(table.with_suffix(".meta.json").read_text())
        assert metadata["counter_tool"] == "ncu"
        assert metadata["feature_status"]["VALUInsts"] == "nearest"
        assert metadata["feature_status"]["SFetchInsts"] == "missing"
        assert metadata["clocks"]["requested"]["engine_mhz"] == 1000

    def test_verbose_shows_the_mapping(self, capsys: Capture, tmp_path: Path) -> None:
        _, out = import_ncu(capsys, tmp_path, "-v")
        lines = {line.split()[0]: line.split()[1:3] for line in out.splitlines()[4:]}
        assert lines["VALUInsts"] == ["nearest", "40.00"]
        assert lines["SFetchInsts"] == ["missing", "-"]
        assert lines["Occupancy"] == ["exact", "75.00"]

    def test_append_adds_a_configuration(self, capsys: Capture, tmp_path: Path) -> None:
        table, _ = import_ncu(capsys, tmp_path)
        slower = written(tmp_path, long_page(long_rows()), "slow.csv")
        base = "cu=4,engine=500,memory=500"
        given = ["--device", "made-gpu", "--base", base, "--append", "-o", table]
        out, _ = succeed(capsys, "import", slower, *given)
        assert out.endswith("; 2 rows in all\n")
        assert read_table(table).numbers["engine_mhz"].tolist() == [1000, 500]

    def test_append_tells_rows_that_were_there(self, capsys: Capture, tmp_path: Path) -> None:
        import_ncu(capsys, tmp_path)
        _, out = import_ncu(capsys, tmp_path, "--append")
        assert out.endswith("; 1 repetition of rows that were there; 2 rows in all\n")

    def test_append_mixes_no_tools(self, capsys: Capture, tmp_path: Path) -> None:
        table, _ = import_ncu(capsys, tmp_path)
        other = written(tmp_path, rocprof_v1(AMD, times=[(0, 1000)]), "amd.csv")
        given = ["--device", "made-gpu", "--base", BASE, "--append", "-o", table]
        message = refuse(capsys, tmp_path, "import", other, *given)
        assert message == (
            f"{table}: its counters are of ncu, the new ones of rocprof; one table has counters "
            "of one tool"
        )

    def test_several_files_of_one_run(self, capsys: Capture, tmp_path: Path) -> None:
        files = [written(tmp_path, rocprofv3(AMD), "m.csv"), written(tmp_path, V3_TRACE, "t")]
        given = ["--device", "mi210", "--base", "engine=1700,memory=1600"]
        given += ["-o", tmp_path / "t.parquet"]
        out, _ = succeed(capsys, "import", *files, *given)
        assert "1 kernel from 2 launches (means) on mi210 at cu=104,engine=1700" in out

    def test_the_share_that_counters_cover_comes_first(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """6 us of the counted kernel, 18 us of another in the trace."""
        other = '"KERNEL_DISPATCH","Agent 4",1,7,3,3,"other()",3,10000,28000,64,1,1,64,10,1\n'
        files = [
            written(tmp_path, rocprofv3(AMD), "m.csv"),
            written(tmp_path, V3_TRACE + other, "t"),
        ]
        table = tmp_path / "t.csv"
        given = ["--device", "mi210", "--base", "engine=1700,memory=1600", "-o", table]
        out, err = succeed(capsys, "import", *files, *given)
        assert out.startswith(
            f"{table}: counters cover 25.0 % of the 0.02400 ms of the run's kernels; 2 kernels "
        )
        assert "without counters: 1 kernel ('other()'), 75.0 % of the run's time" in err

    def test_kernels_without_a_time(self, capsys: Capture, tmp_path: Path) -> None:
        untimed = long_rows(1, "u", {"dram__bytes_read.sum": ("byte", "5")})
        export = written(tmp_path, long_page(long_rows(), untimed), "run.csv")
        given = ["import", export, "--device", "made-gpu", "--base", BASE]
        given += ["-o", tmp_path / "t.csv"]
        assert "says no time of 1 kernel ('u'" in refuse(capsys, tmp_path, *given)
        out, err = succeed(capsys, *given, "--skip-untimed")
        assert ": 1 kernel from 1 launch" in out
        assert "warning" in err
        assert "says no time of 1 kernel ('u' (grid 16, block 128)); left out" in err

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--base", BASE], "does not say the GPU; give --device NAME"),
            (
                [],
                "does not say the GPU, engine_mhz, memory_mhz; give --device NAME --base eng",
            ),
            (["--device", "g"], "does not say cu_count, engine_mhz, memory_mhz; give --base cu=…"),
            (["--device", "g", "--base", "cu=4"], "does not say engine_mhz, memory_mhz; give --ba"),
            (["--device", "v100", "--base", "cu=99,engine=1,memory=1"], "more than the 80 of 'v10"),
            (["--device", "g", "--base", "engine=fast"], "'fast' in 'engine=fast' is not a number"),
        ],
    )
    def test_refusals(
        self, capsys: Capture, tmp_path: Path, options: list[str], message: str
    ) -> None:
        export = written(tmp_path, long_page(), "run.csv")
        given = ["import", export, *options, "-o", tmp_path / "t.csv"]
        assert message in refuse(capsys, tmp_path, *given)


class TestTrainAndPredict:
    def test_too_much_is_missing(self, capsys: Capture, tmp_path: Path) -> None:
        model, table = tmp_path / "m.mlscale", training_table(tmp_path)
        given = ["train", table, "--base", "mid", "--predictor", "nearest", "-o", model]
        out, _ = succeed(capsys, *given)
        assert "features that a profile needs (11): VALUInsts, " in out
        profile, _ = import_ncu(capsys, tmp_path)
        assert refuse(capsys, tmp_path, "predict", model, profile) == (
            "the model needs 11 features, 2 of which the counters do not give: SFetchInsts, "
            "MemUnitStalled; profile with what they need, or train without them "
            "(train --features-of TOOL)"
        )

    def test_features_of_the_target_tool(self, capsys: Capture, tmp_path: Path) -> None:
        model, table = tmp_path / "m.mlscale", training_table(tmp_path)
        given = ["train", table, "--base", "mid", "--predictor", "nearest", "-o", model]
        out, _ = succeed(capsys, *given, "--features-of", "ncu")
        assert "features that a profile needs (9): " in out
        assert "SFetchInsts" not in out
        profile, _ = import_ncu(capsys, tmp_path)
        out, _ = succeed(capsys, "predict", model, profile, "--at", "mid")
        assert "void k<int, 2>(float *, int)" in out
        assert (
            "warning: not Table II's but ncu's nearest equivalent: "
            "VALUInsts, SALUInsts, VFetchInsts, LDSInsts, V_IPC\n"
        ) in out

    def test_the_default_predictor_learns_from_nothing_that_the_tool_lacks(
        self, capsys: Capture, tmp_path: Path
    ) -> None:
        """The simulator's own waitcnt_stall_pct is no counter of ncu's; what a launch is, stays."""
        model = tmp_path / "m.mlscale"
        given = ["simulated-gcn3.parquet", "--base", "mid", "--features-of", "ncu", "-o", model]
        succeed(capsys, "train", *given)
        export = written(tmp_path, long_page(), "run.csv")
        base = ["--base", "cu=16,engine=800,memory=700"]
        profile = tmp_path / "p.csv"
        given = ["import", export, "--device", "simulated-gcn3", *base, "-o", profile]
        succeed(capsys, *given)
        out, _ = succeed(capsys, "predict", model, profile, "--at", "mid")
        flags = [line for line in out.splitlines() if line.startswith("flag: ")]
        assert any("busiest core unit 2 % below trained" in flag for flag in flags)
        assert not any("stall" in flag for flag in flags)  # with the other counter: above trained

    def test_other_kinds_of_features(self, capsys: Capture, tmp_path: Path) -> None:
        table = training_table(tmp_path)
        given = ["--base", "mid", "--features", "raw", "--features-of", "ncu"]
        message = refuse(capsys, tmp_path, "train", table, *given, "-o", tmp_path / "m")
        assert message == (
            "argument --features-of: not allowed with argument --features; see "
            "'mlscale train --help'"
        )
