/* What the rows of pointwise ops share: the rule, the forms with a number, and parts of gradients. */
#include "ops/core/wide.h"
#include "ops/pointwise/pointwise.h"

static graft_status refuse(const op_call *c, uint32_t refused) {
  static const uint32_t bits[] = {
      [DT_BOOL] = PW_NO_BOOL, [DT_INTEGER] = PW_NO_INT, [DT_FLOAT] = PW_NO_FLOAT, [DT_COMPLEX] = PW_NO_COMPLEX};
  static const char *const names[] = {"bool", "integer", "floating", "complex"};
  dt_category category = dt_category_of(c->compute);
  if (!(refused & bits[category])) return GRAFT_OK;
  return op_error(c, "not defined for %s operands (%s)", names[category], op_show_tensors(c));
}

static graft_dtype promoted(const op_call *c, const pw_row *row) {
  static const int last[] = {[PW_FIRST] = X, [PW_FIRST_TWO] = Y, [PW_FIRST_THREE] = Z, [PW_BEHIND_FIRST] = Z};
  if (row->operands == PW_TENSORS) return op_promote_tensors(c);
  return op_promote(c, row->operands == PW_BEHIND_FIRST ? Y : X, last[row->operands]);
}

/* Scalars that do not promote (alpha, value, threshold, weight) must not be complex where the operands are real. */
static graft_status check_real_numbers(const op_call *c) {
  for (int i = 0; i < c->schema->nargs; i++) {
    bool complex_number = c->schema->args[i].kind == OPK_SCALAR && dt_is_complex(op_scalar(c, i).dtype);
    if (complex_number && !dt_is_complex(c->compute)) {
      return op_error(c, "%s is complex, but the operands are real (%s)", c->schema->args[i].name, op_show_tensors(c));
    }
  }
  return GRAFT_OK;
}

/* A number that stands beside the operands must be one that integer operands can hold, too, a bound of elements one
 * that any can; what stands in an operand's place wraps. */
graft_status pw_bind(const op_call *c, const graft_value *args, int arg, const graft_value *number) {
  (void)args;
  const pw_row *row = c->def->row;
  const op_schema *form = row->tensor_form ? op_schema_of(row->tensor_form) : c->schema;
  if (form->args[arg].kind != OPK_SCALAR) return GRAFT_OK;
  if (row->refuse & PW_BOUNDS) return op_value_fits(c, arg, number, c->compute);
  graft_value held = *number;
  bool negates = row->refuse & PW_OPPOSITE && held.kind == GRAFT_VALUE_SCALAR && held.as.scalar.dtype == GRAFT_I64;
  if (negates) held.as.scalar.value.i = (int64_t)(0 - (uint64_t)held.as.scalar.value.i);
  graft_status status = op_integer_holds(c, arg, &held, c->compute);
  if (!status || !negates) return status;
  return op_error(c, "%s is %lld, whose opposite %s can't hold", c->schema->args[arg].name,
                  (long long)number->as.scalar.value.i, graft_dtype_name(c->compute));
}

static graft_status check_numbers_fit(const op_call *c) {
  graft_status status = GRAFT_OK;
  if (c->def->flags & OP_LATE_NUMBERS) return status; /* when they are bound */
  for (int i = X + 1; !status && i < c->schema->nargs; i++) status = pw_bind(c, c->args, i, &c->args[i]);
  return status;
}

graft_status pw_check_one_dtype(op_call *c) {
  const graft_tensor *a = op_tensor(c, X), *b = op_tensor(c, Y);
  return a && b && a->dtype == b->dtype ? GRAFT_OK : op_error(c, "expected one dtype (%s)", op_show_tensors(c));
}

/* As PyTorch has it where it begins with empty_like(first) and the shape stays. */
static void keep_strides(op_call *c, const graft_tensor *first, graft_dtype dtype) {
  if (first && tns_has_sizes(first, c->out[OUT].ndim, c->out[OUT].sizes)) op_out_like(c, OUT, dtype, first);
}

graft_status pw_infer(op_call *c) {
  const pw_row *row = c->def->row;
  graft_dtype dtype = promoted(c, row);
  if (!dtype) return op_error(c, "these dtypes do not promote to a common one: %s", op_show_tensors(c));
  c->compute = dtype;
  graft_status status = refuse(c, row->refuse);
  if (status) return status;
  bool to_float = row->promo == PW_FLOAT || row->promo == PW_ANGLE;
  if (to_float && dt_is_integral(dtype, true)) c->compute = dtype = dt_default();
  c->out[OUT].dtype = dtype;
  if ((status = check_real_numbers(c))) return status;
  if (row->check && (status = row->check(c))) return status;
  if ((status = check_numbers_fit(c))) return status;
  dtype = row->promo == PW_REAL || row->promo == PW_ANGLE ? dt_real(c->compute) : c->compute;
  if (row->promo == PW_SECOND) dtype = op_tensor(c, Y)->dtype;
  if (row->promo == PW_COMPLEX) dtype = dt_complex(c->compute);
  if (row->promo == PW_BOOL || row->promo == PW_LOGICAL) dtype = GRAFT_BOOL;
  if (row->promo == PW_LOGICAL) c->compute = GRAFT_DTYPE_NONE;
  status = op_out_broadcast(c, OUT, dtype);
  if (!status && row->refuse & PW_CONTIGUOUS) { /* PyTorch asks for it there */
    tns_contiguous_strides(c->out[OUT].ndim, c->out[OUT].sizes, c->out[OUT].strides);
  }
  if (!status && row->refuse & PW_LIKE) keep_strides(c, op_tensor(c, X), dtype);
  return status;
}

/* X.Scalar is X.Tensor: a tensor argument takes a number. */
void pw_decompose_form(fx *s, const op_call *c, graft_tensor **outs) {
  const pw_row *row = c->def->row;
  outs[OUT] = fx_one(s, row->tensor_form, c->args, c->schema->nargs);
}

void pw_decompose_composed(fx *s, const op_call *c, graft_tensor **outs) {
  const pw_row *row = c->def->row;
  graft_value args[OP_MAX_ARGS];
  if (op_ran_wider(s, c, outs)) return;
  for (int i = 0; i < c->schema->nargs; i++) {
    args[i] = c->args[i];
    if (c->schema->args[i].kind != OPK_TENSOR || args[i].kind != GRAFT_VALUE_SCALAR) continue;
    graft_scalar number = args[i].as.scalar; /* compositions speak of tensors */
    args[i] = fx_tensor(fx_scalar_tensor(s, number, op_number_dtype(&number), c->device));
  }
  if (!s->status) outs[OUT] = row->compose(s, args);
}

/* --- gradients --- */

graft_value pw_conj(op_vjp *v, int arg) {
  graft_value value = v->args[arg];
  if (value.kind == GRAFT_VALUE_TENSOR) return fx_tensor(fx_conj(v->s, value.as.tensor));
  if (value.kind == GRAFT_VALUE_SCALAR && value.as.scalar.dtype == GRAFT_C128) value.as.scalar.value.c[1] *= -1;
  return value;
}

graft_tensor *pw_scaled(op_vjp *v, graft_tensor *t, int arg) {
  return pw_times(v->s, t, pw_conj(v, arg));
}

graft_tensor *pw_again(op_vjp *v) {
  graft_value args[OP_MAX_ARGS];
  for (int i = 0; i < v->schema->nargs; i++) args[i] = v->args[i];
  args[X] = fx_tensor(v->g[OUT]);
  return fx_one(v->s, v->schema->id, args, v->schema->nargs);
}

void pw_vjp_unary(op_vjp *v) {
  const pw_row *row = op_row(v->schema->id);
  v->results[X] = row->gradient(v->s, v->g[OUT], vjp_arg(v, X), v->outs[OUT], v->args);
}

void pw_vjp_zero(op_vjp *v) {
  v->results[X] = fx_zeros_like(v->s, v->g[OUT]);
}

void pw_vjp_linear(op_vjp *v) {
  if (vjp_needs(v, X)) v->results[X] = pw_again(v);
  if (vjp_needs(v, Y)) v->results[Y] = fx_zeros_like(v->s, v->g[OUT]);
}
