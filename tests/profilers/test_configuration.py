"""What a run's files show is compared with what the device has; expected: the device table."""

import warnings
from collections import Counter

import pytest
from synthetic.tidy import refused

from mlscale import DataWarning
from mlscale.data.device_table import find_device
from mlscale.profilers.configuration import key_of, run_configuration

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*what the profiler observed"),
    pytest.mark.filterwarnings("ignore:.*ncu holds the engine clock down"),
]


def run_of(device: str, base: dict[str, float] | None = None, **facts: float) -> tuple[int, ...]:
    """The configuration, as whole numbers, of a made run.csv with facts."""
    seen = {fact: Counter[str | float]([value]) for fact, value in facts.items()}
    config = run_configuration("run.csv", seen, device, base or {}).config
    return config.cu_count, int(config.engine_mhz), int(config.memory_mhz)


class TestClocks:
    """An RTX 4090 has 128 SMs, at most 3105 MHz, and 10501 MHz of memory."""

    def test_a_memory_clock_that_it_cannot_have(self) -> None:
        with refused(
            "^run.csv: memory_mhz: 13770 MHz cannot be, 'rtx4090' has at most 10501; if it is the "
            "data rate, give the clock, half of it; if it is another GPU, name it with --device$"
        ):
            run_of("rtx4090", engine_mhz=2500, memory_mhz=13770)

    def test_a_highest_memory_clock_that_it_cannot_have(self) -> None:
        with refused("memory_mhz: 13770 MHz cannot be, 'rtx4090' has at most 10501"):
            run_of("rtx4090", engine_mhz=2500, memory_limit_mhz=13770)

    def test_an_engine_clock_that_it_cannot_have_whatever_was_set(self) -> None:
        with refused("engine_mhz: 3600 MHz cannot be, 'rtx4090' has at most 3105; is it another"):
            run_of("rtx4090", {"engine_mhz": 3600}, engine_mhz=3600, memory_mhz=10501)

    @pytest.mark.parametrize("given", ["observed", "base"])
    def test_what_overclocking_reaches_is_taken(self, given: str) -> None:
        """3105 x 1.15 is 3570.75, 10501 x 1.15 is 12076.15."""
        clocks = {"engine_mhz": 3570.0, "memory_mhz": 12076.0}
        run = run_of("rtx4090", **clocks) if given == "observed" else run_of("rtx4090", clocks)
        assert run == (128, 3570, 12076)

    @pytest.mark.parametrize(
        ("clocks", "message"),
        [
            (
                {"engine_mhz": 5000, "memory_mhz": 14001},
                "engine_mhz of --base: 5000 MHz cannot be, 'rtx5090' has at most 3090; is it",
            ),
            (
                {"engine_mhz": 2407, "memory_mhz": 28002},
                "memory_mhz of --base: 28002 MHz cannot be, 'rtx5090' has at most 14001; if it is",
            ),
        ],
    )
    def test_a_base_that_it_cannot_have(self, clocks: dict[str, float], message: str) -> None:
        """GDDR7 of an RTX 5090 moves 28002 MT/s; nvidia-smi lists half of it."""
        with refused(f"^run.csv: {message}"):
            run_of("rtx5090", clocks)

    @pytest.mark.parametrize(
        ("device", "mhz", "mend"),
        [
            ("mi300x", 5200, "if it is the data rate, give the clock, a quarter of it; "),
            ("rx7900xtx", 19984, "if it is the data rate, give the clock, 1/16 of it; "),
            ("gb10", 17066, "is it another GPU"),
        ],
    )
    def test_the_data_rate_is_told_by_its_transfers(
        self, device: str, mhz: float, mend: str
    ) -> None:
        """By hand: transfers per cycle of each device times its memory clock."""
        with refused(f"{mhz} MHz cannot be, '{device}' has at most [0-9]+; {mend}"):
            run_of(device, {"engine_mhz": 2000, "memory_mhz": mhz})

    def test_just_above_the_highest_is_the_highest(self) -> None:
        """ncu shows a B200's 1965 MHz as 1.97 Ghz; 1.96, below it, is what was observed."""
        assert run_of("b200", engine_mhz=1970, memory_mhz=4000) == (148, 1965, 3996)
        assert run_of("b200", engine_mhz=1960, memory_mhz=4000) == (148, 1960, 3996)

    def test_of_launches_at_several_it_is_the_mean(self) -> None:
        """Three at 2000 and one at 2040 MHz."""
        clocks = Counter[str | float]({2000.0: 3, 2040.0: 1})
        seen = {"engine_mhz": clocks, "memory_mhz": Counter[str | float]([10501])}
        assert run_configuration("run.csv", seen, "rtx4090", {}).config.engine_mhz == 2010

    def test_the_sheet_bounds_the_memory_where_no_list_is_known(self) -> None:
        """An RTX 5090: 14001 MHz on the sheet, and no list."""
        with refused("memory_mhz: 16200 MHz cannot be, 'rtx5090' has at most 14001"):
            run_of("rtx5090", engine_mhz=2000, memory_mhz=16200)

    def test_the_sheets_engine_clock_is_no_bound(self) -> None:
        """The sheet of an RTX 5090 says 2407 MHz, which boards exceed; their highest is unknown."""
        assert run_of("rtx5090", engine_mhz=2850, memory_mhz=14001) == (170, 2850, 14001)

    def test_a_base_in_khz_is_refused(self) -> None:
        with refused(
            "^run.csv: engine_mhz of --base: 2.4e\\+06 MHz cannot be, 'l40s' has at most 2520; give"
        ):
            run_of("l40s", {"engine_mhz": 2.4e6, "memory_mhz": 9001})

    def test_a_clock_that_was_not_kept_is_told(self) -> None:
        """By hand: 2304 is 4 % below 2400; 2356, 1.8 % below, is a clock that was kept."""
        message = "engine_mhz was 2304 while profiling, 4 % off the 2400 of --base"
        with pytest.warns(DataWarning, match=message):
            run = run_of("l40s", {"engine_mhz": 2400}, engine_mhz=2304, memory_mhz=9001)
        assert run == (142, 2400, 9001)
        assert run_of("l40s", {"engine_mhz": 2400}, engine_mhz=2356, memory_mhz=9001) == run

    def test_a_clock_that_ncu_may_have_held_is_warned_of(self) -> None:
        """Below 0.9 x 3105 = 2795 MHz."""
        with pytest.warns(DataWarning, match="ncu holds .* up to 3105 MHz: .* faster than at 2235"):
            run_of("rtx4090", engine_mhz=2235, memory_mhz=10501)

    @pytest.mark.parametrize(
        ("device", "base", "engine_mhz", "memory_mhz"),
        [
            ("rtx4090", {}, 2800, 10501),
            ("rtx4090", {"engine_mhz": 2235.0}, 2235, 10501),  # as the user set it
            ("mi300x", {}, 1000, 1300),
        ],
    )
    def test_others_are_not(
        self, device: str, base: dict[str, float], engine_mhz: float, memory_mhz: float
    ) -> None:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            run_of(device, base, engine_mhz=engine_mhz, memory_mhz=memory_mhz)
        assert not [warning for warning in warned if "ncu" in str(warning.message)]

    @pytest.mark.filterwarnings("ignore:.*is the GPU's highest")
    @pytest.mark.parametrize(("device", "mhz"), [("a100-sxm4-40gb", 1215), ("mi300x", 1300)])
    def test_the_only_memory_clock_is_taken(self, device: str, mhz: int) -> None:
        """NVIDIA's tool lists one for an A100 of 40 GB; no tool sets that of an MI300X."""
        assert run_of(device, {"engine_mhz": 1000})[2] == mhz

    def test_one_of_several_memory_clocks_is_asked_for(self) -> None:
        with refused("does not say memory_mhz; give --base memory=…"):
            run_of("h100-sxm5", {"engine_mhz": 1000})

    def test_a_device_without_facts_is_not_compared(self) -> None:
        run = run_of("mine", {"cu_count": 4}, engine_mhz=9000, memory_mhz=99000)
        assert run == (4, 9000, 99000)


class TestCuCount:
    """An A100 has 108 SMs, an MI300X 304 CUs."""

    @pytest.mark.parametrize(
        ("cu_count", "message"),
        [
            (132, "132 CUs are more than the 108 of .*\\? .*h100-sxm.* has as many: give --device"),
            (133, "133 CUs are more than the 108 of .*\\? Name it with --device"),
            (98, "98 SMs are fewer than the 108 of .*; is it another GPU\\? .* --base cu=98 for a"),
        ],
    )
    def test_another_count_of_sms_is_refused(self, cu_count: int, message: str) -> None:
        with refused(message):
            run_of("a100-sxm4-40gb", cu_count=cu_count, engine_mhz=1410, memory_mhz=1215)

    def test_fewer_that_the_user_confirms_are_a_part(self) -> None:
        run = run_of(
            "a100-sxm4-40gb", {"cu_count": 98}, cu_count=98, engine_mhz=1410, memory_mhz=1215
        )
        assert run == (98, 1410, 1215)

    @pytest.mark.parametrize("base", [{}, {"cu_count": 38}])
    def test_a_partition_of_an_amd_gpu_is_refused(self, base: dict[str, float]) -> None:
        """An MI300X in CPX: an eighth of its CUs, which share not all of its memory."""
        with refused("38 CUs are fewer than the 304 of 'mi300x'; .*CPX.*give --device FILE"):
            run_of("mi300x", base, cu_count=38, engine_mhz=2100, memory_mhz=1300)

    @pytest.mark.parametrize("base", [{}, {"cu_count": 96}])
    def test_pairs_of_rdna_are_no_partition(self, base: dict[str, float]) -> None:
        """An RX 7900 XTX has 96 CUs, and PyTorch's trace says 48; half an MI300X is a partition."""
        clocks = {"engine_mhz": 2400.0, "memory_mhz": 1249.0}
        assert run_of("rx7900xtx", base, cu_count=48, **clocks)[0] == 96
        of_both = {"cu_count": Counter[str | float]([48, 96])}
        run = run_configuration("run.csv", of_both, "rx7900xtx", {**base, **clocks})
        assert run.config.cu_count == 96
        with refused("152 CUs are fewer than the 304 of 'mi300x'"):
            run_of("mi300x", {}, cu_count=152, engine_mhz=2100, memory_mhz=1300)

    def test_cus_of_amd_that_the_user_alone_says(self) -> None:
        base = {"cu_count": 38.0, "engine_mhz": 2100.0, "memory_mhz": 1300.0}
        assert run_of("mi300x", base)[0] == 38


class TestMemoryClock:
    """Where neither file nor user says it: by the device table, where there is no choice."""

    def test_of_a_gpu_that_chooses_it_is_the_highest(self) -> None:
        with pytest.warns(DataWarning, match="memory_mhz 1300 is the GPU's highest; .*memory=…"):
            assert run_of("mi300x", {"engine_mhz": 2100.0}) == (304, 2100, 1300)

    def test_one_that_can_be_set_is_asked_for(self) -> None:
        with refused("does not say memory_mhz; give --base memory="):
            run_of("mi50", {"engine_mhz": 1725.0})


class TestClockByCycles:
    """An MI300X has 8 dies: 16 800 cycles of all of them in a µs are 2100 MHz of each."""

    @staticmethod
    def run_at(cycles_per_us: dict[float, int], key: str = "mi300x", **base: float) -> float:
        seen = {"cycles_per_us": Counter[str | float](cycles_per_us)}
        base.setdefault("memory_mhz", 1300.0)
        return run_configuration("run.csv", seen, key, base).config.engine_mhz

    def test_is_what_was_observed(self) -> None:
        with pytest.warns(DataWarning, match="engine_mhz 1400 is what the profiler observed"):
            assert self.run_at({11_200.0: 1}) == 1400

    def test_a_little_above_the_highest_is_the_highest(self) -> None:
        with pytest.warns(DataWarning, match="engine_mhz 2100 is what"):
            assert self.run_at({17_000.0: 1}) == 2100

    def test_another_clock_than_was_said_is_refused(self) -> None:
        with refused(
            r"engine_mhz was 1400 while profiling \(by GRBM_GUI_ACTIVE of its kernels of 0.5 ms or "
            r"more\), --base says 2100; lock the clocks, and leave out first launches"
        ):
            self.run_at({11_200.0: 1}, engine_mhz=2100.0)

    def test_of_kernels_at_two_clocks_the_mean_over_time(self) -> None:
        """(1400 · 3 + 2000) ÷ 4."""
        with refused(
            "engine_mhz by GRBM_GUI_ACTIVE is 1400 in one launch and 2000 in another .* give "
            "--base engine=1550"
        ):
            self.run_at({11_200.0: 3, 16_000.0: 1})

    def test_is_not_asked_for_beside_the_gpu(self) -> None:
        """The GPU's dies are all that lacks for it; the memory's clock is asked for."""
        seen = {"cycles_per_us": Counter[str | float]({11_200.0: 1})}
        with refused("does not say the GPU, memory_mhz; give --device NAME --base memory=… with"):
            run_configuration("run.csv", seen, None, {})

    def test_another_gpu(self) -> None:
        """An MI300A has 6 dies: 16 800 cycles would be 2800 MHz of each."""
        with refused(
            "engine_mhz: 2800 MHz cannot be, 'mi300a' has at most 2100; is it another GPU"
        ):
            self.run_at({16_800.0: 1}, "mi300a")

    def test_dies_of_which_nothing_is_known_tell_none(self) -> None:
        assert self.run_at({11_200.0: 1}, "mine", cu_count=304.0, engine_mhz=2100.0) == 2100


class TestNames:
    """What the file calls the GPU beside what --device says; the table knows the rest."""

    @staticmethod
    def run_named(name: str, device: str | None) -> str:
        seen = {"device_name": Counter[str | float]([name])}
        clocks = {"engine_mhz": 1200.0, "memory_mhz": 1215.0}
        return run_configuration("run.csv", seen, device, clocks).device

    def test_a_board_that_the_table_lacks_is_what_the_user_says(self) -> None:
        """The warning without --device says to give it."""
        message = r"'NVIDIA PG-made-1', which is not in the .*; taken for 'a100-sxm4-40gb'"
        with pytest.warns(DataWarning, match=message):
            assert self.run_named("NVIDIA PG-made-1", "a100-sxm4-40gb") == "a100-sxm4-40gb"

    @pytest.mark.parametrize(("name", "device"), [
        ("NVIDIA H100 80GB HBM3", "a100-sxm4-40gb"),
        ("A100 80GB", "a100-sxm4-40gb"),  # of several, but not of this one
        ("NVIDIA H100 80GB HBM3", "mine"),
    ])  # fmt: skip
    def test_another_one_of_the_table_is_refused(self, name: str, device: str) -> None:
        with refused(f"^run.csv: is of '{name}', .*not .*'{device}'; what .* no other GPU$"):
            self.run_named(name, device)

    def test_a_name_of_a_board_that_the_table_lacks_too_is_told(self) -> None:
        """The driver calls the RTX 4060 Ti with 8 GB as it calls that with 16 GB."""
        name = "NVIDIA GeForce RTX 4060 Ti"
        said = f"run.csv: '{name}' is taken for 'rtx4060ti-16gb'. nvidia-smi names the 8 GB board"
        with pytest.warns(DataWarning, match=said):
            assert self.run_named(name, None) == "rtx4060ti-16gb"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert self.run_named(name, "rtx4060ti-16gb") == "rtx4060ti-16gb"

    def test_a_board_of_an_a100(self) -> None:
        """Device 20B0 in NVIDIA's list of supported chips, which is the SXM4 with 40 GB."""
        assert self.run_named("NVIDIA A100-PG509-200", "a100-sxm4-40gb") == "a100-sxm4-40gb"
        assert find_device("NVIDIA A100-PG509-200") == find_device("10de:20b0", 108)


def test_names_lead_to_the_device_table_or_are_keys_themselves() -> None:
    assert key_of("NVIDIA GeForce RTX 2070 SUPER") == "rtx2070s"
    assert key_of("NVIDIA B200") == "b200"
    assert key_of("gfx90a") == "gfx90a"  # of several GPUs
    assert key_of("gfx90a", 110) == "mi250x-gcd"
    assert key_of("Cray 1") == "cray-1"
