"""Fixtures for all tests."""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

if TYPE_CHECKING:
    from command import Cli

# The tests' processes share the processor already; before NumPy and torch are imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

with suppress(ImportError):
    import readline  # noqa: F401 - which sets it for processes, not in os.environ
os.environ.pop("COLUMNS", None)  # a shell's or xdist's, by which warnings would be wrapped
os.unsetenv("COLUMNS")
os.environ.pop("PYTHONUNBUFFERED", None)  # a container's, which hides what is not written at an end

# A loaded machine is no fault of what is tested. Examples are the same in every run, but for those
# of 'make fuzz'.
default = settings.get_profile("default")
settings.register_profile("fuzz", default, deadline=None, print_blob=True)
settings.register_profile("tests", default, deadline=None, derandomize=True)
settings.load_profile("tests")


def pytest_configure(config: pytest.Config) -> None:
    """Make runs alike: in their examples, and in what interrupts them.

    Hypothesis takes values from the modules that are there, which other tests decide. Background
    jobs and nohup ignore signals.
    """
    if config.getoption("--hypothesis-profile") != "fuzz":
        providers._get_local_constants = lambda: providers._local_constants  # which are none yet
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: garbage is not sought in it."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests tests/pocl.py skipped."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", ())]
    if lacking := [reason for reason in reasons if "Skipped: OpenCL: " in reason]:
        why = lacking[0].partition("OpenCL: ")[2].rstrip("\"')")
        terminalreporter.write_line(f"{len(lacking)} tests were skipped for want of OpenCL: {why}")


@pytest.fixture
def forget_own_devices() -> Iterator[Callable[[], None]]:
    """What makes the devices of one's own unknown, as in a fresh process; done around the test."""
    from mlscale.data import devices

    def forget() -> None:
        devices._registered.clear()
        for lookup in (devices._table, devices._names, devices.load_device):
            lookup.cache_clear()

    forget()
    yield forget
    forget()


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> "Cli":
    """The command line, beside a folder in which refusals leave nothing."""
    from command import Cli

    return Cli(capsys, tmp_path)


@pytest.fixture
def in_an_empty_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands work in a folder without files."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies of errors draw nothing, which is quicker."""
    monkeypatch.setattr("mlscale.studies.figures.draw_errors", lambda *_: [])


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Studies and fleets work in this process, which is quicker."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of public measurements; a test that needs it is skipped without it."""
    folder = os.environ.get("MLSCALE_DATA")
    if not folder:
        pytest.skip("MLSCALE_DATA is not set: public measurements are not there")
    if not Path(folder).is_dir():
        pytest.fail(f"MLSCALE_DATA names {folder}, which is not a folder")
    return Path(folder)
