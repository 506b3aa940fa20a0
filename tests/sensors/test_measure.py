"""mlscale measure on a made GPU (`synthetic/nvml.py`): 20 samples of work, at 0.1 s by its clock.

Expected: what the made GPU is made of; 1395 MHz and 310 W at work, 210 MHz and 60 W idle.
"""

# ruff: noqa: ARG002
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import numpy as np
import pytest
from command import Capture, refuse, succeed
from synthetic import llm_server, nvml
from synthetic.made_gpu import MadeGpu

import mlscale
from mlscale.cli import measure
from mlscale.cli.main import main
from mlscale.errors import InputError
from mlscale.readers.monitor import FACTS, read_log
from mlscale.readers.reading import read_table
from mlscale.sensors import log
from mlscale.sensors.boards import boards_at_hand
from mlscale.sensors.recorder import Recorder

JOB = ("--", "sh", "job.sh")
UNTIL_LOST = 'until [ "$(wc -c < "$MADE_NVML/reads")" -ge 10 ]; do sleep 0.01; done\n'


def facts(log: str | Path) -> dict[str, object]:
    first = Path(log).read_text().splitlines()[0]
    assert first.startswith(FACTS)
    return dict(json.loads(first.removeprefix(FACTS)))


class TestOneRun:
    def test_what_is_printed_and_what_the_log_says(self, gpu: MadeGpu, capfd: Capture) -> None:
        """The program's output is untouched, and what mlscale says is on the other stream."""
        assert main(["measure", *JOB]) == 0
        out, err = capfd.readouterr()
        assert out == "worked\n"
        first, *then = err.splitlines()
        assert (
            first.startswith("  A100 SXM4 80 GB, GPU 0: 2.00 s busy of ") or "NVIDIA A100" in first
        )
        assert first.endswith(" s, 1395 MHz, 310 W mean, 620 J -> job-1395.csv")
        assert then == [
            "  For an answer, measure again at 0.6 of the clock (needs root):",
            "    sudo mlscale measure --at 840 -- sh job.sh",
        ]
        [log] = read_log(Path("job-1395.csv"))
        assert set(log.columns) >= {"power_w", "power_cap_w", "engine_mhz", "memory_mhz"}
        assert log.columns["power_w"].max() == 310
        assert facts("job-1395.csv")["command"] == "sh job.sh"
        assert facts("job-1395.csv")["power_limit_w"] == 400
        assert gpu.locked_mhz is None

    def test_its_log_is_advised_on(self, gpu: MadeGpu, capsys: Capture) -> None:
        succeed(capsys, "measure", *JOB)
        out, _ = succeed(capsys, "advise", "job-1395.csv", "--max-slowdown", "5")
        assert out.splitlines()[0].strip().startswith("Set the engine clock to ")

    @pytest.mark.parametrize("status", [0, 7])
    def test_the_exit_status_is_the_programs(
        self, gpu: MadeGpu, capsys: Capture, status: int
    ) -> None:
        with Path("job.sh").open("a") as job:
            job.write(f"exit {status}\n")
        assert main(["measure", "-o", "log.csv", *JOB]) == status
        assert Path("log.csv").exists()
        said = "warning M02: log.csv: the program ended with 7"
        assert (said in capsys.readouterr().err) == bool(status)

    def test_no_log_replaces_another(self, gpu: MadeGpu, capsys: Capture) -> None:
        for _ in range(2):
            succeed(capsys, "measure", *JOB)
        assert sorted(path.name for path in Path().glob("*.csv")) == [
            "job-1395-2.csv",
            "job-1395.csv",
        ]

    def test_a_name_of_the_users_replaces_not_without_a_word(
        self, gpu: MadeGpu, capsys: Capture
    ) -> None:
        for is_there in (False, True):
            _, err = succeed(capsys, "measure", "-o", "log.csv", *JOB)
            assert ("log.csv: already existed and is replaced" in err) == is_there
        message = refuse(capsys, Path(), "measure", "-o", "none/log.csv", *JOB)
        said = "(No such file or directory); give --output FILE elsewhere"
        assert message.endswith(f"none: no log can be written there {said}")

    def test_a_folder_and_a_device_are_no_names_of_logs(
        self, gpu: MadeGpu, capsys: Capture
    ) -> None:
        """A folder with a dot was told after the run; /dev/null became /dev/null.csv."""
        Path("run.d").mkdir()
        message = refuse(capsys, Path(), "measure", "-o", "run.d", *JOB)
        assert "-o run.d: is a folder; give the name of a file to write" in message
        assert not list(Path().glob("*.csv"))
        _, err = succeed(capsys, "measure", "-o", "/dev/null", *JOB)
        assert "replaced" not in err
        assert not list(Path("/dev").glob("null*.csv"))
        assert not list(Path().glob("*.csv"))

    def test_a_pipe_is_refused_before_the_run(self, gpu: MadeGpu, capsys: Capture) -> None:
        """It waited for ever for the log to come back, with the clocks held."""
        os.mkfifo("pipe")
        message = refuse(capsys, Path(), "measure", "-o", "pipe", *JOB)
        assert "-o pipe: is a pipe, and the log is read again; name a file" in message
        assert not (gpu.folder / "reads").exists()

    def test_a_disk_that_took_only_a_part(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What is left to write fails once more when the partial file is closed."""

        def on_a_full_disk(*words: Any) -> tuple[int, str]:
            return os.open("/dev/full", os.O_WRONLY), mkstemp(*words)[1]

        monkeypatch.setattr(log, "mkstemp", on_a_full_disk)
        assert main(["measure", "-o", "/dev/full", *JOB]) == 2
        said = capsys.readouterr().err.rpartition("; the log is in ")[2].strip()
        assert len(read_log(Path(said))[0]) > 20

    def test_what_was_sampled_becomes_the_log(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a disk that is full when the run ends; what must be written anew goes elsewhere."""

        def full(path: Path, _: str) -> None:
            raise InputError(f"{path}: cannot be written: No space left on device")

        monkeypatch.setattr(log, "write_text", full)
        succeed(capsys, "measure", "-o", "log.csv", *JOB)
        assert len(read_log(Path("log.csv"))[0]) > 20
        assert Path("log.csv").stat().st_mode & 0o777 == Path("job.sh").stat().st_mode & 0o777
        assert main(["measure", "--skip", "0.5s", "-o", "late.csv", *JOB]) == 2
        said = capsys.readouterr().err.rpartition("; the log is in ")[2].strip()
        assert len(read_log(Path(said))[0]) > 10
        assert [path.name for path in Path().glob("*.csv")] == ["log.csv"]

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGXCPU])
    def test_a_signal_before_the_program_ends_with_its_status(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
    ) -> None:
        """Sent while a driver is asked; nothing is left."""

        def ended(_: int) -> list[object]:
            os.kill(os.getpid(), number)
            return []

        monkeypatch.setattr(nvml, "nvmlDeviceGetComputeRunningProcesses", ended)
        assert main(["measure", "--at", "840", "-o", "log.csv", *JOB]) == 128 + number
        out, err = capsys.readouterr()
        assert (out, err) == ("", "mlscale: interrupted; no log is written\n")
        assert (gpu.locked_mhz, gpu.marker.exists(), list(Path().glob("*.csv"))) == (
            None,
            False,
            [],
        )

    def test_an_idle_gpu_is_told(self, gpu: MadeGpu, capsys: Capture) -> None:
        _, err = succeed(capsys, "measure", "-o", "log.csv", "--", "true")
        assert "M02: log.csv, GPU 0: has no busy span: gpu_utilisation is at most 0, so" in err
        assert err.endswith("was idle; if another GPU did the work, name it: --gpu\n")

    def test_the_first_seconds_are_left_out(self, gpu: MadeGpu, capsys: Capture) -> None:
        """Of 40 s of work; that the log begins amid the run is no fault then."""
        gpu.special(work=400)
        succeed(capsys, "measure", "--skip", "10s", "-o", "log.csv", *JOB)
        [log] = read_log(Path("log.csv"))
        assert log.columns["gpu_utilisation"][0] == pytest.approx(0.95)
        assert log.facts["skip_s"] == 10
        assert read_table([Path("log.csv")]).table.metadata["open_ends"] == {}

    def test_of_three_runs_the_middle_is_kept(self, gpu: MadeGpu, capsys: Capture) -> None:
        """Runs of 2.4, 2.0 and 2.2 s, whose spread widens the intervals."""
        with Path("job.sh").open("a") as job:
            job.write("[ ! -e next ] || mv next made.json; [ ! -e last ] || mv last next\n")
        (gpu.folder / "next").write_text('{"work": 20}')
        (gpu.folder / "last").write_text('{"work": 22}')
        gpu.special(work=24)
        _, err = succeed(capsys, "measure", "--repeat", "3", "-o", "log.csv", *JOB)
        assert "  3 runs were busy for 2.00 s to 2.40 s\n" in err
        assert "GPU 0: 2.20 s busy of " in err
        told = facts("log.csv")
        assert told["times_s"] == [2.0, 2.2, 2.4]
        assert told["log_time_sd"] == pytest.approx(np.std(np.log([2.0, 2.2, 2.4]), ddof=1))
        gpu.special(work=22)
        succeed(capsys, "measure", "--at", "840", "-o", "slow.csv", *JOB)
        _, *rest = Path("log.csv").read_text().splitlines(keepends=True)
        del told["log_time_sd"]
        Path("once.csv").write_text("".join([f"{FACTS}{json.dumps(told)}\n", *rest]))
        once, spread = (
            mlscale.predict(log, also="slow.csv", at={"engine": 1050}).frame.iloc[0]
            for log in ("once.csv", "log.csv")
        )
        for end in ("time_ms", "power_w"):
            low, high = f"{end}_low", f"{end}_high"
            assert spread[low] < once[low] < once[high] < spread[high]


class TestClocks:
    def test_at_a_clock_and_what_is_next(self, gpu: MadeGpu, capfd: Capture) -> None:
        """Held while the program runs, and put back after it; both logs make an answer."""
        main(["measure", *JOB])
        with Path("job.sh").open("a") as job:
            job.write('cat locked "$XDG_STATE_HOME"/mlscale/*/before.json\n')
        capfd.readouterr()
        assert main(["measure", "--at", "0.84GHz", *JOB]) == 0
        out, err = capfd.readouterr()
        assert out.startswith('worked\n840{"power_limit_mw": 400000}')
        assert (gpu.locked_mhz, gpu.marker.exists()) == (None, False)
        assert "840 MHz (set), 151 W mean" in err
        assert err.endswith(" of the run without a lock: mlscale advise LOG --also job-840.csv\n")

    def test_two_clocks_end_in_the_answer(self, gpu: MadeGpu, capsys: Capture) -> None:
        """2.0 s at 1395 MHz; half of it follows the clock: 2.7 s at 840, of whole samples."""
        out, err = succeed(capsys, "measure", "--two-clocks", "--max-slowdown", "5", *JOB)
        lines = err.splitlines()
        assert lines[0] == "  1/2  free clock   2.00 s, 1395 MHz,  310 W -> job-1395.csv"
        assert lines[1] == "  2/2  840 MHz      2.70 s,  840 MHz,  151 W -> job-840.csv"
        assert lines[2:5] == [
            "  A lock set by hand before (nvidia-smi -lgc) is lost: NVML does not report it",
            "  The clock is reset. The answer of:",
            "    mlscale advise job-1395.csv --also job-840.csv --max-slowdown 5",
        ]
        assert out.lstrip().startswith("Set the engine clock to ")
        assert gpu.locked_mhz is None

    @pytest.mark.parametrize("option", [("--at", "840"), ("--two-clocks",)])
    def test_without_the_right_to_set(
        self, gpu: MadeGpu, capsys: Capture, option: tuple[str, ...]
    ) -> None:
        """Who can, and what to type; the program is not run."""
        gpu.special(no_permission=True)
        assert main(["measure", *option, *JOB]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert "no permission to set its clocks (Insufficient Permissions); run as root, or" in err
        assert "mlscale measure -- sh job.sh" in err
        assert ("nvidia-smi -i 0 -lgc 840,840" in err) == (option[0] == "--at")

    def test_a_clock_that_there_is_not(self, gpu: MadeGpu, capsys: Capture) -> None:
        message = refuse(capsys, Path(), "measure", "--at", "2500", *JOB)
        assert message == "GPU 0 has no clock near 2500 MHz; the nearest is 1410"

    def test_a_clock_that_is_not_kept_is_told(self, gpu: MadeGpu, capsys: Capture) -> None:
        gpu.special(wanders=True)
        _, err = succeed(capsys, "measure", "--at", "840", "-o", "log.csv", *JOB)
        assert "warning L04: log.csv, GPU 0: engine_mhz was set to 840, but ran at 6" in err
        _, err = succeed(capsys, "measure", "-o", "log.csv", *JOB)
        assert "warning L04: log.csv, GPU 0: engine_mhz varies, from 1095 to 1395" in err


class TestWhatIsAmiss:
    @pytest.mark.parametrize(
        ("special", "note"),
        [
            ({"reasons": 0x4}, "P03: GPU 0: the power limit lowered its clock in 100 % of the"),
            ({"reasons": 0x40}, "L04: GPU 0: heat lowered its clock in 100 % of the busy samples"),
            ({"others": [4242]}, "G02: GPU 0: another program ran on it already: trainer 4242"),
        ],
        ids=["cap", "heat", "another program"],
    )
    def test_is_noted(
        self, gpu: MadeGpu, capsys: Capture, special: dict[str, object], note: str
    ) -> None:
        gpu.special(**special)
        _, err = succeed(capsys, "measure", *JOB)
        assert f"mlscale: warning {note}" in err

    @pytest.mark.parametrize(
        ("special", "message"),
        [
            ({"mig": 1}, "GPU 0 is divided (MIG), and its sensors show the whole GPU"),
            ({"no_driver": True}, "no GPU was found: NVIDIA: Driver Not Loaded; "),
            ({"lost_after": 1}, "GPU 0 no longer answers (GPU is lost); no log is written"),
        ],
        ids=["MIG", "no driver", "lost"],
    )  # fmt: skip
    def test_is_refused(
        self, gpu: MadeGpu, capsys: Capture, special: dict[str, object], message: str
    ) -> None:
        gpu.special(**special)
        assert message in refuse(capsys, Path(), "measure", "--", "true")

    def test_a_lost_gpu_leaves_a_failed_program_its_status(
        self, gpu: MadeGpu, capsys: Capture
    ) -> None:
        """What was sampled until then is kept."""
        gpu.special(lost_after=9)
        for status in (9, 0):
            Path("job.sh").write_text(f"{UNTIL_LOST}exit {status}\n")
            assert main(["measure", "-o", "log.csv", *JOB]) == (status or 2)
            said = "GPU 0 no longer answers (GPU is lost): log.csv ends there"
            assert said in capsys.readouterr().err
            [log] = read_log(Path("log.csv"))
            assert len(log) == 9
            (gpu.folder / "reads").unlink()

    def test_without_a_library(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pynvml", None)
        message = refuse(capsys, Path(), "measure", *JOB)
        assert message.endswith("needs pynvml; install it with: pip install nvidia-ml-py")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ((), "give a program after '--', or --for SECONDS if it already runs"),
            (("--for", "1s", *JOB), "give a program after '--', or --for SECONDS"),
            (("--two-clocks", "--for", "1s"), "--two-clocks does not work with --for or --rate"),
            (
                ("--two-clocks", "--rate", "9", *JOB),
                "--two-clocks does not work with --for or --rate",
            ),
            (("--max-slowdown", "5", *JOB), "--max-slowdown needs --two-clocks"),
            (("--repeat", "2", "--for", "1s"), "--repeat needs a program to run, not --for"),
            (("--two-clocks", "--gpu", "0,1", *JOB), "no GPU 1 answers; available: GPU 0 ("),
            (("--gpu", "MIG-12", *JOB), "MIG-12 is a part of a GPU (MIG)"),
            (("-o", ".", *JOB), "-o .: is a folder; give the name of a file to write"),
            (("-o", "a.parquet", *JOB), "-o a.parquet: a log is CSV; name it *.csv"),
            (("-o", "a/", *JOB), "-o a/: is a folder; give the name of a file to write"),
            (("-o", "x" * 300, *JOB), "no log can be written there (File name too long); give"),
            (("--", "no-such-program"), "no-such-program: cannot be run: No such file or"),
        ],
    )
    def test_options(
        self, gpu: MadeGpu, capsys: Capture, words: tuple[str, ...], message: str
    ) -> None:
        assert message in refuse(capsys, Path(), "measure", *words)

    def test_a_driver_that_fails_is_told(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By an error that is none of its own, after nine samples."""
        temperature = nvml.nvmlDeviceGetTemperature

        def failing(handle: int, sensor: int) -> int:
            if nvml.reads() > 9:
                raise OSError("no such device")
            return temperature(handle, sensor)

        monkeypatch.setattr(nvml, "nvmlDeviceGetTemperature", failing)
        Path("job.sh").write_text(UNTIL_LOST)
        assert main(["measure", "-o", "log.csv", *JOB]) == 2
        said = "GPU 0 no longer answers (no such device): log.csv ends there"
        assert said in capsys.readouterr().err

    def test_one_gpu_off_the_bus_does_not_stop_the_others(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def lost(handle: int) -> str:
            if handle == 1:
                raise nvml.NVMLError(nvml.NVML_ERROR_GPU_IS_LOST, "GPU is lost")
            return nvml.NAME

        monkeypatch.setattr(nvml, "nvmlDeviceGetName", lost)
        gpu.special(gpus=3)
        succeed(capsys, "measure", "--gpu", "0,2", "-o", "log.csv", *JOB)
        message = refuse(capsys, Path(), "measure", "--gpu", "1", *JOB)
        there = "; available: GPU 0 (NVIDIA A100-SXM4-80GB), GPU 2 (NVIDIA A100-SXM4-80GB)"
        assert message == f"no GPU 1 answers{there}"

    def test_a_name_that_is_no_text_is_none(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As bindings raise where the driver gives other bytes."""

        def garbled(*_: int) -> str:
            return b"\xff".decode()

        for name in ("nvmlDeviceGetName", "nvmlSystemGetProcessName"):
            monkeypatch.setattr(nvml, name, garbled)
        gpu.special(others=[4242])
        _, err = succeed(capsys, "measure", *JOB)
        assert "GPU 0: another program ran on it already: process 4242;" in err

    def test_what_goes_on_in_the_background(self, gpu: MadeGpu, capsys: Capture) -> None:
        gpu.special(serves=True)
        _, err = succeed(capsys, "measure", "--", "true")
        assert "M02: the GPU was busy when last seen after the program, so the log" in err

    def test_a_use_that_is_no_longer_told(
        self, gpu: MadeGpu, monkeypatch: pytest.MonkeyPatch, capsys: Capture
    ) -> None:
        """A driver's unknown error from the fifth sample on: the rest is missing, not idle."""
        told = nvml.nvmlDeviceGetUtilizationRates

        def fails(handle: int) -> object:
            use = told(handle)
            if nvml.reads() > 5:
                raise nvml.NVMLError(999, "Unknown Error")
            return use

        monkeypatch.setattr(nvml, "nvmlDeviceGetUtilizationRates", fails)
        gpu.special(serves=True)
        _, err = succeed(capsys, "measure", "--", "sh", "-c", UNTIL_LOST)
        assert "M02: the GPU was busy when last seen after the program, so the log" in err

    def test_a_skip_of_all_leaves_out_nothing(self, gpu: MadeGpu, capsys: Capture) -> None:
        _, err = succeed(capsys, "measure", "--skip", "100s", "-o", "log.csv", *JOB)
        assert "M02: GPU 0: no samples after the first 100 s, so none is left out" in err
        assert "GPU 0: 2.00 s busy of " in err

    @pytest.mark.parametrize(
        ("line", "name"),
        [
            ("sh job.sh; : x.sh", "sh-1395.csv"),
            ("sh job.sh\n: /x.py", "sh-1395.csv"),
            (f"sh job.sh; : {'x' * 300}", "sh-1395.csv"),
            (os.fsdecode(b"sh job.sh; : \xff"), "sh-1395.csv"),
        ],
    )
    def test_a_line_of_a_shell_makes_no_name_and_can_be_pasted(
        self, gpu: MadeGpu, capsys: Capture, line: str, name: str
    ) -> None:
        _, err = succeed(capsys, "measure", "--", "sh", "-c", line)
        assert [path.name for path in Path().glob("*.csv")] == [name]
        pasted = err.splitlines()[-1].partition(" -- ")[2].replace("sh -c", "printf %s")
        shown = subprocess.check_output(["bash", "-c", pasted])
        assert os.fsdecode(shown) == line

    def test_a_program_with_an_evil_name(self, gpu: MadeGpu, capsys: Capture) -> None:
        """At most 60 characters, none of them special in a shell."""
        program = Path("; rm -rf $HOME " + "x" * 200)
        program.write_text("#!/bin/sh\nexec sh job.sh\n")
        program.chmod(0o755)
        succeed(capsys, "measure", "--", f"./{program}")
        assert [path.name for path in Path().glob("*.csv")] == [f"rm--rf-HOME-{'x' * 48}-1395.csv"]


class TestWhatGoesOn:
    def test_a_server_by_its_rate(self, gpu: MadeGpu, capsys: Capture) -> None:
        """2400 tokens a second at 310 W are 129 mJ a token; two logs make an answer."""
        gpu.special(serves=True, others=[4242])  # itself
        server = ("measure", "--for", "5s", "--gpu", "0")
        _, err = succeed(capsys, *server, "--rate", "2400", "-o", "fast.csv")
        assert " s at 2400/s, 1395 MHz, 310 W mean, 129 mJ each -> fast.csv\n" in err
        assert "sudo mlscale measure --at 840 --gpu 0 --for 5s --rate RATE" in err
        assert "G02" not in err
        succeed(capsys, *server, "--rate", "2000", "--at", "840", "-o", "slow.csv")
        out, err = succeed(capsys, "advise", "fast.csv", "--also", "slow.csv", "--json")
        document = json.loads(out)
        assert document["run"]["time_ms"] == pytest.approx(1e9 / 2400)
        assert any("are for 1,000,000 units of work" in one["text"] for one in document["notes"])

    def test_without_a_rate_it_is_asked_for(self, gpu: MadeGpu, capsys: Capture) -> None:
        gpu.special(serves=True)
        _, err = succeed(capsys, "measure", "--for", "2s")
        assert "(this log has no rate: measure it again with --rate, the work per second," in err

    def test_a_server_by_its_benchmark(self, gpu: MadeGpu, capsys: Capture) -> None:
        """Two logs of a part of the run, and the results of a benchmark of another made server."""
        gpu.special(serves=True)
        words = []
        for mhz in (1395, 840):
            _, err = succeed(capsys, "measure", "--for", "5s", "--at", f"{mhz}", "-o", f"{mhz}.csv")
            run = llm_server.serve(llm_server.Server(highest_mhz=1395.0), mhz, 5.0)
            result, _ = llm_server.write(run, mhz, Path())
            words += ["--also", str(result), f"{mhz}.csv"]
        assert "with a benchmark's RESULTs: mlscale advise RESULT LOG --also RESULT 840.csv" in err
        out, _ = succeed(capsys, "advise", *words[1:], "--slo", "tpot=1.2x@p90")
        assert re.match(r"  Set the engine clock to \d+ MHz \(now 1395\): tpot p90 ", out)


class TestSensors:
    def test_several_gpus_have_a_log_each(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Those that a program sees; one that is idle is told."""
        gpu.special(gpus=3)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-made-0,2")
        _, err = succeed(capsys, "measure", "-o", "log.csv", *JOB)
        assert "log-gpu2.csv, GPU 2: has no busy span" in err
        assert "GPU 0: 2.00 s busy of" in err
        assert {path.name for path in Path().glob("*.csv")} == {"log-gpu0.csv", "log-gpu2.csv"}
        assert "sudo CUDA_VISIBLE_DEVICES=GPU-made-0,2 mlscale measure --at 840 -- sh" in err

    def test_a_gpu_that_monitors_performance(self, gpu: MadeGpu, capsys: Capture) -> None:
        """Its shares are DCGM's: each made metric is 50 % and its number."""
        gpu.special(gpm=True)
        succeed(capsys, "measure", "-o", "log.csv", *JOB)
        [log] = read_log(Path("log.csv"))
        assert np.nanmax(log.columns["tensor_active"]) == pytest.approx(0.55)
        assert np.nanmax(log.columns["dram_active"]) == pytest.approx(0.60)

    def test_a_counter_of_energy_counts_for_the_mean(self, gpu: MadeGpu, capsys: Capture) -> None:
        """It was made a tenth more than 310 W, in 20 samples of 0.1 s."""
        gpu.special(energy=True)
        _, err = succeed(capsys, "measure", "-o", "log.csv", *JOB)
        assert "341 W mean, 682 J -> log.csv" in err
        out, _ = succeed(capsys, "import", "log.csv", "-o", "table.csv")
        assert "power_w 341" in out

    def test_what_an_old_gpu_lacks(self, gpu: MadeGpu, capsys: Capture) -> None:
        gpu.special(without=["nvmlDeviceGetFieldValues", "nvmlDeviceResetGpuLockedClocks"])
        succeed(capsys, "measure", "-o", "log.csv", *JOB)
        assert "power.draw [W]" in Path("log.csv").read_text()

    def test_the_line_that_moves(
        self, gpu: MadeGpu, capsys: Capture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On a terminal alone."""
        gpu.special(serves=True)
        with Recorder(boards_at_hand()) as recorder:
            measure.show_live(recorder)
            assert capsys.readouterr().err == ""
            monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
            measure.show_live(recorder)
        assert "\x1b[K  GPU 0: 310 W, 1395 MHz, 95 % busy, " in capsys.readouterr().err


class TestFromPython:
    def test_a_block(self, gpu: MadeGpu) -> None:
        gpu.special(serves=True)
        with mlscale.measure("fast.csv", rate=100) as log:
            pass
        assert (log.mean_w, log.engine_mhz) == (310, 1395)
        assert log.energy_j == pytest.approx(310 * 1e6 / 100)
        assert Path("fast.csv").exists()

    def test_a_log_is_not_replaced_without_a_word(self, gpu: MadeGpu) -> None:
        gpu.special(serves=True)
        Path("fast.csv").write_text("of before")
        said = pytest.warns(UserWarning, match="fast.csv: exists, and is replaced")
        with said as told, mlscale.measure("fast.csv"):
            assert Path("fast.csv").read_text() == "of before"
        assert told[0].filename == __file__
        assert facts("fast.csv")["gpu"]

    def test_one_that_fails_has_no_log(self, gpu: MadeGpu) -> None:
        with pytest.raises(KeyError), mlscale.measure("fast.csv"):
            raise KeyError
        assert not Path("fast.csv").exists()
        [partial] = Path().glob("*.csv")
        with (
            pytest.warns(UserWarning, match=f"{partial}: is from a run that was killed"),
            mlscale.measure("fast.csv"),
        ):
            gpu.special(serves=True)
