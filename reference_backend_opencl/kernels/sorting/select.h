/* The k-th smallest element of a large tensor on a CPU, without sorting it: see select.cl. */
#ifndef OCL_SELECT_H
#define OCL_SELECT_H

#include "runtime/ocl.h"

typedef struct ocl_selection {
  const graft_tensor_desc *in, *out;
  bool passes_nan; /* the median of what is no NaN; else a NaN where there is one */
} ocl_selection;

bool ocl_select_serves(const graft_device *device, const graft_tensor_desc *in);
graft_status ocl_select_run(const graft_exec *exec, const ocl_selection *call);

#endif
