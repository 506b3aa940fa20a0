"""mlscale advise: the answer on a terminal, its notes, CSV, and the schema of its JSON.

The files are those that ship and those of docs/logs; what they give is said by other tests. The
shares and slowdowns of made kernels are by hand, from the laws of synthetic.frugal.
"""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from command import Cli
from synthetic import frugal
from synthetic import kernels as made

import mlscale
from mlscale import Profiles, train
from mlscale.advice.advise import advise
from mlscale.advice.answer import answer_by
from mlscale.advice.objectives import Limits
from mlscale.cli.advise_text import Layout, text
from mlscale.text import short_names

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "mlscale/advice/schema.json").read_text(encoding="utf-8"))
STEP = (
    "training-step-ncu.csv training-step-trace.json.gz --power training-step-power.csv "
    "--base engine=1410,memory=1593"
)
LOG, LOGS = "LOGS/training-1755.csv", "LOGS/training-1755.csv --also LOGS/training-1170.csv"
ASKED = [
    "h100-by-hand.csv --max-slowdown 5",
    "h100-by-hand.csv --power 500",
    f"{STEP} --max-slowdown 5",
    f"{STEP} --lever cap --max-slowdown 5",
    f"{STEP} --lever cap",
    f"{LOG} --max-slowdown 5",
    LOGS,
    f"{LOGS} --power-cap --max-slowdown 10",
    "simulated-gcn3-profile.csv --model simulated-gcn3 --minimize time",
    "CAPS/fast.csv --also CAPS/slow.csv --lever cap",
]
MID = made.GRID.mid  # cu=8, engine=800, memory=700
MODEL = train(frugal.measurements(), MID, "nearest")


@pytest.fixture
def words(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """The words of a command; two readings under caps are made."""
    for name, row in (("fast", "10,300,300"), ("slow", "12.5,200,200")):
        header = "time_ms,power_w,power_cap_w\n"
        (tmp_path / f"{name}.csv").write_text(f"{header}{row}\n", encoding="utf-8")
    asked = request.param.replace("LOGS", str(ROOT / "docs/logs"))
    return ["advise", *shlex.split(asked.replace("CAPS", str(tmp_path)))]


@pytest.mark.parametrize("words", ASKED, indirect=True)
@pytest.mark.parametrize("columns", [80, 100])
def test_it_fits_a_terminal_with_or_without_colours(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, words: list[str], columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    out, err = cli.both(*words)
    lines = out.splitlines()
    assert len(lines) <= 25
    assert max(map(len, lines)) <= columns
    assert re.match("  (Set|Stay at|Leave) ", lines[0])
    assert sum(line.startswith("  How sure: ") for line in lines) == 1
    assert not re.search(r"mlscale: |flag", out)
    assert err.count("mlscale: warning ") == err.count("mlscale: ") <= 2
    assert max(map(len, err.splitlines()), default=0) <= columns
    coloured = cli(*words, "--color", "always")
    assert coloured.startswith("  \x1b[1;32m")
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == out
    assert cli(*words, "--color", "never") == out


def choices(found: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """The choices of a document by what CSV has in its columns 'number' and 'at'."""
    run = {name: found[name] for name in ("answer", "expected") if found[name]}
    for offer in found["menu"] or []:
        most = offer["max_slowdown_percent"]
        run["menu least" if most is None else f"menu {most:g} %"] = offer
    named = {("", at): choice for at, choice in run.items()}
    for kernel in found["kernels"]:
        for at, key in (("answer", "at_answer"), ("best", "best")):
            named |= {(str(kernel["number"]), at): kernel[key]} if kernel[key] else {}
    return named


CHANGES = {"slowdown_percent": "time_ms", "energy_percent": "energy_mj", "power_percent": "power_w"}


@pytest.mark.parametrize("words", ASKED, indirect=True)
def test_the_document_is_as_its_schema_says(cli: Cli, words: list[str]) -> None:
    """And each change of the run, with its ends, is what the values at its base say, by hand."""
    out, err = cli.both(*words, "--json", "--commands")
    found = json.loads(out)
    jsonschema.validate(found, SCHEMA)
    assert err == ""
    for (kernel, _), choice in choices(found).items():
        for change, name in CHANGES.items() if not kernel else ():
            if choice[change] and choice[name]:
                by_hand = [end and 100 * (end / found["run"][name] - 1) for end in choice[name]]
                assert choice[change] == pytest.approx(by_hand, abs=1e-6), (change, choice)


@pytest.mark.parametrize("words", ASKED, indirect=True)
def test_csv_has_the_values_and_ends_of_the_document(cli: Cli, words: list[str]) -> None:
    """JSON has [value, low, high], CSV NAME, NAME_low and NAME_high; none is beyond its ends."""
    expected = choices(cli.json(*words))
    found = {(row["number"], row["at"]): row for row in cli.csv(*words) if row["at"] != "cap"}
    assert found.keys() == expected.keys()
    has_ends = False
    for key, row in found.items():
        for name in (column.removesuffix("_low") for column in row if column.endswith("_low")):
            cells = [row[name], row[f"{name}_low"], row[f"{name}_high"]]
            assert [float(cell) if cell else None for cell in cells] == (
                expected[key][name] or [None] * 3
            )
            value, low, high = (float(cell or "nan") for cell in cells)
            assert not low > value, key
            assert not value > high, key
            has_ends |= low < high
    assert has_ends


def test_the_schema_refuses_what_is_no_answer() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": 2}, SCHEMA)


class TestNotes:
    def test_are_spelled_out_on_stderr_where_asked_for(self, cli: Cli) -> None:
        """Else their codes alone are in the answer."""
        out, few = cli.both("advise", "h100-by-hand.csv")
        again, every = cli.both("advise", "h100-by-hand.csv", "--notes")
        assert again == out
        found = cli.json("advise", "h100-by-hand.csv")
        assert all(note["text"] in every for note in found["notes"])
        assert few == ""
        assert {note["severity"] for note in found["notes"]} == {"note"}


class TestRequired:
    @pytest.mark.parametrize(("least", "status"), [("low", 0), ("medium", 0), ("high", 3)])
    def test_an_answer_less_sure_has_a_status_of_its_own(
        self, cli: Cli, least: str, status: int
    ) -> None:
        """A profile of a GPU that no model learnt from."""
        out, err = cli.ended(status, "advise", "h100-by-hand.csv", "--require", f"sure={least}")
        assert "How sure: medium." in out
        said = "mlscale: error: --require sure=high is not met: the answer is medium\n"
        assert err.endswith(said) == (status == 3)

    def test_two_readings_are_surer_than_one(self, cli: Cli) -> None:
        fast, slow = (ROOT / "docs/logs" / f"training-{mhz}.csv" for mhz in (1755, 1170))
        for more, sure in (((), "low"), (("--also", slow), "high")):
            assert cli.json("advise", fast, *more)["sure"] == sure


class TestMenu:
    def test_least_energy_without_a_limit_of_time(self, cli: Cli) -> None:
        """The answer is that of 5 %; each entry is what is best under its own limit."""
        fast, slow = (ROOT / "docs/logs" / f"training-{mhz}.csv" for mhz in (1755, 1170))
        asked = ["advise", fast, "--also", slow]
        found = cli.json(*asked)
        assert [offer["max_slowdown_percent"] for offer in found["menu"]] == [2, 5, 10, None]
        energies = [offer["energy_mj"][0] for offer in found["menu"]]
        assert energies == sorted(energies, reverse=True)
        for offer in found["menu"][:3]:
            most = offer.pop("max_slowdown_percent")
            limited = cli.json(*asked, "--max-slowdown", most)
            assert limited["menu"] is None
            assert limited["answer"] == offer
            assert (found["answer"] == offer) == (most == 5)

    def test_a_limit_of_power_may_need_more_time(self, cli: Cli) -> None:
        """350 W are drawn from 1230 MHz down, some 20 % slower."""
        fast, slow = (ROOT / "docs/logs" / f"training-{mhz}.csv" for mhz in (1755, 1170))
        asked = ["advise", fast, "--also", slow, "--max-power", 350]
        found = cli.json(*asked)
        assert found["limits"]["max_slowdown_percent"] is None
        assert [offer["max_slowdown_percent"] for offer in found["menu"]] == [None]


def kernels(count: int) -> Profiles:
    """Compute kernels of 2 ms at the base and as many launches as their number, from 1."""
    profiles = frugal.measurements(per_group=count).profiles(MID).select(range(count))
    launches = np.arange(1.0, count + 1)
    return replace(profiles, time_ms=np.full(count, 2.0), power_w=None, launches=launches)


def table(profiles: Profiles, percent: float, layout: Layout | None = None) -> list[str]:
    """The lines of an answer, of the lowest clock that keeps so many percent."""
    advice = advise(MODEL, profiles, "clock", Limits(max_slowdown_percent=percent))
    return text(answer_by(advice, "made"), layout or Layout()).splitlines()


class TestKernels:
    def test_those_of_most_time_and_the_others_in_a_line(self) -> None:
        """Of 20 kernels of 1, 2, ..., 20 launches the first 12 have 78/210 of the time.

        All need 33 % more time at 600 MHz, and 600 MHz is the lowest that keeps 40 %.
        """
        lines = [line.split() for line in table(kernels(20), 40)]
        rows = lines[2:]
        assert rows[0] == ["kernel", "share", "at", "600", "MHz"]
        assert rows[1] == ["1", "compute19", "9.5", "%", "+33.3", "%"]
        assert [row[1] for row in rows[1:9]] == [f"compute{k}" for k in range(19, 11, -1)]
        assert rows[9] == ["12", "others", "37.1", "%", "+33.3", "%"]
        assert rows[10] == ["whole", "run,", "420", "ms", "100", "%", "+33.3", "%"]

    def test_others_weigh_by_their_time(self) -> None:
        """At 600 MHz three launches get slower by 33.3 %, three that memory bounds by nothing."""
        profiles = frugal.measurements(per_group=11).profiles(MID).select(range(12))
        launches = np.array([100.0] * 8 + [1.0] * 3 + [3.0])
        profiles = replace(profiles, time_ms=np.full(12, 2.0), power_w=None, launches=launches)
        [others] = [line.split() for line in table(profiles, 40) if "others" in line]
        assert others == ["4", "others", "0.7", "%", "+16.7", "%"]

    def test_all_of_them_if_asked(self) -> None:
        lines = table(kernels(20), 40, Layout(shows_all=True))
        assert sum("compute" in line for line in lines) == 20

    def test_one_other_has_its_own_line(self) -> None:
        lines = table(kernels(9), 40)
        assert sum("compute" in line for line in lines) == 9
        assert not any("others" in line for line in lines)

    def test_a_launch_of_a_kernel_is_told_once(self) -> None:
        lines = table(replace(kernels(1), launches=None), 40)
        assert not any("compute" in line for line in lines)
        assert any("whole run, 2.00 ms" in line for line in lines)

    def test_what_is_slower_than_the_limit_is_yellow(self) -> None:
        """400 MHz doubles the compute kernel's 2 ms, not the other's 8 ms: 20 % of the run."""
        profiles = frugal.measurements(per_group=1).profiles(MID)
        profiles = replace(profiles, time_ms=np.array([2.0, 8.0]))
        lines = table(profiles, 20, Layout(has_colours=True))
        yellow = [line for line in lines if line.startswith("  \x1b[33m")]
        assert len(yellow) == 1
        assert re.search(r"compute0 .*\+100.0 %\x1b\[0m$", yellow[0])

    def test_one_by_its_number_or_a_part_of_its_name(self, cli: Cli) -> None:
        asked = ["advise", "h100-by-hand.csv", "--kernel"]
        by_number = cli(*asked, 2)
        assert by_number == cli(*asked, "tria")
        first, share, at_answer, best, *_ = by_number.splitlines()
        assert first.startswith("  2  triad(float *, ")
        assert share == "  40.4 % of the run's time, 1 launch"
        assert at_answer.startswith("  At 1920 MHz: 0.0 % slower (time ")
        assert best.startswith("  Its best, ")


def test_commands_stand_whole_at_the_end(cli: Cli) -> None:
    log = ROOT / "docs/logs/training-1755.csv"
    out = cli("advise", log, "--max-slowdown", 5, "--commands")
    assert "\n  To set it:\n    nvidia-smi -i 0 -lgc 1680,1680\n" in out
    assert "\n  To reset it:\n    nvidia-smi -i 0 -rgc\n" in out
    assert out.rpartition("For a surer answer:\n")[2].startswith("    nvidia-smi -i 0 -lgc 1050")
    assert "    # these commands need root" in out


def test_names_are_told_apart() -> None:
    """What ships of the step's kernels is as long as 150 characters; 32 are enough for each."""
    trace = mlscale.import_profile(ROOT / "datasets/training-step-trace.json.gz",
                                   base={"engine_mhz": 1410, "memory_mhz": 1593})  # fmt: skip
    for longest in (24, 32):
        short = short_names(trace.kernels, longest)
        assert len(set(short.values())) == len(trace.kernels) == len(short)
        assert max(map(len, short.values())) <= longest
