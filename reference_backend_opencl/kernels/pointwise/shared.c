/* Programs of small calls that many ops share. A program takes a compiler a tenth of a second, of which one expression
 * is a small part: so the ops of one kind are cases of a switch, and the call says which one it is. */
#include <string.h>

#include "kernels/pointwise/pointwise.h"

typedef ocl_pointwise_recipe recipe;

extern const ocl_family ocl_family_pointwise;

enum {
  /* What needs files of its own or asks the head for more. */
  ALONE = OCL_SPECIAL | OCL_GAMMA | OCL_BESSEL | OCL_POLYNOMIALS | OCL_LANES | OCL_TWO_RESULTS | OCL_DIVIDES |
          OCL_MASK_A | OCL_MASK_B,
  KIND = OCL_BOOL_RESULT | OCL_POWERS | OCL_FUNCTION
};

/* Whether this recipe is a case of the program that `of` takes. */
static bool is_case(const recipe *one, const recipe *of, const ocl_dtype *compute) {
  return one && !(one->flags & ALONE) && (one->flags & KIND) == (of->flags & KIND) &&
         one->dtypes >> compute->number & 1;
}

/* NULL for a row that is served otherwise. */
static const recipe *recipe_at(size_t i) {
  const ocl_op *op = &ocl_family_pointwise.ops[i];
  return op->engine == ocl_pointwise_engine ? op->recipe : NULL;
}

/* The first row that says the same; -1: none. */
static int64_t row_of(const recipe *wanted, const ocl_dtype *compute) {
  for (size_t i = 0; i < ocl_family_pointwise.count; i++) {
    const recipe *one = recipe_at(i);
    if (is_case(one, wanted, compute) && strcmp(one->expression, wanted->expression) == 0) return (int64_t)i;
  }
  return -1;
}

static bool has_one_dtype(const ocl_operands *call, const recipe *recipe, const ocl_dtype *compute) {
  for (int k = 0; k < call->inputs; k++) {
    if (!ocl_is_value(call->input[k]) && call->input[k]->dl.dtype != compute->code) return false;
  }
  return call->out->dl.dtype == (recipe->flags & OCL_BOOL_RESULT ? GRAFT_BOOL : compute->code);
}

ocl_pointwise_shared ocl_pointwise_share(const ocl_operands *call, const recipe *recipe, const ocl_dtype *compute) {
  ocl_pointwise_shared shared = {.mode = call->mode};
  if (recipe->flags & ALONE || compute->class == OCL_CLASS_COMPLEX || !has_one_dtype(call, recipe, compute))
    return shared;
  shared.op = row_of(recipe, compute);
  shared.shares = shared.op >= 0;
  for (int k = 0; k < call->inputs; k++) {
    if (!ocl_is_value(call->input[k])) shared.in_memory |= (int64_t)1 << k;
  }
  const bool given[] = {call->scalar[0] != NULL, call->scalar[1] != NULL, call->input[1] != NULL,
                        call->input[2] != NULL};
  for (int i = 0; i < 4; i++) shared.given |= (int64_t)given[i] << i;
  return shared;
}

void ocl_pointwise_cases(ocl_text *head, const recipe *recipe, const ocl_dtype *compute) {
  const bool tells = recipe->flags & OCL_BOOL_RESULT;
  ocl_text_add(head, "#define INPUTS %d\n#define D_OUT %s\n%s", OCL_INPUTS_MAX, tells ? "bool" : compute->name,
               tells ? "#define BOOL_RESULT\n" : "");
  for (int k = 0; k < OCL_INPUTS_MAX; k++)
    ocl_text_add(head, "#define D_%d %s\n#define INNER_%d (stride == 1)\n", k, compute->name, k);
  ocl_text_add(head, "#define INNER_OUT (stride == 1)\n#define SMALL\n#define CASES");
  for (size_t i = 0; i < ocl_family_pointwise.count; i++) {
    const ocl_pointwise_recipe *one = recipe_at(i);
    if (is_case(one, recipe, compute) && row_of(one, compute) == (int64_t)i)
      ocl_text_add(head, " case %d: return %s;", (int)i, one->expression);
  }
  ocl_text_add(head, "\n");
}
