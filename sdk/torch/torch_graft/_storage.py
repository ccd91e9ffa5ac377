"""Files of PyTorch's older format, which pickle uses too, hold storages of the device as those of the CPU are held.

PyTorch would read and write device memory as a tensor over a bare address, which libgraft has no memory for.
"""

import functools

import torch

from torch_graft._device import is_ours


def install():
    storage = torch.UntypedStorage
    storage._write_file = _write(storage._write_file)
    storage._set_from_file = _read(storage._set_from_file)


def _write(original):
    @functools.wraps(original)
    def _write_file(self, *args):
        return original(self.cpu() if is_ours(self) else self, *args)

    return _write_file


def _read(original):
    @functools.wraps(original)
    def _set_from_file(self, *args):
        if not is_ours(self):
            return original(self, *args)
        return self.copy_(original(torch.UntypedStorage(self.nbytes()), *args))

    return _set_from_file
