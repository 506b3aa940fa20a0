"""The page in a real browser: it moves, by pointer and keys, on a phone, in the dark, and is safe.

Needs Playwright's package and Debian's Chromium; frames are timed with a bound far above what is
seen (a few ms), as machines differ.
"""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_pages import new_profiles, shown, trained
from synthetic import llm_server

import mlscale
from mlscale.cli.main import main
from mlscale.data.datasets import path
from mlscale.pages.page import headline
from mlscale.pages.page import page as page_text
from mlscale.readers.source import Source

pytestmark = pytest.mark.slow
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

CHROMIUM = os.environ.get("CHROMIUM", "") or shutil.which("chromium")
A100 = {"engine_mhz": 1410, "memory_mhz": 1593}
STEP = path("training-step-ncu.csv"), path("training-step-trace.json.gz")
POWER: dict[str, Any] = {"base": A100, "power": path("training-step-power.csv")}
LOGS = Path(__file__).parents[2] / "docs" / "logs"
MOST_MS = 200  # for a frame
VIOLATIONS = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
  (event) => violations.push(event.violatedDirective));
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def step_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the training step, with power."""
    answer = mlscale.advise(*STEP, **POWER)
    file = tmp_path_factory.mktemp("step") / "page.html"
    answer.save(file)
    return file


class Opened:
    """A page in a tab, which must ask for nothing, violate nothing and say nothing."""

    def __init__(self, browser: Any, file: Path, **look: Any) -> None:
        look = {"viewport": {"width": 1400, "height": 1000}, **look}
        self.context = browser.new_context(**look)
        self.tab = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda message: self.said.append(message.text))
        self.tab.on("pageerror", lambda error: self.said.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.add_init_script(VIOLATIONS)
        self.tab.goto(file.as_uri())
        self.tab.wait_for_selector("#page .card")

    def close(self) -> None:
        assert self.said == []
        assert self.tab.evaluate("violations") == []
        assert [url for url in self.asked if not url.startswith(("file:", "blob:"))] == []
        assert len(self.asked) == 1
        self.context.close()

    def frame(self) -> None:
        self.tab.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def change_address(self, words: str, then: str = "") -> None:
        """As a follower of a link does; `then` runs before the page hears of it."""
        self.tab.evaluate(
            f"""new Promise((heard) => {{
              addEventListener("hashchange", heard, {{ once: true }});
              location.hash = "{words}";
              {then}
            }})"""
        )
        self.frame()

    def slide(self, name: str, value: float) -> None:
        self.tab.locator(f"#slider-{name}").evaluate(
            "(one, value) => { one.value = value; one.dispatchEvent(new Event('input')); }", value
        )
        self.frame()

    def big(self, quantity: str) -> str:
        return str(self.tab.inner_text(f'[data-quantity="{quantity}"] b'))

    def change(self, quantity: str) -> str:
        return str(self.tab.inner_text(f'[data-quantity="{quantity}"] span'))

    @property
    def command(self) -> str:
        return str(self.tab.inner_text("code"))

    @property
    def hash(self) -> dict[str, str]:
        self.tab.evaluate(
            """new Promise((written) => {
              const look = () => (hashTimer === null ? written() : setTimeout(look, 10));
              look();
            })"""
        )
        words = self.tab.evaluate("location.hash").removeprefix("#").split("&")
        return dict(word.split("=") for word in words)


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    tabs: list[Opened] = []

    def open_page(file: Path, **look: Any) -> Opened:
        tabs.append(Opened(browser, file, **look))
        return tabs[-1]

    yield open_page
    for tab in tabs:
        tab.close()


class TestMoving:
    def test_begins_at_the_answer_with_its_numbers(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page)
        assert tab.tab.inner_text("h1") == "Set 1380 MHz: 1.4 % slower, 3.8 % less energy"
        assert [tab.change(q) for q in ("time", "energy")] == ["+1.4 %", "\u22123.8 %"]
        assert tab.big("time") == "71.72 ms"
        assert tab.command == "nvidia-smi -i 0 -lgc 1380,1380"
        assert tab.hash == {"e": "1380", "max": "5"}

    def test_slider_moves_numbers_command_table_and_address(
        self, opened: Any, step_page: Path
    ) -> None:
        tab = opened(step_page, viewport={"width": 1400, "height": 2600})
        first = tab.tab.inner_text("tbody tr:first-child")
        tab.slide("e", 0)
        assert tab.hash["e"] == "645"
        assert tab.command == "nvidia-smi -i 0 -lgc 645,645"
        assert tab.change("time").startswith("+7")
        assert tab.tab.inner_text("tbody tr:first-child") != first
        assert tab.tab.locator("td.over").count() > 20
        tab.tab.click("text=base >> nth=0")
        tab.frame()
        assert tab.change("time") == "the base"
        assert tab.command == "# nothing to set: this is the base"

    def test_limit_goes_to_the_best_within_it(self, opened: Any, step_page: Path) -> None:
        """The menu of the answer: 2, 5, 10 % and any."""
        tab = opened(step_page)
        menu = shown_menu(step_page)
        for percent, value in ((2, 2), (10, 10), (None, 60.5)):
            tab.slide("max", value)
            assert float(tab.hash["e"]) == menu[percent]
        assert tab.hash["max"] == "any"
        tab.tab.click("text=advised")
        tab.frame()
        assert (tab.hash["e"], tab.hash["max"]) == ("1380", "5")
        tab.tab.click("text=expected >> nth=1")
        tab.frame()
        assert tab.hash["e"] == "1320"

    def test_headline_follows_the_limit_as_the_command_has_it(
        self, opened: Any, step_page: Path
    ) -> None:
        tab = opened(step_page)
        for percent in (2, 13, 0):
            tab.slide("max", percent)
            answer = mlscale.advise(*STEP, max_slowdown=percent, **POWER)
            assert tab.tab.inner_text("h1") == headline(answer.content)
            assert tab.hash["e"] == f"{answer.best.engine_mhz:g}"
        tab.tab.click("text=advised")
        tab.frame()
        assert tab.tab.inner_text("h1") == "Set 1380 MHz: 1.4 % slower, 3.8 % less energy"

    def test_of_caps_the_limit_moves_the_cap(self, opened: Any, tmp_path: Path) -> None:
        """By hand: a cap of 700 W takes 1000 ms, one of 500 W 1100; 0 % leaves it as it is."""
        rows = "h100-sxm5,700,1000,600\nh100-sxm5,500,1100,490\n"
        (tmp_path / "caps.csv").write_text(f"device,power_cap_w,time_ms,power_w\n{rows}")
        words = ["report", str(tmp_path / "caps.csv"), "--lever", "cap"]
        assert main([*words, "-o", str(tmp_path / "page.html")]) == 0
        tab = opened(tmp_path / "page.html")
        tab.slide("max", 10)
        assert tab.tab.inner_text("h1").startswith("Set 500 W: 10 % slower")
        assert tab.tab.inner_text("tr.on").startswith("500 W")
        tab.slide("max", 0)
        assert tab.tab.inner_text("h1").startswith("Stay: ")
        assert tab.tab.locator("tr.on").count() == 0

    def test_knob_is_dragged_and_takes_keys(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page)
        box = tab.tab.locator(".curve svg").first.bounding_box()
        tab.tab.mouse.move(box["x"] + box["width"] - 20, box["y"] + 60)
        tab.tab.mouse.down()
        tab.tab.mouse.move(box["x"] + 60, box["y"] + 60, steps=5)
        tab.tab.mouse.up()
        tab.frame()
        assert float(tab.hash["e"]) < 700
        tab.tab.focus(".knob[role=slider]")
        for key, clock in (("End", "1410"), ("ArrowLeft", "1395"), ("Home", "645")):
            tab.tab.keyboard.press(key)
            tab.frame()
            assert tab.hash["e"] == clock
        assert "+" in tab.tab.get_attribute(".knob[role=slider]", "aria-valuetext")

    def test_front_is_clicked_and_walked(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page)
        tenth = tab.tab.locator(".pareto .dot").nth(10)
        tenth.scroll_into_view_if_needed()
        dot = tenth.bounding_box()
        x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
        tab.tab.mouse.move(x, y)
        told = tab.tab.inner_text("#tip")
        tab.tab.mouse.click(x, y)
        tab.frame()
        assert told.startswith(f"{tab.hash['e']} MHz")
        before = float(tab.hash["e"])
        tab.tab.focus(".pareto svg")
        tab.tab.keyboard.press("ArrowRight")
        tab.frame()
        assert float(tab.hash["e"]) < before

    def test_whole_page_turns_to_a_kernel(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page)
        tab.tab.focus(".disc[tabindex='0']")
        tab.tab.keyboard.press("ArrowRight")
        tab.tab.keyboard.press("Enter")
        tab.frame()
        kernel = int(tab.hash["k"])
        assert tab.tab.inner_text(".who strong").startswith(f"{kernel} ")
        assert tab.big("time").endswith("µs") or tab.big("time").endswith(" ms")
        assert tab.tab.locator("tr.on").count() == 1
        assert tab.tab.locator(".disc.on").count() == 1
        tab.tab.keyboard.press("Escape")
        tab.frame()
        assert "k" not in tab.hash
        tab.tab.locator("tbody .name").nth(2).click()
        tab.frame()
        assert tab.hash["k"] == "3"

    def test_table_filters_and_sorts(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page, viewport={"width": 1400, "height": 2600})
        tab.tab.fill("input[type=search]", "SOFTMAX")
        tab.frame()
        names = tab.tab.locator("tbody .name").all_inner_texts()
        assert 0 < len(names) < 28
        assert all("softmax" in name.lower() for name in names)
        assert tab.tab.inner_text(".kernels .soft >> nth=0") == f"{len(names)} of 28"
        tab.tab.fill("input[type=search]", "")
        tab.tab.click("text=time here")
        tab.frame()
        texts = tab.tab.locator("tbody tr td:nth-child(5)").all_inner_texts()
        changes = [float(text.rstrip(" %").replace("\u2212", "-")) for text in texts]
        assert changes == sorted(changes, reverse=True)

    def test_address_says_where_to_begin(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page)
        tab.change_address("e=1200&max=8&k=2", then="writeHash()")
        assert tab.hash == {"e": "1200", "max": "8", "k": "2"}
        assert tab.tab.inner_text("#slider-e >> xpath=..").split()[-2:] == ["1200", "MHz"]
        tab.change_address("e=nonsense&max=-3&k=99")
        assert (tab.hash["max"], "k" in tab.hash) == ("0", False)

    def test_limit_beyond_the_slider_is_kept(self, opened: Any, tmp_path: Path) -> None:
        file = tmp_path / "p.html"
        mlscale.advise(path("h100-by-hand.csv"), max_slowdown=75).save(file)
        tab = opened(file)
        assert tab.hash["max"] == "75"
        tab.change_address("max=75&m=1593")
        assert (tab.hash["max"], tab.hash["m"]) == ("75", "1593")

    def test_command_is_copied(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page, permissions=["clipboard-read", "clipboard-write"])
        tab.tab.evaluate("window.setTimeout = () => 0")  # by which the word would go again
        tab.tab.click("text=copy")
        tab.tab.wait_for_selector("text=copied")
        assert tab.tab.evaluate("navigator.clipboard.readText()") == tab.command


def shown_menu(file: Path) -> dict[float | None, float]:
    """The engine clock [MHz] under each limit of slowdown."""
    text = file.read_text(encoding="utf-8")
    document = json.loads(text.partition('id="data">')[2].partition("</script>")[0])["runs"][0]
    return {
        offer["max_slowdown_percent"]: offer["at"]["engine_mhz"]
        for offer in document["document"]["menu"]
    }


class TestLooks:
    @pytest.mark.parametrize("width", [390, 1400])
    def test_nothing_is_cut_off_and_labels_are_readable(
        self, opened: Any, step_page: Path, width: int
    ) -> None:
        tab = opened(step_page, viewport={"width": width, "height": 844})
        assert tab.tab.evaluate("document.documentElement.scrollWidth") == width
        sizes, outside = tab.tab.evaluate(
            """() => {
              const texts = [...document.querySelectorAll("svg text")];
              const scale = (one) => one.ownerSVGElement.getBoundingClientRect().width
                / one.ownerSVGElement.viewBox.baseVal.width;
              return [texts.map((one) => parseFloat(getComputedStyle(one).fontSize) * scale(one)),
                texts.filter((one) => {
                  const box = one.getBoundingClientRect();
                  return box.left < 0 || box.right > innerWidth;
                }).map((one) => one.textContent)];
            }"""
        )
        assert min(sizes) >= 12
        assert outside == []

    def test_dark_and_back(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page, color_scheme="dark")
        shade = "getComputedStyle(document.body).backgroundColor"
        dark = tab.tab.evaluate(shade)
        tab.tab.click("text=light / dark")
        light = tab.tab.evaluate(shade)
        assert [sum(map(int, c[4:-1].split(","))) > 380 for c in (dark, light)] == [False, True]

    def test_print_leaves_out_what_moves(self, opened: Any, step_page: Path) -> None:
        tab = opened(step_page)
        tab.tab.emulate_media(media="print")
        assert not tab.tab.is_visible("#slider-e")
        assert tab.tab.is_visible("h1")
        assert tab.tab.is_visible("tbody tr:last-child")

    def test_without_scripts(self, browser: Any, step_page: Path) -> None:
        context = browser.new_context(java_script_enabled=False)
        tab = context.new_page()
        tab.goto(step_page.as_uri())
        assert "Set 1380 MHz" in tab.inner_text("h1")
        assert "softmax_warp_backward" in tab.inner_text("#page")
        context.close()

    @pytest.mark.parametrize("lost", ["window.DecompressionStream", "CSS.supports"])
    def test_too_old_a_browser_shows_the_plain_table(
        self, browser: Any, step_page: Path, lost: str
    ) -> None:
        context = browser.new_context()
        tab = context.new_page()
        tab.add_init_script(f"{lost} = {'undefined' if 'Stream' in lost else '() => false'};")
        tab.goto(step_page.as_uri())
        tab.wait_for_function("!page.hidden")  # as it is while a page that moves is made
        assert "a browser from mid 2024 or later" in tab.inner_text("#page")
        assert "softmax_warp_backward" in tab.inner_text("#page")
        context.close()


class TestOtherRuns:
    def test_three_axes_have_sliders_heat_map_and_curve(self, opened: Any, tmp_path: Path) -> None:
        run = shown(trained(), new_profiles())
        (tmp_path / "p.html").write_text(page_text([run]), encoding="utf-8")
        tab = opened(tmp_path / "p.html")
        assert tab.tab.locator("input[type=range]").count() == 4
        assert tab.tab.locator(".heat .cell").count() == 12
        tab.tab.locator(".heat .cell").first.click()
        tab.frame()
        assert (tab.hash["e"], tab.hash["m"]) == ("400", "400")
        tab.tab.focus(".heat svg")
        tab.tab.keyboard.press("ArrowUp")
        tab.tab.keyboard.press("ArrowRight")
        tab.frame()
        assert (tab.hash["e"], tab.hash["m"]) == ("600", "700")
        assert "Time over CUs" in tab.tab.inner_text("#page")
        assert "not known" not in tab.big("energy")

    def test_what_is_not_known_is_not_zero(self, opened: Any, tmp_path: Path) -> None:
        mlscale.advise(path("h100-by-hand.csv")).save(tmp_path / "p.html")
        tab = opened(tmp_path / "p.html")
        assert tab.tab.locator("[data-quantity=energy]").count() == 0
        assert "Power and energy are not known." in tab.tab.inner_text(".said")
        energies = tab.tab.locator("tbody td:last-child").all_inner_texts()
        assert set(energies) == {"\u2013"}
        assert tab.tab.locator("button >> text=least energy").count() == 0

    def test_two_runs_and_predicted_against_measured(self, opened: Any, tmp_path: Path) -> None:
        from mlscale.cli.main import main

        file = tmp_path / "p.html"
        first, second = LOGS / "training-1755.csv", LOGS / "training-1170.csv"
        words = ["report", str(first), "--compare", str(path("h100-by-hand.csv"))]
        assert main([*words, "--measured", str(second), "-o", str(file)]) == 0
        tab = opened(file)
        assert "Measured at 1170 MHz: time 37 s, predicted 45 s" in tab.tab.inner_text(".said")
        assert tab.tab.locator(".measured").count() == 3
        tab.tab.click(".tabs >> text=h100-by-hand.csv")
        assert tab.tab.inner_text("header:not([hidden]) h1").startswith("Set 1920 MHz")
        tab.tab.focus(".tabs >> text=side by side")
        tab.tab.keyboard.press("Enter")
        assert tab.tab.evaluate("document.activeElement.textContent") == "side by side"
        assert "gemm_f16" in tab.tab.inner_text("#page")
        assert tab.hash["run"] == "both"
        tab.tab.set_viewport_size({"width": 390, "height": 844})
        tab.frame()
        assert tab.tab.evaluate("document.documentElement.scrollWidth") == 390

    def test_cap_and_clock_have_their_own_commands(self, opened: Any, tmp_path: Path) -> None:
        from mlscale.cli.main import main

        words = ["report", str(path("h100-by-hand.csv")), "--power", "500", "--lever", "cap"]
        assert main([*words, "-o", str(tmp_path / "p.html")]) == 0
        tab = opened(tmp_path / "p.html")
        tab.slide("e", 0)
        commands = tab.tab.locator("code").all_inner_texts()
        assert ["-pl" in commands[0], "-lgc" in commands[1]] == [True, True]

    def test_hostile_names_are_text(self, opened: Any, tmp_path: Path) -> None:
        evil = "</script><img src=x onerror=alert(1)><b>\u202egnp\u0007\u00ad"
        profiles = new_profiles()
        kernels = tuple(f"{evil}{k}" for k in range(len(profiles.kernels)))
        run = replace(shown(trained(), replace(profiles, kernels=kernels)), files=(Source(evil),))
        (tmp_path / "p.html").write_text(page_text([run, run]), encoding="utf-8")
        tab = opened(tmp_path / "p.html")
        tab.tab.locator("tbody .name").first.click()
        tab.frame()
        assert tab.tab.locator("img, b b, #page b:has(*)").count() == 0
        told = tab.tab.inner_text(".who")
        assert "<img src=x onerror=alert(1)><b>\\u202egnp\\u0007\\u00ad" in told
        everything = tab.tab.evaluate("document.body.innerText")
        assert "\u202e" not in everything
        assert "\u0007" not in everything
        assert "\u00ad" not in everything


def test_300_kernels_move_without_lag(opened: Any, tmp_path: Path) -> None:
    files = [path("training-step-ncu.csv"), path("training-step-trace.json.gz")]
    answer = mlscale.advise(*files, base=A100, power=path("training-step-power.csv"))
    step = answer.subject.profiles
    rows = [k % len(step.kernels) for k in range(300)]
    names = tuple(f"{step.kernels[row]} #{k}" for k, row in enumerate(rows))
    mlscale.advise(replace(step.select(rows), kernels=names)).save(tmp_path / "p.html")
    tab = opened(tmp_path / "p.html")
    assert tab.tab.locator("tbody tr").count() == 300
    times = tab.tab.evaluate(
        """async () => {
          const slider = document.getElementById("slider-e"), times = [];
          for (let k = 0; k < 50; k++) {
            slider.value = k;
            slider.dispatchEvent(new Event("input"));
            await new Promise((done) => requestAnimationFrame((begin) => {
              const channel = new MessageChannel();
              channel.port1.onmessage = () => { times.push(performance.now() - begin); done(); };
              channel.port2.postMessage(0);
            }));
          }
          return times.sort((a, b) => a - b);
        }"""
    )
    print(f"frame of 300 kernels: median {times[25]:.1f} ms, longest {times[-1]:.1f} ms")
    assert times[25] < MOST_MS


def test_a_servers_map_has_each_cell_and_its_interval(opened: Any, tmp_path: Path) -> None:
    """As many cells as have room, of two numbers of clients; what was run has no interval."""
    words = []
    for clients in (8, 16):
        folder = tmp_path / str(clients)
        folder.mkdir()
        for seed, mhz in enumerate((1980.0, 1320.0)):
            run = llm_server.serve(llm_server.Server(), mhz, np.inf, 100, clients, seed)
            words += ["--also", *map(str, llm_server.write(run, mhz, folder))]
    file = tmp_path / "page.html"
    assert main(["report", *words[1:], "-o", str(file)]) == 0
    for width, least in ((1400, 15), (390, 2)):
        tab = opened(file, viewport={"width": width, "height": 1000})
        rows = [tab.tab.locator("svg .cell").count() // 2, tab.tab.locator(".through").count() // 2]
        assert rows[0] == rows[1] >= least
        ends = tab.tab.locator(".through").all_text_contents()
        assert ends.count("run") == 4
        assert all(text.startswith("\u00b1") for text in ends if text != "run")
        tab.tab.locator("svg .cell").first.hover()
        assert "J/token" in tab.tab.inner_text("#tip")
        assert tab.tab.locator("tr.on").count() == 1
