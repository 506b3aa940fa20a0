"""Small logs of GPU monitors, in each tool's form, of readings whose means are known."""

from datetime import datetime, timedelta

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
