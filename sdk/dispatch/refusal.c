/* Whether a rule refused a call for the dtype of its values: asked of the rule itself, by the same call in other
 * dtypes. */
#include <string.h>

#include "base/error.h"
#include "dispatch/dispatch.h"
#include "dispatch/plan.h"
#include "graft/bridge.h"

/* One for each category: what an op takes at all, it takes of one of these. */
static const graft_dtype tried[] = {GRAFT_F32, GRAFT_I64, GRAFT_C64, GRAFT_BOOL};
enum { TRIED = sizeof tried / sizeof *tried };

typedef struct question {
  const op_schema *schema;
  const op_def *def;
  const graft_value *args;
  uint32_t nargs;
  arena *memory;
  graft_dtype from; /* the dtype that may be what is refused */
} question;

/* No indices, and no condition: of lists alone what keeps its dtype is broadcast and computed with, too. */
static bool holds_values(const question *q, uint32_t arg) {
  const char role = op_role(q->schema, q->def, arg);
  return role != 'i' && (role != 'c' || q->schema->args[arg].kind == OPK_TENSORS);
}

static bool has_dtype(const graft_value *v, graft_dtype dtype) {
  if (v->kind == GRAFT_VALUE_TENSOR) return v->as.tensor && v->as.tensor->dtype == dtype;
  for (uint32_t i = 0; v->kind == GRAFT_VALUE_TENSORS && i < v->count; i++) {
    if (v->as.tensors[i] && v->as.tensors[i]->dtype == dtype) return true;
  }
  return false;
}

/* The dtype of value n, counted over tensors and items of lists, then over dtypes that are arguments; NONE: there are
 * not as many. */
static graft_dtype dtype_of_value(const question *q, uint32_t n) {
  for (uint32_t i = 0; i < q->nargs; i++) {
    const graft_value *v = &q->args[i];
    if (!holds_values(q, i)) continue;
    for (uint32_t j = 0; v->kind == GRAFT_VALUE_TENSORS && j < v->count; j++) {
      if (v->as.tensors[j] && n-- == 0) return v->as.tensors[j]->dtype;
    }
    if (v->kind == GRAFT_VALUE_TENSOR && v->as.tensor && n-- == 0) return v->as.tensor->dtype;
  }
  for (uint32_t i = 0; i < q->nargs; i++) {
    if (q->args[i].kind == GRAFT_VALUE_DTYPE && n-- == 0) return q->args[i].as.dtype;
  }
  return GRAFT_DTYPE_NONE;
}

/* A tensor that a rule takes for the one given, but for its dtype; rules look at no memory. NULL without memory for it.
 */
static graft_tensor *in_dtype(const question *q, graft_tensor *t, graft_dtype dtype) {
  if (!t || t->dtype != q->from) return t;
  graft_tensor *copy = arena_copy(q->memory, t, sizeof *t);
  if (copy) copy->dtype = dtype;
  return copy;
}

/* A number beside the tensors may be what is refused: 1 is not. One in a tensor's place promotes with them: true does
 * not. */
static graft_value number_like(const question *q, uint32_t arg, graft_value v, bool promoting) {
  graft_scalar *ones = NULL;
  if (v.kind == GRAFT_VALUE_SCALARS && !promoting) ones = arena_take(q->memory, v.count * sizeof *ones);
  for (uint32_t i = 0; ones && i < v.count; i++) ones[i] = graft_scalar_int(1);
  if (ones) v.as.scalars = ones;
  const bool promotes = q->schema->args[arg].kind == OPK_TENSOR;
  if (v.kind != GRAFT_VALUE_SCALAR || promotes != promoting || v.as.scalar.dtype == GRAFT_BOOL) return v;
  v.as.scalar = promoting ? graft_scalar_bool(true) : graft_scalar_int(1);
  return v;
}

static bool change_values(const question *q, graft_dtype to, graft_value *args) {
  for (uint32_t i = 0; i < q->nargs; i++) {
    graft_value *v = &args[i];
    *v = number_like(q, i, *v, true);
    if (v->kind == GRAFT_VALUE_DTYPE) v->as.dtype = to;
    if (!holds_values(q, i)) continue;
    if (v->kind == GRAFT_VALUE_TENSOR && v->as.tensor && !(v->as.tensor = in_dtype(q, v->as.tensor, to))) return false;
    if (v->kind != GRAFT_VALUE_TENSORS) continue;
    graft_tensor **items = arena_copy(q->memory, v->as.tensors, v->count * sizeof *items);
    if (!items) return false;
    for (uint32_t j = 0; j < v->count; j++) {
      if (v->as.tensors[j] && !(items[j] = in_dtype(q, v->as.tensors[j], to))) return false;
    }
    v->as.tensors = items;
  }
  return true;
}

static bool is_taken(const question *q, const graft_value *args) {
  dsp_room room;
  arena lists = ARENA_IN(room.bytes);
  op_call call = {.lists = &lists};
  const graft_status status = dsp_infer(&call, q->schema, args, q->nargs);
  arena_free(&lists);
  return status == GRAFT_OK;
}

static bool is_taken_in(const question *q, const graft_value *numbers, graft_dtype to) {
  graft_value args[OP_MAX_ARGS];
  for (uint32_t i = 0; to != q->from && i < q->nargs; i++) {
    if (has_dtype(&q->args[i], to)) return false; /* values of two dtypes would come to agree: another refusal */
  }
  memcpy(args, numbers, q->nargs * sizeof *args);
  return change_values(q, to, args) && is_taken(q, args);
}

/* Whether the call is taken where the values of one dtype have another, or numbers that promote have none. */
static bool takes_another(question *q, const graft_value *numbers) {
  uint64_t seen = 0;
  for (uint32_t n = 0; (q->from = dtype_of_value(q, n)); n++) {
    if (seen >> dt_number(q->from) & 1) continue;
    seen |= UINT64_C(1) << dt_number(q->from);
    if (is_taken_in(q, numbers, q->from)) return true;
    for (uint32_t i = 0; i < TRIED; i++) {
      if (tried[i] != q->from && is_taken_in(q, numbers, tried[i])) return true;
    }
  }
  return false;
}

bool graft_refuses_dtype(uint32_t op_id, const graft_value *args, uint32_t nargs) {
  if (nargs && err_is_null(args, __func__, "args")) return false;
  const op_schema *schema = op_schema_of(op_id);
  const op_def *def = op_def_of(op_id);
  if (!schema || !def || !def->infer || nargs > schema->nargs) return false;
  arena memory = {0};
  question q = {schema, def, args, nargs, &memory, GRAFT_DTYPE_NONE};
  graft_value numbers[OP_MAX_ARGS];
  for (uint32_t i = 0; i < nargs; i++) numbers[i] = number_like(&q, i, args[i], false);
  const bool of_dtype = !is_taken(&q, args) && !is_taken(&q, numbers) && takes_another(&q, numbers);
  arena_free(&memory);
  return of_dtype;
}
