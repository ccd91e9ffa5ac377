"""Tensors of more dimensions than a Graft device takes (16; PyTorch's own limit is 64)."""

import pytest
import torch
import torch_graft

MANY = (2,) * 8 + (1, 3) + (1,) * 20  # 30 dims, 768 elements
HARD = (2,) * 20  # a million elements; reversed, no two of them can be merged


@pytest.fixture(autouse=True)
def on_the_device():
    torch_graft.reset_fallbacks()


def pair(device, shape=MANY, dtype=torch.float32):
    x = torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)
    return x, x.to(device)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex64], ids=str)
def test_copies(device, dtype):
    x, y = pair(device, dtype=dtype)
    assert y.shape == x.shape and y.stride() == x.stride() and torch.equal(y.cpu(), x)
    assert torch.equal(y.mT.contiguous().cpu(), x.mT.contiguous())
    assert torch.equal(torch.empty_like(y).copy_(x).cpu(), x)
    assert torch.equal(y.to(torch.float64).cpu(), x.to(torch.float64))
    assert torch.equal(y[..., :1].conj().clone().cpu(), x[..., :1].conj())
    assert torch_graft.fallbacks() == []


def test_copies_of_dims_that_can_not_be_merged(device):
    x, y = pair(device, HARD)
    order = tuple(reversed(range(20)))
    assert torch.equal(y.permute(order).contiguous().cpu(), x.permute(order).contiguous())
    z = torch.zeros(HARD, device=device)
    z.permute(order).copy_(x)
    assert torch.equal(z.cpu(), x.permute(order))
    assert torch.equal(torch.ones(2, device=device).expand(HARD).cpu(), torch.ones(HARD))


def test_one_element(device):
    x = torch.full((1,) * 64, 3.0, device=device)
    assert x.item() == 3 and (x + 1).item() == 4 and x.to(torch.int32).item() == 3


ELEMENTWISE = {
    "add": lambda x: x + x,
    "a number": lambda x: 2 * x + 1.5,
    "broadcast": lambda x: x * x.sum(0, keepdim=True),
    "broadcast, of fewer dims": lambda x: x - torch.ones(3, 1, device=x.device).view(3, *(1,) * 20),
    "not contiguous": lambda x: x.transpose(0, 9) / (x.transpose(0, 9) + 1),
    "one operand, not contiguous": lambda x: x.transpose(0, 1).div(100).exp2().remainder(7),
    "compare": lambda x: (x > 5).logical_and(x < 100),
    "where": lambda x: torch.where(x > 5, x, 0.0),
    "clamp": lambda x: x.clamp(2, 50),
    "in place": lambda x: x.clone().add_(x).mul_(0.5).sqrt_(),
    "in place, not contiguous": lambda x: x.clone().transpose(0, 9).add_(1),
    "out": lambda x: torch.mul(x, 2, out=torch.empty_like(x)),
    "out, not contiguous": lambda x: torch.neg(x, out=torch.empty_like(x.transpose(0, 9)).transpose(0, 9)),
    "out, resized": lambda x: torch.neg(x, out=torch.empty(0, device=x.device)),
    "fill": lambda x: x.clone().fill_(3).masked_fill_(x > 9, 4),
    "cast": lambda x: (x.half() + 1, x.int() // 2, x.bool()),
    "mixed dtypes": lambda x: x.half() + x.int(),
    "lerp": lambda x: torch.lerp(x, x + 1, 0.25),
    "views": lambda x: x.flatten(3).unsqueeze(0).expand(2, *[-1] * 4).reshape(MANY[:3] + (-1, 2)),
    "silu": torch.nn.functional.silu,
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise_ops_run_on_the_device(device, name):
    x, y = pair(device)
    expected, got = ELEMENTWISE[name](x), ELEMENTWISE[name](y)
    torch.testing.assert_close(got, expected, check_device=False, atol=1e-6, rtol=1e-6)
    on_the_cpu = {row.op for row in torch_graft.fallbacks()}
    assert on_the_cpu <= {"aten::sum.IntList_out", "aten::sum.dim_IntList"}


def test_random_numbers_are_those_of_fewer_dims(device):
    torch.manual_seed(5)
    flat = torch.randn(768, device=device), torch.rand(768, device=device)
    torch.manual_seed(5)
    many = torch.randn(MANY, device=device), torch.rand(MANY, device=device)
    assert all(torch.equal(a, b.flatten()) for a, b in zip(flat, many))
    assert torch_graft.fallbacks() == []


def test_other_ops_run_on_the_cpu(device):
    x, y = pair(device)
    for call in (
        lambda t: t.sum(),
        lambda t: t.sum((0, 9)),
        lambda t: t.softmax(9),
        lambda t: torch.cat([t, t], 2),
        lambda t: t.flip(0, 3),
        lambda t: torch._foreach_add([t, t], 1)[1],
        lambda t: t.index_select(9, torch.tensor([2, 0], device=t.device)),
        lambda t: t.clone().cumsum_(9),
    ):
        torch.testing.assert_close(call(y), call(x), check_device=False)
        assert torch_graft.fallbacks()
        torch_graft.reset_fallbacks()


MOST = (2,) * 13 + (3, 1, 2)  # as many as a device takes; permuted, hardly two of them can be merged


OF_MOST_DIMS = {
    "pointwise": lambda x: x * x.sin() + x[:1],
    "sum": lambda x: x.sum((0, 2, 4, 6, 8, 10, 12, 15)),
    "var": lambda x: x.var((1, 5, 13)),
    "amax": lambda x: x.amax((0, 3, 6, 9)),
    "norm": lambda x: torch.linalg.vector_norm(x, 3, (0, 3, 6)),
    "logsumexp": lambda x: x.logsumexp((0, 4, 9)),
    "argmax": lambda x: x.argmax(4),
    "softmax": lambda x: x.softmax(3),
    "cumsum": lambda x: x.cumsum(5),
    "cummax": lambda x: x.cummax(13)[0],
    "sort": lambda x: x.sort(13)[0],
    "median": lambda x: x.median(2)[0],
    "kthvalue": lambda x: x.kthvalue(1, dim=6)[0],
    "flip": lambda x: x.flip(0, 3, 15),
    "roll": lambda x: x.roll((1, 1, 1), (0, 5, 12)),
    "pad": lambda x: torch.nn.functional.pad(x, (1, 1, 0, 2, 1, 0)),
    "repeat": lambda x: x.detach().repeat([2] + [1] * 15),  # its gradient sums over 32 dims
    "cat": lambda x: torch.cat([x, x * 2], 13),
    "index": lambda x: x[torch.tensor([0, 1], device=x.device), :, torch.tensor([0, 0], device=x.device)],
    "index_put": lambda x: x.index_put((torch.tensor([0, 0], device=x.device),), x * 2, accumulate=True),
    "index_add": lambda x: x.index_add(3, torch.tensor([1, 1], device=x.device), x * 2),
    "gather": lambda x: x.gather(13, torch.ones_like(x, dtype=torch.int64)),
    "scatter_add": lambda x: x.scatter_add(13, torch.ones_like(x, dtype=torch.int64), x * 2),
    "masked_select": lambda x: x[x > 100],
    "tril": lambda x: x.tril(),
    "diagonal": lambda x: x.diagonal(0, 3, 7),
    "fft": lambda x: torch.fft.fftn(x[0], dim=(1, 5)),
    "matmul": lambda x: x @ x.mT,
    "inv": lambda x: torch.linalg.inv(x[..., 0, :, None] * x[..., 0, None, :] + torch.eye(2, device=x.device)),
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-3:]),
}


@pytest.mark.parametrize("name", OF_MOST_DIMS)
def test_ops_of_as_many_dims_as_there_may_be(device, name):
    x = torch.randint(1000, MOST).to(torch.float32).permute([(7 * d) % 16 for d in range(16)])
    x = x.movedim((3, 13), (13, 3)) / 1000
    y = torch.empty_strided(x.shape, x.stride(), device=device).copy_(x)
    a, b = x.clone().requires_grad_(), y.detach().requires_grad_()
    expected, result = OF_MOST_DIMS[name](a), OF_MOST_DIMS[name](b)
    torch.testing.assert_close(result, expected, check_device=False, rtol=1e-4, atol=1e-4)
    if expected.requires_grad and expected.dim() <= 16:
        expected.abs().square().sum().backward()
        result.abs().square().sum().backward()
        torch.testing.assert_close(b.grad, a.grad, check_device=False, rtol=1e-4, atol=1e-3)
    assert torch_graft.fallbacks() == []


def test_gradients(device):
    x, y = (t.div(100).requires_grad_() for t in pair(device))
    for t in (x, y):
        (t.sin() * t.transpose(0, 9).transpose(0, 9)).sum().backward()
    torch.testing.assert_close(y.grad, x.grad, check_device=False)


def test_the_limit_is_named_where_the_cpu_is_forbidden(python):
    python(
        """
        import torch
        x = torch.ones((2,) * 17, device="graft")
        assert (x + 1).flatten().sum().item() == 2**18
        try:
            x.sum(3)
            raise SystemExit("no error")
        except NotImplementedError as error:
            assert "sum" in str(error) and "(16)" in str(error) and "reshape" in str(error), error
        """,
        GRAFT_FALLBACK="error",
    ).ok()


def test_dlpack_names_the_limit(device):
    with pytest.raises(RuntimeError, match="17 dimensions; at most 16"):
        torch.from_dlpack(torch.ones((1,) * 17, device=device))
