/* How many programs the OpenCL backend makes of small calls, whose shapes and layouts are no reason for one, and that a
 * small call's program gives what a large call's gives, to the bit. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"
#include "opencl_device.h"
#include "opencl_kept.h"
#include "own_folder.h"
#include "suite.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

/* --- how many --- */

enum { CALLS_MAX = 6 };
static const char *const sharing[][CALLS_MAX] = {
    {"aten::add.Tensor f32[5] f32[5]", "aten::add.Tensor f32[3,4] f32[4]", "aten::add.Tensor f32[3,4] f32[3,1]",
     "aten::add.Tensor f32[2,3,4] f32[2,1,4]", "aten::add.Tensor f32[3,4]:1,3 f32[3,4]",
     "aten::add.Tensor f32[2,3,4,5]:60,5,15,1 f32[4,1]"},
    {"aten::mul.Tensor f32[5] f32[5]", "aten::relu f32[3,4]", "aten::neg f32[3]", "aten::clamp f32[4,5] 1 2",
     "aten::addcmul f32[4,5] f32[5] f32[4,1]", "aten::maximum f32[2,3,4,5]:60,5,15,1 f32[2,3,4,5]"},
    {"aten::exp f32[5]", "aten::gelu f32[3,4]", "aten::gelu f32[3,4] approximate='tanh'", "aten::rsqrt f32[3,4]",
     "aten::softplus f32[3]", "aten::sigmoid f32[7]"},
    {"aten::pow.Tensor_Scalar f32[5] 2.0", "aten::pow.Tensor_Tensor f32[5] f32[5]", "aten::pow.Scalar 2.0 f32[5]"},
    {"aten::eq.Tensor f32[3] f32[3]", "aten::lt.Scalar f32[3,4] 1.0", "aten::isnan f32[3]"},
    {"aten::_softmax f32[3,5] -1 false", "aten::_softmax f32[4,2] -1 false", "aten::_softmax f32[2,3,100] -1 false"},
    {"aten::sum.dim_IntList f32[3,5] [1]", "aten::sum.dim_IntList f32[7,2,5] [2]",
     "aten::sum.dim_IntList f32[2,3,4,5] [0,3]", "aten::sum.dim_IntList f32[40] [0]"},
    {"aten::cat {f32[2,3];f32[2,4]} 1", "aten::cat {f32[2,3,2];f32[2,4,2]} 1",
     "aten::cat {f32[2,3,2]:12,4,1;f32[2,4,2]} 1"},
    {"aten::index_select f32[3,4] 0 i64[5]", "aten::index_select f32[2,3,4] 1 i64[5]"},
    {"aten::convolution f32[1,4,9] f32[8,4,3] _ [1] [0] [1] false [0] 1",
     "aten::convolution f32[2,3,8,8] f32[6,3,3,3] f32[6] [1,1] [1,1] [1,1] false [0,0] 1",
     "aten::convolution f32[1,3,16,16] f32[8,3,5,5] _ [2,2] [2,2] [1,1] false [0,0] 1",
     "aten::convolution f32[1,4,6,6] f32[4,2,1,1] _ [1,1] [0,0] [1,1] false [0,0] 2",
     "aten::convolution f32[1,3,20] f32[3,2,15] _ [3] [7] [1] true [0] 1"},
    {"aten::mm f32[3,4] f32[4,5]", "aten::mm f32[17,40]:1,17 f32[40,9]", "aten::bmm f32[2,3,4] f32[2,4,33]"},
    /* Of two dtypes, of which one is converted where it is read. */
    {"aten::mul.Tensor i32[3] i8[3]", "aten::mul.Tensor i32[3,4] i8[4]"},
    {"aten::mul.Tensor i64[3] bool[3]"},
    {"aten::mul.Tensor f32[3] i64[3]"},
    {"aten::mul.Tensor f32[3] f16[3]"},
    {"aten::mul.Tensor c64[3] f32[3]"},
};

/* What the call adds to the counts; those that make its operands do not count. It is waited for: a process that ends
 * while PoCL compiles what was launched may crash in its exit handlers. */
static graft_opencl_statistics counts_of(const char *line) {
  txt_call call;
  graft_tensor *out = NULL;
  OK(txt_parse_call(line, NULL, &call));
  OK(txt_make(&call, device, fill, NULL));
  const graft_opencl_statistics before = statistics();
  OK(graft_call(call.schema->id, call.args, call.nargs, &out, 1));
  OK(graft_device_synchronize(device));
  graft_tensor_release(out);
  txt_free(&call);
  const graft_opencl_statistics now = statistics();
  return (graft_opencl_statistics){.programs_built = now.programs_built - before.programs_built,
                                   .programs_loaded = now.programs_loaded - before.programs_loaded,
                                   .build_nanoseconds = now.build_nanoseconds - before.build_nanoseconds,
                                   .launches = now.launches - before.launches,
                                   .programs_with_header = now.programs_with_header - before.programs_with_header};
}

static uint64_t programs_of(const char *line) {
  const graft_opencl_statistics counts = counts_of(line);
  return counts.programs_built + counts.programs_loaded;
}

START_TEST(small_calls_share_a_program) {
  if (!device) return;
  uint64_t taken = 0;
  for (int i = 0; i < CALLS_MAX && sharing[_i][i]; i++) {
    taken += programs_of(sharing[_i][i]);
    ck_assert_msg(taken == 1, "%s: the calls up to it take %d programs, expected 1", sharing[_i][i], (int)taken);
  }
}
END_TEST

/* --- each count --- */

START_TEST(counts_go_with_the_work) {
  if (!device) return;
  const graft_opencl_statistics first = counts_of("aten::hypot f32[5] f32[5]"),
                                again = counts_of("aten::hypot f32[5] f32[5]");
  ck_assert_uint_eq(first.programs_built + first.programs_loaded, 1);
  ck_assert_uint_gt(first.build_nanoseconds, 0);
  ck_assert_uint_eq(first.launches, 1);
  ck_assert_uint_eq(first.programs_with_header, 0);
  ck_assert_uint_eq(again.programs_built + again.programs_loaded + again.build_nanoseconds, 0);
  ck_assert_uint_eq(again.launches, 1);
}
END_TEST

/* Callers of older headers know fewer; those that end before the first version's last are none. */
START_TEST(counts_are_as_many_as_there_is_room_for) {
  if (!device) return;
  const size_t known = offsetof(graft_opencl_statistics, programs_with_header);
  graft_opencl_statistics counts = {.launches = 7, .programs_with_header = 7};
  ck_assert_int_eq(ask_statistics(known - 1, &counts), GRAFT_INVALID_ARGUMENT);
  ck_assert_uint_eq(counts.launches, 7);
  OK(ask_statistics(known, &counts));
  ck_assert_uint_eq(counts.launches, statistics().launches);
  ck_assert_uint_eq(counts.programs_with_header, 7);
}
END_TEST

/* --- the same bits --- */

/* A call, and one of the first rows of its operands alone. */
static const struct {
  const char *large, *small;
  bool maybe_one; /* where the device is no CPU, both take one program */
} pairs[] = {
    {.large = "aten::add.Tensor f32[400,200] f32[400,1]", .small = "aten::add.Tensor f32[20,200] f32[20,1]"},
    {.large = "aten::mul.Tensor f16[400,200]:1,400 f16[200]", .small = "aten::mul.Tensor f16[20,200]:1,20 f16[200]"},
    {.large = "aten::exp f32[400,203]:1,400", .small = "aten::exp f32[19,203]:1,19"},
    {.large = "aten::tanh f32[81200]", .small = "aten::tanh f32[11,203]"},
    {.large = "aten::gelu f32[400,203]", .small = "aten::gelu f32[19,203]:1,19"},
    {.large = "aten::silu f32[400,203]", .small = "aten::silu f32[19,203]:1,19"},
    {.large = "aten::gt.Tensor f32[400,203] f32[203]", .small = "aten::gt.Tensor f32[19,203] f32[203]"},
    {.large = "aten::sum.dim_IntList f32[4000,37] [1]", .small = "aten::sum.dim_IntList f32[50,37] [1]"},
    {.large = "aten::sum.dim_IntList f32[400,9,100] [1]", .small = "aten::sum.dim_IntList f32[4,9,100] [1]"},
    {.large = "aten::cat {f32[300,100,2];f32[300,150,2]} 1", .small = "aten::cat {f32[3,100,2];f32[3,150,2]} 1"},
    {.large = "aten::gather f32[400,203] 1 i64[400,203]", .small = "aten::gather f32[19,203] 1 i64[19,203]"},
    {.large = "aten::pow.Tensor_Scalar f32[400,203] 0.7", .small = "aten::pow.Tensor_Scalar f32[19,203] 0.7"},
    {.large = "aten::leaky_relu f32[400,203] 0.1", .small = "aten::leaky_relu f32[19,203] 0.1"},
    {.large = "aten::clamp f32[400,203] _ 0.5", .small = "aten::clamp f32[19,203] _ 0.5"},
    {.large = "aten::sub.Tensor i64[400,203] i64[203] alpha=3",
     .small = "aten::sub.Tensor i64[19,203] i64[203] alpha=3"},
    {.large = "aten::_softmax f32[20000,2] -1 false", .small = "aten::_softmax f32[20,2] -1 false"},
    {.large = "aten::_softmax f32[20000,7] -1 false", .small = "aten::_softmax f32[20,7] -1 false"},
    {.large = "aten::_log_softmax f32[9000,13] -1 false", .small = "aten::_log_softmax f32[20,13] -1 false"},
    {.large = "aten::mm f32[600,64] f32[64,64]", .small = "aten::mm f32[40,64] f32[64,64]", .maybe_one = true},
    {.large = "aten::mm f32[600,300] f32[300,70]", .small = "aten::mm f32[30,300] f32[300,70]", .maybe_one = true},
    {.large = "aten::addmm f32[64] f32[600,64] f32[64,64]",
     .small = "aten::addmm f32[64] f32[40,64] f32[64,64]",
     .maybe_one = true},
    {.large = "aten::convolution f32[64,8,12,12] f32[6,8,3,3] f32[6] [1,1] [1,1] [1,1] false [0,0] 1",
     .small = "aten::convolution f32[1,8,12,12] f32[6,8,3,3] f32[6] [1,1] [1,1] [1,1] false [0,0] 1"},
    {.large = "aten::convolution f32[64,3,30,30] f32[5,3,7,7] _ [2,2] [3,3] [1,1] false [0,0] 1",
     .small = "aten::convolution f32[1,3,30,30] f32[5,3,7,7] _ [2,2] [3,3] [1,1] false [0,0] 1"},
};

/* By an element's number alone, so that the small tensor's are the large one's first; indices are in range. */
static graft_status fill_by_number(void *context, uint32_t index, graft_tensor *t) {
  (void)context;
  const int64_t n = graft_tensor_numel(t);
  const size_t bytes = dt_bytes(t->dtype);
  unsigned char *data = calloc((size_t)n + 1, bytes);
  graft_tensor *host = NULL;
  for (int64_t i = 0; i < n; i++) {
    const int64_t number = (i * 37 + 11 * index) % 101;
    dt_store(t->dtype, data + (size_t)i * bytes,
             (dt_value){t->dtype == GRAFT_I64 ? (double)number : (double)(number - 50) / 16.0 + 0.001, 0});
  }
  graft_status status = graft_tensor_from_host(device, t->dtype, t->ndim, t->sizes, data, &host);
  if (!status) status = graft_tensor_copy(t, host);
  graft_tensor_release(host);
  free(data);
  return status;
}

/* The first result. */
static unsigned char *result_of(const char *line, size_t *bytes) {
  txt_call call;
  graft_tensor *outs[4] = {NULL};
  OK(txt_parse_call(line, NULL, &call));
  OK(txt_make(&call, device, fill_by_number, NULL));
  OK(graft_call(call.schema->id, call.args, call.nargs, outs, call.schema->nrets));
  *bytes = (size_t)outs[0]->numel * dt_bytes(outs[0]->dtype);
  unsigned char *result = malloc(*bytes + 1);
  OK(graft_tensor_to_host(outs[0], result));
  for (uint32_t r = 0; r < call.schema->nrets; r++) graft_tensor_release(outs[r]);
  txt_free(&call);
  return result;
}

START_TEST(programs_of_large_and_small_calls_agree) {
  if (!device) return;
  size_t all, some;
  unsigned char *large = result_of(pairs[_i].large, &all);
  const uint64_t before = programs();
  unsigned char *small = result_of(pairs[_i].small, &some);
  ck_assert_msg(programs() > before || pairs[_i].maybe_one, "%s: its program is that of %s", pairs[_i].small,
                pairs[_i].large);
  ck_assert_uint_lt(some, all);
  for (size_t i = 0; i < some; i++) {
    ck_assert_msg(small[i] == large[i], "%s differs from %s in byte %zu", pairs[_i].small, pairs[_i].large, i);
  }
  free(large);
  free(small);
}
END_TEST

/* --- optimized when it pays --- */

/* Whether a driver's optimizer is put off: PoCL's, for kernels laid out for a CPU. */
static bool puts_off(void) {
  const char *kernels = getenv("GRAFT_OPENCL_KERNELS"), *optimize = getenv("GRAFT_OPENCL_OPTIMIZE");
  char driver[600];
  size_t size;
  OK(graft_device_query(device, GRAFT_DEVICE_DRIVER_VERSION, driver, sizeof driver, &size));
  bool is_pocl = strstr(driver, "PoCL") || strstr(driver, "pocl");
  return is_pocl && !(kernels && strcmp(kernels, "gpu") == 0) && !(optimize && strcmp(optimize, "yes") != 0);
}

static void repeat(const char *line, int times) {
  txt_call call;
  graft_tensor *outs[4] = {NULL};
  OK(txt_parse_call(line, NULL, &call));
  OK(txt_make(&call, device, fill, NULL));
  for (int i = 0; i < times; i++) OK(graft_call(call.schema->id, call.args, call.nargs, outs, call.schema->nrets));
  for (uint32_t r = 0; r < call.schema->nrets; r++) graft_tensor_release(outs[r]);
  txt_free(&call);
}

START_TEST(what_is_launched_often_is_optimized_once) {
  static const char line[] = "aten::fmod.Tensor f32[30] f32[7,30]";
  if (!device) return;
  size_t bytes;
  unsigned char *first = result_of(line, &bytes);
  const uint64_t before = programs();
  repeat(line, 1000);
  ck_assert_uint_eq(programs() - before, 0);
  repeat(line, 100);
  unsigned char *last = result_of(line, &bytes);
  ck_assert_uint_eq(programs() - before, puts_off());
  ck_assert_mem_eq(first, last, bytes);
  repeat(line, 2000);
  ck_assert_uint_eq(programs() - before, puts_off());
  free(first);
  free(last);
}
END_TEST

/* Its kernel is given constants twice, which the optimized one needs, too. */
START_TEST(what_is_optimized_has_all_constants) {
  static const char line[] = "aten::_fused_rms_norm f32[7,30] [30] f32[30] 1e-5";
  if (!device) return;
  size_t bytes;
  unsigned char *first = result_of(line, &bytes);
  repeat(line, 1100);
  unsigned char *last = result_of(line, &bytes);
  ck_assert_mem_eq(first, last, bytes);
  free(first);
  free(last);
}
END_TEST

START_TEST(a_large_call_is_not_slowed_by_a_small_one) {
  if (!device) return;
  ck_assert_uint_eq(programs_of("aten::tril f32[5,6] 0"), 1);
  ck_assert_uint_eq(programs_of("aten::tril f32[7,6] 1"), 0);
  ck_assert_uint_eq(programs_of("aten::tril f32[500,600] 0"), puts_off());
  ck_assert_uint_eq(programs_of("aten::tril f32[5,7] 0"), 0);
}
END_TEST

/* --- programs that are kept --- */

/* Of a device that is opened anew, with what others have left in the folder. */
static graft_opencl_statistics counts_where_they_are_kept(void) {
  open_device();
  keep_programs(device);
  const graft_opencl_statistics counts = counts_of("aten::hypot f32[5] f32[5]");
  OK(graft_backend_close(device->backend));
  return counts;
}

START_TEST(what_is_kept_is_loaded) {
  char folder[] = OWN_FOLDER;
  if (!device) return;
  OK(graft_backend_close(device->backend));
  folder_make(folder);
  setenv("GRAFT_CACHE_DIR", folder, 1);
  const graft_opencl_statistics first = counts_where_they_are_kept(), next = counts_where_they_are_kept();
  folder_remove(folder);
  ck_assert_uint_eq(first.programs_built, 1);
  ck_assert_uint_eq(first.programs_loaded, 0);
  ck_assert_uint_eq(next.programs_built, 0);
  ck_assert_uint_eq(next.programs_loaded, 1);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(small_calls_share_a_program, ROWS(sharing)),
                              ONCE(counts_go_with_the_work),
                              ONCE(counts_are_as_many_as_there_is_room_for),
                              ONCE(what_is_kept_is_loaded),
                              ONCE(what_is_launched_often_is_optimized_once),
                              ONCE(what_is_optimized_has_all_constants),
                              ONCE(a_large_call_is_not_slowed_by_a_small_one),
                              EACH(programs_of_large_and_small_calls_agree, ROWS(pairs)),
                              {0}};
  return run_suite("opencl_programs", tests, (suite_options){.timeout_s = 300, .setup = open_device});
}
