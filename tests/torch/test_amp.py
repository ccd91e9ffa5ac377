"""Automatic mixed precision: which dtypes ops get inside autocast, and gradient scaling."""

import pytest
import torch


def test_dtypes(device):
    x = torch.randn(4, 4, device=device)
    bias = torch.randn(4, device=device)
    assert torch.get_autocast_dtype("graft") == torch.float16
    with torch.autocast("graft"):
        assert torch.is_autocast_enabled("graft")
        assert (x @ x).dtype == torch.float16
        assert torch.nn.functional.linear(x, x, bias).dtype == torch.float16
        assert (x @ x).exp().dtype == torch.float32
        assert torch.softmax(x @ x, 0).dtype == torch.float32
        assert (x @ x + x).dtype == torch.float32, "promotes to the widest"
        assert torch.cat([x @ x, x]).dtype == torch.float32
        assert (x @ x).relu().dtype == torch.float16
        with torch.autocast("graft", enabled=False):
            assert (x @ x).dtype == torch.float32
    assert (x @ x).dtype == torch.float32
    with torch.graft.amp.autocast(dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.bfloat16
        assert torch.nn.functional.conv2d(x[None, None], x[None, None, :3, :3]).dtype == torch.bfloat16
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert (x @ x).dtype == torch.float32, "autocast of another device"
    with pytest.warns(UserWarning, match="not supported"):
        torch.autocast("graft", dtype=torch.float64).__enter__().__exit__(None, None, None)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_forward_and_backward(device, dtype):
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.LayerNorm(16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    x, y = torch.randn(5, 8), torch.randint(0, 4, (5,))

    def step(where):
        m = model.to(where)
        m.zero_grad()
        with torch.autocast(where.type, dtype=dtype):
            loss = torch.nn.functional.cross_entropy(m(x.to(where)), y.to(where))
        assert loss.dtype == torch.float32
        loss.backward()
        return [loss.detach().cpu()] + [p.grad.cpu().clone() for p in m.parameters()]

    bound = 2e-3 if dtype == torch.float16 else 2e-2
    for ours, theirs in zip(step(device), step(torch.device("cpu"))):
        assert ours.dtype == torch.float32 and torch.allclose(ours, theirs, rtol=bound, atol=bound)


def test_cast_of_weights_is_cached(device):
    weight = torch.randn(4, 4, device=device, requires_grad=True)
    x = torch.randn(4, 4, device=device)
    with torch.autocast("graft"):
        a, b = x @ weight, x @ weight
    (a + b).sum().backward()
    assert weight.grad.dtype == torch.float32
    assert torch.allclose(weight.grad, 2 * x.sum(0)[:, None].expand(4, 4), rtol=1e-2, atol=1e-2)


def test_grad_scaler_steps_and_skips(device):
    weight = torch.nn.Parameter(torch.ones(3, device=device))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    scaler = torch.amp.GradScaler("graft", init_scale=1024.0, growth_interval=2)
    for _ in range(2):
        optimizer.zero_grad()
        scaler.scale((weight * 2).sum()).backward()
        assert weight.grad.tolist() == [2048.0] * 3
        scaler.step(optimizer)
        scaler.update()
    assert weight.tolist() == [-1.0] * 3
    assert scaler.get_scale() == 2048.0, "grown after two good steps"
    optimizer.zero_grad()
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.tolist() == [-1.0] * 3 and scaler.get_scale() == 1024.0, "a step with infinities is skipped"
    scaler = torch.graft.amp.GradScaler(init_scale=8.0)
    optimizer.zero_grad()
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [1.0] * 3
    assert torch.nn.utils.clip_grad_norm_([weight], 0.5).item() == pytest.approx(3**0.5)
    again = torch.graft.amp.GradScaler()
    again.load_state_dict(scaler.state_dict())
    assert again.get_scale() == 8.0


def test_custom_functions(device):
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.graft.amp.custom_fwd(cast_inputs=torch.float32)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            assert a.dtype == torch.float32 and not torch.is_autocast_enabled("graft")
            return a @ b

        @staticmethod
        @torch.graft.amp.custom_bwd
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad @ b.t(), a.t() @ grad

    a = torch.randn(3, 3, device=device, requires_grad=True)
    with torch.autocast("graft"):
        y = Product.apply(a @ a, a)
    assert y.dtype == torch.float32
    y.sum().backward()
    assert a.grad.dtype == torch.float32 and a.grad.isfinite().all().item()


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_the_cross_entropy_of_lower_precision_is_taken_in_f32(device, reduction):
    logits, target = (torch.randn(64, 1000) * 4).bfloat16(), torch.randint(0, 1000, (64,))
    expected = torch.nn.functional.cross_entropy(logits.double(), target, reduction=reduction, label_smoothing=0.1)
    x = logits.to(device).requires_grad_()
    with torch.autocast(device.type, dtype=torch.bfloat16):
        loss = torch.nn.functional.cross_entropy(x, target.to(device), reduction=reduction, label_smoothing=0.1)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss.detach().cpu().double(), expected, rtol=1e-5, atol=1e-5)
    loss.sum().backward()
    assert x.grad.dtype == torch.bfloat16 and x.grad.isfinite().all()
