/* Whether training holds its memory: 10,000 steps of the digits example, then what the device's allocator and malloc
 * have in use after step 1,000 and after step 10,000. Exit 1 when either differs.
 *
 *   steady_memory DATA [BACKEND [STEPS]] */
#define main train_digits_main
#include "../../docs/examples/train_digits.c"
#undef main
#include <limits.h>
#include <malloc.h>

/* PoCL's threads give back what is done when they come to it, so that one look sees a few hundred bytes more or less:
 * the least of several counts, a step apart. What PoCL keeps between two commands still differs by less than this. */
enum { LOOKS = 100, DRIVER_BYTES = 1024 };

typedef struct in_use {
  long long device_bytes, host_bytes;
} in_use;

static in_use look(graft_rt_device *device) {
  graft_memory_statistics stats = {.struct_size = sizeof stats};
  must(graft_device_synchronize(device));
  must(graft_memory_stats(device, &stats));
  return (in_use){stats.allocated_bytes.current, (long long)mallinfo2().uordblks};
}

static void least(in_use *sum, in_use now) {
  if (now.device_bytes < sum->device_bytes) sum->device_bytes = now.device_bytes;
  if (now.host_bytes < sum->host_bytes) sum->host_bytes = now.host_bytes;
}

/* Whole batches only, so that every step is the same. */
static void step(network *n, graft_tensor *images, graft_tensor *labels, int count, int number) {
  int64_t begin = (int64_t)(number % (count / BATCH)) * BATCH, end = begin + BATCH;
  graft_tensor *x = NULL, *target = NULL;
  must(graft_op_slice_Tensor(images, 0, &begin, &end, 1, &x));
  must(graft_op_slice_Tensor(labels, 0, &begin, &end, 1, &target));
  train_batch(n, x, target);
  graft_tensor_release(x);
  graft_tensor_release(target);
}

int main(int argc, char **argv) {
  /* What a thread keeps back for its next malloc counts as in use; it is switched off when a process starts. */
  if (!getenv("GLIBC_TUNABLES")) {
    setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0", 1);
    execv("/proc/self/exe", argv);
  }
  if (argc < 2) return fprintf(stderr, "usage: steady_memory DATA [BACKEND [STEPS]]\n"), 2;
  int steps = argc > 3 ? atoi(argv[3]) : 10000;
  dataset train = {0}, held_back = {0};
  load(argv[1], &train, &held_back);
  graft_rt_device *device;
  must(graft_device_find(argc > 2 ? argv[2] : "opencl", &device));
  network n;
  network_create(&n, device);
  graft_tensor *images, *labels;
  must(graft_tensor_from_host(device, GRAFT_F32, 2, (int64_t[]){train.count, PIXELS}, train.images, &images));
  must(graft_tensor_from_host(device, GRAFT_I64, 1, (int64_t[]){train.count}, train.labels, &labels));

  static char out[4096];
  setvbuf(stdout, out, _IOFBF, sizeof out); /* its buffer is no business of malloc's */
  in_use early = {LLONG_MAX, LLONG_MAX}, late = early;
  for (int i = 1; i < steps + LOOKS; i++) {
    step(&n, images, labels, train.count, i);
    if (i >= steps / 10 && i < steps / 10 + LOOKS) least(&early, look(device));
    if (i >= steps) least(&late, look(device));
  }
  printf("%d steps on %s, %llu calls left the device\n", steps, graft_device_text(device), fallbacks());
  printf("  device bytes allocated   %10lld at step %d, %10lld at step %d\n", early.device_bytes, steps / 10,
         late.device_bytes, steps);
  printf("  malloc's bytes in use    %10lld at step %d, %10lld at step %d\n", early.host_bytes, steps / 10,
         late.host_bytes, steps);
  long long more = late.host_bytes - early.host_bytes;
  bool steady = early.device_bytes == late.device_bytes && more <= DRIVER_BYTES && more >= -DRIVER_BYTES;
  printf("  difference               %10lld and %lld bytes: %s\n", late.device_bytes - early.device_bytes, more,
         steady ? "steady" : "NOT STEADY");
  return steady ? 0 : 1;
}
