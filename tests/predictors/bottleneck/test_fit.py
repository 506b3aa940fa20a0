"""The forward models of `bottleneck`, which NumPy predicts with and torch trains: one formula each.

Gradients against finite differences, training against prediction at the same parameters, fits in a
batch against fits alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime
from synthetic import bottleneck_kernels as made

from mlscale import ConfigGrid, HardwareConfig, Measurements
from mlscale.arrays import Floats
from mlscale.predictors.bottleneck.curve import (
    BottleneckCurve,
    GridRatios,
    KernelLoad,
    curve_priors,
    p_norm,
    physics_logit,
)
from mlscale.predictors.bottleneck.fit import (
    DATA_WEIGHT,
    ROBUST_SCALE,
    CurveFit,
    GpuKernels,
    Posterior,
    PowerFit,
    _places,
    curve_posterior,
    power_posterior,
)
from mlscale.predictors.bottleneck.model import PowerSplit
from mlscale.predictors.conditioning import SurfacePrior


def kernels_of(table: Measurements, count: int | None = None) -> GpuKernels:
    kernels = GpuKernels.from_table(table, table.grid.mid)
    return kernels.select(np.arange(len(kernels))[:count])


def curve_fit(*tables: Measurements, count: int | None = None) -> CurveFit:
    return CurveFit(tuple(kernels_of(table, count) for table in tables), 1.0)


def one_gpu() -> CurveFit:
    return curve_fit(made.measurements(5))


def cu_axis() -> CurveFit:
    return curve_fit(made.with_cu_axis(5))


def two_gpus() -> CurveFit:
    other = replace(made.measurements(4, seed=3), device="gtx1080ti")
    return curve_fit(made.measurements(5), other)


CURVE_FITS = [one_gpu, cu_axis, two_gpus]


def power_fit() -> PowerFit:
    kernels = kernels_of(made.measurements(5))
    return PowerFit((kernels,), kernels.gpu)


def somewhere(start: Floats, scale: float) -> Floats:
    """Parameters away from the start."""
    return start + scale * np.random.default_rng(1).normal(size=start.shape)


class TestCurve:
    def test_a_kernel_of_one_part_takes_its_slowdown(self) -> None:
        """Relative to the rest, whose slowdown is 0."""
        slowdowns = [np.array([[[0.0, -0.7]]])]
        for logit, expected in ((40.0, -0.7), (-40.0, 0.0)):
            surface = p_norm(np, [np.array([logit])], slowdowns, np.array([4.0]))
            assert surface.ravel() == pytest.approx([0, expected], abs=1e-9)

    def test_three_parts_on_two_axes(self) -> None:
        # By hand: p = 1, shares 1/3 each; memory x 4 at the second clock, core x 7 at the second
        # CU count: (1 + 1 + 1) / 3, (1 + 4 + 1) / 3, (1 + 1 + 7) / 3, (1 + 4 + 7) / 3.
        memory, core = np.log([[[1.0, 4.0]]]), np.log([[[1.0], [7.0]]])
        surface = p_norm(np, [np.zeros(1), np.zeros(1)], [memory, core], np.ones(1))
        assert np.exp(surface)[0] == pytest.approx(np.array([[1, 2], [3, 4]]))

    def test_the_rest_has_a_slowdown_too(self) -> None:
        # By hand: p = 1, shares 1/2 each; memory x 4 at the second clock, the rest x 3 at the
        # second CU count: (1 + 1) / 2, (1 + 4) / 2, (3 + 1) / 2, (3 + 4) / 2.
        memory, rest = np.log([[[1.0, 4.0]]]), np.log([[[1.0], [3.0]]])
        surface = p_norm(np, [np.zeros(1)], [memory], np.ones(1), rest)
        assert np.exp(surface)[0] == pytest.approx(np.array([[1, 2.5], [2, 3.5]]))

    def test_more_use_is_a_larger_share(self) -> None:
        odds = physics_logit(np, np.log(np.linspace(0.05, 0.99, 20)), np.array([5.0]))
        assert (np.diff(odds) > 0).all()
        # By hand: the odds of u^p, with 0.02 added to what is left: u = 0.5, p = 2.
        half = physics_logit(np, np.log([0.5]), np.array([2.0]))
        assert half == pytest.approx(np.log(0.25 / 0.77))

    def test_a_use_of_next_to_nothing_has_no_share(self) -> None:
        # At 1/12 of the memory clock a share s makes time (1 - s + s 12^5)^(1/5): by hand, 0.02^5
        # makes 1.00016 of it, where a floor of 0.001 makes 3.
        logit = physics_logit(np, np.log([0.02]), np.array([5.0]))
        surface = p_norm(np, [logit], [np.log([[[12.0]]])], np.array([5.0]))
        assert np.exp(surface) == pytest.approx(1.00016, abs=1e-5)

    def test_few_waves_issue_faster(self) -> None:
        """By hand, a = 1: 4 waves per SIMD can issue 5 / 4 of what very many can, 2 waves 3 / 2.

        So a use of 0.5 is one of 0.4; and twice the CUs, with 2 waves each, leave of the work of 4
        waves, 4 / (5 / 4) = 3.2, 2 / (3 / 2) = 4 / 3.
        """
        kernels = np.ones(1)
        waves, no_turns = np.array([[4.0, 2.0]]), np.zeros((1, 2))
        load = KernelLoad(
            kernels,
            0.5 * kernels,
            waves[:, 0],
            waves,
            0 * kernels,
            no_turns,
            kernels,
            np.zeros((1, 1)),
        )
        grid = ConfigGrid((8, 16), (700.0,), (700.0,))
        ratios = GridRatios.from_grid(grid, grid.config((0, 0, 0)))
        priors = curve_priors([grid], shares=2)
        values = {name: np.full(prior.shape, 0.0) for name, prior in priors.items()}
        values["sharpness"][:] = np.log(3)
        curve = BottleneckCurve.from_values(np, values, 0, load, ratios)
        assert curve.logits[1] == pytest.approx(physics_logit(np, np.log([0.4]), np.array([3.0])))
        assert np.exp(curve.slowdowns[1]).ravel() == pytest.approx([1, (4 / 3) / 3.2])

    def test_a_table_is_0_at_the_base_and_interpolated_between_steps(self) -> None:
        """By hand: 200 MHz is half way from 100 to 400 in the logarithm; the base is 400."""
        trained = ConfigGrid((16,), (100.0, 400.0, 500.0), (700.0,))
        base = HardwareConfig(16, 400.0, 700.0)
        grid = ConfigGrid((16,), (200.0, 400.0, 500.0), (700.0,))
        _, engine, memory = GridRatios.from_grid(grid, base, trained).tables
        assert np.array([0.3, 9.0, 0.1]) @ engine == pytest.approx([0.15, 0, 0.1])
        assert (memory == 0).all()


class TestPowerSplit:
    def test_by_hand(self) -> None:
        """30 W idle, 70 W dynamic, half of it memory's, at twice the time.

        Core energy 1.2, memory energy 0.8 per work: 30 + 70 (0.6 + 0.4) / 2 = 65 W of 100 W;
        with 20 W idle there and all energy memory's: 20 + 70 0.8 / 2 = 48 W.
        """
        core, memory = np.log([1.0, 1.2, 1.2]), np.log([1.0, 0.8, 0.8])
        idle_w, base_w = np.array([30.0, 30.0, 20.0]), np.array([100.0, 100.0])
        split = PowerSplit(np, idle_w, base_w, core, memory, 0)
        log_time = np.log([[1.0, 2.0, 2.0]] * 2)
        power = np.exp(split.log_power(np.array([0.0, 50.0]), log_time))
        assert power[0] == pytest.approx([1, 0.65, 0.55])
        assert power[1, 2] == pytest.approx(0.48)

    def test_idle_power_above_the_base_power_leaves_a_watt(self) -> None:
        split = PowerSplit(np, np.full(2, 30.0), np.array([20.0]), np.zeros(2), np.zeros(2), 0)
        # By hand: (30 + 1 / 2) / (30 + 1).
        power = np.exp(split.log_power(np.zeros(1), np.log([[1.0, 2.0]])))
        assert power[0, 1] == pytest.approx(30.5 / 31)


class TestGradient:
    """Against finite differences of the forward model, away from the start."""

    @pytest.mark.parametrize("make", CURVE_FITS)
    def test_of_time(self, make: Callable[[], CurveFit]) -> None:
        self.check(curve_posterior([make()]), 0.1)

    def test_of_power(self) -> None:
        self.check(power_posterior([power_fit()]), 0.05)

    @staticmethod
    def check(posterior: Posterior, away: float) -> None:
        [point] = somewhere(posterior.start, away)
        numeric = approx_fprime(point, lambda v: posterior.evaluate(v[None])[0][0], 1e-7)
        assert posterior.evaluate(point[None])[1][0] == pytest.approx(numeric, rel=1e-3, abs=2e-2)


def robust(errors: Sequence[Floats]) -> float:
    """Minus the log likelihood, in NumPy."""
    size = [(np.sqrt(e**2 + ROBUST_SCALE**2) - ROBUST_SCALE).mean(axis=1).sum() for e in errors]
    return DATA_WEIGHT * sum(size)


class TestTrainingIsPrediction:
    """The loss in torch is that of what the model of the same parameters predicts in NumPy."""

    @pytest.mark.parametrize("make", CURVE_FITS)
    def test_of_time(self, make: Callable[[], CurveFit]) -> None:
        fit = make()
        loss, values = self.somewhere(curve_posterior([fit]))
        model = fit.model(values, _places([fit])[0])
        errors = [
            model.prior(own.traits, gpu, number).predicted() - own.log_ratios["time"]
            for number, (own, gpu) in enumerate(zip(fit.kernels, model.gpus, strict=True))
        ]
        assert loss == pytest.approx(robust(errors), rel=1e-9)

    def test_of_power(self) -> None:
        """Of power at the times that were measured."""
        fit = power_fit()
        loss, values = self.somewhere(power_posterior([fit]))
        model, [kernels] = fit.model(values), fit.kernels
        measured = SurfacePrior(
            log_ratios=lambda _: kernels.log_ratios["time"],
            mean=np.zeros((1, 5)),
            variance=np.ones((1, 5)),
            misfit=np.zeros((1, made.CLOCKS.size)),
        )
        prior = model.prior(kernels.traits.use, kernels.base_w, fit.gpu, measured)
        predicted = prior.predicted()[:, made.CLOCKS.size :]
        assert loss == pytest.approx(robust([predicted - kernels.log_ratios["power"]]), rel=1e-9)

    @staticmethod
    def somewhere(posterior: Posterior) -> tuple[float, dict[str, Floats]]:
        """The loss away from the start, and the parameters there."""
        values = posterior.named(torch.from_numpy(somewhere(posterior.start, 0.1)))
        return posterior.loss(values).item(), {n: own[0].numpy() for n, own in values.items()}


class TestBatch:
    @pytest.mark.parametrize("table", [made.measurements(8), made.with_cu_axis(8)])
    def test_value_and_gradient_of_fits_of_several_sizes(self, table: Measurements) -> None:
        """Each fit's is what it is alone, and nothing comes of what fills up the batch."""
        counts = (8, 3, 5)
        fits = [curve_fit(table, count=count) for count in counts]
        together = curve_posterior(fits)
        points = somewhere(together.start, 0.05)
        alpha = together.named(torch.from_numpy(points.copy()))["alpha"].numpy()
        common = points.shape[1] - alpha[0].size  # the numbers of the curve
        for b, count in enumerate(counts):
            alpha[b][:, count:] = 0
        points[:, common:] = alpha.reshape(len(fits), -1)
        values, gradients = together.evaluate(points)
        for b, (fit, count) in enumerate(zip(fits, counts, strict=True)):
            own = np.concatenate([points[b, :common], alpha[b][:, :count].ravel()])
            [value], [gradient] = curve_posterior([fit]).evaluate(own[None])
            assert values[b] == pytest.approx(value, rel=1e-12)
            assert gradients[b, :common] == pytest.approx(gradient[:common], abs=1e-9)
            assert (gradients[b, common:].reshape(alpha[b].shape)[:, count:] == 0).all()
