"""devices list and show on the command line, and --device with a device file."""

import csv
import io
import json
from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from synthetic.exports import long_page
from text_files import written

from mlscale.data.devices import device_keys, load_device

pytestmark = pytest.mark.usefixtures("forget_own_devices")


class TestList:
    def test_table(self, capsys: Capture) -> None:
        out, _ = succeed(capsys, "devices", "list")
        lines = out.splitlines()
        assert [line.split()[0] for line in lines[2:]] == list(device_keys())
        [line] = [line for line in lines if line.startswith("h100-pcie ")]
        assert line.split()[-10:] == [
            "114", "1755", "210", "to", "1755", "1593", "2000", "51.2", "350",
            str(len(load_device("h100-pcie").unverified)),
        ]  # fmt: skip

    def test_csv_and_json_hold_the_same(self, capsys: Capture) -> None:
        rows = list(
            csv.DictReader(io.StringIO(succeed(capsys, "devices", "list", "--format", "csv")[0]))
        )
        again = json.loads(succeed(capsys, "devices", "list", "--format", "json")[0])
        assert len(rows) == len(again) == len(device_keys())
        for row, other in zip(rows, again, strict=True):
            assert row == {k: "" if v is None else str(v) for k, v in other.items()}


class TestShow:
    def test_every_fact_with_unit_and_source(self, capsys: Capture) -> None:
        out, _ = succeed(capsys, "devices", "show", "NVIDIA L4")
        lines = {line.split()[0]: line for line in out.splitlines() if line}
        assert out.startswith("l4: NVIDIA L4\n")
        assert "deviceQuery, L4" in lines["cu_count"]
        assert lines["engine_clock_range_mhz"].split()[1:4] == ["210,", "2040", "MHz"]
        assert lines["schedulers_per_cu"].split()[1:] == ["4", "unverified"]
        assert "offers 123 engine clocks, 210 to 2040 MHz" in out  # (2040 - 210) / 15 + 1

    def test_json_is_a_device_file_but_for_the_key(self, capsys: Capture, tmp_path: Path) -> None:
        entry = json.loads(succeed(capsys, "devices", "show", "l4", "--format", "json")[0])
        path = tmp_path / "mine.json"
        path.write_text(json.dumps(entry | {"key": "mine", "cu_count": 60}))
        out, _ = succeed(capsys, "devices", "show", path)
        assert out.startswith("mine: NVIDIA L4\n")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("H100", "there is no device 'H100'; did you mean h100-sxm5 or h100-pcie or h100-nvl?"),
            ("cray-1", "'mlscale devices list' names those of the table"),
            ("nothing.json", "nothing.json: cannot be read"),
        ],
    )
    def test_unknown(self, capsys: Capture, tmp_path: Path, name: str, message: str) -> None:
        assert message in refuse(capsys, tmp_path, "devices", "show", name)


def test_a_table_carries_the_facts_of_a_device_file(capsys: Capture, tmp_path: Path) -> None:
    """Edited from what is shown of an L4, as docs/devices.md says."""
    entry = json.loads(succeed(capsys, "devices", "show", "l4", "--format", "json")[0])
    own, table = tmp_path / "mine.json", tmp_path / "profile.csv"
    own.write_text(json.dumps(entry | {"key": "mine", "memory_bus_bits": 128}))
    export = written(tmp_path, long_page(), "run.csv")
    base = ["--base", "engine=1500,memory=6251"]
    succeed(capsys, "import", export, "--device", own, *base, "-o", table)
    assert table.read_text().splitlines()[1].startswith("mine,")
    facts = json.loads(table.with_suffix(".meta.json").read_text())["device_facts"]
    assert facts["memory_bus_bits"] == 128
