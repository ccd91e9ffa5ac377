"""Graft plugins as PyTorch devices.

After installation `import torch` is enough: torch.ones(3, device="graft"). This module says what there is: which index
is which plugin's device, which ops left it, and adds plugins at run time. torch.graft (or what GRAFT_TORCH_DEVICE_NAME
says) is the device module, with the functions that torch.cuda has.
"""

from pathlib import Path
from typing import NamedTuple

import torch  # noqa: F401  first: it calls torch_graft_autoload, which may import this package

from torch_graft import _device, _registration
from torch_graft._statistics import Statistics, statistics

__all__ = [
    "Device",
    "Fallback",
    "Statistics",
    "cmake_prefix_path",
    "devices",
    "fallbacks",
    "load",
    "reset_fallbacks",
    "statistics",
]

# Where CMake finds GraftTorch, for programs in C++.
cmake_prefix_path = str(Path(__file__).parent / "share" / "cmake")

_registration.register()


class Device(NamedTuple):
    index: int
    name: str  # of its plugin's device, as libgraft says it: "opencl:0"
    plugin: str


class Fallback(NamedTuple):
    op: str
    device: str
    dtypes: str
    way: str  # "host kernel" (libgraft's) or "PyTorch CPU"
    count: int


def devices():
    """The devices of all plugins in the order of their indices. Opens the plugins."""
    return [Device(index, *row) for index, row in enumerate(_device.library().devices())]


def load(path):
    """Adds a plugin, by name or by the path of its library or manifest; returns the index of its first device."""
    return _device.library().load(str(path))


def fallbacks():
    """The calls that left their device since the start or the latest reset, most frequent first."""
    rows = [Fallback(*row) for row in _device.library().fallbacks()]
    return sorted(rows, key=lambda row: (-row.count, row.op))


def reset_fallbacks():
    """Begins to count anew."""
    _device.library().reset_fallbacks()
