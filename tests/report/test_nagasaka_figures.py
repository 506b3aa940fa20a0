"""What the figures of Nagasaka et al. call the power that a table holds."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from synthetic import powered

from mlscale.papers.nagasaka_inputs import derive_inputs
from mlscale.report.nagasaka_figures import draw_watts
from mlscale.studies.nagasaka import PowerCase, set_errors


@cache
def case() -> PowerCase:
    made = derive_inputs(powered.profiles(20))
    results = tuple(set_errors(made, ["application"], 1))
    return PowerCase("t", "gpu", powered.BASE, "all", made, results)


class TestDrawWatts:
    @pytest.mark.parametrize(
        ("origin", "called"),
        [("simulated", "simulated"), ("measured", "measured"), (None, "in the table")],
    )
    def test_power_is_called_by_its_origin(
        self, origin: str | None, called: str, tmp_path: Path
    ) -> None:
        _, svg = draw_watts(replace(case(), origin=origin), "Mem/Inst", (), tmp_path / "figure")
        said = svg.read_text()  # matplotlib writes each text as a comment
        assert f"<!-- {called} -->" in said
        assert f"100 (estimated / {called} - 1)" in said
        assert "actual" not in said

    def test_errors_stand_beside_the_bars(self, tmp_path: Path) -> None:
        """Whole percent of the watts that the table holds, +0 for the least of them."""
        true_w = case().inputs.power_w
        estimated_w = case().result("Mem/Inst").estimated_w.mean(axis=0)
        _, svg = draw_watts(case(), "Mem/Inst", (), tmp_path / "figure")
        shown = re.findall(r"<!-- ([+-]\d+) % -->", svg.read_text())
        expected = [round(100 * float(e / t - 1)) for e, t in zip(estimated_w, true_w, strict=True)]
        assert sorted(map(int, shown)) == sorted(expected)
        assert "-0" not in shown
