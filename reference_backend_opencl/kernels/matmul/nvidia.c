/* Which products Hopper's tensor cores take, and in which tiles. */
#include "kernels/matmul/matmul.h"

/* Of fewer rows or columns a product takes less than turning its factors. */
enum { TURN_LEAST = 32 };

/* 16 bytes are copied at a time: so a factor must be contiguous in one dimension, and begin its lines at such places.
 * Only elements of 16 bits may lie across K. f64 is copied element by element. */
static bool is_copied(const ocl_product_factor *f, int bytes) {
  const ocl_matrix *m = &f->of;
  const int64_t piece = 16 / bytes;
  const bool along = m->column_stride == 1 && m->row_stride % piece == 0,
             across = bytes == 2 && m->row_stride == 1 && m->column_stride % piece == 0;
  return bytes == 8 || ((along || across) && m->batch_stride % piece == 0 && f->offset % 16 == 0);
}

static bool is_turned(const ocl_product_factor *f, const ocl_tensor_way *way) {
  return way->turned != OCL_TURNED_NOT || !is_copied(f, way->bytes);
}

bool ocl_tensor_plan_for(ocl_tensor_plan *plan, graft_device *device, const ocl_product_factor *a,
                         const ocl_product_factor *b, const ocl_matrix *out, ocl_tile *tile) {
  const double multiplications =
      (double)out->rows * (double)out->columns * (double)out->batches * (double)a->of.columns;
  const ocl_tensor_way *way = ocl_tensor_way_of(a->dtype, b->dtype);
  *plan = (ocl_tensor_plan){.way = way, .a = a->of, .b = b->of};
  if (!way) return false;
  plan->turns_a = is_turned(a, way);
  plan->turns_b = is_turned(b, way);
  const bool few = out->rows < TURN_LEAST || out->columns < TURN_LEAST;
  if (((plan->turns_a || plan->turns_b) && few) || !ocl_tensor_cores_serve(device, way, multiplications)) return false;
  if (plan->turns_a) plan->a = ocl_turned_matrix(&a->of, way->bytes);
  if (plan->turns_b) plan->b = ocl_turned_matrix(&b->of, way->bytes);
  const ocl_tensor_size size = ocl_tensor_size_for(device, way, out->rows, out->columns, out->batches);
  plan->alone = size.alone;
  *tile = (ocl_tile){.vec = OCL_TENSOR_VECTOR, .m = size.m, .n = size.n, .v = 1};
  return true;
}

/* What lies contiguously; of f64, which may lie anyhow, what lies closer. */
static ocl_factor factor_of(const ocl_matrix *m, int bytes) {
  if (bytes == 8) return m->column_stride <= m->row_stride ? OCL_FACTOR_ALONG : OCL_FACTOR_ACROSS;
  return m->column_stride == 1 && m->row_stride % (16 / bytes) == 0 ? OCL_FACTOR_ALONG : OCL_FACTOR_ACROSS;
}

const char *ocl_tensor_head(ocl_text *head, const ocl_tensor_plan *plan, const ocl_tile *tile) {
  const int bytes = plan->way->bytes;
  ocl_head_tensor_tile(head, plan->way, (ocl_tensor_size){tile->m, tile->n, plan->alone}, factor_of(&plan->a, bytes),
                       factor_of(&plan->b, bytes));
  return bytes == 8 ? "matmul/matmul matmul/splits core/bands matmul/nvidia_f64 matmul/nvidia"
                    : "matmul/matmul matmul/splits core/nvidia core/bands core/nvidia_tile matmul/nvidia_strips "
                      "matmul/nvidia";
}
