/* The ways beside a slot: decomposition on the device, the reference kernels in host memory. */
#include <string.h>

#include "dispatch/state.h"
#include "ops/generated/fx_ops.h"
#include "tensor/copy.h"

/* --- results --- */

static bool shares_memory(const dsp_plan *plan, const graft_value *args, const graft_tensor *result) {
  for (uint32_t a = 0; a < plan->call.schema->nargs; a++) {
    if (args[a].kind == GRAFT_VALUE_TENSOR && args[a].as.tensor && args[a].as.tensor->storage == result->storage)
      return true;
    for (uint32_t i = 0; args[a].kind == GRAFT_VALUE_TENSORS && i < args[a].count; i++) {
      const graft_tensor *item = args[a].as.tensors[i];
      if (item && item->storage == result->storage) return true;
    }
  }
  return false;
}

/* Gives a result to its place: the caller's tensor, or a new one with the strides that infer promised. */
static graft_status deliver(dsp_plan *plan, const graft_value *args, uint32_t i, graft_tensor *result,
                            graft_tensor **out) {
  const graft_meta *meta = &plan->out_metas[i];
  if (*out) return *out == result ? GRAFT_OK : graft_tensor_copy(*out, result);
  bool fits = result->device == plan->device && !(result->flags & (TNS_CONJ | TNS_NEG));
  if (!plan->call.dynamic) {
    fits &= result->dtype == meta->dtype && result->ndim == meta->ndim &&
            !memcmp(result->sizes, meta->sizes, (size_t)meta->ndim * 8) &&
            !memcmp(result->strides, meta->strides, (size_t)meta->ndim * 8);
  }
  /* The result of an op that is no view never shares memory with an input. */
  if (fits && !shares_memory(plan, args, result)) {
    graft_tensor_retain(result);
    *out = result;
    return GRAFT_OK;
  }
  graft_tensor *made;
  graft_status status = plan->call.dynamic
                            ? graft_tensor_empty(plan->device, meta->dtype, result->ndim, result->sizes, &made)
                            : dsp_new_output(plan, i, &made);
  if (status) return status;
  status = graft_tensor_copy(made, result);
  if (status)
    graft_tensor_release(made);
  else
    *out = made;
  return status;
}

/* On failure outputs that were not given are NULL again. */
static graft_status deliver_all(dsp_plan *plan, const graft_value *args, graft_tensor **results, graft_tensor **outs) {
  graft_status status = GRAFT_OK;
  uint32_t i = 0;
  for (; i < plan->nouts && !status; i++) {
    if (!plan->out_wanted[i]) continue;
    if (!results[i]) {
      status = err_about(GRAFT_INTERNAL, plan->call.schema->name, "its decomposition gave no output %u", i);
      break;
    }
    bool given = outs[i] != NULL;
    status = deliver(plan, args, i, results[i], &outs[i]);
    if (given) results[i] = NULL; /* from here on: what was made */
  }
  while (status && i-- > 0) {
    if (!results[i] || !outs[i]) continue;
    graft_tensor_release(outs[i]);
    outs[i] = NULL;
  }
  return status;
}

/* --- decomposition --- */

/* A list of tensors with each item made another one. */
typedef graft_tensor *(*each_fn)(fx *s, graft_tensor *item, const void *how);
static void each_tensor(fx *s, arena *memory, graft_value *v, each_fn make, const void *how) {
  if (v->kind == GRAFT_VALUE_TENSOR) v->as.tensor = make(s, v->as.tensor, how);
  if (v->kind != GRAFT_VALUE_TENSORS) return;
  graft_tensor **items = arena_take(memory, v->count * sizeof *items);
  if (!items) {
    fx_fail(s, err_set(GRAFT_OUT_OF_MEMORY, "no host memory for a list of tensors"));
    return;
  }
  for (uint32_t i = 0; i < v->count; i++) items[i] = make(s, v->as.tensors[i], how);
  v->as.tensors = items;
}

/* To what a slot would see, and from there to what is computed in. A number of rank 0 is not rounded to a half type. */
typedef struct conversion {
  graft_dtype seen, target;
} conversion;

static graft_tensor *converted(fx *s, graft_tensor *t, const void *how) {
  const conversion *to = how;
  return fx_cast(s, t && t->ndim ? fx_cast(s, t, to->seen) : t, to->target);
}

/* Half types are widened once before a decomposition and rounded once after it, so that intermediate results lose
 * nothing; other inputs are brought to the compute dtype as a slot would see them. */
static void convert_inputs(fx *s, op_call *call) {
  bool widen = dt_is_half(call->compute) && !(call->def->flags & OP_NO_WIDEN);
  const conversion to = {call->compute, widen ? GRAFT_F32 : call->compute};
  for (uint32_t i = 0; to.target && i < call->schema->nargs; i++) {
    char role = op_role(call->schema, call->def, i);
    if (role == 'b' || role == 'v') each_tensor(s, call->lists, &call->args[i], converted, &to);
  }
  call->compute = to.target;
}

void dsp_decompose(fx *s, op_call *call, graft_tensor **results, uint32_t nresults) {
  convert_inputs(s, call);
  if (s->status) return;
  if (call->def->decompose) {
    call->def->decompose(s, call, results);
    return;
  }
  /* A half type that the slot does not take: the same op, wider. */
  for (uint32_t i = 0; i < call->schema->nargs; i++) { /* else it would ask for the half type again */
    if (call->args[i].kind == GRAFT_VALUE_DTYPE && dt_is_half(call->args[i].as.dtype))
      op_set_dtype(call, (int)i, GRAFT_F32);
  }
  fx_call(s, call->schema->id, call->args, call->schema->nargs, results, nresults);
}

graft_status dsp_run_decomposition(dsp_plan *plan, const graft_value *args, graft_tensor **outs) {
  dsp_room room;
  arena memory = ARENA_IN(room.bytes);
  op_call call = plan->call;
  call.lists = &memory;
  for (uint32_t i = 0; i < call.schema->nargs; i++) {
    graft_value_kind kind = call.args[i].kind;
    if (kind == GRAFT_VALUE_TENSOR || kind == GRAFT_VALUE_TENSORS || kind == GRAFT_VALUE_GENERATOR ||
        (kind == GRAFT_VALUE_SCALAR && call.schema->args[i].kind == OPK_TENSOR) || plan->late >> i & 1) {
      call.args[i] = args[i];
    }
  }
  graft_tensor **results = arena_take(&memory, plan->nouts * sizeof *results);
  if (!results) return err_about(GRAFT_OUT_OF_MEMORY, call.schema->name, "no host memory for results");
  if (plan->in_order) memcpy(results, outs, plan->nouts * sizeof *results);
  bool grad = graft_grad_mode_set(false);
  const dsp_decomposing before = dsp_inside;
  /* Done item by item it can't be done again. */
  dsp_inside = (dsp_decomposing){.device = plan->device->dtypes && !plan->in_order ? plan->device : NULL};
  fx s;
  fx_begin(&s, &fx_execute);
  dsp_decompose(&s, &call, results, plan->nouts);
  if (!s.status) s.status = deliver_all(plan, args, results, outs);
  graft_status status = fx_end(&s);
  dsp_inside = (dsp_decomposing){before.device, dsp_inside.refused};
  graft_grad_mode_set(grad);
  arena_free(&memory);
  /* The failing op may be one that the caller never named. */
  return status ? err_attribute(status, plan->call.schema->name) : GRAFT_OK;
}

/* --- the reference device --- */

static graft_tensor *to_reference(fx *s, graft_tensor *t, const void *how) {
  (void)how;
  graft_tensor *moved = NULL;
  if (!t || s->status) return NULL;
  graft_status status = tns_to(t, graft_device_reference(), GRAFT_DTYPE_NONE, &moved);
  if (status) fx_fail(s, status);
  return fx_own(s, moved);
}

static void move_inputs(fx *s, const dsp_plan *plan, graft_value *args, arena *memory) {
  for (uint32_t i = 0; i < plan->call.schema->nargs; i++) {
    each_tensor(s, memory, &args[i], to_reference, NULL);
    if (args[i].kind == GRAFT_VALUE_GENERATOR) args[i] = (graft_value){0};
    if (args[i].kind == GRAFT_VALUE_DEVICE || plan->call.schema->args[i].kind == OPK_DEVICE) {
      args[i] = (graft_value){GRAFT_VALUE_DEVICE, 0, {.device = graft_device_reference()}};
    }
  }
}

/* Arguments that the op wrote come back. */
static void return_mutated(fx *s, const dsp_plan *plan, const graft_value *args, const graft_value *moved) {
  for (uint32_t i = 0; i < plan->call.schema->nargs && !s->status; i++) {
    if (!op_call_writes(&plan->call, i) || args[i].kind != GRAFT_VALUE_TENSOR) continue;
    graft_status status = graft_tensor_copy(args[i].as.tensor, moved[i].as.tensor);
    if (status) fx_fail(s, status);
  }
}

graft_status dsp_run_reference(dsp_plan *plan, const graft_value *args, graft_tensor **outs) {
  graft_value moved[OP_MAX_ARGS];
  uint32_t nargs = plan->call.schema->nargs;
  memcpy(moved, args, nargs * sizeof *moved);
  dsp_room room;
  arena memory = ARENA_IN(room.bytes);
  graft_tensor **results = arena_take(&memory, plan->nouts * sizeof *results);
  if (!results) return err_about(GRAFT_OUT_OF_MEMORY, plan->call.schema->name, "no host memory for results");
  dsp_philox_override before = dsp_philox;
  if (!before.active && (plan->call.schema->flags & OPF_RANDOM)) {
    graft_generator *generator = &plan->device->generator;
    for (uint32_t i = 0; i < nargs; i++) {
      if (args[i].kind == GRAFT_VALUE_GENERATOR) generator = args[i].as.generator;
    }
    dsp_philox.active = true;
    dev_generator_draw(generator, plan->call.draws, &dsp_philox.seed, &dsp_philox.offset);
  }
  bool grad = graft_grad_mode_set(false);
  fx s;
  fx_begin(&s, &fx_execute);
  move_inputs(&s, plan, moved, &memory);
  fx_call(&s, plan->call.schema->id, moved, nargs, results, plan->nouts);
  dsp_philox = before;
  return_mutated(&s, plan, args, moved);
  if (!s.status) s.status = deliver_all(plan, args, results, outs);
  graft_status status = fx_end(&s);
  graft_grad_mode_set(grad);
  arena_free(&memory);
  return status;
}
