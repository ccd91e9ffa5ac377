/* Children and the report. The parent never opens the plugin. */
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/utf8.h"
#include "check.h"
#include "check_message.h"

static const ck_table *const tables[] = {&ck_lint_checks,     &ck_open_checks,  &ck_device_checks, &ck_instance_checks,
                                         &ck_memory_checks,   &ck_copy_checks,  &ck_stream_checks, &ck_event_checks,
                                         &ck_profiler_checks, &ck_op_checks,    &ck_group_checks,  &ck_capture_checks,
                                         &ck_custom_checks,   &ck_reach_checks, &ck_close_checks};

/* --- inside the child --- */

static _Noreturn void child(const ck_check *check, const ck_target *target) {
  /* Nobody needs a core file of it, or the process once the parent is gone. */
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setpgid(0, 0);
  dup2(STDERR_FILENO, STDOUT_FILENO); /* what a plugin prints is no part of the report */
  ck_session *session = calloc(1, sizeof *session);
  if (!session) ck_skip("no host memory");
  ck_session_init(session, target);
  ck_reach(session, check->fresh ? CK_LIBRARY : check->needs);
  check->run(session);
  ck_close(session);
  int pending = CK_PENDING; /* a thread, or a child of this one, may have said otherwise */
  atomic_compare_exchange_strong(&ck_now->outcome, &pending, CK_OK);
  _exit(0);
}

/* --- in the parent --- */

/* Waits for the child, which alone holds the other end of `pipe`; false if it took too long and was ended. */
static bool wait_for(pid_t pid, int pipe, int limit_s, int *status) {
  struct pollfd end = {.fd = pipe, .events = POLLIN};
  bool in_time = poll(&end, 1, limit_s * 1000) != 0;
  if (!in_time) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
  }
  while (waitpid(pid, status, 0) < 0) continue;
  return in_time;
}

static void explain_end(int status) {
  const char *doing = ck_now->doing[0] ? ck_now->doing : "before anything was done";
  if (WIFSIGNALED(status)) {
    snprintf(ck_now->text, sizeof ck_now->text, "%s: crashed: %s", doing, strsignal(WTERMSIG(status)));
  } else {
    snprintf(ck_now->text, sizeof ck_now->text, "%s: the process ended with status %d", doing, WEXITSTATUS(status));
  }
}

static ck_outcome run_one(const ck_check *check, const ck_target *target) {
  int ends[2], status;
  memset(ck_now, 0, sizeof *ck_now);
  if (pipe(ends)) return CK_SKIPPED;
  fflush(NULL);
  pid_t pid = fork();
  if (pid < 0) {
    snprintf(ck_now->text, sizeof ck_now->text, "no child process could be made");
    return CK_SKIPPED;
  }
  if (pid == 0) {
    close(ends[0]);
    child(check, target);
  }
  close(ends[1]);
  bool in_time = wait_for(pid, ends[0], target->time_limit_s, &status);
  close(ends[0]);
  ck_outcome how = (ck_outcome)atomic_load(&ck_now->outcome);
  if (how != CK_PENDING && in_time) return how;
  if (in_time)
    explain_end(status);
  else
    snprintf(ck_now->text, sizeof ck_now->text, "%s: no end after %d s", ck_now->doing, target->time_limit_s);
  return CK_FAILED;
}

static void print(const ck_check *check, ck_outcome how) {
  static const char *const plain[] = {[CK_OK] = "ok  ", [CK_FAILED] = "FAIL", [CK_SKIPPED] = "skip"};
  static const char *const colour[] = {
      [CK_OK] = "\033[32mok\033[0m  ", [CK_FAILED] = "\033[1;31mFAIL\033[0m", [CK_SKIPPED] = "\033[33mskip\033[0m"};
  bool terminal = isatty(STDOUT_FILENO);
  char text[sizeof ck_now->text];
  utf8_copy(text, sizeof text, how == CK_OK ? "" : ck_now->text);
  printf("  %s  %-22s%s%s\n", (terminal ? colour : plain)[how], check->name, *text ? "  " : "", text);
  if (how == CK_FAILED) printf("        rule: %s\n", check->rule);
  fflush(stdout);
}

static const char *missing(ck_stage reached) {
  static const char *const what[] = {[CK_FILE] = "the library does not load",
                                     [CK_LIBRARY] = "the plugin does not open",
                                     [CK_TABLE] = "the plugin does not say this host's major",
                                     [CK_MAJOR] = "its structs are too short",
                                     [CK_SIZES] = "a mandatory function is missing",
                                     [CK_PLUGIN] = "it has no device",
                                     [CK_COUNT] = "the device does not open"};
  return what[reached];
}

static void run(const ck_check *check, const ck_target *target, bool wanted, ck_counts *counts) {
  ck_outcome how;
  if (check->needs > counts->reached) {
    memset(ck_now, 0, sizeof *ck_now);
    snprintf(ck_now->text, sizeof ck_now->text, "%s", missing(counts->reached));
    how = CK_SKIPPED;
  } else {
    how = run_one(check, target);
  }
  if (how == CK_OK && check->shows) counts->reached = check->shows;
  if (!wanted && how != CK_FAILED) return;
  counts->ok += how == CK_OK;
  counts->failed += how == CK_FAILED;
  counts->skipped += how == CK_SKIPPED;
  print(check, how);
}

void ck_run_all(const ck_target *target, const char *pattern, ck_counts *counts) {
  ck_now = mmap(NULL, sizeof *ck_now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (ck_now == MAP_FAILED) abort();
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
    for (size_t i = 0; i < tables[t]->count; i++) {
      const ck_check *check = &tables[t]->checks[i];
      bool wanted = !pattern || !fnmatch(pattern, check->name, 0);
      if (wanted || check->shows) run(check, target, wanted, counts);
    }
  }
  if (counts->reached >= CK_DEVICE && run_one(&ck_slot_count, target) == CK_OK)
    utf8_copy(counts->slots, sizeof counts->slots, ck_now->text);
  munmap(ck_now, sizeof *ck_now);
}

void ck_list(void) {
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
    for (size_t i = 0; i < tables[t]->count; i++) {
      printf("%-22s %s\n", tables[t]->checks[i].name, tables[t]->checks[i].rule);
    }
  }
}
