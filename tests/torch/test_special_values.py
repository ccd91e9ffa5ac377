"""Functions of complex numbers with a part that is infinite, NaN or 0."""

import cmath
import itertools
import math

import pytest
import torch

PARTS = (math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, -2.0)
NUMBERS = [complex(*parts) for parts in itertools.product(PARTS, PARTS)]


def is_same(ours, expected, signed):
    """Within some units in the last place; the sign of 0 counts where that is asked."""
    if math.isnan(expected):
        return math.isnan(ours)
    signs_agree = math.copysign(1, ours) == math.copysign(1, expected)
    return (signs_agree or not signed) and math.isclose(abs(ours), abs(expected), rel_tol=8 * 2**-23)


def differs(number, expected, ours):
    """Beside NaN, and of a number with two infinite parts, the sign of 0 and of infinity is open."""
    signed = not (cmath.isnan(expected) or math.isinf(number.real) and math.isinf(number.imag))
    return not (is_same(ours.real, expected.real, signed) and is_same(ours.imag, expected.imag, signed))


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "tan", "tanh"])
def test_parts_that_are_not_finite(device, name):
    numbers, function = torch.tensor(NUMBERS, dtype=torch.complex64), getattr(torch, name)
    rows = zip(NUMBERS, function(numbers).tolist(), function(numbers.to(device)).tolist())
    assert [row for row in rows if differs(*row)] == []
