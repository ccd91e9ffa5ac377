/* Filling in an index space: see indexed.h. */
#include "kernels/core/indexed.h"

const ocl_dtype *ocl_dtype_of_bits(const graft_device *device, graft_dtype code) {
  const ocl_dtype *dtype = ocl_dtype_of(device, code);
  if (!dtype || dtype->bytes == 16) return dtype;
  return ocl_dtype_of(device, dtype->bytes == 1   ? GRAFT_U8
                              : dtype->bytes == 2 ? GRAFT_U16
                              : dtype->bytes == 4 ? GRAFT_U32
                                                  : GRAFT_U64);
}

void ocl_indexed_push(ocl_indexed *call, int64_t size, int64_t plain, int64_t picked) {
  int d = call->rank++;
  call->size[d] = size;
  call->stride[OCL_PLAIN][d] = plain;
  call->stride[OCL_PICKED][d] = picked;
}

void ocl_indexed_add(ocl_indexed *call, const graft_tensor_desc *index, int64_t bound, int64_t step) {
  int k = call->indices++;
  call->index[k] = index;
  call->bound[k] = bound;
  call->step[k] = step;
}

void ocl_indexed_geometry(const ocl_indexed *call, ocl_geometry *geometry) {
  *geometry = (ocl_geometry){.operands = OCL_INDEX + call->indices};
  for (int d = call->rank - 1; d >= 0; d--) {
    int64_t strides[OCL_OPERANDS_MAX];
    for (int k = 0; k < geometry->operands; k++) strides[k] = call->stride[k][d];
    ocl_geometry_push_outer(geometry, call->size[d], strides);
  }
  ocl_geometry_collapse(geometry);
}

void ocl_indexed_along(ocl_indexed *call, const graft_tensor_desc *index, int64_t dim) {
  const graft_dl_tensor *plain = &call->plain->dl, *picked = &call->picked->dl;
  bool scalar = picked->ndim == 0;
  ocl_indexed_add(call, index, scalar ? 1 : picked->shape[dim], scalar ? 0 : picked->strides[dim]);
  if (scalar) { /* of one element, picked as often as there are indices */
    if (plain->ndim) ocl_indexed_push(call, plain->shape[0], plain->strides[0], 0);
    if (plain->ndim && index->dl.ndim) call->stride[OCL_INDEX][0] = index->dl.strides[0];
    return;
  }
  for (int d = 0; d < plain->ndim; d++) {
    ocl_indexed_push(call, plain->shape[d], plain->strides[d], d == dim ? 0 : picked->strides[d]);
    if (d == dim && index->dl.ndim) call->stride[OCL_INDEX][d] = index->dl.strides[0];
  }
}

void ocl_indexed_each(ocl_indexed *call, const graft_tensor_desc *index, int64_t dim) {
  const graft_dl_tensor *plain = call->plain ? &call->plain->dl : NULL, *picked = &call->picked->dl, *at = &index->dl;
  bool scalar = picked->ndim == 0;
  ocl_indexed_add(call, index, scalar ? 1 : picked->shape[dim], scalar ? 0 : picked->strides[dim]);
  for (int d = 0; d < at->ndim; d++) {
    int64_t plain_stride = plain && d < plain->ndim ? plain->strides[d] : 0;
    ocl_indexed_push(call, at->shape[d], plain_stride, d == dim || scalar ? 0 : picked->strides[d]);
    call->stride[OCL_INDEX][d] = at->strides[d];
  }
}

/* ---- Lists of indices ---- */

/* The shape that the index tensors broadcast to, innermost last; returns its rank, -1 if it is too large. */
static int broadcast_shape(const ocl_indexed *call, int64_t *shape) {
  int rank = 0;
  for (int k = 0; k < call->indices; k++) {
    if (call->index[k]->dl.ndim > rank) rank = call->index[k]->dl.ndim;
  }
  if (rank > OCL_DIMS_MAX) return -1;
  for (int d = 0; d < rank; d++) shape[d] = 1;
  for (int k = 0; k < call->indices; k++) {
    const graft_dl_tensor *index = &call->index[k]->dl;
    for (int d = 0; d < index->ndim; d++) {
      if (index->shape[d] != 1) shape[rank - index->ndim + d] = index->shape[d];
    }
  }
  return rank;
}

static void push_broadcast(ocl_indexed *call, int rank, const int64_t *shape) {
  for (int d = 0; d < rank; d++) {
    ocl_indexed_push(call, shape[d], 0, 0);
    for (int k = 0; k < call->indices; k++) {
      const graft_dl_tensor *index = &call->index[k]->dl;
      int own = d - (rank - index->ndim);
      bool runs = own >= 0 && index->shape[own] != 1;
      call->stride[OCL_INDEX + k][call->rank - 1] = runs ? index->strides[own] : 0;
    }
  }
}

/* `plain` in the whole index space: its dimensions are the last ones, those of size 1 are broadcast. */
static bool set_plain_strides(ocl_indexed *call) {
  const graft_dl_tensor *plain = &call->plain->dl;
  int skipped = plain->ndim - call->rank;
  for (int d = 0; d < skipped; d++) {
    if (plain->shape[d] != 1) return false;
  }
  for (int d = 0; d < call->rank; d++) {
    int own = d + skipped;
    bool runs = own >= 0 && plain->shape[own] != 1;
    if (runs && plain->shape[own] != call->size[d]) return false;
    call->stride[OCL_PLAIN][d] = runs ? plain->strides[own] : 0;
  }
  return true;
}

bool ocl_indexed_list(ocl_indexed *call, graft_tensor_list indices) {
  const graft_dl_tensor *picked = &call->picked->dl;
  int first = -1, last = -1, gaps = 0;
  for (int d = 0; d < (int)indices.count; d++) {
    if (!indices.items[d]) continue;
    if (d >= picked->ndim || call->indices == OCL_INDICES_MAX || indices.items[d]->dl.dtype != GRAFT_I64) return false;
    ocl_indexed_add(call, indices.items[d], picked->shape[d], picked->strides[d]);
    gaps += first >= 0 && last != d - 1;
    if (first < 0) first = d;
    last = d;
  }
  int64_t shape[OCL_DIMS_MAX];
  int rank = broadcast_shape(call, shape);
  if (first < 0 || rank < 0 || rank + picked->ndim - call->indices > OCL_DIMS_MAX) return false;
  /* The indices' own dimensions take the place of the picked ones, or come first where those are not neighbours. */
  if (gaps) push_broadcast(call, rank, shape);
  for (int d = 0; d < picked->ndim; d++) {
    if (d == first && !gaps) push_broadcast(call, rank, shape);
    bool is_picked = d < (int)indices.count && indices.items[d];
    if (!is_picked) ocl_indexed_push(call, picked->shape[d], 0, picked->strides[d]);
  }
  return set_plain_strides(call);
}

void ocl_indexed_head(ocl_text *head, const ocl_indexed *call) {
  ocl_text_add(head, "#define INDICES %d\n#define WRAPS %d\n#define OP_ID %u\n#define INDEX_PARAMETERS ", call->indices,
               call->wraps, call->op_id);
  for (int k = 0; k < call->indices; k++) {
    ocl_text_add(head, "%s__global const uchar *index_%d, ulong offset_index_%d", k ? ", " : "", k, k);
  }
  ocl_text_add(head, "\n#define INDEX_POINTERS ");
  for (int k = 0; k < call->indices; k++) {
    ocl_text_add(head, "%s(__global const long *)(index_%d + offset_index_%d)", k ? ", " : "", k, k);
  }
  ocl_text_add(head, "\n");
}
