/* The ways beside a slot: decomposition on the device, the reference kernels in host memory. */
#include <stdlib.h>
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

/* Half types are widened once before a decomposition and rounded once after it, so that intermediate results lose
 * nothing; other inputs are brought to the compute dtype as a slot would see them. */
static void convert_inputs(fx *s, op_call *call, graft_tensor ***lists) {
  bool widen = dt_is_half(call->compute) && !(call->def->flags & OP_NO_WIDEN);
  graft_dtype target = widen ? GRAFT_F32 : call->compute;
  for (uint32_t i = 0; i < call->schema->nargs; i++) {
    graft_value *v = &call->args[i];
    char role = op_role(call->schema, call->def, i);
    if (!target || (role != 'b' && role != 'v')) continue;
    if (v->kind == GRAFT_VALUE_TENSOR) {
      v->as.tensor = fx_cast(s, v->as.tensor, target);
    } else if (v->kind == GRAFT_VALUE_TENSORS) {
      graft_tensor **items = calloc(v->count + 1, sizeof *items);
      lists[i] = items;
      for (uint32_t j = 0; items && j < v->count; j++) {
        items[j] = v->as.tensors[j] ? fx_cast(s, v->as.tensors[j], target) : NULL;
      }
      if (items) v->as.tensors = items;
    }
  }
  call->compute = target;
}

graft_status dsp_run_decomposition(dsp_plan *plan, const graft_value *args, graft_tensor **outs) {
  op_call call = plan->call;
  for (uint32_t i = 0; i < call.schema->nargs; i++) {
    graft_value_kind kind = call.args[i].kind;
    if (kind == GRAFT_VALUE_TENSOR || kind == GRAFT_VALUE_TENSORS || kind == GRAFT_VALUE_GENERATOR ||
        (kind == GRAFT_VALUE_SCALAR && call.schema->args[i].kind == OPK_TENSOR)) {
      call.args[i] = args[i];
    }
  }
  graft_tensor **lists[OP_MAX_ARGS] = {NULL};
  graft_tensor **results = calloc(plan->nouts + 1, sizeof *results);
  if (!results) return err_about(GRAFT_OUT_OF_MEMORY, call.schema->name, "no host memory for results");
  bool grad = graft_grad_mode_set(false);
  fx s;
  fx_begin(&s);
  convert_inputs(&s, &call, lists);
  if (plan->in_order) memcpy(results, outs, plan->nouts * sizeof *results);
  if (plan->call.def->decompose) {
    plan->call.def->decompose(&s, &call, results);
  } else { /* a half type that the slot does not take: the same op, wider */
    for (uint32_t i = 0; i < call.schema->nargs; i++) { /* else it would ask for the half type again */
      if (call.args[i].kind == GRAFT_VALUE_DTYPE && dt_is_half(call.args[i].as.dtype))
        op_set_dtype(&call, (int)i, GRAFT_F32);
    }
    fx_call(&s, call.schema->id, call.args, call.schema->nargs, results, plan->nouts);
  }
  if (!s.status) s.status = deliver_all(plan, args, results, outs);
  graft_status status = fx_end(&s);
  graft_grad_mode_set(grad);
  for (uint32_t i = 0; i < OP_MAX_ARGS; i++) free(lists[i]);
  free(results);
  /* The failing op may be one that the caller never named. */
  return status ? err_attribute(status, plan->call.schema->name) : GRAFT_OK;
}

/* --- the reference device --- */

static graft_tensor *to_reference(fx *s, graft_tensor *t) {
  graft_tensor *moved = NULL;
  if (!t || s->status) return NULL;
  graft_status status = tns_to(t, graft_device_reference(), GRAFT_DTYPE_NONE, &moved);
  if (status) fx_fail(s, status);
  return fx_own(s, moved);
}

static void move_inputs(fx *s, const dsp_plan *plan, graft_value *args, graft_tensor ***lists) {
  for (uint32_t i = 0; i < plan->call.schema->nargs; i++) {
    graft_value *v = &args[i];
    if (v->kind == GRAFT_VALUE_TENSOR) {
      v->as.tensor = to_reference(s, v->as.tensor);
    } else if (v->kind == GRAFT_VALUE_TENSORS) {
      graft_tensor **items = calloc(v->count + 1, sizeof *items);
      lists[i] = items;
      if (!items) {
        fx_fail(s, GRAFT_OUT_OF_MEMORY);
        return;
      }
      for (uint32_t j = 0; j < v->count; j++) items[j] = to_reference(s, v->as.tensors[j]);
      v->as.tensors = items;
    } else if (v->kind == GRAFT_VALUE_DEVICE || v->kind == GRAFT_VALUE_GENERATOR) {
      *v = (graft_value){0};
    }
    if (plan->call.schema->args[i].kind == OPK_DEVICE) {
      *v = (graft_value){GRAFT_VALUE_DEVICE, 0, {.device = graft_device_reference()}};
    }
  }
}

/* Arguments that the op wrote come back. */
static void return_mutated(fx *s, const dsp_plan *plan, const graft_value *args, const graft_value *moved) {
  for (uint32_t i = 0; i < plan->call.schema->nargs && !s->status; i++) {
    bool mutated = (plan->call.schema->mutates >> i & 1) || (plan->call.schema->args[i].flags & OPA_MUTATED);
    if (!mutated || args[i].kind != GRAFT_VALUE_TENSOR) continue;
    graft_status status = graft_tensor_copy(args[i].as.tensor, moved[i].as.tensor);
    if (status) fx_fail(s, status);
  }
}

graft_status dsp_run_reference(dsp_plan *plan, const graft_value *args, graft_tensor **outs) {
  graft_value moved[OP_MAX_ARGS];
  uint32_t nargs = plan->call.schema->nargs;
  memcpy(moved, args, nargs * sizeof *moved);
  graft_tensor **lists[OP_MAX_ARGS] = {NULL};
  graft_tensor **results = calloc(plan->nouts + 1, sizeof *results);
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
  fx_begin(&s);
  move_inputs(&s, plan, moved, lists);
  fx_call(&s, plan->call.schema->id, moved, nargs, results, plan->nouts);
  dsp_philox = before;
  return_mutated(&s, plan, args, moved);
  if (!s.status) s.status = deliver_all(plan, args, results, outs);
  graft_status status = fx_end(&s);
  graft_grad_mode_set(grad);
  for (uint32_t i = 0; i < nargs; i++) free(lists[i]);
  free(results);
  return status;
}
