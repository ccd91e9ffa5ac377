/* reference/: the reference kernels of ops/ behind the plugin ABI, built in. One device, host memory, every dtype,
 * every layout; work is done when it is submitted, so streams and events only count. */
#ifndef GRAFT_SDK_REFERENCE_H
#define GRAFT_SDK_REFERENCE_H

#include "graft/abi/plugin.h"

/* The entry of the built-in plugin "reference"; opened like any other, only not exported. */
graft_status ref_plugin_open(const graft_host *host, const char *const *options, const graft_plugin **plugin);

/* The tables, filled from the families' reference kernels; also for plugins that wrap them. */
const graft_core_ops *ref_core(void);
const graft_prims_ops *ref_prims(void);
const graft_train_ops *ref_train(void);

#endif
