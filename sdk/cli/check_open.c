/* Opening: the entry, the tables it gives, and what an instance may not do. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"
#include "check.h"
#include "check_manifest.h"

/* --- the gates --- */

static void check_loads(ck_session *session) {
  ck_load(session);
}

static void check_opens(ck_session *session) {
  ck_enter(session);
}

static void check_major(ck_session *session) {
  const graft_plugin *plugin = session->raw;
  ck_doing("graft_plugin");
  if (plugin->struct_size < GRAFT_SIZE_TO(graft_plugin, abi_minor)) {
    ck_fail("its struct_size is %zu; set it to sizeof of the struct", plugin->struct_size);
  }
  if (plugin->abi_major != GRAFT_ABI_MAJOR) {
    ck_fail("abi_major is %u, expected %d", plugin->abi_major, GRAFT_ABI_MAJOR);
  }
}

/* Where the mandatory fields of a struct end. */
static void check_size(const char *name, size_t given, size_t least) {
  ck_doing("%s", name);
  if (given < least) ck_fail("its struct_size is %zu and ends before the mandatory fields do (%zu)", given, least);
  if (given % 8) ck_fail("its struct_size is %zu; expected a multiple of 8", given);
  if (given > 1u << 20) ck_fail("its struct_size is %zu", given);
}

static size_t size_of_table(const void *table) {
  size_t size = 0;
  if (table) memcpy(&size, table, sizeof size);
  return size;
}

static void check_sizes(ck_session *session) {
  const graft_plugin *plugin = session->raw;
  check_size("graft_plugin", plugin->struct_size, GRAFT_SIZE_TO(graft_plugin, stream));
  if (plugin->memory) {
    check_size("graft_memory_api", plugin->memory->struct_size, GRAFT_SIZE_TO(graft_memory_api, fill));
  }
  if (plugin->stream) {
    check_size("graft_stream_api", plugin->stream->struct_size, GRAFT_SIZE_TO(graft_stream_api, failure));
  }
  const size_t head = sizeof(size_t);
  if (GRAFT_HAS(plugin, graft_plugin, core)) check_size("graft_core_ops", size_of_table(plugin->core), head);
  if (GRAFT_HAS(plugin, graft_plugin, prims)) check_size("graft_prims_ops", size_of_table(plugin->prims), head);
  if (GRAFT_HAS(plugin, graft_plugin, train)) check_size("graft_train_ops", size_of_table(plugin->train), head);
}

#define NEED(type, field) \
  { #type "." #field, offsetof(type, field) }

typedef struct need {
  const char *name;
  size_t offset;
} need;

static void check_needs(const void *table, const need *needs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const void *value;
    memcpy(&value, (const char *)table + needs[i].offset, sizeof value);
    if (!value) ck_fail("%s is NULL", needs[i].name);
  }
}

static void check_mandatory(ck_session *session) {
  static const need of_plugin[] = {NEED(graft_plugin, close),        NEED(graft_plugin, device_count),
                                   NEED(graft_plugin, device_query), NEED(graft_plugin, device_open),
                                   NEED(graft_plugin, device_close), NEED(graft_plugin, memory),
                                   NEED(graft_plugin, stream)};
  static const need of_memory[] = {NEED(graft_memory_api, allocate),       NEED(graft_memory_api, release),
                                   NEED(graft_memory_api, copy_from_host), NEED(graft_memory_api, copy_to_host),
                                   NEED(graft_memory_api, copy),           NEED(graft_memory_api, fill)};
  static const need of_stream[] = {NEED(graft_stream_api, create),       NEED(graft_stream_api, destroy),
                                   NEED(graft_stream_api, query),        NEED(graft_stream_api, synchronize),
                                   NEED(graft_stream_api, event_create), NEED(graft_stream_api, event_destroy),
                                   NEED(graft_stream_api, event_record), NEED(graft_stream_api, stream_wait),
                                   NEED(graft_stream_api, event_query),  NEED(graft_stream_api, event_synchronize),
                                   NEED(graft_stream_api, failure)};
  ck_doing("the tables");
  check_needs(session->raw, of_plugin, sizeof of_plugin / sizeof *of_plugin);
  check_needs(session->raw->memory, of_memory, sizeof of_memory / sizeof *of_memory);
  check_needs(session->raw->stream, of_stream, sizeof of_stream / sizeof *of_stream);
  ck_adopt(session);
}

/* --- what opening may do --- */

static void check_text(const char *what, const char *text) {
  char copy[256];
  ck_doing("%s", what);
  if (!text || !*text) ck_fail("it is missing");
  utf8_copy(copy, sizeof copy, text);
  if (strncmp(copy, text, strlen(copy)) != 0) ck_fail("\"%s\" is not UTF-8", copy);
}

/* A manifest need not say all that the plugin does. */
static void check_same_text(const char *what, const char *own, const char *said, const char *manifest) {
  ck_doing("the plugin's %s", what);
  if (said && *said && strcmp(said, own) != 0) ck_fail("it is \"%s\", and \"%s\" in %s", own, said, manifest);
}

static void check_name(ck_session *session) {
  check_text("the plugin's name", session->plugin.name);
  check_text("the plugin's vendor", session->plugin.vendor);
  check_text("the plugin's version", session->plugin.version);
  const char *name = session->plugin.name;
  ck_doing("the plugin's name");
  if (!plg_name_is_valid(name)) ck_fail("\"%s\" is not made of 1 to %d letters, digits and _ - .", name, PLG_NAME_MAX);
  plg_manifest manifest = {0};
  if (!ck_manifest(session->target, &manifest) || manifest.problem) return;
  check_same_text("name", name, manifest.name, manifest.path);
  check_same_text("version", session->plugin.version, manifest.version, manifest.path);
  ck_doing("the plugin");
  if (manifest.abi_minor != PLG_NO_MINOR && manifest.abi_minor != session->plugin.abi_minor)
    ck_fail("its abi_minor is %u, and %g in %s", session->plugin.abi_minor, manifest.abi_minor, manifest.path);
}

static void check_threads(ck_session *session) {
  int after = ck_thread_count();
  ck_doing("loading and opening the plugin");
  if (after > session->threads_before) ck_fail("%d threads were started", after - session->threads_before);
}

/* What an application does that starts its data loaders after it has loaded its backends. */
static void check_fork(ck_session *session) {
  const void *table = NULL;
  ck_adopt(session);
  if (session->plugin.extension)
    session->plugin.extension(session->plugin.self, GRAFT_EXTENSION_NATIVE_HANDLE, 1, &table);
  ck_doing("fork after opening, and device_open in the child");
  pid_t pid = fork();
  if (pid == 0) {
    ck_open_device(session);
    ck_close(session);
    _exit(0);
  }
  int status;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) ck_skip("no child process could be made");
  if (WIFSIGNALED(status)) ck_fail("the child crashed: %s", strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status)) ck_fail("the child ended with status %d", WEXITSTATUS(status));
}

static void check_options(ck_session *session) {
  static const char *const none[] = {NULL};
  const graft_plugin *plugin = NULL;
  CK_CALL(GRAFT_OK, session->entry(&session->host, session->target->options ? NULL : none, &plugin), "opening with %s",
          session->target->options ? "options NULL" : "an empty list of options");
  session->raw = plugin;
  ck_adopt(session);
}

static void check_unknown_option(ck_session *session) {
  static const char option[] = "graft_check_option=1";
  const char *with_it[64];
  size_t count = 0;
  for (const char *const *given = session->target->options; given && *given && count < 62; given++)
    with_it[count++] = *given;
  with_it[count] = option;
  with_it[count + 1] = NULL;
  ck_adopt(session); /* as it is opened else, to ask for its minor */
  ck_since(session, 2);
  const graft_plugin *plugin = NULL;
  session->error[0] = 0;
  CK_CALL(GRAFT_INVALID_ARGUMENT, session->entry(&session->host, with_it, &plugin), "opening with the option \"%s\"",
          option);
  if (plugin) ck_fail("it failed and wrote its output");
  if (!strstr(session->error, "graft_check_option")) ck_fail("its text \"%s\" does not name it", session->error);
}

static void check_process(ck_session *session) {
  ck_adopt(session);
  ck_since(session, 2);
  ck_doing("loading and opening the plugin");
  ck_same_process(&session->before);
  ck_open_device(session);
  ck_stream(session, 0);
  ck_doing("device_open and the first stream");
  ck_same_process(&session->before);
}

/* A host of a later minor hands in more functions than this plugin knows. */
static void check_newer_host(ck_session *session) {
  static struct newer {
    graft_host host;
    void *unknown[4];
  } newer;
  newer.host = session->host;
  newer.host.struct_size = sizeof newer;
  newer.host.abi_minor = GRAFT_ABI_MINOR + 7;
  CK_CALL(GRAFT_OK, session->entry(&newer.host, session->target->options, &session->raw),
          "opening for a host of minor %d with a larger struct", GRAFT_ABI_MINOR + 7);
  ck_adopt(session);
}

/* --- two instances --- */

/* False where the plugin says that it can be opened once only. */
static bool open_second(ck_session *second, const ck_session *first) {
  ck_session_init(second, first->target);
  second->entry = first->entry;
  ck_doing("opening a second time");
  graft_status status = second->entry(&second->host, second->target->options, &second->raw);
  if (status == GRAFT_INCOMPATIBLE) return false;
  if (status) ck_fail("expected OK or INCOMPATIBLE, got %s: %s", ck_status_text(status), second->error);
  ck_adopt(second);
  return true;
}

static void check_twice(ck_session *session) {
  ck_session *second = ck_alloc(sizeof *second);
  ck_open_device(session);
  if (!open_second(second, session)) {
    ck_buffer(session, 100); /* the first goes on */
    return;
  }
  ck_open_device(second);
  ck_buffer(second, 100);
  ck_close(session);
  /* The first one's end is no concern of the second. */
  ck_buffer(second, 100);
  ck_stream(second, 0);
  ck_close(second);
}

/* Provokes an error text, if the plugin has one to say. */
static void ask_too_much(ck_session *session) {
  graft_allocation request = {.struct_size = sizeof request, .bytes = UINT64_C(1) << 62};
  session->error[0] = 0;
  ck_doing("allocate 2^62 bytes");
  if (session->memory.allocate(session->device, &request) == GRAFT_OK) ck_fail("it succeeded");
}

static void check_hosts(ck_session *session) {
  ck_session *second = ck_alloc(sizeof *second);
  ck_open_device(session);
  if (!open_second(second, session)) ck_skip("the plugin opens only once");
  ck_open_device(second);
  ask_too_much(session);
  if (second->error[0]) ck_fail("the first instance said \"%s\" to the second one's host", second->error);
  session->error[0] = 0;
  ask_too_much(second);
  if (session->error[0]) ck_fail("the second instance said \"%s\" to the first one's host", session->error);
  ck_close(second);
}

static void check_extension(ck_session *session) {
  const void *table = NULL;
  const graft_plugin *plugin = &session->plugin;
  if (!plugin->extension) ck_skip("the plugin has no `extension`");
  CK_CALL(GRAFT_UNIMPLEMENTED, plugin->extension(plugin->self, "graft.check.there_is_none", 1, &table),
          "asking for the extension \"graft.check.there_is_none\"");
  if (table) ck_fail("it said UNIMPLEMENTED and wrote its output");
  ck_doing("asking for \"" GRAFT_EXTENSION_NATIVE_HANDLE "\"");
  graft_status status = plugin->extension(plugin->self, GRAFT_EXTENSION_NATIVE_HANDLE, 1, &table);
  if (status == GRAFT_UNIMPLEMENTED) return;
  ck_is(status, GRAFT_OK);
  if (!table || size_of_table(table) < GRAFT_SIZE_TO(graft_native_handle_api, api)) ck_fail("its table has no size");
  const void *again = NULL;
  CK_CALL(GRAFT_OK, plugin->extension(plugin->self, GRAFT_EXTENSION_NATIVE_HANDLE, 1, &again),
          "asking for \"" GRAFT_EXTENSION_NATIVE_HANDLE "\" again");
  if (again != table) ck_fail("it gave another table");
  CK_CALL(GRAFT_UNIMPLEMENTED, plugin->extension(plugin->self, GRAFT_EXTENSION_NATIVE_HANDLE, 1u << 30, &table),
          "asking for version 2^30 of \"" GRAFT_EXTENSION_NATIVE_HANDLE "\"");
}

static const ck_check checks[] = {
    {"open.load", "The library loads with RTLD_NOW and RTLD_LOCAL and has its entry.", CK_FILE, .run = check_loads,
     .shows = CK_LIBRARY},
    {"open.entry", "graft_plugin_open_v1 gives a plugin.", CK_LIBRARY, .run = check_opens, .shows = CK_TABLE},
    {"open.major", "struct_size reaches abi_minor, and abi_major is this host's.", CK_TABLE, .run = check_major,
     .shows = CK_MAJOR},
    {"open.sizes", "struct_size is the end of the last field known, at least of the mandatory ones.", CK_MAJOR,
     .run = check_sizes, .shows = CK_SIZES},
    {"open.mandatory", "Mandatory functions are there.", CK_SIZES, .run = check_mandatory, .shows = CK_PLUGIN},
    {"open.name", "name, vendor and version are UTF-8; the manifest says the same name, version and abi_minor.",
     CK_PLUGIN, .run = check_name},
    {"open.threads", "open starts no thread.", CK_PLUGIN, .run = check_threads},
    {"open.options", "options may be NULL and may be an empty list.", CK_PLUGIN, .run = check_options, .fresh = true},
    {"open.unknown_option", "An option that is not known is refused, by its name.", CK_PLUGIN,
     .run = check_unknown_option, .fresh = true},
    {"open.newer_host", "A struct that is larger than known, and a newer minor, are no obstacle.", CK_PLUGIN,
     .run = check_newer_host, .fresh = true},
    {"open.extension", "An extension's table is constant; what is not offered is UNIMPLEMENTED.", CK_PLUGIN,
     .run = check_extension},
};

const ck_table ck_open_checks = {checks, sizeof checks / sizeof *checks};

static const ck_check instance_checks[] = {
    {"open.process", "Arithmetic, signals, locale, working directory and umask are left alone.", CK_DEVICE,
     .run = check_process, .fresh = true},
    {"open.fork", "Neither open nor `extension` touches a driver: a process may fork after them.", CK_DEVICE,
     .run = check_fork, .fresh = true},
    {"open.twice", "A plugin may be opened again, or says INCOMPATIBLE; instances do not touch each other.", CK_DEVICE,
     .run = check_twice},
    {"open.hosts", "An instance speaks to the host that opened it, and to no other.", CK_DEVICE, .run = check_hosts},
};

const ck_table ck_instance_checks = {instance_checks, sizeof instance_checks / sizeof *instance_checks};
