/* The matrix product of a backend against OpenBLAS with its best kernel for this machine, and CLBlast where it is
 * there.
 *
 *   matmul_vs_openblas [BACKEND [N...]]      with OPENBLAS_NUM_THREADS, POCL_MAX_PTHREAD_COUNT and POCL_AFFINITY set by
 *                                            the caller
 *
 * A peer is a process of its own, so that OPENBLAS_CORETYPE can differ from one to the next. Runs alternate, and each
 * begins with a call that is not timed. A side that has just run is not idle: OpenBLAS's worker polls for more work,
 * 100 ms with 0.3.21, and takes a core from whoever comes next. So before each run both processes are watched until
 * neither uses the CPU.
 *
 * "cores" is CPU time over wall time in the runs: where it is well below the number of threads, the threads did not run
 * side by side. Other programs may be the cause, or the system's scheduler: on a virtual machine Linux was seen to wake
 * both of PoCL's threads, which sleep between calls, on one core and leave the other idle. POCL_AFFINITY=1 gives each
 * its own. OpenBLAS's poll, and so keep theirs. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "measure.h"

enum { RUNS = 20, SLOW_RUNS = 5, TRIALS = 5, LOOK_US = 20000, LOOKS = 100 };
static const double RUN_SECONDS = 0.05, SLOW_SECONDS = 0.5; /* a peer slower than this runs less often */

/* --- peers --- */

typedef struct peer {
  FILE *to, *from;
  clockid_t cpu; /* its CPU time */
} peer;

static bool peer_open(peer *p, const char *folder, const char *program, long n, const char *core) {
  int down[2], up[2];
  if (pipe(down) || pipe(up)) return false;
  pid_t child = fork();
  if (child == 0) {
    char path[4096], number[24];
    snprintf(path, sizeof path, "%s/%s", folder, program);
    snprintf(number, sizeof number, "%ld", n);
    if (core && *core) setenv("OPENBLAS_CORETYPE", core, 1);
    dup2(down[0], 0), dup2(up[1], 1);
    close(down[1]), close(up[0]);
    execl(path, program, number, (char *)NULL);
    _exit(127);
  }
  close(down[0]), close(up[1]);
  p->to = fdopen(down[1], "w"), p->from = fdopen(up[0], "r");
  return child > 0 && clock_getcpuclockid(child, &p->cpu) == 0 && p->to && p->from;
}

static double seconds_of(clockid_t clock) {
  struct timespec t = {0};
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Waits until neither side has used the CPU for a while. */
static void settle(const peer *p) {
  double before = -1, now;
  for (int i = 0; i < LOOKS; i++, before = now) {
    now = seconds_of(p->cpu) + seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    if (before >= 0 && now - before < 0.05 * LOOK_US * 1e-6) return;
    usleep(LOOK_US);
  }
}

/* Seconds of one product; negative when the peer is not there. */
static double peer_run(peer *p, int calls) {
  double seconds;
  fprintf(p->to, "%d\n", calls);
  fflush(p->to);
  return fscanf(p->from, "%lf", &seconds) == 1 ? seconds : -1;
}

static void peer_close(peer *p) {
  fclose(p->to), fclose(p->from);
}

static int calls_for(double seconds) {
  return seconds < RUN_SECONDS ? (int)(RUN_SECONDS / seconds) : 1;
}

/* The median of a few runs. */
static double peer_try(peer *p) {
  double times[TRIALS], first = peer_run(p, 1);
  if (first < 0) return -1;
  for (int i = 0; i < TRIALS; i++) {
    settle(p);
    times[i] = peer_run(p, calls_for(first));
  }
  return median_of(times, TRIALS);
}

static const char *best_core(const char *folder, long n) {
  static const char *const cores[] = {"", "Haswell", "Zen", "SkylakeX", "Cooperlake"};
  const char *best = "";
  double least = 0;
  for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
    peer p;
    if (!peer_open(&p, folder, "matmul_openblas", n, cores[i])) continue;
    double seconds = peer_try(&p);
    peer_close(&p);
    if (seconds > 0 && (least == 0 || seconds < least)) least = seconds, best = cores[i];
  }
  return best;
}

/* --- ours --- */

typedef struct product {
  graft_rt_device *device;
  graft_tensor *a, *b, *out;
} product;

static graft_tensor *matrix(graft_rt_device *device, long n) {
  int64_t sizes[] = {n, n};
  float *values = malloc((size_t)(n * n) * sizeof *values);
  graft_tensor *made;
  if (!values) exit(1);
  for (long i = 0; i < n * n; i++) values[i] = (float)rand() / (float)RAND_MAX - 0.5f;
  must(graft_tensor_from_host(device, GRAFT_F32, 2, sizes, values, &made));
  free(values);
  return made;
}

static double run(product *p, int calls) {
  const graft_value args[] = {graft_value_tensor(p->a), graft_value_tensor(p->b)};
  must(graft_call(GRAFT_OP_MM, args, 2, &p->out, 1));
  must(graft_device_synchronize(p->device));
  double start = now_s();
  for (int i = 0; i < calls; i++) must(graft_call(GRAFT_OP_MM, args, 2, &p->out, 1));
  must(graft_device_synchronize(p->device));
  return (now_s() - start) / calls;
}

/* How many cores a side had while it ran. */
typedef struct cores {
  clockid_t clock;
  double cpu, wall;
} cores;

static void cores_begin(cores *c) {
  c->cpu -= seconds_of(c->clock);
  c->wall -= now_s();
}

static void cores_end(cores *c) {
  c->cpu += seconds_of(c->clock);
  c->wall += now_s();
}

static void compare(product *p, peer *other, long n, const char *name, double wanted) {
  double ours[RUNS], theirs[RUNS], first = peer_run(other, 1), flops = 2.0 * (double)n * (double)n * (double)n;
  if (first < 0) {
    printf("%5ld  %-28s not there\n", n, name);
    return;
  }
  int calls = calls_for(first), our_calls = calls_for(run(p, 2)), runs = first > SLOW_SECONDS ? SLOW_RUNS : RUNS;
  cores mine = {CLOCK_PROCESS_CPUTIME_ID, 0, 0}, its = {other->cpu, 0, 0};
  for (int i = 0; i < runs; i++) {
    settle(other);
    cores_begin(&its);
    theirs[i] = peer_run(other, calls);
    cores_end(&its);
    settle(other);
    cores_begin(&mine);
    ours[i] = run(p, our_calls);
    cores_end(&mine);
  }
  double us = median_of(ours, runs), them = median_of(theirs, runs);
  printf("%5ld  %-28s %8.2f ms %7.1f GFLOP/s %.2f cores   Graft %8.2f ms %7.1f GFLOP/s %.2f cores   ratio %.2f", n,
         name, them * 1e3, flops / them * 1e-9, its.cpu / its.wall, us * 1e3, flops / us * 1e-9, mine.cpu / mine.wall,
         them / us);
  if (wanted > 0) printf("   wanted %.2f", wanted);
  printf("\n");
  fflush(stdout);
}

static void size(const char *folder, graft_rt_device *device, long n) {
  product p = {device, matrix(device, n), matrix(device, n), NULL};
  const char *core = best_core(folder, n);
  char name[64];
  snprintf(name, sizeof name, "OpenBLAS, %s kernel", *core ? core : "its own choice of");
  peer other;
  if (peer_open(&other, folder, "matmul_openblas", n, core)) {
    compare(&p, &other, n, name, n <= 512 ? 0.75 : 0.85);
    peer_close(&other);
  }
  char path[4096];
  snprintf(path, sizeof path, "%s/matmul_clblast", folder);
  if (access(path, X_OK) == 0 && peer_open(&other, folder, "matmul_clblast", n, NULL)) {
    compare(&p, &other, n, "CLBlast, untuned", 0);
    peer_close(&other);
  }
  graft_tensor_release(p.a), graft_tensor_release(p.b), graft_tensor_release(p.out);
}

int main(int argc, char **argv) {
  char folder[4096];
  ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
  if (length <= 0) return 1;
  folder[length] = 0;
  *strrchr(folder, '/') = 0;
  graft_rt_device *device = device_of(argc > 1 ? argv[1] : "opencl");
  printf("mm of f32, medians of %d alternating runs; ratio = the peer's time / Graft's\n", RUNS);
  static const long sizes[] = {512, 1024, 2048};
  for (int i = 2; i < argc; i++) size(folder, device, atol(argv[i]));
  for (size_t i = 0; argc <= 2 && i < sizeof sizes / sizeof *sizes; i++) size(folder, device, sizes[i]);
  return 0;
}
