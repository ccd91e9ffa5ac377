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

/* index_add, index_copy, index_reduce: the rule of self, dim, index (of i32, too, where it adds) and source. */
graft_status sct_infer_along(op_call *call, bool adds);
/* index, expanded to the shape that self has with as many slices along dim as there are indices. */
graft_tensor *sct_spread_index(fx *s, const graft_tensor *self, int64_t dim, graft_tensor *index);

#endif
