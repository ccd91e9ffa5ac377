"""How functions that take a device read it."""

import torch

from torch_graft import _registration


def device_index(device=None):
    """The index that an int, a text or a torch.device means; the current device for None and for one without an index.
    Whether there is such a device is for the caller to find out."""
    if device is None:
        return _registration.library().current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    name = _registration.device_name()
    if device.type != name:
        raise ValueError(f"expected a {name} device, but got {device}")
    return _registration.library().current_device() if device.index is None else device.index
