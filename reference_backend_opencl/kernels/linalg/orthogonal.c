/* QR: reflectors, what they make, and what they are applied to. */
#include "kernels/linalg/linalg.h"

/* The numbers of orthogonal.cl. */
enum { ROWS, COLUMNS, COUNT, HEIGHT, RIGHTS, C_STEP, C_NEXT, IDENTITY, FORWARD, TURNED, NUMBERS };

typedef struct reflectors {
  ocl_direct direct;
  int64_t numbers[NUMBERS];
  int64_t matrices;
} reflectors;

static void begin(reflectors *r, const graft_tensor_desc *vectors, int64_t count) {
  *r = (reflectors){.direct = {.file = "core/direct linalg/stacks linalg/orthogonal",
                               .dtype = vectors->dl.dtype,
                               .count = NUMBERS,
                               .places = 4},
                    .matrices = ocl_stack_count(vectors, 2)};
  r->direct.numbers = r->numbers;
  r->numbers[ROWS] = ocl_stack_size(vectors, 2);
  r->numbers[COLUMNS] = ocl_stack_size(vectors, 1);
  r->numbers[COUNT] = count;
}

static const ocl_place nowhere;

/* Reflects the columns of c, or its rows; of the identity where `from` is NULL. */
static void add_reflect(reflectors *r, const graft_exec *exec, const graft_tensor_desc *c,
                        const graft_tensor_desc *from, bool left, ocl_place vectors, ocl_place tau) {
  int64_t columns = ocl_stack_size(c, 1);
  r->numbers[RIGHTS] = left ? columns : ocl_stack_size(c, 2);
  r->numbers[C_STEP] = left ? columns : 1;
  r->numbers[C_NEXT] = left ? 1 : columns;
  r->numbers[IDENTITY] = !from;
  r->numbers[TURNED] = !left;
  ocl_stack_stage(exec, &r->direct, "reflect", r->matrices,
                  (const ocl_place[]){ocl_place_of(c), vectors, tau, ocl_place_of(from)});
}

graft_status ocl_op_geqrf(const graft_exec *exec, const graft_args_geqrf *args) {
  reflectors r;
  if (!args->a || !args->tau || !ocl_stack_serves(exec, args->self)) return GRAFT_UNIMPLEMENTED;
  begin(&r, args->self, ocl_stack_size(args->tau, 1));
  ocl_stack_stage(
      exec, &r.direct, "geqrf", r.matrices,
      (const ocl_place[]){ocl_place_of(args->a), ocl_place_of(args->tau), ocl_place_of(args->self), nowhere});
  return ocl_direct_run(exec, &r.direct);
}

graft_status ocl_op_linalg_householder_product(const graft_exec *exec,
                                               const graft_args_linalg_householder_product *args) {
  reflectors r;
  if (!ocl_stack_serves(exec, args->input)) return GRAFT_UNIMPLEMENTED;
  begin(&r, args->input, ocl_stack_size(args->tau, 1));
  add_reflect(&r, exec, args->out, NULL, true, ocl_place_of(args->input), ocl_place_of(args->tau));
  return ocl_direct_run(exec, &r.direct);
}

graft_status ocl_op_ormqr(const graft_exec *exec, const graft_args_ormqr *args) {
  reflectors r;
  if (!ocl_stack_serves(exec, args->self)) return GRAFT_UNIMPLEMENTED;
  begin(&r, args->self, ocl_stack_size(args->input2, 1));
  r.numbers[FORWARD] = (bool)args->transpose == (bool)args->left; /* rows are those of the adjoint product */
  add_reflect(&r, exec, args->out, args->input3, args->left, ocl_place_of(args->self), ocl_place_of(args->input2));
  return ocl_direct_run(exec, &r.direct);
}

graft_status ocl_op_linalg_qr(const graft_exec *exec, const graft_args_linalg_qr *args) {
  reflectors r;
  ocl_place a;
  bool only_r = args->mode == GRAFT_STR_QR_MODE_R;
  if (!args->R || (!only_r && !args->Q) || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  int64_t rows = ocl_stack_size(args->A, 2), columns = ocl_stack_size(args->A, 1);
  begin(&r, args->A, rows < columns ? rows : columns);
  int64_t elements = ocl_elements(args->A);
  graft_status status = ocl_stack_work(exec, args->A, elements + r.matrices * r.numbers[COUNT], &a);
  if (status != GRAFT_OK) return status;
  ocl_place tau = ocl_stack_behind(exec, args->A, a, elements);
  r.numbers[HEIGHT] = ocl_stack_size(args->R, 2);
  ocl_stack_stage(exec, &r.direct, "geqrf", r.matrices, (const ocl_place[]){a, tau, ocl_place_of(args->A), nowhere});
  ocl_stack_stage(exec, &r.direct, "upper_triangle", r.matrices,
                  (const ocl_place[]){ocl_place_of(args->R), a, nowhere, nowhere});
  if (!only_r) add_reflect(&r, exec, args->Q, NULL, true, a, tau);
  return ocl_direct_run(exec, &r.direct);
}
