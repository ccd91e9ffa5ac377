/* The main of a test program: its tests, and how they are run.
 *
 *   int main(void) {
 *     const suite_test tests[] = {ONCE(shapes_add_up), EACH(rows_are_right, ROWS(rows)), {0}};
 *     return run_suite("shapes", tests, (suite_options){.timeout_s = 60});
 *   }
 *
 * Each test has a process of its own, so that it finds no state of another's; CK_FORK=no runs them in one, for a
 * debugger. CK_RUN_CASE names the one test that is wanted. Where what a process has to make before its first test takes
 * longer than the tests, a suite's tests may have one process between them. */
#ifndef GRAFT_TESTS_SUITE_H
#define GRAFT_TESTS_SUITE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marks.h"

#define ROWS(table) (int)(sizeof(table) / sizeof *(table))

typedef struct suite_test {
  const TTest *test;
  int rows; /* it is run for each _i below that; 0: once */
} suite_test;
#define ONCE(name) \
  { .test = (name) }
#define EACH(name, count) \
  { .test = (name), .rows = (count) }

typedef struct suite_options {
  const TTest *last;      /* a test behind all others, once */
  double timeout_s;       /* of a test; 0: Check's own, four seconds */
  void (*setup)(void);    /* before each test, in its process */
  void (*teardown)(void); /* and behind it */
  bool one_process;       /* no process for each test */
  bool shared_process;    /* the same in a process of the suite's own, without a limit of time */
} suite_options;

static void add_test(Suite *suite, const suite_test *t, const suite_options *options) {
  TCase *one = tcase_create(t->test->name);
  if (options->timeout_s > 0) tcase_set_timeout(one, options->timeout_s);
  if (options->setup || options->teardown) tcase_add_checked_fixture(one, options->setup, options->teardown);
  tcase_add_loop_test(one, t->test, 0, t->rows ? t->rows : 1);
  suite_add_tcase(suite, one);
}

static int run_here(const char *name, const suite_test *tests, suite_options options) {
  Suite *suite = suite_create(name);
  for (const suite_test *t = tests; t->test; t++) add_test(suite, t, &options);
  if (options.last) add_test(suite, &(suite_test)ONCE(options.last), &options);
  SRunner *runner = srunner_create(suite);
  if (options.one_process) srunner_set_fork_status(runner, CK_NOFORK);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

/* Runs the tests up to the one that is {0}. Returns what main returns. */
static int run_suite(const char *name, const suite_test *tests, suite_options options) {
  const char *forks = getenv("CK_FORK");
  if (!options.shared_process || (forks && strcmp(forks, "no") == 0)) return run_here(name, tests, options);
  options.shared_process = false;
  options.one_process = true;
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) exit(run_here(name, tests, options));
  if (child < 0 || waitpid(child, &status, 0) < 0) return perror(name), 1;
  if (WIFSIGNALED(status)) fprintf(stderr, "%s: %s\n", name, strsignal(WTERMSIG(status)));
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

#endif
