"""Small logs of GPU monitors, in each tool's form, of readings whose means are known."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from mlscale.profilers.sampled import RunFacts, SampledTable, import_logs

PERIOD_S = 2.0  # dmon's times are whole seconds
FACTS: dict[str, Any] = {"device": "made-gpu", "base": {"cu_count": 4}}
START = datetime(2026, 2, 3, 23, 59, 58)
START_US = 1_770_000_000_000_000
MEMORY_MHZ = 1215


@dataclass(frozen=True)
class Reading:
    """One reading of one GPU; what is None is blank in the log."""

    activity: float | None  # 0 to 1
    power_w: float | None
    engine_mhz: float | None
    gpu: int = 0


Ticks = Sequence[Sequence[Reading]]  # of each tick, one reading a GPU


def block(
    head: int, busy: int, tail: int, power_w: float = 200, engine_mhz: float = 1410, gpu: int = 0
) -> list[list[Reading]]:
    """A constant busy block between idle samples, of one GPU."""
    idle = Reading(0.0, 50.0, 210.0, gpu)
    work = Reading(0.8, power_w, engine_mhz, gpu)
    return [[idle]] * head + [[work]] * busy + [[idle]] * tail


def together(*gpus: Ticks) -> Ticks:
    """The readings of several GPUs at the same ticks."""
    return [[reading for of_gpu in tick for reading in of_gpu] for tick in zip(*gpus, strict=True)]


def _text(value: float | None, blank: str, factor: float = 1) -> str:
    return blank if value is None else f"{value * factor:g}"


def _flat(ticks: Ticks) -> Iterable[tuple[int, Reading]]:
    return ((n, reading) for n, tick in enumerate(ticks) for reading in tick)


def dcgmi_dmon(ticks: Ticks, period_s: float = 0.1) -> str:
    """The table of dcgmi dmon: two header lines that come again every five rows, no time."""
    header = "#Entity   GRACT   DRAMA   POWER   SMCLK   MMCLK\nID                  W\n"
    lines = []
    for row, (_, r) in enumerate(_flat(ticks)):
        if row % 5 == 0:
            lines.append(("\n" if row else "") + header.rstrip("\n"))
        cells = [_text(v, "N/A") for v in (r.activity, r.activity, r.power_w, r.engine_mhz)]
        lines.append(f"GPU {r.gpu}     " + "   ".join([*cells, str(MEMORY_MHZ)]))
    return "\n".join(lines) + "\n"


def dcgm_exporter(ticks: Ticks, period_s: float = 0.1) -> str:
    """dcgm-exporter's text, scrape after scrape; a blank is the number that DCGM has for it."""
    lines = []
    for tick in ticks:
        for metric, name in (
            ("PROF_GR_ENGINE_ACTIVE", "activity"), ("DEV_POWER_USAGE", "power_w"),
            ("DEV_SM_CLOCK", "engine_mhz"),
        ):  # fmt: skip
            lines.append(f"# TYPE DCGM_FI_{metric} gauge")
            for r in tick:
                value = _text(getattr(r, name), "9223372036854775794")
                labels = f'gpu="{r.gpu}",UUID="GPU-{r.gpu}",modelName="Made GPU",Hostname="h"'
                lines.append(f"DCGM_FI_{metric}{{{labels}}} {value}")
        lines += [
            f'DCGM_FI_DEV_MEM_CLOCK{{gpu="{r.gpu}",modelName="Made GPU",Hostname="h"}} {MEMORY_MHZ}'
            for r in tick
        ]
    return "\n".join(lines) + "\n"


def dcgm_sdk(ticks: Ticks, period_s: float = 0.1) -> str:
    """The long CSV of DCGM's SDK: fields of one time are several rows, GPU after GPU."""
    rows = []
    for n, r in _flat(ticks):
        stamp = START_US + round(n * period_s * 1e6)
        for tag, value in (
            ("gr_engine_active", r.activity), ("power_usage", r.power_w),
            ("sm_clock", r.engine_mhz), ("memory_clock", MEMORY_MHZ),
        ):  # fmt: skip
            rows.append((r.gpu, tag, f"{r.gpu},{stamp},{tag},{_text(value, '2147483633')}"))
    rows.sort(key=lambda row: row[:2])
    return "\n".join(["GPUId,TimeStampUs,Field,Values", *(text for *_, text in rows)]) + "\n"


def query(ticks: Ticks, period_s: float = 0.1, units: bool = True, index: bool = True) -> str:
    """nvidia-smi --query-gpu as CSV."""
    w, mhz, percent = (" W", " MHz", " %") if units else ("", "", "")
    names = ["timestamp", "power.draw [W]", "clocks.current.sm [MHz]",
             "clocks.current.memory [MHz]", "utilization.gpu [%]"]  # fmt: skip
    lines = [", ".join(["index", *names] if index else names)]
    for n, r in _flat(ticks):
        stamp = START + timedelta(seconds=n * period_s)
        cells = [
            f"{stamp:%Y/%m/%d %H:%M:%S}.{stamp.microsecond // 1000:03d}",
            "[N/A]" if r.power_w is None else f"{r.power_w:.2f}{w}",
            "[Not Supported]" if r.engine_mhz is None else f"{r.engine_mhz:g}{mhz}",
            f"{MEMORY_MHZ}{mhz}",
            "[Unknown Error]" if r.activity is None else f"{100 * r.activity:.0f}{percent}",
        ]
        lines.append(", ".join([str(r.gpu), *cells] if index else cells))
    return "\n".join(lines) + "\n"


def query_nounits(ticks: Ticks, period_s: float = 0.1) -> str:
    """nvidia-smi --query-gpu with --format=csv,nounits."""
    return query(ticks, period_s, units=False)


def smi_dmon(ticks: Ticks, period_s: float = 0.1, times: bool = False) -> str:
    """The table of nvidia-smi dmon, with -o T where times are asked for."""
    names, units = "gpu    pwr  gtemp     sm    mem   mclk   pclk", "Idx      W      C      %"
    lines = []
    for row, (n, r) in enumerate(_flat(ticks)):
        if row % 7 == 0:
            lines += [f"# {'Time ' * times}{names}", f"# {'HH:MM:SS ' * times}{units}"]
        stamp = f"{START + timedelta(seconds=n * period_s):%H:%M:%S} " if times else ""
        cells = [_text(v, "-", f) for v, f in ((r.power_w, 1), (None, 1), (r.activity, 100))]
        lines.append(
            f" {stamp}   {r.gpu}  " + "  ".join(cells) + f"  -  {MEMORY_MHZ}  "
            f"{_text(r.engine_mhz, '-')} "
        )
    return "\n".join(lines) + "\n"


def smi_dmon_times(ticks: Ticks, period_s: float = 0.1) -> str:
    """The table of nvidia-smi dmon -o T."""
    return smi_dmon(ticks, period_s, times=True)


def smi_dmon_csv(ticks: Ticks, period_s: float = 0.1) -> str:
    """The same of nvidia-smi dmon -o T --format csv: commas between, '#' at names and units."""
    lines = []
    for line in smi_dmon_times(ticks, period_s).splitlines():
        mark = "#" * line.startswith("#")
        lines.append(mark + ", ".join(line.removeprefix("#").split()))
    return "\n".join(lines) + "\n"


def rocm_csv(ticks: Ticks, period_s: float = 0.1) -> str:
    """rocm-smi --csv, called again and again: each call prints its header."""
    header = ("device,Card Series,Average Graphics Package Power (W),GPU use (%),"
              "mclk clock speed:,sclk clock speed:")  # fmt: skip
    lines = []
    for tick in ticks:
        lines += ["WARNING: AMD GPU device(s) is/are in a low-power state.", header]
        lines += [
            f"card{r.gpu},Made GPU,{_text(r.power_w, 'N/A')},{_text(r.activity, 'N/A', 100)},"
            f"({MEMORY_MHZ}Mhz),{'N/A' if r.engine_mhz is None else f'({r.engine_mhz:g}Mhz)'}  "
            for r in tick
        ] + [""]
    return "\n".join(lines) + "\n"


def rocm_json(ticks: Ticks, period_s: float = 0.1) -> str:
    """rocm-smi --json, called again and again: one object after the other."""
    objects = []
    for tick in ticks:
        cards: dict[str, object] = {
            f"card{r.gpu}": {
                "Card series": "Made GPU",
                "mclk clock speed:": f"({MEMORY_MHZ}Mhz)",
                "sclk clock speed:": _text(r.engine_mhz, "N/A"),
                "Current Socket Graphics Package Power (W)": _text(r.power_w, "N/A"),
                "GPU use (%)": _text(r.activity, "N/A", 100),
            }
            for r in tick
        }
        objects.append(json.dumps({**cards, "system": {"Driver version": "6"}}, indent=2))
    return "\n".join(objects) + "\n"


def amd_metric(ticks: Ticks, period_s: float = 0.1) -> str:
    """amd-smi metric --csv -w: two dies, 10 MHz above and below, and a blank line between ticks."""
    lines = ["timestamp,gpu,gfx_activity,vcn,socket_power,gfx_0_clk,gfx_1_clk,gfx_2_clk,mem_0_clk"]
    for n, tick in enumerate(ticks):
        for r in tick:
            clocks = (
                ["N/A", "N/A"]
                if r.engine_mhz is None
                else [f"{r.engine_mhz - 10:g}", f"{r.engine_mhz + 10:g}"]
            )
            cells = [_text(r.activity, "N/A", 100), "\"['N/A', 'N/A']\"", _text(r.power_w, "N/A")]
            stamp = f"{1_786_553_852 + n * period_s:.3f}"
            lines.append(",".join([stamp, str(r.gpu), *cells, *clocks, "N/A", str(MEMORY_MHZ)]))
        lines.append("")
    return "\n".join(lines) + "\n"


def amd_monitor_csv(ticks: Ticks, period_s: float = 0.1) -> str:
    """amd-smi monitor --csv --watch, whose units are left out."""
    lines = ["timestamp,gpu,xcp,power_usage,max_power,gfx_clk,gfx,mem_clock,vram_used"]
    for n, r in _flat(ticks):
        power, clock = _text(r.power_w, "N/A"), _text(r.engine_mhz, "N/A")
        stamp = f"{1_786_553_852 + n * period_s:.3f}"
        share = _text(r.activity, "N/A", 100)
        lines.append(f"{stamp},{r.gpu},0,{power},750,{clock},{share},{MEMORY_MHZ},285")
    return "\n".join(lines) + "\n"


def amd_monitor(ticks: Ticks, period_s: float = 0.1) -> str:
    """The table of amd-smi monitor --watch."""
    lines = []
    for n, tick in enumerate(ticks):
        lines.append(
            "TIMESTAMP  GPU  POWER   GPU_T   GFX_CLK   GFX%   ENC%   MEM_CLOCK   VRAM_USAGE"
        )
        for r in tick:
            power = "N/A" if r.power_w is None else f"{r.power_w:g} W"
            clock = "N/A" if r.engine_mhz is None else f"{r.engine_mhz:g} MHz"
            use = "N/A" if r.activity is None else f"{100 * r.activity:.0f} %"
            lines.append(
                f"{1_786_553_852 + n * period_s:.3f}  {r.gpu}  {power}   41 °C   {clock}    {use}"
                f"    N/A    {MEMORY_MHZ} MHz    0.3/192.0 GB"
            )
    return "\n".join(lines) + "\n"


Writer = Callable[..., str]
TIMED: dict[str, Writer] = {
    "dcgm-sdk": dcgm_sdk,
    "query": query,
    "query-nounits": query_nounits,
    "smi-dmon-times": smi_dmon_times,
    "smi-dmon-csv": smi_dmon_csv,
    "amd-metric": amd_metric,
    "amd-monitor": amd_monitor,
    "amd-monitor-csv": amd_monitor_csv,
}
UNTIMED: dict[str, Writer] = {
    "dcgmi-dmon": dcgmi_dmon,
    "dcgm-exporter": dcgm_exporter,
    "smi-dmon": smi_dmon,
    "rocm-csv": rocm_csv,
    "rocm-json": rocm_json,
}
WRITERS = {**TIMED, **UNTIMED}


def load(path: Path, form: str = "query", **facts: Any) -> SampledTable:
    """The table of a log of one run."""
    if form in UNTIMED and "time_ms" not in facts:
        facts = {"interval_s": PERIOD_S, **facts}
    return import_logs([path], None, RunFacts(**{**FACTS, **facts}))


def row(table: SampledTable, position: int = 0) -> dict[str, float]:
    """The numbers of one row."""
    return {name: float(values[position]) for name, values in table.table.numbers.items()}
