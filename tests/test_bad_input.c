/* Bad input, through the public interface and the program: one clear line that names the thing, a status, and nothing
 * broken: what comes after still gives the right numbers. What test_plugin.c holds of discovery and loading is not said
 * again here. Each test is a process of its own. */
#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dispatch/text.h"
#include "graft/graft.h"
#include "plugin_path.h"

#define PROGRAM GRAFT_BINARY_DIR "/bin/graft"
#define OPENCL  GRAFT_BINARY_DIR "/lib/graft/plugins/graft_opencl.so"

#define OK(call) ck_assert_msg(!(call), "%s: %s", #call, graft_last_error())

/* --- devices --- */

static bool has_opencl(void) { return access(OPENCL, R_OK) == 0; }

static graft_rt_device *device_at(const char *backend, const char *const *options, int32_t index) {
  graft_rt_backend *opened;
  graft_rt_device *device;
  if (graft_backend_open(backend, options, &opened) || graft_backend_device(opened, index, &device)) return NULL;
  return device;
}

/* The device of a loop's turn: reference, async (threads, most ops fall back), OpenCL. NULL where there is none. */
enum { DEVICES = 3 };
static graft_rt_device *device_of(int turn) {
  if (turn == 0) return graft_device_reference();
  if (turn == 1) return device_at(test_plugin("async"), NULL, 0);
  return has_opencl() ? device_at(OPENCL, NULL, 0) : NULL;
}

static void assert_says(const char *text) {
  ck_assert_msg(strstr(graft_last_error(), text) != NULL, "\"%s\" does not say \"%s\"", graft_last_error(), text);
  ck_assert_msg(!strchr(graft_last_error(), '\n'), "more than one line: %s", graft_last_error());
}

/* --- what works before and after --- */

/* relu(a + b) over 17 elements, with work on the way there and back. 0 if the numbers are right, else a line. */
static int job(graft_rt_device *device) {
  enum { N = 17 };
  float a[N], b[N], got[N];
  graft_tensor *x = NULL, *y = NULL, *sum = NULL, *out = NULL;
  for (int i = 0; i < N; i++) a[i] = (float)i - 8.0f, b[i] = 0.5f * (float)i;
  if (graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){N}, a, &x)) return __LINE__;
  if (graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){N}, b, &y)) return __LINE__;
  if (graft_op_add_Tensor(x, y, graft_scalar_none(), &sum)) return __LINE__;
  if (graft_op_relu(sum, &out)) return __LINE__;
  if (graft_tensor_to_host(out, got)) return __LINE__;
  graft_tensor_release(x);
  graft_tensor_release(y);
  graft_tensor_release(sum);
  graft_tensor_release(out);
  for (int i = 0; i < N; i++) {
    float right = a[i] + b[i] > 0 ? a[i] + b[i] : 0;
    if (got[i] != right) return __LINE__;
  }
  return 0;
}

static void still_works(graft_rt_device *device) {
  int line = job(device);
  ck_assert_msg(line == 0, "line %d on %s: %s", line, graft_device_text(device), graft_last_error());
}

/* --- calls --- */

/* Small numbers; integers are indices of something of size 3 unless a test puts a bad one in. */
static graft_status fill(void *context, uint32_t index, graft_tensor *t) {
  (void)index;
  int64_t n = graft_tensor_numel(t), bad = context ? *(const int64_t *)context : 0;
  size_t bytes = GRAFT_DTYPE_BYTES(graft_tensor_dtype(t));
  char *data = calloc((size_t)n + 1, bytes);
  for (int64_t i = 0; i < n; i++) {
    float value = (float)i;
    int64_t number = i == n - 1 ? bad : i % 3;
    if (graft_tensor_dtype(t) == GRAFT_F32) memcpy(data + i * 4, &value, 4);
    if (graft_tensor_dtype(t) == GRAFT_I64) memcpy(data + i * 8, &number, 8);
  }
  graft_tensor *host = NULL;
  int64_t sizes[GRAFT_MAX_DIMS];
  memcpy(sizes, graft_tensor_sizes(t), sizeof *sizes * (size_t)graft_tensor_ndim(t));
  graft_status status = graft_tensor_from_host(graft_device_reference(), graft_tensor_dtype(t), graft_tensor_ndim(t),
                                               sizes, data, &host);
  if (!status) status = graft_tensor_copy(t, host);
  graft_tensor_release(host);
  free(data);
  return status;
}

/* Makes a call from its text and reads its results; the first failure is returned. */
static graft_status call_of(const char *line, graft_rt_device *device, const int64_t *bad_index) {
  txt_call call;
  graft_tensor *outs[4] = {NULL};
  OK(txt_parse_call(line, NULL, &call));
  OK(txt_make(&call, device, fill, (void *)(uintptr_t)bad_index));
  graft_status status = graft_call(call.schema->id, call.args, call.nargs, outs, call.schema->nrets);
  if (!status) status = graft_stream_synchronize(graft_stream_current(device));
  for (int i = 0; i < 4; i++) graft_tensor_release(outs[i]);
  txt_free(&call);
  return status;
}

typedef struct refusal {
  const char *line;
  const char *says[2];
  graft_status status;
} refusal;

static const refusal refusals[] = {
    /* shapes */
    {"aten::add.Tensor f32[2,3] f32[4]", {"f32[2,3]", "f32[4]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::mul.Tensor f32[2,3] f32[3,2]", {"aten::mul.Tensor", "f32[3,2]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::where.self bool[4] f32[3] f32[3]", {"aten::where.self", "bool[4]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::mm f32[2,3] f32[2,3]", {"aten::mm", "f32[2,3]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::mm f32[6] f32[2,3]", {"aten::mm", "f32[6]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::bmm f32[2,3,4] f32[3,4,5]", {"aten::bmm", "f32[3,4,5]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::addmm f32[7] f32[2,3] f32[3,4]", {"aten::addmm", "f32[7]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::cat {f32[2,3];f32[2,4]} 0", {"aten::cat", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::expand f32[2,3] [2,4]", {"expand", "f32[2,3]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::view f32[2,3] [4]", {"view", "f32[2,3]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::sum.dim_IntList f32[2,3] [2]", {"aten::sum.dim_IntList", "2"}, GRAFT_INVALID_ARGUMENT},
    {"aten::sum.dim_IntList f32[2,3] [0,0]", {"aten::sum.dim_IntList", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::amax f32[0,3] [0]", {"aten::amax", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::_softmax f32[2,3] 5 false", {"aten::_softmax", "5"}, GRAFT_INVALID_ARGUMENT},
    {"aten::native_layer_norm f32[2,3] [4] _ _ 1e-5", {"aten::native_layer_norm", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::convolution f32[1,3,8,8] f32[4,2,3,3] _ [1,1] [0,0] [1,1] false [0,0] 1", {"aten::convolution", NULL},
     GRAFT_INVALID_ARGUMENT},
    {"aten::convolution f32[1,3,2,2] f32[4,3,3,3] _ [1,1] [0,0] [1,1] false [0,0] 1", {"aten::convolution", NULL},
     GRAFT_INVALID_ARGUMENT},
    {"aten::max_pool2d_with_indices f32[1,1,2,2] [3,3]", {"aten::max_pool2d_with_indices", NULL},
     GRAFT_INVALID_ARGUMENT},
    {"aten::gather f32[3,4] 0 i64[3]", {"aten::gather", "i64[3]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::index_select f32[3,4] 0 i64[2,2]", {"aten::index_select", "i64[2,2]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::scatter_add f32[3,4] 0 i64[5,4] f32[2,4]", {"aten::scatter_add", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::topk f32[3] 4", {"aten::topk", "4"}, GRAFT_INVALID_ARGUMENT},
    {"aten::nll_loss_forward f32[2,3] i64[3] _ 1 -100", {"aten::nll_loss_forward", NULL}, GRAFT_INVALID_ARGUMENT},
    /* dtypes */
    {"aten::bitwise_not f32[3]", {"aten::bitwise_not", "f32"}, GRAFT_INVALID_ARGUMENT},
    {"aten::bitwise_and.Tensor f32[3] i64[3]", {"aten::bitwise_and.Tensor", "f32"}, GRAFT_INVALID_ARGUMENT},
    {"aten::mm f32[2,3] f64[3,4]", {"aten::mm", "f64"}, GRAFT_INVALID_ARGUMENT},
    {"aten::mean.dim i64[3] [0]", {"aten::mean.dim", "i64"}, GRAFT_INVALID_ARGUMENT},
    {"aten::_softmax i64[3] 0 false", {"aten::_softmax", "i64"}, GRAFT_INVALID_ARGUMENT},
    {"aten::floor c64[3]", {"aten::floor", "c64"}, GRAFT_INVALID_ARGUMENT},
    {"aten::lt.Tensor c64[3] c64[3]", {"aten::lt.Tensor", "c64"}, GRAFT_INVALID_ARGUMENT},
    {"aten::neg bool[3]", {"aten::neg", "bool"}, GRAFT_INVALID_ARGUMENT},
    {"aten::sub.Tensor bool[3] bool[3]", {"aten::sub.Tensor", "bool"}, GRAFT_INVALID_ARGUMENT},
    {"aten::where.self f32[3] f32[3] f32[3]", {"aten::where.self", "f32"}, GRAFT_INVALID_ARGUMENT},
    {"aten::embedding f32[3,4] f32[2]", {"aten::embedding", "f32"}, GRAFT_INVALID_ARGUMENT},
    {"aten::gather f32[3] 0 f32[3]", {"aten::gather", "f32"}, GRAFT_INVALID_ARGUMENT},
    {"aten::scatter.src f32[3] 0 i64[3] f64[3]", {"aten::scatter.src", "f64"}, GRAFT_INVALID_ARGUMENT},
    {"aten::nll_loss_forward f32[2,3] f32[2] _ 1 -100", {"aten::nll_loss_forward", "f32"}, GRAFT_INVALID_ARGUMENT},
    /* sizes that no memory, and no number, can hold */
    {"aten::full [4611686018427387904,4] 1", {"4611686018427387904", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::full [-1] 1", {"-1", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::full [1125899906842624] 1", {"out of memory", NULL}, GRAFT_OUT_OF_MEMORY},
    {"aten::repeat f32[3] [4611686018427387904,2]", {"aten::repeat", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::constant_pad_nd f32[3] [9223372036854775807,9223372036854775807] 0", {"aten::constant_pad_nd", NULL},
     GRAFT_INVALID_ARGUMENT},
    {"aten::constant_pad_nd f32[3] [-2,-2] 0", {"aten::constant_pad_nd", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::arange.start_step 0 1 0", {"aten::arange.start_step", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::randperm -1", {"aten::randperm", "-1"}, GRAFT_INVALID_ARGUMENT},
};

#define ROWS(cases) (int)(sizeof(cases) / sizeof *(cases))

START_TEST(refused_calls) {
  graft_rt_device *device = device_of(_i);
  if (!device) return;
  still_works(device);
  for (int i = 0; i < ROWS(refusals); i++) {
    const refusal *row = &refusals[i];
    graft_status status = call_of(row->line, device, NULL);
    ck_assert_msg(status == row->status, "%s on %s: %s, expected %s (%s)", row->line, graft_device_text(device),
                  graft_status_name(status), graft_status_name(row->status), graft_last_error());
    for (int k = 0; k < 2; k++) {
      if (row->says[k]) assert_says(row->says[k]);
    }
  }
  still_works(device);
}
END_TEST

START_TEST(impossible_tensors) {
  graft_rt_device *device = device_of(_i);
  graft_tensor *t = (graft_tensor *)1;
  if (!device) return;
  const int64_t wraps[] = {INT64_C(1) << 32, INT64_C(1) << 32}, negative[] = {3, -1}, huge[] = {INT64_C(1) << 50};
  const int64_t bytes_wrap[] = {INT64_C(1) << 61}, strides[] = {INT64_MAX}, two[] = {2};
  ck_assert_int_eq(graft_tensor_empty(device, GRAFT_F32, 2, wraps, &t), GRAFT_INVALID_ARGUMENT);
  assert_says("4294967296");
  ck_assert_int_eq(graft_tensor_empty(device, GRAFT_F64, 1, bytes_wrap, &t), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_tensor_empty(device, GRAFT_F32, 2, negative, &t), GRAFT_INVALID_ARGUMENT);
  assert_says("-1");
  ck_assert_int_eq(graft_tensor_empty_strided(device, GRAFT_F32, 1, two, strides, &t), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_tensor_empty(device, GRAFT_F32, 17, wraps, &t), GRAFT_INVALID_ARGUMENT);
  assert_says("17");
  ck_assert_int_eq(graft_tensor_empty(device, 0x12345, 1, two, &t), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(graft_tensor_empty(device, GRAFT_F32, 1, huge, &t), GRAFT_OUT_OF_MEMORY);
  assert_says(graft_device_text(device));
  ck_assert_ptr_eq(t, (void *)1);
  still_works(device);
}
END_TEST

/* --- indices out of range: at the call, or at the next synchronize, and the stream then keeps the fault --- */

static const char *const indexed[] = {
    "aten::embedding f32[3,4] i64[5]",
    "aten::gather f32[3,4] 0 i64[3,4]",
    "aten::index_select f32[3,4] 0 i64[5]",
    "aten::index.Tensor f32[3,4] {i64[5]}",
    "aten::index_put f32[3,4] {i64[5]} f32[5,4]",
    "aten::scatter.src f32[3,4] 0 i64[3,4] f32[3,4]",
    "aten::scatter_add f32[3,4] 0 i64[3,4] f32[3,4]",
    "aten::nll_loss_forward f32[5,3] i64[5] _ 1 -100",
};
static const int64_t bad_indices[] = {3, -4, 1000000, INT64_MAX, INT64_MIN};

START_TEST(index_out_of_range) {
  graft_rt_device *device = device_of(_i);
  if (!device) return;
  still_works(device);
  graft_rt_stream *usual = graft_stream_current(device);
  for (int i = 0; i < ROWS(indexed); i++) {
    for (int k = 0; k < ROWS(bad_indices); k++) {
      graft_rt_stream *stream;
      char number[32], name[64];
      OK(graft_stream_create(device, 0, 0, &stream));
      graft_stream_set_current(stream);
      graft_status status = call_of(indexed[i], device, &bad_indices[k]);
      ck_assert_msg(status == GRAFT_INVALID_ARGUMENT || status == GRAFT_STREAM_FAILED, "%s with index %lld on %s: %s",
                    indexed[i], (long long)bad_indices[k], graft_device_text(device), graft_status_name(status));
      snprintf(number, sizeof number, "%lld", (long long)bad_indices[k]);
      snprintf(name, sizeof name, "%.*s", (int)strcspn(indexed[i], " "), indexed[i]);
      assert_says(number);
      assert_says("out of range");
      if (_i != 1) assert_says(name); /* elsewhere it may be the op that it was decomposed to */
      graft_stream_set_current(usual);
      graft_stream_destroy(stream);
      still_works(device);
    }
    int64_t good = 2;
    ck_assert_msg(call_of(indexed[i], device, &good) == GRAFT_OK, "%s: %s", indexed[i], graft_last_error());
  }
}
END_TEST

/* --- tensors of another device --- */

START_TEST(tensors_of_another_device) {
  graft_rt_device *devices[] = {graft_device_reference(), device_of(1), device_at(test_plugin("async"), NULL, 1),
                                device_at(test_plugin("async"), (const char *const[]){"again=1", NULL}, 0), device_of(2)};
  const int64_t sizes[] = {2, 2};
  const float values[] = {1, 2, 3, 4};
  for (int i = 0; i < ROWS(devices); i++) {
    for (int k = 0; k < ROWS(devices); k++) {
      if (i == k || !devices[i] || !devices[k]) continue;
      graft_tensor *a = NULL, *b = NULL, *out = NULL;
      OK(graft_tensor_from_host(devices[i], GRAFT_F32, 2, sizes, values, &a));
      OK(graft_tensor_from_host(devices[k], GRAFT_F32, 2, sizes, values, &b));
      ck_assert_int_eq(graft_op_mm(a, b, &out), GRAFT_INVALID_ARGUMENT);
      assert_says("aten::mm");
      assert_says(graft_device_text(devices[k]));
      ck_assert_int_eq(graft_op_cat((graft_tensor *[]){a, b}, 2, 0, &out), GRAFT_INVALID_ARGUMENT);
      ck_assert_int_eq(graft_op_add_Tensor(a, a, graft_scalar_none(), &b), GRAFT_INVALID_ARGUMENT); /* out= */
      ck_assert_ptr_null(out);
      float got[4] = {0};
      OK(graft_tensor_copy(b, a)); /* this is what crosses */
      OK(graft_tensor_to_host(b, got));
      ck_assert_mem_eq(got, values, sizeof got);
      graft_tensor_release(a);
      graft_tensor_release(b);
    }
  }
}
END_TEST

START_TEST(devices_that_are_not_there) {
  graft_rt_device *device = NULL;
  ck_assert_int_eq(graft_device_find("nonesuch", &device), GRAFT_INVALID_ARGUMENT);
  assert_says("nonesuch");
  ck_assert_int_eq(graft_device_find("reference:7", &device), GRAFT_INVALID_ARGUMENT);
  assert_says("7");
  const char *bad[] = {"", ":", "reference:", "reference:-1", "reference:0x", "reference:99999999999999999999", "a b"};
  for (int i = 0; i < ROWS(bad); i++) ck_assert_int_ne(graft_device_find(bad[i], &device), GRAFT_OK);
  ck_assert_ptr_null(device);
  still_works(graft_device_reference());
}
END_TEST

/* --- out of memory --- */

START_TEST(out_of_memory) {
  graft_rt_device *device = device_of(_i);
  graft_tensor *big = NULL, *more = NULL, *sum = NULL;
  const int64_t sizes[] = {4 << 20};
  if (!device) return;
  still_works(device);
  OK(graft_memory_empty_cache(device));
  graft_memory_set_limit(device, 40 << 20);
  OK(graft_op_full(sizes, 1, graft_scalar_float(2), GRAFT_F32, device, &big));
  OK(graft_op_full(sizes, 1, graft_scalar_float(3), GRAFT_F32, device, &more));
  ck_assert_int_eq(graft_op_add_Tensor(big, more, graft_scalar_none(), &sum), GRAFT_OUT_OF_MEMORY);
  assert_says(graft_device_text(device));
  assert_says("limit");
  ck_assert_ptr_null(sum);
  still_works(device); /* under the limit */
  OK(graft_op_add_Tensor(big, more, graft_scalar_none(), &big));
  graft_tensor_release(more);
  more = NULL;
  OK(graft_op_neg(big, &sum)); /* there is room again */
  graft_memory_set_limit(device, 0);
  OK(graft_op_mul_Tensor(big, sum, &more));
  float *got = malloc((size_t)sizes[0] * sizeof *got);
  OK(graft_tensor_to_host(more, got));
  for (int64_t i = 0; i < sizes[0]; i++) ck_assert_msg(got[i] == -25, "element %lld is %g", (long long)i, got[i]);
  free(got);
  graft_tensor_release(big);
  graft_tensor_release(more);
  graft_tensor_release(sum);
  still_works(device);
}
END_TEST

/* --- fallback forbidden --- */

static graft_tensor *on(graft_rt_device *device) {
  graft_tensor *t = NULL;
  OK(graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){3}, (const float[]){1, 4, 9}, &t));
  return t;
}

START_TEST(fallback_forbidden) {
  setenv("GRAFT_FALLBACK", "error", 1);
  graft_tensor *a = on(device_of(1)), *out = NULL;
  float got[3];
  ck_assert_int_eq(graft_op_sqrt(a, &out), GRAFT_UNIMPLEMENTED);
  assert_says("aten::sqrt");
  assert_says("f32");
  assert_says("async");
  assert_says("GRAFT_FALLBACK=error");
  ck_assert_ptr_null(out);
  ck_assert_uint_eq(graft_fallbacks(NULL, 0), 0);
  OK(graft_op_neg(a, &out)); /* its own */
  OK(graft_tensor_to_host(out, got));
  ck_assert(got[0] == -1 && got[1] == -4 && got[2] == -9);
  graft_tensor_release(a);
  graft_tensor_release(out);
  still_works(graft_device_reference());
}
END_TEST

/* --- fork --- */

static int in_child(graft_rt_device *device, graft_tensor *t) {
  graft_tensor *out = NULL;
  float got[3];
  if (graft_op_neg(t, &out) != GRAFT_FORKED) return 1;
  if (!strstr(graft_last_error(), "fork") || !strstr(graft_last_error(), graft_device_text(device))) return 2;
  if (graft_tensor_to_host(t, got) != GRAFT_FORKED) return 3;
  if (graft_tensor_empty(device, GRAFT_F32, 1, (int64_t[]){3}, &out) != GRAFT_FORKED) return 4;
  if (graft_tensor_copy(t, t) == GRAFT_OK && graft_device_synchronize(device) != GRAFT_FORKED) return 5;
  if (out) return 6;
  graft_tensor_release(t); /* silently */
  return job(graft_device_reference());
}

START_TEST(use_after_fork) {
  graft_rt_device *device = device_of(_i);
  if (!device || !_i) return;
  still_works(device);
  still_works(graft_device_reference());
  graft_tensor *t = on(device);
  int status;
  pid_t child = fork();
  if (child == 0) _exit(in_child(device, t));
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child says %d", status);
  still_works(device);
  graft_tensor_release(t);
}
END_TEST

/* --- the cache of compiled programs --- */

static char scratch[] = "/tmp/graft_test_XXXXXX";
static char cache[80];

static void make_scratch(void) {
  ck_assert_ptr_nonnull(mkdtemp(scratch));
  snprintf(cache, sizeof cache, "%s/cache", scratch);
  setenv("GRAFT_CACHE_DIR", cache, 1);
  setenv("GRAFT_LOG", "error", 1);
}

static void remove_scratch(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", scratch);
  ck_assert_int_eq(system(command), 0);
}

/* Several programs: reaches further into compiling and writing than job. */
static int many_programs(graft_rt_device *device) {
  static const char *const lines[] = {"aten::add.Tensor f32[17] i64[17]", "aten::mul.Tensor i64[17] i64[17]",
                                      "aten::neg i64[17]",                "aten::exp f32[17]",
                                      "aten::sum.dim_IntList f32[3,17] [1]", "aten::mm f32[5,6] f32[6,7]",
                                      "aten::eq.Tensor f32[17] f32[17]",  "aten::relu f64[17]"};
  for (int i = 0; i < ROWS(lines); i++) {
    if (call_of(lines[i], device, NULL)) return __LINE__;
  }
  return job(device);
}

static pid_t start(int (*work)(graft_rt_device *device)) {
  pid_t child = fork();
  if (child) return child;
  graft_rt_device *device = device_of(2);
  _exit(device ? work(device) & 0xff : 255);
}

static void expect_success(pid_t child) {
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ended with %d (exit status %d)", status,
                WEXITSTATUS(status));
}

/* Calls visit for each compiled program and returns how many there are. */
static int each_entry(void (*visit)(const char *path, int turn)) {
  char folder[96], path[400];
  int count = 0;
  snprintf(folder, sizeof folder, "%s/opencl", cache);
  DIR *listing = opendir(folder);
  for (const struct dirent *entry; listing && (entry = readdir(listing));) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (visit) visit(path, count);
    count++;
  }
  if (listing) closedir(listing);
  return count;
}

static void spoil(const char *path, int turn) {
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  FILE *file = fopen(path, "r+b");
  ck_assert_ptr_nonnull(file);
  if (turn % 4 == 0) ck_assert_int_eq(ftruncate(fileno(file), 0), 0);
  if (turn % 4 == 1) ck_assert_int_eq(ftruncate(fileno(file), info.st_size / 2), 0);
  if (turn % 4 == 2) { /* one bit, in the middle */
    fseek(file, info.st_size / 2, SEEK_SET);
    int byte = fgetc(file);
    fseek(file, info.st_size / 2, SEEK_SET);
    fputc(byte ^ 1, file);
  }
  if (turn % 4 == 3) { /* a length that is not so */
    fseek(file, 8, SEEK_SET);
    for (int i = 0; i < 8; i++) fputc(0xff, file);
  }
  fclose(file);
}

START_TEST(corrupt_cache) {
  if (!has_opencl()) return;
  expect_success(start(many_programs));
  ck_assert_int_gt(each_entry(NULL), 4);
  each_entry(spoil);
  expect_success(start(many_programs));
  expect_success(start(many_programs)); /* from what the last one mended */
}
END_TEST

static void replace_by_folder(const char *path, int turn) {
  (void)turn;
  ck_assert_int_eq(unlink(path), 0);
  ck_assert_int_eq(mkdir(path, 0700), 0);
}

START_TEST(cache_that_takes_nothing) {
  if (!has_opencl()) return;
  expect_success(start(many_programs));
  each_entry(replace_by_folder); /* nothing can be read there, and nothing renamed to it */
  expect_success(start(many_programs));
}
END_TEST

START_TEST(unwritable_cache) {
  static const char *const places[] = {"/dev/null/cache", "/proc/cache", "relative/cache", "/"};
  if (!has_opencl()) return;
  setenv("GRAFT_CACHE_DIR", places[_i], 1);
  expect_success(start(job));
}
END_TEST

static off_t least;

static void note_size(const char *path, int turn) {
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  if (!turn || info.st_size < least) least = info.st_size;
}

/* A file ends short of what an entry needs, as on a full disk. What the driver writes on its own account is smaller. */
static int job_on_full_disk(graft_rt_device *device) {
  signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)least - 1, (rlim_t)least - 1});
  return job(device);
}

START_TEST(full_cache) {
  char command[256];
  if (!has_opencl()) return;
  expect_success(start(job));
  ck_assert_int_gt(each_entry(note_size), 0);
  snprintf(command, sizeof command, "rm -rf '%s'", cache);
  ck_assert_int_eq(system(command), 0);
  expect_success(start(job_on_full_disk));
  ck_assert_int_eq(each_entry(NULL), 0); /* no half of a file is left */
  expect_success(start(job));
}
END_TEST

START_TEST(killed_while_writing) {
  if (!has_opencl()) return;
  char own[96];
  snprintf(own, sizeof own, "%s/pocl", scratch);
  setenv("POCL_CACHE_DIR", own, 1);
  for (int round = 0; round < 8; round++) {
    pid_t child = start(many_programs);
    nanosleep(&(struct timespec){0, 40000000L * (1 + 2 * round)}, NULL);
    kill(child, SIGKILL);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
  }
  expect_success(start(many_programs));
}
END_TEST

START_TEST(two_processes_with_one_cache) {
  if (!has_opencl()) return;
  for (int round = 0; round < 2; round++) { /* cold, then warm */
    pid_t children[3];
    for (int i = 0; i < 3; i++) children[i] = start(many_programs);
    for (int i = 0; i < 3; i++) expect_success(children[i]);
  }
}
END_TEST

/* --- the program --- */

static char output[16 * 1024];

static int run(const char *environment, const char *arguments) {
  char command[4 * PATH_MAX];
  snprintf(command, sizeof command, "env %s '%s' %s 2>&1", environment, PROGRAM, arguments);
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  size_t bytes = fread(output, 1, sizeof output - 1, pipe);
  output[bytes] = 0;
  while (fgetc(pipe) != EOF) continue;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

typedef struct usage {
  const char *environment, *backend, *says;
  bool needs_opencl;
} usage;

static const usage usages[] = {
    {"OCL_ICD_VENDORS=/nonexistent", OPENCL, "no OpenCL device found", true},
    {"GRAFT_OPENCL_DEVICE=nonesuch", OPENCL, "no OpenCL device matches \"nonesuch\"", true},
    {"GRAFT_OPENCL_DEVICE=4711", OPENCL, "no OpenCL device matches \"4711\"", true},
    {"", "nonesuch", "nonesuch", false},
    {"", "/tmp/there/is/none.so", "/tmp/there/is/none.so", false},
    {"", PROGRAM, "can't be loaded", false},
    {"", "/etc/passwd", "/etc/passwd", false},
    {"", "broken_no_entry", "does not export", false},
    {"", "broken_major", "ABI major 2", false},
    {"", "broken_function", "device_open is NULL", false},
    {"", "broken_no_device", "no device", false},
    {"", "broken_device_open", "the fan is not turning", false},
};

START_TEST(the_program_says_it_in_one_line) {
  static const char *const commands[] = {"conformance --op aten.neg -b", "ops --table core -b", "check"};
  const usage *row = &usages[_i];
  if (row->needs_opencl && !has_opencl()) return;
  for (int i = 0; i < ROWS(commands); i++) {
    char arguments[2 * PATH_MAX];
    bool is_test_plugin = !strncmp(row->backend, "broken", 6);
    snprintf(arguments, sizeof arguments, "%s '%s'", commands[i],
             is_test_plugin ? test_plugin(row->backend) : row->backend);
    int status = run(row->environment, arguments);
    ck_assert_msg(status == 2, "graft %s: exit status %d:\n%s", arguments, status, output);
    if (i == 2) continue; /* check has a report of its own: see test_check.c */
    ck_assert_msg(strstr(output, row->says) != NULL, "graft %s does not say \"%s\":\n%s", arguments, row->says, output);
    const char *line_end = strchr(output, '\n');
    ck_assert_msg(line_end && !line_end[1], "graft %s: more than one line:\n%s", arguments, output);
  }
}
END_TEST

/* A plugin that fails in a slot is a red case, or none of its own, and the run goes on to its end. */
static const char *const slot_lies[] = {"slot_crash", "slot_hang", "slot_garbage", "slot_fails", "slot_overrun",
                                        "slot_input"};

START_TEST(a_bad_slot_is_a_red_case) {
  char environment[64], arguments[2 * PATH_MAX];
  snprintf(environment, sizeof environment, "GRAFT_LIE=%s", slot_lies[_i]);
  snprintf(arguments, sizeof arguments, "conformance -b '%s' --op aten.neg --dtype f32 --jobs 1 --time-limit 2",
           test_plugin("liar"));
  int status = run(environment, arguments);
  ck_assert_msg(status == 1, "%s: exit status %d:\n%s", slot_lies[_i], status, output);
  ck_assert_msg(strstr(output, "aten.neg.default/f32/") != NULL, "%s:\n%s", slot_lies[_i], output);
  status = run("", arguments);
  ck_assert_msg(status == 0, "honest: exit status %d:\n%s", status, output);
}
END_TEST

int main(void) {
  Suite *s = suite_create("bad input");
  TCase *calls = tcase_create("calls"), *files = tcase_create("cache"), *program = tcase_create("program");
  tcase_set_timeout(calls, 240);
  tcase_set_timeout(files, 240);
  tcase_set_timeout(program, 240);
  tcase_add_checked_fixture(files, make_scratch, remove_scratch);
  tcase_add_loop_test(calls, refused_calls, 0, DEVICES);
  tcase_add_loop_test(calls, impossible_tensors, 0, DEVICES);
  tcase_add_loop_test(calls, index_out_of_range, 0, DEVICES);
  tcase_add_test(calls, tensors_of_another_device);
  tcase_add_test(calls, devices_that_are_not_there);
  tcase_add_loop_test(calls, out_of_memory, 0, DEVICES);
  tcase_add_test(calls, fallback_forbidden);
  tcase_add_loop_test(calls, use_after_fork, 0, DEVICES);
  tcase_add_test(files, corrupt_cache);
  tcase_add_test(files, cache_that_takes_nothing);
  tcase_add_loop_test(files, unwritable_cache, 0, 4);
  tcase_add_test(files, full_cache);
  tcase_add_test(files, killed_while_writing);
  tcase_add_test(files, two_processes_with_one_cache);
  tcase_add_loop_test(program, the_program_says_it_in_one_line, 0, ROWS(usages));
  tcase_add_loop_test(program, a_bad_slot_is_a_red_case, 0, ROWS(slot_lies));
  suite_add_tcase(s, calls);
  suite_add_tcase(s, files);
  suite_add_tcase(s, program);
  SRunner *runner = srunner_create(s);
  srunner_set_fork_status(runner, CK_FORK);
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
