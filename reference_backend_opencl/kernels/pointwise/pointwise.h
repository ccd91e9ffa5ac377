/* Ops whose output element depends on the input elements at its place: what a row of such an op says, and calls for
 * families that come to it in the end. */
#ifndef OCL_POINTWISE_H
#define OCL_POINTWISE_H

#include "runtime/ocl.h"

/* Inputs: of a call that has a slot here; of one that groups alone make of others' slots. */
enum { OCL_INPUTS_MAX = 3, OCL_FUSED_INPUTS_MAX = 5, OCL_SCALARS_MAX = 3 };

/* Flags of a recipe. */
enum {
  OCL_BOOL_RESULT = 0x1,   /* the output is bool; numbers are rounded to the inputs' dtype before they are compared */
  OCL_FLOAT_RESULT = 0x2,  /* integer inputs give f32 */
  OCL_MASK_A = 0x4,        /* the first tensor is a bool mask */
  OCL_MASK_B = 0x8,        /* the second one is */
  OCL_CAST = 0x10,         /* computes in the input's dtype, stores in the output's */
  OCL_SPECIAL = 0x20,      /* with the functions of special.cl */
  OCL_GAMMA = 0x200,       /* and with those of gamma.cl */
  OCL_BESSEL = 0x400,      /* with the functions of bessel.cl */
  OCL_POLYNOMIALS = 0x800, /* with those of polynomials.cl */
  OCL_POWERS = 0x1000,     /* with those of power.cl */
  OCL_LANES = 0x2000,      /* the driver may give a lane what its neighbours' values have it give: never fused */
  OCL_FUNCTION = 0x4000,   /* of functions that take a compiler longer than sums and products do */
  OCL_LOGICAL = 0x40,      /* operands of any dtypes: only whether they are 0 counts */
  OCL_DIVIDES = 0x80,      /* by its last operand or number, which must not be 0 for integers */
  OCL_TWO_RESULTS = 0x100, /* it has a second output */
  /* native_dropout, in groups: b is a number of the stream for each element, in [0, 1); those below x are kept, times y
   */
  OCL_DRAWS = 0x8000
};

/* The expression is OpenCL C over the names of pointwise.cl, where ADD, MUL and so on mean the right thing for floats,
 * integers and complex numbers. In the order of the schema its tensors are a, b, c, its numbers x, y, z; a str, bool or
 * int is MODE, and makes a program of its own; so ops that differ in a number alone have one program with it in y or z.
 */
typedef struct ocl_pointwise_recipe {
  uint64_t dtypes; /* what it computes with */
  uint32_t flags;
  const char *expression, *second; /* second: of the second output, or NULL */
  const char *complex;             /* of complex numbers, with the functions of complex.cl; NULL: the same */
  const double *numbers;           /* what x, y, z are where the op has none; NULL: 1 */
} ocl_pointwise_recipe;

/* The operands of a call. */
typedef struct ocl_operands {
  uint32_t op_id; /* for reports */
  const graft_tensor_desc *out, *second, *input[OCL_FUSED_INPUTS_MAX];
  const graft_scalar *scalar[OCL_SCALARS_MAX];
  int inputs, scalars;
  uint32_t mode;
} ocl_operands;

graft_status ocl_pointwise(const graft_exec *exec, const ocl_pointwise_recipe *recipe, const ocl_operands *operands);

/* ---- What eager and fused calls have in common ---- */

/* An operand that is a number, or absent: no memory stands behind it. */
static inline bool ocl_is_value(const graft_tensor_desc *desc) {
  return !desc || desc->flags & GRAFT_TENSOR_HOST_VALUE;
}
/* Which operand is a mask; -1: none. */
static inline int ocl_mask_of(const ocl_pointwise_recipe *recipe) {
  return recipe->flags & OCL_MASK_A ? 0 : recipe->flags & OCL_MASK_B ? 1 : -1;
}
/* Reads the arguments of a call in the order of the schema; `made` holds what a call gives as floats. */
void ocl_pointwise_read(const ocl_call *call, ocl_operands *operands, graft_scalar made[OCL_SCALARS_MAX]);
/* The dtype that is computed in, or NULL where the call is not served. */
const ocl_dtype *ocl_pointwise_dtype(const graft_device *device, const ocl_operands *call,
                                     const ocl_pointwise_recipe *recipe);
/* What step.cl asks of the head. */
void ocl_pointwise_head(ocl_text *head, const graft_device *device, const ocl_operands *call,
                        const ocl_pointwise_recipe *recipe, const ocl_dtype *compute);

/* ---- Programs that many ops share (shared.c) ---- */

/* The case of a switch that a call is, as the kernel takes it. */
typedef struct ocl_pointwise_shared {
  bool shares; /* else the call has a program of its own */
  int64_t op, in_memory, given, mode;
} ocl_pointwise_shared;
ocl_pointwise_shared ocl_pointwise_share(const ocl_operands *call, const ocl_pointwise_recipe *recipe,
                                         const ocl_dtype *compute);
/* What pointwise.cl asks of the head there, beside types and rank. */
void ocl_pointwise_cases(ocl_text *head, const ocl_pointwise_recipe *recipe, const ocl_dtype *compute);

/* A number of a call: an operand that is one, or a scalar; where both are absent, `absent`. */
typedef struct ocl_given_number {
  uint32_t op_id;
  const graft_tensor_desc *desc;
  const graft_scalar *scalar;
  double absent;
  bool is_divisor;
} ocl_given_number;
/* As the kernel takes it. */
typedef struct ocl_number_argument {
  size_t bytes;
  ocl_value value;
} ocl_number_argument;
graft_status ocl_pointwise_number(const ocl_plugin *plugin, const ocl_dtype *compute,
                                  const ocl_pointwise_recipe *recipe, const ocl_given_number *given,
                                  ocl_number_argument *out);
/* That of x, y or z: number 0, 1 or 2. */
ocl_given_number ocl_pointwise_scalar(const ocl_operands *call, const ocl_pointwise_recipe *recipe, int k);

/* A conversion between two dtypes (kernels/shape/copy.c). */
extern const ocl_pointwise_recipe ocl_cast_recipe;

/* The engine of rows whose recipe is an ocl_pointwise_recipe. */
graft_status ocl_pointwise_engine(const ocl_call *call);

#endif
