"""The device of a table, under whichever name it stands there."""

from pathlib import Path

import pandas as pd
import pytest
from synthetic.tidy import refused, rows, write_csv, write_parquet

from mlscale import Measurements, read


@pytest.mark.parametrize("name", ["NVIDIA GeForce GTX 980", " GeForce GTX 980", "GTX980"])
def test_under_the_name_that_its_tools_print(tmp_path: Path, name: str) -> None:
    # Hand: docs/devices.md promises that such a name is as good as the key.
    table = [row | {"device": name} for row in rows()]
    csv, parquet = write_csv(tmp_path / "t.csv", table), write_parquet(tmp_path / "t.pq", table)
    assert read(csv).device == read(parquet).device == "gtx980"
    assert Measurements.from_frame(pd.DataFrame(table)).device == "gtx980"


def test_a_name_that_several_devices_bear_is_kept(tmp_path: Path) -> None:
    table = [row | {"device": "A100"} for row in rows()]
    assert read(write_csv(tmp_path / "t.csv", table)).device == "A100"


def test_said_of_a_frame(tmp_path: Path) -> None:
    """Hand: it is of a frame without a device, or with a name that is no known GPU's."""
    frame = pd.DataFrame(rows())
    for given in (frame.drop(columns="device"), frame.assign(device="A100"), frame):
        assert Measurements.from_frame(given, device="GTX 980").device == "gtx980"
    named = frame.assign(device="NVIDIA GeForce GTX 980")
    assert Measurements.from_frame(named, device="gtx980").device == "gtx980"


@pytest.mark.parametrize("others", [["p100"], ["gtx980", "p100"], ["mine", "yours"]])
def test_rows_of_another_device_are_not_taken_for_the_one_said(others: list[str]) -> None:
    table = rows()
    frame = pd.DataFrame(table).assign(device=[others[n % len(others)] for n in range(len(table))])
    with refused(
        f"column 'device' holds {', '.join(others)}, but the device is said to be 'gtx980'"
    ):
        Measurements.from_frame(frame, device="gtx980")
