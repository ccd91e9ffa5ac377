/* Fused pointwise calls: from a group of the host's to a kernel, and its runs. */
#include "kernels/pointwise/fused.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- which calls can be fused ---- */

static bool is_understood(const graft_exec *exec, const graft_graph_node *node, ocl_call *call) {
  return node->args && ocl_call_of(exec, node->args, call) == GRAFT_OK;
}

static const ocl_pointwise_recipe *recipe_of(const ocl_op *op) {
  return op->engine == ocl_pointwise_engine ? op->recipe : op->fused;
}

/* Of one shape, with elements, and not complex. */
static bool fits(const graft_device *device, const graft_tensor_desc *desc, const graft_dl_tensor *like) {
  const ocl_dtype *dtype = ocl_dtype_of(device, desc->dl.dtype);
  if (!dtype || dtype->class == OCL_CLASS_COMPLEX || desc->dl.ndim != like->ndim) return false;
  for (int d = 0; d < like->ndim; d++) {
    if (desc->dl.shape[d] != like->shape[d] || like->shape[d] == 0) return false;
  }
  return true;
}

/* Whether promotion has nothing to do: values come in one dtype, which is the result's where it is computed in that. */
static bool is_plain(const ocl_fused_op *op) {
  const ocl_operands *o = &op->operands;
  const int mask = ocl_mask_of(op->recipe);
  graft_dtype dtype = op->recipe->flags & (OCL_BOOL_RESULT | OCL_CAST) ? GRAFT_DTYPE_NONE : o->out->dl.dtype;
  for (int k = 0; k < o->inputs; k++) {
    if (ocl_is_value(o->input[k])) {
      if (k == mask) return false;
      continue;
    }
    if (k == mask) continue;
    if (!dtype) dtype = o->input[k]->dl.dtype;
    if (o->input[k]->dl.dtype != dtype) return false;
  }
  return dtype != GRAFT_DTYPE_NONE;
}

bool ocl_fused_read(const graft_exec *exec, const graft_graph_node *node, ocl_fused_op *op) {
  /* The programs of all but the last take long to compile. */
  const uint32_t alone = OCL_SPECIAL | OCL_GAMMA | OCL_BESSEL | OCL_POLYNOMIALS | OCL_LANES;
  ocl_call call;
  *op = (ocl_fused_op){0};
  if (!is_understood(exec, node, &call)) return false;
  op->recipe = recipe_of(call.op);
  if (!op->recipe || op->recipe->flags & alone) return false;
  ocl_operands *o = &op->operands;
  ocl_pointwise_read(&call, o, op->made);
  if (!o->out || !o->second != !op->recipe->second || o->out->dl.ndim > OCL_DIMS_MAX) return false;
  if (!fits(exec->device, o->out, &o->out->dl) || (o->second && !fits(exec->device, o->second, &o->out->dl)))
    return false;
  for (int k = 0; k < o->inputs; k++) {
    if (!ocl_is_value(o->input[k]) && !fits(exec->device, o->input[k], &o->out->dl)) return false;
  }
  if (!is_plain(op)) return false;
  op->compute = ocl_pointwise_dtype(exec->device, o, op->recipe);
  if (!op->compute || op->compute->class == OCL_CLASS_COMPLEX) return false;
  op->moves = op->recipe == call.op->fused && o->input[0]->dl.dtype == o->out->dl.dtype;
  /* A divisor of 0 is an error of one op, and at one element. */
  return !(op->recipe->flags & OCL_DIVIDES) || op->compute->class == OCL_CLASS_FLOAT;
}

static bool has_word(const char *text, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = text; at && (at = strstr(at, word)); at++) {
    const unsigned char before = at == text ? ' ' : (unsigned char)at[-1], after = (unsigned char)at[length];
    if (!isalnum(before) && before != '_' && !isalnum(after) && after != '_') return true;
  }
  return false;
}

bool ocl_fused_asks(const ocl_fused_op *op, int number) {
  static const char *const words[OCL_SCALARS_MAX][2] = {{"x", "number_x"}, {"y", "number_y"}, {"z", "number_z"}};
  if (number < op->operands.scalars && op->operands.scalar[number]) return true;
  bool asks = false;
  for (int i = 0; i < 2; i++) {
    asks = asks || has_word(op->recipe->expression, words[number][i]) || has_word(op->recipe->second, words[number][i]);
  }
  return asks;
}

/* ---- an executable ---- */

/* A number of the kernel: known when it is compiled, or what an input of the group brings. */
typedef struct fused_number {
  int64_t bits;
  int input; /* -1: known */
  const ocl_fused_op *op;
} fused_number;

struct graft_executable {
  ocl_kernel kernel;
  ocl_fused_op *ops;
  fused_number numbers[OCL_FUSED_NUMBERS];
  int nnumbers, noutputs, ninputs;
  int inputs[OCL_FUSED_TENSORS]; /* which of the group's inputs are tensors */
};

/* One that is compiled. */
typedef struct compiling {
  const graft_exec *exec;
  const graft_graph_group *group;
  graft_executable *made;
  ocl_fused_kernel kernel;
  ocl_fused_tensor current[OCL_FUSED_TENSORS + 2 * OCL_FUSED_OPS]; /* the value that each descriptor has by now */
  int ncurrent;
} compiling;

static int new_value(compiling *c, const ocl_dtype *dtype) {
  c->kernel.value_dtypes[c->kernel.nvalues] = dtype;
  return c->kernel.nvalues++;
}

static ocl_fused_tensor *current_of(compiling *c, const graft_tensor_desc *desc) {
  for (int i = 0; i < c->ncurrent; i++) {
    if (c->current[i].desc == desc) return &c->current[i];
  }
  return NULL;
}

static void set_current(compiling *c, const graft_tensor_desc *desc, int value) {
  ocl_fused_tensor *known = current_of(c, desc);
  if (!known) known = &c->current[c->ncurrent++];
  *known = (ocl_fused_tensor){desc, value};
}

static graft_status take_inputs(compiling *c) {
  const graft_graph_group *group = c->group;
  for (uint32_t i = 0; i < group->input_count; i++) {
    const graft_tensor_desc *desc = group->inputs[i];
    if (desc->flags & GRAFT_TENSOR_HOST_VALUE) continue;
    if (c->kernel.ninputs == OCL_FUSED_TENSORS) return GRAFT_UNIMPLEMENTED;
    int value = new_value(c, ocl_dtype_of(c->exec->device, desc->dl.dtype));
    c->made->inputs[c->kernel.ninputs] = (int)i;
    c->kernel.inputs[c->kernel.ninputs++] = (ocl_fused_tensor){desc, value};
    set_current(c, desc, value);
  }
  return GRAFT_OK;
}

static int input_of(const graft_graph_group *group, const graft_tensor_desc *desc) {
  uint32_t i = 0;
  while (i < group->input_count && group->inputs[i] != desc) i++;
  return i < group->input_count ? (int)i : -1;
}

static graft_status add_number(compiling *c, const ocl_fused_op *op, const ocl_given_number *given, int *number) {
  graft_executable *made = c->made;
  if (made->nnumbers == OCL_FUSED_NUMBERS) return GRAFT_UNIMPLEMENTED;
  fused_number *n = &made->numbers[made->nnumbers];
  *number = made->nnumbers++;
  *n = (fused_number){.input = given->desc && !given->desc->dl.data ? input_of(c->group, given->desc) : -1, .op = op};
  if (n->input >= 0) return GRAFT_OK;
  ocl_number_argument argument;
  graft_status status = ocl_pointwise_number(c->exec->device->plugin, op->compute, op->recipe, given, &argument);
  if (status == GRAFT_OK) memcpy(&n->bits, &argument.value, argument.bytes);
  return status;
}

static graft_status take_numbers(compiling *c, ocl_fused_op *op) {
  graft_status status = GRAFT_OK;
  for (int k = 0; k < op->operands.inputs && status == GRAFT_OK; k++) {
    const ocl_given_number given = {.op_id = op->operands.op_id, .desc = op->operands.input[k], .absent = 1};
    if (ocl_is_value(op->operands.input[k])) status = add_number(c, op, &given, &op->input_number[k]);
  }
  for (int k = 0; k < OCL_SCALARS_MAX && status == GRAFT_OK; k++) {
    const ocl_given_number given = ocl_pointwise_scalar(&op->operands, op->recipe, k);
    op->scalar_number[k] = -1;
    if (ocl_fused_asks(op, k)) status = add_number(c, op, &given, &op->scalar_number[k]);
  }
  return status;
}

static graft_status take_op(compiling *c, ocl_fused_op *op) {
  ocl_operands *o = &op->operands;
  for (int k = 0; k < o->inputs; k++) {
    if (ocl_is_value(o->input[k])) continue;
    const ocl_fused_tensor *from = current_of(c, o->input[k]);
    if (!from) return GRAFT_UNIMPLEMENTED; /* another view of what the group writes */
    op->input_value[k] = from->value;
  }
  if (op->moves) {
    set_current(c, o->out, op->input_value[0]);
    return GRAFT_OK;
  }
  op->value = new_value(c, ocl_dtype_of(c->exec->device, o->out->dl.dtype));
  if (o->second) op->second_value = new_value(c, ocl_dtype_of(c->exec->device, o->second->dl.dtype));
  set_current(c, o->out, op->value);
  if (o->second) set_current(c, o->second, op->second_value);
  return take_numbers(c, op);
}

static graft_status take_ops(compiling *c) {
  graft_status status = GRAFT_OK;
  for (uint32_t n = 0; n < c->group->node_count && status == GRAFT_OK; n++) {
    ocl_fused_op *op = &c->made->ops[n];
    status = ocl_fused_read(c->exec, c->group->nodes[n], op) ? take_op(c, op) : GRAFT_UNIMPLEMENTED;
    if (!op->moves && status == GRAFT_OK) c->kernel.nops = (int)n + 1;
  }
  if (c->kernel.nops == 0) return GRAFT_UNIMPLEMENTED; /* nothing but moves */
  for (uint32_t i = 0; i < c->group->output_count && status == GRAFT_OK; i++) {
    const ocl_fused_tensor *from = current_of(c, c->group->outputs[i]);
    if (!from || c->kernel.noutputs + c->kernel.ninputs == OCL_FUSED_TENSORS) return GRAFT_UNIMPLEMENTED;
    c->kernel.outputs[c->kernel.noutputs++] = *from;
  }
  return status;
}

static void make_geometry(compiling *c) {
  ocl_fused_kernel *k = &c->kernel;
  const graft_dl_tensor *like = &c->made->ops[0].operands.out->dl;
  k->geometry.operands = k->noutputs + k->ninputs;
  for (int d = like->ndim - 1; d >= 0; d--) {
    int64_t strides[OCL_OPERANDS_MAX];
    for (int i = 0; i < k->noutputs; i++) strides[i] = k->outputs[i].desc->dl.strides[d];
    for (int i = 0; i < k->ninputs; i++) strides[k->noutputs + i] = k->inputs[i].desc->dl.strides[d];
    ocl_geometry_push_outer(&k->geometry, like->shape[d], strides);
  }
  ocl_geometry_sort(&k->geometry);
  ocl_geometry_collapse(&k->geometry);
}

static graft_status make_kernel(compiling *c) {
  int64_t space[OCL_GEOMETRY_NUMBERS + sizeof(ocl_cut) / sizeof(int64_t)];
  graft_device *device = c->exec->device;
  ocl_fused_kernel *k = &c->kernel;
  make_geometry(c);
  k->device = device;
  k->ops = c->made->ops;
  k->nnumbers = c->made->nnumbers;
  k->local = device->is_cpu ? 1 : 128;
  ocl_cut cut;
  const int64_t items = ocl_geometry_cut(device, &k->geometry, &cut);
  const int n = ocl_geometry_numbers(&k->geometry, space);
  const size_t bytes = sizeof *space * (size_t)n + sizeof cut, tensor = sizeof(cl_mem) + sizeof(uint64_t);
  memcpy(space + n, &cut, sizeof cut);
  if (bytes + tensor * (size_t)k->geometry.operands + sizeof(int64_t) * (size_t)k->nnumbers > device->parameter_bytes)
    return GRAFT_UNIMPLEMENTED;
  ocl_text text = {0};
  ocl_fused_write(&text, k);
  graft_status status = ocl_kernel_init_whole(&c->made->kernel, device, &text, "pointwise/fused", "fused");
  ocl_text_free(&text);
  ocl_kernel_size(&c->made->kernel, items, k->local);
  return status == GRAFT_OK ? ocl_kernel_set(&c->made->kernel, 1, &(ocl_argument){bytes, space}) : status;
}

graft_status ocl_fused_destroy(graft_executable *executable) {
  ocl_kernel_destroy(&executable->kernel);
  free(executable->ops);
  free(executable);
  return GRAFT_OK;
}

graft_status ocl_fused_compile(const graft_exec *exec, const graft_graph_group *group, graft_graph_compiled *compiled) {
  if (group->node_count > OCL_FUSED_OPS) return GRAFT_UNIMPLEMENTED;
  graft_executable *made = calloc(1, sizeof *made);
  if (made) made->ops = calloc(group->node_count, sizeof *made->ops);
  compiling *c = calloc(1, sizeof *c);
  graft_status status = made && made->ops && c ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  if (status == GRAFT_OK) {
    *c = (compiling){.exec = exec, .group = group, .made = made};
    status = take_inputs(c);
    if (status == GRAFT_OK) status = take_ops(c);
    made->noutputs = c->kernel.noutputs;
    made->ninputs = c->kernel.ninputs;
    if (status == GRAFT_OK) status = make_kernel(c);
  }
  free(c);
  if (status == GRAFT_OK) {
    compiled->executable = made;
    compiled->flags = GRAFT_EXECUTABLE_UNALIGNED;
  } else if (made) {
    ocl_fused_destroy(made);
  }
  return status;
}

/* ---- a run ---- */

static cl_uint add_tensor(ocl_argument *arguments, cl_uint n, const graft_tensor_desc *desc) {
  arguments[n] = (ocl_argument){sizeof(cl_mem), &desc->dl.data->handle};
  arguments[n + 1] = (ocl_argument){sizeof(uint64_t), &desc->dl.byte_offset};
  return n + 2;
}

static graft_status fill_numbers(const graft_exec *exec, const graft_executable *e, const graft_graph_run_args *args,
                                 int64_t *numbers) {
  graft_status status = GRAFT_OK;
  for (int i = 0; i < e->nnumbers && status == GRAFT_OK; i++) {
    const fused_number *n = &e->numbers[i];
    numbers[i] = n->bits;
    if (n->input < 0) continue;
    const ocl_given_number given = {.op_id = n->op->operands.op_id, .desc = args->inputs[n->input]};
    ocl_number_argument argument;
    status = ocl_pointwise_number(exec->device->plugin, n->op->compute, n->op->recipe, &given, &argument);
    if (status == GRAFT_OK) memcpy(&numbers[i], &argument.value, argument.bytes);
  }
  return status;
}

graft_status ocl_fused_run(const graft_exec *exec, graft_executable *e, const graft_graph_run_args *args) {
  ocl_argument arguments[2 * OCL_FUSED_TENSORS + 1];
  int64_t numbers[OCL_FUSED_NUMBERS] = {0};
  graft_status status = fill_numbers(exec, e, args, numbers);
  if (status != GRAFT_OK) return status;
  cl_uint n = 0;
  for (int i = 0; i < e->noutputs; i++) n = add_tensor(arguments, n, args->outputs[i]);
  for (int i = 0; i < e->ninputs; i++) n = add_tensor(arguments, n, args->inputs[e->inputs[i]]);
  arguments[n++] = (ocl_argument){sizeof *numbers * (size_t)(e->nnumbers ? e->nnumbers : 1), numbers};
  return ocl_launch(&e->kernel, exec->stream, n, arguments);
}
