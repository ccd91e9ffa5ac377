/* Fused calls: from a group of the host's to a kernel, and its runs. */
#include "kernels/pointwise/fused_followed.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/attention/placed.h"
#include "kernels/loss/classes.h"
#include "kernels/matmul/summed.h"
#include "kernels/optimizer/chain.h"

/* ---- an executable ---- */

/* A number of the kernel: known when it is compiled, or what an input of the group brings, or a run's random state. */
typedef struct fused_number {
  int64_t bits;
  int input; /* -1: known */
  const ocl_fused_op *op;
  int seed_of, block_of; /* which of the calls that draw; 0: none, 1: the first */
} fused_number;

/* What makes a reduction of partial results. */
typedef struct last_pass {
  ocl_kernel kernel;
  int output; /* -1: nobody sees it */
  int number; /* x */
  size_t number_bytes;
  uint64_t offset; /* of the partial results in memory of the group's own */
} last_pass;

struct graft_executable {
  const ocl_group_kind *kind; /* of what another file made of the group; NULL: all below is this one's */
  void *made;
  ocl_kernel kernel;
  last_pass lasts[OCL_FUSED_STAGES];
  int nlasts;
  ocl_fused_op *ops;
  fused_number numbers[OCL_FUSED_NUMBERS];
  int nnumbers, noutputs, ninputs, ndraws;
  ocl_followed followed;
  int outputs[OCL_FUSED_TENSORS]; /* which of the group's outputs the kernel's are */
  int inputs[OCL_FUSED_TENSORS];  /* which of the group's inputs are tensors that it reads; -1: in no memory */
  uint64_t scratch_bytes;         /* for values that are kept from one phase to another */
};

/* One that is compiled. */
typedef struct compiling {
  const graft_exec *exec;
  const graft_graph_group *group;
  graft_executable *made;
  ocl_fused_kernel kernel;
  ocl_fused_tensor current[OCL_FUSED_VALUES]; /* the value that each tensor has by now */
  int ncurrent;
} compiling;

static bool is_kept(const compiling *c, const graft_tensor_desc *desc) {
  ocl_fused_view view;
  return ocl_fused_see(&c->kernel.space, desc, &view) && !view.whole;
}

static int new_value(compiling *c, const graft_tensor_desc *desc) {
  c->kernel.values[c->kernel.nvalues] = (ocl_fused_value){.dtype = ocl_dtype_of(c->exec->device, desc->dl.dtype),
                                                          .kept = is_kept(c, desc),
                                                          .op = -1,
                                                          .input = -1,
                                                          .slot = -1};
  return c->kernel.nvalues++;
}

static ocl_fused_tensor *current_of(compiling *c, const graft_tensor_desc *desc) {
  for (int i = 0; i < c->ncurrent; i++) {
    if (ocl_fused_same(&c->kernel.space, c->current[i].desc, desc)) return &c->current[i];
  }
  return NULL;
}

static void set_current(compiling *c, const graft_tensor_desc *desc, int value) {
  ocl_fused_tensor *known = current_of(c, desc);
  if (!known) known = &c->current[c->ncurrent++];
  *known = (ocl_fused_tensor){.desc = desc, .value = value};
}

static int input_of(const graft_graph_group *group, const graft_tensor_desc *desc) {
  return ocl_group_place(group->inputs, group->input_count, desc);
}

/* The value that a call reads as `desc`: one of the group's own, or what the input `from` brings. */
static graft_status read_from(compiling *c, const graft_tensor_desc *desc, const graft_tensor_desc *from, int *value) {
  ocl_fused_kernel *k = &c->kernel;
  const ocl_fused_tensor *known = current_of(c, desc);
  if (known) {
    *value = known->value;
    return GRAFT_OK;
  }
  const int input = input_of(c->group, from);
  ocl_fused_tensor read = {.desc = desc};
  if (input < 0 || k->ninputs == OCL_FUSED_TENSORS || c->ncurrent == OCL_FUSED_VALUES) return GRAFT_UNIMPLEMENTED;
  if (!ocl_fused_see(&k->space, desc, &read.view)) return GRAFT_UNIMPLEMENTED;
  *value = read.value = new_value(c, desc);
  ocl_fused_value *made = &k->values[*value];
  made->input = k->ninputs;
  if (k->space.reduced) made->kept = (k->space.rows ? ocl_fused_inner : ocl_fused_outer)(&k->space, &read.view) == 0;
  c->made->inputs[k->ninputs] = input;
  k->inputs[k->ninputs++] = read;
  set_current(c, desc, *value);
  return GRAFT_OK;
}

static graft_status read_value(compiling *c, const graft_tensor_desc *desc, int *value) {
  return read_from(c, desc, desc, value);
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

/* What a call gives. */
static void give_value(compiling *c, const ocl_fused_op *op, const graft_tensor_desc *desc, int *value) {
  *value = new_value(c, desc);
  c->kernel.values[*value].op = (int)(op - c->made->ops);
  set_current(c, desc, *value);
}

static int add_bits(compiling *c, const ocl_dtype *dtype, const ocl_number *number) {
  ocl_value value;
  fused_number *n = &c->made->numbers[c->made->nnumbers];
  *n = (fused_number){.input = -1};
  memcpy(&n->bits, &value, ocl_number_as(number, dtype, &value));
  return c->made->nnumbers++;
}

/* The operand that is in no memory, with the numbers that say where its stream begins. */
static int draw_value(compiling *c, const ocl_fused_op *op) {
  ocl_fused_kernel *k = &c->kernel;
  const int draw = ++c->made->ndraws;
  ocl_fused_tensor drawn = {.desc = &op->drawn, .drawn = true, .stream = c->made->nnumbers};
  c->made->numbers[c->made->nnumbers++] = (fused_number){.input = -1, .seed_of = draw};
  c->made->numbers[c->made->nnumbers++] = (fused_number){.input = -1, .block_of = draw};
  ocl_fused_see(&k->space, &op->drawn, &drawn.view);
  drawn.value = new_value(c, &op->drawn);
  k->values[drawn.value].input = k->ninputs;
  c->made->inputs[k->ninputs] = -1;
  k->inputs[k->ninputs++] = drawn;
  return drawn.value;
}

static graft_status take_draw(compiling *c, ocl_fused_op *op) {
  const ocl_operands *o = &op->operands;
  graft_status status = read_value(c, o->input[0], &op->input_value[0]);
  if (status != GRAFT_OK) return status;
  if (c->kernel.ninputs == OCL_FUSED_TENSORS || c->made->nnumbers + op->numbers > OCL_FUSED_NUMBERS)
    return GRAFT_UNIMPLEMENTED;
  op->input_value[1] = draw_value(c, op);
  give_value(c, op, o->out, &op->value);
  give_value(c, op, o->second, &op->second_value);
  op->scalar_number[0] = add_bits(c, op->compute, &op->kept_below);
  op->scalar_number[1] = add_bits(c, op->compute, &op->scale);
  op->scalar_number[2] = -1;
  return GRAFT_OK;
}

static graft_status take_pointwise(compiling *c, ocl_fused_op *op) {
  ocl_operands *o = &op->operands;
  graft_status status = GRAFT_OK;
  for (int k = 0; k < o->inputs && status == GRAFT_OK; k++) {
    const graft_tensor_desc *from = op->normalizes && k > 0 ? op->of_channels[k - 1] : o->input[k];
    if (!ocl_is_value(o->input[k])) status = read_from(c, o->input[k], from, &op->input_value[k]);
  }
  if (status != GRAFT_OK) return status;
  if (op->moves) {
    set_current(c, o->out, op->input_value[0]);
    return GRAFT_OK;
  }
  give_value(c, op, o->out, &op->value);
  if (o->second) give_value(c, op, o->second, &op->second_value);
  return take_numbers(c, op);
}

/* The stage of a pass, after those that find s for it. */
static graft_status take_stage(compiling *c, const ocl_reduction_pass *pass, int source, int *stage) {
  ocl_fused_kernel *k = &c->kernel;
  int shift = -1;
  if (pass->shifted) {
    const ocl_reduction_pass first = ocl_reduction_shift(c->exec->device, pass);
    graft_status status = take_stage(c, &first, source, &shift);
    if (status != GRAFT_OK) return status;
  }
  if (k->nstages == OCL_FUSED_STAGES || c->made->nnumbers == OCL_FUSED_NUMBERS) return GRAFT_UNIMPLEMENTED;
  const int number = c->made->nnumbers++;
  const ocl_number x = ocl_reduction_number(pass);
  ocl_value bits;
  const size_t bytes = ocl_number_as(&x, pass->accumulator, &bits);
  c->made->numbers[number] = (fused_number){.input = -1};
  memcpy(&c->made->numbers[number].bits, &bits, bytes);
  *stage = k->nstages;
  k->stages[k->nstages++] =
      (ocl_fused_stage){.pass = *pass, .source = source, .value = -1, .shift = shift, .number = number};
  return GRAFT_OK;
}

static graft_status take_reduction(compiling *c, ocl_fused_op *op) {
  int source, stage;
  graft_status status = read_value(c, op->reduced, &source);
  for (int i = 0; i < op->results && status == GRAFT_OK; i++) {
    status = take_stage(c, &op->pass[i], source, &stage);
    if (status != GRAFT_OK) break;
    const int value = new_value(c, op->result[i]);
    c->kernel.stages[stage].value = value;
    c->kernel.values[value].kept = true;
    set_current(c, op->result[i], value);
  }
  return status;
}

static graft_status read_ops(compiling *c) {
  ocl_fused_space space;
  for (uint32_t n = 0; n < c->group->node_count; n++) {
    ocl_fused_op *op = &c->made->ops[n];
    if (!ocl_fused_read(c->exec, c->group->nodes[n], op)) return GRAFT_UNIMPLEMENTED;
    /* What accompanies a call behind a product may stand before the product. */
    const bool behind = !op->space.product;
    const ocl_fused_space *a = behind ? &c->kernel.space : &op->space, *b = behind ? &op->space : &c->kernel.space;
    if (n > 0 && !ocl_fused_merge(a, b, &space)) return GRAFT_UNIMPLEMENTED;
    c->kernel.space = n > 0 ? space : op->space;
  }
  return GRAFT_OK;
}

static graft_status take_outputs(compiling *c) {
  ocl_fused_kernel *k = &c->kernel;
  for (uint32_t i = 0; i < c->group->output_count; i++) {
    if (ocl_followed_take_sum(&c->made->followed, c->group->outputs[i], (int)i)) continue;
    const ocl_fused_tensor *from = current_of(c, c->group->outputs[i]);
    if (!from || k->noutputs + k->ninputs == OCL_FUSED_TENSORS) return GRAFT_UNIMPLEMENTED;
    c->made->outputs[k->noutputs] = (int)i;
    ocl_fused_tensor *output = &k->outputs[k->noutputs++];
    *output = (ocl_fused_tensor){.desc = c->group->outputs[i], .value = from->value};
    if (!ocl_fused_see(&k->space, output->desc, &output->view)) return GRAFT_UNIMPLEMENTED;
  }
  return GRAFT_OK;
}

/* The value that a product, a convolution or the gradient of a norm gives. */
static graft_status take_product(compiling *c, const ocl_fused_op *op) {
  ocl_followed *f = &c->made->followed;
  const graft_tensor_desc *const factors[OCL_FOLLOWED_READS] = {op->product.a, op->product.b, op->product.addend};
  const graft_tensor_desc *const *reads = op->gradient.out ? op->gradient.reads : factors;
  f->call = op->product;
  f->convolves = op->convolution;
  f->slopes = op->gradient;
  for (int i = 0; i < OCL_FOLLOWED_SUMS; i++) f->sums[i] = -1;
  for (int i = 0; i < OCL_FOLLOWED_READS; i++) {
    f->inputs[i] = reads[i] ? input_of(c->group, reads[i]) : -1;
    if (reads[i] && f->inputs[i] < 0) return GRAFT_UNIMPLEMENTED;
  }
  c->kernel.product_value = new_value(c, op->product.out);
  set_current(c, op->product.out, c->kernel.product_value);
  return GRAFT_OK;
}

static graft_status take_op(compiling *c, ocl_fused_op *op) {
  if (op->multiplies) return take_product(c, op);
  if (op->draws) return take_draw(c, op);
  return op->reduces ? take_reduction(c, op) : take_pointwise(c, op);
}

static graft_status take_ops(compiling *c) {
  bool computes = false;
  graft_status status = read_ops(c);
  for (uint32_t n = 0; n < c->group->node_count && status == GRAFT_OK; n++) {
    ocl_fused_op *op = &c->made->ops[n];
    status = take_op(c, op);
    if (ocl_fused_computes(op)) c->kernel.nops = (int)n + 1;
    computes = computes || !op->moves;
  }
  if (!computes && status == GRAFT_OK) return GRAFT_UNIMPLEMENTED; /* nothing but moves */
  return status == GRAFT_OK ? take_outputs(c) : status;
}

/* Of the whole space; or of the rows, and of what is reduced on the way from one to the next where columns stand side
 * by side. */
static void make_geometry(ocl_fused_kernel *k) {
  const ocl_fused_space *space = &k->space;
  const bool columns = space->reduced && !space->rows;
  k->geometry.operands = k->noutputs + k->ninputs;
  for (int d = space->ndim - 1; d >= 0; d--) {
    const bool inner = space->reduced && (space->reduced >> d & 1) == space->rows;
    int64_t strides[OCL_OPERANDS_MAX];
    for (int i = 0; i < k->geometry.operands; i++) strides[i] = ocl_fused_operand(k, i)->view.strides[d];
    if (!inner) ocl_geometry_push_outer(&k->geometry, space->shape[d], strides);
  }
  for (int i = 0; i < k->geometry.operands && space->reduced; i++)
    k->inner[i] = ocl_fused_inner(space, &ocl_fused_operand(k, i)->view);
  if (!columns) ocl_geometry_sort(&k->geometry);
  ocl_geometry_collapse(&k->geometry);
}

enum { SPACE_NUMBERS = OCL_GEOMETRY_NUMBERS + OCL_OPERANDS_MAX + 5 + OCL_FUSED_STAGES };

/* What fused_chunks.cl takes; returns how many work-items that are. */
static int64_t lay_chunks(const ocl_fused_kernel *k, int64_t *numbers, int *count) {
  ocl_cut cut;
  const int64_t items = ocl_geometry_cut(k->device, &k->geometry, k->device->vector_width, &cut);
  const int n = ocl_geometry_numbers(&k->geometry, numbers);
  memcpy(numbers + n, &cut, sizeof cut);
  *count = n + (int)(sizeof cut / sizeof *numbers);
  return items;
}

/* What fused_rows.cl takes. A column is as long as there are rows; a work-item takes some that stand side by side. */
static int64_t lay_rows(const ocl_fused_kernel *k, int64_t *numbers, int *count, uint64_t *scratch_bytes) {
  enum { LINE = 64 };
  const int64_t length = ocl_fused_length(&k->space), lines = ocl_fused_lines(&k->space);
  const int64_t step = k->space.rows ? 1 : k->device->vector_width, most = 8 * (int64_t)k->device->compute_units;
  const int64_t per_item = ocl_round_up(ocl_ceil_divide(lines, most), step), items = ocl_ceil_divide(lines, per_item);
  int n = ocl_geometry_numbers(&k->geometry, numbers);
  for (int i = 0; i < k->geometry.operands; i++) numbers[n++] = k->inner[i];
  numbers[n++] = length;
  numbers[n++] = lines;
  numbers[n++] = per_item;
  int64_t *scratch = &numbers[n++];
  *scratch = 0;
  for (int i = 0; i < k->nslots; i++) {
    numbers[n++] = *scratch;
    *scratch += ocl_round_up(length * k->values[k->slots[i]].dtype->bytes, LINE);
  }
  if (k->nslots == 0) numbers[n++] = 0; /* an array has one element at least */
  *scratch_bytes = (uint64_t)(*scratch * items);
  *count = n;
  return items;
}

static int64_t lay(const ocl_fused_kernel *k, int64_t *numbers, int *count, uint64_t *scratch_bytes) {
  if (!k->space.reduced) return lay_chunks(k, numbers, count);
  return (ocl_fused_has_teams(k) ? ocl_fused_lay_teams : lay_rows)(k, numbers, count, scratch_bytes);
}

/* Which output a stage's result is; -1: none. */
static int output_of(const ocl_fused_kernel *k, int value) {
  int i = k->noutputs - 1;
  while (i >= 0 && (value < 0 || k->outputs[i].value != value)) i--;
  return i;
}

static bool is_result(const ocl_fused_kernel *k, int value) {
  bool is = false;
  for (int s = 0; s < k->nstages; s++) is = is || k->stages[s].value == value;
  return is;
}

/* Where a line has several splits: eager kernels that make each result of what these leave. Lines are numbered as their
 * rows of partial results are, and of what a line has one of only results are written. */
static graft_status prepare_lasts(compiling *c) {
  const ocl_fused_kernel *k = &c->kernel;
  graft_executable *made = c->made;
  if (k->space.team.splits < 2) return GRAFT_OK;
  if (k->geometry.rank > 1 || k->nphases > 1) return GRAFT_UNIMPLEMENTED;
  for (int i = 0; i < k->noutputs; i++) {
    if (!k->outputs[i].view.whole && !is_result(k, k->outputs[i].value)) return GRAFT_UNIMPLEMENTED;
  }
  graft_status status = GRAFT_OK;
  for (int s = 0; s < k->nstages && status == GRAFT_OK; s++) {
    const ocl_fused_stage *stage = &k->stages[s];
    last_pass *last = &made->lasts[made->nlasts++];
    const ocl_reduction_pass pass = ocl_reduction_last(k->device, &stage->pass, k->space.team.splits);
    *last = (last_pass){.output = output_of(k, stage->value), .number = stage->number};
    last->number_bytes = ocl_number_as(&(ocl_number){0}, stage->pass.accumulator, &(ocl_value){0});
    status = ocl_reduction_prepare_teams(&last->kernel, c->exec->device, &pass);
  }
  return status;
}

static graft_status make_kernel(compiling *c) {
  int64_t space[SPACE_NUMBERS];
  int count;
  graft_device *device = c->exec->device;
  ocl_fused_kernel *k = &c->kernel;
  k->device = device;
  k->ops = c->made->ops;
  k->nnumbers = c->made->nnumbers;
  k->local = device->is_cpu ? 1 : ocl_fused_has_teams(k) ? 256 : 128; /* of teams: as the eager kernel has them */
  if (ocl_fused_has_teams(k)) k->held = ocl_fused_held_steps(k);
  if (!ocl_fused_plan(k)) return GRAFT_UNIMPLEMENTED;
  make_geometry(k);
  graft_status status = prepare_lasts(c);
  if (status != GRAFT_OK) return status;
  const int64_t items = lay(k, space, &count, &c->made->scratch_bytes);
  for (int i = 0; i < c->made->nlasts; i++) c->made->lasts[i].offset = (uint64_t)space[count - k->nstages + i];
  const size_t bytes = sizeof *space * (size_t)count, tensor = sizeof(cl_mem) + sizeof(uint64_t);
  const size_t tensors = (size_t)k->geometry.operands + (c->made->scratch_bytes > 0);
  if (bytes + tensor * tensors + sizeof(int64_t) * (size_t)k->nnumbers > device->parameter_bytes)
    return GRAFT_UNIMPLEMENTED;
  ocl_text text = {0};
  ocl_fused_write(&text, k);
  status = ocl_kernel_init_whole(&c->made->kernel, device, &text, "pointwise/fused", "fused");
  ocl_text_free(&text);
  ocl_kernel_size(&c->made->kernel, items, k->local);
  if (c->made->nlasts > 0) c->made->kernel.global[1] = (size_t)k->space.team.splits;
  return status == GRAFT_OK ? ocl_kernel_set(&c->made->kernel, 1, &(ocl_argument){bytes, space}) : status;
}

static graft_status make_followed(compiling *c) {
  c->kernel.device = c->exec->device;
  c->kernel.ops = c->made->ops;
  c->kernel.nnumbers = c->made->nnumbers;
  return ocl_followed_make(&c->made->followed, c->exec, &c->kernel);
}

graft_status ocl_fused_destroy(graft_executable *executable) {
  if (executable->kind) executable->kind->destroy(executable->made);
  ocl_followed_destroy(&executable->followed);
  ocl_kernel_destroy(&executable->kernel);
  for (int i = 0; i < executable->nlasts; i++) ocl_kernel_destroy(&executable->lasts[i].kernel);
  free(executable->ops);
  free(executable);
  return GRAFT_OK;
}

static bool has_lists(const graft_exec *exec, const graft_graph_group *group) {
  ocl_lists lists;
  bool has = false;
  for (uint32_t n = 0; n < group->node_count && !has; n++) has = ocl_chain_read(exec, group->nodes[n], &lists);
  return has;
}

/* An older host has not asked. */
static void say_in_place(graft_graph_compiled *compiled, uint64_t in_place) {
  if (compiled->struct_size >= GRAFT_SIZE_TO(graft_graph_compiled, in_place)) compiled->in_place = in_place;
}

static graft_status compile_as(const ocl_group_kind *kind, const graft_exec *exec, const graft_graph_group *group,
                               graft_graph_compiled *compiled) {
  void *made;
  const graft_status status = kind->compile(exec, group, &made);
  if (status != GRAFT_OK) return status;
  graft_executable *executable = calloc(1, sizeof *executable);
  if (!executable) return kind->destroy(made), GRAFT_OUT_OF_MEMORY;
  executable->kind = kind;
  executable->made = made;
  compiled->executable = executable;
  compiled->flags = GRAFT_EXECUTABLE_UNALIGNED;
  if (kind->in_place) say_in_place(compiled, kind->in_place(made));
  return GRAFT_OK;
}

/* Inputs that an output may lie over. A work-item has read all that it needs of a vector before it writes there; of a
 * line it reads vectors again in each phase, the last one included. */
static uint64_t in_place_of(const compiling *c) {
  const ocl_fused_kernel *k = &c->kernel;
  enum { BITS = 64 };
  uint64_t bits = 0;
  if (k->space.product || ocl_fused_has_teams(k)) return 0;
  for (int i = 0; i < k->noutputs && k->space.reduced; i++) {
    if (k->outputs[i].view.whole && k->output_phase[i] + 1 < k->nphases) return 0;
  }
  for (int i = 0; i < k->ninputs; i++) {
    const int input = c->made->inputs[i];
    if (input >= 0 && input < BITS) bits |= UINT64_C(1) << input;
  }
  return bits;
}

static graft_status compile_fused(const graft_exec *exec, const graft_graph_group *group,
                                  graft_graph_compiled *compiled) {
  if (group->node_count > OCL_FUSED_OPS) return GRAFT_UNIMPLEMENTED;
  graft_executable *made = calloc(1, sizeof *made);
  if (made) made->ops = calloc(group->node_count, sizeof *made->ops);
  compiling *c = calloc(1, sizeof *c);
  graft_status status = made && made->ops && c ? GRAFT_OK : GRAFT_OUT_OF_MEMORY;
  if (status == GRAFT_OK) {
    *c = (compiling){.exec = exec, .group = group, .made = made};
    status = take_ops(c);
    made->noutputs = c->kernel.noutputs;
    made->ninputs = c->kernel.ninputs;
    if (status == GRAFT_OK) status = c->kernel.space.product ? make_followed(c) : make_kernel(c);
  }
  const uint64_t in_place = status == GRAFT_OK ? in_place_of(c) : 0;
  free(c);
  if (status == GRAFT_OK) {
    compiled->executable = made;
    say_in_place(compiled, in_place);
    compiled->flags = ocl_followed_asks(&made->followed) ? 0 : GRAFT_EXECUTABLE_UNALIGNED;
  } else if (made) {
    ocl_fused_destroy(made);
  }
  return status;
}

/* Columns of calls on single tensors are a chain, too. */
graft_status ocl_fused_compile(const graft_exec *exec, const graft_graph_group *group, graft_graph_compiled *compiled) {
  static const ocl_group_kind *const kinds[] = {&ocl_classes_kind, &ocl_placed_kind, &ocl_summed_kind};
  graft_status status = GRAFT_UNIMPLEMENTED;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == GRAFT_UNIMPLEMENTED; i++)
    status = compile_as(kinds[i], exec, group, compiled);
  if (status == GRAFT_UNIMPLEMENTED && !has_lists(exec, group)) status = compile_fused(exec, group, compiled);
  return status == GRAFT_UNIMPLEMENTED ? compile_as(&ocl_chain_kind, exec, group, compiled) : status;
}

/* ---- a run ---- */

static cl_uint add_tensor(ocl_argument *arguments, cl_uint n, const graft_tensor_desc *desc) {
  arguments[n] = (ocl_argument){sizeof(cl_mem), &desc->dl.data->handle};
  arguments[n + 1] = (ocl_argument){sizeof(uint64_t), &desc->dl.byte_offset};
  return n + 2;
}

static bool is_followed(const graft_executable *e) {
  return e->followed.product || e->followed.convolution || e->followed.gradient;
}

static graft_status fill_numbers(const graft_exec *exec, const graft_executable *e, const graft_graph_run_args *args,
                                 int64_t *numbers) {
  graft_status status = GRAFT_OK;
  for (int i = 0; i < e->nnumbers && status == GRAFT_OK; i++) {
    const fused_number *n = &e->numbers[i];
    numbers[i] = n->bits;
    if (n->seed_of) numbers[i] = (int64_t)args->philox[n->seed_of - 1]->seed;
    if (n->block_of) numbers[i] = (int64_t)(args->philox[n->block_of - 1]->offset / 4);
    if (n->input < 0) continue;
    const ocl_given_number given = {.op_id = n->op->operands.op_id, .desc = args->inputs[n->input]};
    ocl_number_argument argument;
    status = ocl_pointwise_number(exec->device->plugin, n->op->compute, n->op->recipe, &given, &argument);
    if (status == GRAFT_OK) memcpy(&numbers[i], &argument.value, argument.bytes);
  }
  return status;
}

static graft_status run_last(const graft_exec *exec, graft_executable *e, int number, ocl_place scratch,
                             const graft_graph_run_args *args, const int64_t *numbers) {
  last_pass *last = &e->lasts[number];
  if (last->output < 0) return GRAFT_OK;
  const ocl_place out = ocl_place_of(args->outputs[e->outputs[last->output]]),
                  from = {scratch.buffer, scratch.offset + last->offset};
  const ocl_argument arguments[] = {
      OCL_PLACE(out), OCL_PLACE(from), OCL_PLACE(from), {last->number_bytes, &numbers[last->number]}};
  return ocl_launch(&last->kernel, exec->stream, OCL_ALL(arguments));
}

graft_status ocl_fused_run(const graft_exec *exec, graft_executable *e, const graft_graph_run_args *args) {
  ocl_argument arguments[2 * OCL_FUSED_TENSORS + 3];
  int64_t numbers[OCL_FUSED_NUMBERS] = {0};
  if (e->kind) return e->kind->run(exec, e->made, args);
  graft_status status = fill_numbers(exec, e, args, numbers);
  if (status != GRAFT_OK) return status;
  const ocl_argument given = {sizeof *numbers * (size_t)(e->nnumbers ? e->nnumbers : 1), numbers};
  cl_uint n = 0;
  for (int i = 0; i < e->noutputs; i++) {
    if (!is_followed(e) || i != e->followed.main_output) n = add_tensor(arguments, n, args->outputs[e->outputs[i]]);
  }
  for (int i = 0; i < e->ninputs; i++) {
    if (e->inputs[i] >= 0) n = add_tensor(arguments, n, args->inputs[e->inputs[i]]);
  }
  if (is_followed(e)) {
    arguments[n++] = given;
    const graft_tensor_desc *to = args->outputs[e->outputs[e->followed.main_output]];
    return ocl_followed_run(exec, &e->followed, args, to, n, arguments);
  }
  ocl_place scratch;
  if (e->scratch_bytes > 0) {
    status = ocl_workspace(exec, e->scratch_bytes, &scratch);
    if (status != GRAFT_OK) return status;
    arguments[n++] = (ocl_argument){sizeof(cl_mem), &scratch.buffer->handle};
    arguments[n++] = (ocl_argument){sizeof(uint64_t), &scratch.offset};
  }
  arguments[n++] = given;
  status = ocl_launch(&e->kernel, exec->stream, n, arguments);
  for (int i = 0; i < e->nlasts && status == GRAFT_OK; i++) status = run_last(exec, e, i, scratch, args, numbers);
  return status;
}
