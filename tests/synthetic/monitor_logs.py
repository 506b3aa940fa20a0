"""Small logs of GPU monitors, in each tool's form, of readings whose means are known."""

import json
from datetime import UTC, datetime, timedelta

from synthetic.monitor_readings import MEMORY_MHZ, Ticks, flat, text

PERIOD_S = 2.0  # dmon's times are whole seconds
START = datetime(2026, 2, 3, 23, 59, 58)


def dcgmi_dmon(ticks: Ticks) -> str:
    """The table of dcgmi dmon: two header lines that come again every five rows, no time."""
    header = "#Entity   GRACT   DRAMA   POWER   SMCLK   MMCLK\nID                  W\n"
    lines = []
    for row, (_, r) in enumerate(flat(ticks)):
        if row % 5 == 0:
            lines.append(("\n" if row else "") + header.rstrip("\n"))
        cells = [text(v, "N/A") for v in (r.activity, r.activity, r.power_w, r.engine_mhz)]
        lines.append(f"GPU {r.gpu}     " + "   ".join([*cells, str(MEMORY_MHZ)]))
    return "\n".join(lines) + "\n"


def query(ticks: Ticks, period_s: float = 0.1) -> str:
    """nvidia-smi --query-gpu as CSV."""
    names = ["index", "timestamp", "power.draw [W]", "clocks.current.sm [MHz]",
             "clocks.current.memory [MHz]", "utilization.gpu [%]"]  # fmt: skip
    lines = [", ".join(names)]
    for n, r in flat(ticks):
        stamp = START + timedelta(seconds=n * period_s)
        cells = [
            str(r.gpu),
            f"{stamp:%Y/%m/%d %H:%M:%S}.{stamp.microsecond // 1000:03d}",
            "[N/A]" if r.power_w is None else f"{r.power_w:.2f} W",
            "[Not Supported]" if r.engine_mhz is None else f"{r.engine_mhz:g} MHz",
            f"{MEMORY_MHZ} MHz",
            "[Unknown Error]" if r.activity is None else f"{100 * r.activity:.0f} %",
        ]
        lines.append(", ".join(cells))
    return "\n".join(lines) + "\n"


def smi_dmon(ticks: Ticks) -> str:
    """The table of nvidia-smi dmon, without times."""
    names, units = "gpu    pwr  gtemp     sm    mem   mclk   pclk", "Idx      W      C      %"
    lines = []
    for row, (_, r) in enumerate(flat(ticks)):
        if row % 7 == 0:
            lines += [f"# {names}", f"# {units}"]
        cells = [text(v, "-", f) for v, f in ((r.power_w, 1), (None, 1), (r.activity, 100))]
        lines.append(
            f"    {r.gpu}  " + "  ".join(cells) + f"  -  {MEMORY_MHZ}  {text(r.engine_mhz, '-')} "
        )
    return "\n".join(lines) + "\n"


def named(ticks: Ticks) -> str:
    """The same query with names, and whether each GPU is divided."""
    first, *rest = query(ticks, 1.0).splitlines()
    names = "index, name, mig.mode.current, "
    rest = [row.replace("0, ", "0, NVIDIA A100-SXM4-80GB, Disabled, ", 1) for row in rest]
    return "\n".join([first.replace("index, ", names, 1), *rest]) + "\n"


def abreast(ticks: Ticks) -> str:
    """A script's, of two GPUs whose columns stand side by side; the second is idle."""
    lines = ["timestamp,gpu0_power_w,gpu0_sm_clock_mhz,gpu1_power_w,gpu1_sm_clock_mhz"]
    for n, r in flat(ticks):
        lines.append(f"{START + timedelta(seconds=n)},{r.power_w:g},{r.engine_mhz:g},41,210")
    return "\n".join(lines) + "\n"


def gpustat(ticks: Ticks) -> str:
    """What gpustat --json prints again and again."""
    moments = [
        {"hostname": "node", "query_time": f"{START + timedelta(seconds=n)}", "gpus": [
            {"index": r.gpu, "name": "NVIDIA A100-SXM4-80GB", "power.draw": r.power_w,
             "utilization.gpu": round(100 * (r.activity or 0))}]}
        for n, r in flat(ticks)
    ]  # fmt: skip
    return "\n".join(json.dumps(moment, indent=0) for moment in moments)


def prometheus(ticks: Ticks) -> str:
    """Its answer to a query of dcgm-exporter's metrics over a range of time."""
    told = {"DCGM_FI_DEV_GPU_UTIL": [100 * (r.activity or 0) for _, r in flat(ticks)],
            "DCGM_FI_DEV_POWER_USAGE": [r.power_w for _, r in flat(ticks)],
            "DCGM_FI_DEV_SM_CLOCK": [r.engine_mhz for _, r in flat(ticks)],
            "DCGM_FI_DEV_MEM_CLOCK": [MEMORY_MHZ for _ in flat(ticks)]}  # fmt: skip
    begin_s = START.replace(tzinfo=UTC).timestamp()
    result = [
        {"metric": {"__name__": metric, "gpu": "0", "Hostname": "node"},
         "values": [[begin_s + n, str(value)] for n, value in enumerate(values)]}
        for metric, values in told.items()
    ]  # fmt: skip
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
