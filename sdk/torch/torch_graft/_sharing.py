"""Tensors of the device that go to another process: DataLoader workers, torch.multiprocessing's queues and pipes.

They go as copies in shared host memory, or in the bytes that start a process, and are made again on the device of the
same index there. PyTorch's own way is memory that both processes address, which a plugin need not have; for a device that
it does not know it dies in the thread that feeds the queue, and the reader waits for ever. A writer's later changes are
not seen by the reader.
"""

import io
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing import reductions

from torch_graft._device import is_ours


def install():
    ForkingPickler.register(torch.Tensor, _reduce_tensor)
    ForkingPickler.register(torch.nn.Parameter, _reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, _reduce_storage)


def _reduce_tensor(tensor):
    if not is_ours(tensor):
        return reductions.reduce_tensor(tensor)
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "a tensor that autograd computed can't go to another process with its history: send tensor.detach()"
        )
    torch.utils.hooks.warn_if_has_hooks(tensor)
    return _rebuild_tensor, (type(tensor), _sent(tensor.detach().cpu()), str(tensor.device), tensor.requires_grad)


def _rebuild_tensor(kind, sent, device, requires_grad):
    tensor = _received(sent).to(device)
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _reduce_storage(storage):
    if not is_ours(storage):
        return reductions.reduce_storage(storage)
    contents = torch.empty(0, dtype=torch.uint8, device="cpu").set_(storage.cpu())
    return _rebuild_storage, (_sent(contents), str(storage.device))


def _rebuild_storage(sent, device):
    return _received(sent).to(device).untyped_storage()


def _sent(copy):
    """A copy as it is pickled. Shared memory goes to a process that is being started as the number of an open file, which
    it inherits after all has been pickled: nobody holds a copy until then, and the number would be another file's."""
    if get_spawning_popen() is None:
        return copy
    written = io.BytesIO()
    torch.save(copy, written)
    return written.getvalue()


def _received(sent):
    return torch.load(io.BytesIO(sent)) if isinstance(sent, bytes) else sent
