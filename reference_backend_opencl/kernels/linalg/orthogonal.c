/* QR: reflectors, what they make, and what they are applied to. */
#include "kernels/linalg/householder.h"
#include "kernels/linalg/reflectors.h"

static const ocl_place nowhere;

typedef struct reflectors {
  ocl_direct direct;
  int64_t numbers[VALUES_NUMBERS];
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

/* Least squares of full rank. */

int64_t ocl_lstsq_systems(const graft_args_linalg_lstsq *args, int64_t *numbers) {
  const int32_t dims = args->self->dl.ndim - 2;
  int64_t systems = 1, matrices = 1, sides = 1;
  numbers[STACK_DIMS] = dims;
  for (int32_t d = dims - 1; d >= 0; d--) {
    const int64_t of_a = args->self->dl.shape[d], of_b = args->b->dl.shape[d];
    int64_t *number = numbers + STACK + STACK_PARTS * d;
    number[0] = args->solution->dl.shape[d];
    number[1] = of_a == 1 ? 0 : matrices;
    number[2] = of_b == 1 ? 0 : sides;
    systems *= number[0], matrices *= of_a, sides *= of_b;
  }
  return systems;
}

graft_status ocl_lstsq_residuals(const graft_exec *exec, const graft_args_linalg_lstsq *args, int64_t sides,
                                 const graft_tensor_desc **residuals) {
  const int32_t stack = args->self->dl.ndim - 2;
  int64_t shape[OCL_DIMS_MAX] = {0};
  for (int32_t d = 0; sides && d < stack; d++) shape[d] = args->solution->dl.shape[d];
  if (sides) shape[stack] = sides;
  return exec->device->plugin->host->output_shape(exec, args->residuals, sides ? stack + 1 : 1, shape, residuals);
}

/* What a call works in: the reflectors of each matrix, or of its adjoint where it is wide, and their factors; both
 * again and the right sides, those of each system; and the reflectors' own. */
typedef struct system_places {
  ocl_place vectors, tau, of_each, tau_of_each, reflected, work;
} system_places;

static graft_status take_system_places(const graft_exec *exec, const reflectors *r, const graft_args_linalg_lstsq *args,
                                       int64_t matrices, bool spread, system_places *to) {
  const graft_tensor_desc *a = args->self;
  const int64_t each = r->numbers[ROWS] * r->numbers[COLUMNS], factors = r->numbers[COUNT], systems = r->matrices;
  const int64_t sides = ocl_stack_size(a, 2) * r->numbers[RIGHTS], again = spread ? systems : 0;
  const graft_status status =
      ocl_stack_work(exec, a, (matrices + again) * (each + factors) + systems * sides + work_of(r), &to->vectors);
  to->tau = ocl_stack_behind(exec, a, to->vectors, matrices * each);
  to->reflected = ocl_stack_behind(exec, a, to->tau, matrices * factors);
  to->work = ocl_stack_behind(exec, a, to->reflected, systems * sides);
  to->of_each = spread ? ocl_stack_behind(exec, a, to->work, work_of(r)) : to->vectors;
  to->tau_of_each = spread ? ocl_stack_behind(exec, a, to->of_each, again * each) : to->tau;
  return status;
}

/* A x = b by A's reflectors; of a wide A the x of the smallest norm by those of its adjoint: A^H = Q R, and so x = Q y
 * with R^H y = b. */
static void add_solution(reflectors *r, const graft_exec *exec, const graft_args_linalg_lstsq *args,
                         const system_places *at, ocl_place right, ocl_place residuals) {
  const int64_t pieces = r->matrices * r->numbers[PARTS];
  const ocl_place x = ocl_place_of(args->solution);
  if (r->numbers[FORWARD]) {
    ocl_stack_stage(exec, &r->direct, "reflect", pieces,
                    (const ocl_place[]){at->reflected, at->of_each, at->work, at->tau_of_each, right});
    ocl_stack_stage(exec, &r->direct, "solve_reflected", pieces,
                    (const ocl_place[]){x, at->of_each, at->reflected, residuals, nowhere});
    return;
  }
  ocl_stack_stage(exec, &r->direct, "solve_wide", pieces, (const ocl_place[]){x, at->of_each, right, nowhere, nowhere});
  ocl_stack_stage(exec, &r->direct, "reflect", pieces,
                  (const ocl_place[]){x, at->of_each, at->work, at->tau_of_each, x});
}

/* The reflectors of each matrix, and where operands are broadcast those of each system with its right sides. */
static ocl_place add_factors(reflectors *r, const graft_exec *exec, const graft_args_linalg_lstsq *args,
                             int64_t matrices, bool spread, const system_places *at) {
  ocl_place from = ocl_place_of(args->self);
  if (!r->numbers[FORWARD]) {
    ocl_stack_stage(exec, &r->direct, "take_adjoint", matrices,
                    (const ocl_place[]){at->vectors, from, nowhere, nowhere, nowhere});
    from = at->vectors;
  }
  ocl_stack_stage(exec, &r->direct, "geqrf", matrices,
                  (const ocl_place[]){at->vectors, at->tau, at->work, from, nowhere});
  if (!spread) return ocl_place_of(args->b);
  ocl_stack_stage(exec, &r->direct, "spread", r->matrices,
                  (const ocl_place[]){at->of_each, at->vectors, at->reflected, ocl_place_of(args->b), nowhere});
  return at->reflected;
}

graft_status ocl_lstsq_by_reflectors(const graft_exec *exec, const graft_args_linalg_lstsq *args) {
  reflectors r;
  system_places at;
  const graft_tensor_desc *residuals;
  if (!args->solution || !args->residuals) return GRAFT_UNIMPLEMENTED;
  if (!ocl_stack_serves(exec, args->self) || args->self->dl.ndim > OCL_DIMS_MAX) return GRAFT_UNIMPLEMENTED;
  const int64_t rows = ocl_stack_size(args->self, 2), columns = ocl_stack_size(args->self, 1);
  const bool wide = rows<columns, leaves = rows> columns; /* a square system leaves nothing, and no number says so */
  const int64_t sides = args->b->dl.ndim < args->self->dl.ndim ? 1 : ocl_stack_size(args->b, 1);
  begin(&r, exec, args->self, wide ? rows : columns);
  const int64_t matrices = r.matrices;
  r.matrices = ocl_lstsq_systems(args, r.numbers);
  if (r.matrices * rows * columns * sides == 0) return GRAFT_UNIMPLEMENTED;
  const bool spread = matrices < r.matrices || ocl_elements(args->b) < r.matrices * rows * sides;
  r.direct.file = "core/direct linalg/stacks linalg/blocks linalg/orthogonal linalg/least_squares";
  r.direct.count = VALUES_NUMBERS;
  r.numbers[MATRICES] = matrices;
  r.numbers[ROWS] = wide ? columns : rows;
  r.numbers[COLUMNS] = wide ? rows : columns;
  r.numbers[HEIGHT] = rows;
  r.numbers[RIGHTS] = r.numbers[C_STEP] = sides;
  r.numbers[C_NEXT] = 1;
  r.numbers[FORWARD] = !wide;
  r.numbers[PARTS] = ocl_stack_parts(exec, r.matrices, sides);
  graft_status status = take_system_places(exec, &r, args, matrices, spread, &at);
  if (status == GRAFT_OK) status = ocl_lstsq_residuals(exec, args, leaves ? sides : 0, &residuals);
  if (status != GRAFT_OK) return status;
  const ocl_place right = add_factors(&r, exec, args, matrices, spread, &at);
  add_solution(&r, exec, args, &at, right, ocl_place_of(residuals));
  return ocl_direct_run(exec, &r.direct);
}
