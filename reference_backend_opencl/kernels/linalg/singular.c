/* Singular values. */
#include "kernels/linalg/singular.h"

enum { ROTATIONS = 2 + 4 * OCL_STACK_TOGETHER }; /* d, e, cos and sin of both sides */

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

static int64_t elements_of(const layout *sizes) {
  return sizes->reflectors + sizes->right + sizes->factors + sizes->products + sizes->beside + sizes->work;
}

static stack stack_of_call(const graft_exec *exec, const ocl_singular *of) {
  bool tall = ocl_stack_size(of->a, 2) >= ocl_stack_size(of->a, 1);
  return stack_of(exec, of->a, tall ? of->u_columns : of->vh_rows);
}

int64_t ocl_singular_work(const graft_exec *exec, const ocl_singular *of) {
  const stack s = stack_of_call(exec, of);
  const layout sizes = layout_of(&s);
  return elements_of(&sizes);
}

static void add_stage(const graft_exec *exec, ocl_direct *call, const char *entry, int64_t matrices,
                      const int64_t *numbers, const ocl_place *places) {
  ocl_stage *stage = ocl_stack_stage(exec, call, entry, matrices, places);
  stage->file = "core/direct linalg/stacks linalg/blocks linalg/orthogonal linalg/singular";
  stage->numbers = numbers;
}

void ocl_singular_add(const graft_exec *exec, ocl_singular *of, ocl_place reflectors, ocl_direct *call) {
  const graft_tensor_desc *a = of->a;
  const stack s = stack_of_call(exec, of);
  const layout sizes = layout_of(&s);
  ocl_place right = ocl_stack_behind(exec, a, reflectors, sizes.reflectors);
  ocl_place factors = ocl_stack_behind(exec, a, right, sizes.right);
  ocl_place products = ocl_stack_behind(exec, a, factors, sizes.factors);
  ocl_place beside = ocl_stack_behind(exec, a, products, sizes.products);
  ocl_place work = ocl_stack_behind(exec, a, beside, sizes.beside);
  ocl_place right_factors = ocl_stack_behind(exec, a, factors, s.matrices * s.count);
  ocl_place right_product = ocl_stack_behind(exec, a, products, s.matrices * s.length * s.rights);
  bool vectors = of->u.buffer && of->vh.buffer;
  of->numbers[ROWS] = ocl_stack_size(a, 2);
  of->numbers[COLUMNS] = ocl_stack_size(a, 1);
  of->numbers[RIGHTS] = s.rights;
  of->numbers[PARTS] = s.parts;
  of->numbers[U_COLUMNS] = of->u_columns;
  of->numbers[VH_ROWS] = of->vh_rows;
  ocl_reflectors_product(of->of_left, s.length, s.count, s.count, s.rights, s.left_parts);
  ocl_reflectors_product(of->of_right, s.below, s.below, s.below, s.below, s.right_parts);
  add_stage(exec, call, "bidiagonal", s.count ? s.matrices : 0, of->numbers,
            (const ocl_place[]){beside, reflectors, factors, right, ocl_place_of(a)});
  if (s.rights) {
    add_stage(exec, call, "reflect", s.matrices * s.left_parts, of->of_left,
              (const ocl_place[]){products, reflectors, work, factors, products});
  }
  if (s.rights && s.below) {
    add_stage(exec, call, "reflect", s.matrices * s.right_parts, of->of_right,
              (const ocl_place[]){right_product, right, work, right_factors, right_product});
  }
  add_stage(exec, call, "diagonal", s.matrices * s.parts, of->numbers,
            (const ocl_place[]){vectors ? of->u : work, of->s, vectors ? of->vh : work, work, products});
}

graft_status ocl_op_linalg_svd(const graft_exec *exec, const graft_args_linalg_svd *args) {
  ocl_place work;
  bool vectors = args->compute_uv && args->U && args->Vh;
  if (!args->S || (args->compute_uv && !vectors) || !ocl_stack_serves(exec, args->A)) return GRAFT_UNIMPLEMENTED;
  ocl_singular of = {.a = args->A, .s = ocl_place_of(args->S)};
  if (vectors) {
    of.u = ocl_place_of(args->U);
    of.vh = ocl_place_of(args->Vh);
    of.u_columns = ocl_stack_size(args->U, 1);
    of.vh_rows = ocl_stack_size(args->Vh, 2);
  }
  graft_status status = ocl_stack_work(exec, args->A, ocl_singular_work(exec, &of), &work);
  if (status != GRAFT_OK) return status;
  ocl_direct call = ocl_stack_call(exec, args->A, NULL, OCL_SINGULAR_PLACES);
  call.numbers = of.numbers;
  call.count = SINGULAR_NUMBERS;
  ocl_singular_add(exec, &of, work, &call);
  return ocl_direct_run(exec, &call);
}
