"""devices list, show and new on the command line, and --device with a device file."""

import csv
import io
import json
from pathlib import Path

import pytest
from command import Capture, refuse, succeed

from mlscale.data.device_table import device_keys, load_device

ATTRIBUTES = {
    "display_name": "NVIDIA Made 8000",
    "multiprocessor_count": "20",
    "global_memory_bus_width": "192",
    "compute_capability_major": "8",
    "compute_capability_minor": "6",
    "max_mem_frequency_khz": "7001000",
}
METRICS = {
    "gpu__time_duration.sum": ("nsecond", "10000"),
    "dram__bytes_read.sum": ("byte", "1000000"),
    "dram__bytes_write.sum": ("byte", "500000"),
}


pytestmark = pytest.mark.usefixtures("forget_own_devices")


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """A raw page of ncu, in its form, of one kernel on a GPU that the table lacks."""
    first = {
        "ID": "0", "Process ID": "1", "Process Name": "made", "Host Name": "127.0.0.1",
        "Kernel Name": "k(float *)", "Context": "1", "Stream": "7", "Block Size": "(256, 1, 1)",
        "Grid Size": "(64, 1, 1)", "Device": "0", "CC": "8.6",
    }  # fmt: skip
    names = list(first)
    names += [f"device__attribute_{name}" for name in ATTRIBUTES] + list(METRICS)
    units = [""] * (len(first) + len(ATTRIBUTES)) + [unit for unit, _ in METRICS.values()]
    cells = [*first.values(), *ATTRIBUTES.values()]
    cells += [value for _, value in METRICS.values()]
    path = tmp_path / "export.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([names, units, cells])
    return path


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


class TestNew:
    def test_from_an_export_to_a_table(self, capsys: Capture, tmp_path: Path, export: Path) -> None:
        """Described, and imported with the file, whose facts the table then carries."""
        own, table = tmp_path / "own.json", tmp_path / "profile.csv"
        out, err = succeed(capsys, "devices", "new", export, "-o", own)
        assert f"{own}: device 'nvidia-made-8000', NVIDIA Made 8000" in out
        assert "as on a10, unverified: lanes_per_cu" in out
        assert err == ""
        base = ["--base", "engine=1500,memory=7001"]
        succeed(capsys, "import", "ncu", export, "--device", own, *base, "-o", table)
        assert table.read_text().splitlines()[1].startswith("nvidia-made-8000,")
        facts = json.loads(table.with_suffix(".meta.json").read_text())["device_facts"]
        assert facts["memory_bus_bits"] == 192

    def test_what_lacks_is_said(self, capsys: Capture, tmp_path: Path) -> None:
        smi = tmp_path / "smi.xml"
        smi.write_text(
            "<nvidia_smi_log><gpu><product_name>NVIDIA Made</product_name></gpu></nvidia_smi_log>"
        )
        own = tmp_path / "own.json"
        _, err = succeed(capsys, "devices", "new", smi, "-o", own, "--key", "made")
        assert "null, to be filled in: cu_count, lanes_per_cu" in err
        message = refuse(capsys, tmp_path, "devices", "show", own)
        assert "cu_count of the device must be a positive whole number, not None" in message
        assert "memory_bus_bits of the device must be" in message

    def test_bad_input(self, capsys: Capture, tmp_path: Path, export: Path) -> None:
        given = ["devices", "new", export, "-o"]
        assert "ends in .json" in refuse(capsys, tmp_path, *given, tmp_path / "own.txt")
