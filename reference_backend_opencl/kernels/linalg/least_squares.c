/* Least squares: for matrices of full rank by reflectors, and by singular values for the drivers that find the rank. */
#include <float.h>

#include "kernels/indexing/search.h"
#include "kernels/linalg/singular.h"
#include "runtime/memory.h"

typedef struct problem {
  const graft_args_linalg_lstsq *args;
  int64_t matrices, systems, rows, columns, count, sides; /* systems may share matrices, and right sides */
  int64_t numbers[VALUES_NUMBERS];                        /* say which */
  bool gives_values, gives_residuals;
  ocl_singular factors;
  /* U and behind it Vh, and the parts of the right sides along U; what U leaves of them, and its squares; how many
   * matrices have full rank; the factorization's. */
  ocl_place factors_and_parts, left, squares, full, work;
} problem;

static problem problem_of(const graft_args_linalg_lstsq *args) {
  const graft_tensor_desc *a = args->self;
  const bool gives_values =
      args->driver == GRAFT_STR_LSTSQ_DRIVER_GELSD || args->driver == GRAFT_STR_LSTSQ_DRIVER_GELSS;
  const int64_t rows = ocl_stack_size(a, 2), columns = ocl_stack_size(a, 1);
  return (problem){.args = args,
                   .matrices = ocl_stack_count(a, 2),
                   .rows = rows,
                   .columns = columns,
                   .count = rows < columns ? rows : columns,
                   .sides = args->b->dl.ndim < a->dl.ndim ? 1 : ocl_stack_size(args->b, 1),
                   .gives_values = gives_values,
                   .gives_residuals = gives_values && rows > columns};
}

/* All results that the driver has. */
static bool serves(const graft_exec *exec, const problem *p) {
  const graft_args_linalg_lstsq *args = p->args;
  if (!args->solution || !args->residuals || !args->rank || !args->singular_values) return false;
  return ocl_stack_serves(exec, args->self) && args->self->dl.ndim <= OCL_DIMS_MAX &&
         ocl_elements(args->self) * ocl_elements(args->solution) > 0;
}

/* Singular values up to the largest one times this are none; as its bits. */
static int64_t rcond_of(const problem *p) {
  const graft_dtype dtype = p->args->self->dl.dtype;
  const bool is_f32 = dtype == GRAFT_F32 || dtype == GRAFT_C64;
  const double epsilon = is_f32 ? FLT_EPSILON : DBL_EPSILON;
  const double rcond = p->args->rcond ? *p->args->rcond : epsilon * (double)ocl_larger(p->rows, p->columns);
  return ocl_direct_number(is_f32 ? GRAFT_F32 : GRAFT_F64, rcond);
}

static graft_status take_room(const graft_exec *exec, problem *p) {
  const graft_tensor_desc *a = p->args->self;
  const int64_t u = p->matrices * p->rows * p->count, vh = p->matrices * p->count * p->columns;
  const int64_t parts = p->systems * p->count * p->sides, values = p->matrices * p->count;
  const int64_t left = p->gives_residuals ? p->systems * p->rows * p->sides : 0;
  const int64_t squares = p->gives_residuals ? p->systems * p->sides : 0, total = sizeof(int64_t); /* a byte each */
  p->factors = (ocl_singular){.a = a, .u_columns = p->count, .vh_rows = p->count};
  const int64_t all = u + vh + parts + left + squares + values + 2 * total + ocl_singular_work(exec, &p->factors);
  graft_status status = ocl_stack_work(exec, a, all, &p->factors_and_parts);
  if (status != GRAFT_OK) return status;
  p->factors.u = p->factors_and_parts;
  p->factors.vh = ocl_stack_behind(exec, a, p->factors.u, u);
  p->left = ocl_stack_behind(exec, a, p->factors.vh, vh + parts);
  p->squares = ocl_stack_behind(exec, a, p->left, left);
  p->factors.s = ocl_stack_behind(exec, a, p->squares, squares);
  p->full = ocl_stack_behind(exec, a, p->factors.s, values);
  p->full.offset = (uint64_t)ocl_round_up((int64_t)p->full.offset, total);
  p->work = ocl_stack_behind(exec, a, p->full, total);
  if (p->gives_values) p->factors.s = ocl_place_of(p->args->singular_values);
  return GRAFT_OK;
}

static graft_status launch(const graft_exec *exec, problem *p) {
  const ocl_place right = ocl_place_of(p->args->b), rank = ocl_place_of(p->args->rank), s = p->factors.s;
  int64_t *numbers = p->numbers;
  numbers[ROWS] = p->rows;
  numbers[COLUMNS] = p->columns;
  numbers[MATRICES] = p->matrices;
  numbers[RIGHTS] = p->sides;
  numbers[RCOND] = rcond_of(p);
  ocl_direct call = ocl_stack_call(exec, p->args->self,
                                   "core/direct linalg/stacks linalg/blocks linalg/orthogonal linalg/least_squares",
                                   OCL_SINGULAR_PLACES);
  call.numbers = numbers;
  call.count = VALUES_NUMBERS;
  ocl_singular_add(exec, &p->factors, p->work, &call);
  ocl_stack_stage(exec, &call, "solve_by_values", p->systems,
                  (const ocl_place[]){ocl_place_of(p->args->solution), rank, p->factors_and_parts, s, right});
  if (p->gives_residuals) {
    ocl_stack_stage(exec, &call, "square_what_is_left", p->systems,
                    (const ocl_place[]){p->squares, p->left, p->factors_and_parts, right, right});
    ocl_stack_stage(exec, &call, "count_full", 1, (const ocl_place[]){p->full, rank, rank, rank, rank});
  }
  return ocl_direct_run(exec, &call);
}

/* Residuals are told where all matrices have full rank, which is waited for; where one has not, there are none. Those
 * of a stack are then of another rank than a slot can give, and it is composed. */
static graft_status tell_residuals(const graft_exec *exec, const problem *p) {
  int64_t full = p->matrices;
  const graft_tensor_desc *residuals;
  graft_status status = p->gives_residuals ? ocl_read_total(exec->stream, p->full, &full) : GRAFT_OK;
  const bool told = p->gives_residuals && full == p->matrices;
  if (status == GRAFT_OK && p->gives_residuals && !told && p->args->self->dl.ndim > 2) return GRAFT_UNIMPLEMENTED;
  if (status == GRAFT_OK) status = ocl_lstsq_residuals(exec, p->args, told ? p->sides : 0, &residuals);
  if (status != GRAFT_OK || !told) return status;
  const ocl_place to = ocl_place_of(residuals);
  const uint64_t bytes = (uint64_t)ocl_elements(residuals) * ocl_dtype_of(exec->device, residuals->dl.dtype)->bytes;
  return ocl_memory_api.copy(exec->stream, to.buffer, to.offset, p->squares.buffer, p->squares.offset, bytes);
}

graft_status ocl_op_linalg_lstsq(const graft_exec *exec, const graft_args_linalg_lstsq *args) {
  if (args->driver == GRAFT_STR_LSTSQ_DRIVER_GELS) return ocl_lstsq_by_reflectors(exec, args);
  problem p = problem_of(args);
  if (!serves(exec, &p)) return GRAFT_UNIMPLEMENTED;
  p.systems = ocl_lstsq_systems(args, p.numbers);
  graft_status status = take_room(exec, &p);
  if (status == GRAFT_OK) status = launch(exec, &p);
  return status == GRAFT_OK ? tell_residuals(exec, &p) : status;
}
