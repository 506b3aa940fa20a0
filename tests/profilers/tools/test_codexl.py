"""CodeXL's files, made excerpts; the expected values are worked out by hand."""

from pathlib import Path

import pytest
from synthetic.exports import codexl, read, row

# 60 + 20 + 10 + 5 + 5 + 0 = 100 instructions a wave; 4 KB read in 2.5 ms.
EXPECTED = {
    "VALUInsts": 60, "SALUInsts": 20, "VFetchInsts": 10, "SFetchInsts": 5, "VWriteInsts": 5,
    "LDSInsts": 0, "Occupancy": 100, "CacheHit": 50, "NumWorkGroups": 16, "time_ms": 2.5,
    "ReadBandwidth": 4096 / 2.5e-3, "FetchPerLoadByte": 10 * 16 / 4096,
}  # fmt: skip


@pytest.mark.parametrize(("separator", "point"), [(",", ".")])
def test_separators(tmp_path: Path, separator: str, point: str) -> None:
    imported = read(tmp_path, codexl(separator, point), device="hd7970")
    values = row(imported)
    assert {n: values[n] for n in EXPECTED} == pytest.approx(EXPECTED)
    assert imported.table.text["application"] == ["vadd"]
    assert imported.table.text["kernel"] == ["add__k1"]


def test_commas_inside_braces(tmp_path: Path) -> None:
    text = codexl().replace("{64 1 1}", "{64,1,1}")
    assert row(read(tmp_path, text, device="hd7970"))["NumWorkGroups"] == 16


def test_flat_instructions_cannot_be_split(tmp_path: Path) -> None:
    text = codexl().replace("LDSInsts", "FlatVMemInsts")
    head, body = text.rsplit("0.00, 4.00", 1)
    imported = read(tmp_path, f"{head}100.00, 4.00{body}", device="hd7970")
    assert imported.features["VFetchInsts"].status == "missing"
