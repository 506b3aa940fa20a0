"""The report says what data are and what lacks, on any grid, and foreign names are text.

Kernels are made, by the laws of `synthetic/kernels.py` and `synthetic/frugal.py`.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from report_pages import (
    ATTRIBUTES,
    ELEMENTS,
    MID,
    SMALL,
    SOURCE,
    cells,
    harmless_styles,
    map_cells,
    new_profiles,
    report,
    section,
    text_of,
    trained,
)
from synthetic import frugal
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import ConfigGrid, Profiles, Surfaces, train
from mlscale.advice.answer import RunGoal
from mlscale.predictors.base import Predictor
from mlscale.report.markup import visible
from mlscale.report.page import Source, page


class TestHonesty:
    @pytest.mark.parametrize(
        ("origin", "shown"), [("made", "MADE DATA"), ("simulated", "SIMULATED")]
    )
    def test_made_and_simulated_data_are_labelled_at_the_top(self, origin: str, shown: str) -> None:
        model = replace(trained(), card={**trained().card, "metadata": {"origin": origin}})
        banners = report(model).texts("p", "banner")
        assert [b.startswith(shown) for b in banners] == [True]
        both = report(model, replace(new_profiles(), metadata={"origin": origin}))
        assert len(both.texts("p", "banner")) == 2

    def test_what_the_board_cannot_supply_is_no_best(self) -> None:
        # An H100 may be set to 700 W; 8 times the power is 800 W at 1000 MHz, which is quickest.
        model = replace(train(frugal.measurements(), MID, "nearest"), device="h100-sxm5")
        both = frugal.new_kernels()
        assert both.power_w is not None
        for factor, quickest in ((7, "1000"), (8, "800")):
            hot = replace(both, device="h100-sxm5", power_w=factor * both.power_w)
            root = report(model, hot)
            shown = text_of(section(root, "Best configurations"))
            assert f"shortest time16 compute units, {quickest} / 400 MHz" in shown
            is_too_much = quickest == "800"
            above = made.GRID.size // len(made.GRID.engine_mhz)
            assert (f"At {above} of {made.GRID.size} configurations" in shown) == is_too_much
            kernel = root.one("section", "kernel")
            # Of 34.48, 45.12, 65.84 and 100 W over the engine clock, so many times.
            most = "526.7" if is_too_much else "700.0"
            assert f" W at the base; predicted {34.48 * factor:.1f} to {most} W" in kernel.text
            table = kernel.all("table")[-1]
            assert table.text.count("above power limit") == above * is_too_much

    @pytest.mark.parametrize("lacks", ["model", "profile"])
    def test_without_power_the_sections_say_so(self, lacks: str) -> None:
        root = report(trained(power=lacks == "profile"), new_profiles(power=lacks == "model"))
        why = (
            "the model was trained without power"
            if lacks == "model"
            else "the profile has no power_w; give --power"
        )
        lacks = f"Power and energy are not predicted: {why}."
        assert text_of(section(root, "Time against energy")) == lacks
        best = section(root, "Best configurations")
        assert best[-1].text == lacks
        assert lacks in root.one("header").one("div", "flags").texts("li")
        assert [row[0] for row in best[1].rows()] == ["shortest time"]
        assert cells(root, "Power") == cells(root, "Energy") == {}
        assert len(cells(root, "Time")) == 36
        assert "lowest energy" not in root.one("nav").text

    def test_dynamic_power_makes_energy_with_static_power_alone(self) -> None:
        """By hand: power and energy at the base with and without 50 W."""
        model = replace(trained(), card={**trained().card, "metadata": {"power_kind": "dynamic"}})
        root = report(model)
        assert cells(root, "Energy") == {}
        assert len(cells(root, "Power")) == 36
        text = text_of(section(root, "Time against energy"))
        assert text.startswith("Energy is not predicted: power_w is dynamic power;")
        rows = section(root, "Best configurations")[1].rows()
        assert [row[0] for row in rows] == ["shortest time", "lowest power"]
        root, profiles = (
            report(model, source=replace(SOURCE, goal=RunGoal(static_power_w=50.0))),
            new_profiles(),
        )
        power = float(profiles.quantity("power")[0]) + 50
        assert float(cells(root, "Power")[8, 800, 700][0]) == pytest.approx(power, rel=6e-3)
        energy = power * float(profiles.time_ms[0])
        assert float(cells(root, "Energy")[8, 800, 700][0]) == pytest.approx(energy, rel=6e-3)
        assert "50 W of static power were added" in root.one("header").text

    def test_static_power_without_dynamic_power_is_refused(self) -> None:
        static = replace(SOURCE, goal=RunGoal(static_power_w=50.0))
        with refused("static power is of no use: the model was trained without power"):
            page(trained(power=False), new_profiles(), (0,), static)
        board = replace(trained(), card={**trained().card, "metadata": {"power_kind": "board"}})
        with refused("power_w is board power"):
            page(board, new_profiles(), (0,), static)

    @pytest.mark.parametrize(("longer", "unit"), [(1, "ms"), (1e5, "s")])
    def test_intervals_are_shown_where_the_predictor_gives_them(
        self, longer: float, unit: str
    ) -> None:
        class WithIntervals(type(trained("core-bound").predictors["time"])):  # type: ignore[misc]
            def predict_interval(
                self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
            ) -> Surfaces:
                assert grid is None
                assert coverage == pytest.approx(0.9)
                found = self.predict(profiles)
                return replace(found, low=found.values * 0.985, high=found.values * 1.01)

        plain = trained("core-bound")
        predictor: Predictor = WithIntervals().fit(made.measurements(), MID)
        model = replace(plain, predictors={**plain.predictors, "time": predictor})
        profiles = new_profiles()
        root = report(model, replace(profiles, time_ms=profiles.time_ms * longer))
        assert len(root.all("g", "band")) == 3
        table = root.all("details")[-1].one("table")
        assert table.texts("th")[5:7] == [f"low {unit}", f"high {unit}"]
        far = [row for row in table.rows() if [float(cell) for cell in row[:3]] != [8, 800, 700]]
        assert len(far) == len(table.rows()) - 1
        for row in far:
            assert float(row[5]) == pytest.approx(0.985 * float(row[3]), rel=2e-3)
            assert float(row[6]) == pytest.approx(1.01 * float(row[3]), rel=2e-3)
        assert "90 % intervals" in root.one("section", "kernel").text
        assert report(plain).all("g", "band") == []

    def test_how_it_was_made(self) -> None:
        card = {
            **trained().card,
            "metadata": {"power_kind": None},
            "made_by": {"command": "mlscale train t.csv", "versions": {"torch": "2"}},
        }
        root = report(replace(trained("wu"), card=card))
        made_by = root.one("section", "end")
        assert made_by.texts("pre") == ["mlscale train t.csv", SOURCE.command]
        assert "torch 2" in made_by.text
        assert "of a kind not said, taken for board power" in made_by.text
        assert "None" not in made_by.text
        assert "12 kernels of 12 applications" in made_by.text
        assert report().texts("pre") == ["not kept in the model file", SOURCE.command]


class TestGrids:
    @pytest.mark.parametrize(
        ("grid", "charts"),
        [
            (ConfigGrid((8,), (400.0, 800.0), (500.0, 700.0)), 2),
            (ConfigGrid((4, 8), (800.0,), (700.0,)), 1),
            (ConfigGrid((1,), (800.0,), (700.0,)), 0),
        ],
    )
    def test_axes_of_one_step(self, grid: ConfigGrid, charts: int) -> None:
        name = "nearest" if grid.size > 1 else "no-scaling"  # of one configuration it learns
        model = train(made.measurements(grid=grid), grid.mid, name)
        root = report(model, new_profiles(grid=grid))
        nodes = section(root, "Along each axis through the base")
        assert sum(len(n.all("figure")) for n in nodes) == charts
        assert ("Not varied" in text_of(nodes)) == (charts > 0)
        maps = root.all("table", "map")
        assert len(maps) == 3 * len(grid.cu_count)
        shown = [cell for table in maps for cell in map_cells(table)]
        assert len(shown) == 3 * grid.size
        assert sum("base" in cell.kinds for cell in shown) == 3


def test_of_many_cu_counts_those_of_base_and_best_are_not_folded() -> None:
    grid = ConfigGrid((1, 2, 3, 4, 5, 6), (400.0, 800.0), (700.0,))
    model = train(made.measurements(grid=grid), grid.mid, "nearest")
    root = report(model, new_profiles(grid=grid))  # compute0: best at 6 CUs, 800 MHz
    assert len(root.all("table", "map")) == 3 * 6
    folded = [f.one("figcaption").text for d in root.all("details") for f in d.all("figure")]
    assert folded[:4] == ["1 compute unit", *(f"{cu} compute units" for cu in (2, 3, 5))]
    for quantity in ("Time", "Energy"):
        text = root.one("section", "kernel").text
        assert f"{quantity} at 4 further CU counts" in text
    assert "Best: " in text
    assert "of the base, at 6 compute units, 800 / 700 MHz." in text


class TestHostileText:
    """Whoever wrote the profile or the model writes nothing but text into the page."""

    HOSTILE = "</title><script>alert(1)</script>\"onload='x' \u202e\x00 --> ]]>"

    def test_is_inert_wherever_a_name_can_stand(self) -> None:
        text, shown = self.HOSTILE, visible(self.HOSTILE)
        measured = made.measurements(grid=SMALL)
        kernels = tuple(f"{text}{k}" for k in range(len(measured.kernels)))
        names = (f"{text}!", *measured.counter_names[1:])
        hostile = replace(measured, kernels=kernels, counter_names=names, device=text)
        card: dict[str, Any] = {
            **trained("nearest").card,
            "kernels": list(kernels),
            "metadata": {"origin": text, "source": text, "counter_tool": text, "power_kind": text},
            "made_by": {"command": text, "versions": {text: text}},
        }
        model = replace(train(hostile, SMALL.mid, "nearest", features="raw"), card=card)
        plain = new_profiles(grid=SMALL)
        profiles = replace(
            plain,
            device=text,
            kernels=(text, *(f"{text}{text}{k}" for k in range(3))),
            applications=(text,) * 4,
            counter_names=(*names, text),
            counters=np.column_stack([plain.counters, np.ones(4)]),
            metadata={"counter_tool": text, "origin": text},
        )
        root = report(model, profiles, (0, 1), Source(text, text, text, text))
        assert {node.tag for node in root.nodes()} - {""} <= ELEMENTS
        assert {name for node in root.nodes() for name in node.attributes} <= ATTRIBUTES
        assert harmless_styles(root)
        assert all(a.attributes["href"].startswith("#") for a in root.all("a"))
        assert root.one("head").one("title").text == f"mlscale report: 4 kernels on {shown}"
        first = root.all("section", "kernel")[0]
        assert first.one("h2").text == shown
        assert first.all("dd")[0].text == first.all("dd")[1].text == shown
        *_, counters = section(first, "Counters")
        assert counters.rows()[0][0] == f"{shown}!"
        assert root.texts("pre") == [shown, shown]
