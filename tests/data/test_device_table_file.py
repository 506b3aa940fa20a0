"""A device file of one's own: checked, known by its key, and carried by tables and models."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic.tidy import rows

from mlscale.data.devices import (
    device_keys,
    facts_to_carry,
    find_device,
    load_device,
    load_device_file,
    own_devices,
    register_device,
)
from mlscale.data.measurements import Measurements
from mlscale.data.table import Table
from mlscale.data.table_files import read_table, write_table
from mlscale.errors import DataWarning, InputError
from mlscale.studies.parallel import sweep

UNITS = {
    "key": "made-gpu",
    "cu_count": 10,
    "lanes_per_cu": 128,
    "fp64_lanes_per_cu": 2,
    "special_function_lanes_per_cu": 16,
    "schedulers_per_cu": 4,
    "wave_size": 32,
    "max_waves_per_cu": 48,
    "memory_bus_bits": 256,
    "memory_transfers_per_cycle": 2,
}


pytestmark = pytest.mark.usefixtures("forget_own_devices")


def written(folder: Path, **changes: Any) -> Path:
    values = {name: value for name, value in (UNITS | changes).items() if value != "left out"}
    path = folder / "gpu.json"
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize(
    ("floor", "clocks", "told"),
    [
        (
            1_065_000,
            {"engine_clock_range_mhz": [210, 1410]},
            "is 1065000 MHz, and its engine clocks",
        ),
        (1.065, {"engine_clock_range_mhz": [210, 1410]}, "engine clocks are 210 to 1410 MHz"),
        (1065, {"max_clock_mhz": 1000}, "engine clocks are at most 1000 MHz"),
        (0, {}, "voltage_floor_mhz of the device must be a positive number"),
    ],
)
def test_a_floor_of_the_voltage_that_is_no_clock_is_refused(
    floor: float, clocks: dict[str, Any], told: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=told):
        load_device_file(written(tmp_path, voltage_floor_mhz=floor, **clocks))
    assert "made-gpu" not in device_keys()


@pytest.mark.parametrize("clocks", [{}, {"engine_clock_range_mhz": [210, 1065]}])
def test_a_floor_of_the_voltage_is_taken(clocks: dict[str, Any], tmp_path: Path) -> None:
    device = load_device_file(written(tmp_path, voltage_floor_mhz=1065, **clocks))
    assert device.voltage_floor_mhz == 1065


def test_the_required_fields_are_enough(tmp_path: Path) -> None:
    """Peaks by hand: 10 x 128 x 2 x 1 GHz, and 256 / 8 x 2 bytes x 1 GHz."""
    device = load_device_file(written(tmp_path))
    assert device.peak_fp32_gflops(1000) == 2560
    assert device.peak_bandwidth_gb_per_s(1000) == 64
    assert (device.name, device.datasheet, device.tdp_w) == ("made-gpu", None, None)
    assert load_device("made-gpu") == device
    assert device_keys()[-1] == "made-gpu"
    assert own_devices() == (device,)


SHEET = {
    "engine_mhz": 1000, "memory_mhz": 1000, "bandwidth_gb_per_s": 64, "fp32_gflops": 2560,
    "fp64_gflops": 2560, "source": "made",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "of_sheet", "told"),
    [
        (
            {"memory_transfers_per_cycle": 4},
            {},
            (
                "bandwidth_gb_per_s of the data sheet is 64, but memory_bus_bits / 8 x "
                "memory_transfers_per_cycle x memory_mhz / 1000 give 128, which predictions use"
            ),
        ),
        (
            {},
            {"fp32_gflops": 5120},
            (
                "fp32_gflops of the data sheet is 5120, but cu_count x lanes_per_cu x "
                "fp32_issue_factor x 2 x engine_mhz / 1000 give 2560, which predictions use"
            ),
        ),
    ],
)
def test_a_sheet_that_its_fields_contradict_is_told(
    tmp_path: Path, changes: dict[str, Any], of_sheet: dict[str, float], told: str
) -> None:
    """By hand, as above: 64 GB/s, and 2560 GFLOPS at 10 x 128 lanes of either precision."""
    path = written(tmp_path, fp64_lanes_per_cu=128, datasheet=SHEET | of_sheet, **changes)
    with pytest.warns(DataWarning) as warned:
        load_device_file(path)
    [warning] = warned
    assert str(warning.message).startswith(f"{path}: {told}")


def test_a_sheet_that_rounds_is_none(tmp_path: Path) -> None:
    """A warning would be an error here."""
    sheet = SHEET | {"bandwidth_gb_per_s": 66, "fp64_gflops": 2500}
    load_device_file(written(tmp_path, fp64_lanes_per_cu=128, datasheet=sheet))


def test_optional_facts_and_sources(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        aliases=["NVIDIA Made GPU"],
        engine_clock_range_mhz=[150, 300],
        engine_clock_step_mhz=75,
        sources={"cu_count": "made"},
    )
    assert load_device_file(path).engine_clocks_mhz() == (150, 225, 300)
    device = find_device("made gpu")
    assert device is not None
    assert device.key == "made-gpu"


def test_it_takes_its_names_away_from_the_table(tmp_path: Path) -> None:
    load_device_file(written(tmp_path, aliases=["NVIDIA B200"]))
    device = find_device("NVIDIA B200")
    assert device is not None
    assert device.key == "made-gpu"
    assert find_device("b300") == load_device("b300")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"cu_count": "left out", "memory_bus_bits": None, "tdp": 300, "idle_w": "low"},
            (
                "the device lacks cu_count; the device has unknown 'tdp'; memory_bus_bits of the "
                "device must be a positive whole number, not None; idle_w of the device must be "
                "a positive number, not 'low'"
            ),
        ),
        ({"key": "h200"}, "key 'h200' is in the device table; give yours another key"),
        ({"key": "left out"}, "the device lacks key; name of the device must be text, not None"),
        ({"key": "My GPU"}, "key 'My GPU' must be small letters, digits"),
        ({"datasheet": {"engine_mhz": 1}}, "the datasheet lacks bandwidth_gb_per_s, fp32_gflops"),
    ],
)
def test_one_line_says_all_that_is_wrong(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = written(tmp_path, **changes)
    with pytest.raises(InputError) as error:
        load_device_file(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert own_devices() == ()


def test_two_descriptions_of_one_key(tmp_path: Path) -> None:
    load_device_file(written(tmp_path))
    load_device_file(written(tmp_path))
    with pytest.raises(InputError, match="'made-gpu' is described in two ways, which differ in cu"):
        load_device_file(written(tmp_path, cu_count=11))


def test_the_shipped_table_cannot_be_overruled() -> None:
    before = load_device("h200")
    register_device(replace(before, cu_count=1))
    assert load_device("h200") == before


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_table_carries_the_facts(
    tmp_path: Path, name: str, forget_own_devices: Callable[[], None]
) -> None:
    device = load_device_file(written(tmp_path))
    text = {"device": ["made-gpu"], "application": ["a"], "kernel": ["k"]}
    facts = facts_to_carry("made-gpu")
    write_table(Table("made", text, {"time_ms": np.ones(1)}, facts), tmp_path / name)
    assert facts_to_carry("h200") == {}
    forget_own_devices()
    read_table(tmp_path / name)
    assert load_device("made-gpu") == device


def test_damaged_facts_in_a_table(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("kernel,time_ms\nk,1\n")
    (tmp_path / "table.meta.json").write_text('{"device_facts": {"key": "made"}}')
    with pytest.raises(InputError, match=r"table\.csv: device_facts: the device lacks cu_count"):
        read_table(tmp_path / "table.csv")


def bandwidth(key: str) -> float:
    return load_device(key).peak_bandwidth_gb_per_s(1000)


def test_worker_processes_know_it(tmp_path: Path) -> None:
    load_device_file(written(tmp_path))
    assert [value for _, value in sweep(bandwidth, [("made-gpu",), ("made-gpu",)], jobs=2)] == [
        64,
        64,
    ]


def test_a_model_carries_the_facts(tmp_path: Path, forget_own_devices: Callable[[], None]) -> None:
    """Of a table of that device, trained and saved; loaded where the device is not known."""
    from synthetic import bottleneck_kernels as made

    import mlscale

    device = load_device_file(written(tmp_path, cu_count=16))
    table: Measurements = replace(
        made.measurements(6), device="made-gpu", metadata=facts_to_carry("made-gpu")
    )
    mlscale.train(table, (0, 1, 1), "nearest").save(tmp_path / "model")
    forget_own_devices()
    mlscale.load(tmp_path / "model")
    assert load_device("made-gpu") == device


def test_the_metadata_of_a_frame_make_it_known() -> None:
    """Hand: as those of a file do; without it no predictor knew its peaks, and none said so."""
    frame = pd.DataFrame(rows()).assign(device="My GPU")
    facts = {**UNITS, "name": "My GPU"}
    data = Measurements.from_frame(frame, metadata={"device_facts": facts})
    assert data.device == "made-gpu"
    assert load_device("made-gpu").memory_bus_bits == 256
