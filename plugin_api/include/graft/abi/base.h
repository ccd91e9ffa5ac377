/* Graft plugin ABI, version 1: language level, status codes, how structs grow, and what holds everywhere.
 *
 * Every header of this folder compiles alone as C99 to C23 and C++11 to C++23 and depends on nothing but <stddef.h>
 * and <stdint.h>. Copy the folder and write a plugin against it; no library is linked.
 *
 * Growth. A struct that begins with `struct_size` grows at its end and nowhere else. Whoever fills such a struct sets
 * struct_size to the end of the last field it knows (sizeof is right: there is no hidden tail padding), whoever reads
 * one asks GRAFT_HAS before it touches a field. Sizes and minors are held to "at least", never to "equal"; another
 * major is refused. Zero means "default" or "unknown" in every field, for ever. An out-struct is zero-filled and sized
 * by the caller; the callee writes only what fits. Structs without a size (DLTensor, scalars, lists, the head of args)
 * are frozen. What a later minor appends is optional: what is mandatory was so in 1.0. A minor ends on 8 bytes.
 *
 * Flags. In the flags word of a request (what one party asks of the other) the low 16 bits must be understood: a reader
 * that meets one it does not know refuses the call with GRAFT_INVALID_ARGUMENT. The high 16 bits are hints, which may
 * be ignored. In an answer (capabilities, properties) bits and values that the reader does not know are ignored, so
 * that an older host takes a newer plugin. Fields named `reserved` are zero and a reader may check that.
 *
 * Numbers. Statuses, flags, keys, kinds, dtypes, op ids and slots are lists that are only appended. Vendors have op ids
 * and device keys from 0x80000000, dtype codes from 192 to 255, memory kinds from 24 to 31, and extensions whose names
 * begin with their own. Graft never gives these a meaning; a host sends none that the plugin has not announced to it,
 * and refuses one that it would have to understand. They are between a plugin and those who know it.
 *
 * Process. A call leaves alone what belongs to the process: the floating-point environment (rounding, flushing to zero,
 * traps), signal handlers and masks, locale, environment variables, working directory and umask. A driver that changes
 * one of them is put right before the plugin's function returns. */
#ifndef GRAFT_ABI_BASE_H
#define GRAFT_ABI_BASE_H

#include <stddef.h>
#include <stdint.h>

#if UINTPTR_MAX != UINT64_MAX
#error "The Graft ABI is defined for 64-bit targets only."
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The Graft ABI is defined for little-endian targets only."
#endif

#define GRAFT_ABI_MAJOR 1
#define GRAFT_ABI_MINOR 2

/* Nothing unwinds (exceptions, longjmp) across the ABI, in either direction. Slots and the entry point say so in their
 * types, where C++ knows that (from C++17 on). The functions of all other tables keep the same promise without: with
 * the keyword in their types, C++17 plugins that fill them with plain functions would compile no more. A plugin that
 * wants its compiler to see to those too defines GRAFT_STRICT_NOEXCEPT in all of its files, before the first of these
 * headers. */
#if defined(__cplusplus) && __cplusplus >= 201703L
#define GRAFT_NOEXCEPT noexcept
#else
#define GRAFT_NOEXCEPT
#endif
#ifdef GRAFT_STRICT_NOEXCEPT
#define GRAFT_TABLE_NOEXCEPT GRAFT_NOEXCEPT
#else
#define GRAFT_TABLE_NOEXCEPT
#endif

/* Marks the one function a plugin exports; hide everything else (a version script, or -fvisibility=hidden). */
#if defined(__GNUC__)
#define GRAFT_EXPORT __attribute__((visibility("default")))
#else
#define GRAFT_EXPORT
#endif

/* The size in bytes that a struct has up to and including `field`. */
#define GRAFT_SIZE_TO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* Whether the struct at `pointer`, written by a possibly older party, reaches as far as `field` and has it non-zero. */
#define GRAFT_HAS(pointer, type, field) \
  ((pointer)->struct_size >= GRAFT_SIZE_TO(type, field) && (pointer)->field != 0)

/* What a call returns. Failures leave every output untouched; their text goes to graft_host.set_error. A positive value
 * that a reader does not know reads as GRAFT_INTERNAL; negative values are reserved and never returned. */
typedef int32_t graft_status;
enum {
  GRAFT_OK = 0,
  GRAFT_INVALID_ARGUMENT = 1, /* the caller's fault: a bad handle, an unknown must-understand flag, a bad shape */
  GRAFT_UNIMPLEMENTED = 2,    /* not offered for these dtypes, shapes or flags; said before any side effect, no text */
  GRAFT_OUT_OF_MEMORY = 3,    /* the host frees its cache and asks once more */
  GRAFT_NOT_READY = 4,        /* a query: the work is still running */
  GRAFT_DEVICE_LOST = 5,      /* the device is gone; every later call on it but release and destroy says so too */
  GRAFT_STREAM_FAILED = 6,    /* an earlier fault sticks to this stream; graft_stream_api.failure says which */
  GRAFT_INTERNAL = 7,         /* a defect of the callee */
  GRAFT_INCOMPATIBLE = 8,     /* the two sides can't work together: another major, a mandatory function missing */
  GRAFT_FORKED = 9,           /* the driver was in use when this process was forked; use it in the parent only */
  GRAFT_OUT_OF_RANGE = 10     /* the caller's fault: an index or a dim beyond what it addresses */
};

#endif
