"""The device table: derived peaks against the vendor's sheet, clocks by nvidia-smi's lists, names.

Every name that a tool prints leads to one device, or says which it may be.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mlscale.data import devices
from mlscale.data.devices import device_keys, devices_named, find_device, load_device
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
    # The sheets print 4.8, 2, 8 and 6 TB/s without a clock; the memory clock that nvidia-smi lists
    # gives 4.917, 2.039, 8.184 and 6.144, AMD's 2000 MHz 8.192.
    **dict.fromkeys(product(("h200", "h200-nvl"), ["bandwidth_gb_per_s"]), 0.025),
    **dict.fromkeys(product(("h100-pcie", "h800-pcie"), ["bandwidth_gb_per_s"]), 0.02),
    **dict.fromkeys(product(("b300", "gb200", "gb300"), ["bandwidth_gb_per_s"]), 0.024),
    **dict.fromkeys(product(("mi325x", "mi350x", "mi355x"), ["bandwidth_gb_per_s"]), 0.025),
    # They round 33.45 TFLOPS up to 34.
    **dict.fromkeys(product(("h200", "h100-sxm5", "gh200-480gb"), ["fp64_gflops"]), 0.017),
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


def test_wider_tolerances_are_needed() -> None:
    """So that an exception above goes once its entry no longer needs it."""
    for key, quantity in WIDER_TOLERANCE:
        derived, printed = load_device(key).derived_and_printed()[quantity]
        assert derived != pytest.approx(printed, rel=0.01)


def test_peak_rates_by_hand() -> None:
    """16 SMs x 128 lanes x 2 operations x 1 GHz, and 16 x 4 x 2; 256 / 8 bytes x 2 x 1 MHz.

    Of the simulated GCN3 the data's README: 8 channels x 32 B x clock.
    """
    device = load_device("gtx980")
    assert device.peak_fp32_gflops(1000) == pytest.approx(4096)
    assert device.peak_fp64_gflops(1000) == pytest.approx(128)
    assert device.peak_bandwidth_gb_per_s(1) == pytest.approx(0.064, rel=1e-12)
    assert load_device("simulated-gcn3").peak_bandwidth_gb_per_s(1) == pytest.approx(0.256)


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
    @pytest.mark.parametrize(
        ("key", "count", "known"),
        [
            # nvidia-smi -q -d SUPPORTED_CLOCKS of an A100: 210 to 1410 MHz in steps of 15.
            ("a100-sxm4-40gb", 81, range(210, 1411, 15)),
            # 18 x 7.5 = 135 to 184 x 7.5 = 1380, halves cut off as nvidia-smi prints.
            ("v100", 184 - 18 + 1, (135, 142, 150, 157, 1365, 1372, 1380)),
            # Pascal lists its own base and boost clocks; 1303 is of the sheet.
            ("gtx1080", None, (139, 1607, 1733, 1911)),
            ("p100", None, (544, 1303, 1328)),
            # An Orin's highest is no multiple of its step: 1300.5, of which tegrastats prints 1300.
            ("jetson-agx-orin-64gb", 11, (*range(306, 1225, 102), 1300)),
        ],
    )
    def test_lists_of_drivers(self, key: str, count: int | None, known: Sequence[int]) -> None:
        clocks = load_device(key).engine_clocks_mhz()
        assert len(clocks) == (count or len(clocks))
        assert list(clocks) == sorted(clocks)
        assert {*known} <= {*clocks}

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


def test_fp32_of_which_devices_counts_twice() -> None:
    """AMD's sheets of these parts count packed or dual-issued FP32; the lanes alone give half."""
    assert {key for key in KEYS if load_device(key).fp32_issue_factor == 2} == {
        *("mi300x", "mi300a", "mi325x", "mi350x", "mi355x", "rx7900xtx", "radeon8060s"),
        *("rx9070xt", "rx9070", "rx7900xt", "w7900"),
    }


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
    words = {"aliases", "shared_names", "unverified"}
    return {name for name, value in values.items() if isinstance(value, int | float | list)} - words


@pytest.mark.parametrize("key", device_keys())
def test_each_number_has_a_source_or_is_marked(key: str) -> None:
    sourced, unverified = set(SOURCES["devices"][key]), set(DEVICES[key].get("unverified", ()))
    assert not sourced & unverified
    assert sourced | unverified == numbers(DEVICES[key])


def test_sources_are_spelt_out_and_used() -> None:
    used = {source for of in SOURCES["devices"].values() for each in of.values() for source in each}
    assert used == set(SOURCES["sources"])
    assert all(SOURCES["sources"].values())


# As nvidia-smi, NVML, DCGM and CUDA (ncu, nvprof) print them, with and without NVIDIA's own name;
# rocminfo's marketing names, and what rocprof's agents are called; lspci's and NVML's numbers;
# deviceQuery of Jetsons, and NVIDIA/open-gpu-kernel-modules, README.md.
NAMES = {
    "h100-sxm5": ("NVIDIA H100 80GB HBM3", "H100 80GB HBM3", "10de:2330", "0x233010DE"),
    "a100-sxm4-80gb": ("nvidia a100-sxm4-80gb",),
    "a100-sxm4-40gb": ("NVIDIA A100-SXM4-40GB MIG 1g.5gb",),
    "t4": ("Tesla T4",),
    "rtx4090": ("NVIDIA GeForce RTX 4090", "RTX 4090", "rtx4090"),
    "h200": ("H200-SXM", "H200"),
    "gtx980": ("GeForce GTX 980",),
    "gtx1080ti": ("GeForce GTX 1080 Ti",),
    "titanx": ("TITAN X (Pascal)",),
    "p100": ("Tesla P100-PCIE-16GB", "Tesla P100-SXM2-16GB"),
    "v100": ("Tesla V100-PCIE-16GB", "Tesla V100-PCIE-32GB"),
    "v100-sxm2-16gb": ("Tesla V100-SXM2-16GB",),
    "rtx2070s": ("GeForce RTX 2070 SUPER",),
    "rtx8000": ("Quadro RTX 8000",),
    "hd7970": ("Tahiti",),
    "r9nano": ("Fiji",),
    "mi300x": ("AMD Instinct MI300X", "1002:74a1"),
    "mi250x-gcd": ("AMD Instinct MI250X",),
    "mi250-gcd": ("mi250",),
    "rx7900xtx": ("Radeon RX 7900 XTX",),
    "h20": ("NVIDIA H20",),
    "h800-sxm5": ("NVIDIA H800",),
    "h800-pcie": ("NVIDIA H800 PCIe",),
    "a800-sxm4-80gb": ("NVIDIA A800-SXM4-80GB",),
    "a800-pcie-80gb": ("NVIDIA A800 80GB PCIe",),
    "a10": ("NVIDIA A10",),
    "a10g": ("NVIDIA A10G",),
    "l20": ("NVIDIA L20",),
    "b300": ("NVIDIA B300 SXM6 AC",),
    "gb300": ("NVIDIA GB300",),
    "gb10": ("NVIDIA GB10",),
    "jetson-agx-thor": ("NVIDIA Thor",),
    "jetson-tx2": ("NVIDIA Tegra X2", "GP10B"),
    "jetson-orin-nano-8gb": ("Jetson Orin Nano",),
    "rtx4050-laptop": ("NVIDIA GeForce RTX 4050 Laptop GPU", "10de:28e1"),
    "rx9070xt": ("AMD Radeon RX 9070 XT",),
    "rx9070": ("AMD Radeon RX 9070",),
    "rx7900xt": ("Radeon RX 7900 XT",),
    "w7900": ("AMD Radeon PRO W7900",),
}


@pytest.mark.parametrize("key", NAMES)
def test_names_that_tools_print(key: str) -> None:
    for name in NAMES[key]:
        assert find_device(name) == load_device(key), name


@pytest.mark.parametrize(
    ("number", "sms", "sms_of_the_desktop"),
    # NVIDIA's sheets: lanes / 128.
    [
        ("4090", 76, 128),
        ("4080", 58, 76),
        ("4070", 36, 46),
        ("5090", 82, 170),
        ("5080", 60, 84),
        ("5070 Ti", 46, 70),
        ("3080", 48, 68),
        ("3070", 40, 46),
        ("3060", 30, 28),
    ],
)
def test_a_laptop_gpu_is_not_the_desktop_board_of_its_number(
    number: str, sms: int, sms_of_the_desktop: int
) -> None:
    """Neither by the name that nvidia-smi and ncu print, nor with the SMs of the other."""
    for prefix in ("NVIDIA GeForce RTX", "GeForce RTX", "RTX"):
        desktop = find_device(f"{prefix} {number}")
        laptop = find_device(f"{prefix} {number} Laptop GPU")
        assert laptop is not None
        assert desktop is not None
        assert (laptop.cu_count, desktop.cu_count) == (sms, sms_of_the_desktop)
        assert laptop.form_factor == "laptop"
        assert desktop.form_factor == "PCIe"
        assert find_device(f"{prefix} {number} Laptop GPU", desktop.cu_count) == laptop
        assert find_device(f"{prefix} {number}", laptop.cu_count) == desktop
    assert laptop.most_power_w
    assert desktop.tdp_w
    assert laptop.most_power_w < desktop.tdp_w


@pytest.mark.parametrize(
    ("name", "facts", "key"),
    [
        # Counts of CUs: AMD's table of GPU specifications; NVIDIA's sheets.
        ("gfx942", {"cu_count": 228}, "mi300a"),
        ("gfx90a", {"cu_count": 110}, "mi250x-gcd"),
        ("gfx906", {"cu_count": 64}, "mi60"),
        ("gfx908", {"cu_count": 120}, "mi100"),
        ("1002:66a1", {"cu_count": 60}, "mi50"),
        ("gfx1100", {"cu_count": 84}, "rx7900xt"),
        ("gfx1201", {"cu_count": 64}, "rx9070xt"),
        ("gfx1201", {"cu_count": 56}, "rx9070"),
        ("1002:744c", {"cu_count": 96}, "rx7900xtx"),
        ("Orin", {"cu_count": 16}, "jetson-agx-orin-64gb"),
        ("h100", {"cu_count": 114}, "h100-pcie"),
    ],
)
def test_shared_names_with_what_decides(name: str, facts: dict[str, float], key: str) -> None:
    device = find_device(name, **facts)
    assert device is not None
    assert device.key == key


@pytest.mark.parametrize(
    ("name", "facts", "possible"),
    [
        ("gfx942", {}, ("mi300x", "mi300a", "mi325x")),
        ("gfx90a", {"cu_count": 104}, ("mi210", "mi250-gcd")),  # alike in every number
        ("gfx1100", {}, ("rx7900xtx", "rx7900xt", "w7900")),
        ("gfx1100", {"cu_count": 96}, ("rx7900xtx", "w7900")),
        ("gfx1100", {"cu_count": 70}, ()),  # a Radeon PRO W7800
        ("gfx1201", {}, ("rx9070xt", "rx9070")),
        ("gfx1201", {"cu_count": 48}, ()),  # an RX 9070 GRE
        ("1002:744c", {}, ("rx7900xtx", "rx7900xt")),
        ("Orin", {"cu_count": 8}, ()),  # an Orin NX of 16 or 8 GB, or an Orin Nano
        ("h100", {}, ("h100-sxm5", "h100-pcie", "h100-nvl")),
        ("GeForce GTX TITAN X", {}, ()),  # Maxwell's, not the TITAN X (Pascal)
        ("A800", {"cu_count": 108}, ("a800-sxm4-80gb", "a800-pcie-80gb")),
        ("NVIDIA H20-3e", {}, ()),
        ("NVIDIA GB300-WS", {}, ()),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", {}, ()),
        ("NVIDIA GeForce RTX 4060 Laptop GPU", {}, ()),
        ("NVIDIA", {}, ()),
        ("", {}, ()),
    ],
)
def test_names_that_do_not_decide(
    name: str, facts: dict[str, float], possible: tuple[str, ...]
) -> None:
    assert find_device(name, **facts) is None
    assert devices_named(name, **facts) == possible


@pytest.mark.parametrize("key", device_keys())
class TestEveryEntry:
    def test_its_own_names_are_its_alone(self, key: str) -> None:
        device = load_device(key)
        for name in (key, device.name, *device.aliases):
            assert find_device(name) == device, name
            assert find_device(name.upper()) == device, name

    def test_shared_names_and_pci_ids_with_the_count_of_cus(self, key: str) -> None:
        device = load_device(key)
        for name in (*device.shared_names, *device.pci_ids):
            assert key in devices_named(name, device.cu_count)
        for pci_id in device.pci_ids:
            assert re.fullmatch(r"(10de|1002):[0-9a-f]{4}", pci_id)
            assert find_device(pci_id, device.cu_count) == device
