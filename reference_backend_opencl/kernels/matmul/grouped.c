/* _grouped_mm. */
#include "kernels/core/direct.h"

/* As grouped.cl has them. */
enum { BY_ROWS, BY_COLUMNS, BY_DEPTH, STACKS };
enum { STRIP = 16 };

static void head(ocl_text *text, const void *of) {
  (void)of;
  ocl_text_add(text, "#define OP_ID %u\n", (unsigned)GRAFT_OP_GROUPED_MM);
}

graft_status ocl_op_grouped_mm(const graft_exec *exec, const graft_args_grouped_mm *args) {
  const graft_dl_tensor *a = &args->self->dl, *b = &args->mat2->dl, *out = &args->out->dl;
  if (a->dtype != out->dtype || b->dtype != out->dtype || args->bias) return GRAFT_UNIMPLEMENTED;
  int kind = a->ndim == 2 ? (b->ndim == 2 ? BY_DEPTH : BY_ROWS) : b->ndim == 2 ? BY_COLUMNS : STACKS;
  int64_t columns = b->shape[b->ndim - 1], out_rows = columns ? ocl_elements(args->out) / columns : 0;
  const int64_t numbers[] = {kind, args->offs ? args->offs->dl.shape[0] : a->shape[0], a->shape[a->ndim - 2], columns,
                             a->shape[a->ndim - 1]};
  ocl_direct call = {.file = "core/direct matmul/grouped",
                     .dtype = out->dtype,
                     .head = head,
                     .numbers = numbers,
                     .count = sizeof numbers / sizeof *numbers,
                     .reports = true,
                     .places = 4};
  call.stages[0] = (ocl_stage){.entry = "multiply_groups",
                               .units = out_rows * ocl_ceil_divide(columns, STRIP),
                               .places = {ocl_place_of(args->out), ocl_place_of(args->self), ocl_place_of(args->mat2),
                                          ocl_place_of(args->offs)}};
  return ocl_direct_run(exec, &call);
}
