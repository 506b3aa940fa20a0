"""Features over a run's kernels, and traffic that cannot be; records made by hand."""

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic.tidy import refused

from mlscale import DataWarning, HardwareConfig
from mlscale.counters.features import TABLE_2
from mlscale.profilers.configuration import RunConfiguration
from mlscale.profilers.joining import KernelRecord
from mlscale.profilers.kernel_features import (
    check_traffic,
    features_of_run,
    share_sources,
    with_features,
)
from mlscale.profilers.mapping import Share, TableFeature

MISSING = dict.fromkeys(TABLE_2, TableFeature(None, "missing", ""))


def record(kernel: str, *, status: str = "missing", dram: float = 0.5) -> KernelRecord:
    """Of that status is 'VALUInsts'."""
    features = MISSING | {"VALUInsts": TableFeature(1.0, status, "a")}
    shares = {"dram_utilisation": Share(dram, f"of {kernel}")}
    return KernelRecord(kernel, 8, 64, 1.0, 1e-3, True, None, {}, {}, features, shares)


@pytest.mark.parametrize(
    ("statuses", "of_run"),
    [
        (["exact", "nearest", "missing"], "nearest"),
        (["missing", "exact"], "exact"),
        (["missing", "missing"], "missing"),
    ],
)
def test_a_feature_of_the_run_is_the_least_near_that_a_kernel_has(
    statuses: list[str], of_run: str
) -> None:
    features = features_of_run([record(status, status=status) for status in statuses])
    assert features["VALUInsts"].status == of_run
    assert features["SALUInsts"].status == "missing"
    assert tuple(features) == TABLE_2


def test_vector_instructions_per_cycle_are_of_the_bases_clock() -> None:
    """By hand: 100 of each of 10 000 waves in 1 ms on 4 CUs, at 1000 MHz 4 million CU cycles."""
    counted = replace(record("f"), counters={"VALUInsts": 100.0, "Wavefronts": 10_000.0})
    run = RunConfiguration("made-gpu", HardwareConfig(4, 1000.0, 1000.0), {}, {})
    [found] = with_features("rocprof", [counted], run)
    assert found.features["V_IPC"].value == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("time_us", "per_cycle"),
    [
        (20, 0.5),  # the count is 20 000 cycles longer than the kernel
        (500, 0.5 * 500 / 520),  # and here by 4 %, by which the clock may be another one
    ],
)
def test_cycles_of_a_short_kernel_are_those_of_its_time(time_us: int, per_cycle: float) -> None:
    """By hand, on 4 CUs of one die at 1000 MHz: two instructions in each of the kernel's cycles."""
    counters = {
        "SQ_INSTS_VALU": 2_000.0 * time_us,
        "GRBM_GUI_ACTIVE": 1_000.0 * time_us + 20_000.0,
    }
    counted = replace(record("f"), counted_time_s=time_us / 1e6, counters=counters)
    run = RunConfiguration("mi210", HardwareConfig(4, 1000.0, 1600.0), {}, {}, dies=1.0)
    [found] = with_features("rocprof", [counted], run)
    assert found.features["V_IPC"].value == pytest.approx(per_cycle)


def test_sources_of_a_share_are_said_once_each() -> None:
    records = [record("f"), record("g"), record("f"), replace(record("h"), shares={})]
    assert share_sources(records) == {"dram_utilisation": "of f; of g"}


class TestTraffic:
    """A share is of the bytes that pass at the base: above 1, but for what the clocks drift."""

    RECORDS = (record("f", dram=1.5), record("g", dram=2.0), record("h", dram=1.0))

    def test_of_several_kernels_is_refused_by_the_worst(self) -> None:
        run = RunConfiguration("gtx980", HardwareConfig(16, 1000.0, 1000.0), {}, {})
        with refused("^run.csv: 2 kernels, most of all 'g': its DRAM traffic is 2.00 times what"):
            check_traffic(Path("run.csv"), self.RECORDS, run)
        check_traffic(Path("run.csv"), self.RECORDS[2:], run)

    def test_of_amds_gpus_counts_hits_of_a_cache_too(self) -> None:
        run = RunConfiguration("mi300x", HardwareConfig(304, 2100.0, 1300.0), {}, {})
        with pytest.warns(DataWarning, match="2.00 times what mi300x passes at memory=1300; hits"):
            check_traffic(Path("run.csv"), self.RECORDS, run)

    def test_no_byte_that_any_kernel_read_is_a_failure(self) -> None:
        """As of a Radeon RX 9070 XT; one kernel of several may read nothing."""
        run = RunConfiguration("rx9070xt", HardwareConfig(64, 2900.0, 1258.0), {}, {})
        fetched = [
            replace(record("f"), counters={"FETCH_SIZE": kilobytes, "WRITE_SIZE": 5.0})
            for kilobytes in (0.0, 0.0, 3.0)
        ]
        with refused("^run.csv: FETCH_SIZE is 0 in all .* --perf-level STABLE_STD, .*--also"):
            check_traffic(Path("run.csv"), fetched[:2], run)
        check_traffic(Path("run.csv"), fetched, run)

    def test_reads_of_which_half_were_counted_are_told(self) -> None:
        """Regression only: the report is named beside the rule."""
        run = RunConfiguration("radeon8060s", HardwareConfig(40, 2900.0, 1000.0), {}, {})
        with pytest.warns(DataWarning, match="before February 2026 counts half of what radeon80"):
            check_traffic(
                Path("run.csv"), [replace(record("f"), counters={"FETCH_SIZE": 3.0})], run
            )
