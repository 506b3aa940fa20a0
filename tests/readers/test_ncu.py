"""Nsight Compute's pages and its text: made ones, by hand (real ones: test_exports.py)."""

from pathlib import Path

import pytest
from summed_runs import only, run_of_text, totals
from synthetic.exports import NCU, NCU_TEXT, long_page, long_rows, wide_page
from synthetic.tidy import refused
from synthetic.traces import gpu_trace

from mlscale.readers import files, ncu
from mlscale.readers.launches import Key

TIME, READ = "gpu__time_duration.sum", "dram__bytes_read.sum"
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
K = "void k<int, 2>(float *, int)"


@pytest.mark.parametrize("page", [long_page(), wide_page()], ids=["details", "raw"])
def test_both_pages_give_the_same(tmp_path: Path, page: str) -> None:
    """16 workgroups of 128; 10 us; 20 Kbyte are 20000, and 5,000 byte have a comma."""
    run = run_of_text(tmp_path, page)
    assert list(run.groups) == [(K, 16, 128, "")]
    assert only(run).time_s == pytest.approx(1e-5)
    means = only(run).means()
    assert (means[READ], means["dram__bytes_write.sum"]) == (20_000, 5000)
    assert means["sm__inst_executed_pipe_fma.sum"] == 200
    assert "sm__inst_executed_pipe_fp16.sum" not in means  # n/a
    assert run.facts.application == "app"


def test_a_launch_in_two_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 1000 bytes, in which no launch of 17 rows fits, give what one gives."""
    page = long_page(*(long_rows(i, metrics={**NCU, TIME: ("us", f"{i + 1}")}) for i in range(9)))
    whole = run_of_text(tmp_path, page)
    monkeypatch.setattr(files, "BLOCK", 1000)
    assert run_of_text(tmp_path, page).groups == whole.groups
    assert totals(whole) == (1, 9, pytest.approx(0.045))


@pytest.mark.parametrize("for_arrow", [0, 1 << 40], ids=["arrow", "csv"])
def test_output_of_the_program_around_and_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, for_arrow: int
) -> None:
    monkeypatch.setattr(files, "LEAST_FOR_ARROW", for_arrow)
    rows = long_rows(0) + "step 1, loss 2\n" + long_rows(1) + "==PROF== Disconnected\nbye, 1\n"
    text = long_page(rows, before="device: GPU\nID, name\n==PROF== Disconnected from process 77\n")
    assert totals(run_of_text(tmp_path, text)) == (1, 2, pytest.approx(0.02))


@pytest.mark.parametrize(
    ("name", "unit", "value", "expected"),
    [
        ("Duration", "msecond", "0.5", 5e-4), ("Duration", "us", "1,250.5", 1.2505e-3),
        (READ, "Kbyte", "393.22", 393_220), (READ, "Mbyte", "3.35", 3.35e6),
        ("Memory Throughput", "Gbyte/s", "32", 32e9), ("Memory Throughput", "%", "60", 60),
        (READ, "byte", "7 (3; 4)", 7),
    ],
)  # fmt: skip
def test_units(tmp_path: Path, name: str, unit: str, value: str, expected: float) -> None:
    """Prefixes are decimal; one shown name has two meanings, by its unit."""
    raw = {("Memory Throughput", "%"): MEMORY, ("Memory Throughput", "Gbyte/s"):
           "dram__bytes.sum.per_second"}.get((name, unit), name)  # fmt: skip
    page = long_page(long_rows(metrics={name: (unit, value)}))
    sums = only(run_of_text(tmp_path, page))
    assert (sums.time_s if name == "Duration" else sums.means()[raw]) == pytest.approx(expected)


def test_a_raw_name_comes_before_what_a_section_shows(tmp_path: Path) -> None:
    """Sections round: 12.35 us are shown of 12,346 ns."""
    both = {"Duration": ("us", "12.35"), TIME: ("nsecond", "12346")}
    for metrics in (NCU | both, both | NCU | both):
        page = long_page(long_rows(metrics=metrics))
        assert only(run_of_text(tmp_path, page)).time_s == pytest.approx(12_346e-9)


@pytest.mark.parametrize(
    ("metrics", "facts"),
    [
        ({"gpc__cycles_elapsed.avg.per_second": ("Ghz", "1.20")}, {"engine_mhz": {1200: 1}}),
        ({"Elapsed Cycles": ("cycle", "12,000")}, {"engine_mhz": {1200: 1}}),  # in 10 us
        ({"device__attribute_memory_clock_rate": ("", "2619000")}, {"memory_limit_mhz": {2619: 1}}),
        ({"# SMs": ("SM", "36")}, {"cu_count": {36: 1}}),
        ({"device__attribute_display_name": ("", "NVIDIA L4")}, {"device_name": {"NVIDIA L4": 1}}),
    ],
)
def test_what_it_says_of_the_gpu(
    tmp_path: Path, metrics: dict[str, tuple[str, str]], facts: dict[str, dict[float, int]]
) -> None:
    page = long_page(long_rows(metrics={TIME: ("us", "10"), **metrics}))
    assert run_of_text(tmp_path, page).facts.seen == facts


# Of two GPUs, a launch of each but for the last: name the file, and how its launches are told.
TWO_GPUS = {
    "details": (long_page(long_rows(0), long_rows(1, gpu=1)), 1),
    "raw": (wide_page([{}, {"Device": "1"}]), 1),
    "text": (NCU_TEXT.replace("Device 0", "Device 1").replace("Device 1", "Device 0", 1), 1),
    "nsys": (gpu_trace(["NVIDIA L40S (0)", "NVIDIA L4 (1)", "NVIDIA L40S (0)"]), 2),
}


@pytest.mark.parametrize("form", TWO_GPUS)
def test_of_several_gpus_one_is_chosen(tmp_path: Path, form: str) -> None:
    """Nsight Systems' trace too; its name is then that of the launches' GPU."""
    page, of_the_first = TWO_GPUS[form]
    plural = "es" if of_the_first > 1 else ""
    told = rf"GPUs 0 \({of_the_first} launch{plural}\), 1 \(1 launch\)"
    with refused(f"run.csv: has {told}; name one with"):
        run_of_text(tmp_path, page)
    with refused(f"run.csv: has nothing about GPU 5; has {told}"):
        run_of_text(tmp_path, page, gpu="5")
    run = run_of_text(tmp_path, page, gpu="1")
    assert (run.gpu, run.gpus, only(run).launches) == ("1", ("0", "1"), 1)
    if form == "nsys":
        assert run.facts.seen == {"device_name": {"NVIDIA L4": 1}}


def test_a_raw_launch_that_failed_is_dropped(tmp_path: Path) -> None:
    failed = dict.fromkeys(NCU, "(!) nan") | {"Grid Size": "(0, 0, 0)"}
    run = run_of_text(tmp_path, wide_page([{}, failed]))
    assert (run.dropped, run.untimed, only(run).launches) == (1, {K}, 1)


def test_kernels_and_grids_are_groups_and_a_counter_is_a_mean_of_those_that_have_it(
    tmp_path: Path,
) -> None:
    """By hand: 10 and 30 us are 20; 5 000 bytes of the one launch that counted them."""
    metrics = NCU | {TIME: ("us", "30"), "dram__bytes_write.sum": ("", "n/a")}
    several = long_rows(0) + long_rows(1, metrics=metrics) + long_rows(2, grid="(9, 1, 1)")
    groups = run_of_text(tmp_path, long_page(several, long_rows(3, "g\x1b[31m"))).groups
    assert list(groups) == [(K, 16, 128, ""), (K, 9, 128, ""), ("g", 16, 128, "")]
    sums = groups[Key(K, 16, 128)]
    assert (sums.launches, sums.time_s) == (2, pytest.approx(20e-6))
    assert sums.means()["dram__bytes_write.sum"] == 5000
    assert str(Key("f", 1_048_577, 256)) == "'f' (grid 1048577, block 256)"
    assert str(Key("f", None, 64, "3")) == "'f', launch 3"


@pytest.mark.parametrize("rows_at_once", [10_000, 1])
def test_launches_of_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_at_once: int
) -> None:
    """20 us and 0.04 ms are 30 us in the mean; 20 and 30 % are 25 %. So are they in a paste.

    There, each launch has its own time, none that of the one above.
    """
    monkeypatch.setattr(ncu, "_AT_ONCE", rows_at_once)
    run = run_of_text(tmp_path, NCU_TEXT)
    [(key, sums)] = run.groups.items()
    assert key == ("void add<float, 2>(float *, int)", 16, 128, "")
    assert (sums.launches, sums.time_s) == (2, pytest.approx(30e-6))
    assert sums.means()[DRAM] == 25
    assert run.facts.application == "app"
    assert run.facts.seen == {"engine_mhz": {1000: 1}, "memory_mhz": {500: 1}, "cu_count": {4: 1}}
    pasted = "".join(f"    {line}" for line in NCU_TEXT.splitlines(keepends=True))
    assert run_of_text(tmp_path, pasted).groups == run.groups


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (long_page().replace('"20"', '"twenty"'),
         r"row 12, column 'Metric Value': 'twenty' is not a number"),
        (long_page().replace('"20"', '"20,5"'), "row 12, column 'Metric Value': .*decimal comma"),
        (long_page().replace("Kbyte", "Kword"),
         "row 17, column 'Metric Value': has an unrecognised unit; .*--print-units"),
        (long_page().replace("(8, 2, 1)", "(8, 0, 1)"), r"column 'Grid Size': .* has a size of 0"),
        (long_page(long_rows(kernel="")), "row 3: the kernel's name is empty"),
        (wide_page(units=False), "row 2: the row of units is missing below the header"),
        (wide_page().replace('"150"', '"1.5.0"'), "row 3, column 'sm__inst_executed_pipe_alu.sum'"),
        (long_page()[:-30], "row 19: is not valid CSV: .* cut off"),
        (long_page(long_rows(), long_rows(1), long_rows()),
         "row 37: launch 0 appears twice; give the page of one report"),
        (wide_page() + wide_page().splitlines()[-1], "row 4: launch 0 appears twice"),
        (long_page(long_rows(metrics={TIME: ("", "10000")})),
         "row 3, column 'Metric Value': has an unrecognised unit"),
    ],
)  # fmt: skip
def test_made_files_that_are_refused(tmp_path: Path, page: str, message: str) -> None:
    with refused(message):
        run_of_text(tmp_path, page)
