"""import of monitors' logs, and --power, on the command line."""

import json
from pathlib import Path

from command import Capture, refuse, succeed
from synthetic.exports import long_page, long_rows
from synthetic.monitor_logs import query, smi_dmon
from synthetic.monitor_readings import block
from text_files import written

from mlscale.data.table_files import read_table

FACTS = ("--device", "made-gpu", "--base", "cu=4")


def test_a_log_becomes_a_row_and_the_busy_span_is_printed(capsys: Capture, tmp_path: Path) -> None:
    """Made: 20 idle samples, 30 busy ones of 0.1 s at 200 W and 1410 MHz, 10 idle ones."""
    path, output = written(tmp_path, query(block(20, 30, 10)), "fft.csv"), tmp_path / "profile.csv"
    out, _ = succeed(capsys, "import", path, *FACTS, "-o", output)
    span = (
        "busy from sample 21 to 50 of 60: gpu_utilisation is 0.08 or more, a tenth of its highest; "
        "2 s before and 1 s after are cut; a sample every 0.1 s"
    )
    assert out.splitlines() == [
        f"{output}: 1 row on made-gpu",
        f"fft: fft.csv: {span}",
        "  engine_mhz 1410, memory_mhz 1215, time_ms 3000, power_w 200.0, gpu_utilisation 0.8000",
    ]
    table = read_table(output)
    assert table.text == {"device": ["made-gpu"], "application": ["fft"], "kernel": ["fft"]}
    assert table.metadata["profile_kind"] == "sampled"


def test_further_logs_are_appended(capsys: Capture, tmp_path: Path) -> None:
    output = tmp_path / "profile.csv"
    for gpu, name in enumerate(("fft.csv", "gemm.csv")):
        path = written(tmp_path, query(block(2, 3, 1, gpu=gpu)), name)
        out, _ = succeed(capsys, "import", path, *FACTS, "--append", "-o", output)
    assert "; 2 rows in all" in out
    table = read_table(output)
    assert table.text["kernel"] == ["fft", "gemm"]
    assert list(table.metadata["busy_spans"]) == ["fft", "gemm"]
    assert table.metadata["gpus"] == ["0", "1"]


def test_interval_and_time(capsys: Capture, tmp_path: Path) -> None:
    path, output = written(tmp_path, smi_dmon(block(2, 3, 1)), "fft.csv"), tmp_path / "profile.csv"
    complaint = refuse(capsys, tmp_path, "import", path, *FACTS, "-o", output)
    assert complaint.endswith("give --interval SECONDS (between two samples)")
    succeed(capsys, "import", path, *FACTS, "--interval", "2", "-o", output)
    assert read_table(output).numbers["time_ms"].tolist() == [6000]
    succeed(capsys, "import", path, *FACTS, "--time", "17", "-o", output)
    assert read_table(output).numbers["time_ms"].tolist() == [17]


def test_power_of_watts_and_of_a_log_joins_an_export(capsys: Capture, tmp_path: Path) -> None:
    path, output = tmp_path / "ncu.csv", tmp_path / "profile.csv"
    path.write_text(long_page(long_rows()))
    power = written(tmp_path, query(block(2, 3, 1)), "smi.csv")
    base = ("--device", "made-gpu", "--base", "cu=4,engine=1000,memory=500")
    for option, watts in (("250", 250), (power, 200)):
        out, _ = succeed(capsys, "import", path, *base, "--power", option, "-o", output)
        assert f"board power {watts}" in out
        table = read_table(output)
        assert set(table.numbers["power_w"]) == {watts}
        metadata = json.loads(output.with_suffix(".meta.json").read_text())
        assert metadata["power_kind"] == "board"
