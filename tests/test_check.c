/* graft check: honest plugins pass, and each lie is caught by the check of its rule. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "own_folder.h"
#include "plugin_path.h"
#include "suite.h"

#define GRAFT GRAFT_BINARY_DIR "/bin/graft"

static char output[64 * 1024];

/* Runs the program and keeps what it printed; returns its exit status. */
static int run(const char *arguments) {
  char command[4 * PATH_MAX];
  snprintf(command, sizeof command, "'%s' check %s 2>&1", GRAFT, arguments);
  FILE *pipe = popen(command, "r");
  ck_assert_ptr_nonnull(pipe);
  size_t bytes = fread(output, 1, sizeof output - 1, pipe);
  output[bytes] = 0;
  int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static bool prints(const char *text) {
  return strstr(output, text) != NULL;
}

/* --- what passes --- */

typedef struct honest {
  const char *plugin; /* of tests/plugins, or a path */
  const char *options;
  bool computes_nothing; /* which op.bounds says of it, and no other check anything */
} honest;

static const honest honest_cases[] = {
    {"null", "", true},
    {"null", "-o timing=1 -o pinned=1 -o alignment=256 -o granularity=4096 -o copy_granularity=4 -d 1", true},
    {"null", "-o address=none", true},
    {"async", "", false},
    {"liar", "", false},
    {"custom", "", false},
    {"groups", "", false},
    {"ordered", "", false},
    {"short_structs", "", true},
    {"long_structs", "", true},
    {"unknown_answers", "", true},
    {GRAFT_BINARY_DIR "/lib/graft/plugins/graft_opencl.so", "", false},
    {"/reference", "", false}, /* built in */
};

START_TEST(honest_plugins_pass) {
  const honest *row = &honest_cases[_i];
  char arguments[2 * PATH_MAX];
  const char *plugin = *row->plugin == '/' ? row->plugin : test_plugin(row->plugin);
  if (!strcmp(plugin, "/reference"))
    plugin++;
  else if (access(plugin, R_OK))
    return; /* built without OpenCL */
  snprintf(arguments, sizeof arguments, "'%s' %s", plugin, row->options);
  int status = run(arguments);
  const char *first = strstr(output, "  FAIL"); /* a message has not room for all */
  const char *failed = row->computes_nothing ? " 1 failed" : " 0 failed";
  ck_assert_msg(status == row->computes_nothing && prints(failed), "%s exits with %d:\n%.1500s", arguments, status,
                first ? first : output);
  if (row->computes_nothing) ck_assert_msg(prints("FAIL  op.bounds ") && prints("left as it was"), "%s", output);
  ck_assert_msg(prints("`graft conformance` judges"), "no word on what is not checked:\n%s", output);
}
END_TEST

/* Groups are of an op that the plugin has. */
START_TEST(groups_are_of_what_is_there) {
  static const struct {
    const char *slots; /* abs, relu, relu and neg of the core table */
    const char *says;
  } rows[] = {{"core 14\n", "4 ok, 0 failed, 0 skipped"},
              {"core 137\n", "4 ok, 0 failed, 0 skipped"},
              {"core 137\ncore 123\n", "4 ok, 0 failed, 0 skipped"},
              {"train 0\n", "neg, abs or relu, and none of them has a slot"}};
  char arguments[PATH_MAX + 32], file[] = "/tmp/graft_slots_XXXXXX";
  int descriptor = mkstemp(file);
  ck_assert_int_ge(descriptor, 0);
  setenv("GRAFT_MASK_PLUGIN", test_plugin("groups"), 1);
  setenv("GRAFT_MASK_SLOTS", file, 1);
  snprintf(arguments, sizeof arguments, "'%s' --only 'group.*'", test_plugin("mask"));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ck_assert(pwrite(descriptor, rows[i].slots, strlen(rows[i].slots), 0) > 0);
    ck_assert_int_eq(ftruncate(descriptor, (off_t)strlen(rows[i].slots)), 0);
    int status = run(arguments);
    ck_assert_msg(status == 0 && prints(rows[i].says), "%s exits with %d:\n%s", arguments, status, output);
  }
  close(descriptor);
  unlink(file);
}
END_TEST

/* --- what is caught --- */

#ifdef __SANITIZE_ADDRESS__ /* its handler speaks first */
#define CRASHED "ended with status"
#else
#define CRASHED "crashed"
#endif

typedef struct liar {
  const char *lie, *check;
  const char *text; /* part of what is printed, or NULL */
  int limit_s;      /* 0: the default */
} liar;

static const liar liar_cases[] = {
    {"vendor_text", "open.name", "not UTF-8", 0},
    {"open_thread", "open.threads", "1 threads", 0},
    {"open_driver", "open.fork", "device_count", 0},
    {"extension_driver", "open.fork", "device_count", 0},
    {"options", "open.options", "empty list of options", 0},
    {"any_option", "open.unknown_option", "expected INVALID_ARGUMENT, got OK", 0},
    {"rounding", "open.process", "rounding", 0},
    {"signal", "open.process", "signal 8", 0},
    {"locale", "open.process", "C.UTF-8", 0},
    {"folder", "open.process", "working directory is \"/\"", 0},
    {"umask", "open.process", "umask is 000", 0},
    {"newer_host", "open.newer_host", "INCOMPATIBLE", 0},
    {"extension_any", "open.extension", "there_is_none", 0},
    {"extension_drifts", "open.extension", "another table", 0},
    {"open_once", "open.twice", "opening a second time", 0},
    {"shared_state", "open.twice", "DEVICE_LOST", 0},
    {"host_crossed", "open.hosts", "to the second one's host", 0},
    {"count_changes", "device.count", "said 1 before", 0},
    {"property_sense", "device.properties", "48 is no power of two", 0},
    {"property_size", "device.properties", "4 bytes, expected 8", 0},
    {"property_drifts", "device.properties", "differently", 0},
    {"amounts", "device.amounts", "free memory", 0},
    {"unknown_key", "device.unknown_key", "number 0", 0},
    {"capacity", "device.capacity", "wrote to *value", 0},
    {"same_device", "device.all", "handle of device 0", 0},
    {"device_close_fails", "device.open", "device_close", 0},
    {"allocate_shared", "memory.allocate", "beside others", 0},
    {"release_fails", "memory.release", "release", 0},
    {"alignment", "memory.alignment", "host_pointer", 0},
    {"memory_kinds", "memory.kinds", "kind 2", 0},
    {"own_copy", "memory.coherent", "written through host_pointer", 0},
    {"memory_flags", "memory.flags", "unknown flag 0x1", 0},
    {"newer_request", "memory.newer_request", "behind the struct", 0},
    {"too_much", "memory.too_much", "OUT_OF_MEMORY", 0},
    {"from_host_short", "copy.from_host", "copy_from_host of", 0},
    {"to_host_wide", "copy.to_host", "beside the host's memory", 0},
    {"copy_beside", "copy.device", "after copy of", 0},
    {"copy_crash", "copy.device", CRASHED, 0},
    {"fill_tail", "copy.fill", "after fill of", 0},
    {"fill_pattern", "copy.fill", "after fill of", 0},
    {"source_kept", "copy.source_reusable", "overwritten", 0},
    {"copy_flags", "copy.flags", "unknown flag 0x2", 0},
    {"offset_32", "copy.far", "4 GiB", 0},
    {"peer", "copy.peer", "copy_peer", 0},
    {"priorities", "stream.priorities", "priority -1", 0},
    {"stream_flags", "stream.flags", "flag 0x2", 0},
    {"stream_hints", "stream.flags", "0x80000000", 0},
    {"order", "stream.order", "round 0", 0},
    {"synchronize_early", "stream.synchronize", "not done", 0},
    {"synchronize_hangs", "stream.synchronize", "no end after 2 s", 2},
    {"query_early", "stream.query", "not done", 0},
    {"query_never", "stream.query", "query", 0},
    {"failure_text", "stream.failure", "behind its room", 0},
    {"two_streams", "stream.two", "two threads", 0},
    {"event_flags", "event.flags", "flag 0x2", 0},
    {"never_recorded", "event.never_recorded", "NOT_READY", 0},
    {"event_early", "event.record", "event_synchronize waited", 0},
    {"event_early", "event.source", NULL, 0},
    {"wait_nothing", "event.wait", "waited for another's fill", 0},
    {"record_once", "event.again", "second record", 0},
    {"wait_late", "event.captures", "no end after 3 s", 3},
    {"untimed", "event.untimed", "UNIMPLEMENTED", 0},
    {"profiler_part", "profiler.table", "clock is NULL", 0},
    {"groups_part", "group.table", "too short", 0},
    {"groups_no_run", "group.table", "run is NULL", 0},
    {"groups_beyond", "group.query", "puts node 0 into group 5", 0},
    {"groups_overrun", "group.query", "behind the number of the last node", 0},
    {"groups_drift", "group.query", "differently", 0},
    {"groups_stolen", "group.query", "takes node 1, whose args are NULL", 0},
    {"groups_circle", "group.query", "takes nodes 0 and 2 as one group", 0},
    {"groups_empty", "group.run", "gave no executable", 0},
    {"groups_wrong", "group.run", "the buffer of its output", 0},
    {"groups_silent", "group.run", "the buffer of its output", 0},
    {"groups_wide", "group.run", "the buffer of its output", 0},
    {"groups_over", "group.run", "calls in place, their buffer", 0},
    {"groups_refuses", "group.run", "expected OK, got UNIMPLEMENTED", 0},
    {"groups_kept", "group.run", "expected OK, got INTERNAL", 0},
    {"groups_destroyed", "group.destroy", "the buffer of its output", 0},
    {"capture_part", "capture.table", "too short", 0},
    {"capture_no_launch", "capture.table", "launch is NULL", 0},
    {"capture_runs", "capture.record", "what is recorded is not run", 0},
    {"capture_nothing", "capture.record", "it gave nothing that was recorded", 0},
    {"capture_kept", "capture.record", "expected OK, got INTERNAL", 0},
    {"capture_short", "capture.launch", "the fill", 0},
    {"capture_once", "capture.launch", "the copy", 0},
    {"capture_turned", "capture.launch", "the copy", 0},
    {"capture_late", "capture.launch", "expected OK, got NOT_READY", 0},
    {"custom_part", "custom.table", "too short", 0},
    {"custom_schema", "custom.rows", "neither write into their arguments", 0},
    {"custom_name", "custom.rows", "two ops are called acme::opaque", 0},
    {"custom_id", "custom.rows", "acme::scale_add has the id 0x80000001, too", 0},
    {"custom_low_id", "custom.rows", "those of vendors begin at", 0},
    {"custom_gradient", "custom.rows", "no op of the plugin that is served has it", 0},
    {"custom_other_gradient", "custom.rows", "expected one that takes 1 Tensor", 0},
    {"custom_no_infer", "custom.rows", "infer is NULL", 0},
    {"custom_no_slot", "custom.rows", "slot is NULL", 0},
    {"custom_no_row", "custom.rows", "the pointer to it is NULL", 0},
    {"custom_long_name", "custom.rows", "its name has more than 120 characters", 0},
    {"custom_dtype", "custom.infer", "the dtype 0x7777, which is none", 0},
    {"custom_dims", "custom.infer", "has 17 dims", 0},
    {"custom_size", "custom.infer", "has the size -3", 0},
    {"custom_beyond", "custom.infer", "wrote a size behind the 16", 0},
    {"custom_values", "custom.infer", CRASHED, 0},
    {"custom_changes", "custom.infer", "answers differently", 0},
    {"custom_caps_any", "custom.caps", "expected UNIMPLEMENTED, got OK", 0},
    {"custom_caps_none", "custom.caps", "got UNIMPLEMENTED", 0},
    {"profiler_remembers", "profiler.period", "submitted before start", 0},
    {"profiler_goes_on", "profiler.period", "submitted after stop", 0},
    {"profiler_no_mark", "profiler.records", "correlation", 0},
    {"profiler_bytes", "profiler.records", "bytes of kind", 0},
    {"profiler_kind", "profiler.records", "bytes of kind", 0},
    {"profiler_twice", "profiler.records", "bytes of kind", 0},
    {"profiler_keeps", "profiler.drain", "again", 0},
    {"profiler_backwards", "profiler.clock", "ends before", 0},
    {"profiler_ahead", "profiler.clock", "before it was submitted", 0},
    {"profiler_seconds", "profiler.clock", "CLOCK_MONOTONIC", 0},
    {"elapsed", "event.elapsed", "never recorded", 0},
    {"caps_unknown", "op.unknown", "op 0", 0},
    {"caps_none", "op.caps", "aten::neg", 0},
    {"caps_drift", "op.caps", "differently", 0},
    {"caps_expanded", "op.caps", "without GRAFT_CAP_STRIDED", 0},
    {"caps_exclude", "op.reached", "aten::neg", 0},
    {"caps_overrun", "op.caps_fit", "it wrote byte", 0},
    {"caps_short", "op.caps_fit", "expected OK, got INVALID_ARGUMENT", 0},
    {"state_ignored", "op.philox_state", "expected UNIMPLEMENTED, got OK", 0},
    {"any_text", "op.unknown_text", "expected UNIMPLEMENTED, got OK", 0},
    {"index_taken", "op.indices", "expected OUT_OF_RANGE, got OK", 0},
    {"index_older_host", "op.indices_older_host", "host of version 1.1", 0},
    {"slot_overrun", "op.bounds", "the buffer of its output", 0},
    {"slot_input", "op.bounds", "the buffer of its input", 0},
    {"slot_side_effect", "op.bounds", "the buffer of its output", 0},
    {"slot_silent", "op.bounds", "byte 0 of 100 of its output was left as it was", 0},
    {"slot_leaves", "op.bounds", "byte 96 of 100 of its output was left as it was", 0},
    {"slot_garbage", "op.bounds", "expected OK, got the unknown status 4711", 0},
    {"args_size", "op.newer_args", "INVALID_ARGUMENT", 0},
    {"slot_memo", "op.memo", "second time", 0},
    {"on_stream", "memory.on_stream", "before release_on", 0},
    {"across", "event.across", "another device's fill", 0},
    {"dtypes", "op.dtypes", "op_caps of aten::neg: it takes f32 only; GRAFT_DEVICE_DTYPES is f16", 0},
    {"prepare_runs", "op.prepare", CRASHED, 0},
    {"number_kept", "op.numbers", "the memo of another number", 0},
    {"number_refused", "op.numbers", "expected OK, got UNIMPLEMENTED", 0},
    {"close_memo", "close.host", "closing by libgraft", 0},
    {"op_query", "op.query", "op_query said UNIMPLEMENTED", 0},
};

static void assert_caught(const char *check, const char *text, int status) {
  char line[64];
  snprintf(line, sizeof line, "  FAIL  %s ", check);
  ck_assert_msg(prints(line), "%s is not named:\n%s", check, output);
  ck_assert_msg(!text || prints(text), "\"%s\" is not said:\n%s", text, output);
  ck_assert_msg(status == 1 || status == 2, "exit status %d:\n%s", status, output);
}

START_TEST(lies_are_caught) {
  const liar *row = &liar_cases[_i];
  char arguments[2 * PATH_MAX], limit[32] = "";
  setenv("GRAFT_LIE", row->lie, 1);
  if (row->limit_s) snprintf(limit, sizeof limit, "-t %d", row->limit_s);
  snprintf(arguments, sizeof arguments, "'%s' --only '%s' %s", test_plugin("liar"), row->check, limit);
  int status = run(arguments);
  assert_caught(row->check, row->text, status);
  /* The run went on to its end. */
  ck_assert_msg(prints(" checks: "), "%s", output);
}
END_TEST

typedef struct broken {
  const char *plugin, *check;
  int status;
  const char *text;
} broken;

static const broken broken_cases[] = {
    {"broken_export", "lint.exports", 1, "null_helper"},
    {"broken_import", "lint.imports", 1, "graft_version"},
    {"broken_no_entry", "lint.exports", 2, "; export graft_plugin_open_v1"},
    {"broken_no_entry", "lint.exports", 2, "null_has_no_entry"},
    {"broken_no_entry", "open.load", 2, "does not export graft_plugin_open_v1"},
    {"broken_other_entry", "lint.exports", 2, "graft_plugin_open_v2"},
    {"broken_open", "open.entry", 2, "the licence has run out"},
    {"broken_status", "open.entry", 2, "expected OK, got the unknown status -7"},
    {"broken_no_plugin", "open.entry", 2, "gave no plugin"},
    {"broken_major", "open.major", 2, "abi_major is 2"},
    {"broken_size_zero", "open.major", 2, "struct_size is 0"},
    {"broken_size_zero", "open.major", 2, "rule: struct_size reaches abi_minor"},
    {"broken_size_small", "open.sizes", 2, "graft_plugin: its struct_size"},
    {"broken_stream_size", "open.sizes", 2, "graft_stream_api"},
    {"broken_core_size", "open.sizes", 2, "graft_core_ops"},
    {"broken_function", "open.mandatory", 2, "graft_plugin.device_open is NULL"},
    {"broken_memory_function", "open.mandatory", 2, "graft_memory_api.fill is NULL"},
    {"broken_stream_function", "open.mandatory", 2, "graft_stream_api.event_record is NULL"},
    {"broken_no_memory", "open.mandatory", 2, "graft_plugin.memory is NULL"},
    {"broken_name", "open.name", 1, "no/name"},
    {"broken_no_device", "device.count", 2, "no device"},
    {"broken_no_device", "device.count", 2, "rule: device_count is constant, and there is a device to check"},
    {"broken_bad_count", "device.count", 2, "-5"},
    {"broken_device_open", "device.open", 2, "the fan is not turning"},
    {"broken_no_handle", "device.open", 2, "gave no device"},
};

START_TEST(broken_plugins_are_caught) {
  const broken *row = &broken_cases[_i];
  char arguments[2 * PATH_MAX];
  snprintf(arguments, sizeof arguments, "'%s' --only '%.5s*'", test_plugin(row->plugin), row->check);
  int status = run(arguments);
  assert_caught(row->check, row->text, status);
  ck_assert_msg(status == row->status, "exit status %d, expected %d:\n%s", status, row->status, output);
}
END_TEST

/* --- files --- */

static char folder[] = OWN_FOLDER;

static void make_folder(void) {
  folder_make(folder);
}

static void remove_folder(void) {
  folder_remove(folder);
}

static void put(const char *name, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  fputs(text, file);
  fclose(file);
}

static int check_file(const char *name, const char *pattern) {
  char arguments[512];
  snprintf(arguments, sizeof arguments, "'%s/%s' --only '%s'", folder, name, pattern);
  return run(arguments);
}

START_TEST(what_is_no_plugin) {
  ck_assert_int_eq(run("/tmp/there_is_none.so"), 2);
  ck_assert_msg(prints("no such file"), "%s", output);
  ck_assert_int_eq(run("there_is_none"), 2);
  ck_assert_msg(prints("graft backends"), "%s", output);
  ck_assert_int_eq(run(""), 2);
  put("text.so", "#!/bin/sh\n");
  ck_assert_int_eq(check_file("text.so", "*"), 2);
  ck_assert_msg(prints("FAIL  lint.elf ") && prints("not an ELF file"), "%s", output);
  ck_assert_msg(prints("FAIL  open.load ") && prints("skip  memory.allocate "), "%s", output);
}
END_TEST

static void link_null(void) {
  char command[2 * PATH_MAX];
  snprintf(command, sizeof command, "cp '%s' '%s/null.so'", test_plugin("null"), folder);
  ck_assert_int_eq(system(command), 0);
}

START_TEST(cut_and_damaged_files) {
  char command[2 * PATH_MAX];
  link_null();
  snprintf(command, sizeof command, "cd '%s' && head -c 3000 null.so > cut.so && head -c 40 null.so > head.so", folder);
  ck_assert_int_eq(system(command), 0);
  ck_assert_int_eq(check_file("cut.so", "lint.*"), 2);
  ck_assert_msg(prints("FAIL  lint.exports ") && prints("beyond its end"), "%s", output);
  ck_assert_int_eq(check_file("head.so", "lint.*"), 2);
  ck_assert_msg(prints("FAIL  lint.elf "), "%s", output);
}
END_TEST

#define MANIFEST(name, library) "{\"name\": \"" name "\", \"library\": \"" library "\", \"abi_major\": 1}"

#define MANIFEST_OF(version, minor)                                                          \
  "{\"name\": \"null\", \"library\": \"null.so\", \"abi_major\": 1, \"version\": \"" version \
  "\", \"abi_minor\": " minor "}"

START_TEST(manifests) {
  link_null();
  put("null.graft.json", MANIFEST("null", "null.so"));
  ck_assert_int_eq(check_file("null.so", "[lo]*.[mn]a*"), 0);
  ck_assert_msg(prints("ok    lint.manifest ") && prints("ok    open.name "), "%s", output);
  ck_assert_int_eq(check_file("null.graft.json", "lint.*"), 0);
  ck_assert_msg(prints("ok    lint.manifest "), "%s", output);
  put("null.graft.json", MANIFEST("another", "null.so"));
  ck_assert_int_eq(check_file("null.so", "[lo]*.[mn]a*"), 1);
  ck_assert_msg(prints("FAIL  open.name ") && prints("\"another\""), "%s", output);
  put("null.graft.json", MANIFEST_OF("9.1.0", "2"));
  ck_assert_int_eq(check_file("null.so", "open.name"), 1);
  ck_assert_msg(prints("FAIL  open.name ") && prints("\"9.1.0\""), "%s", output);
  put("null.graft.json", MANIFEST_OF("1.0.0", "9"));
  ck_assert_int_eq(check_file("null.so", "open.name"), 1);
  ck_assert_msg(prints("FAIL  open.name ") && prints("abi_minor is 2, and 9 in "), "%s", output);
  put("null.graft.json", MANIFEST_OF("1.0.0", "2"));
  ck_assert_int_eq(check_file("null.so", "open.name"), 0);
  put("null.graft.json", "{");
  ck_assert_int_eq(check_file("null.so", "lint.*"), 1);
  ck_assert_msg(prints("FAIL  lint.manifest ") && prints("not valid JSON"), "%s", output);
  put("null.graft.json", MANIFEST("null", "../null.so"));
  ck_assert_int_eq(check_file("null.so", "lint.*"), 1);
  ck_assert_msg(prints("climb out"), "%s", output);
  ck_assert_int_eq(check_file("null.graft.json", "lint.*"), 2);
}
END_TEST

/* What is counted at the end: tables that are cut short, and capabilities, show. */
START_TEST(slots_are_counted) {
  char arguments[2 * PATH_MAX];
  snprintf(arguments, sizeof arguments, "'%s'", test_plugin("null"));
  run(arguments);
  ck_assert_msg(prints("\n2 ops have a slot (core 2, prims 0, train 0), by op_caps for i64, f32; "), "%s", output);
  unsetenv("GRAFT_LIE");
  snprintf(arguments, sizeof arguments, "'%s' --only open.load", test_plugin("async"));
  ck_assert_int_eq(run(arguments), 0);
  ck_assert_msg(prints("\n1 op has a slot (core 1, prims 0, train 0), by op_caps for any dtype; "), "%s", output);
}
END_TEST

START_TEST(every_check_has_a_rule) {
  ck_assert_int_eq(run("--list"), 0);
  ck_assert_msg(prints("event.captures") && prints("time of the call."), "%s", output);
}
END_TEST

int main(void) {
  const suite_test tests[] = {EACH(honest_plugins_pass, ROWS(honest_cases)),
                              ONCE(groups_are_of_what_is_there),
                              EACH(lies_are_caught, ROWS(liar_cases)),
                              EACH(broken_plugins_are_caught, ROWS(broken_cases)),
                              ONCE(what_is_no_plugin),
                              ONCE(cut_and_damaged_files),
                              ONCE(manifests),
                              ONCE(slots_are_counted),
                              ONCE(every_check_has_a_rule),
                              {0}};
  return run_suite("check", tests, (suite_options){.setup = make_folder, .teardown = remove_folder, .timeout_s = 300});
}
