"""The higher-order ops by which the partitioner draws the same numbers again where checkpointing computes a random op a
second time. PyTorch's own know the devices that it has itself."""

import torch
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch.utils import _pytree as pytree

from torch_graft import random
from torch_graft._device import is_ours


def replacements():
    """What is called for each."""
    return {run_and_save_rng_state: _save_and_run, run_with_rng_state: _run_with}


def _save_and_run(op, *args, **kwargs):
    device = _device_of(args, kwargs)
    if device is None:
        return run_and_save_rng_state(op, *args, **kwargs)
    return random.get_rng_state(device), op(*args, **kwargs)


def _run_with(state, op, *args, **kwargs):
    device = _device_of(args, kwargs)
    if device is None:
        return run_with_rng_state(state, op, *args, **kwargs)
    before = random.get_rng_state(device)
    random.set_rng_state(state, device)
    try:
        return op(*args, **kwargs)
    finally:
        random.set_rng_state(before, device)


def _device_of(args, kwargs):
    """Of ours, that the op draws on; or None."""
    for value in pytree.tree_leaves((kwargs, args)):
        if isinstance(value, torch.device):
            return value if value.type == torch._C._get_privateuse1_backend_name() else None
        if isinstance(value, torch.Tensor):
            return value.device if is_ours(value) else None
    return None
