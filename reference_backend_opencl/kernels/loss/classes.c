/* The gradient of a cross entropy: see classes.h. The gradient of the likelihood is zeros but for a number a row, so
 * the sum over a row that the gradient of a logarithm of softmax takes is that number, and nothing of it needs memory.
 */
#include "kernels/loss/classes.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/core/held.h"
#include "kernels/core/lines.h"
#include "kernels/loss/loss.h"

enum { GRAD, TOTAL, TARGET, WEIGHT, LOGARITHM, READS };

struct ocl_classes {
  ocl_kernel kernel;
  int inputs[READS]; /* which of the group's inputs; -1: absent */
};

typedef struct pair {
  const graft_args_nll_loss_backward *likelihood;
  const graft_args_log_softmax_backward_data *softmax;
  const graft_tensor_desc *reads[READS];
} pair;

static const void *args_of(const graft_exec *exec, const graft_graph_node *node, ocl_slot slot, uint32_t id) {
  ocl_call call;
  if (!node->args || ocl_call_of(exec, node->args, &call) != GRAFT_OK || call.op->id != id) return NULL;
  return !slot || call.op->slot == slot ? call.args : NULL;
}

/* In memory, side by side. */
static bool is_plain(const graft_tensor_desc *desc) {
  return desc && !(desc->flags & GRAFT_TENSOR_HOST_VALUE) && ocl_is_dense(&desc->dl);
}

static bool read_pair(const graft_exec *exec, const graft_graph_node *early, const graft_graph_node *late, pair *p) {
  p->likelihood = args_of(exec, early, (ocl_slot)(void *)ocl_op_nll_loss_backward, OCL_ID_nll_loss_backward);
  p->softmax = args_of(exec, late, NULL, OCL_ID_log_softmax_backward_data);
  if (!p->likelihood || !p->softmax || p->softmax->grad_output != p->likelihood->out) return false;
  const graft_tensor_desc *const reads[READS] = {[GRAD] = p->likelihood->grad_output,
                                                 [TOTAL] = p->likelihood->total_weight,
                                                 [TARGET] = p->likelihood->target,
                                                 [WEIGHT] = p->likelihood->weight,
                                                 [LOGARITHM] = p->softmax->output};
  memcpy(p->reads, reads, sizeof reads);
  return true;
}

/* As the slots of both: numbers of one dtype, with a class for each element of the last dimension. */
static bool fits(const graft_device *device, const pair *p) {
  const graft_dl_tensor *given = &p->softmax->grad_output->dl;
  const graft_tensor_desc *out = p->softmax->out;
  const ocl_dtype *dtype = ocl_dtype_of(device, given->dtype),
                  *target = ocl_dtype_of(device, p->reads[TARGET]->dl.dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || dtype->bytes < 2 || ocl_elements(out) == 0) return false;
  if (!target || (target->code != GRAFT_I64 && target->code != GRAFT_U8 && target->code != GRAFT_I32)) return false;
  if (given->ndim < 1 || given->ndim > 2 || p->softmax->dim != given->ndim - 1 || !is_plain(out)) return false;
  for (int i = 0; i < READS; i++) {
    const graft_tensor_desc *desc = p->reads[i];
    if (desc ? !is_plain(desc) || desc->storage_id == out->storage_id : i != WEIGHT) return false;
    if (desc && i != TARGET && desc->dl.dtype != dtype->code) return false;
  }
  return out->dl.dtype == dtype->code;
}

bool ocl_classes_match(const graft_exec *exec, const graft_graph_node *early, const graft_graph_node *late) {
  pair p;
  return read_pair(exec, early, late, &p) && fits(exec->device, &p);
}

/* As wide as softmax.c makes the gradient alone, which some drivers' exp has other bits for. */
enum { SOFTMAX_ARRAYS = 2 };

static graft_status make_kernel(ocl_kernel *kernel, graft_device *device, const pair *p) {
  const graft_args_nll_loss_backward *args = p->likelihood;
  const graft_dl_tensor *out = &p->softmax->out->dl;
  const ocl_dtype *dtype = ocl_dtype_of(device, out->dtype);
  const ocl_dtype *compute = ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  const int64_t classes = out->shape[out->ndim - 1], rows = ocl_elements(p->softmax->out) / classes;
  const int64_t shape[] = {rows, classes, 1, args->ignore_index};
  ocl_lines lines = ocl_lines_of(device, out, out->ndim - 1);
  ocl_held held;
  if (ocl_held_plan(device, lines.outer, lines.size, compute, SOFTMAX_ARRAYS, &held)) lines.vec = held.vec;
  ocl_text head = {0};
  ocl_lines_head(&head, &lines, compute);
  ocl_text_add(
      &head, "#define D %s\n#define D_TARGET %s\n#define OP_ID %u\n#define REDUCTION %d\n#define EACH_ROW %d\n%s",
      dtype->name, ocl_dtype_of(device, args->target->dl.dtype)->name, OCL_ID_nll_loss_backward, (int)args->reduction,
      args->reduction == OCL_LOSS_EACH && out->ndim > 1, args->weight ? "#define WEIGHTED\n" : "");
  graft_status status =
      ocl_kernel_make(kernel, device, &head, "core/cascade core/lines loss/likelihood loss/classes", "class_gradient");
  if (status != GRAFT_OK) return status;
  const ocl_lines_space space = ocl_lines_lay(kernel, &lines);
  const ocl_argument constants[] = {{sizeof shape, shape}, OCL_VALUE(space)};
  return ocl_kernel_set(kernel, OCL_ALL(constants));
}

static int input_of(const graft_graph_group *group, const graft_tensor_desc *desc) {
  int i = (int)group->input_count - 1;
  while (i >= 0 && group->inputs[i] != desc) i--;
  return i;
}

graft_status ocl_classes_compile(const graft_exec *exec, const graft_graph_group *group, ocl_classes **result) {
  pair p;
  if (group->node_count != 2 || group->output_count != 1) return GRAFT_UNIMPLEMENTED;
  if (!read_pair(exec, group->nodes[0], group->nodes[1], &p) || !fits(exec->device, &p)) return GRAFT_UNIMPLEMENTED;
  if (group->outputs[0] != p.softmax->out) return GRAFT_UNIMPLEMENTED;
  ocl_classes *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  for (int i = 0; i < READS; i++) made->inputs[i] = input_of(group, p.reads[i]);
  const graft_status status = make_kernel(&made->kernel, exec->device, &p);
  if (status == GRAFT_OK)
    *result = made;
  else
    ocl_classes_destroy(made);
  return status;
}

/* What has an element for each of the result is read a vector at a time, before the result is written there. */
uint64_t ocl_classes_in_place(const ocl_classes *classes) {
  return UINT64_C(1) << classes->inputs[LOGARITHM];
}

graft_status ocl_classes_run(const graft_exec *exec, ocl_classes *classes, const graft_graph_run_args *args) {
  const graft_tensor_desc *reads[READS];
  cl_mem faults;
  const graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  for (int i = 0; i < READS; i++) /* what is absent is not looked at; something must stand there */
    reads[i] = args->inputs[classes->inputs[classes->inputs[i] < 0 ? LOGARITHM : i]];
  const ocl_argument arguments[] = {
      OCL_TENSOR(args->outputs[0]), OCL_TENSOR(reads[GRAD]),      OCL_TENSOR(reads[TOTAL]), OCL_TENSOR(reads[TARGET]),
      OCL_TENSOR(reads[WEIGHT]),    OCL_TENSOR(reads[LOGARITHM]), OCL_VALUE(faults)};
  return ocl_launch(&classes->kernel, exec->stream, OCL_ALL(arguments));
}

void ocl_classes_destroy(ocl_classes *classes) {
  if (!classes) return;
  ocl_kernel_destroy(&classes->kernel);
  free(classes);
}
