"""The run on the page: every kernel once, shares of the whole, and the numbers of the advice."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from html_page import Node
from predictor_calls import counted
from report_pages import MID, SOURCE, report
from synthetic import frugal

from mlscale import Model, Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.answer import RunGoal
from mlscale.advice.caps import advise_caps
from mlscale.advice.document import document
from mlscale.advice.verdict import answer_lines
from mlscale.predictors.baselines import Nearest
from mlscale.report.kernel_report import MOST_KERNELS, largest_kernels
from mlscale.report.markup import range_in_words
from mlscale.report.page import page

LAUNCHES = np.array([1.0, 30.0, 2.5])


class Unsure(frugal.Unsure, Nearest):
    name = "unsure"


@cache
def model() -> Model:
    return train(frugal.measurements(), MID, "nearest")


def application(count: int = 3) -> Profiles:
    """So many kernels of the laws of synthetic.frugal, with launches, and times that differ."""
    one = frugal.measurements(per_group=1).profiles(MID)
    made = one.select([k % len(one.kernels) for k in range(count)])
    return replace(
        made,
        kernels=tuple(f"kernel {k}" for k in range(count)),
        time_ms=made.time_ms * (1 + np.arange(count)),
        launches=np.resize(LAUNCHES, count),
    )


def the_run(
    profiles: Profiles, kernels: tuple[int, ...] = (0, 1, 2), **source: object
) -> tuple[Node, Node]:
    root = report(model(), profiles, kernels, replace(SOURCE, **source))  # type: ignore[arg-type]
    return root, root.one("section", "run")


def below(run: Node, heading: str) -> Node:
    """The block or list with that heading."""
    return next(
        node for node in run.nodes() if node.kinds[:1] == ["block"] and heading in node.texts("h3")
    )


def column(table: Node, header: str) -> list[str]:
    place = [h.text for h in table.all("th")].index(header)
    return [row[place] for row in table.rows()]


def foot(table: Node) -> dict[str, list[str]]:
    """The sums below a table by what they are of."""
    rows = [row.texts("td") for row in table.one("tfoot").all("tr")]
    filled = [[cell for cell in row if cell] for row in rows]
    return {label: values for label, *values in filled}


@cache
def run_of_25() -> tuple[Profiles, Node]:
    """The section of a run of 25 kernels, of which the three largest are shown in full."""
    profiles = application(25)
    return profiles, the_run(profiles, tuple(largest_kernels(profiles)[:3]))[1]


@cache
def run_of_three() -> tuple[Node, Node]:
    return the_run(application())


class TestEveryKernel:
    def test_stands_once_and_shares_are_of_the_whole(self) -> None:
        profiles, run = run_of_25()
        shown, others = below(run, "Kernels"), below(run, "The other 22 kernels")
        names = [*column(shown, "kernel"), *column(others, "kernel")]
        assert sorted(names) == sorted(profiles.kernels)
        cells = [s for t in (shown, others) for s in column(t, "% of time")]
        shares = [float(s.replace("<0.1", "0.0")) for s in cells]
        assert sum(shares) == pytest.approx(100, abs=0.05 * 25)
        busy = profiles.launches * profiles.time_ms
        by_name = dict(zip(profiles.kernels, 100 * busy / busy.sum(), strict=True))
        assert shares == pytest.approx([by_name[name] for name in names], abs=0.051)
        assert shares[:3] == sorted(shares, reverse=True)[:3]

    def test_sums_are_those_of_the_launches(self) -> None:
        """By hand: nine times 1, eight times 30 and eight times 2.5 launches."""
        _, run = run_of_25()
        sums = foot(below(run, "Kernels"))
        assert sums["whole run"] == ["269", "100.0"]
        parts = [sums["these 3"], sums["the other 22, below"]]
        assert sum(float(launches) for launches, _ in parts) == 269
        assert foot(below(run, "The other 22 kernels"))["sum"] == parts[1]

    def test_the_largest_are_shown_in_full(self) -> None:
        profiles = replace(application(25), launches=np.ones(25), time_ms=np.arange(25) + 1.0)
        assert largest_kernels(profiles) == list(range(24, 24 - MOST_KERNELS, -1))
        rare = np.where(np.arange(25) == 0, 1000.0, 1.0)
        assert largest_kernels(replace(profiles, launches=rare))[0] == 0

    def test_without_launches_each_runs_once(self) -> None:
        _, run = the_run(replace(application(), launches=None))
        assert "3 kernels, each run once" in run.text
        assert "launches" not in below(run, "Kernels").texts("th")

    def test_kernels_without_counters_are_called_so(self) -> None:
        plain = application()
        counters = plain.counters.copy()
        counters[1] = np.nan
        wholly = train(frugal.measurements(), MID, "core-bound")
        root = report(wholly, replace(plain, counters=counters), (0, 1, 2))
        run = root.one("section", "run")
        assert column(below(run, "Kernels"), "bound")[1] == "no counters"
        assert "1 of 3 kernels have no counters" in run.text
        kernel = root.all("section", "kernel")[1]
        assert "has no counters of this kernel, only its time" in kernel.text

    def test_a_kernel_that_waits_for_other_gpus_is_not_called_like_the_others(self) -> None:
        plain = application()
        names = (plain.kernels[0], "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", plain.kernels[2])
        _, run = the_run(replace(plain, kernels=names))
        assert column(below(run, "Kernels"), "bound")[1] == "other GPUs"
        assert "its time is taken to stay at every clock" in run.text


class TestNumbers:
    def test_costs_are_those_of_the_advice(self) -> None:
        profiles = application()
        advice = advise(model(), profiles)
        root, run = the_run(profiles)
        first, *_ = answer_lines(document(advice, ""))
        assert root.one("header").one("p", "verdict").text.startswith(first)
        costs = {row[0]: row[1:] for row in run.all("div", "block")[0].one("table").rows()}
        best, base = advice.whole_run.best, advice.whole_run.base
        for row, of_base, of_best in (
            ("engine MHz", base.config.engine_mhz, best.config.engine_mhz),
            ("time ms", base.time_ms, best.time_ms),
            ("power W", base.power_w, best.power_w),
            ("energy mJ", base.energy_mj, best.energy_mj),
        ):
            shown = [float(cell.replace(" ", "")) for cell in costs[row][:2]]
            assert shown == pytest.approx([of_base, of_best], rel=5e-4), row
        assert costs["time ms"][2] == f"{advice.whole_run.best.slowdown_percent:+.1f} %"
        assert costs["energy mJ"][2] == f"{-advice.whole_run.best.saving_percent:+.1f} %"

    def test_a_long_run_is_in_the_units_of_its_base_with_the_intervals_of_the_advice(self) -> None:
        profiles = replace(application(), time_ms=1e4 * application().time_ms)
        unsure = frugal.model_of(Unsure)
        whole = advise(unsure, profiles).whole_run
        run = report(unsure, profiles, (0, 1, 2)).one("section", "run")
        costs = {row[0]: row[1:] for row in run.all("div", "block")[0].one("table").rows()}
        for row, scale, cost in (("time s", 1e3, "time_ms"), ("energy kJ", 1e6, "energy_mj")):
            shown = [float(cell.replace(" ", "")) for cell in costs[row][:2]]
            expected = [getattr(at, cost) / scale for at in (whole.base, whole.best)]
            assert shown == pytest.approx(expected, rel=5e-4), row
        assert whole.best.slowdown_range is not None
        assert whole.best.saving_range is not None
        least, most = whole.best.saving_range  # what is saved is a negative change
        assert costs["time s"][3] == range_in_words(whole.best.slowdown_range)
        assert costs["energy kJ"][3] == range_in_words((-most, -least))

    def test_the_front_is_that_of_the_advice(self) -> None:
        advice = advise(model(), application())
        _, run = run_of_three()
        rows = below(run, "Time against energy of the run").one("table").rows()
        assert len(rows) == len(advice.whole_run.front)
        [best] = [row for row in rows if "(best)" in row[0]]
        slowdown = float(best[2].removesuffix(" %"))
        assert slowdown == pytest.approx(advice.whole_run.best.slowdown_percent, abs=0.06)
        changes = [float(row[4].removesuffix(" %")) for row in rows]
        assert min(changes) == pytest.approx(-advice.whole_run.best.saving_percent, abs=0.06)

    def test_without_energy_there_is_no_front(self) -> None:
        _, run = the_run(replace(application(), power_w=None))
        assert "Energy is not known, so there is no Pareto front." in run.text
        assert "lowest engine clock, under a slowdown of at most 5 %" in run.text


class TestPowerCaps:
    def test_are_shown_if_they_are_asked_for(self) -> None:
        _, run = run_of_three()
        assert "Power caps" not in run.texts("h3")
        _, run = the_run(application(), goal=RunGoal(caps_w=(30.0, 80.0, 150.0)))
        table = below(run, "Power caps").one("table")
        assert column(table, "cap W") == ["30", "80", "150"]
        assert "below the clocks tried" in column(table, "note")[0]

    def test_numbers_and_intervals_are_those_of_the_advice(self) -> None:
        """Of a long run, in seconds and kilojoules; what is saved is a negative change."""
        unsure = frugal.model_of(Unsure)
        profiles = replace(application(), time_ms=1e4 * application().time_ms)
        source = replace(SOURCE, goal=RunGoal(caps_w=(60.0,)))
        run = report(unsure, profiles, (0,), source).one("section", "run")
        [row] = below(run, "Power caps").one("table").rows()
        [point] = advise_caps(unsure, profiles, [60.0]).points
        capped = point.run
        assert capped is not None
        assert capped.slowdown_range is not None
        assert capped.saving_range is not None
        numbers = [float(row[place].replace(" ", "")) for place in (2, 6)]
        expected = [capped.time_ms / 1e3, capped.energy_mj / 1e6]
        assert numbers == pytest.approx(expected, rel=5e-4)
        least, most = capped.saving_range
        assert row[4] == range_in_words(capped.slowdown_range)
        assert row[8] == range_in_words((-most, -least))

    def test_as_the_lever_they_are_what_the_verdict_is_about(self) -> None:
        """At 60 W energy is saved; at 80 W and 500 W none is, so that there is nothing to set."""
        for cap_w, words in (
            (60.0, "Set the power cap to 60 W"),
            (80.0, "Nothing to set: the power cap stays as it is."),
            (500.0, "Nothing to set: the power cap stays as it is."),
        ):
            asked = {"goal": RunGoal(lever="cap", caps_w=(cap_w,)), "has_commands": True}
            root, run = the_run(application(), **asked)
            caps = advise_caps(model(), application(), [cap_w])
            said = root.one("header").one("p", "verdict").text
            found = document(advise(model(), application()), "", caps, "cap")
            assert said == " ".join(answer_lines(found))
            assert words in said + below(run, "Commands").text
            assert "The clocks; mlscale runs none" not in run.text


@pytest.mark.parametrize("caps", [None, (80.0, 150.0)])
def test_nothing_is_predicted_twice(
    caps: tuple[float, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(monkeypatch, type(model().predictors["time"]))
    page(model(), application(), (0, 1), replace(SOURCE, goal=RunGoal(caps_w=caps)))
    assert [quantity for _, quantity, _ in calls] == ["time", "power"]
