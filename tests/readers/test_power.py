"""Board power, given or of a monitor's log, beside a profile that has none."""

from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from synthetic.tidy import refused

from mlscale.data.table import Table
from mlscale.errors import DataWarning
from mlscale.readers.power import with_power

NAME = "NVIDIA A100-SXM4-40GB"


def profile(
    device: str | None = None, engine_mhz: float = 1410.0, cu_count: float = 108.0,
    requested: dict[str, float] | None = None, **others: float,
) -> Table:  # fmt: skip
    """Two kernels; requested: what the user said of the clocks, where a profiler observed them."""
    axes = {"cu_count": cu_count, "engine_mhz": engine_mhz, "memory_mhz": 1215.0, "time_ms": 2.0}
    numbers = {name: np.full(2, value) for name, value in {**axes, **others, "a": 7.0}.items()}
    text = {"device": [device] * 2} if device else {}
    clocks = {"requested": requested, "observed": {"engine_mhz": engine_mhz}}
    metadata = {"origin": "measured"} | ({} if requested is None else {"clocks": clocks})
    return Table("made", {**text, "kernel": ["one", "two"]}, numbers, metadata)


def log(
    folder: Path, name: str = NAME, use: tuple[int, ...] = (0, 99, 99, 0),
    gpus: int = 1,
) -> Path:  # fmt: skip
    """Made: 200 W (of GPU 1: 300 W) while busy, 50 W else; no times."""
    path = folder / "power.csv"
    lines = ["index, name, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%]"]
    for percent in use:
        for gpu in range(gpus):
            watts = 200 + 100 * gpu if percent else 50
            lines.append(f"{gpu}, {name}, {watts} W, 1410 MHz, {percent} %")
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


A100 = "a100-sxm4-40gb"
# A log of an A100 at 1410 MHz, whose limit is 400 W; by hand, 1410 MHz are 94 % of 1500, 96 % of
# 1470 and 98.6 % of 1430; 1330 are 94 % of 1410. The profile, the log, its watts, and what is told.
FOO = "NVIDIA FOO 9"
TAKEN = [
    (profile(A100), NAME, 1, 200, ""),
    (profile(A100, 1430), NAME, 1, 200, ""),
    (profile(A100, 1470), NAME, 1, 200, r"1410 .* 1470 in the profile; was the power"),
    (profile(A100, 1500, requested={"engine_mhz": 1500}), NAME, 1, 200,
     r"1410 on average, 1500 in the profile; was the power measured in the same run"),
    (profile(A100), FOO, 1, 200, f"is of '{FOO}', which is not in the device table"),
    (profile("made-gpu"), FOO, 1, 200, ""),
    (profile(), NAME, 2, 300, ""),  # for GPU 1
]  # fmt: skip


@pytest.mark.parametrize(("table", "name", "gpus", "expected_w", "told"), TAKEN)
def test_a_log_of_the_profiles_run(
    tmp_path: Path, table: Table, name: str, gpus: int, expected_w: float, told: str
) -> None:
    path = log(tmp_path, name, gpus=gpus)
    with pytest.warns(DataWarning, match=told) if told else nullcontext():
        assert watts(with_power(table, path, "1" if gpus > 1 else None)) == expected_w


@pytest.mark.parametrize(
    ("table", "gpus", "message"),
    [
        (profile("rtx5090"), 1, r"GPU 0: is of 'NVIDIA .*', the profile of 'rtx5090'"),
        (profile(A100, 1500, requested={}), 1,
         r"engine_mhz is 1410 on average, 1500 in the profile: a power .* base='engine=1500'$"),
        (profile(A100, 1330, requested={}), 1,
         r"engine_mhz is 1410 on average, 1330 in the profile: .* ncu sets its own .*engine=1330"),
        (profile(), 2, r"has GPUs 0 \(\d.*\), 1 .*; name one with gpu="),
    ],
)  # fmt: skip
def test_a_log_of_another_run_is_refused(
    tmp_path: Path, table: Table, gpus: int, message: str
) -> None:
    with refused(message):
        with_power(table, log(tmp_path, gpus=gpus))


@pytest.mark.parametrize(
    ("table", "power", "message"),
    [
        (profile(A100), 1e9, r"1e.09 W is impossible: 'a100-sxm4-40gb' has a limit of 400 W"),
        (profile(A100), 0.25, r"0\.25 W is impossible, 'a100-sxm4-40gb' has at most 400; .* in W"),
        (
            profile("made-gpu"),
            387260.0,
            r"387260 W is impossible, no GPU .* \(mW divided by 1000\)",
        ),
        (
            profile("h100-sxm5", cu_count=132.0),
            34.0,
            "34 W is impossible: .* half of the 70 W that an",
        ),
        *(
            (profile(), text, "W is impossible; give watts, or a log")
            for text in ("0", "-3", "nan")
        ),
        (profile(), "inf", "W is impossible; give watts, or a log"),
        (profile(), "abc", "^abc: cannot be read: "),
        (profile(power_w=100.0), 200.0, "already has power_w; omit power="),
    ],
)
def test_watts_that_are_refused(table: Table, power: str | float, message: str) -> None:
    """Limits and idle power of the device table."""
    with refused(message):
        with_power(table, power)


@pytest.mark.parametrize(
    ("table", "power", "told"),
    [
        (profile("h100-sxm5", cu_count=132.0), 50.0, "50 W is below the 70 W that an idle 'h100-s"),
        (profile(A100, cu_count=42.0), 200.0, r"42 of the 108 SMs .* power is the whole board"),
        (profile("mi300x", cu_count=38.0), 300.0, ""),  # AMD's partitions have sensors of their own
    ],
)
def test_watts_that_are_told_of(table: Table, power: float, told: str) -> None:
    with pytest.warns(DataWarning, match=told) if told else nullcontext():
        assert watts(with_power(table, power)) == power


def test_a_log_without_power_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("#Entity GRACT\nID\nGPU 0 0.5\n")
    with refused(r"run.txt: a board power of nan W is impossible"):
        with_power(profile(), path)
