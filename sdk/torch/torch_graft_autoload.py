"""What `import torch` calls, by the entry point in the group torch.backends: makes Graft's devices known.

Not where PyTorch has another accelerator and a device of it is there. PyTorch's autograd serves one accelerator a
process, out-of-tree devices first, so that backward() on the other would fail from then on, for programs too that never
heard of Graft. Those who want Graft's devices there say so: `import torch_graft`, or GRAFT_TORCH_AUTOLOAD=1. This is a
module of its own, so that to be asked is not to import torch_graft.

Does not raise: what goes wrong is a warning, so that `import torch` goes on.
"""

import glob
import os
import sys
import warnings
from pathlib import Path

import torch

SWITCH = "GRAFT_TORCH_AUTOLOAD"


def autoload():
    """Registers the devices, if nobody else loses by it."""
    wish = os.environ.get(SWITCH, "")
    if wish not in ("", "0", "1"):
        _warn(f'{SWITCH}="{wish}" is not known; 0: never, 1: always, unset: where PyTorch has no other accelerator')
    if wish == "0":
        return
    other = None if wish == "1" else _other_accelerator()
    if other:
        _warn(
            f"there is a {other} device, and PyTorch's autograd serves one accelerator a process: Graft's devices are "
            f"left out. `import torch_graft` or {SWITCH}=1 takes them instead of {other}; {SWITCH}=0 silences this"
        )
        return
    try:
        import torch_graft  # noqa: F401  registers them
    except Exception as error:  # an installation that is broken
        _warn(f"can't be imported ({type(error).__name__}: {error}); install it again")


def _warn(text):
    try:
        # One line: with a place in a file Python would print what stands there, too.
        warnings.warn_explicit(f"torch_graft: {text}", RuntimeWarning, "torch_graft", 0)
    except Warning:  # made an error by -W error
        print(f"torch_graft: {text}", file=sys.stderr)


# --- which other accelerator there is ---


def _other_accelerator():
    """The type of the accelerator that PyTorch is built with, if there is a device of it, or None. Starts no driver,
    which processes that are forked later could not use."""
    accelerator = torch._C._accelerator_getAccelerator()
    if accelerator is None or accelerator.type == torch._C._get_privateuse1_backend_name():
        return None
    is_there = _QUESTIONS.get(accelerator.type)
    return accelerator.type if is_there is None or is_there() else None


def _any_file(*patterns):
    return any(glob.glob(pattern) for pattern in patterns)


def _counted(ask, otherwise):
    """Whether there is a device, by a function of PyTorch that asks the driver's management library, where this version
    has it and it answers; else `otherwise`."""
    try:
        count = ask()
    except Exception:  # private functions of PyTorch, over libraries that may be broken
        count = -1
    return count > 0 if count >= 0 else otherwise()


def _has_cuda():
    if torch.version.hip:
        return _counted(lambda: torch.cuda._device_count_amdsmi(), lambda: _any_file("/dev/kfd"))
    return _counted(
        lambda: torch.cuda._device_count_nvml(),
        lambda: _any_file("/dev/nvidia[0-9]*", "/dev/nvhost-gpu", "/dev/nvgpu/*", "/dev/dxg"),
    )


def _has_xpu():
    return _counted(lambda: torch.xpu._device_count_zes(), _has_intel_gpu)


def _has_intel_gpu():
    vendors = glob.glob("/sys/class/drm/renderD*/device/vendor")
    return any(Path(vendor).read_text().strip() == "0x8086" for vendor in vendors) or _any_file("/dev/dxg")


# Of other types it is not known how to ask: where PyTorch has one, a device of it is taken to be there.
_QUESTIONS = {"cuda": _has_cuda, "xpu": _has_xpu, "mps": lambda: torch.backends.mps.is_available()}
