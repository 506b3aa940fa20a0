"""The report as a page: its parts, and in them the made kernels' laws."""

from dataclasses import replace

import numpy as np
import pytest
from html_page import parse
from report_pages import (
    ATTRIBUTES,
    ELEMENTS,
    MID,
    SOURCE,
    cells,
    harmless_styles,
    marked,
    new_profiles,
    report,
    section,
    text_of,
    trained,
)
from synthetic import kernels as made
from synthetic.tidy import refused

from mlscale import train
from mlscale.report.page import page


def test_a_grid_that_no_page_can_show_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    # Hand: the grid of the made kernels has 3 x 4 x 3 configurations.
    monkeypatch.setattr("mlscale.report.page.MOST_CONFIGURATIONS", 35)
    with refused("a report shows 35 configurations at most, the model's grid has 36"):
        page(trained(), new_profiles(), [0], SOURCE)


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

    def test_nothing_runs_and_nothing_is_loaded(self) -> None:
        text = page(trained("wu"), new_profiles(), (0, 1, 2, 3), SOURCE)
        root = parse(text)
        assert {node.tag for node in root.nodes()} - {""} <= ELEMENTS
        assert {name for node in root.nodes() for name in node.attributes} <= ATTRIBUTES
        assert harmless_styles(root)
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


class TestKnownTruth:
    """Laws of tests/synthetic/kernels.py; the nearest training kernel follows the same law."""

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
        rows = report().all("details")[-1].one("table").rows()
        assert len(rows) == 36
        base = next(row for row in rows if row[:3] == ["8", "800", "700"])
        time = float(new_profiles().time_ms[0])
        assert float(base[3]) == pytest.approx(time, rel=1e-3)
        assert base[4] == "\N{MULTIPLICATION SIGN}1.00"

    def test_a_long_kernel_has_seconds_and_joules(self) -> None:
        """30 s at the base: energy [J] is 30 times the watts; the law's fastest takes 12 s."""
        profiles = replace(new_profiles(), time_ms=np.full(4, 3e4))
        kernel = report(profiles=profiles).one("section", "kernel")
        power_w = float(profiles.quantity("power")[0])
        assert "30.00 s at the base; predicted 12.00 to 120.0 s" in kernel.all("dl")[0].text
        assert f"{30 * power_w:.4g} J at the base" in kernel.all("dl")[0].text
        assert kernel.texts("h4")[:3] == ["Time [s]", "Power [W]", "Energy [J]"]
        assert {"time [s]", "energy [J]"} <= set(kernel.texts("text"))


class TestEvidence:
    def test_counters_that_are_not_used_are_named(self) -> None:
        plain = new_profiles()
        profiles = replace(
            plain,
            counter_names=(*plain.counter_names, "spare", "empty"),
            counters=np.column_stack([plain.counters, np.ones(4), np.full(4, np.nan)]),
        )
        model = train(made.measurements(), MID, "nearest", features="raw")
        *_, counters = section(report(model, profiles), "Counters")
        looked_at = {row[0]: row[3] for row in counters.rows()}
        assert looked_at == {**dict.fromkeys(plain.counter_names, "yes"), "spare": "not as it is"}

    def test_a_kernel_of_the_training_set_is_told(self) -> None:
        known = made.measurements().profiles(MID)
        root = report(profiles=known)
        assert "among the model's training kernels" in root.one("header").text
        assert "among the model's training kernels" not in report().one("header").text
