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

enum { MUT_MOST_TOGETHER = 8 };

/* Those that go through the suite together: one with a bug, or all wanted ones that are right. These have each case in
 * turn, so that the oracle, which takes longer than all of them, has it once (conformance/run/arithmetics.h). */
typedef struct mut_party {
  const mut_bug *bugs[MUT_MOST_TOGETHER];
  int count;
} mut_party;

/* The exit status of `graft conformance` on them, in a child with its output in `log`. A bug may never come back; what
 * is right is only slow where a machine is busy, and has the time that a case has by default. */
static int mut_conformance(const char *plugin, const mut_party *party, FILE *log) {
  char options[MUT_MOST_TOGETHER][64];
  const char *op = party->bugs[0]->op;
  const char *argv[16 + 2 * MUT_MOST_TOGETHER] = {"conformance", "-b", plugin,         "--level",      "mustpass",
                                                  "--jobs",      "2",  "--time-limit", op ? "5" : "60"};
  int argc = 9, status = 0;
  for (int i = 0; i < party->count; i++) {
    snprintf(options[i], sizeof options[i], "bug=%s", party->bugs[i]->name);
    argv[argc++] = "-o", argv[argc++] = options[i];
  }
  if (op) argv[argc++] = "--op", argv[argc++] = op, argv[argc++] = "--fail-fast";
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

/* How many of them are as they should be: all, or none. Of what is right, the failure says which it is. */
static int mut_judge(const char *plugin, const mut_party *party) {
  char line[512] = "";
  FILE *log = tmpfile();
  if (!log) return 0;
  int status = mut_conformance(plugin, party, log);
  const char *op = party->bugs[0]->op;
  bool good = status == (op ? 1 : 0);
  mut_first_failure(log, line, sizeof line);
  const char *word = op ? good ? "caught" : "MISSED" : good ? "quiet" : "ALARM";
  for (int i = 0; i < party->count; i++)
    printf("%-8s %-18s %-30s %s (exit %d)\n", word, party->bugs[i]->name, op ? op : "", party->bugs[i]->kind, status);
  if (op || !good) printf("         %s\n", line);
  fflush(stdout);
  fclose(log);
  return good ? party->count : 0;
}

static bool mut_wanted(const char *name, int argc, char **argv) {
  for (int i = 2; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return argc <= 2;
}

int main(int argc, char **argv) {
  int good = 0, tried = 0;
  mut_party right = {.count = 0};
  if (argc > 1 && strcmp(argv[1], "conformance") == 0) return cf_main_conformance(argc - 1, argv + 1);
  if (argc < 2) return fprintf(stderr, "usage: graft_mutant_runner PLUGIN [NAME...]\n"), 2;
  time_t from = time(NULL);
  for (size_t i = 0; i < mut_bug_count; i++) {
    const mut_bug *bug = &mut_bugs[i];
    if (!mut_wanted(bug->name, argc, argv)) continue;
    tried++;
    if (bug->op)
      good += mut_judge(argv[1], &(mut_party){{bug}, 1});
    else if (right.count < MUT_MOST_TOGETHER)
      right.bugs[right.count++] = bug;
  }
  if (right.count) good += mut_judge(argv[1], &right);
  printf("%d of %d as they should be, %ld s\n", good, tried, (long)(time(NULL) - from));
  return good == tried ? 0 : 1;
}
