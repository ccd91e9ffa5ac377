/* Matrix products: mm, bmm, and with a matrix to add. All are one batched product with any strides. */
#include <stdlib.h>

#include "kernels/core/indexed.h"
#include "kernels/families.h"

static const uint32_t served[] = {GRAFT_OP_MM, GRAFT_OP_BMM, GRAFT_OP_ADDMM, GRAFT_OP_BADDBMM};

bool ocl_matmul_caps(uint32_t op_id, ocl_op_caps *caps) {
  for (size_t i = 0; i < sizeof served / sizeof *served; i++) {
    if (served[i] != op_id) continue;
    caps->inputs = caps->outputs = OCL_FLOATS | OCL_INTS | OCL_COMPLEX;
    caps->flags = GRAFT_CAP_STRIDED | GRAFT_CAP_EXPANDED | GRAFT_CAP_UNALIGNED | GRAFT_CAP_EMPTY;
    return true;
  }
  return false;
}

/* out = alpha * a b + beta * addend; without an addend, out = a b. The last two dimensions count. */
typedef struct call {
  const graft_tensor_desc *a, *b, *out, *addend;
  const graft_scalar *alpha, *beta;
} call;

/* As in panels.cl and matmul.cl. */
typedef struct factor {
  int64_t rows, depth, row_stride, depth_stride, batch_stride;
} factor;

typedef struct product {
  int64_t m, n, k, panels_m, panels_n, panels_per_item;
  int64_t a_batch, a_panel, a_row, a_depth, b_batch, b_panel, b_column, b_depth;
  int64_t out_batch, out_row, out_column;
  int64_t addend_batch, addend_row, addend_column;
} product;

#define STEP 64

/* What a CPU core's cache holds beside the rest: the rows of A that a work-item takes, and how long a panel of B may
 * be. A longer K is cut into blocks, whose sums meet in the workspace. */
enum { CACHE_BYTES = 512 << 10, DEPTH_MAX = 2048 };

typedef struct memo {
  ocl_kernel pack_a, pack_b, multiply;
  const ocl_dtype *compute;
  bool swapped;                                   /* a takes B's place: the transposed product, of transposed factors */
  bool packs_a, packs_b;                          /* else the product reads the tensor */
  int64_t depth, block;                           /* K, and how much of it a launch takes */
  uint64_t workspace_bytes, skip_b, skip_partial; /* A's panels lie first in the workspace */
} memo;

static void destroy_memo(void *pointer) {
  memo *memo = pointer;
  ocl_kernel_destroy(&memo->pack_a);
  ocl_kernel_destroy(&memo->pack_b);
  ocl_kernel_destroy(&memo->multiply);
  free(memo);
}

/* The last two dimensions of a tensor, perhaps turned, and the one before them. */
typedef struct matrix {
  int64_t batches, rows, columns, batch_stride, row_stride, column_stride;
} matrix;

static matrix matrix_of(const graft_tensor_desc *t, bool turned) {
  const graft_dl_tensor *dl = &t->dl;
  int row = dl->ndim - 2 + turned, column = dl->ndim - 1 - turned;
  bool batched = dl->ndim > 2;
  return (matrix){batched ? dl->shape[0] : 1,   dl->shape[row],   dl->shape[column],
                  batched ? dl->strides[0] : 0, dl->strides[row], dl->strides[column]};
}

static int64_t ceil_divide(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

static int64_t round_up(int64_t a, int64_t b) {
  return ceil_divide(a, b) * b;
}

/* ---- The tile ---- */

typedef struct tile {
  int64_t vec, m, v, n; /* lanes of a vector, rows, vectors in a row of a CPU's tile, columns */
} tile;

/* As in tiles.cl. */
enum { SIDE = 16 };

/* The tile that fills the registers of the machine: 8 x 32 f32 with vectors of 16, 6 x 16 with vectors of 8. */
static tile cpu_tile(const graft_device *device, bool complex, bool wide) {
  tile t;
  t.vec = complex ? 1 : wide && device->vector_width > 4 ? device->vector_width / 2 : device->vector_width;
  t.m = device->vector_width == 16 ? 8 : device->vector_width == 8 ? 6 : 4;
  t.v = complex ? 4 : 2;
  t.n = t.v * t.vec;
  return t;
}

/* 64 x 64, or 128 x 128 of 4-byte numbers where there are enough such tiles for all of the machine. */
static tile gpu_tile(const graft_device *device, bool complex, bool wide, const matrix *out) {
  tile t;
  t.vec = complex ? 1 : wide ? 2 : 4;
  t.v = 4 / t.vec;
  t.m = t.n = SIDE * t.vec * t.v;
  int64_t large = 2 * t.m, count = ceil_divide(out->rows, large) * ceil_divide(out->columns, large) * out->batches;
  if (t.vec == 4 && count >= (int64_t)device->compute_units) t.v *= 2, t.m = t.n = large;
  return t;
}

static tile choose_tile(const graft_device *device, const ocl_dtype *compute, const matrix *out) {
  bool complex = compute->class == OCL_CLASS_COMPLEX;
  bool wide = compute->compute[0] == 'd' || compute->compute[0] == 'l' || compute->code == GRAFT_U64;
  return device->is_cpu ? cpu_tile(device, complex, wide) : gpu_tile(device, complex, wide, out);
}

static graft_status make_kernels(memo *memo, graft_device *device, bool addend, const tile *t) {
  const char *files = device->is_cpu ? "matmul/matmul matmul/panels" : "matmul/matmul matmul/tiles";
  ocl_text head = {0};
  ocl_head_types(&head, memo->compute, (unsigned)t->vec, 1);
  ocl_text_add(&head, "#define D %s\n#define TILE_M %d\n#define TILE_V %d\n%s", memo->compute->name, (int)t->m,
               (int)t->v, addend ? "#define ADDEND\n" : "");
  graft_status status =
      head.failed ? GRAFT_OUT_OF_MEMORY : ocl_kernel_init(&memo->multiply, device, head.items, files, "multiply");
  if (status == GRAFT_OK && device->is_cpu) status = ocl_kernel_init(&memo->pack_a, device, head.items, files, "pack");
  if (status == GRAFT_OK && device->is_cpu) status = ocl_kernel_init(&memo->pack_b, device, head.items, files, "pack");
  ocl_text_free(&head);
  return status;
}

/* ---- The plan ---- */

/* Whether a factor is packed, and how it lies then, or now. A GPU packs nothing. */
static graft_status plan_packing(memo *memo, product *p, const graft_device *device, const matrix *a, const matrix *b,
                                 const tile *t) {
  p->a_batch = a->batch_stride;
  p->a_panel = t->n * a->row_stride;
  p->a_row = a->row_stride;
  p->a_depth = a->column_stride;
  p->b_batch = b->batch_stride;
  p->b_panel = t->n * b->column_stride;
  p->b_column = b->column_stride;
  p->b_depth = b->row_stride;
  if (!device->is_cpu || p->k == 0) return GRAFT_OK;

  bool in_place = memo->compute->bytes >= 4; /* nothing is computed in less */
  memo->packs_a = !in_place || (a->column_stride != 1 && p->panels_n > 1);
  memo->packs_b = !in_place || b->column_stride != 1 || p->panels_m > 1 || p->n % t->n != 0;
  if (memo->packs_a) {
    p->a_panel = t->n * p->k;
    p->a_batch = round_up(p->m, t->n) * p->k;
    p->a_row = 1;
    p->a_depth = t->n;
  }
  if (memo->packs_b) {
    p->b_panel = t->n * p->k;
    p->b_batch = p->panels_n * p->b_panel;
    p->b_column = 1;
    p->b_depth = t->n;
  }
  factor fa = {p->m, p->k, a->row_stride, a->column_stride, a->batch_stride};
  factor fb = {p->n, p->k, b->column_stride, b->row_stride, b->batch_stride};
  graft_status status = ocl_kernel_constant(&memo->pack_a, 4, sizeof fa, &fa);
  return status != GRAFT_OK ? status : ocl_kernel_constant(&memo->pack_b, 4, sizeof fb, &fb);
}

static void set_global(ocl_kernel *kernel, int64_t x, int64_t y, int64_t z) {
  kernel->global[0] = (size_t)x;
  kernel->global[1] = (size_t)y;
  kernel->global[2] = (size_t)z;
}

/* Work-items of neighbouring columns follow each other on one core and find their rows of A in its cache; there must be
 * enough items for all cores to end together. */
static void plan_items(memo *memo, product *p, const graft_device *device, int64_t batches, const tile *t,
                       int64_t element) {
  int64_t blocks = ceil_divide(p->k, DEPTH_MAX);
  memo->block = blocks > 1 ? ceil_divide(p->k, blocks) : p->k;
  int64_t enough = ceil_divide(8 * (int64_t)device->compute_units, p->panels_n * batches);
  int64_t cached = ceil_divide(p->panels_m * t->m * memo->block * element, CACHE_BYTES);
  int64_t parts = enough > cached ? enough : cached;
  p->panels_per_item = ceil_divide(p->panels_m, parts < p->panels_m ? parts : p->panels_m);
  set_global(&memo->pack_a, ceil_divide(p->k, STEP), ceil_divide(p->m, t->n), batches);
  set_global(&memo->pack_b, ceil_divide(p->k, STEP), p->panels_n, batches);
  set_global(&memo->multiply, p->panels_n, ceil_divide(p->panels_m, p->panels_per_item), batches);
}

static void plan_groups(memo *memo, const product *p, int64_t batches) {
  memo->block = p->k;
  set_global(&memo->multiply, p->panels_n * SIDE, p->panels_m * SIDE, batches);
  memo->multiply.local[0] = memo->multiply.local[1] = SIDE;
}

static void plan_workspace(memo *memo, const product *p, int64_t batches, const tile *t, int64_t element) {
  int64_t bytes_a = memo->packs_a ? round_up(batches * p->a_batch * element, 256) : 0;
  int64_t bytes_b = memo->packs_b ? round_up(batches * p->b_batch * element, 256) : 0;
  int64_t sums = memo->block < p->k ? batches * p->panels_m * t->m * p->panels_n * t->n : 0;
  memo->skip_b = (uint64_t)bytes_a;
  memo->skip_partial = (uint64_t)(bytes_a + bytes_b);
  memo->workspace_bytes = memo->skip_partial + (uint64_t)(sums * element);
}

static graft_status prepare(memo *memo, graft_device *device, const call *call) {
  matrix a = matrix_of(call->a, false), b = matrix_of(call->b, false), out = matrix_of(call->out, false);
  tile t = choose_tile(device, memo->compute, &out);
  graft_status status = make_kernels(memo, device, call->addend, &t);
  if (status != GRAFT_OK) return status;

  /* A few rows times a matrix that lies transposed, a layer's weight: the weight serves as it is in A's place. */
  memo->swapped =
      device->is_cpu && b.row_stride == 1 && b.column_stride != 1 && out.rows <= t.n && out.columns > out.rows;
  if (memo->swapped) {
    a = matrix_of(call->b, true);
    b = matrix_of(call->a, true);
    out = matrix_of(call->out, true);
  }
  product p = {.m = out.rows, .n = out.columns, .k = a.columns};
  p.panels_m = ceil_divide(p.m, t.m);
  p.panels_n = ceil_divide(p.n, t.n);
  p.out_batch = out.batch_stride;
  p.out_row = out.row_stride;
  p.out_column = out.column_stride;
  if (call->addend) {
    matrix addend = matrix_of(call->addend, memo->swapped);
    p.addend_batch = addend.batch_stride;
    p.addend_row = addend.row_stride;
    p.addend_column = addend.column_stride;
  }
  int64_t element = memo->compute->bytes < 4 ? 4 : memo->compute->bytes;
  memo->depth = p.k;
  if (device->is_cpu) {
    plan_items(memo, &p, device, out.batches, &t, element);
  } else {
    plan_groups(memo, &p, out.batches);
  }
  status = plan_packing(memo, &p, device, &a, &b, &t);
  if (status != GRAFT_OK) return status;
  plan_workspace(memo, &p, out.batches, &t, element);
  return ocl_kernel_constant(&memo->multiply, 14, sizeof p, &p);
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

/* ---- A call ---- */

/* A factor as the product finds it: in the tensor, or packed into the workspace. */
typedef struct source {
  const graft_tensor_desc *tensor;
  graft_buffer *buffer;
  uint64_t offset;
} source;

static graft_status pack(ocl_kernel *kernel, graft_stream *stream, bool packs, graft_buffer *work, uint64_t at,
                         source *s) {
  if (ocl_elements(s->tensor) == 0) { /* of no depth: some buffer that is there, since it is not looked at */
    s->buffer = work;
    return GRAFT_OK;
  }
  if (!packs) {
    s->buffer = s->tensor->dl.data;
    s->offset = s->tensor->dl.byte_offset;
    return GRAFT_OK;
  }
  s->buffer = work;
  s->offset = at;
  const ocl_argument arguments[] = {OCL_BUFFER(work), OCL_VALUE(at), OCL_TENSOR(s->tensor)};
  return ocl_launch(kernel, stream, 4, arguments);
}

static graft_status run(const graft_exec *exec, const call *call) {
  void *pointer;
  graft_status status = ocl_memo_get(exec, NULL, call, make_memo, destroy_memo, &pointer);
  if (status != GRAFT_OK) return status;
  memo *memo = pointer;
  graft_buffer *work = call->out->dl.data; /* not looked at where nothing is packed and K is one block */
  uint64_t at = 0;
  if (memo->workspace_bytes) {
    status = exec->device->plugin->host->workspace(exec, memo->workspace_bytes, 64, &work, &at);
    if (status != GRAFT_OK) return status;
  }
  source a = {.tensor = memo->swapped ? call->b : call->a}, b = {.tensor = memo->swapped ? call->a : call->b};
  status = pack(&memo->pack_a, exec->stream, memo->packs_a, work, at, &a);
  if (status == GRAFT_OK) status = pack(&memo->pack_b, exec->stream, memo->packs_b, work, at + memo->skip_b, &b);

  ocl_value alpha, beta;
  ocl_number one = {.is_int = true, .i = 1, .re = 1}, alpha_number = one, beta_number = one;
  if (call->alpha) ocl_number_of_scalar(call->alpha, &alpha_number);
  if (call->beta) ocl_number_of_scalar(call->beta, &beta_number);
  size_t bytes = ocl_number_as(&alpha_number, memo->compute, &alpha);
  ocl_number_as(&beta_number, memo->compute, &beta);
  uint64_t at_partial = at + memo->skip_partial;
  const graft_tensor_desc *addend = call->addend ? call->addend : call->out; /* not looked at where there is none */
  int64_t k = 0, end;
  /* Once where K is 0. */
  for (bool first = true; status == GRAFT_OK && (first || k < memo->depth); first = false, k = end) {
    end = k + memo->block < memo->depth ? k + memo->block : memo->depth;
    const ocl_argument arguments[] = {OCL_BUFFER(a.buffer),  OCL_VALUE(a.offset), OCL_BUFFER(b.buffer),
                                      OCL_VALUE(b.offset),   OCL_BUFFER(work),    OCL_VALUE(at_partial),
                                      OCL_TENSOR(call->out), OCL_TENSOR(addend),  {bytes, &alpha},
                                      {bytes, &beta},        OCL_VALUE(k),        OCL_VALUE(end)};
    status = ocl_launch(&memo->multiply, exec->stream, 14, arguments);
  }
  return status;
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
