/* Gradients of query, key and value that are written to their places: see placed.h. */
#include "kernels/attention/placed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/attention/attention.h"
#include "kernels/pointwise/pointwise.h"

enum { READS = 9 };

typedef graft_args_scaled_dot_product_fused_attention_overrideable_backward gradient_args;

typedef struct placed {
  ocl_direct_kernels *kernels;
  gradient_args args; /* without descriptors */
  double scale;
  int inputs[READS]; /* which of the group's inputs; -1: absent */
  int outputs[OCL_PLACED_RESULTS];
} placed;

/* Where args have what they read, and what they write. */
static void read_places(gradient_args *args, const graft_tensor_desc **reads[READS],
                        const graft_tensor_desc **results[OCL_PLACED_RESULTS]) {
  const graft_tensor_desc **const all[READS] = {&args->grad_out,  &args->query,       &args->key,
                                                &args->value,     &args->attn_bias,   &args->out,
                                                &args->logsumexp, &args->philox_seed, &args->philox_offset};
  memcpy(reads, all, sizeof all);
  results[0] = &args->grad_query;
  results[1] = &args->grad_key;
  results[2] = &args->grad_value;
}

/* ---- what they are ---- */

/* One of f32 or f64, whose results are not rounded before zero is added, and no gradient of a mask. */
static bool read_gradient(const graft_exec *exec, const graft_graph_node *node, gradient_args *args) {
  const gradient_args *from =
      ocl_node_args(exec, node, NULL, OCL_ID_scaled_dot_product_fused_attention_overrideable_backward);
  if (!exec->device->is_cpu || !from || from->grad_attn_bias) return false;
  const graft_dtype dtype = from->query->dl.dtype;
  *args = *from;
  return (dtype == GRAFT_F32 || dtype == GRAFT_F64) && ocl_elements(from->query) > 0 && ocl_elements(from->key) > 0;
}

static bool is_zero(const graft_tensor_desc *desc) {
  ocl_number n;
  if (!desc || !(desc->flags & GRAFT_TENSOR_HOST_VALUE) || !desc->dl.data || !ocl_number_of_tensor(desc, &n))
    return false;
  return n.is_int ? n.i == 0 : n.re == 0 && !signbit(n.re) && n.im == 0;
}

/* The result that the call adds zero to, in its own shape and dtype; -1: none. */
static int read_addition(const graft_exec *exec, const graft_graph_node *node, gradient_args *args,
                         const graft_tensor_desc **to) {
  const graft_args_add_Tensor *add = ocl_node_args(exec, node, NULL, OCL_ID_add_Tensor);
  const graft_tensor_desc **reads[READS], **results[OCL_PLACED_RESULTS];
  if (!add || !is_zero(add->other) || (add->alpha && ocl_real_of_scalar(add->alpha, 1) != 1)) return -1;
  read_places(args, reads, results);
  int i = OCL_PLACED_RESULTS - 1;
  while (i >= 0 && *results[i] != add->self) i--;
  const graft_dl_tensor *from = &add->self->dl, *out = &add->out->dl;
  if (i < 0 || from->dtype != out->dtype || from->ndim != out->ndim) return -1;
  if (memcmp(from->shape, out->shape, (size_t)from->ndim * sizeof *from->shape)) return -1;
  for (int r = 0; r < READS; r++) {
    if (*reads[r] && (*reads[r])->storage_id == add->out->storage_id) return -1;
  }
  *to = add->out;
  return i;
}

/* Dimensions of more than one place, by their strides. */
static int order_dims(const graft_dl_tensor *t, int dims[OCL_DIMS_MAX]) {
  int count = 0;
  for (int d = 0; d < t->ndim; d++) {
    int at = t->shape[d] > 1 ? count++ : -1;
    for (; at > 0 && t->strides[dims[at - 1]] > t->strides[d]; at--) dims[at] = dims[at - 1];
    if (at >= 0) dims[at] = d;
  }
  return count;
}

/* Whether two tensors that lie alike in one storage have no element together: what lies closer than they do from each
 * other reaches no further than that, and what lies further apart does so by more than both reach. */
static bool are_apart(const graft_tensor_desc *a, const graft_tensor_desc *b) {
  const graft_dl_tensor *t = &a->dl, *other = &b->dl;
  int dims[OCL_DIMS_MAX];
  if (a->storage_id != b->storage_id) return true;
  if (memcmp(t->shape, other->shape, (size_t)t->ndim * sizeof *t->shape) ||
      memcmp(t->strides, other->strides, (size_t)t->ndim * sizeof *t->strides)) {
    return false;
  }
  const uint64_t from = t->byte_offset, to = other->byte_offset;
  const int64_t distance = (int64_t)((from > to ? from - to : to - from) / GRAFT_DTYPE_BYTES(t->dtype));
  int64_t reach = 1;
  bool both = false;
  const int count = order_dims(t, dims);
  for (int i = 0; i < count; i++) {
    const int64_t stride = t->strides[dims[i]];
    if (!both && stride >= distance) {
      if (reach > distance) return false;
      reach += distance;
      both = true;
    }
    if (both && stride < reach) return false;
    reach += (t->shape[dims[i]] - 1) * stride;
  }
  return both || reach <= distance;
}

/* `args` are the gradient's, and then where its results go. */
static bool read_calls(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count,
                       gradient_args *args) {
  const graft_tensor_desc *to[OCL_PLACED_RESULTS] = {NULL}, **reads[READS], **results[OCL_PLACED_RESULTS];
  if (count < 2 || count > OCL_PLACED_CALLS || !read_gradient(exec, nodes[0], args)) return false;
  for (uint32_t n = 1; n < count; n++) {
    const graft_tensor_desc *out;
    const int i = read_addition(exec, nodes[n], args, &out);
    if (i < 0 || to[i]) return false;
    to[i] = out;
  }
  for (int i = 0; i < OCL_PLACED_RESULTS; i++) {
    for (int j = 0; j < i; j++) {
      if (to[i] && to[j] && !are_apart(to[i], to[j])) return false;
    }
  }
  read_places(args, reads, results);
  for (int i = 0; i < OCL_PLACED_RESULTS; i++) {
    if (*results[i] && !to[i]) return false;
    *results[i] = to[i];
  }
  return true;
}

bool ocl_placed_match(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count) {
  gradient_args args;
  return read_calls(exec, nodes, count, &args);
}

/* ---- an executable ---- */

static graft_status compile(const graft_exec *exec, const graft_graph_group *group, void **result) {
  placed placed = {.scale = 0};
  const graft_tensor_desc **reads[READS], **results[OCL_PLACED_RESULTS];
  if (!read_calls(exec, group->nodes, group->node_count, &placed.args)) return GRAFT_UNIMPLEMENTED;
  read_places(&placed.args, reads, results);
  uint32_t seen = 0;
  for (int i = 0; i < READS; i++) placed.inputs[i] = ocl_group_place(group->inputs, group->input_count, *reads[i]);
  for (int i = 0; i < OCL_PLACED_RESULTS; i++) {
    placed.outputs[i] = *results[i] ? ocl_group_place(group->outputs, group->output_count, *results[i]) : -1;
    if (*results[i] && placed.outputs[i] < 0) return GRAFT_UNIMPLEMENTED;
    seen += placed.outputs[i] >= 0;
  }
  for (int i = 0; i < READS; i++) {
    if (*reads[i] && placed.inputs[i] < 0) return GRAFT_UNIMPLEMENTED;
  }
  if (seen != group->output_count) return GRAFT_UNIMPLEMENTED;
  if (placed.args.scale) placed.scale = *placed.args.scale;
  const graft_status status = ocl_attention_make_placed(exec, &placed.args, &placed.kernels);
  void *made = status == GRAFT_OK ? malloc(sizeof placed) : NULL;
  if (!made) {
    ocl_direct_destroy(placed.kernels);
    return status == GRAFT_OK ? GRAFT_OUT_OF_MEMORY : status;
  }
  *result = memcpy(made, &placed, sizeof placed);
  return GRAFT_OK;
}

static graft_status run(const graft_exec *exec, void *made, const graft_graph_run_args *args) {
  placed *placed = made;
  gradient_args call = placed->args;
  const graft_tensor_desc **reads[READS], **results[OCL_PLACED_RESULTS];
  read_places(&call, reads, results);
  if (call.scale) call.scale = &placed->scale;
  for (int i = 0; i < READS; i++) *reads[i] = placed->inputs[i] >= 0 ? args->inputs[placed->inputs[i]] : NULL;
  for (int i = 0; i < OCL_PLACED_RESULTS; i++)
    *results[i] = placed->outputs[i] >= 0 ? args->outputs[placed->outputs[i]] : NULL;
  return ocl_attention_run_placed(exec, &call, placed->kernels);
}

static void destroy(void *made) {
  placed *placed = made;
  ocl_direct_destroy(placed->kernels);
  free(placed);
}

const ocl_group_kind ocl_placed_kind = {.compile = compile, .run = run, .destroy = destroy};
