/* What the files of the loss family share. */
#ifndef OCL_LOSS_H
#define OCL_LOSS_H

#include "runtime/ocl.h"

/* The values of the argument `reduction`. */
enum { OCL_LOSS_EACH, OCL_LOSS_MEAN, OCL_LOSS_SUM };

/* A loss of two tensors of one shape, in OpenCL C over x (self), y (target), z (beta or delta); D_SIZE is |x - y|. The
 * slope is by x. */
typedef struct ocl_pair_loss {
  const char *loss, *slope;
  double factor; /* of the slope */
  bool checked;  /* x is a probability */
} ocl_pair_loss;

/* The engine of rows whose recipe is an ocl_pair_loss; the gradient has an argument grad_output. */
extern const char *const ocl_pair_reads[];
graft_status ocl_pair(const ocl_call *call);

#endif
