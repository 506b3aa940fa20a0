"""What nvidia-smi -q -x, rocminfo and ncu say of a GPU: files in their form, written by hand."""

import json
from pathlib import Path

import pytest
from text_files import written

from mlscale.data.device import multiples_mhz
from mlscale.errors import InputError
from mlscale.profilers.new_device import describe, device_facts


def nvidia_smi(*names: str, clocks: str = "") -> str:
    gpu = """
	<gpu id="00000000:01:00.0">
		<product_name>{name}</product_name>
		<product_architecture>Ada Lovelace</product_architecture>
		<pci>
			<pci_device_id>27B810DE</pci_device_id>
		</pci>
		<gpu_power_readings>
			<power_draw>16.51 W</power_draw>
			<current_power_limit>72.00 W</current_power_limit>
			<default_power_limit>72.00 W</default_power_limit>
			<min_power_limit>40.00 W</min_power_limit>
			<max_power_limit>N/A</max_power_limit>
		</gpu_power_readings>
		<max_clocks>
			<graphics_clock>2040 MHz</graphics_clock>
			<mem_clock>6251 MHz</mem_clock>
		</max_clocks>
		<supported_clocks>{clocks}</supported_clocks>
	</gpu>"""
    gpus = "".join(gpu.format(name=name, clocks=clocks) for name in names)
    head = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">'
    return f"{head}\n<nvidia_smi_log>{gpus}\n</nvidia_smi_log>\n"


def supported(memory_mhz: int, *engine_mhz: float) -> str:
    clocks = "".join(
        f"<supported_graphics_clock>{clock:g} MHz</supported_graphics_clock>"
        for clock in reversed(engine_mhz)
    )
    return f"<supported_mem_clock><value>{memory_mhz} MHz</value>{clocks}</supported_mem_clock>"


ROCMINFO = """
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD EPYC 7763 64-Core Processor
  Marketing Name:          AMD EPYC 7763 64-Core Processor
  Device Type:             CPU
  Compute Unit:            128
*******
Agent 2
*******
  Name:                    gfx90a
  Uuid:                    GPU-0123456789abcdef
  Marketing Name:          {name}
  Vendor Name:             AMD
  Device Type:             GPU
  Cache Info:
    L1:                      16(0x10) KB
    L2:                      8192(0x2000) KB
  Chip ID:                 29711(0x740f)
  Max Clock Freq. (MHz):   1700
  Compute Unit:            104
  SIMDs per CU:            4
  Shader Engines:          8
  Wavefront Size:          64(0x40)
  Max Waves Per CU:        32(0x20)
  Pool Info:
    Pool 3
      Segment:                 GROUP
      Size:                    64(0x40) KB
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-
"""
NCU_NAMES = {
    "display_name": "NVIDIA Made 8000",
    "multiprocessor_count": "20",
    "num_schedulers_per_multiprocessor": "4",
    "warp_size": "32",
    "max_warps_per_multiprocessor": "48",
    "max_shared_memory_per_multiprocessor": "102,400",
    "max_registers_per_multiprocessor": "65536",
    "l2_cache_size": "4194304",
    "global_memory_bus_width": "192",
    "max_gpu_frequency_khz": "1912500",
    "max_mem_frequency_khz": "7001000",
    "compute_capability_major": "8",
    "compute_capability_minor": "6",
    "single_to_double_precision_perf_ratio": "32",
    "gpu_pci_device_id": str(0x249010DE),
}


def ncu() -> str:
    names = ",".join(f'"device__attribute_{name}"' for name in NCU_NAMES)
    values = ",".join(f'"{value}"' for value in NCU_NAMES.values())
    blank = ",".join('""' for _ in NCU_NAMES)
    head = "==PROF== Connected to process 1\n==PROF== Disconnected\n"
    return f'{head}"ID","Kernel Name",{names}\n"","",{blank}\n"0","k",{values}\n'


class TestNvidiaSmi:
    def test_facts(self, tmp_path: Path) -> None:
        clocks = supported(6251, *range(210, 2041, 15)) + supported(405, *range(210, 646, 15))
        tool, facts = device_facts(written(tmp_path, nvidia_smi("NVIDIA L4", clocks=clocks)))
        assert tool == "nvidia-smi -q -x"
        assert facts == {
            "name": "NVIDIA L4",
            "vendor": "NVIDIA",
            "architecture": "Ada Lovelace",
            "memory_transfers_per_cycle": 2,
            "max_clock_mhz": 2040,
            "pci_ids": ["10de:27b8"],
            "tdp_w": 72,
            "min_power_limit_w": 40,
            "supported_memory_mhz": [6251, 405],
            "engine_clock_range_mhz": [210, 2040],
            "engine_clock_step_mhz": 15,
        }

    @pytest.mark.parametrize("step", [15, 7.5, 405 / 32])
    def test_the_step_of_clocks_that_are_rounded_down(self, tmp_path: Path, step: float) -> None:
        clocks = supported(877, *multiples_mhz(step * 20, step * 90, step))
        _, facts = device_facts(written(tmp_path, nvidia_smi("NVIDIA X", clocks=clocks)))
        assert facts["engine_clock_step_mhz"] == step

    def test_an_uneven_list_has_no_step(self, tmp_path: Path) -> None:
        clocks = supported(877, 300, 310, 350)
        _, facts = device_facts(written(tmp_path, nvidia_smi("NVIDIA X", clocks=clocks)))
        assert facts["engine_clock_range_mhz"] == [300, 350]
        assert "engine_clock_step_mhz" not in facts

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (nvidia_smi("NVIDIA L4", "NVIDIA A10"), "is of several GPUs: NVIDIA A10, NVIDIA L4"),
            (nvidia_smi(), "names no GPU"),
            (nvidia_smi("NVIDIA L4")[:300], "is not whole XML"),
            ('<!ENTITY a "b">' + nvidia_smi("NVIDIA L4"), "defines XML entities"),
            ("GPU 0: NVIDIA L4\n", "is neither XML of 'nvidia-smi -q -x', nor what rocminfo"),
        ],
    )
    def test_refused(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            device_facts(written(tmp_path, text))


def test_rocminfo(tmp_path: Path) -> None:
    tool, facts = device_facts(written(tmp_path, ROCMINFO.format(name="AMD Instinct MI210")))
    assert tool == "rocminfo"
    assert facts == {
        "name": "AMD Instinct MI210",
        "vendor": "AMD",
        "architecture": "gfx90a",
        "shared_names": ["gfx90a"],
        "cu_count": 104,
        "wave_size": 64,
        "max_waves_per_cu": 32,
        "se_count": 8,
        "max_clock_mhz": 1700,
        "pci_ids": ["1002:740f"],
        "max_shared_bytes_per_cu": 65536,
    }


def test_ncu_without_the_attribute_has_the_capability_of_its_launches(tmp_path: Path) -> None:
    """As a page of one section has: the GPU's name, and column CC."""
    page = '"ID","Kernel Name","CC","device__attribute_display_name"\n'
    page += '"0","k","8.9","NVIDIA Made 8000"\n'
    _, facts = device_facts(written(tmp_path, page))
    assert (facts["name"], facts["compute_capability"]) == ("NVIDIA Made 8000", "8.9")


def test_ncu(tmp_path: Path) -> None:
    tool, facts = device_facts(written(tmp_path, ncu()))
    assert tool == "ncu"
    assert facts == {
        "name": "NVIDIA Made 8000",
        "vendor": "NVIDIA",
        "memory_transfers_per_cycle": 2,
        "fp64_ratio": 32,
        "cu_count": 20,
        "schedulers_per_cu": 4,
        "wave_size": 32,
        "max_waves_per_cu": 48,
        "max_shared_bytes_per_cu": 102400,
        "registers_per_cu": 65536,
        "l2_bytes": 4194304,
        "memory_bus_bits": 192,
        "max_clock_mhz": 1912.5,
        "supported_memory_mhz": [7001],
        "compute_capability": "8.6",
        "pci_ids": ["10de:2490"],
    }


class TestDescribe:
    def test_an_unknown_gpu_takes_its_lanes_from_its_compute_capability(
        self, tmp_path: Path
    ) -> None:
        """8.6 has 128 lanes (CUDA's guide); FP64 by the ratio that the GPU itself reports."""
        description = describe([written(tmp_path, ncu())])
        assert description.lacking == ()
        assert description.values["key"] == "nvidia-made-8000"
        assert description.values["lanes_per_cu"] == 128
        assert description.values["fp64_lanes_per_cu"] == 4
        assert description.values["unverified"] == [
            "fp64_lanes_per_cu",
            "lanes_per_cu",
            "special_function_lanes_per_cu",
        ]
        assert description.values["cu_count"] == 20
        assert "fp64_ratio" not in description.values

    def test_two_tools_together(self, tmp_path: Path) -> None:
        smi = written(tmp_path, nvidia_smi("NVIDIA Made 8000"), "smi.xml")
        description = describe([written(tmp_path, ncu()), smi], key="mine")
        assert description.values["tdp_w"] == 72
        assert description.values["memory_bus_bits"] == 192
        assert description.values["sources"]["tdp_w"] == "nvidia-smi -q -x"

    def test_what_lacks_is_null_and_named(self, tmp_path: Path) -> None:
        description = describe([written(tmp_path, nvidia_smi("NVIDIA Made 8000"))])
        assert description.values["cu_count"] is None
        assert description.lacking == (
            "cu_count", "lanes_per_cu", "fp64_lanes_per_cu", "special_function_lanes_per_cu",
            "schedulers_per_cu", "wave_size", "max_waves_per_cu", "memory_bus_bits",
        )  # fmt: skip

    def test_amd_by_its_gfx_name(self, tmp_path: Path) -> None:
        description = describe([written(tmp_path, ROCMINFO.format(name="AMD Made"))])
        assert description.values["fp64_lanes_per_cu"] == 64
        assert description.values["architecture"] == "CDNA 2 Aldebaran"
        assert description.lacking == ("memory_bus_bits", "memory_transfers_per_cycle")

    def test_a_part_of_a_gpu_has_not_all_of_its_memory(self, tmp_path: Path) -> None:
        """An MI210 has 104 CUs; of all of them its memory's bus is taken from the table."""
        text = ROCMINFO.format(name="AMD Instinct MI210")
        whole, part = text, text.replace("Unit:            104", "Unit:            52")
        assert describe([written(tmp_path, whole)]).values["memory_bus_bits"] == 4096
        assert describe([written(tmp_path, part)]).lacking == (
            "memory_bus_bits", "memory_transfers_per_cycle",
        )  # fmt: skip

    def test_a_gpu_of_the_table_keeps_its_other_facts(self, tmp_path: Path) -> None:
        description = describe([written(tmp_path, nvidia_smi("NVIDIA L4"))])
        assert description.alike == "l4"
        assert description.lacking == ()
        assert description.values["cu_count"] == 58
        assert description.values["key"] == "nvidia-l4"

    def test_files_of_two_gpus(self, tmp_path: Path) -> None:
        smi = written(tmp_path, nvidia_smi("NVIDIA L4"), "smi.xml")
        with pytest.raises(InputError, match=r"is of 'NVIDIA L4', .* of 'NVIDIA Made 8000'"):
            describe([written(tmp_path, ncu()), smi])

    def test_values_are_json(self, tmp_path: Path) -> None:
        description = describe([written(tmp_path, ncu())])
        assert json.loads(json.dumps(description.values)) == description.values


def test_real_ncu_export(data_folder: Path) -> None:
    """A public export of a B200: 148 SMs, 7680 bits, 3996 MHz, as its attributes say."""
    path = data_folder / "traces" / "ncu_raw_csv" / "b200_flashinfer_raw.csv"
    if not path.is_file():
        pytest.skip("the export is not there")
    description = describe([path])
    assert description.alike == "b200"
    assert description.values["cu_count"] == 148
    assert description.values["memory_bus_bits"] == 7680


class TestDamaged:
    def test_a_number_of_very_many_digits_is_none(self, tmp_path: Path) -> None:
        """It was an OverflowError of float's infinity."""
        path = tmp_path / "smi.xml"
        path.write_text(nvidia_smi("NVIDIA L4").replace("2040 MHz", f"{'9' * 400} MHz"))
        assert "max_clock_mhz" not in device_facts(path)[1]

    def test_a_field_that_never_ends_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "raw.csv"
        path.write_text('"device__attribute_display_name"\n"' + "x" * 200_000)
        with pytest.raises(InputError, match=r"raw\.csv: is not valid CSV: field larger than"):
            device_facts(path)
