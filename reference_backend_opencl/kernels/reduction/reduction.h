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
  const struct ocl_reduction *alone;     /* what it is where it has an s that is left out (of_one), or NULL */
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

/* ---- A call, and what eager and fused kernels make of it ---- */

typedef struct ocl_reduction_call {
  const graft_tensor_desc *in, *out;
  uint32_t reduced; /* bit d: dimension d of `in` */
  bool keepdim;
  const ocl_reduction *formula;
  double y;                       /* of the formula: the order of a norm that has no formula of its own, else 0 */
  double correction;              /* of a variance: how many elements do not count */
  const graft_tensor_desc *other; /* a second output, or NULL: by the formula `second` */
  const ocl_reduction *second;
  uint64_t inputs, outputs; /* dtypes that are served */
} ocl_reduction_call;

/* Fewer outputs side by side are made row by row. */
enum { COLUMNS_LEAST = 4 };

/* A CPU's columns are added up in segments of so many elements, one after the other: see reduction.cl. */
enum { OCL_SEGMENT = 64 };

/* One pass over the elements. */
typedef struct ocl_reduction_pass {
  ocl_geometry kept;    /* operands: out, in */
  ocl_geometry reduced; /* operand: in */
  const ocl_dtype *out, *in, *accumulator;
  ocl_reduction formula;
  double x, y; /* as the formula has them */
  bool rows, shifted;
  bool finds_first;           /* it is shifted, and finds s itself */
  const ocl_dtype *first_out; /* and that is a result, too; NULL: it is not */
  int64_t splits, split_stride;
  bool of_subtotals; /* of OCL_SEGMENT elements each, which another kernel has made */
} ocl_reduction_pass;

/* False: it lacks a result, or a formula. */
bool ocl_reduction_read(const ocl_call *call, ocl_reduction_call *out);
/* The pass that makes an output of the call: `to` by `formula`; its splits are left open. UNIMPLEMENTED: none does. */
graft_status ocl_reduction_plan(const graft_device *device, const ocl_reduction_call *call, const graft_tensor_desc *to,
                                const ocl_reduction *formula, ocl_reduction_pass *pass);
/* The one before it that finds s for each of its outputs, in the order of its kept dimensions; where it is `shifted`.
 */
ocl_reduction_pass ocl_reduction_shift(const graft_device *device, const ocl_reduction_pass *shifted);
/* How many work-items of a CPU should share an output: as many as keep it busy, if each has enough to do. */
int64_t ocl_reduction_splits(const graft_device *device, const ocl_reduction_pass *pass);
/* What reduction/formula.cl asks of the head, for an input of so many lanes. */
void ocl_reduction_head(ocl_text *head, const ocl_reduction_pass *pass, unsigned vec, size_t local);
/* Of a small pass the ranks do not count: one program serves all of them. Whether it is. */
bool ocl_reduction_widen_if_small(ocl_reduction_pass *pass);
/* What a pass that makes `only` in so many splits leaves to a second one, in rows of partial results: that second one.
 */
ocl_reduction_pass ocl_reduction_last(const graft_device *device, const ocl_reduction_pass *only, int64_t splits);

/* Of a pass by columns, not split, whose formula sees neither s nor x, and of which another kernel makes the segments,
 * a row of subtotals for each, in the accumulator and the order of its kept dimensions: the kernel that adds these up
 * as it would, and its launch. */
graft_status ocl_subtotals_prepare(ocl_kernel *kernel, graft_device *device, const ocl_reduction_pass *only);
graft_status ocl_subtotals_launch(ocl_kernel *kernel, graft_stream *stream, const ocl_dtype *accumulator, ocl_place to,
                                  ocl_place subtotals);

/* How a pass is laid over a GPU's teams of work-items: see teams.cl. Who has these numbers alike, and combines elements
 * as teams.cl does, has its bits. */
typedef struct ocl_reduction_layout {
  int64_t vec, at_once, width, depth, steps, rest, units_per_row, units;
} ocl_reduction_layout;
ocl_reduction_layout ocl_reduction_lay_team(const ocl_reduction_pass *pass);
/* The same two for teams: splits, and the kernel of a pass. */
int64_t ocl_reduction_team_splits(const graft_device *device, const ocl_reduction_pass *pass);
graft_status ocl_reduction_prepare_teams(ocl_kernel *kernel, graft_device *device, const ocl_reduction_pass *pass);
/* Whether a kernel of teams may find s for itself: by a formula that differs in `map` and `finish` alone, where its
 * steps are not split. */
bool ocl_reduction_team_finds_first(const graft_device *device, const ocl_reduction_pass *pass);
ocl_number ocl_reduction_number(const ocl_reduction_pass *pass); /* x */

/* Engines. Recipes are an ocl_reduction_recipe, and a bool: whether the largest is looked for. */
extern const char *const ocl_reduction_reads[], *const ocl_extremum_reads[];
graft_status ocl_reduce(const ocl_call *call);
graft_status ocl_find_extremum(const ocl_call *call);

#endif
