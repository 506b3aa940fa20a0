"""Nsight Compute's text, written by hand in the forms of ncu 2021 to 2025."""

from pathlib import Path

import pytest
from synthetic.exports import BASE, NCU_TEXT, long_page, read, row

from mlscale import InputError
from mlscale.profilers.tools import ncu

# The older form: no grid but the date, no header, long units, an NVTX block, an error above.
OLD = """\
==ERROR== The application returned an error code (1).
[77] app.exe@127.0.0.1
  void (anonymous)::scale(float *), 2024-Jul-13 20:38:33, Context 1, Stream 7

    NVTX Start/End Ranges:
      <default domain>
        <0,layer>
    Section: GPU Speed Of Light Throughput
    ---------------------------------------- --------------- --------------
    SM Frequency                               cycle/nsecond           1.00
    Memory [%]                                             %          60.00
    Duration                                         usecond          10.00
    Compute (SM) [%]                                       %          64.18
    ---------------------------------------- --------------- --------------
    WRN   Memory [%]                                       %          99.00

    Section: Launch Statistics
    ---------------------------------------- --------------- --------------
    Block Size                                                          256
    Grid Size                                                         1,024
    ---------------------------------------- --------------- --------------
"""
METRICS = """\
  k(int) (4, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.9
    Section: Command line profiler metrics
    --------------------------------- ----------- ------------
    Metric Name                       Metric Unit Metric Value
    --------------------------------- ----------- ------------
    dram__bytes_read.sum                    Kbyte        20.00
    dram__bytes_write.sum                    byte        5,000
    gpu__time_duration.sum                     us        10.00
    --------------------------------- ----------- ------------
"""
FAILED = """\
==ERROR== LaunchFailed
  render(int) (0, 0, 0)x(0, 0, 0), Context 1, Stream 7, Device 0, CC 8.9
    Section: GPU Speed Of Light Throughput
    ----------------------- ------------ ------------
    Metric Name              Metric Unit Metric Value
    ----------------------- ------------ ------------
    SM Frequency            cycle/second      (!) nan
    Duration                     nsecond      (!) nan
    ----------------------- ------------ ------------
"""


def test_launches_of_the_details_text(tmp_path: Path) -> None:
    """20 us and 0.04 ms are 30 us in the mean; 20 and 30 % are 25 %."""
    imported = read(tmp_path, NCU_TEXT)
    values = row(imported)
    assert (imported.kernels, imported.launches) == (1, 2)
    assert imported.table.text["kernel"] == ["void add<float, 2>(float *, int)"]
    assert imported.table.text["application"] == ["app"]
    assert values["time_ms"] == pytest.approx(0.03)
    assert values["dram_utilisation"] == pytest.approx(0.25)
    assert (values["workgroups"], values["workgroup_size"]) == (16, 128)


def test_launches_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression only: a part ends before a launch, whatever its size."""
    whole = read(tmp_path, NCU_TEXT).table
    monkeypatch.setattr(ncu, "_AT_ONCE", 1)
    parts = read(tmp_path, NCU_TEXT).table
    assert parts.text == whole.text
    assert {n: v.tolist() for n, v in parts.numbers.items()} == {
        n: v.tolist() for n, v in whole.numbers.items()
    }


def test_the_file_says_sms_and_clocks(tmp_path: Path) -> None:
    with pytest.warns(match="engine_mhz 1000 and memory_mhz 500 are what the profiler observed"):
        assert str(read(tmp_path, NCU_TEXT, base={}).config) == "cu=4,engine=1000,memory=500"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_older_form(tmp_path: Path, encoding: str) -> None:
    """A rule's text is no metric; the size of the launch stands in its statistics."""
    imported = read(tmp_path, OLD.replace("\n", "\r\n").encode(encoding))
    values = row(imported)
    assert imported.table.text["kernel"] == ["void (anonymous)::scale(float *)"]
    assert values["time_ms"] == pytest.approx(0.01)
    assert values["dram_utilisation"] == pytest.approx(0.6)
    assert (values["workgroups"], values["workgroup_size"]) == (1024, 256)


def test_units_of_each_metric(tmp_path: Path) -> None:
    """20 kB and 5000 byte in 10 us."""
    values = row(read(tmp_path, METRICS))
    assert values["ReadBandwidth"] == pytest.approx(2e9)
    assert values["WriteBandwidth"] == pytest.approx(5e8)


@pytest.mark.parametrize(("of_launch", "of_sections"), [("", ""), (" ", ""), (" " * 4, " " * 2)])
def test_blanks_lost_or_gained_in_a_paste(tmp_path: Path, of_launch: str, of_sections: str) -> None:
    """Each launch has its own time and reads, 10 and 30 us, none those of the one above."""
    of_kernel = "(int) (4, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.6"
    sections = "".join(of_sections + line for line in METRICS.splitlines(keepends=True)[1:])
    pages = [
        f"results:\n```\n{of_launch}{name}{of_kernel}\n{sections.replace('10.00', us)}```\n"
        for name, us in (("one", "10.00"), ("two", "30.00"))
    ]
    table = read(tmp_path, f"  [77] app@127.0.0.1\n{''.join(pages)}").table
    assert table.text["kernel"] == ["one(int)", "two(int)"]
    assert table.text["application"] == ["app"] * 2
    assert table.numbers["time_ms"] == pytest.approx([0.01, 0.03])
    assert table.numbers["ReadBandwidth"] == pytest.approx([2e9, 2e9 / 3])


def test_a_failed_launch(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no kernel launch.*the profiler says: ==ERROR== LaunchFai"
    ):
        read(tmp_path, FAILED)


def test_clock_from_cycles(tmp_path: Path) -> None:
    """10000 cycles in 10 us are 1000 MHz: 500 are refused."""
    rows = METRICS.replace(
        "    gpu__time",
        "    sm__cycles_elapsed.max                  cycle       10,000\n    gpu__time",
    )
    assert read(tmp_path, rows).config.engine_mhz == 1000
    with pytest.raises(InputError, match="engine_mhz was 1000 while profiling, --base says 500"):
        read(tmp_path, rows, base={**BASE, "engine_mhz": 500.0})


def test_clocks_that_vary_count_as_their_mean_when_it_is_given(tmp_path: Path) -> None:
    launch = METRICS.splitlines()
    pages = []
    for mhz in ("900", "1100"):
        metric = f"    SM Frequency                              Mhz     {mhz:>8}"
        pages += [*launch[:5], metric, *launch[5:], ""]
    text = "\n".join(pages)
    with pytest.warns(match="engine_mhz is 900 in one launch and 1100 in another: all count as"):
        assert read(tmp_path, text).launches == 2
    with pytest.raises(InputError, match=r"let all count as their mean.*; give --base engine=1000"):
        read(tmp_path, text, base={"cu_count": 4.0, "memory_mhz": 500.0})


@pytest.mark.parametrize(
    "text",
    [
        METRICS.replace("Context 1, Stream 7, Device 0, CC 8.9", "Device 0, CC 8.9, Invocations 4"),
        '"Process ID","Kernel Name","Invocations","Metric Name","Metric Unit","Average"\n',
    ],
)
def test_a_summary_says_how_to_write_csv(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"summary of kernels is not read; .* --page raw --csv"):
        read(tmp_path, text)


def test_the_csv_page_is_not_taken_for_text(tmp_path: Path) -> None:
    before = "  void k() (1, 1, 1)x(1, 1, 1), Context 1\n"
    assert read(tmp_path, long_page(before=before)).launches == 1
