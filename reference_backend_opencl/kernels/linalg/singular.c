/* Singular values. */
#include "kernels/linalg/linalg.h"
#include "kernels/linalg/reflectors.h"

enum { PLACES = 5, ROTATIONS = 6 }; /* d, e, cos and sin of both sides */

/* Sizes of a stack of matrices, of which the longer side is that of the rows, and into how many parts their vectors are
 * cut: those that are made of reflectors, and those that are turned. */
typedef struct stack {
  int64_t matrices, length, count, below, rights, left_parts, right_parts, parts;
} stack;

/* `rights`: columns of the longer side's vectors, 0 where none are wanted. */
static stack stack_of(const graft_exec *exec, const graft_tensor_desc *a, int64_t rights) {
  int64_t rows = ocl_stack_size(a, 2), columns = ocl_stack_size(a, 1);
  stack s = {.matrices = ocl_stack_count(a, 2),
             .length = ocl_larger(rows, columns),
             .count = rows < columns ? rows : columns,
             .rights = rights,
             .parts = 1};
  s.below = s.count ? s.count - 1 : 0;
  s.left_parts = ocl_stack_parts(exec, s.matrices, rights);
  s.right_parts = ocl_stack_parts(exec, s.matrices, s.below);
  if (rights) s.parts = ocl_stack_parts_of_steps(exec, s.matrices, s.length + s.count);
  return s;
}

/* Where the parts of the workspace lie: what the kernels need until the vectors are made, the products of the
 * reflectors and what is beside each matrix, and what a kernel has to itself. */
typedef struct layout {
  int64_t reflectors, right, factors, products, beside, work;
} layout;

static layout layout_of(const stack *s) {
  int64_t wide = s->rights ? ocl_ceil_divide(s->length + s->count, s->parts) : 0;
  int64_t steps = s->matrices * s->parts * s->count * (wide + ROTATIONS);
  int64_t left = s->matrices * s->left_parts * ocl_stack_block_work(s->length, s->count);
  int64_t right = s->matrices * s->right_parts * ocl_stack_block_work(s->below, s->below);
  return (layout){.reflectors = s->matrices * s->length * s->count,
                  .right = s->matrices * s->below * s->below,
                  .factors = s->matrices * (s->count + s->below),
                  .products = s->matrices * (s->length * s->rights + s->below * s->below),
                  .beside = s->matrices * (4 * s->count + 1),
                  .work = ocl_larger(steps, ocl_larger(left, right))};
}

graft_status ocl_op_linalg_svd(const graft_exec *exec, const graft_args_linalg_svd *args) {
  ocl_place reflectors;
  bool vectors = args->compute_uv && args->U && args->Vh;
  if (!args->S || (args->compute_uv && !vectors) || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  int64_t rows = ocl_stack_size(args->A, 2), columns = ocl_stack_size(args->A, 1);
  int64_t u_columns = vectors ? ocl_stack_size(args->U, 1) : 0, vh_rows = vectors ? ocl_stack_size(args->Vh, 2) : 0;
  const stack s = stack_of(exec, args->A, rows >= columns ? u_columns : vh_rows);
  const layout sizes = layout_of(&s);
  graft_status status = ocl_stack_work(
      exec, args->A, sizes.reflectors + sizes.right + sizes.factors + sizes.products + sizes.beside + sizes.work,
      &reflectors);
  if (status != GRAFT_OK) return status;
  ocl_place right = ocl_stack_behind(exec, args->A, reflectors, sizes.reflectors);
  ocl_place factors = ocl_stack_behind(exec, args->A, right, sizes.right);
  ocl_place products = ocl_stack_behind(exec, args->A, factors, sizes.factors);
  ocl_place beside = ocl_stack_behind(exec, args->A, products, sizes.products);
  ocl_place work = ocl_stack_behind(exec, args->A, beside, sizes.beside);
  ocl_place right_factors = ocl_stack_behind(exec, args->A, factors, s.matrices * s.count);
  ocl_place right_product = ocl_stack_behind(exec, args->A, products, s.matrices * s.length * s.rights);
  int64_t of_left[SINGULAR_NUMBERS] = {0}, of_right[SINGULAR_NUMBERS] = {0};
  int64_t numbers[SINGULAR_NUMBERS] = {[ROWS] = rows,     [COLUMNS] = columns,     [RIGHTS] = s.rights,
                                       [PARTS] = s.parts, [U_COLUMNS] = u_columns, [VH_ROWS] = vh_rows};
  ocl_reflectors_product(of_left, s.length, s.count, s.count, s.rights, s.left_parts);
  ocl_reflectors_product(of_right, s.below, s.below, s.below, s.below, s.right_parts);
  ocl_direct call = ocl_stack_call(exec, args->A,
                                   "core/direct linalg/stacks linalg/blocks linalg/orthogonal linalg/singular", PLACES);
  call.numbers = numbers;
  call.count = SINGULAR_NUMBERS;
  ocl_stack_stage(exec, &call, "bidiagonal", s.count ? s.matrices : 0,
                  (const ocl_place[PLACES]){beside, reflectors, factors, right, ocl_place_of(args->A)});
  if (s.rights) {
    ocl_stack_stage(exec, &call, "reflect", s.matrices * s.left_parts,
                    (const ocl_place[PLACES]){products, reflectors, work, factors, products})
        ->numbers = of_left;
  }
  if (s.rights && s.below) {
    ocl_stack_stage(exec, &call, "reflect", s.matrices * s.right_parts,
                    (const ocl_place[PLACES]){right_product, right, work, right_factors, right_product})
        ->numbers = of_right;
  }
  ocl_stack_stage(exec, &call, "diagonal", s.matrices * s.parts,
                  (const ocl_place[PLACES]){vectors ? ocl_place_of(args->U) : work, ocl_place_of(args->S),
                                            vectors ? ocl_place_of(args->Vh) : work, work, products});
  return ocl_direct_run(exec, &call);
}
