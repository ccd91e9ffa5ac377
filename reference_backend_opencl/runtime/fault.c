/* See fault.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ocl.h"

void ocl_fault_text(const ocl_faults *faults, char *text, size_t capacity) {
  const char *name = ocl_op_name((uint32_t)faults->seen[0]);
  long long index = (long long)faults->seen[1], size = (long long)faults->seen[2];
  switch (size) {
    case OCL_FAULT_DIVISION: snprintf(text, capacity, "%s: integer division by zero", name); return;
    case OCL_FAULT_PROBABILITY:
      snprintf(text, capacity, "%s: a number that must lie between 0 and 1 does not", name);
      return;
    case OCL_FAULT_WEIGHTS:
      snprintf(text, capacity,
               "%s: the weights of row %lld are no distribution: expected 0 or more, finite, and not all 0", name,
               index);
      return;
    case OCL_FAULT_SEGMENTS:
      snprintf(
          text, capacity,
          "%s: the lengths or offsets of row %lld do not cut the dim: expected none negative, none beyond its size, "
          "and lengths that add up to it",
          name, index);
      return;
    case OCL_FAULT_PIVOT:
      snprintf(text, capacity, "%s: pivot %lld names no row: expected 1 up to the number of rows", name, index);
      return;
    case OCL_FAULT_RANGE:
      snprintf(text, capacity, "%s: the range of the data is not finite; give its bounds", name);
      return;
    default: snprintf(text, capacity, "%s: index %lld is out of range for a size of %lld", name, index, size); return;
  }
}

static ocl_faults *make(graft_device *device) {
  ocl_faults *faults = calloc(1, sizeof *faults);
  if (!faults) return NULL;
  cl_int error;
  faults->words = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof faults->seen,
                                 faults->seen, &error);
  if (error != CL_SUCCESS) {
    free(faults);
    return NULL;
  }
  faults->device = device;
  atomic_init(&faults->references, 1);
  return faults;
}

graft_status ocl_stream_faults(graft_stream *stream, cl_mem *words) {
  ocl_faults *faults = atomic_load_explicit(&stream->faults, memory_order_relaxed);
  if (!faults) { /* calls that submit to one stream are serialised */
    faults = make(stream->device);
    if (!faults) return ocl_fail(stream->device->plugin, GRAFT_OUT_OF_MEMORY, "no memory for the stream's fault words");
    atomic_store_explicit(&stream->faults, faults, memory_order_release);
  }
  *words = faults->words;
  return GRAFT_OK;
}

void ocl_faults_passed(graft_stream *stream, cl_uint count, const ocl_argument *arguments) {
  const ocl_faults *faults = atomic_load_explicit(&stream->faults, memory_order_relaxed);
  for (cl_uint i = 0; faults && i < count; i++) {
    const ocl_argument *a = &arguments[i];
    if (a->value && a->bytes == sizeof(cl_mem) && !memcmp(a->value, &faults->words, sizeof(cl_mem))) {
      atomic_store(&stream->faults_unread, true);
    }
  }
}

cl_int ocl_faults_read(graft_stream *stream) {
  ocl_faults *faults = atomic_load_explicit(&stream->faults, memory_order_acquire);
  if (!faults || !atomic_exchange(&stream->faults_unread, false)) return CL_SUCCESS;
  return clEnqueueReadBuffer(stream->queue, faults->words, CL_FALSE, 0, sizeof faults->seen, faults->seen, 0, NULL,
                             NULL);
}

bool ocl_faults_seen(const ocl_faults *faults) {
  return faults && faults->seen[0] != 0;
}

ocl_faults *ocl_faults_retain(ocl_faults *faults) {
  if (faults) atomic_fetch_add(&faults->references, 1);
  return faults;
}

void ocl_faults_release(ocl_faults *faults) {
  if (!faults || atomic_fetch_sub(&faults->references, 1) > 1) return;
  ocl_buffer_release(faults->device, faults->words);
  free(faults);
}
