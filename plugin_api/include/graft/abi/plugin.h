/* Graft plugin ABI: the plugin and its one entry point.
 *
 * A plugin is a shared library that exports graft_plugin_open_v1 and nothing else. Opening makes an instance (`self`);
 * it may be opened again, also by another host in the same process, and handles never cross instances. A plugin that
 * can't be opened twice says GRAFT_INCOMPATIBLE the second time.
 *
 * open touches no driver and starts no thread, since applications fork after loading; device_count and device_query
 * may, and the host calls them at the first use of a device. The host alone watches for forks: in a child of a process
 * that had used the driver it answers GRAFT_FORKED without entering the plugin.
 *
 * Functions are thread-safe unless their header says that a stream serialises them; the host holds no lock of its
 * allocator, nor one of an interpreter, while it is in one. The order of closing is: what "graft.capture" recorded,
 * memos, executables, communicators (which extensions make), events, streams, buffers, device_close, close. The library
 * is never unmapped, and after exit has begun nothing is called any more: a plugin needs no static destructor. */
#ifndef GRAFT_ABI_PLUGIN_H
#define GRAFT_ABI_PLUGIN_H

#include "graft/abi/core_ops.h"
#include "graft/abi/device.h"
#include "graft/abi/extension.h"
#include "graft/abi/graph.h"
#include "graft/abi/host.h"
#include "graft/abi/memory.h"
#include "graft/abi/op_ids.h"
#include "graft/abi/prims_ops.h"
#include "graft/abi/stream.h"
#include "graft/abi/train_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Mandatory: everything down to `stream`, as far as a line does not say otherwise. A NULL mandatory function, or a
 * struct_size that ends before it, is INCOMPATIBLE at open. */
typedef struct graft_plugin {
  size_t struct_size;
  uint32_t abi_major; /* of the headers it was built with */
  uint32_t abi_minor;
  void *self;       /* the instance */
  const char *name; /* as in the manifest; UTF-8, lives until close, as do the next two */
  const char *vendor;
  const char *version;

  /* Ends the instance, after all its devices are closed. */
  graft_status (*close)(void *self) GRAFT_TABLE_NOEXCEPT;
  /* How many devices there are; constant while the instance lives. May start the driver. */
  graft_status (*device_count)(void *self, int32_t *count) GRAFT_TABLE_NOEXCEPT;
  /* Answers one property; see device.h. */
  graft_status (*device_query)(void *self, int32_t index, graft_device_key key, void *value, size_t capacity,
                               size_t *size) GRAFT_TABLE_NOEXCEPT;
  /* Opens a device: the host does so once for each instance and index, and closes it once. */
  graft_status (*device_open)(void *self, int32_t index, graft_device **device) GRAFT_TABLE_NOEXCEPT;
  graft_status (*device_close)(graft_device *device) GRAFT_TABLE_NOEXCEPT;

  const graft_memory_api *memory;
  const graft_stream_api *stream;

  /* Op tables. Optional, each table and each slot of it: NULL means that the host takes another way. */
  const graft_core_ops *core;
  const graft_prims_ops *prims;
  const graft_train_ops *train;

  /* What an op offers on a device. Optional: NULL means all zero for every op. Constant while the device is open;
   * an op id that the plugin does not know is UNIMPLEMENTED. Ids from GRAFT_OP_VENDOR_IDS on are the plugin's own. */
  graft_status (*op_caps)(graft_device *device, uint32_t op_id, graft_op_caps *caps) GRAFT_TABLE_NOEXCEPT;

  /* What it offers for this very call (buffers may be NULL, and exec->stream); UNIMPLEMENTED where the slot would say
   * so. *caps comes with op_caps' answer, which stands as far as it is not changed: a host brings the call into the
   * form that it then asks for. Local, pure and constant while the device is open: nothing of it depends on a number
   * that comes as a host value. Optional: op_caps decides. Hosts ask from 1.2 on, plugins of 1.2 or later. */
  graft_status (*op_query)(const graft_exec *exec, const graft_args *args, graft_op_caps *caps) GRAFT_TABLE_NOEXCEPT;

  /* Compiles ahead of time what the call needs, without running it: it submits nothing, writes to no tensor and draws
   * no number; buffers may be NULL, and exec->stream. It may publish a memo. UNIMPLEMENTED: nothing is compiled ahead
   * for such a call. Optional. Hosts ask from 1.2 on, plugins of 1.2 or later, for calls that applications announce. */
  graft_status (*prepare)(const graft_exec *exec, const graft_args *args) GRAFT_TABLE_NOEXCEPT;

  /* A table of an extension the plugin offers, at least of version `minimum`; see extension.h. Optional. */
  graft_status (*extension)(void *self, const char *name, uint32_t minimum, const void **table) GRAFT_TABLE_NOEXCEPT;
} graft_plugin;

/* The entry point. `options` is a NULL-terminated list of "key=value", or NULL; a key that the plugin does not know, or
 * a value that it can't use, is INVALID_ARGUMENT with a text that names it. The returned struct stays valid and
 * unchanged until close. On failure *plugin is untouched. */
typedef graft_status (*graft_plugin_open_v1_fn)(const graft_host *host, const char *const *options,
                                                const graft_plugin **plugin) GRAFT_NOEXCEPT;
#define GRAFT_PLUGIN_ENTRY "graft_plugin_open_v1"
GRAFT_EXPORT graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options,
                                               const graft_plugin **plugin) GRAFT_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
