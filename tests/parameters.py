"""Hyper-parameters for tests that go through several predictors, each with its own."""

from typing import Any

from mlscale import create


def own(predictor: str, **parameters: Any) -> dict[str, Any]:
    """Those of the hyper-parameters that the predictor of that name has."""
    names = create(predictor).get_params().keys()
    return {name: value for name, value in parameters.items() if name in names}
