/* Loading and negotiation: what a plugin must be, and what is said of one that is not. */
#include <sys/wait.h>
#include <unistd.h>

#include "null_device.h"
#include "plugin/loader.h"
#include "suite.h"

/* --- loading --- */

typedef struct load_case {
  const char *plugin;
  graft_status status;
  const char *text;
} load_case;

static const load_case load_cases[] = {
    {"broken_no_entry", GRAFT_INCOMPATIBLE, "does not export graft_plugin_open_v1"},
    {"broken_other_entry", GRAFT_INCOMPATIBLE, "ABI major 2"},
    {"broken_open", GRAFT_INTERNAL, "the licence has run out"},
    {"broken_status", GRAFT_INTERNAL, "unknown status -7"},
    {"broken_no_plugin", GRAFT_INCOMPATIBLE, "gave no plugin"},
    {"broken_major", GRAFT_INCOMPATIBLE, "ABI major 2"},
    {"broken_size_zero", GRAFT_INCOMPATIBLE, "struct_size of graft_plugin is 0"},
    {"broken_size_small", GRAFT_INCOMPATIBLE, "\"device_close\""},
    {"broken_function", GRAFT_INCOMPATIBLE, "graft_plugin.device_open is NULL"},
    {"broken_memory_function", GRAFT_INCOMPATIBLE, "graft_plugin.memory.fill is NULL"},
    {"broken_stream_function", GRAFT_INCOMPATIBLE, "graft_plugin.stream.event_record is NULL"},
    {"broken_stream_size", GRAFT_INCOMPATIBLE, "\"failure\""},
    {"broken_no_memory", GRAFT_INCOMPATIBLE, "graft_plugin.memory is NULL"},
    {"broken_core_size", GRAFT_INCOMPATIBLE, "struct_size of graft_plugin.core is 0"},
    {"broken_name", GRAFT_INCOMPATIBLE, "no/name"},
    {"there_is_none", GRAFT_INVALID_ARGUMENT, "No such file"},
};

START_TEST(broken_plugins_are_refused) {
  const load_case *row = &load_cases[_i];
  graft_rt_backend *backend = (void *)1;
  ck_assert_int_eq(graft_backend_open(test_plugin(row->plugin), NULL, &backend), row->status);
  ck_assert_ptr_eq(backend, (void *)1); /* outputs stay untouched */
  assert_text(row->text);
  assert_text(row->plugin);
  ck_assert_ptr_null(strchr(graft_last_error(), '\n'));
}
END_TEST

static const load_case device_cases[] = {
    {"broken_no_device", GRAFT_INVALID_ARGUMENT, "finds no device"},
    {"broken_bad_count", GRAFT_INTERNAL, "-5 devices"},
    {"broken_device_open", GRAFT_DEVICE_LOST, "the fan is not turning"},
    {"broken_no_handle", GRAFT_INTERNAL, "gave no device"},
};

START_TEST(broken_devices_are_refused) {
  const load_case *row = &device_cases[_i];
  graft_rt_device *device;
  ck_assert_int_eq(graft_device_find(test_plugin(row->plugin), &device), row->status);
  assert_text(row->text);
}
END_TEST

START_TEST(not_a_library) {
  char path[] = "/tmp/graft_test_XXXXXX.so";
  int file = mkstemps(path, 3);
  ck_assert_int_eq(write(file, "#!/bin/sh\n", 10), 10);
  close(file);
  graft_rt_backend *backend;
  ck_assert_int_eq(graft_backend_open(path, NULL, &backend), GRAFT_INCOMPATIBLE);
  assert_text("can't be loaded");
  unlink(path);
  ck_assert_int_eq(graft_backend_open("/tmp/", NULL, &backend), GRAFT_INVALID_ARGUMENT);
  assert_text("not a file");
}
END_TEST

START_TEST(older_and_newer_plugins_work) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  ck_assert_msg(graft_backend_open(test_plugin(_i ? "long_structs" : "short_structs"), NULL, &backend) == GRAFT_OK,
                "%s", graft_last_error());
  const graft_core_ops *core = backend->core;
  ck_assert_uint_eq(backend->plugin.struct_size, sizeof(graft_plugin));
  ck_assert_uint_eq(backend->memory.struct_size, sizeof(graft_memory_api));
  ck_assert_uint_eq(core->struct_size, sizeof(graft_core_ops));
  ck_assert_ptr_nonnull(core->add_Tensor);
  ck_assert_ptr_null(core->where_self);
  ck_assert_ptr_null(backend->prims);
  ck_assert_int_eq(backend->plugin.extension != NULL, _i);
  ck_assert_int_eq(graft_backend_device(backend, 1, &device), GRAFT_OK);
  mem_block *block;
  ck_assert_int_eq(mem_allocate(device, NULL, 100, &block), GRAFT_OK);
  mem_free(block);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK);
}
END_TEST

/* Capabilities, dtype sets, kinds and keys of a later minor or a vendor: what is known of them holds. */
START_TEST(answers_that_are_not_known_are_ignored) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  graft_tensor *x, *out = NULL;
  setenv("GRAFT_FALLBACK", "error", 1);
  OK(graft_backend_open(test_plugin("unknown_answers"), NULL, &backend));
  OK(graft_backend_device(backend, 0, &device));
  OK(graft_tensor_empty(device, GRAFT_F32, 1, (int64_t[]){4}, &x));
  OK(graft_op_add_Tensor(x, x, graft_scalar_int(1), &out)); /* its slot runs, or this fails */
  graft_tensor_release(out);
  out = NULL;
  ck_assert_int_ne(graft_op_mul_Tensor(x, x, &out), GRAFT_OK);
  void *pinned;
  OK(graft_pinned_allocate(device, 64, &pinned)); /* ordinary memory: a kind that is offered is not any kind */
  OK(graft_pinned_free(device, pinned));
  graft_tensor_release(x);
}
END_TEST

START_TEST(vendors_numbers_are_refused) {
  const graft_dtype dtype = GRAFT_DTYPE_VENDOR_CODES | 8u << 8 | 1u << 16;
  graft_rt_device *device = null_device(NULL);
  graft_tensor *t = NULL;
  ck_assert_int_eq(graft_tensor_empty(device, dtype, 1, (int64_t[]){4}, &t), GRAFT_INVALID_ARGUMENT);
  assert_text("dtype");
  ck_assert_int_eq(graft_call(GRAFT_OP_VENDOR_IDS, NULL, 0, &t, 1), GRAFT_INVALID_ARGUMENT);
  assert_text("2147483648");
  ck_assert_ptr_null(t);
  ck_assert_str_eq(graft_dtype_name(dtype), "none");
}
END_TEST

START_TEST(instances_differ_by_options) {
  const char *some[] = {"alignment=128", NULL}, *others[] = {"alignment=256", NULL};
  graft_rt_device *one = null_device(some), *same = null_device(some), *two = null_device(others);
  ck_assert_ptr_eq(one, same);
  ck_assert_ptr_ne(one, two);
  ck_assert_uint_eq(one->alignment, 128);
  ck_assert_uint_eq(two->alignment, 256);
  graft_rt_backend *backend = NULL;
  ck_assert_int_eq(graft_backend_open("reference", (const char *[]){"speed=9", NULL}, &backend),
                   GRAFT_INVALID_ARGUMENT);
  ck_assert_msg(!backend && strstr(graft_last_error(), "speed=9"), "%s", graft_last_error());
}
END_TEST

static void note_line(void *context, graft_log_level level, const char *text) {
  snprintf(context, 1000, "%d %s", level, text);
}

START_TEST(a_library_does_not_change_how_we_compute) {
  char line[1000] = "";
  graft_rt_backend *backend;
  volatile float small = 1e-40f, third = 3;
  volatile long double tenth = 1.0L / 10;
  graft_log_set_sink(note_line, line);
  OK(graft_backend_open(test_plugin("fast_math"), NULL, &backend));
  graft_log_set_sink(NULL, NULL);
  ck_assert_msg(strstr(line, "fast_math.so: loading it changed the floating-point mode"), "%s", line);
  ck_assert_int_eq(line[0] - '0', GRAFT_LOG_WARNING);
  ck_assert_msg(small * 0.5f != 0, "denormals are flushed");
  ck_assert_msg(1.0L / 10 * third == tenth * 3, "the x87 lost precision");
}
END_TEST

static graft_rt_device *late;

static void use_it_while_exiting(void) {
  _exit(graft_device_synchronize(late) == GRAFT_FORKED ? 0 : 7);
}

/* What exits behind a handler of the application's must not be called by it: ours comes before those of a driver,
 * however late that was loaded. */
START_TEST(nothing_is_called_once_exit_begins) {
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    null_device(OPTIONS("alignment=128"));
    atexit(use_it_while_exiting);
    late = null_device(OPTIONS("alignment=256"));
    if (graft_device_synchronize(late)) _exit(8);
    exit(9);
  }
  int how;
  ck_assert_int_eq(waitpid(child, &how, 0), child);
  ck_assert(WIFEXITED(how));
  ck_assert_int_eq(WEXITSTATUS(how), 0);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(broken_plugins_are_refused, ROWS(load_cases)),
                              EACH(broken_devices_are_refused, ROWS(device_cases)),
                              ONCE(not_a_library),
                              EACH(older_and_newer_plugins_work, 2),
                              ONCE(answers_that_are_not_known_are_ignored),
                              ONCE(vendors_numbers_are_refused),
                              ONCE(instances_differ_by_options),
                              ONCE(a_library_does_not_change_how_we_compute),
                              ONCE(nothing_is_called_once_exit_begins),
                              {0}};
  return run_suite("plugin", tests, (suite_options){0});
}
