/* What the files of the family reduction share. */
#ifndef GRAFT_SDK_REDUCTION_H
#define GRAFT_SDK_REDUCTION_H

#include "ops/core/op.h"

typedef enum red_kind {
  RED_SUM,    /* integers and bool as i64; or the dtype argument */
  RED_MEAN,   /* as it is, or the dtype argument; refuses integers */
  RED_SAME,   /* as it is; refuses complex */
  RED_VAR,    /* floating or complex; the result is real */
  RED_NORM,   /* likewise, with a dtype argument that does not narrow */
  RED_ANY,    /* bool, of u8 u8 */
  RED_INDEX,  /* i64; refuses complex and bool */
  RED_COUNT,  /* i64, of anything */
  RED_NANSUM, /* as RED_SUM; refuses complex */
  RED_FLOAT,  /* integers and bool as the default float */
  RED_BITS    /* integers, as they are, or the dtype argument */
} red_kind;

enum { RED_LIST = 1, RED_NONEMPTY = 2, RED_LITERAL = 4 }; /* LITERAL: an empty list of dims reduces none */

/* The row of an op: its kind, and where arguments stand, -1 for none. */
typedef struct red_row {
  red_kind kind;
  uint32_t flags;
  int8_t dims; /* a list of dims, or one; -1: all dims are reduced */
  int8_t keepdim, dtype;
  int8_t order; /* of a norm */
} red_row;

/* The reduced dims, and whether they stay with size 1, of a canonical call. */
uint32_t red_mask(uint32_t op_id, const graft_value *args, int32_t ndim);
bool red_keepdim(uint32_t op_id, const graft_value *args);
/* How many elements are reduced to one. */
int64_t red_count(const graft_tensor *self, uint32_t mask);

void red_vjp_sum(op_vjp *v);
void red_vjp_mean(op_vjp *v);
void red_vjp_extremum(op_vjp *v); /* amax, amin, max, min, aminmax */
void red_vjp_pick(op_vjp *v);     /* max.dim, min.dim */
void red_vjp_var(op_vjp *v);      /* var, std, and each with the mean */
void red_vjp_prod(op_vjp *v);
void red_vjp_norm(op_vjp *v);
void red_vjp_nansum(op_vjp *v);
void red_vjp_logsumexp(op_vjp *v);

#endif
