"""Memory of the devices: statistics under the names of torch.cuda, the cache, limits."""

import torch

from torch_graft import streams
from torch_graft._device import device_index, device_name, library

_fractions = {}


def memory_stats(device=None):
    """Statistics of the caching allocator by name, such as "allocated_bytes.all.current"; none before the first use."""
    return torch.accelerator.memory_stats(device_index(device))


def _stat(name, device):
    return memory_stats(device).get(name, 0)


def memory_allocated(device=None):
    """Bytes of live tensors."""
    return _stat("allocated_bytes.all.current", device)


def max_memory_allocated(device=None):
    """The most bytes of live tensors since the start or reset_peak_memory_stats."""
    return _stat("allocated_bytes.all.peak", device)


def memory_reserved(device=None):
    """Bytes held from the driver, by tensors or by the cache."""
    return _stat("reserved_bytes.all.current", device)


def max_memory_reserved(device=None):
    """The most bytes held from the driver since the start or reset_peak_memory_stats."""
    return _stat("reserved_bytes.all.peak", device)


def reset_peak_memory_stats(device=None):
    """Begins the peaks anew at what is used now."""
    torch.accelerator.reset_peak_memory_stats(device_index(device))


def reset_accumulated_memory_stats(device=None):
    """Begins the sums ("allocated", "freed", counts) anew."""
    torch.accelerator.reset_accumulated_memory_stats(device_index(device))


def empty_cache():
    """Gives unused memory of the cache back to the driver."""
    torch.accelerator.empty_cache()


def mem_get_info(device=None):
    """Free and total bytes of the device."""
    return library().memory_info(device_index(device))


def set_per_process_memory_fraction(fraction, device=None):
    """Limits what this process takes of a device to a part of its memory; torch.OutOfMemoryError beyond."""
    index = device_index(device)
    library().set_memory_fraction(fraction, index)
    _fractions[index] = fraction


def get_per_process_memory_fraction(device=None):
    """What set_per_process_memory_fraction set; 1.0 at first."""
    return _fractions.get(device_index(device), 1.0)


# --- as torch.cuda has it for code that is older, or that counts for itself ---


def memory_stats_as_nested_dict(device=None):
    """memory_stats() with a dict for each part of a name: ["allocated_bytes"]["all"]["current"]."""
    nested = {}
    for name, value in memory_stats(device).items():
        *outer, last = name.split(".")
        place = nested
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = value
    return nested


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved
reset_max_memory_allocated = reset_peak_memory_stats
reset_max_memory_cached = reset_peak_memory_stats


def device_memory_used(device=None):
    """Bytes of the device that are in use, by whatever process, as far as its driver tells."""
    free, total = mem_get_info(device)
    return total - free


def get_allocator_backend():
    """The name of the allocator: libgraft's own, whatever the plugin."""
    return "native"


def caching_allocator_alloc(size, device=None, stream=None):
    """Takes bytes from the cache, in the order of the stream; returns their address, which only the device can read.
    They stay taken until caching_allocator_delete."""
    with streams.stream(stream):
        storage = torch.UntypedStorage(size, device=torch.device(device_name(), device_index(device)))
    address = storage.data_ptr()
    _taken[address] = storage
    return address


def caching_allocator_delete(mem_ptr):
    """Gives back what caching_allocator_alloc returned."""
    if _taken.pop(mem_ptr, None) is None:
        raise ValueError(f"no memory at {mem_ptr:#x} was taken with caching_allocator_alloc")


_taken = {}


def ipc_collect():
    """Nothing to collect: tensors go to other processes as copies in host memory."""


# --- the summary ---

_SUMMARY = (
    ("Allocated memory", "allocated_bytes.all", True),
    ("Active memory", "active_bytes.all", True),
    ("Requested memory", "requested_bytes.all", True),
    ("Reserved memory", "reserved_bytes.all", True),
    ("Non-releasable memory", "inactive_split_bytes.all", True),
    ("Allocations", "allocation.all", False),
    ("Active allocations", "active.all", False),
    ("Segments", "segment.all", False),
    ("Non-releasable blocks", "inactive_split.all", False),
)


def _amount(value, is_bytes):
    if not is_bytes:
        return f"{value}"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 10240 or unit == "GiB":
            return f"{value} {unit}"
        value //= 1024


def memory_summary(device=None, abbreviated=False):
    """The statistics as a table for people; abbreviated: bytes only."""
    index = device_index(device)
    stats = memory_stats(index)
    columns = ("current", "peak", "allocated", "freed")
    lines = [
        f"{device_name()}:{index}: {stats.get('num_ooms', 0)} out-of-memory errors, "
        f"{stats.get('num_alloc_retries', 0)} retries after emptying the cache",
        "  ".join([f"{'':<22}", *(f"{column:>12}" for column in columns)]),
    ]
    for title, name, is_bytes in _SUMMARY:
        if is_bytes or not abbreviated:
            amounts = (_amount(stats.get(f"{name}.{column}", 0), is_bytes) for column in columns)
            lines.append("  ".join([f"{title:<22}", *(f"{amount:>12}" for amount in amounts)]))
    return "\n".join(lines) + "\n"
