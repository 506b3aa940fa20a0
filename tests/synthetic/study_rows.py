"""A row of a study of section V of Wu et al."""

from typing import Any

from mlscale import HardwareConfig


def row(
    mape: float,
    base: tuple[int, float, float] = (4, 300.0, 475.0),
    seed: int = 0,
    clusters: int | None = 12,
    predictor: str = "wu",
) -> dict[str, Any]:
    given = {"predictor": predictor, "features": None, "clusters": clusters, "seed": seed}
    return {**given, **HardwareConfig(*base).as_dict(), "n_kernels": 2, "mape": mape}
