"""A Dask cluster on this machine."""

from typing import Any

import pytest


def workers(count: int = 2) -> Any:
    """A context manager: a cluster of so many processes; the test is skipped without Dask."""
    distributed = pytest.importorskip("distributed")
    return distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs=50,
    )
