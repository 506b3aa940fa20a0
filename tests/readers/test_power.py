"""Board power, given or of a monitor's log, beside a profile that has none."""

from pathlib import Path

import numpy as np
import pytest

from mlscale.data.table import Table
from mlscale.errors import DataWarning, InputError
from mlscale.readers.power import with_power


def profile(
    device: str | None = None, engine_mhz: float = 1410.0, cu_count: float = 108.0,
    requested: dict[str, float] | None = None,
) -> Table:  # fmt: skip
    """Two kernels; requested: what the user said of the clocks, where a profiler observed them."""
    axes = {"cu_count": cu_count, "engine_mhz": engine_mhz, "memory_mhz": 1215.0, "time_ms": 2.0}
    numbers = {name: np.full(2, value) for name, value in {**axes, "a": 7.0}.items()}
    text = {"device": [device] * 2} if device else {}
    clocks = {"requested": requested, "observed": {"engine_mhz": engine_mhz}}
    metadata = {"origin": "measured"} | ({} if requested is None else {"clocks": clocks})
    return Table("made", {**text, "kernel": ["one", "two"]}, numbers, metadata)


def log(
    folder: Path, name: str = "NVIDIA A100-SXM4-40GB", use: tuple[int, ...] = (0, 99, 99, 0),
    mhz: float = 1410.0, gpus: int = 1,
) -> Path:  # fmt: skip
    """Made: 200 W (of GPU 1: 300 W) while busy, 50 W else; no times."""
    path = folder / "power.csv"
    lines = ["index, name, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]"]
    for percent in use:
        for gpu in range(gpus):
            watts = 200 + 100 * gpu if percent else 50
            lines.append(f"{gpu}, {name}, {watts} W, {mhz} MHz, {percent} %")
    path.write_text("\n".join(lines) + "\n")
    return path


def watts(table: Table) -> float:
    [power_w] = set(table.numbers["power_w"].tolist())
    return float(power_w)


def test_watts_are_the_power_of_every_row() -> None:
    table = with_power(profile(), "250.5")
    assert watts(table) == 250.5
    assert list(table.numbers)[3:6] == ["time_ms", "power_w", "a"]
    assert table.metadata == {
        "origin": "measured", "power_kind": "board", "power_source": "250.5 W, as given",
    }  # fmt: skip


def test_a_log_gives_the_mean_while_the_gpu_works(tmp_path: Path) -> None:
    """By hand: a pause between, as the head and the tail, draws no power of the kernels."""
    table = with_power(profile(), log(tmp_path, use=(0, 99, 0, 99, 0)))
    assert watts(table) == 200
    assert table.metadata["power_source"] == (
        "mean of nvidia-smi --query-gpu, power.csv, GPU 0, busy from sample 2 to 4 of 5: "
        "gpu_utilisation is 0.099 or more, a tenth of its highest"
    )


def test_the_limit_in_a_log_goes_with_its_power(tmp_path: Path) -> None:
    path = log(tmp_path)
    header, *rows = path.read_text().splitlines()
    stated = [f"{header}, power.limit [W]", *(f"{row}, 250.00 W" for row in rows)]
    path.write_text("\n".join(stated) + "\n")
    table = with_power(profile(), path)
    assert table.numbers["power_cap_w"].tolist() == [250, 250]
    assert list(table.numbers)[3:7] == ["time_ms", "power_w", "power_cap_w", "a"]


def test_one_gpu_of_several_is_named(tmp_path: Path) -> None:
    path = log(tmp_path, gpus=2)
    with pytest.raises(InputError, match=r"is of GPUs 0 \(\d.*\), 1 .*; name one with --gpu"):
        with_power(profile(), path)
    assert watts(with_power(profile(), path, "1")) == 300


# A log of an A100 at 1410 MHz, whose limit is 400 W; by hand, 1410 MHz are 94 % of 1500, 96 % of
# 1470 and 98.6 % of 1430; 1330 are 94 % of 1410. What says: of a warning, or with '!' of an error.
BESIDE: dict[str, tuple[Table, str]] = {
    "the same": (profile("a100-sxm4-40gb"), ""),
    "near": (profile("a100-sxm4-40gb", 1430), ""),
    "another GPU": (profile("rtx5090"), r"!GPU 0: is of 'NVIDIA .*', the profile of 'rtx5090'"),
    "another clock": (
        profile("a100-sxm4-40gb", 1470),
        r"1410 .* 1470 in the profile; is the power",
    ),
    "held": (
        profile("a100-sxm4-40gb", 1500, requested={}),
        r"!engine_mhz is 1410 on average, 1500 in the profile: a limit .* --base engine=1500$",
    ),
    "not held": (
        profile("a100-sxm4-40gb", 1330, requested={}),
        r"!engine_mhz is 1410 on average, 1330 in the profile: .* ncu sets its own .* engine=1330$",
    ),
    "held, as was said": (
        profile("a100-sxm4-40gb", 1500, requested={"engine_mhz": 1500}),
        r"1410 on average, 1500 in the profile; is the power of the same run",
    ),
}


def test_a_log_of_a_gpu_that_the_table_lacks_is_told(tmp_path: Path) -> None:
    path = log(tmp_path, "NVIDIA FOO 9")
    with pytest.warns(DataWarning, match=r"is of 'NVIDIA FOO 9', which is not in the device table"):
        assert watts(with_power(profile("a100-sxm4-40gb"), path)) == 200
    assert watts(with_power(profile("made-gpu"), path)) == 200


@pytest.mark.parametrize("case", BESIDE)
def test_a_log_must_be_of_the_profiles_run(tmp_path: Path, case: str) -> None:
    table, says = BESIDE[case]
    if says.startswith("!"):
        with pytest.raises(InputError, match=says[1:]):
            with_power(table, log(tmp_path))
    elif says:
        with pytest.warns(DataWarning, match=says):
            assert watts(with_power(table, log(tmp_path))) == 200
    else:
        assert watts(with_power(table, log(tmp_path))) == 200


@pytest.mark.parametrize(
    ("device", "power", "says"),
    [
        ("a100-sxm4-40gb", 1e9, r"!1e.09 W cannot be: 'a100-sxm4-40gb' has a limit of 400 W"),
        ("a100-sxm4-40gb", 0.25, r"!0\.25 W cannot be, 'a100-sxm4-40gb' has at most 400; .* in W"),
        ("made-gpu", 387260.0, r"!387260 W cannot be, no GPU .* \(mW divided by 1000\)"),
        ("h100-sxm5", 34.0, "!34 W cannot be: it is less than half of the 70 W that an idle"),
        ("h100-sxm5", 50.0, "50 W is below the 70 W that an idle 'h100-sxm5' was seen to draw"),
    ],
)
def test_power_that_the_board_cannot_draw(device: str, power: float, says: str) -> None:
    """Limits and idle power of the device table; the last is not refused, but told."""
    table = profile(device, cu_count=132.0 if device == "h100-sxm5" else 108.0)
    if says.startswith("!"):
        with pytest.raises(InputError, match=says[1:]):
            with_power(table, power)
    else:
        with pytest.warns(DataWarning, match=says):
            with_power(table, power)


def test_a_part_of_a_gpu_is_told() -> None:
    """A slice of 42 of an A100's 108 SMs; AMD's partitions have sensors of their own."""
    with pytest.warns(DataWarning, match=r"ran on 42 of the 108 SMs .* power is the whole board"):
        with_power(profile("a100-sxm4-40gb", cu_count=42.0), 200.0)
    assert watts(with_power(profile("mi300x", cu_count=38.0), 300.0)) == 300


@pytest.mark.parametrize(
    ("power", "says"),
    [
        *((text, "W cannot be; give watts, or a log") for text in ("0", "-3", "inf", "nan")),
        ("abc", "^abc: cannot be read: "),
    ],
)
def test_what_is_no_power_is_refused(power: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        with_power(profile(), power)


def test_a_log_without_power_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("#Entity GRACT\nID\nGPU 0 0.5\n")
    with pytest.raises(InputError, match=r"run.txt: a board power of nan W cannot be"):
        with_power(profile(), path)


def test_power_that_is_there_is_not_replaced() -> None:
    with pytest.raises(InputError, match="has power_w already; leave --power away"):
        with_power(with_power(profile(), 100.0), 200.0)
