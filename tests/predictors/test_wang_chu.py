"""The predictors wang-chu and max-overlap, and the rule behind the latter."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic.warps import (
    BASE,
    COMPUTE_BOUND,
    GRID,
    KERNEL,
    MEMORY_BOUND,
    derive,
    gpu_file,
    measurements,
    profiles_of,
)

from mlscale.data.grid import ConfigGrid, HardwareConfig
from mlscale.errors import InputError
from mlscale.papers.wang_chu import max_overlap_factor
from mlscale.papers.wang_chu_inputs import load_gpu
from mlscale.predictors.wang_chu import MaxOverlap, WangChu

GTX_980 = load_gpu("gtx980")
# By hand, with KERNEL of synthetic/warps.py and 100 000 warps, at 700 / 700 MHz: compute
# 0.25 x 42 + 10 = 20.5 cycles a warp; memory 16 x (0.5 + 0.5 x 9.326243) = 82.609943; 32 warps
# a round; 100 000 / (32 x 16) rounds of 700 000 cycles per ms.
Q_CYCLES = 32 * 82.609943
ROUNDS = 100_000 / (32 * 16)
Q_MS = Q_CYCLES * ROUNDS / 700_000


class TestRule:
    def test_exposed_time_stays_in_engine_cycles(self) -> None:
        """By hand: base time Q + X with X = 300 cycles; at 1000 / 400 MHz memory takes longer."""
        time = (Q_CYCLES + 300) * ROUNDS / 700_000
        found = max_overlap_factor(derive(MEMORY_BOUND), GTX_980, (700, 700), [time], 1000, 400)
        # (805.03 / 400 + 8.1762) x 2.5 = 25.4719375.
        q = 32 * 16 * (0.5 + 0.5 * 25.4719375)
        assert found == pytest.approx((q + 300) / 1000 / ((Q_CYCLES + 300) / 700), rel=1e-6)

    def test_a_base_faster_than_the_model_scales_it(self) -> None:
        """By hand: half the modelled time; the ratio of the models remains."""
        found = max_overlap_factor(derive(MEMORY_BOUND), GTX_980, (700, 700), [Q_MS / 2], 1000, 400)
        q = 32 * 16 * (0.5 + 0.5 * 25.4719375)
        assert found == pytest.approx(q / 1000 / (Q_CYCLES / 700), rel=1e-6)

    def test_a_bottleneck_can_change(self) -> None:
        """By hand: all hits; 0.25 x 392 + 10 = 108 compute cycles against memory's 16."""
        hits = {**MEMORY_BOUND, "dram_read_transactions": 0.0, "dram_write_transactions": 0.0}
        inputs = derive({**hits, "inst_per_warp": 400.0})
        q_ms = 32 * 108 * ROUNDS / 700_000
        found = max_overlap_factor(inputs, GTX_980, (700, 700), [q_ms], [350, 700, 1400], 700)
        np.testing.assert_allclose(found, [[2, 1, 0.5]], rtol=1e-12)

    @given(
        time=st.floats(1e-3, 1e3),
        engine=st.floats(100, 3000),
        memory=st.floats(100, 6000),
        faster=st.floats(1, 3),
    )
    @settings(max_examples=50)
    def test_bounds(self, time: float, engine: float, memory: float, faster: float) -> None:
        """The base is met exactly; a faster clock never slows, nor gains more than its own factor.

        But for a DRAM delay that falls with the memory clock: 805.03 / f + 8.1762 gains up to
        that term besides.
        """
        inputs = derive(MEMORY_BOUND)

        def factor(engine_mhz: float, memory_mhz: float) -> float:
            clocks = (engine, memory)
            found = max_overlap_factor(inputs, GTX_980, clocks, [time], engine_mhz, memory_mhz)
            return float(found[0])

        assert factor(engine, memory) == pytest.approx(1, rel=1e-12)
        assert 1 / faster - 1e-12 <= factor(engine * faster, memory) <= 1 + 1e-12
        extra = (805.03 / memory + 8.1762) / (805.03 / memory / faster + 8.1762)
        assert 1 / faster / extra - 1e-12 <= factor(engine, memory * faster) <= 1 + 1e-12


class TestPredictor:
    def test_the_paper_scaled_to_the_base(self) -> None:
        """By hand, times of (11): lat + s + d Aw o cycles, at 700 / 700 and at 1000 / 400 MHz.

        d o as of Q_CYCLES, 82.609943, then 16 (0.5 + 0.5 x 25.4719375). s: 20.5 cycles in 3 periods
        of a warp, 2 loads and 1 store. lat: half of 222 and half of 500.1, then of 834.27.
        """
        found = WangChu().fit([], []).predict(profiles_of(MEMORY_BOUND), GRID)
        periods = (1_600_000 / 8 + 400_000 / 4) / 100_000
        at_base = 361.05 + 20.5 / periods + 32 * 82.609943
        elsewhere = 528.135 + 20.5 / periods + 32 * 16 * (0.5 + 0.5 * 25.4719375)
        expected = (elsewhere / 1000) / (at_base / 700)
        assert found.values[0, 0, 2, 0] == pytest.approx(expected, rel=1e-6)

    def test_it_needs_no_training(self) -> None:
        found = MaxOverlap().fit([], []).predict(profiles_of(MEMORY_BOUND, COMPUTE_BOUND), GRID)
        assert found.values.shape == (2, 1, 3, 3)
        assert found.base == BASE
        np.testing.assert_allclose(found.at(BASE)[0], 1, rtol=1e-12)
        # The compute-bound kernel has an exposed time besides, in engine cycles too.
        np.testing.assert_allclose(
            found.values[1, 0] * np.array(GRID.engine_mhz)[:, None], 700, rtol=1e-12
        )

    def test_a_grid_it_was_not_trained_on(self) -> None:
        elsewhere = ConfigGrid((16,), (1500.0,), (3500.0,))
        predictor = WangChu().fit(measurements(), BASE)
        profiles = measurements().profiles(BASE)
        assert predictor.predict(profiles).grid == GRID
        assert predictor.predict(profiles, elsewhere).values.shape == (2, 1, 1, 1)

    @pytest.mark.parametrize("cu_counts", [(8,), (8, 16)])
    def test_other_cu_counts_are_refused(self, cu_counts: tuple[int, ...]) -> None:
        grid = ConfigGrid(cu_counts, (700.0,), (700.0,))
        with pytest.raises(InputError, match="'gtx980' holds for its 16 CUs, not for 8"):
            WangChu().fit([], []).predict(profiles_of(KERNEL), grid)
        slice_of_gpu = profiles_of(KERNEL, base=HardwareConfig(8, 700.0, 700.0))
        with pytest.raises(InputError, match="not for 8"):
            WangChu().fit([], []).predict(slice_of_gpu, GRID)

    def test_power_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"^'wang-chu' predicts time, not 'power'$"):
            WangChu(quantity="power").fit(measurements(), BASE)
        assert WangChu.quantities == ("time",)

    def test_what_cannot_be_predicted_is_refused_at_fit(self) -> None:
        with pytest.raises(InputError, match="there is no device 'made-gpu'"):
            WangChu().fit(replace(measurements(), device="made-gpu"), BASE)
        names = tuple(name.replace("warps", "waves") for name in KERNEL)
        with pytest.raises(InputError, match="no column 'warps'"):
            WangChu().fit(replace(measurements(), counter_names=names), BASE)
        fewer = replace(measurements(), grid=ConfigGrid((8,), GRID.engine_mhz, GRID.memory_mhz))
        with pytest.raises(InputError, match="for its 16 CUs, not for 8"):
            WangChu().fit(fewer, (0, 1, 1))

    def test_flags_say_what_lies_outside_the_scope(self) -> None:
        profiles = profiles_of({**KERNEL, "inst_fp_64": 6400.0}, KERNEL)
        flags = WangChu().fit([], []).predict(profiles, GRID).flags
        assert "FP64" in flags[0][0].text
        assert flags[1] == ()

    @pytest.mark.parametrize("training", [True, False])
    def test_state_through_json_gives_the_same(self, training: bool) -> None:
        profiles = measurements().profiles(BASE)
        fitted = WangChu().fit(*((measurements(), BASE) if training else ([], [])))
        restored = WangChu().restore(json.loads(json.dumps(fitted.state())))
        grid = None if training else GRID
        np.testing.assert_array_equal(
            restored.predict(profiles, grid).values, fitted.predict(profiles, grid).values
        )

    def test_the_parameters_of_a_file(self, tmp_path: Path) -> None:
        """By hand: 16 (0.5 + 0.5 x 10) = 88 cycles a warp at 700 / 700 MHz, 208 at 1000 / 400.

        The base is faster than the model, so the ratio of the models remains.
        """
        grid = ConfigGrid((16,), (700.0, 1000.0), (400.0, 700.0))
        profiles = replace(profiles_of(MEMORY_BOUND), time_ms=np.array([0.1]))
        fitted = MaxOverlap(gpu=gpu_file(tmp_path)).fit([], [])
        factors = fitted.predict(profiles, grid).values[0, 0]
        assert factors[1, 0] == pytest.approx(208 / 88 * 700 / 1000)
        (tmp_path / "gpu.json").unlink()
        restored = MaxOverlap(gpu="gone").restore(json.loads(json.dumps(fitted.state())))
        np.testing.assert_array_equal(restored.predict(profiles, grid).values[0, 0], factors)

    def test_a_file_that_is_not_of_the_gpu(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="describes 'p100', not 'gtx980'"):
            MaxOverlap(gpu=gpu_file(tmp_path, device="p100")).fit(measurements(), BASE)
        with pytest.raises(InputError, match="has no parameters for wang-chu"):
            MaxOverlap(gpu=gpu_file(tmp_path, wang_chu=None)).fit([], [])
