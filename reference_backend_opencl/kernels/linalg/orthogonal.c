/* QR: reflectors, what they make, and what they are applied to. */
#include "kernels/linalg/householder.h"
#include "kernels/linalg/reflectors.h"

static const ocl_place nowhere;

typedef struct reflectors {
  ocl_direct direct;
  int64_t numbers[REFLECTOR_NUMBERS];
  int64_t matrices;
} reflectors;

static void begin(reflectors *r, const graft_exec *exec, const graft_tensor_desc *vectors, int64_t count) {
  *r = (reflectors){
      .direct = ocl_stack_call(exec, vectors, "core/direct linalg/stacks linalg/blocks linalg/orthogonal", 5),
      .matrices = ocl_stack_count(vectors, 2)};
  r->direct.numbers = r->numbers;
  r->direct.count = REFLECTOR_NUMBERS;
  r->numbers[ROWS] = ocl_stack_size(vectors, 2);
  r->numbers[COLUMNS] = ocl_stack_size(vectors, 1);
  r->numbers[COUNT] = count;
  r->numbers[WIDTH] = ocl_stack_block_width(count);
}

/* The vectors that are reflected: columns of c, or its rows. */
static void set_vectors(reflectors *r, const graft_exec *exec, const graft_tensor_desc *c, bool left) {
  int64_t columns = ocl_stack_size(c, 1);
  r->numbers[RIGHTS] = left ? columns : ocl_stack_size(c, 2);
  r->numbers[C_STEP] = left ? columns : 1;
  r->numbers[C_NEXT] = left ? 1 : columns;
  r->numbers[TURNED] = !left;
  r->numbers[PARTS] = ocl_stack_parts(exec, r->matrices, r->numbers[RIGHTS]);
}

/* Elements of work, a block's for each work-group. */
static int64_t work_of(const reflectors *r) {
  int64_t pieces = r->matrices * (r->numbers[PARTS] > 1 ? r->numbers[PARTS] : 1);
  return pieces * ocl_stack_block_work(r->numbers[ROWS], r->numbers[COUNT]);
}

/* Reflects c's vectors, those of `from`; NULL: of the identity. */
static void add_reflect(reflectors *r, const graft_exec *exec, const graft_tensor_desc *c,
                        const graft_tensor_desc *from, ocl_place vectors, ocl_place tau, ocl_place work) {
  r->numbers[IDENTITY] = !from;
  ocl_stack_stage(exec, &r->direct, "reflect", r->matrices * r->numbers[PARTS],
                  (const ocl_place[]){ocl_place_of(c), vectors, work, tau, ocl_place_of(from)});
}

static void add_geqrf(reflectors *r, const graft_exec *exec, const graft_tensor_desc *a, ocl_place vectors,
                      ocl_place tau, ocl_place work) {
  ocl_stack_stage(exec, &r->direct, "geqrf", r->matrices,
                  (const ocl_place[]){vectors, tau, work, ocl_place_of(a), nowhere});
}

void ocl_reflectors_product(int64_t *numbers, int64_t rows, int64_t columns, int64_t count, int64_t rights,
                            int64_t parts) {
  numbers[ROWS] = rows;
  numbers[COLUMNS] = columns;
  numbers[COUNT] = count;
  numbers[RIGHTS] = numbers[C_STEP] = rights;
  numbers[C_NEXT] = numbers[IDENTITY] = 1;
  numbers[PARTS] = parts;
  numbers[WIDTH] = ocl_stack_block_width(count);
}

graft_status ocl_op_geqrf(const graft_exec *exec, const graft_args_geqrf *args) {
  reflectors r;
  ocl_place work;
  if (!args->a || !args->tau || !ocl_stack_serves(exec, args->self)) return GRAFT_UNIMPLEMENTED;
  if (ocl_householder_factors(exec, args->self))
    return ocl_householder_geqrf(exec, args->self, ocl_place_of(args->a), ocl_place_of(args->tau));
  begin(&r, exec, args->self, ocl_stack_size(args->tau, 1));
  graft_status status = ocl_stack_work(exec, args->self, work_of(&r), &work);
  if (status != GRAFT_OK) return status;
  add_geqrf(&r, exec, args->self, ocl_place_of(args->a), ocl_place_of(args->tau), work);
  return ocl_direct_run(exec, &r.direct);
}

graft_status ocl_op_linalg_householder_product(const graft_exec *exec,
                                               const graft_args_linalg_householder_product *args) {
  reflectors r;
  ocl_place work;
  if (!ocl_stack_serves(exec, args->input)) return GRAFT_UNIMPLEMENTED;
  if (ocl_householder_reflects(exec, args->input, ocl_stack_size(args->tau, 1)))
    return ocl_householder_apply(exec, args->input, args->tau, args->out, NULL, true, false);
  begin(&r, exec, args->input, ocl_stack_size(args->tau, 1));
  set_vectors(&r, exec, args->out, true);
  graft_status status = ocl_stack_work(exec, args->input, work_of(&r), &work);
  if (status != GRAFT_OK) return status;
  add_reflect(&r, exec, args->out, NULL, ocl_place_of(args->input), ocl_place_of(args->tau), work);
  return ocl_direct_run(exec, &r.direct);
}

graft_status ocl_op_ormqr(const graft_exec *exec, const graft_args_ormqr *args) {
  reflectors r;
  ocl_place work;
  if (!ocl_stack_serves(exec, args->self)) return GRAFT_UNIMPLEMENTED;
  const bool forward = (bool)args->transpose == (bool)args->left; /* rows are those of the adjoint product */
  if (ocl_householder_reflects(exec, args->self, ocl_stack_size(args->input2, 1)))
    return ocl_householder_apply(exec, args->self, args->input2, args->out, args->input3, args->left, forward);
  begin(&r, exec, args->self, ocl_stack_size(args->input2, 1));
  set_vectors(&r, exec, args->out, args->left);
  r.numbers[FORWARD] = forward;
  graft_status status = ocl_stack_work(exec, args->self, work_of(&r), &work);
  if (status != GRAFT_OK) return status;
  add_reflect(&r, exec, args->out, args->input3, ocl_place_of(args->self), ocl_place_of(args->input2), work);
  return ocl_direct_run(exec, &r.direct);
}

graft_status ocl_op_linalg_qr(const graft_exec *exec, const graft_args_linalg_qr *args) {
  reflectors r;
  ocl_place a;
  bool only_r = args->mode == GRAFT_STR_QR_MODE_R;
  if (!args->R || (!only_r && !args->Q) || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  if (ocl_householder_factors(exec, args->A))
    return ocl_householder_qr(exec, args->A, only_r ? NULL : args->Q, args->R);
  int64_t rows = ocl_stack_size(args->A, 2), columns = ocl_stack_size(args->A, 1);
  begin(&r, exec, args->A, rows < columns ? rows : columns);
  if (!only_r) set_vectors(&r, exec, args->Q, true);
  int64_t elements = ocl_elements(args->A), factors = r.matrices * r.numbers[COUNT];
  graft_status status = ocl_stack_work(exec, args->A, elements + factors + work_of(&r), &a);
  if (status != GRAFT_OK) return status;
  ocl_place tau = ocl_stack_behind(exec, args->A, a, elements), work = ocl_stack_behind(exec, args->A, tau, factors);
  r.numbers[HEIGHT] = ocl_stack_size(args->R, 2);
  add_geqrf(&r, exec, args->A, a, tau, work);
  ocl_stack_stage(exec, &r.direct, "upper_triangle", r.matrices,
                  (const ocl_place[]){ocl_place_of(args->R), a, nowhere, nowhere, nowhere});
  if (!only_r) add_reflect(&r, exec, args->Q, NULL, a, tau, work);
  return ocl_direct_run(exec, &r.direct);
}

/* Least squares of full rank: no fewer equations than unknowns. */

/* Right sides of their own for each matrix. */
static bool fits_sides(const graft_args_linalg_lstsq *args, int64_t matrices, int64_t sides) {
  int64_t rows = ocl_stack_size(args->self, 2), columns = ocl_stack_size(args->self, 1);
  return rows >= columns && columns * sides > 0 && ocl_elements(args->b) == matrices * rows * sides &&
         ocl_elements(args->solution) == matrices * columns * sides;
}

graft_status ocl_lstsq_residuals(const graft_exec *exec, const graft_args_linalg_lstsq *args, int64_t sides,
                                 const graft_tensor_desc **residuals) {
  const graft_dl_tensor *a = &args->self->dl;
  int64_t shape[OCL_DIMS_MAX] = {0};
  for (int32_t d = 0; sides && d < a->ndim - 2; d++) shape[d] = a->shape[d];
  if (sides) shape[a->ndim - 2] = sides;
  return exec->device->plugin->host->output_shape(exec, args->residuals, sides ? a->ndim - 1 : 1, shape, residuals);
}

graft_status ocl_lstsq_by_reflectors(const graft_exec *exec, const graft_args_linalg_lstsq *args) {
  reflectors r;
  ocl_place a;
  const graft_tensor_desc *residuals;
  if (!args->solution || !args->residuals) return GRAFT_UNIMPLEMENTED;
  if (!ocl_stack_serves(exec, args->self) || args->self->dl.ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  const int64_t sides = args->b->dl.ndim < args->self->dl.ndim ? 1 : ocl_stack_size(args->b, 1);
  begin(&r, exec, args->self, ocl_stack_size(args->self, 1));
  if (r.matrices == 0 || !fits_sides(args, r.matrices, sides)) return GRAFT_UNIMPLEMENTED;
  r.direct.file = "core/direct linalg/stacks linalg/blocks linalg/orthogonal linalg/least_squares";
  r.numbers[RIGHTS] = r.numbers[C_STEP] = sides;
  r.numbers[C_NEXT] = 1;
  r.numbers[FORWARD] = true;
  r.numbers[PARTS] = ocl_stack_parts(exec, r.matrices, sides);
  const int64_t elements = ocl_elements(args->self), factors = r.matrices * r.numbers[COUNT],
                reflected_elements = ocl_elements(args->b), pieces = r.matrices * r.numbers[PARTS];
  graft_status status = ocl_stack_work(exec, args->self, elements + factors + reflected_elements + work_of(&r), &a);
  const bool leaves = r.numbers[ROWS] > r.numbers[COLUMNS]; /* a square system leaves nothing, and no number says so */
  if (status == GRAFT_OK) status = ocl_lstsq_residuals(exec, args, leaves ? sides : 0, &residuals);
  if (status != GRAFT_OK) return status;
  const ocl_place tau = ocl_stack_behind(exec, args->self, a, elements),
                  reflected = ocl_stack_behind(exec, args->self, tau, factors),
                  work = ocl_stack_behind(exec, args->self, reflected, reflected_elements);
  add_geqrf(&r, exec, args->self, a, tau, work);
  ocl_stack_stage(exec, &r.direct, "reflect", pieces,
                  (const ocl_place[]){reflected, a, work, tau, ocl_place_of(args->b)});
  ocl_stack_stage(exec, &r.direct, "solve_reflected", pieces,
                  (const ocl_place[]){ocl_place_of(args->solution), a, reflected, ocl_place_of(residuals), nowhere});
  return ocl_direct_run(exec, &r.direct);
}
