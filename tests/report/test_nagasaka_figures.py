"""What the figures of Nagasaka et al. call the power that a table holds."""

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
