"""`sampled` on what nvidia-smi logs, where no monitor gave DRAM's share."""

from dataclasses import replace

import pytest
from synthetic import sampled_kernels as made
from synthetic.tidy import refused, same_bits

from mlscale.predictors.sampled.estimator import Sampled


@pytest.mark.parametrize("quantity", ["time", "power"])
def test_the_memory_share_of_nvidia_smi_stands_in_for_drams(quantity: str) -> None:
    """The same numbers under its name, and without SM active, give the same predictions.

    Without SM active it learns less, so both are without.
    """
    by_dcgm = made.measurements().without_counters(["sm_active"])
    by_smi = replace(by_dcgm, counter_names=("memory_copy_utilisation",))
    profiles = made.measurements(count=9, seed=7).without_counters(["sm_active"]).profiles(made.TOP)
    renamed = replace(profiles, counter_names=("memory_copy_utilisation",))
    assert Sampled.applies_to(by_smi)
    one = Sampled(quantity=quantity).fit(by_dcgm, made.TOP)
    other = Sampled(quantity=quantity).fit(by_smi, made.TOP)
    restored = Sampled(quantity=quantity).restore(other.state())
    expected = one.predict_interval(profiles)
    for own in (other, restored):
        surfaces = own.predict_interval(renamed)
        assert same_bits(surfaces.values, expected.values)
        assert same_bits(surfaces.high, expected.high)
        assert own.needs() == ("memory_copy_utilisation",)
        assert own.feature_names() == ("memory_copy_utilisation", "power_w")
    with refused("'kernel0' has no value for 'memory_copy_utilisation', .*=utilization.memory"):
        other.predict(profiles)
