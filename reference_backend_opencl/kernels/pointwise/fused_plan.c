/* When a kernel with reductions makes each value. What needs the result of a reduction waits until its row is over, so
 * a row is gone through in phases. A value of an earlier phase that a later one needs is read again where it is an
 * input, made again where that is little work, and else kept in memory of the work-item's own. */
#include <string.h>

#include "kernels/pointwise/fused.h"

static int larger(int a, int b) {
  return a > b ? a : b;
}

/* ---- the first phase of each value ---- */

static void place_op(ocl_fused_kernel *k, int number) {
  const ocl_fused_op *op = &k->ops[number];
  int phase = 0;
  for (int i = 0; i < op->operands.inputs; i++) {
    if (!ocl_is_value(op->operands.input[i])) phase = larger(phase, k->values[op->input_value[i]].phase);
  }
  k->values[op->value].phase = phase;
  if (op->recipe->second) k->values[op->second_value].phase = phase;
}

static void place_stage(ocl_fused_kernel *k, ocl_fused_stage *stage) {
  stage->phase = k->values[stage->source].phase;
  if (stage->shift >= 0) stage->phase = larger(stage->phase, k->stages[stage->shift].phase + 1);
  if (stage->value >= 0) k->values[stage->value].phase = stage->phase + 1;
}

/* Values stand in the order in which they are made. */
static void place_all(ocl_fused_kernel *k) {
  for (int s = 0; s < k->nstages; s++) k->stages[s].phase = -1;
  for (int v = 0; v < k->nvalues; v++) {
    if (k->values[v].op >= 0) place_op(k, k->values[v].op);
    for (int s = 0; s < k->nstages; s++) {
      if (k->stages[s].source <= v && k->stages[s].phase < 0) place_stage(k, &k->stages[s]);
    }
  }
}

/* ---- what is done in each ---- */

static bool is_shared(const ocl_fused_kernel *k, const graft_tensor_desc *output) {
  for (int i = 0; i < k->ninputs; i++) {
    if (k->inputs[i].desc->storage_id == output->storage_id) return true;
  }
  return false;
}

/* What it takes to make a value again, in calls. */
static int cost_of(const ocl_fused_kernel *k, int value) {
  enum { TOO_MUCH = 100 };
  const ocl_fused_value *v = &k->values[value];
  if (v->kept || v->input >= 0) return 0;
  const ocl_fused_op *op = &k->ops[v->op];
  int cost = op->cheap ? 1 : TOO_MUCH;
  for (int i = 0; i < op->operands.inputs && cost < TOO_MUCH; i++) {
    if (!ocl_is_value(op->operands.input[i])) cost += cost_of(k, op->input_value[i]);
  }
  return cost;
}

/* Columns have no memory of their own, nor do work-items that share a line; these may have all of it in registers. */
static bool is_made_again(const ocl_fused_kernel *k, int value) {
  enum { LITTLE = 3 };
  if (ocl_fused_has_teams(k)) return !k->held;
  return !k->space.rows || cost_of(k, value) <= LITTLE;
}

static void need_operands(ocl_fused_kernel *k, int phase, const ocl_fused_op *op) {
  for (int i = 0; i < op->operands.inputs; i++) {
    if (ocl_is_value(op->operands.input[i]) || k->values[op->input_value[i]].kept) continue;
    k->needed[phase][op->input_value[i]] = true;
  }
}

static bool keep(ocl_fused_kernel *k, int value) {
  ocl_fused_value *v = &k->values[value];
  k->needed[v->phase][value] = true;
  if (v->slot >= 0 || k->held) return true;
  if (k->nslots == OCL_FUSED_SLOTS) return false;
  v->slot = k->nslots;
  k->slots[k->nslots++] = value;
  return true;
}

static bool plan_phase(ocl_fused_kernel *k, int phase) {
  for (int v = k->nvalues - 1; v >= 0; v--) {
    if (!k->needed[phase][v] || k->values[v].op < 0) continue;
    if (k->values[v].phase == phase || is_made_again(k, v)) {
      k->runs[phase][k->values[v].op] = true;
      need_operands(k, phase, &k->ops[k->values[v].op]);
    } else if (!keep(k, v)) {
      return false;
    }
  }
  return true;
}

static int last_phase(const ocl_fused_kernel *k) {
  int last = 0;
  for (int s = 0; s < k->nstages; s++) last = larger(last, k->stages[s].phase);
  for (int i = 0; i < k->noutputs; i++) {
    if (k->outputs[i].view.whole) last = larger(last, k->values[k->outputs[i].value].phase);
  }
  return last;
}

bool ocl_fused_plan(ocl_fused_kernel *k) {
  place_all(k);
  const int last = last_phase(k);
  if (last >= OCL_FUSED_PHASES) return false;
  k->nphases = last + 1;
  for (int s = 0; s < k->nstages; s++) {
    const ocl_fused_stage *stage = &k->stages[s];
    if (!k->values[stage->source].kept) k->needed[stage->phase][stage->source] = true;
  }
  /* Memory that is read is not written before the last phase has read it. */
  for (int i = 0; i < k->noutputs; i++) {
    const ocl_fused_tensor *output = &k->outputs[i];
    if (!output->view.whole) continue;
    k->output_phase[i] = is_shared(k, output->desc) ? last : k->values[output->value].phase;
    if (!k->values[output->value].kept) k->needed[k->output_phase[i]][output->value] = true;
  }
  for (int phase = last; phase >= 0; phase--) {
    if (!plan_phase(k, phase)) return false;
  }
  return true;
}
