/* Programs: made of a seed, run, printed. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

static uint32_t draw(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

/* --- steps --- */

/* A step on its way. */
typedef struct doing {
  const fuzz_step *step;
  fuzz_world *world;
  FILE *to;
  bool open;          /* sizes: nothing of a step may be chosen by those of the values */
  uint32_t picked[3]; /* values */
  graft_tensor *operands[3];
} doing;

typedef graft_status (*do_fn)(doing *d, uint32_t op_id, graft_tensor **out);

static int64_t choose(const doing *d, uint32_t which, int64_t below) {
  return below > 0 ? (int64_t)(d->step->choices[which] % (uint64_t)below) : 0;
}

/* --- sizes of a program that has open ones: it is given numbers, or names of them while it is recorded --- */

static int64_t formula(const fuzz_world *world, graft_size_op op, int64_t a, int64_t b) {
  int64_t size = 0;
  if (world->graph) return graft_graph_size_of(world->graph, op, a, b, &size) ? 0 : size;
  switch (op) {
    case GRAFT_SIZE_ADD: return a + b;
    case GRAFT_SIZE_SUB: return a - b;
    case GRAFT_SIZE_MUL: return a * b;
    case GRAFT_SIZE_DIV: return a / b; /* none is below 0 */
    case GRAFT_SIZE_MIN: return a < b ? a : b;
    default: return a > b ? a : b;
  }
}

/* One that follows from rows and columns. */
static int64_t size_of(const doing *d, uint32_t which) {
  const fuzz_world *w = d->world;
  switch (choose(d, which, 7)) {
    case 0: return w->rows;
    case 1: return formula(w, GRAFT_SIZE_MUL, w->rows, 2);
    case 2: return formula(w, GRAFT_SIZE_DIV, w->rows, 2);
    case 3: return formula(w, GRAFT_SIZE_ADD, w->rows, w->columns);
    case 4: return formula(w, GRAFT_SIZE_MAX, formula(w, GRAFT_SIZE_SUB, w->rows, 1), 0);
    case 5: return formula(w, GRAFT_SIZE_MIN, w->columns, 2);
    default: return w->columns;
  }
}

/* A whole shape: two dimensions of it, or one. */
static graft_value shape_of(const doing *d, int64_t sizes[2]) {
  const int64_t kind = choose(d, 0, 4);
  sizes[0] = kind ? d->world->rows : size_of(d, 1);
  sizes[1] = kind == 1 ? size_of(d, 1) : d->world->columns;
  return kind == 2 ? graft_value_ints(sizes + 1, 1) : graft_value_ints(sizes, 2);
}

static graft_value number_of(const doing *d) {
  static const double numbers[] = {2, -1, 0.5, 0, 3};
  int64_t at = choose(d, 0, 5);
  if (d->open && choose(d, 1, 3) == 0) return graft_value_scalar(graft_scalar_int(size_of(d, 2)));
  return graft_value_scalar(at < 2 ? graft_scalar_int((int64_t)numbers[at]) : graft_scalar_float(numbers[at]));
}

static graft_status do_unary(doing *d, uint32_t op, graft_tensor **out) {
  return graft_call(op, (graft_value[]){graft_value_tensor(d->operands[0])}, 1, out, 1);
}
static graft_status do_binary(doing *d, uint32_t op, graft_tensor **out) {
  const graft_value args[] = {graft_value_tensor(d->operands[0]), graft_value_tensor(d->operands[1])};
  return graft_call(op, args, 2, out, 1);
}
static graft_status do_number(doing *d, uint32_t op, graft_tensor **out) {
  return graft_call(op, (graft_value[]){graft_value_tensor(d->operands[0]), number_of(d)}, 2, out, 1);
}
static graft_status do_where(doing *d, uint32_t op, graft_tensor **out) {
  const graft_value args[] = {graft_value_tensor(d->operands[0]), graft_value_tensor(d->operands[1]),
                              graft_value_tensor(d->operands[2])};
  return graft_call(op, args, 3, out, 1);
}
static graft_status do_reduce(doing *d, uint32_t op, graft_tensor **out) {
  const int64_t dim = choose(d, 0, d->operands[0]->ndim);
  const graft_value args[] = {graft_value_tensor(d->operands[0]), graft_value_ints(&dim, 1),
                              graft_value_bool(choose(d, 1, 2))};
  return graft_call(op, args, 3, out, 1);
}
static graft_status do_variance(doing *d, uint32_t op, graft_tensor **out) {
  const int64_t dim = choose(d, 0, d->operands[0]->ndim);
  const graft_value args[] = {graft_value_tensor(d->operands[0]), graft_value_ints(&dim, 1),
                              graft_value_scalar(graft_scalar_int(choose(d, 2, 2))), graft_value_bool(choose(d, 1, 2))};
  return graft_call(op, args, 4, out, 1);
}

/* What a reduction leaves of a tensor along a dimension, which stays, with one element. */
static graft_status reduce_along(doing *d, uint32_t op, graft_tensor *t, graft_tensor **out) {
  const int64_t dim = t->ndim - 1 - choose(d, 0, t->ndim);
  const graft_value args[] = {graft_value_tensor(t), graft_value_ints(&dim, 1), graft_value_bool(true)};
  return graft_call(op, args, 3, out, 1);
}

/* op(self, a reduction of the other one), spread again. */
static graft_status do_spread(doing *d, uint32_t op, graft_tensor **out) {
  static const uint32_t reductions[] = {GRAFT_OP_SUM_DIM_INTLIST, GRAFT_OP_AMAX, GRAFT_OP_MEAN_DIM, GRAFT_OP_AMIN};
  graft_tensor *left = NULL;
  graft_status status = reduce_along(d, reductions[choose(d, 1, 4)], d->operands[1], &left);
  if (!status)
    status = graft_call(op, (graft_value[]){graft_value_tensor(d->operands[0]), graft_value_tensor(left)}, 2, out, 1);
  graft_tensor_release(left);
  return status;
}

/* A reduction of a product. */
static graft_status do_product(doing *d, uint32_t op, graft_tensor **out) {
  graft_tensor *product = NULL;
  graft_status status = graft_op_mul_Tensor(d->operands[0], d->operands[1], &product);
  if (!status) status = reduce_along(d, op, product, out);
  graft_tensor_release(product);
  return status;
}

/* Softmax, written out. */
static graft_status do_softmax(doing *d, uint32_t op, graft_tensor **out) {
  graft_tensor *most = NULL, *moved = NULL, *e = NULL, *sum = NULL;
  graft_status status = reduce_along(d, GRAFT_OP_AMAX, d->operands[0], &most);
  if (!status) status = graft_op_sub_Tensor(d->operands[0], most, graft_scalar_none(), &moved);
  if (!status) status = graft_call(op, (graft_value[]){graft_value_tensor(moved)}, 1, &e, 1);
  if (!status) status = reduce_along(d, GRAFT_OP_SUM_DIM_INTLIST, e, &sum);
  if (!status) status = graft_op_div_Tensor(e, sum, out);
  graft_tensor *made[] = {most, moved, e, sum};
  for (int i = 0; i < 4; i++) graft_tensor_release(made[i]);
  return status;
}

/* A product, rounded to another dtype, and an op of that and of what the other one is. */
static graft_status do_followed(doing *d, uint32_t op, graft_tensor **out) {
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_BF16, GRAFT_F16, GRAFT_F32};
  graft_tensor *product = NULL, *rounded = NULL, *sum = NULL;
  graft_status status = graft_op_mm(d->operands[0], d->operands[1], &product);
  if (!status) status = graft_tensor_to(product, NULL, dtypes[choose(d, 0, 4)], &rounded);
  if (!status) status = graft_op_add_Tensor(rounded, d->operands[2], graft_scalar_none(), &sum);
  if (!status) status = graft_call(op, (graft_value[]){graft_value_tensor(sum)}, 1, out, 1);
  graft_tensor *made[] = {product, rounded, sum};
  for (int i = 0; i < 3; i++) graft_tensor_release(made[i]);
  return status;
}

static graft_status do_cast(doing *d, uint32_t op, graft_tensor **out) {
  static const graft_dtype dtypes[] = {GRAFT_F32, GRAFT_F64, GRAFT_F16, GRAFT_BF16, GRAFT_I64, GRAFT_I32, GRAFT_BOOL};
  (void)op;
  return graft_tensor_to(d->operands[0], NULL, dtypes[choose(d, 0, 7)], out);
}
static graft_status do_cat(doing *d, uint32_t op, graft_tensor **out) {
  const graft_value args[] = {graft_value_tensors(d->operands, 2), graft_value_int(choose(d, 0, 2))};
  return graft_call(op, args, 2, out, 1);
}
/* A shape like that of an operand, or one of open sizes. */
static graft_value like_shape(const doing *d, const graft_tensor *like, int64_t sizes[2]) {
  return d->open ? shape_of(d, sizes) : graft_value_ints(like->sizes, (uint32_t)like->ndim);
}

static graft_status do_random(doing *d, uint32_t op, graft_tensor **out) {
  int64_t sizes[2];
  const graft_value args[] = {
      like_shape(d, d->operands[0], sizes), {0}, {0}, {GRAFT_VALUE_DEVICE, 0, {.device = d->world->device}}};
  return graft_call(op, args, 4, out, 1);
}
static graft_status do_full(doing *d, uint32_t op, graft_tensor **out) {
  int64_t sizes[2];
  const graft_value args[] = {like_shape(d, d->operands[0], sizes),
                              number_of(d),
                              {0},
                              {0},
                              {GRAFT_VALUE_DEVICE, 0, {.device = d->world->device}}};
  return graft_call(op, args, 5, out, 1);
}

/* What dropout keeps of tanh of the operand, or which elements that are. */
static graft_status do_dropout(doing *d, uint32_t op, graft_tensor **out) {
  static const double chances[] = {0, 0.1, 0.5, 1};
  graft_tensor *bent = NULL, *both[2] = {NULL, NULL};
  graft_status status = graft_op_tanh(d->operands[0], &bent);
  const graft_value args[] = {graft_value_tensor(bent), graft_value_float(chances[choose(d, 0, 4)]),
                              graft_value_bool(true)};
  const int64_t mask = choose(d, 1, 4) == 0;
  if (!status) status = graft_call(op, args, 3, both, 2);
  *out = both[mask];
  graft_tensor_release(both[!mask]);
  graft_tensor_release(bent);
  return status;
}

/* The gradient of sum(tanh(self * other)) with respect to self. */
static graft_status do_gradient(doing *d, uint32_t op, graft_tensor **out) {
  graft_tensor *leaf = NULL, *product = NULL, *root = NULL, *sum = NULL;
  const graft_value self = graft_value_tensor(d->operands[0]);
  graft_status status = d->open ? graft_call(GRAFT_OP_ALIAS, &self, 1, &leaf, 1) /* an op can be followed */
                                : graft_tensor_detach(d->operands[0], &leaf);
  if (status) return status;
  status = graft_tensor_set_requires_grad(leaf, true);
  const graft_value factors[] = {graft_value_tensor(leaf), graft_value_tensor(d->operands[1])};
  if (!status) status = graft_call(op, factors, 2, &product, 1);
  if (!status) status = graft_op_tanh(product, &root);
  if (!status) status = graft_op_sum_dim_IntList(root, NULL, 0, false, GRAFT_DTYPE_NONE, &sum);
  if (!status) status = graft_grad(&sum, NULL, 1, &leaf, 1, 0, out);
  graft_tensor *made[] = {leaf, product, root, sum};
  for (int i = 0; i < 4; i++) graft_tensor_release(made[i]);
  return status;
}

/* The gradient of the norm of rows, and an op of that and of another one. Not where sizes are open: the norm is told
 * how long a row is. */
static graft_status do_norm_gradient(doing *d, uint32_t op, graft_tensor **out) {
  static const uint8_t wanted[] = {1, 1, 1};
  graft_tensor *norm[3] = {NULL}, *made[3] = {NULL};
  const graft_tensor *in = d->operands[0];
  if (in->ndim == 0 || d->open) return GRAFT_INVALID_ARGUMENT;
  const graft_value input = graft_value_tensor(d->operands[0]), none = graft_value_tensor(NULL);
  const graft_value shape = graft_value_ints(&in->sizes[in->ndim - 1], 1);
  const graft_value args[] = {input, shape, none, none, graft_value_float(0.25)};
  graft_status status = graft_call(GRAFT_OP_NATIVE_LAYER_NORM, args, 5, norm, 3);
  const graft_value mean = graft_value_tensor(norm[1]), rstd = graft_value_tensor(norm[2]);
  const graft_value mask = {GRAFT_VALUE_MASK, 3, {.mask = wanted}};
  const graft_value back[] = {graft_value_tensor(d->operands[1]), input, shape, mean, rstd, none, none, mask};
  if (!status) status = graft_call(GRAFT_OP_NATIVE_LAYER_NORM_BACKWARD, back, 8, made, 3);
  const graft_value both[] = {graft_value_tensor(made[0]), graft_value_tensor(d->operands[2])};
  if (!status) status = graft_call(op, both, 2, out, 1);
  for (int i = 0; i < 3; i++) graft_tensor_release(norm[i]), graft_tensor_release(made[i]);
  return status;
}

/* Views. */
static graft_status do_permute(doing *d, uint32_t op, graft_tensor **out) {
  int64_t dims[GRAFT_MAX_DIMS];
  const int32_t n = d->operands[0]->ndim;
  for (int32_t i = 0; i < n; i++) dims[i] = (i + 1 + choose(d, 0, n)) % n;
  return graft_call(op, (graft_value[]){graft_value_tensor(d->operands[0]), graft_value_ints(dims, (uint32_t)n)}, 2,
                    out, 1);
}
static graft_status do_select(doing *d, uint32_t op, graft_tensor **out) {
  const graft_tensor *t = d->operands[0];
  const int64_t dim = choose(d, 0, t->ndim);
  int64_t index = t->ndim && !d->open ? choose(d, 1, t->sizes[dim]) : 0;
  if (d->open && choose(d, 1, 3))
    index = choose(d, 2, 2) ? -1 : formula(d->world, GRAFT_SIZE_DIV, d->world->columns, 2);
  const graft_value args[] = {graft_value_tensor(d->operands[0]), graft_value_int(dim), graft_value_int(index)};
  return graft_call(op, args, 3, out, 1);
}
/* From a number or a size to another one. */
static graft_status slice_open(doing *d, uint32_t op, graft_tensor **out) {
  const int64_t start = choose(d, 1, 3) ? choose(d, 1, 2) : size_of(d, 2);
  const int64_t end = choose(d, 2, 3) ? size_of(d, 3) : INT64_MAX;
  const graft_value args[] = {graft_value_tensor(d->operands[0]), graft_value_int(choose(d, 0, d->operands[0]->ndim)),
                              graft_value_int(start), graft_value_int(end), graft_value_int(1 + choose(d, 3, 2))};
  return graft_call(op, args, 5, out, 1);
}

static graft_status do_slice(doing *d, uint32_t op, graft_tensor **out) {
  if (d->open) return slice_open(d, op, out);
  const graft_tensor *t = d->operands[0];
  const int64_t dim = choose(d, 0, t->ndim), size = t->ndim ? t->sizes[dim] : 0, start = choose(d, 1, size + 1);
  const graft_value args[] = {graft_value_tensor(d->operands[0]), graft_value_int(dim), graft_value_int(start),
                              graft_value_int(start + choose(d, 2, size - start + 1)),
                              graft_value_int(1 + choose(d, 3, 2))};
  return graft_call(op, args, 5, out, 1);
}
static graft_status do_unsqueeze(doing *d, uint32_t op, graft_tensor **out) {
  const int64_t dim = choose(d, 0, d->operands[0]->ndim + 1);
  return graft_call(op, (graft_value[]){graft_value_tensor(d->operands[0]), graft_value_int(dim)}, 2, out, 1);
}
static graft_status do_expand(doing *d, uint32_t op, graft_tensor **out) {
  int64_t sizes[2];
  const graft_value args[] = {graft_value_tensor(d->operands[0]), like_shape(d, d->operands[1], sizes)};
  return graft_call(op, args, 2, out, 1);
}
static graft_status do_flatten(doing *d, uint32_t op, graft_tensor **out) {
  int64_t all = -1;
  if (d->open && choose(d, 0, 2)) all = formula(d->world, GRAFT_SIZE_MUL, d->world->rows, d->world->columns);
  return graft_call(op, (graft_value[]){graft_value_tensor(d->operands[0]), graft_value_ints(&all, 1)}, 2, out, 1);
}

/* What writes to its first operand gives no new value. */
static graft_status write_binary(doing *d, uint32_t op, graft_tensor **out) {
  (void)out;
  const graft_value args[] = {graft_value_tensor(d->operands[0]), graft_value_tensor(d->operands[1])};
  return graft_call(op, args, 2, &d->operands[0], 1);
}
static graft_status write_number(doing *d, uint32_t op, graft_tensor **out) {
  (void)out;
  return graft_call(op, (graft_value[]){graft_value_tensor(d->operands[0]), number_of(d)}, 2, &d->operands[0], 1);
}
static graft_status write_unary_out(doing *d, uint32_t op, graft_tensor **out) {
  (void)out;
  return graft_call(op, (graft_value[]){graft_value_tensor(d->operands[1])}, 1, &d->operands[0], 1);
}
static graft_status write_copy(doing *d, uint32_t op, graft_tensor **out) {
  (void)op, (void)out;
  return graft_tensor_copy(d->operands[0], d->operands[1]);
}
static graft_status write_list(doing *d, uint32_t op, graft_tensor **out) {
  (void)out;
  const graft_value args[] = {graft_value_tensors(d->operands, 2), number_of(d)};
  return graft_call(op, args, 2, d->operands, 2);
}

/* Several calls on one list, as a step of an optimizer has them, with a list in between that nobody else sees. What is
 * written is beside nothing but that list, so that a call is refused before it writes or not at all. */
static graft_status write_list_step(doing *d, uint32_t op, graft_tensor **out) {
  graft_tensor *others[] = {d->operands[2], d->operands[2]}, *turned[2] = {NULL, NULL};
  const graft_value other = graft_value_tensors(others, 2);
  (void)out;
  graft_status status = graft_call(GRAFT_OP_FOREACH_NEG, &other, 1, turned, 2);
  const graft_value step[] = {graft_value_tensors(d->operands, 2), graft_value_tensors(turned, 2)};
  if (!status) status = graft_call(GRAFT_OP_FOREACH_ADD_LIST, step, 2, d->operands, 2);
  if (!status) status = graft_call(op, step, 2, d->operands, 2);
  for (int i = 0; i < 2; i++) graft_tensor_release(turned[i]);
  return status;
}

/* The same, with calls of each tensor between those on lists. */
static graft_status write_list_each(doing *d, uint32_t op, graft_tensor **out) {
  graft_tensor *turned[2] = {NULL, NULL}, *scaled[2] = {NULL, NULL};
  const graft_value list = graft_value_tensors(d->operands, 2);
  (void)out;
  graft_status status = graft_call(GRAFT_OP_FOREACH_NEG, &list, 1, turned, 2);
  for (int i = 0; i < 2 && !status; i++)
    status = graft_call(op, (graft_value[]){graft_value_tensor(turned[i]), number_of(d)}, 2, &scaled[i], 1);
  const graft_value step[] = {list, graft_value_tensors(scaled, 2)};
  if (!status) status = graft_call(GRAFT_OP_FOREACH_ADD_LIST, step, 2, d->operands, 2);
  for (int i = 0; i < 2; i++) {
    graft_tensor_release(turned[i]);
    graft_tensor_release(scaled[i]);
  }
  return status;
}

static const struct row {
  const char *name;
  do_fn run;
  uint32_t op_id;
  uint8_t operands, no_constants; /* how many of the first ones are written, or would require grad */
} rows[] = {
    {"neg", do_unary, GRAFT_OP_NEG, 1, 0},
    {"exp", do_unary, GRAFT_OP_EXP, 1, 0},
    {"relu", do_unary, GRAFT_OP_RELU, 1, 0},
    {"tanh", do_unary, GRAFT_OP_TANH, 1, 0},
    {"abs", do_unary, GRAFT_OP_ABS, 1, 0},
    {"sigmoid", do_unary, GRAFT_OP_SIGMOID, 1, 0},
    {"logical not", do_unary, GRAFT_OP_LOGICAL_NOT, 1, 0},
    {"add", do_binary, GRAFT_OP_ADD_TENSOR, 2, 0},
    {"sub", do_binary, GRAFT_OP_SUB_TENSOR, 2, 0},
    {"mul", do_binary, GRAFT_OP_MUL_TENSOR, 2, 0},
    {"lt", do_binary, GRAFT_OP_LT_TENSOR, 2, 0},
    {"maximum", do_binary, GRAFT_OP_MAXIMUM, 2, 0},
    {"div", do_binary, GRAFT_OP_DIV_TENSOR, 2, 0},
    {"mm", do_binary, GRAFT_OP_MM, 2, 0},
    {"add number", do_number, GRAFT_OP_ADD_TENSOR, 1, 0},
    {"mul number", do_number, GRAFT_OP_MUL_TENSOR, 1, 0},
    {"where", do_where, GRAFT_OP_WHERE_SELF, 3, 0},
    {"sum", do_reduce, GRAFT_OP_SUM_DIM_INTLIST, 1, 0},
    {"amax", do_reduce, GRAFT_OP_AMAX, 1, 0},
    {"amin", do_reduce, GRAFT_OP_AMIN, 1, 0},
    {"mean", do_reduce, GRAFT_OP_MEAN_DIM, 1, 0},
    {"variance", do_variance, GRAFT_OP_VAR_CORRECTION, 1, 0},
    {"sub of a reduction", do_spread, GRAFT_OP_SUB_TENSOR, 2, 0},
    {"mul by a reduction", do_spread, GRAFT_OP_MUL_TENSOR, 2, 0},
    {"sum of a product", do_product, GRAFT_OP_SUM_DIM_INTLIST, 2, 0},
    {"mean of a product", do_product, GRAFT_OP_MEAN_DIM, 2, 0},
    {"softmax, written out", do_softmax, GRAFT_OP_EXP, 1, 0},
    {"tanh of a product and a sum", do_followed, GRAFT_OP_TANH, 3, 0},
    {"relu of a product and a sum", do_followed, GRAFT_OP_RELU, 3, 0},
    {"gradient of a norm, and a sum", do_norm_gradient, GRAFT_OP_ADD_TENSOR, 3, 0},
    {"to", do_cast, 0, 1, 0},
    {"cat", do_cat, GRAFT_OP_CAT, 2, 0},
    {"rand", do_random, GRAFT_OP_RAND, 1, 0},
    {"dropout", do_dropout, GRAFT_OP_NATIVE_DROPOUT, 1, 0},
    {"dropout", do_dropout, GRAFT_OP_NATIVE_DROPOUT, 1, 0},
    {"full", do_full, GRAFT_OP_FULL, 1, 0},
    {"gradient", do_gradient, GRAFT_OP_MUL_TENSOR, 2, 1},
    {"permute", do_permute, GRAFT_OP_PERMUTE, 1, 0},
    {"select", do_select, GRAFT_OP_SELECT_INT, 1, 0},
    {"slice", do_slice, GRAFT_OP_SLICE_TENSOR, 1, 0},
    {"unsqueeze", do_unsqueeze, GRAFT_OP_UNSQUEEZE, 1, 0},
    {"expand", do_expand, GRAFT_OP_EXPAND, 2, 0},
    {"flatten", do_flatten, GRAFT_OP_VIEW, 1, 0},
    {"add into the first", write_binary, GRAFT_OP_ADD_TENSOR, 2, 1},
    {"mul into the first", write_binary, GRAFT_OP_MUL_TENSOR, 2, 1},
    {"add number in place", write_number, GRAFT_OP_ADD_TENSOR, 1, 1},
    {"neg of the second into the first", write_unary_out, GRAFT_OP_NEG, 2, 1},
    {"copy of the second into the first", write_copy, 0, 2, 1},
    {"foreach mul in place", write_list, GRAFT_OP_FOREACH_MUL_SCALAR, 2, 2},
    {"step on a list", write_list_step, GRAFT_OP_FOREACH_MUL_LIST, 3, 2},
    {"step on a list, tensor by tensor", write_list_each, GRAFT_OP_MUL_TENSOR, 2, 2},
};
enum { NROWS = sizeof rows / sizeof *rows };

static bool refused_constant(const doing *d, const struct row *row) {
  for (uint32_t i = 0; i < row->no_constants; i++) {
    if (d->world->constant[d->picked[i]]) return true;
  }
  return false;
}

static void print_step(const doing *d, const struct row *row, graft_status status, const graft_tensor *out) {
  if (!d->to || status) return;
  if (out) fprintf(d->to, "  v%u = ", d->world->count - 1);
  fprintf(d->to, "%s%s(", out ? "" : "  ", row->name);
  for (uint32_t i = 0; i < row->operands; i++) fprintf(d->to, "%sv%u", i ? ", " : "", d->picked[i]);
  fprintf(d->to, ")");
  if (out) fprintf(d->to, "  %s", TNS_SHAPE(out));
  fputc('\n', d->to);
}

static graft_status run_step(doing *d) {
  fuzz_world *world = d->world;
  const struct row *row = &rows[d->step->row];
  for (uint32_t i = 0; i < row->operands; i++) {
    d->picked[i] = d->step->picks[i] % world->count;
    d->operands[i] = world->values[d->picked[i]];
  }
  if (refused_constant(d, row) || world->count == FUZZ_VALUES) return GRAFT_INVALID_ARGUMENT;
  graft_tensor *out = NULL;
  graft_status status = row->run(d, row->op_id, &out);
  if (!status && out) {
    world->constant[world->count] = out->storage == d->operands[0]->storage && world->constant[d->picked[0]];
    world->values[world->count++] = out;
  }
  print_step(d, row, status, out);
  return status;
}

void fuzz_run(const fuzz_program *program, fuzz_world *world, FILE *to) {
  for (uint32_t i = 0; to && i < world->count; i++) fprintf(to, "  v%u: %s\n", i, TNS_SHAPE(world->values[i]));
  for (uint32_t i = 0; i < program->nsteps; i++) {
    doing d = {.step = &program->steps[i], .world = world, .to = to, .open = program->open};
    world->statuses[i] = world->only && world->only[i] ? world->only[i] : run_step(&d);
  }
}

void fuzz_empty(fuzz_world *world) {
  while (world->count) graft_tensor_release(world->values[--world->count]);
}

/* --- programs and their inputs --- */

/* Where rows and columns are one size, there are products of inputs. */
static void make_sizes(fuzz_program *program, uint64_t *state) {
  static const int64_t lengths[] = {1, 2, 3, 4, 5, 3, 17, 0};
  const bool square = draw(state) % 2;
  for (int i = 0; i < FUZZ_SIZES; i++) {
    program->sizes[i][0] = lengths[draw(state) % 8];
    program->sizes[i][1] = lengths[draw(state) % 8];
    if (square) program->sizes[i][1] = program->sizes[i][0];
  }
}

void fuzz_make(uint64_t seed, fuzz_program *program) {
  static const int64_t longs[] = {3, 3, 3,  3,
                                  3, 3, 37, 1100}; /* kernels take elements in vectors, and these in blocks */
  uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
  *program = (fuzz_program){.seed = seed, .nsteps = 4 + draw(&state) % (FUZZ_STEPS - 3)};
  for (uint32_t i = 0; i < FUZZ_INPUTS; i++) program->inputs[i] = draw(&state);
  for (uint32_t i = 0; i < program->nsteps; i++) {
    fuzz_step *step = &program->steps[i];
    step->row = draw(&state) % NROWS;
    for (int p = 0; p < 3; p++) step->picks[p] = draw(&state);
    for (int c = 0; c < 4; c++) step->choices[c] = draw(&state);
  }
  program->outputs = (uint64_t)draw(&state) << 32 | draw(&state);
  program->passes = draw(&state);
  program->sizes[0][0] = 3;
  program->sizes[0][1] = longs[draw(&state) % (sizeof longs / sizeof *longs)];
  program->open = draw(&state) % 4 == 0;
  if (program->open) make_sizes(program, &state);
}

/* What an input is: dense, turned, with gaps, one row again and again, or off its storage's beginning. */
typedef struct input_shape {
  graft_dtype dtype;
  int32_t ndim;
  uint32_t layout;
  int64_t sizes[4], strides[4];
} input_shape;

/* As tns_contiguous_strides, of numbers and names. */
static void dense_strides(const fuzz_world *world, input_shape *in) {
  int64_t stride = 1;
  for (int32_t i = in->ndim; i-- > 0;) {
    in->strides[i] = stride;
    if (i) stride = formula(world, GRAFT_SIZE_MUL, stride, formula(world, GRAFT_SIZE_MAX, in->sizes[i], 1));
  }
}

static void lay_out(const fuzz_world *world, input_shape *in) {
  const int32_t ndim = in->ndim;
  if (in->layout == 1 && ndim == 2) in->strides[0] = 1, in->strides[1] = in->sizes[0];
  for (int32_t i = 0; in->layout == 2 && i < ndim; i++)
    in->strides[i] = formula(world, GRAFT_SIZE_MUL, in->strides[i], 2);
  if (in->layout == 3 && ndim) in->strides[0] = 0;
}

/* `all`: it has all rows and columns, so that a run can tell how many there are. */
static input_shape choose_shape(const fuzz_world *world, bool all, uint64_t *state) {
  static const graft_dtype dtypes[] = {GRAFT_F32,  GRAFT_F32, GRAFT_F32,  GRAFT_F64,
                                       GRAFT_BF16, GRAFT_I64, GRAFT_BOOL, GRAFT_C64};
  input_shape in = {.dtype = dtypes[draw(state) % 8], .sizes = {1, 1, 1, 1}};
  in.ndim = (int32_t)(draw(state) % 8 ? 2 : draw(state) % 4);
  in.layout = draw(state) % 5;
  if (all) in.ndim = 2;
  for (int32_t i = 0; i < in.ndim; i++)
    in.sizes[i] = draw(state) % 10 || all ? i + 1 < in.ndim ? world->rows : world->columns : draw(state) % 3;
  dense_strides(world, &in);
  return in;
}

/* A view of a storage of its own. */
static graft_status make_input(const fuzz_world *world, uint32_t what, bool all, graft_tensor **input) {
  uint64_t state = what;
  input_shape in = choose_shape(world, all, &state);
  int64_t count = 2;
  for (int32_t i = 0; i < in.ndim; i++) count += 4 * in.sizes[i] * (in.strides[i] + 1);
  lay_out(world, &in);
  unsigned char *bytes = malloc((size_t)count * dt_bytes(in.dtype));
  if (!bytes) return GRAFT_OUT_OF_MEMORY;
  for (int64_t i = 0; i < count; i++) {
    double x = (double)(draw(&state) % 17) / 4 - 2;
    dt_store(in.dtype, bytes + i * (int64_t)dt_bytes(in.dtype), (dt_value){x, x / 2});
  }
  graft_tensor *whole;
  graft_status status = graft_tensor_from_host(world->device, in.dtype, 1, &count, bytes, &whole);
  free(bytes);
  if (status) return status;
  status = tns_new(whole->storage, world->device, in.dtype, in.ndim, in.sizes, in.strides, in.layout == 4, input);
  graft_tensor_release(whole);
  return status;
}

static void add_input(fuzz_world *world) {
  world->constant[world->count++] = false;
}

graft_status fuzz_fill(const fuzz_program *program, fuzz_world *world) {
  for (uint32_t i = 0; i < FUZZ_INPUTS; i++) {
    graft_status status = make_input(world, program->inputs[i], program->open && !i, &world->values[i]);
    if (status) return status;
    add_input(world);
  }
  return GRAFT_OK;
}

graft_status fuzz_name_inputs(const fuzz_program *program, fuzz_world *world) {
  for (uint32_t i = 0; i < FUZZ_INPUTS; i++) {
    const char name[] = {(char)('a' + i), 0};
    uint64_t state = program->inputs[i];
    input_shape in = choose_shape(world, !i, &state);
    lay_out(world, &in);
    const bool dense = in.layout == 0 || in.layout == 4;
    graft_status status = graft_graph_input(world->graph, name, in.dtype, in.ndim, in.sizes, dense ? NULL : in.strides,
                                            &world->values[i]);
    if (status) return status;
    add_input(world);
  }
  return GRAFT_OK;
}
