/* Ops that only move elements, views among them: each is linear, so its gradient is right if and only if
 * <op(x), v> = <x, gradient(v)> for all v; and the gradient, linear too, has the op's own map as its gradient. Fixtures
 * hold the values against PyTorch; here are the ops and layouts that they can't have. And what is refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/text/text.h"
#include "graft/autograd.h"
#include "graft/ops.h"
#include "graft/runtime.h"
#include "suite.h"
#include "tensor/view.h"

#define OK(call) ck_assert_msg((call) == GRAFT_OK, "%s\n  %s", line_now, graft_last_error())

static const char *line_now = "";
static uint64_t state;

static double draw(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(state >> 40) * 0x1p-23 - 1;
}

/* Overlapping elements get one value, the last written; indices are 1, 0, 1, ..., masks true, false, true, .... */
static graft_status fill(void *context, uint32_t index, graft_tensor *t) {
  (void)context, (void)index;
  char *data = (char *)t->storage->host_pointer;
  uint64_t bytes = dt_bytes(t->dtype);
  for (uint64_t i = 0; (i + 1) * bytes <= t->storage->bytes; i++) {
    bool number = dt_is_float(t->dtype) || dt_is_complex(t->dtype);
    bool mask = t->dtype == GRAFT_BOOL || t->dtype == GRAFT_U8;
    dt_value value = {number ? draw() : mask ? i % 3 != 1 : 1 - (int)(i % 2), dt_is_complex(t->dtype) ? draw() : 0};
    dt_store(t->dtype, data + i * bytes, value);
  }
  return GRAFT_OK;
}

static double *values_of(graft_tensor *t, int64_t *count) {
  *count = t->numel * (dt_is_complex(t->dtype) ? 2 : 1);
  double *data = calloc((size_t)*count + 2, sizeof *data);
  OK(graft_tensor_to_host(t, data));
  return data;
}

/* The real inner product. */
static double dot(graft_tensor *a, graft_tensor *b) {
  int64_t n, m;
  double *x = values_of(a, &n), *y = values_of(b, &m), sum = 0;
  ck_assert_msg(n == m, "%s", line_now);
  for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
  free(x), free(y);
  return sum;
}

static graft_tensor *random_like(graft_tensor *t) {
  graft_tensor *made;
  OK(graft_tensor_empty(t->device, t->dtype, t->ndim, t->sizes, &made));
  fill(NULL, 0, made);
  return made;
}

static void ck_close(double a, double b) {
  ck_assert_msg(fabs(a - b) <= 1e-13 * (1 + fabs(a)), "%s: %.17g is not %.17g", line_now, a, b);
}

/* <op(x), v> = <x, g>; then with w: <g(v), w> = <v, gradient of g>. Where x itself overlaps, its own w would not. */
static void judge(graft_tensor *x, graft_tensor *out) {
  graft_tensor *v = random_like(out), *g = NULL, *gg = NULL;
  OK(graft_tensor_set_requires_grad(v, true));
  OK(graft_grad(&out, &v, 1, &x, 1, GRAFT_BACKWARD_RETAIN_GRAPH | GRAFT_BACKWARD_CREATE_GRAPH, &g));
  ck_assert_msg(g != NULL, "%s: no gradient", line_now);
  ck_close(dot(out, v), dot(x, g));
  graft_tensor *w = random_like(g);
  OK(graft_grad(&g, &w, 1, &v, 1, 0, &gg));
  ck_assert_msg(gg != NULL, "%s: no gradient of the gradient", line_now);
  ck_close(dot(g, w), dot(v, gg));
  graft_tensor_release(gg);
  graft_tensor_release(w);
  graft_tensor_release(g);
  graft_tensor_release(v);
}

static const char *const linear[] = {
    "prims::conj c128[2,3]",
    "prims::real c128[2,3]",
    "prims::imag c128[2,3]:1,2",
    "aten::view_as_real c128[2,3]:1,2",
    "prims::view_of_dtype c128[2,3] f64",
    "prims::view_of_dtype f64[2,6] c128",
    "prims::view_of_dtype f64[2,6] f64",
    "prims::broadcast_in_dim f64[2,1] [4,2,3] [1,2]",
    "prims::broadcast_in_dim f64[] [2,3] []",
    "prims::collapse_view f64[2,3,4] 1 2",
    "prims::split_dim f64[2,6] 1 2",
    "prims::view_of f64[2,3]",
    "prims::transpose f64[2,3,4] [2,0,1]",
    "prims::squeeze f64[2,1,3] [1]",
    "aten::alias f64[2,3]",
    "aten::expand f64[3,1] [2,-1,4]",
    "aten::select.int f64[2,3,4]:12,1,3 -1 1",
    "aten::slice.Tensor f64[7,2] 0 1 6 2",
    "aten::diagonal f64[3,4,5] 1 2 0",
    "aten::diagonal f64[3,4] 7",
    "aten::split_with_sizes f64[5,2] [2,0,3]",
    "aten::as_strided f64[3,4]@5 [2,2] [1,3]", /* the default offset is self's */
    "aten::as_strided f64[3,4]:1,3@2 [4] [2] 3",
    "aten::as_strided f64[3,4] [3,3] [1,1] 2",       /* the result overlaps itself */
    "aten::as_strided f64[3,3]:1,1 [5] [1]",         /* self does */
    "aten::as_strided f64[3,2]:0,1@1 [2,2] [0,1] 1", /* both do */
    "aten::as_strided f64[3,4] [] [] 4",
    "prims::as_strided_scatter f64[12] f64[2,2] [2,2] [3,2] 1",
    "prims::as_strided_scatter f64[4] f64[0,3] [0,3] [9,9] 4", /* none of its elements is beyond self */
    "aten::cat {f64[2,3];f64[0];f64[2,1]:1,5} 1",
    "aten::cat {c128[2];f64[3]}",
    "aten::repeat f64[2,3] [2,1,3]",
    "aten::repeat f64[] [2,2]",
    "aten::repeat f64[2] [0]",
    "aten::flip f64[2,3,4] [0,-1]",
    "aten::constant_pad_nd f64[3,4] [1,-1,-2,3]",
    "aten::select_scatter f64[2,3] f64[2] 1 -1",
    "aten::slice_scatter f64[6,3] f64[3,3] 0 1 _ 2",
    "aten::index.Tensor f64[3,4] {bool[3]}",
    "aten::index.Tensor f64[3,4] {_;u8[4]}",
    "aten::index.Tensor f64[2,3,4] {bool[2,3];i64[]}",
    "aten::index.Tensor f64[2,3,4,2]:24,1,6,3 {i32[2];_;i64[3,1]}",
    "aten::index_put f64[3,4] {bool[3]} f64[4] true",
    "aten::index_put f64[3,4] {bool[3]} f64[2,1]",
    "aten::index_put f64[3,4] {bool[]} f64[1]",
    "aten::index_put f64[2,3,4] {i64[2];_;i64[3,1]} f64[3] true",
    "aten::index_select f64[2,3] -1 i32[]",
    "aten::gather f64[2,3] 0 i32[1,2]",
    "aten::scatter_add f64[2,3] 0 i64[1,2] f64[2,3]",
    "aten::scatter.src f64[2,3] 1 i64[2,2] f64[2,3]",
    "aten::scatter.value f64[2,3] 1 i64[2,2] 0",
    "aten::sort f64[3,4]:1,3 0 true",
    "aten::topk f64[3,4] 2 0",
    "aten::topk f64[] 1",
};

START_TEST(adjoints) {
  line_now = linear[_i];
  state = 1;
  txt_call call;
  graft_tensor *outs[8] = {NULL};
  OK(txt_parse_call(line_now, NULL, &call));
  OK(txt_make(&call, graft_device_reference(), fill, NULL));
  uint32_t nouts = call.schema->rets[0].kind == OPK_TENSORS ? call.args[1].count : call.schema->nrets;
  /* One input at a time; the others are zero, so that the op is linear in that one. */
  for (uint32_t i = 0; i < call.ntensors; i++) {
    graft_tensor *x = call.tensors[i];
    if (!x->numel || (!dt_is_float(x->dtype) && !dt_is_complex(x->dtype))) continue;
    for (uint32_t j = 0; j < call.ntensors; j++) {
      graft_tensor *t = call.tensors[j];
      if (!dt_is_float(t->dtype) && !dt_is_complex(t->dtype)) continue;
      if (j == i)
        fill(NULL, j, t);
      else if (t->numel)
        memset(t->storage->host_pointer, 0, t->storage->bytes);
    }
    OK(graft_tensor_set_requires_grad(x, true));
    OK(graft_call(call.schema->id, call.args, call.nargs, outs, nouts));
    for (uint32_t o = 0; o < nouts; o++) {
      if (dt_is_float(outs[o]->dtype) || dt_is_complex(outs[o]->dtype)) judge(x, outs[o]);
      graft_tensor_release(outs[o]);
      outs[o] = NULL;
    }
    OK(graft_tensor_set_requires_grad(x, false));
  }
  txt_free(&call);
}
END_TEST

/* as_strided reads what self's memory has beyond self, too, in which self has no share. */
START_TEST(what_lies_beyond_self_is_read) {
  enum { WHOLE = 12, PART = 4 };
  const int64_t offset = 2, sizes[] = {3}, strides[] = {4}; /* elements 2, 6 and 10 */
  const int64_t part[] = {PART}, dense[] = {1};
  const double expected[PART] = {0, 0, 1, 0};
  double got[PART];
  graft_tensor *whole, *self, *out, *ones, *g = NULL;
  line_now = "as_strided beyond self";
  OK(graft_tensor_empty(graft_device_reference(), GRAFT_F64, 1, (int64_t[]){WHOLE}, &whole));
  fill(NULL, 0, whole);
  OK(tns_as_strided(whole, 1, part, dense, NULL, &self));
  OK(graft_tensor_set_requires_grad(self, true));
  OK(graft_op_as_strided(self, sizes, 1, strides, 1, &offset, &out));
  OK(graft_tensor_from_host(graft_device_reference(), GRAFT_F64, 1, sizes, (const double[]){1, 1, 1}, &ones));
  OK(graft_grad(&out, &ones, 1, &self, 1, 0, &g));
  OK(graft_tensor_to_host(g, got));
  for (int i = 0; i < PART; i++) ck_assert_msg(got[i] == expected[i], "element %d: %g, not %g", i, got[i], expected[i]);
  graft_tensor *all[] = {whole, self, out, ones, g};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) graft_tensor_release(all[i]);
}
END_TEST

/* A call, and what the error says. Index tensors hold 1 and 0. */
static const struct {
  const char *line, *says;
} refused[] = {
    {"aten::index.Tensor f64[1,4] {i64[2]}", "index 1 is out of range for dim 0 of size 1"},
    {"aten::index_select f64[4,1] 1 i64[2]", "index 1 is out of range for dim 1 of size 1"},
    {"aten::gather f64[1,2] 0 i64[1,2]", "index 1 is out of range for dim 0 of size 1"},
    {"aten::scatter_add f64[1,2] 0 i64[1,2] f64[1,2]", "aten::scatter_add: index 1 is out of range"},
    {"aten::scatter.src f64[1,2] 0 i64[1,2] f64[1,2]", "aten::scatter.src: index 1 is out of range"},
    {"aten::index_put f64[1,2] {i64[2]} f64[]", "aten::index_put: index 1 is out of range"},
    {"aten::scatter.value f64[1,0] 1 i64[1,1] 1", "dim 1 of self f64[1,0] has no element to index"},
    {"aten::scatter_add f64[0,2] 0 i64[1,2] f64[1,2]", "dim 0 of self f64[0,2] has no element to index"},
    {"aten::index_put f64[3,4] {bool[3]} f64[3,4]", "do not broadcast"},
    {"aten::index.Tensor f64[3,4] {bool[4]}", "mask 0 differs in size"},
    {"aten::index.Tensor f64[3] {i16[2]}", "expected i64, i32, or a mask"},
    {"aten::cat {}", "at least one tensor"},
    {"aten::cat {f64[2,3];f64[2,2]} 0", "item 1 does not"},
    {"aten::topk f64[3] 4", "k is 4"},
    {"aten::arange.start_step 0 5 -1", "there is no way with step -1"},
    {"aten::full [2] 300 dtype=u8", "which u8 can't hold"},
    {"aten::full [2] 2147483648 dtype=i32", "fill_value is 2147483648, which i32 can't hold"},
    {"aten::full [2] 1+1e300j dtype=c64", "fill_value is 1 with an imaginary part, which c64 can't hold"},
    {"aten::uniform f64[2] 3.0 1.0", "no interval"},
    {"prims::as_strided_scatter f64[4] f64[3] [3] [2] 0", "beyond self"},
};

START_TEST(refusals) {
  line_now = refused[_i].line;
  txt_call call;
  graft_tensor *out = NULL;
  OK(txt_parse_call(line_now, NULL, &call));
  OK(txt_make(&call, graft_device_reference(), fill, NULL));
  graft_tensor *outs[2] = {out, NULL};
  ck_assert_msg(graft_call(call.schema->id, call.args, call.nargs, outs, call.schema->nrets) != GRAFT_OK, "%s",
                line_now);
  ck_assert_msg(strstr(graft_last_error(), refused[_i].says) != NULL, "%s: \"%s\" does not say \"%s\"", line_now,
                graft_last_error(), refused[_i].says);
  txt_free(&call);
}
END_TEST

/* Averages of elements that are all -0: sums begin with their first term, not with 0. */
static const char *const averages[] = {
    "aten::upsample_linear1d f64[1,1,3] [5] false",
    "aten::upsample_bilinear2d f32[1,1,3,2] [5,3] true",
    "aten::upsample_trilinear3d f64[1,1,3,2,2] [2,3,4] false",
    "aten::_upsample_bilinear2d_aa f32[1,1,5,4] [2,3] false",
};

static graft_status fill_minus_zero(void *context, uint32_t index, graft_tensor *t) {
  (void)context, (void)index;
  char *data = (char *)t->storage->host_pointer;
  for (int64_t i = 0; i < t->numel; i++)
    dt_store(t->dtype, data + (uint64_t)i * dt_bytes(t->dtype), (dt_value){-0.0L, 0});
  return GRAFT_OK;
}

START_TEST(minus_zero) {
  line_now = averages[_i];
  txt_call call;
  graft_tensor *out = NULL;
  OK(txt_parse_call(line_now, NULL, &call));
  OK(txt_make(&call, graft_device_reference(), fill_minus_zero, NULL));
  OK(graft_call(call.schema->id, call.args, call.nargs, &out, 1));
  const char *data = (const char *)out->storage->host_pointer;
  for (int64_t i = 0; i < out->numel; i++) {
    long double got = dt_load(out->dtype, data + (uint64_t)i * dt_bytes(out->dtype)).re;
    ck_assert_msg(got == 0 && signbit(got), "%s: element %lld is %Lg", line_now, (long long)i, got);
  }
  graft_tensor_release(out);
  txt_free(&call);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(adjoints, ROWS(linear)),
                              ONCE(what_lies_beyond_self_is_read),
                              EACH(refusals, ROWS(refused)),
                              EACH(minus_zero, ROWS(averages)),
                              {0}};
  return run_suite("movement", tests, (suite_options){.timeout_s = 60});
}
