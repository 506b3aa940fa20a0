"""Monitors' logs: each tool's form, the busy span, and the row of a profile that it becomes."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic.tidy import refused
from text_files import written

from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError
from mlscale.readers.busy_span import busy_span, mean_of
from mlscale.readers.given import Given
from mlscale.readers.log_table import samples_to_table
from mlscale.readers.monitor import read_log

QUIET = pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
MADE = Given("made-gpu", {"cu_count": 4, "memory_mhz": 1215})


def table_of(path: Path, given: Given = MADE) -> Table:
    return samples_to_table(read_log(path), given)


def row(table: Table, position: int = 0) -> dict[str, float]:
    return {name: float(values[position]) for name, values in table.numbers.items()}


# The same run in every form, made by hand: one sample a second, idle (50 W, 210 MHz), then at work
# with 200 W and 1400 MHz, 300 W and 1410 MHz, 80 and 90 %, then idle. So two samples, 2000 ms, 250
# W, 1405 MHz, 85 %.
METRICS = {"GPU_UTIL": [0, 80, 90, 0], "POWER_USAGE": [50, 200, 300, 50],
           "SM_CLOCK": [210, 1400, 1410, 210], "MEM_CLOCK": [1215] * 4}  # fmt: skip


def series(metric: str, values: list[Any], **labels: str) -> dict[str, Any]:
    of = {"__name__": f"DCGM_FI_{metric}", "gpu": "0", "Hostname": "n1", **labels}
    return {"metric": of, "values": [[1_700_000_000 + k, str(v)] for k, v in enumerate(values)]}


def answer(*result: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


RUN = [series(f"DEV_{metric}", values) for metric, values in METRICS.items()]
HOURS = ("23:59:58", "23:59:59", "00:00:00", "00:00:01")
DATES = [f"2026/02/0{3 + n // 2} {hour}.500" for n, hour in enumerate(HOURS)]


def run_in(header: str, line: str, **others: Sequence[object]) -> str:
    """The run: a header, and lines with {watts}, {mhz}, {use}, {date}, {hour}, {n}, and others."""
    columns = {"watts": METRICS["POWER_USAGE"], "mhz": METRICS["SM_CLOCK"], "date": DATES,
               "use": METRICS["GPU_UTIL"], "hour": HOURS, "n": range(4), **others}  # fmt: skip
    return header + "".join(
        line.format(**dict(zip(columns, cells, strict=True)))
        for cells in zip(*columns.values(), strict=True)
    )


DMON = (
    "# Time       gpu    pwr  gtemp     sm    mem   mclk   pclk \n"
    "# HH:MM:SS   Idx      W      C      %      %    MHz    MHz \n"
)
DCGMI = "#Entity   GPUTL   POWER   SMCLK   MMCLK\nID                 W\n"
FORMS: dict[str, tuple[str, str]] = {
    "query": ("nvidia-smi", run_in(
        "timestamp, index, power.draw [W], clocks.current.sm [MHz], clocks.current.memory [MHz], "
        "utilization.gpu [%]\n", "{date}, 0, {watts}.00 W, {mhz} MHz, 1215 MHz, {percent}\n",
        percent=["0 %", "80 %", "90 %", "[N/A]"])),
    "query without units, several powers": ("nvidia-smi", run_in(
        "power.draw.average [W], power.draw.instant [W], clocks.sm [MHz], clocks.mem [MHz], "
        "utilization.gpu [%], timestamp\n", "{average}, {instant}, {mhz}, 1215, {use}, {date}\n",
        average=[9, 200, 9, 9], instant=[50, "[Not Supported]", 300, 50])),
    "own script, saved by pandas": ("nvidia-smi", run_in(
        ",pid,power.draw,clocks.current.sm,clocks.current.memory,utilization.gpu,epoch\n",
        "{n},7,{watts},{mhz},1215,{use},{quote}174063170{n}.75{quote}\n", quote=['"', *[""] * 3])),
    "dmon past midnight": ("nvidia-smi", run_in(
        DMON, " {hour}     0    {watts}      -     {use}      -   1215    {mhz} \n{again}",
        again=["", DMON, "", ""])),
    "dmon as CSV with dates": ("nvidia-smi", run_in(
        "#Date, Time, gpu, pwr, sm, mclk, pclk\n#YYYYMMDD, HH:MM:SS, Idx, W, %, MHz, MHz\n",
        "2026020{day}, {hour}, 0, {watts}, {use}, 1215, {mhz}\n", day=[3, 3, 4, 4])),
    "dcgmi": ("dcgm", run_in(
        DCGMI, "GPU 0     {percent}      {watts}     {mhz}    1215\n{again}",
        percent=[0, 80, 90, "N/A"],
        again=["", f"\n{DCGMI}", "GPU-I 0   N/A     9       9       9\n", ""])),
    "Prometheus": ("dcgm", answer(*RUN)),
    "rocm-smi": ("rocm-smi", run_in(
        "",
        "WARNING: AMD GPU device(s) is/are in a low-power state.\n"
        "device,Card Series,Average Graphics Package Power (W),GPU use (%),mclk clock speed:,"
        "sclk clock speed:\ncard0,Made GPU,{watts},{use},(1215Mhz),({mhz}Mhz)  \n\n")),
    "amd-smi metric, of two dies": ("amd-smi", run_in(
        "timestamp,gpu,gfx_activity,vcn,socket_power,gfx_0_clk,gfx_1_clk,gfx_2_clk,mem_0_clk\n",
        "178655385{n},0,{use},{vcn},{watts},{dies},N/A,1215\n{blank}",
        vcn=["\"['N/A', 'N/A']\"", *["N/A"] * 3], blank=["", "\n", "", ""],
        dies=["N/A,N/A", "1390,1410", "1400,1420", "210,210"])),
    "amd-smi monitor": ("amd-smi", run_in(
        "timestamp,gpu,xcp,power_usage,gfx_clk,gfx,mem_clock,vram_used\n",
        "178655385{n},0,0,{watts},{mhz},{use},1215,285\n")),
}  # fmt: skip
WITHOUT_TIMES = ("dcgmi", "rocm-smi")


@pytest.mark.parametrize("form", FORMS)
@QUIET
def test_a_run_is_the_same_row_in_every_form(tmp_path: Path, form: str) -> None:
    tool, text = FORMS[form]
    path = written(tmp_path, f"$ the command that was run\n{text}" if text[0] != "{" else text)
    given = MADE
    if form in WITHOUT_TIMES:
        with pytest.raises(InputError, match=r"give interval_s=SECONDS \(between two samples\)$"):
            table_of(path)
        given = replace(MADE, interval_s=1.0)
    if form == "rocm-smi":
        given = replace(given, device=None)
    table = table_of(path, given)
    assert table.metadata["counter_tool"] == tool
    assert table.metadata["working_ms"] == {"run": 2000}
    expected = {"cu_count": 4, "engine_mhz": 1405, "memory_mhz": 1215, "time_ms": 2000,
                "power_w": 250, "gpu_utilisation": 0.85}  # fmt: skip
    assert row(table) == pytest.approx(expected, rel=1e-9)


def test_shares_of_dmon_are_in_percent(tmp_path: Path) -> None:
    """Made, with --gpm-metrics 1,2,3,5,10,11,12,13; the first reading has none of them."""
    text = (
        "# gpu  sm  mem  gract  smutil  smocc  mmaact  dram  fp64  fp32  fp16\n"
        "# Idx   %    %  GPM:%   GPM:%  GPM:%   GPM:% GPM:% GPM:% GPM:% GPM:%\n"
        "    0  99   40      -       -      -       -     -     -     -     -\n"
        "    0  99   40     98      80     50      40    30     1     2     3\n"
    )
    given = replace(MADE, base={**MADE.base, "engine_mhz": 1000}, time_ms=9.0)
    values = row(table_of(written(tmp_path, text), given))
    assert values["time_ms"] == 9
    shares = {"gr_engine_active": 0.98, "sm_active": 0.8, "sm_occupancy": 0.5, "fp64_active": 0.01,
              "tensor_active": 0.4, "dram_active": 0.3, "fp32_active": 0.02, "fp16_active": 0.03,
              "gpu_utilisation": 0.99, "memory_copy_utilisation": 0.4}  # fmt: skip
    assert {name: values[name] for name in shares} == pytest.approx(shares)


A100 = {"cu_count": 108, "memory_mhz": 1215}
# Of real files, numbers by awk: means of a column over the lines named here, which a tenth of the
# column's highest value picks out. What is given, and what the rows hold.
DOCS = Path(__file__).parents[2] / "docs"
REAL: dict[str, tuple[dict[str, Any], dict[str, float]]] = {
    # Lines 61 to 261: 167 samples of 0.1 s.
    "traces/dcgmi_dmon/a100_bfs_1005.txt": (
        {"device": "a100-sxm4-40gb", "interval_s": 0.1, "base": A100},
        {"time_ms": 16700, "engine_mhz": 1005, "memory_mhz": 1215, "power_w": 103.551,
          "gr_engine_active": 0.388754, "sm_active": 0.168946, "dram_active": 0.0308204},
    ),
    # Lines 91 to 1990, from 11:16:58.590 to 11:33:20.896, and a sample of 0.103 s; a gap inside.
    "traces/nvidia_smi_query/a100_falcon7b.csv": (
        {"device": "a100-sxm4-40gb", "base": {**A100, "engine_mhz": 1410}},
        {"time_ms": 982_306 + 103, "power_w": 131.962, "gpu_utilisation": 0.840237},
    ),
    # Line 65 to the end, 02:24:41.678 to 02:25:36.486, and 0.109 s; 497 of 502 at 8001 MHz.
    "traces/nvidia_smi_query/laptop_gpu_nounits.csv": (
        {"device": "laptop", "base": {"cu_count": 20}},
        {"time_ms": 54_808 + 109, "engine_mhz": 1872, "memory_mhz": 8001, "power_w": 69.6203},
    ),
    # Power alone, from 18.81 W, the 95th percentile 106.6: lines 30 to 53, 15:59:00.684 to
    # 15:59:02.988, of 62.7 W or more, and 0.1 s.
    "traces/nvidia_smi_query/rtxa4500_power_only.csv": (
        {"device": "a4500", "base": {"cu_count": 56, "engine_mhz": 1600, "memory_mhz": 8001}},
        {"time_ms": 2304 + 100, "engine_mhz": 1600, "power_w": 83.1658},
    ),
    # The one row; power.draw.instant, not power.draw.
    "traces/nvidia_smi_query/h100_all_fields_load.csv": (
        {"time_ms": 10},
        {"cu_count": 132, "time_ms": 10, "engine_mhz": 1980, "memory_mhz": 2619,
          "power_w": 625.68, "gpu_utilisation": 1.0, "memory_copy_utilisation": 0.11},
    ),
    "traces/nvidia_smi_dmon/h100_load.txt": (
        {"interval_s": 1, "device": "h100-sxm5"},
        {"time_ms": 5000, "engine_mhz": 1980, "memory_mhz": 2619, "power_w": 633.6},
    ),
    # GPU 0 has 5 % at first, so is idle; the others begin then. All eight draw 985, 1499, 1933 W.
    "traces/nvidia_smi_dmon/h800x8.txt": (
        {"interval_s": 5, "device": "h800", "base": {"cu_count": 132}},
        {"time_ms": 15_000, "power_w": (985 + 1499 + 1933) / 3, "gpu_count": 8},
    ),
    # A script's own columns before and between nvidia-smi's: all five rows, 4.2541 s and 1.0611.
    "cases/1-first-column-unknown.csv": (
        {"device": "rtx3090", "base": {"memory_mhz": 9501}},
        {"time_ms": 5315.1996, "engine_mhz": 1683, "power_w": 121.6248},
    ),
    # By hand, samples 4 to 9: POWER, and SMCLK but for the idle seventh.
    f"{DOCS}/logs/gemm-dcgmi.txt": (
        {"device": "a100-sxm4-40gb", "interval_s": 0.1, "base": A100},
        {"power_w": (231.4 + 292.7 + 298.1 + 261.5 + 297.9 + 289.3) / 6, "engine_mhz": 1404},
    ),
    # Lines 3 and 4, a second apart.
    "cases/6-rocm-smi-epoch-column.csv": (
        {},
        {"cu_count": 104, "time_ms": 2000, "engine_mhz": 1695, "memory_mhz": 1600, "power_w": 280,
          "memory_copy_utilisation": 0.35},
    ),
}  # fmt: skip


@QUIET
@pytest.mark.parametrize("name", REAL)
def test_a_real_log_gives_the_means_of_its_busy_span(data_folder: Path, name: str) -> None:
    given, expected = REAL[name]
    table = table_of(data_folder / name, Given(**given))
    assert len(table) == 1
    assert row(table) == pytest.approx(row(table) | expected, rel=1e-5)


IDLE = "has no busy span: gpu_utilisation is at most 0, so the GPU was idle"
REFUSED = {
    "dcgmi_dmon/h800_pcie_na.txt": "has no reading of activity or power; record",
    "nvidia_smi_dmon/h100_idle.txt": IDLE,
    "rocm_smi_csv/rx7900xtx_x3.csv": IDLE,
    "amd_smi_metric_csv/mi355x_x8_metric_head.csv": IDLE,
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_real_log_of_an_idle_gpu_is_refused(data_folder: Path, name: str) -> None:
    with refused(REFUSED[name]):
        table_of(data_folder / "traces" / name)


def test_pauses_of_a_log_of_power_alone_are_told(data_folder: Path) -> None:
    """The busy span is 312 samples, 1595 s of 364.7 W; 198 are below half way, by awk.

    Half way is (152 + 686) / 2 = 419 W; 686 is the median of those above half of the 95th
    percentile, 694, as fewer than half of the span are above (152 + 694) / 2 = 423 W. 160 of
    them are below 200 W, which is the count without the ramps and the low work between.
    """
    path = data_folder / "cases/4-mi300x-power-only-pauses.csv"
    given = Given("mi300x", {"engine_mhz": 2100, "memory_mhz": 1300})
    with pytest.warns(DataWarning, match=r"198 of 312 samples of .* idle \(busy: power is 419 W"):
        table = table_of(path, given)
    values = row(table)
    assert (values["time_ms"], values["power_w"]) == pytest.approx((1_595_000, 364.6859), rel=1e-6)
    [idle_ms] = table.metadata["idle_ms"].values()
    assert idle_ms == 198 * 5_000


@QUIET
def test_one_spike_does_not_cut_a_run_of_power_alone(tmp_path: Path) -> None:
    """Made: 5 s idle at 50 W, 20 s at 110 W with one of 220 W, 5 s idle; the middle was 135 W."""
    watts = [50] * 5 + [110] * 9 + [220] + [110] * 10 + [50] * 5
    text = "timestamp,power_w\n" + "".join(f"{n},{w}\n" for n, w in enumerate(watts))
    [log] = read_log(written(tmp_path, text))
    assert busy_span(log).time_ms == 20_000


@QUIET
def test_spikes_do_not_cut_a_real_run_of_power_alone(data_folder: Path) -> None:
    """By eye: idle at 52 W, 22 samples of 84 W and more a second apart, five of them 136 to 208."""
    [log] = read_log(data_folder / "servers-real/climatik/power-1380mhz.csv")
    span = busy_span(log)
    assert (span.first, span.last, span.idle) == (7, 28, 0)


@pytest.mark.filterwarnings("ignore:.*time is 'timestamp'")
def test_a_utilisation_of_0_beside_power_is_a_dead_counter(tmp_path: Path) -> None:
    """Made: at work for 3 of 6 s at 130 W, by a counter that says 0 throughout."""
    rows = "".join(f"{n},{watts},0\n" for n, watts in enumerate((30, 130, 130, 130, 30, 30)))
    with pytest.warns(DataWarning, match="utilisation is 0 throughout, though it draws 130 W"):
        [log] = read_log(written(tmp_path, f"timestamp,power_w,util_pct\n{rows}"))
    assert busy_span(log).time_ms == 3000


# Power alone, in every form: the header, and the line of a sample, of so many watts.
POWERS = {
    "query": ("timestamp, index, power.draw [W]\n", "{second}, 0, {watts} W\n"),
    "own script": ("power.draw,run,timestamp\n", "{watts},a,{second}\n"),
    "dmon": ("# gpu  pwr  sm\n# Idx  W  %\n", "    0  {watts}  -\n"),
    "dcgmi": ("#Entity  POWER\nID  W\n", "GPU 0  {watts}\n"),
    "rocm-smi": ("epoch,device,Average Graphics Package Power (W)\n", "{second},card0,{watts}\n"),
    "amd-smi metric": ("timestamp,gpu,socket_power\n", "{second},0,{watts}\n"),
    "amd-smi monitor": ("timestamp,gpu,power_usage\n", "{second},0,{watts}\n"),
    "Prometheus": ("", ""),
}


@pytest.mark.parametrize("form", POWERS)
def test_pauses_that_power_alone_tells_are_told_in_every_form(tmp_path: Path, form: str) -> None:
    """At work for 2 of 12 samples: between them is a pause of 10."""
    watts = [50, 300, *[60] * 10, 300, 50]
    header, line = POWERS[form]
    text = header + "".join(line.format(watts=w, second=n) for n, w in enumerate(watts, 1))
    log = written(tmp_path, text or answer(series("DEV_POWER_USAGE", watts)))
    given = replace(MADE, base={**MADE.base, "engine_mhz": 1000}, interval_s=1.0)
    with pytest.warns(DataWarning, match=r"10 of 12 samples of the busy span are idle \(busy: po"):
        assert row(table_of(log, given))["time_ms"] == 12_000


HEADER = "timestamp,index,power.draw,utilization.gpu,clocks.current.sm,clocks.current.memory\n"
BUSY = "200,99,1400,1215\n"
# A file, and what it is refused with.
BAD = [
    ("a,b\n1,2\n", r"its columns 'a', 'b' show nothing about a GPU; .*'mlscale import --help'"),
    (HEADER + "1,0,9,9,fast,9\n", r"row 2, column 'clocks.current.sm': 'fast' is not a"),
    (HEADER + '1,0,"9,51",9,9,9\n', r"column 'power.draw': '9,51' .* decimal comma"),
    (HEADER + "noon,0,9,9,9,9\n", r"row 2, column 'timestamp': 'noon' is not a time such"),
    (HEADER + f"1,0,{BUSY}", r"give time_ms=MS \(of the whole run"),  # one sample
    (HEADER + f"1,0,{BUSY}" * 2, r"does not say how long the run took; give interval_s="),
    # The run's ends do not show; GPUs that cannot be told apart; a clock set back, as in October.
    ("timestamp,power.draw\n1,200\n2,210\n",
     r"power_w is at most 210, at least 200: the run's start and end do not show"),
    ("timestamp,power.draw\n" + "".join(f"{n},200\n{n}.001,300\n" for n in range(9)),
     r"has several GPUs with nothing to distinguish them"),
    ("timestamp,index,name,power.draw\n1,0,NVIDIA A100,200\n2,0,NVIDIA H100,200\n",
     r"GPU 0 is named NVIDIA A100 and NVIDIA H100; put the samples of each"),
    (HEADER + "".join(f"{s},0,{BUSY}" for s in (7200, 7201, 3602)),
     r"row 4: is 3599 s before the sample above: the clock was set back; keep the rows before or"),
    # No samples of a whole GPU: a header alone, and parts of a GPU.
    ("timestamp,index,mig.mode.current,power.draw\n", r"has no samples of a whole GPU"),
    ("#Entity GRACT\nID\nGPU-I 0 0.5\n", r"is of dcgmi dmon but has no samples of a whole GPU"),
    (HEADER.replace("\n", ",mig.mode.current\n") + "1,0,200,[N/A],1400,1215,Enabled\n",
     r"has no samples of a whole GPU; MIG"),
    ("timestamp,gpu,xcp,power_usage,gfx_clk,gfx\n1,0,0,500,2100,95\n1,0,1,500,N/A,N/A\n",
     r"is of amd-smi monitor --csv but has no samples of a whole GPU; .* other parts"),
    # Answers of Prometheus.
    (answer(RUN[0], series("DEV_POWER_USAGE", [1], Hostname="n2")),
     r"has the hosts n1, n2; query one"),
    (answer(*(series("DEV_POWER_USAGE", [1], gpu="", pod=pod) for pod in "ab")),
     r"several series of one metric without the label 'gpu' or 'UUID'; query one GPU"),
    (answer(series("DEV_POWER_USAGE", [1])).replace("1700000000", "9" * 400),
     r"is not an answer of Prometheus"),
    ('{"query_time": ' + "[" * 20_000, r"is not JSON of gpustat"),
    ('{"_timestamp": 1}\n[2]', r"is not JSON of W&B's system metrics"),
    (answer(series("NONE", [1])), r"is of Prometheus but has no samples .* are not read"),
    ('{"data": {"resultType": "matrix", "result": [1]}}', r"is not an answer of Prometheus"),
    # Numbers in another unit than the column says.
    (HEADER + "1,0,200,99,1.4,1215\n" * 2, r"'clocks.current.sm': 1.4 MHz is not a GPU's clock"),
    ("timestamp,power_w\n1,30000\n2,230000\n",
     r"column 'power_w': 230000 W is more than a GPU draws: is it in mW, .* \[W\] or \[mW\]"),
    ("timestamp,gpu power (mW)\n1,30\n2,230\n",
     r"column 'gpu power \(mW\)': 230 mW is less than a GPU draws: is it in W\?"),
    ("timestamp,power_w,gpu_power_limit_mw\n1,30,400\n2,230,400\n",
     r"column 'gpu_power_limit_mw': 400 mW is less than a GPU may draw: is it in W\?"),
    ("timestamp,power_w,SM clock (GHz)\n1,30,1500\n2,230,1500\n",
     r"column 'SM clock \(GHz\)': 1500 GHz is not a GPU's clock: which unit is it in\?"),
    (HEADER + "1,0,200,247,1400,1215\n",
     r"row 2, column 'utilization.gpu': 2.47 of the whole is impossible, .* percent column"),
    ("#Entity GRACT\nID\nGPU 0 0\nGPU 0 95\n",
     r"row 4, column 'GRACT': 95 of the whole is impossible, .*; give it from 0 to 1"),
    # Columns of one meaning, and tables of runs, the second by falling clocks.
    ("timestamp,index,power.draw,power.draw\n1,0,200,300\n2,0,200,300\n",
     r"column 'power.draw' appears twice, with different values; keep one"),
    ("timestamp,GPU power sampled [W],GPU power timed [W]\n1,30,31\n2,230,231\n",
     r"'GPU power sampled \[W\]' and 'GPU power timed \[W\]' may each be power_w; delete"),
    ("timestamp,power_0,power_1\n1,30,31\n2,230,231\n",
     r"'power_0' and 'power_1' may each be power_w; .* title those of several GPUs gpu0_power_w"),
    ("timestamp,rank0_gpu0_power,rank1_gpu0_power\n1,30,31\n2,230,231\n",
     r"'rank0_gpu0_power' and 'rank1_gpu0_power' may each be power_w"),
    ("timestamp,host,index,power.draw\n1,a,0,30\n1,b,0,31\n",
     r"GPU 0 is named a and b; put the samples of each GPU into a separate"),
    ("timestamp,power_w\n00:01,30\n00:02,31\n", r"'00:01' is not a time such as"),
    ("coreF,memF,time/ms,power/W\n1800,9501,100,200\n1200,9501,90,150\n",
     r"if this is a log, title the column 'time/ms' 'timestamp'"),
    ("coreF,memF,time/ms,power/W\n1800,9501,100,200\n1200,9501,130,150\n",
     r"table of runs .*columns={'engine_mhz': 'coreF', 'memory_mhz': .*'power_w': 'power/W'}"),
]  # fmt: skip


def test_parts_of_a_gpu_are_passed_over(tmp_path: Path) -> None:
    """Made, by the header of `nvidia-smi dmon`: GPU 0 has two MIG instances, GPU 1 is whole."""
    text = "# gpu mig pwr sm pclk\n0 0 300 9 1400\n0 1 300 9 1400\n1 - 200 80 1410\n"
    [log] = read_log(written(tmp_path, text))
    assert (log.gpu, log.columns["power_w"].tolist()) == ("1", [200])


def test_gpus_of_prometheus_are_told_apart_by_uuid(tmp_path: Path) -> None:
    """Made: without the label `gpu`, and with DCGM's blanks of 32 and 64 bits and of a float."""
    blanks = [2**31 - 16, 2**63 - 16, 2.0**47]
    of = [series("DEV_POWER_USAGE", [watts, *blanks], gpu="", UUID=uuid)
          for uuid, watts in (("a", 200), ("b", 300))]  # fmt: skip
    logs = read_log(written(tmp_path, answer(*of)))
    powers = [log.columns["power_w"].tolist() for log in logs]
    assert [log.gpu for log in logs] == ["a", "b"]
    assert powers == [pytest.approx([w, *[np.nan] * 3], nan_ok=True) for w in (200, 300)]


@pytest.mark.parametrize("metric", ["DEV_ENFORCED_POWER_LIMIT", "DEV_POWER_MGMT_LIMIT"])
def test_the_power_limit_of_a_run_is_the_median_of_its_busy_span(
    tmp_path: Path, metric: str
) -> None:
    """The two samples at work, and one of an idle GPU under another limit."""
    text = answer(*RUN, series(metric, [700, 350, 350, 700]))
    assert row(table_of(written(tmp_path, text), MADE))["power_cap_w"] == 350


@pytest.mark.parametrize(("text", "message"), BAD)
def test_a_bad_log_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with refused(message):
        table_of(written(tmp_path, text))


@QUIET
def test_a_header_of_gpus_side_by_side_alone_is_refused(tmp_path: Path) -> None:
    """Of a script that was killed as it began; 'GPU1' may be watts. A ValueError once."""
    with refused("has no samples of a whole GPU"):
        read_log(written(tmp_path, "timestamp,gpu0_power_w,gpu1_\n"))


def own(*rows: tuple[float, float, float, float]) -> str:
    """A log of time [s], power [W], utilisation [%] and clock [MHz], the memory at 1215 MHz."""
    cells = (f"{s},0,{watts},{use},{mhz},1215\n" for s, watts, use, mhz in rows)
    return HEADER + "".join(cells)


WARNED: dict[str, tuple[str, dict[str, float], str]] = {
    "cut off": (
        own((1, 200, 99, 1400), (2, 200, 99, 1400)) + "3,0,2", {"time_ms": 2000},
        r"row 4: the last line is cut off and left out",
    ),
    "gap": (
        own(*((s, 200, 99, 1400) for s in (1, 2, 3, 4, 20))), {"time_ms": 20_000},
        r"has no sample for 16 s of the busy span; the time includes them",
    ),
    "gap between coarse times": (  # ten samples a second, of whole seconds, for 1 s and for 3 s
        own(*((s // 10, 200, 99, 1400) for s in (*range(10), *range(5000, 5030)))),
        {"time_ms": 502_100},
        r"has no sample for 500 s of the busy span; the time includes them",
    ),
    "pauses": (  # 12 of 32; the clock is without them
        own(*((s, 200, 99, 1400) for s in range(10)), *((s, 50, 0, 210) for s in range(10, 22)),
            *((s, 200, 99, 1400) for s in range(22, 32))),
        {"time_ms": 32_000, "power_w": (20 * 200 + 12 * 50) / 32, "engine_mhz": 1400},
        r"12 of 32 samples of the busy span are idle \(busy: gpu_utilisation is 0.099 or more",
    ),
    "wandering clock": (
        own(*((s, 200, 99, 1400 - 100 * (s % 2)) for s in range(10))), {"engine_mhz": 1350},
        r"engine_mhz varies, from 1300 to 1400 in four of five samples",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WARNED)
def test_what_may_mislead_is_told(tmp_path: Path, case: str) -> None:
    """Made logs, rows by hand."""
    text, expected, message = WARNED[case]
    with pytest.warns(DataWarning, match=message):
        values = row(table_of(written(tmp_path, text), replace(MADE, interval_s=1.0)))
    assert {name: values[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("was_set", [1410, 1420, 1600])
def test_a_clock_is_the_one_that_was_set_unless_it_was_not_kept(
    tmp_path: Path, was_set: float
) -> None:
    """1420 MHz are 0.7 % above the sampled 1410, 1600 are 13 %; --base or DCGM's SACLK say it."""
    path = written(tmp_path, own((1, 200, 99, 1410), (2, 200, 99, 1410)))
    given = replace(MADE, base={**MADE.base, "engine_mhz": was_set})
    if was_set < 1600:
        assert row(table_of(path, given))["engine_mhz"] == was_set
        return
    with pytest.warns(DataWarning, match="engine_mhz was set to 1600, but ran at"):
        assert row(table_of(path, given))["engine_mhz"] == 1410
    dcgm = written(tmp_path, f"#Entity GRACT SMCLK SACLK\nID\nGPU 0 0.9 1410 {was_set}\n")
    with pytest.warns(DataWarning, match="engine_mhz was set to 1600, but ran at"):
        table_of(dcgm, replace(MADE, time_ms=1.0))


def two_gpus(mhz: float = 1400, use: float = 99) -> str:
    """GPU 0 at 1400 MHz, GPU 10 at another clock, each a second apart; made."""
    rows = [f"{s},{gpu}" for s in (1, 2) for gpu in (10, 0)]
    values = {"0": "200,99,1400,1215", "10": f"400,{use},{mhz},1215"}
    return HEADER + "".join(f"{start},{values[start.split(',')[1]]}\n" for start in rows)


def test_the_gpus_that_work_are_one_row(tmp_path: Path) -> None:
    """By hand: the slowest's clock; 1500 MHz are 7 % above 1400, which is told, 1410 are not."""
    path = written(tmp_path, two_gpus(1410))
    table = table_of(path, replace(MADE, application="training"))
    assert table.text["kernel"] == ["training"]
    assert table.metadata["gpus"] == ["0", "10"]
    one = row(table)
    assert (one["gpu_count"], one["power_w"], one["engine_mhz"]) == (2, 600, 1400)
    with pytest.warns(
        DataWarning,
        match="its GPUs ran at 1400 to 1500 MHz; the slowest is used, as the others wait for it",
    ):
        assert row(table_of(written(tmp_path, two_gpus(1500))))["engine_mhz"] == 1400
    with pytest.warns(DataWarning, match=r"GPU 10: has no busy span: .* idle; it gets no row"):
        assert table_of(written(tmp_path, two_gpus(use=0))).text["kernel"] == ["run"]


def test_one_gpu_is_chosen(tmp_path: Path) -> None:
    path = written(tmp_path, two_gpus())
    chosen = table_of(path, replace(MADE, gpu="10"))
    assert (chosen.text["kernel"], row(chosen)["power_w"]) == (["run"], 400)
    with refused(r"run.log: has nothing about GPU 7; has GPUs 0 \(\d"):
        table_of(path, replace(MADE, gpu="7"))


def test_each_log_gets_a_row(tmp_path: Path) -> None:
    paths = [written(tmp_path, own((1, 200, 99, mhz), (2, 200, 99, mhz)), f"at-{mhz}.csv")
             for mhz in (1400, 1000)]  # fmt: skip
    table = samples_to_table([log for path in paths for log in read_log(path)], MADE)
    assert table.text["kernel"] == ["at-1400", "at-1000"]
    assert table.numbers["engine_mhz"].tolist() == [1400, 1000]
    assert table.metadata["source"] == "at-1400.csv, at-1000.csv"


def test_the_metadata_say_what_was_averaged(tmp_path: Path) -> None:
    """Made: a log that begins while the GPU works, and ends after it."""
    table = table_of(written(tmp_path, own((1, 200, 99, 1400), (3, 200, 99, 1400), (5, 9, 0, 200))))
    assert table.metadata["busy_spans"] == {
        "run": "run.log: busy from sample 1 to 2 of 3: gpu_utilisation is 0.099 or more, a tenth "
        "of its highest; 0 s before and 2 s after are cut; a sample every 2 s"
    }
    assert table.metadata["sample_ms"] == {"run": 2000}
    assert table.metadata["open_ends"] == {"run": ["first"]}
    assert table.metadata["utilisation_sources"] == {
        "gpu_utilisation": "mean of a script of your own (nvidia-smi's names)"
    }
    assert (table.metadata["power_kind"], table.metadata["profile_kind"]) == ("board", "sampled")


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("NVIDIA H100 80GB HBM3", Given("rtx3090"), "is of 'NVIDIA H100 .* not of 'rtx3090'"),
        ("", Given(), "does not say the GPU; give device=NAME"),
        (
            "",
            Given("h100-sxm5"),
            "log, GPU 0: a board power of 30 W is impossible: .* half of the 70",
        ),
    ],
)
def test_a_gpu_that_cannot_be_is_refused(
    tmp_path: Path, name: str, given: Given, says: str
) -> None:
    """An idle H100 was seen to draw 70 W (device table)."""
    rows = "".join(f"{s},{name},30,99,1400,2619\n" for s in (1, 2))
    with pytest.raises(InputError, match=says):
        table_of(written(tmp_path, HEADER.replace("index", "name") + rows), given)


def test_rows_without_index_and_times_are_said_to_count_as_of_one_gpu(tmp_path: Path) -> None:
    rows = HEADER.replace("timestamp,index,", "") + "200,99,1400,1215\n300,99,1400,1215\n"
    with pytest.warns(DataWarning, match="neither 'index' nor times: all rows count as samples of"):
        [log] = read_log(written(tmp_path, rows))
    assert log.columns["power_w"].tolist() == [200, 300]


def test_no_export_is_taken_for_a_log(data_folder: Path) -> None:
    logs = ("nvidia_smi", "dcgmi", "rocm_smi_csv", "amd_smi_metric")
    others = [
        path
        for folder in ("traces", "profiler-exports")
        for path in (data_folder / folder).rglob("*")
        if path.is_file() and not path.parent.name.startswith(logs) and path.suffix != ".md"
    ]
    assert len(others) > 50
    for path in others:
        with pytest.raises(InputError):
            read_log(path)


def test_missing_readings_are_never_zero(tmp_path: Path) -> None:
    """By hand: the means of the readings that are there; a column of blanks is no column."""
    text = HEADER + "1,0,,50,1000,N/A\n2,0,100,50,,N/A\n3,0,200,,1500,-\n4,0,300,50,1500,\n"
    [log] = read_log(written(tmp_path, text))
    span = busy_span(log)
    assert list(log.columns) == ["power_w", "engine_mhz", "gpu_utilisation"]
    means = {name: mean_of(values[span.inside]) for name, values in log.columns.items()}
    assert means == pytest.approx({"power_w": 200, "engine_mhz": 4000 / 3, "gpu_utilisation": 0.5})
    assert np.isnan(mean_of(np.full(3, np.nan)))
    assert re.fullmatch(r".*run\.log, GPU 0", str(log))
