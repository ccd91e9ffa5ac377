/* Factories: tensors made from numbers. */
#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"

static graft_dtype dtype_of_number(const graft_scalar *number) {
  switch (dt_category_of(number->dtype)) {
    case DT_BOOL: return GRAFT_BOOL;
    case DT_INTEGER: return GRAFT_I64;
    case DT_FLOAT: return DT_DEFAULT;
    default: return dt_complex(DT_DEFAULT);
  }
}

/* full(size, fill_value, dtype, layout, device, pin_memory) */
static graft_status infer_full(op_call *c) {
  graft_scalar value = op_scalar(c, 1);
  graft_dtype dtype = op_dtype(c, 2) ? op_dtype(c, 2) : dtype_of_number(&value);
  for (uint32_t i = 0; i < c->args[0].count; i++) {
    if (c->args[0].as.ints[i] < 0) return op_error(c, "size %lld is negative", (long long)c->args[0].as.ints[i]);
  }
  op_set_dtype(c, 2, dtype);
  op_out(c, 0, dtype, (int32_t)c->args[0].count, c->args[0].as.ints);
  return GRAFT_OK;
}

static graft_status fill(const graft_tensor_desc *out, const graft_scalar *value) {
  ref_array y = ref_new(ref_numel(out), dt_is_complex(out->dl.dtype));
  if (!y.re) return ref_no_memory();
  dt_value number = dt_scalar_value(value);
  for (int64_t i = 0; i < y.count; i++) {
    y.re[i] = number.re;
    if (y.im) y.im[i] = number.im;
  }
  ref_write(out, &y);
  ref_free(&y);
  return GRAFT_OK;
}

static graft_status ref_full(const graft_exec *exec, const graft_args_full *a) {
  (void)exec;
  return fill(a->out, a->fill_value);
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_FULL, .roles = "", .infer = infer_full, .reference = OP_REF(full)},
};
OP_FAMILY_END(factory, defs)
