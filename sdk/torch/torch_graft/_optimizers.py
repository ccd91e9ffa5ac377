"""Optimizers whose steps are captured.

Those with the option capturable count their steps on the CPU without it, so that a replay would repeat the number of then
for ever. PyTorch refuses that for CUDA and XPU in a check that their step() calls; here it does for this device, too.
"""

import functools

import torch

from torch_graft._device import device_name, library

# What versions of PyTorch call it; some have both names.
_CHECKS = ("_accelerator_graph_capture_health_check", "_cuda_graph_capture_health_check")


def install():
    for name in _CHECKS:
        if hasattr(torch.optim.Optimizer, name):
            _wrap(name)


def _wrap(name):
    plain = getattr(torch.optim.Optimizer, name)

    @functools.wraps(plain)
    def check(self):
        _check_captured(self)
        return plain(self)

    setattr(torch.optim.Optimizer, name, check)


def _check_captured(optimizer):
    if torch.compiler.is_compiling() or not library().is_captured():
        return
    captured = torch.device(device_name(), library().current_device())
    for group in optimizer.param_groups:
        counts_on_the_cpu = not group.get("capturable", True) and not group.get("fused")
        if counts_on_the_cpu and any(parameter.device == captured for parameter in group["params"]):
            raise RuntimeError(
                f"{type(optimizer).__name__}: step() is captured on {captured}, but capturable is False, so that each "
                "replay would repeat the numbers of this step; make the optimizer with capturable=True (or fused=True)"
            )
