"""Calls at the edge of what PyTorch takes: numbers beyond a dtype's range, dtypes that an op is not served for, outputs of
another dtype. What its CPU makes of them, a result or an exception of some class, the device makes of them, too."""

import pytest
import torch

F16, BF16 = torch.float16, torch.bfloat16
HALVES = [1.0, -2.0, float("inf")]
TRUTHS = [True, False, True]


def tensor(values, dtype=None):
    """A function of the device: what a call is given."""
    return lambda device: torch.tensor(values, dtype=dtype, device=device)


def empty(dtype, *sizes):
    return lambda device: torch.zeros(*(sizes or (0,)), dtype=dtype, device=device)


def on(call, *makers, **others):
    return lambda device: call(*(make(device) for make in makers), **{k: v(device) if callable(v) else v for k, v in others.items()})


def bounds(dtype):
    x = tensor(HALVES, dtype)
    shrink = torch.nn.functional
    for bound in (1e5, 1e30, -1e39, float("inf")):
        yield f"clamp of {dtype} from {bound}", on(lambda x, b=bound: x.clamp(min=b), x)
        yield f"clamp_ of {dtype} to {bound}", on(lambda x, b=bound: x.clamp_(max=b), x)
        yield f"clamp_max of {dtype}, {bound}", on(lambda x, b=bound: torch.clamp_max(x, b), x)
        yield f"hardtanh of {dtype}, {bound}", on(lambda x, b=bound: shrink.hardtanh(x, -1, abs(b)), x)
        yield f"hardshrink of {dtype}, {bound}", on(lambda x, b=bound: shrink.hardshrink(x, b), x)
        yield f"softshrink of {dtype}, {bound}", on(lambda x, b=bound: shrink.softshrink(x, abs(b)), x)
        yield f"pad of {dtype}, {bound}", on(lambda x, b=bound: shrink.pad(x, (1, 0), value=b), x)
        yield f"where of {dtype}, {bound}", on(lambda c, x, b=bound: torch.where(c, x, b), tensor(TRUTHS), x)
        yield f"_foreach_clamp_min of {dtype}, {bound}", on(lambda x, b=bound: torch._foreach_clamp_min([x], b)[0], x)


def integers(dtype):
    for start, base in ((3, 10.0), (7, -2.0), (40, 10.0), (2, 10.0)):
        yield f"logspace {start} {base} of {dtype}", lambda device, s=start, b=base: torch.logspace(s, 5, 1, base=b, dtype=dtype, device=device)
    for alpha in (1.5, -2, 300, 2.0**40, True):
        yield f"index_add of {dtype}, {alpha}", on(
            lambda x, i, a=alpha: x.index_add(0, i, x, alpha=a), tensor([1, 2, 3], dtype), tensor([0, 2, 0]))


def others():
    for power in (True, False, 2, 1.0):
        yield f"bool ** {power}", on(lambda x, p=power: x**p, tensor(TRUTHS))
    yield "bool.pow_(True)", on(lambda x: x.pow_(True), tensor(TRUTHS))
    for value in (1 + 1j, 2 + 0j):
        for dtype in (torch.float32, torch.complex64, torch.int64):
            for own in ("cpu", None):
                yield f"masked_fill of {dtype}, {value} on {own}", lambda device, v=value, d=dtype, o=own: torch.ones(3, dtype=d, device=device).masked_fill(
                    torch.tensor(TRUTHS, device=device), torch.tensor(v, device=o or device))
    z = [1 + 1j, 2 - 1j, 0.5j]
    yield "silu_backward", on(torch.ops.aten.silu_backward, tensor(z), tensor(z[::-1]))
    for dtype in (torch.complex64, torch.bool, torch.float32, torch.int8, BF16):
        yield f"range of {dtype}", on(lambda o: torch.range(1, 4, out=o), empty(dtype))


# Which dtypes PyTorch's CPU has no kernel of: a NotImplementedError there. Others that it refuses are RuntimeErrors.
def unserved():
    whole, real, truths, complex_ = tensor([1, 2, 3]), tensor([1.0, 2.0, 3.0]), tensor(TRUTHS), tensor([1j, 2.0, 3.0])
    one = {"lgamma": complex_, "sign": complex_, "erf": complex_, "trunc": complex_}
    yield from ((name, on(getattr(torch, name), x)) for name, x in one.items())
    two = {"bitwise_and": real, "gcd": real, "pow": truths, "fmod": complex_, "dot": truths}
    yield "lerp", on(lambda x: torch.lerp(x, x, 0.5), whole)
    yield from ((name, on(getattr(torch, name), x, x)) for name, x in two.items())
    yield "softmax", on(lambda x: torch.softmax(x, 0), whole)
    yield "addcmul", on(lambda x: torch.addcmul(x, x, x), truths)
    yield "arange", on(lambda o: torch.arange(3, out=o), empty(torch.complex64))
    yield "_foreach_lerp", on(lambda x, y: torch._foreach_lerp([x, y], [x, y], 0.5)[0], real, whole)
    yield "_foreach_clamp_max", on(lambda x: torch._foreach_clamp_max([x], 1)[0], complex_)


# Not dtypes, but shapes, numbers and dtypes that differ.
def refused():
    whole, real = tensor([1, 2, 3]), tensor([1.0, 2.0, 3.0])
    yield "mm", on(torch.mm, real, real)
    yield "dot", on(torch.dot, real, whole)
    yield "add", on(lambda x: torch.add(x, x, alpha=1.5), whole)
    yield "fill_", on(lambda x: x.fill_(300), tensor([1], torch.int8))
    yield "_foreach_addcmul", on(lambda x: torch._foreach_addcmul([x], [x], [x], value=300)[0], tensor([1], torch.int8))
    yield "_foreach_clamp_max", on(lambda x: torch._foreach_clamp_max([x], [300])[0], tensor([1], torch.int8))


# The dtype of an output is what these compute in; _fft_c2r casts to it.
def outputs():
    x, whole = tensor([[1.5, 1.7, -0.6], [2.5, 3.5, 300.0]]), tensor([[1, 2, 3], [4, 5, 300]])
    for name in ("sum", "prod", "nansum", "cumsum", "cumprod"):
        for dtype in (torch.float64, F16, torch.int64, torch.uint8, torch.bool):
            for kind, given in (("f32", x), ("i64", whole)):
                if name == "nansum" and given is x and not dtype.is_floating_point:
                    continue  # which the CPU refuses
                yield f"{name} of {kind} into {dtype}", on(lambda x, o, n=name: getattr(torch, n)(x, 1, out=o), given, empty(dtype))
    for dtype in (torch.float64, F16, torch.int64):
        yield f"irfft into {dtype}", on(lambda z, o: torch.fft.irfft(z, out=o), tensor([1 + 1j, 2 - 1j, 3]), empty(dtype))


def cases(*groups):
    return pytest.mark.parametrize("call", [pytest.param(call, id=name) for group in groups for name, call in group])


def outcome(call, device):
    try:
        return call(device).cpu(), None
    except Exception as error:
        return None, error


@cases(bounds(F16), bounds(BF16), bounds(torch.float32), integers(torch.int8), integers(torch.uint8), integers(torch.int64), others(), outputs())
def test_results(device, call):
    expected, refusal = outcome(call, "cpu")
    ours, error = outcome(call, device)
    assert (error is None) == (refusal is None), error or refusal
    if refusal is None:
        torch.testing.assert_close(ours, expected, equal_nan=True)


@cases(unserved())
def test_a_dtype_that_is_not_served_is_not_implemented(device, call):
    for place in ("cpu", device):
        with pytest.raises(NotImplementedError):
            call(place)


@cases(refused())
def test_what_else_is_refused_is_not_that(device, call):
    for place in ("cpu", device):
        with pytest.raises(RuntimeError) as error:
            call(place)
        assert not issubclass(error.type, NotImplementedError)


def test_errors_begin_with_the_op_that_was_called(device):
    x, z, i = torch.ones(3, device=device), torch.ones(3, device=device, dtype=torch.complex64), torch.ones(3, device=device).int()
    calls = {
        "_foreach_lerp.Scalar: aten::lerp.Scalar: ": lambda: torch._foreach_lerp([x, i], [x, i], 0.5),
        "clamp_max.out: aten::clamp: ": lambda: torch.clamp_max(z, 1, out=torch.empty_like(z)),
        "clamp_max: aten::clamp: ": lambda: torch.clamp_max(z, 1),
        "lerp.Scalar: not defined": lambda: i.lerp_(i, 0.5),
    }
    for head, call in calls.items():
        with pytest.raises(RuntimeError) as error:
            call()
        assert str(error.value).startswith("aten::" + head), error.value


@pytest.mark.parametrize("dtype", [F16, BF16])
def test_an_element_made_of_a_number_is_equal_to_it(device, other, dtype):
    x = torch.tensor([0.1, 1.0, 65504.0, float("inf")], dtype=dtype)
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        for number in (0.1, 65520.0, 1e39):
            expected = getattr(torch, name)(x, number)
            for place in (device, other):
                assert getattr(torch, name)(x.to(place), number).cpu().equal(expected), (name, number, place)


@pytest.mark.parametrize("name", ["_foreach_add_", "_foreach_sub_", "_foreach_addcmul_"])
def test_a_list_is_as_it_was_when_an_item_is_refused(device, name):
    """A tensor that stands in a list twice has it written in order; of the last item, whose operands are broadcast, int8
    does not hold the number: no item is written."""
    twice = torch.ones(2, device=device)
    items = [twice, twice, torch.ones(2, 2, device=device, dtype=torch.int8)]
    operands = [torch.ones(2, device=device, dtype=item.dtype) for item in items]
    lists, number = ([operands, operands], "value") if "addcmul" in name else ([operands], "alpha")
    with pytest.raises(RuntimeError, match=f"aten::{name[:-1]}.*300"):
        getattr(torch, name)(items, *lists, **{number: 300})
    assert all(item.eq(1).all() for item in items)
