"""From what a profile's numbers come, beside what the model was trained with."""

import numpy as np
import pytest
from synthetic.profiled import profiles

from mlscale import load
from mlscale.data.datasets import path
from mlscale.data.grid import HardwareConfig
from mlscale.model.model import feature_warnings
from mlscale.notes import Note
from mlscale.predictors.bottleneck.estimator import Bottleneck

BASE = HardwareConfig(16, 1000.0, 3500.0)


def test_other_sources_are_told_in_one_line() -> None:
    """The shipped model's numbers, said to come from counts; the profile has shares."""
    model = load(path("simulated-gcn3.mlscale"))
    time = model.predictors["time"]
    assert isinstance(time, Bottleneck)
    state = time.state()
    state["sources"] = {"memory": ["DRAM bytes"], "issue": ["core_utilisation"], "l2": []}
    time.restore(state)
    counters = {"dram_utilisation": [0.3], "core_utilisation": [0.5], "l2_utilisation": [0.2]}
    own = profiles(counters, base=BASE, device="gtx980")
    own.metadata["utilisation_sources"] = {
        "dram_utilisation": "DRAM throughput, % of peak = {x}/100"
    }
    [note] = feature_warnings(model, own)
    told = "used in place of what was measured in training: DRAM throughput, % of peak for memory"
    assert note == Note("T10", told)
    assert time.state()["sources"] == state["sources"]


@pytest.mark.parametrize(("trained", "counts"), [("dram_utilisation", True), ("DRAM bytes", False)])
def test_numbers_are_taken_from_what_the_model_was_trained_with(trained: str, counts: bool) -> None:
    """A tool's own share of the peak, beside the bytes, counts only where it did then."""
    model = load(path("simulated-gcn3.mlscale"))
    time = model.predictors["time"]
    assert isinstance(time, Bottleneck)
    time.restore({**time.state(), "sources": {"memory": [trained]}})
    surfaces = []
    for share in (0.2, 0.6):
        counters = {"ReadBandwidth": [33.6e9], "WriteBandwidth": [11.2e9], "VALUBusy": [30.0]}
        counters["dram_utilisation"] = [share]
        own = profiles(counters, base=model.base, device="simulated-gcn3")
        surfaces.append(time.predict(own).values)
    assert (np.abs(surfaces[1] / surfaces[0] - 1).max() > 0.01) == counts
