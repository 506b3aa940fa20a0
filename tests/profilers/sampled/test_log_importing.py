"""Monitors' logs to rows: the same made readings in each tool's form give the same row."""

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic.monitor_logs import FACTS, PERIOD_S, UNTIMED, WRITERS, load, query, row
from synthetic.monitor_readings import MEMORY_MHZ, Reading, block, together
from text_files import written

from mlscale.errors import DataWarning, InputError
from mlscale.profilers.sampled import RunFacts, import_logs, log_format

FORMS = pytest.mark.parametrize("form", WRITERS)
NAMES = "timestamp,index,power.draw,utilization.gpu,clocks.current.sm,clocks.current.memory\n"


@FORMS
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    head=st.integers(1, 12),
    busy=st.integers(1, 20),
    tail=st.integers(0, 12),
    power_w=st.integers(100, 700),
    engine_mhz=st.integers(400, 2500),
)
def test_a_constant_busy_block_is_recovered_exactly(
    tmp_path: Path, form: str, head: int, busy: int, tail: int, power_w: int, engine_mhz: int
) -> None:
    """Expected: the block's own values; its time is its samples times the period."""
    path = written(tmp_path, WRITERS[form](block(head, busy, tail, power_w, engine_mhz), PERIOD_S))
    imported = load(path, form)
    (span,) = imported.spans
    assert (span.first, span.last, span.samples) == (head, head + busy - 1, head + busy + tail)
    values = row(imported)
    assert values["power_w"] == pytest.approx(power_w, abs=0)
    assert values["engine_mhz"] == engine_mhz
    assert values["memory_mhz"] == MEMORY_MHZ
    assert values["time_ms"] == pytest.approx(1e3 * PERIOD_S * busy, rel=1e-9)
    share = "gr_engine_active" if form.startswith("dcgm") else "gpu_utilisation"
    assert values[share] == pytest.approx(0.8)


@FORMS
def test_blanks_are_missing_and_never_zero(tmp_path: Path, form: str) -> None:
    """Expected by hand: the mean of the readings that are there."""
    readings = [
        [Reading(0.5, None, 1000)], [Reading(0.5, 100, None)], [Reading(None, 200, 1500)],
        [Reading(0.5, 300, 1500)],
    ]  # fmt: skip
    values = row(load(written(tmp_path, WRITERS[form](readings, PERIOD_S)), form))
    assert values["power_w"] == pytest.approx(200)  # of 100, 200, 300
    assert values["engine_mhz"] == 1333  # of 1000, 1500, 1500
    share = "gr_engine_active" if form.startswith("dcgm") else "gpu_utilisation"
    assert values[share] == pytest.approx(0.5)


@FORMS
def test_a_column_of_blanks_is_no_column(tmp_path: Path, form: str) -> None:
    text = WRITERS[form]([[Reading(0.5, None, 1000)]] * 3, PERIOD_S)
    imported = load(written(tmp_path, text), form)
    assert "power_w" not in imported.table.numbers
    assert imported.table.metadata["power_kind"] is None


@FORMS
def test_the_order_of_gpus_does_not_matter(tmp_path: Path, form: str) -> None:
    first, second = block(2, 3, 2, power_w=300), block(1, 5, 1, power_w=400, gpu=1)
    one = load(written(tmp_path, WRITERS[form](together(first, second), PERIOD_S)), form)
    other = load(written(tmp_path, WRITERS[form](together(second, first), PERIOD_S)), form)
    assert one.table.text == other.table.text
    for position in (0, 1):
        assert row(one, position) == row(other, position)
    assert row(one, 0)["power_w"] == 300
    assert row(one, 1)["power_w"] == 400
    assert one.table.text["kernel"] == ["run [GPU 0]", "run [GPU 1]"]
    assert one.table.text["application"] == ["run", "run"]


@FORMS
def test_one_gpu_can_be_chosen(tmp_path: Path, form: str) -> None:
    ticks = together(block(2, 3, 2, power_w=300), block(1, 5, 1, power_w=400, gpu=1))
    imported = load(written(tmp_path, WRITERS[form](ticks, PERIOD_S)), form, gpu="1")
    assert row(imported)["power_w"] == 400
    assert imported.table.text["kernel"] == ["run"]
    with pytest.raises(InputError, match=r"has no GPU 7; it has 0, 1"):
        load(tmp_path / "run.log", form, gpu="7")


@FORMS
def test_an_idle_log_is_refused(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, WRITERS[form](block(5, 0, 0), PERIOD_S))
    with pytest.raises(InputError, match=r"GPU 0: has no busy span: .* the GPU is idle"):
        load(path, form)


@FORMS
def test_a_single_sample_needs_the_time_of_the_run(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, WRITERS[form](block(0, 1, 0), PERIOD_S))
    with pytest.raises(InputError, match=r"give --time MS \(of the whole run: this log is one"):
        import_logs([path], None, RunFacts(**FACTS))
    imported = load(path, form, time_ms=1234.0)
    assert row(imported)["time_ms"] == 1234
    assert str(imported.spans[0]) == "one sample, taken for the mean of the whole run"


@FORMS
def test_the_tool_is_known_by_the_header(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, "$ some-command --that was run\n" + WRITERS[form](block(0, 2, 0)))
    known = log_format(path)
    assert known is not None
    assert known.tool == {"dcgm": "dcgm", "rocm": "rocm-smi", "amd-": "amd-smi"}.get(
        form[:4], "nvidia-smi"
    )


@pytest.mark.parametrize(("is_numbered", "is_quoted"), [(True, False), (True, True), (False, True)])
def test_a_log_that_pandas_or_r_saved_again(
    tmp_path: Path, is_numbered: bool, is_quoted: bool
) -> None:
    """They number the rows, in a first column without a name, and put texts into quotes."""
    text = query(block(1, 9, 1), PERIOD_S)
    rows = [line.split(", ") for line in text.splitlines()]
    if is_numbered:
        rows = [[str(number) if number else "", *row] for number, row in enumerate(rows)]
    if is_quoted:
        rows = [[f'"{cell}"' for cell in row] for row in rows]
    saved = written(tmp_path, "".join(",".join(row) + "\n" for row in rows))
    again = row(load(saved))
    assert again == row(load(written(tmp_path, text)))


@pytest.mark.parametrize("form", UNTIMED)
def test_a_log_without_times_asks_for_the_interval(tmp_path: Path, form: str) -> None:
    path = written(tmp_path, WRITERS[form](block(1, 3, 1), PERIOD_S))
    with pytest.raises(InputError, match=r"give --interval SECONDS \(between two samples\)$"):
        import_logs([path], None, RunFacts(**FACTS))


def test_all_that_is_missing_is_asked_for_at_once(tmp_path: Path) -> None:
    text = "#Entity GRACT\nID\nGPU 0 0.5\nGPU 0 0.6\n"
    with pytest.raises(InputError, match=r"give --device NAME .* --base engine=…,memory=… --inter"):
        import_logs([written(tmp_path, text)])


def test_a_gpu_with_one_memory_clock_needs_none(tmp_path: Path) -> None:
    """The device table: the A100 SXM4 40 GB lists 1215 MHz alone, and has 108 SMs."""
    text = "#Entity GRACT SMCLK\nID\nGPU 0 0.5 1410\nGPU 0 0.6 1410\n"
    facts = RunFacts(device="NVIDIA A100-SXM4-40GB", interval_s=0.1)
    with pytest.warns(DataWarning, match="1215 is the only one that 'a100"):
        values = row(import_logs([written(tmp_path, text)], None, facts))
    assert (values["cu_count"], values["memory_mhz"]) == (108, 1215)


def test_idle_moments_inside_the_span_count(tmp_path: Path) -> None:
    """By hand: five samples from the first busy to the last, 0.8 three times, 0 twice."""
    ticks = [*block(2, 1, 0), *block(1, 1, 1), *block(0, 1, 3)]
    values = row(load(written(tmp_path, query(ticks, PERIOD_S))))
    assert values["gpu_utilisation"] == pytest.approx(3 * 0.8 / 5)
    assert values["time_ms"] == pytest.approx(5e3 * PERIOD_S)


def test_busy_is_a_tenth_of_the_highest_activity(tmp_path: Path) -> None:
    """By hand: of 0.9 at most, 0.08 is idle and 0.1 is busy."""
    shares = [0.08, 0.08, 0.1, 0.9, 0.9, 0.1, 0.08]
    path = written(tmp_path, query([[Reading(share, 100, 1000)] for share in shares], PERIOD_S))
    (span,) = load(path).spans
    assert (span.first, span.last) == (2, 5)


def test_without_activity_power_tells_from_half_way_up(tmp_path: Path) -> None:
    """By hand: 20 to 120 W, so busy from 70 W on: 80, 120 and 70."""
    watts = [20, 21, 80, 120, 70, 60, 20]
    ticks = [[Reading(None, power_w, 1000)] for power_w in watts]
    imported = load(written(tmp_path, query(ticks, PERIOD_S)))
    assert (imported.spans[0].first, imported.spans[0].last) == (2, 4)
    assert row(imported)["power_w"] == pytest.approx(90)


def test_constant_power_alone_tells_nothing(tmp_path: Path) -> None:
    ticks = [[Reading(None, power_w, 1000)] for power_w in (70, 71, 72)]
    with pytest.raises(InputError, match="stays between 70 and 72 W; record the GPU's util"):
        load(written(tmp_path, query(ticks, PERIOD_S)))


def test_a_clock_that_was_not_kept_is_told_and_the_row_is_at_the_mean(tmp_path: Path) -> None:
    path = written(tmp_path, query(block(1, 4, 1, engine_mhz=1200), PERIOD_S))
    with pytest.warns(DataWarning, match=r"engine_mhz was set to 1410, but ran at 1200 on average"):
        imported = load(path, base={"cu_count": 4, "engine_mhz": 1410})
    assert row(imported)["engine_mhz"] == 1200


def test_a_clock_that_wanders_is_told(tmp_path: Path) -> None:
    """As under a power limit: half of 40 samples at 1200 MHz, half at 1400 MHz."""
    ticks = [*block(1, 20, 0, engine_mhz=1200), *block(0, 20, 1, engine_mhz=1400)]
    path = written(tmp_path, query(ticks, PERIOD_S))
    with pytest.warns(DataWarning, match=r"from 1200 to 1400 .* or runs at several clocks, each"):
        assert row(load(path))["engine_mhz"] == 1300
    ticks = [*block(1, 6, 0, engine_mhz=1200), *block(0, 6, 1, engine_mhz=1400)]
    with pytest.warns(DataWarning, match="engine_mhz wanders, from 1200 to 1400"):  # 12 samples
        load(written(tmp_path, query(ticks, PERIOD_S)))
    few = [*block(1, 39, 0, engine_mhz=1400), *block(0, 1, 1, engine_mhz=1200)]
    load(written(tmp_path, query(few, PERIOD_S)))  # no warning, which would be an error
    few = [*block(1, 11, 0, engine_mhz=1400), *block(0, 1, 1, engine_mhz=1200)]
    load(written(tmp_path, query(few, PERIOD_S)))


def test_the_clock_that_was_set_counts_where_the_sampled_one_is_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, query(block(1, 4, 1, engine_mhz=1407), PERIOD_S))
    assert row(load(path, base={"cu_count": 4, "engine_mhz": 1410}))["engine_mhz"] == 1410
    assert row(load(path))["engine_mhz"] == 1407


def test_a_set_clock_in_the_log_is_compared(tmp_path: Path) -> None:
    text = "# Entity GRACT SMCLK MMCLK SACLK\nId\n" + "GPU 0 0.5 1200 1215 1410\n" * 4
    with pytest.warns(DataWarning, match=r"was set to 1410, but ran at 1200 on average \(1200 to"):
        load(written(tmp_path, text), "dcgmi-dmon")


def test_a_gap_inside_the_span_is_told(tmp_path: Path) -> None:
    """By hand: from 2 to 212 s and one period of 2 s."""
    lines = query([*block(1, 5, 0), *block(0, 5, 1)], PERIOD_S).splitlines()
    late = [line.replace("2026/02/04 00:0", "2026/02/04 00:3") for line in lines[7:]]
    path = written(tmp_path, "\n".join([*lines[:7], *late]) + "\n")
    with pytest.warns(DataWarning, match=r"has no sample for 1802 s of the busy span"):
        imported = load(path)
    assert row(imported)["time_ms"] == pytest.approx(1e3 * (10 * PERIOD_S + 1800))


def test_an_idle_log_of_several_gets_no_row(tmp_path: Path) -> None:
    runs = {"idle": block(9, 0, 0), "busy": block(1, 5, 1)}
    paths = [written(tmp_path, query(run, PERIOD_S), f"{name}.csv") for name, run in runs.items()]
    with pytest.warns(DataWarning, match="idle.csv, GPU 0: has no busy span: .*; it gets no row"):
        table = import_logs(paths, None, RunFacts(**FACTS)).table
    assert table.text["kernel"] == ["busy"]
    with pytest.warns(DataWarning, match="idle.csv, GPU 0: has no busy span"):
        assert len(import_logs(paths, None, RunFacts(**FACTS, gpu="0")).table) == 1


@pytest.mark.parametrize("pauses", [1, 15])
def test_pauses_that_take_long_are_told(tmp_path: Path, pauses: int) -> None:
    """By hand: 40 busy samples and 30 idle ones between them, in one piece or in many.

    The clock that falls in the pauses is none that the work ran at: 1410 MHz, not 896 of all.
    """
    idle = [Reading(0.0, 50.0, 210.0)]
    run = [
        tick
        for pause in range(pauses)
        for tick in (*block(0, 40 // (pauses + 1), 0), *(30 // pauses) * [idle])
    ]
    busy = 40 - sum(tick != idle for tick in run)
    path = written(tmp_path, query([*run, *block(0, busy, 0)], PERIOD_S))
    with pytest.warns(DataWarning, match=f"is idle for {30 * PERIOD_S:.4g} s of the busy span"):
        imported = load(path)
    assert row(imported)["time_ms"] == pytest.approx(70e3 * PERIOD_S)
    assert row(imported)["engine_mhz"] == 1410
    assert row(imported)["power_w"] == pytest.approx((40 * 200 + 30 * 50) / 70)
    work = block(0, 20, 0)
    load(written(tmp_path, query([*work, *3 * [idle], *work], PERIOD_S)))  # a short one is not


def test_rows_that_may_be_of_several_gpus_are_told(tmp_path: Path) -> None:
    text = "power.draw [W], utilization.gpu [%]\n" + 4 * "200 W, 90 %\n"
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    with pytest.warns(DataWarning, match="its 4 rows are taken for samples of one GPU"):
        imported = load(written(tmp_path, text), interval_s=1.0, base=base)
    assert row(imported)["time_ms"] == 4000


def test_an_idle_gpu_of_several_gets_no_row(tmp_path: Path) -> None:
    ticks = together(block(1, 3, 1), block(5, 0, 0, gpu=1))
    path = written(tmp_path, query(ticks, PERIOD_S))
    with pytest.warns(DataWarning, match="GPU 1: has no busy span: .*; it gets no row"):
        imported = load(path)
    assert len(imported.table) == 1


def test_the_last_line_may_be_cut_off(tmp_path: Path) -> None:
    text = query(block(1, 3, 0), PERIOD_S)
    path = written(tmp_path, text + "0, 2026/02/03 23:59")
    with pytest.warns(DataWarning, match="row 6: the last line is cut off and left out"):
        imported = load(path)
    assert row(imported)["time_ms"] == pytest.approx(3e3 * PERIOD_S)
    path = written(tmp_path, text + "0, 2026\n" + text.splitlines()[-1] + "\n")
    with pytest.raises(InputError, match="row 6: has 2 fields, the header has 6; it says '0"):
        load(path)


def test_a_row_for_each_log(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, query(block(1, 3, 1, power_w=watts), PERIOD_S), f"{name}.csv")
        for name, watts in (("fft", 150), ("gemm", 250))
    ]
    imported = import_logs(paths, None, RunFacts(**FACTS))
    assert imported.table.text["kernel"] == ["fft", "gemm"]
    assert imported.table.numbers["power_w"].tolist() == [150, 250]


@pytest.mark.parametrize(
    "stamp",
    ["2026/02/03 23:59:{}.500", "2026-02-03T23:59:{}.5Z", "2026-02-03 23:59:{}.5", "17900000{}.5"],
)
def test_times_of_a_log_of_ones_own(tmp_path: Path, stamp: str) -> None:
    """Four busy samples, two seconds apart, are 8 s."""
    rows = "".join(f"{stamp.format(50 + 2 * n)},0,300,90,1980,2619\n" for n in range(4))
    assert row(load(written(tmp_path, NAMES + rows)))["time_ms"] == pytest.approx(8000)


def test_a_log_may_pass_from_summer_time_to_winter_time(tmp_path: Path) -> None:
    """Four busy samples, two seconds apart, of which the clock on the wall shows none twice."""
    stamps = ("02:59:57+02:00", "02:59:59+02:00", "02:00:01+01:00", "02:00:03+01:00")
    rows = "".join(f"2026-10-25T{stamp},0,300,90,1980,2619\n" for stamp in stamps)
    assert row(load(written(tmp_path, NAMES + rows)))["time_ms"] == pytest.approx(8000)


def test_times_without_a_zone_are_none_of_this_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four busy samples are 8 s, though here the clock on the wall goes back by an hour at 3."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        stamps = ("02:59:57.500", "02:59:59.500", "03:00:01.500", "03:00:03.500")
        rows = "".join(f"2026/10/25 {stamp},0,300,90,1980,2619\n" for stamp in stamps)
        path = written(tmp_path, NAMES + rows)
        assert row(load(path))["time_ms"] == pytest.approx(8000)
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_memory_clock_is_one_that_the_memory_has(tmp_path: Path) -> None:
    """Two of twenty samples find it on its way up: it was at 1215 MHz, not at the mean of 1134."""
    clocks = [405] * 2 + [1215] * 18
    rows = "".join(f"17900000{10 + n},0,300,90,1410,{mhz}\n" for n, mhz in enumerate(clocks))
    assert row(load(written(tmp_path, NAMES + rows)))["memory_mhz"] == 1215


def test_times_of_dmon_may_pass_midnight(tmp_path: Path) -> None:
    """START is two seconds before midnight: samples at 23:59:58, 00:00:00, …"""
    text = WRITERS["smi-dmon-times"](block(0, 5, 0), PERIOD_S)
    assert "00:00:00" in text
    assert row(load(written(tmp_path, text)))["time_ms"] == pytest.approx(5e3 * PERIOD_S)


def test_metadata_says_what_the_numbers_are(tmp_path: Path) -> None:
    table = load(written(tmp_path, query(block(1, 3, 1), PERIOD_S))).table
    assert table.metadata["profile_kind"] == "sampled"
    assert table.metadata["power_kind"] == "board"
    assert table.metadata["counter_tool"] == "nvidia-smi"
    assert table.metadata["utilisation_sources"] == {
        "gpu_utilisation": "mean of nvidia-smi --query-gpu"
    }
    assert "a tenth of its highest" in table.metadata["busy_spans"]["run"]
    assert table.metadata["sample_ms"] == {"run": 1e3 * PERIOD_S}


def test_the_power_of_an_instant_is_preferred_to_a_smoothed_one(tmp_path: Path) -> None:
    text = "power.draw [W], power.draw.instant [W], utilization.gpu [%]\n300 W, 250 W, 90 %\n"
    base = {"cu_count": 4, "engine_mhz": 1000, "memory_mhz": 500}
    assert row(load(written(tmp_path, text), time_ms=5.0, base=base))["power_w"] == 250


def of_own(tmp_path: Path, stamps: list[str]) -> Path:
    """A log of one's own that is busy at all of these times but the first and the last."""
    loads = [0, *[98] * (len(stamps) - 2), 0]
    lines = [f"{at},0,300,{load},1410,1215\n" for at, load in zip(stamps, loads, strict=True)]
    return written(tmp_path, NAMES + "".join(lines))


OF_A100 = RunFacts(device="a100-sxm4-40gb")


def test_samples_of_one_second_are_spread_over_it(tmp_path: Path) -> None:
    """By hand: ten samples a second, of which 28 are busy, and one that came late by 30 s."""
    stamps = [f"2026-03-02 14:00:0{n // 10}" for n in range(30)]
    values = row(import_logs([of_own(tmp_path, stamps)], facts=OF_A100))
    assert values["time_ms"] == pytest.approx(2800)
    late = [*stamps, "2026-03-02 14:00:32", "2026-03-02 14:00:33"]
    with pytest.warns(DataWarning, match="has no sample for 29.1 s of the busy span"):
        import_logs([of_own(tmp_path, late)], facts=OF_A100)


def test_one_time_stamp_of_all_samples_is_none(tmp_path: Path) -> None:
    """A date alone; the time was 0 ms."""
    path = of_own(tmp_path, ["2026-03-02"] * 12)
    with pytest.raises(InputError, match="give --interval SECONDS"):
        import_logs([path], facts=OF_A100)
    values = row(import_logs([path], facts=replace(OF_A100, interval_s=0.5)))
    assert values["time_ms"] == pytest.approx(5000)
