"""Tensors of two dtypes, with and without dimensions, numbers on the CPU among them: dtype and values are those that
PyTorch's CPU gives where all of them lie there."""

import itertools

import pytest
import torch

DTYPES = (torch.bool, torch.uint8, torch.int64, torch.float16, torch.float32, torch.float64, torch.complex64)
ON, OFF = True, False
# The first and the second operand: its dimensions, and whether it lies on the device
FORMS = (((0, OFF), (1, ON)), ((1, ON), (0, OFF)), ((0, ON), (1, ON)), ((1, ON), (0, ON)), ((0, OFF), (0, ON)), ((1, ON), (1, ON)))
CALLS = {
    **{name: getattr(torch, name) for name in "add mul div floor_divide pow maximum eq atan2 copysign xlogy logical_and".split()},
    "clamp": lambda a, b: torch.clamp(a, min=b),
    "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "addcmul": lambda a, b: torch.addcmul(a, b, b),
    "add_": lambda a, b: a.clone().add_(b),
}


def operand(values, dtype, dims):
    return torch.tensor(values if dims else values[0]).to(dtype)


def outcome(call, a, b):
    try:
        return call(a, b).cpu()
    except (RuntimeError, NotImplementedError):
        return None


def differs(ours, expected):
    if ours is None or expected is None:
        return ours is not expected
    if expected.dtype == torch.complex32:  # which no device of ours has: complex64 takes its place
        expected = expected.to(torch.complex64)
    if ours.dtype != expected.dtype or ours.shape != expected.shape:
        return True
    places = 1e-3 if expected.dtype == torch.float16 else 1e-6  # a unit in the last place, or a few
    return not torch.allclose(ours, expected, rtol=places, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", CALLS)
def test_dtypes_and_places(device, name):
    different = []
    for first, second, form in itertools.product(DTYPES, DTYPES, FORMS):
        (dims_a, on_a), (dims_b, on_b) = form
        if name == "add_" and not on_a:
            continue  # what is written lies on the device
        a, b = operand([2, 1, 3], first, dims_a), operand([3, 2, 1], second, dims_b)
        expected = outcome(CALLS[name], a, b)
        ours = outcome(CALLS[name], a.to(device) if on_a else a, b.to(device) if on_b else b)
        halves = {first, second} == {torch.float16, torch.complex64}  # PyTorch's CPU lacks kernels of complex32
        if differs(ours, expected) and not (halves and expected is None):
            different.append((first, second, form, expected, ours))
    assert different == []
