"""DLPack for tensors of the device.

PyTorch's own export knows the device only under its unnamed key, and its import makes storages over bare addresses;
libgraft's keeps the memory's identity. So the functions that PyTorch's Tensor.__dlpack__ and from_dlpack call are
wrapped: tensors and capsules of other devices go on to the originals.
"""

import functools

import torch
from torch.overrides import has_torch_function_unary
from torch.utils.dlpack import DLDeviceType

from torch_graft._device import device_name, is_ours, library


def install():
    torch.Tensor.__dlpack_device__ = _device(torch.Tensor.__dlpack_device__)
    torch._C._from_dlpack = _import(torch._C._from_dlpack)
    torch._C._to_dlpack_versioned = _export(torch._C._to_dlpack_versioned, versioned=True)
    torch._C._to_dlpack = _export(torch._C._to_dlpack, versioned=False)
    torch.to_dlpack = torch.utils.dlpack.to_dlpack = torch._C._to_dlpack


def _device(original):
    @functools.wraps(original)
    def __dlpack_device__(self):
        if has_torch_function_unary(self):
            return original(self)
        if is_ours(self):
            return (DLDeviceType.kDLExtDev, self.device.index)
        if self.device.type == "cpu":  # also where it is pinned for one of our devices, which is no CUDA host memory
            return (DLDeviceType.kDLCPU, 0)
        return original(self)

    return __dlpack_device__


def _on(tensor, dl_device, copy):
    """The tensor on the device asked for, copied where that is asked for or needed."""
    here = (DLDeviceType.kDLExtDev, tensor.device.index)
    if dl_device is None or tuple(dl_device) == here:
        return tensor.clone() if copy else tensor
    if copy is False:
        raise BufferError(f"DLPack: {tensor.device} to device {tuple(dl_device)} takes a copy; copy=False forbids it")
    if dl_device[0] == DLDeviceType.kDLCPU:
        return tensor.cpu()
    if dl_device[0] == DLDeviceType.kDLExtDev:
        return tensor.to(torch.device(device_name(), dl_device[1]))
    raise BufferError(f"DLPack: {tensor.device} can't go to device {tuple(dl_device)}; copy it to the CPU first")


def _export(original, versioned):
    @functools.wraps(original)
    def to_dlpack(tensor, *, dl_device=None, copy=None):
        if not is_ours(tensor):
            return original(tensor, dl_device=dl_device, copy=copy)
        moved = _on(tensor, dl_device, copy)
        return library().to_dlpack(moved, versioned) if is_ours(moved) else original(moved)

    return to_dlpack


def _import(original):
    @functools.wraps(original)
    def from_dlpack(capsule):
        tensor = library().from_dlpack(capsule)
        return original(capsule) if tensor is None else tensor

    return from_dlpack
