/* What the OpenCL backend says of a device, held to what the driver says; and devices that lack what the driver's has,
 * by a driver that says so. */
#include <dlfcn.h>
#include <stdio.h>

#include "bad_input.h"
#include "between.h"
#include "device/device.h"
#include "ops/core/schema.h"
#include "suite.h"
#include "tensor/dtype.h"

static const graft_plugin *plugin;
static cl_device_id driver_device;

static void setup(void) {
  ck_assert_msg(dlopen(OPENCL, RTLD_NOW), "%s", dlerror()); /* no device is open yet: it is asked as it is opened */
  between_begin();
}

static graft_rt_device *open_device(void) {
  graft_rt_device *device = device_at(OPENCL, NULL, 0);
  const graft_native_handle_api *native;
  void *handle;
  ck_assert_msg(device, "%s", graft_last_error());
  plugin = &device->backend->plugin;
  OK(plugin->extension(plugin->self, GRAFT_EXTENSION_NATIVE_HANDLE, 1, (const void **)&native));
  OK(native->device(device->handle, &handle));
  driver_device = handle;
  return device;
}

/* ---- answers ---- */

static graft_status query(graft_device_key key, void *value, size_t capacity, size_t *size) {
  return plugin->device_query(plugin->self, 0, key, value, capacity, size);
}

static uint64_t number_of(graft_device_key key) {
  uint64_t value = 0;
  size_t size = 0;
  OK(query(key, &value, sizeof value, &size));
  ck_assert(size == 4 || size == 8);
  return value;
}

static uint64_t drivers_number(cl_device_info question) {
  uint64_t value = 0;
  ck_assert_int_eq(clGetDeviceInfo(driver_device, question, sizeof value, &value, NULL), CL_SUCCESS);
  return value;
}

static void drivers_text(cl_device_info question, char *text, size_t capacity) {
  ck_assert_int_eq(clGetDeviceInfo(driver_device, question, capacity, text, NULL), CL_SUCCESS);
}

START_TEST(answers_are_the_drivers) {
  char name[256], vendor[256], driver[256], version[256], text[600], expected[600];
  size_t size;
  drivers_text(CL_DEVICE_NAME, name, sizeof name);
  drivers_text(CL_DEVICE_VENDOR, vendor, sizeof vendor);
  drivers_text(CL_DRIVER_VERSION, driver, sizeof driver);
  drivers_text(CL_DEVICE_VERSION, version, sizeof version);
  snprintf(expected, sizeof expected, "%s, %s", driver, version);
  OK(query(GRAFT_DEVICE_NAME, text, sizeof text, &size));
  ck_assert_str_eq(text, name);
  ck_assert_uint_eq(size, strlen(name) + 1);
  OK(query(GRAFT_DEVICE_VENDOR, text, sizeof text, &size));
  ck_assert_str_eq(text, vendor);
  ck_assert_uint_eq(size, strlen(vendor) + 1);
  OK(query(GRAFT_DEVICE_DRIVER_VERSION, text, sizeof text, &size));
  ck_assert_str_eq(text, expected);
  ck_assert_uint_eq(size, strlen(expected) + 1);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_TOTAL_MEMORY), drivers_number(CL_DEVICE_GLOBAL_MEM_SIZE));
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_MAX_ALLOCATION), drivers_number(CL_DEVICE_MAX_MEM_ALLOC_SIZE));
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_COMPUTE_UNITS), drivers_number(CL_DEVICE_MAX_COMPUTE_UNITS));
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_VECTOR_WIDTH), drivers_number(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT));
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_UNIFIED_MEMORY), drivers_number(CL_DEVICE_HOST_UNIFIED_MEMORY) != 0);
  /* And its own. */
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_ALIGNMENT), 64);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_GRANULARITY), 1);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_COPY_GRANULARITY), 1);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_INDIVISIBLE), 0);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_STREAM_FLAGS), GRAFT_STREAM_TIMING);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_EVENT_FLAGS), GRAFT_EVENT_TIMING);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_MEMORY_FLAGS), 0);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_MEMORY_KINDS), 1u << GRAFT_MEMORY_DEVICE | 1u << GRAFT_MEMORY_PINNED);
}
END_TEST

START_TEST(answers_that_do_not_fit_are_not_written) {
  char text[4] = "abc";
  size_t size = 0;
  uint64_t value = 77;
  ck_assert_int_eq(query(GRAFT_DEVICE_NAME, text, 2, &size), GRAFT_INVALID_ARGUMENT);
  ck_assert_str_eq(text, "abc");
  ck_assert_uint_gt(size, 2);
  ck_assert_int_eq(query(GRAFT_DEVICE_TOTAL_MEMORY, &value, 7, &size), GRAFT_INVALID_ARGUMENT);
  ck_assert_uint_eq(value, 77);
  ck_assert_uint_eq(size, 8);
  ck_assert_int_eq(query(GRAFT_DEVICE_FREE_MEMORY, &value, sizeof value, &size), GRAFT_UNIMPLEMENTED);
  ck_assert_int_eq(query(12345, &value, sizeof value, &size), GRAFT_UNIMPLEMENTED);
}
END_TEST

START_TEST(devices_that_are_not_there) {
  graft_device *device;
  int32_t count = 0;
  uint64_t value;
  OK(plugin->device_count(plugin->self, &count));
  ck_assert_int_gt(count, 0);
  const int32_t absent[] = {-1, count};
  for (int i = 0; i < ROWS(absent); i++) {
    char expected[64];
    snprintf(expected, sizeof expected, "OpenCL device %d of %d", absent[i], count);
    ck_assert_int_eq(plugin->device_query(plugin->self, absent[i], GRAFT_DEVICE_KIND, &value, sizeof value, NULL),
                     GRAFT_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(graft_last_error(), expected));
    ck_assert_int_eq(plugin->device_open(plugin->self, absent[i], &device), GRAFT_INVALID_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(graft_last_error(), expected));
  }
}
END_TEST

/* ---- devices of other kinds ---- */

static const struct {
  cl_device_type type;
  uint32_t kind;
} device_kinds[] = {
    {CL_DEVICE_TYPE_CPU, GRAFT_DEVICE_KIND_CPU},
    {CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_DEFAULT, GRAFT_DEVICE_KIND_GPU},
    {CL_DEVICE_TYPE_ACCELERATOR, GRAFT_DEVICE_KIND_ACCELERATOR},
    {CL_DEVICE_TYPE_CUSTOM, GRAFT_DEVICE_KIND_OTHER},
};

START_TEST(kinds_of_devices) {
  between_pretend(CL_DEVICE_TYPE, &device_kinds[_i].type, sizeof device_kinds[_i].type);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_KIND), device_kinds[_i].kind);
  between_pretend(0, NULL, 0);
}
END_TEST

#define BIT(name) (UINT64_C(1) << GRAFT_NUMBER_##name)
static const uint64_t halves = BIT(F16) | BIT(BF16), doubles = BIT(F64) | BIT(C128), singles = BIT(F32) | BIT(C64);
static const uint64_t integers =
    BIT(BOOL) | BIT(U8) | BIT(I8) | BIT(U16) | BIT(I16) | BIT(U32) | BIT(I32) | BIT(U64) | BIT(I64);

START_TEST(dtypes_follow_the_driver) {
  static const char none[] = "cl_khr_byte_addressable_store", fp64[] = "cl_khr_fp16 cl_khr_fp64 cl_khr_spir";
  between_pretend(CL_DEVICE_EXTENSIONS, fp64, sizeof fp64);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_DTYPES), integers | halves | singles | doubles);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_DENORMALS) & doubles, doubles); /* cl_khr_fp64 has them */
  between_pretend(CL_DEVICE_EXTENSIONS, none, sizeof none);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_DTYPES), integers | halves | singles);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_DENORMALS) & doubles, 0);
  cl_device_fp_config config = CL_FP_DENORM | CL_FP_INF_NAN;
  between_pretend(CL_DEVICE_SINGLE_FP_CONFIG, &config, sizeof config);
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_DENORMALS) & ~doubles, halves | singles);
  config = CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST;
  ck_assert_uint_eq(number_of(GRAFT_DEVICE_DENORMALS) & ~doubles, BIT(F16));
  between_pretend(0, NULL, 0);
}
END_TEST

/* A driver need not know what another one's extension asks about: it is asked for the extension. */
START_TEST(devices_are_asked_what_they_know) {
  static const char *const options[][2] = {{"kernels=cpu", NULL}, {"kernels=gpu", NULL}};
  static const char *const calls[] = {"aten::mode f32[33,17] 1", "aten::mm f32[33,40] f32[40,17]",
                                      "aten::sum.dim_IntList bf16[33,17] [1]"};
  graft_rt_device *device = device_at(OPENCL, options[_i], 0);
  ck_assert_msg(device, "%s", graft_last_error());
  for (int i = 0; i < ROWS(calls); i++) OK(call_of(calls[i], device, NULL));
  OK(graft_device_synchronize(device));
  ck_assert_int_eq(between_refusals(), 0);
}
END_TEST

static graft_rt_device *pretending(cl_device_info question, const void *value, size_t bytes) {
  between_pretend(question, value, bytes);
  return open_device();
}

START_TEST(without_f64_no_op_says_that_it_has_it) {
  static const char none[] = "cl_khr_byte_addressable_store";
  graft_rt_device *device = pretending(CL_DEVICE_EXTENSIONS, none, sizeof none);
  graft_op_caps caps = {.struct_size = sizeof caps};
  OK(device->backend->plugin.op_caps(device->handle, GRAFT_OP_ADD_TENSOR, &caps));
  ck_assert_uint_eq((caps.input_dtypes | caps.output_dtypes) & doubles, 0);
  ck_assert_uint_eq(caps.input_dtypes & singles, singles);
  ck_assert_int_eq(job(device), 0);
  between_pretend(0, NULL, 0);
}
END_TEST

/* A later host may ask for ops of which this plugin has never heard. */
START_TEST(ids_that_no_table_has) {
  static const uint32_t ids[] = {UINT32_MAX, 1u << 30, GRAFT_OP_ADD_TENSOR + (1u << 20)};
  enum { FOUR_TABLES = 40000 }; /* of which there are three */
  graft_rt_device *device = open_device();
  graft_op_caps caps = {.struct_size = sizeof caps};
  for (int i = 0; i < ROWS(ids); i++)
    ck_assert_int_eq(device->backend->plugin.op_caps(device->handle, ids[i], &caps), GRAFT_UNIMPLEMENTED);
  for (uint32_t id = 0; id < FOUR_TABLES; id++) {
    if (op_schema_of(id)) continue;
    const graft_status status = device->backend->plugin.op_caps(device->handle, id, &caps);
    ck_assert_msg(status == GRAFT_UNIMPLEMENTED, "id %u: %d", id, status);
  }
}
END_TEST

/* Whole numbers so small that all their sums are exact; integers are indices as `fill` has them. */
static graft_status fill_small(void *context, uint32_t index, graft_tensor *t) {
  const graft_dtype dtype = graft_tensor_dtype(t);
  if (dtype == GRAFT_I64 || dtype == GRAFT_BOOL || dtype == GRAFT_I8) return fill(context, index, t);
  const int64_t n = graft_tensor_numel(t);
  const size_t bytes = GRAFT_DTYPE_BYTES(dtype);
  char *data = calloc((size_t)n + 1, bytes);
  for (int64_t i = 0; i < n; i++) {
    const dt_value value = {.re = (long double)(i * 7 % 11 - 5), .im = (long double)(i % 7 - 3)};
    dt_store(dtype, data + (size_t)i * bytes, value);
  }
  const graft_status status = put_elements(t, data);
  free(data);
  return status;
}

/* The same, to the bit, as the reference makes of it. */
static void expect_agreement(graft_rt_device *device, const char *line, unsigned number) {
  enum { ELEMENTS = 1 << 17 };
  static double values[2][ELEMENTS];
  graft_rt_device *const devices[] = {graft_device_reference(), device};
  size_t bytes = 0;
  for (int d = 0; d < 2; d++) {
    graft_tensor *out = NULL;
    txt_call call;
    OK(txt_parse_call(line, NULL, &call));
    OK(txt_make(&call, devices[d], fill_small, NULL));
    OK(graft_call(call.schema->id, call.args, call.nargs, &out, 1));
    ck_assert_int_le(graft_tensor_numel(out), ELEMENTS);
    bytes = (size_t)graft_tensor_numel(out) * GRAFT_DTYPE_BYTES(graft_tensor_dtype(out));
    OK(graft_tensor_to_host(out, values[d]));
    graft_tensor_release(out);
    txt_free(&call);
  }
  ck_assert_msg(memcmp(values[0], values[1], bytes) == 0, "%s is not the reference's with %u", line, number);
}

/* Whatever width its vectors have, a device adds right, up to the last element. */
START_TEST(vectors_of_all_widths) {
  static const cl_uint widths[] = {0, 1, 4, 7, 8, 15, 16, 64};
  static const char *const calls[][2] = {
      {"aten::add.Tensor", "f32["}, {"aten::mul.Tensor", "i64["}, {"aten::add.Tensor", "f32[3,"}};
  graft_rt_device *device = pretending(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, &widths[_i], sizeof *widths);
  for (int i = 0; i < 3 * ROWS(calls); i++) {
    static const int sizes[] = {1, 16, 37};
    const char *op = calls[i / 3][0], *shape = calls[i / 3][1];
    char line[80];
    snprintf(line, sizeof line, "%s %s%d] %s%d]", op, shape, sizes[i % 3], shape, sizes[i % 3]);
    expect_agreement(device, line, widths[_i]);
  }
  between_pretend(0, NULL, 0);
}
END_TEST

/* Work is cut by how many compute units there are, of which this machine has some number: all of it is done with any.
 * Of whole numbers, whose sums are exact in each order. */
static const char *const cut[] = {
    "aten::_int_mm i8[33,40] i8[40,48]",
    "aten::mm i64[33,1300] i64[1300,48]",
    "aten::mm f32[9,40] f32[40,12]",
    "aten::mm f32[33,1300]:1,33 f32[1300,48]",
    "aten::mm f64[33,1300]:1,33 f64[1300,48]",
    "aten::mm c64[65,1300]:1,65 c64[1300,33]",
    "aten::bmm f32[3,9,40] f32[3,40,4]",
    "aten::convolution f32[2,3,8,8] f32[4,3,3,3] f32[4] [1,1] [1,1] [1,1] false [0,0] 1",
    "aten::convolution f32[1,4,60] f32[4,1,3] _ [1] [1] [1] false [0] 4",
    "aten::upsample_nearest2d f32[1,3,40,40] [80,80]",
    "aten::sum.dim_IntList i64[3,40000] [1]",
    "aten::sum.dim_IntList i64[40000,3] [0]",
    "aten::sum.dim_IntList i64[300,7,50] [1]",
    "aten::argmax i64[70000]",
    "aten::argmax i64[300,200] 0",
    "aten::cumsum i64[5,3001] 1",
    "aten::cumsum i64[70000] 0",
    "aten::nonzero i64[30000]",
    "aten::masked_select i64[30000] bool[30000]",
    "aten::bincount i64[30000]",
    "aten::index_select i64[300,40] 0 i64[900]",
    "aten::scatter_add i64[3,50] 0 i64[900,50] i64[900,50]",
    "aten::embedding f32[3,40] i64[900]",
    "aten::tril i64[300,301]",
    "aten::flip i64[300,301] [0,1]",
    "aten::cat {i64[300,40];i64[300,41]} 1",
    "aten::arange.start_step 0 70000 1 dtype=i64",
};

START_TEST(any_number_of_compute_units) {
  static const cl_uint units[] = {1, 3, 16, 128};
  static const char *const options[][3] = {{"kernels=cpu", "optimize=no", NULL}, {"kernels=gpu", "optimize=no", NULL}};
  const cl_uint *number = &units[_i / 2];
  between_pretend(CL_DEVICE_MAX_COMPUTE_UNITS, number, sizeof *number);
  graft_rt_device *device = device_at(OPENCL, options[_i % 2], 0);
  ck_assert_msg(device, "%s", graft_last_error());
  for (int i = 0; i < ROWS(cut); i++) expect_agreement(device, cut[i], *number);
  between_pretend(0, NULL, 0);
}
END_TEST

/* In how many rows and columns a product's tile has, and its panels, the width of a vector tells; units, whether there
 * are panels. So do those of a convolution. */
static const char *const tiled[] = {
    "aten::mm f32[33,700]:1,33 f32[700,48]",
    "aten::mm f64[33,700] f64[700,48]:1,700",
    "aten::mm c64[65,700]:1,65 c64[700,33]",
    "aten::mm f32[9,40] f32[40,12]",
    "aten::bmm f32[3,33,700] f32[3,700,21]",
    "aten::convolution f32[2,16,12,12] f32[24,16,3,3] f32[24] [1,1] [1,1] [1,1] false [0,0] 1",
    "aten::convolution f32[2,16,12,12] f32[16,8,3,3] _ [2,2] [1,1] [1,1] true [0,0] 1",
};

START_TEST(tiles_of_all_widths) {
  static const cl_uint widths[] = {4, 8, 16}, many = 64;
  static const char *const options[] = {"kernels=cpu", "optimize=no", NULL};
  const cl_uint *width = &widths[_i / 2];
  between_pretend(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, width, sizeof *width);
  if (_i % 2) between_pretend_too(CL_DEVICE_MAX_COMPUTE_UNITS, &many, sizeof many);
  graft_rt_device *device = device_at(OPENCL, options, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  for (int i = 0; i < ROWS(tiled); i++) expect_agreement(device, tiled[i], *width);
  between_pretend(0, NULL, 0);
}
END_TEST

/* Each of the first three kinds by its own name alone. */
enum { NAMED_KINDS = 3 };
START_TEST(devices_are_chosen_by_kind) {
  static const char *const choices[NAMED_KINDS][2] = {{"device=cpu"}, {"device=gpu"}, {"device=accelerator"}};
  between_pretend(CL_DEVICE_TYPE, &device_kinds[_i].type, sizeof device_kinds[_i].type);
  for (int c = 0; c < NAMED_KINDS; c++)
    ck_assert_msg((device_at(OPENCL, choices[c], 0) != NULL) == (c == _i), "%s", choices[c][0]);
  between_pretend(0, NULL, 0);
}
END_TEST

/* ---- instructions that not every device has ---- */

static bool has_dots; /* a program was compiled in which bytes are multiplied by an instruction of AVX-512 */

static void note_program(void *context, graft_log_level level, const char *text) {
  (void)context, (void)level;
  has_dots |= strstr(text, "quantized/bytes.cl") != NULL;
}

/* Of PoCL's device, which is this processor. */
static bool dots_here(void) {
  char version[600];
  OK(query(GRAFT_DEVICE_DRIVER_VERSION, version, sizeof version, NULL));
  if (!strstr(version, "PoCL") && !strstr(version, "pocl")) return false;
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx512vnni") && number_of(GRAFT_DEVICE_VECTOR_WIDTH) >= 16;
#else
  return false;
#endif
}

static const cl_device_type gpu = CL_DEVICE_TYPE_GPU;
static const cl_uint narrow = 8;
static const struct instructions {
  const char *option;
  cl_device_info question; /* 0: the device is what it is */
  const void *answer;
  size_t bytes;
  bool may;
} instructions[] = {{"kernels=cpu", 0, NULL, 0, true},
                    {"kernels=gpu", 0, NULL, 0, false},
                    {"kernels=portable", 0, NULL, 0, false},
                    {"optimize=no", CL_DEVICE_TYPE, &gpu, sizeof gpu, false},
                    {"kernels=cpu", CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, &narrow, sizeof narrow, false}};

/* They are in the programs of a processor that has them alone, and not in portable ones. */
START_TEST(instructions_are_those_of_the_device) {
  const struct instructions *row = &instructions[_i];
  setenv("GRAFT_LOG", "debug", 1);
  graft_log_set_sink(note_program, NULL);
  between_pretend(row->question, row->answer, row->bytes);
  graft_rt_device *device = device_at(OPENCL, (const char *const[]){row->option, NULL}, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  plugin = &device->backend->plugin;
  ck_assert_msg(!call_of("aten::_int_mm i8[17,32] i8[32,64]", device, NULL), "%s", graft_last_error());
  OK(graft_device_synchronize(device));
  ck_assert_msg(row->may || !has_dots, "with %s: a program has instructions that its device may lack", row->option);
  if (row->may && dots_here()) ck_assert(has_dots);
  graft_log_set_sink(NULL, NULL);
  between_pretend(0, NULL, 0);
}
END_TEST

/* Of Mesa's llvmpipe, whose barriers go wrong in loops of a known length: a transform's loop is not told its own. */
static int staged; /* -1: such a program tells it */

static void note_stages(void *context, graft_log_level level, const char *text) {
  (void)context, (void)level;
  if (strstr(text, "fft/fft.cl")) staged = strstr(text, "#define STAGES ") ? -1 : 1;
}

START_TEST(loops_around_barriers_are_of_unknown_length_where_they_must) {
  static const char name[] = "llvmpipe (LLVM 15.0.6, 256 bits)";
  setenv("GRAFT_LOG", "debug", 1);
  setenv("GRAFT_CACHE_DIR", "none", 1);
  graft_log_set_sink(note_stages, NULL);
  if (_i) between_pretend(CL_DEVICE_NAME, name, sizeof name);
  graft_rt_device *device = device_at(OPENCL, (const char *const[]){"kernels=gpu", "optimize=no", NULL}, 0);
  ck_assert_msg(device, "%s", graft_last_error());
  ck_assert_msg(!call_of("aten::_fft_c2c c64[64,1024] [1] 0 true", device, NULL), "%s", graft_last_error());
  OK(graft_device_synchronize(device));
  ck_assert_int_eq(staged, _i ? 1 : -1);
  graft_log_set_sink(NULL, NULL);
  between_pretend(0, NULL, 0);
}
END_TEST

/* ---- many platforms ---- */

/* All the same one. */
START_TEST(devices_of_many_platforms_are_counted_through) {
  enum { LOOKED_AT = 64 };
  static const char *const choices[][2] = {{"device=0", NULL}, {"device=63", NULL}, {"device=4096", NULL}};
  between_say_platforms(_i ? LOOKED_AT : LOOKED_AT + 6);
  ck_assert_msg(device_at(OPENCL, choices[0], 0), "%s", graft_last_error());
  ck_assert_msg(device_at(OPENCL, choices[1], 0), "%s", graft_last_error());
  ck_assert_ptr_null(device_at(OPENCL, choices[2], 0));
  between_say_platforms(0);
}
END_TEST

static void open_and_ask(void) {
  setup();
  open_device();
}

int main(void) {
  const suite_test asked[] = {ONCE(answers_are_the_drivers),
                              ONCE(answers_that_do_not_fit_are_not_written),
                              ONCE(devices_that_are_not_there),
                              EACH(kinds_of_devices, ROWS(device_kinds)),
                              ONCE(dtypes_follow_the_driver),
                              EACH(devices_are_asked_what_they_know, 2),
                              {0}};
  const suite_test opened[] = {ONCE(without_f64_no_op_says_that_it_has_it),
                               ONCE(ids_that_no_table_has),
                               EACH(vectors_of_all_widths, 8),
                               EACH(any_number_of_compute_units, 8),
                               EACH(tiles_of_all_widths, 6),
                               EACH(devices_are_chosen_by_kind, NAMED_KINDS),
                               EACH(instructions_are_those_of_the_device, ROWS(instructions)),
                               EACH(loops_around_barriers_are_of_unknown_length_where_they_must, 2),
                               EACH(devices_of_many_platforms_are_counted_through, 2),
                               {0}};
  int status = run_suite("opencl_devices", asked, (suite_options){.timeout_s = 60, .setup = open_and_ask});
  return run_suite("opencl_devices_opened", opened, (suite_options){.timeout_s = 120, .setup = setup}) || status;
}
