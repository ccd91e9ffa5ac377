/* Which products Hopper's tensor cores take, and in which tiles. */
#include "kernels/matmul/matmul.h"

/* 16 bytes are copied at a time: so a factor must be contiguous in one dimension, and begin its lines at such places.
 */
static bool is_copied(const ocl_matrix *f, uint64_t offset) {
  const bool along = f->column_stride == 1 && f->row_stride % 8 == 0,
             across = f->row_stride == 1 && f->column_stride % 8 == 0;
  return (along || across) && f->batch_stride % 8 == 0 && offset % 16 == 0;
}

bool ocl_tensor_tile(graft_device *device, const ocl_dtype *dtype, const ocl_matrix *a, uint64_t a_offset,
                     const ocl_matrix *b, uint64_t b_offset, const ocl_matrix *out, ocl_tile *tile) {
  double multiplications = (double)out->rows * (double)out->columns * (double)out->batches * (double)a->columns;
  const ocl_matrix turned = {
      .row_stride = b->column_stride, .column_stride = b->row_stride, .batch_stride = b->batch_stride};
  if (!is_copied(a, a_offset) || !is_copied(&turned, b_offset) ||
      !ocl_tensor_cores_serve(device, dtype->code, multiplications))
    return false;
  const ocl_tensor_size size = ocl_tensor_size_for(device, out->rows, out->columns, out->batches);
  *tile = (ocl_tile){.vec = OCL_TENSOR_VECTOR, .m = size.m, .n = size.n, .v = 1};
  return true;
}

static ocl_factor factor_of(int64_t depth_stride, int64_t other) {
  return depth_stride == 1 && other % 8 == 0 ? OCL_FACTOR_ALONG : OCL_FACTOR_ACROSS;
}

void ocl_tensor_head(ocl_text *head, const ocl_dtype *dtype, const ocl_matrix *a, const ocl_matrix *b,
                     const ocl_tile *tile) {
  const ocl_tensor_size size = {tile->m, tile->n};
  ocl_head_tensor_tile(head, dtype, size, factor_of(a->column_stride, a->row_stride),
                       factor_of(b->row_stride, b->column_stride));
}
