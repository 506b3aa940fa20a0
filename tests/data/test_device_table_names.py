"""find_device: every name that a tool prints leads to one device, or says which it may be."""

import re

import pytest

from mlscale.data.devices import device_keys, devices_named, find_device, load_device


@pytest.mark.parametrize(
    ("name", "key"),
    [
        # nvidia-smi, NVML, DCGM and CUDA (ncu, nvprof), with and without NVIDIA's own name.
        ("NVIDIA H100 80GB HBM3", "h100-sxm5"),
        ("H100 80GB HBM3", "h100-sxm5"),
        ("nvidia a100-sxm4-80gb", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "a100-sxm4-40gb"),
        ("Tesla T4", "t4"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("RTX 4090", "rtx4090"),
        ("rtx4090", "rtx4090"),
        ("H200-SXM", "h200"),
        # The names that profilers of these printed before there were aliases.
        ("GeForce GTX 980", "gtx980"),
        ("GeForce GTX 1080 Ti", "gtx1080ti"),
        ("TITAN X (Pascal)", "titanx"),
        ("Tesla P100-PCIE-16GB", "p100"),
        ("Tesla P100-SXM2-16GB", "p100"),
        ("Tesla V100-PCIE-16GB", "v100"),
        ("Tesla V100-PCIE-32GB", "v100"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("GeForce RTX 2070 SUPER", "rtx2070s"),
        ("Quadro RTX 8000", "rtx8000"),
        ("H200", "h200"),
        ("Tahiti", "hd7970"),
        ("Fiji", "r9nano"),
        # rocminfo's marketing names, and what rocprof's agents are called.
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI250X", "mi250x-gcd"),
        ("mi250", "mi250-gcd"),
        ("Radeon RX 7900 XTX", "rx7900xtx"),
        # lspci's and NVML's forms of the same number.
        ("10de:2330", "h100-sxm5"),
        ("0x233010DE", "h100-sxm5"),
        ("1002:74a1", "mi300x"),
        # Boards of China and of Amazon, and integrated GPUs, as nvidia-smi and ncu print them.
        ("NVIDIA H20", "h20"),
        ("NVIDIA H800", "h800-sxm5"),
        ("NVIDIA H800 PCIe", "h800-pcie"),
        ("NVIDIA A800-SXM4-80GB", "a800-sxm4-80gb"),
        ("NVIDIA A800 80GB PCIe", "a800-pcie-80gb"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA L20", "l20"),
        ("NVIDIA B300 SXM6 AC", "b300"),
        ("NVIDIA GB300", "gb300"),
        ("NVIDIA GB10", "gb10"),
        ("NVIDIA Thor", "jetson-agx-thor"),
        # deviceQuery of a Jetson TX2, by its releases.
        ("NVIDIA Tegra X2", "jetson-tx2"),
        ("GP10B", "jetson-tx2"),
        ("Jetson Orin Nano", "jetson-orin-nano-8gb"),
        # NVIDIA/open-gpu-kernel-modules, README.md.
        ("NVIDIA GeForce RTX 4050 Laptop GPU", "rtx4050-laptop"),
        ("10de:28e1", "rtx4050-laptop"),
        ("AMD Radeon RX 9070 XT", "rx9070xt"),
        ("AMD Radeon RX 9070", "rx9070"),
        ("Radeon RX 7900 XT", "rx7900xt"),
        ("AMD Radeon PRO W7900", "w7900"),
    ],
)
def test_names_that_tools_print(name: str, key: str) -> None:
    device = find_device(name)
    assert device is not None
    assert device.key == key


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
        laptop, desktop = (
            find_device(f"{prefix} {number} Laptop GPU"),
            find_device(f"{prefix} {number}"),
        )
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
