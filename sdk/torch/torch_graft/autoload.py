"""The entry point that `import torch` calls (group torch.backends)."""

from torch_graft import _registration


def autoload():
    """Registers the device. Does not raise: what goes wrong is a warning, so that `import torch` goes on."""
    _registration.register()
