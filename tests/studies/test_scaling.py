"""How made power laws scale: closed forms."""

import pytest
from synthetic import kernels as made

from mlscale.studies.scaling import scaling_rows, speed_ups, unlike_kernels

DATA = made.measurements(power=False)


def test_gains_are_the_laws_powers() -> None:
    """Time = cu^a engine^b memory^c, over 4 to 16 CUs, 400 to 1000 MHz, 400 to 1000 MHz."""
    for row in scaling_rows(DATA):
        cu, engine, memory = made.LAWS[row["kernel"][:-1]]
        gains = {"cu_count": 4**-cu, "engine_mhz": 2.5**-engine, "memory_mhz": 2.5**-memory}
        assert row["gain"] == pytest.approx(gains)
        assert row["speed_up"] == pytest.approx(4**-cu * 2.5 ** -(engine + memory))


def test_a_kernel_that_loses_by_compute_units_is_fastest_on_the_fewest() -> None:
    """The law 'contended' takes cu^0.3: 4^0.3 times as long on 16 CUs as on 4."""
    row = next(row for row in scaling_rows(DATA) if row["kernel"] == "contended0")
    assert row["fastest"] == {"cu_count": 4, "engine_mhz": 1000.0, "memory_mhz": 1000.0}
    assert row["highest_behind_percent"] == pytest.approx(100 * (4**0.3 - 1))


def test_unlike_kernels_are_one_of_each_law() -> None:
    """Twelve kernels of four laws: any two of one law have the same surface."""
    positions = unlike_kernels(DATA, 4)
    assert {DATA.kernels[k][:-1] for k in positions} == set(made.LAWS)
    assert DATA.kernels[positions[0]].startswith("compute")  # 4 * 2.5 is the largest speed-up


def test_the_lowest_configuration_is_one() -> None:
    assert speed_ups(DATA)[:, 0, 0, 0] == pytest.approx(1)
