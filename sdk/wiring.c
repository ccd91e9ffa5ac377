/* Where the rooms of libgraft are joined. A room knows only those below it; what it needs of one above it stands in a
 * table of functions that it declares, and here each is filled in. Nothing else of libgraft depends upwards. */
#include "autograd/autograd.h"
#include "device/device.h"
#include "dispatch/custom.h"
#include "dispatch/dispatch.h"
#include "dispatch/host_callbacks.h"
#include "memory/memory.h"
#include "ops/core/fx.h"
#include "ops/families.h"
#include "plugin/loader.h"
#include "reference/reference.h"
#include "tensor/tensor.h"

const plg_hooks_table plg_hooks = {.builtin = ref_plugin_open,
                                   .opened = dsp_custom_adopt,
                                   .workspace = dsp_host_workspace,
                                   .output_shape = dsp_host_output_shape,
                                   .memo_publish = dsp_host_memo_publish};

const dev_hooks_table dev_hooks = {.allocator_create = mem_create,
                                   .dispatch_create = dsp_device_create,
                                   .allocator_blocks = mem_blocks,
                                   .device_closing = ag_forget_device,
                                   .dispatch_destroy = dsp_device_destroy,
                                   .allocator_settle = mem_settle,
                                   .allocator_destroy = mem_destroy,
                                   .stream_closing = mem_stream_closing};

const tns_hooks_table tns_hooks = {.history_release = ag_meta_release,
                                   .requires_grad = graft_tensor_requires_grad,
                                   .copy_kernel = dsp_copy_kernel,
                                   .negate = dsp_negate};

const op_hooks_table op_hooks = {.tables = ops_families};

const fx_hooks_table fx_hooks = {.call = graft_call, .infer = graft_infer, .describe = dsp_describe};

const dsp_hooks_table dsp_hooks = {.recording_wanted = ag_wanted, .check_writes = ag_check_writes, .record = ag_record};
