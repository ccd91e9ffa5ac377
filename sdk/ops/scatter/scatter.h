/* What the files of the family scatter share. */
#ifndef GRAFT_SDK_OPS_SCATTER_H
#define GRAFT_SDK_OPS_SCATTER_H

#include "ops/indexing/indexing.h"

/* scatter.src, scatter_add, scatter_reduce: the rule of self, dim, index and src. */
graft_status sct_infer(op_call *call);
/* A gradient in index's shape, in src's: where src is larger than index, the rest of it went nowhere. */
graft_tensor *sct_padded(op_vjp *v, graft_tensor *g);
/* Their gradient for src: what index names of g, padded. */
graft_tensor *sct_to_src(op_vjp *v, graft_tensor *g);

#endif
