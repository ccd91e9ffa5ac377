/* What of a graph a fused kernel could run: its calls, and which elements their tensors name. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "kernels/pointwise/fused.h"

/* ---- the elements of a tensor ---- */

/* One stride for dimensions first to last together; false: there is none. */
static bool run_of(const ocl_fused_space *space, const ocl_fused_view *view, int first, int last, int64_t *stride) {
  int64_t next = -1;
  *stride = 0;
  for (int d = last; d >= first; d--) {
    if (space->shape[d] == 1) continue;
    if (next < 0)
      *stride = view->strides[d];
    else if (view->strides[d] != next)
      return false;
    next = view->strides[d] * space->shape[d];
  }
  return true;
}

/* Where the last dimensions begin, which make a row or a column number. */
static int first_inner(const ocl_fused_space *space) {
  int d = 0;
  while (d < space->ndim && (space->reduced >> d & 1) != space->rows) d++;
  return d;
}

int64_t ocl_fused_inner(const ocl_fused_space *space, const ocl_fused_view *view) {
  int64_t stride;
  run_of(space, view, first_inner(space), space->ndim - 1, &stride);
  return stride;
}

int64_t ocl_fused_outer(const ocl_fused_space *space, const ocl_fused_view *view) {
  int64_t stride;
  run_of(space, view, 0, first_inner(space) - 1, &stride);
  return stride;
}

static bool is_whole(const ocl_fused_space *space, const graft_dl_tensor *t) {
  return t->ndim == space->ndim && !memcmp(t->shape, space->shape, (size_t)t->ndim * sizeof *t->shape);
}

/* Which dimension of a tensor that has what reductions leave is dimension d of the space; -1: none. False: it is not
 * such a tensor. */
static bool match_kept(const ocl_fused_space *space, int ndim, const int64_t *shape, int at[OCL_DIMS_MAX]) {
  int next = 0;
  const bool with_ones = ndim == space->ndim;
  for (int d = 0; d < space->ndim; d++) {
    const bool reduced = space->reduced >> d & 1;
    at[d] = reduced ? -1 : next;
    if (reduced && !with_ones) continue;
    if (next == ndim || shape[next] != (reduced ? 1 : space->shape[d])) return false;
    next++;
  }
  return space->reduced && next == ndim;
}

/* Dimensions `first` to *last of a tensor as one of that size; *last is then before them. False: they are not one run.
 */
static bool take_run(const graft_dl_tensor *t, int *last, int64_t size, int64_t *stride) {
  int64_t next = -1, count = 1;
  *stride = 0;
  while (count < size && *last >= 0) {
    const int d = (*last)--;
    if (t->shape[d] == 1) continue;
    if (next < 0)
      *stride = t->strides[d];
    else if (t->strides[d] != next)
      return false;
    next = t->strides[d] * t->shape[d];
    count *= t->shape[d];
  }
  return count == size;
}

/* A tensor as batches, rows and columns, whatever dimensions it has. */
static bool see_product(const ocl_fused_space *space, const graft_dl_tensor *t, ocl_fused_view *view) {
  int last = t->ndim - 1;
  *view = (ocl_fused_view){.whole = true};
  for (int d = 2; d >= 0; d--) {
    if (!take_run(t, &last, space->shape[d], &view->strides[d])) return false;
  }
  for (; last >= 0; last--) {
    if (t->shape[last] != 1) return false;
  }
  return true;
}

bool ocl_fused_see(const ocl_fused_space *space, const graft_tensor_desc *desc, ocl_fused_view *view) {
  const graft_dl_tensor *t = &desc->dl;
  if (space->product) return see_product(space, t, view);
  int at[OCL_DIMS_MAX];
  *view = (ocl_fused_view){.whole = is_whole(space, t)};
  if (!view->whole && !match_kept(space, t->ndim, t->shape, at)) return false;
  for (int d = 0; d < space->ndim; d++) {
    const int own = view->whole ? d : at[d];
    view->strides[d] = own < 0 || t->shape[own] == 1 ? 0 : t->strides[own];
  }
  int64_t stride;
  const int inner = first_inner(space);
  if (space->reduced && !run_of(space, view, inner, space->ndim - 1, &stride)) return false;
  return !space->reduced || space->rows || run_of(space, view, 0, inner - 1, &stride);
}

bool ocl_fused_same(const ocl_fused_space *space, const graft_tensor_desc *a, const graft_tensor_desc *b) {
  ocl_fused_view view_a, view_b;
  return a == b || (a->storage_id == b->storage_id && a->dl.byte_offset == b->dl.byte_offset &&
                    a->dl.dtype == b->dl.dtype && ocl_fused_see(space, a, &view_a) &&
                    ocl_fused_see(space, b, &view_b) && !memcmp(view_a.strides, view_b.strides, sizeof view_a.strides));
}

bool ocl_fused_merge(const ocl_fused_space *a, const ocl_fused_space *b, ocl_fused_space *both) {
  int at[OCL_DIMS_MAX];
  const bool same_shape = a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape);
  *both = a->reduced || a->product ? *a : *b;
  if (a->product || b->product) return a->product && !b->product && !b->reduced;
  const bool same_lines = a->reduced == b->reduced && a->rows == b->rows && !memcmp(&a->team, &b->team, sizeof a->team);
  if (same_shape) return !a->reduced || !b->reduced || same_lines;
  return a->reduced && !b->reduced && match_kept(a, b->ndim, b->shape, at);
}

/* ---- reductions ---- */

static int64_t count_elements(const ocl_fused_space *space, bool reduced) {
  int64_t count = 1;
  for (int d = 0; d < space->ndim; d++) count *= (space->reduced >> d & 1) == reduced ? space->shape[d] : 1;
  return count;
}

int64_t ocl_fused_lines(const ocl_fused_space *space) {
  return count_elements(space, false);
}

int64_t ocl_fused_length(const ocl_fused_space *space) {
  return count_elements(space, true);
}

/* Dimensions that are reduced stand together, the others before them or behind. */
static bool is_in_order(const ocl_fused_space *space) {
  bool before = false;
  int changes = 0;
  for (int d = 0; d < space->ndim; d++) {
    const bool reduced = space->reduced >> d & 1;
    changes += d > 0 && reduced != before;
    before = reduced;
  }
  return changes < 2 && before == space->rows;
}

/* Whether the order in which the eager kernel goes through the elements is the fused one's: one row after the other,
 * each element after its neighbour; or column by column, in each from row to row. */
static bool goes_through(const ocl_fused_op *op, const ocl_reduction_pass *pass) {
  ocl_fused_view view;
  if (pass->rows != op->space.rows || pass->reduced.rank != 1 || !ocl_fused_see(&op->space, op->reduced, &view))
    return false;
  return ocl_fused_inner(&op->space, &view) == 1 &&
         (op->space.rows || ocl_fused_outer(&op->space, &view) == pass->reduced.stride[0][0]);
}

/* Rows that are short are many in a vector elsewhere; where there are few, cores have nothing to do; and of a long one
 * the eager kernel makes several parts. */
static bool is_worth_it(const graft_device *device, const ocl_fused_op *op, int64_t elements) {
  const int64_t length = ocl_fused_length(&op->space), rows = elements / length, few = 32768;
  if (length < 2 || !device->is_cpu) return length > 1;
  for (int i = 0; i < op->results; i++) {
    if (ocl_reduction_splits(device, &op->pass[i]) > 1) return false;
  }
  if (elements <= few) return true;
  return op->space.rows ? length >= device->vector_width && rows >= device->compute_units
                        : rows >= device->vector_width * (int64_t)device->compute_units;
}

/* How a GPU's work-items share the lines of a pass. False: in a way that the fused kernel does not know. */
static bool find_team(const graft_device *device, const ocl_reduction_pass *pass, ocl_fused_team *team) {
  const ocl_reduction_layout l = ocl_reduction_lay_team(pass);
  const int64_t splits = ocl_reduction_team_splits(device, pass);
  *team = (ocl_fused_team){.vec = l.vec, .at_once = l.at_once, .width = l.width, .depth = l.depth, .splits = splits};
  if (splits > 1 && pass->shifted) return false; /* s is found before the pass that needs it */
  const bool in_one_run = pass->kept.rank == 1;  /* so that partial results, and columns, are numbered as lines are */
  return l.rest == 0 && (in_one_run || (pass->rows && splits == 1));
}

/* The same for all results of a call. */
static bool share_team(const graft_device *device, const ocl_reduction_pass *pass, bool is_first,
                       ocl_fused_space *space) {
  ocl_fused_team team = {0};
  if (!device->is_cpu && !find_team(device, pass, &team)) return false;
  if (is_first) space->team = team;
  return !memcmp(&team, &space->team, sizeof team);
}

static bool read_reduction(const graft_device *device, const ocl_call *call, ocl_fused_op *op) {
  ocl_reduction_call from;
  if (!ocl_reduction_read(call, &from)) return false;
  const graft_dl_tensor *in = &from.in->dl;
  const int64_t elements = ocl_elements(from.in);
  if (in->ndim == 0 || in->ndim > OCL_DIMS_MAX || elements == 0) return false;
  op->reduces = true;
  op->results = from.other ? 2 : 1;
  op->reduced = from.in;
  op->result[0] = from.out;
  op->result[1] = from.other;
  op->space = (ocl_fused_space){.ndim = in->ndim, .reduced = from.reduced};
  memcpy(op->space.shape, in->shape, (size_t)in->ndim * sizeof *in->shape);
  for (int i = 0; i < op->results; i++) {
    ocl_reduction_pass *pass = &op->pass[i];
    if (ocl_reduction_plan(device, &from, op->result[i], i ? from.second : from.formula, pass)) return false;
    if (i == 0) op->space.rows = pass->rows;
    if (pass->in->class == OCL_CLASS_COMPLEX || pass->out->class == OCL_CLASS_COMPLEX) return false;
    if (!is_in_order(&op->space) || !goes_through(op, pass)) return false;
    if (!share_team(device, pass, i == 0, &op->space)) return false;
    op->numbers += pass->shifted ? 2 : 1;
    for (ocl_reduction_pass s = *pass; s.shifted;) {
      s = ocl_reduction_shift(device, &s);
      if (s.formula.of_one) return false;
    }
  }
  return is_worth_it(device, op, elements);
}

/* ---- pointwise calls ---- */

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

static bool is_word(unsigned char c) {
  return isalnum(c) || c == '_';
}

static bool has_word(const char *text, const char *word) {
  const size_t length = strlen(word);
  for (const char *at = text; at && (at = strstr(at, word)); at++) {
    if (!is_word(at == text ? ' ' : (unsigned char)at[-1]) && !is_word((unsigned char)at[length])) return true;
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

/* Arithmetic: macros, names of one letter, and nothing that is a function. */
static bool is_cheap(const ocl_pointwise_recipe *recipe) {
  static const char *const functions[] = {"ERF", "POW", "FMOD", "DIVIDE", "QUOTIENT"};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (has_word(recipe->expression, functions[i])) return false;
  }
  for (const char *at = recipe->expression; *at; at++) {
    if (islower((unsigned char)at[0]) && islower((unsigned char)at[1])) return false;
  }
  return !recipe->second;
}

/* Numbers of a stream are a second operand: element i, in the order of a contiguous tensor, takes number i. Those of
 * f64 are made of two words. */
static bool read_draw(const graft_device *device, const ocl_call *call, ocl_fused_op *op) {
  const graft_args_native_dropout *args = call->args;
  if ((args->train && !*args->train) || !args->out0 || !args->out1) return false;
  const graft_dl_tensor *out = &args->out0->dl;
  op->compute = ocl_dtype_of(device, out->dtype);
  if (!op->compute || op->compute->class != OCL_CLASS_FLOAT || op->compute->code == GRAFT_F64) return false;
  if (args->input->dl.dtype != out->dtype || args->out1->dl.dtype != GRAFT_BOOL || out->ndim > OCL_DIMS_MAX)
    return false;
  if (!fits(device, args->input, out) || !fits(device, args->out0, out) || !fits(device, args->out1, out)) return false;
  op->space = (ocl_fused_space){.ndim = out->ndim};
  memcpy(op->space.shape, out->shape, (size_t)out->ndim * sizeof *out->shape);
  int64_t stride = 1;
  for (int d = out->ndim - 1; d >= 0; d--) {
    op->drawn_strides[d] = stride;
    stride *= out->shape[d];
  }
  op->drawn = (graft_tensor_desc){.struct_size = sizeof op->drawn, .dl = *out};
  op->drawn.dl.dtype = GRAFT_F32;
  op->drawn.dl.strides = op->drawn_strides;
  op->operands = (ocl_operands){
      .op_id = call->op->id, .out = args->out0, .second = args->out1, .input = {args->input, &op->drawn}, .inputs = 2};
  const double keep = 1 - args->p;
  op->kept_below = (ocl_number){.re = ceil(keep * 0x1p24) * 0x1p-24};
  op->scale = (ocl_number){.re = keep > 0 ? 1 / keep : 0};
  op->numbers = 4;
  return op->draws = true;
}

/* Other results, the statistics as they came, nobody may look at: the groups see to that. */
static bool read_normalization(const graft_device *device, const ocl_call *call, ocl_fused_op *op) {
  ocl_norm_fixed norm;
  if (!ocl_norm_read_fixed(call, &norm)) return false;
  const graft_dl_tensor *out = &norm.out->dl;
  if (out->ndim > OCL_DIMS_MAX || !fits(device, norm.in, out) || !fits(device, norm.out, out)) return false;
  op->recipe = &ocl_norm_fixed_recipe;
  op->compute = ocl_dtype_of(device, out->dtype);
  op->space = (ocl_fused_space){.ndim = out->ndim};
  memcpy(op->space.shape, out->shape, (size_t)out->ndim * sizeof *out->shape);
  op->made[0] = (graft_scalar){.dtype = GRAFT_F64, .value.f = norm.epsilon};
  op->operands = (ocl_operands){.op_id = call->op->id,
                                .out = norm.out,
                                .input = {norm.in},
                                .inputs = 1 + OCL_NORM_OF_CHANNELS,
                                .scalar = {&op->made[0]},
                                .scalars = 1};
  op->spread_strides[1] = 1;
  for (int i = 0; i < OCL_NORM_OF_CHANNELS; i++) {
    op->of_channels[i] = norm.of_channels[i];
    op->spread[i] = *norm.of_channels[i];
    op->spread[i].dl.ndim = out->ndim;
    op->spread[i].dl.shape = out->shape;
    op->spread[i].dl.strides = op->spread_strides;
    op->operands.input[1 + i] = &op->spread[i];
  }
  op->numbers = 1;
  return op->normalizes = true;
}

static bool read_pointwise(const graft_device *device, const ocl_call *call, ocl_fused_op *op) {
  /* The programs of all but the last take long to compile. */
  const uint32_t alone = OCL_SPECIAL | OCL_GAMMA | OCL_BESSEL | OCL_POLYNOMIALS | OCL_LANES;
  op->recipe = recipe_of(call->op);
  if (!op->recipe || op->recipe->flags & alone) return false;
  if (op->recipe->flags & OCL_DRAWS) return read_draw(device, call, op);
  ocl_operands *o = &op->operands;
  ocl_pointwise_read(call, o, op->made);
  if (!o->out || !o->second != !op->recipe->second || o->out->dl.ndim > OCL_DIMS_MAX) return false;
  if (!fits(device, o->out, &o->out->dl) || (o->second && !fits(device, o->second, &o->out->dl))) return false;
  for (int k = 0; k < o->inputs; k++) {
    if (!ocl_is_value(o->input[k]) && !fits(device, o->input[k], &o->out->dl)) return false;
  }
  if (!is_plain(op)) return false;
  op->compute = ocl_pointwise_dtype(device, o, op->recipe);
  if (!op->compute || op->compute->class == OCL_CLASS_COMPLEX) return false;
  op->moves = op->recipe == &ocl_cast_recipe && o->input[0]->dl.dtype == o->out->dl.dtype;
  op->cheap = is_cheap(op->recipe);
  op->space = (ocl_fused_space){.ndim = o->out->dl.ndim};
  memcpy(op->space.shape, o->out->dl.shape, (size_t)o->out->dl.ndim * sizeof *o->out->dl.shape);
  for (int k = 0; k < OCL_SCALARS_MAX; k++) op->numbers += ocl_fused_asks(op, k);
  for (int k = 0; k < o->inputs; k++) op->numbers += ocl_is_value(o->input[k]);
  /* A divisor of 0 is an error of one op, and at one element. */
  return !(op->recipe->flags & OCL_DIVIDES) || op->compute->class == OCL_CLASS_FLOAT;
}

/* ---- products ---- */

/* Whether the matrix to add can be spread over the result. */
static bool is_spread(const graft_tensor_desc *addend, const graft_dl_tensor *out) {
  if (!addend) return true;
  const graft_dl_tensor *t = &addend->dl;
  bool fits = t->ndim <= out->ndim;
  for (int d = 0; d < t->ndim && fits; d++) {
    const int64_t size = out->shape[out->ndim - t->ndim + d];
    fits = t->shape[d] == size || t->shape[d] == 1;
  }
  return fits;
}

/* Of floating point numbers that the result's dtype computes with; not where the result lies in what is read. */
static bool read_product(const graft_device *device, const ocl_call *call, ocl_fused_op *op) {
  ocl_product_call *p = &op->product;
  if (!ocl_product_read(call, p) || !p->out || ocl_elements(p->out) == 0 || ocl_elements(p->a) == 0) return false;
  const graft_dl_tensor *out = &p->out->dl;
  const ocl_dtype *dtype = ocl_dtype_of(device, out->dtype);
  if (!dtype || dtype->class != OCL_CLASS_FLOAT || dtype->bytes < 2) return false;
  const graft_tensor_desc *const reads[] = {p->a, p->b, p->addend};
  for (int i = 0; i < 3; i++) {
    if (!reads[i]) continue;
    if (reads[i]->dl.dtype != out->dtype || reads[i]->storage_id == p->out->storage_id || ocl_is_value(reads[i]))
      return false;
  }
  if (!is_spread(p->addend, out)) return false;
  op->multiplies = true;
  const int n = out->ndim;
  op->space = (ocl_fused_space){.ndim = 3, .product = true};
  op->space.shape[0] = n > 2 ? out->shape[0] : 1;
  op->space.shape[1] = out->shape[n - 2];
  op->space.shape[2] = out->shape[n - 1];
  return true;
}

/* A convolution of floating point numbers, as a product of images' channels and places; likewise. */
static bool read_convolution(const graft_exec *exec, const ocl_call *call, ocl_fused_op *op) {
  const graft_args_convolution *args = call->args;
  if (call->op->slot != (ocl_slot)ocl_op_convolution || !ocl_convolution_is_followed(exec, args)) return false;
  const graft_tensor_desc *const reads[] = {args->input, args->weight, args->bias};
  for (int i = 0; i < 3; i++) {
    if (reads[i] && (reads[i]->storage_id == args->out->storage_id || ocl_is_value(reads[i]))) return false;
  }
  const graft_dl_tensor *out = &args->out->dl;
  op->multiplies = true;
  op->convolution = args;
  op->product = (ocl_product_call){.a = args->input, .b = args->weight, .addend = args->bias, .out = args->out};
  op->space = (ocl_fused_space){.ndim = 3, .product = true, .shape = {out->shape[0], out->shape[1], 1}};
  for (int d = 2; d < out->ndim; d++) op->space.shape[2] *= out->shape[d];
  return true;
}

/* Likewise. */
static bool read_norm_gradient(const ocl_call *call, ocl_fused_op *op) {
  ocl_norm_gradient_call g;
  if (!ocl_norm_read_gradient(call, &g)) return false;
  for (int i = 0; i < OCL_NORM_GRADIENT_READS; i++) {
    if (g.reads[i] && ocl_is_value(g.reads[i])) return false;
  }
  op->gradient = g;
  op->multiplies = true;
  op->product.out = g.out;
  op->space = (ocl_fused_space){.ndim = 3, .product = true, .shape = {1, g.norm.lines.outer, g.norm.lines.size}};
  return true;
}

bool ocl_fused_read(const graft_exec *exec, const graft_graph_node *node, ocl_fused_op *op) {
  ocl_call call;
  *op = (ocl_fused_op){0};
  if (!node->args || ocl_call_of(exec, node->args, &call) != GRAFT_OK) return false;
  if (read_product(exec->device, &call, op) || read_convolution(exec, &call, op)) return true;
  if (read_norm_gradient(&call, op) || read_normalization(exec->device, &call, op)) return true;
  return call.op->engine == ocl_reduce ? read_reduction(exec->device, &call, op)
                                       : read_pointwise(exec->device, &call, op);
}
