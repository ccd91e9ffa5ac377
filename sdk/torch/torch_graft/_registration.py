"""Makes the devices known to PyTorch, once, when the package is imported.

Reads manifests only. Nothing here may raise, since PyTorch may be being imported meanwhile: what is wrong becomes a
warning and the reason that _device.library() gives.
"""

import atexit
import os
import sys
from importlib import import_module
from importlib.metadata import entry_points

import torch

from torch_graft import _beside, _device
from torch_graft._warning import warn

GROUP = "torch.backends"
UNNAMED = "privateuseone"  # how PyTorch calls the key while no package has named it

_done = False


def register():
    """Registers the device under its name. A second call does nothing."""
    global _done
    if _done:
        return
    _done = True
    try:
        problem = _register()
    except Exception as error:
        problem = f"registering the device failed: {type(error).__name__}: {error}"
    if problem:
        _device.refuse(problem)
        warn(problem)


# --- the steps ---


def _register():
    """Returns what is wrong, or None."""
    problem = _other_torch() or _taken()
    if problem:
        return problem
    name = _chosen_name()
    try:
        library = import_module("torch_graft._C")
    except ImportError as error:
        return f"its C++ part does not load ({error}); build it again: pip install --no-build-isolation ./sdk/torch"
    if not library.is_registered():
        return "another package has taken PyTorch's device key for out-of-tree devices (PrivateUse1)"
    other = torch._C._accelerator_getAccelerator()
    torch.utils.rename_privateuse1_backend(name)
    library.register_replay()
    atexit.register(library.wait_for_engine)
    _device.provide(library)
    _publish(name)
    _beside.tell_at_first_use(other)
    _warn_of_refused(library.backends())
    return None


def _other_torch():
    """The C++ part of another version must not even be opened: its calls would go astray."""
    from torch_graft._built_for import TORCH

    running = ".".join(torch.__version__.split(".")[:2])
    if running == TORCH:
        return None
    return (
        f"built for PyTorch {TORCH}, but this is {torch.__version__}; "
        "build it again: pip install --no-build-isolation ./sdk/torch"
    )


def _taken():
    """PyTorch has one key for devices from outside. Whoever else wants it goes first: a second one to rename it would
    stop `import torch`, and of the two only this package knows how to stand aside."""
    others = [entry for entry in entry_points(group=GROUP) if not entry.value.startswith("torch_graft_autoload:")]
    if torch._is_device_backend_autoload_enabled():
        for entry in others:
            try:
                entry.load()
            except Exception:  # PyTorch loads it too, and reports what is wrong with it
                pass
    name = _device.device_name()
    accelerator = torch._C._accelerator_getAccelerator()
    if name == UNNAMED and (accelerator is None or accelerator.type != UNNAMED):
        return None
    packages = ", ".join(entry.value.split(":")[0] for entry in others) or "a package imported before"
    return (
        f'PyTorch\'s device key for out-of-tree devices (PrivateUse1) is taken as "{name}" by another package '
        f"({packages}), and there is only one, so there are no Graft devices. Uninstall one of the two, or set "
        "TORCH_DEVICE_BACKEND_AUTOLOAD=0 and import the one you want"
    )


def _chosen_name():
    name = os.environ.get("GRAFT_TORCH_DEVICE_NAME") or "graft"
    problem = _name_problem(name)
    if not problem:
        return name
    warn(f'GRAFT_TORCH_DEVICE_NAME="{name}": {problem}; the device is called "graft"')
    return "graft"


def _name_problem(name):
    if not name.isidentifier() or not name.isascii() or name != name.lower():
        return "a device name is made of lower-case letters, digits and _"
    if any(hasattr(owner, name) for owner in (torch, torch.Tensor, torch.nn.Module, torch.UntypedStorage)):
        return "PyTorch has something of that name"
    try:
        torch.device(name)
    except RuntimeError:
        return None
    return "PyTorch has a device of that name"


def _publish(name):
    """torch.<name> and its submodules, Tensor.<name>(), DLPack, and the device interface of torch.compile."""
    from torch_graft import _compile, _custom_ops, _distributed, _dlpack, _optimizers, _recurrent, _sharing, _storage
    from torch_graft import _transformer, device_module

    torch._register_device_module(name, device_module)
    for part in ("amp", "graphs", "memory", "random", "streams"):
        sys.modules[f"torch.{name}.{part}"] = getattr(device_module, part)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _dlpack.install()
    _storage.install()
    _sharing.install()
    _transformer.install()
    _optimizers.install()
    _compile.install()
    _distributed.install()
    _custom_ops.install(_device.library())
    _recurrent.install(_device.library())


def _warn_of_refused(rows):
    """Plugins that can't be used, unless another of their name can, or GRAFT_PLUGINS left them out."""
    usable = {name for name, _, problem in rows if not problem}
    chosen = os.environ.get("GRAFT_PLUGINS")
    for name, manifest, problem in rows:
        if problem and name not in usable and not (chosen and name not in chosen.split(",")):
            warn(f"the plugin of {manifest} is not used: {problem}")
