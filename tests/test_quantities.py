"""Numbers with units, as the command line and the settings of a GPU take them; by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic.tidy import refused

from mlscale.quantities import UNITS, quantity, with_units


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("5", "%", 5.0),
        ("5%", "%", 5.0),
        ("5 %", "%", 5.0),
        ("500W", "W", 500.0),
        ("0.5kW", "W", 500.0),
        ("0.5 KW", "W", 500.0),
        ("1.2GHz", "MHz", 1200.0),
        ("1.005 ghz", "MHz", 1005.0),
        ("1e3MHz", "MHz", 1000.0),
        ("66 ms", "ms", 66.0),
        ("1.5s", "ms", 1500.0),
        ("100ms", "s", 0.1),
        ("-3", "", -3.0),
    ],
)
def test_quantities(text: str, unit: str, number: float) -> None:
    assert quantity(text, unit) == number


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("500V", "W", "'500V' has the unit 'V'; give W or kW"),
        ("5mW", "W", "'5mW' has the unit 'mW'; give W or kW"),  # or a megawatt
        ("5W", "%", "'5W' has the unit 'W'; give %"),
        ("3 s", "", "'3 s' has the unit 's'; give a plain number"),
        ("fast", "MHz", "'fast' is not a number"),
        ("1_0W", "W", "'1_0W' is not a number"),
        ("log.csv", "W", "'log.csv' is not a number"),
    ],
)
def test_what_is_none(text: str, unit: str, said: str) -> None:
    with refused(f"^{said}$"):
        quantity(text, unit)


@given(number=st.floats(0, 1e6), unit=st.sampled_from(sorted(UNITS)))
def test_a_number_is_read_the_same_with_and_without_its_unit(number: float, unit: str) -> None:
    assert quantity(f"{number!r}{unit}", unit) == quantity(f"{number!r} {unit}", unit) == number


def test_units_that_stand_apart_join_their_number() -> None:
    words = ["advise", "f", "--max-slowdown", "5", "%", "--power-cap", "300", "400", "W", "s"]
    joined = ["advise", "f", "--max-slowdown", "5%", "--power-cap", "300", "400W", "s"]
    assert with_units(words) == joined
