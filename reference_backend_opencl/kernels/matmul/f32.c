/* How a GPU makes a product of f32: in which tiles, in how many parts of K, or row by row. */
#include "kernels/matmul/matmul.h"

ocl_f32_way ocl_f32_tiles(const graft_device *device, const ocl_matrix *b, const ocl_matrix *out) {
  enum { SPLITS_MOST = 64 };
  const bool along = b->row_stride == 1 && b->column_stride != 1;
  const ocl_product_size size = {out->rows, out->columns, out->batches, b->rows, SPLITS_MOST, along};
  const ocl_registers r = ocl_registers_for(device, &size, true);
  return (ocl_f32_way){
      .tile = {.vec = 4, .m = r.m, .n = r.n, .v = 1}, .registers = r, .lanes = r.lanes, .splits = r.splits};
}

/* ---- Few rows: rows.cl ---- */

/* Of a group: columns and work-items, by how B lies. Up to how many rows, and from how many elements of B on. */
enum {
  ALONG_COLUMNS = 4,
  ALONG_LANES = 128,
  ACROSS_COLUMNS = 128,
  ACROSS_LANES = 256,
  ALONG_MOST = 4,
  ACROSS_MOST = 8,
  B_LEAST = 1 << 14
};
/* How many groups a unit should have, and the least of K that one gets. */
enum { GROUPS_WANTED = 4, ALONG_LEAST = 4096, ACROSS_LEAST = 128 };

bool ocl_f32_rows(const graft_device *device, const ocl_matrix *b, const ocl_matrix *out, ocl_f32_way *way) {
  bool along = b->row_stride == 1;
  if (out->rows > (along ? ALONG_MOST : ACROSS_MOST) || b->rows * b->columns < B_LEAST ||
      (!along && b->column_stride != 1))
    return false;
  int64_t m = 1, n = along ? ALONG_COLUMNS : ACROSS_COLUMNS, least = along ? ALONG_LEAST : ACROSS_LEAST;
  while (m < out->rows) m *= 2;
  /* Sums of a row for each work-item, in local memory, of which a driver may need some itself. */
  if (!along && (cl_ulong)m * ACROSS_LANES * sizeof(cl_float4) >= device->local_bytes) return false;
  int64_t groups = ocl_ceil_divide(out->columns, n) * out->batches;
  int64_t wanted = groups > 0 ? ocl_ceil_divide(GROUPS_WANTED * (int64_t)device->compute_units, groups) : 1;
  int64_t most = b->rows / least, splits = wanted < most ? wanted : most;
  *way = (ocl_f32_way){.tile = {.vec = 4, .m = m, .n = n, .v = 1},
                       .rows = true,
                       .lanes = along ? ALONG_LANES : ACROSS_LANES,
                       .splits = splits > 1 ? splits : 1};
  return true;
}

/* ---- Programs ---- */

/* How a factor is read: along K where that is contiguous, and in whole vectors where each begins at a multiple of 16
 * bytes. */
static void add_factor(ocl_text *head, char name, int64_t depth_stride, int64_t other, int64_t batch_stride,
                       uint64_t offset) {
  const bool along = depth_stride == 1, contiguous = along || other == 1;
  const int64_t lines = along ? other : depth_stride;
  ocl_text_add(head, "#define %c_ALONG %d\n#define %c_WHOLE %d\n", name, along, name,
               contiguous && lines % 4 == 0 && batch_stride % 4 == 0 && offset % 16 == 0);
}

const char *ocl_f32_head(ocl_text *head, const ocl_f32_way *way, const ocl_matrix *a, uint64_t a_offset,
                         const ocl_matrix *b, uint64_t b_offset) {
  if (way->rows)
    ocl_text_add(head, "#define TILE_M %d\n#define TILE_N %d\n", (int)way->tile.m, (int)way->tile.n);
  else
    ocl_head_registers(head, &way->registers);
  add_factor(head, 'A', a->column_stride, a->row_stride, a->batch_stride, a_offset);
  add_factor(head, 'B', b->row_stride, b->column_stride, b->batch_stride, b_offset);
  return way->rows ? "matmul/matmul matmul/splits core/fours matmul/rows"
         : way->registers.copies
             ? "matmul/matmul matmul/splits core/registers core/bands core/nvidia_copies matmul/registers"
             : "matmul/matmul matmul/splits core/fours core/registers core/bands core/strips matmul/registers";
}
