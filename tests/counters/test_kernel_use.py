"""What a kernel uses, from whichever source the profile has; shares by hand."""

import numpy as np
import pytest
from synthetic.profiled import profiles

from mlscale import InputError
from mlscale.counters.kernel_use import kernel_use, use_sources
from mlscale.data.devices import load_device
from mlscale.data.grid import HardwareConfig
from mlscale.data.profiles import Profiles

BASE = HardwareConfig(16, 1000.0, 3500.0)  # a GTX 980: 256 bits x 2 x 3500 MHz = 224 GB/s
TRANSACTIONS = {"dram_read_transactions": [2.5e6], "dram_write_transactions": [1e6]}  # 112 MB
SHARES = {"dram_utilisation": [0.3], "core_utilisation": [0.8], "occupancy": [0.6]}


def gtx980_profile(counters: dict[str, list[float]], **metadata: object) -> Profiles:
    made = profiles(counters, base=BASE, device="gtx980")
    made.metadata.update(metadata)
    return made


def test_shares_stand_in_for_counts() -> None:
    use = kernel_use(gtx980_profile(SHARES))
    assert (use.memory[0], use.issue[0], use.occupancy[0]) == (0.3, 0.8, 0.6)
    assert np.isnan([use.l2[0], use.write_share[0]]).all()


def test_counts_come_before_shares() -> None:
    """112 MB in the profile's 1 ms are half of 224 GB/s, and 1 of 3.5 sectors is written."""
    use = kernel_use(gtx980_profile({**SHARES, **TRANSACTIONS}))
    assert use.memory[0] == pytest.approx(0.5)
    assert use.write_share[0] == pytest.approx(2 / 7, rel=1e-5)
    assert np.isnan(use.workgroups[0])


def test_of_table_2() -> None:
    # By hand: 2048 bits at 700 MHz = 179.2 GB/s; 44.8 are a quarter.
    given = {
        "ReadBandwidth": [33.6e9],
        "WriteBandwidth": [11.2e9],
        "V_IPC": [0.2],
        "VALUInsts": [50.0],
        "LDSInsts": [25.0],
        "CacheHit": [60.0],
        "NumWorkGroups": [64.0],
    }
    base = HardwareConfig(16, 800.0, 700.0)
    use = kernel_use(profiles(given, base=base, device="simulated-gcn3"))
    assert use.memory[0] == pytest.approx(0.25)
    assert use.shared[0] == pytest.approx(0.1)
    assert use.l2_miss[0] == pytest.approx(0.4)
    assert use.write_share[0] == pytest.approx(0.25)
    assert (use.workgroups[0], use.waves_per_workgroup[0]) == (64, 1)


@pytest.mark.parametrize(("device", "share"), [("mi210", 0.8), ("rx7900xtx", 0.4)])
def test_a_cu_of_rdna_takes_two_waves_a_cycle(device: str, share: float) -> None:
    """By hand: 64 lanes are one wave of CDNA's, of 64, and two of RDNA's, of 32."""
    given = {"ReadBandwidth": [1e9], "WriteBandwidth": [1e9], "V_IPC": [0.8]}
    use = kernel_use(profiles(given, base=HardwareConfig(96, 1700.0, 1249.0), device=device))
    assert use.issue[0] == pytest.approx(share)


def test_workgroups_are_those_of_one_launch() -> None:
    """Table II counts those of all launches: 64 in 4 of them; a launch has one at least."""
    counted = gtx980_profile({**SHARES, "NumWorkGroups": [64.0], "n_launches": [4.0]})
    assert kernel_use(counted).workgroups[0] == 16
    few = gtx980_profile({**SHARES, "NumWorkGroups": [2.0], "n_launches": [4.0]})
    assert kernel_use(few).workgroups[0] == 1


@pytest.mark.parametrize(("device", "waves"), [("rtx3090", 64), ("mi300x", 32)])
def test_without_a_counter_of_stalls_waves_over_instructions_tell(device: str, waves: int) -> None:
    """Half of the waves wait at 0.2 of four schedulers; every NVIDIA GPU counts as one of 64."""
    shares = {"dram_utilisation": [0.3], "issue_utilisation": [0.2], "occupancy": [0.5]}
    gpu = load_device(device)
    base = HardwareConfig(gpu.cu_count, 1000.0, gpu.memory_clocks_mhz()[-1])
    use = kernel_use(profiles(shares, base=base, device=device))
    assert use.stall[0] == pytest.approx(np.log((0.5 * waves + 0.5) / (4 * 0.2 + 0.01)))


def test_the_issue_share_comes_before_that_of_the_busiest_unit() -> None:
    assert kernel_use(gtx980_profile({**SHARES, "issue_utilisation": [0.2]})).issue[0] == 0.2


def test_what_a_model_was_trained_with_comes_first() -> None:
    both = gtx980_profile({**SHARES, **TRANSACTIONS})
    trained = {"memory": ("dram_utilisation",)}
    assert kernel_use(both, trained).memory[0] == 0.3
    assert use_sources(both, trained)["memory"] == ("dram_utilisation",)
    assert use_sources(both)["memory"] == ("DRAM bytes",)


def test_a_source_is_called_by_what_the_table_says_of_it() -> None:
    text = "DRAM throughput, % of peak = {a}/100; DRAM bytes = {b}/peak_bytes_per_s"
    sources = use_sources(gtx980_profile(SHARES, utilisation_sources={"dram_utilisation": text}))
    assert sources["memory"] == ("DRAM throughput, % of peak or DRAM bytes",)
    assert sources["issue"] == ("core_utilisation",)
    assert sources["l2"] == ()


def test_each_kernel_has_its_own_source() -> None:
    counters = {"dram_utilisation": [0.3, 0.4], "ReadBandwidth": [112e9, np.nan],
                "WriteBandwidth": [0.0, 0.0]}  # fmt: skip
    made = gtx980_profile(counters)
    assert kernel_use(made).memory == pytest.approx([0.5, 0.4])
    assert use_sources(made)["memory"] == ("DRAM bytes", "dram_utilisation")


def test_without_any_measure_of_dram_use() -> None:
    with pytest.raises(InputError, match=r"DRAM traffic: dram_utilisation .*\(Table II\)$"):
        kernel_use(gtx980_profile({"core_utilisation": [0.8]}))
    with pytest.raises(InputError, match="rocprofv3's counters FETCH_SIZE and WRITE_SIZE; or"):
        kernel_use(gtx980_profile({"core_utilisation": [0.8]}, counter_tool="rocprofv3"), {})
    with pytest.raises(InputError, match=r"bytes_read\.sum, lacks dram__bytes_write\.sum$"):
        kernel_use(gtx980_profile({"dram__bytes_read.sum": [1e7]}, counter_tool="ncu"))
    with pytest.raises(InputError, match=r"'k1' lacks its DRAM traffic .* omit the model or"):
        kernel_use(gtx980_profile({"dram_utilisation": [0.3, np.nan]}), {})
