"""import kernel-tuner: caches and T4 files written by hand in the tools' form, and real ones."""

import bz2
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Cli
from synthetic.tuned import GOOD, cache, entry

from mlscale import read

BASE = ("--base", "cu=48,memory=7001")


def imported(cli: Cli, folder: Path, document: Any) -> tuple[str, Any]:
    path, table = folder / "c.json", folder / "t.csv"
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_text(text.replace("Infinity", "1e999"))
    return cli("import", "kernel-tuner", path, *BASE, "-o", table), read(table)


class TestCache:
    def test_configurations_are_kernels_and_clocks_the_grid(self, cli: Cli, tmp_path: Path) -> None:
        """The median of 6, 3 and 4 ms; a parameter that does not vary is in no name.

        A cache that was not closed is read as well.
        """
        for text in (json.dumps(cache(**GOOD)), json.dumps(cache(**GOOD)).removesuffix("}}") + ","):
            out, data = imported(cli, tmp_path, text)
            assert data.kernels == ("gemm [block_size_x=64]", "gemm [block_size_x=128]")
            assert set(data.applications) == {"gemm"}
            assert data.device == "rtx-a4000"
            assert data.grid.engine_mhz == (600, 1200)
            assert (data.time_ms == 4).all()
            assert "0 configurations that failed, 0 that ran" in out

    def test_what_failed_or_ran_off_its_clock_is_counted(self, cli: Cli, tmp_path: Path) -> None:
        """4 kinds of failure; 2100 MHz asked for and 1740 had is 17 % off."""
        bad = {
            "1": entry(256, 600, time="RuntimeFailedConfig"),
            "2": entry(256, 600, __error__="CompilationFailedConfig"),
            "3": entry(256, 600, time=1e20 * 1e300),
            "4": entry(256, 600),
            "5": entry(64, 2100, time=1.0, core_freq=1740.0),
        }
        out, data = imported(cli, tmp_path, cache(**GOOD, **bad))
        assert "4 configurations that failed, 1 that ran more than 2 % off" in out
        assert data.grid.shape == (1, 2, 1)

    @pytest.mark.parametrize(
        ("results", "power_w"),
        [({"ps_power": 80.0}, 80), ({"ps_energy": 0.5}, 250), ({"nvml_energy": 0.2}, 100)],
    )
    def test_power(
        self, cli: Cli, tmp_path: Path, results: dict[str, float], power_w: float
    ) -> None:
        """0.5 J and 0.2 J over a mean time of 2 ms are 250 and 100 W."""
        _, data = imported(cli, tmp_path, cache(a=entry(64, 600, time=2.0, **results)))
        assert data.power_samples is not None
        assert np.nanmax(data.power_samples) == power_w

    @pytest.mark.parametrize(("engine_mhz", "memory_mhz"), [(1020.0, 7001.0), (1205.0, 5001.0)])
    def test_both_clocks_must_have_been_kept(
        self, cli: Cli, tmp_path: Path, engine_mhz: float, memory_mhz: float
    ) -> None:
        """Where engine and memory clock are tuned, either may be off: 1200 and 7001 were set."""
        kept = {"time": 4.0, "core_freq": 1205.0, "mem_freq": 7001.0}
        off = kept | {"core_freq": engine_mhz, "mem_freq": memory_mhz}
        entries = {
            str(block): entry(block, 1200, nvml_mem_clock=7001, **readings)
            for block, readings in ((64, kept), (128, off))
        }
        document = cache(**entries)
        document["tune_params_keys"].append("nvml_mem_clock")
        out, data = imported(cli, tmp_path, document)
        assert "1 that ran more than 2 % off" in out
        assert data.kernels == ("gemm [block_size_x=64]",)

    def test_the_memory_clock_of_the_data_sheet_is_told(self, cli: Cli, tmp_path: Path) -> None:
        path = tmp_path / "c.json"
        path.write_text(json.dumps(cache(**GOOD)))
        err = cli.told("import", "kernel-tuner", path, "-o", tmp_path / "t.csv")
        assert "so the data sheet's is used, 7001 MHz" in err


def t4(*values: tuple[int, str], **measurement: Any) -> dict[str, Any]:
    """Results of a block size and a validity; by default of a time."""
    times = {} if measurement else {"times": {"runtimes": [1.0, 3.0, 2.0]}}
    measured = [{"name": "time", "value": 2.0, "unit": "", **measurement}]
    results = [
        {
            "configuration": {"block_size_x": block, "nvml_gr_clock": 1410},
            "invalidity": validity,
            "measurements": measured,
            **times,
        }
        for block, validity in values
    ]
    return {"results": results}


@pytest.mark.parametrize("packer", [gzip, bz2, lzma])
def test_t4(cli: Cli, tmp_path: Path, packer: Any) -> None:
    """The median of 1, 3 and 2 ms; what is not 'correct' is left out."""
    path, table = tmp_path / "convolution.json.packed", tmp_path / "t.csv"
    document = t4((32, "correct"), (64, "compile"), (128, "correct"))
    path.write_bytes(packer.compress(json.dumps(document).encode()))
    given = ("--device", "a100-sxm4-40gb", "--base", "memory=1215,cu=108")
    assert "1 configuration that failed" in cli("import", "kernel-tuner", path, *given, "-o", table)
    assert (read(table).time_ms == 2).all()
    assert len(read(table).kernels) == 2


def damaged(*keys: Any, document: Any = None) -> dict[str, Any]:
    """A good file with a word in place of what stands there."""
    content = json.loads(json.dumps(document or cache(**GOOD)))
    inner: Any = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = "?"
    return dict(content)


A_T4 = t4((600, "correct"))


@pytest.mark.parametrize(
    ("document", "given", "message"),
    [
        (t4((1, "correct")), (), "does not say the GPU, memory_mhz; give --device NAME --base"),
        (cache(**GOOD), ("--device", "gtx980"), "is of 'NVIDIA RTX A4000', which is 'rtx-a4000', "),
        ({"cache": 1}, (), "is neither a cache of kernel_tuner nor a T4 file"),
        (t4((1, "compile")), (), "none of its 1 configurations has a time"),
        (t4((1, "correct"), name="score"), (), "has a time; measured instead: score"),
        (
            cache(a=entry(64, 2100, time=1.0, core_freq=1740.0)),
            (),
            "no configuration ran at the clock that was set: 0 failed, 1 were more",
        ),
        (
            cache(a=entry(256, 600, time=4.0, nvml_power=1e400)),
            (),
            "gemm: power_w is too large for a number",
        ),
        (damaged("cache", "64,1,600"), (), "c.json: is not in"),
        (damaged("cache", "64,1,600", "times"), (), "c.json: is not in"),
        (damaged("cache", "64,1,600", "core_freq"), (), "c.json: is not in"),
        (damaged("results", 0, document=A_T4), ("--device", "rtx-a4000"), "c.json: is not in"),
    ],
)
def test_what_is_refused(
    cli: Cli, tmp_path: Path, document: Any, given: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document).replace("Infinity", "1e999"))
    base = BASE if "cache" in document or given else ()
    words = ("import", "kernel-tuner", path, *base, *given, "-o", tmp_path / "t.csv")
    assert message in cli.refused(*words)


def test_a_torn_archive_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "c.json.gz"
    path.write_bytes(gzip.compress(json.dumps(cache(**GOOD)).encode())[:60])
    words = ("import", "kernel-tuner", path, "-o", tmp_path / "t.csv")
    assert "c.json.gz: cannot be unpacked: " in cli.refused(*words)


A100 = ("--device", "a100-sxm4-40gb", "--base", "engine=1410,memory=1215")
TUNED = ("--base", "memory=7001")


@pytest.mark.parametrize(
    ("name", "given", "rows", "left_out"),
    [
        ("kernel_tuner_cache/rtxa4000_fp32_nvml_power.json", TUNED, "8 rows, with", (0, 2)),
        ("kernel_tuner_cache/rtx4000ada_vecadd_ps_energy.json", TUNED, "15 rows, with", (0, 0)),
        ("kernel_tuner_cache/rtx4000ada_gemm_trunc.json", TUNED, "127 rows, with", (17, 6)),
        ("t4_results/a100_convolution_T4.json", A100, "53 rows, without", (7, 0)),
    ],
)
def test_real_files(
    data_folder: Path, cli: Cli, tmp_path: Path, name: str, given: tuple[str, ...],
    rows: str, left_out: tuple[int, int],
) -> None:  # fmt: skip
    """17 of 150 have no numeric time, as the files' own page says; else counted by hand."""
    file = data_folder / "traces" / name
    out = cli("import", "kernel-tuner", file, *given, "-o", tmp_path / "t.csv")
    failed, off_clock = left_out
    assert f"{rows} power; left out: {failed} configurations that failed, {off_clock} that" in out


def test_a_real_file_of_scores_is_refused(data_folder: Path, cli: Cli, tmp_path: Path) -> None:
    scores = data_folder / "traces" / "t4_results" / "hyperparam_T4_no_gpu.json"
    words = ("import", "kernel-tuner", scores, *A100, "-o", tmp_path / "t.csv")
    message = cli.refused(*words)
    assert "none of its 8 configurations has a time; measured instead: score" in message


def test_what_comes_out_is_trained_and_studied(cli: Cli, tmp_path: Path) -> None:
    """Two kernels, by hand: at 1200 MHz one takes half of its time at the others, one all of it.

    Held out, each is taken for the other: 1 for 2 is 50 % off, and 2 for 1 is 100 %. No counters
    are there, so nobody who needs some stands in the study.
    """
    caches, table = [tmp_path / "gemm.json", tmp_path / "copy.json"], tmp_path / "t.csv"
    for path, slower in zip(caches, (2.0, 1.0), strict=True):
        times = {600: 4.0 * slower, 900: 4.0 * slower, 1200: 4.0}
        entries = {f"64,1,{clock}": entry(64, clock, time=time) for clock, time in times.items()}
        path.write_text(json.dumps({**cache(**entries), "kernel_name": path.stem}))
    cli("import", "kernel-tuner", *caches, *BASE, "-o", table)
    err = cli.told("train", table, "--base", "highest", "-o", tmp_path / "m.mlscale")
    assert "no counters, so the default is 'mean-surface'" in err
    rows = {
        row["predictor"]: row
        for row in cli.json("study", "errors", table, "--base", "highest")["rows"]
    }
    assert not {*rows} & {"nearest", "wu", "wu-oracle", "extra-trees"}
    assert rows["mean-surface"]["mape"] == pytest.approx(75)
