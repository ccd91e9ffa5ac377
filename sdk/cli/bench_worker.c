/* The process of graft bench that runs the rows. The program itself never opens the plugin: a row that takes too long,
 * or crashes, ends this process, and the next row begins another. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "cli.h"

static bool read_all(int fd, void *to, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = read(fd, (char *)to + done, bytes - done);
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

static bool write_all(int fd, const void *from, size_t bytes) {
  for (size_t done = 0; done < bytes;) {
    ssize_t n = send(fd, (const char *)from + done, bytes - done, MSG_NOSIGNAL);
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

/* --- the worker --- */

static void serve(const bench_target *target, int fd) {
  bench_hello hello = {0};
  graft_rt_device *device;
  size_t size;
  hello.opened = cli_open(target->backend, target->device, &device);
  if (hello.opened) {
    snprintf(hello.device, sizeof hello.device, "%s", graft_device_text(device));
    if (graft_device_query(device, GRAFT_DEVICE_NAME, hello.name, sizeof hello.name, &size)) hello.name[0] = 0;
  } else {
    snprintf(hello.problem, sizeof hello.problem, "%s", graft_last_error());
  }
  if (!write_all(fd, &hello, sizeof hello) || !hello.opened) return;
  for (uint32_t index; read_all(fd, &index, sizeof index);) {
    bench_result result;
    bench_row row = bench_row_at(index);
    bench_run(&row, device, &result);
    if (!write_all(fd, &result, sizeof result)) return;
  }
}

/* --- the program --- */

static void end(bench_worker *worker) {
  close(worker->fd);
  kill(worker->pid, SIGKILL);
  waitpid(worker->pid, &worker->ended, 0);
  worker->pid = 0;
}

bool bench_worker_begin(bench_worker *worker, bench_hello *hello) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) {
    snprintf(hello->problem, sizeof hello->problem, "no socket for the process that runs the rows");
    return false;
  }
  fflush(NULL);
  worker->pid = fork();
  if (worker->pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a plugin that never comes back would keep it once the parent is gone */
    close(ends[0]);
    setenv("GRAFT_OPENCL_OPTIMIZE", "always", 0); /* from the first launch on: it is not a first use that is timed */
    serve(&worker->target, ends[1]);
    _exit(0);
  }
  close(ends[1]);
  worker->fd = ends[0];
  if (worker->pid > 0 && read_all(worker->fd, hello, sizeof *hello) && hello->opened) return true;
  if (!hello->problem[0]) snprintf(hello->problem, sizeof hello->problem, "the plugin ended the process when opened");
  if (worker->pid > 0)
    end(worker);
  else
    close(worker->fd);
  worker->pid = 0;
  return false;
}

void bench_worker_end(bench_worker *worker) {
  if (worker->pid) end(worker);
}

static void fail(bench_result *result, graft_status status, const char *problem) {
  *result = (bench_result){.status = status};
  snprintf(result->problem, sizeof result->problem, "%s", problem);
}

void bench_worker_run(bench_worker *worker, uint32_t row, bench_result *result) {
  bench_hello hello = {0};
  char problem[sizeof result->problem];
  if (!worker->pid && !bench_worker_begin(worker, &hello)) {
    fail(result, GRAFT_INTERNAL, hello.problem);
    return;
  }
  struct pollfd answer = {.fd = worker->fd, .events = POLLIN};
  bool asked = write_all(worker->fd, &row, sizeof row);
  if (asked && poll(&answer, 1, (int)(worker->target.limit_s * 1000)) == 0) {
    end(worker);
    snprintf(problem, sizeof problem, "takes more than %g s; --time-limit allows more", worker->target.limit_s);
    fail(result, GRAFT_NOT_READY, problem);
  } else if (!asked || !read_all(worker->fd, result, sizeof *result)) {
    end(worker);
    bool signalled = WIFSIGNALED(worker->ended) && WTERMSIG(worker->ended) != SIGKILL;
    snprintf(problem, sizeof problem, "ended the process%s%s", signalled ? ": " : "",
             signalled ? strsignal(WTERMSIG(worker->ended)) : "");
    fail(result, GRAFT_INTERNAL, problem);
  }
}
