"""What only logs of AMD's monitors have; the forms are those of public logs, the readings made.

Expected numbers are by hand.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic.monitor_logs import row
from text_files import written

from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError
from mlscale.profilers.sampled import RunFacts, SampledTable, import_logs, join_power
from mlscale.profilers.sampled.importing import logs_at_one_clock

NAMES_BELOW = """\
Device  [Model : Revision]    Temp    Power   Partitions      SCLK     MCLK     PwrCap  VRAM%  GPU%
        Name (20 chars)       (Edge)  (Avg)   (Mem, Compute)
===================================================================================================
0       [0x0c34 : 0x02]       55.0°C  291.0W  N/A, N/A        1425Mhz  1600Mhz  500.0W   38%   97%
        Instinct MI210
"""
NUMBERS = """\
Device  Node  IDs              Temp    Power   SCLK     MCLK     PwrCap  GPU%
              (DID,     GUID)  (Edge)  (Avg)
=============================================================================
0       4     0x740c,   1997   38.0°C  301.0W  1210Mhz  1600Mhz  500.0W  99%
1       5     0x740c,   2997   38.0°C  N/A     1200Mhz  1600Mhz  0.0W    98%
"""
OF_ROCM_5 = """\
GPU  Temp (DieEdge)  AvgPwr  SCLK     MCLK     Fan  Perf  PwrCap  VRAM%  GPU%
0    52.0c           179.0W  1700Mhz  1600Mhz  0%   auto  300.0W   65%   99%
"""


def imported(folder: Path, text: str, **facts: object) -> SampledTable:
    return import_logs([written(folder, text)], None, RunFacts(time_ms=900.0, **facts))


OF_BOTH_DIES = "power is that of the module, of which 'mi250-gcd' is one of two dies"


@pytest.mark.filterwarnings(f"ignore:.*{OF_BOTH_DIES}")
@pytest.mark.parametrize(
    ("text", "device", "power_w", "engine_mhz", "busy"),
    [
        (NAMES_BELOW, "mi210", 291, 1425, 0.97),
        (NUMBERS.replace("1       5", "=       5"), "mi250-gcd", 301, 1210, 0.99),
    ],
)
def test_the_table_says_the_gpu(
    tmp_path: Path, text: str, device: str, power_w: float, engine_mhz: float, busy: float
) -> None:
    """By the name below a row, and by the PCI number in it."""
    table = imported(tmp_path, text).table
    assert table.text["device"] == [device]
    values = {name: float(column[0]) for name, column in table.numbers.items()}
    assert (values["power_w"], values["engine_mhz"]) == (power_w, engine_mhz)
    assert (values["memory_mhz"], values["gpu_utilisation"]) == (1600, pytest.approx(busy))


def test_the_table_of_rocm_5_does_not(tmp_path: Path) -> None:
    with pytest.raises(
        InputError,
        match=r"give --device NAME \(and --base cu=… if the device table lacks it\)$",
    ):
        imported(tmp_path, OF_ROCM_5)
    values = row(imported(tmp_path, OF_ROCM_5, device="mi210"))
    assert (values["power_w"], values["engine_mhz"], values["cu_count"]) == (179, 1700, 104)


def test_a_processors_own_gpu_beside_a_card_does_not_refuse_the_table(tmp_path: Path) -> None:
    """In a form that public logs have: a GPU that is asleep or has no sensor has the clock None."""
    text = (
        OF_ROCM_5 + "1    26.0c           5.035W  None     1000Mhz  0%   auto  Unsup.  1%     0%\n"
    )
    with pytest.warns(DataWarning, match="GPU 1: has no busy span"):
        values = row(imported(tmp_path, text, device="mi210"))
    assert (values["power_w"], values["engine_mhz"]) == (179, 1700)


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("0x740c,   1997   38", "0x740c, 1997 38", "Power"),  # blanks taken out
        ("1210Mhz  1600Mhz  500.0W ", "1210Mhz  500.0W   1600Mhz", "MCLK"),  # two cells exchanged
    ],
)
def test_a_table_that_was_moved_is_refused(tmp_path: Path, old: str, new: str, column: str) -> None:
    """Other cells stand where the header has the readings."""
    assert old in NUMBERS
    complaint = rf"row 4, column '{column}': .* does not stand below its name; use the log"
    with pytest.raises(InputError, match=complaint):
        imported(tmp_path, NUMBERS.replace(old, new), device="mi210")


def test_a_die_whose_power_is_that_of_the_die_beside_it(tmp_path: Path) -> None:
    """Of an MI250 the second die's power is missing, and what says so is no number."""
    cards = {
        f"card{die}": {
            "Device Name": "AMD INSTINCT MI250 (MCM) OAM AC MBA",
            "Average Graphics Package Power (W)": power,
            "sclk clock speed:": "(1400Mhz)",
            "mclk clock speed:": "(1600Mhz)",
            "GPU use (%)": "90",
        }
        for die, power in enumerate(("402.0", "N/A (Secondary die)"))
    }
    with pytest.warns(DataWarning, match=f"GPU 0: {OF_BOTH_DIES}: what the other") as told:
        table = imported(tmp_path, json.dumps(cards)).table
    assert len(told) == 1
    assert table.text["device"] == ["mi250-gcd"] * 2
    assert table.numbers["power_w"].tolist() == [402, pytest.approx(float("nan"), nan_ok=True)]
    path = written(tmp_path, json.dumps(cards))
    message = r"says no power of GPU 1, but of 0; name one with --gpu, .*of an MI250 or MI250X"
    with pytest.warns(DataWarning), pytest.raises(InputError, match=message):
        logs_at_one_clock([path], facts=RunFacts(time_ms=900.0))
    with pytest.warns(DataWarning, match=OF_BOTH_DIES):
        first = logs_at_one_clock([path], facts=RunFacts(time_ms=900.0, gpu="0"))
    assert first.numbers["power_w"].tolist() == [402]


def test_a_model_that_is_a_number_says_the_gpu(tmp_path: Path) -> None:
    """Some releases have the PCI number there; 0x740f is an MI210."""
    header = "device,Card model,Average Graphics Package Power (W),GPU use (%)"
    base = {"engine_mhz": 1700.0, "memory_mhz": 1600.0}
    table = imported(tmp_path, f"{header}\ncard0,0x740f,300,99\n", base=base).table
    assert table.text["device"] == ["mi210"]


@pytest.mark.parametrize("form", ["text", "csv", "json"])
def test_the_memorys_activity(tmp_path: Path, form: str) -> None:
    """35 % by the name that some releases have, beside the share that is allocated."""
    facts = {
        "Card series": "Instinct MI210", "sclk clock speed:": "(1700Mhz)",
        "mclk clock speed:": "(1600Mhz)", "Average Graphics Package Power (W)": "300.0",
        "GPU use (%)": "90", "GPU memory use (%)": "35", "GPU Memory Allocated (VRAM%)": "80",
    }  # fmt: skip
    text = {
        "text": "".join(f"GPU[0]\t\t: {name.rstrip(':')}: {of}\n" for name, of in facts.items()),
        "csv": f"device,{','.join(facts)}\ncard0,{','.join(facts.values())}\n",
        "json": json.dumps({"card0": facts}),
    }[form]
    text = text.replace("clk clock speed: (", "clk clock level: 1: (")
    assert row(imported(tmp_path, text))["memory_copy_utilisation"] == pytest.approx(0.35)


@pytest.mark.parametrize(
    "text",
    [
        "GPU POWER GFX_UTIL GFX_CLOCK MEM_UTIL MEM_CLOCK\n0 300 W 97 % 1900 MHz 12 % 1300 MHz\n",
        "GPU  POWER   GFX_CLK   GFX%   MEM%   MEM_CLOCK\n0 300 W 1900 MHz 97 % 12 % 1300 MHz\n",
        "gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,mem_0_clk\n0,97,12,300,1900,1300\n",
        "gpu,power_usage,gfx_clk,gfx,mem,mem_clock\n0,300,1900,97,12,1300\n",
    ],
    ids=["monitor in words", "monitor", "metric as CSV", "monitor as CSV"],
)
def test_names_of_amd_smis_releases(tmp_path: Path, text: str) -> None:
    values = row(imported(tmp_path, text, device="mi300x"))
    assert (values["power_w"], values["engine_mhz"], values["memory_mhz"]) == (300, 1900, 1300)
    assert values["gpu_utilisation"] == pytest.approx(0.97)
    assert values["memory_copy_utilisation"] == pytest.approx(0.12)


@pytest.mark.parametrize("name", ["N/A", "0x1002", "AMD Radeon Graphics"])
def test_a_product_that_rocm_smi_does_not_know_is_told_by_its_number(
    tmp_path: Path, name: str
) -> None:
    """0x74a1 is an MI300X; what stands in place of a name asks for none."""
    header = "device,Card Series,Device ID,Average Graphics Package Power (W),GPU use (%)"
    base = {"engine_mhz": 1900.0, "memory_mhz": 1300.0}
    known = imported(tmp_path, f"{header}\ncard0,{name},0x74a1,600,99\n", base=base)
    assert known.table.text["device"] == ["mi300x"]
    message = "--base cu=… \\(cu:" if name == "AMD Radeon Graphics" else "give --device NAME \\(and"
    with pytest.raises(InputError, match=message):
        imported(tmp_path, f"{header}\ncard0,{name},0x7551,600,99\n", base=base)


def test_levels_of_old_releases_and_what_stands_between(tmp_path: Path) -> None:
    """Two samples, of 100 and 150 W; a level is no clock, and a supported clock not the present."""
    sample = (
        "===== sample {n} =====\nGPU[0]          : Card series: \t\tInstinct MI210\n"
        "GPU[0]          : sclk clock level: 1 ({mhz}Mhz)\nGPU[0]\t\t: mclk Clock Level: 3 "
        "(1600Mhz)\nGPU[0]          : 0: 500Mhz *\nGPU[0]          : GPU use (%): 90\n"
        "GPU[0]          : Average Graphics Package Power (W): {w}.0\n"
    )
    text = sample.format(n=1, mhz=1500, w=100) + sample.format(n=2, mhz=1600, w=150)
    values = row(imported(tmp_path, text))
    assert (values["power_w"], values["engine_mhz"], values["memory_mhz"]) == (125, 1550, 1600)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"gpu_data": 3}', r"row 1: must hold a list of GPUs, each with its 'gpu'"),
        ('[{"gpu": 0}, {"usage": {}}]', r"row 1: must hold a list of GPUs, each with its 'gpu'"),
        ('{"gpu_data": [', r"row 1: is not valid JSON"),
        ('{"gpu_data": []}', "has a header of amd-smi --json but no samples"),
        ("GPU: 0\n    ASIC:\n        MARKET_NAME: MI300X\n", "amd-smi metric but no samples"),
        ("GPU: 0\n  USAGE: N/A\n  POWER:\n    SOCKET_POWER: N/A\n", "neither activity nor power"),
        ("GPU: 0\n  POWER:\n    SOCKET_POWER: -3 W\n", r"row 1, column 'socket_power': '-3 W' can"),
        ("GPU[0] : GPU use (%): many\n", r"row 1, column 'GPU use \(%\)': 'many' is not a number"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        imported(tmp_path, text, device="mi300x")


def test_power_of_a_processor_s_gpu_is_the_socket_s(tmp_path: Path) -> None:
    header = "gpu,gfx_activity,socket_power,gfx_0_clk,mem_0_clk"
    facts = {"device": "mi300a", "interval_s": 0.3}
    with pytest.warns(DataWarning, match="power is that of the socket with 'mi300a': what the pro"):
        table = imported(tmp_path, f"{header}\n0,99,480,2000,1300\n", **facts).table
    assert table.numbers["power_w"].tolist() == [480]


def test_a_log_beside_a_profile_says_so_too(tmp_path: Path) -> None:
    log = written(tmp_path, "gpu,gfx_activity,socket_power,gfx_0_clk\n0,99,480,1700\n")
    axes = {"cu_count": 110.0, "engine_mhz": 1700.0, "memory_mhz": 1600.0, "time_ms": 2.0}
    numbers = {name: np.array([value]) for name, value in axes.items()}
    table = Table("made", {"kernel": ["k"], "device": ["mi250x-gcd"]}, numbers, {})
    with pytest.warns(DataWarning, match="of the module, of which 'mi250x-gcd' is one of two"):
        assert join_power(table, log).numbers["power_w"].tolist() == [480]
    assert join_power(table, 240).numbers["power_w"].tolist() == [240]
