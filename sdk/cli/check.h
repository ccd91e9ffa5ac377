/* graft check: contract tests of a plugin, seen from the ABI.
 *
 * A check is a row of one of the tables below: a name, the rule it holds the plugin to, what must be open before it can
 * run, and a function. Each runs in a child process with a time limit, so that a plugin that crashes or hangs is one
 * red line. The plugin is called directly, with a host table of our own (check_plugin.c): nothing of libgraft stands
 * between, so that each rule is seen as the plugin keeps it.
 *
 * A function returns when all is well and ends its process by ck_fail or ck_skip otherwise. What it is doing is noted
 * before each call of the plugin, and is what a crash or a hang is reported with.
 *
 *   check_command.c  the command                 check_lint.c    the file and its manifest
 *   check_run.c      children, the report        check_open.c    opening, instances
 *   check_message.c  what a child says           check_device.c, check_memory.c, check_copies.c, check_streams.c, ...
 *   check_plugin.c   plugin, host, helpers       check_slots.c   which ops have a slot
 *   check_profiler.c what ran and when           check_custom.c  ops of the plugin's own
 *   check_groups.c   calls compiled together     check_capture.c work that is recorded */
#ifndef GRAFT_CLI_CHECK_H
#define GRAFT_CLI_CHECK_H

#include <fenv.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "graft/abi/plugin.h"
#include "ops/core/schema.h"

/* --- what is checked --- */

typedef struct ck_target {
  const char *path;           /* of the library; NULL: the built-in reference plugin */
  const char *manifest;       /* the one the user or discovery named, or NULL */
  const char *const *options; /* NULL-terminated, or NULL */
  int device;
  int time_limit_s;
} ck_target;

/* What must work before a check makes sense, in this order: the library loaded and its entry found; the entry gave a
 * plugin; its major is ours; its structs reach far enough; nothing mandatory is missing; it has devices; one opens. A
 * gate is the check that shows it. */
typedef enum ck_stage { CK_FILE, CK_LIBRARY, CK_TABLE, CK_MAJOR, CK_SIZES, CK_PLUGIN, CK_COUNT, CK_DEVICE } ck_stage;

typedef struct ck_session ck_session;

typedef struct ck_check {
  const char *name;
  const char *rule;
  ck_stage needs; /* must have been shown before, and is what the session has reached */
  void (*run)(ck_session *session);
  ck_stage shows; /* the stage that this check shows; CK_FILE: none */
  bool fresh;     /* the session has only loaded the library: the check opens it in its own way */
} ck_check;

typedef struct ck_table {
  const ck_check *checks;
  size_t count;
} ck_table;

extern const ck_table ck_lint_checks, ck_open_checks, ck_device_checks, ck_instance_checks, ck_memory_checks,
    ck_copy_checks, ck_stream_checks, ck_event_checks, ck_profiler_checks, ck_op_checks, ck_group_checks,
    ck_capture_checks, ck_custom_checks, ck_reach_checks, ck_close_checks;

/* --- running --- */

typedef struct ck_counts {
  int ok, failed, skipped;
  ck_stage reached; /* all gates up to here passed */
  char slots[1024]; /* what is said of the slots at the end; empty where the plugin did not come that far */
} ck_counts;

/* Runs the checks whose name matches `pattern` (NULL: all), one line each on stdout. Gates always run. */
void ck_run_all(const ck_target *target, const char *pattern, ck_counts *counts);
void ck_list(void);

/* --- inside a check --- */

/* Says what is being done. */
void ck_doing(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Says something that is no fault. */
void ck_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ends the check: "WHAT IS BEING DONE: text". */
_Noreturn void ck_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void ck_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The table of an extension of the plugin; `none` says why the check is skipped where it has none. */
const void *ck_extension(ck_session *s, const char *name, uint32_t version, const char *none);
/* Fails unless a call answered as expected. */
void ck_is(graft_status got, graft_status expected);
/* Its name, or its number where it has none; until this thread's next call. */
const char *ck_status_text(graft_status status);

/* Calls the plugin: CK_CALL(GRAFT_OK, s->memory.release(s->device, b), "release(...)"). */
#define CK_CALL(expected, call, ...) (ck_doing(__VA_ARGS__), ck_is((call), (expected)))

/* --- the process --- */

/* What a plugin leaves as it is. */
typedef struct ck_process {
  fenv_t arithmetic;
  void (*handlers[32])(int); /* by signal */
  sigset_t blocked;
  char locale[256], folder[1024];
  mode_t umask;
} ck_process;

void ck_process_now(ck_process *process);
/* Fails the check, naming what differs. */
void ck_same_process(const ck_process *before);

/* --- the plugin --- */

/* Ends a check of a rule that came with a minor, for plugins of an earlier one. */
void ck_since(const ck_session *session, uint32_t minor);

enum { CK_OBJECTS_MAX = 256 };
typedef struct ck_objects {
  void *items[CK_OBJECTS_MAX];
  size_t count;
} ck_objects;

/* An instance and what was made of it. Objects made by the helpers below are destroyed by ck_close in the ABI's order.
 */
struct ck_session {
  const ck_target *target;
  graft_plugin_open_v1_fn entry;
  graft_host host;
  int threads_before;      /* of this process, before the library was loaded */
  ck_process before;       /* likewise */
  char error[512];         /* what the plugin said last */
  const graft_plugin *raw; /* as the plugin gave it */
  graft_plugin plugin;     /* copies, completed with zeros */
  graft_memory_api memory;
  graft_stream_api stream;
  graft_device *device;
  int32_t device_count;
  uint64_t granularity, copy_granularity, max_allocation;
  uint32_t memory_flags, stream_flags, event_flags, memory_kinds;
  ck_objects buffers, streams, events;
  ck_objects failed_streams; /* as they had to: nobody waits for them at the end */
  struct ck_memo {
    void *value;
    void (*destroy)(void *value);
  } memos[CK_OBJECTS_MAX];
  size_t memo_count;
};

/* Each brings a session further and fails the check if it can't. */
void ck_load(ck_session *session);                  /* CK_LIBRARY */
void ck_enter(ck_session *session);                 /* CK_TABLE: the table may still be anything */
void ck_adopt(ck_session *session);                 /* CK_PLUGIN */
void ck_open_device(ck_session *session);           /* CK_DEVICE */
void ck_reach(ck_session *session, ck_stage stage); /* all that leads there */
/* Destroys everything in the ABI's order and closes; fails the check if the plugin does not succeed. */
void ck_close(ck_session *session);

/* A second session on the same library. */
void ck_session_init(ck_session *session, const ck_target *target);

/* --- objects, by the plugin's functions; fail the check if these fail --- */

graft_buffer *ck_buffer(ck_session *session, uint64_t bytes); /* rounded up to the granularity */
graft_stream *ck_stream(ck_session *session, graft_stream_flags flags);
void ck_stream_has_failed(ck_session *session, graft_stream *stream);
graft_event *ck_event(ck_session *session, graft_event_flags flags);

/* Copies that wait for the stream. */
void ck_write(ck_session *session, graft_stream *stream, graft_buffer *to, uint64_t offset, const void *from,
              uint64_t bytes);
void ck_read(ck_session *session, graft_stream *stream, graft_buffer *from, uint64_t offset, void *to, uint64_t bytes);
void ck_synchronize(ck_session *session, graft_stream *stream);
/* Enqueues work that takes a while: all `bytes` of a buffer become `value`, in the widest pattern. */
void ck_fill_all(ck_session *session, graft_stream *stream, graft_buffer *buffer, uint64_t bytes, unsigned char value);
void ck_record(ck_session *session, graft_event *event, graft_stream *stream);

/* The slot of an op as the plugin's tables have it, or NULL; what op_caps says of it, or nothing where there is none.
 */
const void *ck_slot_of(const ck_session *session, const op_schema *schema);
graft_op_caps ck_caps_of(ck_session *session, const op_schema *schema);
/* The names of a set of dtypes, in `text`, which has room for CK_DTYPES_BYTES. */
enum { CK_DTYPES_BYTES = 320 };
const char *ck_dtypes(char *text, uint64_t dtypes);
/* Says how many slots there are. No check: it runs after all of them. */
extern const ck_check ck_slot_count;

/* Threads of this process. */
int ck_thread_count(void);

/* One property of the device, or `otherwise` where the plugin does not know the key. */
uint64_t ck_property(ck_session *session, graft_device_key key, size_t bytes, uint64_t otherwise);

/* --- bytes --- */

void *ck_alloc(size_t bytes);
/* Bytes that differ from their neighbours and from those of another seed. */
void ck_pattern(void *bytes, size_t count, unsigned seed);
/* Fails at the first byte that differs, with its place; the text names the range. */
void ck_same(const void *got, const void *expected, size_t count, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A must-understand flag that no version defines and a hint. */
#define CK_UNKNOWN_FLAG UINT32_C(0x8000)
#define CK_HINT_FLAG    UINT32_C(0x80000000)

#endif
