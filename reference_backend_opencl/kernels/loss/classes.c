/* A cross entropy and its gradient: see classes.h. The gradient of the likelihood is zeros but for a number a row, so
 * the sum over a row that the gradient of a logarithm of softmax takes is that number. Where the logarithm is not in
 * memory, a kernel goes through a row of what it is made of three times, which is in the nearer caches from the second
 * time on; on a CPU, whose kernel for it goes through rows likewise. */
#include "kernels/loss/classes.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/core/held.h"
#include "kernels/core/lines.h"
#include "kernels/loss/loss.h"

enum { GRAD, TOTAL, TARGET, WEIGHT, VALUES, READS };
enum { LOSS, ALL_WEIGHTS, WRITES };

typedef struct classes {
  ocl_kernel kernel, sum; /* sum: of a loss, of what the kernel took from each row */
  int inputs[READS];      /* which of the group's inputs; -1: absent */
  int outputs[WRITES];    /* likewise */
  bool is_loss;
  uint64_t taken_bytes; /* what the kernel took from all rows, in temporary memory */
} classes;

/* The calls, NULL where there is none, and what they read and write in memory. */
typedef struct calls {
  const graft_args_log_softmax *logarithm;
  const graft_args_nll_loss_forward *loss;
  const graft_args_nll_loss_backward *slope;
  const graft_args_log_softmax_backward_data *gradient;
  const graft_tensor_desc *reads[READS], *writes[WRITES]; /* of a gradient the first */
  int64_t reduction, ignored;
} calls;

/* ---- what they are ---- */

static bool read_call(const graft_exec *exec, const graft_graph_node *node, calls *c) {
  const void *logarithm = ocl_node_args(exec, node, NULL, OCL_ID_log_softmax),
             *loss = ocl_node_args(exec, node, (ocl_slot)(void *)ocl_op_nll_loss_forward, OCL_ID_nll_loss_forward),
             *slope = ocl_node_args(exec, node, (ocl_slot)(void *)ocl_op_nll_loss_backward, OCL_ID_nll_loss_backward),
             *gradient = ocl_node_args(exec, node, NULL, OCL_ID_log_softmax_backward_data);
  if (logarithm) c->logarithm = logarithm;
  if (loss) c->loss = loss;
  if (slope) c->slope = slope;
  if (gradient) c->gradient = gradient;
  return logarithm || loss || slope || gradient;
}

static bool read_loss(calls *c) {
  const graft_args_nll_loss_forward *loss = c->loss;
  const graft_tensor_desc *const reads[READS] = {
      [TARGET] = loss->target, [WEIGHT] = loss->weight, [VALUES] = c->logarithm->self};
  memcpy(c->reads, reads, sizeof reads);
  c->writes[LOSS] = loss->output;
  c->writes[ALL_WEIGHTS] = loss->total_weight;
  c->reduction = loss->reduction;
  c->ignored = loss->ignore_index;
  return loss->self == c->logarithm->out;
}

static bool read_gradient(calls *c) {
  const graft_args_nll_loss_backward *slope = c->slope;
  const graft_tensor_desc *const reads[READS] = {[GRAD] = slope->grad_output,
                                                 [TOTAL] = slope->total_weight,
                                                 [TARGET] = slope->target,
                                                 [WEIGHT] = slope->weight,
                                                 [VALUES] = c->logarithm ? c->logarithm->self : c->gradient->output};
  memcpy(c->reads, reads, sizeof reads);
  c->writes[LOSS] = c->gradient->out;
  c->reduction = slope->reduction;
  c->ignored = slope->ignore_index;
  const bool made = !c->logarithm || (c->gradient->output == c->logarithm->out && slope->self == c->logarithm->out);
  return made && c->gradient->grad_output == slope->out;
}

static bool read_calls(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count, calls *c) {
  *c = (calls){0};
  for (uint32_t i = 0; i < count; i++) {
    if (!read_call(exec, nodes[i], c)) return false;
  }
  const uint32_t found = !!c->logarithm + !!c->loss + !!c->slope + !!c->gradient;
  if (found != count) return false;
  if (c->logarithm && c->loss && count == 2) return read_loss(c);
  return c->slope && c->gradient && !c->loss && read_gradient(c);
}

/* ---- whether they fit ---- */

/* In memory, side by side. */
static bool is_plain(const graft_tensor_desc *desc) {
  return desc && !(desc->flags & GRAFT_TENSOR_HOST_VALUE) && ocl_is_dense(&desc->dl);
}

static bool writes_are_apart(const calls *c) {
  for (int w = 0; w < WRITES; w++) {
    for (int i = 0; i < READS; i++) {
      if (c->writes[w] && c->reads[i] && c->reads[i]->storage_id == c->writes[w]->storage_id) return false;
    }
  }
  return true;
}

static bool is_read(const calls *c, int i) {
  return c->reads[i] || !(i == WEIGHT || (c->loss && (i == GRAD || i == TOTAL)));
}

/* A logarithm that is made for the other calls: rows, as softmax.c has them on a CPU, of one dtype throughout. */
static bool makes_rows(const graft_device *device, const calls *c) {
  const graft_dl_tensor *from = &c->logarithm->self->dl, *to = &c->logarithm->out->dl;
  return device->is_cpu && from->ndim == 2 && c->logarithm->dim == 1 && from->dtype == to->dtype;
}

/* A number for all rows: one for each has its own kernel. */
static bool sums_up(const calls *c, graft_dtype dtype) {
  bool good = c->reduction != OCL_LOSS_EACH;
  for (int w = 0; w < WRITES && good; w++)
    good = is_plain(c->writes[w]) && c->writes[w]->dl.dtype == dtype && ocl_elements(c->writes[w]) == 1;
  return good;
}

/* As the slots of all of them: numbers of one dtype, with a class for each element of the last dimension. */
static bool fits(const graft_device *device, const calls *c) {
  if (!is_plain(c->reads[VALUES]) || !c->reads[TARGET]) return false;
  const graft_dl_tensor *values = &c->reads[VALUES]->dl;
  const ocl_dtype *dtype = ocl_dtype_of(device, values->dtype),
                  *target = ocl_dtype_of(device, c->reads[TARGET]->dl.dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || dtype->bytes < 2 || ocl_elements(c->reads[VALUES]) == 0)
    return false;
  if (!target || (target->code != GRAFT_I64 && target->code != GRAFT_U8 && target->code != GRAFT_I32)) return false;
  if (values->ndim < 1 || values->ndim > 2 || !writes_are_apart(c)) return false;
  if (c->gradient && (c->gradient->dim != values->ndim - 1 || !is_plain(c->writes[LOSS]))) return false;
  for (int i = 0; i < READS; i++) {
    if (!is_read(c, i)) continue;
    if (!is_plain(c->reads[i]) || (i != TARGET && c->reads[i]->dl.dtype != dtype->code)) return false;
  }
  if (c->logarithm && !makes_rows(device, c)) return false;
  return c->loss ? sums_up(c, dtype->code) : c->writes[LOSS]->dl.dtype == dtype->code;
}

bool ocl_classes_match(const graft_exec *exec, const graft_graph_node *const *nodes, uint32_t count) {
  calls c;
  return read_calls(exec, nodes, count, &c) && fits(exec->device, &c);
}

/* ---- kernels ---- */

static const char files[] = "core/cascade core/lines core/exp loss/likelihood loss/classes";

static void write_head(ocl_text *head, const graft_device *device, const calls *c, const ocl_lines *lines, bool each) {
  const ocl_dtype *dtype = ocl_dtype_of(device, c->reads[VALUES]->dl.dtype);
  ocl_lines_head(head, lines, ocl_dtype_of(device, dtype->code == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32));
  ocl_text_add(head,
               "#define D %s\n#define D_TARGET %s\n#define OP_ID %u\n#define REDUCTION %d\n#define EACH_ROW %d\n%s%s",
               dtype->name, ocl_dtype_of(device, c->reads[TARGET]->dl.dtype)->name,
               c->loss ? OCL_ID_nll_loss_forward : OCL_ID_nll_loss_backward, (int)c->reduction, each,
               c->reads[WEIGHT] ? "#define WEIGHTED\n" : "", c->logarithm ? "#define MADE\n" : "");
}

/* As wide as softmax.c makes the gradient alone, which some drivers' exp has other bits for. */
enum { SOFTMAX_ARRAYS = 2 };

static graft_status make_rows(classes *made, graft_device *device, const calls *c) {
  const graft_dl_tensor *values = &c->reads[VALUES]->dl;
  const ocl_dtype *compute = ocl_dtype_of(device, values->dtype == GRAFT_F64 ? GRAFT_F64 : GRAFT_F32);
  const int64_t classes = values->shape[values->ndim - 1], rows = ocl_elements(c->reads[VALUES]) / classes;
  const int64_t shape[] = {rows, classes, 1, c->ignored};
  ocl_lines lines = ocl_lines_of(device, values, values->ndim - 1);
  ocl_held held;
  if (ocl_held_plan(device, lines.outer, lines.size, compute, SOFTMAX_ARRAYS, &held)) lines.vec = held.vec;
  ocl_text head = {0};
  write_head(&head, device, c, &lines, c->reduction == OCL_LOSS_EACH && values->ndim > 1);
  const char *entry = c->loss ? "class_values" : "class_gradient";
  graft_status status = ocl_kernel_make(&made->kernel, device, &head, files, entry);
  if (status != GRAFT_OK) return status;
  const ocl_lines_space space = ocl_lines_lay(&made->kernel, &lines);
  const ocl_argument constants[] = {{sizeof shape, shape}, OCL_VALUE(space)};
  made->taken_bytes = (uint64_t)rows * ocl_dtype_of(device, values->dtype)->bytes;
  return ocl_kernel_set(&made->kernel, OCL_ALL(constants));
}

/* nll_sum, as likelihood.c makes it, of one value a row. */
static graft_status make_sum(classes *made, graft_device *device, const calls *c) {
  const int64_t classes = c->reads[VALUES]->dl.shape[1], rows = c->reads[VALUES]->dl.shape[0];
  const int64_t shape[] = {rows, classes, 1, c->ignored};
  ocl_lines lines = {.outer = 1, .size = 4096, .inner = 1};
  ocl_lines_plan(device, &lines);
  ocl_text head = {0};
  write_head(&head, device, c, &lines, false);
  ocl_text_add(&head, "#define TAKEN\n");
  graft_status status = ocl_kernel_make(&made->sum, device, &head, files, "nll_sum");
  if (status != GRAFT_OK) return status;
  ocl_kernel_size(&made->sum, 1, lines.local);
  return ocl_kernel_set(&made->sum, 1, &(ocl_argument){sizeof shape, shape});
}

/* ---- an executable ---- */

static void destroy(void *made) {
  classes *classes = made;
  ocl_kernel_destroy(&classes->kernel);
  ocl_kernel_destroy(&classes->sum);
  free(classes);
}

static graft_status compile(const graft_exec *exec, const graft_graph_group *group, void **result) {
  calls c;
  if (group->node_count > OCL_CLASSES_CALLS || !read_calls(exec, group->nodes, group->node_count, &c) ||
      !fits(exec->device, &c)) {
    return GRAFT_UNIMPLEMENTED;
  }
  classes *made = calloc(1, sizeof *made);
  if (!made) return GRAFT_OUT_OF_MEMORY;
  made->is_loss = c.loss != NULL;
  uint32_t seen = 0;
  for (int i = 0; i < READS; i++) made->inputs[i] = ocl_group_place(group->inputs, group->input_count, c.reads[i]);
  for (int w = 0; w < WRITES; w++) {
    made->outputs[w] = c.writes[w] ? ocl_group_place(group->outputs, group->output_count, c.writes[w]) : -1;
    seen += made->outputs[w] >= 0;
  }
  graft_status status = GRAFT_OK;
  if (seen != group->output_count || made->outputs[LOSS] < 0) status = GRAFT_UNIMPLEMENTED;
  if (status == GRAFT_OK) status = make_rows(made, exec->device, &c);
  if (status == GRAFT_OK && made->is_loss) status = make_sum(made, exec->device, &c);
  if (status == GRAFT_OK)
    *result = made;
  else
    destroy(made);
  return status;
}

/* What has an element for each of the result is read a vector at a time, before the result is written there. */
static uint64_t in_place(const void *made) {
  const classes *classes = made;
  return classes->is_loss ? 0 : UINT64_C(1) << classes->inputs[VALUES];
}

static graft_status run_loss(const graft_exec *exec, classes *classes, const graft_graph_run_args *args,
                             const graft_tensor_desc *const *reads, cl_mem faults) {
  enum { TOTAL_BYTES = 64 }; /* for the sum of weights where nobody wants it, in front of what is taken */
  ocl_place scratch;
  graft_status status = ocl_workspace(exec, TOTAL_BYTES + classes->taken_bytes, &scratch);
  if (status != GRAFT_OK) return status;
  const ocl_place taken = {scratch.buffer, scratch.offset + TOTAL_BYTES};
  const int all = classes->outputs[ALL_WEIGHTS];
  const ocl_place total = all < 0 ? scratch : ocl_place_of(args->outputs[all]);
  const ocl_argument values[] = {OCL_PLACE(taken), OCL_TENSOR(reads[TARGET]), OCL_TENSOR(reads[VALUES])};
  status = ocl_launch(&classes->kernel, exec->stream, OCL_ALL(values));
  if (status != GRAFT_OK) return status;
  const ocl_argument sum[] = {OCL_TENSOR(args->outputs[classes->outputs[LOSS]]),
                              OCL_PLACE(total),
                              OCL_PLACE(taken),
                              OCL_TENSOR(reads[TARGET]),
                              OCL_TENSOR(reads[WEIGHT]),
                              OCL_VALUE(faults)};
  return ocl_launch(&classes->sum, exec->stream, OCL_ALL(sum));
}

static graft_status run(const graft_exec *exec, void *made, const graft_graph_run_args *args) {
  classes *classes = made;
  const graft_tensor_desc *reads[READS];
  cl_mem faults;
  const graft_status status = ocl_stream_faults(exec->stream, &faults);
  if (status != GRAFT_OK) return status;
  for (int i = 0; i < READS; i++) /* what is absent is not looked at; something must stand there */
    reads[i] = args->inputs[classes->inputs[classes->inputs[i] < 0 ? VALUES : i]];
  if (classes->is_loss) return run_loss(exec, classes, args, reads, faults);
  const ocl_argument arguments[] = {
      OCL_TENSOR(args->outputs[0]), OCL_TENSOR(reads[GRAD]),   OCL_TENSOR(reads[TOTAL]), OCL_TENSOR(reads[TARGET]),
      OCL_TENSOR(reads[WEIGHT]),    OCL_TENSOR(reads[VALUES]), OCL_VALUE(faults)};
  return ocl_launch(&classes->kernel, exec->stream, OCL_ALL(arguments));
}

const ocl_group_kind ocl_classes_kind = {.compile = compile, .in_place = in_place, .run = run, .destroy = destroy};
