"""Autograd over the device: gradients equal those on the CPU; hooks, modes, views, functional transforms."""

import gc
import weakref

import pytest
import torch
from torch.func import functional_call, grad, hessian, jvp, vmap


def compare(function, *shapes, device, tolerance=1e-5):
    """Value, gradients and gradients of gradients of a scalar function, against the CPU."""

    def everything(where, tensors):
        tensors = [t.detach().to(where).requires_grad_() for t in tensors]
        value = function(*tensors)
        first = torch.autograd.grad(value, tensors, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), tensors, allow_unused=True)
        return [value, *first, *(g for g in second if g is not None)]

    tensors = [torch.randn(shape) for shape in shapes]
    for ours, theirs in zip(everything(device, tensors), everything("cpu", tensors), strict=True):
        assert ours.device == device and torch.allclose(ours.cpu(), theirs, rtol=tolerance, atol=tolerance)


def test_gradients_and_their_gradients(device):
    compare(lambda a, b: (a @ b).tanh().square().mean(), (4, 5), (5, 3), device=device)
    compare(lambda a, b: (a.exp() * b.sigmoid() / (1 + a.square())).sum(), (3, 1), (1, 4), device=device)
    compare(lambda a: torch.softmax(a, -1).square().sum() + a.logsumexp(0).sum(), (4, 5), device=device)
    compare(lambda a: (a[1:, ::2].t().reshape(-1).cumsum(0) * a.amax()).sum(), (4, 6), device=device)
    compare(lambda a: a.kthvalue(3).values.square().sum() + a.kthvalue(2, 0, keepdim=True).values.exp().sum(), (4, 5),
            device=device)
    compare(lambda a, b: torch.cat([a, b.expand(3, 4)]).pow(3).sum(), (2, 4), (1, 4), device=device)


def test_rms_norm_is_one_op(device):
    rms_norm = torch.nn.functional.rms_norm
    compare(lambda a, w: rms_norm(a, (5,), w, 1e-5).pow(3).sum(), (4, 5), (5,), device=device)
    compare(lambda a: rms_norm(a, (3, 5)).pow(3).sum(), (2, 3, 5), device=device)
    x = torch.ones(4, 5, device=device, requires_grad=True)
    y = torch.ops.aten._fused_rms_norm(x, (5,), None, 1e-5)[0]
    assert type(y.grad_fn).__name__ == "FusedRmsNormBackward0"


def test_leaves_accumulate_on_their_device(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = (x * 2).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.device == device and x.grad.tolist() == [4, 4, 4]
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    x.grad = None
    (x.to("cpu") * 3).sum().backward()
    assert x.grad.device == device and x.grad.tolist() == [3, 3, 3]


def test_graph_over_two_plugins(device, other):
    x = torch.randn(3, 3, device=device, requires_grad=True)
    y = ((x @ x).to(other) @ x.to(other)).to(device).sum()
    y.backward()
    twin = x.detach().cpu().requires_grad_()
    (twin @ twin @ twin).sum().backward()
    assert x.grad.device == device and torch.allclose(x.grad.cpu(), twin.grad, rtol=1e-4, atol=1e-5)


def test_hooks(device):
    seen = []
    x = torch.ones(2, device=device, requires_grad=True)
    x.register_hook(lambda g: g * 10)
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    y = x * 3
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.retain_grad()
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    y.sum().backward()
    assert seen[-1] == [60.0, 60.0] and [1.0, 1.0] in seen and y.grad.tolist() == [1.0, 1.0]

    layer = torch.nn.Linear(2, 2).to(device)
    order = []
    layer.register_forward_pre_hook(lambda module, args: order.append("before"))
    layer.register_forward_hook(lambda module, args, result: order.append("after"))
    layer.register_full_backward_hook(lambda module, gin, gout: order.append(gout[0].device.type))
    layer(torch.ones(1, 2, device=device)).sum().backward()
    assert order == ["before", "after", "graft"]

    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.shape) or t.cpu(), lambda t: t.to(device)):
        z = x.exp().sum()
    z.backward()
    assert kept


def test_modes(device):
    x = torch.ones(2, device=device, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    with torch.inference_mode():
        y = x * 2
        y.add_(1)
    assert y.is_inference() and not y.requires_grad and y.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="[Ii]nference"):
        y.requires_grad_().sum().backward() or (x * y).sum().backward()


def test_in_place_changes_of_saved_tensors_are_found(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    base = torch.zeros(3, device=device)
    before = base._version
    base[1:].mul_(2)
    assert base._version == before + 1
    leaf = torch.ones(2, device=device, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.add_(1)


def test_gradients_through_views_and_in_place(device):
    def run(where):
        x = torch.arange(6.0, device=where).reshape(2, 3).requires_grad_()
        y = x.clone()
        y[0].mul_(x[1])
        y.t()[2].add_(x[:, 0])
        y[:, 1:].copy_(y[:, 1:] * 2)
        y.masked_fill_(x > 4, 0)
        (y.square()).sum().backward()
        return x.grad.cpu()

    assert torch.allclose(run(device), run("cpu"))


def test_anomaly_mode_names_the_op(device):
    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match="Error detected in SqrtBackward"):
        x = torch.zeros(1, device=device, requires_grad=True)
        with pytest.raises(RuntimeError, match="nan"):
            (x.sqrt() * 0).sum().backward()


def test_custom_function(device):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x * x

    x = torch.randn(4, device=device, requires_grad=True)
    Cube.apply(x).sum().backward()
    assert torch.allclose(x.grad, 3 * x * x)


def test_graphs_are_freed(device):
    x = torch.ones(3, device=device, requires_grad=True)
    y = x.exp()
    reference = weakref.ref(y)
    y.sum().backward()
    del y
    gc.collect()
    assert reference() is None


def test_forward_mode(device):
    x, t = torch.randn(3, 4, device=device), torch.randn(3, 4, device=device)

    def function(v):
        return (v @ v.t()).sin().sum(0)

    value, tangent = jvp(function, (x,), (t,))
    value_cpu, tangent_cpu = jvp(function, (x.cpu(),), (t.cpu(),))
    assert tangent.device == device
    assert torch.allclose(value.cpu(), value_cpu, atol=1e-5) and torch.allclose(tangent.cpu(), tangent_cpu, atol=1e-4)


def test_functional_transforms(device):
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    x = torch.randn(4, 3)

    def per_sample(where):
        parameters = {name: p.detach().to(where) for name, p in model.named_parameters()}

        def loss(parameters, row):
            return functional_call(model, parameters, (row,)).square().sum()

        return vmap(grad(loss), in_dims=(None, 0))(parameters, x.to(where))

    ours, theirs = per_sample(device), per_sample("cpu")
    for name, g in ours.items():
        assert g.device == device and torch.allclose(g.cpu(), theirs[name], rtol=1e-4, atol=1e-5)
    curve = hessian(lambda v: (v.square() * v.flip(0)).sum())
    assert torch.allclose(curve(x[0].to(device)).cpu(), curve(x[0]), atol=1e-5)


def test_nested_and_quantized_are_refused_in_a_line(device):
    x = torch.eye(3, device=device)
    for make in (
        lambda: torch.nested.nested_tensor([x, x[:2]], device=device) + 1,
        lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    ):
        with pytest.raises((RuntimeError, NotImplementedError, TypeError), match="(?i)nested|quant|qint8"):
            make()


def test_zeros_without_memory(device):
    """What forward-mode AD and some gradients make of zeros (torch._efficientzerotensor) has no memory on the device."""
    x = torch.randn(3, device=device)
    zeros = torch._efficientzerotensor((3,), device=device)
    assert torch.dot(x, zeros).item() == 0
    assert torch.vdot(zeros, zeros).item() == 0
    assert torch.isclose(x * 0, zeros).all()
    assert torch.isclose(zeros, zeros).all()
    torch.testing.assert_close((x + zeros).cpu(), x.cpu())
    torch.testing.assert_close(zeros.clone(), torch.zeros(3, device=device))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_gradients_of_a_transposed_convolution_with_output_padding(device, dims):
    """PyTorch makes them of convolutions that are not transposed, which get the same output_padding, for nothing."""
    convolve = getattr(torch.nn.functional, f"conv_transpose{dims}d")
    x, weight = (torch.rand(sizes, dtype=torch.float64) for sizes in ([2, 3] + [4] * dims, [3, 2] + [3] * dims))
    found = []
    for where in ("cpu", device):
        leaves = [t.to(where).requires_grad_() for t in (x, weight)]
        result = convolve(*leaves, stride=2, padding=1, output_padding=1)
        first = torch.autograd.grad(result.square().sum(), leaves, create_graph=True)
        found.append(torch.autograd.grad(sum(g.square().sum() for g in first), leaves))
    for theirs, ours in zip(*found):
        torch.testing.assert_close(ours.cpu(), theirs)
