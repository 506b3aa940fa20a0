"""mlscale report: the page it writes, the sample in docs/, and clean refusals."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import Cli, answer_of
from report_pages import runs_of, unpacked
from synthetic.two_logs import without

from mlscale.advice.document import place_row
from mlscale.pages.page import headline

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "docs" / "logs"
FAST, SLOW = LOGS / "training-1755.csv", LOGS / "training-1170.csv"
BY_HAND = ("h100-by-hand.csv", "--power", "500")
CAPPED = "device,power_cap_w,time_ms,power_w\n" + "".join(
    f"h100-sxm5,{cap},{ms},{watts}\n" for cap, ms, watts in ((700, 1000, 600), (500, 1100, 490))
)


def written(cli: Cli, *words: object) -> list[dict[str, Any]]:
    """The runs on the page of these words."""
    return runs_of(cli.page(*words))


@pytest.mark.parametrize(
    "words",
    [
        BY_HAND,
        (*BY_HAND, "--max-slowdown", 2, "--minimize", "edp"),
        (*BY_HAND, "--power-cap", "--lever", "cap"),
        ("h100-by-hand.csv",),
        ("simulated-gcn3.mlscale", "simulated-gcn3-profile.csv"),
    ],
    ids=["energy", "limit", "caps", "clock", "simulated"],
)
def test_embeds_what_advise_prints(cli: Cli, words: tuple[str, ...]) -> None:
    [run] = written(cli, *words)
    assert run["document"] == cli.json("advise", *words, "--commands")


def test_commands_of_the_page_are_those_of_the_answer(cli: Cli) -> None:
    [run] = written(cli, *BY_HAND)
    clock = f"{run['document']['answer']['set']['engine_mhz']:.0f}"
    lines = [line.replace("{engine}", clock) for line in run["commands"]["engine"]]
    assert lines == run["document"]["commands"]["set"]


def test_runs_under_caps_have_a_page_without_clocks(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "capped.csv").write_text(CAPPED, encoding="utf-8")
    [run] = written(cli, tmp_path / "capped.csv", "--lever", "cap")
    assert run["grid"] is None
    assert run["name"] == "capped.csv"
    assert run["document"]["caps"]


MEASURED = "device,cu_count,engine_mhz,memory_mhz,time_ms,power_w,kernel,application\n" + "".join(
    f"h100-sxm5,132,{mhz},2619,{ms},{watts},step,step\n"
    for mhz, ms, watts in ((1980, 1000, 640), (1500, 1090, 470), (1200, 1260, 380))
)


@pytest.mark.parametrize(
    "words",
    [
        (FAST, "--also", SLOW),
        BY_HAND,
        ("capped.csv", "--lever", "cap"),
        ("measured.csv", "--base", "engine=1980"),
        pytest.param((FAST, "--also", SLOW, "--lever", "cap"), marks=pytest.mark.slow),
    ],
    ids=["logs", "counters", "capped", "measured clocks", "cap of logs"],
)
@pytest.mark.usefixtures("in_an_empty_folder")
def test_the_page_answers_as_the_command_within_every_limit(
    cli: Cli, words: tuple[object, ...]
) -> None:
    """At every whole percent from 0 to 30, and without a limit as the menu says."""
    Path("capped.csv").write_text(CAPPED, encoding="utf-8")
    Path("measured.csv").write_text(MEASURED, encoding="utf-8")
    [run] = written(cli, *words)
    choices, places = run["within"]["choices"], run["within"]["places"]
    assert choices[places[0]]["headline"] == headline(answer_of(*words))
    seen = set()
    for percent in range(31):
        found = answer_of(*words, "--max-slowdown", percent)
        shown = choices[places[1 + 2 * percent]]  # the slider has a step each half percent
        assert shown["headline"] == headline(found), percent
        assert shown["at"] == (found.best and place_row(found.best)), percent
        assert shown["cap_w"] == (found.best and found.best.set.get("power_cap_w")), percent
        seen.add(shown["headline"])
    assert len(seen) > 5
    for offer in run["document"]["menu"] or ():
        most = offer["max_slowdown_percent"]
        place = len(places) - 1 if most is None else round(1 + 2 * most)
        assert choices[places[place]]["at"] == offer["at"]


def test_two_runs_are_two_documents(cli: Cli) -> None:
    runs = written(cli, *BY_HAND, "--compare", FAST)
    alone = [written(cli, *words)[0] for words in (BY_HAND, (FAST,))]
    assert [run["document"]["answer"] for run in runs] == [
        run["document"]["answer"] for run in alone
    ]
    assert [run["name"] for run in runs] == ["h100-by-hand.csv", "training-1755.csv"]


class TestMeasured:
    """The second log is of the same work at 1170 MHz: 37 s, and 339 W as its mean says."""

    def test_stands_beside_what_is_predicted_without_it(self, cli: Cli) -> None:
        plain = written(cli, FAST)[0]
        [run] = written(cli, FAST, "--measured", SLOW)
        assert run["document"]["answer"] == plain["document"]["answer"]
        [measured] = run["measured"]
        assert measured["at"]["engine_mhz"] == 1170
        assert measured["share_percent"] == 100
        assert measured["measured"]["time_ms"] == pytest.approx(37_000, rel=0.01)
        assert measured["measured"]["power_w"] == pytest.approx(339, abs=0.5)
        value, low, high = measured["predicted"]["time_ms"]
        # Bounds: as long as at 1755 MHz, and longer by the ratio of the clocks.
        assert (low, high) == pytest.approx((30_000, 30_000 * 1755 / 1170), rel=0.01)
        assert value == high

    def test_of_a_profile_a_log_tells_power_alone(self, cli: Cli) -> None:
        step = ("training-step-ncu.csv", "training-step-trace.json.gz", "--power", "300")
        log = ROOT / "datasets" / "training-step-power.csv"
        given = (*step, "--base", "engine=1410,memory=1593", "--measured", log)
        [measured] = written(cli, *given)[0]["measured"]
        assert measured["measured"]["time_ms"] is None
        assert measured["measured"]["power_w"] == pytest.approx(332.93, abs=0.01)
        assert measured["predicted"]["power_w"][0] == pytest.approx(300)

    def test_a_log_may_be_of_a_clock_that_it_does_not_tell(self, cli: Cli, tmp_path: Path) -> None:
        file = tmp_path / "unclocked.csv"
        file.write_text(SLOW.read_text(encoding="utf-8"), encoding="utf-8")
        without(file, 4)
        step = (ROOT / "datasets" / "h100-by-hand.csv", "--power", "300")
        for given in ((FAST,), step):
            [measured] = written(cli, *given, "--measured", f"{file}@engine=1170")[0]["measured"]
            assert measured["at"]["engine_mhz"] == 1170
            assert measured["measured"]["power_w"] == pytest.approx(339, abs=0.5)
            output = ("-o", tmp_path / "q.html")
            said = cli.refused("report", *given, "--measured", file, *output)
            assert said.endswith(f"at which engine clock it ran: give {file}@engine=…")

    def test_beyond_the_grid_nothing_is_predicted(self, cli: Cli, tmp_path: Path) -> None:
        table = "device,cu_count,engine_mhz,memory_mhz,kernel,time_ms\n"
        kernel = written(cli, FAST)[0]["document"]["kernels"][0]["kernel"]
        table += f"h100-sxm5,132,300,2619,{kernel},90000\n"
        (tmp_path / "low.csv").write_text(table, encoding="utf-8")
        [measured] = written(cli, FAST, "--measured", tmp_path / "low.csv")[0]["measured"]
        assert measured["measured"]["time_ms"] == 90_000
        assert measured["predicted"]["time_ms"] is None


class TestTheFile:
    def test_head_names_files_without_their_folders(self, cli: Cli) -> None:
        file = ROOT / "datasets" / "h100-by-hand.csv"
        [head] = re.findall("<header.*</header>", cli.page(file), re.DOTALL)
        assert "h100-by-hand.csv: engine_mhz 1980" in head
        assert str(ROOT) not in head

    def test_is_told_with_its_size(self, cli: Cli, tmp_path: Path) -> None:
        out = cli("report", *BY_HAND, "-o", tmp_path / "p.html")
        size = (tmp_path / "p.html").stat().st_size
        assert out == f"{tmp_path / 'p.html'}: 2 kernels, {size / 1000:.0f} kB\n"
        assert ": 1 run, " in cli("report", FAST, "-o", tmp_path / "log.html")
        assert "1 run, " in (tmp_path / "log.html").read_text("utf-8")

    def test_bad_input_leaves_the_old_page(self, cli: Cli, tmp_path: Path) -> None:
        (tmp_path / "p.html").write_text("old")
        (tmp_path / "bad.csv").write_text("kernel,time_ms\na,x\n")
        given = ["report", tmp_path / "bad.csv", "-o", tmp_path / "p.html"]
        assert "bad.csv: " in cli.refused(*given)


def test_the_sample_in_docs_is_as_the_command_makes_it_today(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same words, script and style; numbers may differ in a digit between machines."""
    monkeypatch.chdir(ROOT)
    step = [f"datasets/training-step-{name}" for name in ("ncu.csv", "trace.json.gz")]
    given = [*step, "--power", "datasets/training-step-power.csv"]
    cli("report", *given, "--base", "engine=1410,memory=1593", "-o", tmp_path / "p.html")
    texts = [
        file.read_text(encoding="utf-8")
        for file in (tmp_path / "p.html", ROOT / "docs" / "sample-report.html")
    ]
    for part in ("<head>.*</head>", "<header.*</header>", '<div id="page">.*</main>', "<script>.*"):
        words = [re.sub(r"[\d.]+", "#", *re.findall(part, text, re.DOTALL)) for text in texts]
        assert words[0] == words[1]
    today, sample = (runs_of(text)[0] for text in texts)
    assert [kernel["kernel"] for kernel in today["document"]["kernels"]] == [
        kernel["kernel"] for kernel in sample["document"]["kernels"]
    ]
    for one, other in zip(today["grid"]["kernels"], sample["grid"]["kernels"], strict=True):
        for end, sampled in zip(one["time"][1:], other["time"][1:], strict=True):
            np.testing.assert_allclose(unpacked(end), unpacked(sampled), rtol=1e-3)
