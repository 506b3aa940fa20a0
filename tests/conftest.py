"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of public measurements; a test that needs it is skipped without it."""
    folder = os.environ.get("MLSCALE_DATA")
    if not folder:
        pytest.skip("MLSCALE_DATA is not set: public measurements are not there")
    return Path(folder)
