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


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "exp2", "expm1", "log1p", "reciprocal",
                                  "rsqrt", "sigmoid", "tan", "tanh"])
def test_parts_that_are_not_finite(device, name):
    numbers, function = torch.tensor(NUMBERS, dtype=torch.complex64), getattr(torch, name)
    rows = zip(NUMBERS, function(numbers).tolist(), function(numbers.to(device)).tolist())
    assert [row for row in rows if differs(*row)] == []


@pytest.mark.parametrize("name", ["exp", "exp2", "sigmoid", "tan", "tanh"])
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_no_angle_beside_what_over_or_underflows(device, name, dtype):
    """Where the exponential is 0 or infinite, and its angle NaN."""
    large = (1e5, -1e5, 100.0, -100.0, math.inf, math.nan, 1.0)
    rows = [complex(*row) for row in itertools.product(large, large) if not math.isfinite(sum(row))]
    numbers, function = torch.tensor(rows, dtype=dtype), getattr(torch, name)
    rows = zip(rows, function(numbers).tolist(), function(numbers.to(device)).tolist())
    assert [row for row in rows if differs(*row)] == []


def hardly_equal(ours, expected):
    return torch.allclose(ours.cpu(), expected, rtol=1e-4, atol=1e-5, equal_nan=True)


def with_infinity(*sizes, at=0):
    numbers = torch.rand(sizes, generator=torch.Generator().manual_seed(5)) + 0.5
    numbers.view(-1)[at] = math.inf
    return numbers


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("infinite", [0, 1, 2], ids=["input", "weight", "gradient"])
def test_an_infinity_meets_no_padding(device, transposed, infinite):
    """Nor the places between the elements of a transposed convolution's input."""
    name = "conv_transpose2d" if transposed else "conv2d"
    tensors = [torch.rand(2, 3, 9, 11), torch.rand(3, 3, 3, 3), None]
    convolve = lambda x, w: getattr(torch.nn.functional, name)(x, w, stride=2, padding=1)
    tensors[2] = torch.rand_like(convolve(*tensors[:2]))
    tensors[infinite].view(-1)[0] = math.inf
    results = []
    for where in ("cpu", device):
        x, w, g = (t.to(where) for t in tensors)
        result = convolve(x.requires_grad_(), w.requires_grad_())
        results.append([result, *torch.autograd.grad(result, (x, w), g)])
    assert not any(t.isnan().any() for t in results[0])
    assert all(hardly_equal(ours, expected) for expected, ours in zip(*results))


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("number", [math.inf, math.nan])
def test_samples_at_no_place_and_of_infinity(device, mode, dims, number):
    """Outside of an image of two dims are zeros, which a weight of NaN makes NaN; of three dims there is nothing."""
    if (mode, dims) == ("bicubic", 3):
        pytest.skip("PyTorch has it in two dims only")
    points = torch.rand(1, *[3] * dims, dims, generator=torch.Generator().manual_seed(2)) * 2.4 - 1.2
    nowhere, image = points.clone(), torch.rand(1, 2, *[4] * dims)
    nowhere.view(-1)[::5] = number
    for values, grid in ((image, nowhere), (with_infinity(1, 2, *[4] * dims, at=5), points)):
        results = []
        for where in ("cpu", device):
            x, g = values.to(where).requires_grad_(), grid.to(where).requires_grad_()
            result = torch.nn.functional.grid_sample(x, g, mode=mode, align_corners=False)
            results.append([result, *torch.autograd.grad(result.sum(), (x, g))])
        assert all(hardly_equal(ours, expected) for expected, ours in zip(*results))


SIZES = [("linear", (5,), (9,)), ("linear", (5,), (5,)), ("bilinear", (5, 5), (9, 9)), ("bilinear", (5, 5), (9, 5)),
         ("bilinear", (5, 5), (5, 5)), ("bicubic", (5, 5), (9, 9)), ("bicubic", (5, 5), (5, 5)),
         ("trilinear", (3, 5, 5), (3, 9, 5))]


@pytest.mark.parametrize("mode,before,after", SIZES)
def test_neighbours_of_weight_zero(device, mode, before, after):
    """They are multiplied where PyTorch multiplies them, so that the same results are NaN."""
    resize = lambda x: torch.nn.functional.interpolate(x, size=after, mode=mode, align_corners=True)
    values, gradient = with_infinity(2, 2, *before, at=7), with_infinity(2, 2, *after, at=3)
    results = []
    for where in ("cpu", device):
        x = values.to(where).requires_grad_()
        results.append([resize(x), *torch.autograd.grad(resize(x), x, gradient.to(where))])
    assert all(hardly_equal(ours, expected) for expected, ours in zip(*results))


def test_slopes_end_where_tanh_does(device):
    """In f32 it is 1 from 13 ln(2) on; what 1 - tanh^2 keeps there, x^2 would make large in gelu's curvature."""
    far = torch.tensor([9.02, 20.0, 100.0, -9.02, -20.0, -100.0], device=device, requires_grad=True)
    assert far.tanh().tolist() == [1, 1, 1, -1, -1, -1]
    assert torch.autograd.grad(far.tanh().sum(), far)[0].tolist() == [0] * 6
    slope = torch.autograd.grad(torch.nn.functional.gelu(far, approximate="tanh").sum(), far, create_graph=True)[0]
    curvature = torch.autograd.grad(slope.sum(), far)[0]
    assert curvature.abs().max().item() < 1e-15
