/* Ops that the host does alone: views, metadata and allocation. A row gives an op the function that makes its results
 * from canonical arguments; shapes are found by running it on a tensor without memory. */
#include "dispatch/plan.h"
#include "tensor/view.h"

typedef graft_status (*host_fn)(op_call *call, graft_tensor **outs, uint32_t nouts);

#define SELF          op_tensor(call, 0)
#define INTS(i)       call->args[i].as.ints
#define COUNT(i)      call->args[i].count
#define HOST_OP(name) static graft_status host_##name(op_call *call, graft_tensor **outs, uint32_t nouts)
#define VIEW(name, expression) \
  HOST_OP(name) {              \
    (void)nouts;               \
    return expression;         \
  }

VIEW(alias, tns_alias(SELF, outs))
VIEW(expand, tns_expand(SELF, (int32_t)COUNT(1), INTS(1), outs))
VIEW(permute, tns_permute(SELF, (int32_t)COUNT(1), INTS(1), outs))
VIEW(view, tns_view_sizes(SELF, (int32_t)COUNT(1), INTS(1), outs))
VIEW(squeeze_dims, tns_squeeze_dims(SELF, COUNT(1), INTS(1), outs))
VIEW(view_as_real, tns_view_as_real(SELF, outs))
VIEW(conj, tns_conj(SELF, outs))
VIEW(real, tns_real(SELF, outs))
VIEW(imag, tns_imag(SELF, outs))
VIEW(view_of_dtype, tns_view_of_dtype(SELF, op_dtype(call, 1), outs))
VIEW(collapse_view, tns_collapse_view(SELF, op_int(call, 1), op_int(call, 2), outs))
VIEW(split_dim, tns_split_dim(SELF, op_int(call, 1), op_int(call, 2), outs))
VIEW(broadcast_in_dim, tns_broadcast_in_dim(SELF, (int32_t)COUNT(1), INTS(1), COUNT(2), INTS(2), outs))

/* Canonical dims are non-negative, so that gradients need not wrap them again. */
static void wrap(op_call *call, int arg, int32_t rank) {
  int64_t dim = op_int(call, arg);
  if (dim < 0) op_set_int(call, arg, dim + (rank ? rank : 1));
}

HOST_OP(as_strided) {
  (void)nouts;
  if (COUNT(1) != COUNT(2)) return op_error(call, "size has %u items, stride %u; expected as many", COUNT(1), COUNT(2));
  if (op_absent(call, 3)) op_set_int(call, 3, SELF->offset); /* gradients need to know */
  int64_t offset = op_int(call, 3);
  return tns_as_strided(SELF, (int32_t)COUNT(1), INTS(1), INTS(2), &offset, outs);
}

HOST_OP(diagonal) {
  (void)nouts;
  graft_status status = tns_diagonal(SELF, op_int(call, 1), op_int(call, 2), op_int(call, 3), outs);
  wrap(call, 2, SELF->ndim);
  wrap(call, 3, SELF->ndim);
  return status;
}

HOST_OP(select) {
  (void)nouts;
  graft_status status = tns_select(SELF, op_int(call, 1), op_int(call, 2), outs);
  if (status) return status;
  wrap(call, 1, SELF->ndim);
  if (op_int(call, 2) < 0) op_set_int(call, 2, op_int(call, 2) + SELF->sizes[op_int(call, 1)]);
  return GRAFT_OK;
}

HOST_OP(slice) {
  (void)nouts;
  int64_t start = op_int(call, 2), end = op_int(call, 3);
  graft_status status = tns_slice(SELF, op_int(call, 1), op_absent(call, 2) ? NULL : &start,
                                  op_absent(call, 3) ? NULL : &end, op_int(call, 4), outs);
  wrap(call, 1, SELF->ndim);
  return status;
}

HOST_OP(split_with_sizes) {
  if (nouts < COUNT(1)) return op_error(call, "room for %u outputs was given; expected %u", nouts, COUNT(1));
  graft_status status = tns_split_with_sizes(SELF, COUNT(1), INTS(1), op_int(call, 2), outs);
  wrap(call, 2, SELF->ndim);
  return status;
}

HOST_OP(squeeze_dim) {
  (void)nouts;
  graft_status status = tns_squeeze_dim(SELF, op_int(call, 1), outs);
  wrap(call, 1, SELF->ndim);
  return status;
}

HOST_OP(unsqueeze) {
  (void)nouts;
  graft_status status = tns_unsqueeze(SELF, op_int(call, 1), outs);
  wrap(call, 1, SELF->ndim + 1);
  return status;
}

HOST_OP(empty) {
  (void)nouts;
  graft_dtype dtype = op_dtype(call, 1);
  graft_meta meta = {.ndim = 0};
  int64_t format = op_absent(call, 5) ? GRAFT_FORMAT_CONTIGUOUS : op_int(call, 5);
  uint32_t rank = format == GRAFT_FORMAT_CHANNELS_LAST ? 4 : format == GRAFT_FORMAT_CHANNELS_LAST_3D ? 5 : COUNT(0);
  if (format == GRAFT_FORMAT_PRESERVE)
    return op_error(call, "there is no tensor whose memory format could be preserved");
  graft_status status = op_check_sizes(call, 0);
  if (status) return status;
  if (rank != COUNT(0)) return op_error(call, "that memory format is for rank %u; size has %u items", rank, COUNT(0));
  op_call result = *call;
  op_out_format(&result, 0, dtype ? dtype : dt_default(), (int32_t)COUNT(0), INTS(0), (graft_memory_format)format);
  meta = result.out[0];
  return graft_tensor_empty_strided(call->device, meta.dtype, meta.ndim, meta.sizes, meta.strides, outs);
}

HOST_OP(empty_strided) {
  (void)nouts;
  graft_dtype dtype = op_dtype(call, 2);
  if (COUNT(0) != COUNT(1)) return op_error(call, "size has %u items, stride %u; expected as many", COUNT(0), COUNT(1));
  return graft_tensor_empty_strided(call->device, dtype ? dtype : dt_default(), (int32_t)COUNT(0), INTS(0), INTS(1),
                                    outs);
}

static const struct host_row {
  uint32_t op_id;
  host_fn run;
} host_rows[] = {
    {GRAFT_OP_ALIAS, host_alias},
    {GRAFT_OP_AS_STRIDED, host_as_strided},
    {GRAFT_OP_DIAGONAL, host_diagonal},
    {GRAFT_OP_EMPTY_MEMORY_FORMAT, host_empty},
    {GRAFT_OP_EMPTY_STRIDED, host_empty_strided},
    {GRAFT_OP_EXPAND, host_expand},
    {GRAFT_OP_PERMUTE, host_permute},
    {GRAFT_OP_SELECT_INT, host_select},
    {GRAFT_OP_SLICE_TENSOR, host_slice},
    {GRAFT_OP_SPLIT_WITH_SIZES, host_split_with_sizes},
    {GRAFT_OP_SQUEEZE_DIM, host_squeeze_dim},
    {GRAFT_OP_SQUEEZE_DIMS, host_squeeze_dims},
    {GRAFT_OP_UNSQUEEZE, host_unsqueeze},
    {GRAFT_OP_VIEW, host_view},
    {GRAFT_OP_VIEW_AS_REAL, host_view_as_real},
    {GRAFT_OP_PRIMS_CONJ, host_conj},
    {GRAFT_OP_PRIMS_REAL, host_real},
    {GRAFT_OP_PRIMS_IMAG, host_imag},
    {GRAFT_OP_PRIMS_BROADCAST_IN_DIM, host_broadcast_in_dim},
    {GRAFT_OP_PRIMS_COLLAPSE_VIEW, host_collapse_view},
    {GRAFT_OP_PRIMS_SPLIT_DIM, host_split_dim},
    {GRAFT_OP_PRIMS_VIEW_OF_DTYPE, host_view_of_dtype},
};

static const struct host_row *row_of(uint32_t op_id) {
  for (size_t i = 0; i < sizeof host_rows / sizeof *host_rows; i++) {
    if (host_rows[i].op_id == op_id) return &host_rows[i];
  }
  return NULL;
}

bool dsp_is_host_op(uint32_t op_id) {
  return row_of(op_id) != NULL;
}

graft_status dsp_run_host(const op_schema *schema, op_call *call, graft_tensor **outs, uint32_t nouts) {
  return row_of(schema->id)->run(call, outs, nouts);
}

graft_status dsp_infer_host(const op_schema *schema, const graft_value *args, uint32_t nargs, graft_meta *metas,
                            uint32_t capacity, uint32_t *count) {
  op_call call = {.def = op_def_of(schema->id), .device = graft_device_reference()};
  graft_status status = dsp_complete(&call, schema, args, nargs);
  if (status) return status;
  uint32_t n = schema->rets[0].kind == OPK_TENSORS ? call.args[1].count : 1;
  graft_tensor *outs[64] = {NULL};
  if (n > 64) return op_error(&call, "%u outputs; shape inference takes 64 at most", n);
  status = dsp_run_host(schema, &call, outs, n);
  if (status) return status;
  for (uint32_t i = 0; i < n; i++) {
    graft_meta meta = {.dtype = outs[i]->dtype, .ndim = outs[i]->ndim};
    for (int32_t d = 0; d < meta.ndim; d++) {
      meta.sizes[d] = outs[i]->sizes[d];
      meta.strides[d] = outs[i]->strides[d];
    }
    if (i < capacity) metas[i] = meta;
    graft_tensor_release(outs[i]);
  }
  *count = n;
  return GRAFT_OK;
}
