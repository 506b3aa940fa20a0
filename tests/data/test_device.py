"""One device: its form as a dictionary, and what is refused there."""

import copy
import json
import math
from dataclasses import replace

import pytest

from mlscale.data.devices import Device, device_keys, load_device
from mlscale.errors import InputError

OLD_FIELDS = (
    "name", "vendor", "architecture", "cu_count", "lanes_per_cu", "fp64_lanes_per_cu",
    "special_function_lanes_per_cu", "schedulers_per_cu", "wave_size", "max_waves_per_cu",
    "memory_bus_bits", "memory_transfers_per_cycle", "datasheet", "note",
)  # fmt: skip


@pytest.mark.parametrize("key", device_keys())
def test_round_trip_through_json(key: str) -> None:
    device = load_device(key)
    assert Device.from_dict(json.loads(json.dumps(device.as_dict()))) == device


def test_as_dict_is_a_copy() -> None:
    device = load_device("gtx980")
    values = device.as_dict()
    assert isinstance(values["datasheet"], dict)
    values["datasheet"]["engine_mhz"] = 1
    assert isinstance(values["pci_ids"], list)
    values["pci_ids"].append("10de:0000")
    assert device == load_device("gtx980")


MISSING = object()


@pytest.mark.parametrize(
    ("path", "damage", "message"),
    [
        ("cu_count", MISSING, "the device lacks cu_count"),
        ("sm_count", 16, "the device has unknown 'sm_count'"),
        ("two\nlines", 16, r"the device has unknown 'two\nlines'"),
        ("cu_count", "16", "cu_count of the device must be a positive whole number, not '16'"),
        ("cu_count", 16.0, "cu_count of the device must be a positive whole number, not 16.0"),
        ("cu_count", True, "cu_count of the device must be a positive whole number, not True"),
        ("cu_count", 0, "cu_count of the device must be a positive whole number, not 0"),
        ("tdp_w", 0, "tdp_w of the device must be a positive number, not 0"),
        ("aliases", [980], "aliases of the device must be a list of text, not [980]"),
        ("aliases", "GTX", "aliases of the device must be a list of text, not 'GTX'"),
        (
            "supported_memory_mhz",
            ["3505"],
            "supported_memory_mhz of the device must be a list of positive numbers, not ['3505']",
        ),
        (
            "engine_clock_range_mhz",
            [1400, 135],
            (
                "engine_clock_range_mhz of the device must be a list of the lowest and the "
                "highest, positive numbers, not [1400, 135]"
            ),
        ),
        ("cu_count", None, "cu_count of the device must be a positive whole number, not None"),
        ("name", 980, "name of the device must be text, not 980"),
        ("name", ["two\nlines"], r"name of the device must be text, not ['two\nlines']"),
        ("name", ["x" * 99], f"name of the device must be text, not ['{'x' * 38}"),
        ("datasheet", "none", "the datasheet must be a table of fields, not str"),
        ("datasheet.source", MISSING, "the datasheet lacks source"),
        ("datasheet.tdp_w", 165, "the datasheet has unknown 'tdp_w'"),
        (
            "datasheet.engine_mhz",
            math.nan,
            "engine_mhz of the datasheet must be a positive number, not nan",
        ),
        (
            "datasheet.memory_mhz",
            math.inf,
            "memory_mhz of the datasheet must be a positive number, not inf",
        ),
        (
            "datasheet.fp32_gflops",
            -1,
            "fp32_gflops of the datasheet must be a positive number, not -1",
        ),
    ],
)
def test_damaged_dictionary(path: str, damage: object, message: str) -> None:
    values = copy.deepcopy(load_device("gtx980").as_dict())
    *outer, name = path.split(".")
    table: dict[str, object] = values
    for step in outer:
        inner = table[step]
        assert isinstance(inner, dict)
        table = inner
    if damage is MISSING:
        del table[name]
    else:
        table[name] = damage
    with pytest.raises(InputError) as error:
        Device.from_dict(values)
    assert str(error.value) == message
    assert "\n" not in message


@pytest.mark.parametrize("values", [None, "gtx980", 7, ["gtx980"]])
def test_what_is_no_dictionary(values: object) -> None:
    kind = type(values).__name__
    with pytest.raises(InputError, match=f"^the device must be a table of fields, not {kind}$"):
        Device.from_dict(values)


def test_all_faults_at_once() -> None:
    values = load_device("gtx980").as_dict()
    del values["wave_size"]
    values["cu_count"] = "many"
    with pytest.raises(InputError) as error:
        Device.from_dict(values)
    assert str(error.value) == (
        "the device lacks wave_size; cu_count of the device must be a positive whole number, "
        "not 'many'"
    )


def test_a_model_file_from_before_the_optional_facts() -> None:
    """Such a file carries the required fields alone; everything else is unknown."""
    required = ("key", *(name for name in OLD_FIELDS))
    values = {name: load_device("h200").as_dict()[name] for name in required}
    device = Device.from_dict(values)
    assert device.peak_fp32_gflops(1000) == load_device("h200").peak_fp32_gflops(1000)
    assert (device.l2_bytes, device.idle_w, device.aliases) == (None, None, ())
    assert device.engine_clocks_mhz() == ()
    assert device.memory_clocks_mhz() == ()


def test_several_missing_fields_are_named_in_order() -> None:
    values = load_device("gtx980").as_dict()
    del values["wave_size"], values["cu_count"]
    with pytest.raises(InputError, match=r"^the device lacks cu_count, wave_size$"):
        Device.from_dict(values)


def test_a_board_is_set_to_no_more_than_it_can_be() -> None:
    """Of 250 W; one entry may be of a board whose partner set another limit."""
    own = load_device("gtx980")
    for tdp_w, most_w, default_w in (
        (250.0, 300.0, 250.0), (250.0, 200.0, 200.0), (250.0, None, 250.0), (None, 200.0, 200.0),
        (None, None, None),
    ):  # fmt: skip
        device = replace(own, tdp_w=tdp_w, max_power_limit_w=most_w)
        assert device.default_power_w == default_w
        assert device.most_power_w == (most_w or tdp_w)
