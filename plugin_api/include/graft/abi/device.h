/* Graft plugin ABI: what a device says of itself.
 *
 * graft_plugin.device_query answers one key at a time, by device index and without opening the device. Keys and their
 * value types are frozen; a key that a plugin does not know is GRAFT_UNIMPLEMENTED, and the host then takes the default
 * given below. `capacity` is the size of *value in bytes, *size receives the size of the answer; a plugin that finds
 * capacity too small writes nothing but *size and returns GRAFT_INVALID_ARGUMENT. Strings are UTF-8 with their NUL
 * counted. Answers do not change while a device is open, but for GRAFT_DEVICE_FREE_MEMORY. Thread-safe. */
#ifndef GRAFT_ABI_DEVICE_H
#define GRAFT_ABI_DEVICE_H

#include "graft/abi/tensor.h"

typedef uint32_t graft_device_key;
enum {
  GRAFT_DEVICE_NAME = 1,              /* string; mandatory */
  GRAFT_DEVICE_VENDOR = 2,            /* string; default: the plugin's vendor */
  GRAFT_DEVICE_DRIVER_VERSION = 3,    /* string; changes whenever compiled programs become invalid */
  GRAFT_DEVICE_KIND = 4,              /* u32, GRAFT_DEVICE_KIND_*; default: other */
  GRAFT_DEVICE_TOTAL_MEMORY = 5,      /* u64, bytes; default: unknown */
  GRAFT_DEVICE_FREE_MEMORY = 6,       /* u64, bytes, asked for each time; default: unknown */
  GRAFT_DEVICE_MAX_ALLOCATION = 7,    /* u64, bytes of the largest buffer; default: no limit of its own */
  GRAFT_DEVICE_ALIGNMENT = 8,         /* u64, bytes: alignment of a tensor's first byte in a buffer; default: 64 */
  GRAFT_DEVICE_GRANULARITY = 9,       /* u64, bytes: sizes of allocations are rounded up to it; default: 512 */
  GRAFT_DEVICE_COPY_GRANULARITY = 10, /* u64, bytes: offsets and sizes of copies are multiples of it; default: 1 */
  GRAFT_DEVICE_INDIVISIBLE = 11,      /* u32, 1: one tensor per buffer, never a block of a larger one; default: 0 */
  GRAFT_DEVICE_UNIFIED_MEMORY = 12,   /* u32, 1: host and device share memory; default: 0 */
  GRAFT_DEVICE_DTYPES = 13,           /* u64, set of dtypes that kernels compute on; default: unknown. For a plugin of
                                         1.2 or later the host neither widens to another dtype on the device nor
                                         decomposes into ops of one; bool, i32 and i64 are exempt (masks, indices) */
  GRAFT_DEVICE_DENORMALS = 14,        /* u64, set of floating dtypes whose denormals are kept; default: none */
  GRAFT_DEVICE_VECTOR_WIDTH = 15,     /* u32, native vector width in f32; default: 1 */
  GRAFT_DEVICE_COMPUTE_UNITS = 16,    /* u32; default: unknown */
  GRAFT_DEVICE_PEERS = 17,            /* i32[], indices of the devices that copy_peer reaches; default: none */
  GRAFT_DEVICE_DLPACK_TYPE = 18,      /* i32, DLDeviceType; default: kDLExtDev (12) */
  GRAFT_DEVICE_MEMORY_FLAGS = 19,     /* u32, must-understand memory flags the plugin knows; default: none */
  GRAFT_DEVICE_STREAM_FLAGS = 20,     /* u32, must-understand stream flags the plugin knows; default: none */
  GRAFT_DEVICE_EVENT_FLAGS = 21,      /* u32, must-understand event flags the plugin knows; default: none */
  GRAFT_DEVICE_PRIORITIES = 22,       /* i32[2], lowest and highest stream priority; default: 0, 0 */
  GRAFT_DEVICE_MEMORY_KINDS = 23,     /* u32, bit n: allocation kind n is offered; default: only GRAFT_MEMORY_DEVICE */
  GRAFT_DEVICE_WAITS_ACROSS = 24,     /* u32, 1: stream_wait takes events of all devices of the instance; default: 0 */
  GRAFT_DEVICE_UNCACHED = 25          /* u32, 1: the host keeps no memory, each tensor has a buffer of its own; with
                                         release_on both ends are in the order of a stream; default: 0 */
};

/* A vendor's own keys begin here; the host asks for none of them. */
#define GRAFT_DEVICE_VENDOR_KEYS UINT32_C(0x80000000)

typedef uint32_t graft_device_kind;
enum {
  GRAFT_DEVICE_KIND_OTHER = 0,
  GRAFT_DEVICE_KIND_CPU = 1,
  GRAFT_DEVICE_KIND_GPU = 2,
  GRAFT_DEVICE_KIND_ACCELERATOR = 3
};

#endif
