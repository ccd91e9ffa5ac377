/* Groups of calls that run as one kernel: extension "graft.graph". Pointwise calls, and with them reductions of what
 * they give. groups.c says which calls go together, fused_read.c what a call is and which elements a tensor names,
 * fused_plan.c when each value is made, fused_text.c and fused_kernel.c write the kernel, from the expressions and
 * formulas of the eager ones, and fused.c compiles and runs it. */
#ifndef OCL_FUSED_H
#define OCL_FUSED_H

#include "kernels/convolution/convolution.h"
#include "kernels/matmul/matmul.h"
#include "kernels/normalization/normalization.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/reduction/reduction.h"

/* The most that a group has: what is larger is cut. */
enum {
  OCL_FUSED_OPS = 32,
  OCL_FUSED_TENSORS = OCL_OPERANDS_MAX,
  OCL_FUSED_NUMBERS = 24,
  OCL_FUSED_STAGES = 8, /* reductions; a variance is two */
  OCL_FUSED_SLOTS = 4,  /* values that are kept from one phase to another */
  OCL_FUSED_VALUES = OCL_FUSED_TENSORS + 2 * OCL_FUSED_OPS
};

/* ---- What a group runs over ---- */

/* How a GPU's work-items share lines, as the eager kernels of all reductions at hand do (ocl_reduction_layout). */
typedef struct ocl_fused_team {
  int64_t vec, at_once, width, depth;
  int64_t splits; /* more than 1: the kernel leaves partial results, and nothing in it needs the reductions' own */
} ocl_fused_team;

/* The elements of its pointwise calls. With reductions, either the dimensions that these take away are the last ones,
 * and each place of the others is a row; or they are the first ones, and each place of the others is a column. */
typedef struct ocl_fused_space {
  int ndim;
  int64_t shape[OCL_DIMS_MAX];
  uint32_t reduced; /* bit d: dimension d; none: no reductions */
  bool rows;
  ocl_fused_team team; /* of a GPU, with reductions */
  bool product; /* batches, rows and columns of a matrix product that comes first; or images, channels and places; or
                   of a norm's gradient one batch, rows and their elements */
} ocl_fused_space;

/* Which elements of its storage a tensor names, at each place of a space. */
typedef struct ocl_fused_view {
  int64_t strides[OCL_DIMS_MAX]; /* 0 along a dimension of size 1 */
  bool whole;                    /* has all dimensions; else only those that reductions leave, or these and ones */
} ocl_fused_view;

/* False: not of that shape; or, with reductions, its rows or columns are not one run of elements. */
bool ocl_fused_see(const ocl_fused_space *space, const graft_tensor_desc *desc, ocl_fused_view *view);
/* Whether both name the same elements, each at the same place. */
bool ocl_fused_same(const ocl_fused_space *space, const graft_tensor_desc *a, const graft_tensor_desc *b);
/* The stride of the last dimensions together, those that make a row or a column number; and of the first ones. */
int64_t ocl_fused_inner(const ocl_fused_space *space, const ocl_fused_view *view);
int64_t ocl_fused_outer(const ocl_fused_space *space, const ocl_fused_view *view);
/* The space of both together; false: there is none. */
bool ocl_fused_merge(const ocl_fused_space *a, const ocl_fused_space *b, ocl_fused_space *both);

/* ---- A call ---- */

enum { OCL_FUSED_RESULTS = 2 };

/* As its slot would see it. */
typedef struct ocl_fused_op {
  ocl_fused_space space;
  int numbers; /* that it takes */
  bool draws;  /* its second operand is `drawn`, in no memory: a number of the stream for each element */
  graft_tensor_desc drawn;
  int64_t drawn_strides[OCL_DIMS_MAX];
  ocl_number kept_below, scale; /* x and y of one that draws */
  bool multiplies;              /* a matrix product or a convolution, which calls may follow in its kernel; or the
                                   gradient of a layer norm, which they may follow likewise */
  ocl_product_call product;     /* of a convolution: input, weight, bias and result */
  const graft_args_convolution *convolution; /* else NULL */
  ocl_norm_gradient_call gradient;           /* of a layer norm; without a result: none */
  bool normalizes; /* by statistics that are given: its operands behind the first are `spread` over the places of
                      channels */
  const graft_tensor_desc *of_channels[OCL_NORM_OF_CHANNELS];
  graft_tensor_desc spread[OCL_NORM_OF_CHANNELS];
  int64_t spread_strides[OCL_DIMS_MAX];
  /* A reduction: */
  bool reduces;
  int results;
  ocl_reduction_pass pass[OCL_FUSED_RESULTS];
  const graft_tensor_desc *reduced, *result[OCL_FUSED_RESULTS];
  /* Any other: */
  const ocl_pointwise_recipe *recipe;
  const ocl_dtype *compute;
  ocl_operands operands;
  graft_scalar made[OCL_SCALARS_MAX];
  bool moves;                             /* a conversion to its own dtype: its result is its operand */
  bool cheap;                             /* made again sooner than read again */
  int value, second_value;                /* the results' numbers */
  int input_value[OCL_FUSED_INPUTS_MAX];  /* where an operand is a tensor */
  int input_number[OCL_FUSED_INPUTS_MAX]; /* where it is none */
  int scalar_number[OCL_SCALARS_MAX];     /* -1: the expression does not ask */
} ocl_fused_op;

/* False: the call is none that can be fused. */
bool ocl_fused_read(const graft_exec *exec, const graft_graph_node *node, ocl_fused_op *op);
/* Whether the expression asks for x, y or z: number 0, 1 or 2. */
bool ocl_fused_asks(const ocl_fused_op *op, int number);
/* Whether a kernel has a function for it. */
static inline bool ocl_fused_computes(const ocl_fused_op *op) {
  return !op->moves && !op->reduces && !op->multiplies;
}

/* ---- A kernel ---- */

/* A tensor in memory, and the value that it has when it is read or is written. */
typedef struct ocl_fused_tensor {
  const graft_tensor_desc *desc;
  ocl_fused_view view;
  int value;
  bool drawn; /* no memory: the elements' places are numbers of a stream, */
  int stream; /* whose seed is this number of the kernel, and whose first block is the next */
} ocl_fused_tensor;

/* A row is gone through again in each phase, since what a reduction gives is known when its own is over. */
typedef struct ocl_fused_value {
  const ocl_dtype *dtype;
  bool kept;     /* one for a row, not for each of its elements */
  int op, input; /* what gives it; -1: not that */
  int phase;     /* the first that it can be had in */
  int slot;      /* where it is kept for later phases; -1: nowhere */
} ocl_fused_value;

/* One reduction by one formula: an op, or what finds s for the next stage. */
typedef struct ocl_fused_stage {
  ocl_reduction_pass pass;
  int source, value; /* value -1: an s */
  int shift;         /* the stage that finds s; -1: none */
  int number;        /* x */
  int phase;
} ocl_fused_stage;

enum { OCL_FUSED_PHASES = OCL_FUSED_STAGES + 1 };

/* What the text of a kernel is made of. Operands of its geometry: outputs, then inputs. */
typedef struct ocl_fused_kernel {
  const graft_device *device;
  ocl_fused_space space;
  const ocl_fused_op *ops;
  int nops, nvalues, nnumbers, noutputs, ninputs, nstages, nslots, nphases;
  ocl_fused_tensor outputs[OCL_FUSED_TENSORS], inputs[OCL_FUSED_TENSORS];
  ocl_fused_value values[OCL_FUSED_VALUES];
  ocl_fused_stage stages[OCL_FUSED_STAGES];
  int slots[OCL_FUSED_SLOTS];                      /* their values */
  int output_phase[OCL_FUSED_TENSORS];             /* of a whole output: when it is written */
  bool runs[OCL_FUSED_PHASES][OCL_FUSED_OPS];      /* which calls with whole results */
  bool needed[OCL_FUSED_PHASES][OCL_FUSED_VALUES]; /* which whole values */
  ocl_geometry geometry;                           /* of rows: without the elements of a row */
  int64_t inner[OCL_FUSED_TENSORS];                /* strides of these; or from column to column */
  size_t local;
  int product_value, main_output; /* behind a product: what it gives, and the output that its kernel writes */
  int held; /* of a GPU: so many steps of a line are all that a work-item has, and it keeps their values; 0: it does not
             */
} ocl_fused_kernel;

/* Operands are outputs, then inputs. */
static inline const ocl_fused_tensor *ocl_fused_operand(const ocl_fused_kernel *k, int operand) {
  return operand < k->noutputs ? &k->outputs[operand] : &k->inputs[operand - k->noutputs];
}

/* Whether work-items share lines. */
static inline bool ocl_fused_has_teams(const ocl_fused_kernel *kernel) {
  return kernel->space.reduced && !kernel->device->is_cpu;
}
/* Lines, and the elements of each. */
int64_t ocl_fused_lines(const ocl_fused_space *space);
int64_t ocl_fused_length(const ocl_fused_space *space);
/* Phases, and what is done in each. False: too many, or too much to keep. */
bool ocl_fused_plan(ocl_fused_kernel *kernel);
void ocl_fused_write(ocl_text *text, const ocl_fused_kernel *kernel);
/* The kernel itself, for the end of the last section. */
void ocl_fused_write_kernel(ocl_text *text, const ocl_fused_kernel *kernel);
void ocl_fused_write_teams(ocl_text *text, const ocl_fused_kernel *kernel); /* behind its parameters, for a GPU */
/* What stands before a matrix product that calls follow; the product's own text is of no section of it. */
void ocl_fused_write_before_product(ocl_text *text, const ocl_fused_kernel *kernel);
void ocl_fused_write_follower(ocl_text *text, const ocl_fused_kernel *kernel);
void ocl_fused_write_parameters_of_follower(ocl_text *text, const ocl_fused_kernel *kernel);
/* Functions op_0, op_1, ... of pointwise calls, for a text whose own head and common.cl come behind. */
void ocl_fused_write_functions(ocl_text *text, const graft_device *device, size_t local, const ocl_fused_op *ops,
                               int nops);
/* How many steps of a line a work-item can hold; 0: it has more. */
int ocl_fused_held_steps(const ocl_fused_kernel *kernel);
/* What fused_teams.cl takes; returns how many work-items that are. */
int64_t ocl_fused_lay_teams(const ocl_fused_kernel *kernel, int64_t *numbers, int *count, uint64_t *scratch_bytes);

/* The functions of ocl_graph_api. */
graft_status ocl_fused_compile(const graft_exec *exec, const graft_graph_group *group, graft_graph_compiled *compiled);
graft_status ocl_fused_run(const graft_exec *exec, graft_executable *executable, const graft_graph_run_args *args);
graft_status ocl_fused_destroy(graft_executable *executable);

#endif
