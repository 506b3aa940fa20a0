"""devices list and show on the command line, and --device with a device file."""

import json
import re
from pathlib import Path

import pytest
from command import Cli
from synthetic.exports import long_page
from text_files import written

from mlscale.data.devices import device_keys

pytestmark = pytest.mark.usefixtures("forget_own_devices")


class TestList:
    def test_keys_by_family(self, cli: Cli) -> None:
        """Every key is there once, in as many lines as an answer has."""
        *families, more = cli("devices", "list").splitlines()
        assert len(families) <= 24
        assert "mlscale devices list h100" in more
        words = re.sub(r"^  (older|[A-Z]\w+)  ", ",", "\n".join(families), flags=re.MULTILINE)
        assert sorted(re.findall(r"[\w-]+", words)) == sorted(device_keys())

    @pytest.mark.parametrize(
        ("pattern", "keys"),
        [
            ("H100", ["h100-sxm5", "h100-pcie", "h100-nvl"]),
            ("h100 PCI-e 80", ["h100-pcie"]),  # its name without case, spaces and dashes
            ("AD102", []),  # a chip is no name
        ],
    )
    def test_those_that_match(self, cli: Cli, pattern: str, keys: list[str]) -> None:
        if not keys:
            assert "no GPU of the table matches" in cli.refused("devices", "list", pattern)
            return
        rows = cli("devices", "list", pattern).splitlines()[1:-1]
        assert cli("devices", pattern).splitlines()[1:-1] == rows
        assert [row.split()[0] for row in rows] == keys
        [row] = [row for row in rows if row.split()[0] == "h100-pcie"]
        assert row.split()[-6:] == ["114", "210-1755", "1593", "2000", "350", "W"]
        form = cli("devices", "list", pattern, "--format", "json")
        assert [row["key"] for row in json.loads(form)] == keys

    def test_csv_and_json_hold_the_same(self, cli: Cli) -> None:
        rows = cli.csv("devices", "list")
        again = cli.json("devices", "list")
        assert len(rows) == len(again) == len(device_keys())
        for row, other in zip(rows, again, strict=True):
            assert row == {k: "" if v is None else str(v) for k, v in other.items()}


class TestShow:
    def test_every_fact_with_unit_and_source(self, cli: Cli) -> None:
        out = cli("devices", "show", "NVIDIA L4")
        lines = {line.split()[0]: line for line in out.splitlines() if line}
        assert out.startswith("l4: NVIDIA L4\n")
        assert "deviceQuery, L4" in lines["cu_count"]
        assert lines["engine_clock_range_mhz"].split()[1:4] == ["210,", "2040", "MHz"]
        assert lines["schedulers_per_cu"].split()[1:] == ["4", "unverified"]
        assert "offers 123 engine clocks, 210 to 2040 MHz" in out  # (2040 - 210) / 15 + 1

    def test_json_is_a_device_file_but_for_the_key(self, cli: Cli, tmp_path: Path) -> None:
        entry = cli.json("devices", "show", "l4")
        path = tmp_path / "mine.json"
        path.write_text(json.dumps(entry | {"key": "mine", "cu_count": 60}))
        assert cli("devices", "show", path).startswith("mine: NVIDIA L4\n")


def test_a_table_carries_the_facts_of_a_device_file(cli: Cli, tmp_path: Path) -> None:
    """Edited from what is shown of an L4, as docs/reference/gpus.md says."""
    entry = cli.json("devices", "show", "l4")
    own, table = tmp_path / "mine.json", tmp_path / "profile.csv"
    own.write_text(json.dumps(entry | {"key": "mine", "memory_bus_bits": 128}))
    export = written(tmp_path, long_page(), "run.csv")
    base = ["--base", "engine=1500,memory=6251"]
    cli("import", export, "--device", own, *base, "-o", table)
    assert table.read_text().splitlines()[1].startswith("mine,")
    facts = json.loads(table.with_suffix(".meta.json").read_text())["device_facts"]
    assert facts["memory_bus_bits"] == 128
