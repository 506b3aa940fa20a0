"""Small logs of AMD's monitors, in each of their forms, of readings whose means are known."""

import json
from collections.abc import Sequence

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


def rocm_json(ticks: Ticks, period_s: float = 0.1) -> str:
    """rocm-smi --json, called again and again: one object after the other."""
    objects = []
    for tick in ticks:
        cards: dict[str, object] = {
            f"card{r.gpu}": {
                "Card series": "Made GPU",
                "mclk clock speed:": f"({MEMORY_MHZ}Mhz)",
                "sclk clock speed:": text(r.engine_mhz, "N/A"),
                "Current Socket Graphics Package Power (W)": text(r.power_w, "N/A"),
                "GPU use (%)": text(r.activity, "N/A", 100),
            }
            for r in tick
        }
        objects.append(json.dumps({**cards, "system": {"Driver version": "6"}}, indent=2))
    return "\n".join(objects) + "\n"


def rocm_text(ticks: Ticks, period_s: float = 0.1) -> str:
    """rocm-smi with --show options, called again and again: a section for each of them."""
    lines = []
    for tick in ticks:
        lines.append("=========== ROCm System Management Interface ===========")
        for r in tick:
            card = f"GPU[{r.gpu}]\t\t: "
            clock = "N/A" if r.engine_mhz is None else f"({r.engine_mhz:g}Mhz)"
            lines += [
                f"{card}Device Name: \t\tMade GPU", f"{card}Device ID: \t\t0x0000",
                f"{card}mclk clock level: 0: ({MEMORY_MHZ}Mhz)",
                f"{card}sclk clock level: 1: {clock}",
                f"{card}Supported sclk frequencies on GPU{r.gpu}", f"{card}0: 500Mhz *",
                f"{card}Current Socket Graphics Package Power (W): {text(r.power_w, 'N/A')}",
                f"{card}GPU use (%): {text(r.activity, 'N/A', 100)}",
            ]  # fmt: skip
        lines.append("================== End of ROCm SMI Log ==================")
    return "\n".join(lines) + "\n"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows whose cells begin below each other."""
    widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]
    return ["".join(map(str.ljust, row, widths)) for row in rows]


def rocm_table(ticks: Ticks, period_s: float = 0.1) -> str:
    """rocm-smi without options, as of ROCm 6.2 on: a header of two lines."""
    lines = []
    for tick in ticks:
        above = ["Device", "Node", "IDs", "Temp", "Power", "SCLK", "MCLK", "Perf", "PwrCap", "GPU%"]
        below = ["", "", "(DID,     GUID)", "(Edge)", "(Avg)", *[""] * 5]
        cells = [
            [str(r.gpu), "1", "0x0000,   12345", "41.0°C",
             "N/A" if r.power_w is None else f"{r.power_w:g}W",
             "N/A" if r.engine_mhz is None else f"{r.engine_mhz:g}Mhz", f"{MEMORY_MHZ}Mhz",
             "perf_determinism", "750.0W",
             "N/A" if r.activity is None else f"{100 * r.activity:g}%"]
            for r in tick
        ]  # fmt: skip
        lines += ["=" * 30 + " Concise Info " + "=" * 30, *_aligned([above, below, *cells])]
        lines += ["=" * 74, "WARNING: it should have been freed"]
    return "\n".join(lines) + "\n"


def rocm_table_names(ticks: Ticks, period_s: float = 0.1) -> str:
    """rocm-smi without options, as of ROCm 6.0: a card's name in a line of its own."""
    lines = []
    for tick in ticks:
        above = ["Device", "[Model : Revision]", "Temp", "Power", "SCLK", "MCLK", "GPU%"]
        cells = [
            [str(r.gpu), "[0x0000 : 0x00]", "41.0°C",
             "N/A" if r.power_w is None else f"{r.power_w:g}W",
             "N/A" if r.engine_mhz is None else f"{r.engine_mhz:g}Mhz", f"{MEMORY_MHZ}Mhz",
             "Unsupported" if r.activity is None else f"{100 * r.activity:g}%"]
            for r in tick
        ]  # fmt: skip
        lines += _aligned([above, ["", "Name (20 chars)", "(Edge)", "(Avg)", "", "", ""], *cells])
        for position in range(len(lines), len(lines) - len(cells), -1):
            lines.insert(position, " " * lines[position - 1].index("[") + "Made GPU   ")
        lines.append("=" * 74)
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


def amd_metric_text(ticks: Ticks, period_s: float = 0.1) -> str:
    """amd-smi metric, called again and again: two dies, 10 MHz above and below."""
    lines = []
    for _, r in flat(ticks):
        low, high = (
            ("N/A", "N/A") if r.engine_mhz is None
            else (f"{r.engine_mhz - 10:g} MHz", f"{r.engine_mhz + 10:g} MHz")
        )  # fmt: skip
        lines += [
            f"GPU: {r.gpu}", "    USAGE:",
            f"        GFX_ACTIVITY: {text(r.activity, 'N/A', 100)} %".replace("N/A %", "N/A"),
            "        VCN_ACTIVITY: [0 %, N/A]", "    POWER:",
            f"        SOCKET_POWER: {text(r.power_w, 'N/A')} W".replace("N/A W", "N/A"),
            "    CLOCK:", "        GFX_0:", f"            CLK: {low}",
            "            MIN_CLK: 500 MHz",
            "        GFX_1:", f"            CLK: {high}", "        GFX_2:", "            CLK: N/A",
            "        MEM_0:", f"            CLK: {MEMORY_MHZ} MHz", "        VCLK_0:",
            "            CLK: 29 MHz", "    LIMIT:", "        SOCKET_POWER: 750 W", "",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


def amd_metric_json(ticks: Ticks, period_s: float = 0.1) -> str:
    """amd-smi metric --json, called again and again: two dies, 10 MHz above and below."""

    def with_unit(value: float | None, unit: str) -> object:
        return "N/A" if value is None else {"value": value, "unit": unit}

    documents = []
    for tick in ticks:
        gpus = [
            {
                "gpu": r.gpu,
                "usage": {
                    "gfx_activity": with_unit(r.activity and 100 * r.activity, "%"),
                    "vcn_activity": ["N/A", "N/A"],
                },
                "power": {"socket_power": with_unit(r.power_w, "W"), "throttle_status": "N/A"},
                "clock": {
                    **{
                        f"gfx_{die}": {"clk": with_unit(clock, "MHz"), "max_clk": "N/A"}
                        for die, clock in enumerate(
                            (r.engine_mhz and r.engine_mhz - 10, r.engine_mhz and r.engine_mhz + 10)
                        )
                    },
                    "mem_0": {"clk": with_unit(MEMORY_MHZ, "MHz")},
                },
                "limit": {"socket_power": with_unit(750, "W")},
            }
            for r in tick
        ]
        documents.append(json.dumps({"gpu_data": gpus}, indent=4))
    return "\n".join(documents) + "\n"


def amd_monitor_json(ticks: Ticks, period_s: float = 0.1) -> str:
    """amd-smi monitor --json --watch: a list for each tick, with its time."""
    lists = []
    for n, tick in enumerate(ticks):
        lists.append([
            {
                "timestamp": 1_786_553_852 + n * period_s, "gpu": r.gpu, "xcp": 0,
                "power_usage": "N/A" if r.power_w is None else {"value": r.power_w, "unit": "W"},
                "gfx_clk": {
                    "value": "N/A" if r.engine_mhz is None else r.engine_mhz, "unit": "MHz"
                },
                "gfx": "N/A" if r.activity is None else {"value": 100 * r.activity, "unit": "%"},
                "mem_clock": {"value": MEMORY_MHZ, "unit": "MHz"},
            }
            for r in tick
        ])  # fmt: skip
    return "\n".join(json.dumps(one, indent=4) for one in lists) + "\n"


def amd_monitor_csv(ticks: Ticks, period_s: float = 0.1) -> str:
    """amd-smi monitor --csv --watch, whose units are left out."""
    lines = ["timestamp,gpu,xcp,power_usage,max_power,gfx_clk,gfx,mem_clock,vram_used"]
    for n, r in flat(ticks):
        power, clock = text(r.power_w, "N/A"), text(r.engine_mhz, "N/A")
        stamp = f"{1_786_553_852 + n * period_s:.3f}"
        share = text(r.activity, "N/A", 100)
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
