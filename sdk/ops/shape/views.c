/* Views, as the host makes them from canonical arguments. Shapes are found by making one of a tensor without memory. */
#include "ops/shape/shape.h"
#include "tensor/view.h"

/* Canonical dims are non-negative, so that gradients need not wrap them again. */
static void wrap(op_call *call, int arg, int32_t rank) {
  int64_t dim = op_int(call, arg);
  if (dim < 0) op_set_int(call, arg, dim + (rank ? rank : 1));
}

graft_status shape_host_alias(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  return tns_alias(op_tensor(call, 0), outs);
}

graft_status shape_host_expand(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  const graft_value *size = &call->args[1];
  return tns_expand(op_tensor(call, 0), (int32_t)size->count, size->as.ints, outs);
}

graft_status shape_host_permute(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  const graft_value *dims = &call->args[1];
  return tns_permute(op_tensor(call, 0), (int32_t)dims->count, dims->as.ints, outs);
}

graft_status shape_host_view(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  const graft_value *size = &call->args[1];
  return tns_view_sizes(op_tensor(call, 0), (int32_t)size->count, size->as.ints, outs);
}

graft_status shape_host_squeeze_dims(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  const graft_value *dims = &call->args[1];
  return tns_squeeze_dims(op_tensor(call, 0), dims->count, dims->as.ints, outs);
}

graft_status shape_host_view_as_real(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  return tns_view_as_real(op_tensor(call, 0), outs);
}

graft_status shape_host_conj(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  return tns_conj(op_tensor(call, 0), outs);
}

graft_status shape_host_real(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  return tns_real(op_tensor(call, 0), outs);
}

graft_status shape_host_imag(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  return tns_imag(op_tensor(call, 0), outs);
}

graft_status shape_host_view_of_dtype(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  return tns_view_of_dtype(op_tensor(call, 0), op_dtype(call, 1), outs);
}

graft_status shape_host_collapse_view(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  return tns_collapse_view(op_tensor(call, 0), op_int(call, 1), op_int(call, 2), outs);
}

graft_status shape_host_split_dim(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  return tns_split_dim(op_tensor(call, 0), op_int(call, 1), op_int(call, 2), outs);
}

graft_status shape_host_broadcast_in_dim(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  const graft_value *shape = &call->args[1];
  const graft_value *dims = &call->args[2];
  return tns_broadcast_in_dim(op_tensor(call, 0), (int32_t)shape->count, shape->as.ints, dims->count, dims->as.ints,
                              outs);
}

graft_status shape_host_as_strided(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  if (call->args[1].count != call->args[2].count)
    return op_error(call, "size has %u items, stride %u; expected as many", call->args[1].count, call->args[2].count);
  if (op_absent(call, 3)) op_set_int(call, 3, op_tensor(call, 0)->offset); /* gradients need to know */
  int64_t offset = op_int(call, 3);
  return tns_as_strided(op_tensor(call, 0), (int32_t)call->args[1].count, call->args[1].as.ints, call->args[2].as.ints,
                        &offset, outs);
}

graft_status shape_host_diagonal(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  graft_status status = tns_diagonal(op_tensor(call, 0), op_int(call, 1), op_int(call, 2), op_int(call, 3), outs);
  wrap(call, 2, op_tensor(call, 0)->ndim);
  wrap(call, 3, op_tensor(call, 0)->ndim);
  return status;
}

graft_status shape_host_select(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  graft_status status = tns_select(op_tensor(call, 0), op_int(call, 1), op_int(call, 2), outs);
  if (status) return status;
  wrap(call, 1, op_tensor(call, 0)->ndim);
  if (op_int(call, 2) < 0) op_set_int(call, 2, op_int(call, 2) + op_tensor(call, 0)->sizes[op_int(call, 1)]);
  return GRAFT_OK;
}

graft_status shape_host_slice(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  int64_t start = op_int(call, 2), end = op_int(call, 3);
  graft_status status = tns_slice(op_tensor(call, 0), op_int(call, 1), op_absent(call, 2) ? NULL : &start,
                                  op_absent(call, 3) ? NULL : &end, op_int(call, 4), outs);
  wrap(call, 1, op_tensor(call, 0)->ndim);
  return status;
}

graft_status shape_host_split_with_sizes(op_call *call, graft_tensor **outs, uint32_t nouts) {
  if (nouts < call->args[1].count)
    return op_error(call, "room for %u outputs was given; expected %u", nouts, call->args[1].count);
  graft_status status =
      tns_split_with_sizes(op_tensor(call, 0), call->args[1].count, call->args[1].as.ints, op_int(call, 2), outs);
  wrap(call, 2, op_tensor(call, 0)->ndim);
  return status;
}

graft_status shape_host_squeeze_dim(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  graft_status status = tns_squeeze_dim(op_tensor(call, 0), op_int(call, 1), outs);
  wrap(call, 1, op_tensor(call, 0)->ndim);
  return status;
}

graft_status shape_host_unsqueeze(op_call *call, graft_tensor **outs, uint32_t nouts) {
  (void)nouts;
  graft_status status = tns_unsqueeze(op_tensor(call, 0), op_int(call, 1), outs);
  wrap(call, 1, op_tensor(call, 0)->ndim + 1);
  return status;
}
