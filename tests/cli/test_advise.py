"""mlscale advise: what it prints in each format, and what it refuses."""

import csv
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from command import Cli, note_texts
from synthetic import frugal
from synthetic.two_logs import log, without

MID_SETTINGS = frugal.MID.as_dict()
# By hand in tests/advice/test_advise.py: 4/3 ms and 45.12 W against 2 ms and 65.84 W; 2.8 ms.
SAVING = 100 * (1 - 4 / 3 * 45.12 / (2 * 65.84))


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A model of board power, and a profile of a compute and a bandwidth kernel."""
    return frugal.files(tmp_path)


def test_a_pipe_is_read_as_a_file_is(cli: Cli, files: tuple[Path, Path], tmp_path: Path) -> None:
    model, profile = files
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=lambda: pipe.write_bytes(profile.read_bytes()))
    writing.start()
    out = cli("advise", model, pipe)
    writing.join()
    assert out == cli("advise", model, profile)


def test_a_pipe_with_its_settings_is_read_too(cli: Cli, tmp_path: Path) -> None:
    """Of a log that tells no clock, as in: --also <(ssh node cat log.csv)@engine=1170."""
    readings = (("fast.csv", 1755, 100, 480), ("slow.csv", 1170, 120, 300))
    fast, slow = (log(tmp_path / name, *reading) for name, *reading in readings)
    without(slow, 4)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=lambda: pipe.write_bytes(slow.read_bytes()))
    writing.start()
    out = cli("advise", fast, "--also", f"{pipe}@engine=1170")
    writing.join()
    assert out == cli("advise", fast, "--also", f"{slow}@engine=1170")


def test_an_open_pipe_keeps_its_name(cli: Cli, tmp_path: Path) -> None:
    """As /dev/stdin and <(…): it is read more than once, and the hint can be typed."""
    readings = (("fast.csv", 1755, 100, 480), ("slow.csv", 1170, 120, 300))
    fast, slow = (log(tmp_path / name, *reading) for name, *reading in readings)
    without(slow, 4)

    def piped(settings: str = "") -> str:
        reading, writing = os.pipe()
        os.write(writing, slow.read_bytes())
        os.close(writing)
        name = f"/dev/fd/{reading}"
        try:
            given = ("advise", fast, "--also", f"{name}{settings}")
            return cli(*given) if settings else cli.refused(*given).replace(name, "PIPE")
        finally:
            os.close(reading)

    assert "PIPE: does not say at which engine clock it ran: give PIPE@engine=…" in piped()
    assert piped("@engine=1170") == cli("advise", fast, "--also", f"{slow}@engine=1170")


class TestFormats:
    def test_table(self, cli: Cli, files: tuple[Path, Path]) -> None:
        out, err = cli.both("advise", *files, "--notes")
        told = "busy_bandwidth 1.091 is above 1.073, the highest in training (1 kernel)"
        assert err == f"mlscale: note P02: {told}\n"
        words = " ".join(out.split())
        assert words.startswith("Set the CU count to 16 (now 8) and the engine clock to 400 MHz ")
        # The run takes 4.8 ms at 34.48 W in place of 6 ms at 65.84 W.
        assert "20 % faster, 58 % less energy." in words
        assert "\n  no limit" in out
        lines = [line.split() for line in cli("advise", *files, "--all").splitlines()]
        # In the run, at 400 MHz, the compute kernel takes 2 ms x 8/16 x 800/400.
        assert ["1", "bandwidth0", "66.7", "%", "-30.0", "%", "-63.3", "%"] in lines
        assert ["2", "compute0", "33.3", "%", "+0.0", "%", "-47.6", "%"] in lines
        assert any(line[:1] == ["front"] for line in lines)

    def test_json_is_one_document_with_all_digits(self, cli: Cli, files: tuple[Path, Path]) -> None:
        document = cli.json("advise", *files, "--max-slowdown", "10")
        assert document["objective"] == "energy"
        assert document["limits"] == {
            "max_power_w": None,
            "max_time_ms": None,
            "max_slowdown_percent": 10.0,
        }
        bandwidth, compute = document["kernels"]
        saved = [pytest.approx(-SAVING, rel=1e-9), None, None]
        assert compute["best"]["energy_percent"] == saved
        assert bandwidth["best"]["at"]["cu_count"] == 4
        assert document["answer"]["at"]["engine_mhz"] == 400
        [note] = document["notes"]
        assert note == {
            "code": "P02",
            "severity": "note",
            "kernels": ["bandwidth0"],
            "text": "busy_bandwidth 1.091 is above 1.073, the highest in training",
        }

    def test_csv_has_a_row_for_each_choice(self, cli: Cli, files: tuple[Path, Path]) -> None:
        rows = cli.csv("advise", *files, "--minimize", "power")
        compute = [row for row in rows if row["kernel"] == "compute0"]
        # Least power at 400 MHz, for the kernel and for the run.
        assert [(r["engine_mhz"], r["at"]) for r in compute] == [
            ("400.0", "answer"),
            ("400.0", "best"),
        ]
        saved = float(compute[0]["power_percent"])
        assert saved == pytest.approx(100 * (34.48 / 65.84 - 1))
        assert compute[1]["power_percent_low"] == ""
        assert {row["at"] for row in rows} == {"answer", "best"}

    def test_csv_says_warnings_on_stderr(self, cli: Cli, tmp_path: Path) -> None:
        model, profile = frugal.files(tmp_path, power=None)
        out, err = cli.both("advise", model, profile, "--format", "csv")
        warning = "mlscale: note P04: looking for the lowest clock, not least energy: "
        assert warning + "the profile has no power_w; give --power" in err
        assert "warning" not in out

    @pytest.mark.parametrize("form", ["table", "json", "csv"])
    def test_a_file_gets_what_the_terminal_would(
        self, cli: Cli, files: tuple[Path, Path], tmp_path: Path, form: str
    ) -> None:
        """Its name says the format, unless it is said."""
        printed = cli("advise", *files, "--format", form)
        file = tmp_path / f"advice.{form}"
        said = ("--format", form) if form == "table" else ()
        assert cli("advise", *files, *said, "-o", file) == ""
        assert file.read_text(encoding="utf-8") == printed

    def test_static_power_makes_dynamic_power_whole(self, cli: Cli, tmp_path: Path) -> None:
        files = frugal.files(tmp_path, power_kind="dynamic")
        compute: dict[str, Any] = cli.json("advise", *files, "--static-power", 1000)["kernels"][1]
        assert compute["best"]["at"]["engine_mhz"] == 1000
        assert compute["best"]["power_w"][0] == pytest.approx(1100, rel=1e-9)


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

    def test_weights_decide(self, cli: Cli, files: tuple[Path, Path], tmp_path: Path) -> None:
        # By hand in tests/advice/test_advise.py: 400 MHz of one launch each, 600 MHz of 100 of
        # the compute kernel.
        weights = tmp_path / "weights.csv"
        weights.write_text("kernel,launches\ncompute0,100\n", encoding="utf-8")
        given = ["advise", *files]
        once = cli.json(*given)
        weighted = cli.json(*given, "--weights", weights)
        assert once["answer"]["at"]["engine_mhz"] == 400
        assert once["run"]["launches"] is None
        assert weighted["answer"]["at"]["engine_mhz"] == 600
        assert weighted["run"]["launches"] == 101
        assert weighted["run"]["time_ms"] == pytest.approx(204)
        compute = weighted["kernels"][0]
        assert (compute["launches"], compute["share_percent"]) == (100, pytest.approx(200 / 2.04))
        assert compute["at_answer"]["slowdown_percent"][0] == pytest.approx(-100 / 3)
        rows = cli.csv("advise", *files, "--weights", weights)
        first = next(row for row in rows if row["kernel"] == "compute0")
        assert (first["launches"], float(first["share_percent"])) == (
            "100.0",
            pytest.approx(200 / 2.04),
        )

    def test_a_kernel_without_counters_rides_along(
        self, cli: Cli, files: tuple[Path, Path]
    ) -> None:
        self.riders(files[1])
        document = cli.json("advise", *files)
        assert document["run"]["counters_cover_percent"] == pytest.approx(12)
        [note] = [note for note in document["notes"] if note["kernels"] == ["rider"]]
        assert note["text"].startswith("no counters")
        assert "rider" in cli("predict", *files, "--format", "csv")

    def test_or_is_left_out(self, cli: Cli, files: tuple[Path, Path]) -> None:
        self.riders(files[1])
        given = [*files, "--profiled-only"]
        document = cli.json("advise", *given)
        assert [kernel["kernel"] for kernel in document["kernels"]] == ["bandwidth0", "compute0"]
        left_out = "left out, as without counters: 1 kernel ('rider'), 88.0 % of the run's time"
        assert left_out in note_texts(document)
        predicted, err = cli.both("predict", *given, "--format", "csv")
        assert "rider" not in predicted
        assert left_out in err
