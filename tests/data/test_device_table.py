"""The device table: every derived peak against the vendor's sheet, clocks by nvidia-smi's lists."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlscale.data import devices
from mlscale.data.devices import device_keys, load_device
from mlscale.errors import InputError

# The names of the public tables' GPUs: files and command lines have them.
OLD_KEYS = {
    *("gtx980", "gtx1080ti", "titanx", "p100", "v100", "rtx2070s", "rtx8000", "hd7970", "r9nano"),
    *("h200", "simulated-gcn3"),
}
KEYS = device_keys()
REAL_KEYS = tuple(key for key in KEYS if key != "simulated-gcn3")

# Where the sheet and the hardware differ by more than rounding to 1 %, and why.
WIDER_TOLERANCE = {
    # The sheet prints 4.8 TB/s without a clock; the 3201 MHz that nvidia-smi lists gives 4.917.
    ("h200", "bandwidth_gb_per_s"): 0.025,
    ("h200-nvl", "bandwidth_gb_per_s"): 0.025,
    # The sheet rounds 33.45 TFLOPS up to 34.
    ("h200", "fp64_gflops"): 0.017,
    ("h100-sxm5", "fp64_gflops"): 0.017,
    ("gh200-480gb", "fp64_gflops"): 0.017,
    # The sheet prints 2 TB/s; the 1593 MHz that nvidia-smi lists gives 2.039.
    ("h100-pcie", "bandwidth_gb_per_s"): 0.02,
    ("h800-pcie", "bandwidth_gb_per_s"): 0.02,
    # 8 TB/s; 3996 MHz gives 8.184.
    ("b300", "bandwidth_gb_per_s"): 0.024,
    # 8 TB/s; 8192 bits at 3996 MHz give 8.184.
    ("gb200", "bandwidth_gb_per_s"): 0.024,
    ("gb300", "bandwidth_gb_per_s"): 0.024,
    # 6 TB/s; 1500 MHz gives 6.144.
    ("mi325x", "bandwidth_gb_per_s"): 0.025,
    # 8 TB/s; 2000 MHz gives 8.192.
    ("mi350x", "bandwidth_gb_per_s"): 0.025,
    ("mi355x", "bandwidth_gb_per_s"): 0.025,
}


# By hand: 1.05 x the rated 2250, 2500 and 2400 MHz, of drivers that accept 3000 and 5000.
NEVER_RUN_ABOVE = {"rx6900xt": 2362, "rx7900xtx": 2625, "rx7900xt": 2520}


def sheet_tolerance(key: str, quantity: str) -> float:
    return WIDER_TOLERANCE.get((key, quantity), 0.01)


def test_no_name_goes() -> None:
    assert set(KEYS) >= OLD_KEYS


@pytest.mark.parametrize("key", REAL_KEYS)
def test_peaks_are_those_of_the_datasheet(key: str) -> None:
    """Expected numbers: the vendor's sheet, as named in the entry's `source`."""
    for quantity, (derived, printed) in load_device(key).derived_and_printed().items():
        assert derived == pytest.approx(printed, rel=sheet_tolerance(key, quantity)), quantity
    datasheet = load_device(key).datasheet
    assert datasheet is not None
    assert datasheet.source


@pytest.mark.parametrize(("key", "quantity"), WIDER_TOLERANCE)
def test_a_wider_tolerance_is_needed(key: str, quantity: str) -> None:
    """So that an exception above goes once its entry no longer needs it."""
    derived, printed = load_device(key).derived_and_printed()[quantity]
    assert derived != pytest.approx(printed, rel=0.01)


@pytest.mark.parametrize(
    ("key", "gb_per_s_per_mhz"),
    [
        # By hand: bus bits / 8 x transfers / 1000.
        ("gtx980", 0.064),
        ("gtx1080ti", 0.088),
        ("titanx", 0.096),
        ("p100", 1.024),
        ("v100", 1.024),
        ("rtx2070s", 0.064),
        ("rtx8000", 0.096),
        ("hd7970", 0.192),
        ("r9nano", 1.024),
        ("h200", 1.536),
        # The data's README: 8 channels x 32 B x clock.
        ("simulated-gcn3", 0.256),
    ],
)
def test_bandwidth_per_listed_mhz(key: str, gb_per_s_per_mhz: float) -> None:
    assert load_device(key).peak_bandwidth_gb_per_s(1) == pytest.approx(gb_per_s_per_mhz, rel=1e-12)


@pytest.mark.parametrize(
    ("key", "units"),
    # CUs; FP32, FP64 and special-function lanes, schedulers and waves of a CU.
    [
        # CUs and waves: docs/papers/equations.md, 1.4. Lanes and schedulers: the vendor's guide by
        # compute capability (FP64: lanes / 32, lanes / 2 on p100 and v100; special functions:
        # lanes / 4).
        ("gtx980", (16, 128, 4, 32, 4, 64)),
        ("gtx1080ti", (28, 128, 4, 32, 4, 64)),
        ("titanx", (28, 128, 4, 32, 4, 64)),
        ("p100", (56, 64, 32, 16, 2, 64)),
        ("v100", (80, 64, 32, 16, 4, 64)),
        # CUDA C Programming Guide, compute capability 7.5 and 9.0: lanes, FP64 and special
        # functions per SM and cycle, resident warps. SM counts: the sheets.
        ("rtx2070s", (40, 64, 2, 16, 4, 32)),
        ("rtx8000", (72, 64, 2, 16, 4, 32)),
        ("h200", (132, 128, 64, 16, 4, 64)),
        # AMD's GCN whitepaper and the CLRX wiki's GcnTimings: 4 SIMDs of 16 lanes and 10 waves,
        # 5 instructions per cycle, transcendentals at a quarter rate; FP64 a quarter on Tahiti,
        # a sixteenth on Fiji.
        ("hd7970", (32, 64, 16, 16, 5, 40)),
        ("r9nano", (64, 64, 4, 16, 5, 40)),
        # MGPUSim's amd/timing/cu: simdunit.go (FP64 at half rate, nothing slower besides),
        # cubuilder.go (4 SIMDs of 16 lanes and 10 waves), scheduler.go (5 kinds of unit).
        ("simulated-gcn3", (32, 64, 32, 64, 5, 40)),
    ],
)
def test_units(key: str, units: tuple[int, ...]) -> None:
    device = load_device(key)
    assert units == (
        device.cu_count,
        device.lanes_per_cu,
        device.fp64_lanes_per_cu,
        device.special_function_lanes_per_cu,
        device.schedulers_per_cu,
        device.max_waves_per_cu,
    )


@pytest.mark.parametrize("key", KEYS)
def test_values_are_sane(key: str) -> None:
    """By hand: bounds that hold for every GPU of these generations."""
    device = load_device(key)
    assert device.key == key
    assert device.name
    assert device.architecture
    assert device.vendor in {"NVIDIA", "AMD", "MGPUSim"}
    narrow = device.vendor == "NVIDIA" or device.architecture.startswith("RDNA")
    assert device.wave_size == (32 if narrow else 64)
    assert device.lanes_per_cu % device.wave_size == 0
    assert device.fp64_lanes_per_cu <= device.lanes_per_cu
    assert device.special_function_lanes_per_cu <= device.lanes_per_cu
    # Arithmetic alone cannot exceed the issue limit.
    assert device.lanes_per_cu <= device.schedulers_per_cu * device.wave_size
    assert device.memory_bus_bits % 32 == 0
    assert device.memory_transfers_per_cycle in {1, 2, 4, 8, 16}


def test_peak_rates_by_hand() -> None:
    device = load_device("gtx980")
    # 16 SMs x 128 lanes x 2 operations x 1 GHz, and 16 x 4 x 2 x 1 GHz.
    assert device.peak_fp32_gflops(1000) == pytest.approx(4096)
    assert device.peak_fp64_gflops(1000) == pytest.approx(128)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("cray-1", "there is no device 'cray-1'; 'mlscale devices list' names those of the table"),
        ("GTX 980", "; did you mean gtx980\\? "),
        ("simulated", "; did you mean simulated-gcn3\\? "),
    ],
)
def test_unknown_device(typed: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_device(typed)


class TestClocks:
    def test_full_list_in_steps_of_15(self) -> None:
        """nvidia-smi -q -d SUPPORTED_CLOCKS of an A100: 210 to 1410 MHz, 81 clocks."""
        clocks = load_device("a100-sxm4-40gb").engine_clocks_mhz()
        assert clocks == tuple(float(clock) for clock in range(210, 1411, 15))
        assert len(clocks) == 81

    def test_steps_of_7_5_are_rounded_down(self) -> None:
        """By hand: 18 x 7.5 = 135 to 184 x 7.5 = 1380, halves cut off as nvidia-smi prints."""
        clocks = load_device("v100").engine_clocks_mhz()
        assert clocks[:4] == (135, 142, 150, 157)
        assert clocks[-3:] == (1365, 1372, 1380)
        assert len(clocks) == 184 - 18 + 1

    def test_pascal_lists_its_own_base_and_boost_clock(self) -> None:
        """NVIDIA prints 1607 and 1733 MHz for the GTX 1080, 1303 (the sheet's) for the P100."""
        assert {139, 1607, 1733, 1911} <= set(load_device("gtx1080").engine_clocks_mhz())
        assert {544, 1303, 1328} <= set(load_device("p100").engine_clocks_mhz())

    def test_the_highest_clock_may_be_no_multiple_of_the_step(self) -> None:
        """An AGX Orin's driver lists 306, 408, … 1224 and 1300.5 MHz; tegrastats prints 1300."""
        clocks = load_device("jetson-agx-orin-64gb").engine_clocks_mhz()
        assert clocks == (306, 408, 510, 612, 714, 816, 918, 1020, 1122, 1224, 1300)

    def test_memory_clocks_ascend(self) -> None:
        assert load_device("t4").memory_clocks_mhz() == (405, 5001)

    @pytest.mark.parametrize("key", REAL_KEYS)
    def test_ranges_hold_the_clocks_of_the_sheet(self, key: str) -> None:
        device = load_device(key)
        assert device.datasheet is not None
        if clocks := device.engine_clocks_mhz():
            lowest, highest = device.engine_clock_range_mhz or (0, 0)
            assert (clocks[0], clocks[-1]) == (lowest, NEVER_RUN_ABOVE.get(key, highest // 1))
            assert device.datasheet.engine_mhz in clocks
            assert device.base_mhz is None or device.base_mhz in clocks
        if device.engine_clock_range_mhz:
            lowest, highest = device.engine_clock_range_mhz
            assert lowest < device.datasheet.engine_mhz <= highest
        if device.supported_memory_mhz:
            assert device.datasheet.memory_mhz in device.memory_clocks_mhz()
        if device.base_mhz:
            assert device.base_mhz <= device.datasheet.engine_mhz
        if device.idle_w:
            assert device.tdp_w
            assert device.idle_w < device.tdp_w


PACKED = (
    *("mi300x", "mi300a", "mi325x", "mi350x", "mi355x", "rx7900xtx", "radeon8060s"),
    *("rx9070xt", "rx9070", "rx7900xt", "w7900"),
)


@pytest.mark.parametrize("key", PACKED)
def test_packed_fp32_counts_twice(key: str) -> None:
    """AMD's sheets of these parts count packed or dual-issued FP32; the lanes alone give half."""
    device = load_device(key)
    assert device.fp32_issue_factor == 2
    assert device.datasheet is not None
    lanes = 2 * device.cu_count * device.lanes_per_cu * device.datasheet.engine_mhz / 1e3
    assert lanes == pytest.approx(device.datasheet.fp32_gflops / 2, rel=0.01)


def test_no_other_device_counts_fp32_twice() -> None:
    assert {key for key in KEYS if load_device(key).fp32_issue_factor == 2} == {*PACKED}


@pytest.mark.parametrize(
    ("tdp_w", "highest_w", "default_w"),
    [(250, 300, 250), (250, 200, 200), (250, None, 250), (None, 200, 200), (None, None, None)],
)
def test_a_board_is_set_to_no_more_than_it_can_be(
    tdp_w: float | None, highest_w: float | None, default_w: float | None
) -> None:
    """One entry may be of a board whose partner set another limit."""
    device = replace(load_device("gtx980"), tdp_w=tdp_w, max_power_limit_w=highest_w)
    assert device.default_power_w == default_w
    assert device.most_power_w == (highest_w or tdp_w)


@pytest.mark.parametrize(
    ("key", "lowest_w"),
    # An L4's nvidia-smi; an A100 PCIe's table entry is the lowest cap of a sweep, unverified.
    [("l4", 40), ("rtx5060ti-16gb", 150), ("a100-pcie-80gb", None), ("rtx-4000-ada", None)],
)
def test_a_lowest_limit_counts_if_it_was_verified(key: str, lowest_w: float | None) -> None:
    assert load_device(key).lowest_cap_w == lowest_w


FOLDER = Path(devices.__file__).parent
DEVICES = json.loads((FOLDER / "devices.json").read_text(encoding="utf-8"))["devices"]
SOURCES = json.loads((FOLDER / "devices_sources.json").read_text(encoding="utf-8"))


def numbers(entry: dict[str, Any]) -> set[str]:
    """The fields that hold a number, numbers, or PCI ids."""
    sheet = {f"datasheet.{name}": value for name, value in (entry["datasheet"] or {}).items()}
    values = entry | sheet
    lists = {name for name, value in values.items() if isinstance(value, list)}
    return {name for name, value in values.items() if isinstance(value, int | float)} | lists - {
        "aliases",
        "shared_names",
        "unverified",
    }


@pytest.mark.parametrize("key", device_keys())
def test_each_number_has_a_source_or_is_marked(key: str) -> None:
    sourced, unverified = set(SOURCES["devices"][key]), set(DEVICES[key].get("unverified", ()))
    assert not sourced & unverified
    assert sourced | unverified == numbers(DEVICES[key])


def test_sources_are_spelt_out_and_used() -> None:
    used = {source for of in SOURCES["devices"].values() for each in of.values() for source in each}
    assert used == set(SOURCES["sources"])
    assert all(SOURCES["sources"].values())
