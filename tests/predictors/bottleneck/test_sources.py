"""From what a profile's numbers come, beside what the model was trained with."""

from synthetic.profiled import profiles

from mlscale import load
from mlscale.data.grid import HardwareConfig
from mlscale.data.public import path
from mlscale.model_warnings import feature_warnings
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
    warning = "not measured as in training: memory from DRAM throughput, % of peak"
    assert feature_warnings(model, own) == [warning]
    assert time.state()["sources"] == state["sources"]


def test_a_model_file_without_sources_tells_of_none() -> None:
    model = load(path("simulated-gcn3.mlscale"))
    time = model.predictors["time"]
    assert isinstance(time, Bottleneck)
    state = time.state()
    del state["sources"]
    own = profiles({"dram_utilisation": [0.3]}, base=BASE, device="gtx980")
    assert time.restore(state).other_sources(own) == {}
