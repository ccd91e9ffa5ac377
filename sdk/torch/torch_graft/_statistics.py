"""What a plugin counts, where it says so: the extension `opencl.statistics` (graft_opencl.h)."""

import ctypes
from typing import NamedTuple

from torch_graft._device import device_index, library


class Statistics(NamedTuple):
    programs_built: int  # compiled from source
    programs_loaded: int  # taken from the cache on disk
    build_seconds: float  # spent in both
    launches: int  # kernels enqueued


class _Counts(ctypes.Structure):
    """graft_opencl_statistics"""

    _fields_ = [("struct_size", ctypes.c_size_t)] + [
        (name, ctypes.c_uint64) for name in ("programs_built", "programs_loaded", "build_nanoseconds", "launches")
    ]


class _Table(ctypes.Structure):
    """graft_opencl_statistics_api"""

    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("query", ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p, ctypes.POINTER(_Counts))),
    ]


def statistics(device=None):
    """What the plugin of a device counted since it was opened, over all its devices; None where it does not count.

    The launches of some code are the difference of two calls.
    """

    found = library().extension(device_index(device), "opencl.statistics", 1)
    if found is None:
        return None
    table, plugin = found
    counts = _Counts(struct_size=ctypes.sizeof(_Counts))
    status = _Table.from_address(table).query(plugin, ctypes.byref(counts))
    if status:
        raise RuntimeError(f"torch_graft: the plugin's statistics can't be read (status {status})")
    return Statistics(
        counts.programs_built, counts.programs_loaded, counts.build_nanoseconds * 1e-9, counts.launches
    )
