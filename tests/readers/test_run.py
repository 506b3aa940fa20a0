"""GPU and settings of a run: what files show and users give; by hand and the device table."""

import warnings
from collections import Counter

import pytest
from synthetic.tidy import refused

from mlscale import DataWarning
from mlscale.readers.given import Given
from mlscale.readers.join import Kernel
from mlscale.readers.launches import Facts, Key, LaunchSums, SummedFile
from mlscale.readers.registry import Kind
from mlscale.readers.run import Setup, check_clock_of_counters, cycle_rates, key_of, seen_in, set_up

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*as the profiler observed"),
    pytest.mark.filterwarnings("ignore:.*ncu may have held the clock"),
]


CLOCKS = {"engine_mhz": 1200.0, "memory_mhz": 1215.0}


def made(device: str | None, base: dict[str, float] | None = None, **facts: float | str) -> Setup:
    """The set-up of a made run.csv with facts."""
    seen = {fact: Counter[str | float]([value]) for fact, value in facts.items()}
    return set_up("run.csv", seen, Given(device, base or {}))


def settings(device: str, base: dict[str, float] | None = None, **facts: float) -> tuple[int, ...]:
    config = made(device, base, **facts).config
    return config.cu_count, int(config.engine_mhz), int(config.memory_mhz)


class TestClocks:
    """An RTX 4090 has 128 SMs, at most 3105 MHz, and 10501 MHz of memory."""

    def test_given_before_observed_before_the_only_one(self) -> None:
        assert settings("rtx4090", engine_mhz=2500, memory_mhz=10501) == (128, 2500, 10501)
        base = {"cu_count": 64.0, "engine_mhz": 2520.0, "memory_mhz": 10400.0}
        assert settings("rtx4090", base, engine_mhz=2500, memory_mhz=10501) == (64, 2520, 10400)
        with pytest.warns(DataWarning, match="memory_mhz 1300, the GPU's highest, .*memory=…"):
            assert settings("mi300x", {"engine_mhz": 2100.0}) == (304, 2100, 1300)

    @pytest.mark.parametrize(
        ("device", "base", "facts", "message"),
        [
            ("rtx4090", {}, {"engine_mhz": 2500, "memory_mhz": 13770},
             "memory_mhz: 13770 MHz cannot be, 'rtx4090' has at most 10501; if it is the data"),
            ("rtx4090", {}, {"engine_mhz": 2500, "memory_limit_mhz": 13770},
             "memory_mhz: 13770 MHz cannot be"),
            ("rtx4090", {"engine_mhz": 3600.0}, {}, "engine_mhz of --base: 3600 MHz cannot be"),
            ("l40s", {"engine_mhz": 2.4e6}, {}, r"engine_mhz of --base: 2.4e\+06 MHz cannot be"),
            ("mi300x", {"engine_mhz": 2200.0}, {"engine_limit_mhz": 2100},
             "the GPU goes up to engine=2100 by the files, --base says 2200"),
            ("l40s", {"engine_mhz": 2400.0}, {"engine_mhz": 2200},
             "engine_mhz was 2200 while profiling, --base says 2400; lock the clocks and profile"),
        ],
    )  # fmt: skip
    def test_that_cannot_be(
        self, device: str, base: dict[str, float], facts: dict[str, float], message: str
    ) -> None:
        with refused(f"^run.csv: {message}"):
            settings(device, base, **facts)

    def test_just_above_the_highest_is_the_highest(self) -> None:
        """ncu shows a B200's 1965 MHz as 1.97 Ghz; 1.96, below it, is what was observed."""
        assert settings("b200", engine_mhz=1970, memory_mhz=4000) == (148, 1965, 3996)
        assert settings("b200", engine_mhz=1960, memory_mhz=4000) == (148, 1960, 3996)

    def test_one_that_was_not_kept_is_told(self) -> None:
        """By hand: 2304 is 4 % below 2400."""
        with pytest.warns(DataWarning, match="was 2304 while profiling, 4 % off the 2400 of --ba"):
            run = settings("l40s", {"engine_mhz": 2400.0}, engine_mhz=2304, memory_mhz=9001)
        assert run == (142, 2400, 9001)

    def test_that_ncu_may_have_held_is_warned_of(self) -> None:
        """Below 0.9 x 3105 = 2795 MHz, unless the user says the clock."""
        with pytest.warns(DataWarning, match="ncu may have held .* at 2235 MHz, .* up to 3105; if"):
            settings("rtx4090", engine_mhz=2235, memory_mhz=10501)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*ncu may have held")
            settings("rtx4090", engine_mhz=2800, memory_mhz=10501)
            settings("rtx4090", {"engine_mhz": 2235.0}, engine_mhz=2235, memory_mhz=10501)
            settings("mi300x", engine_mhz=1000, memory_mhz=1300)

    def test_of_launches_at_several_the_mean_counts_or_is_asked_for(self) -> None:
        """Three at 2000 and one at 2040 MHz, which are 2 % apart; then one at 2400: 2100."""
        seen = {"engine_mhz": Counter[str | float]({2000.0: 3, 2040.0: 1})}
        base = {"memory_mhz": 10501.0}
        assert set_up("run.csv", seen, Given("rtx4090", base)).config.engine_mhz == 2010
        seen = {"engine_mhz": Counter[str | float]({2000.0: 3, 2400.0: 1})}
        with refused("is 2000 in one launch and 2400 in another; lock .* with --base engine=2100$"):
            set_up("run.csv", seen, Given("rtx4090", base))
        with pytest.warns(DataWarning, match="2000 in one .* and 2400 in another: all count as 21"):
            set_up("run.csv", seen, Given("rtx4090", base | {"engine_mhz": 2100.0}))
        with refused(
            "is 2000 in one launch and 2400 in another, --base says 2400; lock the clocks"
        ):
            set_up("run.csv", seen, Given("rtx4090", base | {"engine_mhz": 2400.0}))


class TestLacking:
    def test_all_that_lacks_is_asked_for_at_once(self) -> None:
        with refused(
            "^run.csv: does not say the GPU, engine_mhz, memory_mhz; give --device NAME --base "
            "engine=…,memory=… with what the GPU was set to; of a GPU that .* cu=… too, or a"
        ):
            made(None)
        with refused(
            "does not say cu_count, memory_mhz; give --base cu=…,memory=… .* as 'mine' is not in "
        ):
            made("mine", engine_mhz=900)
        with refused(r"give --base memory=… with .* \(memory: usually its highest, 2619\)$"):
            made("h100-sxm5", engine_mhz=1980)
        with refused(r"give --base engine=… with .* \(engine at most 2100\)"):
            made("mi300x", memory_mhz=1300, engine_limit_mhz=2100)

    def test_a_name_that_is_empty_is_none(self) -> None:
        """PyTorch's trace of an MI300X had one (case 7)."""
        with refused("^run.csv: does not say the GPU"):
            made(None, engine_mhz=2100, memory_mhz=1300, device_name="")


class TestCuCount:
    """An A100 has 108 SMs, an MI300X 304 CUs, an RX 7900 XTX 96."""

    @pytest.mark.parametrize(
        ("device", "cu_count", "message"),
        [
            ("a100-sxm4-40gb", 132, "132 CUs are more than the 108 of .* name it with --device"),
            ("a100-sxm4-40gb", 98, "98 CUs are fewer than the 108 .* with --base cu=98"),
            ("mi300x", 38, "38 CUs are fewer than the 304 of 'mi300x'; .*CPX.* with --device FILE"),
            ("mi300x", 152, "152 CUs are fewer"),
        ],
    )
    def test_another_is_refused(self, device: str, cu_count: int, message: str) -> None:
        with refused(message):
            settings(device, cu_count=cu_count, engine_mhz=1000, memory_mhz=1215)

    def test_a_part_that_the_user_confirms(self) -> None:
        facts = {"engine_mhz": 1410, "memory_mhz": 1215}
        assert settings("a100-sxm4-40gb", {"cu_count": 98.0}, cu_count=98, **facts)[0] == 98
        with refused("says 98 CUs, --base says 97"):
            settings("a100-sxm4-40gb", {"cu_count": 97.0}, cu_count=98, **facts)

    def test_pairs_of_rdna_are_no_partition(self) -> None:
        """PyTorch's trace says 48 of an RX 7900 XTX."""
        assert settings("rx7900xtx", cu_count=48, engine_mhz=2400, memory_mhz=1249)[0] == 96


class TestGpu:
    @pytest.mark.parametrize(
        ("name", "device", "key", "told"),
        [
            ("NVIDIA A100-PG509-200", "a100-sxm4-40gb", "a100-sxm4-40gb", None),
            ("NVIDIA PG-made-1", "a100-sxm4-40gb", "a100-sxm4-40gb", "which is not in the device"),
            ("NVIDIA GeForce RTX 4060 Ti", None, "rtx4060ti-16gb", "is taken for 'rtx4060ti-16gb'"),
        ],
    )
    def test_by_the_file_and_the_user(
        self, name: str, device: str | None, key: str, told: str | None
    ) -> None:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            assert made(device, CLOCKS, device_name=name).device == key
        texts = [str(warning.message) for warning in warned]
        assert (len(texts), (told or "") in "".join(texts)) == (int(told is not None), True)

    @pytest.mark.parametrize(
        ("name", "device"),
        [
            ("NVIDIA H100 80GB HBM3", "a100-sxm4-40gb"),
            ("A100 80GB", "a100-sxm4-40gb"),  # of several, but not of this one
            ("NVIDIA H100 80GB HBM3", "mine"),
        ],
    )
    def test_another_one_is_refused(self, name: str, device: str) -> None:
        with refused(f"^run.csv: is of '{name}', .*not of '{device}'; .* no other GPU$"):
            made(device, CLOCKS, device_name=name)

    def test_several_are_refused(self) -> None:
        seen = {"device_name": Counter[str | float](["NVIDIA H100 PCIe", "NVIDIA B200"])}
        with refused("^run.csv: is of several GPUs: NVIDIA B200, NVIDIA H100 PCIe; import one$"):
            set_up("run.csv", seen, Given())
        with refused("--device A100 80GB may be a100-sxm4-80gb or a100-pcie-80gb; name one"):
            made("A100 80GB")

    def test_a_machines_list_counts_where_launches_ran(self) -> None:
        facts = Facts(by_gpu={"4": {"chip": "gfx942"}, "5": {"chip": "gfx90a"}}, is_machine=True)
        machine = SummedFile("agents.csv", Kind("rocprof", "rocprofv3", "agents"), {}, facts)
        groups = {Key("f", 1.0, 64.0): LaunchSums(1.0)}
        ran = SummedFile(
            "trace.csv", Kind("rocprof", "rocprofv3", "trace"), groups, Facts(), ("5",), "5"
        )
        assert seen_in([ran, machine]) == {"chip": Counter(["gfx90a"])}
        with refused("^agents.csv: lists unlike GPUs .gfx942, gfx90a.; keep the row of the one"):
            seen_in([machine])

    def test_names_lead_to_the_device_table_or_are_keys_themselves(self) -> None:
        assert key_of("NVIDIA B200") == "b200"
        assert key_of("gfx90a") == "gfx90a"  # of several GPUs
        assert key_of("gfx90a", 110) == "mi250x-gcd"
        assert key_of("Cray 1") == "cray-1"


def kernel(counted_ms: float, traced_ms: float, **counters: float) -> Kernel:
    """Ten launches."""
    counted_s, time_s = counted_ms / 1e3, traced_ms / 1e3
    return Kernel("f", 1.0, 64.0, 10.0, time_s, True, counted_s, counters, {})


class TestClockByCycles:
    """An MI300X has 8 dies: 16 800 cycles of all of them in a µs are 2100 MHz of each."""

    def test_long_kernels_count_by_their_time_in_the_run(self) -> None:
        """2.1e6 cycles in 1 ms are 2100 in a µs; ten launches of 2 ms are 20 000 µs."""
        long, short = kernel(1, 2, GRBM_GUI_ACTIVE=2.1e6), kernel(0.49, 1, GRBM_GUI_ACTIVE=1e6)
        rates = cycle_rates([long, short])
        assert ([*rates], [*rates.values()]) == ([pytest.approx(2100.0)], [20_000])

    @pytest.mark.parametrize(
        ("key", "rates", "mhz"),
        [
            ("mi300x", {11_200.0: 1}, 1400),
            ("mi300x", {17_000.0: 1}, 2100),  # a little above the highest
            ("mi210", {600.0: 40, 1700.0: 960}, 1700),  # 4 % of the time at another clock
        ],
    )
    def test_is_what_was_observed(self, key: str, rates: dict[float, int], mhz: float) -> None:
        seen = {"cycles_per_us": Counter[str | float](rates)}
        assert set_up("run.csv", seen, Given(key, {"memory_mhz": 1300.0})).config.engine_mhz == mhz

    def test_other_clocks_are_refused(self) -> None:
        """An MI300A has 6 dies: 16 800 cycles would be 2800 MHz of each."""
        with refused("engine_mhz: 2800 MHz cannot be, 'mi300a' has at most 2100"):
            made("mi300a", cycles_per_us=16_800.0)
        with refused("engine_mhz was 1400 while profiling by GRBM_GUI_ACTIVE, --base says 2100"):
            made("mi300x", {"engine_mhz": 2100.0}, cycles_per_us=11_200.0)


class TestClockOfCounters:
    """Of kernels counted at 1000 MHz on an A100 of 1410 MHz; in 100 us 1.2 tells nothing."""

    @staticmethod
    def check(traced_us: float, *others: Kernel, mhz: float = 1000.0, said: bool = False) -> None:
        base = {"memory_mhz": 1215.0} | ({"engine_mhz": mhz} if said else {})
        setup = made("a100-sxm4-40gb", base, engine_mhz=mhz)
        check_clock_of_counters("trace.json", [kernel(0.1, traced_us / 1e3), *others], setup)

    @pytest.mark.parametrize(
        ("us", "mhz", "told"),
        [(75, 1000, "took 1.3 times"), (130, 1400, "took 0.77 times")],
    )
    def test_one_that_a_run_did_not_have_is_refused(self, us: float, mhz: float, told: str) -> None:
        with refused(
            f"^trace.json: kernels {told} .*, at {mhz} MHz: it is .* say --base engine={mhz}$"
        ):
            self.check(us, mhz=mhz)
        with pytest.warns(DataWarning, match="were the clocks others than here"):
            self.check(us, mhz=mhz, said=True)

    @pytest.mark.parametrize("us", [90, 115])
    def test_alike_is_nothing_to_say(self, us: float) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*as long while")
            self.check(us)
            self.check(75, kernel(0.3, 0.3))  # which has four fifths of the time
