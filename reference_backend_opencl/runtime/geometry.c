/* Index spaces: which dimensions a kernel really has. Most tensors collapse to one. */
#include <string.h>

#include "runtime/ocl.h"

int64_t ocl_elements(const graft_tensor_desc *desc) {
  int64_t count = 1;
  for (int d = 0; d < desc->dl.ndim; d++) count *= desc->dl.shape[d];
  return count;
}

bool ocl_is_dense(const graft_dl_tensor *tensor) {
  int64_t run = 1;
  for (int d = tensor->ndim - 1; d >= 0; d--) {
    if (tensor->shape[d] != 1 && tensor->strides[d] != run) return false;
    run *= tensor->shape[d];
  }
  return true;
}

void ocl_geometry_push_outer(ocl_geometry *geometry, int64_t size, const int64_t *strides) {
  if (size == 1) return;
  int d = geometry->rank++;
  geometry->size[d] = size;
  for (int k = 0; k < geometry->operands; k++) geometry->stride[k][d] = strides[k];
}

static void swap_dims(ocl_geometry *geometry, int a, int b) {
  int64_t size = geometry->size[a];
  geometry->size[a] = geometry->size[b];
  geometry->size[b] = size;
  for (int k = 0; k < geometry->operands; k++) {
    int64_t stride = geometry->stride[k][a];
    geometry->stride[k][a] = geometry->stride[k][b];
    geometry->stride[k][b] = stride;
  }
}

/* Whether dimension b should lie inside a. A stride of 0 has no opinion. */
static bool out_of_order(const ocl_geometry *geometry, int a, int b) {
  for (int k = 0; k < geometry->operands; k++) {
    int64_t inner = geometry->stride[k][a], outer = geometry->stride[k][b];
    if (inner != 0 && outer != 0 && inner != outer) return inner > outer;
  }
  return false;
}

void ocl_geometry_sort(ocl_geometry *geometry) {
  for (int i = 1; i < geometry->rank; i++) {
    for (int j = i; j > 0 && out_of_order(geometry, j - 1, j); j--) swap_dims(geometry, j - 1, j);
  }
}

static bool one_run(const ocl_geometry *geometry, int inner, int outer) {
  for (int k = 0; k < geometry->operands; k++) {
    if (geometry->stride[k][outer] != geometry->stride[k][inner] * geometry->size[inner]) return false;
  }
  return true;
}

void ocl_geometry_collapse(ocl_geometry *geometry) {
  if (geometry->rank == 0) { /* one element */
    geometry->rank = 1;
    geometry->size[0] = 1;
    for (int k = 0; k < geometry->operands; k++) geometry->stride[k][0] = 1;
    return;
  }
  int last = 0;
  for (int d = 1; d < geometry->rank; d++) {
    if (one_run(geometry, last, d)) {
      geometry->size[last] *= geometry->size[d];
    } else if (++last != d) {
      swap_dims(geometry, last, d);
    }
  }
  geometry->rank = last + 1;
}

int64_t ocl_geometry_elements(const ocl_geometry *geometry) {
  int64_t count = 1;
  for (int d = 0; d < geometry->rank; d++) count *= geometry->size[d];
  return count;
}

bool ocl_geometry_is_small(const ocl_geometry *geometry) {
  return ocl_geometry_elements(geometry) <= OCL_SMALL;
}

void ocl_geometry_widen(ocl_geometry *geometry) {
  const int step = 4;
  while (geometry->rank % step != 0) {
    int d = geometry->rank++;
    geometry->size[d] = 1;
    for (int k = 0; k < geometry->operands; k++) geometry->stride[k][d] = 0;
  }
}

int64_t ocl_geometry_cut(const graft_device *device, const ocl_geometry *geometry, int64_t lanes, ocl_cut *cut) {
  int64_t rows = 1, items = device->is_cpu ? 4 * (int64_t)device->compute_units : INT64_MAX;
  for (int d = 1; d < geometry->rank; d++) rows *= geometry->size[d];
  int64_t size = geometry->size[0], chunk = lanes;
  if (device->is_cpu) {
    const int64_t least = 2048; /* below, starting a work-group costs more than it does */
    chunk = size * rows / items;
    chunk = (chunk < least ? least : chunk) / 16 * 16;
    if (chunk > 65536) chunk = 65536;
  }
  if (chunk > size) chunk = size;
  cut->chunk = chunk;
  cut->chunks_per_row = ocl_ceil_divide(size, chunk);
  cut->chunks = cut->chunks_per_row * rows;
  cut->per_item = cut->chunks / items > 0 ? ocl_ceil_divide(cut->chunks, items) : 1;
  if (device->is_cpu && cut->per_item * chunk < 1024) cut->per_item = ocl_ceil_divide(1024, chunk);
  return ocl_ceil_divide(cut->chunks, cut->per_item);
}

int ocl_geometry_numbers(const ocl_geometry *geometry, int64_t *numbers) {
  int n = 0;
  for (int d = 0; d < geometry->rank; d++) numbers[n++] = geometry->size[d];
  for (int k = 0; k < geometry->operands; k++) {
    for (int d = 0; d < geometry->rank; d++) numbers[n++] = geometry->stride[k][d];
  }
  return n;
}
