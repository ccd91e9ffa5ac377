/* Cholesky's, the LU and the LDL factorization, and what is solved with them. */
#include "kernels/linalg/linalg.h"

/* The numbers of solvers.cl. */
enum { ROWS, COLUMNS, FLAG, SIZE, RIGHTS, X_STEP, X_NEXT, IDENTITY, EXCHANGE, STEPS, FIRST_STEP };
enum { BATCH = FIRST_STEP + 2, BATCH_SIZES, BATCH_DIMS = 8, BATCH_STEPS = BATCH_SIZES + BATCH_DIMS };
enum { FACTOR, PIVOTS, RIGHT, OPERANDS };
enum { PARTS = BATCH_STEPS + OPERANDS * BATCH_DIMS, OP, NUMBERS };
enum { TRANSPOSED = 1, BACK = 2, UNIT = 4, CONJUGATED = 8 };
enum { EXCHANGE_NONE, EXCHANGE_BEFORE, EXCHANGE_BEHIND, EXCHANGE_EACH };

/* ---- calls ---- */

typedef struct solver {
  ocl_direct direct;
  int64_t numbers[NUMBERS];
} solver;

static void begin(solver *s, const graft_exec *exec, const graft_tensor_desc *like) {
  *s = (solver){
      .direct = ocl_stack_call(exec, like, "core/direct linalg/stacks linalg/blocks linalg/systems linalg/solvers", 4)};
  s->direct.numbers = s->numbers;
  s->direct.count = NUMBERS;
  s->direct.reports = true;
  s->numbers[ROWS] = ocl_stack_size(like, 2);
  s->numbers[COLUMNS] = ocl_stack_size(like, 1);
}

/* A system: x and the right sides have one shape but for batch dims; `vectors` where they have no columns. */
typedef struct system {
  const graft_tensor_desc *x, *right; /* right NULL: the identity */
  int32_t batch;                      /* x's batch dims */
  bool left;
} system_of;

/* An operand with so many batch dims; NULL: one for all systems. */
typedef struct batched {
  const graft_tensor_desc *tensor;
  int32_t dims;
} batched;

/* What operands step along x's batch dims, of which those are one that are one to each of them. False: too many stay.
 */
static bool set_batch(solver *s, const system_of *of, const batched operands[OPERANDS]) {
  ocl_geometry batch = {.operands = OPERANDS};
  int64_t run[OPERANDS] = {1, 1, 1};
  for (int32_t d = 1; d <= of->batch; d++) {
    int64_t steps[OPERANDS];
    for (int k = 0; k < OPERANDS; k++) {
      const batched *own = &operands[k];
      int64_t size = own->tensor && d <= own->dims ? own->tensor->dl.shape[own->dims - d] : 1;
      steps[k] = size > 1 ? run[k] : 0;
      run[k] *= size;
    }
    ocl_geometry_push_outer(&batch, of->x->dl.shape[of->batch - d], steps);
  }
  ocl_geometry_collapse(&batch);
  if (batch.rank > BATCH_DIMS) return false;
  s->numbers[BATCH] = batch.rank;
  for (int d = 0; d < batch.rank; d++) {
    int place = batch.rank - 1 - d; /* outermost first */
    s->numbers[BATCH_SIZES + place] = batch.size[d];
    for (int k = 0; k < OPERANDS; k++) s->numbers[BATCH_STEPS + BATCH_DIMS * k + place] = batch.stride[k][d];
  }
  return true;
}

static void set_system(solver *s, const system_of *of) {
  bool vectors = of->x->dl.ndim == of->batch + 1;
  int64_t rows = vectors ? ocl_stack_size(of->x, 1) : ocl_stack_size(of->x, 2);
  int64_t columns = vectors ? 1 : ocl_stack_size(of->x, 1);
  s->numbers[SIZE] = of->left ? rows : columns;
  s->numbers[RIGHTS] = of->left ? columns : rows;
  s->numbers[X_STEP] = of->left ? columns : 1;
  s->numbers[X_NEXT] = of->left ? 1 : columns;
  s->numbers[IDENTITY] = !of->right;
}

static void set_steps(solver *s, int64_t exchange, int count, int first, int second) {
  s->numbers[EXCHANGE] = exchange;
  s->numbers[STEPS] = count;
  s->numbers[FIRST_STEP] = first;
  s->numbers[FIRST_STEP + 1] = second;
}

/* Those of P L U, or of its adjoint; x a = b is a^T x^T = b^T. */
static void set_lu_steps(solver *s, bool adjoint, bool left) {
  int all = adjoint ? CONJUGATED : 0;
  if (adjoint != left)
    set_steps(s, EXCHANGE_BEFORE, 2, all | UNIT, all | BACK);
  else
    set_steps(s, EXCHANGE_BEHIND, 2, all | TRANSPOSED, all | TRANSPOSED | BACK | UNIT);
}

static void set_cholesky_steps(solver *s, bool upper) {
  int adjoint = TRANSPOSED | CONJUGATED;
  set_steps(s, EXCHANGE_NONE, 2, upper ? adjoint : 0, upper ? BACK : adjoint | BACK);
}

static const ocl_place nowhere;

/* What triangles.cl asks for, and of how many right sides its work-groups have each. */
enum { SOLVED_LEAST = 96, SOLVED_MOST = 4096, SIDES = 16, SOLVED_LANES = 256, SOLVED_BLOCK = 32 };

/* What they have in local memory. */
static uint64_t solved_bytes(const graft_device *device, graft_dtype dtype) {
  const size_t element = ocl_dtype_of(device, dtype)->bytes;
  const uint64_t factor = ocl_stack_tall(element) * (SOLVED_BLOCK + 1);
  return (factor + (uint64_t)SOLVED_BLOCK * (SIDES + 1)) * element + (SOLVED_MOST + SOLVED_LANES) * sizeof(int);
}

static bool solved_in_blocks(const solver *s, const graft_device *device) {
  const bool kept = s->numbers[EXCHANGE] == EXCHANGE_NONE || s->numbers[SIZE] <= SOLVED_MOST;
  return !device->is_cpu && device->local_bytes >= solved_bytes(device, s->direct.dtype) &&
         device->largest_group >= SOLVED_LANES && s->numbers[SIZE] >= SOLVED_LEAST &&
         s->numbers[EXCHANGE] != EXCHANGE_EACH && kept;
}

static void add_solve(solver *s, const graft_exec *exec, const system_of *of, ocl_place factor, ocl_place pivots) {
  int64_t systems = ocl_stack_count(of->x, of->x->dl.ndim - of->batch);
  if (solved_in_blocks(s, exec->device)) {
    s->numbers[PARTS] = ocl_ceil_divide(s->numbers[RIGHTS], SIDES);
    ocl_stage *stage =
        ocl_stack_stage(exec, &s->direct, "solve_blocks", 0,
                        (const ocl_place[]){ocl_place_of(of->x), factor, pivots, ocl_place_of(of->right)});
    stage->units = systems * s->numbers[PARTS];
    stage->together = SOLVED_LANES;
    stage->file = "core/direct linalg/stacks linalg/systems linalg/triangles";
    return;
  }
  s->numbers[PARTS] = ocl_stack_parts(exec, systems, s->numbers[RIGHTS]);
  ocl_stack_stage(exec, &s->direct, "solve", systems * s->numbers[PARTS],
                  (const ocl_place[]){ocl_place_of(of->x), factor, pivots, ocl_place_of(of->right)});
}

/* The factors of a, by many work-groups where that pays; else they are the call's next stage. */
static graft_status add_lu(solver *s, const graft_exec *exec, const graft_tensor_desc *a, ocl_place lu,
                           ocl_place pivots, ocl_place info) {
  if (ocl_lu_serves(exec, a)) return ocl_lu(exec, a, s->numbers[FLAG], lu, pivots, info);
  ocl_stack_stage(exec, &s->direct, "lu", ocl_stack_count(a, 2),
                  (const ocl_place[]){lu, pivots, info, ocl_place_of(a)});
  return GRAFT_OK;
}

/* ---- slots ---- */

graft_status ocl_op_linalg_cholesky_ex(const graft_exec *exec, const graft_args_linalg_cholesky_ex *args) {
  solver s;
  if (args->check_errors || !args->L || !args->info || !ocl_stack_serves(exec, args->self)) return GRAFT_UNIMPLEMENTED;
  if (ocl_cholesky_serves(exec, args->self)) return ocl_cholesky(exec, args);
  begin(&s, exec, args->self);
  s.numbers[FLAG] = args->upper;
  ocl_stack_stage(
      exec, &s.direct, "cholesky", ocl_stack_count(args->self, 2),
      (const ocl_place[]){ocl_place_of(args->L), ocl_place_of(args->info), ocl_place_of(args->self), nowhere});
  return ocl_direct_run(exec, &s.direct);
}

/* One factor, no exchanges; x = out. */
static graft_status solve_with(const graft_exec *exec, solver *s, const graft_tensor_desc *factor, system_of of) {
  const batched operands[OPERANDS] = {
      [FACTOR] = {factor, factor->dl.ndim - 2}, [RIGHT] = {of.right, of.right ? of.right->dl.ndim - 2 : 0}};
  if (!set_batch(s, &of, operands) || !ocl_stack_serves(exec, of.x)) return GRAFT_UNIMPLEMENTED;
  set_system(s, &of);
  add_solve(s, exec, &of, ocl_place_of(factor), nowhere);
  return ocl_direct_run(exec, &s->direct);
}

graft_status ocl_op_cholesky_inverse(const graft_exec *exec, const graft_args_cholesky_inverse *args) {
  solver s;
  begin(&s, exec, args->self);
  set_cholesky_steps(&s, args->upper);
  return solve_with(exec, &s, args->self, (system_of){.x = args->out, .batch = args->out->dl.ndim - 2, .left = true});
}

graft_status ocl_op_cholesky_solve(const graft_exec *exec, const graft_args_cholesky_solve *args) {
  solver s;
  begin(&s, exec, args->input2);
  set_cholesky_steps(&s, args->upper);
  return solve_with(exec, &s, args->input2,
                    (system_of){.x = args->out, .right = args->self, .batch = args->out->dl.ndim - 2, .left = true});
}

graft_status ocl_op_linalg_solve_triangular(const graft_exec *exec, const graft_args_linalg_solve_triangular *args) {
  solver s;
  begin(&s, exec, args->self);
  bool back = (bool)args->upper == (bool)args->left; /* from the right the transposed system is solved */
  set_steps(&s, EXCHANGE_NONE, 1, (args->left ? 0 : TRANSPOSED) | (back ? BACK : 0) | (args->unitriangular ? UNIT : 0),
            0);
  return solve_with(exec, &s, args->self,
                    (system_of){.x = args->out, .right = args->B, .batch = args->out->dl.ndim - 2, .left = args->left});
}

graft_status ocl_op_linalg_lu_factor_ex(const graft_exec *exec, const graft_args_linalg_lu_factor_ex *args) {
  solver s;
  bool all = args->LU && args->pivots && args->info;
  if (args->check_errors || !all || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  begin(&s, exec, args->A);
  s.numbers[FLAG] = args->pivot;
  graft_status status =
      add_lu(&s, exec, args->A, ocl_place_of(args->LU), ocl_place_of(args->pivots), ocl_place_of(args->info));
  return status == GRAFT_OK && s.direct.stages->entry ? ocl_direct_run(exec, &s.direct) : status;
}

/* A factor with exchanged rows. */
static graft_status solve_pivoted(const graft_exec *exec, solver *s, const graft_tensor_desc *factor,
                                  const graft_tensor_desc *pivots, system_of of) {
  const batched operands[OPERANDS] = {[FACTOR] = {factor, factor->dl.ndim - 2},
                                      [PIVOTS] = {pivots, pivots->dl.ndim - 1},
                                      [RIGHT] = {of.right, of.right->dl.ndim - 2}};
  if (!set_batch(s, &of, operands) || pivots->dl.dtype != GRAFT_I32 || !ocl_stack_serves(exec, factor))
    return GRAFT_UNIMPLEMENTED;
  set_system(s, &of);
  add_solve(s, exec, &of, ocl_place_of(factor), ocl_place_of(pivots));
  return ocl_direct_run(exec, &s->direct);
}

graft_status ocl_op_linalg_lu_solve(const graft_exec *exec, const graft_args_linalg_lu_solve *args) {
  solver s;
  begin(&s, exec, args->LU);
  s.numbers[OP] = GRAFT_OP_LINALG_LU_SOLVE;
  set_lu_steps(&s, args->adjoint, args->left);
  return solve_pivoted(
      exec, &s, args->LU, args->pivots,
      (system_of){.x = args->out, .right = args->B, .batch = args->out->dl.ndim - 2, .left = args->left});
}

graft_status ocl_op_linalg_ldl_solve(const graft_exec *exec, const graft_args_linalg_ldl_solve *args) {
  solver s;
  begin(&s, exec, args->LD);
  s.numbers[OP] = GRAFT_OP_LINALG_LDL_SOLVE;
  s.numbers[FLAG] = args->hermitian;
  set_steps(&s, EXCHANGE_EACH, 0, 0, 0);
  return solve_pivoted(exec, &s, args->LD, args->pivots,
                       (system_of){.x = args->out, .right = args->B, .batch = args->out->dl.ndim - 2, .left = true});
}

/* Memory for the factors of a: first the factor, then its pivots. */
static graft_status factors_of(const graft_exec *exec, const graft_tensor_desc *a, ocl_place *lu, ocl_place *pivots) {
  int64_t elements = ocl_elements(a), rows = ocl_stack_count(a, 2) * ocl_stack_size(a, 2);
  graft_status status = ocl_stack_work(exec, a, elements + rows, lu);
  *pivots = ocl_stack_behind(exec, a, *lu, elements);
  return status;
}

graft_status ocl_op_linalg_inv_ex(const graft_exec *exec, const graft_args_linalg_inv_ex *args) {
  solver s;
  ocl_place lu, pivots;
  if (args->check_errors || !args->inverse || !args->info) return GRAFT_UNIMPLEMENTED;
  begin(&s, exec, args->A);
  s.numbers[FLAG] = 1;
  system_of of = {.x = args->inverse, .batch = args->inverse->dl.ndim - 2, .left = true};
  const batched operands[OPERANDS] = {[FACTOR] = {args->A, of.batch}, [PIVOTS] = {args->A, of.batch}};
  if (!set_batch(&s, &of, operands) || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  graft_status status = factors_of(exec, args->A, &lu, &pivots);
  if (status != GRAFT_OK) return status;
  set_system(&s, &of);
  set_lu_steps(&s, false, true);
  status = add_lu(&s, exec, args->A, lu, pivots, ocl_place_of(args->info));
  if (status != GRAFT_OK) return status;
  add_solve(&s, exec, &of, lu, pivots);
  return ocl_direct_run(exec, &s.direct);
}

graft_status ocl_op_linalg_solve_ex(const graft_exec *exec, const graft_args_linalg_solve_ex *args) {
  solver s;
  bool all = args->result && args->LU && args->pivots && args->info;
  if (args->check_errors || !all) return GRAFT_UNIMPLEMENTED;
  begin(&s, exec, args->A);
  s.numbers[FLAG] = 1;
  const graft_dl_tensor *x = &args->result->dl, *a = &args->A->dl, *b = &args->B->dl;
  int32_t tail = b->ndim == 1 || x->ndim < a->ndim ? 1 : 2; /* a result of lower rank than the systems is of vectors */
  system_of of = {.x = args->result, .right = args->B, .batch = x->ndim - tail, .left = args->left};
  const batched operands[OPERANDS] = {
      [FACTOR] = {args->A, a->ndim - 2}, [PIVOTS] = {args->A, a->ndim - 2}, [RIGHT] = {args->B, b->ndim - tail}};
  if (!set_batch(&s, &of, operands) || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  set_system(&s, &of);
  set_lu_steps(&s, false, args->left);
  graft_status status =
      add_lu(&s, exec, args->A, ocl_place_of(args->LU), ocl_place_of(args->pivots), ocl_place_of(args->info));
  if (status != GRAFT_OK) return status;
  add_solve(&s, exec, &of, ocl_place_of(args->LU), ocl_place_of(args->pivots));
  return ocl_direct_run(exec, &s.direct);
}

/* The info of a determinant's factorization is nobody's. */
static graft_status determinant(const graft_exec *exec, const graft_tensor_desc *a, const graft_tensor_desc *lu,
                                const graft_tensor_desc *pivots, const graft_tensor_desc *result,
                                const graft_tensor_desc *logarithm) {
  solver s;
  ocl_place info;
  if (!lu || !pivots || !result || !ocl_stack_serves(exec, a)) return GRAFT_UNIMPLEMENTED;
  int64_t count = ocl_stack_count(a, 2);
  graft_status status = ocl_stack_work(exec, a, count, &info);
  if (status != GRAFT_OK) return status;
  begin(&s, exec, a);
  s.numbers[FLAG] = 1;
  status = add_lu(&s, exec, a, ocl_place_of(lu), ocl_place_of(pivots), info);
  if (status != GRAFT_OK) return status;
  ocl_stack_stage(
      exec, &s.direct, logarithm ? "sign_and_logarithm" : "determinant", count,
      (const ocl_place[]){ocl_place_of(result), ocl_place_of(logarithm), ocl_place_of(lu), ocl_place_of(pivots)});
  return ocl_direct_run(exec, &s.direct);
}

graft_status ocl_op_linalg_det(const graft_exec *exec, const graft_args_linalg_det *args) {
  return determinant(exec, args->A, args->LU, args->pivots, args->result, NULL);
}

graft_status ocl_op_linalg_slogdet(const graft_exec *exec, const graft_args_linalg_slogdet *args) {
  if (!args->logabsdet) return GRAFT_UNIMPLEMENTED;
  return determinant(exec, args->A, args->LU, args->pivots, args->sign, args->logabsdet);
}

graft_status ocl_op_linalg_ldl_factor_ex(const graft_exec *exec, const graft_args_linalg_ldl_factor_ex *args) {
  solver s;
  bool all = args->LD && args->pivots && args->info;
  if (args->check_errors || !all || !ocl_stack_serves(exec, args->self)) return GRAFT_UNIMPLEMENTED;
  begin(&s, exec, args->self);
  s.numbers[FLAG] = args->hermitian;
  ocl_stack_stage(exec, &s.direct, "ldl", ocl_stack_count(args->self, 2),
                  (const ocl_place[]){ocl_place_of(args->LD), ocl_place_of(args->pivots), ocl_place_of(args->info),
                                      ocl_place_of(args->self)});
  return ocl_direct_run(exec, &s.direct);
}
