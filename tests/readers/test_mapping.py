"""Formulas of mapping.json: their language, and each on one made kernel.

The kernel takes 1 ms at 1 GHz on 10 CUs, 80 % of the cycles with work, and moves a share of the
1e9 bytes that DRAM passes in that time. The expected values follow from that by hand. Where a
number has several formulas, there is one value for each: they agree but where it is said.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from mlscale.counters.features import TABLE_2
from mlscale.readers import mapping
from mlscale.readers.mapping import Scope, lacking_for_nvprof, peak_shares, table_features

TOOLS: dict[str, Any] = json.loads(Path(mapping.__file__).with_name("mapping.json").read_text())[
    "tools"
]
FACTS: dict[str, float | None] = {
    "time_s": 1e-3, "engine_hz": 1e9, "cu_count": 10, "xcd_count": 2, "se_count": 4,
    "peak_bytes_per_s": 1e12, "workgroups": 400, "warps": 1e4,
}  # fmt: skip
ELAPSED, ACTIVE = ".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active"
L1_GLOBAL = "_pipe_lsu_mem_global_op"

# 20 million warp instructions, half of the 4 x 10 x 1e6 that can be issued; 0.3 + 0.1 GB of DRAM.
NCU = {
    "sm__inst_executed_pipe_alu.sum": 3e6, "sm__inst_executed_pipe_fma.sum": 4e6,
    "sm__inst_executed_pipe_fp64.sum": 1e6, "sm__inst_executed_pipe_xu.sum": 0.5e6,
    "sm__inst_executed_pipe_fp16.sum": 0.3e6, "sm__inst_executed_pipe_tensor.sum": 0.2e6,
    "sm__inst_executed_pipe_uniform.sum": 2e6,
    "sm__sass_inst_executed_op_global_ld.sum": 4e6, "sm__sass_inst_executed_op_local_ld.sum": 0.5e6,
    "sm__sass_inst_executed_op_texture.sum": 0.3e6, "smsp__inst_executed_op_ldgsts.sum": 0.2e6,
    "smsp__inst_executed_op_global_ld.sum": 4e6, "smsp__inst_executed_op_local_ld.sum": 0.8e6,
    "sm__sass_inst_executed_op_global_st.sum": 1.6e6,
    "sm__sass_inst_executed_op_local_st.sum": 0.4e6,
    "smsp__inst_executed_op_global_st.sum": 1.6e6, "smsp__inst_executed_op_local_st.sum": 0.4e6,
    "sm__sass_inst_executed_op_shared_ld.sum": 1.5e6,
    "sm__sass_inst_executed_op_shared_st.sum": 0.4e6,
    "sm__sass_inst_executed_op_shared_atom.sum": 0.1e6,
    "sm__cycles_elapsed.sum": 1e7, "sm__cycles_elapsed.avg": 1e6, "sm__cycles_elapsed.max": 1e6,
    "gpc__cycles_elapsed.max": 1e6, "sm__cycles_active.avg": 0.8e6,
    "dram__bytes_read.sum": 3e8, "dram__bytes_op_read.sum": 3e8, "dram__bytes_write.sum": 1e8,
    "dram__bytes_op_write.sum": 1e8, "dram__bytes.sum": 4e8, "dram__bytes.sum.per_second": 4e11,
    "dram__bytes_read.sum.per_second": 3e11, "dram__bytes_write.sum.per_second": 1e11,
    "dram__sectors_read.sum": 9_375_000, "dram__sectors_write.sum": 3_125_000,
    f"dram__throughput{ELAPSED}": 40, f"gpu__dram_throughput{ELAPSED}": 40,
    f"gpu__compute_memory_throughput{ELAPSED}": 63,
    f"l1tex__throughput{ELAPSED}": 48, f"l1tex__throughput{ACTIVE}": 60,
    f"lts__throughput{ELAPSED}": 30, "lts__t_sector_hit_rate.pct": 80,
    "lts__t_sectors_op_atom.sum": 1e5, "lts__t_sectors_op_red.sum": 2e5,
    "lts__t_sectors_op_read.sum": 4e6, "lts__t_sectors_op_write.sum": 1e6,
    "smsp__thread_inst_executed_per_inst_executed.ratio": 24,
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 1.2e6,
    "sm__maximum_warps_per_active_cycle_pct": 75,
    f"sm__throughput{ELAPSED}": 65,
    "sm__inst_issued.sum": 2e7, "smsp__inst_issued.sum": 2e7, "sm__inst_executed.sum": 2e7,
    "smsp__inst_executed.sum": 2e7, "smsp__average_inst_executed_per_warp.ratio": 2000,
    f"sm__inst_issued{ELAPSED}": 50, f"sm__inst_issued{ACTIVE}": 62.5,
    "sm__inst_executed.avg.per_cycle_elapsed": 2, "sm__inst_executed.avg.per_cycle_active": 2.5,
    "sm__inst_issued.avg.per_cycle_active": 2.5, "smsp__issue_active.avg.per_cycle_active": 0.625,
    f"sm__pipe_tensor_cycles_active{ELAPSED}": 16, f"sm__pipe_tensor_cycles_active{ACTIVE}": 20,
    f"sm__inst_executed_pipe_tensor{ELAPSED}": 16, f"sm__inst_executed_pipe_tensor{ACTIVE}": 20,
    f"sm__pipe_fp64_cycles_active{ELAPSED}": 8, f"sm__pipe_fp64_cycles_active{ACTIVE}": 10,
    f"sm__inst_executed_pipe_fp64{ELAPSED}": 8, f"sm__inst_executed_pipe_fp64{ACTIVE}": 10,
    f"sm__pipe_fma_cycles_active{ELAPSED}": 24, f"sm__pipe_fma_cycles_active{ACTIVE}": 30,
    f"sm__inst_executed_pipe_fma{ELAPSED}": 24, f"sm__inst_executed_pipe_fma{ACTIVE}": 30,
    f"sm__warps_active{ACTIVE}": 55, "smsp__warps_eligible.avg.per_cycle_active": 0.3,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 3e6,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 2.4e6,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum": 1e6,
    f"l1tex__t_sectors{L1_GLOBAL}_ld.sum": 1.6e7, f"l1tex__t_requests{L1_GLOBAL}_ld.sum": 4e6,
    f"l1tex__t_sectors{L1_GLOBAL}_st.sum": 8e6, f"l1tex__t_requests{L1_GLOBAL}_st.sum": 1.6e6,
    f"l1tex__average_t_sectors_per_request{L1_GLOBAL}_ld.ratio": 4,
    f"l1tex__average_t_sectors_per_request{L1_GLOBAL}_st.ratio": 5,
    "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum": 3.2e7,
}  # fmt: skip
OF_ALL_CYCLES, OF_ACTIVE = 4, 2  # formulas of a pipe's use: of all cycles, of those with work
OF_NCU = {
    "quantities": {
        "valu": [9e6], "vfetch": [5e6, 5e6], "vwrite": [2e6, 2e6], "lds": [2e6],
        "sm_cycles": [1e7, 1e7], "total": [2e7], "read_bytes": [3e8, 3e8],
        "write_bytes": [1e8, 1e8], "activity": [0.8] * 3, "l1_percent": [48, 48, 60],
        "l2_percent": [30], "atomics": [3e5],
    },
    "features": {
        "VALUInsts": [45], "SALUInsts": [10], "VFetchInsts": [25], "SFetchInsts": [],
        "VWriteInsts": [10], "LDSInsts": [10], "VALUUtilization": [75], "VALUBusy": [22.5],
        "SALUBusy": [5], "CacheHit": [80], "MemUnitBusy": [48], "MemUnitStalled": [],
        "WriteUnitStalled": [], "LDSBankConflict": [12], "Occupancy": [75], "V_IPC": [0.9],
        "MemTime": [0.4], "FetchPerLoadByte": [5 / 300], "WritePerStoreByte": [2 / 100],
        "NumWorkGroups": [320], "ReadBandwidth": [3e11], "WriteBandwidth": [1e11],
    },
    "shares": {
        "dram_utilisation": [0.4] * 6 + [0.63],  # the last is of the busiest unit
        "core_utilisation": [0.65], "issue_utilisation": [0.5] * 9 + [0.625] * 4,
        "tensor_utilisation": [0.16] * OF_ALL_CYCLES + [0.2] * OF_ACTIVE,
        "fp64_utilisation": [0.08] * OF_ALL_CYCLES + [0.1] * OF_ACTIVE,
        "fp32_utilisation": [0.24] * OF_ALL_CYCLES + [0.3] * OF_ACTIVE,
        "l2_utilisation": [0.3], "texture_utilisation": [0.48, 0.6], "occupancy": [0.55],
        "cu_activity": [0.8], "eligible_warps_per_cycle": [1.2],
        "shared_transactions_per_cycle": [0.3],
    },
    "needed": {
        "achieved_occupancy": [0.55], "inst_per_warp": [2000] * 3,
        "dram_read_transactions": [9_375_000] * 3, "dram_write_transactions": [3_125_000] * 3,
        "l2_read_transactions": [4.3e6], "l2_write_transactions": [1.3e6],
        "shared_load_transactions": [2.4e6], "shared_store_transactions": [1e6],
    },
    "more": {
        "gld_transactions": [1.6e7], "gst_transactions": [8e6],
        "gld_transactions_per_request": [4] * 3, "gst_transactions_per_request": [5] * 3,
        "shared_load_transactions_per_request": [1.6],
        "shared_store_transactions_per_request": [2.5],
        "inst_fp_64": [3.2e7, 3.2e7], "inst_executed": [2e7, 2e7],
    },
}  # fmt: skip

# A thousand waves of a thousand instructions each, 400 of them of vectors; GRBM_GUI_ACTIVE counts
# 1e6 cycles on each of two dies. Reads are 1e6 of 128 bytes, 1e6 of 64 and 4e5 of 32, 204.8 MB, on
# older GPUs 3e6 of 64 in place of the first two; writes are 7e5 of 64 and 2e5 of 32, 51.2 MB.
PER_WAVE = {
    "Wavefronts": 1000, "VALUInsts": 400, "SALUInsts": 100, "SFetchInsts": 50, "VFetchInsts": 250,
    "VWriteInsts": 100, "LDSInsts": 100, "FetchSize": 2e5, "WriteSize": 5e4,
}  # fmt: skip
PERCENT = {
    "VALUUtilization": 75, "VALUBusy": 30, "SALUBusy": 20, "MemUnitBusy": 60, "MemUnitStalled": 5,
    "WriteUnitStalled": 3, "LDSBankConflict": 12,
}  # fmt: skip
ROCPROF = {
    **PER_WAVE, "VFetchInsts": 200, "FlatVMemInsts": 50, **PERCENT, "L2CacheHit": 80,
    "GRBM_GUI_ACTIVE": 2e6, "SQ_INSTS_VALU": 4e5,
    "SQ_INSTS_SALU": 1e5, "SQ_INSTS_SMEM": 5e4, "SQ_INSTS_VMEM_RD": 2.5e5,
    "SQ_INSTS_VMEM_WR": 1e5, "SQ_INSTS_LDS": 1e5, "SQ_INSTS_FLAT_LDS_ONLY": 1e4,
    "SQ_ACTIVE_INST_VALU": 3e6, "SQ_THREAD_CYCLES_VALU": 0.75 * 64 * 3e6,
    "SQ_INST_CYCLES_SALU": 2e6, "SQ_LDS_BANK_CONFLICT": 1.2e6, "TCC_HIT_sum": 8e5,
    "TCC_MISS_sum": 2e5, "GL2C_HIT_sum": 8e5, "GL2C_MISS_sum": 2e5, "TA_BUSY_max": 6e5,
    "TA_TA_BUSY_max": 6e5, "TCP_TCP_TA_DATA_STALL_CYCLES_max": 2e5, "TCC_WRREQ_STALL_max": 3e4,
    "TCC_EA_WRREQ_STALL_max": 3e4, "FETCH_SIZE": 2e5, "WRITE_SIZE": 5e4, "TCC_BUBBLE_sum": 1e6,
    "TCC_EA0_RDREQ_sum": 2.4e6, "TCC_EA0_RDREQ_32B_sum": 4e5, "TCC_EA_RDREQ_sum": 3.4e6,
    "TCC_EA_RDREQ_32B_sum": 4e5, "TCC_EA0_WRREQ_sum": 9e5, "TCC_EA0_WRREQ_64B_sum": 7e5,
    "TCC_EA_WRREQ_sum": 9e5, "TCC_EA_WRREQ_64B_sum": 7e5, "MfmaUtil": 45,
    "SQ_VALU_MFMA_BUSY_CYCLES": 1.8e7, "OccupancyPercent": 55,
}  # fmt: skip
OF_ROCPROF = {
    "quantities": {
        "total": [1e6], "total_per_wave": [1000], "fetch_bytes": [204.8e6] * 4,
        "write_bytes": [51.2e6] * 4,
    },
    "features": {
        "VALUInsts": [40, 40], "SALUInsts": [10, 10], "VFetchInsts": [25], "SFetchInsts": [5, 5],
        "VWriteInsts": [10], "LDSInsts": [9, 10],  # the second with FLAT's among them
        "VALUUtilization": [75, 75], "VALUBusy": [30, 30], "SALUBusy": [20, 20],
        "CacheHit": [80] * 3, "MemUnitBusy": [60] * 3, "MemUnitStalled": [5, 5],
        "WriteUnitStalled": [3] * 3, "LDSBankConflict": [12, 12], "Occupancy": [],
        "V_IPC": [0.04, 0.04], "MemTime": [0.256], "FetchPerLoadByte": [2.5e5 / 204.8e6],
        "WritePerStoreByte": [1e5 / 51.2e6], "NumWorkGroups": [320], "ReadBandwidth": [204.8e9],
        "WriteBandwidth": [51.2e9],
    },
    "shares": {
        # The upper bounds are of 128 or 64 bytes for each of the requests.
        "dram_utilisation": [0.256, 0.3648, 0.2752], "core_utilisation": [0.3],
        "tensor_utilisation": [0.45, 0.45], "occupancy": [0.55],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("tool", "counters", "expected"), [("ncu", NCU, OF_NCU), ("rocprof", ROCPROF, OF_ROCPROF)]
)
def test_every_formula(tool: str, counters: dict[str, float], expected: dict[str, Any]) -> None:
    entry = TOOLS[tool]
    scope = Scope(tool, counters, {}, {**FACTS, "VALUBusy": 30.0})
    there = {"quantities": entry["quantities"], **entry.get("nvprof_counters", {})}
    for part in ("features", "shares"):
        there[part] = {name: [one["formula"] for one in of] for name, of in entry[part].items()}
    values = {
        part: {name: [scope.first([one])[0] for one in formulas] for name, formulas in of.items()}
        for part, of in there.items()
    }
    assert values.keys() == expected.keys()
    for part, of in values.items():
        assert of.keys() == expected[part].keys()
        for name, found in of.items():
            assert found == pytest.approx(expected[part][name], rel=1e-9), (part, name)


def test_what_is_said_of_a_value_is_of_the_formula_that_gave_it() -> None:
    """By hand: 10 x 100 / (1 s x 1 kHz x 1 CU) = 1, and (128 x 3 + 64 x 1) / 448 bytes = 1."""
    counters = {"VALUInsts": 10.0, "Wavefronts": 100.0}
    counters |= {"TCC_EA0_RDREQ_sum": 3.0, "TCC_EA0_WRREQ_sum": 1.0}
    facts = {"time_s": 1.0, "engine_hz": 1e3, "cu_count": 1.0, "peak_bytes_per_s": 448.0}
    scope = Scope("rocprof", counters, {}, facts)
    feature = table_features(scope)["V_IPC"]
    assert (feature.value, feature.status) == (1.0, "nearest")
    assert table_features(scope)["CacheHit"] == mapping.Feature(None, "missing")
    share = peak_shares(scope)["dram_utilisation"]
    assert share.value == 1.0
    assert share.source.startswith("DRAM reads of 128 and writes of 64 bytes: an upper bound = (")


@pytest.mark.parametrize(
    ("time_us", "cycles"),
    [(20, 20_000), (500, 520_000 / 2)],  # a short kernel's are those of its time
)
def test_cycles_are_of_the_counters_own_pass_and_of_one_die(time_us: int, cycles: float) -> None:
    facts = {"xcd_count": 2.0, "time_s": time_us / 1e6, "engine_hz": 1e9}
    scope = Scope("rocprof", {mapping.CYCLES: 1.0}, {"a": 520_000.0}, facts)
    assert scope.first(["cycles({a})"])[0] == pytest.approx(cycles)


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("100*{a}/({a}+{b})", 25.0), ("{a}-optional({z})", 1.0), ("minimum({b},2)", 2.0),
        ("above({b},2)", 3.0),
        # Missing is not zero.
        *((formula, math.nan) for formula in ("{a}/0", "time_s", "cycles({a})", "above({a},1)")),
    ],
)  # fmt: skip
def test_the_language(formula: str, value: float) -> None:
    scope = Scope("ncu", {"a": 1.0, "b": 3.0}, {}, {"time_s": None})
    position = -1 if math.isnan(value) else 1
    assert scope.first(["{z}", formula]) == (pytest.approx(value, nan_ok=True), position)


@pytest.mark.parametrize("formula", ["__import__('os')", "{a}**9", "[1]", "a.b", "{a} < 1"])
def test_it_runs_no_code(formula: str) -> None:
    with pytest.raises((ValueError, KeyError)):
        Scope("ncu", {"a": 1.0}, {}, {}).first([formula])


@pytest.mark.parametrize("tool", ["ncu", "rocprof"])
def test_the_commands_of_the_docs_ask_for_every_feature(tool: str) -> None:
    """Each feature has an alternative all of whose counters docs/howto/profile.md names."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "profile.md").read_text(encoding="utf-8")
    entry = TOOLS[tool]

    def asked(formula: str) -> bool:
        words = re.findall(r"\w+", re.sub(r"\{[^{}]*\}", "", formula))
        quantities = [of_one for name, of_one in entry["quantities"].items() if name in words]
        must = re.findall(r"\{([^{}]+)\}", re.sub(r"optional\([^()]*\)", "0", formula))
        return all(name in page for name in must) and all(any(map(asked, q)) for q in quantities)

    assert tuple(entry["features"]) == TABLE_2
    for feature, alternatives in entry["features"].items():
        assert not alternatives or any(asked(one["formula"]) for one in alternatives), feature


def test_what_lacks_for_nvprofs_counters_names_what_to_count() -> None:
    """By NVIDIA's table of both tools' names: DRAM transactions are sectors."""
    lacking = lacking_for_nvprof("ncu", set(NCU) - {"dram__bytes_read.sum"})
    assert lacking == {}
    lacking = lacking_for_nvprof("ncu", ["dram__sectors_read.sum"])
    assert "dram_read_transactions" not in lacking
    assert "sm__warps_active" in lacking["achieved_occupancy"]
    assert lacking_for_nvprof("rocprof", []) == {}
