"""GPUs of Wang and Chu's model against equations.md and the vendor's sheets; the fits."""

from collections.abc import Callable

import numpy as np
import pytest

from mlscale.data.devices import device_keys, load_device
from mlscale.errors import InputError
from mlscale.papers.wang_chu import dram_delay_cycles, dram_latency_cycles
from mlscale.papers.wang_chu_inputs import (
    fit_dram_delay,
    fit_dram_latency,
    ideal_dram_delay,
    load_gpu,
    require_cu_count,
    specification_gpu,
)

# equations.md, 1.4, row by row: aL, bL, aD, bD, L2 latency and delay, shared latency and
# delay, instruction factor x 32 / cores, #SM, ideal DRAM delay; FP64 delay, 32 / FP64 lanes.
PARAMETERS = {
    "gtx980": (222.78, 277.32, 805.03, 8.1762, 222, 1, 28, 1, 0.25, 16, 8.0, 8),
    "gtx1080ti": (178.22, 396.72, 7208.57, 10.0305, 220, 1.3, 28, 0.95, 0.3, 28, 10.18, 8),
    "titanx": (222.78, 500, 1300, 11.539, 222, 1.2, 28, 1, 0.25, 28, 9.33, 8),
    "p100": (26.73, 266.23, 176.26, 1.8, 263, 1, 28, 1, 0.7, 56, 1.75, 1),
    "v100": (26.73, 133.23, 251.26, 2.5, 263, 1, 28, 1, 0.25, 80, 2.5, 0.5),
}
# Paper, Table II: memory clock [MHz], latency [cycles]; engine at 400 MHz (equations.md, 1.3).
TABLE_II = np.array(
    [
        (400, 500),
        (500, 455.5),
        (600, 425.8),
        (700, 404.6),
        (800, 388.7),
        (900, 376.3),
        (1000, 366.4),
    ]
)
# Paper, Table III: clock of engine and memory [MHz], delay [cycles], bandwidth efficiency.
TABLE_III = np.array(
    [
        (400, 10.06, 0.76),
        (500, 9.76, 0.7813),
        (600, 9.54, 0.798),
        (700, 9.31, 0.8183),
        (800, 9.19, 0.8342),
        (900, 9.06, 0.8451),
        (1000, 9.0, 0.85),
    ]
)


@pytest.mark.parametrize("key", PARAMETERS)
class TestRows:
    def test_parameters(self, key: str) -> None:
        gpu = load_gpu(key)
        assert (
            gpu.dram_latency_slope,
            gpu.dram_latency_offset,
            gpu.dram_delay_slope,
            gpu.dram_delay_offset,
            gpu.l2_latency,
            gpu.l2_delay,
            gpu.shared_latency,
            gpu.shared_delay,
            pytest.approx(gpu.instruction_delay),
            gpu.cu_count,
            pytest.approx(ideal_dram_delay(load_device(key)), abs=5e-3),
            gpu.fp64_delay,
        ) == PARAMETERS[key]
        assert gpu.max_resident_warps == 64

    def test_delay_is_the_ideal_one_at_a_plausible_efficiency(self, key: str) -> None:
        """Saturated DRAM gives 75 to 91 % of its peak: at the data sheet's memory clock, and on
        the GTX 980 within the clocks of its micro-benchmark (at 3505 MHz its fit gives 95 %).
        """
        gpu, device = load_gpu(key), load_device(key)
        assert device.datasheet is not None
        clock = 700 if key == "gtx980" else device.datasheet.memory_mhz
        delay = dram_delay_cycles(clock, clock, gpu.dram_delay_slope, gpu.dram_delay_offset)
        assert 0.75 < ideal_dram_delay(device) / float(delay) < 0.91


@pytest.mark.parametrize("key", [key for key in device_keys() if load_device(key).datasheet])
def test_ideal_delay_against_the_data_sheet(key: str) -> None:
    """Vendor's sheet: at this delay all CUs together draw the printed bandwidth.

    A transaction of 32 bytes per CU and delay. Sheets that print TB/s round: 4.92 to 4.8 (H200).
    """
    device = load_device(key)
    sheet = device.datasheet
    assert sheet is not None
    gb_per_s = device.cu_count * 32 * sheet.memory_mhz / ideal_dram_delay(device) / 1e3
    assert gb_per_s == pytest.approx(sheet.bandwidth_gb_per_s, rel=0.025)


def test_ideal_delay_against_table_iii() -> None:
    """equations.md, 1.4: delay x efficiency is 7.61 to 7.67, 5 % under the ideal 8.0."""
    products = TABLE_III[:, 1] * TABLE_III[:, 2]
    assert products.min() >= 7.61
    assert products.max() <= 7.67
    assert ideal_dram_delay(load_device("gtx980")) == 8
    assert products.mean() / 8 == pytest.approx(0.955, abs=0.002)


def test_latency_is_table_ii_with_its_engine_clock_mended() -> None:
    found = dram_latency_cycles(400, TABLE_II[:, 0], slope=222.78, offset=277.32)
    np.testing.assert_allclose(found, TABLE_II[:, 1], atol=0.15)


def test_authors_fit_of_table_iii_is_close_to_it() -> None:
    gpu = load_gpu("gtx980")
    clock = TABLE_III[:, 0]
    found = dram_delay_cycles(clock, clock, gpu.dram_delay_slope, gpu.dram_delay_offset)
    np.testing.assert_allclose(found, TABLE_III[:, 1], rtol=0.015)


@pytest.mark.parametrize("key", device_keys())
def test_specification_default(key: str) -> None:
    """Closed form, from the device table: units and bus alone, 85 % of the bandwidth."""
    device = load_device(key)
    gpu = specification_gpu(device)
    assert gpu.dram_delay_slope == 0
    assert gpu.dram_delay_offset == pytest.approx(ideal_dram_delay(device) / 0.85)
    assert gpu.instruction_delay == device.wave_size / device.lanes_per_cu
    assert gpu.fp64_delay == device.wave_size / device.fp64_lanes_per_cu
    assert gpu.cu_count == device.cu_count
    assert gpu.max_resident_warps == device.max_waves_per_cu
    assert "specification only" in gpu.source


def test_a_device_without_a_row_gets_the_default() -> None:
    assert load_gpu("rtx8000") == specification_gpu(load_device("rtx8000"))
    # By hand: 72 SMs x 32 bytes / (2 x 48 bytes) / 0.85; 2 of 64 lanes do FP64.
    assert load_gpu("rtx8000").dram_delay_offset == pytest.approx(24 / 0.85)
    assert load_gpu("rtx8000").fp64_delay == 16


def test_another_number_of_cus() -> None:
    gpu = load_gpu("gtx980")
    require_cu_count(gpu, (16, 16))
    with pytest.raises(InputError, match="of 'gtx980' holds for its 16 CUs, not for 8"):
        require_cu_count(gpu, (16, 8))


class TestFit:
    def test_table_iii(self) -> None:
        """Closed form: least squares of the printed Table III."""
        fit = fit_dram_delay(TABLE_III[:, 0], TABLE_III[:, 0], TABLE_III[:, 1])
        assert fit.slope == pytest.approx(726.127, abs=5e-4)
        assert fit.offset == pytest.approx(8.28061, abs=5e-6)
        assert fit.r_squared == pytest.approx(0.994, abs=5e-4)

    def test_table_ii(self) -> None:
        """Paper, Table II with the engine at 400 MHz; it returns (4)."""
        fit = fit_dram_latency([400] * 7, *TABLE_II.T)
        assert fit.slope == pytest.approx(222.78, abs=0.2)
        assert fit.offset == pytest.approx(277.32, abs=0.2)
        assert fit.r_squared > 0.9999

    @pytest.mark.parametrize(
        ("fit", "columns", "message"),
        [
            (fit_dram_latency, ([400, 500], [400], [1, 2]), "as many engine clocks .* not 2, 1, 2"),
            (fit_dram_latency, ([400, -1], [400, 500], [1, 2]), "engine_mhz must be .* not -1"),
            (
                fit_dram_latency,
                ([400, 800], [400, 800], [1, 2]),
                "two or more ratios of engine .* not 1",
            ),
            (fit_dram_delay, ([400, 500], [700, 700], [5, 6]), "two or more memory clocks, not 1"),
        ],
    )
    def test_bad_samples(
        self, fit: Callable[..., object], columns: tuple[list[float], ...], message: str
    ) -> None:
        with pytest.raises(InputError, match=message):
            fit(*columns)
