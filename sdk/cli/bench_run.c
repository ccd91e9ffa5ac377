/* One row of graft bench: makes the tensors, warms up, and takes the median of several rounds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"
#include "dispatch/dispatch.h"
#include "graft/memory.h"
#include "tensor/dtype.h"

enum { ROUNDS = 9, MAX_CALLS = 20000 };
static const double ROUND_SECONDS = 0.02, ROW_SECONDS = 1.5;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* --- values --- */

typedef struct filling {
  const bench_row *row;
  uint64_t random;
} filling;

static graft_status fill(void *context, uint32_t index, graft_tensor *tensor) {
  filling *f = context;
  (void)index;
  graft_dtype dtype = graft_tensor_dtype(tensor);
  int64_t n = graft_tensor_numel(tensor);
  uint64_t bytes = dt_bytes(dtype), bound = (uint64_t)f->row->bound;
  double low = f->row->low, high = f->row->high;
  bool floating = dt_is_complex(dtype) || dt_is_float(dtype);
  unsigned char *values = malloc((size_t)n * bytes + 1);
  if (!values) return err_set(GRAFT_OUT_OF_MEMORY, "no host memory for %lld values", (long long)n);
  for (int64_t i = 0; i < n; i++) {
    f->random = f->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t draw = f->random >> 40;
    dt_value v = {floating ? low + (high - low) * (double)(draw + 1) / 16777216 : (long double)(draw % bound), 0};
    dt_store(dtype, values + (uint64_t)i * bytes, v);
  }
  /* Through a contiguous tensor, so that the strides of the row stay. */
  graft_tensor *contiguous = NULL;
  graft_status status = graft_tensor_from_host(graft_tensor_device(tensor), dtype, graft_tensor_ndim(tensor),
                                               graft_tensor_sizes(tensor), values, &contiguous);
  free(values);
  if (status == GRAFT_OK) status = graft_tensor_copy(tensor, contiguous);
  graft_tensor_release(contiguous);
  return status;
}

/* --- calls --- */

typedef struct bench {
  txt_call call;
  graft_rt_device *device;
  graft_tensor *outs[OP_MAX_OUTS];
  uint32_t nouts;
} bench;

static graft_status call_once(bench *b) {
  /* Results are kept and written again, but where only the values say how large they are. */
  if (b->call.schema->flags & OPF_DYNAMIC) {
    for (uint32_t i = 0; i < b->nouts; i++) graft_tensor_release(b->outs[i]), b->outs[i] = NULL;
  }
  return graft_call(b->call.schema->id, b->call.args, b->call.nargs, b->outs, b->nouts);
}

static graft_status round_of(bench *b, uint32_t calls, double *seconds) {
  double start = now();
  for (uint32_t i = 0; i < calls; i++) {
    graft_status status = call_once(b);
    if (status != GRAFT_OK) return status;
  }
  graft_status status = graft_device_synchronize(b->device);
  *seconds = (now() - start) / calls;
  return status;
}

static double bytes_of(const bench *b) {
  double bytes = 0;
  for (uint32_t i = 0; i < b->call.ntensors; i++) {
    bytes += (double)graft_tensor_numel(b->call.tensors[i]) * (double)dt_bytes(graft_tensor_dtype(b->call.tensors[i]));
  }
  for (uint32_t i = 0; i < b->nouts; i++) {
    if (!b->outs[i]) continue;
    bytes += (double)graft_tensor_numel(b->outs[i]) * (double)dt_bytes(graft_tensor_dtype(b->outs[i]));
  }
  return bytes;
}

static graft_status measure(bench *b, bench_result *result) {
  double times[ROUNDS], warm;
  graft_status status = round_of(b, 1, &result->first_s);
  snprintf(result->way, sizeof result->way, "%s", dsp_route_name(dsp_last_route()));
  if (status == GRAFT_OK) status = round_of(b, 1, &warm);
  if (status != GRAFT_OK) return status;
  if (warm > ROW_SECONDS) { /* a call that takes as long as a row should is timed no more */
    result->calls = result->rounds = 1;
    result->median_s = result->best_s = warm;
    return GRAFT_OK;
  }
  /* A slow backend gets fewer rounds, never none. */
  double wanted = ROUND_SECONDS / warm;
  result->calls = wanted < 1 ? 1 : wanted > MAX_CALLS ? MAX_CALLS : (uint32_t)wanted;
  double start = now();
  while (result->rounds < ROUNDS && (result->rounds < 3 || now() - start < ROW_SECONDS)) {
    status = round_of(b, result->calls, &times[result->rounds]);
    if (status != GRAFT_OK) return status;
    result->rounds++;
    if (now() - start > 4 * ROW_SECONDS) break;
  }
  qsort(times, result->rounds, sizeof *times, by_value);
  result->median_s = times[result->rounds / 2];
  result->best_s = times[0];
  return GRAFT_OK;
}

static void run(const bench_row *row, graft_rt_device *device, bench_result *result) {
  bench b = {.device = device};
  filling f = {row, 1};
  result->status = txt_parse_call(row->call, NULL, &b.call);
  if (result->status != GRAFT_OK) return;
  b.nouts = b.call.schema->nrets;
  result->status = txt_make(&b.call, device, fill, &f);
  if (result->status == GRAFT_OK) result->status = measure(&b, result);
  result->bytes = bytes_of(&b);
  result->operations = row->operations;
  for (uint32_t i = 0; i < b.nouts; i++) graft_tensor_release(b.outs[i]);
  txt_free(&b.call);
  graft_memory_empty_cache(device);
}

void bench_run(const bench_row *row, graft_rt_device *device, bench_result *result) {
  *result = (bench_result){.way = "unsupported"};
  run(row, device, result);
  if (result->status != GRAFT_OK) snprintf(result->problem, sizeof result->problem, "%s", graft_last_error());
}
