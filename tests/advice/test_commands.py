"""Commands by hand, spelt as docs/power-caps.md says where they were read.

Not read in a manual: what `amd-smi reset` takes.

NVIDIA: nvidia-smi(1) of driver 550: -i, -lgc MIN,MAX, -rgc, -lmc MIN,MAX, -rmc, -ac MEM,GRAPHICS,
-rac, -pl WATTS; docs.nvidia.com/deploy/nvidia-smi: -lmcd MHZ and -rmcd in place of -lmc on Hopper.
AMD: `amd-smi set --help` and `amd-smi reset --help` of ROCm 7 (-g, --power-cap WATTS), and
`rocm-smi -h` of ROCm 6 (-d, --setperflevel, --setsclk, --setmclk, --setextremum, --resetclocks,
--setpoweroverdrive, --resetpoweroverdrive).
"""

import doctest
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlscale import HardwareConfig
from mlscale.advice import commands
from mlscale.advice.commands import Commands, cap_commands, clock_commands, commands_for_clocks
from mlscale.advice.objectives import Limits
from mlscale.advice.search import Advice, OperatingPoint, Recommendation, Run
from mlscale.data.devices import load_device, shipped_keys


def clocks(
    key: str, best: tuple[float, float], base: tuple[float, float], cus: int = 8
) -> Commands:
    return clock_commands(load_device(key), HardwareConfig(cus, *best), HardwareConfig(8, *base))


class TestClocksByHand:
    @pytest.mark.parametrize(
        ("key", "best", "base", "to_set", "to_reset"),
        [
            (
                "h100-sxm5",
                (1410, 2619),
                (1980, 2619),
                ["nvidia-smi -i 0 -lgc 1410,1410"],
                ["nvidia-smi -i 0 -rgc"],
            ),
            (
                "h100-sxm5",
                (1410, 1593),
                (1980, 2619),
                ["nvidia-smi -i 0 -lgc 1410,1410", "nvidia-smi -i 0 -lmcd 1593"],
                ["nvidia-smi -i 0 -rgc", "nvidia-smi -i 0 -rmcd"],
            ),
            # 6500 MHz stands for the 6501 MHz that the tool lists.
            (
                "rtx8000",
                (1710, 5000),
                (1710, 6500),
                ["nvidia-smi -i 0 -lmc 5001,5001"],
                ["nvidia-smi -i 0 -rmc"],
            ),
            (
                "p100",
                (810, 715),
                (1328, 715),
                ["nvidia-smi -i 0 -ac 715,810"],
                ["nvidia-smi -i 0 -rac"],
            ),
            ("gtx980", (800, 1000), (800, 800), [], []),
            ("jetson-orin-nx-16gb", (800, 3199), (918, 3199), [], []),
            ("mi300x", (1300, 1300), (2100, 1300), [], []),
            (
                "mi100",
                (1000, 1200),
                (1502, 1200),
                ["rocm-smi -d 0 --setperflevel manual", "rocm-smi -d 0 --setsclk LEVEL"],
                ["rocm-smi -d 0 --resetclocks"],
            ),
            (
                "rx6900xt",
                (1800, 673),
                (2250, 1000),
                [
                    "rocm-smi -d 0 --setextremum max sclk 1800",
                    "rocm-smi -d 0 --setextremum max mclk 673",
                ],
                ["rocm-smi -d 0 --resetclocks"],
            ),
            (
                "rx7900xtx",
                (2271, 1249),
                (2400, 1249),
                ["rocm-smi -d 0 --setextremum max sclk 2271"],
                ["rocm-smi -d 0 --resetclocks"],
            ),
            ("radeon8060s", (2494, 1000), (2900, 1000), [], []),
            ("rx9070xt", (2400, 1258), (2970, 1258), [], []),
        ],
    )
    def test_commands(
        self,
        key: str,
        best: tuple[float, float],
        base: tuple[float, float],
        to_set: list[str],
        to_reset: list[str],
    ) -> None:
        of = clocks(key, best, base)
        assert (list(of.to_set), list(of.to_reset)) == (to_set, to_reset)
        assert of.notes

    @pytest.mark.parametrize(
        ("key", "best", "base", "note"),
        [
            (
                "h100-sxm5",
                (1410, 1593),
                (1980, 2619),
                "when the driver's kernel modules are loaded anew",
            ),
            ("h100-sxm5", (1410, 2619), (1980, 2619), "nvidia-smi -i 0 -pm 1"),
            ("rtx8000", (1710, 5000), (1710, 6500), "documents -lmc for Ampere and newer"),
            ("a30", (1000, 800), (1000, 1215), "has one memory clock, which no command changes"),
            ("gtx980", (800, 1000), (800, 800), "cannot lock clocks of NVIDIA GeForce GTX 980"),
            ("mi300x", (1300, 1300), (2100, 1300), "docs/power-caps.md says what there is"),
            ("jetson-orin-nx-16gb", (800, 3199), (918, 3199), "docs/power-caps.md says what th"),
            ("mi100", (1000, 1200), (1502, 1200), "--showclkfrq lists with 1000 MHz"),
        ],
    )
    def test_notes(
        self, key: str, best: tuple[float, float], base: tuple[float, float], note: str
    ) -> None:
        assert note in "\n".join(clocks(key, best, base).notes)

    def test_a_single_memory_clock_is_not_locked(self) -> None:
        assert clocks("a30", (1000, 800), (1000, 1215)).to_set == ()

    def test_no_command_sets_the_number_of_cus(self) -> None:
        for key, by in (("h100-sxm5", "MIG"), ("mi100", "HSA_CU_MASK")):
            of = clocks(key, (1000, 900), (1000, 900), cus=4)
            assert (of.to_set, of.to_reset) == ((), ())
            [note] = of.notes
            assert note.startswith("no command sets the number of CUs")
            assert by in note

    def test_at_the_base_there_is_nothing_to_set(self) -> None:
        assert clocks("h100-sxm5", (1980, 2619), (1980, 2619)) == Commands(
            notes=("nothing to set: the advice is the base, cu=8,engine=1980,memory=2619",)
        )


class TestCapsByHand:
    @pytest.mark.parametrize(
        ("key", "cap_w", "to_set", "to_reset"),
        [
            ("h100-sxm5", 450, "nvidia-smi -i 0 -pl 450", "nvidia-smi -i 0 -pl 700"),
            ("gtx980", 120, "nvidia-smi -i 0 -pl 120", "nvidia-smi -i 0 -pl 165"),
            (
                "mi300x",
                500,
                "amd-smi set -g 0 --power-cap 500",
                "amd-smi reset -g 0 --power-cap",
            ),
            (
                "mi100",
                200.5,
                "rocm-smi -d 0 --setpoweroverdrive 200.5",
                "rocm-smi -d 0 --resetpoweroverdrive",
            ),
            *(
                (key, 300, "amd-smi set -g 0 --power-cap 300", "amd-smi reset -g 0 --power-cap")
                for key in ("rx7900xtx", "rx9070xt")
            ),
        ],
    )
    def test_commands(self, key: str, cap_w: float, to_set: str, to_reset: str) -> None:
        of = cap_commands(load_device(key), cap_w)
        assert (of.to_set, of.to_reset) == ((to_set,), (to_reset,))

    @pytest.mark.parametrize(
        ("key", "note"),
        [
            ("h100-sxm5", "is known to refuse 150 W: nvidia-smi -i 0 -q -d POWER prints"),
            ("gtx980", "the default limit of NVIDIA GeForce GTX 980 is not certain"),
            ("mi250x-gcd", "the cap is the module's"),
            ("mi300x", "the driver refuses to lower the cap"),
            ("mi300x", "later releases of ROCm 7 want the kind of limit: --power-cap ppt0 150"),
            ("rx7900xtx", "is known to refuse 150 W: amd-smi static -g 0 --limit prints"),
            ("radeon8060s", "no command is printed for AMD Radeon 8060S"),
        ],
    )
    def test_notes(self, key: str, note: str) -> None:
        assert note in "\n".join(cap_commands(load_device(key), 150).notes)

    @pytest.mark.parametrize("key", ["rtx4080-laptop", "gb10", "jetson-agx-orin-64gb"])
    def test_a_machine_that_sets_the_limit_itself_gets_no_command(self, key: str) -> None:
        """The table's limit is the largest of all laptops: setting it would be no reset."""
        of = cap_commands(load_device(key), 100)
        assert (of.to_set, of.to_reset) == ((), ())
        [note] = of.notes
        assert note.endswith(": docs/power-caps.md says what there is")


class TestEveryGpu:
    @pytest.mark.parametrize("key", [None, "simulated-gcn3", "hd7970"])
    def test_of_unknown_and_simulated_ones_it_is_said(self, key: str | None) -> None:
        device = None if key is None else load_device(key)
        best, base = HardwareConfig(8, 800, 700), HardwareConfig(8, 1000, 700)
        for of in (clock_commands(device, best, base), cap_commands(device, 100)):
            assert (of.to_set, of.to_reset) == ((), ())
            [note] = of.notes
            assert note.startswith(("no command is known for a ", "no command is printed for "))

    @pytest.mark.parametrize("key", shipped_keys())
    def test_what_is_set_can_be_reset(self, key: str) -> None:
        device = replace(load_device(key), tdp_w=300.0)
        best, base = HardwareConfig(8, 800, 700), HardwareConfig(8, 1000, 900)
        for of in (clock_commands(device, best, base), cap_commands(device, 200)):
            assert bool(of.to_set) == bool(of.to_reset)
            assert of.notes

    def test_examples(self) -> None:
        assert doctest.testmod(commands).failed == 0


class TestOfAnotherGpu:
    """By hand: the number stands where 0 stood, in each vendor's commands and notes."""

    @pytest.mark.parametrize("key", shipped_keys())
    def test_no_command_or_note_names_gpu_0(self, key: str) -> None:
        device = replace(load_device(key), tdp_w=300.0)
        best, base = HardwareConfig(8, 800, 700), HardwareConfig(8, 1000, 900)
        for of, of_0 in (
            (clock_commands(device, best, base, "3"), clock_commands(device, best, base)),
            (cap_commands(device, 30, "3"), cap_commands(device, 30)),
        ):
            text, text_0 = (" \n".join([*c.to_set, *c.to_reset, *c.notes]) for c in (of, of_0))
            numbered = re.compile("(nvidia-smi -i|amd-smi (?:(?:re)?set|static) -g|rocm-smi -d) 0 ")
            assert text == numbered.sub(r"\1 3 ", text_0)
            assert not numbered.search(text)

    def test_of_several(self) -> None:
        of = for_gpus("h100-sxm5", gpus=["1", "2", "1", "7"])
        assert of.to_set == ("nvidia-smi -i 1 -lgc 1410,1410",)
        assert of.notes[-1] == "for GPU 1; set 2, 7 alike"

    def test_a_trace_of_nvidia_numbers_it(self) -> None:
        of = for_gpus("h100-sxm5", profiled_gpus=["3"])
        assert of.to_set == ("nvidia-smi -i 3 -lgc 1410,1410",)
        assert of.notes[-1] == "GPU 3 is the profiler's number: nvidia-smi -L tells which that is"
        assert for_gpus("h100-sxm5", profiled_gpus=["0"]) == for_gpus("h100-sxm5")
        assert for_gpus("h100-sxm5", gpus=["1"], profiled_gpus=["3"]).to_reset == (
            "nvidia-smi -i 1 -rgc",
        )

    def test_a_trace_of_amd_counts_other_devices_too(self) -> None:
        of = for_gpus("rx7900xtx", profiled_gpus=["4"])
        assert of.to_set == ("rocm-smi -d 0 --setextremum max sclk 1410",)
        assert of.notes[-1].startswith("the profile is of GPU 4, counted with other devices: put ")
        assert for_gpus("rx7900xtx", gpus=["4"]).to_reset == ("rocm-smi -d 4 --resetclocks",)

    @pytest.mark.parametrize(
        "gpus", [[], ["0; rm -rf ~"], ["$(id)"], ["-q"], [None], None, 5, "12"]
    )
    def test_what_is_no_gpu_goes_into_no_shell(self, gpus: Any) -> None:
        assert for_gpus("h100-sxm5", gpus=gpus) == for_gpus("h100-sxm5")


@pytest.mark.parametrize("key", shipped_keys())
def test_a_memory_clock_that_can_be_set_has_a_command(key: str) -> None:
    """Advice seeks among these clocks; of what no command sets, only the base's may be advised."""
    device = load_device(key)
    if device.vendor != "AMD" or not (settable := device.settable_memory_mhz()):
        return
    base = HardwareConfig(device.cu_count, 1000, max(settable))
    of = clock_commands(device, replace(base, memory_mhz=min(settable) / 2), base)
    assert of.to_set


def for_gpus(key: str, **metadata: list[str]) -> Commands:
    """The commands for an engine clock of 1410 MHz, of a profile with these metadata."""
    best, base = HardwareConfig(8, 1410, 1300), HardwareConfig(8, 1980, 1300)
    points = (OperatingPoint(config, 1.0, None, None) for config in (best, base))
    run = Recommendation(None, *points, 0.0, None, 0.0, None, (), ())
    advice = Advice("time", Limits(), None, (), run, Run(1, 1, 0.0, 100.0), (1410,), ())
    return commands_for_clocks(advice, key, metadata)


@pytest.mark.parametrize("key", ["h100-sxm5", "p100", "mi100", "rx6900xt"])
def test_who_may_not_set_them_is_told_where_to_read_on(key: str) -> None:
    """The page that each names has the section, by reading it."""
    device = load_device(key)
    best, base = HardwareConfig(8, 1000, 700), HardwareConfig(8, 1300, 700)
    for of in (clock_commands(device, best, base), cap_commands(device, 150)):
        [note] = [note for note in of.notes if "need root" in note]
        assert "a container, WSL 2 or a virtual machine may refuse them" in note
        page = re.search(r"docs/[a-z-]+\.md", note)
        assert page is not None
        text = (Path(__file__).parents[2] / page[0]).read_text("utf-8")
        assert "\n### Where clocks and caps cannot be set\n" in text
