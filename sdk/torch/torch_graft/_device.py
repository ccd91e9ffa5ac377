"""What the rest of the package stands on: the C++ part, the name of the device type, and how functions read a device.

Imports no other module of the package: _registration.py fills it in.
"""

import torch

_library = None
_problem = "the device is not registered"


def provide(library):
    """For _registration.py: the C++ module, of a device that is registered."""
    global _library, _problem
    _library, _problem = library, None


def refuse(problem):
    """For _registration.py: why there is no device."""
    global _problem
    _problem = problem


def library():
    """The C++ module; raises where the device could not be registered."""
    if _problem:
        raise RuntimeError(f"torch_graft: {_problem}")
    return _library


def device_name():
    """The name of the device type: "graft", or what GRAFT_TORCH_DEVICE_NAME said."""
    return torch._C._get_privateuse1_backend_name()


def is_ours(value):
    """Whether a tensor, a storage or an event is on a device of this backend."""
    return value.device.type == device_name()


def device_index(device=None):
    """The index that an int, a text or a torch.device means; the current device for None and for one without an index.
    Whether there is such a device is for the caller to find out."""
    if device is None:
        return library().current_device()
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type != device_name():
        raise ValueError(f"expected a {device_name()} device, but got {device}")
    return library().current_device() if device.index is None else device.index
