"""Readings of one run: what holds of the answer whatever they are, and whichever is given first.

The numbers are made: of jobs whose power or time is above or below what it can be, and of two runs
one step of the clock apart that differ by noise. Power rises with the clock on any GPU, and two
readings are two readings; no other number is expected of them.
"""

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Cli

import mlscale
from mlscale.data.devices import load_device

HEADER = "device,application,kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
A100 = "a100-sxm4-80gb,j,j,108"
MEMORY_MHZ = {"h100-sxm5": 2619, "rtx4090": 10501, "a100-sxm4-40gb": 1215, "l4": 6251}
COLUMNS = ("power_w_low", "power_w", "power_w_high", "time_ms_low", "time_ms", "time_ms_high")
Reading = tuple[float, float, float]  # MHz, ms, W


def table(file: Path, *rows: str) -> Path:
    """A table of those rows."""
    file.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return file


def row(device: str, reading: Reading) -> str:
    """The row of a run at that reading."""
    mhz, ms, watts = reading
    return f"{device},j,j,{load_device(device).cu_count},{mhz},{MEMORY_MHZ[device]},{ms},{watts}"


def rises(values: list[float]) -> bool:
    """Whether none is below the one before, to rounding."""
    return bool((np.diff(values) >= -1e-9 * np.array(values[1:])).all())


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(
            ["l4,j,j,58,1635,6251,100,60", "l4,j,j,58,1620,6251,99.7,60.3",
             "l4,j,j,58,900,6251,140,35"],
            id="time-and-power-cross-by-noise",
        ),
        pytest.param(
            ["mi210,j,j,104,1530,1600,100,280", "mi210,j,j,104,1200,1600,118,200",
             "mi210,j,j,104,660,1600,190,120"],
            id="clocks-that-the-device-table-lacks",
        ),
        # Power between the readings was predicted 4.1 % below that at the lower clock.
        pytest.param(
            [row("h100-sxm5", (885, 59045, 615.39)), row("h100-sxm5", (1905, 49609, 693))],
            id="little-power-saved",
        ),
        # 1018 or 651 W at 3105 MHz, by which was the base.
        pytest.param(
            [row("rtx4090", (2055, 59276, 352.55)), row("rtx4090", (1260, 62289, 251.16))],
            id="far-below-the-highest-clock",
        ),
        # 1 % less power at the higher clock, which no GPU draws: power is flat between, and rises.
        pytest.param(
            [row("h100-sxm5", (1755, 50000, 495)), row("h100-sxm5", (1500, 52000, 500))],
            id="power-falls-by-noise",
        ),
    ],
)  # fmt: skip
def test_the_order_changes_nothing_and_power_rises(
    cli: Cli, tmp_path: Path, rows: list[str]
) -> None:
    """Each reading may be the base: the same clocks are tried, with the same answers.

    What is measured keeps its numbers; between, power and its ends do not fall as the clock rises.
    """
    files = [table(tmp_path / f"{number}.csv", row) for number, row in enumerate(rows)]
    answers, advised = [], []
    for base, *others in permutations(files):
        also = [word for file in others for word in ("--also", file)]
        found = cli.json("predict", base, *also)["predictions"]
        answers.append({at["engine_mhz"]: at for at in found})
        advised.append(cli.json("advise", base, *also)["menu"][-1])
    for answer in answers[1:]:
        assert answer.keys() == answers[0].keys()
        for mhz, at in answers[0].items():
            for name in (*COLUMNS, "energy_mj"):
                assert answer[mhz][name] == pytest.approx(at[name], rel=1e-6)
    assert len({choice["at"]["engine_mhz"] for choice in advised}) == 1
    read = {float(cells[4]): cells for cells in (row.split(",") for row in rows)}
    between = [at for mhz, at in sorted(answers[0].items()) if mhz not in read]
    for column in COLUMNS[:3]:
        assert rises([at[column] for at in between])
    for mhz, (*_, ms, watts) in read.items():
        measured = [answers[0][mhz][column] for column in COLUMNS]
        assert measured == pytest.approx([float(watts)] * 3 + [float(ms)] * 3)


def pairs(count: int) -> list[tuple[str, Reading, Reading]]:
    """Readings as boards may give them.

    The lower clock is 0.45 to 0.9 of the higher; time rises with the inverse clock to a power of 0
    to 1, and power falls with the clock to one of 0.02 to 2.5.
    """
    draw = np.random.default_rng(0).uniform
    found = []
    for k in range(count):
        device = tuple(MEMORY_MHZ)[k % len(MEMORY_MHZ)]
        entry = load_device(device)
        assert entry.datasheet is not None
        high = 15 * round(draw(0.7, 1) * entry.datasheet.engine_mhz / 15)
        low = 15 * round(draw(0.45, 0.9) * high / 15)
        ms, watts = draw(1e4, 1e5), draw(0.3, 0.98) * (entry.tdp_w or 0)
        slower, less = (high / low) ** draw(0, 1), (high / low) ** draw(0.02, 2.5)
        found.append((device, (high, ms, watts), (low, ms * slower, watts / less)))
    return found


@pytest.mark.slow
def test_random_pairs(tmp_path: Path) -> None:
    """60 pairs: power rises, and intervals keep to their side of either reading.

    The side is that of docs/howto/advice.md: at a lower clock time does not fall and power does not
    rise, but for 2 %.
    """
    for device, base, also in pairs(60):
        files = [
            table(tmp_path / f"{n}.csv", row(device, own)) for n, own in enumerate((base, also))
        ]
        found = mlscale.predict(files[0], also=files[1]).frame.sort_values("engine_mhz")
        between = found[~found.engine_mhz.isin([base[0], also[0]])]
        for mhz, ms, watts in (base, also):
            below, above = between[between.engine_mhz < mhz], between[between.engine_mhz > mhz]
            for column in COLUMNS[:3]:
                assert rises(list(between[column]))
                assert (below[column] <= watts * (1 + 1e-9)).all()
                assert (above[column] >= watts * (1 - 1e-9)).all()
            for column in COLUMNS[3:]:
                assert (below[column] >= ms * np.exp(-0.02) * (1 - 1e-9)).all()
                assert (above[column] <= ms * np.exp(0.02) * (1 + 1e-9)).all()


def test_a_kernel_without_a_second_time_is_said_to_be_so(cli: Cli, tmp_path: Path) -> None:
    """Its time has the bounds of one clock: at 1500 of 1800 MHz from 50 to 60 ms."""
    base = table(tmp_path / "0.csv", "l4,j,k1,58,1800,6251,100,60", "l4,j,k2,58,1800,6251,50,55")
    also = table(tmp_path / "1.csv", "l4,j,k1,58,1200,6251,130,40")
    document: dict[str, Any] = cli.json("predict", base, "--also", also, "--at", "engine=1500")
    first, second = document["predictions"]
    assert [second["time_ms_low"], second["time_ms_high"]] == pytest.approx([50, 60])
    assert first["time_ms_high"] - first["time_ms_low"] < 6  # its bounds are 100 to 120 ms
    [note] = [one for one in document["notes"] if "was measured at one clock only" in one["text"]]
    assert (note["code"], note["kernels"]) == ("R07", ["k2"])


@pytest.mark.parametrize("kernel", ["j", "ncclDevKernel_AllReduce"])
def test_over_counts_it_is_told_of_counts(cli: Cli, tmp_path: Path, kernel: str) -> None:
    """One count bounds time by counts; intervals over counts were held on no GPU left out."""
    base = table(tmp_path / "0.csv", f"rtx-a6000,j,{kernel},84,1800,8001,100,280")
    also = table(tmp_path / "1.csv", f"rtx-a6000,j,{kernel},42,1800,8001,170,220")
    told = "".join(cli.both("predict", base, "--at", "cu=42", "--notes"))
    assert "measured at one CU count only" in told
    assert "held on" not in "".join(cli.both("predict", base, "--also", also, "--notes"))


def test_a_cap_below_all_readings_asks_for_a_third(cli: Cli, tmp_path: Path) -> None:
    """1400 is 0.82 of 1700 MHz: half of that is 850, next to which the GPU has 855."""
    base = table(tmp_path / "0.csv", "rtx3090,j,j,82,1700,9501,100,340")
    also = table(tmp_path / "1.csv", "rtx3090,j,j,82,1400,9501,104,275")
    out = cli("advise", base, "--also", also, "--lever", "cap", "--max-slowdown", 30)
    assert "  To know more below these clocks, run it at about 855 MHz too: --also FILE.\n" in out


def test_the_report_has_the_verdicts_lines_each_on_its_own(cli: Cli, tmp_path: Path) -> None:
    """The first at the top, the second unfolds."""
    base = table(tmp_path / "0.csv", f"{A100},1410,1593,100,350")
    also = table(tmp_path / "1.csv", f"{A100},840,1593,130,200")
    text = cli.page(base, "--also", also, "--max-slowdown", 5)
    assert re.search(r"<h1>Set \d+ MHz: ", text)
    assert re.search(r"<li>\d+ MHz would be .*, with a \d+ % chance of exceeding 5 %", text)
