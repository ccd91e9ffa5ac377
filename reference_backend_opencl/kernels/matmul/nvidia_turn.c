/* See ocl_turn_make in matmul.h. */
#include "kernels/matmul/matmul.h"

/* As turn.cl has them. */
enum { SIDE = 64, LANES = 256 };
typedef struct turned {
  int64_t rows, depth, row_stride, depth_stride, batch_stride, pitch, tiles_rows, tiles_depth;
} turned;

ocl_matrix ocl_turned_matrix(const ocl_matrix *factor, int bytes) {
  const int64_t pitch = ocl_round_up(factor->columns, 16 / bytes);
  const bool alike = factor->batch_stride == 0; /* one serves all batches */
  return (ocl_matrix){.batches = alike ? 1 : factor->batches,
                      .rows = factor->rows,
                      .columns = factor->columns,
                      .batch_stride = alike ? 0 : factor->rows * pitch,
                      .row_stride = pitch,
                      .column_stride = 1};
}

graft_status ocl_turn_make(ocl_kernel *kernel, graft_device *device, const ocl_dtype *from, const ocl_tensor_way *way,
                           const ocl_matrix *factor) {
  static const char *const elements[] = {[1] = "uchar", [2] = "ushort", [4] = "uint"};
  static const char *const names[] = {
      [OCL_TURNED_NOT] = "TURNED_NOT", [OCL_TURNED_F16] = "TURNED_F16", [OCL_TURNED_TF32] = "TURNED_TF32"};
  ocl_text head = {0};
  ocl_head_types(&head, from, 1, LANES);
  ocl_text_add(&head, "#define D %s\n#define FACTOR_TYPE %s\n#define FACTOR_BYTES %d\n#define %s\n", from->name,
               elements[way->bytes], way->bytes, names[way->turned]);
  graft_status status = ocl_kernel_make(kernel, device, &head, "matmul/turn", "turn");
  if (status != GRAFT_OK) return status;
  const ocl_matrix to = ocl_turned_matrix(factor, way->bytes);
  const turned t = {.rows = factor->rows,
                    .depth = factor->columns,
                    .row_stride = factor->row_stride,
                    .depth_stride = factor->column_stride,
                    .batch_stride = factor->batch_stride,
                    .pitch = to.row_stride,
                    .tiles_rows = ocl_ceil_divide(factor->rows, SIDE),
                    .tiles_depth = ocl_ceil_divide(to.row_stride, SIDE)};
  ocl_kernel_size(kernel, to.batches * t.tiles_rows * t.tiles_depth * LANES, LANES);
  return ocl_kernel_set(kernel, 1, &(ocl_argument)OCL_VALUE(t));
}
