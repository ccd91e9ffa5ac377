/* Graft plugin ABI: what the host offers a plugin.
 *
 * A plugin imports no symbol of the host: graft_plugin_open_v1 hands it this table, which outlives the instance.
 * Every function may be called from any thread, and only while the plugin holds no lock that its own functions take:
 * workspace and output_shape may call back into memory and stream functions, the others never do. */
#ifndef GRAFT_ABI_HOST_H
#define GRAFT_ABI_HOST_H

#include "graft/abi/exec.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t graft_log_level;
enum { GRAFT_LOG_ERROR = 0, GRAFT_LOG_WARNING = 1, GRAFT_LOG_INFO = 2, GRAFT_LOG_DEBUG = 3 };

typedef struct graft_host {
  size_t struct_size;
  uint32_t abi_major;
  uint32_t abi_minor;
  void *context; /* passed back to the functions below that take one */

  /* Writes a line to the host's log (GRAFT_LOG chooses the level shown). The message is copied. */
  void (*log)(void *context, graft_log_level level, const char *message) GRAFT_TABLE_NOEXCEPT;

  /* The text that goes with the failure about to be returned: UTF-8, copied, kept per thread until the next failure. */
  void (*set_error)(void *context, const char *message) GRAFT_TABLE_NOEXCEPT;

  /* Temporary device memory for the op at hand, to be asked for from within its slot: valid until the stream has passed
   * the slot's last command; nothing to release. `alignment` in bytes, 0 for GRAFT_DEVICE_ALIGNMENT; more than that may
   * be refused. A call may ask at least 8 times, for as much as the device has; 0 bytes are a NULL buffer. Errors:
   * OUT_OF_MEMORY, INVALID_ARGUMENT beyond these limits. */
  graft_status (*workspace)(const graft_exec *exec, uint64_t bytes, uint64_t alignment, graft_buffer **buffer,
                            uint64_t *byte_offset) GRAFT_TABLE_NOEXCEPT;

  /* Says the shape of an output that depends on data and receives its descriptor (contiguous, valid until the slot
   * returns). Once for each such output. An output without elements has a descriptor too, whose buffer is NULL. */
  graft_status (*output_shape)(const graft_exec *exec, graft_output *output, int32_t ndim, const int64_t *shape,
                               const graft_tensor_desc **desc) GRAFT_TABLE_NOEXCEPT;

  /* Keeps `value` as the memo of the call that exec describes. The first publisher wins: *winner receives the memo that
   * is kept from now on, and a loser's value is destroyed as soon as its slot has returned. Each value ends by the
   * destroy that came with it, after its last use and before device_close, under no lock. On failure the value stays the
   * plugin's. */
  graft_status (*memo_publish)(const graft_exec *exec, void *value, void (*destroy)(void *value),
                               void **winner) GRAFT_TABLE_NOEXCEPT;

  /* A folder for compiled programs, private to this plugin, existing and writable; UTF-8, NUL-terminated, cut to
   * nothing if capacity is too small (*length receives the length without NUL). All processes of a user share it: a
   * file is written under a name of its own and renamed when it is whole, and one that is read may be anybody's last
   * version. UNIMPLEMENTED where there is none. */
  graft_status (*cache_directory)(void *context, char *path, size_t capacity, size_t *length) GRAFT_TABLE_NOEXCEPT;

  /* A table of an extension the host offers, at least of version `minimum`; UNIMPLEMENTED where it has none. */
  graft_status (*extension)(void *context, const char *name, uint32_t minimum, const void **table) GRAFT_TABLE_NOEXCEPT;
} graft_host;

#ifdef __cplusplus
}
#endif

#endif
