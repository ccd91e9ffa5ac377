/* Runs the suite on each mutant: its op's mustpass cases must find it, and must find nothing in what is right.
 *
 *   graft_mutant_runner PLUGIN [NAME...] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/conformance.h"
#include "conformance/mutants/bugs.h"

/* The exit status of `graft conformance` on a bug, in a child with its output in `log`. A bug may never come back; what
 * is right is only slow where a machine is busy, and has the time that a case has by default. */
static int mut_conformance(const char *plugin, const mut_bug *bug, FILE *log) {
  char option[64];
  const char *limit = bug->op ? "5" : "60";
  const char *argv[20] = {"conformance", "-b",     plugin, "-o",           option, "--level",
                          "mustpass",    "--jobs", "2",    "--time-limit", limit};
  int argc = 11, status = 0;
  snprintf(option, sizeof option, "bug=%s", bug->name);
  if (bug->op) argv[argc++] = "--op", argv[argc++] = bug->op, argv[argc++] = "--fail-fast";
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(fileno(log), STDOUT_FILENO);
    dup2(fileno(log), STDERR_FILENO);
    exit(cf_main_conformance(argc, (char **)(uintptr_t)argv));
  }
  if (child < 0 || waitpid(child, &status, 0) < 0) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The first line of a log that names a failure. */
static void mut_first_failure(FILE *log, char *line, int size) {
  rewind(log);
  while (fgets(line, size, log)) {
    line[strcspn(line, "\n")] = 0;
    if (strncmp(line, "fail ", 5) == 0 || strncmp(line, "crash ", 6) == 0 || strncmp(line, "timeout ", 8) == 0) return;
  }
  snprintf(line, (size_t)size, "no failure was reported");
}

static bool mut_judge(const char *plugin, const mut_bug *bug) {
  char line[512] = "";
  FILE *log = tmpfile();
  if (!log) return false;
  int status = mut_conformance(plugin, bug, log);
  bool good = status == (bug->op ? 1 : 0);
  mut_first_failure(log, line, sizeof line);
  const char *word = bug->op ? good ? "caught" : "MISSED" : good ? "quiet" : "ALARM";
  printf("%-8s %-18s %-30s %s (exit %d)\n", word, bug->name, bug->op ? bug->op : "", bug->kind, status);
  if (bug->op || !good) printf("         %s\n", line);
  fflush(stdout);
  fclose(log);
  return good;
}

static bool mut_wanted(const char *name, int argc, char **argv) {
  for (int i = 2; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return argc <= 2;
}

int main(int argc, char **argv) {
  size_t good = 0, tried = 0;
  if (argc > 1 && strcmp(argv[1], "conformance") == 0) return cf_main_conformance(argc - 1, argv + 1);
  if (argc < 2) return fprintf(stderr, "usage: graft_mutant_runner PLUGIN [NAME...]\n"), 2;
  time_t from = time(NULL);
  for (size_t i = 0; i < mut_bug_count; i++) {
    if (!mut_wanted(mut_bugs[i].name, argc, argv)) continue;
    tried++;
    good += mut_judge(argv[1], &mut_bugs[i]);
  }
  printf("%zu of %zu as they should be, %ld s\n", good, tried, (long)(time(NULL) - from));
  return good == tried ? 0 : 1;
}
