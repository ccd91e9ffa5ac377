/* _foreach ops: ops on lists of tensors. */
#include <string.h>

#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- foreach: an op of single tensors, item by item ---
 * That op has the same arguments in the same order; where the foreach op has a list, it has one of the items. */

enum { EACH_MOST = 8 };

/* The op of single tensors, and which of its arguments the foreach op does not have; 0: none. */
typedef struct each_row {
  uint32_t item_op, left_out;
} each_row;

static uint32_t item_op_of(const op_call *c) {
  return ((const each_row *)c->def->row)->item_op;
}

/* The length all list arguments have; an empty list is refused, as PyTorch does. */
static graft_status check_lists(const op_call *c) {
  uint32_t count = 0;
  for (uint32_t i = 0, seen = 0; i < c->schema->nargs; i++) {
    const graft_value *v = &c->args[i];
    if (v->kind == GRAFT_VALUE_TENSOR && v->as.tensor->ndim) return op_refuse(c, i, "a tensor without dimensions");
    if (v->kind != GRAFT_VALUE_TENSORS && v->kind != GRAFT_VALUE_SCALARS) continue;
    if (!v->count) return op_error(c, "%s is empty; expected at least one tensor", c->schema->args[i].name);
    if (seen++ && v->count != count) {
      return op_error(c, "%s has %u items; expected %u, as the lists before it", c->schema->args[i].name, v->count,
                      count);
    }
    count = v->count;
  }
  return GRAFT_OK;
}

/* The arguments of item i. */
static uint32_t item_args(const op_call *c, uint32_t i, graft_value *args) {
  const each_row *row = c->def->row;
  uint32_t count = 0;
  for (uint32_t a = 0; a < c->schema->nargs; a++) {
    graft_value v = c->args[a];
    if (v.kind == GRAFT_VALUE_TENSORS)
      v = fx_tensor(v.as.tensors[i]);
    else if (v.kind == GRAFT_VALUE_SCALARS)
      v = fx_number(v.as.scalars[i]);
    if (count && count == row->left_out) args[count++] = (graft_value){.kind = GRAFT_VALUE_NONE};
    args[count++] = v;
  }
  return count;
}

static graft_status each_item(const op_call *c, uint32_t ret, uint32_t item, graft_meta *meta) {
  (void)ret;
  graft_value args[EACH_MOST];
  uint32_t count, nargs = item_args(c, item, args);
  return fx_hooks.infer(item_op_of(c), args, nargs, meta, sizeof *meta, 1, &count);
}

/* Whether item i has the result's shape in all lists, or one element beside that. */
static bool alike(const op_call *c, uint32_t i, const graft_tensor *like, const graft_meta *result) {
  bool fits = tns_has_sizes(like, result->ndim, result->sizes);
  for (uint32_t a = 0; a < c->schema->nargs && fits; a++) {
    if (c->args[a].kind != GRAFT_VALUE_TENSORS) continue;
    const graft_tensor *item = c->args[a].as.tensors[i];
    const bool spread = op_role(c->schema, c->def, a) == 'c' && item->numel == 1;
    fits = spread || tns_same_sizes(item, like);
  }
  return fits;
}

/* A slot takes lists whose items keep their dtype; and of broadcasting that of one element. */
static graft_status infer_each(op_call *c) {
  graft_status status = check_lists(c);
  int like = 0;
  while (c->args[like].kind != GRAFT_VALUE_TENSORS) like++;
  op_out_list(c, OUT, like);
  for (uint32_t i = 0; !status && i < c->args[like].count; i++) {
    const graft_tensor *item = c->args[like].as.tensors[i];
    graft_meta meta;
    status = each_item(c, OUT, i, &meta);
    if (!status && (meta.dtype != item->dtype || !alike(c, i, item, &meta))) c->decompose_only = true;
  }
  return status;
}

/* Numbers that an item's dtype wraps: a slot gets that of lists of one dtype as it is there, as the slot of the items'
 * op does; where items differ, and of a number for each, the calls of that op see to it. */
static graft_status infer_bounded(op_call *c) {
  graft_status status = infer_each(c);
  op_call item = {.schema = op_schema_of(item_op_of(c)), .def = op_def_of(item_op_of(c))};
  const graft_value *self = op_value_named(c->schema, c->args, "self");
  for (uint32_t a = 0; !status && a < c->schema->nargs; a++) {
    const bool each = c->args[a].kind == GRAFT_VALUE_SCALARS;
    if (!each && c->args[a].kind != GRAFT_VALUE_SCALAR) continue;
    graft_value seen = c->args[a]; /* by a slot, at this item */
    for (uint32_t i = 0; i < self->count; i++) {
      const graft_value given = each ? fx_number(c->args[a].as.scalars[i]) : c->args[a];
      item.compute = self->as.tensors[i]->dtype;
      const graft_value now = op_wrapped_number(&item, (int)a, given);
      if (each)
        seen = given;
      else if (i == 0)
        seen = now;
      if (now.as.scalar.value.i != seen.as.scalar.value.i) c->decompose_only = true;
    }
    if (!each && !c->decompose_only) c->args[a] = seen;
  }
  return status;
}

/* As the items' op has it, of all items before one is written. Where a number stands beside the operands the result has
 * the dtype that is computed in. */
static graft_status bind_each(const op_call *c, const graft_value *args, int arg, const graft_value *number) {
  graft_status status = GRAFT_OK;
  op_call item = {.schema = op_schema_of(item_op_of(c)), .def = op_def_of(item_op_of(c))};
  const graft_value *self = op_value_named(c->schema, args, "self");
  if (!item.def->bind || self->kind != GRAFT_VALUE_TENSORS) return status;
  op_call bound = *c;
  memcpy(bound.args, args, c->schema->nargs * sizeof *args);
  for (uint32_t i = 0; !status && i < self->count; i++) {
    graft_meta meta = {.dtype = self->as.tensors[i]->dtype};
    if (c->decompose_only) status = each_item(&bound, OUT, i, &meta);
    item.compute = meta.dtype;
    if (!status) status = item.def->bind(&item, args, arg, number);
  }
  return status ? err_attribute(status, c->schema->name) : GRAFT_OK;
}

/* outs[i] is given only where items must be written in order. */
static void decompose_each(fx *s, const op_call *c, graft_tensor **outs) {
  uint32_t count = 0;
  for (uint32_t a = 0; a < c->schema->nargs; a++) {
    if (c->args[a].kind == GRAFT_VALUE_TENSORS) count = c->args[a].count;
  }
  for (uint32_t i = 0; i < count; i++) {
    graft_value args[EACH_MOST];
    uint32_t nargs = item_args(c, i, args);
    if (outs[i])
      fx_call_into(s, item_op_of(c), args, nargs, outs[i]);
    else
      fx_call(s, item_op_of(c), args, nargs, &outs[i], 1);
  }
}

graft_status kernel_foreach_add_Scalar(const graft_exec *exec, const graft_args_foreach_add_Scalar *a) {
  dt_value number = dt_scalar_value(a->scalar);
  for (uint64_t i = 0; i < a->self.count; i++) {
    const graft_tensor_desc *self = a->self.items[i];
    graft_dtype dtype = self->dl.dtype;
    REF_OWNED ref_array x = ref_read(self);
    if (!x.re) return ref_no_memory();
    bool rounds = dt_is_float(dt_real(dtype));
    ref_real re = rounds ? dt_round(dt_accumulate(dt_real(dtype)), number.re) : number.re;
    ref_real im = rounds ? dt_round(dt_accumulate(dt_real(dtype)), number.im) : number.im;
    for (int64_t j = 0; j < x.count; j++) {
      /* f64 itself, which long double would round twice */
      x.re[j] = dtype == GRAFT_F64 ? (double)x.re[j] + (double)re : x.re[j] + re;
      if (x.im) x.im[j] += im;
    }
    ref_write(a->out.items[i], &x);
  }
  return GRAFT_OK;
}

static void vjp_foreach_add(op_vjp *v) {
  for (uint32_t i = 0; i < v->args[ARG_foreach_add_Scalar_self].count; i++)
    v->list_results[ARG_foreach_add_Scalar_self][i] = v->g[i];
}

/* --- _foreach_norm.Scalar --- */

static graft_status norm_item(const op_call *c, uint32_t ret, uint32_t item, graft_meta *meta) {
  (void)ret;
  const graft_value args[] = {fx_tensor(c->args[ARG_foreach_norm_Scalar_self].as.tensors[item]),
                              c->args[ARG_foreach_norm_Scalar_ord],
                              {0},
                              {0},
                              c->args[ARG_foreach_norm_Scalar_dtype]};
  uint32_t count;
  return fx_hooks.infer(GRAFT_OP_LINALG_VECTOR_NORM, args, 5, meta, sizeof *meta, 1, &count);
}

static graft_status infer_norms(op_call *c) {
  const in_foreach_norm_Scalar in = in_foreach_norm_Scalar_of(c->args);
  graft_status status = check_lists(c);
  op_out_list(c, OUT, ARG_foreach_norm_Scalar_self);
  for (uint32_t i = 0; !status && i < in.self_count; i++) { /* a slot takes tensors that keep their dtype */
    graft_meta meta;
    status = norm_item(c, OUT, i, &meta);
    if (!status && meta.dtype != in.self[i]->dtype) c->decompose_only = true;
  }
  return status;
}

static void decompose_norms(fx *s, const op_call *c, graft_tensor **outs) {
  const in_foreach_norm_Scalar in = in_foreach_norm_Scalar_of(c->args);
  for (uint32_t i = 0; i < in.self_count; i++) {
    outs[i] = fx_linalg_vector_norm(s, in.self[i], in.ord, NULL, 0, false, in.dtype);
  }
}

/* --- _foreach_copy, _foreach_zero --- */

static graft_status infer_zeros(op_call *c) {
  op_out_list(c, OUT, ARG_foreach_zero_self);
  return check_lists(c);
}

static void decompose_zeros(fx *s, const op_call *c, graft_tensor **outs) {
  const in_foreach_zero in = in_foreach_zero_of(c->args);
  for (uint32_t i = 0; i < in.self_count; i++) {
    outs[i] = fx_full_like(s, in.self[i], graft_scalar_int(0), GRAFT_DTYPE_NONE, NULL, GRAFT_FORMAT_PRESERVE);
  }
}

#define EACH(name, roles_, item)                                                               \
  {                                                                                            \
    .op_id = GRAFT_OP_FOREACH_##name, .roles = roles_, .infer = infer_each, .bind = bind_each, \
    .decompose = decompose_each, .flags = OP_ITEM_BY_ITEM | OP_LATE_NUMBERS,                   \
    .row = &(const each_row){GRAFT_OP_##item, 0}, .list_item = each_item                       \
  }
/* Whose items' op looks at its numbers, and is given them behind an argument that stays absent; 0: none does. */
#define EACH_BOUNDED(name, item, left_out_)                                                                \
  {                                                                                                        \
    .op_id = GRAFT_OP_FOREACH_##name, .roles = "k", .infer = infer_bounded, .decompose = decompose_each,   \
    .flags = OP_ITEM_BY_ITEM, .row = &(const each_row){GRAFT_OP_##item, left_out_}, .list_item = each_item \
  }

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(foreach_add_Scalar),
     .roles = "k",
     .infer = infer_each,
     .decompose = decompose_each,
     .vjp = vjp_foreach_add,
     .flags = OP_READS_FIRST | OP_ITEM_BY_ITEM | OP_LATE_NUMBERS,
     .row = &(const each_row){GRAFT_OP_ADD_TENSOR, 0},
     .list_item = each_item},
    EACH(ABS, "k", ABS),
    EACH(ADD_LIST, "kc", ADD_TENSOR),
    EACH(ADD_SCALARLIST, "k", ADD_TENSOR),
    EACH(ADDCDIV_SCALAR, "kcc", ADDCDIV),
    EACH(ADDCDIV_SCALARLIST, "kcc", ADDCDIV),
    EACH(ADDCMUL_SCALAR, "kcc", ADDCMUL),
    EACH(CLAMP_MAX_LIST, "kc", MINIMUM),
    EACH_BOUNDED(CLAMP_MAX_SCALAR, CLAMP, ARG_clamp_min),
    EACH_BOUNDED(CLAMP_MAX_SCALARLIST, CLAMP, ARG_clamp_min),
    EACH(CLAMP_MIN_LIST, "kc", MAXIMUM),
    EACH_BOUNDED(CLAMP_MIN_SCALAR, CLAMP_MIN, 0),
    EACH_BOUNDED(CLAMP_MIN_SCALARLIST, CLAMP_MIN, 0),
    EACH(DIV_LIST, "kc", DIV_TENSOR),
    EACH(DIV_SCALAR, "k", DIV_TENSOR),
    EACH(DIV_SCALARLIST, "k", DIV_TENSOR),
    EACH(DIV_TENSOR, "kk", DIV_TENSOR),
    EACH(LERP_LIST, "kcc", LERP_TENSOR),
    EACH(LERP_SCALAR, "kc", LERP_SCALAR),
    EACH(MAXIMUM_LIST, "kc", MAXIMUM),
    EACH(MUL_LIST, "kc", MUL_TENSOR),
    EACH(MUL_SCALAR, "k", MUL_TENSOR),
    EACH(MUL_SCALARLIST, "k", MUL_TENSOR),
    EACH(MUL_TENSOR, "kk", MUL_TENSOR),
    EACH(NEG, "k", NEG),
    EACH(POW_SCALARANDTENSOR, "k", POW_SCALAR),
    EACH(RECIPROCAL, "k", RECIPROCAL),
    EACH(RSQRT, "k", RSQRT),
    EACH(SIGN, "k", SIGN),
    EACH(SQRT, "k", SQRT),
    EACH(SUB_LIST, "kc", SUB_TENSOR),
    EACH(SUB_SCALAR, "k", SUB_TENSOR),
    EACH(SUB_SCALARLIST, "k", SUB_TENSOR),
    {.op_id = GRAFT_OP_FOREACH_COPY,
     .roles = "kk",
     .infer = infer_each,
     .decompose = decompose_each,
     .flags = OP_ITEM_BY_ITEM,
     .row = &(const each_row){GRAFT_OP_COPY, 0},
     .list_item = each_item},
    {.op_id = GRAFT_OP_FOREACH_ZERO, .roles = "k", .infer = infer_zeros, .decompose = decompose_zeros},
    {.op_id = GRAFT_OP_FOREACH_NORM_SCALAR,
     .roles = "k",
     .infer = infer_norms,
     .decompose = decompose_norms,
     .list_item = norm_item},
};
OP_TABLE(optimizer_foreach, defs)
