/* What the files of the reduction family share. */
#ifndef OCL_REDUCTION_H
#define OCL_REDUCTION_H

#include "runtime/ocl.h"

/* What accumulation is done in: f32 for halves and f32, f64 for f64, i64 for whole numbers; or the input's own; or f64
 * wherever there is one, since squares and powers leave f32's range; or what counts elements of the input. */
typedef enum ocl_accumulation { OCL_AS_SUM, OCL_AS_INPUT, OCL_WIDEST, OCL_COUNTS } ocl_accumulation;

/* OpenCL C over v, a and b; x is the number of elements reduced; reduction.cl explains s. Where a formula
 * has s, `first` is the one that finds it, and may have one of its own. */
typedef struct ocl_reduction {
  const char *init, *map, *combine, *finish;
  ocl_accumulation in;
  const struct ocl_reduction *first;
  const struct ocl_reduction *of_truths; /* what it is where the result is bool; NULL: that is not served */
  bool of_one;  /* of the first element alone; as an s it is left out, and 0, where sums of equal elements are exact */
  bool asks;    /* whether an element is 0, whatever its dtype */
  bool takes_y; /* the order of a norm, as Y */
} ocl_reduction;

/* What an op is made of. A norm is told by its order which formula it is. */
typedef struct ocl_reduction_recipe {
  const ocl_reduction *out, *second; /* of a second output, or NULL */
  bool empty_is_none;                /* an empty list of dims: nothing is reduced; elsewhere all is */
  bool norm;
} ocl_reduction_recipe;

/* The formula of a norm of this order. */
const ocl_reduction *ocl_reduction_of_norm(double order);

/* Engines. Recipes are an ocl_reduction_recipe, and a bool: whether the largest is looked for. */
extern const char *const ocl_reduction_reads[], *const ocl_extremum_reads[];
graft_status ocl_reduce(const ocl_call *call);
graft_status ocl_find_extremum(const ocl_call *call);

#endif
