"""The tool that makes the shipped tables of locked clocks from their public files."""

import hashlib
from dataclasses import replace
from pathlib import Path

import make_headroom
import pytest
from make_headroom import DATASETS

from mlscale.data.datasets import dataset

HEADER = (
    "target_frequency_mhz,achieved_frequency_avg,memory_clock_max_mhz,lock_miss_direction,"
    "power_avg_w,bench_seconds\n"
)
SWEEP = (
    HEADER + "900,895,7301,none,80,1.8\n1500,1500,7301,none,150,1.2\n1900,1850,7301,below,169,1\n"
)
NAME = "20260910-193815_rtx3060-suite-bgemm64_sweep.csv"


def test_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By hand: 1850 MHz was not kept; 1.8 s are 1800 ms; an RTX 3060 has 28 SMs.

    Of the three sweeps two name no workload.
    """
    content = SWEEP.encode()
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / NAME).write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    parts = dict.fromkeys((NAME, "rtx3060_sweep.csv", "rtx3060-suite-7_sweep.csv"), sha256)
    entry = replace(dataset("headroom-rtx3060"), parts=parts)
    table = make_headroom.table_of(entry, tmp_path)
    said = "headroom-rtx3060: left out 2 sweeps whose file names no workload\n"
    assert capsys.readouterr().out == said
    assert (table.text["application"], table.text["kernel"]) == (["bgemm"] * 2, ["bgemm64"] * 2)
    assert {name: values.tolist() for name, values in table.numbers.items()} == {
        "cu_count": [28, 28],
        "memory_mhz": [7301, 7301],
        "engine_mhz": [900, 1500],
        "time_ms": [1800, 1200],
        "power_w": [80, 150],
        "engine_mhz_observed": [895, 1500],
    }


def test_a_file_of_another_content_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text(SWEEP + "\n")
    with pytest.raises(SystemExit, match=f"{NAME} with the right checksum is not below"):
        make_headroom.read_sweep(tmp_path, NAME, hashlib.sha256(SWEEP.encode()).hexdigest())


def test_repetitions_of_a_workload_have_its_name() -> None:
    """Of the RTX 5060 Ti one workload ran three times."""
    matches = [make_headroom.WORKLOAD.search(name) for name in dataset("headroom-rtx5060ti").parts]
    names = [match[1] + match[2] for match in matches if match]
    assert (len(names), len(set(names)), names.count("bgemm64")) == (14, 12, 3)


@pytest.mark.parametrize("mhz", [2782, 1702])
def test_the_two_readings_are_rows_of_their_table(mhz: int) -> None:
    """`layernorm` at the highest clock and at 0.6 of it, which README and demo advise on."""
    header, row = (DATASETS / f"layernorm-{mhz}.csv").read_text().splitlines()
    first, *rows = (DATASETS / "headroom-rtx5060ti.csv").read_text().splitlines()
    assert header == first
    assert row in rows
    assert f",layernorm,36,13801,{mhz}," in row
