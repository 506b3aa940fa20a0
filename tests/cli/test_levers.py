"""mlscale advise: power caps, the lever of the verdict, and commands, in each format.

The kernels of synthetic.frugal at the base: compute0 of 4, 2.667, 2 and 1.6 ms at 400, 600, 800
and 1000 MHz and bandwidth0 of 4 ms, both of 172.4, 225.6, 329.2 and 500 W.
"""

import json
import re
from pathlib import Path

import pytest
from command import Cli
from synthetic import frugal


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return frugal.files(tmp_path, "h100-sxm5", power=5)


class TestPowerCaps:
    def test_table_of_caps_below_that_of_clocks(self, cli: Cli, files: tuple[Path, Path]) -> None:
        given = ["--power-cap", 329.2, 650, 150, "--all", "--notes"]
        out, err = cli.both("advise", *files, *given)
        assert "under a power cap h100-sxm5 runs at 1000 MHz" in err
        clocks, caps = out.split(" cap  ")
        assert clocks.startswith("  Set the CU count to 16")
        lines = [line.split() for line in caps.splitlines()]
        # By hand: 6 ms x 329.2 W at 800 MHz, 5.6 ms x 500 W without a cap.
        assert lines[1] == ["329.2", "W", "800", "MHz", "+0.0", "%", "329", "W", "+0.0", "%"]
        assert lines[2] == ["650", "W", "1000", "MHz", "-6.7", "%", "500", "W", "+41.8", "%"]
        assert "\n  150 W: below the GPU's lowest power limit, 200 W; below the clocks " in clocks

    def test_the_lever_makes_the_verdict_and_leaves_the_clocks_out(
        self, cli: Cli, files: tuple[Path, Path]
    ) -> None:
        # By hand: the run takes 6.667 ms at 225.6 W, 11.1 % more than 6 ms, and 1504 mJ, 23.9 %
        # less than 1975.2.
        given = ["--lever", "cap", "--power-cap", 225.6, 329.2, 650, "--max-slowdown", 12]
        out = cli("advise", *files, *given)
        said = "  Set the power cap to 225.6 W (now 700): 11 % slower, 24 % less energy.\n\n"
        assert out.startswith(said)
        assert "compute0" not in out
        [best] = [line.split() for line in out.splitlines() if line.startswith("  225.6")]
        assert best[-1] == "answer"

    def test_without_caps_the_gpus_limits_are_swept(
        self, cli: Cli, files: tuple[Path, Path]
    ) -> None:
        rows = [row for row in cli.csv("advise", *files, "--lever", "cap") if row["at"] == "cap"]
        caps_w = [*range(200, 400, 5), *range(400, 701, 10)]
        assert [float(row["power_cap_w"]) for row in rows] == caps_w
        out, err = cli.both("advise", *files, "--power-cap", "--notes")
        assert "P03: assumed: under a power cap h100-sxm5 runs at 1000 MHz" in err
        of_clocks, caps = out.split(" cap  ")
        assert of_clocks.startswith("  Set the CU count to 16")
        swept = [line.split()[0] for line in caps.splitlines()[1:] if line[:5].strip().isdigit()]
        assert (swept[0], swept[-1]) == ("200", "700")
        assert len(swept) <= 8

    def test_json(self, cli: Cli, files: tuple[Path, Path]) -> None:
        given = ["--power-cap", 150, 225.6, "--format", "json"]
        document = json.loads(cli("advise", *files, *given))
        assert "power_cap_w" not in document["base"]
        low, high = document["caps"]
        assert low["time_ms"] is None
        assert low["flags"] == [
            "below the GPU's lowest power limit, 200 W",
            "below the clocks tried: 2 of 2 kernels",
        ]
        assert high["energy_mj"] == [pytest.approx(1504, rel=1e-6), None, None]
        assert low.keys() == high.keys()
        changed = 100 * (high["energy_mj"][0] / document["run"]["energy_mj"] - 1)
        assert high["energy_percent"][0] == pytest.approx(changed, rel=1e-9)
        assert document["commands"] is None
        given += ["--max-slowdown", 12]
        document = json.loads(cli("advise", *files, "--lever", "cap", *given, "--commands"))
        assert document["base"]["power_cap_w"] == 700
        assert document["answer"]["set"] == {"power_cap_w": 225.6}
        assert document["commands"]["set"] == ["nvidia-smi -i 0 -pl 225.6"]
        assert document["commands"]["reset"] == ["nvidia-smi -i 0 -pl 700"]

    def test_a_cap_that_changes_nothing_is_left(self, cli: Cli, files: tuple[Path, Path]) -> None:
        """329.2 W is what the run draws at the base."""
        given = ["--lever", "cap", "--max-slowdown", 5, "--power-cap", 329.2, "--commands"]
        out = cli("advise", *files, *given)
        assert out.startswith(
            "  Leave the power cap as it is: no setting that needs less energy keeps "
        )
        assert out.endswith("# nothing to set: the power cap stays as it is\n")

    def test_caps_that_cannot_be_advised_are_said_to_be(
        self, cli: Cli, files: tuple[Path, Path]
    ) -> None:
        given = ["advise", *files, "--lever", "cap", "--power-cap"]
        out = cli(*given, 20, 30)
        assert out.startswith("  None of these power caps can be judged: below the clocks ")
        out = cli(*given, 210, "--max-slowdown", 5)
        assert out.startswith("  None of the power caps that can be set keeps 5 %.\n")
        out, err = cli.both(*given, 800, "--notes")
        above = "above the GPU's highest known power limit, 700 W"
        said = f"None of these power caps can be set: {above}. "
        assert " ".join(out.split()).startswith(said)
        given_json = cli.json(*given, 800)
        assert [(cap["can_be_set"], cap["flags"]) for cap in given_json["caps"]] == [
            (False, [above])
        ]
        assert "800 W cannot be set: h100-sxm5 accepts power caps" in err


class TestCommands:
    def test_after_the_advice(self, cli: Cli, files: tuple[Path, Path]) -> None:
        # The most frugal run is at 16 CUs, 400 and 1000 MHz (tests/advice/test_advise.py).
        out = cli("advise", *files, "--commands")
        expected = (
            r"\n\n  To set it:\n    nvidia-smi -i 0 -lgc 400,400\n    nvidia-smi -i 0 -lmcd 1000\n"
            r"(    # [^\n]+\n)+"
            r"\n  To reset it:\n    nvidia-smi -i 0 -rgc\n    nvidia-smi -i 0 -rmcd\n"
        )
        assert re.search(f"{expected}$", out)
        assert "# no command sets the number of CUs" in out

    def test_of_an_unknown_gpu_there_are_none(self, cli: Cli, tmp_path: Path) -> None:
        files = frugal.files(tmp_path)
        out = cli("advise", *files, "--commands")
        assert out.endswith("# commands are known only for GPUs of the device table\n")
        given = ["--commands"]
        assert cli.json("advise", *files, *given)["commands"] == {
            "set": [],
            "reset": [],
            "notes": ["commands are known only for GPUs of the device table"],
        }
