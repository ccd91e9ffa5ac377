/* Discovery, manifests, loading and negotiation; devices, streams, events, generators; use after fork. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "memory/allocator.h"
#include "plugin/error.h"
#include "plugin/loader.h"
#include "plugin/utf8.h"
#include "plugin_path.h"
#include "plugins/null.h"

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void assert_text(const char *expected) {
  ck_assert_msg(strstr(graft_last_error(), expected) != NULL, "\"%s\" does not say \"%s\"", graft_last_error(),
                expected);
}

static graft_rt_device *null_device(const char *const *options) {
  graft_rt_backend *backend;
  graft_rt_device *device;
  ck_assert_msg(graft_backend_open(test_plugin("null"), options, &backend) == GRAFT_OK, "%s", graft_last_error());
  ck_assert_msg(graft_backend_device(backend, 0, &device) == GRAFT_OK, "%s", graft_last_error());
  return device;
}

static null_counters counters_of(graft_rt_device *device) {
  const void *table;
  null_counters counters;
  const graft_plugin *plugin = &device->backend->plugin;
  ck_assert_int_eq(plugin->extension(plugin->self, NULL_EXTENSION, 1, &table), GRAFT_OK);
  ((const null_test_api *)table)->counters(plugin->self, &counters);
  return counters;
}

/* --- texts --- */

START_TEST(error_text_may_hold_itself) {
  err_set(GRAFT_INTERNAL, "inner");
  ck_assert_int_eq(err_set(GRAFT_INVALID_ARGUMENT, "outer: %s", graft_last_error()), GRAFT_INVALID_ARGUMENT);
  ck_assert_str_eq(graft_last_error(), "outer: inner");
  err_clear();
  ck_assert(!err_is_set());
  ck_assert_str_eq(graft_last_error(), "outer: inner");
}
END_TEST

START_TEST(utf8_is_cut_between_characters) {
  char text[8];
  utf8_copy(text, sizeof text, "caf\xc3\xa9\x01\xff");
  ck_assert_str_eq(text, "caf\xc3\xa9??");
  utf8_copy(text, 5, "caf\xc3\xa9");
  ck_assert_str_eq(text, "caf");
  utf8_copy(text, sizeof text, "\xc0\xaf\xed\xa0\x80"); /* overlong, surrogate */
  ck_assert_str_eq(text, "?????");
}
END_TEST

START_TEST(status_names) {
  ck_assert_str_eq(graft_status_name(GRAFT_FORKED), "FORKED");
  ck_assert_str_eq(graft_status_name(GRAFT_OUT_OF_RANGE), "OUT_OF_RANGE");
  ck_assert_str_eq(graft_status_name(-1), "unknown status");
  ck_assert_str_eq(graft_status_name(1000), "unknown status");
}
END_TEST

/* --- manifests --- */

typedef struct manifest_case {
  const char *text, *problem; /* NULL: none */
} manifest_case;

#define GOOD "\"name\": \"x\", \"library\": \"x.so\", \"abi_major\": 1"

static const manifest_case manifest_cases[] = {
    {"{" GOOD "}", NULL},
    {"{" GOOD ", \"abi_minor\": 9, \"licence\": \"MIT\", \"more\": [1, {\"a\": 2}]}", NULL},
    {"", "not valid JSON"},
    {"{" GOOD, "not valid JSON"},
    {"{" GOOD "} {", "not valid JSON"},
    {"[1]", "no JSON object"},
    {"{\"library\": \"x.so\", \"abi_major\": 1}", "\"name\" is missing"},
    {"{\"name\": 3, \"library\": \"x.so\", \"abi_major\": 1}", "\"name\" must be a string"},
    {"{\"name\": \"a/b\", \"library\": \"x.so\", \"abi_major\": 1}", "letters, digits"},
    {"{\"name\": \"none\", \"library\": \"x.so\", \"abi_major\": 1}", "letters, digits"},
    {"{\"name\": \"reference\", \"library\": \"x.so\", \"abi_major\": 1}", "built-in"},
    {"{\"name\": \"x\", \"abi_major\": 1}", "\"library\" is missing"},
    {"{\"name\": \"x\", \"library\": \"/x.so\", \"abi_major\": 1}", "relative"},
    {"{\"name\": \"x\", \"library\": \"../x.so\", \"abi_major\": 1}", "climb out"},
    {"{\"name\": \"x\", \"library\": \"a/../../x.so\", \"abi_major\": 1}", "climb out"},
    {"{\"name\": \"x\", \"library\": \"a/..\", \"abi_major\": 1}", "climb out"},
    {"{\"name\": \"x\", \"library\": \"a..b/x..so\", \"abi_major\": 1}", NULL},
    {"{\"name\": \"x\", \"library\": \"x.so\"}", "abi_major"},
    {"{\"name\": \"x\", \"library\": \"x.so\", \"abi_major\": \"1\"}", "abi_major"},
    {"{\"name\": \"x\", \"library\": \"x.so\", \"abi_major\": 2}", "ABI major 2"},
    {"{\"name\": \"x\", \"library\": \"x.so\", \"abi_major\": 1, \"a\": [[[[[[[[[1]]]]]]]]]}", "nest deeper"},
};

START_TEST(manifest_text) {
  const manifest_case *row = &manifest_cases[_i];
  plg_manifest manifest = {0};
  plg_manifest_parse(row->text, strlen(row->text), &manifest);
  if (!row->problem) {
    ck_assert_msg(!manifest.problem, "%s: %s", row->text, manifest.problem);
  } else {
    ck_assert_msg(manifest.problem && strstr(manifest.problem, row->problem), "%s: %s", row->text, manifest.problem);
  }
  plg_manifest_free(&manifest);
}
END_TEST

START_TEST(manifest_size) {
  size_t bytes = 64 * 1024 + 1;
  char *text = malloc(bytes + 1);
  memset(text, ' ', bytes);
  memcpy(text, "{" GOOD "}", strlen("{" GOOD "}"));
  text[bytes] = 0;
  plg_manifest large = {0}, fits = {0}, binary = {0};
  plg_manifest_parse(text, bytes, &large);
  ck_assert_ptr_nonnull(strstr(large.problem, "64 KiB"));
  text[bytes - 1] = 0;
  plg_manifest_parse(text, bytes - 1, &fits);
  ck_assert_ptr_null(fits.problem);
  plg_manifest_parse("{\0}", 3, &binary);
  ck_assert_ptr_nonnull(strstr(binary.problem, "NUL"));
  plg_manifest_free(&large);
  plg_manifest_free(&fits);
  plg_manifest_free(&binary);
  free(text);
}
END_TEST

/* --- discovery: each test is a process of its own, so that the environment is read anew --- */

typedef struct tree {
  char root[64], one[80], two[80];
} tree;

static void put(const char *folder, const char *file, const char *text) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *stream = fopen(path, "w");
  ck_assert_ptr_nonnull(stream);
  fputs(text, stream);
  fclose(stream);
}

static void put_manifest(const char *folder, const char *name, const char *library) {
  char file[80], text[256];
  snprintf(file, sizeof file, "%s.graft.json", name);
  snprintf(text, sizeof text,
           "{\"name\": \"%s\", \"vendor\": \"V\", \"version\": \"3\", \"library\": \"%s\", \"abi_major\": 1}", name,
           library);
  put(folder, file, text);
}

static void copy_library(const char *name, const char *folder, const char *as) {
  char command[3 * PATH_MAX];
  snprintf(command, sizeof command, "cp '%s' '%s/%s' && chmod 755 '%s/%s'", test_plugin(name), folder, as, folder, as);
  ck_assert_int_eq(system(command), 0);
}

/* Two folders with the null plugin in each, and only they are searched. */
static tree plant(void) {
  umask(022);
  tree t = {.root = "/tmp/graft_test_XXXXXX"};
  ck_assert_ptr_nonnull(mkdtemp(t.root));
  chmod(t.root, 0755);
  snprintf(t.one, sizeof t.one, "%s/one", t.root);
  snprintf(t.two, sizeof t.two, "%s/two", t.root);
  mkdir(t.one, 0755);
  mkdir(t.two, 0755);
  copy_library("null", t.one, "null.so");
  copy_library("null", t.two, "null.so");
  char list[400];
  snprintf(list, sizeof list, ":relative/path::%s:%s:", t.one, t.two);
  setenv("GRAFT_PLUGIN_PATH", list, 1);
  setenv("XDG_DATA_HOME", t.root, 1);
  unsetenv("GRAFT_PLUGINS");
  setenv("GRAFT_LOG", "error", 1);
  return t;
}

static void uproot(const tree *t) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", t->root);
  ck_assert_int_eq(system(command), 0);
}

static const graft_backend_info *row_of(const char *name, bool refused) {
  const graft_backend_info *rows;
  size_t count;
  ck_assert_int_eq(graft_backends(&rows, &count), GRAFT_OK);
  for (size_t i = 0; i < count; i++) {
    if (i) ck_assert_int_le(strcmp(rows[i - 1].name, rows[i].name), 0);
    if (strcmp(rows[i].name, name) == 0 && (rows[i].problem != NULL) == refused) return &rows[i];
  }
  return NULL;
}

START_TEST(discovery_finds_and_opens) {
  tree t = plant();
  put_manifest(t.two, "null", "null.so");
  put_manifest(t.one, "broken", "absent.so");
  put(t.one, "bad.graft.json", "{");
  put(t.one, ".hidden.graft.json", "{");
  put(t.one, "other.json", "{");
  const graft_backend_info *row = row_of("null", false);
  ck_assert_ptr_nonnull(row);
  ck_assert_str_eq(row->vendor, "V");
  ck_assert_str_eq(row->version, "3");
  ck_assert(row->library[0] == '/');
  ck_assert_ptr_nonnull(row_of("reference", false));
  ck_assert_ptr_nonnull(strstr(row_of("bad", true)->problem, "not valid JSON"));
  ck_assert_ptr_nonnull(strstr(row_of("broken", true)->problem, "absent.so"));
  ck_assert_ptr_null(row_of(".hidden", true));

  graft_rt_backend *backend, *again;
  ck_assert_int_eq(graft_backend_open("null", NULL, &backend), GRAFT_OK);
  ck_assert_int_eq(graft_backend_open("null", NULL, &again), GRAFT_OK);
  ck_assert_ptr_eq(backend, again);
  graft_rt_device *device;
  ck_assert_int_eq(graft_device_find("null:1", &device), GRAFT_OK);
  ck_assert_str_eq(graft_device_text(device), "null:1");
  ck_assert_int_eq(graft_device_find("null:2", &device), GRAFT_INVALID_ARGUMENT);
  assert_text("the plugin has 2");
  ck_assert_int_eq(graft_backend_open("broken", NULL, &backend), GRAFT_INCOMPATIBLE);
  assert_text("absent.so");
  ck_assert_int_eq(graft_backend_open("nul", NULL, &backend), GRAFT_INVALID_ARGUMENT);
  assert_text("found: null, ");
  assert_text("reference");
  uproot(&t);
}
END_TEST

START_TEST(discovery_reports_duplicates) {
  tree t = plant();
  put_manifest(t.one, "null", "null.so");
  put_manifest(t.two, "null", "null.so");
  ck_assert_ptr_nonnull(strstr(row_of("null", false)->manifest, "/one/"));
  const graft_backend_info *second = row_of("null", true);
  ck_assert_ptr_nonnull(strstr(second->manifest, "/two/"));
  ck_assert_ptr_nonnull(strstr(second->problem, "/one/null.graft.json"));
  uproot(&t);
}
END_TEST

START_TEST(discovery_distrusts_what_others_may_write) {
  tree t = plant();
  put_manifest(t.one, "file", "null.so");
  put_manifest(t.one, "library", "open.so");
  copy_library("null", t.one, "open.so");
  put_manifest(t.two, "folder", "null.so");
  char path[128];
  snprintf(path, sizeof path, "%s/file.graft.json", t.one);
  chmod(path, 0666);
  snprintf(path, sizeof path, "%s/open.so", t.one);
  chmod(path, 0775);
  chmod(t.two, 0777);
  ck_assert_ptr_nonnull(strstr(row_of("file", true)->problem, "written by others"));
  ck_assert_ptr_nonnull(strstr(row_of("library", true)->problem, "open.so may be written by others"));
  ck_assert_ptr_nonnull(strstr(row_of("folder", true)->problem, "two may be written by others"));
  /* What the user types is taken as it is. */
  graft_rt_backend *backend;
  copy_library("null", t.two, "null.so");
  put_manifest(t.two, "null", "null.so");
  snprintf(path, sizeof path, "%s/null.graft.json", t.two);
  ck_assert_msg(graft_backend_open(path, NULL, &backend) == GRAFT_OK, "%s", graft_last_error());
  uproot(&t);
}
END_TEST

START_TEST(discovery_distrusts_other_owners) {
  if (geteuid() != 0) return; /* only root can give files away */
  tree t = plant();
  put_manifest(t.one, "null", "null.so");
  char path[128];
  snprintf(path, sizeof path, "%s/null.so", t.one);
  ck_assert_int_eq(chown(path, 12345, 12345), 0);
  ck_assert_ptr_nonnull(strstr(row_of("null", true)->problem, "belongs to user 12345"));
  uproot(&t);
}
END_TEST

START_TEST(discovery_filter) {
  tree t = plant();
  put_manifest(t.one, "null", "null.so");
  put_manifest(t.one, "other", "null.so");
  setenv("GRAFT_PLUGINS", _i ? "none" : "null,absent", 1);
  graft_rt_backend *backend;
  if (_i) {
    ck_assert_int_eq(graft_backend_open("null", NULL, &backend), GRAFT_INCOMPATIBLE);
    assert_text("GRAFT_PLUGINS=none");
  } else {
    ck_assert_int_eq(graft_backend_open("null", NULL, &backend), GRAFT_OK);
  }
  ck_assert_ptr_nonnull(strstr(row_of("other", true)->problem, "GRAFT_PLUGINS"));
  ck_assert_ptr_nonnull(row_of("reference", false));
  uproot(&t);
}
END_TEST

START_TEST(discovery_searches_the_users_folder) {
  tree t = plant();
  char folder[128];
  snprintf(folder, sizeof folder, "%s/graft", t.root);
  mkdir(folder, 0755);
  strcat(folder, "/plugins");
  mkdir(folder, 0755);
  copy_library("null", folder, "null.so");
  put_manifest(folder, "null", "null.so");
  ck_assert_ptr_nonnull(row_of("null", false));
  uproot(&t);
}
END_TEST

START_TEST(manifest_and_plugin_agree_on_the_name) {
  tree t = plant();
  put_manifest(t.one, "nul", "null.so");
  graft_rt_backend *backend;
  ck_assert_int_eq(graft_backend_open("nul", NULL, &backend), GRAFT_INCOMPATIBLE);
  assert_text("calls itself \"null\"");
  uproot(&t);
}
END_TEST

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

START_TEST(instances_differ_by_options) {
  const char *some[] = {"alignment=128", NULL}, *others[] = {"alignment=256", NULL};
  graft_rt_device *one = null_device(some), *same = null_device(some), *two = null_device(others);
  ck_assert_ptr_eq(one, same);
  ck_assert_ptr_ne(one, two);
  ck_assert_uint_eq(one->alignment, 128);
  ck_assert_uint_eq(two->alignment, 256);
}
END_TEST

START_TEST(properties_have_defaults) {
  graft_rt_device *device = null_device(NULL);
  ck_assert_uint_eq(device->alignment, 64);
  ck_assert_uint_eq(device->granularity, 512);
  ck_assert_uint_eq(device->copy_granularity, 1);
  ck_assert_int_eq(device->dlpack_type, 12);
  ck_assert_uint_eq(device->memory_kinds, 1);
  char name[64];
  size_t size;
  ck_assert_int_eq(graft_device_query(device, GRAFT_DEVICE_NAME, name, sizeof name, &size), GRAFT_OK);
  ck_assert_str_eq(name, "a device that does nothing");
  ck_assert_int_eq(graft_device_query(device, GRAFT_DEVICE_NAME, name, 3, &size), GRAFT_INVALID_ARGUMENT);
  ck_assert_uint_eq(size, 27);
  ck_assert_int_eq(graft_device_query(device, 4711, name, sizeof name, &size), GRAFT_UNIMPLEMENTED);
}
END_TEST

START_TEST(extensions_can_be_asked_for) {
  graft_rt_device *device = null_device(NULL);
  const void *table = NULL;
  void *self = NULL;
  ck_assert_int_eq(graft_device_extension(device, NULL_EXTENSION, 1, &table, &self), GRAFT_OK);
  ck_assert_ptr_nonnull(table);
  ck_assert_ptr_eq(self, device->backend->plugin.self);
  table = NULL;
  ck_assert_int_eq(graft_device_extension(device, "no.such", 1, &table, &self), GRAFT_UNIMPLEMENTED);
  ck_assert_ptr_null(table);
}
END_TEST

START_TEST(reference_is_there) {
  graft_rt_device *device, *reference = graft_device_reference();
  ck_assert_ptr_nonnull(reference);
  ck_assert_int_eq(graft_device_find("reference", &device), GRAFT_OK);
  ck_assert_ptr_eq(device, reference);
  ck_assert_str_eq(graft_device_text(reference), "reference:0");
  ck_assert_int_eq(graft_device_find("reference:x", &device), GRAFT_INVALID_ARGUMENT);
}
END_TEST

/* --- streams and events --- */

START_TEST(current_stream_is_per_thread_and_device) {
  graft_rt_device *device = null_device(NULL), *other;
  ck_assert_int_eq(graft_backend_device(device->backend, 1, &other), GRAFT_OK);
  ck_assert_ptr_eq(graft_stream_current(device), device->default_stream);
  graft_rt_stream *stream;
  ck_assert_int_eq(graft_stream_create(device, 5, 0, &stream), GRAFT_OK);
  graft_stream_set_current(stream);
  ck_assert_ptr_eq(graft_stream_current(device), stream);
  ck_assert_ptr_eq(graft_stream_current(other), other->default_stream);
  ck_assert_ptr_eq(graft_stream_device(stream), device);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
  ck_assert_ptr_eq(graft_stream_current(device), device->default_stream);
  /* The struct is used again; the old pointer is not the new stream. */
  graft_stream_set_current(device->default_stream);
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  ck_assert_ptr_eq(graft_stream_current(device), device->default_stream);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
  ck_assert_int_eq(graft_stream_destroy(device->default_stream), GRAFT_INVALID_ARGUMENT);
  ck_assert_int_eq(counters_of(device).released_busy, 0);
}
END_TEST

START_TEST(events_follow_the_stream) {
  const char *lazy[] = {"lazy=1", NULL};
  graft_rt_device *device = null_device(lazy);
  graft_rt_event *event;
  ck_assert_int_eq(graft_event_create(device, 0, &event), GRAFT_OK);
  ck_assert_int_eq(graft_event_query(event), GRAFT_OK); /* never recorded counts as done */
  ck_assert_int_eq(graft_event_record(event, device->default_stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_query(event), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_stream_query(device->default_stream), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_stream_wait(device->default_stream, event), GRAFT_OK);
  ck_assert_int_eq(graft_event_synchronize(event), GRAFT_OK);
  ck_assert_int_eq(graft_event_query(event), GRAFT_OK);
  ck_assert_int_eq(graft_stream_query(device->default_stream), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK);
  ck_assert_int_eq(graft_stream_query(device->default_stream), GRAFT_OK);
  double time;
  ck_assert_int_eq(graft_event_elapsed(event, event, &time), GRAFT_UNIMPLEMENTED);
  ck_assert_int_eq(graft_event_create(device, GRAFT_EVENT_TIMING, &event), GRAFT_UNIMPLEMENTED);
  assert_text("timing");
  ck_assert_int_eq(graft_event_destroy(event), GRAFT_OK);
}
END_TEST

START_TEST(a_destroyed_event_is_used_again_once_done) {
  graft_rt_device *device = null_device(OPTIONS("lazy=1"));
  graft_rt_event *first, *second, *third;
  ck_assert_int_eq(graft_event_create(device, 0, &first), GRAFT_OK);
  ck_assert_int_eq(graft_event_record(first, device->default_stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_destroy(first), GRAFT_OK); /* does not wait */
  ck_assert_int_eq(graft_stream_query(device->default_stream), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_event_create(device, 0, &second), GRAFT_OK);
  ck_assert_ptr_ne(second, first);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK);
  ck_assert_int_eq(graft_event_create(device, 0, &third), GRAFT_OK);
  ck_assert_ptr_eq(third, first);
  ck_assert_int_eq(counters_of(device).events, 2);
  graft_event_destroy(second);
  graft_event_destroy(third);
}
END_TEST

START_TEST(events_carry_times_where_asked) {
  graft_rt_device *device = null_device(OPTIONS("timing=1"));
  graft_rt_stream *stream;
  graft_rt_event *from, *to;
  double time = -1;
  ck_assert_int_eq(graft_stream_create(device, 0, GRAFT_STREAM_TIMING, &stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_create(device, GRAFT_EVENT_TIMING, &from), GRAFT_OK);
  ck_assert_int_eq(graft_event_create(device, GRAFT_EVENT_TIMING, &to), GRAFT_OK);
  ck_assert_int_eq(graft_event_elapsed(from, to, &time), GRAFT_NOT_READY);
  ck_assert_int_eq(graft_event_record(from, stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_record(to, stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_elapsed(from, to, &time), GRAFT_OK);
  ck_assert(time > 0);
  ck_assert_int_eq(graft_event_destroy(from), GRAFT_OK);
  ck_assert_int_eq(graft_event_destroy(to), GRAFT_OK);
  ck_assert_int_eq(counters_of(device).events, 0);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
}
END_TEST

START_TEST(faults_are_explained) {
  graft_rt_device *device = null_device(NULL);
  const graft_plugin *plugin = &device->backend->plugin;
  const void *table;
  plugin->extension(plugin->self, NULL_EXTENSION, 1, &table);
  const null_test_api *test = table;
  test->fault(plugin->self, 1);
  ck_assert_int_eq(graft_stream_synchronize(device->default_stream), GRAFT_STREAM_FAILED);
  assert_text(
      "null:0: waiting for a stream: a fault made for a test (what "
      "this stream did from there on may be wrong; it takes new work)");
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_STREAM_FAILED);
  test->fault(plugin->self, 0);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK);
}
END_TEST

START_TEST(unknown_statuses_are_internal) {
  graft_rt_device *device = null_device(NULL);
  err_clear();
  ck_assert_int_eq(plg_status(device, 77, "adding"), GRAFT_INTERNAL);
  assert_text("null:0: adding: the plugin returned the unknown status 77");
  err_clear();
  ck_assert_int_eq(plg_status(device, GRAFT_INTERNAL, "adding"), GRAFT_INTERNAL);
  assert_text("null:0: adding: the plugin says INTERNAL");
  err_set(GRAFT_INTERNAL, "null:0: told already");
  plg_status(device, GRAFT_INTERNAL, "adding");
  ck_assert_str_eq(graft_last_error(), "null:0: told already");
}
END_TEST

START_TEST(generators) {
  graft_generator *own, *common = graft_generator_default(graft_device_reference());
  uint64_t seed, offset;
  graft_generator_seed(common, 42);
  plg_generator_draw(common, 8, &seed, &offset);
  ck_assert_uint_eq(seed, 42);
  ck_assert_uint_eq(offset, 0);
  graft_generator_state(common, &seed, &offset);
  ck_assert_uint_eq(offset, 8);
  ck_assert_int_eq(graft_generator_create(graft_device_reference(), &own), GRAFT_OK);
  graft_generator_set_state(own, 7, 16);
  plg_generator_draw(own, 4, &seed, &offset);
  ck_assert_uint_eq(seed, 7);
  ck_assert_uint_eq(offset, 16);
  graft_generator_destroy(own);
}
END_TEST

/* --- the host's functions --- */

START_TEST(cache_directory) {
  graft_rt_device *device = null_device(NULL);
  const graft_host *host = &device->backend->host;
  char root[] = "/tmp/graft_test_XXXXXX", path[256], expected[128];
  ck_assert_ptr_nonnull(mkdtemp(root));
  snprintf(expected, sizeof expected, "%s/deep/er", root);
  setenv("GRAFT_CACHE_DIR", expected, 1);
  size_t length = 0;
  ck_assert_int_eq(host->cache_directory(host->context, path, sizeof path, &length), GRAFT_OK);
  strcat(expected, "/null");
  ck_assert_str_eq(path, expected);
  ck_assert_uint_eq(length, strlen(expected));
  struct stat info;
  ck_assert_int_eq(stat(path, &info), 0);
  ck_assert_uint_eq(info.st_mode & 0777, 0700);
  ck_assert_int_eq(host->cache_directory(host->context, path, 4, &length), GRAFT_OK);
  ck_assert_str_eq(path, "");
  ck_assert_uint_eq(length, strlen(expected));
  chmod(expected, 0777);
  ck_assert_int_eq(host->cache_directory(host->context, path, sizeof path, &length), GRAFT_UNIMPLEMENTED);
  setenv("GRAFT_CACHE_DIR", "/dev/null/x", 1);
  ck_assert_int_eq(host->cache_directory(host->context, path, sizeof path, &length), GRAFT_UNIMPLEMENTED);
  setenv("GRAFT_CACHE_DIR", "none", 1);
  ck_assert_int_eq(host->cache_directory(host->context, path, sizeof path, &length), GRAFT_UNIMPLEMENTED);
  snprintf(path, sizeof path, "rm -rf '%s'", root);
  ck_assert_int_eq(system(path), 0);
  const void *table;
  ck_assert_int_eq(host->extension(host->context, "graft.graph", 1, &table), GRAFT_UNIMPLEMENTED);
}
END_TEST

/* --- fork and threads --- */

/* Runs in a child; its exit status is the number of what went wrong. */
static int child_of_used_driver(graft_rt_device *device, mem_block *block, graft_rt_stream *stream,
                                graft_rt_event *event) {
  int64_t calls = counters_of(device).calls;
  mem_block *another;
  graft_rt_device *second;
  if (mem_allocate(device, NULL, 64, &another) != GRAFT_FORKED) return 1;
  if (!strstr(graft_last_error(), "forked")) return 2;
  if (graft_device_synchronize(device) != GRAFT_FORKED) return 3;
  if (graft_backend_device(device->backend, 1, &second) != GRAFT_FORKED) return 4;
  if (graft_event_query(event) != GRAFT_FORKED) return 5;
  mem_free(block);
  if (graft_stream_destroy(stream) != GRAFT_OK) return 6;
  if (graft_event_destroy(event) != GRAFT_OK) return 7;
  if (counters_of(device).calls != calls) return 8; /* something entered the plugin */
  if (mem_allocate(graft_device_reference(), NULL, 64, &another) != GRAFT_OK) return 9;
  mem_free(another);
  return 0;
}

static int wait_for(pid_t child) {
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

START_TEST(a_used_driver_does_not_survive_fork) {
  graft_device_reference();
  graft_rt_device *device = null_device(NULL);
  mem_block *block;
  graft_rt_stream *stream;
  graft_rt_event *event;
  ck_assert_int_eq(mem_allocate(device, NULL, 64, &block), GRAFT_OK);
  ck_assert_int_eq(graft_stream_create(device, 0, 0, &stream), GRAFT_OK);
  ck_assert_int_eq(graft_event_create(device, 0, &event), GRAFT_OK);
  pid_t child = fork();
  if (child == 0) _exit(child_of_used_driver(device, block, stream, event));
  ck_assert_int_eq(wait_for(child), 0);
  ck_assert_int_eq(graft_device_synchronize(device), GRAFT_OK); /* the parent goes on */
  ck_assert_int_eq(graft_event_destroy(event), GRAFT_OK);
  ck_assert_int_eq(graft_stream_destroy(stream), GRAFT_OK);
  mem_free(block);
}
END_TEST

START_TEST(an_opened_plugin_survives_fork_until_its_driver_is_used) {
  graft_rt_backend *backend;
  ck_assert_int_eq(graft_backend_open(test_plugin("null"), NULL, &backend), GRAFT_OK);
  pid_t child = fork();
  if (child == 0) {
    graft_rt_device *device;
    _exit(graft_backend_device(backend, 0, &device) == GRAFT_OK ? 0 : 1);
  }
  ck_assert_int_eq(wait_for(child), 0);
  graft_rt_device *device;
  ck_assert_int_eq(graft_backend_device(backend, 0, &device), GRAFT_OK);
}
END_TEST

static graft_rt_device *late_device;
static mem_block *late_block;
static graft_rt_stream *late_stream;

/* Registered before the driver was used, so that it runs when nothing may be called any more. */
static void late(void) {
  int64_t calls = counters_of(late_device).calls;
  mem_block *block;
  mem_free(late_block);
  if (graft_stream_destroy(late_stream) != GRAFT_OK) _exit(1);
  if (mem_allocate(late_device, NULL, 64, &block) != GRAFT_FORKED) _exit(2);
  if (!strstr(graft_last_error(), "exiting")) _exit(3);
  if (counters_of(late_device).calls != calls) _exit(4);
  _exit(42);
}

START_TEST(nothing_is_called_once_exit_has_begun) {
  pid_t child = fork();
  if (child == 0) {
    atexit(late);
    late_device = null_device(NULL);
    if (mem_allocate(late_device, NULL, 64, &late_block)) _exit(5);
    if (graft_stream_create(late_device, 0, 0, &late_stream)) _exit(6);
    exit(0);
  }
  ck_assert_int_eq(wait_for(child), 42);
}
END_TEST

static void *open_device(void *result) {
  *(graft_rt_device **)result = null_device(NULL);
  return NULL;
}

START_TEST(threads_get_one_device) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  graft_rt_device *devices[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, open_device, &devices[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 1; i < THREADS; i++) ck_assert_ptr_eq(devices[i], devices[0]);
  ck_assert_int_eq(counters_of(devices[0]).devices, 1);
}
END_TEST

static void count_device(void *context, graft_rt_device *device) {
  (void)device;
  ++*(int *)context;
}

START_TEST(each_device_is_visited) {
  int before = 0, after = 0;
  plg_each_device(count_device, &before);
  null_device(NULL);
  plg_each_device(count_device, &after);
  ck_assert_int_eq(after, before + 1);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("plugin");
  TCase *text = tcase_create("text"), *found = tcase_create("discovery"), *load = tcase_create("load");
  TCase *device = tcase_create("device"), *process = tcase_create("process");
#define ROWS(cases) (int)(sizeof(cases) / sizeof *(cases))
  tcase_add_test(text, error_text_may_hold_itself);
  tcase_add_test(text, utf8_is_cut_between_characters);
  tcase_add_test(text, status_names);
  tcase_add_loop_test(text, manifest_text, 0, ROWS(manifest_cases));
  tcase_add_test(text, manifest_size);
  tcase_add_test(found, discovery_finds_and_opens);
  tcase_add_test(found, discovery_reports_duplicates);
  tcase_add_test(found, discovery_distrusts_what_others_may_write);
  tcase_add_test(found, discovery_distrusts_other_owners);
  tcase_add_loop_test(found, discovery_filter, 0, 2);
  tcase_add_test(found, discovery_searches_the_users_folder);
  tcase_add_test(found, manifest_and_plugin_agree_on_the_name);
  tcase_add_loop_test(load, broken_plugins_are_refused, 0, ROWS(load_cases));
  tcase_add_loop_test(load, broken_devices_are_refused, 0, ROWS(device_cases));
  tcase_add_test(load, not_a_library);
  tcase_add_loop_test(load, older_and_newer_plugins_work, 0, 2);
  tcase_add_test(load, instances_differ_by_options);
  tcase_add_test(device, properties_have_defaults);
  tcase_add_test(device, extensions_can_be_asked_for);
  tcase_add_test(device, reference_is_there);
  tcase_add_test(device, current_stream_is_per_thread_and_device);
  tcase_add_test(device, events_follow_the_stream);
  tcase_add_test(device, a_destroyed_event_is_used_again_once_done);
  tcase_add_test(device, events_carry_times_where_asked);
  tcase_add_test(device, faults_are_explained);
  tcase_add_test(device, unknown_statuses_are_internal);
  tcase_add_test(device, generators);
  tcase_add_test(device, cache_directory);
  tcase_add_test(device, each_device_is_visited);
  tcase_add_test(process, a_used_driver_does_not_survive_fork);
  tcase_add_test(process, an_opened_plugin_survives_fork_until_its_driver_is_used);
  tcase_add_test(process, nothing_is_called_once_exit_has_begun);
  tcase_add_test(process, threads_get_one_device);
  suite_add_tcase(s, text);
  suite_add_tcase(s, found);
  suite_add_tcase(s, load);
  suite_add_tcase(s, device);
  suite_add_tcase(s, process);
  return s;
}

int main(void) {
  SRunner *runner = srunner_create(suite());
  srunner_set_fork_status(runner, CK_FORK); /* each test reads the environment anew */
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
