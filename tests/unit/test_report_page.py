"""The report as a page: its parts, known truth in them, and nothing but text from outside."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import made
import numpy as np
import pytest
from html_page import Node, parse
from hypothesis import given, settings
from hypothesis import strategies as st
from tidy import refused

from mlscale import ConfigGrid, Model, Profiles, Surfaces, train
from mlscale.predictors import Predictor
from mlscale.report.page.document import Source, page
from mlscale.report.page.markup import visible

MID = made.GRID.mid  # cu=8, engine=800, memory=700
SMALL = ConfigGrid((8,), (400.0, 800.0), (500.0, 700.0))
SOURCE = Source("model.mlscale", "profile.csv", "mlscale report model.mlscale profile.csv")
ELEMENTS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "nav", "section"),
    *("h1", "h2", "h3", "h4", "p", "a", "ul", "li", "dl", "dt", "dd", "div", "span", "pre"),
    *("table", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "details", "summary"),
    *("svg", "g", "rect", "text", "line", "circle", "polyline", "polygon"),
}
ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "id", "class", "href", "rel", "scope"),
    *("role", "aria-label", "viewbox", "width", "height", "x", "y", "rx", "cx", "cy", "r"),
    *("x1", "y1", "x2", "y2", "points", "fill", "stroke", "stroke-width", "stroke-dasharray"),
    *("text-anchor", "transform"),
}


@cache
def trained(name: str = "nearest", power: bool = True) -> Model:
    """Of kernels that scale by known laws; the nearest kernel is of the same law, exactly."""
    return train(made.measurements(power=power), MID, name, neighbours=1, clusters=4)


def new_profiles(power: bool = True, grid: ConfigGrid = made.GRID) -> Profiles:
    """A kernel of each law that the model has not seen: compute0, bandwidth0, …"""
    found = made.measurements(per_group=1, grid=grid, power=power, seed=1).profiles(grid.mid)
    return replace(found, kernels=tuple(f"new {name}" for name in found.kernels))


def report(
    model: Model | None = None,
    profiles: Profiles | None = None,
    kernels: Sequence[int] = (0,),
    source: Source = SOURCE,
) -> Node:
    return parse(page(model or trained(), profiles or new_profiles(), kernels, source))


def cells(root: Node, quantity: str) -> dict[tuple[float, float, float], tuple[str, list[str]]]:
    """What the heat maps of a quantity show: by configuration the number and the marks.

    That cells stand at their clocks is tested with the pictures; here their order is enough.
    """
    found = {}
    for figure in root.all("figure"):
        title = figure.one("svg").all("title")[0].text
        if title.startswith(f"{quantity} ["):
            cu = float(figure.one("figcaption").text.split()[0])
            place = [(e, m) for m in made.GRID.memory_mhz[::-1] for e in made.GRID.engine_mhz]
            for (engine, memory), cell in zip(place, figure.all("g", "cell"), strict=True):
                marks = [kind for kind in cell.kinds if kind != "cell"]
                found[cu, engine, memory] = (cell.texts("text")[0], marks)
    return found


def marked(root: Node, quantity: str, mark: str) -> list[tuple[float, float, float]]:
    """The configurations with that mark."""
    return [config for config, (_, marks) in cells(root, quantity).items() if mark in marks]


def section(root: Node, heading: str) -> list[Node]:
    """What stands between a heading of a kernel's section and the next one."""
    (kernel,) = root.all("section", "kernel")
    children = [child for child in kernel.content if isinstance(child, Node)]
    start = next(i for i, c in enumerate(children) if c.tag == "h3" and c.text == heading)
    rest = children[start + 1 :]
    end = next((i for i, c in enumerate(rest) if c.tag in ("h3", "details")), len(rest))
    return rest[:end]


def text_of(nodes: Sequence[Node]) -> str:
    return " ".join(node.text for node in nodes)


class TestStructure:
    def test_every_kernel_has_a_section_that_the_contents_link_to(self) -> None:
        root = report(kernels=(0, 1, 2, 3))
        headings = [s.one("h2").text for s in root.all("section", "kernel")]
        names = [f"new {law}0" for law in made.LAWS]
        assert headings == names
        links = root.one("nav").all("a")
        assert [link.text for link in links] == names
        targets = [link.attributes["href"] for link in links]
        assert targets == [f"#{s.attributes['id']}" for s in root.all("section", "kernel")]

    def test_kernels_that_are_not_shown_are_named(self) -> None:
        root = report(kernels=(1, 3))
        assert [s.one("h2").text for s in root.all("section", "kernel")] == [
            "new bandwidth0",
            "new contended0",
        ]
        text = root.one("header").text
        assert "2 of the profile's 4 kernels are shown" in text
        assert "Not shown: new compute0, new latency0." in text

    def test_headings_and_ids_are_in_order(self) -> None:
        root = report(kernels=(0, 1))
        levels = [int(n.tag[1]) for n in root.nodes() if n.tag in ("h1", "h2", "h3", "h4")]
        assert levels.count(1) == 1
        assert all(b - a <= 1 for a, b in itertools.pairwise(levels))
        ids = [n.attributes["id"] for n in root.nodes() if "id" in n.attributes]
        assert len(set(ids)) == len(ids)

    def test_nothing_runs_and_nothing_is_loaded(self) -> None:
        text = page(trained("wu"), new_profiles(), (0, 1, 2, 3), SOURCE)
        root = parse(text)
        assert {node.tag for node in root.nodes()} - {""} <= ELEMENTS
        assert {name for node in root.nodes() for name in node.attributes} <= ATTRIBUTES
        policy = root.all("meta")[1].attributes
        assert policy["http-equiv"] == "Content-Security-Policy"
        assert policy["content"].startswith("default-src 'none'; style-src 'unsafe-inline'")
        assert "url(" not in root.one("style").text
        assert "@import" not in root.one("style").text
        links = [a.attributes["href"] for a in root.all("a")]
        assert all(
            link.startswith(("#", "https://doi.org/", "https://github.com/")) for link in links
        )

    def test_the_same_input_gives_the_same_bytes(self) -> None:
        first = page(trained("wu"), new_profiles(), (0, 1), SOURCE)
        assert page(trained("wu"), new_profiles(), (0, 1), SOURCE) == first

    def test_a_date_is_shown_only_if_it_is_given(self) -> None:
        assert "Date" not in report().texts("dt")
        assert "14 March" in report(source=replace(SOURCE, date="14 March")).one("header").text


class TestKnownTruth:
    """Laws of tests/made.py; the nearest training kernel follows the same law exactly."""

    # Fastest: compute and bandwidth by hand, ties go to the lowest clock (advice.best_index).
    FASTEST = (
        (16, 1000, 400),  # compute: CU^-1 engine^-1, any memory clock
        (4, 400, 1000),  # bandwidth: memory^-1 alone
        (4, 1000, 1000),  # latency: engine^-0.8 memory^-0.1, any CU count
        (4, 1000, 1000),  # contended: CU^0.3 engine^-0.5 memory^-0.2
    )

    @pytest.mark.parametrize("k", range(4))
    def test_base_and_best_are_marked_where_they_are(self, k: int) -> None:
        root = report(kernels=(k,))
        for quantity in ("Time", "Power", "Energy"):
            assert marked(root, quantity, "base") == [(8, 800, 700)]
        assert len(cells(root, "Time")) == 36
        assert marked(root, "Power", "best") != marked(root, "Time", "best")
        best = marked(root, "Time", "best")
        # Power is 100 W x time^-0.5, so of equal times power is equal too: the first of the grid.
        assert best == [self.FASTEST[k]]

    def test_every_cell_has_the_time_of_the_law(self) -> None:
        profiles = new_profiles()
        shown = cells(report(kernels=(2,)), "Time")
        base = profiles.time_ms[2]
        for (cu, engine, memory), (number, _) in shown.items():
            del cu
            law = (engine / 800) ** -0.8 * (memory / 700) ** -0.1
            assert float(number) == pytest.approx(base * law, rel=6e-3)  # three digits

    def test_savings_are_those_of_the_law(self) -> None:
        """Power ~ time^-0.5, so energy ~ time^0.5, EDP ~ time^1.5, ED2P ~ time^2.5."""
        (wrapper,) = [
            n for n in section(report(kernels=(0,)), "Best configurations") if n.tag == "div"
        ]
        fastest = (8 * 800) / (16 * 1000)
        expected = [1 - fastest**power for power in (1, 0.5, 1.5, 2.5)]
        slowest = (8 * 800) / (4 * 400)
        expected.append(1 - slowest**-0.5)  # lowest power
        savings = [float(row[2].removesuffix(" %")) / 100 for row in wrapper.rows()]
        assert savings == pytest.approx(expected, abs=6e-4)
        assert wrapper.rows()[0][1] == "16 compute units, 1000 / 400 MHz"

    def test_the_front_of_a_kernel_that_only_gains_by_speed_is_its_fastest(self) -> None:
        """Energy ~ time^0.5: the fastest configurations, all equal over memory, are the front."""
        nodes = section(report(kernels=(0,)), "Time against energy")
        assert "3 of 36 configurations are on the front" in text_of(nodes)
        (wrapper,) = [d for n in nodes for d in n.all("div", "scroll")]
        assert {row[0] for row in wrapper.rows()} == {
            f"16 compute units, 1000 / {memory} MHz" for memory in (400, 700, 1000)
        }

    def test_the_table_has_every_configuration(self) -> None:
        rows = report().one("details").one("table").rows()
        assert len(rows) == 36
        base = next(row for row in rows if row[:3] == ["8", "800", "700"])
        time = float(new_profiles().time_ms[0])
        assert float(base[3]) == pytest.approx(time, rel=1e-3)
        assert base[4] == "\N{MULTIPLICATION SIGN}1.00"

    def test_the_head_has_the_range_of_each_quantity(self) -> None:
        text = report(kernels=(1,)).one("section", "kernel").all("dl")[0].text
        time = float(new_profiles().time_ms[1])
        # bandwidth: from 700/1000 to 700/400 of the base.
        assert f"predicted {time * 0.7:.4g}"[:15] in text
        for unit in ("ms", "W", "mJ"):
            assert f" {unit} at the base; predicted " in text


class TestEvidence:
    def test_features_stand_beside_their_training_range(self) -> None:
        odd = new_profiles()
        counters = odd.counters.copy()
        counters[0, 0] = 7.0
        root = report(profiles=replace(odd, counters=counters))
        rows = section(root, "Counters against the training range")[1].rows()
        assert [row[0] for row in rows] == [f"busy_{law}" for law in made.LAWS]
        training = made.measurements().profiles(MID).counters[:, 0]
        assert rows[0][2:5] == ["7", f"{training.min():.4g}", f"{training.max():.4g}"]
        over = 100 * (7 - training.max()) / (training.max() - training.min())
        assert rows[0][5] == f"above the range by {over:.3g} % of it"
        assert rows[0][1].endswith("above the training range")
        flags = text_of(section(root, "What is extrapolated"))
        assert "busy_compute 7 above trained" in flags

    def test_a_feature_may_be_missing_and_is_named(self) -> None:
        lacking = made.measurements()
        counters = lacking.counter_samples.copy()
        counters[:, 0, ..., 3] = np.nan
        model = train(replace(lacking, counter_samples=counters), MID, "nearest")
        profiles = new_profiles()
        profiles.counters[0, 3] = np.nan
        nodes = section(report(model, profiles), "Counters against the training range")
        assert nodes[1].rows()[3][2] == "missing"
        assert "Missing: busy_contended." in text_of(nodes)

    def test_what_the_profiler_gives_otherwise_is_said(self) -> None:
        told = replace(new_profiles(), metadata={"feature_status": {"busy_compute": "nearest"}})
        rows = section(report(profiles=told), "Counters against the training range")[1].rows()
        assert rows[0][5].endswith("nearest by the profiler")
        assert rows[1][5] == ""

    def test_counters_that_are_not_used_are_named(self) -> None:
        plain = new_profiles()
        profiles = replace(
            plain,
            counter_names=(*plain.counter_names, "spare", "empty"),
            counters=np.column_stack([plain.counters, np.ones(4), np.full(4, np.nan)]),
        )
        model = train(made.measurements(), MID, "nearest", features="raw")
        text = text_of(section(report(model, profiles), "Counters against the training range"))
        assert "not used as they are: spare." in text

    def test_nearest_training_kernels_are_of_the_same_law(self) -> None:
        for name in ("nearest", "wu"):
            nodes = section(
                report(trained(name), kernels=(3,)), "Nearest training kernels and clusters"
            )
            rows = next(n for n in nodes if n.tag == "div").rows()
            assert len(rows) == 5
            assert {row[0] for row in rows[:3]} == {"contended0", "contended1", "contended2"}
            assert [float(row[1]) for row in rows] == sorted(float(row[1]) for row in rows)
            assert float(rows[2][1]) < 0.3 < float(rows[3][1])  # others differ by 1 in two features

    def test_clusters_of_wu_hold_the_kernels_of_the_same_law(self) -> None:
        nodes = section(
            report(trained("wu"), kernels=(0,)), "Nearest training kernels and clusters"
        )
        tables = [n.rows() for n in nodes if n.tag == "div"][1:]
        assert len(tables) == 2  # time and power
        for table in tables:
            assert [row[0] for row in table] == [
                *(f"clocks at {cu} compute units" for cu in (4, 8, 16)),
                "compute units at the base's clocks",
            ]
            for row in table[:-1]:
                assert row[2] == "compute0, compute1, compute2"

    def test_a_kernel_of_the_training_set_is_told(self) -> None:
        own = made.measurements().profiles(MID)
        root = report(profiles=own)
        assert "among the model's training kernels" in root.one("header").text
        assert "among the model's training kernels" not in report().one("header").text

    def test_a_predictor_without_features_says_so(self) -> None:
        root = report(trained("core-bound"))
        assert "looks at no counters" in text_of(
            section(root, "Counters against the training range")
        )
        assert "Flags: none" in text_of(section(root, "What is extrapolated"))


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

    def test_measured_data_have_no_label(self) -> None:
        model = replace(trained(), card={**trained().card, "metadata": {"origin": "measured"}})
        assert report(model).texts("p", "banner") == []

    @pytest.mark.parametrize("lacks", ["model", "profile"])
    def test_without_power_the_sections_say_so(self, lacks: str) -> None:
        root = report(trained(power=lacks == "profile"), new_profiles(power=lacks == "model"))
        why = (
            "the model was trained without power"
            if lacks == "model"
            else "the profile has no power_w"
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

    def test_dynamic_power_makes_no_energy_without_static_power(self) -> None:
        model = replace(trained(), card={**trained().card, "metadata": {"power_kind": "dynamic"}})
        root = report(model)
        assert cells(root, "Energy") == {}
        assert len(cells(root, "Power")) == 36
        text = text_of(section(root, "Time against energy"))
        assert text.startswith("Energy is not predicted: power_w is dynamic power;")
        rows = section(root, "Best configurations")[1].rows()
        assert [row[0] for row in rows] == ["shortest time", "lowest power"]

    def test_static_power_is_added_to_dynamic_power(self) -> None:
        """By hand: power and energy at the base with and without 50 W."""
        model = replace(trained(), card={**trained().card, "metadata": {"power_kind": "dynamic"}})
        root = report(model, source=replace(SOURCE, static_power_w=50.0))
        profiles = new_profiles()
        power = float(profiles.quantity("power")[0]) + 50
        assert float(cells(root, "Power")[8, 800, 700][0]) == pytest.approx(power, rel=6e-3)
        energy = power * float(profiles.time_ms[0])
        assert float(cells(root, "Energy")[8, 800, 700][0]) == pytest.approx(energy, rel=6e-3)
        assert "50 W of static power were added" in root.one("header").text

    def test_static_power_without_dynamic_power_is_refused(self) -> None:
        static = replace(SOURCE, static_power_w=50.0)
        with refused("static power is of no use: the model was trained without power"):
            page(trained(power=False), new_profiles(), (0,), static)
        board = replace(trained(), card={**trained().card, "metadata": {"power_kind": "board"}})
        with refused("power_w is board power"):
            page(board, new_profiles(), (0,), static)

    def test_intervals_are_shown_where_the_predictor_gives_them(self) -> None:
        class WithIntervals(type(trained("core-bound").predictors["time"])):  # type: ignore[misc]
            def predict_interval(
                self, profiles: Profiles, coverage: float = 0.9, grid: ConfigGrid | None = None
            ) -> Surfaces:
                assert (coverage, grid) == (0.9, None)
                found = self.predict(profiles)
                return replace(found, low=found.values * 0.8, high=found.values * 1.25)

        plain = trained("core-bound")
        predictor: Predictor = WithIntervals().fit(made.measurements(), MID)
        root = report(replace(plain, predictors={**plain.predictors, "time": predictor}))
        assert len(root.all("polygon", "band")) == 3
        table = root.all("details")[-1].one("table")
        assert table.texts("th")[5:7] == ["low ms", "high ms"]
        for row in table.rows():
            assert float(row[5]) == pytest.approx(0.8 * float(row[3]), rel=2e-3)
            assert float(row[6]) == pytest.approx(1.25 * float(row[3]), rel=2e-3)
        assert "90 % intervals" in root.one("section", "kernel").text
        assert report(plain).all("polygon", "band") == []

    def test_predictions_that_are_not_finite_are_refused(self) -> None:
        huge = replace(new_profiles(), time_ms=np.full(4, 1e308))
        with refused("kernel 'new compute0': its predictions are not finite"):
            page(trained("core-bound"), huge, (0,), SOURCE)

    def test_how_it_was_made(self) -> None:
        card = {
            **trained().card,
            "metadata": {"power_kind": None},
            "made_by": {"command": "mlscale train t.csv", "versions": {"torch": "2"}},
        }
        root = report(replace(trained("wu"), card=card))
        made_by = root.one("section", "end")
        assert made_by.texts("pre") == ["mlscale train t.csv -o MODEL", SOURCE.command]
        assert "torch 2" in made_by.text
        assert "of a kind not said, taken for board power" in made_by.text
        assert "None" not in made_by.text
        assert "12 kernels of 12 applications" in made_by.text
        assert "GPGPU Performance and Power Estimation Using Machine Learning" in made_by.text
        assert report().texts("pre") == ["not kept in the model file", SOURCE.command]


class TestGrids:
    @pytest.mark.parametrize(
        ("grid", "charts"),
        [
            (ConfigGrid((8,), (400.0, 800.0), (500.0, 700.0)), 2),
            (ConfigGrid((4, 8), (800.0,), (500.0, 700.0)), 2),
            (ConfigGrid((4, 8), (400.0, 800.0), (700.0,)), 2),
            (ConfigGrid((4, 8), (800.0,), (700.0,)), 1),
            (ConfigGrid((1,), (800.0,), (700.0,)), 0),
        ],
    )
    def test_axes_of_one_step(self, grid: ConfigGrid, charts: int) -> None:
        model = train(made.measurements(grid=grid), grid.mid, "nearest")
        root = report(model, new_profiles(grid=grid))
        nodes = section(root, "Along each axis through the base")
        assert sum(len(n.all("figure")) for n in nodes) == charts
        assert ("Not varied" in text_of(nodes)) == (charts > 0)
        maps = [f for f in root.all("figure") if f.all("g", "cell")]
        assert len(maps) == 3 * len(grid.cu_count)
        assert sum(len(f.all("g", "cell")) for f in maps) == 3 * grid.size
        assert sum("base" in g.kinds for f in maps for g in f.all("g", "cell")) == 3


def test_of_many_cu_counts_those_of_base_and_best_are_not_folded() -> None:
    grid = ConfigGrid((1, 2, 3, 4, 5, 6), (400.0, 800.0), (700.0,))
    model = train(made.measurements(grid=grid), grid.mid, "nearest")
    root = report(model, new_profiles(grid=grid))  # compute0: best at 6 CUs, 800 MHz
    maps = [figure for figure in root.all("figure") if figure.all("g", "cell")]
    assert len(maps) == 3 * 6
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

    def everywhere(self, text: str) -> tuple[Model, Profiles, Source]:
        """A model and a profile in which every name is the text."""
        plain = trained("nearest")
        measured = made.measurements(grid=SMALL)
        kernels = tuple(f"{text}{k}" for k in range(len(measured.kernels)))
        counter = f"{text}!"
        names = (counter, *measured.counter_names[1:])
        hostile = replace(measured, kernels=kernels, counter_names=names, device=text)
        card: dict[str, Any] = {
            **plain.card,
            "kernels": list(kernels),
            "metadata": {"origin": text, "source": text, "counter_tool": text, "power_kind": text},
            "made_by": {"command": text, "versions": {text: text}},
        }
        model = replace(train(hostile, SMALL.mid, "nearest", features="raw"), card=card)
        plain_profiles = new_profiles(grid=SMALL)
        profiles = replace(
            plain_profiles,
            device=text,
            kernels=(text, *(f"{text}{text}{k}" for k in range(3))),
            applications=(text,) * 4,
            counter_names=(*names, text),
            counters=np.column_stack([plain_profiles.counters, np.ones(4)]),
            metadata={"feature_status": {counter: text}, "counter_tool": text, "origin": text},
        )
        return model, profiles, Source(text, text, text, text)

    def check(self, text: str) -> Node:
        model, profiles, source = self.everywhere(text)
        root = report(model, profiles, (0, 1), source)
        assert {node.tag for node in root.nodes()} - {""} <= ELEMENTS
        assert {name for node in root.nodes() for name in node.attributes} <= ATTRIBUTES
        links = [a.attributes["href"] for a in root.all("a")]
        assert all(link.startswith("#") for link in links)
        return root

    def test_is_inert_wherever_a_name_can_stand(self) -> None:
        root = self.check(self.HOSTILE)
        shown = visible(self.HOSTILE)
        assert root.one("head").one("title").text == f"mlscale report: 2 kernels on {shown}"
        first = root.all("section", "kernel")[0]
        assert first.one("h2").text == shown
        assert first.all("dd")[:2][0].text == first.all("dd")[1].text == shown
        labels = [svg.attributes["aria-label"] for svg in first.all("svg")]
        assert f"{shown}!: above the training range" in labels
        assert root.texts("pre") == [f"{shown} -o MODEL", shown]

    @settings(deadline=None, max_examples=40)
    @given(st.text(st.characters(), min_size=1, max_size=30).filter(str.strip))
    def test_any_text_is_inert_and_comes_back(self, text: str) -> None:
        root = self.check(text)
        first = root.all("section", "kernel")[0]
        assert first.all("dd")[0].text == first.all("dd")[1].text == visible(text)
        assert visible(text) in root.one("nav").texts("a")

    def test_a_name_of_thousands_of_characters_is_shortened_but_once_whole(self) -> None:
        long = "void gemm<" + "float, " * 600 + ">"
        profiles = replace(new_profiles(), kernels=(long, "b", "c", "d"))
        root = report(profiles=profiles)
        assert len(root.one("section", "kernel").one("h2").text) == 90
        assert root.one("section", "kernel").all("dd")[0].text == long
