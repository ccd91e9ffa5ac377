"""Fake tensors, torch.export, torch.compile with aot_eager: what is predicted is what comes out."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode


def test_the_device_interface_is_registered_with_dynamo(python):
    python(
        """
        import sys, torch
        assert "torch._dynamo" not in sys.modules
        import torch._dynamo.device_interface as interface
        ours = interface.get_interface_for_device("graft")
        assert ours.device_count() == torch.graft.device_count() and ours.current_device() == 0
        assert ours.get_device_properties(0).text == "opencl:0" and ours.is_bf16_supported()
        assert interface.__spec__.loader.get_source(interface.__name__).count("class DeviceInterface") == 1
        assert interface.__name__ not in [getattr(finder, "name", None) for finder in sys.meta_path]
        """
    ).ok()


CALLS = {
    "add": lambda a, b: a + b.t(),
    "mm": lambda a, b: a @ b,
    "transposed": lambda a, b: a.t() * 2,
    "channels_last": lambda a, b: torch.nn.functional.relu(
        a.reshape(1, 2, 2, 3).contiguous(memory_format=torch.channels_last)
    ),
    "sum": lambda a, b: a.sum(0, keepdim=True),
    "mean_of_bool": lambda a, b: (a > 0).sum(),
    "promote": lambda a, b: a.to(torch.int32) + 1.5,
    "view": lambda a, b: a.view(2, 6)[:, ::2],
    "permute": lambda a, b: a.expand(2, 4, 3).permute(2, 0, 1),
    "softmax": lambda a, b: a.t().softmax(0),
    "cat": lambda a, b: torch.cat([a, b.t()], 1),
    "where": lambda a, b: torch.where(a > 0, a, b.t()),
    "layer_norm": lambda a, b: torch.nn.functional.layer_norm(a, (3,)),
    "sort": lambda a, b: a.sort(0)[1],
    "empty_like": lambda a, b: torch.zeros_like(a.t()),
}


@pytest.mark.parametrize("name", CALLS)
def test_fake_tensors_predict_the_result(device, name):
    a, b = torch.randn(4, 3, device=device), torch.randn(3, 4, device=device)
    real = CALLS[name](a, b)
    with FakeTensorMode() as mode:
        fake = CALLS[name](mode.from_tensor(a), mode.from_tensor(b))
    assert (fake.shape, fake.dtype, fake.stride(), fake.device) == (real.shape, real.dtype, real.stride(), real.device)
    assert fake.storage_offset() == real.storage_offset()


def test_fake_factories_do_not_touch_the_device(device):
    allocated = torch.graft.memory_allocated()
    with FakeTensorMode():
        x = torch.empty(2**40, device="graft")
        assert (x + 1).device == torch.device("graft", 0) and x.is_graft
    assert torch.graft.memory_allocated() == allocated


def model_and_input(device):
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    return model.to(device), torch.randn(5, 6, device=device)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled_training_step_equals_eager(device, dynamic):
    torch._dynamo.reset()
    model, x = model_and_input(device)

    def loss(value):
        return model(value).log_softmax(-1).square().mean()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for rows in (5, 3, 4):
        model.zero_grad()
        eager = loss(x[:rows])
        eager.backward()
        expected = [p.grad.clone() for p in model.parameters()]
        model.zero_grad()
        result = compiled(x[:rows])
        result.backward()
        assert torch.allclose(result, eager, rtol=1e-5)
        for parameter, gradient in zip(model.parameters(), expected):
            assert torch.allclose(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_compiled_graph_with_views_and_mutation(device):
    torch._dynamo.reset()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def function(x, buffer):
        buffer.t()[0].add_(x.sum(1))
        return x.t(), buffer[1:], torch.nn.functional.dropout(x, 0.0)

    x, buffer = torch.randn(4, 3, device=device), torch.zeros(4, 3, device=device)
    transposed, tail, _ = function(x, buffer)
    assert torch.allclose(buffer[:, 0], x.sum(1)) and buffer[:, 1:].abs().sum().item() == 0
    assert transposed.data_ptr() == x.data_ptr() and tail.data_ptr() == buffer.data_ptr() + 12
    assert transposed.stride() == (1, 3)


def test_factories_and_device_calls_in_a_compiled_function(device):
    torch._dynamo.reset()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def function(x):
        return x + torch.arange(x.shape[0], device=x.device) + torch.ones(1, device="graft")

    assert function(torch.zeros(3, device=device)).tolist() == [1, 2, 3]


def test_export(device):
    model, x = model_and_input(device)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: rows},))
    again = program.module()
    assert torch.allclose(again(x), model(x), rtol=1e-5)
    wide = torch.randn(9, 6, device=device)
    assert torch.allclose(again(wide), model(wide), rtol=1e-5)
    assert all(p.device == device for p in program.parameters())
