/* Groups of pointwise calls that run as one kernel: extension "graft.graph". groups.c says which calls go together,
 * fused_text.c writes the kernel, from the expressions of the eager ones, and fused.c compiles and runs it. */
#ifndef OCL_FUSED_H
#define OCL_FUSED_H

#include "kernels/pointwise/pointwise.h"

/* The most that a group has: what is larger is cut. */
enum { OCL_FUSED_OPS = 32, OCL_FUSED_TENSORS = OCL_OPERANDS_MAX, OCL_FUSED_NUMBERS = 24 };

/* A call, as its slot would see it. */
typedef struct ocl_fused_op {
  const ocl_pointwise_recipe *recipe;
  const ocl_dtype *compute;
  ocl_operands operands;
  graft_scalar made[OCL_SCALARS_MAX];
  bool moves;                         /* a conversion to its own dtype: its result is its operand */
  int value, second_value;            /* the results' numbers */
  int input_value[OCL_INPUTS_MAX];    /* where an operand is a tensor */
  int input_number[OCL_INPUTS_MAX];   /* where it is none */
  int scalar_number[OCL_SCALARS_MAX]; /* -1: the expression does not ask */
} ocl_fused_op;

/* False: the call is none that can be fused. */
bool ocl_fused_read(const graft_exec *exec, const graft_graph_node *node, ocl_fused_op *op);
/* Whether the expression asks for x, y or z: number 0, 1 or 2. */
bool ocl_fused_asks(const ocl_fused_op *op, int number);

/* A tensor in memory, and the value that it has when it is read or is written. */
typedef struct ocl_fused_tensor {
  const graft_tensor_desc *desc;
  int value;
} ocl_fused_tensor;

/* What the text of a kernel is made of. Operands of its geometry: outputs, then inputs. */
typedef struct ocl_fused_kernel {
  const graft_device *device;
  const ocl_fused_op *ops;
  int nops, nvalues, nnumbers, noutputs, ninputs;
  ocl_fused_tensor outputs[OCL_FUSED_TENSORS], inputs[OCL_FUSED_TENSORS];
  const ocl_dtype *value_dtypes[OCL_FUSED_TENSORS + 2 * OCL_FUSED_OPS];
  ocl_geometry geometry;
  size_t local;
} ocl_fused_kernel;

void ocl_fused_write(ocl_text *text, const ocl_fused_kernel *kernel);

/* The functions of ocl_graph_api. */
graft_status ocl_fused_compile(const graft_exec *exec, const graft_graph_group *group, graft_graph_compiled *compiled);
graft_status ocl_fused_run(const graft_exec *exec, graft_executable *executable, const graft_graph_run_args *args);
graft_status ocl_fused_destroy(graft_executable *executable);

#endif
