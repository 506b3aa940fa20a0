"""Wang and Chu's equations of tiles in shared memory; (18) to (21) alone: their example."""

import numpy as np
import pytest

from mlscale.errors import InputError
from mlscale.papers.wang_chu_gpus import load_gpu
from mlscale.papers.wang_chu_inputs import WarpInputs
from mlscale.papers.wang_chu_tiles import Tiles, predict_tiled_time_ms


def kernel(**changed: float) -> WarpInputs:
    counts = {
        "warps": 32_768,
        "resident_warps": 64,
        "global_transactions": 256,
        "l2_hit_rate": 1,
        "memory_instructions": 64,
        "compute_instructions": 19_200,
    }
    return WarpInputs.of(**{**counts, **changed})


def test_a_kernel_of_the_gtx_980() -> None:
    """By hand: 19 200 x 0.25 / (32 x 50) = 3 cycles between accesses; all hits, delay 1, latency
    222; 8 transactions a tile. P1 = 6 + 8 x 64 + 222 + 28 = 768; P2 = 3 x 31 + 31 x 50 = 1643; P3
    = 6 + 8 x 32 + 250 = 512. 768 + 32 x 2155 = 69 728 cycles for each of 32 rounds, at 700 MHz.
    """
    found = predict_tiled_time_ms(kernel(), load_gpu("gtx980"), Tiles(32, 50, 32), 700, 700)
    assert found == pytest.approx(69_728 * 32 / 700e3, rel=1e-12)


def test_fp64_is_charged_and_no_transaction_is_none() -> None:
    """By hand, as above but for 2 x 1600 more cycles of FP64, 8 each of 400 instructions: 5 cycles
    between accesses. Without transactions P1 = P3 = 10 + 222 + 28 and P2 = 5 x 31 + 33 x 50.
    """
    inputs = kernel(fp64_instructions=400, global_transactions=0)
    found = predict_tiled_time_ms(inputs, load_gpu("gtx980"), Tiles(32, 50, 32), 700, 700)
    assert found == pytest.approx((260 + 32 * (1805 + 260)) * 32 / 700e3, rel=1e-12)


def test_several_kernels() -> None:
    many = kernel(warps=np.array([32_768.0, 65_536.0]))
    found = predict_tiled_time_ms(many, load_gpu("gtx980"), Tiles(32, [50, 50], 32), 700, 700)
    assert found[1] == pytest.approx(2 * found[0])


def test_no_tiles_are_refused() -> None:
    with pytest.raises(InputError, match=r"count must be .* at least 1, not 0"):
        predict_tiled_time_ms(kernel(), load_gpu("gtx980"), Tiles(0, 50, 32), 700, 700)
