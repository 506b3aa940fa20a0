"""mlscale advise: what it prints in each format, and what it refuses."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from command import Capture, refuse, succeed
from synthetic import frugal

MID_SETTINGS = frugal.MID.as_dict()
# By hand in tests/advice/test_advise.py: 4/3 ms and 45.12 W against 2 ms and 65.84 W; 2.8 ms.
SAVING = 100 * (1 - 4 / 3 * 45.12 / (2 * 65.84))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A model of board power, and a profile of a compute and a bandwidth kernel."""
    return frugal.files(tmp_path)


class TestFormats:
    def test_table(self, capsys: Capture, files: tuple[Path, Path]) -> None:
        out, err = succeed(capsys, "advise", *files)
        assert err == ""
        lines = [line.split() for line in out.splitlines()]
        assert lines[0][:5] == ["Set", "16", "CUs", "(up", "from"]
        assert ["Least", "energy:"] in lines
        # In the run, at 400 MHz, the compute kernel takes 2 ms x 8/16 x 800/400.
        compute = ["compute0", "33.3", "16", "600", "400", "1.333", "45.12", "60.16", "-33.3"]
        assert [*compute, "54.3", "+0.0"] in lines
        assert "Pareto front of time and energy of the whole run (each kernel's with" in out
        assert ["16", "400", "1000", "4.800", "34.48", "165.5", "best"] in lines
        assert "whole run" in out
        assert f"base {frugal.MID} on made-gpu" in out

    def test_json_is_one_document_with_all_digits(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        out, _ = succeed(capsys, "advise", *files, "--format", "json", "--max-slowdown", "10")
        document = json.loads(out)
        assert (document["objective"], document["unit"]) == ("energy", "mJ")
        assert document["limits"] == {
            "max_power_w": None,
            "max_time_ms": None,
            "max_slowdown_percent": 10.0,
        }
        compute, bandwidth = document["kernels"]
        assert compute["saving_percent"] == pytest.approx(SAVING, rel=1e-9)
        assert compute["saving_low_percent"] is None
        assert compute["at_base"]["energy_mj"] == pytest.approx(2 * 65.84, rel=1e-9)
        assert bandwidth["best"]["cu_count"] == 4
        assert [point["engine_mhz"] for point in compute["front"]] == [1000, 800, 600]
        assert document["whole_run"]["best"]["engine_mhz"] == 400
        assert document["warnings"] == []

    def test_csv_has_the_best_and_the_front(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        out, _ = succeed(capsys, "advise", *files, "--minimize", "power", "--format", "csv")
        rows = list(csv.DictReader(io.StringIO(out)))
        compute = [row for row in rows if row["kernel"] == "compute0"]
        # Least power at 400 MHz, which is not on the front: 600 MHz is quicker and more frugal.
        assert [(r["engine_mhz"], r["best"], r["on_front"]) for r in compute] == [
            ("400.0", "1", "0"),
            ("1000.0", "0", "1"),
            ("800.0", "0", "1"),
            ("600.0", "0", "1"),
        ]
        assert float(compute[0]["saving_percent"]) == pytest.approx(100 * (1 - 34.48 / 65.84))
        assert compute[1]["saving_percent"] == ""

    def test_the_name_of_the_file_says_the_format(self, capsys: Capture, tmp_path: Path) -> None:
        files = frugal.files(tmp_path)
        for form in ("csv", "json"):
            succeed(capsys, "advise", *files, "-o", tmp_path / f"advice.{form}")
            printed, _ = succeed(capsys, "advise", *files, "--format", form)
            assert (tmp_path / f"advice.{form}").read_text() == printed
        said = refuse(capsys, tmp_path, "advise", *files, "-o", tmp_path / "advice.parquet")
        assert "advice on one run is no Parquet; name a file *.csv or *.json" in said
        said = refuse(capsys, tmp_path, "advise", *files, "-o", tmp_path / "advice.html")
        assert "advice.html: 'mlscale report' writes a page of these files" in said

    def test_csv_says_warnings_on_stderr(self, capsys: Capture, tmp_path: Path) -> None:
        model, profile = frugal.files(tmp_path, power=None)
        out, err = succeed(capsys, "advise", model, profile, "--format", "csv")
        warning = "mlscale: P04: looking for the lowest clock, not least energy: "
        assert warning + "the profile has no power_w; give power= (--power)" in err
        assert "warning" not in out

    @pytest.mark.parametrize("form", ["table", "json", "csv"])
    def test_a_file_gets_what_the_terminal_would(
        self, capsys: Capture, files: tuple[Path, Path], tmp_path: Path, form: str
    ) -> None:
        printed, _ = succeed(capsys, "advise", *files, "--format", form)
        out, _ = succeed(capsys, "advise", *files, "--format", form, "-o", tmp_path / "file")
        assert out == ""
        assert (tmp_path / "file").read_text(encoding="utf-8") == printed

    def test_static_power_makes_dynamic_power_whole(self, capsys: Capture, tmp_path: Path) -> None:
        files = frugal.files(tmp_path, power_kind="dynamic")
        out, _ = succeed(capsys, "advise", *files, "--static-power", 1000, "--format", "json")
        compute: dict[str, Any] = json.loads(out)["kernels"][0]
        assert compute["best"]["engine_mhz"] == 1000
        assert compute["best"]["power_w"] == pytest.approx(1100, rel=1e-9)


class TestOfTheRun:
    def riders(self, profile: Path) -> None:
        """Add a kernel without counters, of 44 ms beside 6 ms at the base, to a profile."""
        with profile.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        kept = dict.fromkeys(("device", "cu_count", "engine_mhz", "memory_mhz", "power_w"))
        base = next(r for r in rows if all(float(r[a]) == v for a, v in MID_SETTINGS.items()))
        rider = {name: base[name] for name in kept if name in base}
        rows.append({**rider, "application": "other", "kernel": "rider", "time_ms": "44"})
        with profile.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def test_weights_decide(
        self, capsys: Capture, files: tuple[Path, Path], tmp_path: Path
    ) -> None:
        # By hand in tests/advice/test_advise.py: 400 MHz of one launch each, 600 MHz of 100 of
        # the compute kernel.
        weights = tmp_path / "weights.csv"
        weights.write_text("kernel,launches\ncompute0,100\n", encoding="utf-8")
        given = ["advise", *files, "--format", "json"]
        once = json.loads(succeed(capsys, *given)[0])
        weighted = json.loads(succeed(capsys, *given, "--weights", weights)[0])
        assert once["whole_run"]["best"]["engine_mhz"] == 400
        assert once["whole_run"]["launches"] is None
        assert weighted["whole_run"]["best"]["engine_mhz"] == 600
        assert weighted["whole_run"]["launches"] == 101
        assert weighted["whole_run"]["at_base"]["time_ms"] == pytest.approx(204)
        compute = weighted["kernels"][0]
        assert (compute["launches"], compute["share_percent"]) == (100, pytest.approx(200 / 2.04))
        assert compute["at_whole_run_best"]["engine_mhz"] == 600
        assert compute["at_whole_run_best"]["slowdown_percent"] == pytest.approx(-100 / 3)
        rows = succeed(capsys, "advise", *files, "--weights", weights, "--format", "csv")[0]
        first = next(csv.DictReader(io.StringIO(rows)))
        assert (first["launches"], float(first["share_percent"])) == (
            "100.0",
            pytest.approx(200 / 2.04),
        )

    def test_a_kernel_without_counters_rides_along(
        self, capsys: Capture, files: tuple[Path, Path]
    ) -> None:
        self.riders(files[1])
        document = json.loads(succeed(capsys, "advise", *files, "--format", "json")[0])
        assert document["whole_run"]["counters_cover_percent"] == pytest.approx(12)
        assert "counters cover 12 % of it" in document["verdict"]
        *_, rider = document["kernels"]
        assert rider["flags"] == [
            "no counters: taken to scale as the profiled kernels do on average"
        ]
        predicted, _ = succeed(capsys, "predict", *files, "--format", "csv")
        assert "rider" in predicted

    def test_or_is_left_out(self, capsys: Capture, files: tuple[Path, Path]) -> None:
        self.riders(files[1])
        given = [*files, "--profiled-only"]
        document = json.loads(succeed(capsys, "advise", *given, "--format", "json")[0])
        assert [kernel["kernel"] for kernel in document["kernels"]] == ["compute0", "bandwidth0"]
        left_out = "left out, as without counters: 1 kernel ('rider'), 88.0 % of the run's time"
        assert left_out in document["warnings"]
        predicted, err = succeed(capsys, "predict", *given, "--format", "csv")
        assert "rider" not in predicted
        assert left_out in err


class TestRefused:
    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            (["--minimize", "joy"], "argument --minimize: 'joy' is none of energy, edp"),
            (
                ["--max-power", "0"],
                "argument --max-power: '0' is not a positive, finite number; see",
            ),
            (
                ["--max-slowdown", "-3"],
                "--max-slowdown: '-3' is not a finite number of at least 0; see",
            ),
            (["--static-power", "9"], "power_w is board power, static power included"),
            (
                ["--max-power", "30"],
                "the whole run: no configuration keeps a power of at most 30 W; the",
            ),
        ],
    )
    def test_options(
        self,
        capsys: Capture,
        files: tuple[Path, Path],
        tmp_path: Path,
        options: list[str],
        complaint: str,
    ) -> None:
        assert complaint in refuse(capsys, tmp_path, "advise", *files, *options)

    def test_what_power_cannot_tell(self, capsys: Capture, tmp_path: Path) -> None:
        files = frugal.files(tmp_path, power_kind="dynamic")
        said = refuse(capsys, tmp_path, "advise", *files, "--minimize", "edp")
        assert said == (
            "the objective 'edp' needs the whole power: power_w is dynamic power; give what the "
            "board draws beside it as --static-power W"
        )
        files = frugal.files(tmp_path, power=None)
        said = refuse(capsys, tmp_path, "advise", *files, "--minimize", "energy")
        assert (
            said == "the objective 'energy' needs power: the profile has no power_w; "
            "give power= (--power)"
        )
