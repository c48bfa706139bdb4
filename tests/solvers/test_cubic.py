"""The root of t^3 - c t^2 - 6 g^2 = 0."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symrelu.solvers.cubic import positive_root

magnitudes = st.one_of(st.just(0.0), st.floats(1e-200, 1e200))


def sign_of_cubic(t, c, g):
    t, c, g = Fraction(t), Fraction(c), Fraction(g)
    value = t**3 - c * t**2 - 6 * g**2
    return (value > 0) - (value < 0)


@given(c=magnitudes, g=magnitudes)
def test_root_is_exact_to_rounding_at_any_scale(c, g):
    """In exact arithmetic the cubic changes sign within a few units in the last place of t."""
    t = positive_root(c, g)
    assert t >= c
    if c == g == 0:
        assert t == 0
        return
    below, above = t * (1 - 2**-50), t * (1 + 2**-50)
    assert sign_of_cubic(below, c, g) <= 0 <= sign_of_cubic(above, c, g)


@pytest.mark.parametrize("g", [0.0, 1e-150, 1e150, 1.0])
@pytest.mark.parametrize("c", [1e-150, 1.0, 1e150])
def test_named_scales(c, g):
    t = positive_root(c, g)
    below, above = t * (1 - 2**-50), t * (1 + 2**-50)
    assert sign_of_cubic(below, c, g) <= 0 <= sign_of_cubic(above, c, g)


@given(c=st.floats(0.01, 100), g=st.floats(0.0, 100), k=st.integers(-100, 100))
def test_root_scales_exactly_with_powers_of_four(c, g, k):
    assert positive_root(math.ldexp(c, 2 * k), math.ldexp(g, 3 * k)) == math.ldexp(positive_root(c, g), 2 * k)


@pytest.mark.parametrize(("c", "g"), [(math.nan, 1.0), (1.0, math.inf), (math.inf, 0.0)])
def test_non_finite_coefficients_give_nan(c, g):
    assert math.isnan(positive_root(c, g))
