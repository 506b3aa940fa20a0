"""Board power joined to a table that has none."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from synthetic.exports import long_page
from synthetic.monitor_logs import dcgmi_dmon, load, query
from synthetic.monitor_readings import Reading, block, together

from mlscale.data.profiles import Profiles
from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError
from mlscale.profilers import import_profile
from mlscale.profilers.sampled import join_power


def profile() -> Table:
    axes = {"cu_count": 4.0, "engine_mhz": 1410.0, "memory_mhz": 1215.0, "time_ms": 2.0, "a": 7.0}
    numbers = {name: np.full(2, value) for name, value in axes.items()}
    return Table("made", {"kernel": ["one", "two"]}, numbers, {"origin": "measured"})


def test_watts_are_the_power_of_every_row() -> None:
    table = join_power(profile(), "250.5")
    assert table.numbers["power_w"].tolist() == [250.5, 250.5]
    assert list(table.numbers)[3:6] == ["time_ms", "power_w", "a"]
    assert table.metadata == {
        "origin": "measured", "power_kind": "board", "power_source": "250.5 W, as given",
    }  # fmt: skip


def test_a_log_gives_the_mean_of_its_busy_span(tmp_path: Path) -> None:
    """Made: 200 W while busy, 50 W before and after; no interval is needed for it."""
    path = tmp_path / "run.txt"
    path.write_text(dcgmi_dmon(block(3, 5, 2)))
    table = join_power(profile(), path)
    assert table.numbers["power_w"].tolist() == [200, 200]
    assert table.metadata["power_source"].startswith("mean of dcgmi dmon, run.txt, GPU 0, busy fr")


def test_pauses_draw_no_power_of_the_kernels(tmp_path: Path) -> None:
    """Made: 200 W while busy and 50 W in a pause between; of power alone a pause is not told."""
    path = tmp_path / "run.txt"
    path.write_text(dcgmi_dmon([*block(3, 5, 2), *block(0, 5, 2)]))
    assert join_power(profile(), path).numbers["power_w"].tolist() == [200, 200]
    ticks = [[Reading(None, power_w, 1410)] for power_w in (50, 200, 90, 200, 50)]
    path.write_text(query(ticks))
    assert join_power(profile(), path).numbers["power_w"][0] == pytest.approx(490 / 3)


def test_one_gpu_of_several_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.csv"
    path.write_text(query(together(block(1, 3, 1), block(1, 3, 1, power_w=300, gpu=1))))
    with pytest.raises(InputError, match="is of the GPUs 0, 1; name one with --gpu"):
        join_power(profile(), path)
    assert join_power(profile(), path, "1").numbers["power_w"].tolist() == [300, 300]


class TestAgainstTheProfile:
    """A log of an A100 at 1410 MHz (nvidia-smi's names), and a limit of 400 W on its sheet."""

    def test_the_same_is_taken(self, tmp_path: Path) -> None:
        table = join_power(self.of("a100-sxm4-40gb"), self.log(tmp_path))
        assert table.numbers["power_w"].tolist() == [200, 200]

    @staticmethod
    def of(device: str, engine_mhz: float = 1410.0, cu_count: float = 108.0) -> Table:
        table = profile()
        table.text["device"] = [device] * 2
        table.numbers["engine_mhz"][:] = engine_mhz
        table.numbers["cu_count"][:] = cu_count
        return table

    @staticmethod
    def log(folder: Path) -> Path:
        path = folder / "run.csv"
        header, *rows = query(block(1, 3, 1)).splitlines()
        lines = [f"name, {header}", *(f"NVIDIA A100-SXM4-40GB, {row}" for row in rows)]
        path.write_text("\n".join(lines) + "\n")
        return path

    def test_another_gpu_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"GPU 0: is of 'NVIDIA .*', the profile of 'rtx5090'"):
            join_power(self.of("rtx5090"), self.log(tmp_path))

    @pytest.mark.parametrize(
        ("device", "watches"),
        [("mi300x", "GPUs of NVIDIA"), ("simulated-gcn3", "GPUs of NVIDIA"), ("mine", None)],
    )
    def test_a_log_of_another_makers_tool_is_refused(
        self, tmp_path: Path, device: str, watches: str | None
    ) -> None:
        """dcgmi dmon names no GPU, but watches NVIDIA's alone; of 'mine' nothing is known."""
        path = tmp_path / "run.txt"
        path.write_text(dcgmi_dmon(block(3, 5, 2)))
        if watches is None:
            assert join_power(self.of(device), path).numbers["power_w"].tolist() == [200, 200]
            return
        with pytest.raises(InputError, match=f"watches {watches} alone, and '{device}' is none"):
            join_power(self.of(device), path)

    def test_a_script_of_ones_own_watches_any_gpu(self, tmp_path: Path) -> None:
        """nvidia-smi's names, without the units that nvidia-smi puts behind them; 200 W by hand."""
        path = tmp_path / "run.csv"
        path.write_text(re.sub(r" \[(W|MHz|%)\]", "", query(block(3, 5, 2), units=False)))
        assert join_power(self.of("mi300x"), path).numbers["power_w"].tolist() == [200, 200]
        of_log = load(path, device="mi300x", base={"cu_count": 304})
        assert of_log.table.text["device"] == ["mi300x"]
        path.write_text(query(block(3, 5, 2), units=False))
        with pytest.raises(InputError, match="watches GPUs of NVIDIA alone, and 'mi300x' is none"):
            join_power(self.of("mi300x"), path)

    def test_a_log_at_a_clock_that_the_gpu_cannot_have_is_refused(self, tmp_path: Path) -> None:
        """Without a name: 1905 MHz, and an A100's highest is 1410 by its data sheet."""
        path = tmp_path / "run.txt"
        path.write_text(dcgmi_dmon(block(3, 5, 2, engine_mhz=1905)))
        with pytest.raises(InputError, match=r"1905 MHz cannot be, 'a100-.*' has at most 1410; is"):
            join_power(self.of("a100-sxm4-40gb"), path)

    def test_a_name_that_is_not_known_is_told(self, tmp_path: Path) -> None:
        log = self.log(tmp_path)
        log.write_text(log.read_text().replace("A100-SXM4-40GB", "A9000"))
        with pytest.warns(DataWarning, match="of 'NVIDIA A9000', which is not in .* 'a100-sxm4-40"):
            join_power(self.of("a100-sxm4-40gb"), log)
        assert join_power(self.of("mine"), log).numbers["power_w"].tolist() == [200, 200]

    def test_other_clocks_are_warned_of(self, tmp_path: Path) -> None:
        with pytest.warns(
            DataWarning, match=r"engine_mhz is 1410 .* 1980 in the profile; is the p"
        ):
            join_power(self.of("a100-sxm4-40gb", 1980.0), self.log(tmp_path))

    @pytest.mark.parametrize(
        ("requested", "engine_mhz", "said"),
        [
            ({}, 1500.0, r"engine_mhz is 1410 .* 1500 in the profile: a power .* engine=1500$"),
            ({}, 1470.0, None),
            ({"engine_mhz": 1500.0}, 1500.0, None),
            ({}, 1330.0, r"engine_mhz is 1410 .* 1330 in the profile: ncu sets .* engine=1330$"),
            ({}, 1350.0, None),
            ({"engine_mhz": 1330.0}, 1330.0, None),
        ],
    )
    @pytest.mark.filterwarnings("ignore::mlscale.DataWarning")
    def test_a_run_far_from_a_clock_that_was_only_observed_is_refused(
        self, tmp_path: Path, requested: dict[str, float], engine_mhz: float, said: str | None
    ) -> None:
        """By hand: 1410 MHz are 94 % of 1500 and 96 % of 1470; 1330 are 94 % of it, 1350 96 %."""
        table = self.of("a100-sxm4-40gb", engine_mhz)
        table.metadata["clocks"] = {"requested": requested, "observed": {"engine_mhz": engine_mhz}}
        if said is None:
            assert join_power(table, self.log(tmp_path)).numbers["power_w"].tolist() == [200, 200]
            return
        with pytest.raises(InputError, match=said):
            join_power(table, self.log(tmp_path))

    def test_a_clock_that_was_nearly_kept_is_warned_of(self, tmp_path: Path) -> None:
        """The log's 1410 MHz are 3.4 % below 1460, and 1.4 % below 1430."""
        with pytest.warns(DataWarning, match="engine_mhz is 1410 .* 1460 in the profile"):
            join_power(self.of("a100-sxm4-40gb", 1460.0), self.log(tmp_path))
        join_power(self.of("a100-sxm4-40gb", 1430.0), self.log(tmp_path))

    def test_a_part_of_a_gpu_is_told(self) -> None:
        """A slice of 42 of an A100's 108 SMs; AMD's partitions have sensors of their own."""
        with pytest.warns(DataWarning, match="ran on 42 of the 108 SMs .* power is that of all"):
            join_power(self.of("a100-sxm4-40gb", cu_count=42.0), 200.0)
        assert join_power(self.of("mi300x", cu_count=38.0), 300.0).numbers["power_w"][0] == 300

    def test_milliwatts_of_a_gpu_that_is_not_known_are_refused(self) -> None:
        """As a log of one's own has them from NVML: 387260 mW."""
        with pytest.raises(InputError, match=r"387260 W cannot be, no GPU .* \(mW divided"):
            join_power(self.of("made-gpu"), 387260.0)

    def test_kilowatts_are_refused(self) -> None:
        """Of an A100 of 40 GB no idle power is known, and its limit is 400 W."""
        with pytest.raises(
            InputError, match=r"0\.25 W cannot be, 'a100-sxm4-40gb' has at most 400"
        ):
            join_power(self.of("a100-sxm4-40gb"), 0.25)
        with pytest.raises(
            InputError, match=r"0\.25 W cannot be: it is less than half of the 70 W"
        ):
            join_power(self.of("h100-sxm5", cu_count=132.0), 0.25)

    def test_more_than_the_board_draws_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"1e.09 W cannot be: 'a100-sxm4-40gb' has a limit of"):
            join_power(self.of("a100-sxm4-40gb"), 1e9)
        with pytest.raises(InputError, match="34 W cannot be: it is less than half of the 70 W"):
            join_power(self.of("h100-sxm5", cu_count=132.0), 34.0)
        with pytest.warns(DataWarning, match="50 W is below the 70 W that an idle 'h100-sxm5"):
            join_power(self.of("h100-sxm5", cu_count=132.0), 50.0)
        assert join_power(self.of("mine"), 900.0).numbers["power_w"].tolist() == [900, 900]


class TestOfAProfileThatNamesNoGpu:
    """ncu's details page says no GPU; the log of its power may. Names are nvidia-smi's."""

    H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"

    def test_the_gpu_of_the_log_is_taken_and_told(self, tmp_path: Path) -> None:
        power = self.log(tmp_path, self.H100, self.H100)
        with pytest.warns(DataWarning) as told:
            profiles = self.profiles(tmp_path, power=power, gpu="1")
        assert (profiles.device, profiles.base.cu_count) == ("h100-sxm5", 132)
        says = f"run.csv: does not say the GPU; it is '{self.H100}' by {power}"
        assert any(str(warning.message).endswith(says) for warning in told)

    def test_of_two_kinds_one_is_named(self, tmp_path: Path) -> None:
        power = self.log(tmp_path, self.H100, self.A100)
        with pytest.warns(DataWarning, match=f"it is '{self.H100}' by"):
            assert self.profiles(tmp_path, power=power, gpu="0").device == "h100-sxm5"
        with pytest.raises(InputError, match="does not say the GPU; give --device NAME"):
            self.profiles(tmp_path, power=power)

    def test_what_the_user_says_comes_first(self, tmp_path: Path) -> None:
        power = self.log(tmp_path, self.A100)
        with pytest.raises(InputError, match=f"is of '{self.A100}', the profile of 'h100-sxm5'"):
            self.profiles(tmp_path, power=power, device="h100-sxm5")

    def test_watts_name_none(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="does not say the GPU; give --device NAME"):
            self.profiles(tmp_path, power="200")

    @staticmethod
    def profiles(folder: Path, **options: Any) -> Profiles:
        (folder / "run.csv").write_text(long_page())
        base = {"engine_mhz": 1000.0, "memory_mhz": 500.0}
        return import_profile(folder / "run.csv", base=base, **options)

    @staticmethod
    def log(folder: Path, *names: str) -> Path:
        """One row of 200 W for each GPU."""
        header = "index, name, power.draw [W], utilization.gpu [%]"
        rows = [f"{gpu}, {name}, 200.00 W, 99 %" for gpu, name in enumerate(names)]
        (folder / "power.csv").write_text("\n".join([header, *rows]) + "\n")
        return folder / "power.csv"


@pytest.mark.parametrize("power", ["0", "-3", "inf", "nan"])
def test_watts_that_cannot_be_are_refused(power: str) -> None:
    with pytest.raises(InputError, match="W cannot be; give watts, or a log"):
        join_power(profile(), power)


def test_what_is_neither_watts_nor_a_file_is_refused() -> None:
    with pytest.raises(InputError, match=r"^abc: cannot be read: .*; give watts, or a monitor's"):
        join_power(profile(), "abc")


def test_a_log_without_power_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("#Entity GRACT\nID\nGPU 0 0.5\n")
    with pytest.raises(InputError, match="GPU 0: has no power"):
        join_power(profile(), path)
    with pytest.raises(InputError, match=r"none.txt: cannot be read"):
        join_power(profile(), tmp_path / "none.txt")


def test_power_that_is_there_is_not_replaced() -> None:
    with pytest.raises(InputError, match="has power_w already; leave --power away"):
        join_power(join_power(profile(), 100.0), 200.0)
