"""mapping.json is checked data: complete, in its own small language, and evaluated right."""

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlscale.counters.features import TABLE_2
from mlscale.profilers import mapping
from mlscale.profilers.exports.layouts import TOOLS
from mlscale.profilers.launches import NumberSet
from mlscale.profilers.mapping import FormulaScope, counters_of, obtainable_features

DOCUMENT = json.loads(Path(mapping.__file__).with_name("mapping.json").read_text())
FACTS = ("time_s", "workgroups", "warps", "cu_count", "engine_hz", "peak_bytes_per_s", "xcd_count",
         "se_count", *TABLE_2)  # fmt: skip
OWN_MAPPING = [tool for tool in TOOLS if "same_as" not in DOCUMENT["tools"][tool]]
MEMORY_PERCENT = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


@pytest.mark.parametrize("tool", OWN_MAPPING)
def test_every_formula_has_a_value_where_every_counter_is_there(tool: str) -> None:
    entry = DOCUMENT["tools"][tool]
    assert tuple(entry["features"]) == TABLE_2
    formulas = [(f, entry["quantities"]) for fs in entry["quantities"].values() for f in fs]
    for alternatives in entry["features"].values():
        for alternative in alternatives:
            assert alternative["status"] in ("exact", "nearest")
            formulas.append((alternative["formula"], entry["quantities"]))
    for alternatives in entry["shares"].values():
        for alternative in alternatives:
            assert alternative["source"]
            assert not {";", "="} & set(alternative["source"])  # they part the recorded texts
            formulas.append((alternative["formula"], entry["quantities"]))
    for counters in entry.get("nvprof_counters", {}).values():
        formulas += [(f, entry["quantities"]) for several in counters.values() for f in several]
    for formula, quantities in formulas:
        counters = {name: 2.0 + i for i, name in enumerate(sorted(counters_of(formula)))}
        for several in quantities.values():
            for one in several:
                counters |= {name: 3.0 + i for i, name in enumerate(sorted(counters_of(one)))}
        counters |= {"GRBM_GUI_ACTIVE": 7.0, "FlatVMemInsts": 0.0}
        if MEMORY_PERCENT in counters:  # counts only where it is above those of the caches
            counters[MEMORY_PERCENT] = 100.0
        scope = FormulaScope(counters, {}, dict.fromkeys(FACTS, 5.0), quantities)
        assert math.isfinite(scope.value(formula))


@pytest.mark.parametrize("tool", OWN_MAPPING)
def test_the_commands_of_the_docs_ask_for_every_feature(tool: str) -> None:
    """Each feature has an alternative whose counters docs/profiling.md names, all it must have."""
    page = (Path(__file__).parents[2] / "docs" / "profiling.md").read_text(encoding="utf-8")
    entry = DOCUMENT["tools"][tool]

    def asked(formula: str) -> bool:
        words = re.findall(r"\w+", re.sub(r"\{[^{}]*\}", "", formula))
        quantities = [of_one for name, of_one in entry["quantities"].items() if name in words]
        must = re.sub(r"optional\([^()]*\)", "0", formula)
        named = all(name in page for name in counters_of(must))
        return named and all(any(map(asked, of_one)) for of_one in quantities)

    for feature in obtainable_features(tool):
        assert any(asked(a["formula"]) for a in entry["features"][feature]), feature


def test_what_no_counter_of_a_tool_gives() -> None:
    """The features of Table II that a tool's counters cannot give (docs/profiling.md)."""
    lost = {tool: set(TABLE_2) - set(obtainable_features(tool)) for tool in TOOLS}
    stalls = {"MemUnitStalled", "WriteUnitStalled"}
    assert lost["ncu"] == {"SFetchInsts", *stalls}
    assert lost["nsys"] == lost["torch"] == set(TABLE_2) - {"NumWorkGroups"}  # traces do not count
    assert lost["rocprof"] == lost["rocprofv3"] == {"Occupancy"}  # not computed yet


def test_what_is_said_of_a_value_is_of_the_formula_that_gave_it() -> None:
    """By hand: 10 x 100 / (1 s x 1 kHz x 1 CU) = 1, and (128 x 3 + 64 x 1) / 448 bytes = 1.

    Reads are of 128 bytes at most on an MI300X: TCC_BUBBLE_sum, which counts those, is 65,536 of
    65,757 in the public counters of a copy there (mi300x_vcopy_rocpd_long_rows_filtered.csv).
    """
    counters = {"VALUInsts": 10.0, "Wavefronts": 100.0}
    counters |= {"TCC_EA0_RDREQ_sum": 3.0, "TCC_EA0_WRREQ_sum": 1.0}
    facts = {"time_s": 1.0, "engine_hz": 1e3, "cu_count": 1.0, "peak_bytes_per_s": 448.0}
    scope = FormulaScope.of("rocprof", counters, {}, facts)
    feature = mapping.table_features("rocprof", scope)["V_IPC"]
    assert (feature.value, feature.status) == (1.0, "nearest")
    share = mapping.peak_shares("rocprof", scope)["dram_utilisation"]
    assert share.value == 1.0
    assert share.source.startswith("DRAM reads of 128 and writes of 64 bytes: an upper bound = (")


class TestLanguage:
    def scope(self, **counters: float) -> FormulaScope:
        return FormulaScope(
            counters, {"a": 50.0}, {"xcd_count": 2.0, "time_s": None}, {"q": ["{z}", "9"]}
        )

    @pytest.mark.parametrize(
        ("formula", "value"),
        [
            ("100*{a}/({a}+{b})", 25.0), ("{a}-optional({z})", 1.0), ("q+1", 10.0),
            ("cycles({a})", 25.0), ("minimum({b},2)", 2.0), ("equals({a},1)", 1.0),
        ],
    )  # fmt: skip
    def test_values(self, formula: str, value: float) -> None:
        assert self.scope(a=1.0, b=3.0).value(formula) == value

    @pytest.mark.parametrize("formula", ["{z}", "{a}/0", "time_s", "cycles({b})", "{b}*1"])
    def test_missing_is_not_zero(self, formula: str) -> None:
        assert math.isnan(self.scope(a=1.0, b=float("nan")).value(formula))

    @pytest.mark.parametrize("formula", ["__import__('os')", "{a}**9", "[1]", "a.b", "{a} < 1"])
    def test_runs_no_code(self, formula: str) -> None:
        with pytest.raises((ValueError, KeyError)):
            self.scope(a=1.0).value(formula)


@given(st.lists(st.integers(0, 30)))
def test_numbers_that_came_before_are_known(numbers: list[int]) -> None:
    known, seen = NumberSet(), set()
    for number in numbers:
        assert known.add(number) == (number not in seen)
        seen.add(number)
