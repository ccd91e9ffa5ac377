/* What the ways of a matrix product share: plan.c plans those of portable OpenCL, f32.c chooses among those of f32 on
 * GPUs, nvidia.c has that of tensor cores. */
#ifndef OCL_MATMUL_H
#define OCL_MATMUL_H

#include "kernels/core/registers.h"
#include "kernels/reduction/reduction.h"

/* The last two dimensions of a tensor, perhaps turned, and the one before them. */
typedef struct ocl_matrix {
  int64_t batches, rows, columns, batch_stride, row_stride, column_stride;
} ocl_matrix;

/* How a product is cut. */
typedef struct ocl_tile {
  int64_t vec, m, v, n; /* lanes of a vector, rows, vectors in a row of a CPU's tile, columns */
} ocl_tile;

/* A factor of a product whose K is `columns`, and where in its buffer its first element lies, in bytes. */
typedef struct ocl_product_factor {
  graft_dtype dtype;
  uint64_t offset;
  ocl_matrix of;
} ocl_product_factor;

/* How tensor cores make out = a b. */
typedef struct ocl_tensor_plan {
  const ocl_tensor_way *way;
  ocl_matrix a, b;       /* as they read the factors; K is `columns` of either */
  bool turns_a, turns_b; /* copied into the workspace first */
  bool alone;            /* as ocl_tensor_size has it */
} ocl_tensor_plan;

/* Whether they serve this product; then *tile is how it is cut. */
bool ocl_tensor_plan_for(ocl_tensor_plan *plan, graft_device *device, const ocl_product_factor *a,
                         const ocl_product_factor *b, const ocl_matrix *out, ocl_tile *tile);
/* Adds to the head what the kernels ask for beside TILE_M and TILE_N. Returns the files they stand in. */
const char *ocl_tensor_head(ocl_text *head, const ocl_tensor_plan *plan, const ocl_tile *tile);

/* Makes turn.cl's kernel, with its work size, for a factor whose K is `columns`. It writes the matrix that
 * ocl_turned_matrix tells, of elements of so many bytes. */
graft_status ocl_turn_make(ocl_kernel *kernel, graft_device *device, const ocl_dtype *from, const ocl_tensor_way *way,
                           const ocl_matrix *factor);
ocl_matrix ocl_turned_matrix(const ocl_matrix *factor, int bytes);

/* What _scaled_mm does to a product: scales of rows and of columns, or of all; a bias of columns and a last scale, or
 * NULL. */
typedef struct ocl_scales {
  const graft_tensor_desc *a, *b, *bias, *last;
} ocl_scales;

/* Makes the kernel that brings them to one place, of ocl_scales_count f32, and launches it. */
graft_status ocl_scales_make(ocl_kernel *kernel, graft_device *device, const ocl_scales *of, int64_t rows,
                             int64_t columns);
int64_t ocl_scales_count(int64_t rows, int64_t columns);
graft_status ocl_scales_gather(ocl_kernel *kernel, graft_stream *stream, const ocl_scales *of, ocl_place to);

/* out = a b of dtypes that tensor cores take together, scaled where there are scales; UNIMPLEMENTED, before a memo is
 * made, where they don't serve. */
graft_status ocl_tensor_mm(const graft_exec *exec, const graft_tensor_desc *a, const graft_tensor_desc *b,
                           const graft_tensor_desc *out, const ocl_scales *scales);

/* ---- A product with calls that follow it in the same kernel (kernels/pointwise/fused_epilogue.c) ---- */

/* out = alpha * a b + beta * addend; without an addend, out = a b. The last two dimensions count. */
typedef struct ocl_product_call {
  const graft_tensor_desc *a, *b, *out, *addend;
  const graft_scalar *alpha, *beta;
  bool sums; /* out is the sum of the products of a batch; on CPUs alone */
  /* Where sums of a's rows go, too, or NULL; and, where the product is made, the pass that would make them: see
   * summed.h. */
  const graft_tensor_desc *row_sums_to;
  const ocl_reduction_pass *row_sums_pass;
} ocl_product_call;

/* Whether the product copies its first factor, of which row_sums_pass makes sums of rows, in a launch that can begin
 * them as that pass does, bit for bit. */
bool ocl_product_sums_rows(graft_device *device, const ocl_product_call *call);
/* False: the call is no such product. */
bool ocl_product_read(const ocl_call *call, ocl_product_call *product);

/* Behind any kernel that writes results, not only a product's. */
typedef struct ocl_epilogue {
  const ocl_text *before;      /* of the program: `epilogue`, and what matmul.cl asks of such a text */
  const graft_tensor_desc *to; /* of the product's shape, what is written in the place of its result */
} ocl_epilogue;

enum { OCL_WRITING_ARGUMENTS_MAX = 64 }; /* of such a kernel */
/* A kernel with it, behind its text: files are those of ocl_kernel_init, `name` is what errors call the program. */
graft_status ocl_followed_init(ocl_kernel *kernel, graft_device *device, const ocl_epilogue *epilogue,
                               const ocl_text *head, const char *files, const char *name, const char *entry);

typedef struct ocl_product ocl_product;
/* The kernels of such a product, for tensors that lie as these do. */
graft_status ocl_product_make(const graft_exec *exec, const ocl_product_call *call, const ocl_epilogue *epilogue,
                              ocl_product **product);
/* For another op, whose tensors may lie as others than these, where a run gives them. `epilogue` or NULL. */
graft_status ocl_product_make_alone(graft_device *device, const ocl_product_call *call, const ocl_epilogue *epilogue,
                                    ocl_product **product);
/* Whether rows of its result are columns for the kernel. */
bool ocl_product_is_turned(const ocl_product *product);
/* `arguments` are those of the epilogue. */
graft_status ocl_product_run(const graft_exec *exec, ocl_product *product, const ocl_product_call *call,
                             const graft_tensor_desc *to, cl_uint count, const ocl_argument *arguments);
void ocl_product_destroy(ocl_product *product);

/* How a GPU makes a product of f32. */
typedef struct ocl_f32_way {
  ocl_tile tile;
  bool rows; /* by rows.cl, else by registers.cl */
  ocl_registers registers;
  int64_t lanes, splits; /* work-items of a group; parts of K side by side */
} ocl_f32_way;

/* The way in tiles. */
ocl_f32_way ocl_f32_tiles(const graft_device *device, const ocl_matrix *b, const ocl_matrix *out);
/* Whether there are so few rows that b's elements are hardly used twice, and b lies so that they come fast; then *way
 * is how. */
bool ocl_f32_rows(const graft_device *device, const ocl_matrix *b, const ocl_matrix *out, ocl_f32_way *way);
/* Adds to the head what the way's files ask for. The first elements lie at these byte offsets. Returns the files.
 */
const char *ocl_f32_head(ocl_text *head, const ocl_f32_way *way, const ocl_matrix *a, uint64_t a_offset,
                         const ocl_matrix *b, uint64_t b_offset);

#endif
