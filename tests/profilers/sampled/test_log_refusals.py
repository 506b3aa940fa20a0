"""Monitors' logs that cannot be read, or are none: one line that says what to do."""

from pathlib import Path
from typing import Any

import pytest
from synthetic.exports import long_page, read
from synthetic.monitor_logs import FACTS, PERIOD_S, dcgmi_dmon, load, query, row
from synthetic.monitor_readings import Reading, block, together
from text_files import written

from mlscale.errors import InputError
from mlscale.profilers import import_exports
from mlscale.profilers.sampled import RunFacts, import_logs, log_format
from mlscale.profilers.sampled.formats import FORMATS


def test_gpus_that_cannot_be_told_apart_are_refused(tmp_path: Path) -> None:
    ticks = together(block(1, 9, 1), block(1, 9, 1, gpu=1))
    path = written(tmp_path, query(ticks, PERIOD_S, index=False))
    with pytest.raises(InputError, match="is of several GPUs that cannot be told apart"):
        load(path)
    path = written(tmp_path, query(block(1, 9, 1), PERIOD_S, index=False))
    assert row(load(path))["power_w"] == 200


@pytest.mark.parametrize(
    ("uses", "end"),
    [
        (
            "0.99 0.99 0.99",
            "0.0099, the GPU is idle, unless shares of 1 stand where percent belong",
        ),
        ("0.5 0.97 1", "0.01, the GPU is idle, unless shares of 1 stand where percent belong"),
        ("1 1 1", "0.01, the GPU is idle"),
    ],
)
def test_shares_where_percent_belong_look_idle(tmp_path: Path, uses: str, end: str) -> None:
    """By hand: 0.99 % is 0.0099; a whole percent is what an idle GPU's monitor prints."""
    rows = "".join(f"{second}.0,300,{use}\n" for second, use in enumerate(uses.split()))
    path = written(tmp_path, f"timestamp,power.draw,utilization.gpu\n{rows}")
    with pytest.raises(InputError, match=f"{end}$"):
        load(path)


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        (
            "Made GPU",
            "1.98 MHz cannot be, no GPU has less than 10; give it in MHz",
        ),
        ("NVIDIA H100 80GB HBM3", "1.98 MHz cannot be, .* has at most 1980; give it in MHz"),
    ],
)
def test_clocks_in_ghz_are_refused_as_they_stand(tmp_path: Path, gpu: str, said: str) -> None:
    """By hand: the unrounded mean of the log's own column, which no --base said."""
    rows = "".join(f"{second}.0,{gpu},300,1.98,{90 * (second > 0)}\n" for second in range(4))
    names = "timestamp,name,power.draw,clocks.current.sm,utilization.gpu"
    path = written(tmp_path, f"{names}\n{rows}")
    with pytest.raises(InputError, match=f"GPU 0: engine_mhz: {said}"):
        load(path, device=None)


def test_shares_of_dcgm_are_shares(tmp_path: Path) -> None:
    """Its 0.0099 is of 1, and an idle GPU's."""
    path = written(tmp_path, dcgmi_dmon([[Reading(0.0099, 300, 1410)]] * 4))
    with pytest.raises(InputError, match=r"gr_engine_active is at most 0.0099, the GPU is idle$"):
        load(path)


def test_each_format_has_a_title_of_its_own() -> None:
    titles = [form.title for form in FORMATS]
    assert len(set(titles)) == len(titles)


def test_a_header_that_is_not_its_own_is_refused(tmp_path: Path) -> None:
    text = "timestamp, utilization.gpu [%], power.draw [W]\n2026/02/03 10:00:00.000, 250.1, 90\n"
    with pytest.raises(InputError, match=r"row 2, column 'utilization.gpu': '250.1' cannot be"):
        load(written(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n\n=== ROCm ===\n", "holds no log that mlscale knows; it begins with '=== ROCm ==='"),
        ("kernel,time\na,1\n", "holds no log that mlscale knows; it begins with 'kernel,time'"),
        ("#Entity GRACT\nID\n", "has a header of dcgmi dmon but no samples"),
        ("#Entity GRACT\nID\nGPU-I 0 0.5\n", "no samples of a whole GPU"),
        ("#Entity GRACT\nID\nGPU 0 abc\nGPU 0 0.5\n", "row 3, column 'GRACT': 'abc' is not a num"),
        ("# gpu pwr sm\n# Idx W %\n 0 - -\n", "has neither activity nor power"),
        ("#Time gpu sm\n#HH:MM:SS Idx %\n 10.00 0 5\n", "row 3, column 'Time': '10.00' is no time"),
        ("power.draw [W], timestamp\n3 W, noon\n", "'noon' is no time such as"),
        ("#Entity GRACT\nID\nGPU 0\nGPU 0 0.5\n", "row 3: has 1 fields, the header has 2"),
        ("timestamp,power.draw\n1790000000000,5\n", "'1790000000000' is no time such as 2024/"),
    ],
)  # fmt: skip
def test_bad_logs_are_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load(written(tmp_path, text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("2026/02/03 10:00:00.000, 0, 90 %, 200 W\n", "the names: record without 'noheader'"),
        ("index;power.draw [W]\n0;200,5 W\n", "has semicolons, as a spreadsheet saves it"),
        ("# gpu pid type sm\n# Idx # C/G %\n 0 7 C 92\n 0 8 C -\n", "is of nvidia-smi pmon"),
        ("0, GPU-0123abcd-0123-4567-89ab-0123456789ab, 99, 300.5\n", "the names: record without"),
        ("NVIDIA H100 NVL, 99 %, 300.50 W\n", "the names: record without 'noheader'"),
        ("0, 00000000:3B:00.0, 99, 300.5\n", "the names: record without 'noheader'"),
        (
            "Mon May  4 10:00:00 2026\n+---+\n| NVIDIA-SMI 581.29 |\n",
            "tells of a moment; record nv",
        ),
        (
            "\n==============NVSMI LOG==============\n",
            "tells of a moment; record nvidia-smi --query",
        ),
        ('<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "a">\n', "tells of a moment"),
        ("timestamp,project_name,run_id,duration,gpu_power\n", "codecarbon sums a run up"),
        (
            "Dumping to -, line limit 1.\n1700000000.5: bus 03, gpu 90.00%, sclk 99.00% 2.4ghz\n",
            "radeontop tells no power: log the run with rocm-smi or amd-smi",
        ),
        ('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 90\n', r"ask Prometheus for .* JSON \(query_range\)"),
        ('{"card0": {"GPU use (%)": "10"}}', "the CSV is read: log the run with --csv"),
        ("GPU[0]\t\t: GPU use (%): 90\n", "the CSV is read: log the run with --csv"),
        ("GPU: 0\n    POWER:\n", "the CSV is read: log the run with --csv"),
        ("GPU  POWER   GFX_CLK\n0 300 W 1900 MHz\n", "the CSV is read: log the run with --csv"),
        ("RAM 4/8MB (lfb 1x1MB) GR3D_FREQ 45%\n", "tegrastats is not read; give a CSV"),
        ("# HELP gpu_nodes_total Number of GPUs\n", "log the run with nvidia-smi or amd-smi"),
        ("timestamp,gpu_0_power,gpu_0_clock\n1.5,300,1980\n", "a log of your own is read once"),
        ("Time,GPU 0\n1.5,300\n", "a log of your own is read once"),
        ("_time,gpu_power\n1.5,300\n", "a log of your own is read once"),
        ("timestamp,device,gpu_use_percent\n15,card0,0\n", "a log of your own is read once"),
        ("size,time_ms,power_w\n1,2,3\n", "docs/sampled-logs.md"),
    ],
)
def test_what_makes_a_log_of_a_file_near_to_one(tmp_path: Path, text: str, mend: str) -> None:
    path = written(tmp_path, text)
    assert log_format(path) is None
    with pytest.raises(InputError, match=rf"holds no log that mlscale knows; .*{mend}"):
        import_logs([path])
    with pytest.raises(InputError, match=rf"holds no table that mlscale knows; .*{mend}"):
        import_exports([path])


def test_a_line_further_below_says_nothing_of_the_file(tmp_path: Path) -> None:
    """The table of nvidia-smi in the sixth line, as a long report of something else has it."""
    path = written(tmp_path, "a report\n" * 5 + "| NVIDIA-SMI 581.29 |\n")
    pages = {import_logs: "docs/sampled-logs.md", import_exports: "docs/profiling.md"}
    for read_it, page in pages.items():
        with pytest.raises(InputError, match=rf"begins with 'a report'; (see )?{page}"):
            read_it([path])


def test_what_a_program_prints_above_an_export_hides_it_not(tmp_path: Path) -> None:
    """The table of nvidia-smi, which many job scripts print first."""
    above = "| NVIDIA-SMI 581.29 |\n0, GPU-0123abcd-0123-4567-89ab-0123456789ab, 99\n"
    assert read(tmp_path, long_page(before=above)).launches == 1


def test_a_value_beyond_all_measure_is_refused(tmp_path: Path) -> None:
    """A clock of 1e300 MHz, whose sums are no numbers any more."""
    rows = "".join(f"{1786553852 + n},0,90,300,1e300,1300\n" for n in range(4))
    head = "timestamp,gpu,gfx_activity,socket_power,gfx_0_clk,mem_0_clk\n"
    with pytest.raises(InputError, match=r"column 'gfx_0_clk': '1e300' cannot be"):
        load(written(tmp_path, head + rows))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"base": 5}, r"the base 5 is none; it may say cu_count, engine_mhz, memory_mhz, each by"),
        ({"base": {"engine": 5}}, r"the base \{'engine': 5\} is none"),
        ({"time_ms": "long"}, "time_ms must be a positive number, not long"),
        ({"interval_s": 0}, "interval_s must be a positive number, not 0"),
    ],
)
def test_what_is_said_of_a_run_must_be_possible(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        RunFacts(**facts)


def test_logs_of_two_tools_are_refused(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, query(block(0, 3, 0)), "a.csv"),
        written(tmp_path, dcgmi_dmon(block(0, 3, 0)), "b.txt"),
    ]
    with pytest.raises(InputError, match=r"b.txt: is of dcgm, .*a.csv of nvidia-smi; import one"):
        import_logs(paths, None, RunFacts(**FACTS))
    with pytest.raises(InputError, match=r"is of dcgmi dmon; import it with 'import dcgm' or"):
        import_logs(paths[1:], "nvidia-smi", RunFacts(**FACTS))


@pytest.mark.parametrize(
    ("clocks", "message"),
    [
        (
            "1410 1593",
            "GPU 0: memory_mhz: 1593 MHz cannot be, 'a100-sxm4-40gb' has at most 1215; if",
        ),
        (
            "1980 1215",
            "GPU 0: engine_mhz: 1980 MHz cannot be, 'a100-sxm4-40gb' has at most 1410; is",
        ),
    ],
)
def test_a_clock_that_the_gpu_cannot_have_is_refused(
    tmp_path: Path, clocks: str, message: str
) -> None:
    """The device table: an A100 SXM4 40 GB offers 210 to 1410 MHz, and 1215 MHz of memory."""
    path = written(tmp_path, "#Entity GRACT SMCLK MMCLK\nID\n" + f"GPU 0 0.5 {clocks}\n" * 3)
    with pytest.raises(InputError, match=message):
        import_logs([path], None, RunFacts(device="a100-sxm4-40gb", interval_s=0.1))


def test_a_field_that_never_ends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text("timestamp, index, power.draw [W]\n" + "x" * 200_000 + "\n")
    with pytest.raises(InputError, match="row 2: is not valid CSV: field larger than"):
        import_logs([path])
