"""Nsight Compute where the locale writes decimal commas; made excerpts, numbers by hand."""

import re
from pathlib import Path

import pytest
from synthetic.exports import NCU, NCU_TEXT, long_page, long_rows, read, row, wide_page

from mlscale import InputError
from mlscale.profilers.exports.locales import with_point

# 117 344 ns, in which 27 595 520 bytes are 235 GB/s; 65.77 % of the cores' peak.
SPANISH = {
    "gpu__time_duration.sum": ("ns", "117.344"),
    "dram__bytes.sum": ("byte", "27.595.520"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "65,77"),
}
ENGLISH = {
    "gpu__time_duration.sum": ("ns", "117,344"),
    "dram__bytes.sum": ("byte", "27,595,520"),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "65.77"),
}
BASE = {"cu_count": 128.0, "engine_mhz": 2520.0, "memory_mhz": 10501.0}


def values(tmp_path: Path, page: str) -> dict[str, float]:
    return row(read(tmp_path, page, device="rtx4090", base=BASE))


@pytest.mark.parametrize("metrics", [SPANISH, ENGLISH], ids=["commas", "points"])
def test_a_page_of_csv(tmp_path: Path, metrics: dict[str, tuple[str, str]]) -> None:
    """The RTX 4090's bus passes 1008.096 GB/s at 10 501 MHz."""
    of = values(tmp_path, long_page(long_rows(metrics=metrics)))
    assert of["time_ms"] == pytest.approx(0.117344)
    assert of["core_utilisation"] == pytest.approx(0.6577)
    assert of["dram_utilisation"] == pytest.approx(27_595_520 / 0.117344e-3 / 1008.096e9)


def test_the_raw_page(tmp_path: Path) -> None:
    of = {name: "3.500" if name == "gpu__time_duration.sum" else "2,50" for name in NCU}
    page = wide_page([of])
    assert '"3.500"' in page
    assert row(read(tmp_path, page.replace('"us"', '"ns"')))["time_ms"] == pytest.approx(0.0035)


@pytest.mark.parametrize("end", ["\n", "\r\n", " \r\n"])
def test_text(tmp_path: Path, end: str) -> None:
    """The same as with points, every number of it; Windows ends its lines in two characters."""
    swapped = str.maketrans(".,", ",.")
    number = re.compile(r"(?m)^(    \S.* )([\d.,]+)$")
    text = number.sub(lambda cell: cell[1] + cell[2].translate(swapped), NCU_TEXT)
    assert "        20,00\n" in text
    assert "        2.048\n" in text
    assert row(read(tmp_path, text.replace("\n", end))) == row(read(tmp_path, NCU_TEXT))


def test_one_decimal_is_one_too() -> None:
    """As a spreadsheet leaves it that takes ends of 0 away; what is no number stays as it is."""
    assert [with_point(cell) for cell in ("1.234,5", "27,5", "8", "1.23,5")] == [
        "1234.5",
        "27.5",
        "8",
        "1.23,5",
    ]


@pytest.mark.parametrize(
    "metrics",
    [
        {"gpu__time_duration.sum": ("ns", "117.344")},
        {"gpu__time_duration.sum": ("nsecond", "117.344")},
        {**SPANISH, "lts__t_sector_hit_rate.pct": ("%", "50.00")},
        {"gpu__time_duration.sum": ("us", "10"), "dram__bytes.sum": ("byte", "27.595")},
        {"gpu__time_duration.sum": ("ns", "117,344"), "dram__bytes.sum": ("byte", "27.595.520")},
        {**ENGLISH, "dram__bytes.sum": ("byte", "27.595.520")},
    ],
    ids=[
        "alone",
        "alone in an older release",
        "both",
        "bytes",
        "comma in the other",
        "dots in the other",
    ],
)
def test_what_could_be_either_is_refused(
    tmp_path: Path, metrics: dict[str, tuple[str, str]]
) -> None:
    """Both ways of writing in one file, or nothing that says which: a factor of 1000."""
    page = long_page(long_rows(metrics=metrics))
    with pytest.raises(InputError, match=r"row 3.*is ambiguous.*LC_ALL=C, on Windows|row 4.*ambig"):
        values(tmp_path, page)


def test_the_programs_output_is_no_evidence(tmp_path: Path) -> None:
    """A program that prints '3,14' beside the tool's own '65.77'."""
    page = long_page(long_rows(metrics=ENGLISH)).replace('"\n', '"\nloss 3,14\n', 2)
    with pytest.warns(match="passed over: 2 lines inside the table"):
        assert values(tmp_path, page)["time_ms"] == pytest.approx(0.117344)
