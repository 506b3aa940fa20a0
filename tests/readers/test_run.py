"""GPU and settings of a run: what files show and users give; by hand and the device table.

An RTX 4090 has 128 SMs, at most 3105 MHz, and 10501 MHz of memory; an L40S 142 and 2520, 9001; an
A100 108 SMs, an MI300X 304 CUs, an RX 7900 XTX 96.
"""

import warnings
from collections import Counter
from contextlib import nullcontext
from typing import Any

import pytest
from synthetic.tidy import refused

from mlscale import DataWarning
from mlscale.readers.given import Given
from mlscale.readers.join import Kernel
from mlscale.readers.launches import Facts, Key, LaunchSums, SummedFile
from mlscale.readers.registry import Kind
from mlscale.readers.run import Setup, key_of, seen_in, set_up
from mlscale.readers.table import check_clock_of_counters, cycle_rates

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*as the profiler observed"),
    pytest.mark.filterwarnings("ignore:.*ncu may have held the clock"),
]
CLOCKS = {"engine_mhz": 1200.0, "memory_mhz": 1215.0}
RTX4090 = {"memory_mhz": 10501}
A100 = {"engine_mhz": 1410, "memory_mhz": 1215}
UNLIKE = {2000.0: 3, 2400.0: 1}  # three launches at 2000 MHz and one at 2400: 2100 on average


def made(device: str | None, base: dict[str, float] | None = None, **facts: Any) -> Setup:
    """The set-up of a made run.csv with facts: a value, or values and in how many launches."""
    seen = {
        fact: Counter[str | float](told if isinstance(told, dict) else [told])
        for fact, told in facts.items()
    }
    return set_up("run.csv", seen, Given(device, base or {}))


# The GPU, what the user says, what files show, and what counts: CUs, engine and memory clock [MHz].
SETTINGS = [
    ("rtx4090", {}, {"engine_mhz": 2500} | RTX4090, (128, 2500, 10501)),
    ("rtx4090", {"cu_count": 64.0, "engine_mhz": 2520.0, "memory_mhz": 10400.0},
     {"engine_mhz": 2500} | RTX4090, (64, 2520, 10400)),
    # ncu shows a B200's 1965 MHz as 1.97 Ghz; 1.96, below it, is what was observed.
    ("b200", {}, {"engine_mhz": 1970, "memory_mhz": 4000}, (148, 1965, 3996)),
    ("b200", {}, {"engine_mhz": 1960, "memory_mhz": 4000}, (148, 1960, 3996)),
    # Three launches at 2000 and one at 2040 MHz, which are 2 % apart.
    ("rtx4090", {}, {"engine_mhz": {2000.0: 3, 2040.0: 1}} | RTX4090, (128, 2010, 10501)),
    ("a100-sxm4-40gb", {"cu_count": 98.0}, {"cu_count": 98} | A100, (98, 1410, 1215)),
    # PyTorch's trace counts pairs of RDNA's units: 48 of an RX 7900 XTX.
    ("rx7900xtx", {}, {"cu_count": 48, "engine_mhz": 2400, "memory_mhz": 1249}, (96, 2400, 1249)),
    # Of cycles of all 8 dies of an MI300X 16 800 in a us are 2100 MHz, a few more its highest;
    # a clock in 4 % of the time does not count.
    ("mi300x", {"memory_mhz": 1300.0}, {"cycles_per_us": {11_200.0: 1}}, (304, 1400, 1300)),
    ("mi300x", {"memory_mhz": 1300.0}, {"cycles_per_us": {17_000.0: 1}}, (304, 2100, 1300)),
    ("mi210", {"memory_mhz": 1300.0}, {"cycles_per_us": {600.0: 40, 1700.0: 960}},
     (104, 1700, 1300)),
]  # fmt: skip
TOLD = [
    ("mi300x", {"engine_mhz": 2100.0}, {}, (304, 2100, 1300),
     "memory_mhz 1300, the GPU's highest, .*memory=…"),
    # 2304 is 4 % below 2400.
    ("l40s", {"engine_mhz": 2400.0}, {"engine_mhz": 2304, "memory_mhz": 9001}, (142, 2400, 9001),
     "was 2304 while profiling, 4 % off the 2400 of base="),
    # Below 0.9 x 3105 = 2795 MHz, unless the user says the clock.
    ("rtx4090", {}, {"engine_mhz": 2235} | RTX4090, (128, 2235, 10501),
     "ncu may have held .* at 2235 MHz, .* up to 3105; if"),
    ("rtx4090", {"engine_mhz": 2100.0}, {"engine_mhz": UNLIKE} | RTX4090, (128, 2100, 10501),
     "2000 in one .* and 2400 in another: 21"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("device", "base", "facts", "expected", "told"), [*((*row, "") for row in SETTINGS), *TOLD]
)
def test_settings(
    device: str, base: dict[str, float], facts: dict[str, Any], expected: tuple[int, ...], told: str
) -> None:
    """Given before observed before the only one there is."""
    with pytest.warns(DataWarning, match=told) if told else nullcontext():
        config = made(device, base, **facts).config
    assert (config.cu_count, int(config.engine_mhz), int(config.memory_mhz)) == expected


def test_a_clock_that_ncu_did_not_hold_is_no_matter() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*ncu may have held")
        made("rtx4090", engine_mhz=2800, memory_mhz=10501)
        made("rtx4090", {"engine_mhz": 2235.0}, engine_mhz=2235, memory_mhz=10501)
        made("mi300x", engine_mhz=1000, memory_mhz=1300)


NO_OTHER = "; .* not of another GPU$"
REFUSED: list[tuple[str | None, dict[str, float], dict[str, Any], str]] = [
    # Clocks that cannot be, or are at odds.
    ("rtx4090", {}, {"engine_mhz": 2500, "memory_mhz": 13770},
     "memory_mhz: 13770 MHz is impossible, 'rtx4090' has at most 10501; if it is the data"),
    ("rtx4090", {}, {"engine_mhz": 2500, "memory_limit_mhz": 13770},
     "memory_mhz: 13770 MHz is impossible"),
    ("rtx4090", {"engine_mhz": 3600.0}, {}, "engine_mhz of base=: 3600 MHz is impossible"),
    ("l40s", {"engine_mhz": 2.4e6}, {}, r"engine_mhz of base=: 2.4e\+06 MHz is impossible"),
    ("mi300x", {"engine_mhz": 2200.0}, {"engine_limit_mhz": 2100},
     "according to the files the GPU goes up to engine=2100, but base= says 2200"),
    ("l40s", {"engine_mhz": 2400.0}, {"engine_mhz": 2200},
     "engine_mhz was 2200 while profiling, base= says 2400; lock the clocks and profile"),
    ("rtx4090", {}, {"engine_mhz": UNLIKE} | RTX4090,
     ".*is 2000 in one launch and 2400 in another; lock .* with base='engine=2100'$"),
    ("rtx4090", {"engine_mhz": 2400.0}, {"engine_mhz": UNLIKE} | RTX4090,
     ".*is 2000 in one launch and 2400 in another, base= says 2400; lock the clocks"),
    # An MI300A has 6 dies: 16 800 cycles would be 2800 MHz of each.
    ("mi300a", {}, {"cycles_per_us": 16_800.0},
     "engine_mhz: 2800 MHz is impossible, 'mi300a' has at most 2100"),
    ("mi300x", {"engine_mhz": 2100.0}, {"cycles_per_us": 11_200.0},
     "engine_mhz was 1400 while profiling by GRBM_GUI_ACTIVE, base= says 2100"),
    # All that lacks is asked for at once; a name that is empty is none (PyTorch's of an MI300X).
    (None, {}, {}, "does not say the GPU, engine_mhz, memory_mhz; give device=NAME base='engi"),
    (None, {}, {}, ".*memory=…. with what the GPU was set to; for a GPU that .* also cu=…, or a"),
    (None, {}, {"engine_mhz": 2100, "memory_mhz": 1300, "device_name": ""},
     "does not say the GPU"),
    ("mine", {}, {"engine_mhz": 900},
     "does not say cu_count, memory_mhz; give base='cu=…,memory=…' .* as 'mine' is not in "),
    ("h100-sxm5", {}, {"engine_mhz": 1980},
     r".*give base='memory=…' with .* \(memory: usually its highest, 2619\)$"),
    ("mi300x", {}, {"memory_mhz": 1300, "engine_limit_mhz": 2100},
     r".*give base='engine=…' with .* \(engine at most 2100\)"),
    # Counts of CUs.
    ("a100-sxm4-40gb", {}, {"cu_count": 132} | A100,
     ".*132 CUs are more than the 108 of .* name it with device="),
    ("a100-sxm4-40gb", {}, {"cu_count": 98} | A100,
     ".*98 CUs are fewer than the 108 .* with base='cu=98'"),
    ("a100-sxm4-40gb", {"cu_count": 97.0}, {"cu_count": 98} | A100,
     ".*says 98 CUs, base= says 97"),
    ("mi300x", {}, {"cu_count": 38, "engine_mhz": 1000, "memory_mhz": 1215},
     ".*38 CUs are fewer than the 304 of 'mi300x'; .*CPX.* with device=FILE"),
    ("mi300x", {}, {"cu_count": 152, "engine_mhz": 1000, "memory_mhz": 1215},
     ".*152 CUs are fewer"),
    # Another GPU; the second name is of several, but not of the one given.
    ("a100-sxm4-40gb", CLOCKS, {"device_name": "NVIDIA H100 80GB HBM3"},
     f"is of 'NVIDIA H100 80GB HBM3', .*not of 'a100-sxm4-40gb'{NO_OTHER}"),
    ("a100-sxm4-40gb", CLOCKS, {"device_name": "A100 80GB"},
     f"is of 'A100 80GB', .*not of 'a100-sxm4-40gb'{NO_OTHER}"),
    ("mine", CLOCKS, {"device_name": "NVIDIA H100 80GB HBM3"},
     f"is of 'NVIDIA H100 80GB HBM3', .*not of 'mine'{NO_OTHER}"),
    (None, {}, {"device_name": {"NVIDIA H100 PCIe": 1, "NVIDIA B200": 1}},
     "has several GPUs: NVIDIA B200, NVIDIA H100 PCIe; import one$"),
    ("A100 80GB", {}, {}, "device=A100 80GB may be a100-sxm4-80gb or a100-pcie-80gb; name one"),
]  # fmt: skip


@pytest.mark.parametrize(("device", "base", "facts", "message"), REFUSED)
def test_refused(
    device: str | None, base: dict[str, float], facts: dict[str, Any], message: str
) -> None:
    with refused(f"^run.csv: {message}"):
        made(device, base, **facts)


@pytest.mark.parametrize(
    ("name", "device", "key", "told"),
    [
        ("NVIDIA A100-PG509-200", "a100-sxm4-40gb", "a100-sxm4-40gb", ""),
        ("NVIDIA PG-made-1", "a100-sxm4-40gb", "a100-sxm4-40gb", "which is not in the device"),
        ("NVIDIA GeForce RTX 4060 Ti", None, "rtx4060ti-16gb", "is assumed to be 'rtx4060ti-16gb'"),
    ],
)
def test_the_gpu_by_the_file_and_the_user(
    name: str, device: str | None, key: str, told: str
) -> None:
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert made(device, CLOCKS, device_name=name).device == key
    texts = [str(warning.message) for warning in warned]
    assert (len(texts), told in "".join(texts)) == (int(told != ""), True)


def test_a_machines_list_counts_where_launches_ran() -> None:
    facts = Facts(by_gpu={"4": {"chip": "gfx942"}, "5": {"chip": "gfx90a"}}, is_machine=True)
    machine = SummedFile("agents.csv", Kind("rocprof", "rocprofv3", "agents"), {}, facts)
    groups = {Key("f", 1.0, 64.0): LaunchSums(1.0)}
    kind = Kind("rocprof", "rocprofv3", "trace")
    ran = SummedFile("trace.csv", kind, groups, Facts(), ("5",), "5")
    assert seen_in([ran, machine]) == {"chip": Counter(["gfx90a"])}
    with refused("^agents.csv: lists different GPUs .gfx942, gfx90a.; keep the row of the one"):
        seen_in([machine])


def test_names_lead_to_the_device_table_or_are_keys_themselves() -> None:
    assert key_of("NVIDIA B200") == "b200"
    assert key_of("gfx90a") == "gfx90a"  # the name of several GPUs
    assert key_of("gfx90a", 110) == "mi250x-gcd"
    assert key_of("Cray 1") == "cray-1"


def kernel(counted_ms: float, traced_ms: float, **counters: float) -> Kernel:
    """Ten launches."""
    counted_s, time_s = counted_ms / 1e3, traced_ms / 1e3
    return Kernel("f", 1.0, 64.0, 10.0, time_s, True, counted_s, counters, {})


def test_cycles_of_long_kernels_count_by_their_time_in_the_run() -> None:
    """2.1e6 cycles in 1 ms are 2100 in a µs; ten launches of 2 ms are 20 000 µs."""
    long, short = kernel(1, 2, GRBM_GUI_ACTIVE=2.1e6), kernel(0.49, 1, GRBM_GUI_ACTIVE=1e6)
    rates = cycle_rates([long, short])
    assert ([*rates], [*rates.values()]) == ([pytest.approx(2100.0)], [20_000])


class TestClockOfCounters:
    """Of kernels counted at 1000 MHz on an A100 of 1410 MHz; in 100 us 1.2 tells nothing."""

    @staticmethod
    def check(traced_us: float, *others: Kernel, mhz: float = 1000.0, said: bool = False) -> None:
        base = {"memory_mhz": 1215.0} | ({"engine_mhz": mhz} if said else {})
        setup = made("a100-sxm4-40gb", base, engine_mhz=mhz)
        check_clock_of_counters("trace.json", [kernel(0.1, traced_us / 1e3), *others], setup)

    @pytest.mark.parametrize(
        ("us", "mhz", "times"), [(75, 1000, "took 1.3 times"), (130, 1400, "took 0.77 times")]
    )
    def test_one_that_a_run_did_not_have_is_refused(
        self, us: float, mhz: float, times: str
    ) -> None:
        told = f"^trace.json: kernels {times} .*, at {mhz} MHz: its .* give base='engine={mhz}'$"
        with refused(told):
            self.check(us, mhz=mhz)
        with pytest.warns(DataWarning, match="were the clocks different"):
            self.check(us, mhz=mhz, said=True)

    def test_alike_is_nothing_to_say(self) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*as long while")
            self.check(90)
            self.check(115)
            self.check(75, kernel(0.3, 0.3))  # which has four fifths of the time
