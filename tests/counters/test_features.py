"""Features from counters: raw, rates, utilisation and Table II; by hand, and real tables' bound."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from public_tables import of_all_gpus
from synthetic import kernels as made
from synthetic.profiled import one_by_one, profiles
from synthetic.tidy import refused

from mlscale import HardwareConfig, Profiles, train
from mlscale.counters.features import (
    FEATURE_KINDS,
    TABLE_2,
    compute_features,
    default_kind,
    is_count,
)
from mlscale.data.devices import load_device
from mlscale.notes import Note
from mlscale.predictors.features import FeatureScaling
from mlscale.studies.candidates import Candidate
from mlscale.studies.errors import ErrorStudy

GTX980 = load_device("gtx980")

# A kernel of 1 ms on 16 CUs at 1000 MHz: 16e6 CU cycles; memory at 1000 MHz: 64 GB/s (0.064 GB/s
# per MHz), so that 64e6 bytes pass at most.
COUNTERS = {
    "dram_read_transactions": 600_000,
    "dram_write_transactions": 400_000,
    "l2_read_transactions": 1_500_000,
    "l2_write_transactions": 500_000,
    "tex_cache_transactions": 1_000_000,
    "shared_load_transactions": 3_000_000,
    "shared_store_transactions": 1_000_000,
    "gld_transactions": 1_200_000,
    "gst_transactions": 400_000,
    "warps": 1000,
    "inst_executed": 16_000_000,
    "inst_fp_32": 512_000_000,
    "inst_integer": 1_024_000_000,
    "flop_count_sp_special": 128_000_000,
    "inst_fp_64": 32_000_000,
    "ipc": 0.95,
    "achieved_occupancy": 0.5,
    "eligible_warps_per_cycle": 0.9,
    "warp_execution_efficiency": 0.75,
    "sm_efficiency": 0.8,
    "tex_cache_hit_rate": 0.6,
}
# By hand from the definitions of the utilisations and the GTX 980's 128 lanes, 4 FP64 lanes, 32
# special-function lanes and 4 schedulers per CU.
BY_HAND = {
    "dram_utilisation": 0.5,  # 32 B x 1e6 of 64e6 B
    "l2_bytes_per_cycle": 4.0,  # 32 B x 2e6 in 16e6 cycles
    "texture_bytes_per_cycle": 2.0,
    "shared_transactions_per_cycle": 0.25,
    "global_transactions_per_cycle": 0.1,
    "issue_utilisation": 0.25,  # one per cycle of four schedulers
    "ipc_utilisation": 0.2375,
    "fp32_utilisation": 0.25,  # 32 of 128 lanes
    "integer_utilisation": 0.5,
    "special_function_utilisation": 0.25,  # 8 of 32 lanes
    "fp64_utilisation": 0.5,  # 2 of 4 lanes
    "occupancy": 0.5,
    "log_eligible_warps": 0.0,  # log(0.9 + 0.1)
    "warp_efficiency": 0.75,
    "cu_activity": 0.8,
    "log_stall": math.log(32.5),  # (64 x 0.5 + 0.5) / (0.95 + 0.05)
    "log_dram_bytes_per_instruction": math.log(3),  # 1 + 32e6 B / 16e6
    "log_l2_bytes_per_instruction": math.log(5),  # 1 + 64e6 B / 16e6
    "texture_hit_rate": 0.6,
    "l2_miss_ratio": 600_001 / 1_500_001,
    "dram_write_share": 400_000 / 1_000_001,
    "log_time_ms": 0.0,
    "log_warps": math.log(1000),
}


def utilisation(
    counters: dict[str, float], time_ms: float = 1.0, names: tuple[str, ...] | None = None
) -> dict[str, float]:
    """The utilisation features of one kernel on a GTX 980."""
    kernel = profiles({name: [value] for name, value in counters.items()}, [time_ms])
    features = compute_features("utilisation", kernel, GTX980, names)
    return dict(zip(features.names, features.values[0].tolist(), strict=True))


class TestUtilisation:
    def test_of_one_kernel_by_hand(self) -> None:
        assert utilisation(COUNTERS) == pytest.approx(BY_HAND, rel=1e-12, abs=1e-12)

    def test_a_kernel_that_lacks_a_counter_takes_the_next_alternative(self) -> None:
        # By hand: 5 instructions per warp x 1000 warps where inst_executed is missing.
        kernels = profiles(
            {
                "inst_executed": [8000.0, np.nan],
                "inst_per_warp": [5.0, 5.0],
                "warps": [1000.0, 1000.0],
            }
        )
        features = compute_features("utilisation", kernels, GTX980)
        issued = features.values[:, features.names.index("issue_utilisation")]
        assert issued[1] / issued[0] == pytest.approx(5 / 8, rel=1e-12)

    def test_peaks_are_those_of_the_device_at_the_profiled_clocks(self) -> None:
        # By hand for a P100 (1.024 GB/s per MHz, 2 schedulers a CU): 10 CUs at 500 MHz for 2 ms
        # are 1e7 cycles; 1000 MHz of memory pass 2.048e9 bytes in 2 ms.
        kernel = profiles(
            {
                "dram_read_transactions": [32_000_000],
                "dram_write_transactions": [0],
                "inst_executed": [10_000_000],
            },
            time_ms=[2.0],
            base=HardwareConfig(10, 500.0, 1000.0),
        )
        features = compute_features("utilisation", kernel, load_device("p100"))
        values = dict(zip(features.names, features.values[0], strict=True))
        assert values["dram_utilisation"] == pytest.approx(0.5, rel=1e-12)
        assert values["issue_utilisation"] == pytest.approx(0.5, rel=1e-12)
        assert values["log_time_ms"] == pytest.approx(math.log(2), rel=1e-12)

    @pytest.mark.parametrize(
        ("name", "others"),
        [
            ("ipc", {"executed_ipc": 0.95}),
            ("sm_efficiency", {"sm_activity": 0.8}),
            ("inst_executed", {"inst_per_warp": 16_000.0}),  # x 1000 warps
        ],
    )
    def test_counters_known_by_another_name(self, name: str, others: dict[str, float]) -> None:
        counters = {n: value for n, value in COUNTERS.items() if n != name}
        assert utilisation(counters | others) == pytest.approx(BY_HAND, rel=1e-12, abs=1e-12)

    def test_throughput_columns_never_enter(self) -> None:
        throughputs = {
            name.replace("_transactions", "_throughput"): 1e9
            for name in COUNTERS
            if name.endswith("_transactions")
        }
        assert utilisation(COUNTERS | throughputs) == utilisation(COUNTERS)
        without = {name: v for name, v in COUNTERS.items() if not name.startswith("dram_")}
        assert utilisation(without | throughputs) == utilisation(without)

    @pytest.mark.parametrize(
        ("changed", "missing"),
        [
            (
                {"dram_write_transactions": math.nan},
                {"dram_utilisation", "log_dram_bytes_per_instruction", "dram_write_share"},
            ),
            # What cannot be divided.
            (
                {"inst_executed": 0.0, "warps": 0.0},
                {"log_dram_bytes_per_instruction", "log_l2_bytes_per_instruction", "log_warps"},
            ),
        ],
    )
    def test_a_missing_value_is_missing(self, changed: dict[str, float], missing: set[str]) -> None:
        found = utilisation(COUNTERS | changed)
        assert {name for name, value in found.items() if math.isnan(value)} == missing

    def test_the_miss_ratio_is_at_most_two(self) -> None:
        assert utilisation(COUNTERS | {"l2_read_transactions": 10.0})["l2_miss_ratio"] == 2.0

    def test_real_shares_of_a_peak_are_below_one(self, data_folder: Path) -> None:
        # Bound: physics; no kernel moves or issues more than its device can.
        shares = [name for name in BY_HAND if name.endswith("_utilisation")]
        for table in of_all_gpus(data_folder).values():
            at_base = table.profiles(table.grid.mid)
            features = compute_features("utilisation", at_base, load_device(table.device))
            assert features.names == tuple(BY_HAND)
            values = features.values[:, [features.names.index(name) for name in shares]]
            assert np.nanmin(values) >= 0
            assert np.nanmax(values) <= 1
            assert np.nanmax(values[:, 0]) > 0.7  # some kernel streams from DRAM


def test_raw_and_table_2() -> None:
    """The columns as they are; and the paper's Table II, which has 22."""
    kernels = profiles({"loads": [1.0, 2.0], "gld_throughput": [3.0, math.nan]})
    features = compute_features("raw", kernels, None)
    assert features.names == ("loads", "gld_throughput")
    np.testing.assert_array_equal(features.values, [[1.0, 3.0], [2.0, math.nan]])
    assert (
        compute_features("raw", kernels, None, features.names[::-1]).names == features.names[::-1]
    )
    assert len(set(TABLE_2)) == len(TABLE_2) == 22
    kernels = profiles({"waves": [9.0], "CacheHit": [20.0], "VALUBusy": [50.0]})
    features = compute_features("table2", kernels, None)
    assert features.names == ("VALUBusy", "CacheHit")
    assert features.values.tolist() == [[50.0, 20.0]]


class TestRates:
    def test_by_hand(self) -> None:
        kernel = profiles(
            {
                "inst_executed": [1000.0],
                "gld_transactions": [500.0],
                "gld_transactions_per_request": [4.0],
                "achieved_occupancy": [0.5],
            },
            time_ms=[2.0],
        )
        features = compute_features("rates", kernel, None)
        assert dict(zip(features.names, features.values[0], strict=True)) == pytest.approx(
            {
                "gld_transactions_per_request": 4.0,
                "achieved_occupancy": 0.5,
                "log_inst_executed_per_ms": math.log(501),
                "gld_transactions_per_instruction": 0.5,
                "log_gld_transactions_per_ms": math.log(251),
            },
            rel=1e-12,
        )

    def test_what_counts_events(self) -> None:
        """nvprof's own description of each metric: a count of events, or a ratio."""
        counts = (
            *("inst_executed", "inst_fp_32", "flop_count_sp_special", "cf_executed", "warps"),
            *("ldst_executed", "issue_slots", "gld_transactions", "tex_cache_transactions"),
        )
        ratios = (
            *("gld_transactions_per_request", "inst_per_warp", "inst_replay_overhead", "ipc"),
            *("eligible_warps_per_cycle", "dram_read_throughput", "tex_cache_hit_rate"),
        )
        assert all(map(is_count, counts))
        assert not any(map(is_count, ratios))


@pytest.mark.parametrize(
    ("names", "device", "kind"),
    [
        (("waves", *TABLE_2), "gtx980", "table2"),
        (tuple(COUNTERS), "gtx980", "utilisation"),
        ((*COUNTERS, "Occupancy", "MemTime"), "gtx980", "utilisation"),  # a few do not decide
        (("busy_compute", "busy_memory"), "gtx980", "raw"),
        (tuple(COUNTERS), "made-gpu", "raw"),  # without peaks
    ],
)
def test_the_default_kind_follows_from_names(
    names: tuple[str, ...], device: str, kind: str
) -> None:
    assert default_kind(names, device) == kind


@pytest.mark.parametrize(
    ("kind", "counters", "message"),
    [
        ("ratio", {"a": 1}, "no features 'ratio'; one of raw, rates, utilisation"),
        ("rates", {}, "counters give no 'rates' features; available: none"),
        # The time alone is no feature of the counters.
        ("utilisation", {"CacheHit": 20}, "give no 'utilisation' features; available: Cac"),
    ],
)  # fmt: skip
def test_refusals(kind: str, counters: dict[str, float], message: str) -> None:
    columns = {name: [float(value)] for name, value in counters.items()}
    with refused(message):
        compute_features(kind, profiles(columns, [1.0]), GTX980)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("table2", ("CacheHit",)),
        ("rates", ("log_gld_transactions_per_ms",)),
        ("utilisation", ("dram_utilisation",)),
        ("raw+power", ("base_power_w",)),
    ],
)
def test_a_named_feature_is_missing_where_its_counters_are(
    kind: str, names: tuple[str, ...]
) -> None:
    assert np.isnan(compute_features(kind, profiles({"waves": [1.0]}), GTX980, names).values).all()


def test_a_gpu_without_peaks() -> None:
    kernel = profiles({name: [value] for name, value in COUNTERS.items()})
    with refused(r"peaks of 'made-gpu'.*not in the device table; use features='raw' or rates"):
        compute_features("utilisation", kernel, None)


class TestEveryKind:
    KERNELS = profiles(
        {
            **{name: [v, 2 * v + 1, 0.7 * v] for name, v in COUNTERS.items()},
            **{name: [10.0, 20.0, 70.0] for name in TABLE_2},
        },
        time_ms=[1.0, 3.0, 0.2],
        device="gtx980",
    )

    @pytest.mark.parametrize("kind", FEATURE_KINDS)
    def test_depends_on_its_own_kernel_only(self, kind: str) -> None:
        together = compute_features(kind, self.KERNELS, GTX980)
        alone = [compute_features(kind, one, GTX980).values[0] for one in one_by_one(self.KERNELS)]
        np.testing.assert_array_equal(together.values, alone)


MID = made.GRID.mid


def powered(*watts: float) -> Profiles:
    """Kernels whose counter 'busy' counts from 1, with these powers."""
    count = len(watts)
    return replace(
        profiles({"busy": list(range(1, count + 1))}), power_w=np.array(watts, dtype=np.float64)
    )


def test_the_power_stands_beside_the_counters() -> None:
    features = compute_features("raw+power", powered(80.0, 120.0), None)
    assert features.names == ("busy", "base_power_w")
    assert features.values.tolist() == [[1, 80], [2, 120]]


def test_is_scaled_as_every_feature_is() -> None:
    """100 W lies half way from 80 to 120, 130 W is beyond and clipped."""
    scaling = FeatureScaling.fit("raw+power", powered(80.0, 120.0))
    points, flags = scaling.transform(powered(100.0, 130.0))
    assert points.tolist() == [[0, 0.5], [1, 1]]
    assert flags[0] == ()
    assert flags[1] == (Note("P02", "base_power_w 130 is above 120, the highest in training"),)


def test_without_power() -> None:
    """Refused in training; in a profile the training median stands for it."""
    with refused(r"^features with '\+power' need the column 'power_w'$"):
        FeatureScaling.fit("raw+power", profiles({"busy": [1.0, 2.0]}))
    scaling = FeatureScaling.fit("raw+power", powered(80.0, 120.0))
    for unknown in (profiles({"busy": [1.5]}), powered(np.nan)):
        _, [flags] = scaling.transform(unknown)
        assert flags == (Note("T10", "missing: base_power_w"),)


def test_without_counters_the_power_is_the_one_feature() -> None:
    """Two laws, each of its own power; counters of one value for all change nothing."""
    data = made.measurements(per_group=3)
    watts = np.repeat(np.arange(1.0, 5.0), 3)[:, None, None, None] * np.ones(data.grid.shape)
    known = replace(data, power_samples=watts[None])
    for counters in (data.counter_samples[..., :0], data.counter_samples * 0 + 1):
        names = data.counter_names[: counters.shape[-1]]
        table = replace(known, counter_names=names, counter_samples=counters)
        model = train(table, MID, "wu", features="raw+power", clusters=4)
        predicted = model.predict(table.profiles(MID)).surfaces["time"].values
        assert np.abs(predicted / table.relative("time", MID) - 1).max() < 0.01


class TestInStudies:
    def test_they_stand_for_power_alone(self) -> None:
        assert Candidate.from_predictor("wu", "raw+power").predicts("power")
        assert not Candidate.from_predictor("wu", "raw+power").predicts("time")
        assert Candidate.from_predictor("wu", "raw").predicts("time")

    def test_plan(self) -> None:
        planned = ErrorStudy(
            tables={"t": made.measurements()},
            predictors=["nearest"],
            features=["raw", "raw+power"],
            seeds=1,
        )
        nearest = [part for part in planned.parts if part.candidate.name == "nearest"]
        assert [(part.quantity, part.candidate.features) for part in nearest] == [
            ("time", "raw"), ("power", "raw"), ("power", "raw+power"),
        ]  # fmt: skip
