"""A device file of one's own: checked, known by its key, and carried by tables and models.

The device is made: 10 CUs of 128 lanes, 256 bits; peaks are by hand.
"""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import readers
from synthetic import bottleneck_kernels as made
from synthetic.tidy import refused, rows

import mlscale
from mlscale.data.devices import (
    Device,
    device_keys,
    facts_to_carry,
    find_device,
    load_device,
    load_device_file,
    register_device,
    registered_devices,
)
from mlscale.data.measurements import Measurements
from mlscale.data.table import Table
from mlscale.data.table_files import read_table, write_table
from mlscale.errors import DataWarning
from mlscale.studies.parallel import sweep

UNITS = {**readers.DEVICE, "key": "made-gpu", "cu_count": 10}
SHEET = {
    "engine_mhz": 1000, "memory_mhz": 1000, "bandwidth_gb_per_s": 64, "fp32_gflops": 2560,
    "fp64_gflops": 2560, "source": "made",
}  # fmt: skip
LEFT_OUT = "left out"
MANY = "a list of positive numbers"

pytestmark = pytest.mark.usefixtures("forget_own_devices")


def written(folder: Path, **changes: Any) -> Path:
    values = {name: value for name, value in (UNITS | changes).items() if value != LEFT_OUT}
    path = folder / "gpu.json"
    path.write_text(json.dumps(values))
    return path


def test_the_required_fields_are_enough(tmp_path: Path) -> None:
    """Peaks by hand: 10 x 128 x 2 x 1 GHz, and 256 / 8 x 2 bytes x 1 GHz."""
    device = load_device_file(written(tmp_path))
    assert device.peak_fp32_gflops(1000) == 2560
    assert device.peak_bandwidth_gb_per_s(1000) == 64
    assert (device.name, device.datasheet, device.tdp_w) == ("made-gpu", None, None)
    assert device.engine_clocks_mhz() == device.memory_clocks_mhz() == ()
    assert load_device("made-gpu") == device
    assert device_keys()[-1] == "made-gpu"
    assert registered_devices() == (device,)


def test_optional_facts_and_names_which_are_taken_from_the_table(tmp_path: Path) -> None:
    clocks = {"engine_clock_range_mhz": [150, 300], "engine_clock_step_mhz": 75}
    names = ["NVIDIA Made GPU", "NVIDIA B200"]
    path = written(tmp_path, aliases=names, sources={"cu_count": "made"}, **clocks)
    device = load_device_file(path)
    assert device.engine_clocks_mhz() == (150, 225, 300)
    assert find_device("made gpu") == find_device("NVIDIA B200") == device
    assert find_device("b300") == load_device("b300")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_transfers_per_cycle": 4}, "bandwidth_gb_per_s of the data sheet is 64, but 128 "),
        ({"lanes_per_cu": 64}, "fp32_gflops of the data sheet is 2560, but 1280 follows from"),
        ({"datasheet": SHEET | {"bandwidth_gb_per_s": 66}}, ""),  # as a sheet rounds
    ],
)
def test_a_sheet_that_its_fields_contradict_is_told(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = written(tmp_path, **{"fp64_lanes_per_cu": 128, "datasheet": SHEET} | changes)
    with pytest.warns(DataWarning, match=said) if said else nullcontext():
        load_device_file(path)


ALL_WRONG = (
    "the device lacks cu_count; the device has unknown 'tdp'; memory_bus_bits of the device must "
    "be a positive whole number, not None; idle_w of the device must be a positive number, not"
)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cu_count": LEFT_OUT, "memory_bus_bits": None, "tdp": 300, "idle_w": "low"}, ALL_WRONG),
        ({"cu_count": 16.0}, "cu_count of the device must be a positive whole number, not 16.0"),
        ({"tdp_w": 0}, "tdp_w of the device must be a positive number, not 0"),
        ({"aliases": "GTX"}, "aliases of the device must be a list of text, not 'GTX'"),
        ({"supported_memory_mhz": ["1"]}, f"supported_memory_mhz of the device must be {MANY}, no"),
        ({"engine_clock_range_mhz": [2, 1]}, "must be a list of the lowest and the highest, posit"),
        ({"key": "h200"}, "key 'h200' is in the device table; give yours another key"),
        ({"key": LEFT_OUT}, "the device lacks key; name of the device must be text, not None"),
        ({"key": "My GPU"}, "key 'My GPU' must be lower-case letters, digits"),
        ({"datasheet": {"engine_mhz": 1}}, "the datasheet lacks bandwidth_gb_per_s, fp32_gflops"),
        ({"datasheet": SHEET | {"source": 1}}, "source of the datasheet must be text, not 1"),
        ({"datasheet": "none"}, "the datasheet must be a table of fields, not str"),
    ],
)
def test_one_line_says_all_that_is_wrong(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = written(tmp_path, **changes)
    with refused(f"^{path}: ") as caught:
        load_device_file(path)
    assert said in str(caught.value)
    assert registered_devices() == ()


def test_two_descriptions_of_one_key(tmp_path: Path) -> None:
    load_device_file(written(tmp_path))
    load_device_file(written(tmp_path))
    with refused("'made-gpu' is described in two ways, which differ in cu_count"):
        load_device_file(written(tmp_path, cu_count=11))


def test_the_shipped_table_cannot_be_overruled() -> None:
    before = load_device("h200")
    register_device(replace(before, cu_count=1))
    assert load_device("h200") == before


@pytest.mark.parametrize("key", device_keys())
def test_every_device_comes_back_from_json(key: str) -> None:
    device = load_device(key)
    assert Device.from_dict(json.loads(json.dumps(device.as_dict()))) == device


class TestIsCarried:
    """Where it is not known any more, as in another process."""

    @pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
    def test_by_a_table(
        self, tmp_path: Path, name: str, forget_own_devices: Callable[[], None]
    ) -> None:
        device = load_device_file(written(tmp_path))
        text = {"device": ["made-gpu"], "application": ["a"], "kernel": ["k"]}
        facts = facts_to_carry("made-gpu")
        write_table(Table("made", text, {"time_ms": np.ones(1)}, facts), tmp_path / name)
        assert facts_to_carry("h200") == {}
        forget_own_devices()
        read_table(tmp_path / name)
        assert load_device("made-gpu") == device

    def test_by_a_model(self, tmp_path: Path, forget_own_devices: Callable[[], None]) -> None:
        device = load_device_file(written(tmp_path, cu_count=16))
        facts = facts_to_carry("made-gpu")
        table = replace(made.measurements(6), device="made-gpu", metadata=facts)
        mlscale.train(table, (0, 1, 1), "nearest").save(tmp_path / "model")
        forget_own_devices()
        mlscale.load(tmp_path / "model")
        assert load_device("made-gpu") == device

    def test_by_the_metadata_of_a_frame(self) -> None:
        frame = pd.DataFrame(rows()).assign(device="My GPU")
        facts = {**UNITS, "name": "My GPU"}
        data = Measurements.from_frame(frame, metadata={"device_facts": facts})
        assert data.device == "made-gpu"
        assert load_device("made-gpu").memory_bus_bits == 256

    def test_to_worker_processes(self, tmp_path: Path) -> None:
        load_device_file(written(tmp_path))
        answers = sweep(bandwidth, [("made-gpu",), ("made-gpu",)], jobs=2)
        assert [value for _, value in answers] == [64, 64]


def bandwidth(key: str) -> float:
    return load_device(key).peak_bandwidth_gb_per_s(1000)


def test_damaged_facts_in_a_table(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("kernel,time_ms\nk,1\n")
    (tmp_path / "table.meta.json").write_text('{"device_facts": {"key": "made"}}')
    with refused(r"table\.csv: device_facts: the device lacks cu_count"):
        read_table(tmp_path / "table.csv")
