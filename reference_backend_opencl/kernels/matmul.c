/* Matrix products: mm, bmm, and with a matrix to add. All are one batched product with any strides. */
#include <stdlib.h>

#include "families.h"

static const uint32_t served[] = {GRAFT_OP_MM, GRAFT_OP_BMM, GRAFT_OP_ADDMM, GRAFT_OP_BADDBMM};

bool ocl_matmul_caps(uint32_t op_id, ocl_op_caps *caps) {
  for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
    if (served[i] != op_id) continue;
    caps->inputs = caps->outputs = OCL_FLOATS | OCL_INTS | OCL_COMPLEX;
    caps->flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED;
    return true;
  }
  return false;
}

/* out = alpha * a b + beta * addend; without an addend, out = a b. The last two dimensions count. */
typedef struct call {
  const graft_tensor_desc *a, *b, *out, *addend;
  const graft_scalar *alpha, *beta;
} call;

/* As in matmul.cl. */
typedef struct factor {
  int64_t rows, depth, row_stride, depth_stride, batch_stride;
} factor;

typedef struct product {
  int64_t m, n, k, panels_m, panels_n, panels_per_item;
  int64_t out_batch, out_row, out_column;
  int64_t addend_batch, addend_row, addend_column;
} product;

typedef struct memo {
  ocl_kernel pack_a, pack_b, multiply;
  const ocl_dtype *compute;
  uint64_t workspace_bytes, skip_b; /* B's panels begin skip_b bytes after A's */
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->pack_a);
  ocl_kernel_destroy(&memo->pack_b);
  ocl_kernel_destroy(&memo->multiply);
  free(memo);
}

/* Size and stride of a tensor along its batch (0), rows (1) and columns (2). */
static int64_t size_of(const graft_tensor_desc *t, int which) {
  int d = t->dl.ndim - 3 + which;
  return d < 0 ? 1 : t->dl.shape[d];
}

static int64_t stride_of(const graft_tensor_desc *t, int which) {
  int d = t->dl.ndim - 3 + which;
  return d < 0 ? 0 : t->dl.strides[d];
}

static int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/* The tile that fills the registers of the machine: 8 x 32 f32 with vectors of 16, 6 x 16 with vectors of 8. */
static void choose_tile(const graft_device *device, const ocl_dtype *compute, int64_t *vec, int64_t *tile_m,
                        int64_t *tile_v) {
  bool complex = compute->class == OCL_CLASS_COMPLEX;
  bool wide = compute->compute[0] == 'd' || compute->compute[0] == 'l' || compute->code == GRAFT_U64;
  *vec = complex ? 1 : wide && device->vector_width > 4 ? device->vector_width / 2 : device->vector_width;
  *tile_m = device->vector_width == 16 ? 8 : device->vector_width == 8 ? 6 : 4;
  *tile_v = complex ? 4 : 2;
}

static graft_status make_kernels(memo *memo, graft_device *device, const call *call, int64_t vec, int64_t tile_m,
                                 int64_t tile_v) {
  ocl_text head = {0};
  ocl_head_types(&head, memo->compute, (unsigned)vec, 1);
  ocl_text_add(&head, "#define D_A %s\n#define D_B %s\n#define D_OUT %s\n#define TILE_M %d\n#define TILE_V %d\n",
               ocl_dtype_of(device, call->a->dl.dtype)->name, ocl_dtype_of(device, call->b->dl.dtype)->name,
               ocl_dtype_of(device, call->out->dl.dtype)->name, (int)tile_m, (int)tile_v);
  if (call->addend) ocl_text_add(&head, "#define ADDEND %s\n", ocl_dtype_of(device, call->addend->dl.dtype)->name);
  graft_status status = head.failed ? GRAFT_OUT_OF_MEMORY : GRAFT_OK;
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->pack_a, device, head.items, "matmul", "pack_a");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->pack_b, device, head.items, "matmul", "pack_b");
  if (status == GRAFT_OK) status = ocl_kernel_init(&memo->multiply, device, head.items, "matmul", "multiply");
  ocl_text_free(&head);
  return status;
}

static graft_status prepare(memo *memo, graft_device *device, const call *call) {
  const graft_tensor_desc *a = call->a, *b = call->b, *out = call->out, *add = call->addend;
  int64_t vec, tile_m, tile_v, batches = size_of(out, 0);
  choose_tile(device, memo->compute, &vec, &tile_m, &tile_v);
  graft_status status = make_kernels(memo, device, call, vec, tile_m, tile_v);
  if (status != GRAFT_OK) return status;

  int64_t tile_n = tile_v * vec;
  product p = {.m = size_of(out, 1), .n = size_of(out, 2), .k = size_of(a, 2)};
  p.panels_m = ceil_divide(p.m, tile_m);
  p.panels_n = ceil_divide(p.n, tile_n);
  p.out_batch = stride_of(out, 0);
  p.out_row = stride_of(out, 1);
  p.out_column = stride_of(out, 2);
  if (add) {
    p.addend_batch = stride_of(add, 0);
    p.addend_row = stride_of(add, 1);
    p.addend_column = stride_of(add, 2);
  }
  /* One work-item for a whole column of tiles keeps B's panel in the cache; more where there are too few columns. */
  int64_t parts = p.panels_m;
  if (device->is_cpu) {
    int64_t enough = ceil_divide(4 * (int64_t)device->compute_units, p.panels_n * batches);
    if (enough < parts) parts = enough;
  }
  p.panels_per_item = ceil_divide(p.panels_m, parts);

  factor fa = {p.m, p.k, stride_of(a, 1), stride_of(a, 2), stride_of(a, 0)};
  factor fb = {p.n, p.k, stride_of(b, 2), stride_of(b, 1), stride_of(b, 0)};
  size_t steps = (size_t)ceil_divide(p.k, 64); /* STEP in matmul.cl */
  size_t pack_a[3] = {steps, (size_t)p.panels_m, (size_t)batches};
  size_t pack_b[3] = {steps, (size_t)p.panels_n, (size_t)batches};
  size_t multiply[3] = {(size_t)p.panels_n, (size_t)ceil_divide(p.panels_m, p.panels_per_item), (size_t)batches};
  for (int i = 0; i < 3; i++) {
    memo->pack_a.global[i] = pack_a[i];
    memo->pack_b.global[i] = pack_b[i];
    memo->multiply.global[i] = multiply[i];
  }
  uint64_t element = memo->compute->bytes < 4 ? 4 : memo->compute->bytes; /* nothing is computed in less */
  memo->skip_b = ((uint64_t)(batches * p.panels_m * tile_m * p.k) * element + 255) / 256 * 256;
  memo->workspace_bytes = memo->skip_b + (uint64_t)(batches * p.panels_n * tile_n * p.k) * element;
  status = ocl_kernel_constant(&memo->pack_a, 4, sizeof fa, &fa);
  if (status == GRAFT_OK) status = ocl_kernel_constant(&memo->pack_b, 4, sizeof fb, &fb);
  return status != GRAFT_OK ? status : ocl_kernel_constant(&memo->multiply, 9, sizeof p, &p);
}

static graft_status make_memo(const graft_exec *exec, const void *args, const void *call_pointer, void **out) {
  const call *call = call_pointer;
  const ocl_dtype *dtype = ocl_dtype_of(exec->device, call->out->dl.dtype);
  (void)args;
  if (!dtype || dtype->class == OCL_CLASS_BOOL || call->a->dl.dtype != dtype->code ||
      call->b->dl.dtype != dtype->code || (call->addend && call->addend->dl.dtype != dtype->code) ||
      (call->addend && call->addend->dl.ndim != call->out->dl.ndim)) {
    return GRAFT_UNIMPLEMENTED;
  }
  memo *memo = calloc(1, sizeof *memo);
  if (!memo) return GRAFT_OUT_OF_MEMORY;
  memo->compute = dtype;
  graft_status status = prepare(memo, exec->device, call);
  if (status != GRAFT_OK) {
    destroy_memo(memo);
    return status;
  }
  *out = memo;
  return GRAFT_OK;
}

static graft_status run(const graft_exec *exec, const call *call) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, NULL, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  graft_buffer *work;
  uint64_t at;
  status = exec->device->plugin->host->workspace(exec, memo->workspace_bytes, 64, &work, &at);
  if (status != GRAFT_OK) return status;

  ocl_value alpha, beta;
  ocl_number one = {.is_int = true, .i = 1, .re = 1}, alpha_number = one, beta_number = one;
  if (call->alpha) ocl_number_of_scalar(call->alpha, &alpha_number);
  if (call->beta) ocl_number_of_scalar(call->beta, &beta_number);
  size_t bytes = ocl_number_as(&alpha_number, memo->compute, &alpha);
  ocl_number_as(&beta_number, memo->compute, &beta);
  uint64_t at_b = at + memo->skip_b;
  const graft_tensor_desc *addend = call->addend ? call->addend : call->out; /* not looked at where there is none */
  const ocl_argument pack_a[] = {OCL_BUFFER(work), OCL_VALUE(at), OCL_TENSOR(call->a)};
  const ocl_argument pack_b[] = {OCL_BUFFER(work), OCL_VALUE(at_b), OCL_TENSOR(call->b)};
  const ocl_argument multiply[] = {OCL_BUFFER(work),   OCL_VALUE(at),   OCL_VALUE(at_b), OCL_TENSOR(call->out),
                                   OCL_TENSOR(addend), {bytes, &alpha}, {bytes, &beta}};
  status = ocl_launch(&memo->pack_a, exec->stream, 4, pack_a);
  if (status == GRAFT_OK) status = ocl_launch(&memo->pack_b, exec->stream, 4, pack_b);
  return status != GRAFT_OK ? status : ocl_launch(&memo->multiply, exec->stream, 9, multiply);
}

graft_status ocl_op_mm(const graft_exec *exec, const graft_args_mm *args) {
  return run(exec, &(call){.a = args->self, .b = args->mat2, .out = args->out});
}

graft_status ocl_op_bmm(const graft_exec *exec, const graft_args_bmm *args) {
  return run(exec, &(call){.a = args->self, .b = args->mat2, .out = args->out});
}

graft_status ocl_op_addmm(const graft_exec *exec, const graft_args_addmm *args) {
  return run(exec, &(call){args->mat1, args->mat2, args->out, args->self, args->alpha, args->beta});
}

graft_status ocl_op_baddbmm(const graft_exec *exec, const graft_args_baddbmm *args) {
  return run(exec, &(call){args->batch1, args->batch2, args->out, args->self, args->alpha, args->beta});
}
