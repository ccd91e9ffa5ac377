"""The names of torch.cuda that torch.graft has not, and why: asking for one raises an AttributeError that says it.

Libraries probe with hasattr(), which an AttributeError leaves as it is. docs/pytorch_names.md is made from this table.
"""

from torch_graft._device import device_name

_TYPED = "a type for each dtype is what PyTorch had before devices: torch.empty(..., dtype=..., device={device!r})"
_CUDA = "it is CUDA's own, and means nothing to another vendor's device"
_GRAPH = "torch.{device}.Graph is the same; torch.accelerator.Graph works, too"
_TELEMETRY = "libgraft asks drivers for no such figure; the vendor's tool has it"
_ALLOCATOR = "libgraft's caching allocator serves every plugin; a plugin brings memory of its own by its allocate function"
_RANGES = "torch.profiler.record_function marks ranges for torch.profiler"

_REASONS = {
    _TYPED: (
        "BFloat16Storage BFloat16Tensor BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor "
        "ComplexDoubleStorage ComplexFloatStorage DoubleStorage DoubleTensor FloatStorage FloatTensor HalfStorage "
        "HalfTensor IntStorage IntTensor LongStorage LongTensor ShortStorage ShortTensor"
    ),
    _CUDA: (
        "CudaError DeferredCudaCallError GreenContext check_error cudaStatus cudart current_blas_handle "
        "current_solver_handle get_arch_list get_gencode_flags has_magma jiterator tunable"
    ),
    _GRAPH: "CUDAGraph",
    _TELEMETRY: "clock_rate list_gpu_processes memory_usage power_draw temperature utilization",
    _ALLOCATOR: "CUDAPluggableAllocator MemPool change_current_allocator use_mem_pool",
    _RANGES: "nvtx profiler",
    "a stream of another library can't be wrapped yet: docs/abi_growth.md has the struct": (
        "ExternalStream get_stream_from_external"
    ),
    "collectives go through torch.distributed, backend \"graft\"": "nccl",
    "it has types of sparse tensors from before devices: torch.sparse_coo_tensor(..., device={device!r})": "sparse",
    "what synchronizes is not traced": "get_sync_debug_mode set_sync_debug_mode",
    "the allocator does not record its blocks one by one; memory_stats() counts them": "memory_snapshot",
    "pinned memory is not counted apart": (
        "host_memory_stats host_memory_stats_as_nested_dict reset_accumulated_host_memory_stats "
        "reset_peak_host_memory_stats"
    ),
    "the cache can't be switched off; empty_cache() gives back what is unused": (
        "caching_allocator_disabled caching_allocator_enable"
    ),
}

REASONS = {name: reason for reason, names in _REASONS.items() for name in names.split()}


def reason(name):
    """Why there is no such name, or None for one that torch.cuda has not either."""
    return REASONS[name].format(device=device_name()) if name in REASONS else None
