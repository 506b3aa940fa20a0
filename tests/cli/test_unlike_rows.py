"""Several rows of one kernel at one configuration: parts of a run, and repetitions.

What rows are to count as is written by hand as one row, which must get the same answer.
"""

from pathlib import Path
from typing import Any

import pytest
from command import Cli, note_texts
from synthetic.tidy import rows, write_csv

AT = {"device": "a100-sxm4-80gb", "application": "app", "cu_count": 108, "memory_mhz": 1593}
Row = dict[str, Any]
ADDED = "rows of one kernel are added up as parts of one run"


def a100(path: Path, mhz: int, *given: Row) -> Path:
    """A table of a kernel's rows on an A100."""
    return write_csv(path, [{"kernel": "k", **AT, "engine_mhz": mhz, **row} for row in given])


def part(time_ms: float, launches: float, **others: float) -> Row:
    return {"time_ms": time_ms, "launches": launches, **others}


def document(cli: Cli, command: str, *arguments: object) -> tuple[Any, list[str]]:
    """The JSON of a command, without its warnings, which come apart."""
    found = cli.json(command, *arguments)
    texts = note_texts(found)
    return {k: v for k, v in found.items() if k != "notes"}, texts


def assert_alike(one: Any, other: Any) -> None:
    """Two documents are the same to rounding."""
    assert type(one) is type(other)
    if isinstance(one, dict | list):
        assert len(one) == len(other)
        for key in one if isinstance(one, dict) else range(len(one)):
            assert_alike(one[key], other[key])
    else:
        assert one == (pytest.approx(other, rel=1e-9) if isinstance(one, float) else other)


class TestPartsOfARun:
    def test_add_up_to_its_launches_and_time(self, cli: Cli, tmp_path: Path) -> None:
        """Hand: 10 x 1 + 1000 x 3 ms are 3010 ms of 1010 launches, at 1005 MHz 3114 ms.

        10 x 1 ms x 100 W + 1000 x 3 ms x 300 W are 901 J; 14 x 90 + 3100 x 250, 776 J.
        """
        fast = (part(1, 10, power_w=100), part(3, 1000, power_w=300))
        slow = (part(1.4, 10, power_w=90), part(3.1, 1000, power_w=250))
        base = a100(tmp_path / "base.csv", 1410, *fast)
        second = a100(tmp_path / "second.csv", 1005, *slow)
        at_second = ("--at", "engine=1005,memory=1593")
        advice, said = document(cli, "advise", base, "--also", second)
        assert advice["run"]["launches"] == 1010
        at_base = advice["run"]
        assert (at_base["time_ms"], at_base["energy_mj"]) == pytest.approx((3010, 901_000))
        assert sum(ADDED in warning for warning in said) == 2  # once a file
        predicted, _ = document(cli, "predict", base, "--also", second, *at_second)

        a100(base, 1410, part(3010 / 1010, 1010, power_w=901_000 / 3010))
        a100(second, 1005, part(3114 / 1010, 1010, power_w=776_260 / 3114))
        in_one_row, said = document(cli, "advise", base, "--also", second)
        whys = [one.pop("sure_why") for one in (advice, in_one_row)]
        assert ["S17" in why for why in whys] == [True, False]  # by the warning
        assert_alike(advice, in_one_row)
        assert not any(ADDED in warning for warning in said)
        in_one_row, _ = document(cli, "predict", base, "--also", second, *at_second)
        assert_alike(predicted, in_one_row)

    def test_have_the_counters_of_a_mean_launch(self, cli: Cli, tmp_path: Path) -> None:
        """Hand: 30 launches of 2 ms, 10 of 6: 3 ms, loads (30 x 4 + 10 x 8) / 40 = 5.

        (30 x 2 x 40 + 10 x 6 x 60) / 120 is 50 W. So it is in training, where the nearest kernel
        is the one of these counters, and in the profile.
        """
        whole = {"time_ms": 3, "launches": 40, "loads": 5, "power_w": 50}
        parts = (
            {"time_ms": 2, "launches": 30, "loads": 4, "power_w": 40},
            {"time_ms": 6, "launches": 10, "loads": 8, "power_w": 60},
        )
        found = []
        for cells in ((whole,), parts):
            table = [*rows()[:3], *({**rows()[3], **cell} for cell in cells), *rows()[4:]]
            of = [{"launches": 1, **row} for row in table]
            train = ("train", write_csv(tmp_path / "t.csv", of), "--predictor", "nearest")
            cli(*train, "--base", "cu=4,engine=800,memory=700", "-o", tmp_path / "m.mlscale")
            profile = write_csv(tmp_path / "p.csv", of)
            found.append(document(cli, "predict", tmp_path / "m.mlscale", profile)[0])
        assert_alike(*found)
        first = [row for row in found[1]["predictions"] if row["kernel"] == "first"]
        assert first[-1]["time_ms"] == pytest.approx(3)
        assert first[-1]["power_w"] == pytest.approx(50)


def test_repetitions_of_about_the_same_launches_are_one_run(cli: Cli, tmp_path: Path) -> None:
    """Hand: medians; a launch more in the second run makes it no part that is added."""
    base = a100(
        tmp_path / "base.csv",
        1410,
        *({"kernel": "a", **part(time_ms, 100)} for time_ms in (1.0, 1.2)),
        *({"kernel": "b", **part(2, launches)} for launches in (100, 101)),
    )
    second = a100(tmp_path / "second.csv", 1005, part(1.2, 1), {"kernel": "b", **part(2.2, 1)})
    second.write_text(second.read_text().replace("\nk,", "\na,"))
    found, said = document(cli, "advise", base, "--also", second)
    assert {k["kernel"]: k["launches"] for k in found["kernels"]} == {"a": 100, "b": 100.5}
    assert found["run"]["time_ms"] == pytest.approx(110 + 201)
    assert not any(ADDED in warning for warning in said)


@pytest.mark.filterwarnings("ignore:.*repetitions differ")
def test_the_quickest_repetition_has_its_own_power(cli: Cli, tmp_path: Path) -> None:
    """Hand: the rows at 800 MHz take 4 ms at 104 W, and 3 ms at 130: 'min' takes 3 ms and 130 W."""
    table = write_csv(
        tmp_path / "t.csv", [*rows(["first"]), {**rows()[3], "time_ms": 3, "power_w": 130}]
    )
    given = (
        "--predictor",
        "mean-surface",
        "--base",
        "cu=4,engine=400,memory=500",
        "--repetitions",
        "min",
    )
    cli("train", table, *given, "-o", tmp_path / "m.mlscale")
    profile = write_csv(tmp_path / "p.csv", rows(["first"])[:1])  # 1 ms, 101 W
    found, _ = document(cli, "predict", tmp_path / "m.mlscale", profile)
    quickest = found["predictions"][-1]
    assert (quickest["time_ms"], quickest["power_w"]) == pytest.approx((3, 130))
