/* What the host does for an op, whatever its numbers are: what its rule says of a call, which calls its decomposition
 * makes, and which its gradients. A formula that another replaces may be as right, and may round otherwise, take
 * longer, or be wrong where no case's numbers show it; formulas.txt has a digest of each, over the suite's calls at
 * level mustpass and the first of these in other dtypes, so that none changes unseen.
 *
 *     test_formulas                compares; --op LIST: of these ops, as the suite names them
 *     test_formulas --write FILE   writes the table anew: after a change that is meant, and for new cases
 *     test_formulas --show OP      prints what the digests of an op are of
 */
#include "digests.h"
#include "shapes.h"

#define TABLE GRAFT_SOURCE_DIR "/tests/formulas.txt"

enum { TENSORS_MOST = 1 << 16 };

/* ---- a text of calls ---- */

static FILE *told;

/* Tensors of a formula, by the order in which it met them. One that is new may lie where another has been. */
static struct {
  const graft_tensor *items[TENSORS_MOST];
  int count;
} met;

static int meet(const graft_tensor *t) {
  ck_assert_int_lt(met.count, TENSORS_MOST);
  met.items[met.count] = t;
  return met.count++;
}

static int number_of(const graft_tensor *t) {
  for (int i = met.count - 1; i >= 0; i--)
    if (met.items[i] == t) return i;
  return meet(t);
}

static void tell_ints(const char *open, const int64_t *items, int64_t count, const char *close) {
  fprintf(told, "%s", open);
  for (int64_t i = 0; i < count; i++) fprintf(told, "%s%" PRId64, i ? "," : "", items[i]);
  fprintf(told, "%s", close);
}

static void tell_shape(graft_dtype dtype, int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  fprintf(told, "%s", dtype ? graft_dtype_name(dtype) : "none");
  tell_ints("[", sizes, ndim, "]");
  tell_ints("(", strides, ndim, ")");
}

static void tell_tensor(const graft_tensor *t) {
  if (!t) {
    fprintf(told, " _");
    return;
  }
  fprintf(told, " %%%d:", number_of(t));
  tell_shape(t->dtype, t->ndim, t->sizes, t->strides);
}

static void tell_scalar(const graft_scalar *s) {
  const dt_value v = dt_scalar_value(s);
  fprintf(told, " %s:%.17Lg%+.17Lgi", s->dtype ? graft_dtype_name(s->dtype) : "none", v.re, v.im);
}

static void tell_value(const graft_value *v) {
  switch (v->kind) {
    case GRAFT_VALUE_NONE: fprintf(told, " _"); break;
    case GRAFT_VALUE_TENSOR: tell_tensor(v->as.tensor); break;
    case GRAFT_VALUE_TENSORS:
      for (uint32_t i = 0; i < v->count; i++) tell_tensor(v->as.tensors[i]);
      fprintf(told, " of %u", v->count);
      break;
    case GRAFT_VALUE_FLOAT: fprintf(told, " %.17g", v->as.f); break;
    case GRAFT_VALUE_SCALAR: tell_scalar(&v->as.scalar); break;
    case GRAFT_VALUE_INTS: tell_ints(" [", v->as.ints, v->count, "]"); break;
    case GRAFT_VALUE_FLOATS:
      for (uint32_t i = 0; i < v->count; i++) fprintf(told, " %.17g", v->as.floats[i]);
      break;
    case GRAFT_VALUE_SCALARS:
      for (uint32_t i = 0; i < v->count; i++) tell_scalar(&v->as.scalars[i]);
      break;
    case GRAFT_VALUE_MASK:
      for (uint32_t i = 0; i < v->count; i++) fprintf(told, " %d", v->as.mask[i]);
      break;
    case GRAFT_VALUE_STR: fprintf(told, " '%s'", v->as.str); break;
    case GRAFT_VALUE_DTYPE: fprintf(told, " %s", v->as.dtype ? graft_dtype_name(v->as.dtype) : "none"); break;
    case GRAFT_VALUE_DEVICE: fprintf(told, " device"); break;
    case GRAFT_VALUE_GENERATOR: fprintf(told, " %s", v->as.generator ? "generator" : "_"); break;
    default: fprintf(told, " %" PRId64, v->as.i);
  }
}

static void tell_step(const fx_step *step) {
  fprintf(told, "  %s", op_schema_of(step->op_id)->name);
  for (uint32_t i = 0; i < step->nargs; i++) tell_value(&step->args[i]);
  fprintf(told, " ->");
  for (uint32_t i = 0; i < step->nresults; i++) {
    const graft_meta *m = &step->results[i];
    fprintf(told, " ");
    tell_shape(m->dtype, m->ndim, m->sizes, m->strides);
  }
  fprintf(told, "\n");
}

static graft_status take(void *self, const fx_step *step, graft_tensor **outs, uint32_t nouts) {
  tell_step(step);
  for (uint32_t i = 0; i < nouts && i < step->nresults; i++) {
    if (outs[i])
      tell_tensor(outs[i]); /* it is written to */
    else if (step->results[i].dtype)
      meet(outs[i] = shell(self, &step->results[i]));
  }
  return GRAFT_OK;
}

static void begin(const char *what) {
  met.count = 0;
  fprintf(told, " %s\n", what);
}

static void tell_end(fx *s) {
  const graft_status status = fx_end(s);
  if (status) fprintf(told, "  fails: %s\n", graft_last_error());
}

/* ---- rules, decompositions, gradients ---- */

enum { RULE, DECOMPOSITION, GRADIENT };

static void tell_row(const op_def *def) {
  fprintf(told, "  '%s' saves %" PRIx64 " reads %" PRIx64 " without %x flags %x, %d%d%d\n",
          def->roles ? def->roles : "", def->saves, def->rule_reads, def->without_grad, def->flags, def->bind != NULL,
          def->host != NULL, def->list_item != NULL);
}

/* Of what holds indices: where they may lie. */
static void tell_ranges(const op_schema *schema, const fx_step *step) {
  for (uint32_t arg = 0; arg < step->nargs; arg++) {
    const graft_value *v = &step->args[arg];
    const uint32_t items = v->kind == GRAFT_VALUE_TENSORS ? v->count : v->kind == GRAFT_VALUE_TENSOR;
    for (uint32_t item = 0; item < items; item++) {
      op_range r = {0};
      if (!op_reads_indices(schema, step->args, arg) || !op_index_range(schema, step->args, arg, item, &r)) continue;
      fprintf(told, "  indices %u.%u: %" PRId64 " to %" PRId64 " of %" PRId64 " %d%d %" PRId64 "\n", arg, item, r.low,
              r.high, r.size, r.from_one, r.passes, r.passed);
    }
  }
}

static void tell_rule(shapes *s) {
  arena memory = {0};
  fx_step step = {0};
  op_call call = {.lists = &memory};
  begin("rule");
  if (op_def_of(s->call.schema->id)) tell_row(op_def_of(s->call.schema->id));
  if (dsp_describe(s->call.schema->id, s->args, s->call.schema->nargs, &memory, &step))
    fprintf(told, "  refused: %s\n", graft_last_error());
  else
    tell_step(&step), tell_ranges(s->call.schema, &step);
  if (!dsp_infer(&call, s->call.schema, s->args, s->call.schema->nargs)) {
    fprintf(told, "  in %s, draws %" PRIu64 ", only reads %" PRIx64 "; %d%d%d\n",
            call.compute ? graft_dtype_name(call.compute) : "none", call.draws, call.only_read, call.decompose_only,
            call.no_decompose, call.dynamic);
  }
  arena_free(&memory);
}

static void tell_decomposition(shapes *s) {
  graft_rt_device *device = graft_device_reference();
  const fx_sink sink = {.take = take, .self = device, .described = true};
  arena lists = {0};
  op_call call = {.lists = &lists};
  begin("decomposition");
  if (!dsp_infer(&call, s->call.schema, s->args, s->call.schema->nargs) && op_flat_count(&call) <= CF_MAX_TENSORS) {
    const uint32_t count = op_flat_count(&call);
    graft_tensor *results[CF_MAX_TENSORS] = {NULL};
    fx scope;
    fx_begin(&scope, &sink);
    dsp_decompose(&scope, &call, results, count);
    fprintf(told, "  gives");
    for (uint32_t i = 0; i < count; i++) tell_tensor(results[i]);
    fprintf(told, "\n");
    tell_end(&scope);
  }
  arena_free(&lists);
}

/* What comes back to results `by`, a bit each. */
static void tell_gradient(shapes *s, const fx_step *step, uint64_t needs, uint32_t by, bool create_graph) {
  graft_rt_device *device = graft_device_reference();
  const fx_sink sink = {.take = take, .self = device, .described = true};
  graft_tensor *outs[CF_MAX_TENSORS] = {NULL}, *g[CF_MAX_TENSORS] = {NULL};
  graft_tensor *results[OP_MAX_ARGS] = {NULL}, *items[OP_MAX_ARGS][CF_MAX_TENSORS] = {{NULL}}, **lists[OP_MAX_ARGS];
  begin(create_graph ? "gradient to differentiate" : "gradient");
  for (uint32_t i = 0; i < OP_MAX_ARGS; i++) lists[i] = items[i];
  for (uint32_t i = 0; i < s->call.ntensors; i++) meet(s->in[i]);
  for (uint32_t i = 0; i < step->nresults; i++) {
    if (!step->results[i].dtype) continue;
    meet(outs[i] = shell(device, &step->results[i]));
    if (by >> i & 1 && is_differentiable(&step->results[i])) meet(g[i] = shell(device, &step->results[i]));
  }
  fx scope;
  fx_begin(&scope, &sink);
  op_vjp v = {.s = &scope,
              .schema = s->call.schema,
              .args = step->args,
              .outs = outs,
              .g = g,
              .needs = needs,
              .create_graph = create_graph,
              .results = results,
              .list_results = lists};
  op_def_of(step->op_id)->vjp(&v);
  fprintf(told, "  gives");
  for (uint32_t i = 0; i < s->call.schema->nargs; i++) {
    tell_tensor(results[i]);
    for (uint32_t k = 0; k < CF_MAX_TENSORS && items[i][k]; k++) tell_tensor(items[i][k]);
  }
  fprintf(told, "\n");
  tell_end(&scope);
  for (uint32_t i = 0; i < step->nresults; i++) graft_tensor_release(outs[i]), graft_tensor_release(g[i]);
}

/* Of all arguments, of each alone, and by each result alone where there are several. */
static void tell_gradients(shapes *s) {
  arena memory = {0};
  fx_step step = {0};
  const uint64_t all = needs_of(s);
  const uint32_t by = ~op_def_of(s->call.schema->id)->without_grad;
  const bool described = !dsp_describe(s->call.schema->id, s->args, s->call.schema->nargs, &memory, &step);
  if (described && has_gradient(&step)) {
    tell_gradient(s, &step, all, by, false);
    tell_gradient(s, &step, all, by, true);
    for (uint64_t rest = all; rest & (all - 1); rest &= rest - 1) tell_gradient(s, &step, rest & -rest, by, false);
    for (uint32_t i = 0; i < step.nresults && step.nresults > 1; i++)
      if (by >> i & 1 && is_differentiable(&step.results[i])) tell_gradient(s, &step, all, 1u << i, false);
  }
  arena_free(&memory);
}

/* ---- digests ---- */

static graft_dtype first_dtypes[DIGEST_OPS]; /* in which an op's cases begin */

static void digest(digests *d, size_t row, int part, const char *id, void (*tell)(shapes *), shapes *s) {
  char *text = NULL;
  size_t bytes;
  told = open_memstream(&text, &bytes);
  tell(s);
  fclose(told);
  digest_text(d, row, part, id, text);
}

/* False: there is no such call, as of sparse matrices in a dtype of none. */
static bool take_case(digests *d, size_t row, const cf_case *c, const char *id) {
  shapes s;
  const op_def *def = op_def_of(c->op_id);
  if (!open_shapes(&s, c, graft_device_reference())) return false;
  digest(d, row, RULE, id, tell_rule, &s);
  if (def && def->decompose) digest(d, row, DECOMPOSITION, id, tell_decomposition, &s);
  if (def && def->vjp) digest(d, row, GRADIENT, id, tell_gradients, &s);
  close_shapes(&s);
  return true;
}

/* A rule says strides, which depend on those of each tensor: one after the other has its dims the other way round. */
static void take_turned(digests *d, size_t row, const cf_case *c, const char *id) {
  shapes s;
  graft_rt_device *device = graft_device_reference();
  for (uint32_t i = 0; open_shapes(&s, c, device) && i < s.call.ntensors; i++, close_shapes(&s)) {
    graft_meta turned = {.dtype = s.in[i]->dtype, .ndim = s.in[i]->ndim};
    int64_t stride = 1;
    for (int32_t dim = 0; dim < turned.ndim; dim++) {
      turned.sizes[dim] = s.in[i]->sizes[dim];
      turned.strides[dim] = stride;
      stride *= turned.sizes[dim] > 0 ? turned.sizes[dim] : 1;
    }
    if (turned.ndim < 2) continue;
    graft_tensor_release(s.in[i]);
    s.in[i] = shell(device, &turned);
    cf_call_args(&s.call, device, s.in, s.args, s.items);
    digest(d, row, RULE, id, tell_rule, &s);
  }
  close_shapes(&s);
}

/* Each text of the first dtype in all dtypes, too: a rule takes some of which there are no cases, and refuses others.
 */
static bool visit(void *context, const cf_case *c, const char *id) {
  digests *d = context;
  if (c->mode != CF_FORWARD || c->fill != CF_UNIFORM) return true;
  const size_t row = digest_row(c);
  ck_assert_msg(take_case(d, row, c, id), "%s: %s", id, graft_last_error());
  if (d->cases[row]++ == 0) first_dtypes[row] = c->dtype;
  const bool first = c->layout == CF_CONTIGUOUS && c->dtype == first_dtypes[row];
  if (first) take_turned(d, row, c, id);
  for (int n = 0; first && n < GRAFT_NUMBER_WIDE; n++) {
    cf_case other = *c;
    char of[CF_ID_BYTES];
    other.dtype = dt_of_number(n);
    if (other.dtype == GRAFT_DTYPE_NONE || other.dtype == c->dtype) continue;
    cf_case_id(&other, of);
    take_case(d, row, &other, of);
  }
  return true;
}

static digest_options options;

static void take_digests(digests *d) {
  const char *ops = options.show ? options.show : options.ops;
  *d = (digests){.columns = {"rule", "decomposition", "gradient"}, .shows = options.show};
  cf_menu(&(cf_selection){.level = CF_MUSTPASS, .ops = ops, .grad = -1, .ways = CF_CHOSEN_WAY}, visit, d);
}

static digests found;

START_TEST(formulas_are_those_of_the_table) {
  take_digests(&found);
  digests_compare(&found, TABLE, "test_formulas", options.ops);
}
END_TEST

START_TEST(the_table_is_written) {
  take_digests(&found);
  digests_write(
      &found, options.write,
      "# Of each op: how many calls the suite has of it at level mustpass, and digests of what its rule says of "
      "them, of\n"
      "# the calls that its decomposition makes, and of those that its gradients make; -: it has none.\n"
      "# tests/test_formulas.c\n");
}
END_TEST

START_TEST(the_text_is_shown) {
  take_digests(&found);
}
END_TEST

int main(int argc, char **argv) {
  const suite_test tests[] = {ONCE(formulas_are_those_of_the_table), {0}};
  const suite_test writing[] = {ONCE(the_table_is_written), {0}}, showing[] = {ONCE(the_text_is_shown), {0}};
  options = digest_options_of(argc, argv);
  return run_suite("formulas",
                   options.show    ? showing
                   : options.write ? writing
                                   : tests,
                   (suite_options){.timeout_s = 600});
}
