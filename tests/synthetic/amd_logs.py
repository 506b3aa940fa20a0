"""Small logs of AMD's monitors, as CSV, of readings whose means are known."""

from synthetic.monitor_readings import MEMORY_MHZ, Ticks, flat, text


def rocm_csv(ticks: Ticks, period_s: float = 0.1) -> str:
    """rocm-smi --csv, called again and again: each call prints its header."""
    header = ("device,Card Series,Average Graphics Package Power (W),GPU use (%),"
              "mclk clock speed:,sclk clock speed:")  # fmt: skip
    lines = []
    for tick in ticks:
        lines += ["WARNING: AMD GPU device(s) is/are in a low-power state.", header]
        lines += [
            f"card{r.gpu},Made GPU,{text(r.power_w, 'N/A')},{text(r.activity, 'N/A', 100)},"
            f"({MEMORY_MHZ}Mhz),{'N/A' if r.engine_mhz is None else f'({r.engine_mhz:g}Mhz)'}  "
            for r in tick
        ] + [""]
    return "\n".join(lines) + "\n"


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
            cells = [text(r.activity, "N/A", 100), "\"['N/A', 'N/A']\"", text(r.power_w, "N/A")]
            stamp = f"{1_786_553_852 + n * period_s:.3f}"
            lines.append(",".join([stamp, str(r.gpu), *cells, *clocks, "N/A", str(MEMORY_MHZ)]))
        lines.append("")
    return "\n".join(lines) + "\n"


def amd_monitor_csv(ticks: Ticks, period_s: float = 0.1) -> str:
    """amd-smi monitor --csv --watch, whose units are left out."""
    lines = ["timestamp,gpu,xcp,power_usage,max_power,gfx_clk,gfx,mem_clock,vram_used"]
    for n, r in flat(ticks):
        power, clock = text(r.power_w, "N/A"), text(r.engine_mhz, "N/A")
        stamp = f"{1_786_553_852 + n * period_s:.3f}"
        share = text(r.activity, "N/A", 100)
        lines.append(f"{stamp},{r.gpu},0,{power},750,{clock},{share},{MEMORY_MHZ},285")
    return "\n".join(lines) + "\n"
