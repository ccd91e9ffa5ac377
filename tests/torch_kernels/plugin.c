/* The plugin "torch_kernels": PyTorch's kernels behind the ABI, for the conformance suite: a third implementation, by
 * others, which must raise no alarm. Its option `device=cuda` takes PyTorch's kernels for CUDA devices, else it is
 * those for CPUs. Memory, streams and events are the reference plugin's. */
#include <stdio.h>
#include <string.h>

#include "kernels.h"
#include "ops/core/ref.h"
#include "reference/reference.h"

typedef graft_status (*any_slot)(const graft_exec *exec, const graft_args *args);

static bool computes_on_cuda;
static graft_status (*caps_of_reference)(graft_device *device, uint32_t op_id, graft_op_caps *caps);

void *tk_data(const graft_tensor_desc *desc) {
  if (desc->flags & GRAFT_TENSOR_HOST_VALUE) return desc->dl.data;
  return desc->dl.data && desc->dl.data->data ? desc->dl.data->data + desc->dl.byte_offset : NULL;
}

static graft_status enter(const graft_exec *exec, const graft_args *args) {
  return tk_call(op_schema_of(args->op_id), exec, args);
}

/* Ops without random numbers that PyTorch has. All slots have one calling convention: two pointers. */
static void fill(void *table, uint32_t which) {
  size_t count;
  const op_schema *all = op_schema_all(&count);
  any_slot slot = enter;
  for (size_t i = 0; i < count; i++) {
    if (all[i].table == which && all[i].route == OPROUTE_SLOT && !all[i].philox_offset && tk_has(&all[i]))
      memcpy((char *)table + all[i].slot_offset, &slot, sizeof slot);
  }
}

/* The results are made before an output is written, so that outputs may be inputs. Kernels of gradients are called by
 * PyTorch's autograd alone, and many of them take it for granted that what it hands over is contiguous. */
static graft_status op_caps(graft_device *device, uint32_t op_id, graft_op_caps *caps) {
  graft_status status = caps_of_reference(device, op_id, caps);
  if (status != GRAFT_OK) return status;
  caps->flags |= GRAFT_CAP_IN_PLACE;
  if (computes_on_cuda) caps->flags &= ~(uint32_t)GRAFT_CAP_DETERMINISTIC; /* sums by atomics, unless it is asked for */
  if (strstr(op_schema_of(op_id)->name, "_backward"))
    caps->flags &= ~(uint32_t)(GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED);
  return GRAFT_OK;
}

static graft_status refused(const graft_host *host, const char *option) {
  char text[128];
  snprintf(text, sizeof text, "torch_kernels: not \"%.64s\": its option is device=cpu or device=cuda", option);
  host->set_error(host->context, text);
  return GRAFT_INVALID_ARGUMENT;
}

GRAFT_EXPORT graft_status graft_plugin_open_v1(const graft_host *host, const char *const *options,
                                               const graft_plugin **plugin) {
  static graft_plugin made;
  static graft_core_ops core = {.struct_size = sizeof core};
  static graft_prims_ops prims = {.struct_size = sizeof prims};
  static graft_train_ops train = {.struct_size = sizeof train};
  const graft_plugin *reference;
  const char *device = "cpu";
  graft_status status = ref_plugin_open(host, NULL, &reference);
  if (status != GRAFT_OK) return status;
  for (; options && *options; options++) {
    if (strncmp(*options, "device=", strlen("device=")) != 0) return refused(host, *options);
    device = *options + strlen("device=");
  }
  if (tk_start(host, device) != GRAFT_OK) return refused(host, device);
  computes_on_cuda = strcmp(device, "cuda") == 0;
  made = *reference;
  made.name = "torch_kernels";
  caps_of_reference = made.op_caps;
  made.op_caps = op_caps;
  fill(&core, OPT_CORE);
  fill(&train, OPT_TRAIN);
  made.core = &core, made.prims = &prims, made.train = &train;
  *plugin = &made;
  return GRAFT_OK;
}
