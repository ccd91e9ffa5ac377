/* The sink of formulas: a recorder writes down the calls of decompositions and gradients, on tensors that have no
 * memory, so nothing can have run. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dispatch/plan.h"
#include "graft/runtime.h"
#include "ops/generated/fx_ops.h"
#include "suite.h"

/* --- the recorder --- */

typedef struct recorder {
  graft_tensor *values[64]; /* %0, %1, ...: what went in, then what came out */
  uint32_t nvalues;
  uint32_t fail_at; /* the step that fails, counted from 1; 0: none */
  uint32_t nsteps;
  char text[4096];
  size_t length;
} recorder;

__attribute__((format(printf, 2, 3))) static void say(recorder *r, const char *format, ...) {
  va_list list;
  va_start(list, format);
  r->length += (size_t)vsnprintf(r->text + r->length, sizeof r->text - r->length, format, list);
  va_end(list);
  ck_assert_uint_lt(r->length, sizeof r->text);
}

static graft_tensor *shell(graft_dtype dtype, int32_t ndim, const int64_t *sizes, const int64_t *strides) {
  int64_t dense[GRAFT_MAX_DIMS];
  graft_tensor *t;
  if (!strides) tns_contiguous_strides(ndim, sizes, dense);
  ck_assert_int_eq(tns_new(NULL, graft_device_reference(), dtype, ndim, sizes, strides ? strides : dense, 0, &t), 0);
  return t;
}

/* The recorder holds a reference to each, so that no address comes twice. */
static graft_tensor *value(recorder *r, graft_tensor *t) {
  ck_assert_uint_lt(r->nvalues, 64);
  return r->values[r->nvalues++] = t;
}

static void say_tensor(recorder *r, const graft_tensor *t) {
  uint32_t i = 0;
  while (i < r->nvalues && r->values[i] != t) i++;
  ck_assert_msg(i < r->nvalues, "a formula hands out a tensor that it was not given");
  say(r, "%%%u", i);
}

static void say_ints(recorder *r, const int64_t *items, int64_t count) {
  say(r, "[");
  for (int64_t i = 0; i < count; i++) say(r, "%s%lld", i ? "," : "", (long long)items[i]);
  say(r, "]");
}

static void say_value(recorder *r, const graft_value *v) {
  switch (v->kind) {
    case GRAFT_VALUE_NONE: say(r, "-"); break;
    case GRAFT_VALUE_TENSOR: say_tensor(r, v->as.tensor); break;
    case GRAFT_VALUE_INT:
    case GRAFT_VALUE_BOOL: say(r, "%lld", (long long)v->as.i); break;
    case GRAFT_VALUE_FLOAT: say(r, "%g", v->as.f); break;
    case GRAFT_VALUE_SCALAR: say(r, "%g", (double)dt_scalar_value(&v->as.scalar).re); break;
    case GRAFT_VALUE_INTS: say_ints(r, v->as.ints, v->count); break;
    case GRAFT_VALUE_MASK: say(r, "%u bits", v->count); break;
    case GRAFT_VALUE_STR: say(r, "'%s'", v->as.str); break;
    case GRAFT_VALUE_DTYPE: say(r, "%s", graft_dtype_name(v->as.dtype)); break;
    case GRAFT_VALUE_MEMORY_FORMAT: say(r, "format %d", (int)v->as.i); break;
    case GRAFT_VALUE_DEVICE: say(r, "device"); break;
    case GRAFT_VALUE_TENSORS:
      for (uint32_t i = 0; i < v->count; i++) {
        say(r, i ? "," : "[");
        say_tensor(r, v->as.tensors[i]);
      }
      say(r, "]");
      break;
    default: ck_abort_msg("a value of kind %d", (int)v->kind);
  }
}

/* "%2 f32[3], %3 f32[] = aten::op(self %0, dim 1)"; "-> %1 = ..." where a tensor is written that is there. */
static graft_status take(void *self, const fx_step *step, graft_tensor **outs, uint32_t nouts) {
  recorder *r = self;
  if (++r->nsteps == r->fail_at) return err_set(GRAFT_UNIMPLEMENTED, "the sink takes no more");
  const op_schema *schema = op_schema_of(step->op_id);
  ck_assert_uint_eq(step->nargs, schema->nargs);
  ck_assert_uint_ge(step->nresults, nouts);
  ck_assert_ptr_eq(step->device, graft_device_reference());
  for (uint32_t i = 0; i < nouts; i++) {
    const graft_meta *m = &step->results[i];
    say(r, i ? ", " : "");
    if (!m->dtype) {
      say(r, "-");
    } else if (outs[i]) {
      say(r, "-> ");
      say_tensor(r, outs[i]);
    } else {
      outs[i] = value(r, shell(m->dtype, m->ndim, m->sizes, m->strides));
      graft_tensor_retain(outs[i]); /* the scope's */
      say_tensor(r, outs[i]);
      say(r, " %s", graft_dtype_name(m->dtype));
      say_ints(r, m->sizes, m->ndim);
    }
  }
  say(r, " = %s(", schema->name);
  for (uint32_t i = 0, said = 0; i < step->nargs; i++) {
    if (step->args[i].kind == GRAFT_VALUE_NONE) continue;
    say(r, "%s%s ", said++ ? ", " : "", schema->args[i].name);
    say_value(r, &step->args[i]);
  }
  say(r, ")\n");
  return GRAFT_OK;
}

static void forget(recorder *r) {
  for (uint32_t i = 0; i < r->nvalues; i++) graft_tensor_release(r->values[i]);
}

/* --- what is recorded --- */

#define SIZES(...)                                               \
  (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / 8), (int64_t[]) { \
    __VA_ARGS__                                                  \
  }
static graft_value given(recorder *r, graft_dtype dtype, int32_t ndim, const int64_t *sizes) {
  return fx_tensor(value(r, shell(dtype, ndim, sizes, NULL)));
}

/* The calls of one op's decomposition; `results` says what it gave. */
static graft_status record_decomposition(recorder *r, uint32_t op_id, const graft_value *args, uint32_t nargs) {
  fx_sink sink = {.take = take, .self = r, .described = true};
  arena lists = {0};
  op_call call = {.lists = &lists};
  ck_assert_msg(!dsp_infer(&call, op_schema_of(op_id), args, nargs), "%s", graft_last_error());
  graft_tensor *results[OP_MAX_OUTS] = {NULL};
  fx s;
  fx_begin(&s, &sink);
  dsp_decompose(&s, &call, results, op_flat_count(&call));
  if (!s.status) {
    say(r, "gives");
    for (uint32_t i = 0; i < op_flat_count(&call); i++) {
      say(r, " ");
      say_tensor(r, results[i]);
    }
  }
  arena_free(&lists);
  return fx_end(&s);
}

/* The calls of one op's gradient with respect to the arguments of the bits in `needs`; each result has a cotangent
 * where `cotangents` has its bit. */
static graft_status record_gradient(recorder *r, uint32_t op_id, const graft_value *args, uint32_t nargs,
                                    uint64_t needs, uint32_t cotangents, bool create_graph) {
  fx_sink sink = {.take = take, .self = r, .described = true};
  arena memory = {0};
  fx_step call = {0};
  ck_assert_msg(!dsp_describe(op_id, args, nargs, &memory, &call), "%s", graft_last_error());
  graft_tensor *outs[OP_MAX_OUTS], *g[OP_MAX_OUTS] = {NULL}, *results[OP_MAX_ARGS] = {NULL};
  for (uint32_t i = 0; i < call.nresults; i++) {
    const graft_meta *m = &call.results[i];
    outs[i] = value(r, shell(m->dtype, m->ndim, m->sizes, m->strides));
  }
  for (uint32_t i = 0; i < call.nresults; i++) {
    const graft_meta *m = &call.results[i];
    if (cotangents >> i & 1) g[i] = value(r, shell(m->dtype, m->ndim, m->sizes, m->strides));
  }
  fx s;
  fx_begin(&s, &sink);
  op_vjp v = {.s = &s,
              .schema = op_schema_of(op_id),
              .args = call.args,
              .outs = outs,
              .g = g,
              .needs = needs,
              .create_graph = create_graph,
              .results = results};
  op_def_of(op_id)->vjp(&v);
  for (uint32_t i = 0; i < call.nargs && !s.status; i++) {
    if (!results[i]) continue;
    say(r, "%s: ", v.schema->args[i].name);
    say_tensor(r, results[i]);
    say(r, "\n");
  }
  arena_free(&memory);
  return fx_end(&s);
}

static void text_is(recorder *r, graft_status status, const char *expected) {
  ck_assert_msg(!status, "%s", graft_last_error());
  ck_assert_msg(!strcmp(r->text, expected), "recorded:\n%s\nexpected:\n%s", r->text, expected);
  forget(r);
}

START_TEST(gradient_of_a_product) {
  recorder r = {0};
  graft_value args[] = {given(&r, GRAFT_F32, SIZES(2, 3)), given(&r, GRAFT_F32, SIZES(3))};
  text_is(&r, record_gradient(&r, GRAFT_OP_MUL_TENSOR, args, 2, 3, 1, false),
          "%4 f32[2,3] = aten::mul.Tensor(self %3, other %1)\n"
          "%5 f32[2,3] = aten::mul.Tensor(self %3, other %0)\n"
          "self: %4\n"
          "other: %5\n");
}
END_TEST

START_TEST(gradient_by_the_backward_op) {
  recorder r = {0};
  graft_value args[] = {given(&r, GRAFT_F32, SIZES(2, 8)), given(&r, GRAFT_F32, SIZES(2, 8)),
                        given(&r, GRAFT_F32, SIZES(2, 2))};
  text_is(&r, record_gradient(&r, GRAFT_OP_THNN_FUSED_LSTM_CELL, args, 3, 7, 1, false),
          "%7 f32[2,8], %8 f32[2,2], - = aten::_thnn_fused_lstm_cell_backward_impl(grad_hy %6, cx %2, cy %4, workspace "
          "%5, has_bias 0)\n"
          "input_gates: %7\n"
          "hidden_gates: %7\n"
          "cx: %8\n");
}
END_TEST

START_TEST(gradient_to_differentiate_again) {
  recorder r = {0};
  graft_value args[] = {given(&r, GRAFT_F32, SIZES(2, 4)), fx_tensor(NULL), wrap_none(), graft_value_float(0.5)};
  args[ARG_fused_rms_norm_normalized_shape] = graft_value_ints((int64_t[]){4}, 1);
  text_is(&r, record_gradient(&r, GRAFT_OP_FUSED_RMS_NORM, args, 4, 1, 1, true),
          "%4 f32[2,4] = aten::mul.Tensor(self %0, other %0)\n"
          "%5 f32[2,1] = aten::sum.dim_IntList(self %4, dim [1], keepdim 1, dtype f32)\n"
          "%6 f32[2,1] = aten::div.Tensor(self %5, other 4)\n"
          "%7 f32[2,1] = aten::add.Tensor(self %6, other 0.5, alpha 1)\n"
          "%8 f32[2,1] = aten::rsqrt(self %7)\n"
          "%9 f32[2,4] = aten::mul.Tensor(self %0, other %8)\n"
          "%10 f32[2,4] = aten::mul.Tensor(self %3, other %9)\n"
          "%11 f32[2,1] = aten::sum.dim_IntList(self %10, dim [1], keepdim 1, dtype f32)\n"
          "%12 f32[2,1] = aten::div.Tensor(self %11, other 4)\n"
          "%13 f32[2,4] = aten::mul.Tensor(self %9, other %12)\n"
          "%14 f32[2,4] = aten::sub.Tensor(self %3, other %13, alpha 1)\n"
          "%15 f32[2,4] = aten::mul.Tensor(self %8, other %14)\n"
          "input: %15\n");
}
END_TEST

START_TEST(decomposition_with_numbers_and_views) {
  recorder r = {0};
  graft_value args[] = {given(&r, GRAFT_F32, SIZES(2, 3)), graft_value_int(-1), graft_value_bool(false)};
  text_is(&r, record_decomposition(&r, GRAFT_OP_SOFTMAX, args, 3),
          "%1 f32[2,1] = aten::amax(self %0, dim [1], keepdim 1)\n"
          "%2 f32[2,3] = aten::sub.Tensor(self %0, other %1, alpha 1)\n"
          "%3 f32[2,3] = aten::exp(self %2)\n"
          "%4 f32[2,1] = aten::sum.dim_IntList(self %3, dim [1], keepdim 1, dtype f32)\n"
          "%5 f32[2,3] = aten::div.Tensor(self %3, other %4)\n"
          "gives %5");
}
END_TEST

START_TEST(half_types_are_widened_once) {
  recorder r = {0};
  graft_value args[] = {given(&r, GRAFT_F16, SIZES(2, 3)), graft_value_int(1), graft_value_bool(false)};
  text_is(&r, record_decomposition(&r, GRAFT_OP_SOFTMAX, args, 3),
          "%1 f32[2,3] = aten::_to_copy(self %0, dtype f32, non_blocking 0, memory_format format 2)\n"
          "%2 f32[2,3] = aten::_softmax(self %1, dim 1, half_to_float 0)\n"
          "gives %2");
}
END_TEST

START_TEST(writes_go_through_the_sink) {
  recorder r = {0};
  graft_value x = given(&r, GRAFT_F32, SIZES(2, 3)), mean = given(&r, GRAFT_F32, SIZES(3)),
              var = given(&r, GRAFT_F32, SIZES(3));
  graft_value args[] = {
      x, wrap_none(), wrap_none(), mean, var, graft_value_bool(true), graft_value_float(0.25), graft_value_float(0.5)};
  text_is(&r, record_decomposition(&r, GRAFT_OP_NATIVE_BATCH_NORM, args, 8),
          "%3 f32[1,3] = aten::sum.dim_IntList(self %0, dim [0], keepdim 1, dtype f32)\n"
          "%4 f32[1,3] = aten::div.Tensor(self %3, other 2)\n"
          "%5 f32[2,3] = aten::sub.Tensor(self %0, other %4, alpha 1)\n"
          "%6 f32[2,3] = aten::mul.Tensor(self %5, other %5)\n"
          "%7 f32[1,3] = aten::sum.dim_IntList(self %6, dim [0], keepdim 1, dtype f32)\n"
          "%8 f32[1,3] = aten::div.Tensor(self %7, other 2)\n"
          "%9 f32[1,3] = aten::add.Tensor(self %8, other 0.5, alpha 1)\n"
          "%10 f32[1,3] = aten::rsqrt(self %9)\n"
          "%11 f32[2,3] = aten::sub.Tensor(self %0, other %4, alpha 1)\n"
          "%12 f32[2,3] = aten::mul.Tensor(self %11, other %10)\n"
          "%13 f32[3] = aten::view(self %4, size [3])\n"
          "%14 f32[3] = aten::mul.Tensor(self %1, other 0.75)\n"
          "%15 f32[3] = aten::mul.Tensor(self %13, other 0.25)\n"
          "%16 f32[3] = aten::add.Tensor(self %15, other %14, alpha 1)\n"
          "-> %1 = aten::copy(self %1, src %16, non_blocking 0)\n"
          "%17 f32[1,3] = aten::div.Tensor(self %7, other 1)\n"
          "%18 f32[3] = aten::view(self %17, size [3])\n"
          "%19 f32[3] = aten::mul.Tensor(self %2, other 0.75)\n"
          "%20 f32[3] = aten::mul.Tensor(self %18, other 0.25)\n"
          "%21 f32[3] = aten::add.Tensor(self %20, other %19, alpha 1)\n"
          "-> %2 = aten::copy(self %2, src %21, non_blocking 0)\n"
          "%22 f32[3] = aten::view(self %4, size [3])\n"
          "%23 f32[3] = aten::view(self %10, size [3])\n"
          "gives %12 %22 %23");
}
END_TEST

/* --- failure --- */

START_TEST(a_failure_of_the_sink_ends_the_formula) {
  recorder r = {.fail_at = 2};
  graft_value args[] = {given(&r, GRAFT_F32, SIZES(2, 3)), graft_value_int(1), graft_value_bool(false)};
  ck_assert_int_eq(record_decomposition(&r, GRAFT_OP_SOFTMAX, args, 3), GRAFT_UNIMPLEMENTED);
  ck_assert_uint_eq(r.nsteps, 2);
  ck_assert_str_eq(graft_last_error(), "the sink takes no more");
  forget(&r);
}
END_TEST

int main(void) {
  const suite_test tests[] = {ONCE(gradient_of_a_product),
                              ONCE(gradient_by_the_backward_op),
                              ONCE(gradient_to_differentiate_again),
                              ONCE(decomposition_with_numbers_and_views),
                              ONCE(half_types_are_widened_once),
                              ONCE(writes_go_through_the_sink),
                              ONCE(a_failure_of_the_sink_ends_the_formula),
                              {0}};
  return run_suite("fx", tests, (suite_options){.timeout_s = 60});
}
