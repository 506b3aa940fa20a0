"""What only logs of AMD's monitors have; the forms are those of public logs, the readings made.

Expected numbers are by hand.
"""

from pathlib import Path

import numpy as np
import pytest
from synthetic.monitor_logs import row
from text_files import written

from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError
from mlscale.profilers.sampled import RunFacts, SampledTable, import_logs, join_power
from mlscale.profilers.sampled.importing import logs_at_one_clock


def imported(folder: Path, text: str, **facts: object) -> SampledTable:
    return import_logs([written(folder, text)], None, RunFacts(time_ms=900.0, **facts))


OF_BOTH_DIES = "power is that of the module, of which 'mi250-gcd' is one of two dies"


def test_a_die_whose_power_is_that_of_the_die_beside_it(tmp_path: Path) -> None:
    """Of an MI250 the second die's power is missing, and what says so is no number."""
    header = (
        "device,Device Name,Average Graphics Package Power (W),sclk clock speed:,"
        "mclk clock speed:,GPU use (%)\n"
    )
    cards = header + "".join(
        f"card{die},AMD INSTINCT MI250 (MCM) OAM AC MBA,{power},(1400Mhz),(1600Mhz),90\n"
        for die, power in enumerate(("402.0", "N/A (Secondary die)"))
    )
    with pytest.warns(DataWarning, match=f"GPU 0: {OF_BOTH_DIES}: what the other") as told:
        table = imported(tmp_path, cards).table
    assert len(told) == 1
    assert table.text["device"] == ["mi250-gcd"] * 2
    assert table.numbers["power_w"].tolist() == [402, pytest.approx(float("nan"), nan_ok=True)]
    path = written(tmp_path, cards)
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


def test_the_memorys_activity(tmp_path: Path) -> None:
    """35 % by the name that some releases have, beside the share that is allocated."""
    text = (
        "device,Card series,sclk clock speed:,mclk clock speed:,Average Graphics Package Power (W),"
        "GPU use (%),GPU memory use (%),GPU Memory Allocated (VRAM%)\n"
        "card0,Instinct MI210,(1700Mhz),(1600Mhz),300.0,90,35,80\n"
    )
    assert row(imported(tmp_path, text))["memory_copy_utilisation"] == pytest.approx(0.35)


@pytest.mark.parametrize(
    "text",
    [
        "gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,mem_0_clk\n0,97,12,300,1900,1300\n",
        "gpu,power_usage,gfx_clk,gfx,mem,mem_clock\n0,300,1900,97,12,1300\n",
    ],
    ids=["metric as CSV", "monitor as CSV"],
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
