/* What becomes of a failure of OpenCL, or of memory that is not there, wherever the OpenCL backend may meet one:
 * somebody is told which it was, or the results are right nevertheless; nothing is lost; and the device works
 * afterwards.
 *
 * A case of each op finds the places in the backend that call OpenCL or the C library. Each of them fails once, in a
 * life of a device of its own. `test_opencl_failures FAMILY` looks at the ops of one family. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bad_input.h"
#include "between.h"
#include "conformance/cases/cases.h"
#include "conformance/run/menu.h"
#include "conformance/run/run.h"
#include "opencl_kept.h"
#include "own_folder.h"
#include "suite.h"

/* ---- what all tests know, each in a process of its own ---- */

typedef struct known {
  between_places places;
  char now[512]; /* what is being tried, for a crash to name */
} known;
static known *all;
static const char *wanted; /* a family; NULL: all */

static void name_the_crash(int number) {
  dprintf(STDERR_FILENO, "crashed: %s\n", all->now);
  signal(number, SIG_DFL);
  raise(number);
}

static void setup(void) {
  ck_assert_msg(dlopen(OPENCL, RTLD_NOW), "%s", dlerror()); /* so that it stays where it is */
  between_begin();
  signal(SIGSEGV, name_the_crash);
  signal(SIGABRT, name_the_crash);
  signal(SIGFPE, name_the_crash);
}

/* ---- lives of a device ---- */

typedef struct life {
  const cf_case *c;
  const char *kernels;        /* for "cpu" or "gpu" */
  const between_place *fails; /* NULL: nothing */
  graft_status opened;
  char text[320]; /* where it was not opened */
  cf_result first, second;
  long left[BETWEEN_COUNTS];
} life;

/* On a stream of its own: one that has failed stays so, and others go on. */
static void run_case(graft_rt_device *device, const cf_case *c, cf_result *result) {
  graft_rt_stream *usual = graft_stream_current(device), *stream;
  *result = (cf_result){.c = *c};
  if (!cf_succeeded(result, graft_stream_create(device, 0, 0, &stream), "a stream")) return;
  graft_stream_set_current(stream);
  cf_run(&(cf_backend){.device = device, .seed = 1}, c, result);
  graft_stream_set_current(usual);
  OK(graft_stream_destroy(stream));
}

static void live(life *life) {
  graft_rt_backend *backend = NULL;
  graft_rt_device *device = NULL;
  char kernels[16];
  snprintf(kernels, sizeof kernels, "kernels=%s", life->kernels);
  const char *const options[] = {kernels, "optimize=no", NULL}; /* each life builds its programs anew */
  between_fail(life->fails, CL_OUT_OF_RESOURCES);
  life->opened = graft_backend_open(OPENCL, options, &backend);
  if (!life->opened) life->opened = graft_backend_device(backend, 0, &device);
  if (life->opened) snprintf(life->text, sizeof life->text, "%s", graft_last_error());
  if (device) run_case(device, life->c, &life->first);
  bool failed = life->fails && between_failed();
  between_fail(NULL, 0);
  if (device && failed && life->first.outcome != CF_PASS) run_case(device, life->c, &life->second);
  if (backend) OK(graft_backend_close(backend));
  between_count(life->left);
}

/* A thread of the driver may still be on its way out. */
static void expect_nothing_left(const long *before, long *left) {
  for (int tenths = 0; tenths < 50 && left[BETWEEN_BLOCKS] > before[BETWEEN_BLOCKS]; tenths++) {
    usleep(100000);
    between_count(left);
  }
  for (int i = 0; i < BETWEEN_COUNTS; i++)
    ck_assert_msg(left[i] <= before[i], "%s: %ld %s are left", all->now, left[i] - before[i], between_kinds[i]);
  ck_assert_msg(!between_misuses(), "%s: a lock is taken twice, or given back by who does not hold it", all->now);
}

static bool names_the_failure(const char *text, const between_place *place) {
  return strstr(text, "CL_OUT_OF_RESOURCES") ||
         (place->quiet && (strstr(text, "memory") || strstr(text, "OUT_OF_MEMORY")));
}

static void judge(life *life, const long *before) {
  const char *what = all->now;
  const cf_result *first = &life->first;
  if (life->opened) {
    ck_assert_msg(names_the_failure(life->text, life->fails), "%s: opening says: %s", what, life->text);
  } else if (first->outcome == CF_PASS) {
    ck_assert_msg(life->fails->quiet, "%s: nobody is told", what);
  } else {
    ck_assert_msg(names_the_failure(first->text, life->fails), "%s: %s", what, first->text);
    ck_assert_msg(life->second.outcome == CF_PASS, "%s: afterwards, on another stream: %s", what, life->second.text);
  }
  expect_nothing_left(before, life->left);
}

/* ---- cases ---- */

/* Of each way in which the backend's ops prepare themselves and are launched, one; with its kernels for GPUs where that
 * is another way. */
static const struct {
  const char *op, *kernels;
} ways[] = {
    {"aten::convolution", "cpu"},
    {"aten::convolution_backward", "cpu"},
    {"aten::mm", "cpu"},
    {"aten::bmm", "cpu"},
    {"aten::addmm", "cpu"},
    {"aten::_grouped_mm", "cpu"},
    {"aten::dot", "cpu"},
    {"aten::_scaled_dot_product_fused_attention_overrideable", "cpu"},
    {"aten::_scaled_dot_product_fused_attention_overrideable_backward", "cpu"},
    {"aten::native_layer_norm", "cpu"},
    {"aten::native_layer_norm_backward", "cpu"},
    {"aten::_fused_rms_norm", "cpu"},
    {"aten::_fused_rms_norm_backward", "cpu"},
    {"aten::renorm", "cpu"},
    {"aten::_softmax", "cpu"},
    {"aten::_thnn_fused_lstm_cell", "cpu"},
    {"aten::clamp", "cpu"},
    {"aten::argmax", "cpu"},
    {"aten::var.correction", "cpu"},
    {"aten::segment_reduce", "cpu"},
    {"aten::histc", "cpu"},
    {"aten::cumsum", "cpu"},
    {"aten::cummax", "cpu"},
    {"aten::sort", "cpu"},
    {"aten::topk", "cpu"},
    {"aten::bucketize.Tensor", "cpu"},
    {"aten::_unique2", "cpu"},
    {"aten::unique_dim", "cpu"},
    {"aten::unique_consecutive", "cpu"},
    {"aten::max_pool2d_with_indices", "cpu"},
    {"aten::max_pool2d_with_indices_backward", "cpu"},
    {"aten::avg_pool2d", "cpu"},
    {"aten::_adaptive_avg_pool2d", "cpu"},
    {"aten::fractional_max_pool2d", "cpu"},
    {"aten::grid_sampler_2d", "cpu"},
    {"aten::grid_sampler_2d_backward", "cpu"},
    {"aten::embedding", "cpu"},
    {"aten::embedding_dense_backward", "cpu"},
    {"aten::_embedding_bag", "cpu"},
    {"aten::embedding_renorm", "cpu"},
    {"aten::index.Tensor", "cpu"},
    {"aten::gather", "cpu"},
    {"aten::take", "cpu"},
    {"aten::nonzero", "cpu"},
    {"aten::scatter_add", "cpu"},
    {"aten::scatter_reduce.two", "cpu"},
    {"aten::index_put", "cpu"},
    {"aten::index_add", "cpu"},
    {"aten::masked_scatter", "cpu"},
    {"aten::put", "cpu"},
    {"aten::nll_loss_forward", "cpu"},
    {"aten::nll_loss2d_forward", "cpu"},
    {"aten::_ctc_loss", "cpu"},
    {"aten::_ctc_loss_backward", "cpu"},
    {"aten::multi_margin_loss", "cpu"},
    {"aten::multilabel_margin_loss_forward", "cpu"},
    {"aten::mse_loss", "cpu"},
    {"aten::_fft_c2c", "cpu"},
    {"aten::_fft_r2c", "cpu"},
    {"aten::_fft_c2r", "cpu"},
    {"aten::linalg_cholesky_ex", "cpu"},
    {"aten::linalg_lu_factor_ex", "cpu"},
    {"aten::linalg_lu_solve", "cpu"},
    {"aten::linalg_qr", "cpu"},
    {"aten::linalg_lstsq", "cpu"},
    {"aten::_linalg_eigh", "cpu"},
    {"aten::linalg_solve_triangular", "cpu"},
    {"aten::linalg_matrix_exp", "cpu"},
    {"aten::linalg_ldl_factor_ex", "cpu"},
    {"aten::linalg_cross", "cpu"},
    {"aten::_cdist_forward", "cpu"},
    {"aten::_foreach_add.Scalar", "cpu"},
    {"aten::_foreach_add.List", "cpu"},
    {"aten::_foreach_norm.Scalar", "cpu"},
    {"aten::_fused_adamw", "cpu"},
    {"aten::_amp_foreach_non_finite_check_and_unscale", "cpu"},
    {"aten::rand", "cpu"},
    {"aten::randn", "cpu"},
    {"aten::bernoulli.p", "cpu"},
    {"aten::multinomial", "cpu"},
    {"aten::randperm", "cpu"},
    {"aten::_standard_gamma", "cpu"},
    {"aten::native_dropout", "cpu"},
    {"aten::rrelu_with_noise", "cpu"},
    {"aten::linspace", "cpu"},
    {"aten::constant_pad_nd", "cpu"},
    {"aten::im2col", "cpu"},
    {"aten::repeat", "cpu"},
    {"aten::flip", "cpu"},
    {"aten::roll", "cpu"},
    {"aten::tril", "cpu"},
    {"graft::csr_mm", "cpu"},
    {"aten::convolution_backward", "gpu"},
    {"aten::dot", "gpu"},
    {"aten::native_layer_norm_backward", "gpu"},
    {"aten::sort", "gpu"},
    {"aten::topk", "gpu"},
};

static bool take_first(void *context, const cf_case *c, const char *id) {
  (void)id;
  *(cf_case *)context = *c;
  return false;
}

static cf_case first_case(const char *op) {
  const cf_selection selection = {.level = CF_MUSTPASS, .ops = op, .grad = -1, .ways = CF_CHOSEN_WAY};
  cf_case found = {0};
  cf_menu(&selection, take_first, &found);
  ck_assert_msg(found.op_id, "%s has no case", op);
  return found;
}

static void fail_everywhere(const cf_case *c, const char *kernels) {
  const char *name = cf_case_op(c)->name;
  uint32_t known = all->places.count;
  life usual = {.c = c, .kernels = kernels};
  snprintf(all->now, sizeof all->now, "%s, kernels for %s", name, kernels);
  between_watch(&all->places);
  live(&usual);
  between_watch(NULL);
  ck_assert_msg(!usual.opened && usual.first.outcome == CF_PASS, "%s: %s%s", all->now, usual.text, usual.first.text);
  for (uint32_t i = known; i < all->places.count; i++) {
    const between_place *place = &all->places.items[i];
    life failing = {.c = c, .kernels = kernels, .fails = place};
    snprintf(all->now, sizeof all->now, "%s, kernels for %s: %s fails", name, kernels, place->name);
    live(&failing);
    judge(&failing, usual.left);
  }
}

START_TEST(failures_are_told_and_lose_nothing) {
  const cf_case c = first_case(ways[_i].op);
  if (!wanted || strcmp(cf_topics[c.topic]->family, wanted) == 0) fail_everywhere(&c, ways[_i].kernels);
}
END_TEST

/* ---- streams, events, pinned memory and records ---- */

typedef struct told {
  graft_status status;
  char text[320];
  uint64_t lost;
  uint32_t records, names;
} told;

/* The first failure of several calls. */
static void tell(told *told, graft_status status) {
  if (!status || told->status) return;
  told->status = status;
  snprintf(told->text, sizeof told->text, "%s", graft_last_error());
}

static void take(void *context, const graft_profile_record *record) {
  told *told = context;
  told->records++;
  told->names += record->name && *record->name;
}

static void negate(graft_rt_device *device, told *told) {
  const float values[] = {1, -2, 3};
  float out[3] = {0};
  graft_tensor *from = NULL, *to = NULL;
  tell(told, graft_tensor_from_host(device, GRAFT_F32, 1, (int64_t[]){3}, values, &from));
  if (from) tell(told, graft_op_neg(from, &to));
  if (to) tell(told, graft_tensor_to_host(to, out));
  for (int i = 0; i < 3 && !told->status; i++) ck_assert_msg(out[i] == -values[i], "%s: %g", all->now, out[i]);
  graft_tensor_release(from);
  graft_tensor_release(to);
}

static void record_and_wait(graft_rt_stream *stream, graft_event_flags flags, told *told) {
  graft_rt_event *event = NULL;
  tell(told, graft_event_create(graft_stream_device(stream), flags, &event));
  if (!event) return;
  tell(told, graft_event_record(event, stream));
  tell(told, graft_stream_wait(stream, event));
  tell(told, graft_event_synchronize(event));
  graft_status asked = graft_event_query(event);
  if (asked != GRAFT_NOT_READY) tell(told, asked);
  OK(graft_event_destroy(event));
}

static void use_all(graft_rt_device *device, told *told) {
  graft_rt_stream *usual = graft_stream_current(device), *stream = NULL;
  void *pinned = NULL;
  tell(told, graft_pinned_allocate(device, 4096, &pinned));
  if (pinned) OK(graft_pinned_free(device, pinned));
  tell(told, graft_profiler_start(device));
  tell(told, graft_stream_create(device, 0, GRAFT_STREAM_TIMING, &stream));
  if (stream) {
    graft_stream_set_current(stream);
    negate(device, told);
    record_and_wait(stream, GRAFT_EVENT_TIMING, told);
    graft_stream_set_current(usual);
  }
  negate(device, told); /* on a stream that had no times */
  record_and_wait(usual, 0, told);
  graft_status asked = graft_stream_query(usual);
  if (asked != GRAFT_NOT_READY) tell(told, asked);
  tell(told, graft_profiler_stop(device));
  tell(told, graft_device_synchronize(device));
  tell(told, graft_profiler_drain(device, take, told, &told->lost));
  if (stream) OK(graft_stream_destroy(stream));
}

/* Whether it came to the failure. */
static bool use_once(const between_place *fails, told *told, long left[BETWEEN_COUNTS]) {
  graft_rt_backend *backend = NULL;
  graft_rt_device *device = NULL;
  *told = (struct told){0};
  between_fail(fails, CL_OUT_OF_RESOURCES);
  tell(told, graft_backend_open(OPENCL, NULL, &backend));
  if (backend) tell(told, graft_backend_device(backend, 0, &device));
  if (device) keep_programs(device);
  if (device) use_all(device, told);
  const bool failed = fails && between_failed();
  between_fail(NULL, 0);
  if (backend) OK(graft_backend_close(backend));
  between_count(left);
  return failed;
}

/* A life that writes its programs to a folder, and where nothing has failed one that reads them. */
static void use_twice(const between_place *fails, told *told, long left[BETWEEN_COUNTS]) {
  char folder[] = OWN_FOLDER;
  folder_make(folder);
  setenv("GRAFT_CACHE_DIR", folder, 1);
  if (!use_once(fails, told, left)) use_once(fails, told, left);
  folder_remove(folder);
}

START_TEST(failures_beside_the_ops_are_told) {
  told usual, failing;
  long before[BETWEEN_COUNTS], left[BETWEEN_COUNTS];
  uint32_t known = all->places.count;
  snprintf(all->now, sizeof all->now, "streams and records");
  between_watch(&all->places);
  use_twice(NULL, &usual, before);
  between_watch(NULL);
  ck_assert_msg(!usual.status && !usual.lost, "%s", usual.text);
  for (uint32_t i = known; i < all->places.count; i++) {
    const between_place *place = &all->places.items[i];
    snprintf(all->now, sizeof all->now, "streams and records: %s fails", place->name);
    use_twice(place, &failing, left);
    bool misses = failing.lost > 0 || failing.records < usual.records || failing.names < usual.names;
    ck_assert_msg(failing.status || misses || place->quiet, "%s: nobody is told", all->now);
    ck_assert_msg(failing.status || failing.records + failing.lost == usual.records, "%s: %u records and %llu lost",
                  all->now, failing.records, (unsigned long long)failing.lost);
    ck_assert_msg(!failing.status || names_the_failure(failing.text, place), "%s: %s", all->now, failing.text);
    expect_nothing_left(before, left);
  }
}
END_TEST

int main(int count, char **arguments) {
  if (count > 1) wanted = arguments[1];
  all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const suite_test tests[] = {
      ONCE(failures_beside_the_ops_are_told), EACH(failures_are_told_and_lose_nothing, ROWS(ways)), {0}};
  int status = run_suite("opencl_failures", tests, (suite_options){.timeout_s = 300, .setup = setup});
  if (getenv("GRAFT_TEST_PLACES")) printf("%u places\n", all->places.count);
  return status;
}
