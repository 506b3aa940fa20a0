"""A run's time and power at two clocks: what holds of the answer whatever the readings are.

Power rises with the clock on any GPU, and two readings are two readings, whichever comes first. No
other number is expected here.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Capture, flat, succeed

from mlscale import HardwareConfig, Model, Profiles
from mlscale.data.devices import load_device
from mlscale.data.profiles import MeasuredPoint
from mlscale.model.shipped import model_for, shipped_model

Reading = tuple[float, float, float]  # MHz, ms, W
HEADER = "device,application,kernel,cu_count,engine_mhz,memory_mhz,time_ms,power_w\n"
MEMORY_MHZ = {"h100-sxm5": 2619, "rtx4090": 10501, "a100-sxm4-40gb": 1215, "l4": 6251}
# Of the first, power between the readings was predicted 4.1 % below that at the lower clock; of the
# second, 1018 or 651 W at 3105 MHz, by which was the base.
FOUND = [
    ("h100-sxm5", (885, 59045, 615.39), (1905, 49609, 693)),
    ("rtx4090", (2055, 59276, 352.55), (1260, 62289, 251.16)),
]
COLUMNS = ("power_w_low", "power_w", "power_w_high", "time_ms_low", "time_ms", "time_ms_high")


def table(path: Path, device: str, reading: Reading) -> Path:
    mhz, ms, watts = reading
    cus = load_device(device).cu_count
    row = f"{device},run,run,{cus},{mhz},{MEMORY_MHZ[device]},{ms},{watts}\n"
    path.write_text(HEADER + row)
    path.with_suffix(".meta.json").write_text('{"profile_kind": "sampled", "power_kind": "board"}')
    return path


def both_orders(folder: Path, device: str, *readings: Reading) -> list[list[Path]]:
    """The tables of two readings, in either order."""
    files = [table(folder / f"{n}.csv", device, own) for n, own in enumerate(readings)]
    return [files, files[::-1]]


def answers(
    capsys: Capture, base: Path, also: Path, command: str, *options: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The command's predictions in the order of the engine clock, and the document."""
    out, _ = succeed(capsys, command, base, "--also", also, "--format", "json", *options)
    document = json.loads(out)
    rows = sorted(document.get("predictions", ()), key=lambda row: row["engine_mhz"])
    return rows, document


@pytest.mark.parametrize(("device", "one", "other"), FOUND)
def test_power_never_falls_and_the_order_does_not_matter(
    capsys: Capture, tmp_path: Path, device: str, one: Reading, other: Reading
) -> None:
    rows, swapped = (
        answers(capsys, base, also, "predict")[0]
        for base, also in both_orders(tmp_path, device, one, other)
    )
    assert len(rows) == len(swapped) > 40
    for column in COLUMNS:
        values, others = ([row[column] for row in of] for of in (rows, swapped))
        assert values == pytest.approx(others, rel=1e-6), column
        if column.startswith("power"):
            assert (np.diff(values) >= -1e-9 * np.array(values[1:])).all(), column
    for mhz, ms, watts in (one, other):
        row = next(row for row in rows if row["engine_mhz"] == mhz)
        assert [row[c] for c in COLUMNS] == pytest.approx([watts] * 3 + [ms] * 3)


@pytest.mark.parametrize(("device", "one", "other"), FOUND)
def test_advice_names_one_clock_whichever_is_the_base(
    capsys: Capture, tmp_path: Path, device: str, one: Reading, other: Reading
) -> None:
    best, swapped = (
        answers(capsys, base, also, "advise")[1]["menu"][-1]
        for base, also in both_orders(tmp_path, device, one, other)
    )
    for column in ("engine_mhz", "time_ms", "power_w", "energy_mj"):
        values = flat(best)[column], flat(swapped)[column]
        assert values[0] == pytest.approx(values[1], rel=1e-6), column


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


def profiled(device: str, base: Reading, also: Reading) -> Profiles:
    configs = [
        HardwareConfig(load_device(device).cu_count, mhz, MEMORY_MHZ[device])
        for mhz, _, _ in (base, also)
    ]
    (_, ms, watts), (_, also_ms, also_w) = base, also
    return Profiles(
        device,
        configs[0],
        kernels=("run",),
        applications=("run",),
        time_ms=np.array([ms]),
        power_w=np.array([watts]),
        counter_names=(),
        counters=np.empty((1, 0)),
        metadata={"profile_kind": "sampled", "power_kind": "board"},
        points=(MeasuredPoint(configs[1], np.array([also_ms]), np.array([also_w])),),
    )


@pytest.fixture(scope="module")
def model() -> Model:
    """The one that answers for all GPUs from two readings."""
    return shipped_model(profiled(*FOUND[0]))[1]


@pytest.mark.slow
def test_random_pairs(model: Model) -> None:
    """60 pairs: power rises, the order does not matter, and intervals keep to their side.

    The side is that of docs/howto/advice.md: at a lower clock time does not fall and power does not
    rise, but for 2 %, from either reading.
    """
    for device, base, also in pairs(60):
        ends = {}
        both = [profiled(device, *order) for order in ((base, also), (also, base))]
        found = [model_for(model, of, [of.points[0].config]).predict(of, 0.9) for of in both]
        clocks = np.array(found[0]["time"].grid.engine_mhz)
        for quantity, place in (("time", 1), ("power", 2)):
            one, other = (
                reading[place] * np.array([of.low, of.values, of.high])[:, 0, 0, :, 0]
                for predictions, reading in zip(found, (base, also), strict=True)
                for of in (predictions[quantity],)
            )
            assert one == pytest.approx(other, rel=1e-6)
            ends[quantity] = one
        assert (np.diff(ends["power"]) >= -1e-9 * ends["power"][:, 1:]).all()
        for mhz, ms, watts in (base, also):
            below, above = clocks <= mhz, clocks >= mhz
            assert (ends["power"][:, below] <= watts * (1 + 1e-9)).all()
            assert (ends["power"][:, above] >= watts * (1 - 1e-9)).all()
            assert (ends["time"][:, below] >= ms * np.exp(-0.02) * (1 - 1e-9)).all()
            assert (ends["time"][:, above] <= ms * np.exp(0.02) * (1 + 1e-9)).all()


def test_readings_that_contradict_each_other_by_their_noise(
    capsys: Capture, tmp_path: Path
) -> None:
    """1 % less power at the higher clock, which no GPU draws: power is flat between, and rises.

    But for the rows of the readings, which say what was measured.
    """
    readings = (1755, 50000, 495), (1500, 52000, 500)
    for base, also in both_orders(tmp_path, "h100-sxm5", *readings):
        rows, _ = answers(capsys, base, also, "predict")
        predicted = [row for row in rows if row["engine_mhz"] not in (1500, 1755)]
        for column in COLUMNS[:3]:
            values = np.array([row[column] for row in predicted])
            assert (np.diff(values) >= -1e-9 * values[1:]).all(), column
