"""Graft's devices beside another accelerator in one process: PyTorch's autograd serves one, and it is Graft's then."""

import torch

from torch_graft._device import device_name
from torch_graft._warning import warn


def tell_at_first_use(other):
    """Says so in one line when the other accelerator is first used: now, if it was. `other` is the device that PyTorch
    took for its accelerator before, or None."""
    if other is None:
        return
    # What torch.cuda and its like do when their driver starts; those without it have none to wait for.
    when_used = getattr(getattr(torch, other.type, None), "_lazy_call", None)
    if when_used:
        when_used(lambda: _tell(other.type))
    else:
        _tell(other.type)


def _tell(other):
    warn(
        f"PyTorch's autograd serves one accelerator a process, and here that is {device_name()}: backward() of tensors "
        f"on {other} fails. Use {other} in a process without torch_graft (GRAFT_TORCH_AUTOLOAD=0)"
    )
