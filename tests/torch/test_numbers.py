"""Python numbers that a tensor's integer dtype can't hold: PyTorch wraps those that stand in an operand's place and
refuses others; what its CPU does with a call, the device does."""

import functools
import itertools

import pytest
import torch
import torch_graft

NUMBERS = (-300, -256, -129, -128, -3, -1, 127, 128, 255, 256, 300, 2**31, 2**40)
ELEMENTS = {
    torch.uint8: (1, 2, 3, 5, 127, 128, 200, 255),
    torch.int8: (-127, -5, -1, 2, 1, 3, 5, 127),
    torch.int16: (-32767, -300, -1, 2, 1, 5, 300, 32767),
    torch.int32: (-(2**31) + 5, -300, -1, 2, 1, 5, 300, 2**31 - 1),
}


def named(name):
    return lambda x, n: getattr(torch, name)(x, n)


def in_place(name):
    return lambda x, n: getattr(x.clone(), name)(n)


def of_list(name):
    return lambda x, n: getattr(torch, name)([x, x], n)[1]


NAMES = """add sub mul div floor_divide remainder fmod bitwise_and bitwise_or bitwise_xor bitwise_left_shift
    bitwise_right_shift eq ne lt le gt ge pow clamp_min clamp_max isin rsub""".split()
IN_PLACE = "add_ mul_ floor_divide_ remainder_ fmod_ lt_ ge_ pow_ fill_ clamp_min_ bitwise_xor_".split()
LISTS = "_foreach_add _foreach_mul _foreach_pow _foreach_clamp_max _foreach_maximum".split()
CALLS = {
    **{name: named(name) for name in NAMES},
    **{name: in_place(name) for name in IN_PLACE},
    **{name: of_list(name) for name in LISTS},
    "number // x": lambda x, n: n // x,
    "number % x": lambda x, n: torch.remainder(n, x),
    "number ** x": lambda x, n: torch.pow(n, x),
    "number >> x": lambda x, n: torch.bitwise_right_shift(n, x),
    "div, floor": lambda x, n: torch.div(x, n, rounding_mode="floor"),
    "div, trunc": lambda x, n: torch.div(x, n, rounding_mode="trunc"),
    "clamp": lambda x, n: torch.clamp(x, n, n + 5),
    "where": lambda x, n: torch.where(x > 3, x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 3, n),
    "masked_fill, tensor": lambda x, n: x.masked_fill(x > 3, torch.tensor(n, device=x.device)),
    "masked_fill, none": lambda x, n: x.masked_fill(x != x, torch.tensor(n, device=x.device)),
    "masked_fill, tensor on the CPU": lambda x, n: x.masked_fill(x > 3, torch.tensor(n)),
    "masked_fill_, tensor": lambda x, n: x.clone().masked_fill_(x > 3, torch.tensor(n, device=x.device)),
    "index_fill": lambda x, n: x.index_fill(0, torch.tensor([0, 2], device=x.device), n),
    "index_fill, tensor": lambda x, n: x.index_fill(0, torch.tensor([0, 2], device=x.device), torch.tensor(n, device=x.device)),
    "full_like": torch.full_like,
    "pad": lambda x, n: torch.nn.functional.pad(x, (1, 1), value=n),
    "add, alpha": lambda x, n: torch.add(x, x, alpha=n),
    "add_, alpha": lambda x, n: x.clone().add_(x, alpha=n),
    "add, alpha and a number": lambda x, n: torch.add(x, 3, alpha=n),
    "sub, alpha": lambda x, n: torch.sub(x, x[0], alpha=n),
    "rsub, alpha": lambda x, n: torch.rsub(x, 3, alpha=n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "addr, alpha": lambda x, n: torch.addr(x[:, None], x, x[:1], alpha=n),
    "hardtanh": lambda x, n: torch.nn.functional.hardtanh(x, 0, abs(n)),
    "_foreach_add, alpha": lambda x, n: torch._foreach_add([x, x], [x, x], alpha=n)[1],
    "_foreach_addcmul": lambda x, n: torch._foreach_addcmul([x, x], [x, x], [x, x], value=n)[1],
    "threshold": lambda x, n: torch.nn.functional.threshold(x, n, 7),
    "addmm, beta": lambda x, n: torch.addmm(x.view(1, -1), x.view(-1, 1)[:1], x.view(1, -1), beta=n),
    "index_add": lambda x, n: x.index_add(0, torch.tensor([0, 2], device=x.device), x[:2], alpha=n),
    "lt, out": lambda x, n: torch.lt(x, n, out=torch.empty(x.shape, dtype=torch.bool, device=x.device)),
    "rank 0 on the CPU, lt": lambda x, n: x < torch.tensor(n),
    "rank 0 on the CPU, minimum": lambda x, n: torch.minimum(x, torch.tensor(n)),
    "rank 0 on the CPU, remainder": lambda x, n: x % torch.tensor(n),
}


def outcome(call, x, n):
    """What the call gives, or None where it is refused, be that when its work is waited for."""
    try:
        return call(x, n).cpu()
    except RuntimeError:
        return None


def agree(ours, expected):
    if ours is None or expected is None:
        return ours is expected
    if ours.dtype != expected.dtype or ours.shape != expected.shape:
        return False
    return torch.allclose(ours, expected, rtol=1e-6) if ours.is_floating_point() else torch.equal(ours, expected)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ELEMENTS, ids=str)
def test_numbers_beyond_a_dtype(device, name, dtype):
    x, call = torch.tensor(ELEMENTS[dtype], dtype=dtype), functools.partial(outcome, CALLS[name])
    torch_graft.reset_fallbacks()
    different = [n for n in NUMBERS if not agree(call(x.to(device), n), call(x, n))]
    assert different == []
    assert torch_graft.fallbacks() == []


def test_the_next_number_of_a_plan_wraps_too(device):
    """Numbers of such calls are not in a plan's key."""
    x = torch.tensor([1, 200], dtype=torch.uint8)
    for n in (3, 300, -3, 256 + 201):
        assert torch.equal((x.to(device) < n).cpu(), x < n)
        assert torch.equal(torch.ops.aten.remainder.Scalar(x.to(device), n).cpu(), torch.ops.aten.remainder.Scalar(x, n))


def test_the_next_alpha_of_a_plan_is_looked_at_too(device):
    x = torch.tensor([1, 100], dtype=torch.int8, device=device)
    for n in (2, 127, -128):
        assert torch.equal(torch.add(x, x, alpha=n).cpu(), torch.add(x.cpu(), x.cpu(), alpha=n))
    for n in (128, -129, 2**40):
        with pytest.raises(RuntimeError, match="alpha is .* i8 can't hold"):
            torch.add(x, x, alpha=n)
    with pytest.raises(RuntimeError, match="alpha is -128, whose opposite i8 can't hold"):
        torch.sub(x, x, alpha=-128)


def test_floating_numbers_beside_integers(device):
    x = torch.tensor([1, 2, 3], dtype=torch.int32)
    calls = {
        "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
        "hardtanh": lambda x, n: torch.nn.functional.hardtanh(x, 0, n),
        "foreach": lambda x, n: torch._foreach_addcmul([x], [x], [x], value=n)[0],
    }
    for name, call in calls.items():
        for n in (2.5, 1e10, 1e39, float("inf"), float("nan")):
            assert agree(outcome(call, x.to(device), n), outcome(call, x, n)), (name, n)


def test_numbers_as_truth_values(device):
    x = torch.tensor([True, False, True])
    calls = {
        "add": lambda x, n: torch.add(x, x, alpha=int(n)),
        "masked_fill": lambda x, n: x.masked_fill(~x, n),
        "fill_diagonal_": lambda x, n: torch.zeros(3, 3, dtype=torch.bool, device=x.device).fill_diagonal_(n),
        "scatter": lambda x, n: x.scatter(0, torch.tensor([1], device=x.device), n),
        "index_add": lambda x, n: x.index_add(0, torch.tensor([1], device=x.device), x[:1], alpha=int(n)),
    }
    for name, call in calls.items():
        for n in (0, -1, 2**40, 0.5) + (() if "add" in name else (float("inf"), float("nan"))):
            assert torch.equal(call(x.to(device), n).cpu(), call(x, n)), (name, n)


@pytest.mark.parametrize("dtype", (torch.uint8, torch.int8), ids=str)
def test_bounds_of_linspace(device, dtype):
    """A negative bound is a number of u8 before there is a step; of one value only the start is looked at."""
    for start, end, steps in itertools.product((-300, -129, -3, -1, 0, 5, 127, 128, 255, 256), (-1, 0, 5, 200, 300), (0, 1, 3)):
        made = [outcome(lambda x, n: torch.linspace(start, end, n, dtype=dtype, device=x), d, steps) for d in (device, "cpu")]
        assert agree(*made), (start, end, steps)


@pytest.mark.parametrize("dtype", (torch.int8, torch.int16, torch.int32, torch.int64), ids=str)
def test_divisors_of_the_least_number(device, dtype):
    """It has no size in its dtype and goes into Euclid's algorithm below 0."""
    least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
    row = torch.tensor([least, least + 1, least // 2, -6, -3, -2, -1, 0, 1, 2, 5, 6, most], dtype=dtype)
    x, y = row.to(device), row.to(device)[:, None]
    assert torch.equal(torch.gcd(x, y).cpu(), torch.gcd(row, row[:, None]))
    if dtype.itemsize < 4:  # lcm divides the least number by a divisor of -1 there, at which PyTorch's CPU dies
        assert torch.equal(torch.lcm(x, y).cpu(), torch.lcm(row, row[:, None]))
