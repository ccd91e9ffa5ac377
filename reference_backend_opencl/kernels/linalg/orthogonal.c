/* QR: reflectors, what they make, and what they are applied to. */
#include "kernels/linalg/linalg.h"
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
  begin(&r, exec, args->self, ocl_stack_size(args->input2, 1));
  set_vectors(&r, exec, args->out, args->left);
  r.numbers[FORWARD] = (bool)args->transpose == (bool)args->left; /* rows are those of the adjoint product */
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
