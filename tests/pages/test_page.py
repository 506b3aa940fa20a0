"""What the page carries: the answer's document, surfaces that agree with it, and nothing foreign.

Kernels are made, by the laws of `synthetic/kernels.py`: of a compute-bound one the time is
8/CUs x 800/engine clock of that at the base. The training step is the shipped sample.
"""

import base64
import hashlib
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from report_pages import new_profiles, on_grid, page_of, runs_of, shown, trained, unpacked
from synthetic import kernels as made

import mlscale
from mlscale import ConfigGrid, Limits
from mlscale.advice.caps import CapPoint
from mlscale.data.datasets import path
from mlscale.data.grid import AXES
from mlscale.pages import surfaces
from mlscale.pages.page import headline, page
from mlscale.readers.source import Source

A100 = {"engine_mhz": 1410, "memory_mhz": 1593}
LOG = Path(__file__).parents[2] / "docs" / "logs" / "training-1755.csv"
HOSTILE = "</script><img src=x onerror=alert(1)>\u2028\u202e\x07<!--"


def of_a_step(**known: object) -> mlscale.Answer:
    """The answer for the training step, with power."""
    step = [path("training-step-ncu.csv"), path("training-step-trace.json.gz")]
    return mlscale.advise(*step, base=A100, power=path("training-step-power.csv"), **known)


def saved(answer: mlscale.Answer, folder: Path) -> str:
    answer.save(folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


class TestSurfaces:
    @pytest.mark.parametrize(
        "factors", [[1.0, 0.5, 2.0], [1e-6, 132.0, 1.0], [1.0, np.nan, 0.9, np.nan, 0.8], [1.0]]
    )
    def test_come_back_in_four_digits(self, factors: list[float]) -> None:
        numbers = surfaces.packed(np.array(factors))
        np.testing.assert_allclose(unpacked(numbers), factors, rtol=5.001e-5)

    def test_what_is_no_positive_number_is_not_known(self) -> None:
        assert surfaces.packed(np.array([0.0, -1.0, np.inf, np.nan])) == [None] * 4

    def test_follow_the_law_of_each_kernel(self) -> None:
        [run] = runs_of(page_of(trained(), new_profiles()))
        names = [kernel["kernel"] for kernel in run["document"]["kernels"]]
        carried = run["grid"]["kernels"][names.index("compute0")]
        time, *_ = on_grid(run, carried, "time")
        cu, engine, _ = np.meshgrid(*(getattr(made.GRID, axis) for axis in AXES), indexing="ij")
        np.testing.assert_allclose(time / carried["time"][0], 8 / cu * 800 / engine, rtol=6e-5)

    @pytest.mark.parametrize("objective", [None, "edp", "power", "clock"])
    def test_agree_with_the_document(self, objective: str | None, tmp_path: Path) -> None:
        [run] = runs_of(saved(of_a_step(minimize=objective), tmp_path))
        document, axes = run["document"], run["grid"]["axes"]
        keys = {"c": "cu_count", "e": "engine_mhz", "m": "memory_mhz"}

        def compare(row: dict[str, Any], at: dict[str, float], costs: dict[str, Any]) -> None:
            place = tuple(axes[axis].index(at[key]) for axis, key in keys.items())
            for name, unit in (("time", "time_ms"), ("power", "power_w"), ("energy", "energy_mj")):
                said = [value for value in costs[unit] if value is not None]
                sides = [side[place] for side in on_grid(run, row, name)]
                assert sides == pytest.approx(said, rel=2e-4)

        answer = document["answer"]
        for choice in filter(None, [*document["front"], answer, document["expected"]]):
            compare(run["grid"]["run"], choice["at"], choice)
        for kernel, carried in zip(document["kernels"], run["grid"]["kernels"], strict=True):
            compare(carried, answer["at"], kernel["at_answer"])
            compare(carried, kernel["best"]["at"], kernel["best"])


class TestKinds:
    """What is not known is not there, and nothing is 0 in its place."""

    def test_without_power(self) -> None:
        [run] = runs_of(page_of(trained(power=False), new_profiles(power=False)))
        assert set(run["grid"]["run"]) == {"time"}
        assert all("energy" not in kernel for kernel in run["grid"]["kernels"])

    def test_bounds_of_one_reading(self, tmp_path: Path) -> None:
        text = saved(mlscale.advise(LOG), tmp_path)
        [run] = runs_of(text)
        assert run["document"]["run"]["is_bounded"]
        value, low, high = on_grid(run, run["grid"]["run"], "time")
        assert (low <= value).all()
        np.testing.assert_array_equal(value, high)
        assert "<summary>bounds</summary>" in text
        assert run["grid"]["kernels"][0]["bound"] == "not known"

    def test_one_setting_and_axes_of_one_step(self) -> None:
        grid = ConfigGrid((1,), (800.0,), (700.0,))
        [run] = runs_of(page_of(trained("no-scaling", grid=grid), new_profiles(grid=grid)))
        assert run["grid"]["state"] == "0"

    def test_settings_that_may_not_be_set_say_why(self, tmp_path: Path) -> None:
        [run] = runs_of(saved(mlscale.advise(path("h100-by-hand.csv"), power=500), tmp_path))
        steps = len(run["grid"]["axes"]["e"])
        assert run["grid"]["state"] == surfaces.KEEPS_MEMORY * steps + "0" * steps
        assert "memory clock" in run["grid"]["reasons"][surfaces.KEEPS_MEMORY]

    def test_filled_in_settings_are_not_shown_as_measured(self) -> None:
        model = trained()
        hole = [4, 400.0, 400.0]
        model = replace(model, card={**model.card, "unmeasured": [hole]})
        [run] = runs_of(page_of(model, new_profiles()))
        assert run["grid"]["state"] == surfaces.FILLED_IN + "0" * (made.GRID.size - 1)

    def test_of_too_many_values_the_small_kernels_have_no_surface(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(surfaces, "MOST_VALUES", 2 * made.GRID.size)
        [run] = runs_of(page_of(trained(), new_profiles()))
        assert ["time" in kernel for kernel in run["grid"]["kernels"]] == [True, True, False, False]
        assert len(run["document"]["kernels"]) == 4

    def test_too_large_a_grid_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(surfaces, "MOST_SETTINGS", 35)
        with pytest.raises(mlscale.InputError, match="a page shows at most 35 settings"):
            page_of(trained(), new_profiles())

    @pytest.mark.parametrize("origin", ["made", "simulated"])
    def test_made_and_simulated_data_are_labelled(self, origin: str) -> None:
        model = trained()
        model = replace(model, card={**model.card, "metadata": {"origin": origin}})
        assert f'<p class="banner">{origin.upper()} DATA' in page_of(model, new_profiles())

    def test_without_scripts_answer_and_kernels_are_there(self, tmp_path: Path) -> None:
        text = saved(of_a_step(), tmp_path)
        [plain] = re.findall('<div id="page">(.*)</div></main>', text)
        assert "Set the engine clock to 1380 MHz (now 1410)" in plain
        assert plain.count("<tr>") == 28 + 1


class TestHeadline:
    def test_has_twelve_words_at_most(self) -> None:
        answer = of_a_step().content
        assert headline(answer) == "Set 1380 MHz: 1.4 % slower, 3.8 % less energy"
        many = {"cu_count": 8, "engine_mhz": 1365, "memory_mhz": 1}
        said = headline(replace(answer, best=replace(answer.best, set=many)))
        assert said == "Set 8 CUs, 1365 MHz, memory 1 MHz: 1.4 % slower"
        assert len(said.split()) <= 12

    def test_of_nothing_to_set(self) -> None:
        answer = of_a_step().content
        stay = replace(answer, best=replace(answer.best, set={}))
        assert headline(stay) == "Stay: nothing better keeps the limits"
        assert headline(replace(stay, limits=Limits())) == "Stay: no setting needs less energy"
        product = replace(stay, limits=Limits(), objective="edp")
        assert headline(product) == "Stay: no setting has a lower EDP"

    def test_of_no_cap(self) -> None:
        answer = of_a_step().content
        for run, said in ((answer.base, "will do"), (None, "judged")):
            caps = SimpleNamespace(points=[CapPoint(300.0, run, 0, ())])
            assert headline(replace(answer, best=None, caps=caps)).endswith(said)


class TestTheFile:
    def test_embeds_the_document_and_is_the_same_twice(self, tmp_path: Path) -> None:
        answer = of_a_step()
        texts = [saved(answer, tmp_path), saved(of_a_step(), tmp_path)]
        assert texts[0] == texts[1]
        assert runs_of(texts[0])[0]["document"] == answer.document()

    def test_policy_names_the_hashes_of_script_and_style(self) -> None:
        text = page_of(trained(), new_profiles())
        [policy] = re.findall('http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        hashes = {}
        parts = {"script": ("state.js", "charts.js", "page.js"), "style": ("page.css",)}
        for kind, names in parts.items():
            folder = files("mlscale.pages")
            content = "".join(folder.joinpath(name).read_text("utf-8") for name in names)
            assert f"<{kind}>{content}</{kind}>" in text
            digest = hashlib.sha256(content.encode()).digest()
            hashes[kind] = f"'sha256-{base64.b64encode(digest).decode()}'"
        assert policy == (
            f"default-src 'none'; script-src {hashes['script']}; style-src {hashes['style']}; "
            "base-uri 'none'; form-action 'none'"
        )
        assert not re.search(r"\b(src|href|style|on\w+)=|https?:(?!//www\.w3\.org/2000/svg)", text)

    def test_names_from_elsewhere_are_text(self) -> None:
        profiles = new_profiles()
        kernels = tuple(f"{HOSTILE}{k}" for k in range(len(profiles.kernels)))
        run = replace(
            shown(trained(), replace(profiles, kernels=kernels)), files=(Source(HOSTILE),)
        )
        text = page([run])
        assert "<img" not in text
        assert "<!--" not in text
        assert text.count("</script>") == 2
        assert not re.search("[\u2028\u202e\x07]", text)
        assert "\\u2028\\u202e\\x07" in text  # in the head
        [carried] = runs_of(text)
        assert carried["name"] == Path(HOSTILE).name
        names = {kernel["kernel"] for kernel in carried["document"]["kernels"]}
        assert names == set(kernels)

    def test_is_small(self, tmp_path: Path) -> None:
        """100 unlike kernels of 30 letters at 60 settings, with intervals and energy.

        Made of a step, at 52 settings: their surfaces are counted as of 60.
        """
        profiles = of_a_step().subject.profiles
        rows = [k % len(profiles.kernels) for k in range(100)]
        names = tuple(f"gemm_{k:03d}_bf16_128x256_tn".ljust(30, "x") for k in range(100))
        many = replace(profiles.select(rows), kernels=names)
        draws = np.random.default_rng(0)
        times = many.time_ms * np.linspace(0.9, 1.1, 100)
        counters = many.counters * draws.uniform(0.7, 1.0, many.counters.shape)
        different = replace(many, time_ms=times, counters=counters)
        text = saved(mlscale.advise(different), tmp_path)
        [run] = runs_of(text)
        assert len(run["grid"]["kernels"]) == 100
        assert len(run["grid"]["kernels"][0]["energy"]) == 4
        steps = len(run["grid"]["state"])
        assert steps == 52
        grid = len(surfaces.deflated(run["grid"]))
        assert len(text.encode()) + grid * (60 / steps - 1) <= 250_000
