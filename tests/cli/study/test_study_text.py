"""What stands above a study's table."""

import pytest
from mlscale.cli.study.text import conditions


@pytest.mark.parametrize(
    ("clusters", "trained_on", "told"),
    [(8, 7, "at most 8 clusters"), (8, 8, "8 clusters"), ("auto", 7, "auto clusters")],
)
def test_few_kernels_may_make_fewer_clusters(
    clusters: int | str, trained_on: int, told: str
) -> None:
    """There are no more clusters than kernels that were trained on."""
    row = {
        "base": {"cu_count": 8, "engine_mhz": 800.0, "memory_mhz": 700.0},
        "n_seeds": 1,
        "n_training_kernels": trained_on,
    }
    text = conditions({"clusters": clusters, "protocol": "k-fold"}, row)
    assert text == f"base cu=8,engine=800,memory=700, k-fold, 1 seed, {told}"
