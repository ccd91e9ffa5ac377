"""torch.graft: the device module, with the functions and meanings of torch.cuda.

Asking for what there is (device_count, is_available) opens the plugins; importing does not.
"""

from dataclasses import dataclass

import torch

from torch_graft import _absent, amp, graphs, memory, random, streams
from torch_graft._device import device_index, device_name, is_ours, library
from torch_graft.graphs import (
    Graph,
    graph,
    graph_pool_handle,
    is_current_stream_capturing,
    make_graphed_callables,
)
from torch_graft.memory import (
    caching_allocator_alloc,
    caching_allocator_delete,
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    ipc_collect,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from torch_graft.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from torch_graft.streams import (
    Event,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    set_stream,
    stream,
)

__all__ = [
    "DeviceProperties",
    "Event",
    "Graph",
    "Stream",
    "StreamContext",
    "amp",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "can_device_access_peer",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "graph_pool_handle",
    "graphs",
    "has_half",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "random",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "stream",
    "streams",
    "synchronize",
]

_C = library()


def __getattr__(name):
    if name == "_initialized":  # torch.utils.checkpoint keeps the random state only where it is true
        return _C.is_initialized()
    if name == "default_generators":
        return tuple(_C.default_generator(index) for index in range(device_count()))
    reason = _absent.reason(name)
    if reason:
        raise AttributeError(f"torch.{device_name()} has no {name}: {reason}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# --- the drivers ---


def is_available():
    """Whether there is a device."""
    return device_count() > 0


def device_count():
    """The number of devices of all plugins."""
    return _C.device_count()


def is_initialized():
    """Whether a driver has been started by this process."""
    return _C.is_initialized()


def init():
    """Starts the drivers; without it the first use of a device does."""
    _lazy_init()
    _C.device_count()


def _lazy_init():
    if _is_in_bad_fork():
        raise RuntimeError(
            f"{device_name()} devices can't be used in a forked process after the parent has used one: "
            'start the process with multiprocessing\'s method "spawn" or "forkserver"'
        )


def _is_in_bad_fork():
    return _C.is_forked()


# --- devices ---


def current_device():
    """The index of the device current in this thread."""
    return _C.current_device()


def set_device(device):
    """Makes a device current in this thread; a negative index changes nothing."""
    index = device_index(device)
    if index >= 0:
        _C.set_device(index)


def _exchange_device(index):
    return _C.exchange_device(index)


def _maybe_exchange_device(index):
    return _C.exchange_device(index)


class device:
    """Context manager: a device (or an index; negative or None: no change) is current within."""

    def __init__(self, device):
        self.idx = -1 if device is None else device_index(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = _C.exchange_device(self.idx)

    def __exit__(self, *exception):
        self.idx = _C.exchange_device(self.prev_idx)
        return False


class device_of(device):
    """Context manager: the device of a tensor or storage is current within; no change for one of another kind."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if is_ours(obj) else None)


def synchronize(device=None):
    """Waits until all streams of the device are done; raises what failed in them."""
    torch._C._accelerator_synchronizeDevice(device_index(device))


@dataclass(frozen=True)
class DeviceProperties:
    text: str  # as libgraft and torch_graft.devices() name it
    name: str
    vendor: str
    driver_version: str
    kind: str  # cpu, gpu, accelerator or other
    total_memory: int  # bytes; 0 where the device does not say
    max_allocation: int  # bytes; 0: no limit of its own
    unified_memory: bool
    vector_width: int  # in f32
    compute_units: int  # 0 where the device does not say
    dtypes: tuple  # that kernels compute on; empty where the device does not say

    @property
    def multi_processor_count(self):
        return self.compute_units


def get_device_properties(device=None):
    """What a device says of itself."""
    row = _C.device_properties(device_index(device))
    return DeviceProperties(**{**row, "dtypes": tuple(row["dtypes"])})


def get_device_name(device=None):
    """The name that the driver gives the device."""
    return get_device_properties(device).name


def get_device_capability(device=None):
    """As torch.accelerator has it, since vendors' devices have no compute capability in common: a dict with
    "supported_dtypes"."""
    return torch.accelerator.get_device_capability(torch.device(device_name(), device_index(device)))


def can_device_access_peer(device, peer_device):
    """Whether kernels of one device read memory of the other: of itself alone. Copies between devices always work."""
    return device_index(device) == device_index(peer_device)


# --- dtypes ---

has_half = True


def is_bf16_supported(including_emulation=True):
    """Whether bfloat16 works; without emulation: whether the device says that its kernels compute on it."""
    return including_emulation or torch.bfloat16 in get_device_properties().dtypes


def is_tf32_supported():
    """Whether matrix products round to TF32 where torch.set_float32_matmul_precision lets them: plugins do not say."""
    return False


def get_amp_supported_dtype():
    """The dtypes of torch.autocast."""
    return [torch.float16, torch.bfloat16]
