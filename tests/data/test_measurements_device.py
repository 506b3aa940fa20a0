"""The device of a table, under whichever name it stands there."""

from pathlib import Path

import pandas as pd
import pytest
from synthetic.tidy import rows, write_csv, write_parquet

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
