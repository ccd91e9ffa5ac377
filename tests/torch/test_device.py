"""The device module, torch.accelerator, moving tensors and modules between devices."""

import copy

import pytest
import torch
import torch_graft


def test_every_name_of_the_module_is_there():
    for name in torch.graft.__all__:
        assert getattr(torch.graft, name) is not None, name
    with pytest.raises(AttributeError, match="nothing_of_that_name"):
        torch.graft.nothing_of_that_name


def test_devices():
    rows = torch_graft.devices()
    assert len(rows) == torch.graft.device_count() == torch.accelerator.device_count() >= 2
    assert [row.index for row in rows] == list(range(len(rows)))
    assert rows[0].plugin == "opencl" and rows[0].name == "opencl:0"
    assert any(row.plugin == "reference" for row in rows)
    assert torch.graft.is_available() and torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("graft")


def test_properties(device):
    properties = torch.graft.get_device_properties(device)
    assert properties.text == "opencl:0" and properties.name == torch.graft.get_device_name(0)
    assert properties.total_memory > 2**20 and properties.kind in ("cpu", "gpu", "accelerator")
    assert torch.float32 in properties.dtypes
    assert properties == torch.graft.get_device_properties("graft:0")
    assert torch.graft.is_bf16_supported()


def test_current_device(other):
    assert torch.graft.current_device() == 0
    with torch.graft.device(other):
        assert torch.graft.current_device() == other.index == torch.accelerator.current_device_index()
        assert torch.ones(1, device="graft").device == other
        with torch.graft.device(-1):
            assert torch.graft.current_device() == other.index
        with torch.graft.device_of(torch.ones(1, device="graft:0")):
            assert torch.graft.current_device() == 0
        with torch.graft.device_of(torch.ones(1)):
            assert torch.graft.current_device() == other.index
    assert torch.graft.current_device() == 0
    torch.graft.set_device(other)
    assert torch.accelerator.current_device_index() == other.index
    torch.graft.set_device(0)


def test_current_device_is_of_a_thread(other):
    import threading

    seen = []
    with torch.graft.device(other):
        thread = threading.Thread(target=lambda: seen.append(torch.graft.current_device()))
        thread.start()
        thread.join()
    assert seen == [0]


def test_default_device(device):
    torch.set_default_device("graft")
    assert torch.ones(2).device == device and torch.nn.Linear(2, 2).weight.device == device
    torch.set_default_device(None)
    with torch.device("graft"):
        assert torch.arange(3).device == device
    assert torch.ones(2).device == torch.device("cpu")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_to_and_back(device, dtype):
    x = torch.arange(-5, 7).reshape(3, 4).to(dtype)
    y = x.to(device)
    assert y.device == device and y.dtype == dtype and y.is_graft and not x.is_graft
    assert torch.equal(y.cpu(), x) and torch.equal(x.graft().cpu(), x)
    assert torch.equal(y.t().cpu(), x.t()) and torch.equal(y[1:, ::2].cpu(), x[1:, ::2])
    assert torch.equal(x.t().to(device).cpu(), x.t())
    assert torch.equal(y.to(torch.float32).cpu(), x.to(torch.float32))
    assert torch.equal(x.to(device, torch.float32).cpu(), x.to(torch.float32))
    assert y.to(device) is y


@pytest.mark.parametrize("number", [2**63, 2**63 + 1, 2**64 - 1])
def test_numbers_that_only_uint64_holds(device, number):
    def made(where):
        x = torch.full((2,), number, dtype=torch.uint64, device=where)
        yield x
        yield torch.zeros(2, dtype=torch.uint64, device=where).fill_(number)
        yield x.new_full((3,), number)
        yield x.eq(number)
        yield x.ne(number - 1)
        yield torch.full((2,), number - 2**64, device=where).eq(number)
        yield torch.ones(2, device=where) + number
        yield torch.ones(2, dtype=torch.int64, device=where).add_(number)
        yield torch.full((2,), number, dtype=torch.float64, device=where)

    for mine, theirs in zip(made(device), made("cpu"), strict=True):
        assert mine.dtype == theirs.dtype and mine.tolist() == theirs.tolist()
    assert torch.full((), number, dtype=torch.uint64, device=device).item() == number
    with pytest.raises(RuntimeError, match="can't hold"):
        torch.full((2,), number, device=device)


def test_between_plugins(device, other):
    x = torch.randn(4, 5)
    here, there = x.to(device), x.to(other)
    assert torch.equal(here.to(other).cpu(), x) and torch.equal(there.to(device).cpu(), x)
    assert here.to(other).device == other and there.to(device).device == device
    target = torch.zeros(5, 4, dtype=torch.float64, device=other)
    target.copy_(here.t())
    assert torch.equal(target.cpu(), x.t().double())
    row = torch.zeros(3, 5, device=device)
    row.copy_(there[0])  # broadcast, from the other plugin
    assert torch.equal(row.cpu(), x[0].expand(3, 5))


def test_channels_last_is_kept(device):
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    y = x.to(device)
    assert y.stride() == x.stride() and y.is_contiguous(memory_format=torch.channels_last)
    assert (y + 1).stride() == (x + 1).stride()
    assert torch.equal((y * 2).cpu(), x * 2)
    assert y.contiguous().stride() == x.contiguous().stride()


def test_conjugate_and_negative_bits(device):
    x = torch.randn(3, 4, dtype=torch.complex64)
    y = x.to(device)
    assert y.conj().is_conj() and torch.equal(y.conj().cpu().resolve_conj(), x.conj().resolve_conj())
    assert torch.equal(x.conj().to(device).cpu().resolve_conj(), x.conj().resolve_conj())
    assert torch.equal(y.conj().imag.cpu().resolve_neg(), x.conj().imag.resolve_neg())
    assert torch.allclose((y.conj() * y).cpu(), x.conj() * x)
    target = torch.zeros_like(x)
    target.copy_(y.conj())
    assert torch.equal(target, x.conj().resolve_conj())


def test_tied_weights_and_parameters_keep_their_identity(device):
    model = torch.nn.Sequential(torch.nn.Embedding(7, 4), torch.nn.Linear(4, 7, bias=False))
    model[1].weight = model[0].weight
    before = model[0].weight
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    model.to(device)
    assert model[0].weight is model[1].weight is before and before.device == device
    model(torch.tensor([1, 2], device=device)).sum().backward()
    old = before.detach().clone()
    optimizer.step()
    assert not torch.equal(before.detach(), old), "the optimizer made before the move steps the moved weights"
    assert model.cpu()[0].weight is before and before.device.type == "cpu"


def test_deepcopy_of_a_module(device):
    model = torch.nn.Linear(3, 2).to(device)
    twin = copy.deepcopy(model)
    assert twin.weight.device == device and torch.equal(twin.weight, model.weight)
    with torch.no_grad():
        twin.weight.zero_()
    assert model.weight.abs().sum().item() > 0


def test_storage_methods(device):
    x = torch.arange(4.0)
    storage = x.untyped_storage().graft()
    assert storage.is_graft and storage.device == device and storage.nbytes() == 16
    again = torch.empty(0, device=device).set_(storage, 0, (4,))
    assert torch.equal(again.cpu(), x)
    assert storage.cpu().tolist() == x.untyped_storage().tolist()


def test_resize_and_views(device):
    x = torch.arange(6.0, device=device)
    x.resize_(2, 2)
    assert x.cpu().tolist() == [[0, 1], [2, 3]]
    x.resize_(3, 4)  # grows the storage, keeps what was there
    assert x.flatten()[:6].cpu().tolist() == [0, 1, 2, 3, 4, 5]
    base = torch.zeros(4, 4, device=device)
    base[1:3].t().unfold(0, 2, 2).add_(1)
    assert base.sum().item() == 8 and base[0].sum().item() == 0
    assert base.view(2, 8).as_strided((2,), (5,)).data_ptr() == base.data_ptr()


def test_in_place_on_views_and_out(device):
    base = torch.zeros(3, 4, device=device)
    view = base.t()[1]
    view += 2
    assert base[:, 1].tolist() == [2, 2, 2] and base.sum().item() == 6
    out = torch.empty(4, 3, device=device).t()
    result = torch.add(base, 1, out=out)
    assert result is out and out.stride() == (1, 3) and torch.equal(out.cpu(), base.cpu() + 1)
    wrong = torch.empty(0, device=device)
    torch.mul(base, 2, out=wrong)
    assert wrong.shape == (3, 4)
    with pytest.raises(RuntimeError, match="memory|overlap"):
        line = torch.zeros(5, device=device)
        line[1:].add_(line[:-1])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_the_default_dtype_is_pytorchs(device, dtype):
    integers = torch.arange(1, 5)
    ops = [torch.sqrt, lambda x: x + 0.5, lambda x: x / 2, lambda x: torch.add(x, 1.5),
           lambda x: torch.where(x > 2, 1.0, 2.0), lambda x: x.new_full((2,), 3), lambda x: torch.atan2(x, x),
           lambda x: torch.full_like(x, 1.5, dtype=torch.get_default_dtype()), lambda x: torch.ones(2, device=x.device),
           lambda x: torch.arange(0.0, 2.0, device=x.device)]  # fmt: skip
    if dtype == torch.float64:
        ops.append(lambda x: x * (1 + 2j))
    before = [op(integers.to(device)).dtype for op in ops]  # plans made for f32 are not taken for another
    try:
        torch.set_default_dtype(dtype)
        for i, op in enumerate(ops):
            expected, result = op(integers), op(integers.to(device))
            assert result.dtype == expected.dtype, i
            torch.testing.assert_close(result.cpu(), expected)
    finally:
        torch.set_default_dtype(torch.float32)
    assert [op(integers.to(device)).dtype for op in ops] == before


def test_given_outputs_are_cast_to_where_pytorch_casts(device):
    x = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
    ops = [torch.abs, torch.neg, torch.floor, torch.sin, torch.square, torch.signbit, torch.nonzero,
           lambda x, out: torch.mm(x, x, out=out), lambda x, out: torch.add(x, 1, out=out),
           lambda x, out: torch.gather(x, 0, (x > 0).long(), out=out), lambda x, out: torch.argmax(x, 0, out=out),
           lambda x, out: torch.cat([x, x], out=out), lambda x, out: torch.mean(x, 0, out=out),
           lambda x, out: torch.eq(x, 1, out=out), lambda x, out: torch.softmax(x, 0, out=out)]  # fmt: skip

    def outcome(op, on, dtype):
        out = torch.empty(0, dtype=dtype, device=on)
        try:
            return op(x.to(on), out=out).cpu()
        except (RuntimeError, TypeError):
            return "refused"

    seen = set()
    for i, op in enumerate(ops):
        for dtype in (torch.float64, torch.float16, torch.int32, torch.bool):
            expected, result = outcome(op, "cpu", dtype), outcome(op, device, dtype)
            seen.add(isinstance(expected, str))
            if isinstance(expected, str) or isinstance(result, str):
                assert type(result) is type(expected), (i, dtype, expected, result)
            else:
                torch.testing.assert_close(result, expected)
    assert seen == {True, False}


def test_deterministic_mode(device):
    torch.use_deterministic_algorithms(True)
    try:
        x = torch.randn(8, 8, device=device)
        assert torch.equal(x @ x, x @ x)
    finally:
        torch.use_deterministic_algorithms(False)


def test_fallbacks_are_counted(device):
    torch_graft.reset_fallbacks()
    assert torch_graft.fallbacks() == []
    x = torch.randn(3, 3, device=device)
    values = torch.linalg.eigvals(x + x.t())  # nothing that a kernel of the plugin does
    assert torch.allclose(values.cpu().real.sort().values, torch.linalg.eigvalsh((x + x.t()).cpu()), atol=1e-5)
    rows = torch_graft.fallbacks()
    assert any("linalg_eig" in row.op and row.count >= 1 and row.device == "opencl:0" for row in rows), rows
    torch_graft.reset_fallbacks()
    (x @ x).relu().sum().item()
    assert torch_graft.fallbacks() == [], "matmul, relu and sum stay on the device"
