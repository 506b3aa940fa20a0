"""DCGM's table."""

from pathlib import Path

import pytest
from synthetic.monitor_logs import load, row
from text_files import written

from mlscale.errors import DataWarning


def test_activities_are_shares_and_utilisations_percent(tmp_path: Path) -> None:
    """As DCGM gives both; all become shares, by hand."""
    text = "#Entity GRACT SMACT DRAMA GPUTL MCUTL\nID\n" + "GPU 0 0.9 0.8 0.25 95 12\n" * 2
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    read = row(load(written(tmp_path, text), base=base, time_ms=2000))
    expected = {
        "gr_engine_active": 0.9,
        "sm_active": 0.8,
        "dram_active": 0.25,
        "gpu_utilisation": 0.95,
        "memory_copy_utilisation": 0.12,
    }
    assert {name: read[name] for name in expected} == pytest.approx(expected)


def test_the_power_of_an_instant_by_dcgmis_name(tmp_path: Path) -> None:
    """dcgm_fields.cpp of DCGM 4 names the column of field 157 POWINST; watts by hand."""
    text = "#Entity GRACT POWINST SMCLK\nID W MHz\nGPU 0 1.0 200.0 1000\nGPU 0 1.0 300.0 1000\n"
    base = {"cu_count": 4, "memory_mhz": 500}
    assert row(load(written(tmp_path, text), interval_s=1.0, base=base))["power_w"] == 250


def test_rows_of_mig_instances_are_told(tmp_path: Path) -> None:
    """dcgmi dmon calls instances GPU-I and GPU-CI; the row of the whole GPU counts, by hand."""
    text = "#Entity GRACT SMCLK\nID\n" + 2 * "GPU 0 0.8 1000\nGPU-I 0 0.4 N/A\nGPU-CI 0 0.4 N/A\n"
    base = {"cu_count": 4, "memory_mhz": 500}
    with pytest.warns(DataWarning, match="left out: 4 lines of MIG instances"):
        imported = load(written(tmp_path, text), interval_s=1.0, base=base)
    assert row(imported)["gr_engine_active"] == 0.8
