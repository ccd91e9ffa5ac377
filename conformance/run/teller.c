#include "conformance/run/teller.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TELL_FD = 3 };

FILE *cf_teller_start(const cf_options *options, const char *as, pid_t *pid) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return NULL;
  *pid = fork();
  if (*pid == 0) cf_exec_self(options, as, ends[1], TELL_FD);
  close(ends[1]);
  FILE *from = *pid > 0 ? fdopen(ends[0], "r") : NULL;
  if (!from) close(ends[0]);
  return from;
}

int cf_teller_end(FILE *from, pid_t pid) {
  int status = -1;
  if (from) fclose(from);
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

FILE *cf_teller_open(void) {
  FILE *to = fdopen(TELL_FD, "w");
  if (to) fcntl(TELL_FD, F_SETFD, FD_CLOEXEC); /* a compiler that a driver starts must not hold it */
  dup2(STDERR_FILENO, STDOUT_FILENO);
  return to;
}
