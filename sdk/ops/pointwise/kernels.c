/* The loop over elements that the reference kernels of pointwise ops have in common. */
#include <string.h>

#include "ops/pointwise/pointwise.h"

enum { PW_OPERANDS = 3, PW_PLACES = PW_OPERANDS + 1, PW_TOGETHER = 64 };

/* What an element is computed by. */
typedef enum pw_way { PW_BY_REAL, PW_BY_INTEGER, PW_BY_COMPLEX } pw_way;

typedef struct pw_run {
  const pw_row *row;
  pw_context c;
  int count;
  pw_way way;
  const graft_tensor_desc *x[PW_OPERANDS];
  const graft_tensor_desc *out;
  char *at[PW_PLACES]; /* operands, then the output */
  /* The elements lie in rows, along which each place has one step. */
  int32_t outer; /* the dims that are no part of a row */
  int64_t length, step[PW_PLACES];
  /* The operands of so many elements; numbers stand there from the beginning. */
  union {
    long double real[PW_TOGETHER][PW_OPERANDS];
    dt_value pair[PW_TOGETHER][PW_OPERANDS];
  } v;
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

static pw_way way_of(const pw_run *r) {
  dt_category category = dt_category_of(r->c.compute);
  for (int i = 0; i < r->count; i++) {
    if (r->x[i] && dt_is_complex(r->x[i]->dl.dtype)) category = DT_COMPLEX; /* logical ops take operands as they are */
  }
  bool pairs = !r->row->real && !r->row->integer; /* of real operands, too */
  if ((category == DT_COMPLEX || pairs) && r->row->complex_) return PW_BY_COMPLEX;
  return category <= DT_INTEGER && r->row->integer ? PW_BY_INTEGER : PW_BY_REAL;
}

static long double by_integer(pw_run *r, const long double *x) {
  int64_t values[PW_OPERANDS] = {0};
  for (int i = 0; i < r->count; i++) values[i] = as_integer(r, x[i]);
  int64_t result = r->row->integer(values, &r->c);
  return r->c.is_u64 ? (long double)(uint64_t)result : (long double)result;
}

/* Where the values of an operand stand. Only ops of pairs see imaginary parts. */
static dt_parts values_of(pw_run *r, int operand) {
  if (r->way != PW_BY_COMPLEX) return (dt_parts){&r->v.real[0][operand], NULL, PW_OPERANDS};
  dt_value *first = &r->v.pair[0][operand];
  return (dt_parts){&first->re, &first->im, PW_OPERANDS * dt_parts_of(first).step};
}

static void compute(pw_run *r, int64_t count, char *to) {
  const int64_t step = r->step[PW_OPERANDS];
  if (r->way == PW_BY_COMPLEX) {
    dt_value results[PW_TOGETHER];
    for (int64_t i = 0; i < count; i++) results[i] = r->row->complex_(r->v.pair[i], &r->c);
    dt_store_row(r->out->dl.dtype, to, step, count, dt_parts_of(results));
    return;
  }
  long double results[PW_TOGETHER];
  for (int64_t i = 0; i < count; i++) {
    const long double *x = r->v.real[i];
    results[i] = r->way == PW_BY_INTEGER ? by_integer(r, x) : r->row->real(x, &r->c);
  }
  dt_store_row(r->out->dl.dtype, to, step, count, (dt_parts){results, NULL, 1});
}

static void run_row(pw_run *r) {
  for (int64_t from = 0, count; from < r->length; from += count) {
    count = r->length - from < PW_TOGETHER ? r->length - from : PW_TOGETHER;
    for (int i = 0; i < r->count; i++) {
      if (!in_memory(r->x[i])) continue;
      dt_load_row(r->x[i]->dl.dtype, r->at[i] + from * r->step[i], r->step[i], count, values_of(r, i));
    }
    compute(r, count, r->at[PW_OPERANDS] + from * r->step[PW_OPERANDS]);
  }
}

/* In bytes; 0 of what does not lie in memory. */
static int64_t stride(const pw_run *r, int place, int32_t dim) {
  const graft_tensor_desc *d = place == PW_OPERANDS ? r->out : r->x[place];
  return d && in_memory(d) ? d->dl.strides[dim] * (int64_t)dt_bytes(d->dl.dtype) : 0;
}

/* The last dim, and those before it that all places follow without a gap. */
static void find_rows(pw_run *r) {
  r->length = 1;
  for (r->outer = r->out->dl.ndim; r->outer > 0; r->outer--) {
    int32_t dim = r->outer - 1;
    bool follows = r->length != 1;
    if (r->out->dl.shape[dim] == 1) continue;
    for (int i = 0; i < PW_PLACES; i++) {
      if (follows && stride(r, i, dim) != r->step[i] * r->length) return;
    }
    for (int i = 0; i < PW_PLACES && !follows; i++) r->step[i] = stride(r, i, dim);
    r->length *= r->out->dl.shape[dim];
  }
}

static void run_dim(pw_run *r, int32_t dim) {
  if (dim == r->outer) {
    run_row(r);
    return;
  }
  char *start[PW_PLACES];
  memcpy(start, r->at, sizeof start);
  for (int64_t n = 0; n < r->out->dl.shape[dim]; n++) {
    run_dim(r, dim + 1);
    for (int i = 0; i < PW_PLACES; i++) r->at[i] += stride(r, i, dim);
  }
  memcpy(r->at, start, sizeof start);
}

/* An operand that is a number is the same for all elements. */
static void place_number(pw_run *r, int operand) {
  const graft_tensor_desc *x = r->x[operand];
  dt_value value = dt_load(x->dl.dtype, r->at[operand]);
  const dt_parts to = values_of(r, operand);
  for (int64_t i = 0; i < PW_TOGETHER; i++) {
    to.re[i * to.step] = as_number(r, value.re);
    if (to.im) to.im[i * to.step] = as_number(r, value.im);
  }
}

graft_status pw_reference(const graft_exec *exec, const void *args) {
  const graft_args *head = args;
  pw_run r = {.row = op_row(head->op_id)};
  if (!ref_texts_are_known(op_schema_of(head->op_id), args)) return GRAFT_UNIMPLEMENTED;
  collect(&r, op_schema_of(head->op_id), args);
  if (dt_category_of(r.c.compute) == DT_COMPLEX && !r.row->complex_) return GRAFT_UNIMPLEMENTED;
  r.way = way_of(&r);
  for (int i = 0; i < r.count; i++) {
    r.at[i] = r.x[i] ? ref_data(r.x[i]) : NULL;
    if (r.x[i] && !in_memory(r.x[i])) place_number(&r, i);
  }
  r.at[PW_OPERANDS] = ref_data(r.out);
  find_rows(&r);
  run_dim(&r, 0);
  return r.c.error ? err_about(GRAFT_INVALID_ARGUMENT, op_schema_of(head->op_id)->name, "%s", r.c.error) : GRAFT_OK;
}
