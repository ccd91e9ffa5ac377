/* Cholesky's factorization of matrices that are worth more than a work-group, on a GPU: see cholesky.cl. */
#include "kernels/linalg/linalg.h"

enum { BEGIN, PANEL, UPDATE, KERNELS };
enum { BLOCK = 32, PANEL_ROWS = 64, TILE_LANES = 256, LEAST = 3 * BLOCK, LOCAL_BYTES = 36 << 10 };

typedef struct memo {
  ocl_kernel kernels[KERNELS];
} memo;

bool ocl_cholesky_serves(const graft_exec *exec, const graft_tensor_desc *a) {
  return !exec->device->is_cpu && exec->device->local_bytes >= LOCAL_BYTES && ocl_stack_size(a, 1) >= LEAST &&
         ocl_stack_serves(exec, a);
}

static graft_status prepare(void *pointer, graft_device *device, const void *from) {
  static const char *const entries[] = {[BEGIN] = "begin", [PANEL] = "panel", [UPDATE] = "update"};
  const graft_args_linalg_cholesky_ex *args = from;
  const ocl_dtype *dtype = ocl_dtype_of(device, args->self->dl.dtype);
  memo *memo = pointer;
  ocl_text head = {0};
  ocl_head_types(&head, dtype, 1, PANEL_ROWS);
  ocl_text_add(&head, "#define D %s\n", dtype->name);
  graft_status status = GRAFT_OK;
  for (int k = 0; k < KERNELS && status == GRAFT_OK; k++) {
    status = ocl_kernel_init(&memo->kernels[k], device, &head, "core/direct linalg/stacks linalg/cholesky", entries[k]);
    ocl_kernel_size(&memo->kernels[k], 1, k == UPDATE ? TILE_LANES : PANEL_ROWS);
  }
  ocl_text_free(&head);
  return status;
}

static const ocl_memo_type memo_type = {.bytes = sizeof(memo), .kernels = KERNELS, .prepare = prepare};

/* Steps from `first` on, a block of them. */
static graft_status take_steps(const graft_exec *exec, memo *memo, const graft_args_linalg_cholesky_ex *args,
                               ocl_place state, ocl_place squares, int64_t first) {
  const int64_t size = ocl_stack_size(args->self, 1), count = ocl_stack_count(args->self, 2), upper = args->upper;
  const int64_t rest = first + BLOCK < size ? size - first - BLOCK : 0;
  const int64_t parts = rest ? ocl_ceil_divide(rest, PANEL_ROWS) : 1, tiles = ocl_ceil_divide(rest, BLOCK);
  const ocl_argument panel[] = {OCL_TENSOR(args->L), OCL_TENSOR(args->info), OCL_PLACE(state), OCL_PLACE(squares),
                                OCL_VALUE(size),     OCL_VALUE(upper),       OCL_VALUE(parts), OCL_VALUE(first)};
  const ocl_argument update[] = {OCL_TENSOR(args->L), OCL_TENSOR(args->info), OCL_PLACE(state), OCL_PLACE(squares),
                                 OCL_VALUE(size),     OCL_VALUE(upper),       OCL_VALUE(tiles), OCL_VALUE(first)};
  graft_status status = ocl_launch_groups(&memo->kernels[PANEL], exec->stream, (size_t)(count * parts), OCL_ALL(panel));
  if (status != GRAFT_OK) return status;
  return ocl_launch_groups(&memo->kernels[UPDATE], exec->stream, (size_t)(count * (tiles ? tiles * tiles : 1)),
                           OCL_ALL(update));
}

graft_status ocl_cholesky(const graft_exec *exec, const graft_args_linalg_cholesky_ex *args) {
  const int64_t size = ocl_stack_size(args->self, 1), count = ocl_stack_count(args->self, 2), upper = args->upper;
  const int64_t elements = ocl_elements(args->self);
  memo *memo;
  ocl_place squares;
  if (!elements) return GRAFT_UNIMPLEMENTED;
  graft_status status = ocl_memo_get(exec, &memo_type, args, &memo);
  if (status == GRAFT_OK) status = ocl_stack_work(exec, args->self, count * (BLOCK * BLOCK + 1), &squares);
  if (status != GRAFT_OK) return status;
  const ocl_place state = ocl_stack_behind(exec, args->self, squares, count * BLOCK * BLOCK);
  const ocl_argument begin[] = {OCL_TENSOR(args->L), OCL_TENSOR(args->info), OCL_PLACE(state), OCL_TENSOR(args->self),
                                OCL_VALUE(size),     OCL_VALUE(upper),       OCL_VALUE(count)};
  status = ocl_launch_groups(&memo->kernels[BEGIN], exec->stream, (size_t)ocl_ceil_divide(elements, PANEL_ROWS),
                             OCL_ALL(begin));
  for (int64_t first = 0; first < size && status == GRAFT_OK; first += BLOCK)
    status = take_steps(exec, memo, args, state, squares, first);
  return status;
}
