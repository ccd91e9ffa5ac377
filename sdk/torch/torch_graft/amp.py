"""Automatic mixed precision: torch.amp for this device type."""

import functools

import torch

from torch_graft._device import device_name


class autocast(torch.amp.autocast):
    """torch.autocast of this device type; float16 unless told."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=None):
        super().__init__(device_name(), dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):
    """torch.amp.GradScaler of this device type."""

    def __init__(self, *args, **kwargs):
        super().__init__(device_name(), *args, **kwargs)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd of this device type."""
    decorate = functools.partial(
        torch.amp.custom_fwd, device_type=device_name(), cast_inputs=cast_inputs
    )
    return decorate if fwd is None else decorate(fwd)


def custom_bwd(bwd):
    """torch.amp.custom_bwd of this device type."""
    return torch.amp.custom_bwd(bwd, device_type=device_name())
