"""A Dask cluster on this machine."""

from typing import Any

import pytest


def two_workers() -> Any:
    """A context manager: a cluster of two worker processes; the test is skipped without Dask."""
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=50,
    )
