"""torch.save and torch.load, pickle, deepcopy, and DLPack in both directions."""

import copy
import ctypes
import io
import pickle

import numpy
import pytest
import torch
from torch.utils.dlpack import from_dlpack, to_dlpack


def saved(value):
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_save_and_load(device, other, dtype):
    x = torch.arange(6).reshape(2, 3).to(dtype)
    again = torch.load(saved(x.to(device)))
    assert again.device == device and torch.equal(again.cpu(), x)
    for where in ("cpu", torch.device("cpu"), {"graft:0": "cpu"}, lambda storage, location: storage.cpu()):
        assert torch.equal(torch.load(saved(x.to(device)), map_location=where), x)
    onto = torch.load(saved(x), map_location=other)
    assert onto.device == other and torch.equal(onto.cpu(), x)
    assert torch.load(saved(x.to(other)), map_location="graft:0").device == device


def test_views_share_their_storage_again(device):
    x = torch.arange(12.0, device=device).reshape(3, 4)
    base, view = torch.load(saved([x, x.t()[1:]]))
    assert view.data_ptr() == base.data_ptr() + 4 and view.stride() == (1, 4)
    view.zero_()
    assert base.sum().item() == 0 + 4 + 8


def test_state_of_model_and_optimizer(device):
    model = torch.nn.Linear(3, 2).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.ones(1, 3, device=device)).sum().backward()
    optimizer.step()
    state = torch.load(saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()}), weights_only=True)
    twin = torch.nn.Linear(3, 2).to(device)
    twin.load_state_dict(state["model"])
    assert torch.equal(twin.weight, model.weight)
    torch.optim.AdamW(twin.parameters()).load_state_dict(state["optimizer"])
    on_cpu = torch.nn.Linear(3, 2)
    on_cpu.load_state_dict(state["model"])
    assert torch.equal(on_cpu.weight, model.weight.cpu())


def test_a_device_that_is_not_there_says_so(device):
    data = saved(torch.ones(2, device=device)).getvalue()
    with pytest.raises(RuntimeError, match="map_location"):
        torch.load(io.BytesIO(data.replace(b"graft:0", b"graft:9")), weights_only=True)


def test_pickle_and_deepcopy(device):
    x = torch.randn(3, 4, device=device)
    again = pickle.loads(pickle.dumps(x))
    assert again.device == device and torch.equal(again, x)
    twin = copy.deepcopy([x, x[0]])
    assert torch.equal(twin[0], x) and twin[1].data_ptr() == twin[0].data_ptr() != x.data_ptr()
    parameter = pickle.loads(pickle.dumps(torch.nn.Parameter(x)))
    assert parameter.requires_grad and parameter.device == device
    generator = torch.Generator(device=device)
    assert generator.device == device


# --- DLPack ---


def test_dlpack_round_trip_shares_memory(device, other):
    for where in (device, other):
        x = torch.arange(6.0, device=where).reshape(2, 3)
        assert x.__dlpack_device__() == (12, where.index)
        capsules = to_dlpack(x), x.__dlpack__(), x.__dlpack__(max_version=(1, 0))
        for exchanged in (torch.from_dlpack(x), from_dlpack(x.t()).t(), *map(from_dlpack, capsules)):
            assert exchanged.device == where and exchanged.data_ptr() == x.data_ptr()
            exchanged.add_(1)
        assert x.flatten().tolist() == [5, 6, 7, 8, 9, 10]
    part = torch.from_dlpack(x[1:, 1:])
    assert part.tolist() == [[9, 10]] and part.storage_offset() == 4


def test_dlpack_keeps_memory_alive(device):
    capsule = torch.full((1000,), 3.0, device=device).__dlpack__(max_version=(1, 0))
    noise = [torch.zeros(1000, device=device) for _ in range(10)]
    assert from_dlpack(capsule).sum().item() == 3000
    del noise
    before = torch.graft.memory_allocated()
    unused = torch.zeros(1000, device=device).__dlpack__()
    assert torch.graft.memory_allocated() > before
    del unused
    assert torch.graft.memory_allocated() == before


def test_dlpack_with_the_cpu(device):
    x = torch.arange(4.0, device=device)
    array = numpy.from_dlpack(x, device="cpu")
    assert array.tolist() == [0, 1, 2, 3]
    host = torch.from_dlpack(x, device="cpu")
    assert host.device.type == "cpu" and host.tolist() == [0, 1, 2, 3]
    assert torch.from_dlpack(numpy.arange(3.0)).to(device).tolist() == [0, 1, 2]
    assert torch.from_dlpack(torch.arange(3.0)).tolist() == [0, 1, 2]
    assert numpy.from_dlpack(torch.arange(3.0).pin_memory()).tolist() == [0, 1, 2]
    copied = torch.from_dlpack(x, copy=True)
    assert copied.device == device and copied.data_ptr() != x.data_ptr()
    onto = torch.from_dlpack(torch.arange(3.0), device="graft:0")
    assert onto.device == device and onto.tolist() == [0, 1, 2]


def test_dlpack_refuses(device):
    x = torch.ones(2, dtype=torch.complex64, device=device)
    with pytest.raises(BufferError, match="conj"):
        x.conj().__dlpack__()
    with pytest.raises(BufferError, match="grad"):
        torch.ones(2, device=device, requires_grad=True).__dlpack__()
    with pytest.raises(BufferError, match="copy"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    capsule = x.__dlpack__()
    from_dlpack(capsule)
    with pytest.raises((RuntimeError, ValueError), match="consumed|once|capsule|already"):
        from_dlpack(capsule)


def test_a_c_program_on_the_same_libgraft_reads_the_capsule(device):
    import torch_graft

    libgraft = ctypes.CDLL(str(torch_graft.__path__[0]) + "/lib/libgraft.so.0")
    name = ctypes.c_char_p(b"dltensor")
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    capsule = torch.tensor([1.5, 2.5, 3.5], device=device).__dlpack__()
    managed = ctypes.c_void_p(ctypes.pythonapi.PyCapsule_GetPointer(capsule, name))
    tensor = ctypes.c_void_p()
    assert libgraft.graft_tensor_from_dlpack_old(managed, ctypes.byref(tensor)) == 0
    ctypes.pythonapi.PyCapsule_SetName(ctypes.py_object(capsule), ctypes.c_char_p(b"used_dltensor"))
    values = (ctypes.c_float * 3)()
    assert libgraft.graft_tensor_to_host(tensor, values) == 0
    assert list(values) == [1.5, 2.5, 3.5]
    libgraft.graft_tensor_release(tensor)
