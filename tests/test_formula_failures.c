/* Each step of each op's decomposition and gradient fails once: the formula ends there, with that failure, and nothing
 * that it reads of what was not made is beyond memory; under sanitizers, of loops of hundreds of steps the first, the
 * second and the last round. And a gradient takes each tensor that its op's row saves for it, in some case of the
 * suite, and a rule says what half types are computed in. Nothing runs: the sink makes tensors of shape only.
 *
 *   test_formula_failures [LEVEL [OPS]]   level mustpass by default
 */
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "conformance/run/menu.h"
#include "shapes.h"

enum { SHARDS = 8, STEPS_MOST = 4096, PLACES_MOST = 256, FRAMES = 32, OPS_MOST = 1024 };
/* A sanitizer looks at what each place in the source does when a step fails: of formulas of more steps than these, each
 * step repeats all before it, in the plain build. */
#ifdef __SANITIZE_ADDRESS__
enum { STEPS_EACH = 256 };
#else
enum { STEPS_EACH = STEPS_MOST };
#endif
#define OUTPUT_BIT (UINT64_C(1) << 32) /* in `saves`, of the first */
static cf_selection selection = {.level = CF_MUSTPASS, .grad = -1, .ways = CF_CHOSEN_WAY};
static int shard;
static char at[CF_ID_BYTES + 64]; /* the case, for who crashes */

/* Tensors that a step may take, and what of a row's `saves` each stands for. */
typedef struct watched {
  uint32_t count;
  const graft_tensor *tensor[2 * CF_MAX_TENSORS];
  uint64_t bit[2 * CF_MAX_TENSORS], taken; /* the bits of those that one did take */
  uint64_t needs;                          /* what gradients the formula is asked for */
  bool asked;                              /* it was run */
} watched;

typedef struct sink_state {
  graft_rt_device *device;
  uint32_t nsteps, fail_at; /* counted from 1; 0: none does */
  watched *watched;         /* NULL: nobody asks */
} sink_state;

static void watch(watched *w, const graft_tensor *tensor, uint64_t bit) {
  if (!w || !tensor) return;
  w->tensor[w->count] = tensor;
  w->bit[w->count++] = bit;
}

static void note_taken(watched *w, const graft_tensor *tensor) {
  for (uint32_t i = 0; w && i < w->count; i++)
    if (w->tensor[i] == tensor) w->taken |= w->bit[i];
}

static void note_step(watched *w, const fx_step *step) {
  for (uint32_t a = 0; a < step->nargs; a++) {
    const graft_value *v = &step->args[a];
    if (v->kind == GRAFT_VALUE_TENSOR) note_taken(w, v->as.tensor);
    for (uint32_t i = 0; v->kind == GRAFT_VALUE_TENSORS && i < v->count; i++) note_taken(w, v->as.tensors[i]);
  }
}

/* Where in the source the steps of a formula are asked for: a number for each stack of calls. */
static struct {
  bool noting;
  uint32_t nsteps;
  uint64_t of_step[STEPS_MOST];
} places;

static void note_caller(void) {
  void *frames[FRAMES];
  const int count = backtrace(frames, FRAMES);
  uint64_t place = UINT64_C(14695981039346656037);
  for (int i = 0; i < count; i++) place = (place ^ (uint64_t)(uintptr_t)frames[i]) * UINT64_C(1099511628211);
  ck_assert_msg(places.nsteps < STEPS_MOST, "%s: more than %d steps", at, STEPS_MOST);
  places.of_step[places.nsteps++] = place;
}

static graft_status take(void *self, const fx_step *step, graft_tensor **outs, uint32_t nouts) {
  sink_state *s = self;
  note_step(s->watched, step);
  if (places.noting) note_caller();
  if (++s->nsteps == s->fail_at) return err_set(GRAFT_OUT_OF_MEMORY, "the sink takes no more");
  for (uint32_t i = 0; i < nouts && i < step->nresults; i++)
    if (!outs[i] && step->results[i].dtype) outs[i] = shell(s->device, &step->results[i]);
  return GRAFT_OK;
}

/* Runs the formula up to step `fail_at`, or with 0 all of it. False: it has fewer. */
typedef bool (*formula_fn)(shapes *s, uint32_t fail_at);

static bool ended(fx *s, const sink_state *state) {
  const bool failed = state->fail_at && state->nsteps >= state->fail_at;
  ck_assert_msg(!failed || state->nsteps == state->fail_at, "%s: goes on after its failure", at);
  const graft_status status = fx_end(s);
  ck_assert_msg(!failed || (status == GRAFT_OUT_OF_MEMORY && !strcmp(graft_last_error(), "the sink takes no more")),
                "%s: %s", at, graft_last_error());
  return failed;
}

static bool decompose(shapes *s, uint32_t fail_at) {
  sink_state state = {graft_device_reference(), 0, fail_at, NULL};
  const fx_sink sink = {.take = take, .self = &state, .described = true};
  arena lists = {0};
  op_call call = {.lists = &lists};
  bool failed = false;
  if (!dsp_infer(&call, s->call.schema, s->args, s->call.schema->nargs) && op_flat_count(&call) <= CF_MAX_TENSORS) {
    graft_tensor *results[CF_MAX_TENSORS] = {NULL};
    fx scope;
    fx_begin(&scope, &sink);
    dsp_decompose(&scope, &call, results, op_flat_count(&call));
    failed = ended(&scope, &state);
  }
  arena_free(&lists);
  return failed;
}

static void differentiate_described(shapes *s, const fx_step *step, const fx_sink *sink, bool create_graph) {
  sink_state *state = sink->self;
  graft_tensor *outs[CF_MAX_TENSORS] = {NULL}, *g[CF_MAX_TENSORS] = {NULL};
  graft_tensor *results[OP_MAX_ARGS] = {NULL}, *items[OP_MAX_ARGS][CF_MAX_TENSORS] = {{NULL}}, **lists[OP_MAX_ARGS];
  for (uint32_t i = 0; i < OP_MAX_ARGS; i++) lists[i] = items[i];
  for (uint32_t i = 0; i < step->nresults; i++) {
    if (!step->results[i].dtype) continue;
    outs[i] = shell(state->device, &step->results[i]);
    watch(state->watched, outs[i], OUTPUT_BIT << i);
    if (is_differentiable(&step->results[i])) g[i] = shell(state->device, &step->results[i]);
  }
  fx scope;
  fx_begin(&scope, sink);
  op_vjp v = {.s = &scope,
              .schema = s->call.schema,
              .args = step->args,
              .outs = outs,
              .g = g,
              .needs = state->watched ? state->watched->needs : needs_of(s),
              .create_graph = create_graph,
              .results = results,
              .list_results = lists};
  op_def_of(step->op_id)->vjp(&v);
  if (state->watched) state->watched->asked = true;
  ended(&scope, state);
  for (uint32_t i = 0; i < step->nresults; i++) graft_tensor_release(outs[i]), graft_tensor_release(g[i]);
}

static bool differentiate_how(shapes *s, uint32_t fail_at, bool create_graph, watched *watched) {
  sink_state state = {graft_device_reference(), 0, fail_at, watched};
  const fx_sink sink = {.take = take, .self = &state, .described = true};
  arena memory = {0};
  fx_step step = {0};
  const bool described = !dsp_describe(s->call.schema->id, s->args, s->call.schema->nargs, &memory, &step);
  if (described && has_gradient(&step)) differentiate_described(s, &step, &sink, create_graph);
  arena_free(&memory);
  return state.nsteps == fail_at;
}

static bool differentiate(shapes *s, uint32_t fail_at) {
  return differentiate_how(s, fail_at, false, NULL);
}
static bool differentiate_again(shapes *s, uint32_t fail_at) {
  return differentiate_how(s, fail_at, true, NULL);
}

/* What a place asks for: its steps are those of a loop where there are many. */
typedef struct {
  uint64_t place;
  uint32_t count, last;
} asked_from;

static asked_from *find_place(asked_from *all, uint32_t *count, uint64_t place) {
  uint32_t i = 0;
  while (i < *count && all[i].place != place) i++;
  if (i < *count) return &all[i];
  ck_assert_msg(i < PLACES_MOST, "%s: steps from more than %d places", at, PLACES_MOST);
  all[(*count)++] = (asked_from){.place = place};
  return &all[i];
}

/* Marks the steps to fail: all, but of a formula of more than STEPS_EACH the first two and the last of each place.
 * Returns how many steps there are. */
static uint32_t choose_steps(bool chosen[STEPS_MOST]) {
  static asked_from all[PLACES_MOST];
  uint32_t count = 0;
  for (uint32_t i = 0; i < places.nsteps; i++) {
    chosen[i] = true;
    if (places.nsteps <= STEPS_EACH) continue;
    asked_from *from = find_place(all, &count, places.of_step[i]);
    if (from->count > 2) chosen[from->last] = false; /* the first two stay */
    from->count++;
    from->last = i;
  }
  return places.nsteps;
}

static uint64_t fail_each_step(shapes *s, const char *id, const char *what, formula_fn formula) {
  bool chosen[STEPS_MOST];
  uint64_t failed = 0;
  snprintf(at, sizeof at, "%s: %s", id, what);
  places.noting = true;
  places.nsteps = 0;
  formula(s, 0);
  places.noting = false;
  const uint32_t nsteps = choose_steps(chosen);
  for (uint32_t step = 1; step <= nsteps + 1; step++) {
    if (step <= nsteps && !chosen[step - 1]) continue;
    snprintf(at, sizeof at, "%s: %s, step %u fails", id, what, step);
    ck_assert_msg(formula(s, step) == (step <= nsteps), "%s: another number of steps than before", at);
    failed += step <= nsteps;
  }
  return failed;
}

static bool visit(void *context, const cf_case *c, const char *id) {
  shapes s;
  if (c->mode != CF_FORWARD || c->layout != CF_CONTIGUOUS || c->fill != CF_UNIFORM ||
      c->op_id % SHARDS != (uint32_t)shard)
    return true;
  snprintf(at, sizeof at, "%s", id);
  ck_assert_msg(open_shapes(&s, c, graft_device_reference()), "%s", id);
  uint64_t *steps = context;
  const op_def *def = op_def_of(c->op_id);
  if (def && def->decompose) *steps += fail_each_step(&s, id, "decomposition", decompose);
  if (def && def->vjp) {
    *steps += fail_each_step(&s, id, "gradient", differentiate);
    *steps += fail_each_step(&s, id, "gradient to differentiate", differentiate_again);
  }
  close_shapes(&s);
  return true;
}

/* --- what gradients read --- */

/* By row of the schema table: whether some case asked for its gradient, and what of their tensors that took. */
static bool asked[OPS_MOST];
static uint64_t read_by[OPS_MOST];

static void note_gradient(shapes *s, uint64_t needs, bool create_graph) {
  size_t count;
  const size_t row = (size_t)(s->call.schema - op_schema_all(&count));
  watched w = {.needs = needs};
  for (uint32_t i = 0; i < s->call.ntensors; i++) watch(&w, s->in[i], UINT64_C(1) << s->call.spec_arg[i]);
  differentiate_how(s, 0, create_graph, &w);
  asked[row] |= w.asked;
  read_by[row] |= w.taken;
}

/* The gradients of all arguments at once, and of each, where that of another may be refused. */
static bool note_gradients(void *context, const cf_case *c, const char *id) {
  const op_def *def = op_def_of(c->op_id);
  (void)context;
  if (c->mode != CF_FORWARD || c->layout != CF_CONTIGUOUS || !def || !def->vjp || c->op_id % SHARDS != (uint32_t)shard)
    return true;
  shapes s;
  snprintf(at, sizeof at, "%s", id);
  ck_assert_msg(open_shapes(&s, c, graft_device_reference()), "%s", id);
  const uint64_t all = needs_of(&s);
  for (int create_graph = 0; create_graph <= 1; create_graph++) {
    note_gradient(&s, all, create_graph);
    for (uint64_t rest = all; rest; rest &= rest - 1) note_gradient(&s, rest & -rest, create_graph);
  }
  close_shapes(&s);
  return true;
}

static void say_where(int signal) {
  (void)!write(2, at, strlen(at));
  (void)!write(2, "\n", 1);
  raise(signal);
}

START_TEST(a_step_that_fails_ends_the_formula) {
  const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
  for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
    sigaction(deadly[i], &(struct sigaction){.sa_handler = say_where, .sa_flags = (int)SA_RESETHAND}, NULL);
  uint64_t steps = 0;
  shard = _i;
  cf_menu(&selection, visit, &steps);
  ck_assert(steps || selection.ops);
}
END_TEST

/* What a row saves is kept alive until the gradient is computed, and may not be changed meanwhile: none of it is for
 * nothing. */
START_TEST(gradients_read_what_is_saved) {
  unsigned ran = 0, wrong = 0;
  size_t count;
  const op_schema *all = op_schema_all(&count);
  ck_assert_uint_le(count, OPS_MOST);
  cf_selection most = selection; /* smoke leaves arguments out that some gradients depend on */
  if (most.level < CF_MUSTPASS) most.level = CF_MUSTPASS;
  shard = _i;
  cf_menu(&most, note_gradients, NULL);
  for (size_t i = 0; i < count; i++) {
    if (!asked[i]) continue;
    const uint64_t idle = op_def_of(all[i].id)->saves & ~read_by[i];
    for (uint32_t bit = 0; bit < 64; bit++) {
      if (!(idle >> bit & 1)) continue;
      fprintf(stderr, "%s saves %s %u, which its gradient does not read\n", all[i].name,
              bit < 32 ? "argument" : "result", bit % 32);
      wrong++;
    }
    ran++;
  }
  ck_assert(ran || selection.ops);
  ck_assert_msg(wrong == 0, "%u tensors are saved for nothing", wrong);
}
END_TEST

/* --- what rules say of half types --- */

/* A value, of which the host makes a wider one where a device does not compute in half types. */
static bool has_half_value(const op_call *call, const graft_value *args) {
  bool half = false;
  for (uint32_t a = 0; a < call->schema->nargs; a++) {
    const char role = op_role(call->schema, call->def, a);
    if ((role == 'b' || role == 'v') && args[a].kind == GRAFT_VALUE_TENSOR)
      half |= dt_is_half(args[a].as.tensor->dtype);
  }
  return half && !(call->def->flags & (OP_NO_WIDEN | OP_COPY));
}

static bool note_half(void *context, const cf_case *c, const char *id) {
  if (c->mode != CF_FORWARD || c->layout != CF_CONTIGUOUS || !dt_is_half(c->dtype)) return true;
  shapes s;
  arena lists = {0};
  op_call call = {.lists = &lists};
  unsigned *cases = context;
  ck_assert_msg(open_shapes(&s, c, graft_device_reference()), "%s", id);
  if (!dsp_infer(&call, s.call.schema, s.args, s.call.schema->nargs) && has_half_value(&call, s.args)) {
    ck_assert_msg(call.compute, "%s: its rule does not say what it is computed in", id);
    ++*cases;
  }
  arena_free(&lists);
  close_shapes(&s);
  return true;
}

START_TEST(rules_say_what_half_types_are_computed_in) {
  const cf_selection most = {.level = CF_MUSTPASS};
  unsigned cases = 0;
  cf_menu(&most, note_half, &cases);
  ck_assert_uint_gt(cases, 0);
}
END_TEST

int main(int argc, char **argv) {
  const suite_test tests[] = {EACH(a_step_that_fails_ends_the_formula, SHARDS),
                              EACH(gradients_read_what_is_saved, SHARDS),
                              ONCE(rules_say_what_half_types_are_computed_in),
                              {0}};
  const int level = argc > 1 ? cf_level_parse(argv[1]) : CF_MUSTPASS;
  if (level < 0) return fprintf(stderr, "usage: test_formula_failures [smoke|mustpass|full [OPS]]\n"), 2;
  selection.level = (cf_level)level;
  selection.ops = argc > 2 ? argv[2] : NULL;
  return run_suite("formula_failures", tests, (suite_options){.timeout_s = 300});
}
