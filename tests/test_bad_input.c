/* Bad input, through the public interface: one clear line that names the thing, a status, and nothing broken: what
 * comes after still gives the right numbers. What test_discovery.c and test_plugin.c hold is not said again here;
 * test_bad_cache.c has files and the program. Each test is a process of its own. */
#include "bad_input.h"

#include <stdarg.h>
#include <sys/wait.h>
#include "graft/abi/core_ops.h"
#include "ops/core/ref.h"
#include "suite.h"

#ifdef __SANITIZE_ADDRESS__
/* What is too large is refused, as without sanitizers. */
GRAFT_EXPORT const char *__asan_default_options(void);
const char *__asan_default_options(void) {
  return "allocator_may_return_null=1";
}
#endif

static void assert_says(const char *text) {
  ck_assert_msg(strstr(graft_last_error(), text) != NULL, "\"%s\" does not say \"%s\"", graft_last_error(), text);
  ck_assert_msg(!strchr(graft_last_error(), '\n'), "more than one line: %s", graft_last_error());
}

static void still_works(graft_rt_device *device) {
  int line = job(device);
  ck_assert_msg(line == 0, "line %d on %s: %s", line, graft_device_text(device), graft_last_error());
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
    {"aten::view f32[2,3] [4]", {"view", "[4]"}, GRAFT_INVALID_ARGUMENT},
    {"aten::sum.dim_IntList f32[2,3] [2]", {"aten::sum.dim_IntList", "2"}, GRAFT_OUT_OF_RANGE},
    {"aten::sum.dim_IntList f32[2,3] [0,0]", {"aten::sum.dim_IntList", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::amax f32[0,3] [0]", {"aten::amax", NULL}, GRAFT_OUT_OF_RANGE},
    {"aten::renorm f32[3,0] inf 0 1", {"aten::renorm", "f32[3,0]"}, GRAFT_OUT_OF_RANGE},
    {"aten::_softmax f32[2,3] 5 false", {"aten::_softmax", "5"}, GRAFT_OUT_OF_RANGE},
    {"aten::native_layer_norm f32[2,3] [4] _ _ 1e-5", {"aten::native_layer_norm", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::native_layer_norm_backward f32[2,3] f32[2,3] [3] f32[5,1] f32[2,1] _ _ [1,1,1]",
     {"aten::native_layer_norm_backward", "2 statistics"},
     GRAFT_INVALID_ARGUMENT},
    {"prims::copy_strided f32[2,3] [3,0]", {"prims::copy_strided", "share memory"}, GRAFT_INVALID_ARGUMENT},
    {"aten::convolution f32[1,3,8,8] f32[4,2,3,3] _ [1,1] [0,0] [1,1] false [0,0] 1",
     {"aten::convolution", NULL},
     GRAFT_INVALID_ARGUMENT},
    {"aten::convolution f32[1,3,2,2] f32[4,3,3,3] _ [1,1] [0,0] [1,1] false [0,0] 1",
     {"aten::convolution", NULL},
     GRAFT_INVALID_ARGUMENT},
    {"aten::max_pool2d_with_indices f32[1,1,2,2] [3,3]",
     {"aten::max_pool2d_with_indices", NULL},
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
    {"aten::_fused_rms_norm f16[2,3] [3] f64[3] 1e-05", {"aten::_fused_rms_norm", "f64"}, GRAFT_INVALID_ARGUMENT},
    {"aten::_embedding_bag_per_sample_weights_backward f32[8,3] f32[5,3] i64[9] i64[8] i64[9] 1 -1",
     {"aten::_embedding_bag_per_sample_weights_backward", "sums"},
     GRAFT_INVALID_ARGUMENT},
    {"aten::_embedding_bag_per_sample_weights_backward f32[8,3] f32[5] i64[9] i64[8] i64[9] 0 -1",
     {"aten::_embedding_bag_per_sample_weights_backward", NULL},
     GRAFT_INVALID_ARGUMENT},
    /* sizes that no memory, and no number, can hold */
    {"aten::full [4611686018427387904,4] 1", {"aten::full", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::full [-1] 1", {"-1", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::full [1125899906842624] 1", {"out of memory", NULL}, GRAFT_OUT_OF_MEMORY},
    {"aten::repeat f32[3] [4611686018427387904,2]", {NULL, NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::constant_pad_nd f32[3] [9223372036854775807,9223372036854775807] 0",
     {"aten::constant_pad_nd", NULL},
     GRAFT_INVALID_ARGUMENT},
    {"aten::constant_pad_nd f32[3] [-2,-2] 0", {"aten::constant_pad_nd", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::arange.start_step 0 1 0", {"aten::arange.start_step", NULL}, GRAFT_INVALID_ARGUMENT},
    {"aten::randperm -1", {"aten::randperm", "-1"}, GRAFT_INVALID_ARGUMENT},
    {"aten::randperm 300 dtype=u8", {"aten::randperm", "300"}, GRAFT_INVALID_ARGUMENT},
};

/* Faults of many rows are told together. */
static char report[16 * 1024];

__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...) {
  size_t used = strlen(report);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(report + used, sizeof report - used, format, arguments);
  va_end(arguments);
}

static void try_refusal(graft_rt_device *device, const refusal *row) {
  graft_status status = call_of(row->line, device, NULL);
  const char *text = graft_last_error();
  if (status != row->status) {
    tell("%s: %s, expected %s\n", row->line, graft_status_name(status), graft_status_name(row->status));
    return;
  }
  for (int k = 0; k < 2; k++) {
    if (row->says[k] && !strstr(text, row->says[k]))
      tell("%s: \"%s\" does not say %s\n", row->line, text, row->says[k]);
  }
  if (strchr(text, '\n')) tell("%s: more than one line: %s\n", row->line, text);
}

START_TEST(refused_calls) {
  graft_rt_device *device = device_of(_i);
  if (!device) return;
  still_works(device);
  for (int i = 0; i < ROWS(refusals); i++) try_refusal(device, &refusals[i]);
  still_works(device);
  ck_assert_msg(!*report, "on %s:\n%s", graft_device_text(device), report);
}
END_TEST

/* A call takes the numbers from `least` to `most` in the place of #. Its error names both, or says it in other words.
 */
typedef struct bounds {
  const char *line, *name;
  int64_t least, most;
  const char *says;
} bounds;

static const bounds all_bounds[] = {
    {"aten::grid_sampler_2d f32[1,1,3,3] f32[1,2,2,2] # 0 false", "interpolation_mode", 0, 2, NULL},
    {"aten::grid_sampler_2d f32[1,1,3,3] f32[1,2,2,2] 0 # false", "padding_mode", 0, 2, NULL},
    {"aten::grid_sampler_3d f32[1,1,3,3,3] f32[1,2,2,2,3] # 0 false", "interpolation_mode", 0, 1, NULL},
    {"aten::grid_sampler_3d f32[1,1,3,3,3] f32[1,2,2,2,3] 0 # false", "padding_mode", 0, 2, NULL},
    {"aten::topk f32[3] #", "k", 0, 3, NULL},
    {"aten::kthvalue f32[3,5] #", "k", 1, 5, NULL},
    {"aten::_cdist_forward f32[2,3] f32[4,3] 2 #", "compute_mode", 0, 2, NULL},
    {"aten::_ctc_loss f32[5,1,4] i64[1,2] [5] [2] #", "blank", 0, 3, NULL},
    {"aten::_ctc_loss f32[5,1,4] i64[1,2] [#] [0]", "input_lengths[0]", 0, 5, NULL},
    {"aten::native_dropout f32[3] # true", "p", 0, 1, NULL},
    {"aten::bernoulli.p f32[3] #", "p", 0, 1, NULL},
    {"aten::unfold_backward f32[3,3] [5] 0 3 #", "step", 1, INT64_MAX, "1 or more"},
    {"aten::linspace 0 1 #", "steps", 0, INT64_MAX, "0 or more"},
    {"aten::histc f32[3] #", "bins", 1, INT64_MAX, "1 or more"},
    {"aten::bincount i64[3] _ #", "minlength", 0, INT64_MAX, "0 or more"},
    {"aten::multinomial f32[3] # true", "num_samples", 1, INT64_MAX, "1 or more"},
    {"aten::randperm #", "n", 0, INT64_MAX, "0 or more"},
    {"aten::polygamma # f32[3]", "n", 0, INT64_MAX, "0 or more"},
    {"aten::mvlgamma f32[3] #", "p", 1, INT64_MAX, "1 or more"},
    {"aten::_cdist_forward f32[2,3] f32[4,3] # _", "p", 0, INT64_MAX, "0 or more"},
    {"aten::multi_margin_loss f32[2,3] i64[2] #", "p", 1, 2, "1 or 2"},
    {"aten::embedding_dense_backward f32[2,3] i64[2] # -1 false", "num_weights", 0, INT64_MAX, "at least 0"},
};

static graft_status call_with(const char *line, int64_t number) {
  char text[256];
  const size_t before = strcspn(line, "#");
  snprintf(text, sizeof text, "%.*s%lld%s", (int)before, line, (long long)number, line + before + 1);
  return call_of(text, graft_device_reference(), NULL);
}

START_TEST(bounds_are_those_that_errors_name) {
  const bounds *b = &all_bounds[_i];
  char says[128], range[64];
  snprintf(range, sizeof range, "%lld to %lld", (long long)b->least, (long long)b->most);
  ck_assert_msg(!call_with(b->line, b->least), "%s at %lld: %s", b->line, (long long)b->least, graft_last_error());
  if (b->most < INT64_MAX) ck_assert_msg(!call_with(b->line, b->most), "%s: %s", b->line, graft_last_error());
  for (int i = 0; i < (b->most < INT64_MAX ? 2 : 1); i++) {
    const int64_t number = i ? b->most + 1 : b->least - 1;
    ck_assert_int_eq(call_with(b->line, number), GRAFT_INVALID_ARGUMENT);
    snprintf(says, sizeof says, "%s is %lld; expected %s", b->name, (long long)number, b->says ? b->says : range);
    assert_says(says);
  }
}
END_TEST

/* The numbers that an error names are told apart, and stand where they belong. */
static const struct told {
  const char *line, *says;
} all_told[] = {
    {"aten::histc f32[3] 4 2 inf", "from 2 to inf is no finite"},
    {"aten::histc f32[3] 4 3 1", "min is 3, max is 1"},
    {"aten::uniform f32[3] 3 1", "from 3 to 1 is no interval"},
    {"aten::convolution f32[1,3,8,8] f32[4,3,3,3] _ [-1,1] [0,0] [1,1] false [0,0] 1",
     "stride holds -1; expected at least 1"},
    {"aten::convolution f32[1,5,8,8] f32[4,3,3,3] _ [1,1] [0,0] [1,1] false [0,0] 2",
     "expects an input of 6 channels with groups 2"},
    {"aten::convolution f32[1,3,2,9] f32[3,3,5,3] _ [1,1] [1,0] [1,1] false [0,0] 1",
     "the window spans 5 and the padded input 4 in spatial dim 0"},
    {"aten::im2col f32[1,2,2,3] [5,4] [1,1] [0,0] [1,1]", "no place in an image of 2 x 3"},
    {"aten::max_pool2d_with_indices f32[1,2,8,8] [2,3] [1,1] [0,2]", "padding 2 is more than half of kernel size 3"},
    {"aten::max_pool2d_with_indices f32[1,2,8,8] [2,2] [1,1] [-1,0]", "padding holds -1; expected at least 0"},
    {"aten::avg_pool3d f32[1,2,8,3,8] [2,4,3]", "the kernel's size 4 is larger than the input's 3"},
    {"aten::fractional_max_pool2d f32[1,2,7,9] [2,3] [6,8] f32[1,2,2]", "a kernel of 3 has no 8 places in a dim of 9"},
    {"aten::unfold_backward f32[3,3] [5] 0 7 1", "size is 7; expected 0 to 5, the size of dim 0"},
    {"aten::repeat f32[2,3] [4]", "repeats has 1 items; expected 2"},
    {"prims::collapse f32[2,3,4] 2 1", "dims 2 to 1 are not an interval"},
    {"aten::randint.low 5 3 [2]", "low is 5, high is 3; expected less"},
    {"aten::rrelu_with_noise f32[3] f32[3] 0.5 0.25 true", "lower is 0.5 and upper 0.25"},
    {"aten::fake_quantize_per_tensor_affine_cachemask f32[3] 0.5 0 7 3", "quant_min is 7 and quant_max 3"},
    {"aten::fake_quantize_per_tensor_affine_cachemask f32[3] 0.5 9 1 7",
     "zero_point is 9; expected one from quant_min 1 to quant_max 7"},
    {"aten::native_group_norm f32[2,6,5] _ _ 2 6 5 4 1e-5", "6 channels can't be divided into 4 groups"},
    {"aten::glu f32[2,3] 1", "dim 1 has 3 elements; expected an even number"},
    {"aten::reflection_pad1d f32[2,5] [1,6]", "padding 1, 6 reaches past a dim of 5"},
    {"aten::eye.m -2 3", "-2 rows and 3 columns"},
    {"aten::tril_indices -2 3", "-2 rows and 3 columns"},
    {"aten::arange.start_step 1 5 -2", "from 1 to 5 there is no way with step -2"},
    {"aten::_fft_c2r c64[3,7] [1] 0 20", "last_dim_size is 20 and dim 1 of self c64[3,7] has 7 bins"},
    {"aten::cat {f32[2,3];f32[2,4]} 0", "f32[2,3];f32[2,4]"},
    {"aten::where.self bool[4] f32[3] 2", "number of"},
    {"aten::bitwise_and.Tensor f32[3] 2", "number of"},
    {"aten::topk f32[3,5] 7 1", "k is 7; expected 0 to 5"},
    {"aten::sum.dim_IntList f32[2,3] [5]", "5"},
    {"aten::_embedding_bag f32[5,3] i64[2] i64[1] false 1 false f32[2]", "mode is 1"},
};

START_TEST(errors_name_numbers_in_their_order) {
  ck_assert_msg(call_of(all_told[_i].line, graft_device_reference(), NULL), "%s is taken", all_told[_i].line);
  assert_says(all_told[_i].says);
}
END_TEST

/* Ops whose PyTorch kernels take a given output of the result's own dtype alone; others cast into it. */
static const char *const exact_outputs[] = {
    "aten::gather f32[3] 0 i64[3]",
    "aten::scatter.src f32[3] 0 i64[3] f32[3]",
    "aten::scatter_add f32[3] 0 i64[3] f32[3]",
    "aten::scatter.value f32[3] 0 i64[3] 2.5",
    "aten::scatter_reduce.two f32[3] 0 i64[3] f32[3] 'sum'",
    "aten::index_reduce f32[3] 0 i64[3] f32[3] 'mean'",
    "aten::index_add f32[3] 0 i64[3] f32[3]",
    "aten::tril f32[3,3]",
    "aten::triu f32[3,3]",
    "aten::_softmax f32[3] 0 false",
    "aten::_log_softmax f32[3] 0 false",
    "aten::sort f32[3] 0",
    "aten::sort.stable f32[3] stable=true",
    "aten::topk f32[3] 2",
    "aten::kthvalue f32[3] 2",
    "aten::mode f32[3]",
    "aten::searchsorted.Tensor f32[3] f32[2]",
    "aten::bucketize.Tensor f32[2] f32[3]",
    "aten::multinomial f32[3] 2",
    "aten::max_pool2d_with_indices f32[1,4,4] [2,2]",
    "aten::max_pool3d_with_indices f32[1,4,4,4] [2,2,2]",
    "aten::adaptive_max_pool2d f32[1,4,4] [2,2]",
    "aten::adaptive_max_pool3d f32[1,4,4,4] [2,2,2]",
    "aten::avg_pool2d f32[1,4,4] [2,2]",
    "aten::linalg_lu_factor_ex f32[3,3]",
    "aten::linalg_ldl_factor_ex f32[3,3]",
};

/* The call, with output `other` of a wider dtype, or for whole numbers of i16. */
static graft_status call_into(txt_call *call, const graft_meta *metas, uint32_t count, uint32_t other) {
  graft_tensor *outs[4] = {NULL};
  graft_rt_device *reference = graft_device_reference();
  graft_status status = GRAFT_OK;
  for (uint32_t i = 0; i < count && !status; i++) {
    graft_dtype dtype = metas[i].dtype;
    if (i == other) dtype = dtype == GRAFT_F32 ? GRAFT_F64 : GRAFT_I16;
    status = graft_tensor_empty(reference, dtype, metas[i].ndim, metas[i].sizes, &outs[i]);
  }
  if (!status) status = graft_call(call->schema->id, call->args, call->nargs, outs, count);
  for (uint32_t i = 0; i < count; i++) graft_tensor_release(outs[i]);
  return status;
}

static graft_status zeros(void *context, uint32_t index, graft_tensor *tensor) {
  (void)context, (void)index;
  graft_tensor *filled = NULL;
  static const double none[64];
  graft_status status =
      graft_tensor_from_host(graft_device_reference(), tensor->dtype, tensor->ndim, tensor->sizes, none, &filled);
  if (!status) status = graft_tensor_copy(tensor, filled);
  graft_tensor_release(filled);
  return status;
}

START_TEST(given_outputs_of_another_dtype) {
  const char *line = exact_outputs[_i];
  graft_meta metas[4];
  uint32_t count = 0;
  txt_call call;
  OK(txt_parse_call(line, NULL, &call));
  OK(txt_make(&call, graft_device_reference(), zeros, NULL));
  OK(graft_infer(call.schema->id, call.args, call.nargs, metas, sizeof *metas, 4, &count));
  for (uint32_t i = 0; i < count; i++) {
    ck_assert_msg(call_into(&call, metas, count, i) == GRAFT_INVALID_ARGUMENT, "%s takes output %u", line, i);
    assert_says("given output is");
  }
  txt_free(&call);
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
    "aten::gather f32[4,3] 1 i64[4,3]",
    "aten::index_select f32[3,4] 0 i64[5]",
    "aten::index_select f32[4,3] 1 i64[5]",
    "aten::index.Tensor f32[3,4] {i64[5]}",
    "aten::index.Tensor f32[4,3] {_;i64[5]}",
    "aten::index.Tensor f32[3,3] {i32[5];i64[5]}", /* the first are zeros: only one of the two is wrong */
    "aten::index_put f32[3,4] {i64[5]} f32[5,4]",
    "aten::index_put f32[4,3] {_;i64[5]} f32[4,5]",
    "aten::index_put f32[3,3] {i32[5];i64[5]} f32[5]",
    "aten::scatter.src f32[3,4] 0 i64[3,4] f32[3,4]",
    "aten::scatter.src f32[4,3] 1 i64[4,3] f32[4,3]",
    "aten::scatter_add f32[4,3] 1 i64[4,3] f32[4,3]",
    "aten::nll_loss_forward f32[5,3] i64[5] _ 1 -100",
};
static const int64_t bad_indices[] = {3, -4, 1000000, INT64_MAX, INT64_MIN};

/* What a call with a wrong index said, or NULL if that was right. It has a stream of its own, which keeps a fault that
 * comes late. */
static const char *fault_of(int turn, graft_rt_device *device, const char *line, const wrong *w) {
  graft_rt_stream *usual = graft_stream_current(device), *stream;
  char number[32], name[64];
  OK(graft_stream_create(device, 0, 0, &stream));
  graft_stream_set_current(stream);
  graft_status status = call_of(line, device, w);
  graft_stream_set_current(usual);
  graft_stream_destroy(stream);
  snprintf(number, sizeof number, "%lld", (long long)w->index);
  snprintf(name, sizeof name, "%.*s", (int)strcspn(line, " "), line);
  if (status != GRAFT_OUT_OF_RANGE && status != GRAFT_STREAM_FAILED) return graft_status_name(status);
  if (turn == 1) return NULL; /* it may name the op that this one was decomposed to, and its index */
  return strstr(graft_last_error(), number) && strstr(graft_last_error(), name) ? NULL : graft_last_error();
}

START_TEST(index_out_of_range) {
  graft_rt_device *device = device_of(_i);
  if (!device) return;
  still_works(device);
  for (int i = 0; i < ROWS(indexed); i++) {
    for (int k = 0; k < 2 * ROWS(bad_indices); k++) {
      const wrong w = {bad_indices[k / 2], k % 2};
      const char *fault = fault_of(_i, device, indexed[i], &w);
      if (fault) tell("%s, index %lld %s: %s\n", indexed[i], (long long)w.index, w.first ? "first" : "last", fault);
    }
    still_works(device);
    ck_assert_msg(call_of(indexed[i], device, &(wrong){2, true}) == GRAFT_OK, "%s: %s", indexed[i], graft_last_error());
  }
  ck_assert_msg(!*report, "on %s, not refused:\n%s", graft_device_text(device), report);
}
END_TEST

/* Offsets of bags that go back are refused like those beyond the indices; the bags before may be as they are. */
START_TEST(bags_in_disorder) {
  graft_rt_device *device = device_of(_i);
  const int64_t sizes[] = {3, 2}, count = 8, bags = 4;
  const float values[6] = {0};
  const int64_t indices[8] = {0}, offsets[][4] = {{0, 5, 3, 8}, {0, 3, 3, 2}, {0, 3, 3, 8}};
  if (!device) return;
  still_works(device);
  for (int i = 0; i < 9; i++) {
    graft_rt_stream *usual = graft_stream_current(device), *stream;
    graft_tensor *t[3], *out[4] = {NULL};
    OK(graft_stream_create(device, 0, 0, &stream));
    graft_stream_set_current(stream);
    OK(graft_tensor_from_host(device, GRAFT_F32, 2, sizes, values, &t[0]));
    OK(graft_tensor_from_host(device, GRAFT_I64, 1, &count, indices, &t[1]));
    OK(graft_tensor_from_host(device, GRAFT_I64, 1, &bags, offsets[i % 3], &t[2]));
    graft_status status = graft_op_embedding_bag(t[0], t[1], t[2], false, i / 3, false, NULL, false, -1, &out[0],
                                                 &out[1], &out[2], &out[3]);
    if (!status) status = graft_stream_synchronize(stream);
    bool good = i % 3 == 2 ? status == GRAFT_OK : status == GRAFT_OUT_OF_RANGE || status == GRAFT_STREAM_FAILED;
    if (!good) tell("offsets %d, mode %d: %s\n", i % 3, i / 3, graft_status_name(status));
    for (int k = 0; k < 4; k++) graft_tensor_release(out[k]);
    for (int k = 0; k < 3; k++) graft_tensor_release(t[k]);
    graft_stream_set_current(usual);
    graft_stream_destroy(stream);
  }
  still_works(device);
  ck_assert_msg(!*report, "on %s:\n%s", graft_device_text(device), report);
}
END_TEST

/* --- tensors of another device --- */

START_TEST(tensors_of_another_device) {
  graft_rt_device *devices[] = {graft_device_reference(), device_of(1), device_at(test_plugin("async"), NULL, 1),
                                device_at(test_plugin("async"), (const char *const[]){"again=1", NULL}, 0),
                                device_of(2)};
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
      ck_assert_int_eq(
          graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(a), graft_value_tensor(a)}, 2, &b, 1),
          GRAFT_INVALID_ARGUMENT); /* out= */
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
  const int64_t sizes[] = {1 << 20};
  if (!device) return;
  still_works(device);
  OK(graft_memory_empty_cache(device));
  graft_memory_set_limit(device, 10 << 20);
  OK(graft_op_full(sizes, 1, graft_scalar_float(2), GRAFT_F32, device, &big));
  OK(graft_op_full(sizes, 1, graft_scalar_float(3), GRAFT_F32, device, &more));
  ck_assert_int_eq(graft_op_add_Tensor(big, more, graft_scalar_none(), &sum), GRAFT_OUT_OF_MEMORY);
  assert_says(graft_device_text(device));
  assert_says("limit");
  ck_assert_ptr_null(sum);
  still_works(device); /* under the limit */
  OK(graft_call(GRAFT_OP_ADD_TENSOR, (graft_value[]){graft_value_tensor(big), graft_value_tensor(more)}, 2, &big, 1));
  graft_tensor_release(more);
  more = NULL;
  OK(graft_op_neg(big, &sum)); /* there is room again */
  graft_memory_set_limit(device, 0);
  OK(graft_op_mul_Tensor(big, sum, &more));
  float *got = malloc((size_t)sizes[0] * sizeof *got);
  OK(graft_tensor_to_host(more, got));
  int64_t i = 0;
  while (i < sizes[0] && got[i] == -25) i++; /* an assertion for each element would write a message for each */
  ck_assert_msg(i == sizes[0], "element %lld is %g", (long long)i, got[i < sizes[0] ? i : 0]);
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
  ck_assert_uint_eq(graft_fallbacks(NULL, 0, 0), 0);
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

/* --- names and texts --- */

START_TEST(no_op_has_no_name) {
  ck_assert_uint_eq(graft_op_find(NULL), 0);
  assert_says("name");
  ck_assert_uint_eq(graft_op_find("aten::no_such_op"), 0);
}
END_TEST

/* A caller of a later version may name what a kernel of this one does not know. */
START_TEST(unknown_texts_are_seen) {
  graft_args_scatter_reduce_two args = {.head.op_id = GRAFT_OP_SCATTER_REDUCE_TWO,
                                        .reduce = GRAFT_STR_SCATTER_REDUCE_MEAN};
  const op_schema *schema = op_schema_of(args.head.op_id);
  ck_assert(ref_texts_are_known(schema, &args));
  args.reduce = 1000;
  ck_assert(!ref_texts_are_known(schema, &args));
}
END_TEST

START_TEST(an_ignored_index_passes) {
  txt_call call;
  op_range range;
  OK(txt_parse_call("aten::nll_loss_forward f32[5,3] i64[5] _ 1 -7", NULL, &call));
  OK(txt_make(&call, graft_device_reference(), fill, NULL));
  ck_assert(op_index_range(call.schema, call.args, 1, 0, &range));
  ck_assert(op_in_range(&range, -7) && op_in_range(&range, 2));
  ck_assert(!op_in_range(&range, -8) && !op_in_range(&range, 3) && !op_in_range(&range, 0x7fffffff));
  txt_free(&call);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(refused_calls, DEVICES),
                              EACH(given_outputs_of_another_dtype, ROWS(exact_outputs)),
                              EACH(impossible_tensors, DEVICES),
                              EACH(index_out_of_range, DEVICES),
                              EACH(bags_in_disorder, DEVICES),
                              ONCE(tensors_of_another_device),
                              ONCE(devices_that_are_not_there),
                              EACH(out_of_memory, DEVICES),
                              ONCE(fallback_forbidden),
                              EACH(use_after_fork, DEVICES),
                              ONCE(no_op_has_no_name),
                              ONCE(unknown_texts_are_seen),
                              ONCE(an_ignored_index_passes),
                              EACH(errors_name_numbers_in_their_order, ROWS(all_told)),
                              EACH(bounds_are_those_that_errors_name, ROWS(all_bounds)),
                              {0}};
  return run_suite("bad input", tests, (suite_options){.timeout_s = 240});
}
