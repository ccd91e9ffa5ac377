/* The loop over elements that the reference kernels of pointwise ops have in common. */
#include <string.h>

#include "ops/pointwise/pointwise.h"

typedef struct pw_run {
  const pw_row *row;
  pw_context c;
  int count;
  const graft_tensor_desc *x[3];
  const graft_tensor_desc *out;
  char *at[4]; /* operands, then the output */
} pw_run;

static const void *field(const void *args, uint16_t offset) {
  const void *pointer;
  memcpy(&pointer, (const char *)args + offset, sizeof pointer);
  return pointer;
}

/* A number takes part in the precision that the dtype is computed in: 0.1 with f32 or bf16 is 0.1f. Comparisons compute
 * nothing: an element that was made of 0.1 is equal to it. */
static long double as_number(const pw_run *r, long double value) {
  graft_dtype real = dt_real(r->c.compute);
  if (!dt_is_float(real)) return value;
  return dt_round(r->row->promo == PW_BOOL ? real : dt_accumulate(real), value);
}

/* The number at an argument's place; false where it is absent, or no number. */
static bool number_at(const op_arg *arg, const void *args, dt_value *value) {
  const char *at = (const char *)args + arg->offset;
  const void *pointer = NULL;
  double number;
  int64_t whole;
  if (arg->kind == OPK_INT) {
    memcpy(&whole, at, sizeof whole);
    *value = (dt_value){(long double)whole, 0};
    return true;
  }
  if (arg->kind == OPK_SCALAR || arg->flags & OPA_OPTIONAL) {
    pointer = field(args, arg->offset);
    if (!pointer) return false;
    at = pointer;
  }
  if (arg->kind == OPK_SCALAR) {
    *value = dt_scalar_value(pointer);
    return true;
  }
  memcpy(&number, at, sizeof number);
  *value = (dt_value){number, 0};
  return true;
}

/* Neither absent nor a number. */
static bool in_memory(const graft_tensor_desc *x) {
  return x && !(x->flags & GRAFT_TENSOR_HOST_VALUE);
}

static void collect(pw_run *r, const op_schema *schema, const void *args) {
  const char *roles = op_def_of(schema->id)->roles;
  for (int i = 0; i < schema->nargs; i++) {
    const op_arg *arg = &schema->args[i];
    if (arg->kind == OPK_TENSOR) r->x[r->count++] = field(args, arg->offset);
    if (arg->kind == OPK_STR) memcpy(&r->c.mode, (const char *)args + arg->offset, sizeof r->c.mode);
    if (arg->kind == OPK_BOOL) r->c.mode = ((const uint8_t *)args)[arg->offset];
    if (arg->kind != OPK_SCALAR && arg->kind != OPK_FLOAT && arg->kind != OPK_INT) continue;
    dt_value value;
    if (!number_at(arg, args, &value)) continue;
    r->c.has[i] = true;
    r->c.p[i] = value.re;
    r->c.pi[i] = value.im;
  }
  r->out = field(args, schema->rets[OUT].offset);
  r->c.compute = r->out->dl.dtype;
  for (int i = r->count - 1; i >= 0; i--) { /* a comparison is computed in the operands' dtype, not in bool */
    bool mask = roles[i] == 'c' && strchr(roles, 'b'); /* what a condition chooses from has the dtype */
    r->c.present[i] = r->x[i] != NULL;
    if (!mask && in_memory(r->x[i])) r->c.compute = r->x[i]->dl.dtype;
  }
  r->c.is_double = r->c.compute == GRAFT_F64;
  r->c.is_u64 = r->c.compute == GRAFT_U64;
  for (int i = 0; i < PW_ARGS; i++) {
    r->c.p[i] = as_number(r, r->c.p[i]);
    r->c.pi[i] = as_number(r, r->c.pi[i]);
  }
}

static int64_t as_integer(const pw_run *r, long double value) {
  return r->c.is_u64 && value >= 0 ? (int64_t)(uint64_t)value : (int64_t)value;
}

static dt_value compute_one(pw_run *r, const dt_value *x) {
  dt_category category = dt_category_of(r->c.compute);
  for (int i = 0; i < r->count; i++) {
    if (r->x[i] && dt_is_complex(r->x[i]->dl.dtype)) category = DT_COMPLEX; /* logical ops take operands as they are */
  }
  bool pairs = !r->row->real && !r->row->integer; /* of real operands, too */
  if ((category == DT_COMPLEX || pairs) && r->row->complex_) return r->row->complex_(x, &r->c);
  if (category <= DT_INTEGER && r->row->integer) {
    int64_t values[3] = {0};
    for (int i = 0; i < r->count; i++) values[i] = as_integer(r, x[i].re);
    int64_t result = r->row->integer(values, &r->c);
    return (dt_value){r->c.is_u64 ? (long double)(uint64_t)result : (long double)result, 0};
  }
  long double values[3] = {0};
  for (int i = 0; i < r->count; i++) values[i] = x[i].re;
  return (dt_value){r->row->real(values, &r->c), 0};
}

static void run_dim(pw_run *r, int32_t dim) {
  const graft_dl_tensor *out = &r->out->dl;
  if (dim == out->ndim) {
    dt_value x[3] = {{0, 0}, {0, 0}, {0, 0}};
    for (int i = 0; i < r->count; i++) {
      if (!r->x[i]) continue;
      x[i] = dt_load(r->x[i]->dl.dtype, r->at[i]);
      if (r->x[i]->flags & GRAFT_TENSOR_HOST_VALUE) x[i] = (dt_value){as_number(r, x[i].re), as_number(r, x[i].im)};
    }
    dt_store(out->dtype, r->at[3], compute_one(r, x));
    return;
  }
  char *start[4];
  memcpy(start, r->at, sizeof start);
  for (int64_t n = 0; n < out->shape[dim]; n++) {
    run_dim(r, dim + 1);
    for (int i = 0; i < r->count; i++) {
      if (!in_memory(r->x[i])) continue;
      r->at[i] += r->x[i]->dl.strides[dim] * (int64_t)dt_bytes(r->x[i]->dl.dtype);
    }
    r->at[3] += out->strides[dim] * (int64_t)dt_bytes(out->dtype);
  }
  memcpy(r->at, start, sizeof start);
}

graft_status pw_reference(const graft_exec *exec, const void *args) {
  const graft_args *head = args;
  pw_run r = {.row = op_row(head->op_id)};
  if (!ref_texts_are_known(op_schema_of(head->op_id), args)) return GRAFT_UNIMPLEMENTED;
  collect(&r, op_schema_of(head->op_id), args);
  if (dt_category_of(r.c.compute) == DT_COMPLEX && !r.row->complex_) return GRAFT_UNIMPLEMENTED;
  for (int i = 0; i < r.count; i++) r.at[i] = r.x[i] ? ref_data(r.x[i]) : NULL;
  r.at[3] = ref_data(r.out);
  run_dim(&r, 0);
  return r.c.error ? err_about(GRAFT_INVALID_ARGUMENT, op_schema_of(head->op_id)->name, "%s", r.c.error) : GRAFT_OK;
}
