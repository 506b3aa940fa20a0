"""mlscale advise: power caps, the lever of the verdict, and commands, in each format.

The kernels of synthetic.frugal at the base: compute0 of 4, 2.667, 2 and 1.6 ms at 400, 600, 800
and 1000 MHz and bandwidth0 of 4 ms, both of 172.4, 225.6, 329.2 and 500 W.
"""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import frugal

from mlscale import train
from mlscale.advice.advise import advise
from mlscale.advice.caps import advise_caps
from mlscale.advice.objectives import Limits
from mlscale.cli.advise import document, text_of


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return frugal.files(tmp_path, "h100-sxm5", power=5)


class TestPowerCaps:
    def test_table_of_caps_below_that_of_clocks(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        out, err = succeed(capsys, "advise", *files, "--power-cap", 329.2, 650, 150)
        assert err == ""
        clocks, caps = out.split("The run under power caps:\n")
        assert clocks.startswith("Set ")
        assert "Pareto front" in clocks
        lines = [line.split() for line in caps.splitlines()]
        # By hand: 6 ms x 329.2 W at 800 MHz, 5.6 ms x 500 W without a cap.
        assert lines[3][:7] == ["329.2", "800", "6.000", "329.2", "1975", "+0.0", "0.0"]
        assert lines[4][:7] == ["650", "1000", "5.600", "500.0", "2800", "-6.7", "-41.8"]
        assert "below the clocks tried: 2 of 2 kernels" in " ".join(lines[2])

    def test_the_lever_makes_the_verdict_and_leaves_the_clocks_out(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        # By hand: the run takes 6.667 ms at 225.6 W, 11.1 % more than 6 ms, and 1504 mJ, 23.9 %
        # less than 1975.2.
        given = ["--lever", "cap", "--power-cap", 225.6, 329.2, 650, "--max-slowdown", 12]
        out, _ = succeed(capsys, "advise", *files, *given)
        assert out.startswith(
            "Set the power cap to 225.6 W (of 700): 11 % slower, 24 % less energy, for the run of "
            "6 ms (2 kernels, each run once).\n\nwarning: assumed: under a power cap h100-sxm5 ru"
        )
        assert "\n\nThe run under power caps, under a slowdown of at most 12 %:\n" in out
        assert "Pareto front" not in out
        [best] = [line.split() for line in out.splitlines() if line.startswith("225.6")]
        assert best[7:] == ["best"]

    def test_the_objective_is_spelt_alike(self, capsys: Capture, files: tuple[Path, Path]) -> None:
        """As in docs/nomenclature.md."""
        out, _ = succeed(capsys, "advise", *files, "--power-cap", 225.6, "--minimize", "edp")
        assert "\nLeast EDP:\n" in out
        assert "\nsaves % is of EDP; engine MHz" in out

    def test_what_is_true_of_the_best_clocks_is_not_said_of_a_cap(self) -> None:
        profiles = frugal.measurements(per_group=1).profiles(frugal.MID)
        model = train(frugal.measurements(), frugal.MID, "nearest")
        profiles = replace(profiles, time_ms=np.array([2.0, 8.0]))
        advice = advise(model, profiles, "clock", Limits(max_slowdown_percent=20.1))
        [of_clocks] = advice.whole_run.flags
        assert "is for the whole run" in of_clocks.text
        caps = advise_caps(model, profiles, [60])
        assert document(advice, "cap", caps)["warnings"] == [*map(str, advice.warnings)]
        assert of_clocks.text not in text_of(advice, "cap", caps)

    def test_without_caps_the_gpus_limits_are_swept(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        out, err = succeed(capsys, "advise", *files, "--lever", "cap", "--format", "csv")
        assert "mlscale: P03: assumed: under a power cap h100-sxm5 runs at 1000 MHz" in err
        rows = list(csv.DictReader(io.StringIO(out)))
        assert [float(row["cap_w"]) for row in rows] == [*range(200, 400, 5), *range(400, 701, 10)]
        assert {row["too_low"] for row in rows} == {"0"}
        out, _ = succeed(capsys, "advise", *files, "--power-cap")
        of_clocks, caps = out.split("The run under power caps:\n")
        assert of_clocks.startswith("Set 16 CUs")
        swept = [line.split()[0] for line in caps.splitlines()[2:] if line[:3].strip().isdigit()]
        assert (swept[0], swept[-1]) == ("200", "700")
        assert len(swept) <= 12
        assert caps.endswith(
            f"; {len(rows) - len(swept)} more caps with --lever cap --format csv\n"
        )

    def test_json(self, capsys: Capture, files: tuple[Path, Path]) -> None:
        given = ["--power-cap", 150, 225.6, "--format", "json"]
        document = json.loads(succeed(capsys, "advise", *files, *given)[0])
        assert document["lever"] == "clock"
        assert "clock" in document["verdict"]
        low, high = document["power_caps"]
        assert (low["time_ms"], low["too_low"]) == (None, 2)
        assert low["flags"] == [
            "below the GPU's lowest power limit, 200 W",
            "below the clocks tried: 2 of 2 kernels",
        ]
        assert high["energy_mj"] == pytest.approx(1504, rel=1e-6)
        assert high["saving_low_percent"] is None
        assert low.keys() == high.keys()
        assert document["best_power_cap"] == high
        assert document["power_caps_save"] == "energy"
        at_base = document["whole_run"]["at_base"]
        saved = 100 * (1 - high["energy_mj"] / at_base["energy_mj"])
        assert high["saving_percent"] == pytest.approx(saved, rel=1e-9)
        assert "commands" not in document
        for objective, saved in (("clock", "energy"), ("time", "energy"), ("edp", "edp")):
            asked = ["--minimize", objective, *given]
            document = json.loads(succeed(capsys, "advise", *files, *asked)[0])
            assert document["power_caps_save"] == saved
        document = json.loads(
            succeed(capsys, "advise", *files, "--lever", "cap", *given, "--commands")[0]
        )
        assert document["lever"] == "cap"
        assert document["verdict"].startswith("Set the power cap to 225.6 W (of 700): ")
        assert document["commands"]["set"] == ["nvidia-smi -i 0 -pl 225.6"]
        assert document["commands"]["reset"] == ["nvidia-smi -i 0 -pl 700"]

    def test_a_cap_that_changes_nothing_is_left(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        given = ["--lever", "cap", "--minimize", "time", "--commands"]
        out, _ = succeed(capsys, "advise", *files, *given)
        assert out.startswith("Leave the power cap at 700 W: nothing is faster, for the run of ")
        assert "note: nothing to set: the power cap stays as it is" in out

    def test_caps_that_cannot_be_advised_are_said_to_be(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        given = ["advise", *files, "--lever", "cap", "--power-cap"]
        out, _ = succeed(capsys, *given, 20, 30)
        assert out.startswith("No power cap of these can be judged: all are below the clocks ")
        out, _ = succeed(capsys, *given, 210, "--max-slowdown", 5)
        assert out.startswith("No power cap of these keeps a slowdown of at most 5 %.\n")
        out, _ = succeed(capsys, *given, 800)
        first, _, warning, *_ = out.splitlines()
        assert first == "No power cap of these can be set on this GPU."
        assert warning.startswith("warning: 800 W cannot be set: h100-sxm5 is known to take ")


class TestCommands:
    def test_after_the_advice(self, capsys: Capture, files: tuple[Path, Path]) -> None:
        # The most frugal run is at 16 CUs, 400 and 1000 MHz (tests/advice/test_advise.py).
        out, _ = succeed(capsys, "advise", *files, "--commands")
        expected = (
            "\nTo set it:\n  nvidia-smi -i 0 -lgc 400,400\n  nvidia-smi -i 0 -lmcd 1000\n"
            "To reset it:\n  nvidia-smi -i 0 -rgc\n  nvidia-smi -i 0 -rmcd\nnote: "
        )
        assert expected in out
        assert "note: no command sets the number of CUs" in out

    def test_of_an_unknown_gpu_there_are_none(self, capsys: Capture, tmp_path: Path) -> None:
        files = frugal.files(tmp_path)
        out, _ = succeed(capsys, "advise", *files, "--commands")
        assert out.endswith("note: no command is known for a GPU that is not in the device table\n")
        given = ["--commands", "--format", "json"]
        assert json.loads(succeed(capsys, "advise", *files, *given)[0])["commands"] == {
            "set": [],
            "reset": [],
            "notes": ["no command is known for a GPU that is not in the device table"],
        }


class TestRefused:
    @pytest.mark.parametrize(
        ("given", "complaint"),
        [
            (["--power-cap", "0"], "argument --power-cap: '0' is not a positive, finite number"),
            (["--lever", "fan"], "argument --lever: 'fan' is none of clock, cap"),
            (["--lever", "cap", "--minimize", "clock"], "'clock' says nothing of power caps"),
        ],
    )
    def test_options(
        self,
        capsys: Capture,
        files: tuple[Path, Path],
        tmp_path: Path,
        given: list[str],
        complaint: str,
    ) -> None:
        assert complaint in refuse(capsys, tmp_path, "advise", *files, *given)

    def test_without_power(self, capsys: Capture, tmp_path: Path) -> None:
        files = frugal.files(tmp_path, "h100-sxm5", power=None)
        said = refuse(capsys, tmp_path, "advise", *files, "--power-cap", 90)
        assert (
            said == "a power cap needs the whole power: the profile has no power_w; "
            "give power= (--power)"
        )
        files = frugal.files(tmp_path)
        said = refuse(capsys, tmp_path, "advise", *files, "--lever", "cap")
        assert said.startswith("the power limits of this GPU are not known; name the caps with ")
