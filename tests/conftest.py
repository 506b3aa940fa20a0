"""Fixtures for all tests."""

import os
import signal
from pathlib import Path

import pytest


def pytest_configure() -> None:
    """Let Ctrl-C interrupt, whoever started the tests: a job in the background ignores it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of public measurements; a test that needs it is skipped without it."""
    folder = os.environ.get("MLSCALE_DATA")
    if not folder:
        pytest.skip("MLSCALE_DATA is not set: public measurements are not there")
    return Path(folder)
