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
    "load_graph",
    "reset_fallbacks",
    "route",
    "save",
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


def save(program, path, args=None, kwargs=None, state=None):
    """Writes a program as a graph file, whole or not at all; `graft run`, C and load_graph run it.

    program: what torch.export.export gave; or a module, which is exported with args and kwargs; or a function of tensors,
    a training step for one, which is traced with them: it is called once, and what it wrote to tensors is put back, with
    gradients and the state of optimizers. Call a step once before, since an optimizer makes its state at its first step.
    state: names for what a function holds: {"model": model, "optimizer": optimizer, "average": tensor}.

    Inputs are named as the arguments are, outputs as the keys of what is returned ("output" where that is a tensor). What
    the program writes to, of its own tensors, becomes an input that begins with the value of now. RuntimeError, with the
    line of the model: what a file can't hold.
    """
    from torch_graft import _files  # with torch._dynamo, which takes a while

    _files.save(program, path, args, kwargs, state)


def load_graph(path, device=None):
    """A graph file, compiled for a device (the current one where none is named): called with its inputs, in order or by
    name, it gives its output, or a tuple of them. inputs, outputs: their names. state: the inputs that the file has values
    for; calls go on from them."""
    from torch_graft import _files

    return _files.load(path, device)


def route(op, device=None):
    """Who would run an op (torch.ops.aten.mm.default, or "aten::mm") on a device, judged by the tables of its plugin as
    `graft ops` lists it: "plugin", "equal" (the slot of an op that is the same thing), "decomposition", "reference" (in
    host memory), "host" (a view: no kernel), "composite" or "unsupported"."""
    if isinstance(op, torch._ops.OpOverloadPacket):
        raise TypeError(f"torch_graft.route: {op} is a family of ops; name an overload: torch.ops.{op}.{op.overloads()[0]}")
    if not isinstance(op, (str, torch._ops.OpOverload)):
        raise TypeError(f"torch_graft.route: expected an op as torch.ops.aten.mm.default, or its name, not {op!r}")
    name = op if isinstance(op, str) else op.name()
    return _device.library().op_route(name, _device.device_index(device))


def fallbacks():
    """The calls that left their device since the start or the latest reset, most frequent first."""
    rows = [Fallback(*row) for row in _device.library().fallbacks()]
    return sorted(rows, key=lambda row: (-row.count, row.op))


def reset_fallbacks():
    """Begins to count anew."""
    _device.library().reset_fallbacks()
