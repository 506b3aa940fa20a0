"""Commands by hand, spelt as docs/howto/set-clocks.md says where they were read.

Not read in a manual: what `amd-smi reset` takes.

NVIDIA: nvidia-smi(1) of driver 550: -i, -lgc MIN,MAX, -rgc, -lmc MIN,MAX, -rmc, -ac MEM,GRAPHICS,
-rac, -pl WATTS; docs.nvidia.com/deploy/nvidia-smi: -lmcd MHZ and -rmcd in place of -lmc on Hopper.
No -lmc on GeForce RTX 50: NVIDIA/open-gpu-kernel-modules, issues 1265 and 1266.
AMD: `amd-smi set --help` and `amd-smi reset --help` of ROCm 7 (-g, --power-cap WATTS), and
`rocm-smi -h` of ROCm 6 (-d, --setperflevel, --setsclk, --setmclk, --setextremum, --resetclocks,
--setpoweroverdrive, --resetpoweroverdrive).
"""

import doctest
import re
from dataclasses import replace
from typing import Any

import pytest

from mlscale import HardwareConfig
from mlscale.advice import commands
from mlscale.advice.commands import Commands, cap_commands, clock_commands, commands_for_clocks
from mlscale.advice.objectives import Limits
from mlscale.advice.recommendation import Advice, Choice, Recommendation, Workload
from mlscale.data.devices import load_device, shipped_keys

Clocks = tuple[float, float]


def clocks(key: str, best: Clocks, base: Clocks, cus: int = 8) -> Commands:
    return clock_commands(load_device(key), HardwareConfig(cus, *best), HardwareConfig(8, *base))


TOOLS = {"NVIDIA": "nvidia-smi -i 0 ", "AMD": "rocm-smi -d 0 "}
UNSET = ("gtx980", "jetson-orin-nx-16gb", "radeon8060s", "rx9070xt")
HELD = "NVIDIA/open-gpu-kernel-modules, issues 1265 and 1266"


@pytest.mark.parametrize(
    ("key", "best", "base", "to_set", "to_reset", "note"),
    [  # the words of the vendor's tool, one command after the other
        ("h100-sxm5", (1410, 2619), (1980, 2619), "-lgc 1410,1410", "-rgc", "-i 0 -pm 1"),
        ("h100-sxm5", (1410, 1593), (1980, 2619), "-lgc 1410,1410; -lmcd 1593", "-rgc; -rmcd",
         "reload the driver's kernel modules"),
        # 6500 MHz stands for the 6501 MHz that the tool lists.
        ("rtx8000", (1710, 5000), (1710, 6500), "-lmc 5001,5001", "-rmc", "documents -lmc for Am"),
        ("p100", (810, 715), (1328, 715), "-ac 715,810", "-rac", "root"),
        ("rtx4080-laptop", (1500, 9001), (2280, 9001), "-lgc 1500,1500", "-rgc", "root"),
        ("mi100", (1000, 1200), (1502, 1200), "--setperflevel manual; --setsclk LEVEL",
         "--resetclocks", "--showclkfrq lists for 1000 MHz"),
        ("rx6900xt", (1800, 673), (2250, 1000),
         "--setextremum max sclk 1800; --setextremum max mclk 673", "--resetclocks",
         "needs OverDrive"),
        ("rx7900xtx", (2271, 1249), (2400, 1249), "--setextremum max sclk 2271", "--resetclocks",
         "needs OverDrive"),
        ("a30", (1000, 800), (1000, 1215), "", "", "has one memory clock, which no command change"),
        ("rtx5090", (2400, 7001), (2400, 14001), "", "", "locking it costs 10 to 32 %"),
        ("rtx5070ti-laptop", (1500, 7001), (2220, 14001), "-lgc 1500,1500", "-rgc", HELD),
        ("rtx-pro-6000-blackwell", (2400, 12481), (2400, 14001), "-lmc 12481,12481", "-rmc",
         "root"),
        *((key, (800, 1000), (900, 1000), "", "", "no known command sets the clocks or the cap")
          for key in UNSET),
    ],
)  # fmt: skip
def test_clocks(
    key: str, best: Clocks, base: Clocks, to_set: str, to_reset: str, note: str
) -> None:
    found, tool = clocks(key, best, base), TOOLS.get(load_device(key).vendor, "")
    for commands_, words in ((found.set, to_set), (found.reset, to_reset)):
        assert list(commands_) == [tool + one for one in words.split("; ") if one]
    assert note in "\n".join(found.notes)


@pytest.mark.parametrize("key", ["mi210", "mi300x", "mi350x"])
def test_the_clock_of_an_instinct_is_capped_by_determinism(key: str) -> None:
    found = clocks(key, (1300, 1000), (1700, 1000))
    assert found.set == ("amd-smi set -g 0 --perf-determinism 1300",)
    assert found.reset == ("amd-smi set -g 0 --perf-level AUTO",)
    assert "an MI355X ignored it: read it under load" in "\n".join(found.notes)


def test_no_command_sets_the_number_of_cus() -> None:
    for key, by in (("h100-sxm5", "MIG"), ("mi100", "HSA_CU_MASK")):
        found = clocks(key, (1000, 900), (1000, 900), cus=4)
        assert (found.set, found.reset) == ((), ())
        [note] = found.notes
        assert note.startswith("no command sets the number of CUs")
        assert by in note


def test_at_the_base_there_is_nothing_to_set() -> None:
    assert clocks("h100-sxm5", (1980, 2619), (1980, 2619)) == Commands(
        notes=("nothing to set: the advice is the base, cu=8,engine=1980,memory=2619",)
    )


NVIDIA_CAP = "nvidia-smi -i 0 -pl "
AMD_SMI = ("amd-smi set -g 0 --power-cap 300", "amd-smi reset -g 0 --power-cap")
ROCM_SMI = ("rocm-smi -d 0 --setpoweroverdrive 300", "rocm-smi -d 0 --resetpoweroverdrive")


@pytest.mark.parametrize(
    ("key", "to_set", "to_reset", "note"),
    [
        ("h100-sxm5", NVIDIA_CAP + "300", NVIDIA_CAP + "700", "nvidia-smi -i 0 -pm 1"),
        ("gtx980", NVIDIA_CAP + "300", NVIDIA_CAP + "165", "of NVIDIA GeForce GTX 980 is not cert"),
        (
            "mi300x",
            *AMD_SMI,
            "later releases of ROCm 7 also need the kind of limit: --power-cap ppt0 3",
        ),
        ("mi250x-gcd", *AMD_SMI, "the cap is the module's"),
        ("rx7900xtx", *AMD_SMI, "root"),
        ("rx9070xt", *AMD_SMI, "root"),
        ("mi100", *ROCM_SMI, "root"),
    ],
)
def test_caps(key: str, to_set: str, to_reset: str, note: str) -> None:
    found = cap_commands(load_device(key), 300)
    assert (found.set, found.reset) == ((to_set,), (to_reset,))
    assert note in "\n".join(found.notes)


@pytest.mark.parametrize(
    ("key", "to_reset"),
    [
        ("h100-sxm5", NVIDIA_CAP + "350"),
        ("gtx980", NVIDIA_CAP + "350"),
        ("mi300x", "amd-smi set -g 0 --power-cap 350"),
        ("mi100", "rocm-smi -d 0 --setpoweroverdrive 350"),
    ],
)
def test_the_cap_of_before_is_put_back_where_it_is_known(key: str, to_reset: str) -> None:
    """Not the default, which `amd-smi reset` and `rocm-smi --reset…` put back."""
    found = cap_commands(load_device(key), 300, was_w=350)
    assert found.reset == (to_reset,)
    assert "not certain" not in "\n".join(found.notes)


@pytest.mark.parametrize(
    "key", ["rtx4080-laptop", "gb10", "jetson-agx-orin-64gb", "radeon8060s", "simulated-gcn3"]
)
def test_a_machine_that_sets_the_limit_itself_gets_no_command(key: str) -> None:
    """The table's limit is the largest of all laptops: setting it would be no reset."""
    found = cap_commands(load_device(key), 100)
    assert (found.set, found.reset) == ((), ())
    [note] = found.notes
    assert note.startswith("no known command sets the clocks or the cap of ")


def test_examples() -> None:
    assert doctest.testmod(commands).failed == 0


@pytest.mark.parametrize("key", shipped_keys())
class TestEveryGpu:
    BEST, BASE = HardwareConfig(8, 800, 700), HardwareConfig(8, 1000, 900)

    def test_what_is_set_can_be_reset(self, key: str) -> None:
        device = replace(load_device(key), tdp_w=300.0)
        for found in (clock_commands(device, self.BEST, self.BASE), cap_commands(device, 200)):
            assert bool(found.set) == bool(found.reset)
            assert found.notes

    def test_no_command_or_note_names_gpu_0(self, key: str) -> None:
        """The number stands where 0 stood, in each vendor's commands and notes."""
        device = replace(load_device(key), tdp_w=300.0)
        numbered = re.compile("(nvidia-smi -i|amd-smi (?:(?:re)?set|static) -g|rocm-smi -d) 0 ")
        for found, of_gpu_0 in (
            [clock_commands(device, self.BEST, self.BASE, gpu) for gpu in ("3", "0")],
            (cap_commands(device, 30, "3"), cap_commands(device, 30)),
        ):
            text, text_0 = (" \n".join([*c.set, *c.reset, *c.notes]) for c in (found, of_gpu_0))
            assert text == numbered.sub(r"\1 3 ", text_0)

    def test_a_memory_clock_that_can_be_set_has_a_command(self, key: str) -> None:
        """Advice seeks among these clocks; of what none sets, the base's alone may be advised."""
        device = load_device(key)
        settable = device.settable_memory_mhz()
        if device.vendor == "AMD" and len(settable) > 1:
            base = HardwareConfig(device.cu_count, 1000, max(settable))
            found = clock_commands(device, replace(base, memory_mhz=min(settable) / 2), base)
            assert found.set


def for_gpus(key: str, **metadata: Any) -> Commands:
    """The commands for an engine clock of 1410 MHz, of a profile with these metadata."""
    configs = (HardwareConfig(8, mhz, 1300) for mhz in (1410, 1980))
    best, base = (Choice(config, 1.0, None, None, 0.0, 0.0) for config in configs)
    run = Recommendation(None, best, base, ())
    advice = Advice(key, "time", Limits(), None, Workload(1, 1, 100.0), run)
    return commands_for_clocks(advice, metadata)


class TestOfAnotherGpu:
    def test_of_several(self) -> None:
        found = for_gpus("h100-sxm5", gpus=["1", "2", "1", "7"])
        assert found.set == tuple(f"nvidia-smi -i {gpu} -lgc 1410,1410" for gpu in (1, 2, 7))
        assert found.reset == tuple(f"nvidia-smi -i {gpu} -rgc" for gpu in (1, 2, 7))
        assert "nvidia-smi -pm 1" in found.notes[-1]

    def test_a_trace_of_nvidia_numbers_it(self) -> None:
        found = for_gpus("h100-sxm5", profiled_gpus=["3"])
        assert found.set == ("nvidia-smi -i 3 -lgc 1410,1410",)
        assert found.notes[-1].startswith("GPU 3 is the profiler's number: look up nvidia-smi's")
        assert for_gpus("h100-sxm5", profiled_gpus=["0"]) == for_gpus("h100-sxm5")
        both = for_gpus("h100-sxm5", gpus=["1"], profiled_gpus=["3"])
        assert both.reset == ("nvidia-smi -i 1 -rgc",)

    def test_a_trace_of_amd_counts_other_devices_too(self) -> None:
        found = for_gpus("rx7900xtx", profiled_gpus=["4"])
        assert found.set == ("rocm-smi -d 0 --setextremum max sclk 1410",)
        assert found.notes[-1].startswith("the profile calls its GPU 4, counting other devices too")
        assert for_gpus("rx7900xtx", gpus=["4"]).reset == ("rocm-smi -d 4 --resetclocks",)

    @pytest.mark.parametrize("gpus", [[], ["0; rm -rf ~"], ["-q"], None, 5, "12"])
    def test_what_is_no_gpu_goes_into_no_shell(self, gpus: Any) -> None:
        assert for_gpus("h100-sxm5", gpus=gpus) == for_gpus("h100-sxm5")

    def test_one_that_the_table_does_not_know_has_none(self) -> None:
        assert for_gpus("made-gpu") == Commands(
            notes=("commands are known only for GPUs of the device table",)
        )


@pytest.mark.parametrize("key", ["h100-sxm5", "mi100"])
def test_who_may_not_set_them_is_told_what_else_there_is(key: str) -> None:
    [note] = [note for note in cap_commands(load_device(key), 150).notes if "need root" in note]
    assert note.endswith("ask its administrator (under Slurm: --gpu-freq)")
