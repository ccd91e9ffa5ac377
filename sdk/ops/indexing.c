/* Indexing: elements picked by where they are or by index tensors. */
#include <string.h>

#include "ops/families.h"
#include "ops/generated/fx_ops.h"
#include "ops/ref.h"
#include "reference/reference.h"

/* nonzero(self) -> i64 [n, rank]: n is found by the op */
static graft_status infer_nonzero(op_call *c) {
  const graft_tensor *self = op_tensor(c, 0);
  c->dynamic = true;
  op_out(c, 0, GRAFT_I64, 2, (int64_t[]){self->numel, self->ndim});
  return GRAFT_OK;
}

static void write_positions(const graft_tensor_desc *self, const ref_array *x, int64_t *out) {
  for (int64_t i = 0; i < x->count; i++) {
    if (x->re[i] == 0 && !(x->im && x->im[i] != 0)) continue;
    int64_t rest = i;
    for (int32_t d = self->dl.ndim - 1; d >= 0; d--) {
      out[d] = rest % self->dl.shape[d];
      rest /= self->dl.shape[d];
    }
    out += self->dl.ndim;
  }
}

static graft_status ref_nonzero(const graft_exec *exec, const graft_args_nonzero *a) {
  ref_array x = ref_read(a->self);
  if (!x.re) return ref_no_memory();
  int64_t count = 0;
  for (int64_t i = 0; i < x.count; i++) count += x.re[i] != 0 || (x.im && x.im[i] != 0);
  const graft_tensor_desc *out;
  graft_status status = ref_host()->output_shape(exec, a->out, 2, (int64_t[]){count, a->self->dl.ndim}, &out);
  if (!status && count) write_positions(a->self, &x, (int64_t *)(void *)ref_data(out));
  ref_free(&x);
  return status;
}

static const op_def defs[] = {
    {.op_id = GRAFT_OP_NONZERO, .roles = "k", .infer = infer_nonzero, .reference = OP_REF(nonzero)},
};
OP_FAMILY_END(indexing, defs)
