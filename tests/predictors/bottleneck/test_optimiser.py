"""L-BFGS for many functions at once: it ends where scipy's ends, and no function moves another."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from mlscale.arrays import Floats
from mlscale.predictors.bottleneck.fit import minimize_together

STARTS = np.array([[-1.2, 1.0, 0.5], [0.3, -0.7, 2.0], [1.0, 1.0, 1.0]])


def rosenbrock(points: Floats) -> tuple[Floats, Floats]:
    return np.array([rosen(p) for p in points]), np.array([rosen_der(p) for p in points])


def test_rosenbrocks_function() -> None:
    """Closed form: the least is 0, at ones, where the third start is already."""
    assert minimize_together(rosenbrock, STARTS, 100) == pytest.approx(np.ones((3, 3)), abs=1e-4)


def test_as_many_steps_as_scipy_bring_as_far() -> None:
    """Half of the way: within a factor of what scipy's L-BFGS-B leaves after as many steps."""
    for start in STARTS[:2]:
        [found] = minimize_together(rosenbrock, start[None], 20)
        options = {"maxiter": 20, "maxcor": 20}
        scipys = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", options=options)
        assert rosen(found) < max(3 * scipys.fun, 1e-6)


def test_together_as_alone() -> None:
    together = minimize_together(rosenbrock, STARTS, 12)
    for start, point in zip(STARTS, together, strict=True):
        assert (point == minimize_together(rosenbrock, start[None], 12)[0]).all()


def test_a_step_to_where_there_is_no_number_is_shortened() -> None:
    """-100 x - log(1 - x), least at 0.99: closed form. The first steps end at 1 and 1.5."""

    def barrier(points: Floats) -> tuple[Floats, Floats]:
        with np.errstate(all="ignore"):
            values = -100 * points[:, 0] - np.log(1 - points[:, 0])
            return values, -100 + 1 / (1 - points)

    found = minimize_together(barrier, np.array([[0.0], [0.5]]), 50)
    assert found == pytest.approx(0.99, abs=1e-6)
