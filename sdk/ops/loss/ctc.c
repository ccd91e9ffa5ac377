/* Connectionist temporal classification: the likelihood of a sequence of labels under per-step class probabilities,
 * over all ways to place its labels, in order, with blanks between them (Graves et al., ICML 2006).
 *
 * An entry of L labels has 2L + 1 states: blank, label, blank, ..., blank. alpha[t][s] is the log likelihood of all
 * that ends in state s at step t, beta[t][s] of all that begins there. What lies beyond an entry's own steps and states
 * is -inf in both. */
#include "ops/core/ref.h"
#include "ops/core/table.h"
#include "ops/generated/fx_ops.h"

/* --- rules --- */

static graft_status check_lengths(const op_call *c, const char *name, const graft_value *list, int64_t batch,
                                  int64_t most) {
  if (list->count != batch)
    return op_error(c, "%s has %u items; expected one for each of the %lld entries", name, list->count,
                    (long long)batch);
  for (uint32_t i = 0; i < list->count; i++) {
    if (list->as.ints[i] < 0 || list->as.ints[i] > most) {
      return op_error(c, "%s[%u] is %lld; expected 0 to %lld", name, i, (long long)list->as.ints[i], (long long)most);
    }
  }
  return GRAFT_OK;
}

/* Labels are rows of a matrix, or all entries' own one after the other. */
static graft_status check_targets(const op_call *c, const graft_tensor *targets, const graft_value *lengths,
                                  int64_t batch) {
  if (targets->ndim == 2) {
    if (targets->sizes[0] == batch) return GRAFT_OK;
  } else if (targets->ndim == 1) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < lengths->count; i++) sum += lengths->as.ints[i];
    if (targets->sizes[0] == sum) return GRAFT_OK;
  }
  return op_error(c, "expected targets of a row for each entry, or of rank 1 with as many as all lengths together (%s)",
                  op_show_tensors(c));
}

/* The arguments by name, which both directions have. */
static graft_status check_ctc(op_call *c, const graft_tensor *log_probs, const graft_tensor *targets) {
  int at = op_arg_named(c->schema, "log_probs");
  if (log_probs->dtype != GRAFT_F32 && log_probs->dtype != GRAFT_F64 && log_probs->dtype != GRAFT_WIDE)
    return op_refuse(c, at, "f32 or f64");
  if (targets->dtype != GRAFT_I64 && targets->dtype != GRAFT_I32) return op_refuse(c, at + 1, "i64 or i32");
  if (log_probs->ndim != 3) return op_refuse(c, at, "[steps, batch, classes]");
  if (!log_probs->numel) return op_refuse(c, at, "elements");
  const graft_value *steps = op_value_named(c->schema, c->args, "input_lengths"),
                    *labels = op_value_named(c->schema, c->args, "target_lengths"),
                    *blank = op_value_named(c->schema, c->args, "blank");
  if (blank->as.i < 0 || blank->as.i >= log_probs->sizes[2])
    return op_error(c, "blank is %lld; expected 0 to %lld", (long long)blank->as.i, (long long)log_probs->sizes[2] - 1);
  graft_status status = check_lengths(c, "input_lengths", steps, log_probs->sizes[1], log_probs->sizes[0]);
  int64_t most = targets->ndim == 2 ? targets->sizes[1] : targets->numel;
  if (!status) status = check_lengths(c, "target_lengths", labels, log_probs->sizes[1], most);
  if (!status) status = check_targets(c, targets, labels, log_probs->sizes[1]);
  c->compute = log_probs->dtype;
  return status;
}

static int64_t states_of(const int64_t *lengths, uint64_t count) {
  int64_t most = 0;
  for (uint64_t i = 0; i < count; i++) most = lengths[i] > most ? lengths[i] : most;
  return 2 * most + 1;
}

static graft_status infer_ctc(op_call *c) {
  const in_ctc_loss in = in_ctc_loss_of(c->args);
  graft_status status = check_ctc(c, in.log_probs, in.targets);
  if (status) return status;
  const int64_t *sizes = in.log_probs->sizes;
  const int64_t alpha[] = {sizes[1], sizes[0], states_of(in.target_lengths, in.target_lengths_count)};
  op_out(c, OUT_ctc_loss_out0, in.log_probs->dtype, 1, &sizes[1]);
  op_out(c, OUT_ctc_loss_out1, in.log_probs->dtype, 3, alpha);
  return GRAFT_OK;
}

static graft_status infer_ctc_backward(op_call *c) {
  const in_ctc_loss_backward in = in_ctc_loss_backward_of(c->args);
  graft_status status = check_ctc(c, in.log_probs, in.targets);
  if (status) return status;
  const int64_t *sizes = in.log_probs->sizes;
  const int64_t alpha[] = {sizes[1], sizes[0], states_of(in.target_lengths, in.target_lengths_count)};
  bool fits = tns_has_sizes(in.grad, 1, &sizes[1]) && tns_has_sizes(in.neg_log_likelihood, 1, &sizes[1]) &&
              tns_has_sizes(in.log_alpha, 3, alpha);
  if (!fits) return op_error(c, "expected what the forward op gives for these sizes (%s)", op_show_tensors(c));
  bool same =
      in.grad->dtype == c->compute && in.neg_log_likelihood->dtype == c->compute && in.log_alpha->dtype == c->compute;
  if (!same) return op_error(c, "expected one dtype for all but targets (%s)", op_show_tensors(c));
  op_out(c, OUT, in.log_probs->dtype, 3, sizes);
  return GRAFT_OK;
}

/* --- kernels --- */

typedef struct ctc {
  int64_t batch, classes, states, blank; /* states: along a row of alpha */
  const graft_tensor_desc *targets;
  const int64_t *steps, *labels; /* of each entry */
  ref_array p, target;
} ctc;

static void ctc_end(ctc *c) {
  ref_free(&c->p);
  ref_free(&c->target);
}

static graft_status ctc_begin(ctc *c, const graft_tensor_desc *log_probs, const graft_tensor_desc *targets,
                              graft_int_list steps, graft_int_list labels, int64_t blank) {
  const int64_t *sizes = log_probs->dl.shape;
  *c = (ctc){sizes[1],
             sizes[2],
             states_of(labels.items, labels.count),
             blank,
             targets,
             steps.items,
             labels.items,
             ref_read(log_probs),
             ref_read(targets)};
  return c->p.re && c->target.re ? GRAFT_OK : ref_no_memory();
}

/* One entry: its states and the class of each. */
typedef struct entry {
  int64_t n, steps, states, *class;
} entry;

static graft_status entry_begin(const ctc *c, int64_t n, entry *e) {
  int64_t first = 0;
  *e = (entry){n, c->steps[n], 2 * c->labels[n] + 1, calloc((size_t)(2 * c->labels[n] + 1), sizeof *e->class)};
  if (!e->class) return ref_no_memory();
  for (int64_t i = 0; i < n; i++) first += c->targets->dl.ndim == 2 ? c->targets->dl.shape[1] : c->labels[i];
  for (int64_t s = 0; s < e->states; s++) {
    e->class[s] = s % 2 ? (int64_t)c->target.re[first + s / 2] : c->blank;
    if (e->class[s] < 0 || e->class[s] >= c->classes) {
      return err_set(GRAFT_OUT_OF_RANGE, "label %lld of entry %lld is %lld; expected 0 to %lld", (long long)s / 2,
                     (long long)n, (long long)e->class[s], (long long)c -> classes - 1);
    }
  }
  return GRAFT_OK;
}

static void entry_end(entry *e) {
  free(e->class);
}

static ref_real log_prob(const ctc *c, const entry *e, int64_t t, int64_t s) {
  return c->p.re[(t * c->batch + e->n) * c->classes + e->class[s]];
}

static ref_real log_add(ref_real a, ref_real b) {
  ref_real most = fmaxl(a, b);
  if (isinf(most) || isnan(a) || isnan(b)) return isnan(a) || isnan(b) ? NAN : most;
  return most + log1pl(expl(fminl(a, b) - most));
}

/* What leads from the states of one step to state s of the next: s itself, the one beside it, and the one behind that
 * where both are labels and differ. `way` is -1 from step to step (alpha), 1 back (beta). */
static ref_real reached(const entry *e, const ref_real *from, int64_t s, int way) {
  int64_t beside = s + way, behind = s + 2 * way;
  ref_real sum = from[s];
  if (beside >= 0 && beside < e->states) sum = log_add(sum, from[beside]);
  if (behind >= 0 && behind < e->states && e->class[behind] != e->class[s]) sum = log_add(sum, from[behind]);
  return sum;
}

/* Fills an entry's rows of alpha (way -1) or beta (way 1); `rows` begins as -inf. */
static void walk_steps(const ctc *c, const entry *e, ref_real *rows, int way) {
  for (int64_t i = 0; i < e->steps; i++) {
    int64_t t = way < 0 ? i : e->steps - 1 - i;
    for (int64_t s = 0; s < e->states; s++) {
      int64_t from_end = way < 0 ? s : e->states - 1 - s;
      ref_real before = i ? reached(e, rows + (t + way) * c->states, s, way) : from_end < 2 ? 0 : -INFINITY;
      rows[t * c->states + s] = before + log_prob(c, e, t, s);
    }
  }
}

static ref_array full_of_nothing(int64_t count) {
  ref_array a = ref_new(count, false);
  for (int64_t i = 0; a.re && i < count; i++) a.re[i] = -INFINITY;
  return a;
}

static ref_real likelihood(const ctc *c, const entry *e, const ref_real *alpha) {
  if (!e->steps) return e->states == 1 ? 0 : -INFINITY;
  const ref_real *last = alpha + (e->steps - 1) * c->states + e->states - 1;
  return e->states == 1 ? last[0] : log_add(last[0], last[-1]);
}

graft_status kernel_ctc_loss(const graft_exec *exec, const graft_args_ctc_loss *a) {
  __attribute__((cleanup(ctc_end))) ctc c;
  graft_status status = ctc_begin(&c, a->log_probs, a->targets, a->input_lengths, a->target_lengths, a->blank);
  REF_OWNED ref_array alpha = full_of_nothing(ref_numel(a->out1)), loss = ref_new(c.batch, false);
  if (!alpha.re || !loss.re) status = ref_no_memory();
  int64_t each = c.batch ? alpha.count / c.batch : 0;
  for (int64_t n = 0; n < c.batch && !status; n++) {
    __attribute__((cleanup(entry_end))) entry e = {0};
    status = entry_begin(&c, n, &e);
    if (status) break;
    walk_steps(&c, &e, alpha.re + n * each, -1);
    loss.re[n] = -likelihood(&c, &e, alpha.re + n * each);
  }
  if (!status) ref_write(a->out0, &loss);
  if (!status) ref_write(a->out1, &alpha);
  return status;
}

/* Of each class at a step: its probability, less the share of the likelihood that passes through it. */
static void slopes(const ctc *c, const entry *e, const ref_real *alpha, const ref_real *beta, ref_real loss, ref_real g,
                   ref_real *out) {
  for (int64_t t = 0; t < e->steps; t++) {
    ref_real *row = out + (t * c->batch + e->n) * c->classes;
    const ref_real *p = c->p.re + (t * c->batch + e->n) * c->classes;
    for (int64_t k = 0; k < c->classes; k++) row[k] = -INFINITY;
    for (int64_t s = 0; s < e->states; s++) {
      ref_real through = alpha[t * c->states + s] + beta[t * c->states + s];
      row[e->class[s]] = log_add(row[e->class[s]], through);
    }
    for (int64_t k = 0; k < c->classes; k++) row[k] = (expl(p[k]) - expl(row[k] + loss - p[k])) * g;
  }
}

graft_status kernel_ctc_loss_backward(const graft_exec *exec, const graft_args_ctc_loss_backward *a) {
  __attribute__((cleanup(ctc_end))) ctc c;
  graft_status status = ctc_begin(&c, a->log_probs, a->targets, a->input_lengths, a->target_lengths, a->blank);
  REF_OWNED ref_array g = ref_read(a->grad), loss = ref_read(a->neg_log_likelihood), alpha = ref_read(a->log_alpha),
                      out = ref_new(ref_numel(a->out), false);
  if (!g.re || !loss.re || !alpha.re || !out.re) status = ref_no_memory();
  int64_t each = c.batch ? alpha.count / c.batch : 0;
  for (int64_t n = 0; n < c.batch && !status; n++) {
    if (a->zero_infinity && loss.re[n] == INFINITY) continue;
    __attribute__((cleanup(entry_end))) entry e = {0};
    REF_OWNED ref_array beta = full_of_nothing(each);
    status = beta.re ? entry_begin(&c, n, &e) : ref_no_memory();
    if (status) break;
    walk_steps(&c, &e, beta.re, 1);
    slopes(&c, &e, alpha.re + n * each, beta.re, loss.re[n], g.re[n], out.re);
  }
  if (!status) ref_write(a->out, &out);
  return status;
}

/* --- gradient --- */

static void vjp_ctc(op_vjp *v) {
  const in_ctc_loss in = in_ctc_loss_of(v->args);
  if (!v->g[OUT_ctc_loss_out0]) return;
  v->results[ARG_ctc_loss_log_probs] =
      fx_ctc_loss_backward(v->s, v->g[OUT_ctc_loss_out0], in.log_probs, in.targets, in.input_lengths,
                           in.input_lengths_count, in.target_lengths, in.target_lengths_count,
                           v->outs[OUT_ctc_loss_out0], v->outs[OUT_ctc_loss_out1], in.blank, in.zero_infinity);
}

static const op_def defs[] = {
    {.op_id = OP_WITH_KERNEL(ctc_loss),
     .roles = "vk",
     .infer = infer_ctc,
     .vjp = vjp_ctc,
     .saves = OP_SAVE_ARGS(ctc_loss, log_probs, targets) | OP_SAVE_OUT(ctc_loss, out0) | OP_SAVE_OUT(ctc_loss, out1),
     .without_grad = OP_OUT_BIT(ctc_loss, out1)},
    {.op_id = OP_WITH_KERNEL(ctc_loss_backward), .roles = "vvkvv", .infer = infer_ctc_backward},
};
OP_TABLE(loss_ctc, defs)
