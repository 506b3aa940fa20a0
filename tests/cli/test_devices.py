"""devices list and show on the command line, and --device with a device file."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from command import Capture, refuse, succeed
from synthetic.exports import long_page
from text_files import written

from mlscale.data.devices import device_keys

pytestmark = pytest.mark.usefixtures("forget_own_devices")


class TestList:
    def test_keys_by_family(self, capsys: Capture) -> None:
        """Every key is there once, in as many lines as an answer has."""
        out, _ = succeed(capsys, "devices", "list")
        *families, more = out.splitlines()
        assert len(families) <= 24
        assert "mlscale devices list h100" in more
        words = re.sub(r"^  (older|[A-Z]\w+)  ", ",", "\n".join(families), flags=re.MULTILINE)
        assert sorted(re.findall(r"[\w-]+", words)) == sorted(device_keys())

    @pytest.mark.parametrize(
        ("pattern", "keys"),
        [
            ("H100", ["h100-sxm5", "h100-pcie", "h100-nvl"]),
            ("h100 PCI-e 80", ["h100-pcie"]),  # of its name, without case, spaces and dashes
            ("AD102", []),  # a chip is no name
        ],
    )
    def test_those_that_match(
        self, capsys: Capture, tmp_path: Path, pattern: str, keys: list[str]
    ) -> None:
        if not keys:
            assert "no GPU of the table matches" in refuse(
                capsys, tmp_path, "devices", "list", pattern
            )
            return
        out, _ = succeed(capsys, "devices", "list", pattern)
        rows = out.splitlines()[1:-1]
        assert [row.split()[0] for row in rows] == keys
        [row] = [row for row in rows if row.split()[0] == "h100-pcie"]
        assert row.split()[-6:] == ["114", "210-1755", "1593", "2000", "350", "W"]
        form = succeed(capsys, "devices", "list", pattern, "--format", "json")[0]
        assert [row["key"] for row in json.loads(form)] == keys

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
