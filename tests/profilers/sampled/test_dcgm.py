"""DCGM's own forms: scrapes of its exporter, and one field a row."""

from pathlib import Path

import pytest
from synthetic.monitor_logs import load, row
from synthetic.monitor_readings import MEMORY_MHZ
from text_files import written

from mlscale.errors import DataWarning, InputError
from mlscale.profilers.sampled import RunFacts, import_logs


def test_two_metrics_of_power_are_of_one_scrape(tmp_path: Path) -> None:
    """By hand: three scrapes of DCGM's averaged power, with the instant's beside it."""
    lines = []
    for power_w in (100, 200, 300):
        lines += [
            f'DCGM_FI_DEV_POWER_USAGE_INSTANT{{gpu="0"}} {power_w + 7}',
            f'DCGM_FI_DEV_POWER_USAGE{{gpu="0"}} {power_w}',
            'DCGM_FI_DEV_GPU_UTIL{gpu="0"} 90',
        ]
    path = written(tmp_path, "\n".join(lines) + "\n")
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    imported = load(path, interval_s=2.0, base=base)
    assert imported.spans[0].samples == 3
    assert row(imported)["power_w"] == pytest.approx(200)
    assert row(imported)["time_ms"] == pytest.approx(6000)


SHARES = {
    "dcgmi": "#Entity GRACT SMACT DRAMA GPUTL MCUTL\nID\n" + "GPU 0 0.9 0.8 0.25 95 12\n" * 2,
    "exporter": """DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0"} 0.9
DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 0.8
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0"} 0.25
DCGM_FI_DEV_GPU_UTIL{gpu="0"} 95
DCGM_FI_DEV_MEM_COPY_UTIL{gpu="0"} 12
""",
    "SDK": "GPUId,TimeStampUs,Field,Value\n"
    + "".join(
        f"0,{microseconds},{reading}\n"
        for microseconds in (0, 1_000_000)
        for reading in (
            *("gr_engine_active,0.9", "sm_active,0.8", "dram_active,0.25"),
            *("gpu_utilization,95", "mem_copy_utilization,12"),
        )
    ),
}


@pytest.mark.parametrize("form", SHARES)
def test_activities_are_shares_and_utilisations_percent(tmp_path: Path, form: str) -> None:
    """As DCGM gives both, whatever writes them; all become shares, by hand."""
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    read = row(load(written(tmp_path, SHARES[form]), base=base, time_ms=2000))
    expected = {
        "gr_engine_active": 0.9,
        "sm_active": 0.8,
        "dram_active": 0.25,
        "gpu_utilisation": 0.95,
        "memory_copy_utilisation": 0.12,
    }
    assert {name: read[name] for name in expected} == pytest.approx(expected)


def test_pods_that_share_a_gpu_are_of_one_scrape(tmp_path: Path) -> None:
    """By hand: three scrapes, one each 15 s, of two GPUs with two pods each: 45 s, not more."""
    lines = [
        f'{metric}{{gpu="{gpu}",pod="{pod}"}} {value}'
        for power_w in (100, 200, 300)
        for metric, value in (("DCGM_FI_DEV_GPU_UTIL", 90), ("DCGM_FI_DEV_POWER_USAGE", power_w))
        for gpu in (0, 1)
        for pod in ("a", "b")
    ]
    path = written(tmp_path, "\n".join(lines) + "\n")
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    imported = load(path, interval_s=15.0, base=base)
    assert [span.samples for span in imported.spans] == [3, 3]
    assert imported.table.numbers["time_ms"].tolist() == [45_000, 45_000]
    assert imported.table.numbers["power_w"].tolist() == [200, 200]


def test_one_metric_alone_is_told_apart_by_its_labels(tmp_path: Path) -> None:
    """By hand: three scrapes of two GPUs, each a line for each GPU."""
    lines = [
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="{gpu}"}} {percent}'
        for percent in (80, 90, 100)
        for gpu in (0, 1)
    ]
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    imported = load(written(tmp_path, "\n".join(lines) + "\n"), interval_s=15.0, base=base)
    assert [span.samples for span in imported.spans] == [3, 3]


PODS_IN_TURN = [f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",pod="{pod}"}} 90\n' for pod in "aabbb"]


@pytest.mark.parametrize("above", ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n", "DCGM_FI_DEV_X{} 1\n"])
def test_pods_that_come_one_after_the_other_are_of_a_scrape_each(
    tmp_path: Path, above: str
) -> None:
    """By hand: five scrapes of one metric, each below a line that is none of it; 5 x 15 s."""
    path = written(tmp_path, above + above.join(PODS_IN_TURN))
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    imported = load(path, interval_s=15.0, base=base)
    assert imported.spans[0].samples == 5
    assert row(imported)["time_ms"] == 75_000


def test_pods_without_a_line_between_them_are_told(tmp_path: Path) -> None:
    """By hand: b below a, which may be of a's scrape; of the five lines four count."""
    path = written(tmp_path, "".join(PODS_IN_TURN))
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    with pytest.warns(DataWarning, match="left out: 1 line as of further pods on the same GPU; if"):
        imported = load(path, interval_s=15.0, base=base)
    assert imported.spans[0].samples == 4


@pytest.mark.parametrize("order", ["by time", "by metric"])
def test_lines_with_a_time_need_no_interval(tmp_path: Path, order: str) -> None:
    """By hand, in the text format of Prometheus: five samples 15 s apart, three of them busy.

    The second is given twice, as where Prometheus is asked more often than it scrapes.
    """
    readings = {
        "DCGM_FI_DEV_GPU_UTIL": (0, 90, 100, 95, 0),
        "DCGM_FI_DEV_POWER_USAGE": (70, 400, 500, 600, 70),
        "DCGM_FI_DEV_SM_CLOCK": (345, 1200, 1250, 1300, 345),
    }
    by_metric = [
        f'{metric}{{gpu="0"}} {values[k]} {1_700_000_000_000 + 15_000 * k}'
        for metric, values in readings.items()
        for k in (0, 1, 1, 2, 3, 4)
    ]
    lines = by_metric if order == "by metric" else sorted(by_metric, key=lambda line: line[-13:])
    base = {"cu_count": 4, "memory_mhz": 500}
    imported = load(written(tmp_path, "\n".join(lines) + "\n"), base=base)
    values = row(imported)
    assert (values["time_ms"], values["power_w"], values["engine_mhz"]) == (45_000, 500, 1250)


def test_the_power_of_an_instant_by_dcgmis_name(tmp_path: Path) -> None:
    """dcgm_fields.cpp of DCGM 4 names the column of field 157 POWINST; watts by hand."""
    text = "#Entity GRACT POWINST SMCLK\nID W MHz\nGPU 0 1.0 200.0 1000\nGPU 0 1.0 300.0 1000\n"
    base = {"cu_count": 4, "memory_mhz": 500}
    assert row(load(written(tmp_path, text), interval_s=1.0, base=base))["power_w"] == 250


def test_a_line_without_labels_leaves_the_gpus_name(tmp_path: Path) -> None:
    text = (
        'DCGM_FI_DEV_GPU_UTIL{gpu="0",modelName="NVIDIA A100-SXM4-40GB"} 90\n'
        'DCGM_FI_DEV_SM_CLOCK{gpu="0"} 1200\nDCGM_FI_DEV_MEM_CLOCK{gpu="0"} 1215\n'
    )
    imported = load(written(tmp_path, text), device=None, base={}, time_ms=5.0)
    assert imported.table.text["device"] == ["a100-sxm4-40gb"]


def test_lines_of_mig_instances_are_told(tmp_path: Path) -> None:
    """The clock is the whole GPU's, the activity a slice's."""
    labels = 'gpu="0",GPU_I_PROFILE="3g.40gb",GPU_I_ID="1"'
    text = (
        f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{labels}}} 0.9\n"
        'DCGM_FI_DEV_SM_CLOCK{gpu="0"} 1200\nDCGM_FI_DEV_POWER_USAGE{gpu="0"} 200\n'
    )
    with (
        pytest.warns(DataWarning, match="left out: 1 line of MIG instances"),
        pytest.raises(InputError, match="power is all that tells busy from idle"),
    ):
        load(written(tmp_path, text), time_ms=5.0)


def test_rows_of_mig_instances_are_told(tmp_path: Path) -> None:
    """dcgmi dmon calls instances GPU-I and GPU-CI; the row of the whole GPU counts, by hand."""
    text = "#Entity GRACT SMCLK\nID\n" + 2 * "GPU 0 0.8 1000\nGPU-I 0 0.4 N/A\nGPU-CI 0 0.4 N/A\n"
    base = {"cu_count": 4, "memory_mhz": 500}
    with pytest.warns(DataWarning, match="left out: 4 lines of MIG instances"):
        imported = load(written(tmp_path, text), interval_s=1.0, base=base)
    assert row(imported)["gr_engine_active"] == 0.8


def test_a_field_without_a_value_takes_none_from_another_of_its_meaning(tmp_path: Path) -> None:
    """Both fields are board power [W]; the second lacks, and 100 W were lost by it."""
    fields = {"power_usage": 100, "power_usage_instant": 2147483633, "sm_clock": 1000,
              "memory_clock": MEMORY_MHZ, "gr_engine_active": 1}  # fmt: skip
    rows = [f"0,{s}000000,{name},{value}" for s in (1, 2) for name, value in fields.items()]
    path = tmp_path / "run.csv"
    path.write_text("\n".join(["GPUId,TimeStampUs,Field,Values", *rows]) + "\n")
    table = import_logs([path], facts=RunFacts(device="made", base={"cu_count": 4})).table
    assert table.numbers["power_w"].tolist() == [100]
