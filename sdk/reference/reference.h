/* reference/: the reference kernels of ops/ behind the plugin ABI, built in. One device, host memory, every dtype,
 * every layout; work is done when it is submitted, so streams and events only count. */
#ifndef GRAFT_SDK_REFERENCE_H
#define GRAFT_SDK_REFERENCE_H

#include "graft/abi/plugin.h"

/* The entry of the built-in plugin "reference"; opened like any other, only not exported. */
graft_status ref_plugin_open(const graft_host *host, const char *const *options, const graft_plugin **plugin);

/* The first byte of a buffer of this plugin. */
char *ref_buffer_data(const graft_buffer *buffer);

/* A buffer of this plugin over host memory, described in `space`; never released. */
typedef struct ref_buffer_space {
  uint64_t words[2];
} ref_buffer_space;
graft_buffer *ref_buffer_over(ref_buffer_space *space, void *data);

/* The host's functions, for kernels whose output size depends on data. */
const graft_host *ref_host(void);

/* The tables, filled from the families' reference kernels; also for plugins that wrap them. */
const graft_core_ops *ref_core(void);
const graft_train_ops *ref_train(void);

enum { GRAFT_REF_DIMS = 64 };

#endif
