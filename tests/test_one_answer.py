"""predict, advise and report give one kernel at one setting the same numbers, marks and flags.

No number is expected here but that of another command on the same profiles.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from report_pages import on_grid

from mlscale import Limits, Profiles
from mlscale.advice.advise import advise
from mlscale.advice.recommendation import Choice
from mlscale.advice.search import TOO_SLOW
from mlscale.data.datasets import path
from mlscale.data.profiles import QUANTITIES
from mlscale.model.predictions import ABOVE_LIMIT, COVERAGE
from mlscale.model.shipped import model_for, shipped_model
from mlscale.pages.surfaces import KEEPS_MEMORY, NO_SUPPLY, surfaces
from mlscale.readers.reading import import_profile

COSTS = {"time": "time_ms", "power": "power_w", "energy": "energy_mj"}

H100 = {"engine_mhz": 1980, "memory_mhz": 2619}
A100 = {"engine_mhz": 1410, "memory_mhz": 1593}


def by_hand(engine_mhz: float, power_w: float | None) -> Profiles:
    """Two kernels of an H100, whose board supplies 700 W, as if profiled at another clock."""
    both = import_profile(path("h100-by-hand.csv"), device="h100-sxm5", base=H100)
    watts = None if power_w is None else np.full(2, power_w)
    return replace(both, base=replace(both.base, engine_mhz=engine_mhz), power_w=watts)


def of_a_step(power_w: float) -> Profiles:
    """Kernels of a training step, of which some have no counters; their power is not known."""
    files = [path("training-step-ncu.csv"), path("training-step-trace.json.gz")]
    step = import_profile(files, base=A100)
    return replace(step, power_w=np.where(step.has_counters, power_w, np.nan))


CASES = {
    "without power": lambda: by_hand(1980.0, None),
    "near the limit": lambda: by_hand(1980.0, 690.0),
    "above the limit at higher clocks": lambda: by_hand(1500.0, 650.0),
    "some kernels without counters": lambda: of_a_step(395.0),
}
ASKED = [(None, Limits()), ("time", Limits(max_slowdown_percent=5)), ("clock", Limits())]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("objective", "limits"), ASKED)
def test_every_command_says_the_same(case: str, objective: str | None, limits: Limits) -> None:
    profiles = CASES[case]()
    model = model_for(shipped_model(profiles)[1], profiles)
    advice = advise(model, profiles, objective, limits)
    predictions = model.predict(profiles, COVERAGE)
    count, shape = len(profiles.kernels), (len(profiles.kernels), *model.grid.shape)
    table, run = predictions.columns(), predictions.whole_run()
    of_kernels = {name: table[name].reshape(shape) for name in COSTS.values()}
    of_run = {name: run[name].reshape(model.grid.shape) for name in COSTS.values()}

    def assert_same(point: Choice, predicted: dict[str, np.ndarray]) -> None:
        for name, values in predicted.items():
            said = getattr(point, name)
            value = math.nan if said is None else said
            expected = values[model.grid.index(point.config)]
            assert value == pytest.approx(expected, rel=1e-9, nan_ok=True), name

    for point in (advice.whole_run.best, advice.whole_run.base, *advice.whole_run.front):
        assert_same(point, of_run)
    for quantity, own in advice.held.items():
        high = table[f"{QUANTITIES[quantity]}_high"].reshape(shape)
        np.testing.assert_allclose(high, own.high, rtol=1e-9)
    marked = np.array([ABOVE_LIMIT in flags for flags in table["flags"]]).reshape(shape)
    assert marked.any() == ("above" in case)
    for k, of_advice in enumerate(advice.kernels):
        of_kernel = {name: values[k] for name, values in of_kernels.items()}
        for point in (of_advice.best, of_advice.base, *of_advice.front):
            assert_same(point, of_kernel)
            assert not marked[k][model.grid.index(point.config)]
        assert [flag for flag in of_advice.flags if flag != TOO_SLOW] == [*predictions.flags[k]]
    grid = surfaces(advice, model, profiles)
    assert grid is not None
    order = sorted(range(count), key=lambda k: -(advice.kernels[k].share_percent or 0))
    for k, carried in zip(order, grid["kernels"], strict=True):
        for name in carried.keys() & COSTS.keys():
            on_page, *_ = on_grid({"grid": grid}, carried, name)
            np.testing.assert_allclose(on_page, of_kernels[COSTS[name]][k], rtol=2e-4)
    c, e, m = shape[1:]
    states = np.array(list(grid["state"])).reshape(c, m, e).swapaxes(1, 2)
    is_offered = states != KEEPS_MEMORY
    assert ((states == NO_SUPPLY) == marked.any(axis=0))[is_offered].all()
