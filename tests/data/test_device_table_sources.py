"""Each number of the device table is in exactly one of the sources and the unverified."""

import json
from pathlib import Path
from typing import Any

import pytest

from mlscale.data import devices
from mlscale.data.devices import device_keys

FOLDER = Path(devices.__file__).parent
DEVICES = json.loads((FOLDER / "devices.json").read_text(encoding="utf-8"))["devices"]
SOURCES = json.loads((FOLDER / "devices_sources.json").read_text(encoding="utf-8"))


def numbers(entry: dict[str, Any]) -> set[str]:
    """The fields that hold a number, numbers, or PCI ids."""
    sheet = {f"datasheet.{name}": value for name, value in (entry["datasheet"] or {}).items()}
    values = entry | sheet
    lists = {name for name, value in values.items() if isinstance(value, list)}
    return {name for name, value in values.items() if isinstance(value, int | float)} | lists - {
        "aliases",
        "shared_names",
        "unverified",
    }


@pytest.mark.parametrize("key", device_keys())
def test_each_number_has_a_source_or_is_marked(key: str) -> None:
    sourced, unverified = set(SOURCES["devices"][key]), set(DEVICES[key].get("unverified", ()))
    assert not sourced & unverified
    assert sourced | unverified == numbers(DEVICES[key])


def test_sources_are_spelt_out_and_used() -> None:
    used = {source for of in SOURCES["devices"].values() for each in of.values() for source in each}
    assert used == set(SOURCES["sources"])
    assert all(SOURCES["sources"].values())
